/* Operations of an activation [N, C, H, W] with one value for each channel: mul and add with a second input [N, C] or [N, C, 1, 1], their
 * gradients, and prelu. Activations are channels last: a pixel is a row of C elements. Sums are made in an order that does not depend on
 * the number of threads. */
#include "cpu/loops.h"
#include "ew.h"

#define GT_LANE static inline __attribute__((always_inline))
#define COLS 256   /* number of channels that are summed on the stack at once */
#define RUN 64     /* number of rows whose sum has the type of the arithmetic (A in typed.inc), before it is added to a sum in double */
#define PIECE 1024 /* number of rows of a partial sum of prelu's dw; the last bits of the result depend on it */

/* The term that is summed over the rows: dy, dy * x, or the gradient of prelu's weight. */
enum term { DY, DY_X, PRELU };

struct channels {
	struct gt_cpu_loop loop; /* loop over rows; for dv, over units; fn NULL: only dw is computed */
	const void *x, *dy, *v;
	void *y; /* y, dx or dv */
	void *dw;
	double *part; /* partial sums of dw, [pieces, cols] */
	int64_t rows, cols, pixels /* rows of a sample */, step /* elements between the vectors of two samples */;
	gt_range_fn *sum_dw;
	int64_t pieces, weights; /* for prelu's dw; 0 pieces: dw is not computed */
	bool f64, add;
};

static const struct gt_operand_slot slots[] = {
    GT_SLOTS(channels, x, dy, v, y, dw), GT_SLOT_AS(channels, "w", v), GT_SLOT_AS(channels, "dx", y), GT_SLOT_AS(channels, "dv", y)};

#define GT_TYPED "cpu/channels.inc"
#include "cpu/typed.inc"

/* Adds the pieces in a fixed tree, and, with one weight for all channels, the channels in order. */
static void finish_dw(const struct channels *k)
{
	int64_t cols = k->cols;
	double *part = k->part;
	for (int64_t w = 1; w < k->pieces; w *= 2)
		for (int64_t i = 0; i + w < k->pieces; i += 2 * w)
			for (int64_t j = 0; j < cols; j++)
				part[i * cols + j] += part[(i + w) * cols + j];
	for (int64_t j = 1; k->weights == 1 && j < cols; j++)
		part[0] += part[j];
	for (int64_t j = 0; j < k->weights; j++) {
		if (k->f64)
			((double *)k->dw)[j] = part[j] + (k->add ? ((double *)k->dw)[j] : 0);
		else
			((float *)k->dw)[j] = (float)part[j] + (k->add ? ((float *)k->dw)[j] : 0);
	}
}

static enum gt_code launch_channels(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct channels *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	k->part = a->scratch;
	if (k->pieces) { /* computed before dx, because dx may overwrite dy */
		gt_cpu_for(dev, k->pieces, 65536 / (PIECE * k->cols) + 1, 1, k->sum_dw, k);
		finish_dw(k);
	}
	if (k->loop.fn)
		gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

enum gt_code gt_cpu_channels(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const table[][GT_T_COUNT] = {
	    [GT_OP_MUL_CHANNELS] = GT_TYPES(mul_channels), [GT_OP_MUL_CHANNELS_DV] = GT_TYPES(mul_dv),
	    [GT_OP_ADD_CHANNELS] = GT_TYPES(add_channels), [GT_OP_ADD_CHANNELS_DV] = GT_TYPES(add_dv),
	    [GT_OP_PRELU] = GT_TYPES(prelu_channels),      [GT_OP_PRELU_DX] = GT_TYPES(prelu_dx),
	};
	static gt_range_fn *const one[][GT_T_COUNT] = {[GT_OP_PRELU] = GT_TYPES(prelu_one), [GT_OP_PRELU_DX] = GT_TYPES(prelu_one_dx)};
	static gt_range_fn *const dw[] = GT_TYPES(prelu_dw);
	const struct gt_tdesc *w = gt_opcall_operand(call, "w"), *dv = gt_opcall_operand(call, "dv"), *dy = gt_opcall_operand(call, "dy");
	const struct gt_tdesc *x = dy ? dy : gt_opcall_operand(call, "x"), *v = w ? w : dv ? dv : gt_opcall_operand(call, "v");
	int type = gt_cpu_type(x->dtype);
	int64_t count = gt_tdesc_count(v), cols = x->dim[1];
	struct channels *k;
	(void)dev;
	if (w ? count != 1 && count != cols : count != x->dim[0] * cols)
		return gt_opcall_refuse(call, err, "expected one value for each channel");
	GT_LOOP_NEW(k, slots, call, "loop", err);
	k->loop.head.launch = launch_channels;
	k->cols = cols;
	k->rows = gt_tdesc_count(x) / cols;
	k->pixels = k->rows / x->dim[0];
	k->step = w ? 0 : cols;
	gt_cpu_loop_over(&k->loop, w && count == 1 ? one[call->code][type] : table[call->code][type], k->rows, 65536 / cols + 1);
	if (dv)
		gt_cpu_loop_over(&k->loop, table[call->code][type], x->dim[0] * ((cols + COLS - 1) / COLS),
		                 65536 / (k->pixels * (cols < COLS ? cols : COLS)) + 1);
	if (w && dy && !gt_opcall_operand(call, "dx"))
		k->loop.fn = NULL;
	if (gt_opcall_operand(call, "dw")) {
		k->pieces = (k->rows + PIECE - 1) / PIECE;
		k->weights = count;
		k->sum_dw = dw[type];
		k->f64 = x->dtype == GT_F64;
		k->add = gt_opcall_adds(call, "dw");
		k->loop.head.scratch = (size_t)(k->pieces * cols) * sizeof(double);
	}
	k->loop.head.small = !k->pieces && gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
