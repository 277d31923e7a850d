/* Pooling, f32 and bf16, NHWC. A window is a range of rows and a range of columns. The ranges of all output rows and columns are computed
 * at prepare time, so that plain and adaptive pooling share one loop. Forward calls divide the rows of the output among threads, gradients
 * divide whole images: where windows overlap, the sums of an image are added in one fixed order, in f32. */
#include "cpu/loops.h"
#include "ew.h"
#include <omp.h>
#include <string.h>

#define GRAIN 32768 /* number of input elements for which a second thread is worthwhile */

struct range {
	int32_t begin, end; /* range of rows or columns, clipped to the input */
	int32_t size;       /* number of rows or columns by which avgpool divides */
};

/* The arguments of a loop over one row of the output. */
struct row {
	int64_t c, ow, w;
	struct range h;
	const struct range *cols;
	int64_t limit; /* number of elements that may be accessed, from the first element of the image */
};

/* Computes the means of the first channels of one row of the output, as many as are whole blocks of WIDE (pool_wide.inc). */
typedef void avg_wide_fn(const struct row *r, const float *x, float *y);

struct pool {
	struct gt_cpu_loop loop; /* loop over the rows of the output; a gradient: over images */
	const void *x;           /* or dy */
	void *y;                 /* or dx */
	int32_t *idx;
	float *scratch;
	int64_t n, c, h, w, oh, ow;
	bool bf16, max;
	avg_wide_fn *avg_wide;     /* NULL: the instruction set has none */
	struct range *rows, *cols; /* the windows of all output rows [oh] and columns [ow], in one allocation */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(pool, x, y, idx), GT_SLOT_AS(pool, "dy", x), GT_SLOT_AS(pool, "dx", y)};

#define WIDE 64 /* number of channels that means and their gradients process at a time */
#define MANY 32 /* minimum number of channels for which a loop over channels is inside the loop over the pixels of a window */

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#include "cpu/pool_wide.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#include "cpu/pool_wide.inc"
#pragma GCC pop_options

static avg_wide_fn *choose_avg_wide(void)
{
	return GT_CPU_AVX512 ? avg_wide_avx512 : GT_CPU_AVX2 ? avg_wide_avx2 : NULL;
}
#elif defined(__aarch64__)
#include <arm_neon.h>

#include "cpu/vector_neon.inc"
#include "cpu/pool_wide.inc"

static avg_wide_fn *choose_avg_wide(void)
{
	return avg_wide_neon;
}
#else
static avg_wide_fn *choose_avg_wide(void)
{
	return NULL;
}
#endif

#define GT_WITHOUT_F64
#define GT_TYPED "cpu/pool.inc"
#include "cpu/typed.inc"

GT_CLONES static void narrow_bf16(const float *restrict from, uint16_t *restrict to, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = gt_bf16_from_f32(from[i]);
}

/* Computes the means of one row of the output, first of the last channels, because their blocks may extend into the next pixel. */
static void avg_channels(avg_wide_fn *wide, const struct row *r, const float *x, float *y)
{
	int64_t first = wide ? r->c / WIDE * WIDE : 0;
	avg_row_f32(r, first, x, y);
	if (first)
		wide(r, x, y);
}

/* Computes rows [begin, end) of the n * oh rows of the output. */
static void pool_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct pool *k = ctx;
	int64_t es = k->bf16 ? 2 : 4, c = k->c, image = k->h * k->w * c;
	for (int64_t r = begin; r < end; r++) {
		int64_t n = r / k->oh, at = r * k->ow * c;
		const void *x = (const char *)k->x + n * image * es;
		void *y = (char *)k->y + at * es;
		struct row row = {.c = c, .ow = k->ow, .w = k->w, .h = k->rows[r % k->oh], .cols = k->cols, .limit = (k->n - n) * image};
		if (k->max && k->bf16)
			max_row_bf16(&row, x, y, k->idx + at);
		else if (k->max)
			max_row_f32(&row, x, y, k->idx + at);
		else if (k->bf16)
			avg_row_bf16(&row, 0, x, y);
		else
			avg_channels(k->avg_wide, &row, x, y);
	}
}

/* Computes images [begin, end). Gradients of bf16 are added up in an f32 image that belongs to the thread. */
static void pool_images_dx(const void *ctx, int64_t begin, int64_t end)
{
	const struct pool *k = ctx;
	int64_t es = k->bf16 ? 2 : 4, c = k->c, size = k->h * k->w * c, pixels = k->oh * k->ow;
	for (int64_t n = begin; n < end; n++) {
		const void *dy = (const char *)k->x + n * pixels * c * es;
		void *out = (char *)k->y + n * size * es;
		float *dx = k->bf16 ? k->scratch + omp_get_thread_num() * size : out;
		memset(dx, 0, sizeof *dx * (size_t)size);
		if (k->max && k->bf16)
			max_spread_bf16(dy, k->idx + n * pixels * c, c, dx, pixels);
		else if (k->max)
			max_spread_f32(dy, k->idx + n * pixels * c, c, dx, pixels);
		for (int64_t o = 0; !k->max && o < k->oh; o++) {
			struct row row = {.c = c, .ow = k->ow, .w = k->w, .h = k->rows[o], .cols = k->cols, .limit = size};
			if (k->bf16)
				avg_spread_bf16(&row, (const uint16_t *)dy + o * k->ow * c, dx);
			else
				avg_spread_f32(&row, (const float *)dy + o * k->ow * c, dx);
		}
		if (k->bf16)
			narrow_bf16(dx, out, size);
	}
}

