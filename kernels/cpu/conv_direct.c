/* Direct convolutions in f32 for processors with AVX2 and without AVX-512: forward passes and gradients by x, in the shapes in which they
 * are faster than oneDNN's (conv_direct_dw.c: gradients of the weights). The weights are copied to panels of PANEL output channels; a block
 * of the output, a few pixels of a panel, stays in registers while the sum runs over the taps and the input channels of a group:
 *
 *     for each band of rows, group, panel, row, block of pixels:    y[pixels][panel] += x[pixels at tap][channel] * w[tap][channel][panel]
 *
 * A band is copied with zeros around it (conv_band.h). The gradient by x is a convolution of dy (conv_axis.h) with filters in which input
 * and output channels are exchanged.
 *
 * Each element is one sum in a fixed order, for any number of threads. */
#include "cpu/conv_axis.h"
#include "cpu/conv_band.h"
#include "cpu/loops.h"
#include <omp.h>

#define PANEL 16 /* output channels of a panel */
#define PIXELS 6 /* pixels of a block */
#define BAND 128 /* pixels of the output of a band, about */
#define BAND_FEW 512 /* the same for few input channels, whose band is small */

struct direct {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const float *x, *w, *b, *res;
	float *y;
	int64_t images, in, out, p, q, groups; /* in, out: channels of the product; p, q: size of its output */
	struct gt_conv_axis axis[2];
	int64_t bands, band_rows; /* bands of an image; rows of the output of a band */
	struct gt_conv_band band;
	float *panels; /* [group][panel][tap][in of a group][PANEL], then the bias [group][panel][PANEL] */
	float *work;   /* a band for each thread */
	int act, finish; /* enum gt_act: act: applied in registers; finish: applied to the whole output at the end */
	bool dx;
};

static int64_t count_panels(const struct direct *k)
{
	return (k->out / k->groups + PANEL - 1) / PANEL;
}

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#include "cpu/conv_direct.inc"
#pragma GCC pop_options

static void (*choose_rows(void))(const struct direct *k, const float *band, int64_t image, int64_t begin, int64_t end)
{
	return GT_CPU_AVX2 && !GT_CPU_AVX512 ? compute_rows_avx2 : NULL;
}
#else
static void (*choose_rows(void))(const struct direct *k, const float *band, int64_t image, int64_t begin, int64_t end)
{
	return NULL;
}
#endif

static const struct gt_operand_slot slots[] = {GT_SLOTS(direct, x, w, b, res, y), GT_SLOT_AS(direct, "dy", x), GT_SLOT_AS(direct, "dx", y)};

/* Packs panels [begin, end) of all groups' panels. */
static void pack_panels(const void *ctx, int64_t begin, int64_t end)
{
	const struct direct *k = ctx;
	int64_t in = k->in / k->groups, out = k->out / k->groups, taps = k->axis[0].kernel * k->axis[1].kernel, panels = count_panels(k);
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t group = unit / panels, first = unit % panels * PANEL, n = out - first < PANEL ? out - first : PANEL;
		float *to = k->panels + unit * taps * in * PANEL, *bias = k->panels + k->groups * panels * taps * in * PANEL + unit * PANEL;
		memset(to, 0, (size_t)(taps * in * PANEL) * sizeof *to);
		for (int64_t o = 0; o < n; o++)
			for (int64_t i = 0; i < in; i++) {
				int64_t a = group * out + first + o;
				const float *w = k->w + (k->dx ? (group * in + i) * out + first + o : a * in + i) * taps;
				for (int64_t t = 0; t < taps; t++)
					to[(t * in + i) * PANEL + o] = w[k->dx ? taps - 1 - t : t];
			}
		for (int64_t o = 0; o < PANEL; o++)
			bias[o] = k->b && o < n ? k->b[group * out + first + o] : 0;
	}
}

/* Computes bands [begin, end) of all images' bands. */
static void compute_bands(const void *ctx, int64_t begin, int64_t end)
{
	const struct direct *k = ctx;
	float *band = k->work + omp_get_thread_num() * gt_conv_band_floats(&k->band);
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t image = unit / k->bands, first = unit % k->bands * k->band_rows;
		int64_t last = first + k->band_rows < k->p ? first + k->band_rows : k->p;
		int64_t from = gt_conv_find_taps(&k->axis[0], first).from;
		gt_conv_band_copy(&k->band, k->x + image * k->band.h * k->band.wide * k->in, from, k->band.rows, band);
		choose_rows()(k, band, image, first, last);
	}
}

