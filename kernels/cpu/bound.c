/* The operation bound: from the two factors of a weight gradient it computes an upper limit of the magnitude of its elements and of those
 * of the bias gradient. */
#include "cpu/loops.h"
#include <stdlib.h>

struct bound {
	struct gt_kernel head;
	int64_t ndy, nx, rows;
};

struct span {
	const float *x;
	float *max; /* the largest magnitude of each chunk */
	int64_t n;
};

#define CHUNK 8192
#define LANES 32

/* Computes the largest magnitude of each chunk, as an integer: without their sign, the bits of floats have the order of the values, with
 * infinity and then NaN above all others. */
GT_CLONES static void chunk_max(const void *ctx, int64_t begin, int64_t end)
{
	const struct span *s = ctx;
	for (int64_t c = begin; c < end; c++) {
		const uint32_t *x = (const uint32_t *)(const void *)(s->x + c * CHUNK);
		int64_t n = s->n - c * CHUNK < CHUNK ? s->n - c * CHUNK : CHUNK, whole = n - n % LANES;
		uint32_t max[LANES] = {0}, top = 0;
		for (int64_t i = 0; i < whole; i += LANES)
			for (int j = 0; j < LANES; j++) {
				uint32_t v = x[i + j] & 0x7fffffffu;
				max[j] = v > max[j] ? v : max[j];
			}
		for (int64_t i = whole; i < n; i++)
			max[i - whole] = (x[i] & 0x7fffffffu) > max[i - whole] ? x[i] & 0x7fffffffu : max[i - whole];
		for (int j = 0; j < LANES; j++)
			top = max[j] > top ? max[j] : top;
		((uint32_t *)(void *)s->max)[c] = top;
	}
}

static double largest(struct gt_dev *dev, const float *x, int64_t n, float *scratch)
{
	struct span s = {x, scratch, n};
	int64_t chunks = (n + CHUNK - 1) / CHUNK;
	uint32_t top = 0, v;
	gt_cpu_for(dev, chunks, 16, 1, chunk_max, &s);
	for (int64_t c = 0; c < chunks; c++) {
		__builtin_memcpy(&v, &scratch[c], sizeof v);
		top = v > top ? v : top;
	}
	float f;
	__builtin_memcpy(&f, &top, sizeof f);
	return f;
}

static enum gt_code launch(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct bound *k = (const struct bound *)kernel;
	double dy = largest(dev, a->in[0], k->ndy, a->scratch), x = largest(dev, a->in[1], k->nx, a->scratch), *out = a->out[0];
	double b = (double)k->rows * dy * (x < 1 ? 1 : x); /* if x is NaN, x < 1 is false and the product is NaN */
	(void)err;
	if (!(b <= *out) && *out == *out)
		*out = b;
	return GT_OK;
}

enum gt_code gt_cpu_bound(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *dy = call->in[0], *x = call->in[1];
	struct bound *k;
	(void)dev;
	if (dy->dtype != GT_F32)
		return gt_cpu_refuse(call, err, "it takes f32 gradients");
	GT_KERNEL_NEW(k, launch, "bound", err);
	k->ndy = gt_tdesc_padded(dy);
	k->nx = gt_tdesc_padded(x);
	k->rows = dy->dim[0];
	k->head.small = gt_cpu_alone(k->ndy / CHUNK + 1, 16) && gt_cpu_alone(k->nx / CHUNK + 1, 16);
	k->head.scratch = (size_t)((k->ndy > k->nx ? k->ndy : k->nx) / CHUNK + 1) * sizeof(float);
	*out = &k->head;
	return GT_OK;
}
