/* A 1x1 convolution and the depthwise convolution that reads it, in f32, in evaluations with constant weights. The tensor between them,
 * often six times as large as the others, is never in memory: the channels of one panel of weights (conv_1x1.h) are expanded a few rows at
 * a time into a tile, which the rows of the depthwise convolution (conv_depthwise.h) read from the L1 or L2 cache:
 *
 *     x [rows][wide][in]  --1x1, act-->  tile [rows][wide][channels of a panel]  --depthwise, act-->  y [rows][wide][channels]
 *
 * The rows of the tile that the next rows of the output read too are moved to its front before it is filled again. A unit of work is one
 * panel of a band of rows of an image; bands are so small that their part of x stays in the L2 cache while all panels read it, and so many
 * that all threads have work. Each element is the same sum as in the two convolutions of their own, for any division. */
#include "cpu/conv_1x1.h"
#include "cpu/conv_depthwise.h"
#include "cpu/loops.h"
#include <omp.h>
#include <string.h>

#define TILE (48 << 10)  /* maximum number of bytes of new rows in a tile, if the rows for one row of the output are not larger */
#define BAND (384 << 10) /* maximum number of bytes of x that a band reads, if a row is not larger */
#define GRAIN 1e5        /* minimum number of multiply-adds of a thread, about 2 us */

struct pair {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const float *x, *w, *b, *w2, *b2;
	float *y;
	const struct gt_conv_isa *isa;
	gt_depthwise_row *row;
	int64_t n, h, wide, in, out, p, q, kernel[2], stride, padding[2]; /* stride: of rows */
	int expand_act, expand_finish; /* enum gt_act: applied to the tile in registers; applied to its new rows */
	int act, finish;               /* the same for the output; finish: applied to the whole output at the end */
	int64_t panels, bands, tile_rows;
	float *weights;                /* packed panels, then their bias, padded with zeros */
	float *filters;                /* for each panel [kernel rows * columns + 1][width]: its filters, then their bias, padded with zeros */
	bool packed;
	float *work;                   /* for each thread, a tile */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(pair, x, w, b, w2, b2, y)};

