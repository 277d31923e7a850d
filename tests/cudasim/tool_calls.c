/* The CUDA backend on the host's CUDA runtime (tests/cudasim/include) against the CPU backend: sizes around every vector, warp, block
 * and grid boundary, addresses off 16 bytes, in place. Run by test_cudasim.sh from build/cudasim.
 * Both backends compile the same scalar functions for this machine, so operations without sums must agree bit for bit. */
#include "losses.h"
#include "opsig.h"
#include "optimizer.h"
#include "pair.h"
#include "recipe.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t sizes[] = {1,   2,   3,    4,    5,    7,    8,    9,    31,   32,   33,   63,   255,
                                256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4097, 8193, 70001};
#define NSIZES (int)(sizeof sizes / sizeof *sizes)

TEST(eltwise)
{
	static const struct gt_attr_act attr_act = {{1.3, 20}};
	static const struct gt_attr_scale scale = {-0.3};
	static const struct gt_attr_gelu attr_gelu[2] = {{0}, {1}};
	static const char attr_none[1];
	static const struct {
		enum gt_opcode code;
		const void *attr;
	} ops[] = {
#define GT_X(arg, CODE, name, saved, numbers, grain, attr, ...) {GT_OP_##CODE, &attr_##attr}, {GT_OP_##CODE##_DX, &attr_##attr},
	    GT_ACTIVATIONS(GT_X)
#undef GT_X
	    {GT_OP_MUL, NULL},
	    {GT_OP_ADD, NULL},
	    {GT_OP_SCALE, &scale},
	};
	for (size_t c = 0; c < sizeof ops / sizeof *ops; c++)
		for (int t = 0; t < 3; t++)
			for (int s = 0; s < NSIZES; s++) {
				struct pair_job j = {.call = {.code = ops[c].code, .attr = ops[c].attr == attr_gelu ? &attr_gelu[s % 2] : ops[c].attr},
				                     .in_place = s % 3 == 1};
				struct gt_opsig sig;
				gt_opsig_read(ops[c].code, &sig);
				int nin = sig.in[sig.nin - 1].repeated ? 2 + s % 7 : sig.nin;
				for (int i = 0; i < nin; i++)
					pair_tensor(&j, false, pair_types[t], 1, &sizes[s], NULL);
				pair_tensor(&j, true, pair_types[t], 1, &sizes[s], NULL);
				pair_compare(&j, 0, "");
				j.shift = gt_dtype_size(pair_types[t]) * (size_t)(1 + s % 3);
				pair_compare(&j, 0, "");
				pair_free(&j);
			}
}

TEST(cast_rounds_and_keeps_nan)
{
	static const enum gt_dtype pairs[][2] = {{GT_F32, GT_BF16}, {GT_BF16, GT_F32}, {GT_F32, GT_F16},
	                                         {GT_F16, GT_F32},  {GT_F16, GT_BF16}, {GT_BF16, GT_F16}};
	for (int t = 0; t < 6; t++)
		for (int s = 0; s < NSIZES; s++) {
			struct pair_job j = {.call = {.code = GT_OP_CAST}};
			float *x = pair_filled(pairs[t][0], sizes[s], 5);
			if (pairs[t][0] == GT_F32) {
				for (int64_t i = 0; i < sizes[s] && t == 2; i++) /* below f16's normal numbers, and beyond its largest */
					x[i] *= i % 3 == 0 ? 1e-6f : i % 3 == 1 ? 3e-4f : 4e4f;
				x[sizes[s] / 2] = s % 2 ? NAN : INFINITY;
			}
			pair_tensor(&j, false, pairs[t][0], 1, &sizes[s], x);
			pair_tensor(&j, true, pairs[t][1], 1, &sizes[s], NULL);
			pair_compare(&j, 0, "");
			j.shift = 4;
			pair_compare(&j, 0, "");
			pair_free(&j);
		}
}

TEST(dropout)
{
	static const int64_t shapes[][2] = {{1, 1}, {3, 4}, {5, 7}, {2, 1023}, {2, 1024}, {2, 1025}, {7, 2052}, {70000, 3}};
	for (int s = 0; s < 8; s++)
		for (int t = 0; t < 3; t++) {
			if (shapes[s][0] > 65535 && t) /* more samples than a grid has rows: once is enough, it takes seconds here */
				continue;
			struct gt_attr_dropout attr = {.p = s == 3 ? 1 : 0.3, .layer = 4, .train = s != 5};
			struct pair_job j = {.call = {.code = GT_OP_DROPOUT, .attr = &attr},
			                     .step_args = {.seed = 9, .epoch = 3, .sample0 = 77, .stride = 2},
			                     .in_place = s % 2};
			pair_tensor(&j, false, pair_types[t], 2, shapes[s], NULL);
			pair_tensor(&j, true, pair_types[t], 2, shapes[s], NULL);
			pair_compare(&j, 0, "");
			j.shift = gt_dtype_size(pair_types[t]);
			if (shapes[s][0] <= 65535)
				pair_compare(&j, 0, "");
			pair_free(&j);
		}
}

