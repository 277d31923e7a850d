/* Operations on sequences [N, T, C]: positional and pool_tokens, and their gradients. */
#include "base/arena.h"
#include "cpu/loops.h"
#include "ew.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COLS 64 /* columns that are summed on the stack at once */

struct tokens {
	struct gt_kernel head;
	gt_range_fn *fn;
	int64_t samples, tokens, cols;
	int64_t n, grain, align; /* units of work of fn */
	int64_t rows;            /* positional.dw: rows of the table, of which the last rows - period have no gradient */
	int64_t period;          /* positional: after as many tokens, the rows of the table begin again: tokens, or 1 */
	int mode;                /* enum gt_pool_tokens */
	bool add;
	int x_in, w_in, lengths_in, idx_in; /* indices of operands; -1: absent */
	bool idx_out;
	double *wave; /* sinusoidal: the table, [tokens, cols] */
};

struct args {
	const struct tokens *k;
	const void *x, *w;
	const int32_t *lengths;
	int32_t *idx;
	void *y;
};

static inline int64_t length_of(const struct args *c, int64_t sample)
{
	int64_t n = c->lengths ? c->lengths[sample] : c->k->tokens;
	return n < 0 ? 0 : n > c->k->tokens ? c->k->tokens : n;
}

/* The token that GT_POOL_FIRST and GT_POOL_LAST read. */
static inline int64_t place_of(const struct args *c, int64_t sample)
{
	int64_t n = length_of(c, sample);
	return c->k->mode == GT_POOL_LAST && n ? n - 1 : 0;
}

#define GT_TYPED "cpu/tokens.inc"
#include "cpu/typed.inc"

static enum gt_code launch_tokens(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct tokens *k = (const struct tokens *)kernel;
	struct args c = {.k = k, .x = a->in[0], .y = a->out[0]};
	(void)err;
	c.w = k->wave ? k->wave : k->w_in >= 0 ? a->in[k->w_in] : NULL;
	c.lengths = k->lengths_in >= 0 ? a->in[k->lengths_in] : NULL;
	c.idx = k->idx_out ? a->out[1] : k->idx_in >= 0 ? a->in[k->idx_in] : NULL;
	gt_cpu_for(dev, k->n, k->grain, k->align, k->fn, &c);
	return GT_OK;
}

static void release_tokens(struct gt_kernel *kernel)
{
	free(((struct tokens *)kernel)->wave);
	free(kernel);
}

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}

static enum gt_code prepare_positional(const struct gt_opcall *call, struct tokens *k, struct gt_err *err)
{
	static gt_range_fn *const learned[] = ROW(add_table), *const wave[] = ROW(add_sinusoids), *const dw[] = ROW(positional_dw);
	const struct gt_attr_positional *a = call->attr;
	const struct gt_tdesc *x = call->in[0];
	int type = gt_cpu_type(x->dtype);
	k->tokens = x->dim[1];
	k->period = a->kind == GT_POSITIONAL_SAME ? 1 : k->tokens;
	k->n = x->dim[0] * x->dim[1];
	k->grain = 32768 / k->cols + 1;
	if (call->code == GT_OP_POSITIONAL_DW) {
		k->rows = call->out[0]->dim[0];
		k->fn = dw[type];
		k->n = k->cols; /* threads divide the columns of the only row, else the rows */
		k->align = 16;
		k->grain = 32768 / (k->tokens * k->samples) + 1;
		if (k->period > 1) {
			k->n = k->rows;
			k->align = 1;
			k->grain = 32768 / (k->cols * k->samples) + 1;
		}
		return k->rows < k->period ? gt_cpu_refuse(call, err, "the table has fewer rows than there are tokens") : GT_OK;
	}
	bool table = call->nin > 1 && call->in[1];
	if (table != (a->kind != GT_POSITIONAL_SINUSOIDAL) || (table && (call->in[1]->dim[0] < k->period || !gt_tdesc_plain(call->in[1]))))
		return gt_cpu_refuse(call, err, "expected a plain table with a row for each token, or none for a sinusoidal one");
	k->fn = table ? learned[type] : wave[type];
	k->w_in = table ? 1 : -1;
	if (table)
		return GT_OK;
	if (!(k->wave = malloc((size_t)(k->tokens * k->cols) * sizeof *k->wave)))
		return gt_fail_memory(err, (size_t)(k->tokens * k->cols) * sizeof *k->wave);
	for (int64_t t = 0; t < k->tokens; t++)
		for (int64_t j = 0; j < k->cols; j++)
			k->wave[t * k->cols + j] = gt_sinusoid(t, j, k->cols);
	return GT_OK;
}

static enum gt_code prepare_pool(const struct gt_opcall *call, struct tokens *k, struct gt_err *err)
{
	static gt_range_fn *const pool[4][GT_T_COUNT] = {ROW(pool_mean), ROW(pool_max), ROW(pool_one), ROW(pool_one)},
	                   *const dx[4][GT_T_COUNT] = {ROW(pool_mean_dx), ROW(pool_max_dx), ROW(pool_one_dx), ROW(pool_one_dx)};
	const struct gt_attr_pool_tokens *a = call->attr;
	bool back = call->code == GT_OP_POOL_TOKENS_DX;
	const struct gt_tdesc *x = back ? call->out[0] : call->in[0];
	int type = gt_cpu_type(x->dtype);
	k->tokens = x->dim[1];
	k->mode = a->mode;
	k->fn = back ? dx[a->mode][type] : pool[a->mode][type];
	k->n = k->samples;
	k->grain = 32768 / (k->cols * k->tokens) + 1;
	k->lengths_in = call->nin > 1 && call->in[1] ? 1 : -1;
	k->idx_in = back && call->nin > 2 && call->in[2] ? 2 : -1;
	k->idx_out = !back && call->nout > 1 && call->out[1];
	return back && a->mode == GT_POOL_MAX && k->idx_in < 0 ? gt_cpu_refuse(call, err, "the gradient of the maximum needs idx") : GT_OK;
}

enum gt_code gt_cpu_tokens(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[0];
	struct tokens *k;
	(void)dev;
	GT_KERNEL_NEW(k, launch_tokens, "loop", err);
	k->head.release = release_tokens;
	k->samples = x->dim[0];
	k->cols = x->dim[x->rank - 1];
	k->align = 1;
	k->add = call->accumulate & 1;
	k->w_in = k->lengths_in = k->idx_in = -1;
	bool pool = call->code == GT_OP_POOL_TOKENS || call->code == GT_OP_POOL_TOKENS_DX;
	enum gt_code code = pool ? prepare_pool(call, k, err) : prepare_positional(call, k, err);
	if (code != GT_OK) {
		release_tokens(&k->head);
		return code;
	}
	k->head.small = gt_cpu_alone(k->n, k->grain);
	*out = &k->head;
	return GT_OK;
}
