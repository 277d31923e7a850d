/* Reference in f64: conv2d by plain loops, with activations in NHWC and plain weights [O, I/groups, kh, kw]. One loop over all products
 * (image, output position, output channel, input channel, tap) computes forward and both gradients. */
#include "ref.h"
#include <stdlib.h>
#include <string.h>

struct conv {
	struct gt_kernel head;
	enum gt_opcode code;
	struct gt_attr_conv2d attr;
	int64_t n, ih, iw, ic, oh, ow, oc;
	bool bias, add_w, add_b;
};

enum role { FORWARD, DX, DW };

/* Visits every product of y[n,oy,ox,o] = sum x[n,iy,ix,i] w[o,i - first,ky,kx] and adds its contribution to the result of `role`. */
static void visit_products(const struct conv *k, enum role role, double *y, double *x, double *w)
{
	const struct gt_attr_conv2d *c = &k->attr;
	int64_t ig = k->ic / c->groups, og = k->oc / c->groups, kh = c->kernel[0], kw = c->kernel[1];
	for (int64_t n = 0; n < k->n; n++)
		for (int64_t oy = 0; oy < k->oh; oy++)
			for (int64_t ox = 0; ox < k->ow; ox++)
				for (int64_t o = 0; o < k->oc; o++) {
					double *py = &y[((n * k->oh + oy) * k->ow + ox) * k->oc + o];
					for (int64_t ky = 0; ky < kh; ky++)
						for (int64_t kx = 0; kx < kw; kx++) {
							int64_t iy = oy * c->stride[0] - c->padding[0] + ky * c->dilation[0];
							int64_t ix = ox * c->stride[1] - c->padding[1] + kx * c->dilation[1];
							if (iy < 0 || iy >= k->ih || ix < 0 || ix >= k->iw)
								continue;
							for (int64_t i = 0; i < ig; i++) {
								double *px = &x[((n * k->ih + iy) * k->iw + ix) * k->ic + o / og * ig + i];
								double *pw = &w[((o * ig + i) * kh + ky) * kw + kx];
								if (role == FORWARD)
									*py += *px * *pw;
								else if (role == DX)
									*px += *py * *pw;
								else
									*pw += *py * *px;
							}
						}
				}
}

static enum gt_code launch_conv(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct conv *k = (const struct conv *)kernel;
	int64_t pixels = k->n * k->oh * k->ow;
	(void)dev, (void)err;
	if (k->code == GT_OP_CONV2D) {
		const double *b = k->bias ? a->in[2] : NULL;
		double *y = a->out[0];
		for (int64_t p = 0; p < pixels; p++)
			for (int64_t o = 0; o < k->oc; o++)
				y[p * k->oc + o] = b ? b[o] : 0;
		visit_products(k, FORWARD, y, a->in[0], a->in[1]);
		if (k->attr.act == GT_ACT_RELU)
			for (int64_t i = 0; i < pixels * k->oc; i++)
				y[i] = y[i] <= 0 ? 0 : y[i];
	} else if (k->code == GT_OP_CONV2D_DX) {
		memset(a->out[0], 0, (size_t)(k->n * k->ih * k->iw * k->ic) * sizeof(double));
		visit_products(k, DX, a->in[0], a->out[0], a->in[1]);
	} else {
		const double *dy = a->in[0];
		double *db = k->bias ? a->out[1] : NULL;
		if (a->out[0]) {
			if (!k->add_w)
				memset(a->out[0], 0, (size_t)(k->oc * (k->ic / k->attr.groups) * k->attr.kernel[0] * k->attr.kernel[1]) * sizeof(double));
			visit_products(k, DW, a->in[0], a->in[1], a->out[0]);
		}
		for (int64_t o = 0; db && o < k->oc; o++) {
			double s = 0;
			for (int64_t p = 0; p < pixels; p++)
				s += dy[p * k->oc + o];
			db[o] = s + (k->add_b ? db[o] : 0);
		}
	}
	return GT_OK;
}

enum gt_code gt_ref_conv(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool fwd = call->code == GT_OP_CONV2D, dx = call->code == GT_OP_CONV2D_DX;
	const struct gt_tdesc *x = fwd ? call->in[0] : dx ? call->out[0] : call->in[1], *y = fwd ? call->out[0] : call->in[0];
	struct gt_tdesc *w = fwd || dx ? call->in[1] : call->out[0];
	struct conv *k;
	(void)dev;
	if (w && w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	if (w && !gt_tdesc_plain(w))
		return gt_opcall_refuse(call, err, "the f64 reference supports plain weights only");
	if (!(k = calloc(1, sizeof *k)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = launch_conv;
	k->head.describe = "ref:f64";
	k->code = call->code;
	k->attr = *(const struct gt_attr_conv2d *)call->attr;
	k->n = x->dim[0], k->ic = x->dim[1], k->ih = x->dim[2], k->iw = x->dim[3];
	k->oc = y->dim[1], k->oh = y->dim[2], k->ow = y->dim[3];
	k->bias = fwd ? call->nin > 2 && call->in[2] : !dx && call->nout > 1 && call->out[1];
	k->add_w = call->accumulate & 1;
	k->add_b = call->accumulate & 2;
	*out = &k->head;
	return GT_OK;
}