TEST(dropout_of_channels_and_samples)
{
	static const int64_t shapes[][4] = {{1, 1, 1, 1},  {3, 4, 2, 2},   {5, 7, 3, 1},  {2, 64, 5, 5},
	                                   {2, 65, 4, 3}, {3, 2, 20, 30}, {7, 260, 1, 1}};
	for (int s = 0; s < 14; s++)
		for (int t = 0; t < 3; t++) {
			struct gt_attr_dropout attr = {.p = 0.3, .unit = s % 2 ? GT_DROP_CHANNELS : GT_DROP_SAMPLES, .layer = 4, .train = true};
			struct pair_job j = {.call = {.code = GT_OP_DROPOUT, .attr = &attr},
			                     .step_args = {.seed = 9, .epoch = 3, .sample0 = 77, .stride = 2},
			                     .in_place = s % 3 == 1};
			pair_tensor(&j, false, pair_types[t], 4, shapes[s / 2], NULL);
			pair_tensor(&j, true, pair_types[t], 4, shapes[s / 2], NULL);
			pair_compare(&j, 0, "");
			j.shift = gt_dtype_size(pair_types[t]);
			pair_compare(&j, 0, "");
			pair_free(&j);
		}
}

TEST(flatten)
{
	static const int64_t shapes[][4] = {{1, 3, 2, 2},     {2, 33, 7, 5}, {3, 32, 8, 8}, {2, 65, 6, 11},
	                                    {70000, 2, 1, 2}, {2, 1, 5, 5},  {4, 6, 1, 1}};
	for (int s = 0; s < 7; s++)
		for (int t = 0; t < 6; t++) {
			if (shapes[s][0] > 65535 && t)
				continue;
			int64_t flat[2] = {shapes[s][0], shapes[s][1] * shapes[s][2] * shapes[s][3]};
			struct pair_job j = {.call = {.code = t / 3 ? GT_OP_FLATTEN_DX : GT_OP_FLATTEN}};
			pair_tensor(&j, false, pair_types[t % 3], t / 3 ? 2 : 4, t / 3 ? flat : shapes[s], NULL);
			pair_tensor(&j, true, pair_types[t % 3], t / 3 ? 4 : 2, t / 3 ? shapes[s] : flat, NULL);
			pair_compare(&j, 0, "");
			pair_free(&j);
		}
}

TEST(concat)
{
	static const int64_t widths[][4] = {{1, 2, 3, 0}, {8, 16, 8, 32}, {4, 4, 0, 0}, {5, 0, 0, 0}, {128, 64, 0, 0}};
	for (int s = 0; s < 5; s++)
		for (int t = 0; t < 6; t++) {
			bool back = t / 3;
			struct pair_job j = {.call = {.code = back ? GT_OP_CONCAT_DX : GT_OP_CONCAT}};
			int64_t sum = 0, dim[4] = {3, 0, 5, 7};
			int n = 0;
			for (; n < 4 && widths[s][n]; n++) {
				dim[1] = widths[s][n];
				sum += dim[1];
				pair_tensor(&j, back, pair_types[t % 3], 4, dim, NULL);
			}
			dim[1] = sum;
			pair_tensor(&j, !back, pair_types[t % 3], 4, dim, NULL);
			pair_compare(&j, 0, "");
			j.shift = gt_dtype_size(pair_types[t % 3]);
			pair_compare(&j, 0, "");
			pair_free(&j);
		}
}

/* Sums of up to 5,000 f32 terms of order 1 in another order: 2^-24 * sqrt(5000) of the result, four times over. 16 bits: one rounding step
 * of a result just below 1 (2^-8, 2^-11), where that sum falls on the other side of a tie. */
static double sum_tol(enum gt_dtype t)
{
	return t == GT_BF16 ? 0x1p-7 : t == GT_F16 ? 0x1p-10 : 2e-5;
}

static const int64_t row_shapes[][2] = {{1, 1},    {9, 2},   {3, 31},  {8, 32},  {17, 33},  {5, 10},
                                        {300, 10}, {2, 511}, {2, 512}, {3, 513}, {2, 1000}, {1, 5000}};
#define NROWS (int)(sizeof row_shapes / sizeof *row_shapes)

