/* Element-wise operations: activations and their gradients, add, mul, cast. The loops walk through tensors in memory order, so all operands
 * must have the same layout. In bf16, blocks of the inputs are widened to f32, the loop of f32 computes, and its results are rounded: only
 * the loops of bf16_rows.c have instructions for bf16, and the blocks stay in the first cache. */
#include "cpu/bf16_rows.h"
#include "cpu/loops.h"
#include "ew.h"
#include <stdlib.h>
#include <string.h>

#define ADD_BLOCK 512
#define BF16_BLOCK 1024 /* elements of a block of bf16 */
#define CAST_GRAIN 65536 /* elements that take about 8 us on one core */

struct args {
	const void *x[GT_MAX_IO]; /* the inputs */
	void *out;
	int n; /* number of inputs */
	double number[2]; /* parameters of an activation (gt_attr_act.number); for scale, number[0] is the factor */
	gt_range_fn *f32; /* loop_bf16: the loop of f32 */
};

#define GT_WITHOUT_BF16
#define GT_TYPED "cpu/eltwise.inc"
#include "cpu/typed.inc"

static void loop_bf16(const void *ctx, int64_t begin, int64_t end)
{
	const struct args *c = ctx;
	_Alignas(64) float in[GT_MAX_IO][BF16_BLOCK], out[BF16_BLOCK];
	struct args f32 = *c;
	f32.out = out;
	for (int64_t i = begin; i < end; i += BF16_BLOCK) {
		int64_t n = end - i < BF16_BLOCK ? end - i : BF16_BLOCK;
		for (int k = 0; k < c->n; k++) {
			gt_bf16_widen_row(in[k], (const uint16_t *)c->x[k] + i, n);
			f32.x[k] = in[k];
		}
		c->f32(&f32, 0, n);
		gt_bf16_narrow_row((uint16_t *)c->out + i, out, n);
	}
}

/* ---- cast -------------------------------------------------------------------------------------------------------------------- */
static void cast_f32_bf16(const void *ctx, int64_t begin, int64_t end)
{
	const struct args *c = ctx;
	gt_bf16_narrow_row((uint16_t *)c->out + begin, (const float *)c->x[0] + begin, end - begin);
}

static void cast_bf16_f32(const void *ctx, int64_t begin, int64_t end)
{
	const struct args *c = ctx;
	gt_bf16_widen_row((float *)c->out + begin, (const uint16_t *)c->x[0] + begin, end - begin);
}

#define GT_CAST(from, to, S, D, expr)                                                                                                      \
	GT_CLONES static void cast_##from##_##to(const void *ctx, int64_t begin, int64_t end)                                                  \
	{                                                                                                                                      \
		const struct args *c = ctx;                                                                                                        \
		const S *in = c->x[0];                                                                                                             \
		D *restrict out = c->out;                                                                                                          \
		for (int64_t i = begin; i < end; i++) {                                                                                            \
			S x = in[i];                                                                                                                   \
			out[i] = expr;                                                                                                                 \
		}                                                                                                                                  \
	}
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
		[GT_T_F32] = loop_##op##_f32, [GT_T_BF16] = loop_bf16, [GT_T_F64] = loop_##op##_f64                                                \
	}
/* grain is the number of elements that take about 8 µs on one core. A smaller call does not use a second core, because starting a thread
 * would cost more. */
