/* Gathers a batch from the dataset in device memory: selects bytes by index, crops, flips, normalises and converts them. A thread computes
 * one pixel of the output with all its channels; blocks in y walk through the samples. */
#include "cuda/lookup.cuh"
#include "aug.h"

#define BLOCK 128
#define MAX_Y 65535

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* PADDED: x has a.ld channels, which a thread writes as vectors of 16 bytes. */
template <class S, bool PADDED> __global__ void __launch_bounds__(BLOCK) gather(const gt_cu_gather a)
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
			*(uint4 *)(to + first) = pack<S>(v);
		}
		for (int32_t i = 0; !PADDED && i < a.c; i++)
			to[i] = from_float<S>((float)(inside ? from[i] : 0) * a.attr.scale[i] + a.attr.shift[i]);
		if (pixel == 0 && view == 0 && a.target)
			a.target[sample] = a.labels[at];
	}
}

template <class S> __device__ static inline S number(float x)
{
	return from_float<S>(x);
}

template <class S> __device__ static inline S number(int32_t x)
{
	return x;
}

/* Copies rows of T as S; blocks in y walk through the samples. */
template <class T, class S> __global__ void __launch_bounds__(BLOCK) gather_rows(const gt_cu_gather_rows a)
{
	after_previous();
	const struct gt_step_args step_args = step_args_of(a.look.step_args);
	int64_t e = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
	if (e >= a.width)
		return;
	for (int64_t n = blockIdx.y; n < a.look.n; n += gridDim.y) {
		int64_t at = sample_at(a.look, step_args, n % a.look.samples, e == 0);
		if (at >= 0)
			((S *)a.y)[n * a.width + e] = number<S>(((const T *)a.from)[at * a.width + e]);
	}
}

/* Copies sequences and fills their rows up; blocks in y walk through the samples. */
__global__ void __launch_bounds__(BLOCK) gather_ragged(const gt_cu_gather_ragged a)
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

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_gather_start(int type, const struct gt_cu_gather *a, cudaStream_t s)
{
	int64_t blocks = ceil_div((int64_t)a->h * a->w, BLOCK);
	dim3 grid((unsigned)blocks, (unsigned)(a->look.n < MAX_Y ? a->look.n : MAX_Y));
	if (!blocks || !a->look.n)
		return cudaSuccess;
	if (!a->ld)
		return launch(OF_TYPE(type, gather, false), grid, dim3(BLOCK), s, *a);
	if (type == GT_CU_F32 || a->ld % 8 || a->ld > GT_MAX_CHANNELS)
		return cudaErrorInvalidValue;
	return launch(type == GT_CU_BF16 ? gather<bf16, true> : gather<f16, true>, grid, dim3(BLOCK), s, *a);
}

cudaError_t gt_cu_gather_rows_start(int type, const struct gt_cu_gather_rows *a, cudaStream_t s)
{
	int64_t blocks = ceil_div(a->width, BLOCK);
	dim3 grid((unsigned)blocks, (unsigned)(a->look.n < MAX_Y ? a->look.n : MAX_Y));
	if (!blocks || !a->look.n)
		return cudaSuccess;
	if (type < 0)
		return launch(gather_rows<int32_t, int32_t>, grid, dim3(BLOCK), s, *a);
	auto kernel = type == GT_CU_F32 ? gather_rows<float, float> : type == GT_CU_BF16 ? gather_rows<float, bf16> : gather_rows<float, f16>;
	return launch(kernel, grid, dim3(BLOCK), s, *a);
}

cudaError_t gt_cu_gather_ragged_start(const struct gt_cu_gather_ragged *a, cudaStream_t s)
{
	int64_t blocks = ceil_div(a->width, BLOCK);
	dim3 grid((unsigned)blocks, (unsigned)(a->look.n < MAX_Y ? a->look.n : MAX_Y));
	if (!blocks || !a->look.n)
		return cudaSuccess;
	return launch(gather_ragged, grid, dim3(BLOCK), s, *a);
}