TEST(softmax)
{
	static const enum gt_opcode codes[] = {GT_OP_SOFTMAX, GT_OP_SOFTMAX_DX, GT_OP_LOG_SOFTMAX, GT_OP_LOG_SOFTMAX_DX};
	for (int c = 0; c < 4; c++)
		for (int t = 0; t < 3; t++)
			for (int s = 0; s < NROWS; s++) {
				struct pair_job j = {.call = {.code = codes[c]}, .in_place = s % 2};
				for (int i = 0; i <= c % 2; i++)
					pair_tensor(&j, false, pair_types[t], 2, row_shapes[s], NULL);
				pair_tensor(&j, true, pair_types[t], 2, row_shapes[s], NULL);
				if (codes[c] ==
				    GT_OP_LOG_SOFTMAX_DX) /* y is a logarithm of a probability: exp(y) of the filling would grow beyond the sums above */
					for (int64_t i = 0; i < row_shapes[s][0] * row_shapes[s][1]; i++) {
						if (t == 0)
							((float *)j.in[1])[i] = -fabsf(((float *)j.in[1])[i]) - 7;
						else
							((uint16_t *)j.in[1])[i] = t == 1 ? 0xc0e0 : 0xc700; /* -7 */
					}
				pair_compare(&j, sum_tol(pair_types[t]), "");
				pair_free(&j);
			}
}

TEST(losses)
{
	for (int c = 0; c < GT_LOSS_COUNT; c++)
		for (int t = 0; t < 3; t++)
			for (int s = 0; s < 2 * NROWS; s++) {
				const int64_t *shape = row_shapes[s % NROWS], metrics = sizeof(struct gt_metrics) / 8;
				const struct gt_loss_row *row = &gt_loss_rows[c];
				struct gt_attr_loss attr = {.number = {s % 2 ? 0.5 : 0, 2}, .ignore_index = s % 3 ? -100 : 0};
				double *weights = malloc((size_t)shape[1] * sizeof *weights);
				for (int64_t i = 0; i < shape[1]; i++)
					weights[i] = 0.5 + (double)(i % 4) / 4;
				if (s % 5 == 2 && row->weight != GT_WEIGHT_NONE)
					attr.weights = weights, attr.nweights = shape[1];
				struct pair_job j = {.call = {.code = row->code, .attr = &attr}, .step_args = {.inv_weight = 1.0 / (double)shape[0]}};
				int32_t *target = malloc((size_t)shape[0] * 4);
				struct gt_metrics *m = calloc(1, sizeof *m);
				for (int64_t i = 0; i < shape[0]; i++)
					target[i] = (int32_t)(i * 7 % shape[1]);
				m->loss = 1.5, m->weight = 2;
				pair_tensor(&j, false, pair_types[t], 2, shape, NULL);
				pair_tensor(&j, false, GT_I32, 1, shape, target);
				if (s % 4 == 1) {
					double *scale = malloc(sizeof *scale);
					*scale = 6; /* of the gradient alone */
					pair_tensor(&j, false, GT_F64, 0, NULL, scale);
				}
				pair_tensor(&j, true, GT_F64, 1, &metrics, m); /* the counts are compared as the bits of doubles */
				if (s < NROWS)
					pair_tensor(&j, true, pair_types[t], 2, shape, NULL);
				pair_compare(&j, sum_tol(pair_types[t]), "");
				pair_free(&j);
				free(weights);
			}
}

/* x, w, b -> y; dy, w, y -> dx; dy, x -> dw, db, overwritten or added to. */
TEST(linear)
{
	static const int64_t shapes[][3] = {{1, 1, 1}, {1, 7, 5},     {6, 1, 9},     {6, 7, 1},    {1, 7, 1},   {1, 1, 9},
	                                    {6, 1, 1}, {4, 7, 5}, {32, 784, 33}, {100, 33, 70}, {9, 128, 32}, {513, 8, 65}}; /* N, in, out */
	static const enum gt_opcode codes[] = {GT_OP_LINEAR, GT_OP_LINEAR_DX, GT_OP_LINEAR_DW};
	for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
		for (int c = 0; c < 3; c++)
			for (int t = 0; t < 3; t++)
				for (int v = 0; v < 4; v++) {
					int64_t n = shapes[s][0], in = shapes[s][1], out = shapes[s][2], x[2] = {n, in}, y[2] = {n, out}, w[2] = {out, in};
					struct gt_attr_linear attr = {
					    .out = out, .bias = v % 2, .act = codes[c] == GT_OP_LINEAR && v / 2 ? GT_ACT_RELU : GT_ACT_NONE};
					struct pair_job j = {.call = {.code = codes[c], .attr = &attr}};
					pair_tensor(&j, false, pair_types[t], 2, codes[c] == GT_OP_LINEAR ? x : y, NULL);
					pair_tensor(&j, false, pair_types[t], 2, codes[c] == GT_OP_LINEAR_DW ? x : w, NULL);
					if (codes[c] == GT_OP_LINEAR && v % 2)
						pair_tensor(&j, false, GT_F32, 1, &out, NULL);
					if (codes[c] == GT_OP_LINEAR_DX && v % 2) /* the relu's mask */
						pair_tensor(&j, false, pair_types[t], 2, x, NULL);
					pair_tensor(&j, true, codes[c] == GT_OP_LINEAR_DW ? GT_F32 : pair_types[t], 2,
					            codes[c] == GT_OP_LINEAR      ? y
					            : codes[c] == GT_OP_LINEAR_DW ? w
					                                          : x,
					            NULL);
					if (codes[c] == GT_OP_LINEAR_DW && v % 2)
						pair_tensor(&j, true, GT_F32, 1, &out, NULL);
					if (codes[c] == GT_OP_LINEAR_DW && v / 2)
						j.call.accumulate = v % 2 ? 3 : 1;
					/* Sums of up to 784 products of values up to 3 in f32, in another order: 2^-24 * sqrt(784) * 9, relative to results of
					 * the order of sqrt(784) * 3 or, where they cancel, 1. 16-bit results: one rounding step, two for the bias, which
					 * the CUDA backend rounds first; relative to terms of 3. */
					pair_compare2(&j, 1e-4, pair_types[t] == GT_BF16 ? 3 * 0x1p-7 : 3 * 0x1p-10, "");
					pair_free(&j);
				}
}

