/* Gathers a batch from the dataset in device memory: selects bytes by index, crops, flips, normalises and converts them. A thread computes
 * one pixel of the output with all its channels; blocks in y walk through the samples. */
#include "cuda/lookup.cuh"
#include "aug.h"

#define BLOCK 128
#define MAX_Y 65535

struct gather_args {
	const uint8_t *images;
	const int32_t *labels;
	void *x;
	int32_t *target; /* NULL: only images */
	int32_t c, h, w;
	int32_t ld; /* number of padded channels of x (16-bit type), a multiple of 8; channels from c on are set to 0; 0: no padding */
	struct gt_attr_gather attr;
	sample_lookup look;
};

/* Rows of values. */
struct rows_args {
	const void *from; /* [look.all, width] */
	void *y;          /* [look.n, width] */
	int64_t width;
	sample_lookup look;
};

/* Sequences of different lengths: from[start[i] ... start[i + 1] - 1], at most width values, then pad. */
struct ragged_args {
	const int32_t *from;
	const int64_t *start; /* [look.all + 1] */
	int32_t *y;           /* [look.n, width] */
	int64_t width;
	int32_t pad;
	sample_lookup look;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* PADDED: x has a.ld channels, which a thread writes as vectors of 16 bytes. */
template <class S, bool PADDED> __global__ void __launch_bounds__(BLOCK) gather_images(const gather_args a)
{
	after_previous();
	int32_t pixel = (int32_t)(blockIdx.x * BLOCK + threadIdx.x), pixels = a.h * a.w;
	const struct gt_step_args step_args = step_args_of(a.look.step_args);
	bool move = !gt_aug_none(&a.attr), reflect = a.attr.views > 1 || a.attr.pad_reflect;
	if (pixel >= pixels)
		return;
	int32_t y = pixel / a.w, x = pixel - y * a.w;
	for (int64_t n = blockIdx.y; n < a.look.n; n += gridDim.y) {
		int64_t view = n / a.look.samples, sample = n - view * a.look.samples;
		int64_t at = sample_at(a.look, step_args, sample, pixel == 0);
		if (at < 0)
			continue;
		int32_t sy = y, sx = x;
		if (move) {
			struct gt_aug g = gt_aug_of(&a.attr, step_args.seed, step_args.epoch, (uint64_t)at, (int)view);
			sy = gt_aug_source(y + g.dy, a.h, reflect);
			sx = gt_aug_source((g.flip ? a.w - 1 - x : x) + g.dx, a.w, reflect);
		}
		bool inside = sy >= 0 && sx >= 0;
		const uint8_t *from = a.images + ((at * a.h + sy) * a.w + sx) * a.c;
		S *to = (S *)a.x + (n * pixels + pixel) * (PADDED ? a.ld : a.c);
		for (int32_t first = 0; PADDED && first < a.ld; first += 8) {
			float v[8];
#pragma unroll
			for (int j = 0; j < 8; j++) {
				int32_t i = first + j;
				v[j] = i < a.c ? (float)(inside ? from[i] : 0) * a.attr.scale[i] + a.attr.shift[i] : 0;
			}
			*(uint4 *)(to + first) = pack_vector<S>(v);
		}
		for (int32_t i = 0; !PADDED && i < a.c; i++)
			to[i] = from_float<S>((float)(inside ? from[i] : 0) * a.attr.scale[i] + a.attr.shift[i]);
		if (pixel == 0 && view == 0 && a.target)
			a.target[sample] = a.labels[at];
	}
}

template <class S> __device__ static inline S convert_to(float x)
{
	return from_float<S>(x);
}

template <class S> __device__ static inline S convert_to(int32_t x)
{
	return x;
}

/* Copies rows of T as S; blocks in y iterate over the samples. */
template <class T, class S> __global__ void __launch_bounds__(BLOCK) gather_rows(const rows_args a)
{
	after_previous();
	const struct gt_step_args step_args = step_args_of(a.look.step_args);
	int64_t e = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
	if (e >= a.width)
		return;
	for (int64_t n = blockIdx.y; n < a.look.n; n += gridDim.y) {
		int64_t at = sample_at(a.look, step_args, n % a.look.samples, e == 0);
		if (at >= 0)
			((S *)a.y)[n * a.width + e] = convert_to<S>(((const T *)a.from)[at * a.width + e]);
	}
}

/* Copies sequences and pads their rows; blocks in y iterate over the samples. */
__global__ void __launch_bounds__(BLOCK) gather_ragged(const ragged_args a)
{
	after_previous();
	const struct gt_step_args step_args = step_args_of(a.look.step_args);
	int64_t e = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
	if (e >= a.width)
		return;
	for (int64_t n = blockIdx.y; n < a.look.n; n += gridDim.y) {
		int64_t at = sample_at(a.look, step_args, n % a.look.samples, e == 0);
		if (at >= 0)
			a.y[n * a.width + e] = e < a.start[at + 1] - a.start[at] ? a.from[a.start[at] + e] : a.pad;
	}
}

/* ---- images ---------------------------------------------------------------------------------------------------------------------- */
static bool draws_augmentation(const struct gt_attr_gather *attr)
{
	return !gt_aug_none(attr) && attr->views <= 1;
}

static const char *refuse_gather(const struct gt_opcall *op)
{
	const struct gt_attr_gather *attr = (const struct gt_attr_gather *)op->attr;
	const struct gt_tdesc *d = gt_opcall_operand(op, "images");
	int pad = attr->views > 2 ? 1 : draws_augmentation(attr) && attr->pad_reflect ? attr->pad : 0;
	if (d->dim[1] > GT_MAX_CHANNELS || d->dim[2] * d->dim[3] > INT32_MAX / GT_MAX_CHANNELS)
		return "images must have at most 16 channels and 2^27 pixels";
	if (gt_cuda_type(gt_opcall_operand(op, "x")->dtype) < 0)
		return "the output of images must be f32, bf16 or f16";
	if (pad > 0 && (pad >= d->dim[2] || pad >= d->dim[3]))
		return "the padding is larger than the mirrored image";
	return NULL;
}

static bool gather_reads_step_args(const struct gt_opcall *op)
{
	return draws_augmentation((const struct gt_attr_gather *)op->attr) || index_has_epochs(op);
}

/* Returns the grid of a kernel whose blocks in x cover the elements of a sample. */
static dim3 sample_grid(int64_t blocks, const sample_lookup &look)
{
	return dim3((unsigned)blocks, (unsigned)(look.n < MAX_Y ? look.n : MAX_Y));
}

static cudaError_t start_gather(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(gather_args, images, labels, x, target), GT_SLOT_AS(gather_args, "index", look.index)};
	const struct gt_tdesc *d = gt_opcall_operand(c->op, "images"), *x = gt_opcall_operand(c->op, "x");
	int type = gt_cuda_type(x->dtype);
	gather_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.c = (int32_t)d->dim[1], a.h = (int32_t)d->dim[2], a.w = (int32_t)d->dim[3];
	a.ld = gt_cuda_padded_channels(x);
	a.attr = *(const struct gt_attr_gather *)c->op->attr;
	a.look = lookup_of(c, a.look.index, d->dim[0], x->dim[0], a.attr.views);
	int64_t blocks = ceil_div((int64_t)a.h * a.w, BLOCK);
	dim3 grid = sample_grid(blocks, a.look);
	if (!blocks || !a.look.n)
		return cudaSuccess;
	if (!a.ld)
		return launch(OF_TYPE(type, gather_images, false), grid, dim3(BLOCK), s, a);
	if (type == GT_CU_F32 || a.ld % 8 || a.ld > GT_MAX_CHANNELS)
		return cudaErrorInvalidValue;
	return launch(type == GT_CU_BF16 ? gather_images<bf16, true> : gather_images<f16, true>, grid, dim3(BLOCK), s, a);
}

