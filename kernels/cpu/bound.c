/* The operation bound: from the two factors of a weight gradient it computes an upper limit for the magnitude of all elements of the weight
 * and bias gradients. */
#include "cpu/loops.h"

struct bound {
	struct gt_cpu_loop loop;
	const void *dy, *x;
	double *scalar;
	int64_t ndy, nx;
	double rows; /* number of summed products: rows of dy, times gt_attr_bound's factor */
	bool half;   /* the operands are bf16 */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(bound, dy, x, scalar)};

struct span {
	const void *x;
	float *max; /* the largest magnitude of each chunk */
	int64_t n;
};

#define CHUNK 8192
#define LANES 32

/* Computes the largest magnitude of each chunk, as an integer: without their sign, the bits of floats have the order of the values, with
 * infinity and then NaN above all others. shift: left shift from the bits of T to the bits of an f32. */
#define GT_CHUNK_MAX(name, T, sign, shift)                                                                                                 \
	GT_CLONES static void name(const void *ctx, int64_t begin, int64_t end)                                                                \
	{                                                                                                                                      \
		const struct span *s = ctx;                                                                                                        \
		for (int64_t c = begin; c < end; c++) {                                                                                            \
			const T *x = (const T *)s->x + c * CHUNK;                                                                                      \
			int64_t n = s->n - c * CHUNK < CHUNK ? s->n - c * CHUNK : CHUNK, whole = n - n % LANES;                                        \
			T max[LANES] = {0}, top = 0;                                                                                                   \
			for (int64_t i = 0; i < whole; i += LANES)                                                                                     \
				for (int j = 0; j < LANES; j++) {                                                                                          \
					T v = x[i + j] & (T)~(sign);                                                                                           \
					max[j] = v > max[j] ? v : max[j];                                                                                      \
				}                                                                                                                          \
			for (int64_t i = whole; i < n; i++)                                                                                            \
				max[i - whole] = (x[i] & (T)~(sign)) > max[i - whole] ? (T)(x[i] & (T)~(sign)) : max[i - whole];                           \
			for (int j = 0; j < LANES; j++)                                                                                                \
				top = max[j] > top ? max[j] : top;                                                                                         \
			((uint32_t *)(void *)s->max)[c] = (uint32_t)top << (shift);                                                                    \
		}                                                                                                                                  \
	}
GT_CHUNK_MAX(chunk_max, uint32_t, 0x80000000u, 0)
GT_CHUNK_MAX(chunk_max_bf16, uint16_t, 0x8000u, 16)

static double find_max_magnitude(struct gt_dev *dev, bool half, const void *x, int64_t n, float *scratch)
{
	struct span s = {x, scratch, n};
	int64_t chunks = (n + CHUNK - 1) / CHUNK;
	uint32_t top = 0, v;
	gt_cpu_for(dev, chunks, 16, 1, half ? chunk_max_bf16 : chunk_max, &s);
	for (int64_t c = 0; c < chunks; c++) {
		__builtin_memcpy(&v, &scratch[c], sizeof v);
		top = v > top ? v : top;
	}
	float f;
	__builtin_memcpy(&f, &top, sizeof f);
	return f;
}

static enum gt_code launch_bound(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct bound *k = gt_cpu_loop_bind(kernel, a);
	double dy = find_max_magnitude(dev, k->half, k->dy, k->ndy, a->scratch);
	double x = k->x == k->dy ? dy : find_max_magnitude(dev, k->half, k->x, k->nx, a->scratch);
	double b = k->rows * dy * (x < 1 ? 1 : x); /* if x is NaN, x < 1 is false and the product is NaN */
	(void)err;
	if (!(b <= *k->scalar) && *k->scalar == *k->scalar)
		*k->scalar = b;
	return GT_OK;
}

enum gt_code gt_cpu_bound(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *dy = gt_opcall_operand(call, "dy"), *x = gt_opcall_operand(call, "x");
	struct bound *k;
	(void)dev;
	if ((dy->dtype != GT_F32 && dy->dtype != GT_BF16) || x->dtype != dy->dtype)
		return gt_opcall_refuse(call, err, "only f32 and bf16 gradients are supported");
	GT_LOOP_NEW(k, slots, call, "bound", err);
	k->loop.head.launch = launch_bound;
	k->ndy = gt_tdesc_padded(dy);
	k->nx = gt_tdesc_padded(x);
	k->rows = (double)dy->dim[0] * ((const struct gt_attr_scale *)call->attr)->factor;
	k->half = dy->dtype == GT_BF16;
	k->loop.head.small = gt_cpu_alone(k->ndy / CHUNK + 1, 16) && gt_cpu_alone(k->nx / CHUNK + 1, 16);
	k->loop.head.scratch = (size_t)((k->ndy > k->nx ? k->ndy : k->nx) / CHUNK + 1) * sizeof(float);
	*out = &k->loop.head;
	return GT_OK;
}
