/* Optimizer updates of the flat parameter arena. One kernel updates all segments; a block handles one chunk. One pass reads gradient and
 * state and writes parameter, state and the 16-bit copy. This file also has sumsq, for clipping and the check for NaN, and bound. */
#include "cuda/optim_step.cuh"
#include <stdlib.h>

#define BLOCK 256
#define TREE 2048 /* number of partial sums that fit into shared memory */
#define GROUP 8   /* partial sums that a thread of sumsq reads before it adds them */

struct update_args {
	float *p, *state[GT_MAX_STATES];
	const float *g;
	uint16_t *work;                   /* 16-bit copy of p in attr.work_dtype, bf16 or f16; NULL: none */
	const struct gt_scalars *scalars; /* NULL: no clipping, no loss scale, and the step is never skipped */
	const struct gt_seg *seg;         /* device memory */
	const struct gt_cu_chunk *chunk; /* device memory */
	int nchunks;
	/* An update by norms: the index of the first chunk of each segment and the number of chunks, in device memory; workspace of two
	 * sums for each chunk and of a ratio for each segment. */
	const int32_t *first;
	double *part;
	float *ratio;
	struct gt_attr_update attr; /* without seg */
	struct gt_cu_step_args step_args;
};

/* The operation bound: raises *out to rows * max|dy| * max(1, max|x|); NaN is larger than all values. dy and x are of the same type, and
 * may be the same memory. part is workspace of BOUND_PARTS pairs; counter as above. */