TEST(sumsq_has_the_bits_of_the_cpu)
{
	for (int s = 0; s <= NSIZES; s++) {
		int64_t one = 1, n = s < NSIZES ? sizes[s] : (4096 << 11) + 5; /* more chunks than a block's memory holds */
		struct pair_job j = {.call = {.code = GT_OP_SUMSQ}};
		pair_tensor(&j, false, GT_F32, 1, &n, NULL);
		pair_tensor(&j, true, GT_F64, 0, &one, calloc(1, 8));
		pair_compare(&j, 0, "");
		pair_free(&j);
	}
}

#define SET_NUMBER(key, def) attr.key = strtod(def, NULL);
#define SET_FLAG(key, def) attr.key = flag;
#define SET_BETAS(key, def) attr.beta1 = 0.9, attr.beta2 = 0.999;
TEST(updates)
{
#define GT_X(NAME, ...) GT_OP_##NAME,
	static const enum gt_opcode codes[] = {GT_ELEMENT_UPDATES(GT_X) GT_NORM_UPDATES(GT_X)};
#undef GT_X
	for (size_t r = 0; r < 4 * sizeof codes / sizeof *codes; r++) {
		const struct gt_update_row *row = gt_update_row(codes[r / 4]);
		bool flag = r & 1, momentum = r & 2; /* flag: nesterov, decoupled, amsgrad and others: what the update uses of them */
		for (int s = 0; s < 24; s++) {
			int64_t n = 10003, words = GT_SCALARS_WORDS;
			/* segments that begin off a vector, are shorter than one, or longer than a chunk; with a gap */
			struct gt_seg seg[] = {{3, 4, 1, 0.1}, {4, 9, 2, 0}, {16, 5000 + s, 1, 0.01}, {5000 + s, n - s % 3, 0.5, 0}};
			struct gt_attr_update attr = {.decoupled = flag,
			                              .clip_norm = s % 4 == 3 ? 1 : 0,
			                              .clip_value = s % 4 == 2 ? 0.25 : 0,
			                              .seg = seg,
			                              .nseg = 4,
			                              .work_dtype = s % 2 ? GT_F16 : GT_BF16};
#define GT_X(P, A, KIND, key, def, ...) SET_##KIND(key, def)
			GT_OPTIMIZER_KEYS(GT_X, , )
#undef GT_X
			attr.momentum = momentum ? 0.9 : 0;
			attr.dampening = s % 2 ? 0.1 : 0;
			struct pair_job j = {.call = {.code = row->code, .attr = &attr}, .step_args = {.step = 1 + s % 5, .lr = {0.01}}};
			struct gt_scalars *scalars = calloc(1, sizeof *scalars);
			*scalars = (struct gt_scalars){.sumsq = 40, .inv_scale = s % 5 == 2 ? 0x1p-3 : 1, .skip = s % 6 == 4};
			pair_tensor(&j, false, GT_F32, 1, &n, NULL);
			pair_tensor(&j, false, GT_F32, 1, &n, NULL);
			for (int i = 0; i < row->nslots; i++) {
				float *state = pair_filled(GT_F32, n, (uint32_t)(20 + i));
				for (int64_t k = 0; k < n; k++)
					state[k] =
					    fabsf(state[k]) +
					    (i == 0 && row->code == GT_OP_RMSPROP ? 20.0f : 0.0f); /* a square average stands above the square of the average */
				pair_tensor(&j, false, GT_F32, 1, &n, state);
				if (!gt_update_has(row, &attr, i))
					j.call.in[2 + i] = NULL;
			}
			pair_tensor(&j, false, GT_F64, 1, &words, scalars);
			if (s % 4 == 0)
				j.call.in[j.call.nin - 1] = NULL;
			pair_tensor(&j, false, attr.work_dtype, 1, &n, NULL);
			if (s % 3 == 0)
				j.call.in[j.call.nin - 1] = NULL;
			else if (s % 2)
				j.copy = j.call.nin - 1;
			pair_compare(&j, 0, "");
			j.shift = s % 2 ? 16 : 8;
			pair_compare(&j, 0, "");
			pair_free(&j);
		}
	}
}

