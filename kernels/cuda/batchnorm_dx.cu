/* The gradient of batch normalisation (batchnorm.cu). The data are read once for two sums and once for dx, as in the forward pass. Formulas
 * and roundings are those of kernels/cpu/batchnorm.c. */
#include "cuda/batchnorm.cuh"

/* Number of rows that a thread of the gradient's kernels loads at once: two, if a row has up to three tensors. If a kernel reads a fourth
 * tensor or computes the derivative of gelu, there are registers for one row only. */
template <int MASK, bool MORE> __device__ static constexpr int ahead_dx()
{
	return MORE || MASK >= GT_CU_MASK_GELU ? 1 : 2;
}

/* ---- kernels --------------------------------------------------------------------------------------------------------------- */
/* The following functions apply the gradient of the activation after the batch normalisation (GT_CU_MASK_...). bn(x) is computed again and
 * rounded as in the forward pass; dy is rounded where a separate gradient kernel of the activation would have stored it. */
template <int MASK> __device__ static constexpr bool needs_y() /* whether the gradient of the activation needs bn(x) */
{
	return MASK && MASK != GT_CU_MASK_Y;
}

template <class S, int V, int MASK>
__device__ static inline void apply_mask(float *dy, const float *x, const packed<S, V> &y, const float *scale, const float *shift)
{
	float v[V];
	if (MASK == GT_CU_MASK_Y)
		y.get(v);
#pragma unroll
	for (int j = 0; j < V; j++) {
		if (needs_y<MASK>())
			v[j] = to_float(from_float<S>(x[j] * scale[j] + shift[j]));
		if (MASK == GT_CU_MASK_GELU)
			dy[j] = to_float(from_float<S>(gt_gelu_dx_f32(dy[j], v[j])));
		else if (MASK == GT_CU_MASK_GELU_TANH)
			dy[j] = to_float(from_float<S>(gt_gelu_tanh_dx_f32(dy[j], v[j])));
		else if (MASK)
			dy[j] = v[j] <= 0 ? 0 : dy[j];
	}
}

/* Adds `more`, a second gradient of the output, to dy and rounds the sum as the operation add does. */
template <class S, int V> __device__ static inline void add_gradient(float *dy, const packed<S, V> &more)
{
	float v[V];
	more.get(v);
#pragma unroll
	for (int j = 0; j < V; j++)
		dy[j] = to_float(from_float<S>(dy[j] + v[j]));
}

template <int V> struct channels {
	float mean[V], scale[V], shift[V];
};

/* Loads the coefficients of a thread's channels. bn(x) = x * scale + shift is computed as bn_finish does. */
template <int V, int MASK> __device__ static inline void load_channels(channels<V> &h, const batchnorm_dx_args &a, int64_t col)
{
	float rstd[V], gamma[V];
	get_f32<V>(h.mean, a.mean + col);
	if (!needs_y<MASK>())
		return;
	get_f32<V>(rstd, a.rstd + col);
	if (a.gamma)
		get_f32<V>(gamma, a.gamma + col);
	if (a.beta)
		get_f32<V>(h.shift, a.beta + col);
#pragma unroll
	for (int j = 0; j < V; j++) {
		h.scale[j] = rstd[j] * (a.gamma ? gamma[j] : 1);
		h.shift[j] = (a.beta ? h.shift[j] : 0) - h.mean[j] * h.scale[j];
	}
}

/* Computes the coefficients of dx for a channel. inv is 1 / number of values. */
__device__ static inline void channel_dx(const batchnorm_dx_args &a, float *coef, int64_t c, double sum, double dot, double inv)
{
	double rstd = a.rstd[c];
	float scale = (float)(rstd * (double)(a.gamma ? a.gamma[c] : 1));
	coef[C_SCALE * a.c + c] = scale;
	coef[C_SHIFT * a.c + c] = (a.beta ? a.beta[c] : 0) - a.mean[c] * scale;
	coef[C_DOT * a.c + c] = a.batch ? (float)(rstd * rstd * dot * inv) : 0;
	coef[C_SUM * a.c + c] = a.batch ? (float)(sum * inv) : 0;
}

