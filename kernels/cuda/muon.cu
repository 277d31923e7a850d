/* The operation muon except its matrix products: kernels that update the momentum and compute the directions, that scale them into the
 * operands of the products, and that update the weights. The matrices are divided into chunks of the flat arena. A block processes one
 * chunk; a launch processes all matrices. */
#include "cuda/device.cuh"

#define BLOCK TEAM_BLOCK

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
__device__ static inline gt_opt_f64 step_options(const gt_cu_muon &a, const gt_cu_muon_matrix &m)
{
	struct gt_seg seg = m.hyper;
	struct gt_step_args step_args;
	step_args.step = a.step_args.dev ? a.step_args.dev->step : a.step_args.host.step;
	step_args.lr[0] = rate_of(a.step_args, seg.lr);
	step_args.momentum[0] = momentum_of(a.step_args, seg.lr);
	seg.lr = 0;
	return gt_opt_make_f64(GT_OP_MUON, &a.attr, &seg, &step_args, a.scalars);
}

/* Computes the scalars for the momentum and direction of a matrix. */
__device__ static inline void direction_scalars(gt_opt_f32 *h, const gt_cu_muon &a, const gt_cu_muon_matrix &m)
{
	gt_opt_f64 d = step_options(a, m);
	h->clip = (float)d.clip;
	h->bound = (float)d.bound;
	h->momentum = (float)d.momentum;
	h->lerp1 = (float)d.lerp1;
}

/* Load and store four consecutive elements, aligned to 16 bytes in f32 and to 8 bytes in 16-bit types. */
__device__ static inline void load_four(float *v, const float *x)
{
	unpack_vector(v, *(const uint4 *)x, float());
}

template <class H> __device__ static inline void load_four(float *v, const H *x)
{
	uint2 u = *(const uint2 *)x;
	from_pair(v, u.x, H());
	from_pair(v + 2, u.y, H());
}

__device__ static inline void store_four(float *x, const float *v)
{
	*(uint4 *)x = pack_vector<float>(v);
}

template <class H> __device__ static inline void store_four(H *x, const float *v)
{
	*(uint2 *)x = make_uint2(to_pair(v[0], v[1], H()), to_pair(v[2], v[3], H()));
}

/* Stores those of four elements that are before `end` in the 16-bit copy of the weights. */
template <class H> __device__ static inline void store_work(uint16_t *work, const float *v, int64_t at, int64_t end, bool vector)
{
	if (vector) {
		store_four((H *)work + at, v);
		return;
	}
#pragma unroll
	for (int k = 0; k < 4; k++)
		if (at + k < end)
			work[at + k] = from_float<H>(v[k]).bits;
}

/* Computes buf = momentum * buf + (1 - momentum) * g, and the sums of squares of the directions and, if they are needed, of the weights.
 * The last block of a matrix adds the sums of its chunks in their order. */
__global__ void __launch_bounds__(BLOCK) muon_momentum(const gt_cu_muon a, bool aligned)
{
	after_previous();
	const gt_cu_chunk c = a.chunk[blockIdx.x];
	const gt_cu_muon_matrix m = a.matrix[c.seg];
	__shared__ gt_opt_f32 h;
	double sum = 0, weights = 0;
	if (a.scalars && a.scalars->skip)
		return;
	if (threadIdx.x == 0)
		direction_scalars(&h, a, m);
	__syncthreads();
	bool vector = aligned && c.begin % 4 == 0;
	for (int i = (int)threadIdx.x * 4; i < c.n; i += BLOCK * 4) {
		int64_t at = c.begin + i, end = c.begin + c.n;
		float g[4], b[4], p[4] = {};
		load_vector<float>(g, a.g, at, end, vector, 0);
		load_vector<float>(b, a.buf, at, end, vector, 0);
		if (a.normalize)
			load_vector<float>(p, a.p, at, end, vector, 0);
#pragma unroll
		for (int k = 0; k < 4; k++) {
			double d = gt_muon_direction_f32(&h, g[k], &b[k], a.attr.nesterov);
			sum += d * d;
			weights += (double)p[k] * (double)p[k];
		}
		store_vector<float>(a.buf, b, at, end, vector);
	}
	sum = team_sum(sum, BLOCK);
	weights = team_sum(weights, BLOCK);
	if (threadIdx.x == 0) {
		a.part[2 * blockIdx.x] = sum;
		a.part[2 * blockIdx.x + 1] = weights;
	}
	if (!last_of(a.counter + c.seg, (uint32_t)m.chunks))
		return;
	sum = weights = 0;
	for (int64_t i = m.first + threadIdx.x; i < m.first + m.chunks; i += BLOCK) {
		sum += __ldcg(a.part + 2 * i);
		weights += __ldcg(a.part + 2 * i + 1);
	}
	sum = team_sum(sum, BLOCK);
	weights = team_sum(weights, BLOCK);
	if (threadIdx.x == 0) {
		gt_opt_f64 d = step_options(a, m);
		double norm = sqrt(weights), shrink = d.shrink;
		if (a.normalize)
			shrink *= norm > 0 ? sqrt((double)m.rows) / norm : 1;
		a.factor[c.seg] = {(float)gt_muon_scale(sqrt(sum), a.attr.eps), (float)shrink, (float)(-d.neg_lr * m.adjust)};
	}
}