static enum gt_code launch_direct(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct direct *k = gt_cpu_loop_bind(head, a);
	int64_t panels = k->groups * count_panels(k);
	(void)err;
	k->panels = a->scratch;
	k->work = k->panels + panels * PANEL * (k->axis[0].kernel * k->axis[1].kernel * (k->in / k->groups) + 1);
	gt_cpu_for(dev, panels, 1, 1, pack_panels, k);
	gt_cpu_for(dev, k->images * k->bands, 1, 1, compute_bands, k);
	if (k->finish)
		gt_cpu_finish(dev, GT_F32, k->finish, k->y, NULL, k->images * k->p * k->q * k->out);
	return GT_OK;
}

/* Returns whether direct sums of this file are faster than oneDNN's kernels. in: input channels of the convolution. */
static bool supports_shape(const struct gt_attr_conv2d *a, int64_t in, int64_t out)
{
	int64_t groups = a->groups > 1 ? a->groups : 1;
	if (a->dilation[0] != 1 || a->dilation[1] != 1 || a->kernel[0] * a->kernel[1] == 1 || a->padding[0] >= a->kernel[0] ||
	    a->padding[1] >= a->kernel[1])
		return false;
	if (groups > 1)
		return in / groups >= 8 && out / groups >= 8;
	return in < 3 || (in >= 16 && (a->stride[0] > 1 || a->stride[1] > 1));
}

/* Divides the output into bands, and describes the copies of their input. */
static void choose_bands(struct direct *k, const struct gt_tdesc *x)
{
	const struct gt_conv_axis *rows = &k->axis[0], *cols = &k->axis[1];
	int64_t most = (k->in < 16 ? BAND_FEW : BAND) / k->q, from = gt_conv_find_taps(cols, 0).from;
	k->bands = most > 1 ? (k->p + most - 1) / most : k->p;
	k->band_rows = (k->p + k->bands - 1) / k->bands;
	/* The last tap of the last position, relative to the first tap of the first one, of any band. */
	k->band = (struct gt_conv_band){.h = x->dim[2], .wide = x->dim[3], .in = k->in, .left = -from, .ld = gt_conv_band_ld(k->in)};
	k->band.rows = ((k->band_rows - 1) * rows->stride + rows->kernel - 1) / rows->apart + 2;
	k->band.cols = gt_conv_divide_down((k->q - 1) * cols->stride - cols->padding + cols->kernel - 1, cols->apart) + 1 - from;
}

enum gt_code gt_cpu_conv_direct(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	bool dx = call->code == GT_OP_CONV2D_DX;
	const struct gt_tdesc *x = gt_opcall_operand(call, dx ? "dy" : "x"), *y = gt_opcall_output(call);
	struct gt_tdesc *w = gt_opcall_operand(call, "w");
	struct direct *k;
	*out = NULL;
	if (!choose_rows() || call->constant || !supports_shape(a, (dx ? y : x)->dim[1], (dx ? x : y)->dim[1]) || x->dtype != GT_F32 ||
	    w->dtype != GT_F32 || (!w->any && !gt_tdesc_plain(w)))
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "conv_direct", err);
	k->loop.head.launch = launch_direct;
	k->dx = dx;
	k->groups = a->groups > 1 ? a->groups : 1;
	k->images = x->dim[0], k->in = x->dim[1], k->out = y->dim[1], k->p = y->dim[2], k->q = y->dim[3];
	for (int i = 0; i < 2; i++)
		k->axis[i] = gt_conv_axis_of(a, i, dx);
	choose_bands(k, x);
	if (!dx)
		*(a->act == GT_ACT_RELU || a->act == GT_ACT_RELU6 ? &k->act : &k->finish) = a->act;
	int64_t panels = k->groups * count_panels(k) * PANEL * (k->axis[0].kernel * k->axis[1].kernel * (k->in / k->groups) + 1);
	k->loop.head.scratch = (size_t)(panels + gt_cpu_threads(dev) * gt_conv_band_floats(&k->band)) * sizeof(float);
	gt_cpu_choose_plain(w);
	*out = &k->loop.head;
	return GT_OK;
}