/* Stores the gradients of gamma and beta, and the sums for the other ranks or the coefficients of dx. */
__device__ static inline void channel_sums(const batchnorm_dx_args &a, float *coef, int64_t c, double sum, double dot)
{
	double rstd = a.rstd[c];
	if (a.dgamma)
		a.dgamma[c] = (float)(dot * rstd) + (a.add_gamma ? a.dgamma[c] : 0);
	if (a.dbeta)
		a.dbeta[c] = (float)sum + (a.add_beta ? a.dbeta[c] : 0);
	if (a.sums)
		gt_moments_put(a.sums, a.c, c, gt_moments{sum, dot, (double)a.rows});
	else
		channel_dx(a, coef, c, sum, dot, 1.0 / (double)a.rows);
}

/* Computes the coefficients of dx from a.given, which has the sums over the batches of all ranks (sync_bn). */
__global__ void __launch_bounds__(COL_BLOCK) bn_given(const batchnorm_dx_args a, float *coef)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * COL_BLOCK + threadIdx.x;
	if (c < a.c)
		channel_dx(a, coef, c, a.given[c], a.given[a.c + c], 1.0 / a.given[2 * a.c + c]);
}

/* Computes the sums of dy and of dy * (x - mean) for each channel. Stores dy, after `more` was added and the mask was applied, in a.g. */
template <class S, int V, int MASK, bool MORE>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) bn_sums(const batchnorm_dx_args a, float *coef, float *part, const tiling t)
{
	after_previous();
	const place p = place_of<V>(t);
	float sum[2 * V] = {};
	channels<V> h;
	if (p.in) {
		load_channels<V, MASK>(h, a, p.col);
		int64_t at = p.row * t.cols + p.col, step = p.ty * t.cols;
		constexpr int AHEAD = ahead_dx<MASK, MORE>();
		for (int left = p.n; left > 0; left -= AHEAD, at += AHEAD * step) {
			packed<S, V> dy[AHEAD], more[AHEAD], x[AHEAD], y[AHEAD];
			bool second = left > 1;
#pragma unroll
			for (int k = 0; k < AHEAD; k++)
				if (!k || second) {
					dy[k].fetch((const S *)a.dy + at + k * step);
					if (MORE)
						more[k].fetch((const S *)a.more + at + k * step);
					x[k].fetch((const S *)a.x + at + k * step);
					if (MASK == GT_CU_MASK_Y)
						y[k].fetch((const S *)a.y + at + k * step);
				}
#pragma unroll
			for (int k = 0; k < AHEAD; k++)
				if (!k || second) {
					float d[V], v[V];
					dy[k].get(d);
					if (MORE)
						add_gradient<S, V>(d, more[k]);
					x[k].get(v);
					apply_mask<S, V, MASK>(d, v, y[k], h.scale, h.shift);
					if ((MASK || MORE) && a.g)
						store_packed<S, V>((S *)a.g + at + k * step, d);
#pragma unroll
					for (int j = 0; j < V; j++) {
						sum[j] += d[j];
						sum[V + j] += d[j] * (v[j] - h.mean[j]);
					}
				}
		}
	}
	block_columns<2 * V>(sum, p);
	if (!p.y && p.in) {
		put_f32<V>(part + (int64_t)blockIdx.y * 2 * t.cols + p.col, sum);
		put_f32<V>(part + ((int64_t)blockIdx.y * 2 + 1) * t.cols + p.col, sum + V);
	}
	int64_t c;
	double s0, s1;
	if (last_of_tile(a.counter, t) && tile_totals<V, false>(part, t, c, s0, s1))
		channel_sums(a, coef, c, s0, s1);
}

