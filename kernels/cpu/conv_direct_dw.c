/* Gradients of the weights of convolutions in f32 by direct sums, for processors with AVX2 and without AVX-512, in the shapes in which they
 * are faster than oneDNN's. Every weight is the sum over all pixels of dy * x, with x at the pixel that its tap meets:
 *
 *     rows of all images --parts--> bands of rows --> panels of output channels --> blocks of weights
 *
 * A band of x is copied with zeros around it (conv_band.h), so that the positions of the taps are the same for all pixels; the panel of dy
 * is copied too, because its pixels are far apart. A block of weights, a few values of x by a panel of dy, stays in registers while the sum
 * runs over the pixels of the band. Its sums are added to those of a part of the rows; at the end, the parts are added in order. The parts
 * depend on the shapes only, not on the number of threads. */
#include "base/arena.h"
#include "cpu/conv_band.h"
#include "cpu/conv_sums.h"
#include <omp.h>
#include <stdlib.h>

#define BAND 128        /* pixels of dy of a band, about */
#define BAND_FEW 256    /* the same for few input channels, whose band is small */
#define PARTS 16        /* maximum number of parts of the rows; with fewer parts, the panels are divided into slices too */
#define SUMS (4 << 20)  /* maximum floats of the sums of all parts, if there is more than one */

struct direct_dw {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const float *dy, *x;
	float *dw, *db;
	const struct dw_isa *isa;
	int64_t images, in, out, p, q, groups, kernel[2], stride[2], padding[2];
	int64_t bands, band_rows;        /* bands of an image; rows of dy of a band */
	struct gt_conv_band band;
	int64_t values, panels;          /* of a group: values of x that a pixel of dy meets, [tap][in]; panels of output channels */
	struct gt_conv_sums sums;        /* a part: [group][panel][value][width] */
	int64_t slices;                  /* of the panels */
	int64_t *from;                   /* for each value, its distance from the first one in the band */
	float *work;                     /* for each thread: a band, and a panel of dy */
	bool add_db;
};

struct dw_isa {
	int64_t width; /* channels of a panel */
	/* Adds a band to the sums of the panels [begin, end) of all groups' panels. panel: memory for a panel of a band of dy. */
	void (*add_band)(const struct direct_dw *k, const float *band, const float *dy, int64_t rows, float *panel, float *sum, int64_t begin,
	                 int64_t end);
};

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#define NV 2
#include "cpu/conv_direct_dw.inc"
#pragma GCC pop_options

static const struct dw_isa *choose_isa(void)
{
	return GT_CPU_AVX2 && !GT_CPU_AVX512 ? &direct_dw_avx2 : NULL;
}
#else
static const struct dw_isa *choose_isa(void)
{
	return NULL;
}
#endif

static const struct gt_operand_slot slots[] = {GT_SLOTS(direct_dw, dy, x, dw, db)};

static int64_t work_floats(const struct direct_dw *k)
{
	return gt_conv_band_floats(&k->band) + k->band_rows * k->q * k->isa->width;
}

/* Computes the sums of units [begin, end): a slice of the panels, for a part of the rows. */
static void sum_units(const void *ctx, int64_t begin, int64_t end)
{
	const struct direct_dw *k = ctx;
	float *band = k->work + omp_get_thread_num() * work_floats(k), *panel = band + gt_conv_band_floats(&k->band);
	int64_t panels = k->groups * k->panels, size = k->sums.panel_step;
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t part = unit / k->slices, slice = unit % k->slices, all = k->images * k->p, last = all * (part + 1) / k->sums.parts;
		int64_t first = panels * slice / k->slices, stop = panels * (slice + 1) / k->slices;
		float *sum = k->sums.part + part * k->sums.floats;
		memset(sum + first * size, 0, (size_t)((stop - first) * size) * sizeof *sum);
		for (int64_t r = all * part / k->sums.parts, rows; r < last; r += rows) {
			int64_t p = r % k->p;
			rows = k->p - p < k->band_rows ? k->p - p : k->band_rows;
			rows = last - r < rows ? last - r : rows;
			gt_conv_band_copy(&k->band, k->x + r / k->p * k->band.h * k->band.wide * k->in, p * k->stride[0] - k->padding[0],
			                  (rows - 1) * k->stride[0] + k->kernel[0], band);
			k->isa->add_band(k, band, k->dy + r * k->q * k->out, rows, panel, sum, first, stop);
		}
	}
}

static enum gt_code launch_dw(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct direct_dw *k = gt_cpu_loop_bind(head, a);
	(void)err;
	k->sums.dw = k->dw;
	k->sums.part = a->scratch;
	k->work = k->sums.part + k->sums.parts * k->sums.floats;
	gt_cpu_for(dev, k->sums.parts * k->slices, 1, 1, sum_units, k);
	gt_conv_sums_store(dev, &k->sums);
	if (k->db)
		gt_cpu_sum_bias(dev, &(struct gt_cpu_bias){k->dy, k->db, k->images, k->p * k->q, k->out, k->add_db});
	return GT_OK;
}

