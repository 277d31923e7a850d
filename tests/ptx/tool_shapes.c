/* Calls of usual shapes on the CUDA backend, for counts of what their kernels execute (README.md). Each is a test by the name of its
 * operation, and runs once; results are not compared.
 *
 *     CUDASIM_PTX=build/ptx/90 CUDASIM_PTX_COUNT=1 build/cudasim/tests/ptx/tool_shapes positional_same */
#include "pair.h"
#include <stdlib.h>
#include <string.h>

static void run(struct pair_job *j)
{
	void *in[PAIR_T] = {0};
	pair_run_cuda(j, in);
	for (int i = 0; i < PAIR_T; i++)
		free(in[i]);
	pair_free(j);
}

static int32_t *some_tokens(int64_t n, int64_t rows)
{
	int32_t *t = malloc((size_t)n * sizeof *t);
	for (int64_t i = 0; i < n; i++)
		t[i] = (int32_t)((uint64_t)i * 2654435761u % (uint64_t)rows);
	return t;
}

TEST(positional_same)
{
	static const int64_t dy[3] = {8, 256, 768}, table[2] = {2, 768};
	struct gt_attr_positional attr = {2, GT_POSITIONAL_SAME};
	struct pair_job j = {.call = {.code = GT_OP_POSITIONAL_DW, .attr = &attr}};
	pair_tensor(&j, false, GT_BF16, 3, dy, NULL);
	pair_tensor(&j, true, GT_F32, 2, table, NULL);
	run(&j);
}

TEST(global_avgpool)
{
	static const int64_t x[4] = {4, 32, 112, 112}, y[4] = {4, 32, 1, 1};
	struct gt_attr_adaptive attr = {{1, 1}};
	struct pair_job j = {.call = {.code = GT_OP_ADAPTIVE_AVGPOOL2D, .attr = &attr}};
	pair_tensor(&j, false, GT_F32, 4, x, NULL);
	pair_tensor(&j, true, GT_F32, 4, y, NULL);
	run(&j);
}

TEST(embedding_bag)
{
	static const int64_t tokens[2] = {16, 1024}, table[2] = {20000, 16}, y[2] = {16, 16};
	struct gt_attr_embedding attr = {20000, 16, 0, -1, GT_BAG_MEAN};
	struct pair_job j = {.call = {.code = GT_OP_EMBEDDING_BAG, .attr = &attr}};
	pair_tensor(&j, false, GT_I32, 2, tokens, some_tokens(16 * 1024, 20000));
	pair_absent(&j, false);
	pair_tensor(&j, false, GT_F32, 2, table, NULL);
	pair_tensor(&j, true, GT_F32, 2, y, NULL);
	run(&j);
}

TEST(lstm_steps)
{
	static const int64_t x[3] = {64, 2, 512}, y[3] = {64, 2, 128}, w[2] = {512, 128};
	struct gt_attr_rnn attr = {false};
	struct pair_job j = {.call = {.code = GT_OP_LSTM_STEPS, .attr = &attr}};
	pair_tensor(&j, false, GT_BF16, 3, x, NULL);
	pair_absent(&j, false);
	pair_tensor(&j, false, GT_BF16, 2, w, NULL);
	pair_absent(&j, false);
	pair_tensor(&j, true, GT_BF16, 3, y, NULL);
	pair_tensor(&j, true, GT_F32, 3, x, NULL);
	pair_tensor(&j, true, GT_F32, 3, y, NULL);
	run(&j);
}

TEST(layernorm)
{
	static const int64_t x[2] = {256, 768}, one = 256, cols = 768;
	struct gt_attr_norm attr = {.eps = 1e-5, .affine = true};
	struct pair_job j = {.call = {.code = GT_OP_LAYERNORM, .attr = &attr}};
	pair_tensor(&j, false, GT_BF16, 2, x, NULL);
	for (int i = 0; i < 2; i++)
		pair_tensor(&j, false, GT_F32, 1, &cols, NULL);
	pair_tensor(&j, true, GT_BF16, 2, x, NULL);
	for (int i = 0; i < 2; i++)
		pair_tensor(&j, true, GT_F32, 1, &one, NULL);
	run(&j);
}

TEST(embedding_dw)
{
	static const int64_t n = 65536, dy[2] = {65536, 1}, table[2] = {50000, 1};
	struct gt_attr_embedding attr = {50000, 1, -1, -1, 0};
	struct pair_job j = {.call = {.code = GT_OP_EMBEDDING_DW, .attr = &attr}};
	pair_tensor(&j, false, GT_F32, 2, dy, NULL);
	pair_tensor(&j, false, GT_I32, 1, &n, some_tokens(n, 50000));
	pair_tensor(&j, true, GT_F32, 2, table, NULL);
	run(&j);
}

