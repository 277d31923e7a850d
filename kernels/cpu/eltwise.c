/* Element-wise operations: activations and their gradients, add, mul, cast. The loops walk through tensors in memory order, so all operands
 * must have the same layout. */
#include "cpu/loops.h"
#include "ew.h"
#include <stdlib.h>
#include <string.h>

#define ADD_BLOCK 512
#define CAST_GRAIN 65536 /* elements that take about 8 us on one core */

struct args {
	const void *in[GT_MAX_IO];
	void *out;
	int nin;
	double number[2]; /* of an activation (gt_attr_act.number); number[0] is the factor of scale */
};

#define GT_TYPED "cpu/eltwise.inc"
#include "cpu/typed.inc"

/* ---- cast -------------------------------------------------------------------------------------------------------------------- */
#define GT_CAST(from, to, S, D, expr)                                                                                                      \
	GT_CLONES static void cast_##from##_##to(const void *ctx, int64_t begin, int64_t end)                                                  \
	{                                                                                                                                      \
		const struct args *c = ctx;                                                                                                        \
		const S *in = c->in[0];                                                                                                            \
		D *restrict out = c->out;                                                                                                          \
		for (int64_t i = begin; i < end; i++) {                                                                                            \
			S x = in[i];                                                                                                                   \
			out[i] = expr;                                                                                                                 \
		}                                                                                                                                  \
	}
GT_CAST(f32, bf16, float, uint16_t, gt_bf16_from_f32(x))
GT_CAST(bf16, f32, uint16_t, float, gt_bf16_to_f32(x))
GT_CAST(f32, f64, float, double, x)
GT_CAST(f64, f32, double, float, (float)x)
GT_CAST(bf16, f64, uint16_t, double, gt_bf16_to_f32(x))

static gt_range_fn *const casts[GT_T_COUNT][GT_T_COUNT] = {
    [GT_T_F32] = {[GT_T_BF16] = cast_f32_bf16, [GT_T_F64] = cast_f32_f64},
    [GT_T_BF16] = {[GT_T_F32] = cast_bf16_f32, [GT_T_F64] = cast_bf16_f64},
    [GT_T_F64] = {[GT_T_F32] = cast_f64_f32},
};

/* ---- table ------------------------------------------------------------------------------------------------------------------- */
#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		loop_##op##_f32, loop_##op##_bf16, loop_##op##_f64                                                                                 \
	}
/* grain is the number of elements that take about 8 µs on one core. A smaller call does not use a second core, because starting a thread
 * would cost more. */
static const struct row {
	gt_range_fn *fn[GT_T_COUNT];
	int64_t grain;
	int numbers; /* how many numbers of gt_attr_act an activation takes */
} rows[GT_OP_COUNT] = {
#define GT_X(arg, CODE, name, saved, numbers, grain, ...)                                                                                  \
	[GT_OP_##CODE] = {ROW(name), grain, numbers}, [GT_OP_##CODE##_DX] = {ROW(name##_dx), GT_ACTIVATION_GRAIN_##saved(grain), numbers},
    GT_ACTIVATIONS(GT_X)
#undef GT_X
    [GT_OP_SCALE] = {ROW(scale), 65536},
    [GT_OP_MUL] = {ROW(mul), 65536},
    [GT_OP_ADD] = {ROW(add2), 65536},
};
static const struct row row_addn = {ROW(addn), 32768};
static const struct row row_gelu_tanh = {ROW(gelu_tanh), 8192}, row_gelu_tanh_dx = {ROW(gelu_tanh_dx), 8192};

void gt_cpu_relu(const struct gt_dev *dev, enum gt_dtype type, void *y, int64_t n)
{
	struct args c = {.in = {y}, .out = y, .nin = 1};
	gt_cpu_for(dev, n, rows[GT_OP_RELU].grain, 64, rows[GT_OP_RELU].fn[gt_cpu_type(type)], &c);
}

void gt_cpu_widen(const struct gt_dev *dev, float *y, const uint16_t *x, int64_t n)
{
	struct args c = {.in = {x}, .out = y, .nin = 1};
	gt_cpu_for(dev, n, CAST_GRAIN, 64, cast_bf16_f32, &c);
}

void gt_cpu_narrow(const struct gt_dev *dev, uint16_t *y, const float *x, int64_t n)
{
	struct args c = {.in = {x}, .out = y, .nin = 1};
	gt_cpu_for(dev, n, CAST_GRAIN, 64, cast_f32_bf16, &c);
}

struct eltwise {
	struct gt_kernel head;
	gt_range_fn *fn; /* the loop of the operation; NULL: the operation copies its input */
	int64_t n, grain;
	size_t bytes;
	int nin;
	double number[2];
};

static enum gt_code launch_eltwise(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct eltwise *k = (const struct eltwise *)kernel;
	struct args c = {.out = a->out[0], .nin = k->nin, .number = {k->number[0], k->number[1]}};
	(void)err;
	if (!k->fn) {
		if (a->out[0] != a->in[0])
			memcpy(a->out[0], a->in[0], k->bytes);
		return GT_OK;
	}
	for (int i = 0; i < k->nin; i++)
		c.in[i] = a->in[i];
	gt_cpu_for(dev, k->n, k->grain, 64, k->fn, &c);
	return GT_OK;
}

enum gt_code gt_cpu_eltwise(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[0];
	struct gt_tdesc *y = call->out[0];
	int type = gt_cpu_type(x->dtype), nin = call->nin;
	gt_range_fn *fn;
	const struct row *row = &rows[call->code];
	int64_t grain = row->grain;
	double number[2] = {0};
	(void)dev;
	if (call->code == GT_OP_CAST) {
		int to = gt_cpu_type(y->dtype);
		if (y->any)
			y->layout = x->layout, y->any = false;
		fn = type < 0 || to < 0 ? NULL : casts[type][to];
		if (!fn && to != type)
			return gt_cpu_refuse(call, err, "this conversion is not supported");
		grain = CAST_GRAIN;
	} else {
		if (call->code == GT_OP_GELU && ((const struct gt_attr_gelu *)call->attr)->approximate)
			row = &row_gelu_tanh;
		else if (call->code == GT_OP_GELU_DX && ((const struct gt_attr_gelu *)call->attr)->approximate)
			row = &row_gelu_tanh_dx;
		else if (call->code == GT_OP_ADD && nin > 2)
			row = &row_addn;
		fn = row->fn[type];
		grain = row->grain;
		for (int i = 0; i < row->numbers; i++)
			number[i] = ((const struct gt_attr_act *)call->attr)->number[i];
		if (call->code == GT_OP_SCALE)
			number[0] = ((const struct gt_attr_scale *)call->attr)->factor;
	}
	struct eltwise *k;
	GT_KERNEL_NEW(k, launch_eltwise, type == GT_T_F64 ? "loop:f64" : "loop", err);
	k->fn = fn;
	k->n = gt_tdesc_padded(x);
	k->bytes = gt_tdesc_bytes(x);
	k->grain = grain;
	k->nin = nin;
	memcpy(k->number, number, sizeof number);
	k->head.small = gt_cpu_alone(k->n, k->grain);
	*out = &k->head;
	return GT_OK;
}
