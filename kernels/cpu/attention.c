/* Scaled dot-product attention of several heads, and its gradient, in tiles: the scores of BQ queries and BK keys are on the stack, and
 * a running maximum and sum make the softmax of a row without ever holding all of its scores (Milakov and Gimelshein, "Online normalizer
 * calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). The gradient computes the scores again from the logarithm of each
 * row's sum. A thread works on whole rows in the forward pass, and on whole heads of a sample in the backward pass: no result depends on
 * the number of threads. */
#include "cpu/loops.h"
#include "ew.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GT_LANE static inline __attribute__((always_inline))
#define BQ 64      /* queries of a tile */
#define BK 32      /* keys of a tile */
#define MAX_D 256  /* largest size of a head */

struct attention {
	struct gt_kernel head;
	gt_range_fn *fn;
	int64_t samples, tokens, heads, d; /* d: features of a head */
	int64_t wide;                      /* d, rounded up to the elements of 64 bytes of the arithmetic's type */
	int64_t n, grain;
	bool back, causal;
	double scale;
	int lengths_in; /* index of the operand lengths; -1: absent */
};

struct args {
	const struct attention *k;
	const void *qkv, *dy, *y;
	const int32_t *lengths;
	const void *lse;
	void *out, *lse_out; /* y, or the gradient of qkv */
	void *sums;          /* scratch of the gradient, in the type of the arithmetic: for each head of a sample [tokens, wide] of the
	                        gradients of keys, then of values */
};

static inline int64_t length_of(const struct args *c, int64_t sample)
{
	int64_t n = c->lengths ? c->lengths[sample] : c->k->tokens;
	return n < 0 ? 0 : n > c->k->tokens ? c->k->tokens : n;
}

#define GT_TYPED "cpu/attention.inc"
#include "cpu/typed.inc"

static enum gt_code launch_attention(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct attention *k = (const struct attention *)kernel;
	struct args c = {.k = k, .qkv = a->in[k->back ? 1 : 0], .out = a->out[0], .sums = a->scratch};
	(void)err;
	c.lengths = k->lengths_in >= 0 ? a->in[k->lengths_in] : NULL;
	if (k->back) {
		c.dy = a->in[0];
		c.y = a->in[2];
		c.lse = a->in[4];
	} else {
		c.lse_out = a->out[1];
	}
	gt_cpu_for(dev, k->n, k->grain, 1, k->fn, &c);
	return GT_OK;
}

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}

enum gt_code gt_cpu_attention(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const forward[] = ROW(attention_forward), *const backward[] = ROW(attention_backward);
	const struct gt_attr_attention *a = call->attr;
	bool back = call->code == GT_OP_ATTENTION_DX;
	const struct gt_tdesc *qkv = call->in[back ? 1 : 0], *y = back ? call->in[0] : call->out[0];
	int type = gt_cpu_type(qkv->dtype), lengths = back ? 3 : 1;
	struct attention *k;
	(void)dev;
	if (qkv->dim[2] != 3 * y->dim[2] || a->heads < 1 || y->dim[2] % a->heads || y->dim[2] / a->heads > MAX_D)
		return gt_cpu_refuse(call, err, "expected heads of the same size, of at most 256 features");
	if (!back && (call->nout < 2 || !call->out[1]))
		return gt_cpu_refuse(call, err, "expected the output lse");
	GT_KERNEL_NEW(k, launch_attention, "tiles", err);
	k->samples = y->dim[0];
	k->tokens = y->dim[1];
	k->heads = a->heads;
	k->d = y->dim[2] / a->heads;
	k->back = back;
	k->causal = a->causal;
	k->scale = 1.0 / sqrt((double)k->d);
	k->lengths_in = call->nin > lengths && call->in[lengths] ? lengths : -1;
	k->fn = back ? backward[type] : forward[type];
	k->n = k->samples * k->heads * (back ? 1 : (k->tokens + BQ - 1) / BQ);
	k->grain = 65536 / ((back ? k->tokens : BQ) * k->tokens * k->d) + 1;
	size_t size = qkv->dtype == GT_F64 ? sizeof(double) : sizeof(float), lanes = 64 / size;
	k->wide = (k->d + (int64_t)lanes - 1) / (int64_t)lanes * (int64_t)lanes;
	if (back)
		k->head.scratch = (size_t)(k->samples * k->heads * k->tokens * 2 * k->wide) * size;
	*out = &k->head;
	return GT_OK;
}
