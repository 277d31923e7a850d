/* Scaled dot-product attention of several heads, and its gradient, in tiles: the scores of BQ queries and BK keys are on the stack, and the
 * softmax of a row is computed with a running maximum and sum, without storing all scores (Milakov and Gimelshein, "Online normalizer
 * calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). The gradient computes the scores again from the logarithm of each
 * row's sum. A thread computes whole rows in the forward pass, and whole heads of a sample in the backward pass, so results do not depend
 * on the number of threads. */
#include "cpu/loops.h"
#include "cpu/sized.h"
#include "ew.h"
#include <math.h>
#include <string.h>

#define GT_LANE static inline __attribute__((always_inline))
#define BQ 64      /* queries of a tile */
#define BK 32      /* keys of a tile */
#define MAX_D 256  /* largest size of a head */

struct attention {
	struct gt_cpu_loop loop; /* forward: over tiles of queries of each head of a sample; backward: over the heads of samples */
	const void *qkv, *dy;
	const int32_t *lengths;
	void *y, *lse, *dqkv; /* y and lse: outputs of the forward operation, operands of the gradient */
	void *sums;           /* scratch of the gradient, in the type of the arithmetic: for each head of a sample [tokens, wide] of the
	                         gradients of keys, then of values */
	int64_t samples, tokens, heads, d; /* d: features of a head */
	int64_t wide;                      /* d rounded up to a multiple of 64 bytes, in elements of the arithmetic's type */
	bool causal;
	double scale;
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(attention, qkv, dy, lengths, y, lse, dqkv)};

static inline int64_t length_of(const struct attention *k, int64_t sample)
{
	int64_t n = k->lengths ? k->lengths[sample] : k->tokens;
	return n < 0 ? 0 : n > k->tokens ? k->tokens : n;
}

#define GT_SIZED_LOOPS "cpu/attention.inc"
#include "cpu/sized.inc"

/* The functions for one size of vectors, by type. */
struct loops {
	gt_range_fn *forward[GT_T_COUNT], *backward[GT_T_COUNT];
};

#define LOOPS(bytes)                                                                                                                       \
	{                                                                                                                                      \
		GT_SIZED_TYPES(attention_forward, bytes), GT_SIZED_TYPES(attention_backward, bytes)                                                \
	}
GT_SIZED_CHOOSE(loops, LOOPS)

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct attention *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	k->sums = a->scratch;
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

enum gt_code gt_cpu_attention(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct loops *loops = choose_loops();
	const struct gt_attr_attention *a = call->attr;
	bool back = call->code == GT_OP_ATTENTION_DX;
	const struct gt_tdesc *qkv = gt_opcall_operand(call, "qkv"), *y = gt_opcall_operand(call, "y");
	int type = gt_cpu_type(qkv->dtype);
	struct attention *k;
	(void)dev;
	if (qkv->dim[2] != 3 * y->dim[2] || a->heads < 1 || y->dim[2] % a->heads || y->dim[2] / a->heads > MAX_D)
		return gt_opcall_refuse(call, err, "expected heads of equal size, with at most 256 features");
	if (!gt_opcall_operand(call, "lse"))
		return gt_opcall_refuse(call, err, "the output lse is required");
	GT_LOOP_NEW(k, slots, call, "tiles", err);
	k->samples = y->dim[0];
	k->tokens = y->dim[1];
	k->heads = a->heads;
	k->d = y->dim[2] / a->heads;
	k->causal = a->causal;
	k->scale = 1.0 / sqrt((double)k->d);
	size_t size = qkv->dtype == GT_F64 ? sizeof(double) : sizeof(float), lanes = 64 / size;
	k->wide = (k->d + (int64_t)lanes - 1) / (int64_t)lanes * (int64_t)lanes;
	if (back) {
		k->loop.head.launch = launch_backward;
		k->loop.head.scratch = (size_t)(k->samples * k->heads * k->tokens * 2 * k->wide) * size;
		gt_cpu_loop_over(&k->loop, loops->backward[type], k->samples * k->heads, 65536 / (k->tokens * k->tokens * k->d) + 1);
	} else {
		int64_t tiles = k->samples * k->heads * ((k->tokens + BQ - 1) / BQ);
		gt_cpu_loop_over(&k->loop, loops->forward[type], tiles, 65536 / (BQ * k->tokens * k->d) + 1);
	}
	*out = &k->loop.head;
	return GT_OK;
}
