/* Tables of rows: the update of the rows that a batch names against the whole gradient and sgd, refusals, and tokens that a table lacks.
 * Attention: a padded sample against the same sample alone. Numbers against PyTorch's are in the table of operations (cases.txt). */
#include "cpu_raw.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5000, COLS = 70, TOKENS = 300 };

static void some_tokens(int32_t *tokens, int n, int rows)
{
	for (int i = 0; i < n; i++) /* a few tokens make up half of a batch, as in texts */
		tokens[i] = (int32_t)(raw_uniform(3, (uint32_t)i) * (i % 2 ? rows : 7));
}

/* embedding.dw+update on a copy of w: returns it. */
static float *update(int threads, const struct gt_attr_embedding_update *attr, const float *w, const float *dy, const int32_t *tokens,
                     enum gt_code *code, struct gt_err *e)
{
	int64_t words = GT_SCALARS_WORDS;
	struct gt_scalars scalars = {.inv_scale = 0.5};
	struct gt_step_args step = {.step = 1, .lr = {0.25}, .inv_weight = 1};
	struct gt_tdesc ddy = gt_tdesc_make(GT_F32, 2, (int64_t[]){TOKENS, COLS}, false),
	                dt = gt_tdesc_make(GT_I32, 1, (int64_t[]){TOKENS}, false),
	                dw = gt_tdesc_make(GT_F32, 2, (int64_t[]){ROWS, COLS}, false), ds = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall call = {.code = GT_OP_EMBEDDING_DW_UPDATE, .name = "table", .attr = attr, .nin = 4, .in = {&ddy, &dt, &dw, &ds}};
	float *p = raw_alloc(GT_F32, ROWS * COLS);
	memcpy(p, w, ROWS * COLS * sizeof *p);
	*code = raw_try(threads, &call, (void *[]){(void *)dy, (void *)tokens, p, &scalars}, NULL, &step, e);
	return p;
}

TEST(an_update_of_rows_has_the_bits_of_gradient_and_sgd)
{
	struct gt_err e = {0};
	enum gt_code code;
	struct gt_seg seg = {0, ROWS * COLS, 1, 0};
	struct gt_attr_embedding_update attr = {.table = {ROWS, COLS, 3, -1, 0}, .optimizer = GT_OP_SGD, .update = {.seg = &seg, .nseg = 1}};
	float *w = raw_alloc(GT_F32, ROWS * COLS), *dy = raw_alloc(GT_F32, TOKENS * COLS), *dw = raw_alloc(GT_F32, ROWS * COLS);
	int32_t tokens[TOKENS];
	some_tokens(tokens, TOKENS, ROWS);
	raw_random(GT_F32, w, ROWS * COLS, 1, -1, 1);
	raw_random(GT_F32, dy, TOKENS * COLS, 2, -1, 1);
	struct gt_tdesc ddy = gt_tdesc_make(GT_F32, 2, (int64_t[]){TOKENS, COLS}, false),
	                dt = gt_tdesc_make(GT_I32, 1, (int64_t[]){TOKENS}, false),
	                dd = gt_tdesc_make(GT_F32, 2, (int64_t[]){ROWS, COLS}, false);
	struct gt_opcall call = {.code = GT_OP_EMBEDDING_DW, .attr = &attr.table, .nin = 2, .nout = 1, .in = {&ddy, &dt}, .out = {&dd}};
	raw_run(2, &call, (void *[]){dy, tokens}, (void *[]){dw}, NULL);
	bool named[ROWS] = {false};
	for (int i = 0; i < TOKENS; i++)
		named[tokens[i]] = tokens[i] != 3;
	for (int threads = 1; threads <= 3; threads++) {
		float *p = update(threads, &attr, w, dy, tokens, &code, &e);
		int wrong = 0, kept = 0;
		CHECK_OK(code, e);
		for (int i = 0; i < ROWS * COLS; i++) {
			float g = dw[i] * 0.5f, want = w[i] - 0.25f * g;
			wrong += memcmp(&p[i], named[i / COLS] ? &want : &w[i], sizeof want) != 0;
			kept += !named[i / COLS];
		}
		CHECK_MSG(!wrong && kept > 0, "%d threads: %d elements differ", threads, wrong);
		free(p);
	}
	free(w), free(dy), free(dw);
}

