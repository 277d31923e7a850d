/* Reference in f64: linear by plain loops, with plain weights [out,in]. The gradient checks compare with it, so it is simple rather than
 * fast. */
#include "ref.h"
#include <stdlib.h>

struct linear {
	struct gt_kernel head;
	enum gt_opcode code;
	int64_t n, in, out;
	int act;
	bool bias, add_w, add_b;
};

static enum gt_code launch_linear(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct linear *k = (const struct linear *)kernel;
	int64_t I = k->in, O = k->out;
	(void)dev, (void)err;
	if (k->code == GT_OP_LINEAR) {
		const double *x = a->in[0], *w = a->in[1], *b = k->bias ? a->in[2] : NULL;
		double *y = a->out[0];
		for (int64_t n = 0; n < k->n; n++)
			for (int64_t o = 0; o < O; o++) {
				double s = 0;
				for (int64_t i = 0; i < I; i++)
					s += x[n * I + i] * w[o * I + i];
				s += b ? b[o] : 0;
				y[n * O + o] = k->act == GT_ACT_RELU && s <= 0 ? 0 : s;
			}
	} else if (k->code == GT_OP_LINEAR_DX) {
		const double *dy = a->in[0], *w = a->in[1];
		double *dx = a->out[0];
		for (int64_t n = 0; n < k->n; n++)
			for (int64_t i = 0; i < I; i++) {
				double s = 0;
				for (int64_t o = 0; o < O; o++)
					s += dy[n * O + o] * w[o * I + i];
				dx[n * I + i] = s;
			}
	} else {
		const double *dy = a->in[0], *x = a->in[1];
		double *dw = a->out[0], *db = k->bias ? a->out[1] : NULL;
		for (int64_t o = 0; o < O; o++) {
			for (int64_t i = 0; dw && i < I; i++) {
				double s = 0;
				for (int64_t n = 0; n < k->n; n++)
					s += dy[n * O + o] * x[n * I + i];
				dw[o * I + i] = s + (k->add_w ? dw[o * I + i] : 0);
			}
			if (db) {
				double s = 0;
				for (int64_t n = 0; n < k->n; n++)
					s += dy[n * O + o];
				db[o] = s + (k->add_b ? db[o] : 0);
			}
		}
	}
	return GT_OK;
}

enum gt_code gt_ref_linear(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_linear *attr = call->attr;
	struct gt_tdesc *w = call->code == GT_OP_LINEAR_DW ? call->out[0] : call->in[1];
	const struct gt_tdesc *x = call->code == GT_OP_LINEAR_DX ? call->out[0] : call->code == GT_OP_LINEAR_DW ? call->in[1] : call->in[0];
	struct linear *k;
	(void)dev;
	if (w && w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	if ((w && !gt_tdesc_plain(w)) || !gt_tdesc_plain(x))
		return gt_opcall_refuse(call, err, "the f64 reference supports plain layouts only");
	if (call->code == GT_OP_LINEAR_DX && call->nin > 2 && call->in[2])
		return gt_opcall_refuse(call, err, "f64 graphs are not fused");
	if (!(k = calloc(1, sizeof *k)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = launch_linear;
	k->head.describe = "ref:f64";
	k->code = call->code;
	k->n = x->dim[0];
	k->in = x->dim[1];
	k->out = attr->out;
	k->act = attr->act;
	k->bias = call->code == GT_OP_LINEAR ? call->nin > 2 && call->in[2] : call->code == GT_OP_LINEAR_DW && call->nout > 1 && call->out[1];
	k->add_w = call->accumulate & 1;
	k->add_b = call->accumulate & 2;
	*out = &k->head;
	return GT_OK;
}