static const struct row {
	gt_range_fn *fn[GT_T_COUNT];
	int64_t grain;
	int numbers; /* how many parameters (gt_attr_act.number) an activation takes */
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
static const struct row row_relu_dx = {ROW(relu_dx_memory), 65536};
static const struct row row_gelu_tanh = {ROW(gelu_tanh), 8192}, row_gelu_tanh_dx = {ROW(gelu_tanh_dx), 8192};

static const struct row finish[] = {
    [GT_ACT_NONE] = {ROW(finish_none), 65536},
    [GT_ACT_RELU] = {ROW(finish_relu), 65536},
    [GT_ACT_GELU] = {ROW(finish_gelu), 8192},
    [GT_ACT_GELU_TANH] = {ROW(finish_gelu_tanh), 8192},
    [GT_ACT_RELU6] = {ROW(finish_relu6), 65536},
    [GT_ACT_SILU] = {ROW(finish_silu), 16384},
    [GT_ACT_HARDSWISH] = {ROW(finish_hardswish), 65536},
};

void gt_cpu_finish_rows(int act, float *y, int64_t n)
{
	struct args c = {.x = {y}, .out = y, .n = 1};
	finish[act].fn[GT_T_F32](&c, 0, n);
}

void gt_cpu_finish(const struct gt_dev *dev, enum gt_dtype type, int act, void *y, const void *res, int64_t n)
{
	struct args c = {.x = {y, res}, .out = y, .n = res ? 2 : 1, .f32 = finish[act].fn[GT_T_F32]};
	gt_cpu_for(dev, n, finish[act].grain, 64, finish[act].fn[gt_cpu_type(type)], &c);
}

void gt_cpu_widen(const struct gt_dev *dev, float *y, const uint16_t *x, int64_t n)
{
	struct args c = {.x = {x}, .out = y, .n = 1};
	gt_cpu_for(dev, n, CAST_GRAIN, 64, cast_bf16_f32, &c);
}

void gt_cpu_narrow(const struct gt_dev *dev, uint16_t *y, const float *x, int64_t n)
{
	struct args c = {.x = {x}, .out = y, .n = 1};
	gt_cpu_for(dev, n, CAST_GRAIN, 64, cast_f32_bf16, &c);
}

struct eltwise {
	struct gt_cpu_loop loop; /* fn is NULL: the operation copies its input */
	struct args args;
	size_t bytes;
};

static enum gt_code launch_eltwise(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct eltwise *k = gt_cpu_loop_bind(head, a);
	struct args *c = &k->args;
	(void)err;
	for (int i = 0; i < c->n; i++)
		c->x[i] = a->in[i];
	if (k->loop.fn)
		gt_cpu_for(dev, k->loop.n, k->loop.grain, 64, k->loop.fn, c);
	else if (c->out != c->x[0])
		memcpy(c->out, c->x[0], k->bytes);
	return GT_OK;
}

enum gt_code gt_cpu_eltwise(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	/* outputs are bound after inputs, because an activation's gradient may have the input y, and `out` must become dx */
	static const struct gt_operand_slot slots[] = {GT_SLOT_AS(eltwise, "y", args.out), GT_SLOT_AS(eltwise, "dx", args.out)};
	const struct gt_tdesc *x = gt_opcall_input(call);
	struct gt_tdesc *y = gt_opcall_output(call);
	int type = gt_cpu_type(x->dtype), to = gt_cpu_type(y->dtype);
	const struct row *row = &rows[call->code];
	const struct gt_attr_gelu *gelu = call->code == GT_OP_GELU || call->code == GT_OP_GELU_DX ? call->attr : NULL;
	bool cast = call->code == GT_OP_CAST;
	struct eltwise *k;
	(void)dev;
	if (cast) {
		if (y->any)
			y->layout = x->layout, y->any = false;
		if (to != type && (type < 0 || to < 0 || !casts[type][to]))
			return gt_opcall_refuse(call, err, "this conversion is not supported");
	}
	if (gelu && gelu->approximate)
		row = call->code == GT_OP_GELU ? &row_gelu_tanh : &row_gelu_tanh_dx;
	else if (call->code == GT_OP_RELU_DX && type != GT_T_BF16)
		row = &row_relu_dx;
	else if (call->code == GT_OP_ADD && call->nin > 2)
		row = &row_addn;
	GT_LOOP_NEW(k, slots, call, type == GT_T_F64 ? "loop:f64" : "loop", err);
	k->loop.head.launch = launch_eltwise;
	gt_range_fn *fn = !cast ? row->fn[type] : type < 0 ? NULL : casts[type][to];
	gt_cpu_loop_over(&k->loop, fn, gt_tdesc_padded(x), cast ? CAST_GRAIN : row->grain);
	k->bytes = gt_tdesc_bytes(x);
	k->args.n = call->nin;
	k->args.f32 = row->fn[GT_T_F32];
	for (int i = 0; i < row->numbers; i++)
		k->args.number[i] = ((const struct gt_attr_act *)call->attr)->number[i];
	if (call->code == GT_OP_SCALE)
		k->args.number[0] = ((const struct gt_attr_scale *)call->attr)->factor;
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
