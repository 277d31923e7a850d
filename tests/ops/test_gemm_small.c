/* The CPU backend's small products, every instruction set that this machine has, against loops in double; and their independence
 * of the number of threads. */
#include "cpu/gemm_small.c"
#include "base/philox.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>

static float *randoms(int64_t n, uint32_t seed)
{
	float *p = malloc((size_t)n * sizeof *p);
	for (int64_t i = 0; i < n; i++)
		p[i] = 2 * gt_rng_uniform(gt_philox4x32((uint32_t)i, seed, 0, 0, 1, 2).v[0]) - 1;
	return p;
}

static int64_t at(int64_t tiles, int64_t o, int64_t i)
{
	return (i / 16 * tiles + o / 16) * 256 + i % 16 * 16 + o % 16;
}

/* sqrt(K) roundings that average out, and eight more, of the magnitudes that were added (test_cpu_dnn.c, sum_tol). */
static void compare(const char *what, const char *isa, const float *got, int64_t i, double want, double mag, double k)
{
	double tol = (8 + 2 * sqrt(k)) * 0x1p-24 * mag + 1e-37;
	CHECK_MSG(fabs(got[i] - want) <= tol, "%s %s: element %lld is %.9g, should be %.9g", isa, what, (long long)i, (double)got[i], want);
}

static void one(const struct gt_gemm_isa *isa, int64_t m, int64_t in, int64_t out, int threads, bool add)
{
	int64_t tiles = (out + 15) / 16, wsize = tiles * ((in + 15) / 16) * 256;
	float *x = randoms(m * in, 1), *dy = randoms(m * out, 2), *w = calloc((size_t)wsize, sizeof *w), *b = randoms(out, 4),
	      *plain = randoms(in * out, 3);
	float *y = malloc(sizeof *y * (size_t)(m * out)), *dx = malloc(sizeof *dx * (size_t)(m * in));
	float *dw = malloc(sizeof *dw * (size_t)wsize), *db = randoms(out, 5), *dw0 = malloc(sizeof *dw0 * (size_t)wsize),
	      *db0 = randoms(out, 5);
	float *scratch = malloc(gt_gemm_scratch_dw(m, out, threads));
	for (int64_t i = 0; i < wsize; i++)
		dw0[i] = dw[i] = add ? 0 : NAN;
	for (int64_t o = 0; o < out; o++)
		for (int64_t i = 0; i < in; i++) {
			w[at(tiles, o, i)] = plain[o * in + i];
			if (add)
				dw0[at(tiles, o, i)] = dw[at(tiles, o, i)] = 0.25f;
		}
	struct gt_gemm g = {.m = m,
	                    .in = in,
	                    .out = out,
	                    .x = x,
	                    .dy = dy,
	                    .y = y,
	                    .dx = dx,
	                    .w = w,
	                    .b = b,
	                    .dw = dw,
	                    .db = db,
	                    .relu = m % 2,
	                    .add_dw = add,
	                    .add_db = add,
	                    .scratch = scratch};
	/* the same gradient as plain rows, which starts from plain copies of the tiles */
	float *rows = malloc(sizeof *rows * (size_t)(in * out)), *db_rows = randoms(out, 5);
	struct gt_gemm h = g;
	h.dw = rows, h.db = db_rows, h.plain_dw = true;
	for (int64_t i = 0; i < in * out; i++)
		rows[i] = dw0[at(tiles, i / in, i % in)];
	float *mask = randoms(m * in, 6);
	mask[0] = 0;
	mask[m * in / 2] = NAN; /* lets the gradient pass */
	g.mask = m % 3 ? mask : NULL;
	for (int t = threads - 1; t >= 0; t--) { /* any order */
		isa->fwd(&g, t, threads);
		isa->dx(&g, t, threads);
		isa->dw(&g, t, threads);
		isa->dw(&h, t, threads);
	}
	for (int64_t i = 0; i < in * out; i++)
		CHECK_MSG(!memcmp(&rows[i], &dw[at(tiles, i / in, i % in)], sizeof *rows), "%s dw: plain element %lld differs from that in tiles",
		          isa->name, (long long)i);
	for (int64_t i = 0; i < m; i++)
		for (int64_t o = 0; o < out; o++) {
			double s = b[o], mag = fabs(s);
			for (int64_t k = 0; k < in; k++) {
				s += (double)x[i * in + k] * plain[o * in + k];
				mag += fabs((double)x[i * in + k] * plain[o * in + k]);
			}
			compare("fwd", isa->name, y, i * out + o, g.relu && s < 0 ? 0 : s, mag, (double)in);
		}
	for (int64_t i = 0; i < m; i++)
		for (int64_t k = 0; k < in; k++) {
			double s = 0, mag = 0;
			for (int64_t o = 0; o < out; o++) {
				s += (double)dy[i * out + o] * plain[o * in + k];
				mag += fabs((double)dy[i * out + o] * plain[o * in + k]);
			}
			compare("dx", isa->name, dx, i * in + k, g.mask && mask[i * in + k] <= 0 ? 0 : s, mag, (double)out);
		}
	for (int64_t o = 0; o < out; o++) {
		double s = add ? db0[o] : 0, mag = fabs(s);
		for (int64_t i = 0; i < m; i++) {
			s += dy[i * out + o];
			mag += fabs(dy[i * out + o]);
		}
		compare("db", isa->name, db, o, s, mag, (double)m);
		for (int64_t k = 0; k < in; k++) {
			s = add ? dw0[at(tiles, o, k)] : 0, mag = fabs(s);
			for (int64_t i = 0; i < m; i++) {
				s += (double)dy[i * out + o] * x[i * in + k];
				mag += fabs((double)dy[i * out + o] * x[i * in + k]);
			}
			compare("dw", isa->name, dw, at(tiles, o, k), s, mag, (double)m);
		}
	}
	double padding = 0;
	for (int64_t i = 0; i < wsize; i++)
		padding += fabs(dw[i]);
	for (int64_t o = 0; o < out; o++)
		for (int64_t k = 0; k < in; k++)
			padding -= fabs(dw[at(tiles, o, k)]);
	CHECK_MSG(fabs(padding) <= 1e-9 * (double)wsize, "%s dw: padding is not zero", isa->name); /* two orders of a sum of doubles */
	free(mask), free(rows), free(db_rows);
	free(x), free(dy), free(w), free(b), free(plain), free(y), free(dx), free(dw), free(db), free(dw0), free(db0), free(scratch);
}

