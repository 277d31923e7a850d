/* embedding, embedding_bag and the gradients of their tables. A gradient first sorts the entries, the pairs of a token and its place, by
 * token, so that each row of the table is summed at once, in the order of the places, and written once. Threads divide the columns: no
 * result depends on their number. The cost of a call does not depend on the rows of the table, except that embedding.dw sets all rows to 0
 * unless it accumulates. */
#include "cpu/loops.h"
#include "cpu/update.h"
#include "optimizer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLS 64   /* columns that are summed on the stack at once */
#define DIGIT 11  /* maximum bits of a digit of the sort */

struct embedding {
	struct gt_kernel head;
	gt_range_fn *rows_fn, *cols_fn; /* the forward loop over entries or samples; the loop over columns of a gradient */
	gt_range_fn *zero_fn;
	int64_t entries;        /* tokens that the call reads */
	int64_t step, first;    /* entry e is tokens[e * step + first] */
	int64_t bag;            /* entries of a sample, whose row in y or dy they share; 1 without bags */
	int64_t rows, cols;     /* of the table */
	int64_t begin, end;     /* the rows that a gradient covers; others are left out */
	int64_t padding;        /* token without a gradient, which no bag counts; -1: none */
	int mode;               /* enum gt_bag */
	bool f64, add, idx, lengths;
	int w_in, lengths_in, idx_in, scalars_in; /* indices of operands */
	enum gt_opcode optimizer;
	struct gt_attr_update update;
	struct gt_seg seg;
	bool updates, scalars;
	char name[64];
};

struct args {
	const struct embedding *k;
	const int32_t *tokens, *lengths; /* lengths NULL: every token counts */
	int32_t *idx;                    /* mode max: the place of the largest element in the sample; -1: none */
	const void *w, *dy;
	void *y, *dw;
	const int32_t *token, *place;    /* the sorted entries */
	int64_t sorted;                  /* number of them */
	const double *share;             /* of each sample: 1 / number of its tokens that count; NULL: 1 */
	const struct gt_cpu_apply *apply;
};

static inline int64_t length_of(const struct args *c, int64_t sample)
{
	int64_t n = c->lengths ? c->lengths[sample] : c->k->bag;
	return n < 0 ? 0 : n > c->k->bag ? c->k->bag : n;
}

#define GT_TYPED "cpu/embedding.inc"
#include "cpu/typed.inc"

/* ---- the order of the entries ------------------------------------------------------------------------------------------------------ */
static enum gt_code check_tokens(const struct embedding *k, const int32_t *tokens, struct gt_err *err)
{
	uint32_t most = 0;
	for (int64_t e = 0; e < k->entries; e++) {
		uint32_t t = (uint32_t)tokens[e * k->step + k->first];
		most = t > most ? t : most;
	}
	if ((int64_t)most < k->rows)
		return GT_OK;
	for (int64_t e = 0; e < k->entries; e++)
		if ((uint32_t)tokens[e * k->step + k->first] == most)
			return gt_fail(err, GT_EDATA, "%s: token %d of sample %lld in its batch: the table has rows 0..%lld", k->name,
			               (int)(int32_t)most,
			               (long long)(e / k->bag), (long long)k->rows - 1);
	return GT_OK;
}

/* The scratch memory of a gradient: two arrays of tokens, two of places, and one share for each sample. */
static size_t scratch_of(const struct embedding *k)
{
	return (size_t)k->entries * 4 * sizeof(int32_t) + (size_t)(k->entries / k->bag) * sizeof(double);
}

