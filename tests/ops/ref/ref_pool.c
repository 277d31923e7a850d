/* Reference in f64: pooling by plain loops over NHWC. Rules for windows and divisors: PyTorch's MaxPoolKernel, AvgPoolKernel,
 * AdaptivePooling (ATen/native). The call gives the shape of the output, so ceil_mode needs no arithmetic here. */
#include "ref.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pool {
	struct gt_kernel head;
	enum gt_opcode code;
	struct gt_attr_pool2d attr;
	bool adaptive;
	bool idx; /* the call also writes the indices of the maxima */
	int64_t n, c, ih, iw, oh, ow;
};

struct window {
	int64_t y0, y1, x0, x1; /* the window, clipped to the image */
	double size;            /* number by which an average divides */
};

static struct window window_at(const struct pool *k, int64_t oy, int64_t ox)
{
	struct window w;
	const struct gt_attr_pool2d *p = &k->attr;
	if (k->adaptive) {
		w.y0 = oy * k->ih / k->oh;
		w.y1 = ((oy + 1) * k->ih + k->oh - 1) / k->oh;
		w.x0 = ox * k->iw / k->ow;
		w.x1 = ((ox + 1) * k->iw + k->ow - 1) / k->ow;
		w.size = (double)((w.y1 - w.y0) * (w.x1 - w.x0));
		return w;
	}
	w.y0 = oy * p->stride[0] - p->padding[0];
	w.x0 = ox * p->stride[1] - p->padding[1];
	w.y1 = w.y0 + p->kernel[0];
	w.x1 = w.x0 + p->kernel[1];
	/* With ceil_mode a window may extend beyond the right padding; pixels there never count in an average. */
	w.y1 = w.y1 < k->ih + p->padding[0] ? w.y1 : k->ih + p->padding[0];
	w.x1 = w.x1 < k->iw + p->padding[1] ? w.x1 : k->iw + p->padding[1];
	w.size = (double)((w.y1 - w.y0) * (w.x1 - w.x0));
	w.y0 = w.y0 > 0 ? w.y0 : 0;
	w.x0 = w.x0 > 0 ? w.x0 : 0;
	w.y1 = w.y1 < k->ih ? w.y1 : k->ih;
	w.x1 = w.x1 < k->iw ? w.x1 : k->iw;
	if (!p->count_include_pad)
		w.size = (double)((w.y1 - w.y0) * (w.x1 - w.x0));
	return w;
}

static void max_one(const struct pool *k, const struct window *w, const double *x, double *y, int32_t *idx)
{
	double best = -INFINITY;
	int64_t at = w->y0 * k->iw + w->x0;
	for (int64_t iy = w->y0; iy < w->y1; iy++)
		for (int64_t ix = w->x0; ix < w->x1; ix++) {
			double v = x[(iy * k->iw + ix) * k->c];
			if (v > best || isnan(v)) {
				best = v;
				at = iy * k->iw + ix;
			}
		}
	*y = best;
	if (idx)
		*idx = (int32_t)at;
}

static double sum_one(const struct pool *k, const struct window *w, const double *x)
{
	double s = 0;
	for (int64_t iy = w->y0; iy < w->y1; iy++)
		for (int64_t ix = w->x0; ix < w->x1; ix++)
			s += x[(iy * k->iw + ix) * k->c];
	return s;
}

static void spread_one(const struct pool *k, const struct window *w, double share, double *dx)
{
	for (int64_t iy = w->y0; iy < w->y1; iy++)
		for (int64_t ix = w->x0; ix < w->x1; ix++)
			dx[(iy * k->iw + ix) * k->c] += share;
}

static enum gt_code launch_pool(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct pool *k = (const struct pool *)kernel;
	bool max = k->code == GT_OP_MAXPOOL2D || k->code == GT_OP_ADAPTIVE_MAXPOOL2D, max_dx = k->code == GT_OP_MAXPOOL2D_DX;
	bool forward = max || k->code == GT_OP_AVGPOOL2D || k->code == GT_OP_ADAPTIVE_AVGPOOL2D;
	int64_t plane = k->ih * k->iw * k->c;
	(void)dev, (void)err;
	if (!forward)
		memset(a->out[0], 0, (size_t)(k->n * plane) * sizeof(double));
	for (int64_t n = 0; n < k->n; n++)
		for (int64_t oy = 0; oy < k->oh; oy++)
			for (int64_t ox = 0; ox < k->ow; ox++) {
				struct window w = window_at(k, oy, ox);
				for (int64_t c = 0; c < k->c; c++) {
					int64_t o = ((n * k->oh + oy) * k->ow + ox) * k->c + c, in = n * plane + c;
					if (max)
						max_one(k, &w, (const double *)a->in[0] + in, (double *)a->out[0] + o, k->idx ? (int32_t *)a->out[1] + o : NULL);
					else if (forward)
						((double *)a->out[0])[o] = sum_one(k, &w, (const double *)a->in[0] + in) / w.size;
					else if (max_dx)
						((double *)a->out[0])[in + ((const int32_t *)a->in[1])[o] * k->c] += ((const double *)a->in[0])[o];
					else
						spread_one(k, &w, ((const double *)a->in[0])[o] / w.size, (double *)a->out[0] + in);
				}
			}
	return GT_OK;
}

enum gt_code gt_ref_pool(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool back = call->code == GT_OP_MAXPOOL2D_DX || call->code == GT_OP_AVGPOOL2D_DX || call->code == GT_OP_ADAPTIVE_AVGPOOL2D_DX;
	const struct gt_tdesc *x = back ? call->out[0] : call->in[0], *y = back ? call->in[0] : call->out[0];
	struct pool *k;
	const struct gt_tdesc *idx = call->code == GT_OP_MAXPOOL2D_DX ? call->in[1] : call->nout > 1 ? call->out[1] : NULL;
	(void)dev;
	if (idx && idx->dtype != GT_I32)
		return gt_opcall_refuse(call, err, "indices are i32");
	if (!(k = calloc(1, sizeof *k)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = launch_pool;
	k->head.describe = "ref:f64";
	k->code = call->code;
	k->adaptive =
	    call->code == GT_OP_ADAPTIVE_AVGPOOL2D || call->code == GT_OP_ADAPTIVE_AVGPOOL2D_DX || call->code == GT_OP_ADAPTIVE_MAXPOOL2D;
	/* maxpool2d.dx needs the indices only, and may have the attributes of adaptive_maxpool2d */
	if (!k->adaptive && call->code != GT_OP_MAXPOOL2D_DX)
		k->attr = *(const struct gt_attr_pool2d *)call->attr;
	k->idx = !back && call->nout > 1 && call->out[1];
	k->n = x->dim[0], k->c = x->dim[1], k->ih = x->dim[2], k->iw = x->dim[3];
	k->oh = y->dim[2], k->ow = y->dim[3];
	*out = &k->head;
	return GT_OK;
}