/* Bags of 10 tokens, with lengths 0 ... 10: the whole gradient and sgd against the update of rows, for each mode. */
TEST(an_update_of_the_rows_of_bags_has_the_bits_of_gradient_and_sgd)
{
	enum { BAG = 10, N = TOKENS / BAG };
	struct gt_seg seg = {0, ROWS * COLS, 1, 0};
	int64_t words = GT_SCALARS_WORDS;
	struct gt_scalars scalars = {.inv_scale = 0.5};
	struct gt_step_args step = {.step = 1, .lr = {0.25}, .inv_weight = 1};
	struct gt_tdesc ddy = gt_tdesc_make(GT_F32, 2, (int64_t[]){N, COLS}, false), dt = gt_tdesc_make(GT_I32, 2, (int64_t[]){N, BAG}, false),
	                dw = gt_tdesc_make(GT_F32, 2, (int64_t[]){ROWS, COLS}, false), dl = gt_tdesc_make(GT_I32, 1, (int64_t[]){N}, false),
	                di = gt_tdesc_make(GT_I32, 2, (int64_t[]){N, COLS}, false), ds = gt_tdesc_make(GT_F64, 1, &words, false), d2 = dw;
	float *w = raw_alloc(GT_F32, ROWS * COLS), *dy = raw_alloc(GT_F32, N * COLS), *g = raw_alloc(GT_F32, ROWS * COLS),
	      *p = raw_alloc(GT_F32, ROWS * COLS), *y = raw_alloc(GT_F32, N * COLS);
	int32_t tokens[TOKENS], lengths[N], *idx = malloc(N * COLS * sizeof *idx);
	some_tokens(tokens, TOKENS, ROWS);
	for (int i = 0; i < N; i++)
		lengths[i] = i % (BAG + 1);
	raw_random(GT_F32, w, ROWS * COLS, 1, -1, 1);
	raw_random(GT_F32, dy, N * COLS, 2, -1, 1);
	for (int mode = GT_BAG_MEAN; mode <= GT_BAG_MAX; mode++)
		for (int threads = 1; threads <= 2; threads++) {
			struct gt_err e = {0};
			bool max = mode == GT_BAG_MAX;
			struct gt_attr_embedding_update attr = {
			    .table = {ROWS, COLS, 3, -1, mode}, .optimizer = GT_OP_SGD, .update = {.seg = &seg, .nseg = 1}};
			struct gt_opcall forward = {.code = GT_OP_EMBEDDING_BAG, .attr = &attr.table, .nin = 3, .nout = 1 + max,
			                            .in = {&dt, &dl, &dw}, .out = {&ddy, max ? &di : NULL}},
			                 back = {.code = GT_OP_EMBEDDING_BAG_DW, .attr = &attr.table, .nin = 3 + max, .nout = 1,
			                         .in = {&ddy, &dt, &dl, max ? &di : NULL}, .out = {&dw}},
			                 both = {.code = GT_OP_EMBEDDING_BAG_DW_UPDATE, .name = "bags", .attr = &attr, .nin = 6,
			                         .in = {&ddy, &dt, &d2, &dl, max ? &di : NULL, &ds}};
			raw_run(threads, &forward, (void *[]){tokens, lengths, w}, (void *[]){y, idx}, NULL);
			raw_run(threads, &back, (void *[]){dy, tokens, lengths, idx}, (void *[]){g}, NULL);
			memcpy(p, w, ROWS * COLS * sizeof *p);
			CHECK_OK(raw_try(threads, &both, (void *[]){dy, tokens, p, lengths, idx, &scalars}, NULL, &step, &e), e);
			int wrong = 0, kept = 0;
			for (int i = 0; i < ROWS * COLS; i++) {
				float want = w[i] - 0.25f * (g[i] * 0.5f);
				wrong += memcmp(&p[i], &want, sizeof want) != 0;
				kept += g[i] == 0;
			}
			CHECK_MSG(!wrong && kept > 0 && kept < ROWS * COLS, "mode %d, %d threads: %d elements differ", mode, threads, wrong);
		}
	free(w), free(dy), free(g), free(p), free(y), free(idx);
}

TEST(an_update_of_rows_is_refused_where_other_rows_change_too)
{
	float *w = calloc(ROWS * COLS, sizeof *w), *dy = calloc(TOKENS * COLS, sizeof *dy);
	int32_t tokens[TOKENS] = {0};
	for (int i = 0; i < 4; i++) {
		struct gt_err e = {0};
		enum gt_code code;
		struct gt_seg seg = {0, ROWS * COLS, 1, i == 1 ? 0.1 : 0};
		struct gt_attr_embedding_update attr = {.table = {ROWS, COLS, -1, -1, 0},
		                                        .optimizer = i == 3 ? GT_OP_RMSPROP : GT_OP_SGD,
		                                        .update = {.momentum = i == 2 ? 0.9 : 0, .seg = &seg, .nseg = 1}};
		free(update(1, &attr, w, dy, tokens, &code, &e));
		CHECK_MSG(i ? code == GT_EUNAVAILABLE && strstr(e.msg, "rows without a gradient") : code == GT_OK,
		          "case %d: code %d: %s", i, (int)code, e.msg);
	}
	free(w), free(dy);
}

