/* The layers of the kernel mlp.steps (mlp_kernel.cuh): outputs, loss, and gradients of the outputs. m is the mlp_block. */
#ifndef GT_KERNELS_CUDA_MLP_LAYERS_CUH
#define GT_KERNELS_CUDA_MLP_LAYERS_CUH

#include "cuda/loss.cuh"
#include "cuda/mlp_block.cuh"
#include <cfloat>

/* Computes own outputs of layer l, which is not the last one, and writes them where other blocks read them. */
template <class M> __device__ static inline void forward(const M &m, int l)
{
	constexpr int RB = M::RB, R = M::R;
	const gt_cu_mlp &a = m.a;
	const gt_mlp_division_layer &y = a.d.layer[l];
	const float *w = m.set(0, m.q) + y.shared, *bias = m.set(0, m.q) + y.shared_bias;
	for (int g = 0; g < y.cols / 4; g++) {
		float sum[RB][4] = {};
		each_tile<RB>(m.tile(), m.inputs(l), y.in, a.d.wide, g && y.in <= a.d.wide,
		              [&](int from, int n) { multiply<RB>(sum, m.tile(), w + (g * y.in + from) * 4, n); });
		add_warps<RB>(sum, m.mem + a.d.part_at, [&](int i, float v) {
			int o = m.first(l) + 4 * g + i % 4;
			v += bias[4 * g + i % 4];
			float slope = 0;
			v = M::MORE ? activate(a.param[l].act, v, &slope) : gt_relu_f32(v);
			m.own(l)[g * R * 4 + i] = v;
			if (M::MORE)
				m.own_slope(l)[g * R * 4 + i] = slope;
			if (i / 4 < a.d.rows && o < y.out) {
				a.work[y.act[m.q] + (int64_t)(i / 4) * y.out + o] = v;
				if (M::MORE && y.slope[m.q] >= 0)
					a.work[y.slope[m.q] + (int64_t)(i / 4) * y.out + o] = slope;
			}
		});
	}
}

/* ---- the last layer and the loss, in every block ------------------------------------------------------------------------------------ */
template <class M> __device__ static inline struct gt_cu_loss loss_of(const M &m, int64_t s)
{
	const gt_cu_mlp &a = m.a;
	struct gt_cu_loss c = {};
	c.x = m.mem + a.d.logits_at;
	c.dx = m.dlogits();
	c.target = m.labels();
	c.loss = (double *)(m.mem + a.d.loss_at);
	c.rank = (int32_t *)(m.mem + a.d.rank_at);
	c.rows = a.d.rows, c.cols = a.d.layer[a.d.nlayers - 1].out, c.ignore = a.loss.ignore_index;
	c.smoothing = a.loss.label_smoothing;
	if (M::MORE) {
		c.weights = a.loss.nweights ? a.class_weight : NULL;
		c.beta = a.loss.beta;
	}
	c.fault = a.look.fault;
	c.step_args.dev = a.look.step_args.dev + s;
	return c;
}

/* Computes the logits, the loss of each row and its gradient. Returns whether all losses are finite. */
template <class M> __device__ static inline bool head(const M &m, int64_t s)
{
	constexpr int RB = M::RB;
	const gt_cu_mlp &a = m.a;
	const gt_mlp_division_layer &y = a.d.layer[a.d.nlayers - 1];
	const float *next = a.work + y.next[m.q];
	float *last = m.mem + a.d.last_at, *part = m.mem + a.d.part_at, *logits = m.mem + a.d.logits_at, sum[RB][GT_MLP_CLASSES] = {};
	int me = m.me;
	copy_ahead((float4 *)last, y.in * a.d.classes / 4, [&](int i) { return __ldcg((const float4 *)next + i); });
	each_tile<RB>(m.tile(), m.outputs(a.d.nlayers - 2), y.in, a.d.narrow, false,
	              [&](int from, int n) { multiply_last<RB>(sum, m.tile(), last + from * a.d.classes, a.d.classes, n); });
#pragma unroll
	for (int r = 0; r < RB; r++) { /* 32 rows at a time, as many as there is room for */
		__syncthreads();
#pragma unroll
		for (int c = 0; c < GT_MLP_CLASSES; c += 4)
			if (c < a.d.classes)
				*(float4 *)(part + me * a.d.classes + c) = make_float4(sum[r][c], sum[r][c + 1], sum[r][c + 2], sum[r][c + 3]);
		__syncthreads();
		int rows = a.d.rows - 32 * r < 32 ? a.d.rows - 32 * r : 32;
		for (int i = me; i < rows * a.d.classes; i += BLOCK) {
			int c = i % a.d.classes;
			float v = part[i];
			for (int w = 1; w < WARPS; w++)
				v += part[w * 32 * a.d.classes + i];
			if (c < y.out)
				logits[(32 * r + i / a.d.classes) * y.out + c] = v + __ldcg(next + (int64_t)y.in * a.d.classes + c);
		}
	}
	__syncthreads();
	const struct gt_cu_loss c = loss_of(m, s);
	bool plain = !M::MORE || (a.loss_code == GT_OP_CROSS_ENTROPY && !a.loss.nweights);
	for (int r = me / 32; r < a.d.rows; r += WARPS) {
		if (plain)
			loss_row<float, GT_OP_CROSS_ENTROPY>(c, r, me % 32, 32);
		else
			other_row<float>(c, a.loss_code, r, me % 32, 32);
	}
	__syncthreads();
	bool finite = true;
	for (int r = 0; r < a.d.rows; r++)
		finite = finite && fabs(c.loss[r]) <= DBL_MAX;
	return finite;
}