TEST(check)
{
	for (int s = 0; s < 32; s++) {
		int64_t words[2] = {GT_SCALARS_WORDS, GT_SCALER_WORDS}, bytes = 6 * sizeof(struct gt_step_args);
		struct gt_attr_check attr = {.scaling = s & 1, .dynamic = s & 2, .growth = 2, .backoff = 0.5, .interval = 3};
		struct gt_scalars *scalars = calloc(1, sizeof *scalars);
		struct gt_scaler *scaler = calloc(1, sizeof *scaler);
		struct gt_step_args *numbers = calloc(6, sizeof *numbers);
		*scalars = (struct gt_scalars){.metrics.loss = 3, .sumsq = s & 4 ? INFINITY : 5, .bound = 7};
		*scaler = (struct gt_scaler){.scale = 4096, .good = s & 8 ? 2 : 0, .halted = s >> 4};
		for (int i = 0; i < 6; i++)
			numbers[i] = (struct gt_step_args){.step = 4 + i / 2, .lr = {0.5 / (1 + i / 2), 3 - i}, .left = 5 - i};
		struct pair_job j = {.call = {.code = GT_OP_CHECK, .attr = &attr}};
		pair_tensor(&j, false, GT_F64, 1, &words[0], scalars);
		pair_tensor(&j, false, GT_F64, 1, &words[1], scaler);
		pair_tensor(&j, false, GT_U8, 1, &bytes, numbers);
		pair_compare(&j, 0, "");
		pair_free(&j);
	}
}

/* With the gradients it is the same as sumsq and then check, bit for bit: sizes around a chunk and the tree, sums that overflow, a NaN. */
TEST(check_with_the_gradients)
{
	static const int64_t lengths[] = {0, 1, 4095, 4097, 70001, 4096 * 2049 + 5};
	for (int s = 0; s < 48; s++) {
		int64_t words[2] = {GT_SCALARS_WORDS, GT_SCALER_WORDS}, bytes = 6 * sizeof(struct gt_step_args), n = lengths[s % 6];
		if (n > 1000000 && s > 6)
			continue;
		struct gt_attr_check attr = {.scaling = s / 6 & 1, .dynamic = s / 6 & 2, .growth = 2, .backoff = 0.5, .interval = 3};
		struct gt_scalars *scalars = calloc(2, sizeof *scalars);
		struct gt_scaler *scaler = calloc(2, sizeof *scaler);
		struct gt_step_args *numbers = calloc(12, sizeof *numbers);
		void *two[PAIR_T] = {0}, *one[PAIR_T] = {0}, *sum[PAIR_T] = {0};
		scalars->metrics.loss = 3;
		*scaler = (struct gt_scaler){.scale = 4096, .good = s & 8 ? 2 : 0, .halted = s / 6 == 6};
		for (int i = 0; i < 6; i++)
			numbers[i] = (struct gt_step_args){.step = 4 + i / 2, .lr = {0.5 / (1 + i / 2), 3 - i}, .left = 5 - i};
		float *g = pair_filled(GT_F32, n, 3);
		if (n && s / 6 > 3)
			g[n / 2] = s & 1 ? NAN : INFINITY;
		struct pair_job norm = {.call = {.code = GT_OP_SUMSQ}}, j = {.call = {.code = GT_OP_CHECK, .attr = &attr}};
		pair_tensor(&norm, false, GT_F32, 1, &n, g);
		pair_tensor(&norm, true, GT_F64, 0, NULL, NULL);
		pair_tensor(&j, false, GT_F64, 1, &words[0], scalars);
		pair_tensor(&j, false, GT_F64, 1, &words[1], scaler);
		pair_tensor(&j, false, GT_U8, 1, &bytes, numbers);
		struct pair_job both = j;
		pair_absent(&both, false);
		pair_tensor(&both, false, GT_F32, 1, &n, memcpy(malloc((size_t)n * 4 + 4), g, (size_t)n * 4));
		both.call.in[0] = &both.d[0], both.call.in[1] = &both.d[1], both.call.in[2] = &both.d[2];
		pair_run_cuda(&both, one);
		pair_run_cuda_out(&norm, sum, &scalars->sumsq, sizeof scalars->sumsq);
		pair_run_cuda(&j, two);
		for (int i = 0; i < 3 && one[i] && two[i]; i++)
			CHECK_MSG(!memcmp(one[i], two[i], i == 2 ? (size_t)bytes : 8 * (size_t)words[i]),
			          "%lld gradients, variant %d: operand %d differs", (long long)n, s / 6, i);
		CHECK(one[0] && two[0] && (n == 0 || ((struct gt_scalars *)one[0])->sumsq != 0));
		for (int i = 0; i < PAIR_T; i++)
			free(one[i]), free(two[i]), free(sum[i]);
		free(both.in[4]);
		pair_free(&norm);
		pair_free(&j);
	}
}