TEST(a_token_that_the_table_lacks_is_an_error)
{
	static const int32_t bad[2] = {11, -1};
	struct gt_attr_embedding attr = {11, 4, -1, -1, 0};
	struct gt_tdesc dt = gt_tdesc_make(GT_I32, 1, (int64_t[]){3}, false), dw = gt_tdesc_make(GT_F32, 2, (int64_t[]){11, 4}, false),
	                dy = gt_tdesc_make(GT_F32, 2, (int64_t[]){3, 4}, false);
	struct gt_opcall call = {.code = GT_OP_EMBEDDING, .name = "words", .attr = &attr, .nin = 2, .nout = 1, .in = {&dt, &dw}, .out = {&dy}};
	float w[44] = {0}, y[12];
	for (int i = 0; i < 2; i++) {
		struct gt_err e = {0};
		char want[128];
		int32_t tokens[3] = {0, bad[i], 10};
		snprintf(want, sizeof want, "words: token %d of sample 1 in the batch: the table has rows 0..10", (int)bad[i]);
		CHECK_MSG(raw_try(1, &call, (void *[]){tokens, w}, (void *[]){y}, NULL, &e) == GT_EDATA && !strcmp(e.msg, want), "%s", e.msg);
	}
}

/* A sample of 37 tokens in a batch of 80 has the same y, and the same gradients, as alone. */
TEST(attention_to_a_padded_sample_has_the_bits_of_the_sample_alone)
{
	enum { LONG = 80, SHORT = 37, C = 24, HEADS = 3 };
	for (int causal = 0; causal < 2; causal++) {
		struct gt_attr_attention attr = {.heads = HEADS, .causal = causal};
		float *qkv = raw_alloc(GT_F32, LONG * 3 * C), *dy = raw_alloc(GT_F32, LONG * C), *y[2], *lse[2], *dx[2];
		int32_t length = SHORT;
		raw_random(GT_F32, qkv, LONG * 3 * C, 5, -2, 2);
		raw_random(GT_F32, dy, LONG * C, 6, -1, 1);
		memset(dy + SHORT * C, 0, (LONG - SHORT) * C * sizeof *dy); /* nothing depends on what follows the sample */
		for (int i = 0; i < 2; i++) {
			int64_t t = i ? SHORT : LONG;
			struct gt_tdesc dq = gt_tdesc_make(GT_F32, 3, (int64_t[]){1, t, 3 * C}, false),
			                d = gt_tdesc_make(GT_F32, 3, (int64_t[]){1, t, C}, false),
			                dl = gt_tdesc_make(GT_F32, 3, (int64_t[]){1, HEADS, t}, false),
			                dn = gt_tdesc_make(GT_I32, 1, (int64_t[]){1}, false),
			                d2 = d, dq2 = dq, *n = i ? NULL : &dn;
			y[i] = raw_alloc(GT_F32, t * C), lse[i] = raw_alloc(GT_F32, t * HEADS), dx[i] = raw_alloc(GT_F32, t * 3 * C);
			struct gt_opcall call = {.code = GT_OP_ATTENTION, .attr = &attr, .nin = 2, .nout = 2, .in = {&dq, n}, .out = {&d, &dl}};
			raw_run(i + 1, &call, (void *[]){qkv, &length}, (void *[]){y[i], lse[i]}, NULL);
			call = (struct gt_opcall){
			    .code = GT_OP_ATTENTION_DX, .attr = &attr, .nin = 5, .nout = 1, .in = {&d, &dq, &d2, n, &dl}, .out = {&dq2}};
			raw_run(i + 1, &call, (void *[]){dy, qkv, y[i], &length, lse[i]}, (void *[]){dx[i]}, NULL);
		}
		CHECK(!memcmp(y[0], y[1], SHORT * C * sizeof(float)) && !memcmp(dx[0], dx[1], SHORT * 3 * C * sizeof(float)));
		for (int i = SHORT * 3 * C; i < LONG * 3 * C; i++)
			CHECK(dx[0][i] == 0);
		for (int i = 0; i < 2; i++)
			free(y[i]), free(lse[i]), free(dx[i]);
		free(qkv), free(dy);
	}
}

RUN_TESTS()