static void all(const char *name)
{
	static const int64_t shape[][3] = {{1, 1, 1},    {32, 100, 48}, {7, 5, 3},     {33, 130, 65},  {8, 16, 32},
	                                   {3, 300, 10}, {70, 33, 17},  {300, 20, 40}, {12, 129, 160}, {9, 17, 300},
	                                   {71, 50, 300}, {1000, 19, 33}, {1, 300, 523}, {1, 40, 256}};
	const struct gt_gemm_isa *isa = gt_gemm_isa_named(name);
	if (!isa) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
		for (int threads = 1; threads <= 6; threads += i % 2 ? 5 : 2)
			one(isa, shape[i][0], shape[i][1], shape[i][2], threads, i % 3 == 1);
}

TEST(avx512)
{
	all("avx512");
}

TEST(avx2)
{
	all("avx2");
}

TEST(neon)
{
	all("neon");
}

/* dx of a row has the same bits in a small batch and in a large one, which are computed in different ways. */
TEST(batch_does_not_matter)
{
	enum { M = 70, SMALL = 9, IN = 50, OUT = 300 };
	const struct gt_gemm_isa *isa = gt_gemm_isa();
	if (!isa) {
		test_skip("this processor has no implementation");
		return;
	}
	float *dy = randoms(M * OUT, 1), *w = randoms((int64_t)((OUT + 15) / 16) * ((IN + 15) / 16) * 256, 2);
	float *dx[2] = {malloc(sizeof(float) * M * IN), malloc(sizeof(float) * M * IN)};
	for (int i = 0; i < 2; i++) {
		struct gt_gemm g = {.m = i ? SMALL : M, .in = IN, .out = OUT, .dy = dy, .dx = dx[i], .w = w};
		isa->dx(&g, 0, 1);
	}
	CHECK(!memcmp(dx[0], dx[1], sizeof(float) * SMALL * IN));
	free(dy), free(w), free(dx[0]), free(dx[1]);
}

/* y of a single row has the same bits as in a batch: eight vectors of outputs are computed at once for it. */
TEST(a_single_row_has_the_bits_of_a_batch)
{
	enum { M = 9, IN = 300, OUT = 523 };
	const struct gt_gemm_isa *isa = gt_gemm_isa();
	if (!isa) {
		test_skip("this processor has no implementation");
		return;
	}
	float *x = randoms(M * IN, 1), *w = randoms((int64_t)((OUT + 15) / 16) * ((IN + 15) / 16) * 256, 2), *b = randoms(OUT, 3);
	float *y[2] = {malloc(sizeof(float) * M * OUT), malloc(sizeof(float) * OUT)};
	for (int relu = 0; relu < 2; relu++) {
		for (int i = 0; i < 2; i++) {
			struct gt_gemm g = {.m = i ? 1 : M, .in = IN, .out = OUT, .x = x, .w = w, .b = b, .y = y[i], .relu = relu};
			isa->fwd(&g, 0, 1);
		}
		CHECK(!memcmp(y[0], y[1], sizeof(float) * OUT));
	}
	free(x), free(w), free(b), free(y[0]), free(y[1]);
}

TEST(threads_do_not_matter)
{
	const struct gt_gemm_isa *isa = gt_gemm_isa();
	int64_t m = 37, in = 145, out = 77, tiles = 5, wsize = tiles * 10 * 256;
	float *x = randoms(m * in, 1), *dy = randoms(m * out, 2), *w = randoms(wsize, 3), *first[3] = {0};
	int64_t size[3] = {m * out, m * in, wsize};
	if (!isa) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (int threads = 1; threads <= 7; threads++) {
		float *r[3];
		for (int i = 0; i < 3; i++)
			r[i] = calloc((size_t)size[i], sizeof(float));
		struct gt_gemm g = {.m = m,
		                    .in = in,
		                    .out = out,
		                    .x = x,
		                    .dy = dy,
		                    .y = r[0],
		                    .dx = r[1],
		                    .w = w,
		                    .dw = r[2],
		                    .scratch = malloc(gt_gemm_scratch_dw(m, out, threads))};
		for (int t = 0; t < threads; t++) {
			isa->fwd(&g, t, threads);
			isa->dx(&g, t, threads);
			isa->dw(&g, t, threads);
		}
		free(g.scratch);
		for (int i = 0; i < 3; i++) {
			if (threads > 1) {
				CHECK_MSG(!memcmp(r[i], first[i], (size_t)size[i] * sizeof(float)), "product %d differs with %d threads", i, threads);
				free(r[i]);
			} else {
				first[i] = r[i];
			}
		}
	}
	for (int i = 0; i < 3; i++)
		free(first[i]);
	free(x), free(dy), free(w);
}

RUN_TESTS()
