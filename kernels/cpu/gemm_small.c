#include "cpu/gemm_small.h"
#include "clones.h"
#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)
#define KC 128   /* number of columns of `in` that are processed at a time, so that NB tiles of w by KC columns stay in the L1 cache */
#define KD 512   /* number of columns of `out` that dx processes at a time */
#define FEW 480  /* maximum number of rows that fwd and dx process at a time, so that KC columns of them stay in the L2 cache */
#define DW_M GT_GEMM_APPLY_M /* number of rows of dy that dw processes at a time */

/* The rectangle of the result that one thread computes. Of all grids with one cell for each thread, a result of a x b units is divided
 * by the grid whose largest cell has the fewest units. */
struct share {
	int64_t a0, a1, b0, b1;
};

static struct share share_of(int64_t a, int64_t b, int thread, int threads)
{
	int best = threads;
	int64_t cost = INT64_MAX;
	for (int t = threads; t >= 1; t--) {
		int u = threads / t;
		int64_t c = threads % t ? INT64_MAX : ((a + t - 1) / t) * ((b + u - 1) / u);
		if (c < cost) {
			cost = c;
			best = t;
		}
	}
	int u = threads / best, i = thread / u, j = thread % u;
	return (struct share){a * i / best, a * (i + 1) / best, b * j / u, b * (j + 1) / u};
}

/* Returns the size of the parts of n elements, of at most `most` elements each, that differ least in size. */
static int64_t divide_evenly(int64_t n, int64_t most)
{
	int64_t parts = n > 0 ? (n + most - 1) / most : 1;
	return (n + parts - 1) / parts;
}

/* A matrix that a product reads (from) or writes (to) by rows. */
struct gt_gemm_side {
	const float *from;
	float *to;
	int64_t ld, cols;
};

/* Sets dx to 0 where the mask is <= 0, in a block of rows and columns, of which those at the end may not exist. A NaN in the mask lets the
 * gradient pass. */
GT_CLONES static void mask_block(const struct gt_gemm *g, int64_t r0, int64_t r1, int64_t i0, int64_t cols)
{
	for (int64_t r = r0; r < r1 && r < g->m; r++) {
		float *restrict dx = g->dx + r * g->in + i0;
		const float *restrict mask = g->mask + r * g->in + i0;
		for (int64_t i = 0; i < cols && i0 + i < g->in; i++)
			dx[i] = mask[i] <= 0 ? 0 : dx[i];
	}
}

/* Returns the number of floats that a thread needs to pack dy. */
static int64_t panel_size(int64_t m, int64_t out)
{
	return (m < DW_M ? m : DW_M) * ((out + 31) / 32 * 32);
}

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#define MR 8
#define NB 2
#define WR 8
#define NV 2
#define TRANSPOSE(a, b) transpose_avx512(a, b)

static inline __attribute__((always_inline)) void transpose_4x4(const V *r, V *t)
{
	V a = _mm512_unpacklo_ps(r[0], r[1]), b = _mm512_unpackhi_ps(r[0], r[1]), c = _mm512_unpacklo_ps(r[2], r[3]),
	  d = _mm512_unpackhi_ps(r[2], r[3]);
	t[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(c)));
	t[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(c)));
	t[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(b), _mm512_castps_pd(d)));
	t[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(b), _mm512_castps_pd(d)));
}

/* Transposes 16 x 16 floats: first four rows at a time within quarters of the vectors, then by exchanging the quarters. */
static inline __attribute__((always_inline)) void transpose_avx512(const float *from, float *to)
{
	V r[16], t[16];
#pragma GCC unroll 16
	for (int i = 0; i < 16; i++)
		r[i] = LOAD(from + i * 16);
#pragma GCC unroll 4
	for (int i = 0; i < 16; i += 4)
		transpose_4x4(r + i, t + i);
	/* Quarter q of t[4i + j] contains column 4q + j of rows 4i .. 4i + 3. */
#pragma GCC unroll 4
	for (int j = 0; j < 4; j++) {
		V a = _mm512_shuffle_f32x4(t[j], t[4 + j], 0x88), b = _mm512_shuffle_f32x4(t[j], t[4 + j], 0xdd);
		V c = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0x88), d = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0xdd);
		STORE(to + j * 16, _mm512_shuffle_f32x4(a, c, 0x88));
		STORE(to + (4 + j) * 16, _mm512_shuffle_f32x4(b, d, 0x88));
		STORE(to + (8 + j) * 16, _mm512_shuffle_f32x4(a, c, 0xdd));
		STORE(to + (12 + j) * 16, _mm512_shuffle_f32x4(b, d, 0xdd));
	}
}

