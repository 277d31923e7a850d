/* The loops of rnn.h for several instruction sets. */
#include "cpu/rnn.h"
#include "clones.h"
#include "cpu/bf16_rows.h"
#include "ew.h"

#define MAX_ROWS 8 /* maximum number of rows (samples) of a tile for any instruction set */

static float *state_of(const struct gt_rnn *r, int64_t group)
{
	return r->state + group * r->state_size;
}

static int64_t rows_of(const struct gt_rnn *r, int64_t group)
{
	return (r->n - group + r->groups - 1) / r->groups;
}

/* Returns the sample in row i of a group, and its length. */
static int32_t sample_of(const struct gt_rnn *r, int64_t group, int64_t i, int32_t *length)
{
	int64_t at = i * r->groups + group;
	*length = r->length[at];
	return r->order[at];
}

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#define V __m512
#define VW 16
#define LOAD(p) _mm512_load_ps(p)
#define STORE(p, v) _mm512_store_ps(p, v)
#define BCAST(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ZERO() _mm512_setzero_ps()
#define N(name) name##_avx512
#define MR 6
#define PAIR 1
#include "cpu/rnn_step.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")
#define V __m512
#define VW 16
#define LOAD(p) _mm512_load_ps(p)
#define STORE(p, v) _mm512_store_ps(p, v)
#define BCAST(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define ZERO() _mm512_setzero_ps()
#define N(name) name##_avx512_bf16
#define MR 6
#define PAIR 2
#include "cpu/rnn_step.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define V __m256
#define VW 8
#define LOAD(p) _mm256_load_ps(p)
#define STORE(p, v) _mm256_store_ps(p, v)
#define BCAST(x) _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ZERO() _mm256_setzero_ps()
#define N(name) name##_avx2
#define MR 3
#define PAIR 1
#include "cpu/rnn_step.inc"
#pragma GCC pop_options
#elif defined(__aarch64__)
#include <arm_neon.h>

#define V float32x4_t
#define VW 4
#define LOAD(p) vld1q_f32(p)
#define STORE(p, v) vst1q_f32(p, v)
#define BCAST(x) vdupq_n_f32(x)
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define ZERO() vdupq_n_f32(0)
#define N(name) name##_neon
#define MR 6
#define PAIR 1
#include "cpu/rnn_step.inc"
#endif

/* Any processor: vectors of four, which the compiler maps to available instructions. */
typedef float vec4 __attribute__((vector_size(16)));
#define V vec4
#define VW 4
#define LOAD(p) (*(const vec4 *)(const void *)(p))
#define STORE(p, v) (*(vec4 *)(void *)(p) = (v))
#define BCAST(x) ((vec4){x, x, x, x})
#define FMA(a, b, c) ((a) * (b) + (c))
#define ZERO() ((vec4){0, 0, 0, 0})
#define N(name) name##_plain
#define MR 2
#define PAIR 1
#include "cpu/rnn_step.inc"

#define ISA(id, w, pair)                                                                                                                   \
	{                                                                                                                                      \
		#id, w, pair, pack_forward_##id, pack_backward_##id, run_forward_##id, run_backward_##id                                           \
	}
static const struct gt_rnn_isa plain = ISA(plain, 4, 1);
#if defined(__x86_64__)
static const struct gt_rnn_isa avx512_bf16 = ISA(avx512_bf16, 16, 2), avx512 = ISA(avx512, 16, 1),
                               avx2 = ISA(avx2, 8, 1);
#elif defined(__aarch64__)
static const struct gt_rnn_isa neon = ISA(neon, 4, 1);
#endif

const struct gt_rnn_isa *gt_rnn_isa_named(const char *name)
{
#if defined(__x86_64__)
	if (!strcmp(name, "avx512_bf16"))
		return GT_CPU_BF16 ? &avx512_bf16 : NULL;
	if (!strcmp(name, "avx512"))
		return GT_CPU_AVX512 ? &avx512 : NULL;
	if (!strcmp(name, "avx2"))
		return GT_CPU_AVX2 ? &avx2 : NULL;
#elif defined(__aarch64__)
	if (!strcmp(name, "neon"))
		return &neon;
#endif
	return strcmp(name, "plain") ? NULL : &plain;
}

const struct gt_rnn_isa *gt_rnn_isa(bool bf16)
{
	static const char *const names[] = {"avx512_bf16", "avx512", "avx2", "neon", "plain"};
	const struct gt_rnn_isa *isa = NULL;
	for (int i = bf16 ? 0 : 1; !isa; i++)
		isa = gt_rnn_isa_named(names[i]);
	return isa;
}