static void release_dw(struct gt_kernel *head)
{
	struct direct_dw *k = (struct direct_dw *)head;
	free(k->sums.at);
	free(k->from);
	free(k);
}

/* Returns whether direct sums of this file are faster than oneDNN's kernels. Filters that do not overlap are products of matrices. */
static bool supports_shape(const struct gt_attr_conv2d *a, int64_t in, int64_t out)
{
	int64_t groups = a->groups > 1 ? a->groups : 1;
	if (a->dilation[0] != 1 || a->dilation[1] != 1 || a->padding[0] >= a->kernel[0] || a->padding[1] >= a->kernel[1] ||
	    (a->stride[0] >= a->kernel[0] && a->stride[1] >= a->kernel[1]))
		return false;
	if (groups > 1)
		return in / groups >= 8 && out / groups >= 8;
	return in < 16 || a->stride[0] > 1 || a->stride[1] > 1;
}

/* Allocates the positions of the values. */
static enum gt_code fill_positions(struct direct_dw *k, struct gt_err *err)
{
	int64_t in = k->in / k->groups;
	k->from = malloc((size_t)k->values * sizeof *k->from);
	if (!k->from)
		return gt_fail_memory(err, (size_t)k->values * sizeof *k->from);
	for (int64_t i = 0; i < k->values; i++)
		k->from[i] = (i / in / k->kernel[1] * k->band.cols + i / in % k->kernel[1]) * k->band.ld + i % in;
	return GT_OK;
}

/* Chooses the parts, and the order of the sums in a part. */
static void choose_parts(struct direct_dw *k)
{
	struct gt_conv_sums *s = &k->sums;
	s->width = k->isa->width;
	s->in_step = s->width;
	s->tap_step = k->in / k->groups * s->width;
	s->panel_step = k->values * s->width;
	s->group_step = k->panels * s->panel_step;
	s->floats = k->groups * s->group_step;
	s->parts = SUMS / s->floats < PARTS ? SUMS / s->floats : PARTS;
	s->parts = s->parts < 1 ? 1 : s->parts < k->images * k->p ? s->parts : k->images * k->p;
	k->slices = (PARTS + s->parts - 1) / s->parts;
	if (k->slices > k->groups * k->panels)
		k->slices = k->groups * k->panels;
}

enum gt_code gt_cpu_conv_direct_dw(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x"), *dy = gt_opcall_operand(call, "dy");
	struct gt_tdesc *dw = gt_opcall_operand(call, "dw");
	struct direct_dw *k;
	*out = NULL;
	if (!dw || !choose_isa() || x->dtype != GT_F32 || !supports_shape(a, x->dim[1], dy->dim[1]))
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "conv_direct", err);
	k->loop.head.launch = launch_dw;
	k->loop.head.release = release_dw;
	k->isa = choose_isa();
	k->groups = a->groups > 1 ? a->groups : 1;
	k->images = x->dim[0], k->in = x->dim[1], k->out = dy->dim[1], k->p = dy->dim[2], k->q = dy->dim[3];
	for (int i = 0; i < 2; i++)
		k->kernel[i] = a->kernel[i], k->stride[i] = a->stride[i], k->padding[i] = a->padding[i];
	k->band_rows = (k->in < 16 ? BAND_FEW : BAND) / k->q;
	k->band_rows = k->band_rows < 1 ? 1 : k->band_rows < k->p ? k->band_rows : k->p;
	k->band = (struct gt_conv_band){.h = x->dim[2], .wide = x->dim[3], .in = k->in, .left = k->padding[1], .ld = gt_conv_band_ld(k->in)};
	k->band.rows = (k->band_rows - 1) * k->stride[0] + k->kernel[0];
	k->band.cols = (k->q - 1) * k->stride[1] + k->kernel[1];
	k->values = k->kernel[0] * k->kernel[1] * (k->in / k->groups);
	k->panels = (k->out / k->groups + k->isa->width - 1) / k->isa->width;
	choose_parts(k);
	k->add_db = gt_opcall_adds(call, "db");
	k->loop.head.scratch = (size_t)(k->sums.parts * k->sums.floats + gt_cpu_threads(dev) * work_floats(k)) * sizeof(float);
	enum gt_code code = gt_conv_sums_init(&k->sums, call, err);
	code = code == GT_OK ? fill_positions(k, err) : code;
	if (code != GT_OK) {
		release_dw(&k->loop.head);
		return code;
	}
	*out = &k->loop.head;
	return GT_OK;
}
