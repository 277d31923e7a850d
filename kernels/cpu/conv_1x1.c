/* 1x1 convolutions in f32 whose weights are constant: the product of the pixels [pixels, in] and the weights [in, out]. The first launch
 * packs the weights in panels of a few columns, which later launches read. The sums begin with the bias and the residual, and the
 * activation is applied while the result is in registers. oneDNN's kernels are as fast at the product itself, but their relu loses a NaN.
 *
 *     for each chunk of pixels, part of `in`, panel:    y[chunk][panel] += x[chunk][part] w[part][panel]
 *
 * The order of all sums depends on the shapes only, not on the number of threads. */
#include "cpu/conv_1x1.h"
#include "cpu/loops.h"
#include <omp.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#define MR 14
#include "cpu/conv_1x1.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#define MR 6
#include "cpu/conv_1x1.inc"
#pragma GCC pop_options

const struct gt_conv_isa *gt_cpu_conv_isa(void)
{
	return GT_CPU_AVX512 ? &conv_1x1_avx512 : GT_CPU_AVX2 ? &conv_1x1_avx2 : NULL;
}
#elif defined(__aarch64__)
#include <arm_neon.h>

#include "cpu/vector_neon.inc"
#define MR 12
#include "cpu/conv_1x1.inc"

const struct gt_conv_isa *gt_cpu_conv_isa(void)
{
	return &conv_1x1_neon;
}
#else
const struct gt_conv_isa *gt_cpu_conv_isa(void)
{
	return NULL;
}
#endif

#define CHUNK 200 /* maximum number of pixels of a chunk. Its part of x stays in the L2 cache; each chunk reads all weights */

struct conv {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const float *x, *w, *b, *res;
	float *y;
	const struct gt_conv_isa *isa;
	int64_t n, h, wide, p, q, in, out, stride[2];
	int act, finish; /* enum gt_act: act: applied to each block in registers; finish: applied to the whole output at the end */
	float *panels;   /* packed weights, then the bias, both padded with zeros to whole panels */
	bool packed;
	float *work;     /* with strides: for each thread, memory for the pixels of a chunk that the filter reads */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(conv, x, w, b, res, y)};

static int64_t padded_out(const struct conv *k)
{
	return (k->out + k->isa->width - 1) / k->isa->width * k->isa->width;
}

void gt_cpu_pack_panels(const struct gt_conv_isa *isa, const float *w, int64_t in, int64_t out, float *panels, int64_t begin, int64_t end)
{
	int64_t width = isa->width;
	for (int64_t o = begin * width; o < end * width; o++) {
		float *to = panels + o / width * width * in + o % width;
		for (int64_t i = 0; i < in; i++)
			to[i * width] = o < out ? w[o * in + i] : 0;
	}
}

static void pack_panels(const void *ctx, int64_t begin, int64_t end)
{
	const struct conv *k = ctx;
	gt_cpu_pack_panels(k->isa, k->w, k->in, k->out, k->panels, begin, end);
}

/* Returns the address of pixel r of the output in the input. */
static const float *pixel_of(const struct conv *k, int64_t r)
{
	int64_t image = r / (k->p * k->q), at = r % (k->p * k->q);
	return k->x + ((image * k->h + at / k->q * k->stride[0]) * k->wide + at % k->q * k->stride[1]) * k->in;
}

