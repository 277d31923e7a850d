/* Tables of rows on the CUDA backend against the CPU backend: embedding, embedding_bag, the gradients of their tables, the updates of the
 * rows that a batch names, and bound. As tool_calls.c. Numbers of tokens lie around a chunk of the sums and a tile of the sort; a token
 * that fills much of a batch goes through many chunks. */
#include "ew.h"
#include "pair.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum tokens { EVEN, FEW, ONE, DISTRIBUTIONS }; /* evenly of all rows; half of them of seven rows; a single one */

static int32_t *some_tokens(int64_t n, int64_t rows, enum tokens how)
{
	int32_t *t = malloc((size_t)n * sizeof *t + 8);
	float *u = pair_filled(GT_F32, n, 77);
	for (int64_t i = 0; i < n; i++) {
		int64_t most = how == FEW && i % 2 && rows > 7 ? 7 : rows;
		t[i] = how == ONE ? (int32_t)(rows / 2) : (int32_t)((u[i] + 3) / 6 * (float)most * 0.9999f);
	}
	free(u);
	return t;
}

/* The shape of one table, and of the tokens that name its rows. */
struct shape {
	int64_t entries, rows, cols, bag;
};
static const struct shape flat[] = {{1, 1, 1, 1},      {15, 7, 3, 1},    {16, 7, 31, 1},    {17, 7, 32, 1},      {31, 40, 33, 1},
                                    {128, 5, 70, 1},   {129, 300, 8, 1}, {1023, 90, 4, 1},  {1024, 2000, 5, 1},  {1025, 30, 129, 1},
                                    {2048, 900, 6, 1}, {2049, 3, 20, 1}, {5000, 700, 9, 1}, {9000, 40000, 2, 1}, {17000, 900, 3, 1}},
                          bags[] = {{1, 1, 1, 1},       {30, 7, 3, 10},    {64, 40, 33, 64},
                                    {1024, 300, 40, 16}, {1320, 50, 7, 33}, {2600, 90, 12, 1}},
                          long_bags[] = {{900, 90, 16, 300}, {700, 30, 136, 100}, {800, 500, 1, 400}};
#define N(list) (int)(sizeof(list) / sizeof *(list))

static struct gt_attr_embedding attr_of(const struct shape *s, int padding, int mode)
{
	return (struct gt_attr_embedding){s->rows, s->cols, padding ? s->rows / 2 + (s->rows > 2) : -1, -1, mode};
}

static int32_t *lengths_of(int64_t samples, int64_t bag)
{
	int32_t *n = malloc((size_t)samples * sizeof *n + 8);
	for (int64_t i = 0; i < samples; i++)
		n[i] = (int32_t)(i * 7 % (bag + 1));
	return n;
}

/* ---- the forward pass, and the gradients ------------------------------------------------------------------------------------------- */
TEST(rows_are_looked_up)
{
	for (int v = 0; v < 3 * N(flat); v++) {
		const struct shape *s = &flat[v / 3];
		struct gt_attr_embedding attr = attr_of(s, 0, 0);
		int64_t tokens[2] = {s->entries, 3}, table[2] = {s->rows, s->cols}, y[2] = {s->entries, s->cols};
		struct pair_job j = {.call = {.code = GT_OP_EMBEDDING, .attr = &attr}};
		attr.column = v % 2 ? 1 : -1;
		pair_tensor(&j, false, GT_I32, 1 + v % 2, tokens, some_tokens(3 * s->entries, s->rows, EVEN));
		pair_tensor(&j, false, GT_F32, 2, table, NULL);
		pair_tensor(&j, true, pair_types[v % 3], 2, y, NULL);
		pair_compare(&j, 0, "");
		pair_free(&j);
	}
}

TEST(gradients_of_rows)
{
	for (int v = 0; v < 12 * N(flat); v++) {
		const struct shape *s = &flat[v / 12];
		struct gt_attr_embedding attr = attr_of(s, v % 2, 0);
		enum tokens how = v % DISTRIBUTIONS;
		int64_t tokens[2] = {s->entries, 3}, table[2] = {s->rows, s->cols}, dy[2] = {s->entries, s->cols};
		bool column = v % 4 == 3;
		struct pair_job j = {.call = {.code = GT_OP_EMBEDDING_DW, .attr = &attr, .accumulate = v % 12 < 6}};
		attr.column = column ? 2 : -1;
		pair_tensor(&j, false, pair_types[v / 3 % 3], 2, dy, NULL);
		pair_tensor(&j, false, GT_I32, 1 + column, tokens, some_tokens((column ? 3 : 1) * s->entries, s->rows, how));
		pair_tensor(&j, true, GT_F32, 2, table, NULL);
		pair_compare(&j, 1e-4, "");
		pair_free(&j);
	}
}