/* The first warp of the first block writes the sums of the losses. */
template <class M> __device__ static inline void metrics(const M &m, int64_t s)
{
	const gt_cu_mlp &a = m.a;
	const double *loss = (const double *)(m.mem + a.d.loss_at);
	const int32_t *rank = (const int32_t *)(m.mem + a.d.rank_at);
	double sum = 0, weight = 0;
	int32_t count = 0, correct = 0, top5 = 0;
	bool weighs = M::MORE && a.loss_code == GT_OP_CROSS_ENTROPY && a.loss.nweights;
	if (blockIdx.x || m.me >= 32)
		return;
	for (int r = m.me; r < a.d.rows; r += 32) {
		if (rank[r] < 0)
			continue;
		sum += loss[r];
		weight += weighs ? (double)a.class_weight[m.labels()[r]] : 1;
		count += rank[r] != INT32_MAX;
		correct += rank[r] == 0;
		top5 += rank[r] < 5;
	}
	sum = team_sum(sum, 32);
	weight = team_sum(weight, 32);
	count = team_sum(count, 32);
	correct = team_sum(correct, 32);
	top5 = team_sum(top5, 32);
	if (m.me)
		return;
	struct gt_scalars out = {};
	out.metrics.loss = sum, out.metrics.weight = weight;
	out.metrics.count = count, out.metrics.correct = correct, out.metrics.top5 = top5;
	out.inv_scale = 1;
	a.scalars[s] = out;
}

/* ---- gradients of outputs ----------------------------------------------------------------------------------------------------------- */
template <class M> __device__ static inline const float *saved(const M &m, int l) /* what back() needs of own outputs */
{
	return M::MORE ? m.own_slope(l) : m.own(l);
}

/* Replaces columns of h, or with MORE of the slopes, by those of dh, before the last layer. */
template <class M> __device__ static inline void last_gradient(const M &m, int from, int n)
{
	constexpr int R = M::R;
	const gt_mlp_division &d = m.a.d;
	const gt_mlp_division_layer &y = d.layer[d.nlayers - 1];
	const row_gradient dy(m.dlogits() + m.me % R * y.out, y.out);
	float *at = m.tile() + m.me % R;
	for (int k = m.me / R; k < n; k += BLOCK / R)
		at[k * M::LD] = back<M::MORE>(dy.dx(m.mem + d.last_at + (from + k) * d.classes, d.classes), at[k * M::LD]);
	__syncthreads();
}

/* Computes own dh of the layer before the last one. */
template <class M> __device__ static inline void backward_last(const M &m)
{
	constexpr int R = M::R;
	const gt_mlp_division &d = m.a.d;
	const gt_mlp_division_layer &y = d.layer[d.nlayers - 1];
	int l = d.nlayers - 2;
	for (int i = m.me; i < y.cols * R; i += BLOCK) {
		int k = m.first(l) + i / (4 * R) * 4 + i % 4;
		const row_gradient dy(m.dlogits() + i / 4 % R * y.out, y.out);
		m.own_grad(l)[i] = k < y.in ? back<M::MORE>(dy.dx(m.mem + d.last_at + k * d.classes, d.classes), saved(m, l)[i]) : 0;
	}
}

/* Computes own dh of layer l - 1 from dh of layer l. */
template <class M> __device__ static inline void backward(const M &m, int l)
{
	constexpr int RB = M::RB;
	const gt_cu_mlp &a = m.a;
	const gt_mlp_division_layer &y = a.d.layer[l], &x = a.d.layer[l - 1];
	bool after = l == a.d.nlayers - 2;
	int most = after ? a.d.narrow : a.d.wide;
	float_rows rows = !after ? float_rows{a.work + y.grad[m.q], a.d.rows, y.out} : M::MORE ? m.slopes(l) : m.outputs(l);
	float *column = m.mem + a.d.column_at;
	for (int g = 0; g < x.cols / 4; g++) {
		int begin = m.first(l - 1) + 4 * g;
		float sum[RB][4] = {};
		__syncthreads();
		copy_ahead(column, y.out * 4, [&](int i) {
			return begin + i % 4 < y.in ? __ldcg(a.work + y.next[m.q] + (int64_t)(i / 4) * y.in + begin + i % 4) : 0;
		});
		__syncthreads();
		/* head() has left h in the tile if it has room for all columns */
		each_tile<RB>(m.tile(), rows, y.out, most, y.out <= most && (g || (after && !M::MORE)), [&](int from, int n) {
			if (after && (g == 0 || y.out > most))
				last_gradient(m, from, n);
			multiply<RB>(sum, m.tile(), column + from * 4, n);
		});
		add_warps<RB>(sum, m.mem + a.d.part_at, [&](int i, float v) {
			int o = begin + i % 4;
			v = o < x.out ? back<M::MORE>(v, saved(m, l - 1)[g * M::R * 4 + i]) : 0;
			m.own_grad(l - 1)[g * M::R * 4 + i] = v;
			if (x.grad[m.q] >= 0 && i / 4 < a.d.rows && o < x.out)
				a.work[x.grad[m.q] + (int64_t)(i / 4) * x.out + o] = v;
		});
	}
}

#endif
