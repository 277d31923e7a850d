/* mlp.steps: all steps of a window of a multilayer perceptron in one kernel, whose blocks stay on their multiprocessors and keep the
 * weights and the state of the optimizer in shared memory.
 *
 * Block i owns some outputs of every layer but the last one, with their rows of the weight, and the same inputs of the last layer, with
 * their columns of its weight. A step of three layers, in which W(l) is a weight as of the step before, h(l) the output of layer l, act its
 * activation, and "own" means the part that the block owns:
 *
 *     own h(0) = act(W(0) x)                           x: the bytes of the batch
 *   ---- barrier of the grid: h(0), and the weights that the blocks have published in the step before
 *     own h(1) = act(W(1) h(0))
 *   ---- barrier of the grid: h(1)
 *     all logits, loss and dlogits                     in every block, which so knows whether the loss is finite
 *     all dh(1) = W(2)' dlogits * act'                 in every block: cheaper than a third barrier and reading 4 bytes for each element
 *     own dh(0) = W(1)' dh(1) * act'                   from own columns of the published W(1)
 *     own rows of W(0), W(1) and own columns of W(2): gradient and update at once; W(1), W(2) are published for the next step
 *
 * If gradients are clipped, the blocks keep them, publish sums of their squares, meet at one more barrier and then update. A fourth
 * layer needs two more barriers, for its h and dh. What blocks exchange exists twice, for even and odd steps, so that a fast block may
 * write while a slow one still reads. So do the parameters and states: an update reads one copy and writes the other. A block that finds
 * a gradient that is not finite sets a flag, which all blocks read after their next barrier; then the copy before the update counts, and
 * nothing has been updated.
 *
 * The order of every sum is a function of the shapes alone (mlp_parts.cuh), so the number of blocks and the length of a window change no
 * bit.
 *
 * What a block does in a step is counted in kernels/mlp_division.c, which must follow these loops, and `gtrain check --card` predicts the
 * time from it. Shared memory is the limit: a product with more columns in each thread's registers, or on tensor cores, would use it
 * less. */
#ifndef GT_KERNELS_CUDA_MLP_KERNEL_CUH
#define GT_KERNELS_CUDA_MLP_KERNEL_CUH

#include "cuda/grid.cuh"
#include "cuda/mlp_layers.cuh"
#include "cuda/mlp_update.cuh"

template <int RB, bool MORE> __global__ void __launch_bounds__(BLOCK, 1) mlp_steps(const __grid_constant__ gt_cu_mlp a)
{
	after_previous();
	mlp_block<RB, MORE> m = {a, dynamic_shared(), (int)threadIdx.x, 0};
	uint32_t *arrived = (uint32_t *)a.work, *flag = arrived + 1, goal = 0;
	int64_t steps = a.look.step_args.dev->left + 1, halted = a.scaler->halted ? 0 : steps;
	int kept = 0, last = a.d.nlayers - 1; /* kept: which copy of the parameters counts */
	bool ran = halted > 0; /* false: a step of an earlier window diverged */
	if (ran)
		m.load();
	for (int64_t s = 0; s < halted; s++) {
		m.q = (int)(s & 1);
		m.begin(s);
		for (int l = 0; l < last; l++) {
			forward(m, l);
			grid_barrier(arrived, goal);
			if (l == 0 && s > 0 && __ldcg(flag + (m.q ^ 1))) {
				halted = s - 1;
				break;
			}
		}
		if (halted < s)
			break;
		kept = m.q;
		bool finite = head(m, s);
		metrics(m, s);
		if (!finite) {
			halted = s;
			break;
		}
		backward_last(m);
		for (int l = last - 1; l > 0; l--) {
			backward(m, l);
			if (a.d.layer[l - 1].grad[0] >= 0)
				grid_barrier(arrived, goal);
		}
		__syncthreads();
		bool bad = learn_last(m);
		bad |= learn_biases(m);
		for (int l = last - 1; l >= 0; l--)
			bad |= learn_rows(m, l);
		if (MORE) {
			if (a.clip_norm > 0) {
				publish_squares(m);
				grid_barrier(arrived, goal);
				if (!clip(m, s)) {
					halted = s;
					break;
				}
			}
			__syncthreads();
			bad |= apply(m);
		}
		if (bad)
			flag[m.q] = 1;
		kept = m.q ^ 1;
	}
	if (halted == steps) { /* the gradients of the last step */
		grid_barrier(arrived, goal);
		if (__ldcg(flag + m.q))
			halted = steps - 1;
	}
	__syncthreads();
	if (halted < steps)
		kept = (int)(halted & 1);
	if (ran)
		m.store(kept);
	if (halted == steps || blockIdx.x)
		return;
	for (int64_t s = halted + (int64_t)threadIdx.x; s < steps; s += BLOCK) {
		struct gt_scalars none = {};
		if (s > halted)
			a.scalars[s] = none;
		a.scalars[s].inv_scale = 1;
		a.scalars[s].skip = 1;
	}
	__syncthreads();
	if (threadIdx.x == 0)
		a.scaler->halted = 1;
}

typedef void mlp_kernel(const gt_cu_mlp);
mlp_kernel *gt_cu_mlp_more(int rows); /* the kernel with MORE for a batch (mlp_more.cu) */

#endif
