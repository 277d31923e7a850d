/* What a call of every operation moves and computes on a GPU (kernels/opcost.h), with bytes that are counted by hand. */
#include "opcost.h"
#include "opsig.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

#define N 64 /* elements of most activations here: 2 x 4 x 8, or 2 x 4 x 2 x 4 */

/* operands: TYPE:SIZExSIZE..., in the order of the signature; "-": absent; "->" before the outputs. The numbers follow. */
struct expected {
	enum gt_opcode code;
	const char *operands;
	const void *attr;
	uint32_t accumulate;
	double read, written;
	int kernels;
	double pieces;
};

static const struct gt_seg segments[] = {{.begin = 0, .end = 100}, {.begin = 100, .end = 150}};
static const struct gt_tdesc matrix[] = {{.dtype = GT_F32, .rank = 2, .dim = {10, 10}, .layout.order = {0, 1}},
                                         {.dtype = GT_F32, .rank = 2, .dim = {10, 5}, .layout.order = {0, 1}}};
static const struct gt_tdesc *const matrices[] = {&matrix[0], &matrix[1]};
#define UPDATE {.seg = segments, .nseg = 2, .work_dtype = GT_BF16}
static const struct gt_attr_update update = UPDATE;
static const struct gt_attr_muon muon = {.update = UPDATE, .desc = matrices, .ns_steps = 3};
static const int two_groups[] = {0, 1};
static const struct gt_attr_muon split = {.update = {.seg = segments, .nseg = 2, .work_dtype = GT_F32}, .desc = matrices, .ns_steps = 3,
                                          .normalize = true, .group = two_groups, .ngroups = 2, .part = 1};
static const struct gt_attr_conv2d conv = {.out = 8, .kernel = {3, 3}, .groups = 1}, grouped = {.out = 8, .kernel = {3, 3}, .groups = 2};
static const struct gt_attr_norm train = {.train = true, .track = true},
                                 eval = {.track = true}, empty = {.empty = true}, groups = {.groups = 2};
static const struct gt_attr_pool_tokens mean = {GT_POOL_MEAN}, first = {GT_POOL_FIRST};
static const struct gt_attr_embedding bags = {.padding = -1, .column = -1, .mode = GT_BAG_MEAN};
static const struct gt_attr_mlp_steps window = {.batch = 32};
static const struct gt_attr_recipes recipes = {.contrasts = 1};
static const struct gt_attr_attention heads = {.heads = 2};

/* One kernel that reads x, or dy and another activation, and writes an activation. */
#define ONE(code) {code, "f32:2x4x8 -> f32:2x4x8", NULL, 0, 4 * N, 4 * N, 1, 0}
#define TWO(code) {code, "bf16:2x4x8 bf16:2x4x8 -> bf16:2x4x8", NULL, 0, 2 * 2 * N, 2 * N, 1, 0}
#define POOLED(code) {code, "f32:2x4x2x4 -> f32:2x4x1x2", NULL, 0, 4 * N, 4 * N / 4, 1, 0}
#define LOSS(code) {code, "f32:6x10 i32:6 -> any:5 f32:6x10", NULL, 0, 4 * 60 + 4 * 6, 5 * 8 + 4 * 60, 1, 0}

