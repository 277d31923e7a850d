/* Gathers images and transforms them by their recipes (recipe.h): resizes a part of the decoded pixels, crops, flips, changes colours,
 * erases boxes, and then does the work of gather in cuda/gather.cu. A thread computes pixels of the output one after another. If recipes
 * can change the contrast, one block processes a whole image, and computes the image's mean before each such change. */
#include "cuda/lookup.cuh"
#include "recipe.h"

#define BLOCK 512
#define PIXELS 4 /* number of pixels of a thread, if several blocks share an image */
#define RESIZED 16 /* pixels of a thread if images are resized: more, because each block has to compute the weights */
#define MAX_Y 512 /* maximum number of blocks in y; each block processes several images one after the other */

struct recipes_args {
	const uint8_t *rows; /* [look.all, row] */
	const int32_t *labels;
	void *x;
	int32_t *target; /* NULL: only images */
	int64_t row;     /* bytes of a row; a multiple of 16 */
	int32_t c, h, w; /* c is 1 or 3 */
	int32_t ld;      /* number of padded channels of x: 8 (16-bit type), and channels from c on are set to 0; or 0: no padding */
	int32_t ops, contrasts, views; /* as in gt_attr_recipes */
	bool resize;
	float scale[3], shift[3];
	sample_lookup look;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* C: number of channels, 1 or 3. PADDED: x has 8 channels, which a thread writes as one vector of 16 bytes. RESIZE: images may be resized;
 * each block then computes the weights of all rows and columns first. Two blocks share a multiprocessor: a thread then has 64 registers,
 * with which the code is as long as with the 80 that nvcc would take for one block. */
template <class S, int C, bool PADDED, bool RESIZE>
__global__ void __launch_bounds__(BLOCK, 2) gather_recipes(const recipes_args a)
{
	__shared__ struct gt_recipe_op op[GT_RECIPE_MAX_OPS];
	__shared__ int32_t grey[GT_RECIPE_MAX_OPS];
	__shared__ int32_t taps[RESIZE ? GT_RECIPE_SIDES * GT_RECIPE_TAP_INTS : 1];
	__shared__ unsigned long long part[BLOCK / 32]; /* sum of the lumas by the threads of each warp */
	after_previous();
	const struct gt_step_args step_args = step_args_of(a.look.step_args);
	const int32_t pixels = a.h * a.w, step = (int32_t)(gridDim.x * BLOCK);
	int32_t v[C];
	for (int64_t n = blockIdx.y; n < a.look.n; n += gridDim.y) {
		int64_t view = n / a.look.samples, sample = n - view * a.look.samples;
		int64_t at = sample_at(a.look, step_args, sample, blockIdx.x == 0 && threadIdx.x == 0);
		if (at < 0)
			continue; /* every thread of the block continues here, so no thread misses a barrier */
		const uint8_t *row = a.rows + at * a.row;
		const struct gt_recipe *recipe = (const struct gt_recipe *)row;
		struct gt_recipe_image im = {row + gt_recipe_pixels_at(a.ops), a.h, a.w, NULL, 0, false};
		int32_t nops = recipe->n;
		nops = nops < 0 ? 0 : nops > a.ops ? a.ops : nops;
		__syncthreads(); /* all threads have read the recipe of the previous image */
		if ((int)threadIdx.x < nops)
			op[threadIdx.x] = ((const struct gt_recipe_op *)(recipe + 1))[threadIdx.x];
		if (RESIZE && recipe->resize) {
			for (int32_t i = (int32_t)threadIdx.x; i < a.w + a.h; i += BLOCK)
				gt_recipe_taps(i < a.w ? &recipe->x : &recipe->y, recipe->bicubic, i < a.w ? i : i - a.w, taps + i * GT_RECIPE_TAP_INTS);
			im.taps = taps;
			im.stride = recipe->stride;
			im.columns = recipe->resize == GT_RECIPE_COLUMNS_FIRST;
		}
		__syncthreads();
		for (int i = 0; a.contrasts && i < nops; i++) {
			if (op[i].kind != GT_RECIPE_CONTRAST)
				continue;
			unsigned long long sum = 0;
			for (int32_t p = (int32_t)threadIdx.x; p < pixels; p += BLOCK) {
				int32_t y = p / a.w;
				gt_recipe_pixel(op, i, grey, &im, C, y, p - y * a.w, v);
				sum += (unsigned)(C == 3 ? gt_pixel_luma(v[0], v[C / 2], v[C - 1]) : v[0]);
			}
#pragma unroll
			for (int w = 16; w > 0; w /= 2)
				sum += __shfl_xor_sync(0xffffffffu, sum, w);
			if (threadIdx.x % 32 == 0)
				part[threadIdx.x / 32] = sum;
			__syncthreads();
			if (threadIdx.x == 0) {
				for (int k = 1; k < BLOCK / 32; k++)
					sum += part[k];
				grey[i] = gt_pixel_mean((int64_t)sum, pixels);
			}
			__syncthreads();
		}
		struct gt_aug g = gt_aug_view(a.views > 1 ? (int)view : 0);
		for (int32_t p = (int32_t)(blockIdx.x * BLOCK + threadIdx.x); p < pixels; p += step) {
			int32_t y = p / a.w, x = p - y * a.w;
			y = gt_aug_source(y + g.dy, a.h, 1);
			x = gt_aug_source((g.flip ? a.w - 1 - x : x) + g.dx, a.w, 1);
			gt_recipe_pixel(op, nops, grey, &im, C, y, x, v);
			S *to = (S *)a.x + (n * pixels + p) * (PADDED ? 8 : C);
			float f[8] = {0};
#pragma unroll
			for (int k = 0; k < C; k++)
				f[k] = (float)v[k] * a.scale[k] + a.shift[k];
			if constexpr (PADDED) {
				*(uint4 *)to = pack_vector<S>(f);
			} else {
#pragma unroll
				for (int k = 0; k < C; k++)
					to[k] = from_float<S>(f[k]);
			}
		}
		if (blockIdx.x == 0 && threadIdx.x == 0 && view == 0 && a.target)
			a.target[sample] = a.labels[at];
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
template <int C, bool RESIZE> static cudaError_t launch_gather(int type, const recipes_args &a, dim3 grid, cudaStream_t s)
{
	if (!a.ld)
		return launch(OF_TYPE(type, gather_recipes, C, false, RESIZE), grid, dim3(BLOCK), s, a);
	if (type == GT_CU_F32 || a.ld != 8)
		return cudaErrorInvalidValue;
	return launch(type == GT_CU_BF16 ? gather_recipes<bf16, C, true, RESIZE> : gather_recipes<f16, C, true, RESIZE>, grid, dim3(BLOCK), s,
	              a);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
static const char *refuse_call(const struct gt_opcall *op)
{
	const char *why = gt_recipe_refuses((const struct gt_attr_recipes *)op->attr, gt_opcall_operand(op, "rows"),
	                                    gt_opcall_operand(op, "x"));
	if (!why && gt_cuda_type(gt_opcall_operand(op, "x")->dtype) < 0)
		why = "the output of images must be f32, bf16 or f16";
	return why;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	const struct gt_attr_recipes *attr = (const struct gt_attr_recipes *)c->op->attr;
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(recipes_args, rows, labels, x, target), GT_SLOT_AS(recipes_args, "index", look.index)};
	const struct gt_tdesc *d = gt_opcall_operand(c->op, "rows"), *x = gt_opcall_operand(c->op, "x");
	int type = gt_cuda_type(x->dtype);
	recipes_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.row = d->dim[1];
	a.c = (int32_t)x->dim[1], a.h = (int32_t)x->dim[2], a.w = (int32_t)x->dim[3];
	a.ld = gt_cuda_padded_channels(x);
	a.ops = attr->ops, a.contrasts = attr->contrasts, a.views = attr->gather.views;
	a.resize = attr->resize;
	memcpy(a.scale, attr->gather.scale, sizeof a.scale);
	memcpy(a.shift, attr->gather.shift, sizeof a.shift);
	a.look = lookup_of(c, a.look.index, d->dim[0], x->dim[0], a.views);
	int64_t blocks = a.contrasts ? 1 : ceil_div((int64_t)a.h * a.w, BLOCK * (a.resize ? RESIZED : PIXELS));
	dim3 grid((unsigned)blocks, (unsigned)(a.look.n < MAX_Y ? a.look.n : MAX_Y));
	if (!a.look.n)
		return cudaSuccess;
	if (a.resize)
		return a.c == 3 ? launch_gather<3, true>(type, a, grid, s) : launch_gather<1, true>(type, a, grid, s);
	return a.c == 3 ? launch_gather<3, false>(type, a, grid, s) : launch_gather<1, false>(type, a, grid, s);
}

GT_CU_FAMILY(gather_recipes, start_call, NULL, refuse_call, "gather.recipes", NULL, index_has_epochs)
