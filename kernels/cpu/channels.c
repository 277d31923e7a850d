/* Operations of an activation [N, C, H, W] with one number for each channel: mul and add with a second input [N, C] or [N, C, 1, 1], their
 * gradients, and prelu. Activations are channels last: a pixel is a row of C elements. Sums are made in an order that does not depend on
 * the number of threads. */
#include "cpu/loops.h"
#include "ew.h"
#include <stdlib.h>

#define GT_LANE static inline __attribute__((always_inline))
#define COLS 256   /* number of channels that are summed on the stack at once */
#define RUN 64     /* number of rows that are summed without double */
#define PIECE 1024 /* number of rows of a partial sum of prelu's dw; the last bits of the result depend on it */

/* What is summed over the rows: dy, dy * x, or the gradient of prelu's weight. */
enum term { DY, DY_X, PRELU };

struct args {
	const void *x, *dy, *v;
	void *y;      /* y, dx or dv */
	double *part; /* partial sums of dw, [pieces, cols] */
	int64_t rows, cols, pixels /* rows of a sample */, step /* elements from the vector of a sample to that of the next one */;
};

#define GT_TYPED "cpu/channels.inc"
#include "cpu/typed.inc"

struct channels {
	struct gt_kernel head;
	gt_range_fn *fn, *dw;
	struct args args;       /* without addresses */
	int64_t n, grain;       /* units of work of fn */
	int64_t pieces, weights; /* of prelu's dw; 0 pieces: dw is not wanted */
	bool f64, add, back;
	int in_x, in_v;         /* index of the operands x and v */
};

/* Adds the pieces in a fixed tree, and, with one weight for all channels, the channels in order. */
static void finish_dw(const struct channels *k, double *part, void *dw)
{
	int64_t cols = k->args.cols;
	for (int64_t w = 1; w < k->pieces; w *= 2)
		for (int64_t i = 0; i + w < k->pieces; i += 2 * w)
			for (int64_t j = 0; j < cols; j++)
				part[i * cols + j] += part[(i + w) * cols + j];
	for (int64_t j = 1; k->weights == 1 && j < cols; j++)
		part[0] += part[j];
	for (int64_t j = 0; j < k->weights; j++) {
		if (k->f64)
			((double *)dw)[j] = part[j] + (k->add ? ((double *)dw)[j] : 0);
		else
			((float *)dw)[j] = (float)part[j] + (k->add ? ((float *)dw)[j] : 0);
	}
}

static enum gt_code launch_channels(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct channels *k = (const struct channels *)kernel;
	struct args c = k->args;
	(void)err;
	c.dy = k->back ? a->in[0] : NULL;
	c.x = k->in_x < 0 ? NULL : a->in[k->in_x];
	c.v = k->in_v < 0 ? NULL : a->in[k->in_v];
	c.y = a->out[0];
	c.part = a->scratch;
	if (k->pieces) { /* before dx, which may overwrite dy */
		gt_cpu_for(dev, k->pieces, 65536 / (PIECE * c.cols) + 1, 1, k->dw, &c);
		finish_dw(k, c.part, a->out[1]);
	}
	if (k->fn)
		gt_cpu_for(dev, k->n, k->grain, 1, k->fn, &c);
	return GT_OK;
}

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}

enum gt_code gt_cpu_channels(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const mul[] = ROW(mul_channels), *const add[] = ROW(add_channels), *const mul_dv[] = ROW(mul_dv),
	                          *const add_dv[] = ROW(add_dv), *const prelu[2][GT_T_COUNT] = {ROW(prelu_channels), ROW(prelu_one)},
	                          *const prelu_dx[2][GT_T_COUNT] = {ROW(prelu_dx), ROW(prelu_one_dx)}, *const prelu_dw[] = ROW(prelu_dw);
	const struct gt_tdesc *x = call->in[0];
	int type = gt_cpu_type(x->dtype);
	bool sums = call->code == GT_OP_MUL_CHANNELS_DV || call->code == GT_OP_ADD_CHANNELS_DV, back = sums || call->code == GT_OP_PRELU_DX;
	bool learned = call->code == GT_OP_PRELU || call->code == GT_OP_PRELU_DX;
	const struct gt_tdesc *v = sums ? call->out[0] : call->in[back ? 2 : 1];
	int64_t count = gt_tdesc_count(v), cols = x->dim[1];
	struct channels *k;
	(void)dev;
	if (learned ? count != 1 && count != cols : count != x->dim[0] * cols)
		return gt_cpu_refuse(call, err, "expected one number for each channel");
	GT_KERNEL_NEW(k, launch_channels, "loop", err);
	k->args.cols = cols;
	k->args.rows = gt_tdesc_count(x) / cols;
	k->args.pixels = k->args.rows / x->dim[0];
	k->args.step = learned ? 0 : cols;
	k->weights = count;
	k->f64 = x->dtype == GT_F64;
	k->back = back;
	k->in_x = call->code == GT_OP_ADD_CHANNELS_DV ? -1 : back;
	k->in_v = sums ? -1 : back ? 2 : 1;
	k->n = sums ? x->dim[0] * ((cols + COLS - 1) / COLS) : k->args.rows;
	k->grain = sums ? 65536 / (k->args.pixels * (cols < COLS ? cols : COLS)) + 1 : 65536 / cols + 1;
	switch ((int)call->code) {
	case GT_OP_MUL_CHANNELS: k->fn = mul[type]; break;
	case GT_OP_ADD_CHANNELS: k->fn = add[type]; break;
	case GT_OP_MUL_CHANNELS_DV: k->fn = mul_dv[type]; break;
	case GT_OP_ADD_CHANNELS_DV: k->fn = add_dv[type]; break;
	case GT_OP_PRELU: k->fn = prelu[count == 1][type]; break;
	default:
		k->fn = call->out[0] ? prelu_dx[count == 1][type] : NULL;
		if (call->nout > 1 && call->out[1]) {
			k->pieces = (k->args.rows + PIECE - 1) / PIECE;
			k->dw = prelu_dw[type];
			k->add = call->accumulate & 2;
			k->head.scratch = (size_t)(k->pieces * cols) * sizeof(double);
		}
	}
	k->head.small = !k->pieces && gt_cpu_alone(k->n, k->grain);
	*out = &k->head;
	return GT_OK;
}