static int64_t smaller_of(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void pack_weights(struct pair *k)
{
	int64_t taps = k->kernel[0] * k->kernel[1], width = k->isa->width;
	gt_cpu_pack_panels(k->isa, k->w, k->in, k->out, k->weights, 0, k->panels);
	if (k->b)
		memcpy(k->weights + k->panels * width * k->in, k->b, (size_t)k->out * sizeof *k->b);
	for (int64_t c = 0; c < k->out; c++) {
		float *to = k->filters + c / width * (taps + 1) * width + c % width;
		for (int64_t t = 0; t < taps; t++)
			to[t * width] = k->w2[c * taps + t];
		to[taps * width] = k->b2 ? k->b2[c] : 0;
	}
	k->packed = true;
}

/* Writes the channels of a panel of `rows` rows from x on to `to`. */
static void expand_rows(const struct pair *k, int64_t panel, const float *x, float *to, int64_t rows)
{
	int64_t width = k->isa->width, half = width / 2, cols = k->expand_finish ? width : smaller_of(k->out - panel * width, width);
	const float *weights = k->weights + panel * width * k->in, *bias = k->weights + k->panels * width * k->in + panel * width;
	const float *next = panel + 1 < k->panels ? weights + width * k->in : k->weights;
	struct gt_product p = {.y = to, .lda = k->in, .ld = width, .rows = rows * k->wide, .cols = cols > half ? width : half};
	for (int64_t i = 0; i < k->in; i += GT_CONV_PART) {
		bool last = i + GT_CONV_PART >= k->in;
		p.a = x + i;
		p.n = last ? k->in - i : GT_CONV_PART;
		p.panel = weights + i * width;
		p.bias = i ? NULL : bias;
		p.next = next + i * width;
		p.act = last ? k->expand_act : GT_ACT_NONE;
		k->isa->multiply(&p);
	}
	if (k->expand_finish)
		gt_cpu_finish_rows(k->expand_finish, to, p.rows * width);
}

/* Computes a panel of the rows [begin, end) of the output of an image. */
static void compute_band(const struct pair *k, const float *x, float *y, int64_t panel, int64_t begin, int64_t end, float *tile)
{
	int64_t width = k->isa->width, size = k->wide * width, o = panel * width, taps = k->kernel[0] * k->kernel[1];
	int64_t first = 0, rows = 0; /* of the input: the first row in the tile, and the number of rows */
	int64_t need = smaller_of(k->h, (end - 1) * k->stride - k->padding[0] + k->kernel[0]);
	const float *filter = k->filters + panel * (taps + 1) * width;
	struct gt_depthwise d = {.bias = filter + taps * width, .channels = smaller_of(k->out - o, width), .wide = k->wide, .q = k->q,
	                         .padding = k->padding[1], .y_pixel = k->out, .act = k->act};
	for (int64_t p = begin; p < end;) {
		int64_t from = p * k->stride - k->padding[0] > 0 ? p * k->stride - k->padding[0] : 0, gone = smaller_of(from - first, rows);
		if (gone < rows)
			memmove(tile, tile + gone * size, (size_t)((rows - gone) * size) * sizeof *tile);
		rows -= gone;
		first = from;
		int64_t more = smaller_of(need - first, k->tile_rows) - rows;
		expand_rows(k, panel, x + (first + rows) * k->wide * k->in, tile + rows * size, more);
		rows += more;
		for (; p < end; p++) {
			int64_t top = p * k->stride - k->padding[0], skip = top < 0 ? -top : 0, bottom = smaller_of(top + k->kernel[0], k->h);
			if (bottom > first + rows)
				break;
			d.x = tile + (top + skip - first) * size;
			d.filter = filter + skip * k->kernel[1] * width;
			d.rows = bottom - top - skip;
			d.y = y + p * k->q * k->out + o;
			k->row(&d);
		}
	}
}

/* Computes units [begin, end) of work: for each image, for each band, its panels. */
static void compute_units(const void *ctx, int64_t begin, int64_t end)
{
	const struct pair *k = ctx;
	float *tile = k->work + omp_get_thread_num() * k->tile_rows * k->wide * k->isa->width;
	for (int64_t i = begin; i < end; i++) {
		int64_t image = i / k->panels / k->bands, band = i / k->panels % k->bands;
		compute_band(k, k->x + image * k->h * k->wide * k->in, k->y + image * k->p * k->q * k->out, i % k->panels,
		             k->p * band / k->bands, k->p * (band + 1) / k->bands, tile);
	}
}

static enum gt_code launch_pair(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct pair *k = gt_cpu_loop_bind(head, a);
	double each = (double)(k->h * k->wide * k->in * k->isa->width) / (double)k->bands;
	(void)err;
	k->work = a->scratch;
	if (!k->packed)
		pack_weights(k);
	gt_cpu_for(dev, k->n * k->bands * k->panels, (int64_t)(GRAIN / each) + 1, 1, compute_units, k);
	if (k->finish)
		gt_cpu_finish(dev, GT_F32, k->finish, k->y, NULL, k->n * k->p * k->q * k->out);
	return GT_OK;
}

static void release_pair(struct gt_kernel *head)
{
	struct pair *k = (struct pair *)head;
	free(k->weights);
	free(k->filters);
	free(k);
}

/* Chooses the rows of a tile and the bands. */
static void divide_work(struct pair *k, int threads)
{
	int64_t size = k->wide * k->isa->width * (int64_t)sizeof(float), fresh = TILE / size / k->stride * k->stride;
	k->tile_rows = (fresh > k->stride ? fresh : k->stride) + k->kernel[0] - k->stride;
	k->tile_rows = smaller_of(k->tile_rows, k->h > k->kernel[0] ? k->h : k->kernel[0]);
	k->bands = (k->h * k->wide * k->in * (int64_t)sizeof(float) + BAND - 1) / BAND;
	if (k->bands * k->panels * k->n < threads)
		k->bands = (threads + k->panels * k->n - 1) / (k->panels * k->n);
	k->bands = smaller_of(k->bands, k->p);
}

static const char *refuse_pair(const struct gt_opcall *call, const struct gt_conv_isa *isa, gt_depthwise_row *row)
{
	const struct gt_attr_conv_pair *a = call->attr;
	const struct gt_attr_conv2d *e = &a->first, *d = &a->second;
	const struct gt_tdesc *w = gt_opcall_operand(call, "w"), *w2 = gt_opcall_operand(call, "w2");
	if (!call->constant || gt_opcall_input(call)->dtype != GT_F32)
		return "only constant weights in f32 are supported";
	if (!isa || !row)
		return "filters need 3, 5 or 7 columns and a stride of 1 or 2, and the processor AVX2, AVX-512 or NEON";
	if ((!w->any && !gt_tdesc_plain(w)) || (!w2->any && !gt_tdesc_plain(w2)))
		return "the weights must be in plain order";
	if (e->kernel[0] != 1 || e->kernel[1] != 1 || e->stride[0] != 1 || e->stride[1] != 1 || e->padding[0] || e->padding[1] ||
	    e->groups > 1 || d->groups != e->out || d->out != e->out || d->dilation[0] != 1 || d->dilation[1] != 1)
		return "the first convolution must be 1x1 and the second depthwise, without dilation";
	return d->padding[0] >= d->kernel[0] || d->padding[1] >= d->kernel[1] || d->stride[0] > d->kernel[0]
	           ? "padding and stride must be smaller than the filter" : NULL;
}

enum gt_code gt_cpu_conv_pair(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv_pair *a = call->attr;
	const struct gt_attr_conv2d *d = &a->second;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x"), *y = gt_opcall_output(call);
	const struct gt_conv_isa *isa = gt_cpu_conv_isa();
	gt_depthwise_row *row = gt_cpu_depthwise(d->kernel[1], d->stride[1]);
	const char *why = refuse_pair(call, isa, row);
	struct pair *k;
	*out = NULL;
	if (why)
		return gt_opcall_refuse(call, err, why);
	GT_LOOP_NEW(k, slots, call, "conv_pair", err);
	k->loop.head.launch = launch_pair;
	k->loop.head.release = release_pair;
	k->isa = isa;
	k->row = row;
	k->n = x->dim[0], k->in = x->dim[1], k->h = x->dim[2], k->wide = x->dim[3];
	k->out = y->dim[1], k->p = y->dim[2], k->q = y->dim[3];
	k->stride = d->stride[0];
	for (int i = 0; i < 2; i++)
		k->kernel[i] = d->kernel[i], k->padding[i] = d->padding[i];
	*(a->first.act == GT_ACT_RELU || a->first.act == GT_ACT_RELU6 ? &k->expand_act : &k->expand_finish) = a->first.act;
	*(d->act == GT_ACT_RELU || d->act == GT_ACT_RELU6 ? &k->act : &k->finish) = d->act;
	k->panels = (k->out + isa->width - 1) / isa->width;
	divide_work(k, gt_cpu_threads(dev));
	k->loop.head.scratch = (size_t)(gt_cpu_threads(dev) * k->tile_rows * k->wide * isa->width) * sizeof(float);
	void *weights;
	enum gt_code code = gt_cpu_keep((size_t)(k->panels * isa->width * (k->in + 1)) * sizeof(float), &weights, err);
	if (code != GT_OK) {
		release_pair(&k->loop.head);
		return code;
	}
	k->weights = weights;
	memset(k->weights + k->panels * isa->width * k->in, 0, (size_t)(k->panels * isa->width) * sizeof(float));
	size_t n = (size_t)((k->kernel[0] * k->kernel[1] + 1) * k->panels * isa->width);
	if (!(k->filters = calloc(n, sizeof *k->filters))) {
		release_pair(&k->loop.head);
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", n * sizeof *k->filters);
	}
	gt_cpu_choose_plain(gt_opcall_operand(call, "w"));
	gt_cpu_choose_plain(gt_opcall_operand(call, "w2"));
	*out = &k->loop.head;
	return GT_OK;
}
