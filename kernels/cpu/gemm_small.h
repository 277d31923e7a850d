/* Matrix products of linear layers with a small batch, f32: y = x wT + b, dx = dy w, dw = dyT x.
 *
 * Weights [out, in] lie in tiles of 16 x 16: order (in tiles, out tiles), inside a tile 16 rows of `in` with 16 values of `out`
 * (struct gt_layout: order 1,0; blocks 16 of dimension 1, 16 of dimension 0; oneDNN's BA16b16a). All three products read or write
 * that layout with whole vectors: forward keeps tiles of y in registers and walks `in`; dw keeps tiles of dw and walks the batch; dx
 * keeps tiles of its own transpose and walks `out`, for dy and dx are small, and turned over sooner than the weights. A batch of 32 is too
 * small to repay the packing that a general gemm does.
 *
 * Results depend on the shapes and on the instruction set, not on the number of threads. */
#ifndef GT_CPU_GEMM_SMALL_H
#define GT_CPU_GEMM_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_GEMM_APPLY_M 256

struct gt_gemm {
	int64_t m, in, out;      /* batch, features */
	const float *x, *dy;     /* [m, in], [m, out] */
	float *y, *dx;           /* [m, out], [m, in] */
	const float *w, *b;      /* tiles; [out] or NULL */
	float *dw, *db;          /* tiles; [out] or NULL */
	bool relu;               /* of y */
	bool add_dw, add_db;     /* to what is there */
	const float *mask;       /* [m, in] or NULL: dx is 0 where it is <= 0 */
	/* Instead of storing dw: called with whole runs of it, n elements that belong at w + at; padding included. m is at most
	 * GT_GEMM_APPLY_M then. */
	void (*apply)(const void *ctx, const float *dw, int64_t at, int64_t n);
	const void *ctx;
	float *scratch;          /* gt_gemm_scratch() bytes, of the threads from first on */
	int first;
};

struct gt_gemm_isa {
	const char *name;
	/* The share of one thread of several; they need no barrier between them. */
	void (*fwd)(const struct gt_gemm *g, int thread, int threads);
	void (*dx)(const struct gt_gemm *g, int thread, int threads);
	void (*dw)(const struct gt_gemm *g, int thread, int threads);
};

/* The best of this processor; NULL: it has neither AVX-512 nor AVX2 with FMA. */
const struct gt_gemm_isa *gt_gemm_isa(void);
/* By name ("avx512", "avx2"), for tests; NULL: not here. */
const struct gt_gemm_isa *gt_gemm_isa_named(const char *name);

size_t gt_gemm_scratch_dw(int64_t m, int64_t out, int threads); /* fwd and dx need none */

#endif
