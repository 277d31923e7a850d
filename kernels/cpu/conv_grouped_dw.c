/* Gradients of the weights of convolutions in f32 with groups of 1, 2, 4 or 8 channels, as many in as out (conv_grouped.c: forward and dx).
 * Every weight is the sum over all pixels of dy * x, with x at the pixel that its tap meets:
 *
 *     rows of all images --parts--> rows --spans--> pixels with the same set of addresses: one for each tap
 *
 * A tap outside of the image reads zeros instead, so the loops over the pixels of a span have no conditions. A vector holds neighbouring
 * channels of x. Each channel of the groups of dy is distributed to the lanes of its group, so that a vector has the weights of one tap
 * from all channels of x to one channel of each group.
 *
 * The sums of a row are added to those of a part of the rows; at the end, the parts are added in order. The parts depend on the shapes
 * only, not on the number of threads. */
#include "base/arena.h"
#include "cpu/conv_sums.h"
#include <string.h>

#define TAPS 64   /* maximum number of taps of a filter */
#define WIDE 32   /* minimum number of columns of dy of a wide image */
#define BORDER 8  /* maximum padding of a row */
#define SPANS (2 * BORDER + 2)
#define PARTS 16  /* maximum number of parts of the rows */
#define MOST 8    /* maximum number of channels of a group */

/* Consecutive pixels of a row of dy. x: for each tap, the address of what the first pixel meets. */
struct span {
	const float *dy, *x[TAPS];
	int64_t count;
};

/* A row of dy. What the next row reads besides is prefetched meanwhile, because the loops read it in steps that hardware does not foresee.
 */
struct row {
	struct span span[SPANS];
	int spans;
	const float *next_x, *next_dy;
	int64_t floats_x, floats_dy; /* sizes of what is prefetched */
};

struct grouped_dw {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const float *dy, *x;
	float *dw, *db;
	void (*add_row)(const struct grouped_dw *k, const struct row *row, float *sum);
	int64_t images, channels, h, wide, p, q, kernel[2], stride[2], padding[2];
	int64_t taps, size;      /* size: number of channels of a group */
	struct gt_conv_sums sums; /* a part: [tap][channel of a group of dy][channels of x] */
	int32_t lanes[MOST][16]; /* for each channel of a group, the lanes of dy that are multiplied with a vector of x */
	float *zeros;            /* what taps outside of the image meet */
	bool add_db;
};

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#include "cpu/conv_grouped_dw.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#include "cpu/conv_grouped_dw.inc"
#pragma GCC pop_options

static void (*choose_row(void))(const struct grouped_dw *k, const struct row *row, float *sum)
{
	return GT_CPU_AVX512 ? add_row_avx512 : GT_CPU_AVX2 ? add_row_avx2 : NULL;
}
#else
static void (*choose_row(void))(const struct grouped_dw *k, const struct row *row, float *sum)
{
	return NULL;
}
#endif

static const struct gt_operand_slot slots[] = {GT_SLOTS(grouped_dw, dy, x, dw, db)};

static int64_t clamp_to(int64_t v, int64_t least, int64_t most)
{
	return v < least ? least : v > most ? most : v;
}

/* Adds a span of `count` pixels from column q on. */
static void add_span(const struct grouped_dw *k, struct row *row, int64_t image, int64_t p, int64_t q, int64_t count)
{
	struct span *s = &row->span[row->spans++];
	*s = (struct span){.dy = k->dy + ((image * k->p + p) * k->q + q) * k->channels, .count = count};
	for (int64_t t = 0; t < k->taps; t++) {
		int64_t y = p * k->stride[0] - k->padding[0] + t / k->kernel[1], x = q * k->stride[1] - k->padding[1] + t % k->kernel[1];
		bool inside = y >= 0 && y < k->h && x >= 0 && x < k->wide;
		s->x[t] = inside ? k->x + ((image * k->h + y) * k->wide + x) * k->channels : k->zeros;
	}
}

/* Divides row p of an image into spans: pixels at the borders are spans of their own. */
static void divide_row(const struct grouped_dw *k, struct row *row, int64_t image, int64_t p)
{
	int64_t stride = k->stride[1], inside = k->wide + k->padding[1] - k->kernel[1];
	int64_t begin = clamp_to((k->padding[1] + stride - 1) / stride, 0, k->q);
	int64_t end = clamp_to(inside < 0 ? 0 : inside / stride + 1, begin, k->q);
	row->spans = 0;
	row->next_x = k->x + (image * k->h + p * k->stride[0] - k->padding[0] + k->kernel[0]) * k->wide * k->channels;
	row->next_dy = k->dy + (image * k->p + p + 1) * k->q * k->channels;
	row->floats_x = k->stride[0] * k->wide * k->channels;
	row->floats_dy = k->q * k->channels;
	for (int64_t q = 0; q < begin; q++)
		add_span(k, row, image, p, q, 1);
	if (end > begin)
		add_span(k, row, image, p, begin, end - begin);
	for (int64_t q = end; q < k->q; q++)
		add_span(k, row, image, p, q, 1);
}

