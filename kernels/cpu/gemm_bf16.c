/* The product of gemm_bf16.h. Both operands are packed as pairs of bf16, two elements of k in 4 bytes: a in rows, b in panels of NR
 * columns. A tile of MR rows and NR columns of the sums is in registers for KC pairs, whose part of a panel fits in the first
 * cache. */
#include "cpu/gemm_bf16.h"
#include "ew.h"

#define MR 6
#define NR 64
#define KC 128
#define ROWS 96 /* rows of the piece of a panel that a thread computes at a time */
#define EDGE 16 /* rows and columns of a block that is transposed */

struct product {
	const struct gt_gemm_bf16 *g;
	uint32_t *a, *b;     /* [m][lda] and [panels][pairs][NR] */
	float *sum;          /* [m][ld] */
	int64_t pairs, lda, ld, panels, pieces;
};

/* Fills in the sizes, and the addresses in the workspace if it is not NULL. Returns the bytes of the workspace. */
static size_t place_operands(struct product *p, const struct gt_gemm_bf16 *g, void *scratch)
{
	*p = (struct product){.g = g, .pairs = (g->k + 1) / 2, .panels = (g->n + NR - 1) / NR, .pieces = (g->m + ROWS - 1) / ROWS};
	/* Rows do not have the distance of a power of two, which would evict them from the caches. */
	p->lda = (p->pairs + 15) / 16 * 16 + 16;
	p->ld = p->panels * NR + 16;
	int64_t a = g->m * p->lda, b = p->panels * p->pairs * NR;
	if (scratch) {
		p->b = scratch;
		p->sum = (float *)(void *)(p->b + b);
		p->a = (uint32_t *)(void *)(p->sum + g->m * p->ld);
	}
	return (size_t)(a + b + g->m * p->ld) * sizeof(uint32_t);
}

size_t gt_gemm_bf16_scratch(int64_t m, int64_t n, int64_t k)
{
	struct gt_gemm_bf16 g = {.m = m, .n = n, .k = k};
	struct product p;
	return place_operands(&p, &g, NULL);
}

bool gt_gemm_bf16_supported(void)
{
#if defined(__x86_64__)
	return GT_CPU_BF16;
#else
	return false;
#endif
}

#if defined(__x86_64__)
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")

static inline uint32_t make_pair(float first, float second)
{
	return (gt_f32_bits(first) & 0xffff0000u) | gt_f32_bits(second) >> 16;
}

/* Packs rows [begin, end) of op(a). */
static void pack_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct product *p = ctx;
	const struct gt_gemm_bf16 *g = p->g;
	int64_t k = g->k, m = g->m;
	for (int64_t i = begin; g->ta == 'N' && i < end; i++) {
		const float *from = g->a + i * k;
		uint32_t *to = p->a + i * p->lda;
		for (int64_t l = 0; l < k / 2; l++)
			to[l] = make_pair(from[2 * l], from[2 * l + 1]);
		if (k % 2)
			to[k / 2] = make_pair(from[k - 1], 0);
	}
	for (int64_t i = begin; g->ta != 'N' && i < end; i += EDGE) {
		int64_t rows = end - i < EDGE ? end - i : EDGE;
		for (int64_t l = 0; l < p->pairs; l++) {
			const float *from = g->a + 2 * l * m + i, *next = 2 * l + 1 < k ? from + m : NULL;
			for (int64_t r = 0; r < rows; r++)
				p->a[(i + r) * p->lda + l] = make_pair(from[r], next ? next[r] : 0);
		}
	}
}

/* Packs panels [begin, end) of op(b); columns beyond n are 0. */
static void pack_panels(const void *ctx, int64_t begin, int64_t end)
{
	const struct product *p = ctx;
	const struct gt_gemm_bf16 *g = p->g;
	int64_t k = g->k, n = g->n;
	for (int64_t q = begin; q < end; q++) {
		int64_t j0 = q * NR, cols = n - j0 < NR ? n - j0 : NR;
		uint32_t *to = p->b + q * p->pairs * NR;
		if (cols < NR)
			memset(to, 0, (size_t)(p->pairs * NR) * sizeof *to);
		for (int64_t l = 0; g->tb == 'N' && l < p->pairs; l++) {
			const float *from = g->b + 2 * l * n + j0;
			if (2 * l + 1 < k)
				for (int64_t j = 0; j < cols; j++)
					to[l * NR + j] = make_pair(from[j], from[n + j]);
			else
				for (int64_t j = 0; j < cols; j++)
					to[l * NR + j] = make_pair(from[j], 0);
		}
		for (int64_t l0 = 0; g->tb != 'N' && l0 < p->pairs; l0 += EDGE / 2) {
			int64_t some = p->pairs - l0 < EDGE / 2 ? p->pairs - l0 : EDGE / 2;
			for (int64_t j = 0; j < cols; j++) {
				const float *from = g->b + (j0 + j) * k;
				for (int64_t l = l0; l < l0 + some; l++)
					to[l * NR + j] = make_pair(from[2 * l], 2 * l + 1 < k ? from[2 * l + 1] : 0);
			}
		}
	}
}

