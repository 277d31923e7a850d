/* The parameters of the kernel mlp.steps (mlp_kernel.cuh): their gradients, the norm of these, and the update. m is the mlp_block.
 *
 * A kernel without MORE updates a parameter as soon as its gradient is computed. One with MORE keeps the gradient where the updated
 * parameter will be, and updates in a second pass, when the norm is known.
 *
 * The optimizer is a branch that all threads take alike and no template argument: nvcc would compile everything else once for each. */
#ifndef GT_KERNELS_CUDA_MLP_UPDATE_CUH
#define GT_KERNELS_CUDA_MLP_UPDATE_CUH

#include "cuda/mlp_block.cuh"
#include <cfloat>

/* Reads or writes N neighbouring floats of shared memory at once. */
template <int N> __device__ static inline void get(float (&v)[N], const float *from)
{
	if constexpr (N == 4) {
		const float4 x = *(const float4 *)from;
		v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
	} else {
		v[0] = *from;
	}
}

template <int N> __device__ static inline void put(float *to, const float (&v)[N])
{
	if constexpr (N == 4)
		*(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
	else
		*to = v[0];
}

/* Updates N parameters p[N] at position i of a set, and their states. h: their factors. */
template <class S, class M, int N>
__device__ static inline void step_with(const M &m, const gt_opt_f32 &h, int i, const float (&g)[N], float (&p)[N])
{
	float s[3][N] = {};
#pragma unroll
	for (int k = 0; k < S::states; k++)
		get(s[k], m.set(1 + k, m.q) + i);
#pragma unroll
	for (int j = 0; j < N; j++) {
		float each[3] = {s[0][j], s[1][j], s[2][j]};
		p[j] = S::f(h, p[j], g[j], each, h.first, m.a.update.nesterov);
		s[0][j] = each[0], s[1][j] = each[1], s[2][j] = each[2];
	}
#pragma unroll
	for (int k = 0; k < S::states; k++)
		put(m.set(1 + k, m.q ^ 1) + i, s[k]);
}

/* Whether step_of has an optimizer with this number of states. */
static inline bool has_step(int code, int nstates)
{
	return (code == GT_OP_ADAM && nstates == 2) || (code == GT_OP_SGD && nstates < 2);
}

/* Updates N neighbouring parameters at position i of a set, their states and their moving averages, from the copies of this step to those
 * of the next one. p: the new parameters. Returns whether a gradient is not finite. Weights after the last output are 0, and so are their
 * gradients: they stay 0. */
template <class M, int N> __device__ static inline bool step_of(const M &m, const gt_opt_f32 &h, int i, const float (&g)[N], float (&p)[N])
{
	bool bad = false;
	get(p, m.set(0, m.q) + i);
	if (m.a.update_code == GT_OP_ADAM)
		step_with<step<GT_OP_ADAM, 3>>(m, h, i, g, p);
	else if (m.a.d.nstates)
		step_with<step<GT_OP_SGD, 1>>(m, h, i, g, p);
	else
		step_with<step<GT_OP_SGD, 0>>(m, h, i, g, p);
	put(m.set(0, m.q ^ 1) + i, p);
	if (m.averages()) {
		const gt_opt_f32 &ema = m.opt()[2 * m.a.d.nlayers];
		float v[N];
		get(v, m.set(1 + m.a.d.nstates, m.q) + i);
#pragma unroll
		for (int j = 0; j < N; j++)
			v[j] = gt_step_ema_f32(&ema, v[j], p[j], NULL, NULL, NULL, false, false);
		put(m.set(1 + m.a.d.nstates, m.q ^ 1) + i, v);
	}
#pragma unroll
	for (int j = 0; j < N; j++)
		bad |= !(fabsf(g[j]) <= FLT_MAX);
	return bad;
}

/* ---- gradients: each function returns whether one of those with which it updates is not finite -------------------------------------- */
/* Updates N parameters at position i of a set with their gradients and calls publish(p); with MORE, it only keeps the gradients. */
template <class M, int N, class F>
__device__ static inline bool learn(const M &m, const gt_opt_f32 &h, int i, const float (&g)[N], F publish)
{
	if (M::MORE) {
		put(m.set(0, m.q ^ 1) + i, g);
		return false;
	}
	float p[N];
	bool bad = step_of(m, h, i, g, p);
	publish(p);
	return bad;
}

/* Publishes four weights of neighbouring outputs: column k of group g of layer l. */
template <class M> __device__ static inline void publish_four(const M &m, int l, int g, int k, const float (&p)[4])
{
	int o = m.first(l) + 4 * g;
#pragma unroll
	for (int j = 0; j < 4; j++)
		if (l > 0 && o + j < m.a.d.layer[l].out)
			m.publish(l, m.q ^ 1, o + j, k, p[j]);
}

/* The rows of layer l's weight that the block owns. */
template <class M> __device__ static inline bool learn_rows(const M &m, int l)
{
	constexpr int R = M::R;
	const gt_mlp_division_layer &y = m.a.d.layer[l];
	bool bad = false;
	each_tile<M::RB>(m.tile(), m.inputs(l), y.in, m.a.d.wide, false, [&](int from, int n) {
		for (int g = 0; g < y.cols / 4; g++)
			for (int k = m.me; k < n; k += BLOCK) {
				float sum[4] = {};
				const float *x = m.tile() + k * M::LD, *dy = m.own_grad(l) + g * R * 4;
#pragma unroll 8
				for (int b = 0; b < R; b++) {
					const float4 d = *(const float4 *)(dy + 4 * b);
					sum[0] = gt_fma_f32(x[b], d.x, sum[0]);
					sum[1] = gt_fma_f32(x[b], d.y, sum[1]);
					sum[2] = gt_fma_f32(x[b], d.z, sum[2]);
					sum[3] = gt_fma_f32(x[b], d.w, sum[3]);
				}
				bad |= learn(m, m.opt()[2 * l], y.shared + (g * y.in + from + k) * 4, sum,
				             [&](const float(&p)[4]) { publish_four(m, l, g, from + k, p); });
			}
	});
	return bad;
}

/* The columns of the last layer's weight that the block owns. */
template <class M> __device__ static inline bool learn_last(const M &m)
{
	const gt_cu_mlp &a = m.a;
	int l = a.d.nlayers - 1;
	const gt_mlp_division_layer &y = a.d.layer[l];
	const float *dy = m.dlogits();
	bool bad = false;
	for (int i = m.me; i < y.cols * y.out; i += BLOCK) {
		int k = i / y.out, c = i - k * y.out;
		float sum[1] = {};
		if (m.first(l) + k >= y.in)
			continue;
		for (int b = 0; b < a.d.rows; b++)
			sum[0] = gt_fma_f32(m.own(l - 1)[(k / 4 * M::R + b) * 4 + k % 4], dy[b * y.out + c], sum[0]);
		bad |= learn(m, m.opt()[2 * l], y.shared + k * a.d.classes + c, sum,
		             [&](const float(&p)[1]) { m.publish(l, m.q ^ 1, c, m.first(l) + k, p[0]); });
	}
	return bad;
}

/* The biases that the block owns; the first block has that of the last layer. */
template <class M> __device__ static inline bool learn_biases(const M &m)
{
	const gt_mlp_division &d = m.a.d;
	bool bad = false;
	for (int l = 0; l < d.nlayers; l++) {
		const gt_mlp_division_layer &y = d.layer[l];
		bool last = l == d.nlayers - 1;
		int begin = last ? 0 : m.first(l), n = last ? blockIdx.x == 0 ? y.out : 0 : y.cols, stride = last ? y.out : 4;
		for (int o = m.me; m.a.param[l].b >= 0 && o < n && begin + o < y.out; o += BLOCK) {
			const float *dy = last ? m.dlogits() + o : m.own_grad(l) + o / 4 * M::R * 4 + o % 4;
			float sum[1] = {};
			for (int b = 0; b < d.rows; b++)
				sum[0] += dy[b * stride];
			bad |= learn(m, m.opt()[2 * l + 1], y.shared_bias + o, sum, [&](const float(&p)[1]) {
				if (last)
					m.publish(l, m.q ^ 1, o, y.in, p[0]);
			});
		}
	}
	return bad;
}

/* Updates all parameters that the block owns with the gradients that were kept, four at once. */
template <class M> __device__ static inline bool apply(const M &m)
{
	const gt_mlp_division &d = m.a.d;
	const float *kept = m.set(0, m.q ^ 1);
	bool bad = false;
	for (int l = 0; l < d.nlayers; l++) {
		const gt_mlp_division_layer &y = d.layer[l];
		bool last = l == d.nlayers - 1;
		int weights = y.cols / 4 * (last ? d.classes : y.in); /* in groups of four; those of the biases follow */
		int biases = m.a.param[l].b < 0 ? 0 : !last ? y.cols / 4 : blockIdx.x == 0 ? d.classes / 4 : 0;
		for (int i = m.me; i < weights + biases; i += BLOCK) {
			float grad[4], p[4];
			get(grad, kept + y.shared + 4 * i);
			bad |= step_of(m, m.opt()[2 * l + (i >= weights)], y.shared + 4 * i, grad, p);
			if (last) { /* in the order in which the blocks publish them */
				int end = y.in * d.classes, at = i < weights ? m.first(l) * d.classes + 4 * i : end + 4 * (i - weights);
				if (i >= weights || at < end)
					put(m.a.work + y.next[m.q ^ 1] + at, p);
			} else if (i < weights) {
				publish_four(m, l, i / y.in, i % y.in, p);
			}
		}
	}
	return bad;
}

/* ---- the norm of the gradients ------------------------------------------------------------------------------------------------------ */
/* Adds up the squares of n gradients at x in one warp: each lane in order, then the lanes in a tree. */
__device__ static inline double squares(const float *x, int n)
{
	double sum = 0;
	for (int i = (int)threadIdx.x % 32; i < n; i += 32)
		sum += (double)x[i] * (double)x[i];
	return team_sum(sum, 32);
}

/* Writes the sums of squares of the gradients that the block has kept, one for each four outputs of a layer, which one block owns,
 * whatever the number of blocks: d.norm[q] has all of them in the order of the layers. */
template <class M> __device__ static inline void publish_squares(const M &m)
{
	const gt_mlp_division &d = m.a.d;
	double *out = (double *)(m.a.work + d.norm[m.q]);
	const float *kept = m.set(0, m.q ^ 1);
	int last = d.nlayers - 1, me = m.me;
	__syncthreads();
	for (int l = 0; l <= last; l++) {
		const gt_mlp_division_layer &y = d.layer[l];
		int owned = l < last ? y.out : y.in, width = l < last ? 4 * y.in : 4 * d.classes;
		for (int g = me / 32; g < y.cols / 4 && m.first(l) + 4 * g < owned; g += WARPS) {
			double sum = squares(kept + y.shared + g * width, width);
			if (l < last)
				sum += squares(kept + y.shared_bias + 4 * g, 4);
			if (me % 32 == 0)
				out[m.first(l) / 4 + g] = sum;
		}
		out += (owned + 3) / 4;
	}
	if (blockIdx.x == 0 && me < 32) {
		double sum = squares(kept + d.layer[last].shared_bias, d.layer[last].out);
		if (me == 0)
			*out = sum;
	}
}

/* Adds up all sums of squares, and sets the factors by which the optimizer multiplies gradients. Returns whether the norm is finite. */
template <class M> __device__ static inline bool clip(const M &m, int64_t s)
{
	const gt_cu_mlp &a = m.a;
	const double *from = (const double *)(a.work + a.d.norm[m.q]);
	double *norm = (double *)(m.mem + a.d.norm_at);
	if (m.me < 32) {
		double sum = 0;
		for (int i = m.me; i < a.d.norms; i += 32)
			sum += __ldcg(from + i);
		sum = team_sum(sum, 32);
		if (m.me == 0) {
			*norm = sum;
			if (blockIdx.x == 0)
				a.scalars[s].sumsq = sum;
		}
	}
	__syncthreads();
	if (m.me < 2 * a.d.nlayers)
		m.opt()[m.me].clip = (float)gt_clip_factor(a.clip_norm, *norm);
	__syncthreads();
	return fabs(*norm) <= DBL_MAX;
}

#endif
