/* Layer normalisation over all dimensions but the first, with biased variance and eps inside the root. Activations are contiguous rows of
 * `cols` elements. gamma and beta of a rank-4 call are [C,H,W], plain or with the layout of NHWC. Plain ones are first copied into the
 * order of the activations in the scratch memory, so that the loops over a row are contiguous. */
#include "cpu/loops.h"
#include "ew.h"
#include <math.h>
#include <string.h>

#define LANES 16
#define GRAIN 64 /* columns of the smallest piece that a thread sums */
#define COLS 256 /* columns whose sums are on the stack */
#define GT_LANE static inline __attribute__((always_inline))

struct layernorm {
	struct gt_cpu_loop loop; /* over rows */
	const void *x, *dy;
	/* during a launch, the parameters in the element order of the activations; NULL: the layer has no parameters */
	const void *gamma, *beta;
	void *mean, *rstd; /* outputs of the forward operation, NULL if they are absent; operands of the gradient */
	void *y, *dx, *dgamma, *dbeta;
	bool add_gamma, add_beta;
	int64_t rows, cols, channels, pixels; /* pixels is 0 if gamma and beta have the element order of the activations */
	double eps;
	size_t param_bytes, param_size; /* number of bytes of gamma, and of one of its elements */
	gt_range_fn *params; /* the function that computes the gradients of gamma and beta */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(layernorm, x, dy, gamma, beta, mean, rstd, y, dx, dgamma, dbeta)};

/* Returns the index in gamma and beta of column j of a row. */
GT_LANE int64_t param_index(const struct layernorm *c, int64_t j)
{
	return c->pixels ? j % c->channels * c->pixels + j / c->channels : j;
}

#define JOIN(name, bytes) JOIN_NAMES(name, bytes)
#define JOIN_NAMES(name, bytes) name##_##bytes

/* attention.c says why these loops are compiled for each size of vectors. LOAD_BF16 loads as many bf16 as a vector has elements of double,
 * and gives the bits of the FLOATS that they are; WIDEN converts FLOATS to double. gcc 12 makes two conversions and three shuffles of
 * __builtin_convertvector, which is used where there are no intrinsics. */
#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#define VECTOR 64
#define WORDS __m256i
#define FLOATS __m256
#define LOAD_BF16(p) _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))), 16)
#define WIDEN(f) _mm512_cvtps_pd(f)
#define ADD_LANES(v) add_eight((__m512d)(v))
GT_LANE double add_eight(__m512d v)
{
	__m256d four = _mm256_add_pd(_mm512_castpd512_pd256(v), _mm512_extractf64x4_pd(v, 1));
	__m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
	return two[0] + two[1];
}
#define GT_TYPED "cpu/layernorm.inc"
#include "cpu/typed.inc"
#undef VECTOR
#undef WORDS
#undef FLOATS
#undef LOAD_BF16
#undef WIDEN
#undef ADD_LANES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define VECTOR 32
#define WORDS __m128i
#define FLOATS __m128
#define LOAD_BF16(p) _mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p))), 16)
#define WIDEN(f) _mm256_cvtps_pd(f)
#define ADD_LANES(v) add_four((__m256d)(v))
GT_LANE double add_four(__m256d v)
{
	__m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
	return two[0] + two[1];
}
#define GT_TYPED "cpu/layernorm.inc"
#include "cpu/typed.inc"
#undef VECTOR
#undef WORDS
#undef FLOATS
#undef LOAD_BF16
#undef WIDEN
#undef ADD_LANES
#pragma GCC pop_options
#endif

typedef uint16_t bf16_pair __attribute__((vector_size(4), aligned(2), may_alias));
typedef uint32_t word_pair __attribute__((vector_size(8)));
typedef float float_pair __attribute__((vector_size(8)));
typedef double double_pair __attribute__((vector_size(16)));
#define VECTOR 16
#define WORDS word_pair
#define FLOATS float_pair
#define LOAD_BF16(p) (__builtin_convertvector(*(const bf16_pair *)(const void *)(p), word_pair) << 16)
#define WIDEN(f) __builtin_convertvector(f, double_pair)
#define ADD_LANES(v) ((v)[0] + (v)[1])
#define GT_TYPED "cpu/layernorm.inc"
#include "cpu/typed.inc"

/* The functions for one size of vectors, by type. */
struct loops {
	gt_range_fn *forward[GT_T_COUNT], *dx[GT_T_COUNT], *params[GT_T_COUNT];
};

