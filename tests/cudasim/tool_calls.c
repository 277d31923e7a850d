/* The CUDA backend on the host's CUDA runtime (tests/cudasim/include) against the CPU backend: sizes around every vector, warp, block
 * and grid boundary, addresses off 16 bytes, in place. Run by test_cudasim.sh from build/cudasim.
 * Both backends compile the same scalar functions for this machine, so operations without sums must agree bit for bit. */
#include "backend.h"
#include "base/philox.h"
#include "base/plugin.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_T 10
#define PAD 64 /* bytes behind every tensor, which must stay as they are */

static const struct gt_backend *be[2];
static struct gt_dev *dev[2];
enum { CPU, CUDA };

static bool open_both(void)
{
	static const char *const names[2] = {"cpu", "cuda"}, *const symbols[2] = {"gt_backend_cpu", "gt_backend_cuda"};
	struct gt_err e = {0};
	for (int i = 0; i < 2 && !dev[i]; i++) {
		void *p;
		CHECK_OK(gt_plugin_open(names[i], symbols[i], &p, &e), e);
		if (e.code)
			return false;
		be[i] = p;
		CHECK_OK(be[i]->open(&(struct gt_dev_opts){.threads = 2, .deterministic = true}, &dev[i], &e), e);
	}
	return dev[CPU] && dev[CUDA];
}

/* A call with its host data. in and out hold the tensors in physical order; outputs begin as they stand here. */
struct job {
	struct gt_opcall call;
	struct gt_tdesc d[2 * MAX_T];
	void *in[MAX_T], *out[MAX_T];
	struct gt_dyn dyn;
	bool in_place; /* out[0] is in[0] */
	size_t shift;  /* bytes from an aligned address to each tensor, on the CUDA side */
};

static void *filled(enum gt_dtype t, int64_t n, uint32_t seed)
{
	float *f = malloc((size_t)n * 8 + 8);
	uint16_t *h = (uint16_t *)f;
	for (int64_t i = 0; i < n; i++) {
		float x = gt_rng_uniform(gt_philox4x32((uint32_t)i, seed, 0, 0, 7, 11).v[0]) * 6 - 3;
		uint32_t u;
		memcpy(&u, &x, 4);
		if (t == GT_BF16)
			h[i] = (uint16_t)(u >> 16);
		else
			f[i] = x;
	}
	return f;
}

static void job_tensor(struct job *j, bool out, enum gt_dtype t, int rank, const int64_t *dim, void *data)
{
	int i = out ? j->call.nout++ : j->call.nin++;
	struct gt_tdesc *d = &j->d[out ? MAX_T + i : i];
	*d = gt_tdesc_make(t, rank, dim, true);
	(out ? j->call.out : j->call.in)[i] = d;
	(out ? j->out : j->in)[i] = data ? data : filled(t, gt_tdesc_count(d), (uint32_t)(i + 3));
}

static void job_free(struct job *j)
{
	for (int i = 0; i < MAX_T; i++)
		free(j->in[i]), free(j->out[i]);
}

struct held {
	char *base, *p;
	size_t bytes;
};

static struct held to_device(int side, const struct job *j, const struct gt_tdesc *d, const void *host)
{
	struct gt_err e = {0};
	size_t shift = side == CUDA ? j->shift : 0, bytes = gt_tdesc_bytes(d);
	struct held h = {.bytes = bytes};
	char *stage = malloc(bytes + PAD + shift);
	void *p = NULL;
	memset(stage, 0x5a, bytes + PAD + shift);
	memcpy(stage + shift, host, bytes);
	CHECK_OK(be[side]->alloc(dev[side], bytes + PAD + shift, &p, &e), e);
	CHECK_OK(be[side]->copy(dev[side], p, stage, bytes + PAD + shift, GT_COPY_H2D, 0, &e), e);
	free(stage);
	h.base = p;
	h.p = h.base + shift;
	return h;
}

