/* What a block of the kernel mlp.steps owns (mlp_kernel.cuh): its parameters and states in shared memory, their way from and to global
 * memory, and the numbers of a step.
 *
 * A set has the weights and biases that the block owns. The parameters, each state and the moving average are one set at even steps and
 * another one at odd steps. Weights have the order [group of 4 outputs][input][4], those of the last layer [own input][class]. */
#ifndef GT_KERNELS_CUDA_MLP_BLOCK_CUH
#define GT_KERNELS_CUDA_MLP_BLOCK_CUH

#include "cuda/lookup.cuh"
#include "cuda/mlp_parts.cuh"
#include "cuda/optim_step.cuh"

#define BLOCK GT_MLP_BLOCK

/* What the threads of a block know. MORE: the kernel clips gradients, averages parameters, weighs classes, and has all losses and
 * activations (gt_mlp_division.more). */
template <int RB_, bool MORE_> struct mlp_block {
	static constexpr int RB = RB_, R = 32 * RB, LD = R + 1;
	static constexpr bool MORE = MORE_;
	const gt_cu_mlp &a;
	float *mem;
	int me, q; /* the thread; q: 0 at even steps, 1 at odd ones */

	__device__ float *set(int copy, int parity) const /* copy 0: the parameters, 1 ...: the states, then the moving average */
	{
		return mem + (parity * a.d.copies + copy) * a.d.set;
	}
	__device__ int first(int l) const /* first output of layer l that the block owns */
	{
		return (int)blockIdx.x * a.d.layer[l].cols;
	}
	__device__ gt_opt_f32 *opt() const /* of the weight and the bias of each layer, and of the moving average */
	{
		return (gt_opt_f32 *)(mem + a.d.opt_at);
	}
	__device__ float *own(int l) const /* [cols / 4][R][4] */
	{
		return mem + a.d.layer[l].own;
	}
	__device__ float *own_grad(int l) const
	{
		return own(l) + a.d.own_floats;
	}
	__device__ float *own_slope(int l) const /* derivatives of the activation; only with MORE */
	{
		return own(l) + 2 * a.d.own_floats;
	}
	__device__ bool averages() const
	{
		return MORE && a.average != NULL;
	}
	__device__ float *tile() const
	{
		return mem + a.d.tile_at;
	}
	__device__ float *dlogits() const
	{
		return mem + a.d.logits_at + R * a.d.layer[a.d.nlayers - 1].out;
	}
	__device__ const int32_t *labels() const
	{
		return (const int32_t *)(mem + a.d.labels_at);
	}
	__device__ float_rows outputs(int l) const
	{
		return {a.work + a.d.layer[l].act[q], a.d.rows, a.d.layer[l].out};
	}
	__device__ float_rows slopes(int l) const
	{
		return {a.work + a.d.layer[l].slope[q], a.d.rows, a.d.layer[l].out};
	}
	__device__ input_rows inputs(int l) const /* what layer l reads */
	{
		image_rows images = {a, (const int64_t *)(mem + a.d.places_at), a.d.layer[0].in};
		return {images, l > 0 ? outputs(l - 1) : float_rows{NULL, 0, 0}};
	}

	/* Calls f(i, at) for each parameter of layer l that the block owns, padding left out: i is its position in a set, at that in p. */
	template <class F> __device__ void each_own(int l, F f) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l];
		bool last = l == a.d.nlayers - 1;
		int n = y.cols, begin = first(l), weights = n * (last ? y.out : y.in), biases = !last ? n : blockIdx.x == 0 ? y.out : 0;
		for (int i = me; i < weights + (a.param[l].b < 0 ? 0 : biases); i += BLOCK) {
			int o, k, to;
			if (i >= weights) {
				o = i - weights, k = 0, to = y.shared_bias + o;
			} else if (last) {
				o = i / n, k = i - o * n, to = y.shared + k * a.d.classes + o;
			} else {
				o = i / y.in, k = i - o * y.in, to = y.shared + (o / 4 * y.in + k) * 4 + o % 4;
			}
			if (last)
				k += i < weights ? begin : 0;
			else
				o += begin;
			if (o < y.out && k < y.in)
				f(to, i < weights ? a.param[l].w + (int64_t)o * y.in + k : a.param[l].b + o);
		}
	}

	/* Writes a parameter of layer l to the memory where other blocks read it in the next step. o, k: its output and its input. */
	__device__ void publish(int l, int parity, int o, int k, float v) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l];
		if (l == a.d.nlayers - 1)
			a.work[y.next[parity] + (int64_t)k * a.d.classes + o] = v;
		else if (l > 0)
			a.work[y.next[parity] + (int64_t)o * y.in + k] = v;
	}

	__device__ void load() const
	{
		for (int i = me; i < 2 * a.d.copies * a.d.set; i += BLOCK) /* padding and absent biases are 0 */
			mem[i] = 0;
		for (int i = me; i < 2 * R * a.d.layer[a.d.nlayers - 1].out; i += BLOCK)
			mem[a.d.logits_at + i] = 0;
		__syncthreads();
		for (int l = 0; l < a.d.nlayers; l++)
			each_own(l, [&](int i, int64_t at) {
				set(0, 0)[i] = a.p[at];
#pragma unroll
				for (int k = 0; k < 2; k++)
					if (k < a.d.nstates)
						set(1 + k, 0)[i] = a.state[k][at];
				if (averages())
					set(1 + a.d.nstates, 0)[i] = a.average[at];
			});
		__syncthreads();
		for (int l = 1; l < a.d.nlayers; l++) {
			const gt_mlp_division_layer &y = a.d.layer[l];
			bool last = l == a.d.nlayers - 1;
			int n = y.cols, begin = first(l), width = last ? a.d.classes : y.in;
			for (int i = me; i < n * width; i += BLOCK) {
				int o = i / width, k = i - o * width;
				if (last ? begin + o < y.in : begin + o < y.out) {
					float v = set(0, 0)[last ? y.shared + i : y.shared + (o / 4 * y.in + k) * 4 + o % 4];
					int64_t at = (int64_t)(begin + o) * width + k;
					a.work[y.next[0] + at] = v;
					if (last) /* the padding after the classes stays 0 */
						a.work[y.next[1] + at] = v;
				}
			}
			for (int parity = 0; parity < 2 && last && blockIdx.x == 0 && me < a.d.classes; parity++)
				a.work[y.next[parity] + (int64_t)y.in * a.d.classes + me] = set(0, 0)[y.shared_bias + me];
		}
	}

	__device__ void store(int parity) const
	{
		for (int l = 0; l < a.d.nlayers; l++)
			each_own(l, [&](int i, int64_t at) {
				a.p[at] = set(0, parity)[i];
#pragma unroll
				for (int k = 0; k < 2; k++)
					if (k < a.d.nstates)
						a.state[k][at] = set(1 + k, parity)[i];
				if (averages())
					a.average[at] = set(1 + a.d.nstates, parity)[i];
			});
	}

	/* Finds the samples of step s and computes the factors of the optimizer. */
	__device__ void begin(int64_t s) const
	{
		const struct gt_step_args *now = a.look.step_args.dev + s;
		__syncthreads();
		if (me < R) {
			int64_t at = me < a.d.rows ? sample_at(a.look, *now, me, blockIdx.x == 0) : -1;
			((int64_t *)(mem + a.d.places_at))[me] = at;
			((int32_t *)(mem + a.d.labels_at))[me] = at < 0 ? (int32_t)a.loss.ignore_index : a.labels[at];
		} else if (me >= R && me < R + 2 * a.d.nlayers) {
			int i = me - R;
			const struct gt_seg seg = a.param[i / 2].seg[i % 2];
			double lr = now->lr[seg.lr], momentum = now->momentum[seg.lr];
			opt()[i] = a.update_code == GT_OP_ADAM ? opt_of(GT_OP_ADAM, &a.update, seg, now->step, lr, momentum, NULL)
			                                       : opt_of(GT_OP_SGD, &a.update, seg, now->step, lr, momentum, NULL);
		} else if (averages() && me == R + 2 * a.d.nlayers) {
			opt()[2 * a.d.nlayers] = opt_of(GT_OP_EMA, &a.ema, gt_seg(), now->step, 0, 0, NULL);
		}
		__syncthreads();
	}
};

#endif
