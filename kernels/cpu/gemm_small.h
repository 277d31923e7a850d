/* f32 matrix products of linear layers with a small batch, with AVX2 with any batch: y = x wT + b, dx = dy w, dw = dyT x.
 *
 * The weights [out, in] are stored in tiles of 16 x 16. Tiles are ordered (in tiles, out tiles); a tile has 16 rows of `in` with 16 values
 * of `out` (struct gt_layout: order 1,0; blocks 16 of dimension 1, 16 of dimension 0; oneDNN's BA16b16a). All three products read or write
 * this layout with whole vectors: the forward pass keeps tiles of y in registers and iterates over `in`; dw keeps tiles of dw and iterates
 * over the batch. With a small batch, dx keeps tiles of its own transpose and iterates over `out`, because transposing dy and dx costs less
 * than transposing the weights; with a larger one, it transposes the weights, tile by tile, and continues as the forward pass. A batch of
 * 32 is too small to repay the packing of a general gemm.
 *
 * Results depend on the shapes and on the instruction set, not on the number of threads. */
#ifndef GT_CPU_GEMM_SMALL_H
#define GT_CPU_GEMM_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_GEMM_APPLY_M 256 /* maximum batch of a dw with gt_gemm.apply */

struct gt_gemm {
	int64_t m, in, out;      /* batch, features */
	const float *x, *dy;     /* [m, in], [m, out] */
	float *y, *dx;           /* [m, out], [m, in] */
	const float *w, *b;      /* weights in tiles; bias [out] or NULL */
	float *dw, *db;          /* gradient of w in tiles; gradient of b, [out] or NULL */
	bool plain_dw;           /* dw is [out, in] instead of tiles */
	bool relu;               /* apply relu to y */
	bool add_dw, add_db;     /* add to the values in dw, in db */
	const float *mask;       /* [m, in]; dx is 0 where mask is <= 0; NULL: no mask */
	/* If not NULL, dw is not stored. Instead apply is called with runs of n elements of dw, including padding, that correspond to w + at. m
	 * must be at most GT_GEMM_APPLY_M. */
	void (*apply)(const void *ctx, const float *dw, int64_t at, int64_t n);
	const void *ctx;
	float *scratch;          /* workspace of gt_gemm_scratch_dw() bytes, for threads with indices >= first */
	int first;               /* index of the first thread that computes this product */
};

struct gt_gemm_isa {
	const char *name; /* "avx512" */
	/* Each of the three functions computes the part of thread `thread` of `threads`. The threads need no barrier between them. */
	void (*fwd)(const struct gt_gemm *g, int thread, int threads);
	void (*dx)(const struct gt_gemm *g, int thread, int threads);
	void (*dw)(const struct gt_gemm *g, int thread, int threads);
	bool any_batch; /* whether it is faster than oneDNN for large batches and for a plain dw, too */
};

/* Returns the fastest implementation for this processor, or NULL if it has none of AVX-512, AVX2 with FMA, and NEON (arm64). */
const struct gt_gemm_isa *gt_gemm_isa(void);
/* Returns an implementation by name ("avx512", "avx2", "neon"), for tests, or NULL if the processor does not support it. */
const struct gt_gemm_isa *gt_gemm_isa_named(const char *name);

size_t gt_gemm_scratch_dw(int64_t m, int64_t out, int threads); /* bytes of workspace of dw; fwd and dx need none */

#endif