TEST(gather)
{
	static const int64_t shapes[][4] = {{5, 1, 28, 28}, {4, 3, 8, 9}, {70000, 1, 1, 1}, {3, 16, 4, 4}};
	for (int s = 0; s < 4; s++)
		for (int k = 0; k < 36; k++) {
			const int64_t *x = shapes[s];
			int t = k % 18;
			bool pad = k >= 18;
			if ((x[0] > 65535 && t != (pad ? 4 : 3)) || (pad && (t % 3 == 0 || x[1] % GT_CHANNEL_PAD == 0)))
				continue;
			int views = t == 1 || t == 10 ? 2 : t == 2 || t >= 16 ? 6 : 1;
			if (x[2] < 2 && views > 1)
				continue;
			int64_t wide[4] = {x[0] * views, x[1], x[2], x[3]};
			bool order = t >= 9; /* an order of three epochs, of which every second sample from the fifth on is taken */
			int64_t rows[2] = {3, 2 * x[0] + 7}, count = order ? rows[0] * rows[1] : x[0];
			int64_t m = 11, images[4] = {m, x[1], x[2], x[3]}, bytes = m * x[1] * x[2] * x[3];
			struct gt_attr_gather attr = {.pad = t / 3 % 3 && x[2] > 2 ? 2 : 0,
			                              .pad_reflect = t / 3 % 3 == 2,
			                              .hflip = 0.5,
			                              .augment = t / 3 % 3 > 0,
			                              .hflip_alternate = t / 3 % 3 == 1,
			                              .views = views};
			struct pair_job j = {.call = {.code = GT_OP_GATHER, .attr = &attr},
			                     .step_args = {.seed = 4, .epoch = 5, .sample0 = 4, .stride = 2}};
			uint8_t *u = malloc((size_t)bytes);
			int32_t *label = malloc((size_t)m * 4);
			int64_t *index = malloc((size_t)count * 8);
			for (int64_t i = 0; i < bytes; i++)
				u[i] = (uint8_t)(i * 37 >> 2);
			for (int64_t i = 0; i < m; i++)
				label[i] = (int32_t)(i % 10);
			for (int64_t i = 0; i < count; i++)
				index[i] = i * 5 / 3 % m;
			for (int i = 0; i < GT_MAX_CHANNELS; i++)
				attr.scale[i] = 0.01f * (float)(i + 1), attr.shift[i] = -0.3f * (float)i;
			pair_tensor(&j, false, GT_U8, 4, images, u);
			pair_tensor(&j, false, GT_I32, 1, &m, label);
			pair_tensor(&j, false, GT_I64, order ? 2 : 1, order ? rows : x, index);
			pair_tensor(&j, true, pair_types[t % 3], 4, wide, NULL);
			if (pad)
				pair_pad(&j, true);
			pair_tensor(&j, true, GT_I32, 1, x, NULL);
			pair_compare(&j, 0, pad ? "padded" : "");
			pair_free(&j);
		}
}