GT_CU_FAMILY(gather, start_gather, NULL, refuse_gather, "gather", NULL, gather_reads_step_args)

/* ---- rows of values -------------------------------------------------------------------------------------------------------------- */
static const char *refuse_rows(const struct gt_opcall *op)
{
	const struct gt_tdesc *d = gt_opcall_operand(op, "rows"), *y = gt_opcall_operand(op, "y");
	bool refused = d->dtype == GT_I32 ? y->dtype != GT_I32 : d->dtype != GT_F32 || gt_cuda_type(y->dtype) < 0;
	return refused ? "rows of i32 must stay i32, and rows of f32 must become f32, bf16 or f16" : NULL;
}

static cudaError_t start_rows(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOT_AS(rows_args, "y", y), GT_SLOT_AS(rows_args, "rows", from), GT_SLOT_AS(rows_args, "index", look.index)};
	const struct gt_tdesc *d = gt_opcall_operand(c->op, "rows"), *y = gt_opcall_operand(c->op, "y");
	int type = gt_cuda_type(y->dtype);
	rows_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.width = gt_tdesc_count(d) / d->dim[0];
	a.look = lookup_of(c, a.look.index, d->dim[0], y->dim[0], ((const struct gt_attr_views *)c->op->attr)->views);
	int64_t blocks = ceil_div(a.width, BLOCK);
	dim3 grid = sample_grid(blocks, a.look);
	if (!blocks || !a.look.n)
		return cudaSuccess;
	if (d->dtype == GT_I32)
		return launch(gather_rows<int32_t, int32_t>, grid, dim3(BLOCK), s, a);
	auto kernel = type == GT_CU_F32 ? gather_rows<float, float> : type == GT_CU_BF16 ? gather_rows<float, bf16> : gather_rows<float, f16>;
	return launch(kernel, grid, dim3(BLOCK), s, a);
}

GT_CU_FAMILY(gather_rows, start_rows, NULL, refuse_rows, "gather.rows", NULL, index_has_epochs)

/* ---- sequences of different lengths ---------------------------------------------------------------------------------------------- */
static cudaError_t start_ragged(const struct gt_cu_call *c, cudaStream_t s)
{
	const struct gt_attr_ragged *attr = (const struct gt_attr_ragged *)c->op->attr;
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(ragged_args, start, y), GT_SLOT_AS(ragged_args, "rows", from), GT_SLOT_AS(ragged_args, "index", look.index)};
	const struct gt_tdesc *y = gt_opcall_operand(c->op, "y");
	int64_t all = gt_opcall_operand(c->op, "start")->dim[0] - 1; /* the operand start has one more element: the end of the last sequence */
	ragged_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.width = y->dim[1];
	a.pad = attr->pad;
	a.look = lookup_of(c, a.look.index, all, y->dim[0], attr->views);
	int64_t blocks = ceil_div(a.width, BLOCK);
	if (!blocks || !a.look.n)
		return cudaSuccess;
	return launch(gather_ragged, sample_grid(blocks, a.look), dim3(BLOCK), s, a);
}

GT_CU_FAMILY(gather_ragged, start_ragged, NULL, NULL, "gather.ragged", NULL, index_has_epochs)
