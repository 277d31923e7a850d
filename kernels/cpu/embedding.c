/* embedding, embedding_bag and the gradients of their tables. A gradient first sorts the entries (pairs of a token and its position) by
 * token, so that each row of the table is summed in the order of the positions and written once. Threads divide the columns: results do not
 * depend on the number of threads. The cost of a call does not depend on the number of rows of the table, except that embedding.dw sets all
 * rows to 0 unless it accumulates. */
#include "cpu/loops.h"
#include "cpu/update.h"
#include "optimizer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 4   /* tokens ahead whose rows of the table are fetched into the cache */
#define COLS 64   /* columns that are summed on the stack at once */
#define DIGIT 11  /* maximum bits of a digit of the sort */

struct embedding {
	struct gt_cpu_loop loop;         /* forward: over entries or samples; a gradient: over columns */
	const int32_t *tokens, *lengths; /* lengths NULL: every token counts */
	int32_t *idx;                    /* mode max: the position of the largest element in the sample; -1: none */
	void *w, *y, *dw;
	const void *dy;
	const struct gt_scalars *scalars;
	void *state[3];         /* states of the optimizer */
	gt_range_fn *zero_fn;   /* sets dw to 0 first; NULL: the gradient is added to dw, or is not stored */
	int64_t entries;        /* tokens that the call reads */
	int64_t step, first;    /* entry e is tokens[e * step + first] */
	int64_t bag;            /* number of entries of a sample, which share a row of y or dy; 1 without bags */
	int64_t rows, cols;     /* of the table */
	int64_t begin, end;     /* the range of rows that a gradient covers; other rows are skipped */
	int64_t padding;        /* padding token: has no gradient, and bags skip it; -1: none */
	int mode;               /* enum gt_bag */
	bool updates;
	enum gt_opcode optimizer;
	struct gt_attr_update update;
	struct gt_seg seg;
	char name[64];
	/* set by each launch of a gradient */
	const int32_t *token, *place; /* the sorted entries */
	int64_t sorted;               /* number of sorted entries */
	const double *share;          /* for each sample, 1 / number of its tokens in the mean; NULL: all 1 */
	const struct gt_cpu_apply *apply;
};

static const struct gt_operand_slot slots[] = {
    GT_SLOTS(embedding, tokens, lengths, idx, w, y, dw, dy, scalars), GT_SLOT_AS(embedding, "s0", state[0]),
    GT_SLOT_AS(embedding, "s1", state[1]), GT_SLOT_AS(embedding, "s2", state[2])};

static inline int64_t length_of(const struct embedding *k, int64_t sample)
{
	int64_t n = k->lengths ? k->lengths[sample] : k->bag;
	return n < 0 ? 0 : n > k->bag ? k->bag : n;
}

#define GT_TYPED "cpu/embedding.inc"
#include "cpu/typed.inc"