/* A recipe of random operations for an image of x[1] x x[2] x x[3]. */
static void random_recipe(uint8_t *row, const struct gt_attr_recipes *a, const int64_t *x, uint32_t seed)
{
	int32_t n = a->ops, c = (int32_t)x[1], h = (int32_t)x[2], w = (int32_t)x[3];
	struct gt_recipe r = {.n = (int32_t)(seed % (uint32_t)(n + 1))};
	struct gt_philox part = gt_philox4x32(seed, 99, 0, 0, 7, 11);
	if (a->resize && seed % 4) { /* a part of between the size of the image and 1.6 times as much, in a larger box */
		int32_t ph = h + (int32_t)(part.v[0] % (uint32_t)(1 + h * 6 / 10)), pw = w + (int32_t)(part.v[1] % (uint32_t)(1 + w * 6 / 10));
		r.resize = 1 + (int32_t)(part.v[2] & 1);
		r.bicubic = (int32_t)(part.v[2] >> 1 & 1);
		r.stride = pw * c;
		r.y = (struct gt_recipe_axis){0.25, ph - 0.5, ph, h, 0, 0};
		r.x = (struct gt_recipe_axis){0, pw, pw, w, 0, 0};
	}
	memcpy(row, &r, sizeof r);
	for (int i = 0; i < r.n; i++) {
		struct gt_philox d = gt_philox4x32(seed, (uint32_t)i, 0, 0, 7, 11);
		struct gt_recipe_op o = {.noise = d.v[0], .kind = (int32_t)(d.v[1] % (GT_RECIPE_NOISE + 1)), .shift = (int32_t)(d.v[2] & 255)};
		if (!a->contrasts && o.kind == GT_RECIPE_CONTRAST)
			o.kind = GT_RECIPE_BRIGHTNESS;
		bool crops = o.kind <= GT_RECIPE_CROP_REFLECT;
		o.factor = 2 * gt_rng_uniform(d.v[3]);
		o.top = crops ? (int32_t)(d.v[0] % 5) - 2 : (int32_t)(d.v[0] % (uint32_t)h);
		o.left = crops ? (int32_t)(d.v[2] % 5) - 2 : (int32_t)(d.v[2] % (uint32_t)w);
		o.height = (int32_t)(d.v[3] % (uint32_t)(h - o.top)) + 1;
		o.width = (int32_t)((d.v[3] >> 8) % (uint32_t)(w - o.left)) + 1;
		memcpy(o.fill, &d.v[1], sizeof o.fill);
		memcpy(row + sizeof r + (size_t)i * sizeof o, &o, sizeof o);
	}
}

TEST(gather_recipes)
{
	static const int64_t shapes[][4] = {{3, 1, 9, 11}, {3, 3, 13, 9}, {2, 3, 23, 29}, {520, 1, 3, 3}};
	for (int s = 0; s < 4; s++)
		for (int t = 0; t < 24; t++) {
			const int64_t *x = shapes[s];
			bool pad = t >= 12, order = t % 12 >= 6, resize = t % 2;
			int views = t % 6 == 4 ? 2 : t % 6 == 5 ? 6 : 1, ops = t % 6 == 3 ? 0 : t % 6 == 0 ? 9 : 4;
			if ((x[0] > 512 && t != 13) || (pad && t % 3 == 0))
				continue;
			int64_t m = 11, row = gt_recipe_row(ops, x[1] * x[2] * x[3] * (resize ? 3 : 1)), all[2] = {m, row};
			int64_t wide[4] = {x[0] * views, x[1], x[2], x[3]};
			int64_t rows[2] = {3, 2 * x[0] + 7}, count = order ? rows[0] * rows[1] : x[0];
			struct gt_attr_recipes attr = {.gather.views = views, .ops = ops, .resize = resize, .contrasts = t % 4 ? ops : 0};
			struct pair_job j = {.call = {.code = GT_OP_GATHER_RECIPES, .attr = &attr},
			                     .step_args = {.epoch = 5, .sample0 = 4, .stride = 2}};
			uint8_t *u = malloc((size_t)(m * row));
			int32_t *label = malloc((size_t)m * 4);
			int64_t *index = malloc((size_t)count * 8);
			for (int64_t i = 0; i < m * row; i++)
				u[i] = (uint8_t)(gt_philox4x32((uint32_t)i, 1, 2, 3, 4, 5).v[0]);
			for (int64_t i = 0; i < m; i++) {
				random_recipe(u + i * row, &attr, x, (uint32_t)(i * 31 + t));
				label[i] = (int32_t)(i % 10);
			}
			for (int64_t i = 0; i < count; i++)
				index[i] = i * 5 / 3 % m;
			for (int i = 0; i < GT_MAX_CHANNELS; i++)
				attr.gather.scale[i] = 0.01f * (float)(i + 1), attr.gather.shift[i] = -0.3f * (float)i;
			pair_tensor(&j, false, GT_U8, 2, all, u);
			pair_tensor(&j, false, GT_I32, 1, &m, label);
			pair_tensor(&j, false, GT_I64, order ? 2 : 1, order ? rows : x, index);
			pair_tensor(&j, true, pair_types[t % 3], 4, wide, NULL);
			if (pad)
				pair_pad(&j, true);
			pair_tensor(&j, true, GT_I32, 1, x, NULL);
			pair_compare(&j, 0, pad ? "padded" : "");
			pair_free(&j);
		}
}