/* Computes the sums of parts [begin, end) of the rows. */
static void sum_parts(const void *ctx, int64_t begin, int64_t end)
{
	const struct grouped_dw *k = ctx;
	struct row row;
	for (int64_t i = begin; i < end; i++) {
		float *sum = k->sums.part + i * k->sums.floats;
		memset(sum, 0, (size_t)k->sums.floats * sizeof *sum);
		for (int64_t r = k->images * k->p * i / k->sums.parts; r < k->images * k->p * (i + 1) / k->sums.parts; r++) {
			divide_row(k, &row, r / k->p, r % k->p);
			k->add_row(k, &row, sum);
		}
	}
}

static enum gt_code launch_dw(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct grouped_dw *k = gt_cpu_loop_bind(head, a);
	(void)err;
	k->sums.dw = k->dw;
	k->sums.part = a->scratch;
	gt_cpu_for(dev, k->sums.parts, 1, 1, sum_parts, k);
	gt_conv_sums_store(dev, &k->sums);
	if (k->db)
		gt_cpu_sum_bias(dev, &(struct gt_cpu_bias){k->dy, k->db, k->images, k->p * k->q, k->channels, k->add_db});
	return GT_OK;
}

static void release_dw(struct gt_kernel *head)
{
	struct grouped_dw *k = (struct grouped_dw *)head;
	free(k->sums.at);
	free(k->zeros);
	free(k);
}

/* Returns whether the groups of a convolution are those of this file, and whether it is faster than oneDNN's kernels: these are faster for
 * depthwise filters of up to 3x3 taps, except for wide images. */
static bool supports_groups(const struct gt_attr_conv2d *a, const struct gt_tdesc *x, const struct gt_tdesc *dy)
{
	int64_t size = a->groups > 1 ? x->dim[1] / a->groups : 0, taps = a->kernel[0] * a->kernel[1];
	if (x->dim[1] != dy->dim[1] || x->dim[1] < 8 || a->dilation[0] != 1 || a->dilation[1] != 1 || taps > TAPS || a->padding[1] > BORDER ||
	    a->padding[1] >= a->kernel[1])
		return false;
	return size == 1 ? taps > 9 || dy->dim[3] >= WIDE : size == 2 || size == 4 || size == 8;
}

enum gt_code gt_cpu_conv_grouped_dw(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x"), *dy = gt_opcall_operand(call, "dy");
	struct gt_tdesc *dw = gt_opcall_operand(call, "dw");
	struct grouped_dw *k;
	(void)dev;
	*out = NULL;
	if (!dw || !choose_row() || x->dtype != GT_F32 || !supports_groups(a, x, dy))
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "conv_grouped", err);
	k->loop.head.launch = launch_dw;
	k->loop.head.release = release_dw;
	k->add_row = choose_row();
	k->images = x->dim[0], k->channels = x->dim[1], k->size = k->channels / a->groups;
	k->h = x->dim[2], k->wide = x->dim[3], k->p = dy->dim[2], k->q = dy->dim[3];
	for (int i = 0; i < 2; i++)
		k->kernel[i] = a->kernel[i], k->stride[i] = a->stride[i], k->padding[i] = a->padding[i];
	k->taps = k->kernel[0] * k->kernel[1];
	k->sums.width = 1;
	k->sums.in_step = 1;
	k->sums.group_step = k->size;
	k->sums.panel_step = k->channels;
	k->sums.tap_step = k->size * k->channels;
	k->sums.floats = k->taps * k->sums.tap_step;
	k->sums.parts = k->images * k->p < PARTS ? k->images * k->p : PARTS;
	k->add_db = gt_opcall_adds(call, "db");
	for (int64_t i = 0; i < k->size; i++)
		for (int64_t lane = 0; lane < 16; lane++)
			k->lanes[i][lane] = (int32_t)(lane / k->size * k->size + i);
	k->loop.head.scratch = (size_t)(k->sums.parts * k->sums.floats) * sizeof(float);
	size_t zeros = (size_t)(k->wide * k->channels + 64);
	k->zeros = calloc(zeros, sizeof *k->zeros);
	enum gt_code code = k->zeros ? gt_conv_sums_init(&k->sums, call, err) : gt_fail_memory(err, zeros * sizeof *k->zeros);
	if (code != GT_OK) {
		release_dw(&k->loop.head);
		return code;
	}
	*out = &k->loop.head;
	return GT_OK;
}