/* ---- the order of the entries ------------------------------------------------------------------------------------------------------ */
static enum gt_code check_tokens(const struct embedding *k, struct gt_err *err)
{
	uint32_t most = 0;
	for (int64_t e = 0; e < k->entries; e++) {
		uint32_t t = (uint32_t)k->tokens[e * k->step + k->first];
		most = t > most ? t : most;
	}
	if ((int64_t)most < k->rows)
		return GT_OK;
	for (int64_t e = 0; e < k->entries; e++)
		if ((uint32_t)k->tokens[e * k->step + k->first] == most)
			return gt_fail(err, GT_EDATA, "%s: token %d of sample %lld in the batch: the table has rows 0..%lld", k->name,
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
static void sort_entries(struct embedding *k, void *scratch)
{
	int32_t *token[2] = {scratch, (int32_t *)scratch + k->entries}, *place[2] = {token[1] + k->entries, token[1] + 2 * k->entries};
	double *share = (double *)(void *)(place[1] + k->entries);
	int64_t n = 0, count[1 << DIGIT];
	int bits = 0;
	while ((k->rows - 1) >> bits)
		bits++;
	/* digits of about equal size: a table of ten rows is sorted by one digit of 4 bits, not of 11 bits with 2,048 counters */
	int digits = (bits + DIGIT - 1) / DIGIT, digit = digits ? (bits + digits - 1) / digits : 0;
	int64_t values = (int64_t)1 << digit;
	for (int64_t s = 0; s < k->entries / k->bag; s++) {
		int64_t length = length_of(k, s), counts = 0;
		for (int64_t t = 0; t < length; t++) {
			int64_t e = s * k->bag + t;
			int32_t id = k->tokens[e * k->step + k->first];
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
	k->token = token[from];
	k->place = place[from];
	k->sorted = n;
	k->share = k->mode == GT_BAG_MEAN && k->bag > 1 ? share : NULL;
}

/* ---- launching --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct embedding *k = gt_cpu_loop_bind(kernel, a);
	GT_TRY(check_tokens(k, err));
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

static enum gt_code launch_gradient(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct embedding *k = gt_cpu_loop_bind(kernel, a);
	struct gt_cpu_apply apply;
	if (k->scalars && k->scalars->skip)
		return GT_OK;
	GT_TRY(check_tokens(k, err));
	sort_entries(k, a->scratch);
	if (k->updates) {
		apply = gt_cpu_apply_make(k->optimizer, &k->update, a->step_args, k->scalars, k->w, k->state);
		k->apply = &apply;
	}
	if (k->zero_fn)
		gt_cpu_for(dev, k->rows, 65536 / k->cols + 1, 1, k->zero_fn, k);
	gt_cpu_for(dev, k->cols, 65536 / (k->sorted + 1) + 1, 16, k->loop.fn, k);
	k->apply = NULL;
	return GT_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------------- */
static bool is_bag(const struct gt_opcall *call)
{
	return call->code == GT_OP_EMBEDDING_BAG || call->code == GT_OP_EMBEDDING_BAG_DW || call->code == GT_OP_EMBEDDING_BAG_DW_UPDATE;
}

/* Fills in the members that all operations use. `of` is y or dy. */
static const char *init_common(struct embedding *k, const struct gt_opcall *call, const struct gt_attr_embedding *a,
                               const struct gt_tdesc *of, const struct gt_tdesc *table)
{
	const struct gt_tdesc *tokens = gt_opcall_operand(call, "tokens");
	bool bag = is_bag(call);
	int64_t n = gt_tdesc_count(tokens), width = tokens->dim[tokens->rank - 1];
	if (a->column >= 0 && (bag || a->column >= width))
		return "the requested column of the tokens does not exist";
	k->step = a->column >= 0 ? width : 1;
	k->first = a->column >= 0 ? a->column : 0;
	k->entries = n / k->step;
	k->bag = bag ? width : 1;
	k->rows = k->end = table->dim[0];
	k->cols = table->dim[1];
	k->padding = a->padding;
	k->mode = bag ? a->mode : GT_BAG_SUM;
	if (of->dim[0] * k->bag != k->entries)
		return "expected one row for each token, or for each bag";
	if (n > INT32_MAX / 2)
		return "there are too many tokens in a batch";
	if (gt_opcall_operand(call, "dy") && k->mode == GT_BAG_MAX && !gt_opcall_operand(call, "idx"))
		return "the gradient of the maximum needs idx";
	snprintf(k->name, sizeof k->name, "%s", call->name ? call->name : gt_opcode_name(call->code));
	return NULL;
}

enum gt_code gt_cpu_embedding(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const lookup[] = GT_TYPES(lookup_rows), *const columns[] = GT_TYPES(sum_columns),
	                          *const zero[] = GT_TYPES(zero_rows),
	                          *const bags[3][GT_T_COUNT] = {GT_TYPES(bag_mean), GT_TYPES(bag_sum), GT_TYPES(bag_max)};
	const struct gt_attr_embedding *a = call->attr;
	const struct gt_tdesc *dy = gt_opcall_operand(call, "dy"), *of = dy ? dy : gt_opcall_operand(call, "y");
	const struct gt_tdesc *table = gt_opcall_operand(call, dy ? "dw" : "w");
	int type = gt_cpu_type(of->dtype);
	struct embedding *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "loop", err);
	const char *why = init_common(k, call, a, of, table);
	if (why || !gt_tdesc_plain(table)) {
		free(k);
		return gt_opcall_refuse(call, err, why ? why : "the table must be plain");
	}
	if (dy) {
		k->loop.head.launch = launch_gradient;
		k->loop.head.scratch = scratch_of(k);
		k->loop.fn = columns[type];
		k->zero_fn = gt_opcall_adds(call, "dw") ? NULL : zero[type];
	} else {
		k->loop.head.launch = launch_forward;
		gt_cpu_loop_over(&k->loop, is_bag(call) ? bags[a->mode][type] : lookup[type], k->entries / k->bag, 16384 / (k->cols * k->bag) + 1);
		k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	}
	*out = &k->loop.head;
	return GT_OK;
}

enum gt_code gt_cpu_embedding_update(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_embedding_update *a = call->attr;
	const struct gt_tdesc *dy = gt_opcall_operand(call, "dy"), *table = gt_opcall_operand(call, "w");
	struct embedding *k;
	(void)dev;
	const char *why = gt_update_refuses_fused(call);
	if (why)
		return gt_opcall_refuse(call, err, why);
	if (dy->dtype == GT_F64 || !gt_tdesc_plain(table))
		return gt_opcall_refuse(call, err, "only plain tables in f32 are supported");
	GT_LOOP_NEW(k, slots, call, "rows", err);
	if ((why = init_common(k, call, &a->table, dy, table))) {
		free(k);
		return gt_opcall_refuse(call, err, why);
	}
	if (a->parts) {
		k->begin = k->rows * a->part / a->parts;
		k->end = k->rows * (a->part + 1) / a->parts;
	}
	k->loop.head.launch = launch_gradient;
	k->loop.head.scratch = scratch_of(k);
	k->loop.fn = dy->dtype == GT_BF16 ? sum_columns_bf16 : sum_columns_f32;
	k->updates = true;
	k->optimizer = a->optimizer;
	k->update = a->update;
	k->seg = a->update.seg[0];
	k->update.seg = &k->seg;
	*out = &k->loop.head;
	return GT_OK;
}