TEST(gather_rows)
{
	for (int t = 0; t < 8; t++) {
		bool order = t >= 4;
		int64_t n = t & 1 ? 70000 : 13, width = t & 1 ? 1 : 300, m = 11, all[2] = {m, width}, wide[2] = {2 * n, width};
		int64_t rows[2] = {3, 2 * n + 7}, count = order ? rows[0] * rows[1] : n;
		struct gt_attr_views attr = {2};
		struct pair_job j = {.call = {.code = GT_OP_GATHER_ROWS, .attr = &attr}, .step_args = {.epoch = 5, .sample0 = 4, .stride = 2}};
		uint32_t *from = malloc((size_t)(m * width) * 4);
		int64_t *index = malloc((size_t)count * 8);
		for (int64_t i = 0; i < m * width; i++) {
			float f = (float)(i * 37 % 101) / 7 - 5;
			memcpy(&from[i], &f, 4);
		}
		for (int64_t i = 0; i < count; i++)
			index[i] = i * 5 / 3 % m;
		pair_tensor(&j, false, t % 4 == 3 ? GT_I32 : GT_F32, 2, all, from);
		pair_tensor(&j, false, GT_I64, order ? 2 : 1, order ? rows : &n, index);
		pair_tensor(&j, true, t % 4 == 3 ? GT_I32 : pair_types[t % 4], 2, wide, NULL);
		pair_compare(&j, 0, "");
		pair_free(&j);
	}
}

TEST(gather_ragged)
{
	for (int t = 0; t < 4; t++) {
		bool order = t >= 2;
		int64_t n = t & 1 ? 70000 : 13, width = t & 1 ? 3 : 300, m = 11, ends = m + 1, total = 0, wide[2] = {2 * n, width};
		int64_t rows[2] = {3, 2 * n + 7}, count = order ? rows[0] * rows[1] : n, start[12] = {0};
		struct gt_attr_ragged attr = {2, -3};
		struct pair_job j = {.call = {.code = GT_OP_GATHER_RAGGED, .attr = &attr}, .step_args = {.epoch = 5, .sample0 = 4, .stride = 2}};
		for (int64_t i = 0; i < m; i++)
			start[i + 1] = total += i * 7 % (width + 1); /* the first one is empty */
		int32_t *from = malloc((size_t)total * 4);
		int64_t *index = malloc((size_t)count * 8), *to = malloc(sizeof start);
		memcpy(to, start, sizeof start);
		for (int64_t i = 0; i < total; i++)
			from[i] = (int32_t)(i * 37 % 101);
		for (int64_t i = 0; i < count; i++)
			index[i] = i * 5 / 3 % m;
		pair_tensor(&j, false, GT_I32, 1, &total, from);
		pair_tensor(&j, false, GT_I64, 1, &ends, to);
		pair_tensor(&j, false, GT_I64, order ? 2 : 1, order ? rows : &n, index);
		pair_tensor(&j, true, GT_I32, 2, wide, NULL);
		pair_compare(&j, 0, "");
		pair_free(&j);
	}
}

/* Around the number of samples that a thread of the kernel reads at once, and beyond what one row of its grid takes. */
TEST(positional)
{
	static const int64_t samples[] = {1, 7, 8, 9, 23, 65};
	for (int s = 0; s < 6; s++)
		for (int t = 0; t < 9; t++) {
			const int64_t shape[3] = {samples[s], 5, 67}, table[2] = {t / 3 == 1 ? 2 : 5, 67};
			struct gt_attr_positional attr = {
			    table[0], t / 3 == 0 ? GT_POSITIONAL_LEARNED : t / 3 == 1 ? GT_POSITIONAL_SAME : GT_POSITIONAL_SINUSOIDAL};
			struct pair_job j = {.call = {.code = GT_OP_POSITIONAL, .attr = &attr}, .in_place = s % 2};
			pair_tensor(&j, false, pair_types[t % 3], 3, shape, NULL);
			if (t / 3 < 2)
				pair_tensor(&j, false, GT_F32, 2, table, NULL);
			pair_tensor(&j, true, pair_types[t % 3], 3, shape, NULL);
			pair_compare(&j, t / 3 < 2 ? 0 : sum_tol(pair_types[t % 3]), "");
			pair_free(&j);
		}
}

TEST(sums_of_rows)
{
	for (int s = 0; s < NROWS; s++)
		for (int t = 0; t < 9; t++) {
			const int64_t *x = row_shapes[s], all[2] = {x[0] * (t / 3 == 1 ? 2 : 6), x[1]};
			struct gt_attr_views attr = {t / 3 == 1 ? 2 : 6};
			struct pair_job j = {.call = {.code = t / 3 ? GT_OP_VIEWS_MEAN : GT_OP_BIAS_DB, .attr = &attr}};
			if (t < 3)
				j.call.accumulate = s % 2;
			pair_tensor(&j, false, pair_types[t % 3], 2, t / 3 ? all : x, NULL);
			pair_tensor(&j, true, t / 3 ? pair_types[t % 3] : GT_F32, t / 3 ? 2 : 1, t / 3 ? x : x + 1, NULL);
			pair_compare2(&j, 2e-5, sum_tol(pair_types[t % 3]), "");
			pair_free(&j);
		}
}

TEST(all_calls_were_made)
{
	pair_report(3000);
}

RUN_TESTS()