/* Sorts the entries that have a gradient by token, stably, by the digits of the tokens. */
static void sort_entries(struct args *c, void *scratch)
{
	const struct embedding *k = c->k;
	int32_t *token[2] = {scratch, (int32_t *)scratch + k->entries}, *place[2] = {token[1] + k->entries, token[1] + 2 * k->entries};
	double *share = (double *)(void *)(place[1] + k->entries);
	int64_t n = 0, count[1 << DIGIT];
	int bits = 0;
	while ((k->rows - 1) >> bits)
		bits++;
	/* digits of about the same size: a table of ten rows sorts by 4 bits, and does not clear the counters of 2,048 values */
	int digits = (bits + DIGIT - 1) / DIGIT, digit = digits ? (bits + digits - 1) / digits : 0;
	int64_t values = (int64_t)1 << digit;
	for (int64_t s = 0; s < k->entries / k->bag; s++) {
		int64_t length = length_of(c, s), counts = 0;
		for (int64_t t = 0; t < length; t++) {
			int64_t e = s * k->bag + t;
			int32_t id = c->tokens[e * k->step + k->first];
			if (id == k->padding)
				continue;
			counts++;
			if (id < k->begin || id >= k->end)
				continue;
			token[0][n] = id;
			place[0][n++] = (int32_t)e;
		}
		share[s] = counts ? 1.0 / (double)counts : 0;
	}
	int from = 0;
	for (int shift = 0; shift < bits; shift += digit, from = !from) {
		int64_t sum = 0;
		memset(count, 0, (size_t)values * sizeof *count);
		for (int64_t i = 0; i < n; i++)
			count[token[from][i] >> shift & (values - 1)]++;
		for (int64_t d = 0; d < values; d++) {
			int64_t here = count[d];
			count[d] = sum;
			sum += here;
		}
		for (int64_t i = 0; i < n; i++) {
			int64_t to = count[token[from][i] >> shift & (values - 1)]++;
			token[!from][to] = token[from][i];
			place[!from][to] = place[from][i];
		}
	}
	c->token = token[from];
	c->place = place[from];
	c->sorted = n;
	c->share = k->mode == GT_BAG_MEAN && k->bag > 1 ? share : NULL;
}

/* ---- launching --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct embedding *k = (const struct embedding *)kernel;
	struct args c = {.k = k, .tokens = a->in[0], .y = a->out[0], .w = a->in[k->w_in]};
	c.lengths = k->lengths ? a->in[k->lengths_in] : NULL;
	c.idx = k->idx ? a->out[1] : NULL;
	GT_TRY(check_tokens(k, c.tokens, err));
	gt_cpu_for(dev, k->entries / k->bag, 16384 / (k->cols * k->bag) + 1, 1, k->rows_fn, &c);
	return GT_OK;
}

static enum gt_code launch_gradient(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct embedding *k = (const struct embedding *)kernel;
	struct args c = {.k = k, .dy = a->in[0], .tokens = a->in[1], .dw = k->updates ? NULL : a->out[0]};
	const struct gt_scalars *scalars = k->scalars ? a->in[k->scalars_in] : NULL;
	struct gt_cpu_apply apply;
	if (scalars && scalars->skip)
		return GT_OK;
	c.lengths = k->lengths ? a->in[k->lengths_in] : NULL;
	c.idx = k->idx ? a->in[k->idx_in] : NULL;
	GT_TRY(check_tokens(k, c.tokens, err));
	sort_entries(&c, a->scratch);
	if (k->updates) {
		apply = gt_cpu_apply_make(k->optimizer, &k->update, a->step_args, scalars, a->in[2], a->in + k->scalars_in + 1);
		c.apply = &apply;
	} else if (!k->add) {
		gt_cpu_for(dev, k->rows, 65536 / k->cols + 1, 1, k->zero_fn, &c);
	}
	gt_cpu_for(dev, k->cols, 65536 / (c.sorted + 1) + 1, 16, k->cols_fn, &c);
	return GT_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------------- */
#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}
static gt_range_fn *const lookup[] = ROW(lookup_rows), *const bags[3][GT_T_COUNT] = {ROW(bag_mean), ROW(bag_sum), ROW(bag_max)},
                   *const columns[] = ROW(sum_columns), *const zero_rows[] = ROW(zero_rows);

static bool is_bag(const struct gt_opcall *call)
{
	return call->code == GT_OP_EMBEDDING_BAG || call->code == GT_OP_EMBEDDING_BAG_DW || call->code == GT_OP_EMBEDDING_BAG_DW_UPDATE;
}

/* Finds lengths, as operand number `lengths`, and idx, the operand after it, in a gradient of bags. */
static const char *find_operands(struct embedding *k, const struct gt_opcall *call, int lengths)
{
	bool bag = is_bag(call), max = bag && k->mode == GT_BAG_MAX;
	k->lengths_in = lengths;
	k->idx_in = lengths + 1;
	k->lengths = bag && call->nin > lengths && call->in[lengths];
	k->idx = max && call->nin > lengths + 1 && call->in[lengths + 1];
	return max && !k->idx ? "the gradient of the maximum needs idx" : NULL;
}