/* Writes the scaled directions, and zeros as padding up to the sizes that the products prefer. The products keep these zeros. 8 blocks:
 * otherwise the scalars of thread 0 would take 33 registers, and a multiprocessor would run only 6 blocks. */
template <class S> __global__ void __launch_bounds__(BLOCK, 8) muon_fill(const gt_cu_muon a, bool aligned)
{
	after_previous();
	const gt_cu_chunk c = a.fill[blockIdx.x];
	const gt_cu_muon_matrix m = a.matrix[c.seg];
	bool skip = a.scalars && a.scalars->skip, vector = aligned && m.cols % 4 == 0 && m.hyper.begin % 4 == 0;
	float scale = skip ? 0 : a.factor[c.seg].direction;
	__shared__ gt_opt_f32 h;
	S *x = (S *)a.x + m.x;
	if (threadIdx.x == 0)
		direction_scalars(&h, a, m);
	__syncthreads();
	for (int i = (int)threadIdx.x * 4; i < c.n; i += BLOCK * 4) { /* ld, begin and n are multiples of 4, so four elements are in one row */
		int64_t e = c.begin + i;
		int row = (int)(e / m.ld), col = (int)(e - (int64_t)row * m.ld);
		float v[4] = {};
		if (row < m.rows && col < m.cols && !skip) {
			int64_t from = m.hyper.begin + (int64_t)row * m.cols, at = from + col, end = from + m.cols;
			float g[4], b[4];
			load_vector<float>(g, a.g, at, end, vector, 0);
			load_vector<float>(b, a.buf, at, end, vector, 0);
#pragma unroll
			for (int k = 0; k < 4; k++)
				v[k] = gt_muon_again_f32(&h, g[k], b[k], a.attr.nesterov) * scale;
		}
		store_four(x + e, v);
	}
}

/* Updates the weights. 8 blocks: without this bound a thread takes 40 registers, and a multiprocessor runs only 6 blocks. */
template <class S> __global__ void __launch_bounds__(BLOCK, 8) muon_apply(const gt_cu_muon a, bool aligned)
{
	after_previous();
	const gt_cu_chunk c = a.chunk[blockIdx.x];
	const gt_cu_muon_matrix m = a.matrix[c.seg];
	const S *x = (const S *)a.x + m.x;
	if (a.scalars && a.scalars->skip)
		return;
	const gt_cu_muon_factor f = a.factor[c.seg];
	if (f.step == 0)
		return;
	/* if true, four elements are in one row of the matrix, and all operands are aligned */
	bool vector = aligned && m.cols % 4 == 0 && m.hyper.begin % 4 == 0, half = a.attr.work_dtype == GT_F16;
	for (int i = (int)threadIdx.x * 4; i < c.n; i += BLOCK * 4) {
		int64_t at = c.begin + i, end = c.begin + c.n, e = at - m.hyper.begin;
		float p[4], d[4];
		int row = (int)(e / m.cols), col = (int)(e - (int64_t)row * m.cols);
		if (vector) {
			load_four(d, x + (int64_t)row * m.ld + col);
		} else {
#pragma unroll
			for (int k = 0; k < 4; k++) {
				d[k] = at + k < end ? to_float(x[(int64_t)row * m.ld + col]) : 0;
				bool wraps = col + 1 == m.cols;
				row += wraps;
				col = wraps ? 0 : col + 1;
			}
		}
		load_vector<float>(p, a.p, at, end, vector, 0);
#pragma unroll
		for (int k = 0; k < 4; k++)
			p[k] = p[k] * f.weight - f.step * d[k];
		store_vector<float>(a.p, p, at, end, vector);
		if (a.work && half)
			store_work<f16>(a.work, p, at, end, vector);
		else if (a.work)
			store_work<bf16>(a.work, p, at, end, vector);
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
static bool is_aligned(const gt_cu_muon *a)
{
	return ((uintptr_t)a->p | (uintptr_t)a->g | (uintptr_t)a->buf) % 16 == 0;
}

cudaError_t gt_cu_muon_begin(bool bf16s, const struct gt_cu_muon *a, cudaStream_t s)
{
	cudaError_t e = launch(muon_momentum, dim3((unsigned)a->nchunks), dim3(BLOCK), s, *a, is_aligned(a));
	if (e != cudaSuccess)
		return e;
	return launch(bf16s ? muon_fill<bf16> : muon_fill<float>, dim3((unsigned)a->nfill), dim3(BLOCK), s, *a, is_aligned(a));
}

cudaError_t gt_cu_muon_end(bool bf16s, const struct gt_cu_muon *a, cudaStream_t s)
{
	return launch(bf16s ? muon_apply<bf16> : muon_apply<float>, dim3((unsigned)a->nchunks), dim3(BLOCK), s, *a,
	              is_aligned(a) && (uintptr_t)a->work % 8 == 0);
}