/* Adds the operands of a call of bags from `lengths` on. idx: as the forward pass of the CPU writes it. */
static void bag_operands(struct pair_job *j, const struct shape *s, int mode, bool lengths)
{
	int64_t samples = s->entries / s->bag, idx[2] = {samples, s->cols};
	if (lengths)
		pair_tensor(j, false, GT_I32, 1, &samples, lengths_of(samples, s->bag));
	else
		pair_absent(j, false);
	if (mode == GT_BAG_MAX) {
		int32_t *at = malloc((size_t)(samples * s->cols) * sizeof *at + 8);
		for (int64_t i = 0; i < samples * s->cols; i++)
			at[i] = (int32_t)(i * 5 % (s->bag + 1)) - 1;
		pair_tensor(j, false, GT_I32, 2, idx, at);
	} else {
		pair_absent(j, false);
	}
}

TEST(bags)
{
	for (int v = 0; v < 12 * (N(bags) + N(long_bags)); v++) {
		const struct shape *s = v / 12 < N(bags) ? &bags[v / 12] : &long_bags[v / 12 - N(bags)];
		int mode = v % 3;
		struct gt_attr_embedding attr = attr_of(s, v % 2, mode);
		int64_t samples = s->entries / s->bag, tokens[2] = {samples, s->bag}, table[2] = {s->rows, s->cols}, y[2] = {samples, s->cols};
		struct pair_job j = {.call = {.code = GT_OP_EMBEDDING_BAG, .attr = &attr}};
		pair_tensor(&j, false, GT_I32, 2, tokens, some_tokens(s->entries, s->rows, v / 3 % DISTRIBUTIONS));
		if (v % 4 < 2)
			pair_tensor(&j, false, GT_I32, 1, &samples, lengths_of(samples, s->bag));
		else
			pair_absent(&j, false);
		float *w = pair_filled(GT_F32, s->rows * s->cols, 11);
		for (int64_t i = v % 7; mode == GT_BAG_MAX && v / 4 % 3 == 1 && i < s->rows * s->cols; i += 5)
			w[i] = NAN; /* a NaN is the largest element only if it is the first one */
		for (int64_t i = 0; mode == GT_BAG_MAX && v / 4 % 3 == 2 && i < s->rows * s->cols; i++)
			w[i] = (float)(int)w[i]; /* of equal elements the first one counts */
		pair_tensor(&j, false, GT_F32, 2, table, w);
		pair_tensor(&j, true, pair_types[v / 2 % 3], 2, y, NULL);
		if (mode == GT_BAG_MAX)
			pair_tensor(&j, true, GT_I32, 2, y, NULL);
		pair_compare2(&j, 2e-5, 0.02, ""); /* sums of up to 400 terms in another order */
		j.shift = 4;
		pair_compare2(&j, 2e-5, 0.02, "off 16 bytes");
		pair_free(&j);
	}
}

TEST(gradients_of_bags)
{
	for (int v = 0; v < 12 * N(bags); v++) {
		const struct shape *s = &bags[v / 12];
		int mode = v % 3;
		struct gt_attr_embedding attr = attr_of(s, v % 2, mode);
		int64_t samples = s->entries / s->bag, tokens[2] = {samples, s->bag}, table[2] = {s->rows, s->cols}, dy[2] = {samples, s->cols};
		struct pair_job j = {.call = {.code = GT_OP_EMBEDDING_BAG_DW, .attr = &attr, .accumulate = v % 12 < 6}};
		pair_tensor(&j, false, pair_types[v / 2 % 3], 2, dy, NULL);
		pair_tensor(&j, false, GT_I32, 2, tokens, some_tokens(s->entries, s->rows, v / 3 % DISTRIBUTIONS));
		bag_operands(&j, s, mode, v % 4 < 2);
		pair_tensor(&j, true, GT_F32, 2, table, NULL);
		pair_compare(&j, 1e-4, "");
		pair_free(&j);
	}
}