TEST(cross_entropy)
{
	static const int64_t x[2] = {16, 50000}, n = 16, metrics = sizeof(struct gt_metrics) / 8;
	struct gt_attr_loss attr = {.ignore_index = -100};
	struct pair_job j = {.call = {.code = GT_OP_CROSS_ENTROPY, .attr = &attr}, .step_args = {.inv_weight = 1.0 / 16}};
	pair_tensor(&j, false, GT_BF16, 2, x, NULL);
	pair_tensor(&j, false, GT_I32, 1, &n, some_tokens(n, 50000));
	pair_tensor(&j, true, GT_F64, 1, &metrics, NULL);
	pair_tensor(&j, true, GT_BF16, 2, x, NULL);
	run(&j);
}

static void permute(int64_t a, int64_t b, int64_t c)
{
	static const int64_t x[4] = {4, 64, 128, 12}; /* NHWC in memory: [4, 128, 12, 64] */
	const int64_t y[4] = {4, x[a], x[b], x[c]};
	struct gt_attr_permute attr = {{.n = 4, .v = {0, a, b, c}}};
	struct pair_job j = {.call = {.code = GT_OP_PERMUTE, .attr = &attr}};
	pair_tensor(&j, false, GT_BF16, 4, x, NULL);
	pair_tensor(&j, true, GT_BF16, 4, y, NULL);
	run(&j);
}

/* The output is [4, 12, 128, 64] in memory. */
TEST(permute_heads)
{
	permute(1, 3, 2);
}

/* The output is [4, 12, 64, 128] in memory. */
TEST(permute_last)
{
	permute(2, 3, 1);
}

TEST(channels_dv)
{
	static const int64_t x[4] = {4, 32, 112, 112}, v[2] = {4, 32};
	struct pair_job j = {.call = {.code = GT_OP_MUL_CHANNELS_DV}};
	pair_tensor(&j, false, GT_BF16, 4, x, NULL);
	pair_tensor(&j, false, GT_BF16, 4, x, NULL);
	pair_tensor(&j, true, GT_BF16, 2, v, NULL);
	run(&j);
}

TEST(embedding)
{
	static const int64_t n = 2048, table[2] = {30000, 768}, y[2] = {2048, 768};
	struct gt_attr_embedding attr = {30000, 768, -1, -1, 0};
	struct pair_job j = {.call = {.code = GT_OP_EMBEDDING, .attr = &attr}};
	pair_tensor(&j, false, GT_I32, 1, &n, some_tokens(n, 30000));
	pair_tensor(&j, false, GT_F32, 2, table, NULL);
	pair_tensor(&j, true, GT_BF16, 2, y, NULL);
	run(&j);
}

TEST(concat_odd)
{
	static const int64_t a[2] = {4096, 101}, b[2] = {4096, 26}, y[2] = {4096, 127};
	struct pair_job j = {.call = {.code = GT_OP_CONCAT}};
	pair_tensor(&j, false, GT_BF16, 2, a, NULL);
	pair_tensor(&j, false, GT_BF16, 2, b, NULL);
	pair_tensor(&j, true, GT_BF16, 2, y, NULL);
	run(&j);
}

/* 65,536 rows of two classes: the last block adds them. */
TEST(loss_total)
{
	static const int64_t x[2] = {65536, 2}, n = 65536, metrics = sizeof(struct gt_metrics) / 8;
	struct gt_attr_loss attr = {.ignore_index = -100};
	struct pair_job j = {.call = {.code = GT_OP_CROSS_ENTROPY, .attr = &attr}, .step_args = {.inv_weight = 1.0 / 65536}};
	pair_tensor(&j, false, GT_BF16, 2, x, NULL);
	pair_tensor(&j, false, GT_I32, 1, &n, some_tokens(n, 2));
	pair_tensor(&j, true, GT_F64, 1, &metrics, NULL);
	run(&j);
}

/* The last block adds the sums of 6,400 chunks. */
TEST(sumsq)
{
	static const int64_t n = 6400 * 4096;
	struct pair_job j = {.call = {.code = GT_OP_SUMSQ}};
	pair_tensor(&j, false, GT_F32, 1, &n, NULL);
	pair_tensor(&j, true, GT_F64, 0, NULL, NULL);
	run(&j);
}

TEST(positional_sinusoidal)
{
	static const int64_t x[3] = {8, 128, 256};
	struct gt_attr_positional attr = {128, GT_POSITIONAL_SINUSOIDAL};
	struct pair_job j = {.call = {.code = GT_OP_POSITIONAL, .attr = &attr}};
	pair_tensor(&j, false, GT_BF16, 3, x, NULL);
	pair_tensor(&j, true, GT_BF16, 3, x, NULL);
	run(&j);
}

RUN_TESTS()