#include "cpu/gemm_tile.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#define MR 6
#define NB 1
#define WR 4
#define NV 2
#define TRANSPOSE(a, b) transpose_avx2(a, b)

static inline __attribute__((always_inline)) void transpose_avx2(const float *from, float *to)
{
	for (int q = 0; q < 4; q++) { /* transposes each of the four blocks of 8 x 8 */
		const float *f = from + q / 2 * 128 + q % 2 * 8;
		float *o = to + q % 2 * 128 + q / 2 * 8;
		V t[8];
#pragma GCC unroll 2
		for (int i = 0; i < 8; i += 4) {
			V a = LOAD(f + i * 16), b = LOAD(f + i * 16 + 16), c = LOAD(f + i * 16 + 32), d = LOAD(f + i * 16 + 48);
			V ab = _mm256_unpacklo_ps(a, b), AB = _mm256_unpackhi_ps(a, b), cd = _mm256_unpacklo_ps(c, d), CD = _mm256_unpackhi_ps(c, d);
			t[i] = _mm256_shuffle_ps(ab, cd, 0x44);
			t[i + 1] = _mm256_shuffle_ps(ab, cd, 0xee);
			t[i + 2] = _mm256_shuffle_ps(AB, CD, 0x44);
			t[i + 3] = _mm256_shuffle_ps(AB, CD, 0xee);
		}
#pragma GCC unroll 4
		for (int j = 0; j < 4; j++) {
			STORE(o + j * 16, _mm256_permute2f128_ps(t[j], t[4 + j], 0x20));
			STORE(o + (4 + j) * 16, _mm256_permute2f128_ps(t[j], t[4 + j], 0x31));
		}
	}
}

#include "cpu/gemm_tile.inc"
#pragma GCC pop_options

static const struct gt_gemm_isa avx512 = {"avx512", compute_fwd_avx512, compute_dx_avx512, compute_dw_avx512},
                                avx2 = {"avx2", compute_fwd_avx2, compute_dx_avx2, compute_dw_avx2, true};
#else
#include <arm_neon.h>

#include "cpu/vector_neon.inc"
#define MR 6
#define NB 1
#define WR 4
#define NV 4
#define TRANSPOSE(a, b) transpose_neon(a, b)
#define PAIR(part, a, b) vreinterpretq_f32_f64(part(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)))

static inline __attribute__((always_inline)) void transpose_neon(const float *from, float *to)
{
	for (int q = 0; q < 16; q++) { /* transposes each of the sixteen blocks of 4 x 4 */
		const float *f = from + q / 4 * 64 + q % 4 * 4;
		float *o = to + q % 4 * 64 + q / 4 * 4;
		V a = LOAD(f), b = LOAD(f + 16), c = LOAD(f + 32), d = LOAD(f + 48);
		V ab = vtrn1q_f32(a, b), AB = vtrn2q_f32(a, b), cd = vtrn1q_f32(c, d), CD = vtrn2q_f32(c, d);
		STORE(o, PAIR(vtrn1q_f64, ab, cd));
		STORE(o + 16, PAIR(vtrn1q_f64, AB, CD));
		STORE(o + 32, PAIR(vtrn2q_f64, ab, cd));
		STORE(o + 48, PAIR(vtrn2q_f64, AB, CD));
	}
}

#include "cpu/gemm_tile.inc"
#undef PAIR

static const struct gt_gemm_isa neon = {"neon", compute_fwd_neon, compute_dx_neon, compute_dw_neon};
#endif

const struct gt_gemm_isa *gt_gemm_isa_named(const char *name)
{
#if defined(__x86_64__)
	if (!strcmp(name, "avx512"))
		return GT_CPU_AVX512 ? &avx512 : NULL;
	if (!strcmp(name, "avx2"))
		return GT_CPU_AVX2 ? &avx2 : NULL;
#else
	if (!strcmp(name, "neon"))
		return &neon;
#endif
	return NULL;
}

const struct gt_gemm_isa *gt_gemm_isa(void)
{
	static const char *const names[] = {"avx512", "avx2", "neon"};
	const struct gt_gemm_isa *isa = NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names && !isa; i++)
		isa = gt_gemm_isa_named(names[i]);
	return isa;
}

size_t gt_gemm_scratch_dw(int64_t m, int64_t out, int threads)
{
	return (size_t)threads * (size_t)panel_size(m, out) * sizeof(float);
}
#else
const struct gt_gemm_isa *gt_gemm_isa_named(const char *name)
{
	(void)name;
	return NULL;
}

const struct gt_gemm_isa *gt_gemm_isa(void)
{
	return NULL;
}

size_t gt_gemm_scratch_dw(int64_t m, int64_t out, int threads)
{
	(void)m, (void)out, (void)threads;
	return 0;
}
#endif