static const struct expected table[] = {
	/* 65 rows are two pieces, 100 outputs two, sums of 257 terms two; the bias is rounded by a kernel of its own */
	{GT_OP_LINEAR, "bf16:65x257 bf16:100x257 f32:100 -> bf16:65x100", NULL, 0, 2 * 65 * 257 + 2 * 100 * 257 + 4 * 100, 2 * 6500, 2, 8},
	{GT_OP_LINEAR, "f32:65x257 f32:100x257 f32:100 -> f32:65x100 u8:65x16",
	 NULL, 0, 4 * (65 * 257 + 100 * 257 + 100), 4 * 6500 + 65 * 16, 1, 8},
	{GT_OP_LINEAR_DX, "f32:64x32 f32:32x16 -> f32:64x16", NULL, 0, 4 * (64 * 32 + 32 * 16), 4 * 64 * 16, 1, 1},
	/* y masks dx in a second kernel, which also reads and writes dx; bits do so within the product */
	{GT_OP_LINEAR_DX, "f32:64x32 f32:32x16 f32:64x16 -> f32:64x16", NULL, 0, 4 * (64 * 32 + 32 * 16 + 2 * 64 * 16), 2 * 4 * 64 * 16, 2, 1},
	{GT_OP_LINEAR_DX, "f32:64x32 f32:32x16 u8:64x16 -> f32:64x16", NULL, 0, 4 * (64 * 32 + 32 * 16) + 64 * 16, 4 * 64 * 16, 1, 1},
	{GT_OP_LINEAR_DW, "f32:64x32 f32:64x16 -> f32:32x16 f32:32", NULL, 0, 4 * (64 * 32 + 64 * 16), 4 * (32 * 16 + 32), 1, 1},
	/* both gradients are added to, and the sums of the columns need a kernel that reads dy once more */
	{GT_OP_LINEAR_DW, "f32:64x32 f32:64x16 -> f32:32x16 f32:32",
	 NULL, 3, 4 * (2 * 64 * 32 + 64 * 16 + 32 * 16 + 32), 4 * (32 * 16 + 32), 2, 1},
	{GT_OP_LINEAR_DW, "f32:64x32 f32:64x16 -> - f32:32", NULL, 0, 4 * 64 * 32, 4 * 32, 1, 0},
	{GT_OP_BIAS_DB, "f32:64x32 -> f32:32", NULL, 0, 4 * 64 * 32, 4 * 32, 1, 0},
	{GT_OP_BIAS_DB, "f32:1025x32 -> f32:32", NULL, 1, 4 * 1025 * 32 + 4 * 32, 4 * 32, 2, 0},
	{GT_OP_LINEAR_DW_UPDATE, "f32:64x32 f32:64x16 f32:32x16 f64:9 f32:32x16 -> f32:32", NULL, 0,
	 4 * (64 * 32 + 64 * 16 + 2 * 32 * 16) + 8 * 9, 4 * (2 * 32 * 16 + 32), 1, 1},
	{GT_OP_LINEAR_LOSS, "f32:6x20 f32:10x20 f32:10 i32:6 -> f32:6x10 any:5 f32:6x10",
	 NULL, 0, 4 * (120 + 200 + 10 + 6), 4 * 60 + 40 + 4 * 60, 1, 0},
	{GT_OP_LINEAR_BACK, "f32:6x10 f32:6x20 f32:10x20 -> f32:6x20 f32:10x20 f32:10",
	 NULL, 2, 4 * (60 + 120 + 200 + 200), 4 * (120 + 200 + 10), 1, 0},
	/* 2 x 6 x 6 pixels, 8 outputs, sums of 3 x 9 terms; x, and the few weights, are copied to 8 channels first */
	{GT_OP_CONV2D, "bf16:2x3x8x8 bf16:8x3x3x3 f32:8 -> bf16:2x8x6x6", &conv, 0, 2 * (384 + 1024 + 216) + 32, 2 * (1024 + 576), 4, 2},
	{GT_OP_CONV2D, "bf16:2x8x8x8 bf16:8x8x3x3 f32:8 -> bf16:2x8x6x6", &conv, 0, 2 * (1024 + 576) + 32, 2 * 576, 2, 2},
	{GT_OP_CONV2D, "bf16:2x4x8x8 bf16:8x2x3x3 -> bf16:2x8x6x6", &grouped, 0, 2 * (512 + 144), 2 * 576, 1, 2 * 2},
	{GT_OP_CONV2D_DX, "f32:2x8x6x6 f32:8x3x3x3 -> f32:2x3x8x8", &conv, 0, 4 * (576 + 216), 4 * 384, 1, 2},
	/* x is copied to 8 channels; the product writes 16 bits, which a kernel reads and converts; two more read dy for db: there are
	 * 2 x 30 x 30 pixels */
	{GT_OP_CONV2D_DW, "bf16:2x8x30x30 bf16:2x3x32x32 -> f32:8x3x3x3 f32:8", &conv, 0, 2 * (2 * 14400 + 6144 + 16384) + 2 * 216,
	 2 * 16384 + 2 * 216 + 4 * 216 + 32, 5, 8},
	{GT_OP_CONV2D_DW, "f32:2x8x6x6 f32:2x3x8x8 -> - f32:8", &conv, 0, 4 * 576, 32, 1, 0},
	{GT_OP_MAXPOOL2D, "f32:2x4x2x4 -> f32:2x4x1x2 i32:2x4x1x2", NULL, 0, 4 * N, 4 * 16 + 4 * 16, 1, 0},
	{GT_OP_MAXPOOL2D_DX, "f32:2x4x1x2 i32:2x4x1x2 -> f32:2x4x2x4", NULL, 0, 4 * 16 + 4 * 16, 4 * N, 1, 0},
	POOLED(GT_OP_AVGPOOL2D),
	{GT_OP_AVGPOOL2D_DX, "f32:2x4x1x2 -> f32:2x4x2x4", NULL, 0, 4 * 16, 4 * N, 1, 0},
	POOLED(GT_OP_ADAPTIVE_AVGPOOL2D),
	{GT_OP_ADAPTIVE_AVGPOOL2D_DX, "f32:2x4x1x2 -> f32:2x4x2x4", NULL, 0, 4 * 16, 4 * N, 1, 0},
	POOLED(GT_OP_ADAPTIVE_MAXPOOL2D),
	/* x twice, res once; four tables of 4 f32 and a counter are read, the last three of these are written too; mean and rstd */
	{GT_OP_BATCHNORM, "bf16:2x4x2x4 f32:4 f32:4 f32:4 f32:4 i64:1 bf16:2x4x2x4 -> bf16:2x4x2x4 f32:4 f32:4",
	 &train, 0, 2 * 3 * N + 4 * 16 + 8,
	 2 * N + 2 * 16 + 8 + 2 * 16, 2, 0},
	{GT_OP_BATCHNORM, "f32:2x4x2x4 f32:4 f32:4 f32:4 f32:4 -> f32:2x4x2x4", &eval, 0, 4 * N + 4 * 16, 4 * N + 2 * 16, 2, 0},
	{GT_OP_BATCHNORM_Y, "f32:2x4x2x4 f32:4 f32:4 f32:4 f32:4 -> f32:2x4x2x4", &train, 0, 4 * N + 4 * 16, 4 * N, 2, 0},
	/* sums and dx both read dy and x */
	{GT_OP_BATCHNORM_DX, "f32:2x4x2x4 f32:2x4x2x4 f32:4 f32:4 f32:4 -> f32:2x4x2x4 f32:4 f32:4",
	 &train, 0, 4 * 4 * N + 3 * 16, 4 * N + 2 * 16, 2, 0},
	/* the first kernel reads dy, x and y and writes g, the second one reads g and x */
	{GT_OP_BATCHNORM_DX, "f32:2x4x2x4 f32:2x4x2x4 f32:4 f32:4 f32:4 f32:4 f32:2x4x2x4 -> f32:2x4x2x4 f32:4 f32:4 f32:2x4x2x4", &train, 0,
	 4 * 5 * N + 4 * 16, 4 * 2 * N + 2 * 16, 2, 0},
	/* the sums are given: dy and x once */
	{GT_OP_BATCHNORM_DX, "f32:2x4x2x4 f32:2x4x2x4 f32:4 f32:4 f32:4 - - f64:3x4 -> f32:2x4x2x4",
	 &train, 0, 4 * 2 * N + 3 * 16 + 96, 4 * N, 2, 0},
	{GT_OP_BATCHNORM_STATS, "f32:2x4x2x4 -> f64:3x4", &train, 0, 4 * N, 96, 1, 0},
	{GT_OP_BATCHNORM_STATS, "f32:2x4x2x4 -> f64:3x4", &empty, 0, 0, 96, 1, 0},
	{GT_OP_BATCHNORM_MERGE, "f64:2x3x4 f32:4 f32:4 i64:1 -> f32:4 f32:4", &train, 0, 192 + 2 * 16 + 8, 2 * 16 + 8 + 2 * 16, 1, 0},
	{GT_OP_BATCHNORM_SUMS, "f32:2x4x2x4 f32:2x4x2x4 f32:4 f32:4 f32:4 -> f64:3x4 f32:4 f32:4",
	 &train, 0, 4 * 2 * N + 3 * 16, 96 + 2 * 16, 1, 0},
	{GT_OP_LAYERNORM, "bf16:2x32 f32:32 f32:32 -> bf16:2x32 f32:2 f32:2", &train, 0, 2 * N + 2 * 128, 2 * N + 2 * 8, 1, 0},
	/* dx, then two kernels for gamma and beta, the first of which reads dy and x again */
	{GT_OP_LAYERNORM_DX, "f32:2x32 f32:2x32 f32:32 f32:2 f32:2 -> f32:2x32 f32:32 f32:32",
	 &train, 0, 4 * 4 * N + 128 + 2 * 8, 4 * N + 2 * 128, 3, 0},
	{GT_OP_LAYERNORM_DX, "f32:2x32 f32:2x32 - f32:2 f32:2 -> f32:2x32", &train, 0, 4 * 2 * N + 2 * 8, 4 * N, 1, 0},
	{GT_OP_GROUPNORM, "f32:2x4x8 f32:4 f32:4 -> f32:2x4x8 f32:2x2 f32:2x2", &groups, 0, 4 * N + 2 * 16, 4 * N + 2 * 16, 1, 0},
	{GT_OP_GROUPNORM_DX, "f32:2x4x8 f32:2x4x8 f32:4 f32:2x2 f32:2x2 -> f32:2x4x8 f32:4 f32:4",
	 &groups, 0, 4 * 4 * N + 3 * 16, 4 * N + 2 * 16, 3, 0},
	ONE(GT_OP_RELU), TWO(GT_OP_RELU_DX), ONE(GT_OP_LEAKY_RELU), TWO(GT_OP_LEAKY_RELU_DX), ONE(GT_OP_SIGMOID), TWO(GT_OP_SIGMOID_DX),
	ONE(GT_OP_TANH), TWO(GT_OP_TANH_DX), ONE(GT_OP_GELU), TWO(GT_OP_GELU_DX), ONE(GT_OP_SILU), TWO(GT_OP_SILU_DX), ONE(GT_OP_MISH),
	TWO(GT_OP_MISH_DX), ONE(GT_OP_ELU), TWO(GT_OP_ELU_DX), ONE(GT_OP_RELU6), TWO(GT_OP_RELU6_DX), ONE(GT_OP_HARDSIGMOID),
	TWO(GT_OP_HARDSIGMOID_DX), ONE(GT_OP_HARDSWISH), TWO(GT_OP_HARDSWISH_DX), ONE(GT_OP_SOFTMAX), TWO(GT_OP_SOFTMAX_DX),
	ONE(GT_OP_LOG_SOFTMAX), TWO(GT_OP_LOG_SOFTMAX_DX), ONE(GT_OP_DROPOUT), ONE(GT_OP_SCALE), TWO(GT_OP_MUL), ONE(GT_OP_PERMUTE),
	{GT_OP_PRELU, "f32:2x4x8 f32:4 -> f32:2x4x8", NULL, 0, 4 * N + 16, 4 * N, 1, 0},
	{GT_OP_PRELU_DX, "f32:2x4x8 f32:2x4x8 f32:4 -> f32:2x4x8", NULL, 0, 4 * 2 * N + 16, 4 * N, 1, 0},
	{GT_OP_PRELU_DX, "f32:2x4x8 f32:2x4x8 f32:4 -> f32:2x4x8 f32:4", NULL, 0, 4 * 4 * N + 16, 4 * N + 16, 3, 0},
	{GT_OP_PRELU_DX, "f32:2x4x8 f32:2x4x8 f32:1 -> f32:2x4x8 f32:1", NULL, 0, 4 * 4 * N + 4, 4 * N + 4, 4, 0},
	{GT_OP_FLATTEN, "f32:2x4x2x4 -> f32:2x32", NULL, 0, 4 * N, 4 * N, 1, 0},
	{GT_OP_FLATTEN_DX, "f32:2x32 -> f32:2x4x2x4", NULL, 0, 4 * N, 4 * N, 1, 0},
	{GT_OP_ADD, "f32:2x32 f32:2x32 f32:2x32 -> f32:2x32", NULL, 0, 3 * 4 * N, 4 * N, 1, 0},
	{GT_OP_MUL_CHANNELS, "f32:2x4x2x4 f32:2x4 -> f32:2x4x2x4", NULL, 0, 4 * N + 32, 4 * N, 1, 0},
	{GT_OP_MUL_CHANNELS_DV, "f32:2x4x2x4 f32:2x4x2x4 -> f32:2x4", NULL, 0, 4 * 2 * N, 32, 1, 0},
	{GT_OP_ADD_CHANNELS, "f32:2x4x2x4 f32:2x4 -> f32:2x4x2x4", NULL, 0, 4 * N + 32, 4 * N, 1, 0},
	{GT_OP_ADD_CHANNELS_DV, "f32:2x4x2x4 -> f32:2x4", NULL, 0, 4 * N, 32, 1, 0},
	{GT_OP_CONCAT, "f32:2x16 f32:2x16 -> f32:2x32", NULL, 0, 4 * N, 4 * N, 1, 0},
	{GT_OP_CONCAT_DX, "f32:2x32 -> f32:2x16 -", NULL, 0, 4 * N, 4 * 32, 1, 0},
	{GT_OP_VIEW, "f32:2x32 -> f32:4x16", NULL, 0, 0, 0, 0, 0},
	{GT_OP_IDENTITY, "f32:2x32 -> f32:2x32", NULL, 0, 0, 0, 0, 0},
	{GT_OP_COMM, "f32:64 -> f32:64", NULL, 0, 0, 0, 0, 0},
	{GT_OP_ROWS, "f32:2x32 -> f32:4x32", NULL, 0, 0, 0, 0, 0},
	{GT_OP_SELECT, "f32:2x4x8 -> f32:2x8", NULL, 0, 4 * 16, 4 * 16, 1, 0},
	{GT_OP_SELECT_DX, "f32:2x8 -> f32:2x4x8", NULL, 0, 4 * 16, 4 * N, 1, 0},
	/* 6 tokens of 4 bytes, 6 rows of 8 f32 of a table of 100 */
	{GT_OP_EMBEDDING, "i32:2x3 f32:100x8 -> f32:6x8", NULL, 0, 24 + 6 * 32, 6 * 32, 1, 0},
	/* one column of three: 2 tokens; a table of one row is read once */
	{GT_OP_EMBEDDING, "i32:2x3 f32:1x8 -> f32:2x8", NULL, 0, 8 + 32, 2 * 32, 1, 0},
	/* the table is set to 0; the tokens are read, and their order of 8 bytes each is written, and read by two kernels; 6 rows are read and
	 * written */
	{GT_OP_EMBEDDING_DW, "f32:6x8 i32:2x3 -> f32:100x8", NULL, 0, 6 * 32 + 24 + 2 * 48 + 6 * 32, 3200 + 48 + 6 * 32, 4, 0},
	{GT_OP_EMBEDDING_DW, "f32:6x8 i32:2x3 -> f32:100x8", NULL, 1, 6 * 32 + 24 + 2 * 48 + 6 * 32, 48 + 6 * 32, 3, 0},
	/* 2,000 tokens: their tiles are merged */
	{GT_OP_EMBEDDING_DW, "f32:2000x8 i32:2000 -> f32:100x8", NULL, 1, 2000 * 32 + 8000 + 3 * 16000 + 3200, 2 * 16000 + 3200, 4, 0},
	{GT_OP_EMBEDDING_DW_UPDATE, "f32:6x8 i32:2x3 f32:100x8 f64:9 f32:100x8 -> -", NULL, 0, 6 * 32 + 24 + 2 * 48 + 72 + 2 * 6 * 32,
	 48 + 2 * 6 * 32, 3, 0},
	{GT_OP_EMBEDDING_BAG, "i32:2x3 i32:2 f32:100x8 -> f32:2x8", NULL, 0, 24 + 8 + 6 * 32, 2 * 32, 1, 0},
	{GT_OP_EMBEDDING_BAG_DW, "f32:2x8 i32:2x3 i32:2 -> f32:100x8", NULL, 0, 2 * 32 + 24 + 2 * 48 + 8 + 6 * 32, 3200 + 48 + 6 * 32, 4, 0},
	/* of the mean, the number of tokens of each bag too */
	{GT_OP_EMBEDDING_BAG_DW, "f32:2x8 i32:2x3 i32:2 -> f32:100x8", &bags, 0, 2 * 32 + 2 * 24 + 2 * 48 + 8 + 6 * 32, 3200 + 48 + 6 * 32, 5,
	 0},
	{GT_OP_EMBEDDING_BAG_DW_UPDATE, "f32:2x8 i32:2x3 f32:100x8 i32:2 - f64:9 f32:100x8 -> -", NULL, 0,
	 2 * 32 + 24 + 2 * 48 + 8 + 72 + 2 * 6 * 32, 48 + 2 * 6 * 32, 3, 0},
	/* 4 of the table's 10 rows */
	{GT_OP_POSITIONAL, "f32:2x4x8 f32:10x8 -> f32:2x4x8", NULL, 0, 4 * N + 4 * 32, 4 * N, 1, 0},
	{GT_OP_POSITIONAL_DW, "f32:2x4x8 -> f32:10x8", NULL, 0, 4 * N, 320, 1, 0},
	{GT_OP_POOL_TOKENS, "f32:2x4x8 i32:2 -> f32:2x8", &mean, 0, 4 * N + 8, 4 * 16, 1, 0},
	{GT_OP_POOL_TOKENS, "f32:2x4x8 i32:2 -> f32:2x8", &first, 0, 4 * 16 + 8, 4 * 16, 1, 0},
	{GT_OP_POOL_TOKENS_DX, "f32:2x8 i32:2 -> f32:2x4x8", &mean, 0, 4 * 16 + 8, 4 * N, 1, 0},
	{GT_OP_ATTENTION, "bf16:2x4x24 i32:2 -> bf16:2x4x8 f32:2x2x4", &heads, 0, 2 * 3 * N + 8, 2 * N + 64, 1, 0},
	{GT_OP_ATTENTION_DX, "f32:2x4x8 f32:2x4x24 f32:2x4x8 i32:2 f32:2x2x4 -> f32:2x4x24",
	 &heads, 0, 2 * (4 * 5 * N + 8 + 64), 4 * 3 * N, 2, 0},
	/* weights of 32 x 8 in each of 4 steps */
	{GT_OP_LSTM_STEPS, "f32:2x4x32 i32:2 f32:32x8 f32:32 -> f32:2x4x8 f32:2x4x32 f32:2x4x8", NULL, 0, 4 * 4 * N + 8 + 4 * 1024 + 128,
	 4 * N + 4 * 4 * N + 4 * N, 1, 0},
	{GT_OP_LSTM_STEPS_DX, "f32:2x4x8 f32:2x4x8 f32:2x4x32 f32:2x4x8 i32:2 f32:32x8 -> f32:2x4x32 f32:2x4x8",
	 NULL, 0, 4 * 7 * N + 8 + 4 * 1024,
	 4 * 5 * N, 1, 0},
	{GT_OP_GRU_STEPS, "f32:2x4x24 - f32:24x8 f32:24 -> f32:2x4x8 f32:2x4x24 f32:2x4x8", NULL, 0, 4 * 3 * N + 4 * 768 + 96, 4 * 5 * N, 1, 0},
	{GT_OP_GRU_STEPS_DX, "f32:2x4x8 f32:2x4x8 f32:2x4x24 f32:2x4x8 - f32:24x8 -> f32:2x4x24 - f32:2x4x24", NULL, 0, 4 * 6 * N + 4 * 768,
	 4 * 6 * N, 1, 0},
	{GT_OP_VIEWS_MEAN, "f32:12x10 -> f32:6x10", NULL, 0, 480, 240, 1, 0},
	{GT_OP_CAST, "f32:64 -> bf16:64", NULL, 0, 256, 128, 1, 0},
	LOSS(GT_OP_CROSS_ENTROPY), LOSS(GT_OP_NLL), LOSS(GT_OP_MSE), LOSS(GT_OP_BCE), LOSS(GT_OP_SMOOTH_L1),
	/* 6 of 1000 images of 48 bytes, 6 labels, 6 indices */
	{GT_OP_GATHER, "u8:1000x3x4x4 i32:1000 i64:1000 -> bf16:6x3x4x4 i32:6", NULL, 0, 6 * 48 + 6 * 4 + 6 * 8, 2 * 6 * 48 + 6 * 4, 1, 0},
	/* a row of 64 bytes: a recipe without operations, and 48 pixels; the image is read again for the contrast */
	{GT_OP_GATHER_RECIPES, "u8:1000x64 i32:1000 i64:1000 -> bf16:6x3x4x4 i32:6", &recipes, 0, 6 * (64 + 48) + 6 * 4 + 6 * 8,
	 2 * 6 * 48 + 6 * 4, 1, 0},
	{GT_OP_GATHER_ROWS, "f32:1000x7 i64:1000 -> bf16:6x7", NULL, 0, 4 * 42 + 48, 2 * 42, 1, 0},
	{GT_OP_GATHER_RAGGED, "i32:5000 i64:1000 i64:1000 -> i32:6x7", NULL, 0, 4 * 42 + 3 * 48, 4 * 42, 1, 0},
	{GT_OP_SUMSQ, "f32:200 -> f64:1", NULL, 0, 800, 8, 1, 0},
	{GT_OP_BOUND, "f32:2x32 f32:2x32 -> f64:1", NULL, 0, 512, 8, 1, 0},
	/* 32 samples of 784 bytes with label and index; the ten numbers of the step */
	{GT_OP_MLP_STEPS, "u8:60000x1x28x28 i32:60000 i64:1x60000 f32:5000 f32:5000 - f64:64x9 f64:4 -> ",
	 &window, 0, 32 * (784 + 4 + 8), 80, 1, 0},
	/* both structs are updated; the sum of squares of 200 gradients is part of it */
	{GT_OP_CHECK, "f64:9 f64:4 - - f32:200 -> ", NULL, 0, 72 + 32 + 800, 72 + 32, 1, 0},
	/* the segments have 150 of 200 elements; p and states are read and written, g is read, the 16-bit copy is written */
	{GT_OP_SGD, "f32:200 f32:200 f32:200 f64:9 bf16:200 -> ", &update, 0, 150 * 4 * 3 + 72, 150 * (4 * 2 + 2), 1, 0},
	{GT_OP_ADAM, "f32:200 f32:200 f32:200 f32:200 - f64:9 -> ", &update, 0, 150 * 4 * 4 + 72, 150 * 4 * 3, 1, 0},
	{GT_OP_RMSPROP, "f32:200 f32:200 f32:200 - - f64:9 -> ", &update, 0, 150 * 4 * 3 + 72, 150 * 4 * 2, 1, 0},
	{GT_OP_LION, "f32:200 f32:200 f32:200 f64:9 -> ", &update, 0, 150 * 4 * 3 + 72, 150 * 4 * 2, 1, 0},
	{GT_OP_NADAM, "f32:200 f32:200 f32:200 f32:200 f64:9 -> ", &update, 0, 150 * 4 * 4 + 72, 150 * 4 * 3, 1, 0},
	{GT_OP_RADAM, "f32:200 f32:200 f32:200 f32:200 f64:9 -> ", &update, 0, 150 * 4 * 4 + 72, 150 * 4 * 3, 1, 0},
	{GT_OP_ADAGRAD, "f32:200 f32:200 f32:200 f64:9 -> ", &update, 0, 150 * 4 * 3 + 72, 150 * 4 * 2, 1, 0},
	/* the last of three kernels reads p and states once more */
	{GT_OP_LAMB, "f32:200 f32:200 f32:200 f32:200 f64:9 -> ", &update, 0, 150 * 4 * 7 + 72, 150 * 4 * 3, 3, 0},
	{GT_OP_EMA, "f32:200 f32:200 -> ", &update, 0, 150 * 4 * 2, 150 * 4, 1, 0},
	/* 10 x 10 and 10 x 5, padded to 12 x 12 and 12 x 8; five passes over the elements of f32, and the operands of nine products of each */
	{GT_OP_MUON, "f32:200 f32:200 f32:200 f64:9 -> ", &muon, 0, 4 * 150 * 5 + 4 * 240 + 3 * 4 * ((144 + 288 + 288) + (96 + 128 + 192)),
	 4 * 150 * 2 + 4 * 240 + 3 * 4 * ((288 + 144) + (128 + 96)), 3 + 3 * 3 * 2, 2},
	/* the second group is the matrix 10 x 5; three passes over its elements with the weights' norm, and two more that fill its operand */
	{GT_OP_MUON_DIRECTIONS, "f32:200 f32:200 f32:200 -> u8:2000", &split, 0, 4 * 50 * 5 + 3 * 4 * (96 + 128 + 192),
	 4 * 96 + 3 * 4 * (128 + 96), 2 + 3 * 3, 1},
	/* of both groups: gradient, momentum, weights and directions; momentum, weights and their 16-bit copy are written */
	{GT_OP_MUON_APPLY, "f32:200 f32:200 f32:200 u8:2000 f64:9 bf16:200 -> ", &split, 0, 4 * 150 * 3 + 4 * 240, 4 * 150 * 2 + 2 * 150, 1, 0},
};

