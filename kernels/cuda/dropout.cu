/* Dropout, forward and gradient. Both draw the same mask (ew.h), so it is not stored. A thread makes one draw for four elements of one
 * sample; blocks in y iterate over the samples. */
#include "cuda/device.cuh"

#define BLOCK 256
#define MAX_Y 65535

struct dropout_args {
	const void *x;
	void *y;
	int64_t samples, n; /* number of samples; number of elements of a sample */
	int64_t cols;       /* number of channels if channels are dropped; 1: samples are dropped; 0: elements are dropped */
	uint32_t layer, threshold;
	float scale;
	bool aligned; /* x and y are aligned to 16 bytes */
	struct gt_cu_step_args step_args;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S> __device__ static inline void scale_elements(const S *x, S *y, const float *keep, int n)
{
#pragma unroll
	for (int j = 0; j < 4; j++)
		if (j < n)
			y[j] = from_float<S>(to_float(x[j]) * keep[j]);
}

/* Multiplies a vector by its factors. The store is __stcg, because the compiler would split a plain vector store into single elements
 * here. */
__device__ static inline void scale_vector(const float *x, float *y, const float *keep)
{
	float4 v = *(const float4 *)x;
	__stcg((float4 *)y, make_float4(v.x * keep[0], v.y * keep[1], v.z * keep[2], v.w * keep[3]));
}

template <class H> __device__ static inline void scale_vector(const H *x, H *y, const float *keep)
{
	uint2 u = *(const uint2 *)x;
	float v[4];
	from_pair(v, u.x, H());
	from_pair(v + 2, u.y, H());
	__stcg((uint2 *)y, make_uint2(to_pair(v[0] * keep[0], v[1] * keep[1], H()), to_pair(v[2] * keep[2], v[3] * keep[3], H())));
}

template <class S> __global__ void __launch_bounds__(BLOCK) apply_dropout(const dropout_args a)
{
	after_previous();
	__shared__ uint64_t shared_key;
	const struct gt_step_args step_args = step_args_of(a.step_args);
	if (threadIdx.x == 0)
		shared_key = gt_dropout_key(step_args.seed, a.layer);
	__syncthreads();
	uint64_t key = shared_key;
	int64_t q = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
	if (q * 4 >= a.n)
		return;
	int left = (int)(a.n - q * 4 < 4 ? a.n - q * 4 : 4);
	for (int64_t s = blockIdx.y; s < a.samples; s += gridDim.y) {
		uint64_t position = step_args.sample0 + (uint64_t)s * step_args.stride;
		const S *x = (const S *)a.x + s * a.n + q * 4;
		S *y = (S *)a.y + s * a.n + q * 4;
		float keep[4];
		if (a.cols) { /* all elements of a channel (or sample) have the same random word */
			struct gt_philox w;
			int64_t unit = q * 4 % a.cols, drawn = -1;
			for (int j = 0; j < 4; j++) {
				if (unit / 4 != drawn) {
					drawn = unit / 4;
					w = gt_dropout_draw(key, step_args.epoch, position, (uint32_t)drawn);
				}
				int k = (int)(unit % 4);
				uint32_t word = k == 0 ? w.v[0] : k == 1 ? w.v[1] : k == 2 ? w.v[2] : w.v[3];
				keep[j] = gt_dropout_keep(word, a.threshold) ? a.scale : 0;
				unit = unit + 1 < a.cols ? unit + 1 : 0;
			}
		} else {
			struct gt_philox w = gt_dropout_draw(key, step_args.epoch, position, (uint32_t)q);
#pragma unroll
			for (int j = 0; j < 4; j++)
				keep[j] = gt_dropout_keep(w.v[j], a.threshold) ? a.scale : 0;
		}
		if (a.aligned && a.n % 4 == 0)
			scale_vector(x, y, keep);
		else
			scale_elements<S>(x, y, keep, left);
	}
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the number of elements of a sample. */
static int64_t sample_size(const struct gt_tdesc *x)
{
	return gt_tdesc_count(x) / (x->rank && x->dim[0] ? x->dim[0] : 1);
}

static const char *refuse_call(const struct gt_opcall *op)
{
	int64_t n = sample_size(gt_opcall_operand(op, "x"));
	return n < 1 || n / 4 > UINT32_MAX ? "a sample has too many elements" : NULL;
}

static bool reads_step_args(const struct gt_opcall *op)
{
	return ((const struct gt_attr_dropout *)op->attr)->train;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(dropout_args, x, y)};
	const struct gt_attr_dropout *attr = (const struct gt_attr_dropout *)c->op->attr;
	const struct gt_tdesc *x = gt_opcall_operand(c->op, "x");
	dropout_args a = {};
	GT_CU_BIND(c, slots, &a);
	if (!attr->train)
		return a.x != a.y ? cudaMemcpyAsync(a.y, a.x, gt_tdesc_bytes(x), cudaMemcpyDeviceToDevice, s) : cudaSuccess;
	a.samples = x->dim[0], a.n = sample_size(x);
	a.cols = attr->unit == GT_DROP_CHANNELS ? x->dim[1] : attr->unit == GT_DROP_SAMPLES ? 1 : 0;
	a.layer = attr->layer, a.threshold = gt_dropout_threshold(attr->p);
	a.scale = (float)gt_dropout_scale(attr->p);
	a.aligned = ((uintptr_t)a.x | (uintptr_t)a.y) % 16 == 0;
	a.step_args = c->step_args;
	int64_t blocks = ceil_div(ceil_div(a.n, 4), BLOCK);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	dim3 grid((unsigned)blocks, (unsigned)(a.samples < MAX_Y ? a.samples : MAX_Y));
	return a.samples ? launch(OF_TYPE(c->type, apply_dropout), grid, dim3(BLOCK), s, a) : cudaSuccess;
}

GT_CU_FAMILY(dropout, start_call, NULL, refuse_call, "philox", NULL, reads_step_args)