/* ---- updates ---------------------------------------------------------------------------------------------------------------------- */
/* An update of the rows of a table; v: bits choose among the attributes. */
static void update_job(struct pair_job *j, struct gt_attr_embedding_update *attr, struct gt_seg *seg, const struct shape *s, bool bag,
                       int v)
{
	int64_t samples = s->entries / s->bag, tokens[2] = {samples, s->bag}, table[2] = {s->rows, s->cols}, dy[2] = {samples, s->cols},
	        words = GT_SCALARS_WORDS;
	struct gt_scalars *scalars = calloc(1, sizeof *scalars);
	*seg = (struct gt_seg){0, s->rows * s->cols, v % 5 == 1 ? 0.5 : 1, 0, v % 3};
	*attr = (struct gt_attr_embedding_update){.table = attr_of(s, v % 2, bag ? v % 3 : 0), .part = v % 7 == 6 ? 1 : 0,
	                                          .parts = v % 7 == 6 ? 3 : v % 7 == 5 ? 1 : 0, .optimizer = GT_OP_SGD,
	                                          .update = {.seg = seg, .nseg = 1}};
	*scalars = (struct gt_scalars){.sumsq = 40, .inv_scale = v % 4 == 2 ? 0x1p-3 : 1, .skip = v % 6 == 4};
	*j = (struct pair_job){.call = {.code = bag ? GT_OP_EMBEDDING_BAG_DW_UPDATE : GT_OP_EMBEDDING_DW_UPDATE, .attr = attr},
	                       .step_args = {.step = 1 + v % 5, .lr = {0.25, 0.125, 2}}};
	pair_tensor(j, false, pair_types[v / 3 % 3], 2, dy, NULL);
	pair_tensor(j, false, GT_I32, 1 + bag, bag ? tokens : &s->entries, some_tokens(s->entries, s->rows, v / 2 % DISTRIBUTIONS));
	pair_tensor(j, false, GT_F32, 2, table, NULL);
	if (bag)
		bag_operands(j, s, v % 3, v % 4 < 2);
	pair_tensor(j, false, GT_F64, 1, &words, scalars);
	if (v % 8 == 3)
		j->call.in[j->call.nin - 1] = NULL;
}

TEST(updates_of_rows)
{
	for (int v = 0; v < 24 * (N(flat) + N(bags)); v++) {
		bool bag = v / 24 >= N(flat);
		struct gt_attr_embedding_update attr;
		struct gt_seg seg;
		struct pair_job j;
		update_job(&j, &attr, &seg, bag ? &bags[v / 24 - N(flat)] : &flat[v / 24], bag, v);
		pair_compare(&j, 1e-4, "");
		pair_free(&j);
	}
}

/* An update has the bits of the gradient, stored, and sgd; rows that no token names keep theirs. */
TEST(an_update_has_the_bits_of_gradient_and_sgd)
{
	static const struct shape s = {3000, 5000, 37, 1};
	for (int t = 0; t < 3; t++)
		for (int skip = 0; skip < 2; skip++) {
			struct gt_attr_embedding_update attr;
			struct gt_seg seg;
			struct pair_job both, dw = {.call = {.code = GT_OP_EMBEDDING_DW, .attr = &attr.table}};
			int64_t dy[2] = {s.entries, s.cols}, table[2] = {s.rows, s.cols}, n = s.rows * s.cols, kept = 0, wrong = 0;
			float *g = malloc((size_t)n * sizeof *g);
			update_job(&both, &attr, &seg, &s, false, 2);
			free(both.in[0]);
			both.in[0] = pair_filled(pair_types[t], s.entries * s.cols, 3);
			both.d[0] = gt_tdesc_make(pair_types[t], 2, dy, true);
			((struct gt_scalars *)both.in[3])->skip = skip;
			pair_tensor(&dw, false, pair_types[t], 2, dy, NULL);
			pair_tensor(&dw, false, GT_I32, 1, &s.entries, some_tokens(s.entries, s.rows, 2 / 2 % DISTRIBUTIONS));
			pair_tensor(&dw, true, GT_F32, 2, table, NULL);
			void *in[PAIR_T] = {0}, *rest[PAIR_T] = {0};
			pair_run_cuda(&both, in);
			pair_run_cuda_out(&dw, rest, g, (size_t)n * sizeof *g);
			const float *old = both.in[2], *w = in[2];
			for (int64_t i = 0; w && i < n; i++) {
				double lr = both.step_args.lr[seg.lr] * seg.lr_mul;
				float want = skip || g[i] == 0 ? old[i] : old[i] - (float)lr * (g[i] * 0x1p-3f);
				wrong += memcmp(&w[i], &want, sizeof want) != 0;
				kept += g[i] == 0;
			}
			CHECK_MSG(w && !wrong && kept > 10 * s.cols && kept < n, "type %d, skip %d: %lld elements differ, %lld kept", t, skip,
			          (long long)wrong, (long long)kept);
			for (int i = 0; i < PAIR_T; i++)
				free(in[i]), free(rest[i]);
			free(g);
			pair_free(&both);
			pair_free(&dw);
		}
}