static enum gt_dtype dtype_of(const char *s, size_t n)
{
	for (int t = 0; t < GT_DTYPE_COUNT; t++)
		if (strlen(gt_dtype_name(t)) == n && !strncmp(gt_dtype_name(t), s, n))
			return t;
	return GT_F64; /* "any": the metrics, as 8-byte words */
}

static struct gt_tdesc read_desc(const char *s)
{
	const char *colon = strchr(s, ':');
	int64_t dim[GT_MAX_RANK];
	int rank = 0;
	for (char *end = (char *)colon; *end == ':' || *end == 'x';)
		dim[rank++] = strtoll(end + 1, &end, 10);
	return gt_tdesc_make(dtype_of(s, (size_t)(colon - s)), rank, dim, true);
}

TEST(every_call_moves_what_was_counted_by_hand)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct expected *e = &table[i];
		struct gt_tdesc desc[2 * GT_MAX_IO];
		struct gt_opcall call = {.code = e->code, .name = "x", .attr = e->attr, .accumulate = e->accumulate};
		struct gt_opcost got;
		char text[256];
		int n = 0;
		bool out = false;
		snprintf(text, sizeof text, "%s", e->operands);
		for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) {
			if (!strcmp(w, "->")) {
				out = true;
				continue;
			}
			struct gt_tdesc *d = NULL;
			if (*w != '-')
				*(d = &desc[n++]) = read_desc(w);
			*(out ? &call.out[call.nout++] : &call.in[call.nin++]) = d;
		}
		gt_opcall_cost(&call, &got);
		CHECK_MSG(got.read == e->read && got.written == e->written && got.kernels == e->kernels && got.pieces == e->pieces,
		          "%s (%s): expected %.0f bytes read, %.0f written, %d kernels, %.0f pieces; got %.0f, %.0f, %d, %.0f",
		          gt_opcode_name(e->code),
		          e->operands, e->read, e->written, e->kernels, e->pieces, got.read, got.written, got.kernels, got.pieces);
		CHECK_MSG(got.matrix == (e->pieces > 0), "%s: the products have no pieces", gt_opcode_name(e->code));
		CHECK_MSG(got.half == (got.matrix && desc[0].dtype == GT_BF16), "%s: wrong precision of its products", gt_opcode_name(e->code));
	}
}

