/* Gathers a batch from the dataset in device memory: selects bytes by index, crops, flips, normalises and converts them. A thread computes
 * one pixel of the output with all its channels; blocks in y walk through the samples. */
#include "cuda/device.cuh"
#include "aug.h"

#define BLOCK 128
#define MAX_Y 65535

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S> __global__ void __launch_bounds__(BLOCK) gather(const gt_cu_gather a)
{
	after_previous();
	int32_t pixel = (int32_t)(blockIdx.x * BLOCK + threadIdx.x), pixels = a.h * a.w;
	const struct gt_step_args step_args = step_args_of(a.step_args);
	bool move = !gt_aug_none(&a.attr), reflect = a.attr.views > 1 || a.attr.pad_reflect;
	if (pixel >= pixels)
		return;
	int32_t y = pixel / a.w, x = pixel - y * a.w;
	const int64_t *index = a.rows ? a.index + (int64_t)(step_args.epoch % (uint64_t)a.rows) * a.length : a.index;
	for (int64_t n = blockIdx.y; n < a.n; n += gridDim.y) {
		int64_t view = n / a.samples, sample = n - view * a.samples;
		int64_t place = a.rows ? (int64_t)(step_args.sample0 + (uint64_t)sample * step_args.stride) : sample;
		if (a.rows && (uint64_t)place >= (uint64_t)a.length) {
			if (pixel == 0)
				fault(a.fault, GT_CU_FAULT_PLACE, place, sample, a.length);
			continue;
		}
		int64_t at = index[place];
		if (at < 0 || at >= a.images_n) {
			if (pixel == 0)
				fault(a.fault, GT_CU_FAULT_INDEX, at, sample, a.images_n);
			continue;
		}
		int32_t sy = y, sx = x;
		if (move) {
			struct gt_aug g = gt_aug_of(&a.attr, step_args.seed, step_args.epoch, (uint64_t)at, (int)view);
			sy = gt_aug_source(y + g.dy, a.h, reflect);
			sx = gt_aug_source((g.flip ? a.w - 1 - x : x) + g.dx, a.w, reflect);
		}
		bool inside = sy >= 0 && sx >= 0;
		const uint8_t *from = a.images + ((at * a.h + sy) * a.w + sx) * a.c;
		S *to = (S *)a.x + (n * pixels + pixel) * a.c;
		for (int32_t i = 0; i < a.c; i++)
			to[i] = from_float<S>((float)(inside ? from[i] : 0) * a.attr.scale[i] + a.attr.shift[i]);
		if (pixel == 0 && view == 0)
			a.target[sample] = a.labels[at];
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
cudaError_t gt_cu_gather_start(int type, const struct gt_cu_gather *a, cudaStream_t s)
{
	int64_t blocks = ceil_div((int64_t)a->h * a->w, BLOCK);
	dim3 grid((unsigned)blocks, (unsigned)(a->n < MAX_Y ? a->n : MAX_Y));
	if (!blocks || !a->n)
		return cudaSuccess;
	return launch(OF_TYPE(type, gather), grid, dim3(BLOCK), s, *a);
}