/* Adds the products of `pairs` pairs to a tile of the sums, or sets it to them, if `first`. */
static inline __attribute__((always_inline)) void add_tile(const uint32_t *a, int64_t lda, const uint32_t *b, int64_t pairs, float *sum,
                                                           int64_t ld, bool first, const int rows)
{
	__m512 acc[MR][NR / 16];
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int c = 0; c < NR / 16; c++)
			acc[i][c] = first ? _mm512_setzero_ps() : _mm512_loadu_ps(sum + i * ld + c * 16);
	for (int64_t l = 0; l < pairs; l++) {
		__m512i w[NR / 16];
#pragma GCC unroll 4
		for (int c = 0; c < NR / 16; c++)
			w[c] = _mm512_loadu_si512(b + l * NR + c * 16);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			__m512i x = _mm512_set1_epi32((int)a[i * lda + l]);
#pragma GCC unroll 4
			for (int c = 0; c < NR / 16; c++)
				acc[i][c] = _mm512_dpbf16_ps(acc[i][c], (__m512bh)x, (__m512bh)w[c]);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int c = 0; c < NR / 16; c++)
			_mm512_storeu_ps(sum + i * ld + c * 16, acc[i][c]);
}

/* Computes pieces [begin, end): each is a panel's columns of ROWS rows. If half of the result is computed, a panel is longer the later it
 * is, so that first and last ones take turns. */
static void add_products(const void *ctx, int64_t begin, int64_t end)
{
	const struct product *p = ctx;
	int64_t ld = p->ld;
	for (int64_t t = begin; t < end; t++) {
		int64_t q = t / p->pieces, first = t % p->pieces * ROWS, last = first + ROWS < p->g->m ? first + ROWS : p->g->m;
		q = q % 2 ? p->panels - 1 - q / 2 : q / 2;
		if (p->g->symmetric && last > (q + 1) * NR)
			last = (q + 1) * NR;
		for (int64_t l = 0; l < p->pairs; l += KC) {
			int64_t pairs = p->pairs - l < KC ? p->pairs - l : KC;
			const uint32_t *b = p->b + (q * p->pairs + l) * NR;
			int64_t i = first;
			for (; i + MR <= last; i += MR)
				add_tile(p->a + i * p->lda + l, p->lda, b, pairs, p->sum + i * ld + q * NR, ld, l == 0, MR);
			for (; i < last; i++)
				add_tile(p->a + i * p->lda + l, p->lda, b, pairs, p->sum + i * ld + q * NR, ld, l == 0, 1);
		}
	}
}

/* c = alpha sum + beta c, rounded to bf16, for n elements. */
static inline void finish_row(const struct gt_gemm_bf16 *g, const float *restrict sum, float *restrict c, int64_t n)
{
	float alpha = g->alpha, beta = g->beta;
	if (beta == 0)
		for (int64_t j = 0; j < n; j++)
			c[j] = gt_bf16_to_f32(gt_bf16_from_f32(alpha * sum[j]));
	else
		for (int64_t j = 0; j < n; j++)
			c[j] = gt_bf16_to_f32(gt_bf16_from_f32(alpha * sum[j] + beta * c[j]));
}

/* Stores rows [begin, end) of the result, EDGE rows at a time. */
static void finish_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct product *p = ctx;
	const struct gt_gemm_bf16 *g = p->g;
	int64_t ld = p->ld;
	for (int64_t i0 = begin; i0 < end; i0 += EDGE) {
		int64_t rows = end - i0 < EDGE ? end - i0 : EDGE;
		for (int64_t j0 = 0; g->symmetric && j0 <= i0; j0 += EDGE) { /* sums below the diagonal are those above it */
			float turned[EDGE][EDGE];
			if (j0 < i0) { /* all columns of the block exist */
				__m512i row = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
				__m512i at = _mm512_mullo_epi32(_mm512_set1_epi32((int)ld), row);
				for (int64_t i = 0; i < rows; i++) {
					_mm512_storeu_ps(turned[i], _mm512_i32gather_ps(at, p->sum + j0 * ld + i0 + i, 4));
					finish_row(g, turned[i], g->c + (i0 + i) * g->n + j0, EDGE);
				}
				continue;
			}
			for (int64_t i = 1; i < rows; i++) {
				for (int64_t j = 0; j < i; j++)
					turned[i][j] = p->sum[(j0 + j) * ld + i0 + i];
				finish_row(g, turned[i], g->c + (i0 + i) * g->n + j0, i);
			}
		}
		for (int64_t i = i0; i < i0 + rows; i++) {
			int64_t from = g->symmetric ? i : 0;
			finish_row(g, p->sum + i * ld + from, g->c + i * g->n + from, g->n - from);
		}
	}
}
#pragma GCC pop_options

void gt_gemm_bf16_run(const struct gt_dev *dev, const struct gt_gemm_bf16 *g, void *scratch)
{
	struct product p;
	place_operands(&p, g, scratch);
	gt_cpu_for(dev, g->m, 65536 / g->k + 1, EDGE, pack_rows, &p);
	gt_cpu_for(dev, p.panels, 65536 / (g->k * NR) + 1, 1, pack_panels, &p);
	gt_cpu_for(dev, p.panels * p.pieces, 4194304 / (g->k * NR * ROWS) + 1, 1, add_products, &p);
	gt_cpu_for(dev, g->m, 65536 / g->n + 1, EDGE, finish_rows, &p);
}
#else
void gt_gemm_bf16_run(const struct gt_dev *dev, const struct gt_gemm_bf16 *g, void *scratch)
{
	(void)dev, (void)g, (void)scratch;
}
#endif