#define BOUND_PARTS 1024
struct bound_args {
	const void *dy, *x;
	int64_t ndy, nx; /* number of elements of dy, of x */
	double rows;
	uint32_t *part;
	double *out;
	uint32_t *counter;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Updates the elements i .. i + 3, or only the first n elements if n < 4. */
template <class Step>
__device__ static inline void update_quad(const update_args &a, const gt_opt_f32 &h, int64_t i, int n, bool vector)
{
	bool half = a.attr.work_dtype == GT_F16;
	float p[4], g[4], s[3][4] = {};
	if (vector) {
		load_vector<float>(p, a.p, i, i + 4, true, 0);
		load_vector<float>(g, a.g, i, i + 4, true, 0);
#pragma unroll
		for (int k = 0; k < 3; k++)
			if (Step::use(k))
				load_vector<float>(s[k], a.state[k], i, i + 4, true, 0);
	} else {
		load_vector<float>(p, a.p, i, i + n, false, 0);
		load_vector<float>(g, a.g, i, i + n, false, 0);
#pragma unroll
		for (int k = 0; k < 3; k++)
			if (Step::use(k))
				load_vector<float>(s[k], a.state[k], i, i + n, false, 0);
	}
#pragma unroll
	for (int j = 0; j < 4; j++) {
		float own[3] = {s[0][j], s[1][j], s[2][j]};
		p[j] = Step::f(h, p[j], g[j], own, h.first, a.attr.nesterov);
		s[0][j] = own[0], s[1][j] = own[1], s[2][j] = own[2];
	}
	if (vector) {
		store_vector<float>(a.p, p, i, i + 4, true);
#pragma unroll
		for (int k = 0; k < 3; k++)
			if (Step::use(k))
				store_vector<float>(a.state[k], s[k], i, i + 4, true);
		if (a.work)
			*(uint2 *)(a.work + i) =
			    half ? make_uint2(f16_pair(p[0], p[1]), f16_pair(p[2], p[3])) : make_uint2(bf16_pair(p[0], p[1]), bf16_pair(p[2], p[3]));
		return;
	}
	store_vector<float>(a.p, p, i, i + n, false);
#pragma unroll
	for (int k = 0; k < 3; k++)
		if (Step::use(k))
			store_vector<float>(a.state[k], s[k], i, i + n, false);
#pragma unroll
	for (int j = 0; j < 4; j++)
		if (a.work && j < n)
			a.work[i + j] = half ? from_float<f16>(p[j]).bits : from_float<bf16>(p[j]).bits;
}

/* Computes the factors of segment s of an update. */
__device__ static inline gt_opt_f32 factors_of(int code, const update_args &a, int s)
{
	const struct gt_seg seg = a.seg[s];
	int64_t step_number = a.step_args.dev ? a.step_args.dev->step : a.step_args.host.step;
	return opt_of(code, &a.attr, seg, step_number, rate_of(a.step_args, seg.lr), momentum_of(a.step_args, seg.lr), a.scalars);
}

template <int CODE, int HAS> __global__ void __launch_bounds__(BLOCK) update(const update_args a, bool aligned)
{
	after_previous();
	__shared__ gt_opt_f32 shared_opt;
	const gt_cu_chunk c = a.chunk[blockIdx.x];
	if (a.scalars && a.scalars->skip)
		return;
	if (threadIdx.x == 0)
		shared_opt = factors_of(CODE, a, c.seg);
	__syncthreads();
	const gt_opt_f32 h = shared_opt;
	bool vector = aligned && c.begin % 4 == 0;
	for (int i = (int)threadIdx.x * 4; i < c.n; i += BLOCK * 4)
		update_quad<step<CODE, HAS>>(a, h, c.begin + i, c.n - i < 4 ? c.n - i : 4, vector && c.n - i >= 4);
}

/* Updates by norms: the first kernel updates the states of a chunk, and sums the squares of its parameters and directions as sumsq does;
 * the second one adds up the sums of a segment and computes its ratio; the third one computes the directions again and takes the step. */
template <int CODE> __global__ void __launch_bounds__(BLOCK) norms(const update_args a)
{
	after_previous();
	__shared__ gt_opt_f32 shared_opt;
	__shared__ float x[2][GT_CU_CHUNK];
	const gt_cu_chunk c = a.chunk[blockIdx.x];
	if (a.scalars && a.scalars->skip)
		return;
	if (threadIdx.x == 0)
		shared_opt = factors_of(CODE, a, c.seg);
	__syncthreads();
	const gt_opt_f32 h = shared_opt;
	for (int i = (int)threadIdx.x; i < c.n; i += BLOCK) {
		int64_t at = c.begin + i;
		float s[3] = {}, p = a.p[at];
#pragma unroll
		for (int k = 0; k < 3; k++)
			if (row<CODE>::all >> k & 1)
				s[k] = a.state[k][at];
		x[0][i] = p;
		x[1][i] = row<CODE>::direction(&h, p, a.g[at], s);
#pragma unroll
		for (int k = 0; k < 3; k++)
			if (row<CODE>::all >> k & 1)
				a.state[k][at] = s[k];
	}
	__syncthreads();
	int lane = (int)threadIdx.x % 32, which = (int)threadIdx.x / 32;
	if (which >= 2)
		return;
	double sum = 0;
#pragma unroll 8
	for (int i = lane; i < c.n; i += 32)
		sum += (double)x[which][i] * (double)x[which][i];
#pragma unroll
	for (int w = 16; w > 0; w /= 2)
		sum += __shfl_down_sync(0xffffffffu, sum, w);
	if (lane == 0)
		a.part[2 * (int64_t)blockIdx.x + which] = sum;
}

template <int CODE> __global__ void __launch_bounds__(BLOCK) ratios(const update_args a)
{
	after_previous();
	int64_t first = a.first[blockIdx.x], n = a.first[blockIdx.x + 1] - first;
	double *x = a.part + 2 * first;
	if (a.scalars && a.scalars->skip)
		return;
	for (int64_t w = 1; w < n; w *= 2) {
		for (int64_t i = threadIdx.x * 2 * w; i + w < n; i += BLOCK * 2 * w) {
			x[2 * i] += x[2 * (i + w)];
			x[2 * i + 1] += x[2 * (i + w) + 1];
		}
		__syncthreads();
	}
	if (threadIdx.x)
		return;
	gt_opt_f32 h = factors_of(CODE, a, (int)blockIdx.x);
	gt_opt_set_ratio_f32((enum gt_opcode)CODE, &h, n ? x[0] : 0, n ? x[1] : 0);
	a.ratio[blockIdx.x] = h.ratio;
}

template <int CODE> __global__ void __launch_bounds__(BLOCK) scaled(const update_args a)
{
	after_previous();
	__shared__ gt_opt_f32 shared_opt;
	const gt_cu_chunk c = a.chunk[blockIdx.x];
	bool half = a.attr.work_dtype == GT_F16;
	if (a.scalars && a.scalars->skip)
		return;
	if (threadIdx.x == 0) {
		shared_opt = factors_of(CODE, a, c.seg);
		shared_opt.ratio = a.ratio[c.seg];
	}
	__syncthreads();
	const gt_opt_f32 h = shared_opt;
	for (int i = (int)threadIdx.x; i < c.n; i += BLOCK) {
		int64_t at = c.begin + i;
		float s[3] = {}, p = a.p[at];
#pragma unroll
		for (int k = 0; k < 3; k++)
			if (row<CODE>::all >> k & 1)
				s[k] = a.state[k][at];
		p = gt_opt_scaled_f32(&h, p, row<CODE>::again(&h, p, s));
		a.p[at] = p;
		if (a.work)
			a.work[at] = half ? from_float<f16>(p).bits : from_float<bf16>(p).bits;
	}
}

/* A block handles a chunk of 4096 elements, which it reads at once. Lane j of its first warp adds the squares of elements j, j + 32, … in
 * order; then the upper half of the lanes is added to the lower half until one sum is left. The last block adds the sums of the chunks:
 * part[i] += part[i + w] for w = 1, 2, 4 … */
template <bool CHECK>
__global__ void __launch_bounds__(BLOCK) sumsq(const float *x, int64_t n, double *part, double *out, bool add, uint32_t *counter,
                                               const gt_cu_check check)
{
	after_previous();
	__shared__ double mem[TREE];
	float *s = (float *)mem;
	int64_t begin = (int64_t)blockIdx.x * GT_CU_CHUNK, chunks = gridDim.x, w = 1;
	int left = (int)(n - begin < GT_CU_CHUNK ? n - begin : GT_CU_CHUNK), me = (int)threadIdx.x;
#pragma unroll 16
	for (int i = me; i < left; i += BLOCK)
		s[i] = x[begin + i];
	__syncthreads();
	if (me < 32) {
		double sum = 0;
#pragma unroll 8
		for (int i = me; i < left; i += 32)
			sum += (double)s[i] * (double)s[i];
#pragma unroll
		for (int h = 16; h > 0; h /= 2)
			sum += __shfl_down_sync(0xffffffffu, sum, h);
		if (me == 0)
			part[blockIdx.x] = sum;
	}
	if (!last_of(counter, gridDim.x))
		return;
	for (; w * TREE < chunks; w *= GROUP) {
		for (int64_t i = me * GROUP * w; i < chunks; i += BLOCK * GROUP * w) {
			double v[GROUP];
#pragma unroll
			for (int k = 0; k < GROUP; k++) /* a missing partial sum counts as 0, which does not change the bits of a sum of squares */
				v[k] = i + k * w < chunks ? __ldcg(part + i + k * w) : 0;
#pragma unroll
			for (int h = 1; h < GROUP; h *= 2)
#pragma unroll
				for (int k = 0; k < GROUP; k += 2 * h)
					v[k] += v[k + h];
			part[i] = v[0];
		}
		__syncthreads();
	}
	int rest = (int)((chunks + w - 1) / w);
	for (int i = me; i < rest; i += BLOCK)
		mem[i] = __ldcg(part + i * w);
	__syncthreads();
	for (int h = 1; h < rest; h *= 2) {
		for (int i = me * 2 * h; i + h < rest; i += BLOCK * 2 * h)
			mem[i] += mem[i + h];
		__syncthreads();
	}
	if (me)
		return;
	*out = (add ? *out : 0) + mem[0];
	if (CHECK)
		gt_check(&check.attr, check.scalars, check.scaler, check.numbers, check.parts);
}

/* Returns the bits of |x| in f32: without their sign, the bits of floats have the order of the values, with infinity and then NaN above all
 * others. */
template <class S> __device__ static inline uint32_t magnitude_bits(S x)
{
	return gt_f32_bits(to_float(x)) & 0x7fffffffu;
}

/* Returns, to thread 0, the largest v of the block. */
__device__ static inline uint32_t block_max(uint32_t v)
{
	__shared__ uint32_t top[BLOCK / 32];
	for (int h = 16; h; h /= 2) {
		uint32_t other = __shfl_down_sync(0xffffffffu, v, h);
		v = other > v ? other : v;
	}
	__syncthreads();
	if (threadIdx.x % 32 == 0)
		top[threadIdx.x / 32] = v;
	__syncthreads();
	for (int i = 1; i < BLOCK / 32 && threadIdx.x == 0; i++)
		v = v > top[i] ? v : top[i];
	return v;
}

template <class S> __device__ static inline uint32_t largest_bits(const S *x, int64_t n)
{
	uint32_t v = 0;
#pragma unroll 8
	for (int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x; i < n; i += (int64_t)gridDim.x * BLOCK) {
		uint32_t m = magnitude_bits(x[i]);
		v = m > v ? m : v;
	}
	return block_max(v);
}

/* Each block finds the largest magnitudes of its elements of dy and, if it is another operand, x; the last block, of all blocks. */
template <class S> __global__ void __launch_bounds__(BLOCK) bound(const bound_args a)
{
	after_previous();
	bool both = a.x != a.dy;
	uint32_t dy = largest_bits((const S *)a.dy, a.ndy), x = both ? largest_bits((const S *)a.x, a.nx) : 0;
	if (threadIdx.x == 0) {
		a.part[2 * blockIdx.x] = dy;
		a.part[2 * blockIdx.x + 1] = both ? x : dy;
	}
	if (!last_of(a.counter, gridDim.x))
		return;
	dy = x = 0;
	for (uint32_t i = threadIdx.x; i < gridDim.x; i += BLOCK) {
		uint32_t one = __ldcg(a.part + 2 * i), other = __ldcg(a.part + 2 * i + 1);
		dy = one > dy ? one : dy;
		x = other > x ? other : x;
	}
	dy = block_max(dy);
	x = block_max(x);
	if (threadIdx.x)
		return;
	double factor = gt_f32_from_bits(x), b = a.rows * gt_f32_from_bits(dy) * (factor < 1 ? 1 : factor), old = *a.out;
	if (!(b <= old) && old == old) /* if x is NaN, factor < 1 is false and the product is NaN */
		*a.out = b;
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void update_fn(const update_args, bool);

/* Returns the kernel of an update with the states in the bit mask `has`. Kernels exist only for states that the update can have. */
template <int CODE> static update_fn *kernel_of(int has)
{
	constexpr int all = row<CODE>::all, must = row<CODE>::must;
	static update_fn *const fn[8] = {update<CODE, (0 & all) | must>, update<CODE, (1 & all) | must>, update<CODE, (2 & all) | must>,
	                                 update<CODE, (3 & all) | must>, update<CODE, (4 & all) | must>, update<CODE, (5 & all) | must>,
	                                 update<CODE, (6 & all) | must>, update<CODE, (7 & all) | must>};
	return (has & ~all) == 0 && (has & must) == must ? fn[has] : NULL;
}

static update_fn *find_kernel(int code, const update_args *a)
{
	int has = (a->state[0] ? 1 : 0) | (a->state[1] ? 2 : 0) | (a->state[2] ? 4 : 0);
	switch (code) {
#define GT_X(NAME, ...)                                                                                                               \
	case GT_OP_##NAME:                                                                                                                \
		return kernel_of<GT_OP_##NAME>(has);
		GT_ELEMENT_UPDATES(GT_X)
#undef GT_X
	}
	return NULL;
}

template <int CODE> static cudaError_t start_by_norms(const update_args *a, cudaStream_t s)
{
	dim3 chunks((unsigned)a->nchunks), segments((unsigned)a->attr.nseg), block(BLOCK);
	cudaError_t code = launch(norms<CODE>, chunks, block, s, *a);
	code = code == cudaSuccess ? launch(ratios<CODE>, segments, block, s, *a) : code;
	return code == cudaSuccess ? launch(scaled<CODE>, chunks, block, s, *a) : code;
}

cudaError_t gt_cu_sumsq_check_start(const float *x, int64_t n, double *part, uint32_t *counter, const struct gt_cu_check *check,
                                    cudaStream_t s)
{
	int64_t chunks = n > 0 ? ceil_div(n, GT_CU_CHUNK) : 1;
	if (!grid_fits(chunks))
		return cudaErrorInvalidValue;
	return launch(sumsq<true>, dim3((unsigned)chunks), dim3(BLOCK), s, x, n, part, &check->scalars->sumsq, false, counter, *check);
}

/* ---- calls: updates -------------------------------------------------------------------------------------------------------------- */
static const char *refuse_update(const struct gt_opcall *op)
{
	const struct gt_tdesc *work = gt_opcall_operand(op, "work");
	const char *why = gt_update_check(op);
	bool half = !work || ((work->dtype == GT_BF16 || work->dtype == GT_F16) &&
	                      (int)work->dtype == (int)((const struct gt_attr_update *)op->attr)->work_dtype);
	return why || half ? why : "the work copy must be bf16 or f16, as in the attribute";
}

/* Returns the number of chunks of the first nseg segments. */
static int64_t count_chunks(const struct gt_attr_update *attr, int nseg)
{
	int64_t n = 0;
	for (int i = 0; i < nseg; i++)
		n += ceil_div(attr->seg[i].end - attr->seg[i].begin, GT_CU_CHUNK);
	return n;
}

static size_t update_scratch(const struct gt_opcall *op)
{
	const struct gt_attr_update *attr = (const struct gt_attr_update *)op->attr;
	size_t norms = (size_t)count_chunks(attr, attr->nseg) * 2 * sizeof(double) + (size_t)attr->nseg * sizeof(float);
	return gt_update_row(op->code)->whole ? norms : 0;
}

/* The tables are the segments, their chunks and, of an update by norms, the index of the first chunk of each segment. */
static enum gt_code upload_lists(struct gt_dev *dev, const struct gt_opcall *op, struct gt_cu_table *table, struct gt_err *err)
{
	const struct gt_attr_update *attr = (const struct gt_attr_update *)op->attr;
	if (attr->nseg)
		GT_TRY(gt_cuda_upload(dev, attr->seg, (size_t)attr->nseg * sizeof *attr->seg, &table[0].p, err));
	GT_TRY(gt_cuda_upload_chunks(dev, attr->seg, attr->nseg, &table[1], err));
	if (!gt_update_row(op->code)->whole)
		return GT_OK;
	size_t bytes = ((size_t)attr->nseg + 1) * sizeof(int32_t);
	int32_t *first = (int32_t *)malloc(bytes);
	if (!first)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", bytes);
	for (int i = 0; i <= attr->nseg; i++)
		first[i] = (int32_t)count_chunks(attr, i);
	enum gt_code code = gt_cuda_upload(dev, first, bytes, &table[2].p, err);
	free(first);
	return code;
}

static cudaError_t start_update(const struct gt_cu_call *c, cudaStream_t s)
{
	int code = c->op->code;
	update_args a = {};
	if (!c->binding->n) {
		struct gt_operand_slot slots[4 + GT_MAX_STATES] = {GT_SLOTS(update_args, p, g, work, scalars)};
		gt_binding_make(c->binding, slots, gt_update_slots(c->op->code, slots, 4, offsetof(update_args, state)), c->op);
	}
	gt_binding_apply(c->binding, &a, c->in, c->out);
	a.attr = *(const struct gt_attr_update *)c->op->attr;
	a.attr.seg = NULL;
	a.seg = (const struct gt_seg *)c->table[0].p;
	a.chunk = (const struct gt_cu_chunk *)c->table[1].p;
	a.nchunks = (int)c->table[1].n;
	a.first = (const int32_t *)c->table[2].p;
	a.part = (double *)c->scratch;
	a.ratio = (float *)(a.part + 2 * (size_t)a.nchunks);
	a.step_args = c->step_args;
	if (!a.nchunks)
		return cudaSuccess;
	switch (code) {
#define GT_X(NAME, ...)                                                                                                               \
	case GT_OP_##NAME:                                                                                                                \
		return start_by_norms<GT_OP_##NAME>(&a, s);
		GT_NORM_UPDATES(GT_X)
#undef GT_X
	}
	update_fn *fn = find_kernel(code, &a);
	uintptr_t at = (uintptr_t)a.p | (uintptr_t)a.g | (uintptr_t)a.work;
	for (int i = 0; i < 3; i++)
		at |= (uintptr_t)a.state[i];
	return fn ? launch(fn, dim3((unsigned)a.nchunks), dim3(BLOCK), s, a, at % 16 == 0) : cudaErrorInvalidValue;
}

static const char *name_update(const struct gt_opcall *op)
{
	return gt_opcode_name(op->code);
}

GT_CU_FAMILY(update, start_update, update_scratch, refuse_update, NULL, NULL, gt_cu_always, name_update, upload_lists)

/* ---- calls: sumsq and bound ------------------------------------------------------------------------------------------------------ */
static size_t sumsq_scratch(const struct gt_opcall *op)
{
	return (size_t)(gt_tdesc_padded(gt_opcall_operand(op, "flat")) / GT_CU_CHUNK + 1) * sizeof(double);
}

static cudaError_t start_sumsq(const struct gt_cu_call *c, cudaStream_t s)
{
	struct args {
		const float *flat;
		double *scalar;
	} a = {};
	static const struct gt_operand_slot slots[] = {GT_SLOTS(args, flat, scalar)};
	int64_t n = gt_tdesc_padded(gt_opcall_operand(c->op, "flat")), chunks = n > 0 ? ceil_div(n, GT_CU_CHUNK) : 1;
	GT_CU_BIND(c, slots, &a);
	if (!grid_fits(chunks)) /* without elements, one block stores the sum 0 */
		return cudaErrorInvalidValue;
	return launch(sumsq<false>, dim3((unsigned)chunks), dim3(BLOCK), s, a.flat, n, (double *)c->scratch, a.scalar,
	              gt_opcall_adds(c->op, "scalar"), c->counter, gt_cu_check());
}

GT_CU_FAMILY(sumsq, start_sumsq, sumsq_scratch, NULL, "sumsq", gt_cu_one_counter)

static const char *refuse_bound(const struct gt_opcall *op)
{
	const struct gt_tdesc *dy = gt_opcall_operand(op, "dy"), *x = gt_opcall_operand(op, "x");
	return dy->dtype != x->dtype || gt_cuda_type(dy->dtype) < 0 ? "the two operands must have the same activation type" : NULL;
}

static size_t bound_scratch(const struct gt_opcall *)
{
	return 2 * BOUND_PARTS * sizeof(uint32_t);
}

static cudaError_t start_bound(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(bound_args, dy, x), GT_SLOT_AS(bound_args, "scalar", out)};
	const struct gt_tdesc *dy = gt_opcall_operand(c->op, "dy");
	bound_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.ndy = gt_tdesc_padded(dy), a.nx = gt_tdesc_padded(gt_opcall_operand(c->op, "x"));
	a.rows = (double)dy->dim[0] * ((const struct gt_attr_scale *)c->op->attr)->factor;
	a.part = (uint32_t *)c->scratch;
	a.counter = c->counter;
	int64_t n = a.ndy > a.nx ? a.ndy : a.nx, blocks = ceil_div(n, BLOCK * 8);
	blocks = blocks < 1 ? 1 : blocks > BOUND_PARTS ? BOUND_PARTS : blocks;
	return launch(OF_TYPE(c->type, bound), dim3((unsigned)blocks), dim3(BLOCK), s, a);
}

GT_CU_FAMILY(bound, start_bound, bound_scratch, refuse_bound, "bound", gt_cu_one_counter)