/* Fills in what all operations have. `of` is y or dy. */
static const char *init_common(struct embedding *k, const struct gt_opcall *call, const struct gt_attr_embedding *a,
                               const struct gt_tdesc *tokens, const struct gt_tdesc *of, const struct gt_tdesc *table)
{
	bool bag = is_bag(call);
	int64_t n = gt_tdesc_count(tokens), width = tokens->dim[tokens->rank - 1];
	if (a->column >= 0 && (bag || a->column >= width))
		return "the tokens have no such column";
	k->step = a->column >= 0 ? width : 1;
	k->first = a->column >= 0 ? a->column : 0;
	k->entries = n / k->step;
	k->bag = bag ? width : 1;
	k->rows = k->end = table->dim[0];
	k->cols = table->dim[1];
	k->padding = a->padding;
	k->mode = bag ? a->mode : GT_BAG_SUM;
	k->f64 = of->dtype == GT_F64;
	if (of->dim[0] * k->bag != k->entries)
		return "there is not one row for each token, or for each bag";
	if (n > INT32_MAX / 2)
		return "there are too many tokens in a batch";
	snprintf(k->name, sizeof k->name, "%s", call->name ? call->name : gt_opcode_name(call->code));
	return NULL;
}

enum gt_code gt_cpu_embedding(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool back = call->code == GT_OP_EMBEDDING_DW || call->code == GT_OP_EMBEDDING_BAG_DW;
	bool bag = is_bag(call);
	const struct gt_attr_embedding *a = call->attr;
	const struct gt_tdesc *of = back ? call->in[0] : call->out[0], *table = back ? call->out[0] : call->in[bag ? 2 : 1];
	struct embedding *k;
	(void)dev;
	GT_KERNEL_NEW(k, back ? launch_gradient : launch_forward, "loop", err);
	const char *why = init_common(k, call, a, call->in[back], of, table);
	int type = gt_cpu_type(of->dtype);
	if (!why && back) {
		why = find_operands(k, call, 2);
	} else if (!why) {
		k->lengths_in = 1;
		k->lengths = bag && call->in[1];
		k->w_in = bag ? 2 : 1;
		k->idx = bag && a->mode == GT_BAG_MAX && call->nout > 1 && call->out[1];
	}
	if (why || !gt_tdesc_plain(table)) {
		free(k);
		return gt_cpu_refuse(call, err, why ? why : "the table must be plain");
	}
	k->rows_fn = bag ? bags[a->mode][type] : lookup[type];
	k->cols_fn = columns[type];
	k->zero_fn = zero_rows[type];
	k->add = call->accumulate & 1;
	if (back)
		k->head.scratch = scratch_of(k);
	else
		k->head.small = gt_cpu_alone(k->entries / k->bag, 16384 / (k->cols * k->bag) + 1);
	*out = &k->head;
	return GT_OK;
}

enum gt_code gt_cpu_embedding_update(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_embedding_update *a = call->attr;
	const struct gt_tdesc *dy = call->in[0], *table = call->in[2];
	struct embedding *k;
	(void)dev;
	const char *why = gt_update_refuses_fused(call);
	if (why)
		return gt_cpu_refuse(call, err, why);
	if (dy->dtype == GT_F64 || !gt_tdesc_plain(table))
		return gt_cpu_refuse(call, err, "it supports plain tables in f32 only");
	GT_KERNEL_NEW(k, launch_gradient, "rows", err);
	why = init_common(k, call, &a->table, call->in[1], dy, table);
	if (!why && is_bag(call))
		why = find_operands(k, call, 3);
	if (why) {
		free(k);
		return gt_cpu_refuse(call, err, why);
	}
	k->cols_fn = columns[gt_cpu_type(dy->dtype)];
	if (a->parts) {
		k->begin = k->rows * a->part / a->parts;
		k->end = k->rows * (a->part + 1) / a->parts;
	}
	k->updates = true;
	k->scalars_in = is_bag(call) ? 5 : 3;
	k->scalars = call->nin > k->scalars_in && call->in[k->scalars_in];
	k->optimizer = a->optimizer;
	k->update = a->update;
	k->seg = a->update.seg[0];
	k->update.seg = &k->seg;
	k->head.scratch = scratch_of(k);
	*out = &k->head;
	return GT_OK;
}