static void multiply_pixels(const void *ctx, int64_t begin, int64_t end)
{
	const struct conv *k = ctx;
	int64_t width = k->isa->width;
	bool strided = k->stride[0] > 1 || k->stride[1] > 1;
	int64_t chunks = (end - begin + CHUNK - 1) / CHUNK;
	float *chunk = strided ? k->work + omp_get_thread_num() * CHUNK * k->in : NULL;
	const float *bias = k->panels + padded_out(k) * k->in;
	for (int64_t i = 0; i < chunks; i++) {
		int64_t r = begin + (end - begin) * i / chunks;
		struct gt_product p = {.lda = k->in, .ld = k->out, .rows = begin + (end - begin) * (i + 1) / chunks - r};
		for (int64_t j = 0; strided && j < p.rows; j++)
			memcpy(chunk + j * k->in, pixel_of(k, r + j), (size_t)k->in * sizeof *chunk);
		if (k->res) /* the residual is read in the order of its memory, which is faster than panel by panel */
			k->isa->add_bias(k->res + r * k->out, bias, k->y + r * k->out, p.rows, k->out);
		for (int64_t k0 = 0; k0 < k->in; k0 += GT_CONV_PART) {
			bool last = k0 + GT_CONV_PART >= k->in;
			p.a = (strided ? chunk : k->x + r * k->in) + k0;
			p.n = last ? k->in - k0 : GT_CONV_PART;
			p.act = last ? k->act : GT_ACT_NONE;
			for (int64_t o = 0; o < k->out; o += width) {
				p.cols = k->out - o < width ? k->out - o : width;
				p.panel = k->panels + o * k->in + k0 * width;
				p.bias = k0 || k->res ? NULL : bias + o;
				p.next = o + width < k->out ? p.panel + width * k->in : k->panels + (last ? 0 : k0 + GT_CONV_PART) * width;
				p.y = k->y + r * k->out + o;
				k->isa->multiply(&p);
			}
		}
	}
}

static enum gt_code launch_conv(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct conv *k = gt_cpu_loop_bind(head, a);
	int64_t pixels = k->n * k->p * k->q;
	(void)err;
	k->work = a->scratch;
	if (!k->packed) {
		gt_cpu_for(dev, padded_out(k) / k->isa->width, 1, 1, pack_panels, k);
		if (k->b)
			memcpy(k->panels + padded_out(k) * k->in, k->b, (size_t)k->out * sizeof *k->b);
		k->packed = true;
	}
	gt_cpu_for(dev, pixels, 28, 14, multiply_pixels, k);
	if (k->finish)
		gt_cpu_finish(dev, GT_F32, k->finish, k->y, NULL, pixels * k->out);
	return GT_OK;
}

static void release_conv(struct gt_kernel *head)
{
	free(((struct conv *)head)->panels);
	free(head);
}

enum gt_code gt_cpu_conv_1x1(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x"), *y = gt_opcall_output(call);
	struct gt_tdesc *w = gt_opcall_operand(call, "w");
	const struct gt_conv_isa *isa = gt_cpu_conv_isa();
	struct conv *k;
	*out = NULL;
	if (!isa || !call->constant || a->kernel[0] != 1 || a->kernel[1] != 1 || a->padding[0] || a->padding[1] || a->groups > 1 ||
	    x->dtype != GT_F32 || w->dtype != GT_F32 || (!w->any && !gt_tdesc_plain(w)))
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "conv_1x1", err);
	k->loop.head.launch = launch_conv;
	k->loop.head.release = release_conv;
	k->isa = isa;
	k->n = x->dim[0], k->in = x->dim[1], k->h = x->dim[2], k->wide = x->dim[3];
	k->out = y->dim[1], k->p = y->dim[2], k->q = y->dim[3];
	k->stride[0] = a->stride[0], k->stride[1] = a->stride[1];
	*(a->act == GT_ACT_RELU || a->act == GT_ACT_RELU6 ? &k->act : &k->finish) = a->act;
	if (a->stride[0] > 1 || a->stride[1] > 1)
		k->loop.head.scratch = (size_t)(gt_cpu_threads(dev) * CHUNK * k->in) * sizeof(float);
	size_t bytes = (size_t)(padded_out(k) * (k->in + 1)) * sizeof(float);
	void *panels;
	enum gt_code code = gt_cpu_keep(bytes, &panels, err);
	if (code != GT_OK) {
		release_conv(&k->loop.head);
		return code;
	}
	k->panels = panels;
	memset(k->panels + padded_out(k) * k->in, 0, (size_t)padded_out(k) * sizeof(float));
	gt_cpu_choose_plain(w);
	*out = &k->loop.head;
	return GT_OK;
}