/* Computes dx = scale * (dy - sum - (x - mean) * dot). */
template <class S, int V, int MASK>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) bn_dx(const batchnorm_dx_args a, const float *coef, const tiling t)
{
	after_previous();
	const place p = place_back<V>(t);
	float mean[V], scale[V], shift[V], dot[V], sum[V];
	if (!p.in)
		return;
	get_f32<V>(mean, a.mean + p.col);
	get_f32<V>(scale, coef + C_SCALE * t.cols + p.col);
	if (needs_y<MASK>())
		get_f32<V>(shift, coef + C_SHIFT * t.cols + p.col);
	get_f32<V>(dot, coef + C_DOT * t.cols + p.col);
	get_f32<V>(sum, coef + C_SUM * t.cols + p.col);
	int64_t at = p.row * t.cols + p.col, step = -p.ty * t.cols;
	constexpr int AHEAD = ahead_dx<MASK, false>();
	for (int left = p.n; left > 0; left -= AHEAD, at += AHEAD * step) {
		packed<S, V> dy[AHEAD], x[AHEAD], y[AHEAD];
		bool second = left > 1;
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (!k || second) {
				dy[k].fetch((const S *)a.dy + at + k * step);
				x[k].fetch((const S *)a.x + at + k * step);
				if (MASK == GT_CU_MASK_Y)
					y[k].fetch((const S *)a.y + at + k * step);
			}
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (!k || second) {
				float d[V], v[V];
				dy[k].get(d);
				x[k].get(v);
				apply_mask<S, V, MASK>(d, v, y[k], scale, shift);
#pragma unroll
				for (int j = 0; j < V; j++)
					d[j] = scale[j] * (d[j] - sum[j] - (v[j] - mean[j]) * dot[j]);
				store_packed<S, V>((S *)a.dx + at + k * step, d);
			}
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
template <class S, int V, int MASK> static cudaError_t launch_gradient(const batchnorm_dx_args &a, cudaStream_t s)
{
	struct tiling t = tile_columns(a.rows, a.c, V);
	float *part = partials_of(a.scratch, a.c);
	batchnorm_dx_args b = a;
	if (a.more && !a.g)
		b.g = a.dx; /* the first pass stores dy + more in dx, so that the second pass reads one tensor instead of two */
	constexpr bool CAN_ADD = MASK < GT_CU_MASK_GELU; /* false for a gelu: a kernel that also adds `more` would spill registers */
	cudaError_t e = a.given ? launch(bn_given, dim3((unsigned)ceil_div(a.c, COL_BLOCK)), dim3(COL_BLOCK), s, b, a.scratch)
	                         : launch(a.more ? bn_sums<S, V, MASK, CAN_ADD> : bn_sums<S, V, MASK, false>, tiling_grid(t), dim3(COL_BLOCK),
	                                  s, b, a.scratch, part, t);
	if (e != cudaSuccess || !a.dx)
		return e;
	if (!b.g)
		return launch(bn_dx<S, V, MASK>, tiling_grid(t), dim3(COL_BLOCK), s, b, (const float *)a.scratch, t);
	b.dy = b.g; /* g now holds dy after the mask, so dx is computed from g */
	return launch(bn_dx<S, V, 0>, tiling_grid(t), dim3(COL_BLOCK), s, b, (const float *)a.scratch, t);
}

template <class S, int V> static cudaError_t launch_mask(const batchnorm_dx_args &a, cudaStream_t s)
{
	switch (a.mask) {
	case GT_CU_MASK_BN:
		return launch_gradient<S, V, GT_CU_MASK_BN>(a, s);
	case GT_CU_MASK_Y:
		return launch_gradient<S, V, GT_CU_MASK_Y>(a, s);
	case GT_CU_MASK_GELU:
		return launch_gradient<S, V, GT_CU_MASK_GELU>(a, s);
	case GT_CU_MASK_GELU_TANH:
		return launch_gradient<S, V, GT_CU_MASK_GELU_TANH>(a, s);
	default:
		return launch_gradient<S, V, GT_CU_MASK_NONE>(a, s);
	}
}

template <class S> static cudaError_t launch_any(const batchnorm_dx_args &a, cudaStream_t s)
{
	/* The kernels also read the f32 arrays of the channels in vectors of four, so the addresses of these arrays must be aligned, too. */
	uintptr_t at = (uintptr_t)a.x | (uintptr_t)a.dy | (uintptr_t)a.more | (uintptr_t)a.y | (uintptr_t)a.dx | (uintptr_t)a.g |
	               (uintptr_t)a.mean | (uintptr_t)a.rstd | (uintptr_t)a.gamma | (uintptr_t)a.beta;
	return columns_of<S>(a.c, at) == 1 ? launch_mask<S, 1>(a, s) : launch_mask<S, width<S>::n>(a, s);
}

cudaError_t gt_cu_batchnorm_dx_start(int type, const batchnorm_dx_args &a, cudaStream_t s)
{
	return a.rows && a.c ? OF_TYPE(type, launch_any)(a, s) : cudaSuccess;
}
