/* The steps of lstm and gru in f32 arithmetic (rnn.c). Samples are independent of each other, so one thread takes a group of samples
 * through all steps without a barrier. The samples of a group are sorted by length, the longest first: at each step, the samples that have
 * not ended come first. The product of the hidden states with weight_hh uses a packed copy of the weights, in panels of columns:
 *
 *	forward    for each k in H, the weights of VW units, gate by gate     sum[row][gate] += h[row][k] * panel[k][gate]
 *	backward   for each k in G, the weights to 4 VW units of H            sum[row][j] += dgate[row][k] * panel[k][j]
 *
 * so that all gates of a unit are computed in the registers of one tile. A sum goes over k in order: results do not depend on the number of
 * threads, the groups or the tiles.
 *
 * If activations are bf16, the operands of both products are rounded to bf16 (sums are f32). The instruction of avx512_bf16 multiplies
 * pairs of bf16: it adds the product of the high halves, then that of the low halves, each as a fused multiply-add, except that subnormal
 * numbers count as 0. Element k of a pair is therefore its high half, element k + 1 the low one, and sums have the bits of the other
 * instruction sets. */
#ifndef GT_CPU_RNN_H
#define GT_CPU_RNN_H

#include "cpu/loops.h"

struct gt_rnn {
	int64_t n, t, h;  /* samples, tokens, units */
	int gates;        /* 4: lstm, 3: gru */
	bool bf16;        /* activations and weights are bf16; else f32 */
	bool reverse;
	int64_t hp;       /* h rounded up to a multiple of every panel width: number of elements of a row of states */
	int groups;       /* groups of samples; sample order[i] belongs to group i % groups */
	/* operands of one launch (opcall.h); absent ones are NULL */
	const void *x, *w, *dy;
	const float *b;
	void *y;          /* forward: output; backward: input */
	float *gate_values, *cells;
	void *dx, *before, *dh;
	/* workspace */
	float *packed;    /* the weights in panels */
	int32_t *order, *length; /* samples sorted by length, and the length of each sample, 0 ... t */
	float *state;     /* states of all groups, state_size floats each */
	int64_t state_size;
};

/* Each function processes the panels, or the groups, [begin, end); the context is a struct gt_rnn (gt_range_fn). */
struct gt_rnn_isa {
	const char *name;
	int width; /* VW: number of units in a panel of the forward pass */
	int pair;  /* elements of an operand in 4 bytes: 1, f32; or 2, bf16, for calls with r->bf16 only */
	gt_range_fn *pack_forward, *pack_backward, *forward, *backward;
};

const struct gt_rnn_isa *gt_rnn_isa(bool bf16); /* the fastest implementation for this processor and type of activations */
/* name: "avx512_bf16", "avx512", "avx2", "neon", "plain". Returns NULL if this processor lacks the instructions. */
const struct gt_rnn_isa *gt_rnn_isa_named(const char *name);

#define GT_RNN_PANEL 64 /* units of the widest panel */

static inline int64_t gt_rnn_packed_size(const struct gt_rnn *r) /* floats */
{
	return r->gates * r->h * r->hp;
}

/* Floats of the state of `rows` samples. Forward: two hidden states, a cell state and the gates of each, and the biases. Backward: the
 * gradients of the hidden state, the cell state and the gates of each, and four rows of workspace. Both: the operand of the product as
 * pairs of bf16. */
static inline int64_t gt_rnn_state_size(const struct gt_rnn *r, int64_t rows)
{
	return (rows * (r->gates + 3) + 4) * r->hp + (r->bf16 ? rows * r->gates * r->hp / 2 : 0);
}

#endif
