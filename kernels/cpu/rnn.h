/* The steps of lstm and gru in f32 arithmetic (rnn.c). Samples are independent of each other, so one thread takes a group of samples
 * through all steps without a barrier. The samples of a group are sorted by length, the longest first: at each step, the samples that have
 * not ended come first. The product of the hidden states with weight_hh uses a packed copy of the weights, in panels of columns:
 *
 *	forward    for each k in H, the weights of VW units, gate by gate     sum[row][gate] += h[row][k] * panel[k][gate]
 *	backward   for each k in G, the weights to 4 VW units of H            sum[row][j] += dgate[row][k] * panel[k][j]
 *
 * so that all gates of a unit are computed in the registers of one tile. A sum goes over k in order: results do not depend on the number of
 * threads, the groups or the tiles. */
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
	gt_range_fn *pack_forward, *pack_backward, *forward, *backward;
};

const struct gt_rnn_isa *gt_rnn_isa(void);                      /* the fastest implementation for this processor */
const struct gt_rnn_isa *gt_rnn_isa_named(const char *name);    /* "avx512", "avx2", "neon", "plain"; NULL: not on this processor */

#define GT_RNN_PANEL 64 /* units of the widest panel */

static inline int64_t gt_rnn_packed_size(const struct gt_rnn *r) /* floats */
{
	return r->gates * r->h * r->hp;
}

/* Floats of the state of `rows` samples. Forward: two hidden states, a cell state and the gates of each, and the biases. Backward: the
 * gradients of the hidden state, the cell state and the gates of each, and four rows of workspace. */
static inline int64_t gt_rnn_state_size(const struct gt_rnn *r, int64_t rows)
{
	return (rows * (r->gates + 3) + 4) * r->hp;
}

#endif