TEST(every_operation_was_counted)
{
	for (int code = 0; code < GT_OP_COUNT; code++) {
		bool found = false;
		for (size_t i = 0; i < sizeof table / sizeof *table; i++)
			found |= table[i].code == (enum gt_opcode)code;
		CHECK_MSG(found, "%s has no row in this test", gt_opcode_name(code));
	}
}

/* 3 iterations; 12 x 12: three products of 2 x 12^3; 12 x 8: x'x and a x of 2 x 8 x 8 x 12, a a of 2 x 8^3. */
TEST(flops_of_muon)
{
	struct gt_tdesc p = read_desc("f32:200"), s = read_desc("f64:9");
	struct gt_opcall call = {.code = GT_OP_MUON, .attr = &muon, .nin = 4, .in = {&p, &p, &p, &s}};
	struct gt_opcost got;
	gt_opcall_cost(&call, &got);
	CHECK(got.flops == 3 * (3 * 2.0 * 1728 + 2 * 2.0 * 768 + 2.0 * 512));
}

/* Two passes over 288 values: 20 instructions for each of 5 operations, and 16 products and sums in rows and 4 in columns. */
TEST(instructions_of_recipes)
{
	static const struct gt_attr_recipes attr = {.ops = 5, .resize = true, .contrasts = 1};
	struct gt_tdesc rows = read_desc("u8:10x640"), index = read_desc("i64:6"), x = read_desc("bf16:6x3x4x4");
	struct gt_opcall call = {.code = GT_OP_GATHER_RECIPES, .attr = &attr, .nin = 3, .in = {&rows, NULL, &index}, .nout = 2, .out = {&x}};
	struct gt_opcost got;
	gt_opcall_cost(&call, &got);
	CHECK(got.flops == 2 * 288 * (5 * 20 + 40));
}

RUN_TESTS()
