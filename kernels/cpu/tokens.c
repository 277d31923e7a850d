/* Operations on sequences [N, T, C]: positional and pool_tokens, and their gradients. */
#include "base/arena.h"
#include "cpu/loops.h"
#include "ew.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLS 64 /* columns that are summed on the stack at once */

struct tokens {
	struct gt_cpu_loop loop;
	const void *x; /* or dy */
	const void *w; /* table with a row for each position; NULL: `wave` is used */
	const int32_t *lengths;
	int32_t *idx;
	void *y; /* or dx, or dw */
	int64_t samples, tokens, cols;
	int64_t rows;   /* positional.dw: rows of the table, of which the last rows - period have no gradient */
	int64_t period; /* positional: number of different rows that a sample uses: tokens, or 1 (all tokens have the same row) */
	int mode;       /* enum gt_pool_tokens */
	bool add;
	double *wave; /* sinusoidal: the table, [tokens, cols] */
};

static const struct gt_operand_slot slots[] = {
    GT_SLOTS(tokens, x, w, lengths, idx, y), GT_SLOT_AS(tokens, "dy", x), GT_SLOT_AS(tokens, "dx", y), GT_SLOT_AS(tokens, "dw", y)};

static inline int64_t length_of(const struct tokens *k, int64_t sample)
{
	int64_t n = k->lengths ? k->lengths[sample] : k->tokens;
	return n < 0 ? 0 : n > k->tokens ? k->tokens : n;
}

/* Returns the index of the token that pool_tokens copies in the modes GT_POOL_FIRST and GT_POOL_LAST. */
static inline int64_t place_of(const struct tokens *k, int64_t sample)
{
	int64_t n = length_of(k, sample);
	return k->mode == GT_POOL_LAST && n ? n - 1 : 0;
}

#define GT_TYPED "cpu/tokens.inc"
#include "cpu/typed.inc"

static void release_tokens(struct gt_kernel *kernel)
{
	free(((struct tokens *)kernel)->wave);
	free(kernel);
}

static enum gt_code prepare_positional(const struct gt_opcall *call, struct tokens *k, struct gt_err *err)
{
	static gt_range_fn *const learned[] = GT_TYPES(add_table), *const wave[] = GT_TYPES(add_sinusoids),
	                          *const dw[] = GT_TYPES(positional_dw);
	const struct gt_attr_positional *a = call->attr;
	const struct gt_tdesc *dy = gt_opcall_operand(call, "dy"), *x = dy ? dy : gt_opcall_operand(call, "x");
	const struct gt_tdesc *w = gt_opcall_operand(call, dy ? "dw" : "w");
	int type = gt_cpu_type(x->dtype);
	k->tokens = x->dim[1];
	k->period = a->kind == GT_POSITIONAL_SAME ? 1 : k->tokens;
	if (dy) {
		k->rows = w->dim[0];
		if (k->period > 1) { /* divide the rows among threads, or the columns if there is only one row */
			gt_cpu_loop_over(&k->loop, dw[type], k->rows, 32768 / (k->cols * k->samples) + 1);
		} else {
			gt_cpu_loop_over(&k->loop, dw[type], k->cols, 32768 / (k->tokens * k->samples) + 1);
			k->loop.align = 16;
		}
		return k->rows < k->period ? gt_opcall_refuse(call, err, "the table has fewer rows than there are tokens") : GT_OK;
	}
	if (!w != (a->kind == GT_POSITIONAL_SINUSOIDAL) || (w && (w->dim[0] < k->period || !gt_tdesc_plain(w))))
		return gt_opcall_refuse(call, err, "expected a plain table with a row for each token, or no table if sinusoidal");
	gt_cpu_loop_over(&k->loop, w ? learned[type] : wave[type], x->dim[0] * x->dim[1], 32768 / k->cols + 1);
	if (w)
		return GT_OK;
	if (!(k->wave = malloc((size_t)(k->tokens * k->cols) * sizeof *k->wave)))
		return gt_fail_memory(err, (size_t)(k->tokens * k->cols) * sizeof *k->wave);
	for (int64_t t = 0; t < k->tokens; t++)
		for (int64_t j = 0; j < k->cols; j++)
			k->wave[t * k->cols + j] = gt_sinusoid(t, j, k->cols);
	k->w = k->wave;
	return GT_OK;
}

static enum gt_code prepare_pool(const struct gt_opcall *call, struct tokens *k, struct gt_err *err)
{
	static gt_range_fn *const pool[4][GT_T_COUNT] = {GT_TYPES(pool_mean), GT_TYPES(pool_max), GT_TYPES(pool_one), GT_TYPES(pool_one)},
	                          *const pool_dx[4][GT_T_COUNT] = {GT_TYPES(pool_mean_dx), GT_TYPES(pool_max_dx), GT_TYPES(pool_one_dx),
	                                                           GT_TYPES(pool_one_dx)};
	const struct gt_attr_pool_tokens *a = call->attr;
	const struct gt_tdesc *dx = gt_opcall_operand(call, "dx"), *x = dx ? dx : gt_opcall_operand(call, "x");
	int type = gt_cpu_type(x->dtype);
	k->tokens = x->dim[1];
	k->mode = a->mode;
	gt_cpu_loop_over(&k->loop, dx ? pool_dx[a->mode][type] : pool[a->mode][type], k->samples, 32768 / (k->cols * k->tokens) + 1);
	if (dx && a->mode == GT_POOL_MAX && !gt_opcall_operand(call, "idx"))
		return gt_opcall_refuse(call, err, "the gradient of the maximum needs idx");
	return GT_OK;
}

enum gt_code gt_cpu_tokens(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *dy = gt_opcall_operand(call, "dy"), *x = dy ? dy : gt_opcall_operand(call, "x");
	struct tokens *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "loop", err);
	k->loop.head.release = release_tokens;
	k->samples = x->dim[0];
	k->cols = x->dim[x->rank - 1];
	k->add = gt_opcall_adds(call, "dw");
	bool pool = call->code == GT_OP_POOL_TOKENS || call->code == GT_OP_POOL_TOKENS_DX;
	enum gt_code code = pool ? prepare_pool(call, k, err) : prepare_positional(call, k, err);
	if (code != GT_OK) {
		release_tokens(&k->loop.head);
		return code;
	}
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