TEST(other_optimizers_are_refused)
{
	for (int v = 0; v < 4; v++) {
		struct gt_attr_embedding_update attr;
		struct gt_seg seg;
		struct pair_job j;
		update_job(&j, &attr, &seg, &flat[1], false, 0);
		attr.optimizer = v == 1 ? GT_OP_RMSPROP : GT_OP_SGD;
		attr.update.momentum = v == 2 ? 0.9 : 0;
		seg.weight_decay = v == 3 ? 0.1 : 0;
		const char *why = pair_refused_cuda(&j);
		CHECK_MSG(v ? strstr(why, "also changes rows without a gradient") != NULL : !*why, "case %d: \"%s\"", v, why);
		pair_free(&j);
	}
}

/* ---- bound ------------------------------------------------------------------------------------------------------------------------ */
TEST(bounds_have_the_bits_of_the_cpu)
{
	static const int64_t shapes[][2] = {{1, 1}, {3, 5}, {2, 128}, {5, 409}, {33, 63}, {70, 1001}, {3, 1000003}};
	static const float odd[] = {0, INFINITY, -INFINITY, NAN};
	for (int v = 0; v < 24 * N(shapes); v++) {
		const int64_t *dim = shapes[v / 24], other[2] = {dim[0], 7}, n = dim[0] * dim[1];
		struct gt_attr_scale attr = {v % 2 ? 12 : 1};
		struct pair_job j = {.call = {.code = GT_OP_BOUND, .attr = &attr}};
		if (n > 100000 && v % 24 > 5)
			continue;
		double *start = calloc(2, sizeof *start);
		*start = v % 5 == 4 ? 1e9 : v % 11 == 10 ? NAN : 0;
		enum gt_dtype t = pair_types[v % 2];
		for (int i = 0; i < 2; i++) {
			int64_t count = i && v % 3 ? dim[0] * 7 : n;
			float *x = pair_filled(GT_F32, count, (uint32_t)(v + i));
			if (v % 4 && (v / 4 % 2) == i)
				x[count - 1 - v % count] = odd[v % 4];
			uint16_t *half = malloc((size_t)count * 2 + 8);
			for (int64_t k = 0; k < count; k++)
				half[k] = gt_bf16_from_f32(x[k]);
			pair_tensor(&j, false, t, 2, i && v % 3 ? other : dim, t == GT_F32 ? (void *)x : (void *)half);
			free(t == GT_F32 ? (void *)half : (void *)x);
		}
		pair_tensor(&j, true, GT_F64, 0, NULL, start);
		pair_compare(&j, 0, "");
		pair_free(&j);
	}
}

/* Against the formula, with the largest numbers of each type. */
TEST(bounds_of_large_numbers)
{
	static const float top[] = {2.5f, 65504, INFINITY, NAN};
	for (int t = 0; t < 3; t++)
		for (int v = 0; v < 4; v++) {
			int64_t dim[2] = {40, 91}, n = dim[0] * dim[1];
			struct gt_attr_scale attr = {3};
			struct pair_job j = {.call = {.code = GT_OP_BOUND, .attr = &attr}};
			double out = 1, want, x;
			void *data = calloc((size_t)n + 2, 4);
			uint16_t bf16 = gt_bf16_from_f32(top[v]), f16 = gt_f16_from_f32(top[v]);
			if (t)
				memcpy((uint16_t *)data + 1234, t == 1 ? &bf16 : &f16, 2);
			else
				memcpy((float *)data + 1234, &top[v], 4);
			x = t == 1 ? gt_bf16_to_f32(bf16) : t ? gt_f16_to_f32(f16) : top[v];
			want = (double)dim[0] * 3 * x * x;
			pair_tensor(&j, false, pair_types[t], 2, dim, data);
			pair_tensor(&j, false, pair_types[t], 2, dim, memcpy(malloc((size_t)n * 4 + 8), data, (size_t)n * 4));
			pair_tensor(&j, true, GT_F64, 0, NULL, memcpy(calloc(2, 8), &out, 8));
			void *in[PAIR_T] = {0};
			pair_run_cuda_out(&j, in, &out, sizeof out);
			CHECK_MSG(isnan(want) ? isnan(out) : out == want, "type %d: %g for %g", t, out, want);
			for (int i = 0; i < PAIR_T; i++)
				free(in[i]);
			pair_free(&j);
		}
}

TEST(report)
{
	pair_report(900);
}

RUN_TESTS()