static void from_device(int side, const struct held *h, void *host)
{
	struct gt_err e = {0};
	unsigned char behind[PAD];
	CHECK_OK(be[side]->copy(dev[side], host, h->p, h->bytes, GT_COPY_D2H, 0, &e), e);
	CHECK_OK(be[side]->copy(dev[side], behind, h->p + h->bytes, PAD, GT_COPY_D2H, 0, &e), e);
	for (int i = 0; i < PAD; i++)
		if (behind[i] != 0x5a) {
			test_fail(__FILE__, __LINE__, "wrote behind a tensor");
			break;
		}
	be[side]->free(dev[side], h->base);
}

/* Runs the job on one side; the inputs (updates change them) and outputs as they are then go to `in` and `out`. */
static bool run(int side, const struct job *j, void **in, void **out)
{
	struct gt_err e = {0};
	struct gt_opcall call = j->call;
	struct gt_tdesc d[2 * MAX_T];
	struct held hin[MAX_T] = {{0}}, hout[MAX_T] = {{0}};
	void *pin[MAX_T] = {0}, *pout[MAX_T] = {0}, *scratch = NULL;
	struct gt_kernel *k;
	memcpy(d, j->d, sizeof d);
	for (int i = 0; i < call.nin; i++)
		call.in[i] = j->call.in[i] ? &d[i] : NULL;
	for (int i = 0; i < call.nout; i++)
		call.out[i] = &d[MAX_T + i];
	if (be[side]->prepare(dev[side], &call, &k, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return false;
	}
	for (int i = 0; i < call.nin; i++)
		if (call.in[i]) {
			hin[i] = to_device(side, j, &d[i], j->in[i]);
			pin[i] = hin[i].p;
		}
	for (int i = 0; i < call.nout; i++)
		if (!(i == 0 && j->in_place)) {
			hout[i] = to_device(side, j, &d[MAX_T + i], j->out[i]);
			pout[i] = hout[i].p;
		}
	if (j->in_place)
		pout[0] = pin[0];
	CHECK_OK(be[side]->alloc(dev[side], be[side]->scratch(k) + 1, &scratch, &e), e);
	struct gt_launch a = {.in = pin, .out = pout, .scratch = scratch, .dyn = &j->dyn};
	CHECK_OK(be[side]->launch(dev[side], k, &a, &e), e);
	be[side]->release(dev[side], k);
	for (int i = 0; i < call.nin; i++)
		if (call.in[i])
			from_device(side, &hin[i], in[i] = malloc(hin[i].bytes + 1));
	for (int i = 0; i < call.nout; i++)
		if (hout[i].base)
			from_device(side, &hout[i], out[i] = malloc(hout[i].bytes + 1));
	be[side]->free(dev[side], scratch);
	return e.code == GT_OK;
}

static double number(enum gt_dtype t, const void *p, int64_t i)
{
	uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
	float f;
	memcpy(&f, &u, 4);
	return t == GT_F32    ? (double)((const float *)p)[i]
	       : t == GT_F64  ? ((const double *)p)[i]
	       : t == GT_BF16 ? (double)f
	                      : (double)((const int32_t *)p)[i];
}

/* tol 0: the same bits. Else |a - b| <= tol * max(1, |b|). */
static void same(const struct job *j, const struct gt_tdesc *d, const void *cpu, const void *cuda, double tol, const char *what)
{
	char shape[96];
	int64_t n = gt_tdesc_count(d);
	if (tol == 0 && !memcmp(cpu, cuda, gt_tdesc_bytes(d)))
		return;
	for (int64_t i = 0; i < n; i++) {
		double a = number(d->dtype, cpu, i), b = number(d->dtype, cuda, i);
		size_t size = gt_dtype_size(d->dtype);
		bool bits = !memcmp((const char *)cpu + (size_t)i * size, (const char *)cuda + (size_t)i * size, size);
		if (bits || (tol > 0 && fabs(a - b) <= tol * fmax(1, fabs(a))) || (isnan(a) && isnan(b)))
			continue;
		test_fail(__FILE__, __LINE__, "%s %s %s: %s[%lld] is %.9g, the CPU has %.9g%s", gt_opcode_name(j->call.code),
		          gt_dtype_name(d->dtype), gt_tdesc_text(d, shape, sizeof shape), what, (long long)i, b, a,
		          j->shift      ? " (shifted)"
		          : j->in_place ? " (in place)"
		                        : "");
		return;
	}
}

static int compared;

static void compare(const struct job *j, double tol)
{
	void *in[2][MAX_T] = {{0}}, *out[2][MAX_T] = {{0}};
	if (open_both() && run(CPU, j, in[0], out[0]) && run(CUDA, j, in[1], out[1])) {
		for (int i = 0; i < j->call.nin; i++)
			if (in[0][i])
				same(j, &j->d[i], in[0][i], in[1][i], tol, "input");
		for (int i = 0; i < j->call.nout; i++)
			if (out[0][i])
				same(j, &j->d[MAX_T + i], out[0][i], out[1][i], tol, "output");
		compared++;
	}
	for (int s = 0; s < 2; s++)
		for (int i = 0; i < MAX_T; i++)
			free(in[s][i]), free(out[s][i]);
}

static const enum gt_dtype types[2] = {GT_F32, GT_BF16};
static const int64_t sizes[] = {1,   2,   3,    4,    5,    7,    8,    9,    31,   32,   33,   63,   255,
                                256, 257, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4097, 8193, 70001};
#define NSIZES (int)(sizeof sizes / sizeof *sizes)

TEST(eltwise)
{
	struct gt_attr_leaky leaky = {0.1};
	struct gt_attr_gelu gelu[2] = {{0}, {1}};
	static const enum gt_opcode codes[] = {
	    GT_OP_RELU,    GT_OP_RELU_DX, GT_OP_LEAKY_RELU, GT_OP_LEAKY_RELU_DX, GT_OP_SIGMOID, GT_OP_SIGMOID_DX, GT_OP_TANH,
	    GT_OP_TANH_DX, GT_OP_GELU,    GT_OP_GELU_DX,    GT_OP_SILU,          GT_OP_SILU_DX, GT_OP_MUL,        GT_OP_ADD};
	for (int c = 0; c < 14; c++)
		for (int t = 0; t < 2; t++)
			for (int s = 0; s < NSIZES; s++) {
				bool leak = codes[c] == GT_OP_LEAKY_RELU || codes[c] == GT_OP_LEAKY_RELU_DX;
				struct job j = {.call = {.code = codes[c], .attr = leak ? (void *)&leaky : &gelu[s % 2]}, .in_place = s % 3 == 1};
				int nin = codes[c] == GT_OP_ADD ? 2 + s % 7 : codes[c] == GT_OP_MUL || strstr(gt_opcode_name(codes[c]), ".dx") ? 2 : 1;
				for (int i = 0; i < nin; i++)
					job_tensor(&j, false, types[t], 1, &sizes[s], NULL);
				job_tensor(&j, true, types[t], 1, &sizes[s], NULL);
				compare(&j, 0);
				j.shift = gt_dtype_size(types[t]) * (size_t)(1 + s % 3);
				compare(&j, 0);
				job_free(&j);
			}
}

TEST(cast_rounds_and_keeps_nan)
{
	for (int t = 0; t < 2; t++)
		for (int s = 0; s < NSIZES; s++) {
			struct job j = {.call = {.code = GT_OP_CAST}};
			float *x = filled(types[t], sizes[s], 5);
			if (t == 0)
				x[sizes[s] / 2] = s % 2 ? NAN : INFINITY;
			job_tensor(&j, false, types[t], 1, &sizes[s], x);
			job_tensor(&j, true, types[1 - t], 1, &sizes[s], NULL);
			compare(&j, 0);
			j.shift = 4;
			compare(&j, 0);
			job_free(&j);
		}
}

TEST(dropout)
{
	static const int64_t shapes[][2] = {{1, 1}, {3, 4}, {5, 7}, {2, 1023}, {2, 1024}, {2, 1025}, {7, 2052}, {70000, 3}};
	for (int s = 0; s < 8; s++)
		for (int t = 0; t < 2; t++) {
			if (shapes[s][0] > 65535 && t) /* more samples than a grid has rows: once is enough, it takes seconds here */
				continue;
			struct gt_attr_dropout attr = {.p = s == 3 ? 1 : 0.3, .layer = 4, .train = s != 5};
			struct job j = {.call = {.code = GT_OP_DROPOUT, .attr = &attr},
			                .dyn = {.seed = 9, .epoch = 3, .sample0 = 77, .stride = 2},
			                .in_place = s % 2};
			job_tensor(&j, false, types[t], 2, shapes[s], NULL);
			job_tensor(&j, true, types[t], 2, shapes[s], NULL);
			compare(&j, 0);
			j.shift = gt_dtype_size(types[t]);
			if (shapes[s][0] <= 65535)
				compare(&j, 0);
			job_free(&j);
		}
}

TEST(flatten)
{
	static const int64_t shapes[][4] = {{1, 3, 2, 2},     {2, 33, 7, 5}, {3, 32, 8, 8}, {2, 65, 6, 11},
	                                    {70000, 2, 1, 2}, {2, 1, 5, 5},  {4, 6, 1, 1}};
	for (int s = 0; s < 7; s++)
		for (int t = 0; t < 4; t++) {
			if (shapes[s][0] > 65535 && t)
				continue;
			int64_t flat[2] = {shapes[s][0], shapes[s][1] * shapes[s][2] * shapes[s][3]};
			struct job j = {.call = {.code = t / 2 ? GT_OP_FLATTEN_DX : GT_OP_FLATTEN}};
			job_tensor(&j, false, types[t % 2], t / 2 ? 2 : 4, t / 2 ? flat : shapes[s], NULL);
			job_tensor(&j, true, types[t % 2], t / 2 ? 4 : 2, t / 2 ? shapes[s] : flat, NULL);
			compare(&j, 0);
			job_free(&j);
		}
}

TEST(concat)
{
	static const int64_t widths[][4] = {{1, 2, 3, 0}, {8, 16, 8, 32}, {4, 4, 0, 0}, {5, 0, 0, 0}, {128, 64, 0, 0}};
	for (int s = 0; s < 5; s++)
		for (int t = 0; t < 4; t++) {
			bool back = t / 2;
			struct job j = {.call = {.code = back ? GT_OP_CONCAT_DX : GT_OP_CONCAT}};
			int64_t sum = 0, dim[4] = {3, 0, 5, 7};
			int n = 0;
			for (; n < 4 && widths[s][n]; n++) {
				dim[1] = widths[s][n];
				sum += dim[1];
				job_tensor(&j, back, types[t % 2], 4, dim, NULL);
			}
			dim[1] = sum;
			job_tensor(&j, !back, types[t % 2], 4, dim, NULL);
			compare(&j, 0);
			j.shift = gt_dtype_size(types[t % 2]);
			compare(&j, 0);
			job_free(&j);
		}
}

/* Sums of up to 5,000 f32 terms of order 1 in another order: 2^-24 * sqrt(5000) of the result, four times over. bf16: one rounding step. */
static double sum_tol(enum gt_dtype t)
{
	return t == GT_BF16 ? 0x1p-7 : 2e-5;
}

static const int64_t row_shapes[][2] = {{1, 1},    {9, 2},   {3, 31},  {8, 32},  {17, 33},  {5, 10},
                                        {300, 10}, {2, 511}, {2, 512}, {3, 513}, {2, 1000}, {1, 5000}};
#define NROWS (int)(sizeof row_shapes / sizeof *row_shapes)

TEST(softmax)
{
	static const enum gt_opcode codes[] = {GT_OP_SOFTMAX, GT_OP_SOFTMAX_DX, GT_OP_LOG_SOFTMAX, GT_OP_LOG_SOFTMAX_DX};
	for (int c = 0; c < 4; c++)
		for (int t = 0; t < 2; t++)
			for (int s = 0; s < NROWS; s++) {
				struct job j = {.call = {.code = codes[c]}, .in_place = s % 2};
				for (int i = 0; i <= c % 2; i++)
					job_tensor(&j, false, types[t], 2, row_shapes[s], NULL);
				job_tensor(&j, true, types[t], 2, row_shapes[s], NULL);
				if (codes[c] ==
				    GT_OP_LOG_SOFTMAX_DX) /* y is a logarithm of a probability: exp(y) of the filling would grow beyond the sums above */
					for (int64_t i = 0; i < row_shapes[s][0] * row_shapes[s][1]; i++) {
						if (t == 0)
							((float *)j.in[1])[i] = -fabsf(((float *)j.in[1])[i]) - 7;
						else
							((uint16_t *)j.in[1])[i] = 0xc0e0; /* -7 */
					}
				compare(&j, sum_tol(types[t]));
				job_free(&j);
			}
}

TEST(losses)
{
	static const enum gt_opcode codes[] = {GT_OP_CROSS_ENTROPY, GT_OP_NLL, GT_OP_MSE};
	for (int c = 0; c < 3; c++)
		for (int t = 0; t < 2; t++)
			for (int s = 0; s < 2 * NROWS; s++) {
				const int64_t *shape = row_shapes[s % NROWS], metrics = sizeof(struct gt_metrics) / 8;
				struct gt_attr_loss attr = {.label_smoothing = s % 2 ? 0.1 : 0, .ignore_index = s % 3 ? -100 : 0};
				struct job j = {.call = {.code = codes[c], .attr = &attr}, .dyn = {.inv_weight = 1.0 / (double)shape[0]}};
				int32_t *target = malloc((size_t)shape[0] * 4);
				struct gt_metrics *m = calloc(1, sizeof *m);
				for (int64_t i = 0; i < shape[0]; i++)
					target[i] = (int32_t)(i * 7 % shape[1]);
				m->loss = 1.5, m->weight = 2;
				job_tensor(&j, false, types[t], 2, shape, NULL);
				job_tensor(&j, false, GT_I32, 1, shape, target);
				job_tensor(&j, true, GT_F64, 1, &metrics, m); /* the counts are compared as the bits of doubles */
				if (s < NROWS)
					job_tensor(&j, true, types[t], 2, shape, NULL);
				compare(&j, sum_tol(types[t]));
				job_free(&j);
			}
}

/* x, w, b -> y; dy, w, y -> dx; dy, x -> dw, db, overwritten or added to. */
TEST(linear)
{
	static const int64_t shapes[][3] = {{1, 1, 1}, {4, 7, 5}, {32, 784, 33}, {100, 33, 70}, {9, 128, 32}, {513, 8, 65}}; /* N, in, out */
	static const enum gt_opcode codes[] = {GT_OP_LINEAR, GT_OP_LINEAR_DX, GT_OP_LINEAR_DW};
	for (int s = 0; s < 6; s++)
		for (int c = 0; c < 3; c++)
			for (int t = 0; t < 2; t++)
				for (int v = 0; v < 4; v++) {
					int64_t n = shapes[s][0], in = shapes[s][1], out = shapes[s][2], x[2] = {n, in}, y[2] = {n, out}, w[2] = {out, in};
					struct gt_attr_linear attr = {
					    .out = out, .bias = v % 2, .act = codes[c] == GT_OP_LINEAR && v / 2 ? GT_ACT_RELU : GT_ACT_NONE};
					struct job j = {.call = {.code = codes[c], .attr = &attr}};
					job_tensor(&j, false, types[t], 2, codes[c] == GT_OP_LINEAR ? x : y, NULL);
					job_tensor(&j, false, types[t], 2, codes[c] == GT_OP_LINEAR_DW ? x : w, NULL);
					if (codes[c] == GT_OP_LINEAR && v % 2)
						job_tensor(&j, false, GT_F32, 1, &out, NULL);
					if (codes[c] == GT_OP_LINEAR_DX && v % 2) /* the relu's mask */
						job_tensor(&j, false, types[t], 2, x, NULL);
					job_tensor(&j, true, codes[c] == GT_OP_LINEAR_DW ? GT_F32 : types[t], 2,
					           codes[c] == GT_OP_LINEAR      ? y
					           : codes[c] == GT_OP_LINEAR_DW ? w
					                                         : x,
					           NULL);
					if (codes[c] == GT_OP_LINEAR_DW && v % 2)
						job_tensor(&j, true, GT_F32, 1, &out, NULL);
					if (codes[c] == GT_OP_LINEAR_DW && v / 2)
						j.call.accumulate = v % 2 ? 3 : 1;
					/* Sums of up to 784 products of values up to 3 in f32, in another order: 2^-24 * sqrt(784) * 9, relative to results of
					 * the order of sqrt(784) * 3 or, where they cancel, 1. bf16 results: one rounding step of 2^-8, two for the bias,
					 * which the CUDA backend rounds first; relative to terms of 3. */
					compare(&j, types[t] == GT_BF16 && codes[c] != GT_OP_LINEAR_DW ? 3 * 0x1p-7 : 1e-4);
					job_free(&j);
				}
}

TEST(sumsq_has_the_bits_of_the_cpu)
{
	for (int s = 0; s < NSIZES; s++) {
		int64_t one = 1;
		struct job j = {.call = {.code = GT_OP_SUMSQ}};
		job_tensor(&j, false, GT_F32, 1, &sizes[s], NULL);
		job_tensor(&j, true, GT_F64, 0, &one, calloc(1, 8));
		compare(&j, 0);
		job_free(&j);
	}
}

TEST(updates)
{
	static const struct {
		enum gt_opcode code;
		double momentum;
		bool flag;
		int states;
	} rows[] = {{GT_OP_SGD, 0, false, 0},       {GT_OP_SGD, 0.9, false, 1},  {GT_OP_SGD, 0.9, true, 1},
	            {GT_OP_ADAM, 0, false, 2},      {GT_OP_ADAM, 0, true, 2},    {GT_OP_RMSPROP, 0, false, 1},
	            {GT_OP_RMSPROP, 0.9, false, 2}, {GT_OP_RMSPROP, 0, true, 2}, {GT_OP_RMSPROP, 0.9, true, 3}};
	for (int r = 0; r < 9; r++)
		for (int s = 0; s < 24; s++) {
			int64_t n = 10003, one = 1;
			/* segments that begin off a vector, are shorter than one, or longer than a chunk; with a gap */
			struct gt_seg seg[] = {{3, 4, 1, 0.1}, {4, 9, 2, 0}, {16, 5000 + s, 1, 0.01}, {5000 + s, n - s % 3, 0.5, 0}};
			struct gt_attr_update attr = {.momentum = rows[r].momentum,
			                              .dampening = s % 2 ? 0.1 : 0,
			                              .beta1 = 0.9,
			                              .beta2 = 0.999,
			                              .eps = 1e-8,
			                              .alpha = 0.99,
			                              .nesterov = rows[r].code == GT_OP_SGD && rows[r].flag,
			                              .decoupled = rows[r].code == GT_OP_ADAM && rows[r].flag,
			                              .centered = rows[r].code == GT_OP_RMSPROP && rows[r].flag,
			                              .clip_norm = s % 4 == 3 ? 1 : 0,
			                              .seg = seg,
			                              .nseg = 4,
			                              .work_dtype = GT_BF16};
			struct job j = {.call = {.code = rows[r].code, .attr = &attr}, .dyn = {.step = 1 + s % 5, .lr = 0.01}};
			int slots = rows[r].code == GT_OP_SGD ? 1 : rows[r].code == GT_OP_ADAM ? 2 : 3;
			double *sumsq = malloc(8);
			*sumsq = 40;
			job_tensor(&j, false, GT_F32, 1, &n, NULL);
			job_tensor(&j, false, GT_F32, 1, &n, NULL);
			for (int i = 0; i < slots; i++) {
				float *state = filled(GT_F32, n, (uint32_t)(20 + i));
				bool there = rows[r].code == GT_OP_SGD
				                 ? rows[r].states == 1
				                 : rows[r].code == GT_OP_ADAM || i == 0 || (i == 1 ? rows[r].momentum > 0 : rows[r].flag);
				for (int64_t k = 0; k < n; k++)
					state[k] = fabsf(state[k]) + (i == 0 && rows[r].code == GT_OP_RMSPROP
					                                  ? 20.0f
					                                  : 0.0f); /* a square average stands above the square of the average */
				job_tensor(&j, false, GT_F32, 1, &n, state);
				if (!there)
					j.call.in[2 + i] = NULL;
			}
			job_tensor(&j, false, GT_F64, 0, &one, sumsq);
			if (!(attr.clip_norm > 0))
				j.call.in[j.call.nin - 1] = NULL;
			job_tensor(&j, false, GT_BF16, 1, &n, NULL);
			if (s % 3 == 0)
				j.call.in[j.call.nin - 1] = NULL;
			compare(&j, 0);
			j.shift = s % 2 ? 16 : 8;
			compare(&j, 0);
			job_free(&j);
		}
}

TEST(gather)
{
	static const int64_t shapes[][4] = {{5, 1, 28, 28}, {4, 3, 8, 9}, {70000, 1, 1, 1}, {3, 16, 4, 4}};
	for (int s = 0; s < 4; s++)
		for (int t = 0; t < 6; t++) {
			const int64_t *x = shapes[s];
			if (x[0] > 65535 && t != 2)
				continue;
			int64_t m = 11, images[4] = {m, x[1], x[2], x[3]}, bytes = m * x[1] * x[2] * x[3];
			struct gt_attr_gather attr = {.pad = t / 2 && x[2] > 2 ? 2 : 0, .pad_reflect = t / 2 == 2, .hflip = 0.5, .augment = t / 2 > 0};
			struct job j = {.call = {.code = GT_OP_GATHER, .attr = &attr}, .dyn = {.seed = 4, .epoch = 2}};
			uint8_t *u = malloc((size_t)bytes);
			int32_t *label = malloc((size_t)m * 4);
			int64_t *index = malloc((size_t)x[0] * 8);
			for (int64_t i = 0; i < bytes; i++)
				u[i] = (uint8_t)(i * 37 >> 2);
			for (int64_t i = 0; i < m; i++)
				label[i] = (int32_t)(i % 10);
			for (int64_t i = 0; i < x[0]; i++)
				index[i] = i * 5 % m;
			for (int i = 0; i < GT_MAX_CHANNELS; i++)
				attr.scale[i] = 0.01f * (float)(i + 1), attr.shift[i] = -0.3f * (float)i;
			job_tensor(&j, false, GT_U8, 4, images, u);
			job_tensor(&j, false, GT_I32, 1, &m, label);
			job_tensor(&j, false, GT_I64, 1, x, index);
			job_tensor(&j, true, types[t % 2], 4, x, NULL);
			job_tensor(&j, true, GT_I32, 1, x, NULL);
			compare(&j, 0);
			job_free(&j);
		}
	printf("# cudasim: %d calls agree with the CPU backend\n", compared);
}

RUN_TESTS()