static enum gt_code launch_backward(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct pool *k = gt_cpu_loop_bind(head, a);
	(void)err;
	k->scratch = a->scratch;
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

/* Computes the windows of one direction: `out` windows over `in` elements. */
static void compute_windows(struct range *r, int64_t out, int64_t in, const struct gt_attr_pool2d *a, int d)
{
	for (int64_t o = 0; o < out; o++) {
		int64_t begin = a ? o * a->stride[d] - a->padding[d] : o * in / out;
		int64_t end = a ? begin + a->kernel[d] : ((o + 1) * in + out - 1) / out, size;
		if (a && end > in + a->padding[d]) /* with ceil_mode, the last window may extend beyond the padding and is cut off there */
			end = in + a->padding[d];
		size = end - begin;
		begin = begin < 0 ? 0 : begin;
		end = end > in ? in : end;
		r[o] = (struct range){(int32_t)begin, (int32_t)end, (int32_t)(a && a->count_include_pad ? size : end - begin)};
	}
}

static void release_pool(struct gt_kernel *head)
{
	struct pool *k = (struct pool *)head;
	free(k->rows);
	free(k);
}

/* Prepares a pooling operation: finds its kind, checks the shape, and computes the windows of all rows and columns. */
enum gt_code gt_cpu_pool(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	/* The attribute of maxpool2d.dx may belong to either forward operation, because the indices suffice. */
	bool plain = call->code == GT_OP_MAXPOOL2D || call->code == GT_OP_AVGPOOL2D || call->code == GT_OP_AVGPOOL2D_DX;
	bool max = call->code == GT_OP_MAXPOOL2D || call->code == GT_OP_ADAPTIVE_MAXPOOL2D || call->code == GT_OP_MAXPOOL2D_DX;
	const struct gt_attr_pool2d *attr = plain ? call->attr : NULL;
	const struct gt_tdesc *dx = gt_opcall_operand(call, "dx"), *x = dx ? dx : gt_opcall_operand(call, "x");
	const struct gt_tdesc *y = gt_opcall_operand(call, dx ? "dy" : "y"), *idx = gt_opcall_operand(call, "idx");
	struct pool *k;
	if (max && (!idx || idx->dtype != GT_I32))
		return gt_opcall_refuse(call, err, "the output of indices is required and must be i32");
	if (x->dim[2] * x->dim[3] > INT32_MAX)
		return gt_opcall_refuse(call, err, "the image has more than 2^31 pixels");
	GT_LOOP_NEW(k, slots, call, dx ? "loops:pool.dx" : "loops:pool", err);
	k->loop.head.release = release_pool;
	k->n = x->dim[0], k->c = x->dim[1], k->h = x->dim[2], k->w = x->dim[3];
	k->oh = y->dim[2], k->ow = y->dim[3];
	k->bf16 = x->dtype == GT_BF16;
	k->max = max;
	k->avg_wide = choose_avg_wide();
	if (!(k->rows = malloc(sizeof *k->rows * (size_t)(k->oh + k->ow)))) {
		release_pool(&k->loop.head);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	k->cols = k->rows + k->oh;
	compute_windows(k->rows, k->oh, k->h, attr, 0);
	compute_windows(k->cols, k->ow, k->w, attr, 1);
	for (int64_t o = 0; (!dx || !max) && o < k->oh + k->ow; o++)
		if (k->rows[o].begin >= k->rows[o].end) {
			release_pool(&k->loop.head);
			return gt_opcall_refuse(call, err, "a window contains no pixel of the image");
		}
	if (dx) {
		k->loop.head.launch = launch_backward;
		k->loop.head.scratch = k->bf16 ? sizeof(float) * (size_t)gt_cpu_threads(dev) * (size_t)(k->h * k->w * k->c) : 0;
		gt_cpu_loop_over(&k->loop, pool_images_dx, k->n, 1 + GRAIN / (k->h * k->w * k->c));
	} else {
		gt_cpu_loop_over(&k->loop, pool_rows, k->n * k->oh, 1 + GRAIN / (k->h * k->w * k->c / k->oh + 1));
	}
	*out = &k->loop.head;
	return GT_OK;
}