#define PASS(name, bytes)                                                                                                                  \
	{                                                                                                                                      \
		JOIN(name##_f32, bytes), JOIN(name##_bf16, bytes), JOIN(name##_f64, bytes)                                                         \
	}
#define LOOPS(bytes)                                                                                                                       \
	{                                                                                                                                      \
		PASS(normalize_rows, bytes), PASS(compute_dx, bytes), PASS(compute_param_grads, bytes)                                             \
	}

/* Returns the loops with the largest vectors of this processor. */
static const struct loops *choose_loops(void)
{
	static const struct loops any = LOOPS(16);
#if defined(__x86_64__)
	static const struct loops avx512 = LOOPS(64), avx2 = LOOPS(32);
	if (GT_CPU_AVX512)
		return &avx512;
	if (GT_CPU_AVX2)
		return &avx2;
#endif
	return &any;
}

/* Copies gamma or beta from plain [C, H, W] to the order of the activations. */
static void reorder_param(const struct layernorm *c, const void *from, void *to)
{
	for (int64_t j = 0; j < c->cols; j++)
		memcpy((char *)to + (size_t)j * c->param_size, (const char *)from + (size_t)param_index(c, j) * c->param_size, c->param_size);
}

/* Copies a parameter that has another element order to the scratch memory, in the order of the activations. */
static const void *in_order(const struct layernorm *k, const void *param, void *to)
{
	if (!param || !k->pixels)
		return param;
	reorder_param(k, param, to);
	return to;
}

static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct layernorm *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	if (!k->mean || !k->rstd)
		k->mean = NULL;
	k->gamma = in_order(k, k->gamma, a->scratch);
	k->beta = in_order(k, k->beta, (char *)a->scratch + k->param_bytes);
	gt_cpu_for(dev, k->rows, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct layernorm *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	if (k->dgamma || k->dbeta) /* computed before dx, because dx may overwrite dy */
		gt_cpu_for(dev, k->cols, 16384 / k->rows + 1, GRAIN, k->params, k);
	k->gamma = in_order(k, k->gamma, a->scratch);
	if (k->dx)
		gt_cpu_for(dev, k->rows, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

/* Returns the element order of a parameter: 1 for the order of the activations, 0 for plain [C,H,W] with activations in NHWC, -1 for any
 * other order. */
static int param_order(const struct gt_tdesc *x, struct gt_tdesc *p)
{
	static const uint8_t hwc[3] = {1, 2, 0};
	bool trivial = x->rank < 4 || x->dim[1] == 1 || x->dim[2] * x->dim[3] == 1;
	if (p->any) {
		*p = gt_tdesc_make(p->dtype, p->rank, p->dim, false);
		for (int i = 0; i < 3 && p->rank == 3; i++)
			p->layout.order[i] = hwc[i];
	}
	if (p->layout.nblk)
		return -1;
	if (gt_tdesc_plain(p))
		return trivial;
	return p->rank == 3 && !memcmp(p->layout.order, hwc, sizeof hwc) ? 1 : -1;
}

enum gt_code gt_cpu_layernorm(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct loops *loops = choose_loops();
	bool back = call->code == GT_OP_LAYERNORM_DX;
	const struct gt_attr_norm *attr = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	struct gt_tdesc *gamma = gt_opcall_operand(call, "gamma"), *beta = gt_opcall_operand(call, "beta");
	struct gt_tdesc *params_of[] = {beta, gt_opcall_operand(call, "dgamma"), gt_opcall_operand(call, "dbeta")};
	int type = gt_cpu_type(x->dtype), order = 1;
	struct layernorm *k;
	(void)dev;
	if (gamma) {
		order = param_order(x, gamma);
		for (int i = 0; i < 3; i++)
			if (params_of[i] && param_order(x, params_of[i]) != order)
				order = -1;
		if (order < 0 || (!back && !beta))
			return gt_opcall_refuse(call, err, "gamma, beta and their gradients must have the same layout, plain or channels last");
	}
	GT_LOOP_NEW(k, slots, call, "loop", err);
	k->loop.head.launch = back ? launch_backward : launch_forward;
	k->rows = x->dim[0];
	k->cols = gt_tdesc_count(x) / x->dim[0];
	gt_cpu_loop_over(&k->loop, back ? loops->dx[type] : loops->forward[type], k->rows, 16384 / k->cols + 1);
	k->params = loops->params[type];
	k->eps = attr->eps;
	k->add_gamma = gt_opcall_adds(call, "dgamma");
	k->add_beta = gt_opcall_adds(call, "dbeta");
	if (order == 0) {
		k->channels = x->dim[1];
		k->pixels = x->dim[2] * x->dim[3];
		k->param_bytes = gt_tdesc_bytes(gamma);
		k->param_size = gt_dtype_size(gamma->dtype);
		k->loop.head.scratch = k->param_bytes * (back ? 1 : 2);
	}
	*out = &k->loop.head;
	return GT_OK;
}
