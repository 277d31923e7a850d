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
#include "cuda/grid.cuh"
#include "cuda/lookup.cuh"
#include "cuda/loss.cuh"
#include "cuda/mlp_parts.cuh"
#include "cuda/optim_step.cuh"
#include <cfloat>

#define BLOCK GT_MLP_BLOCK

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* What a pass over the gradients does: compute them and update at once; or, in kernels with MORE, compute and keep them where the updated
 * parameters will be, and update in a second pass, when their norm is known. */
enum { BOTH, KEEP, APPLY };

/* What the threads of a block know. q: 0 at even steps, 1 at odd ones. MORE: the kernel clips gradients, averages parameters, weighs
 * classes, and has all losses and activations (gt_mlp_division.more). */
template <int RB, class Step, int NS, bool MORE> struct mlp {
	static constexpr int R = 32 * RB, LD = R + 1;
	const gt_cu_mlp &a;
	float *mem;
	int me, q;

	__device__ float *set(int copy, int parity) const /* copy 0: the parameters, 1 ...: the states, 1 + NS: the moving average */
	{
		return mem + (parity * (MORE ? a.d.copies : 1 + NS) + copy) * a.d.set;
	}
	__device__ int first(int l) const /* first output of layer l that the block owns */
	{
		return (int)blockIdx.x * a.d.layer[l].cols;
	}
	__device__ const gt_opt_f32 &opt(int l, int bias) const
	{
		return ((const gt_opt_f32 *)(mem + a.d.opt_at))[2 * l + bias];
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
	__device__ const float *dlogits() const
	{
		return mem + a.d.logits_at + R * a.d.layer[a.d.nlayers - 1].out;
	}
	__device__ image_rows images() const
	{
		int cols = a.d.layer[0].in;
		return {a, (const int64_t *)(mem + a.d.places_at), a.channels == 1 && cols % 4 == 0 && (uintptr_t)a.images % 4 == 0};
	}
	__device__ float_rows outputs(int l) const
	{
		return {a.work + a.d.layer[l].act[q], a.d.rows};
	}
	__device__ float_rows slopes(int l) const
	{
		return {a.work + a.d.layer[l].slope[q], a.d.rows};
	}

	/* ---- parameters between global and shared memory ---- */
	/* Calls f(i, at) for each parameter of layer l that the block owns, padding left out: i is its position in a set, at that in p. */
	template <class F> __device__ void each_own(int l, F f) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l];
		int n = y.cols, begin = first(l);
		if (l < a.d.nlayers - 1) {
			for (int i = me; i < n * y.in; i += BLOCK) {
				int o = i / y.in, k = i - o * y.in;
				if (begin + o < y.out)
					f(y.shared + (o / 4 * y.in + k) * 4 + o % 4, a.param[l].w + (int64_t)(begin + o) * y.in + k);
			}
			for (int o = me; a.param[l].b >= 0 && o < n && begin + o < y.out; o += BLOCK)
				f(y.shared_bias + o, a.param[l].b + begin + o);
			return;
		}
		for (int i = me; i < n * y.out; i += BLOCK) {
			int c = i / n, k = i - c * n;
			if (begin + k < y.in)
				f(y.shared + k * a.d.classes + c, a.param[l].w + (int64_t)c * y.in + begin + k);
		}
		if (blockIdx.x == 0 && a.param[l].b >= 0 && me < y.out)
			f(y.shared_bias + me, a.param[l].b + me);
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
				for (int k = 0; k < NS; k++)
					set(1 + k, 0)[i] = a.state[k][at];
				if (averages())
					set(1 + NS, 0)[i] = a.average[at];
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
				for (int k = 0; k < NS; k++)
					a.state[k][at] = set(1 + k, parity)[i];
				if (averages())
					a.average[at] = set(1 + NS, parity)[i];
			});
	}

	/* ---- the step ---- */
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
			((gt_opt_f32 *)(mem + a.d.opt_at))[i] = opt_of(Step::code, &a.update, seg, now->step, now->lr[seg.lr], NULL);
		} else if (averages() && me == R + 2 * a.d.nlayers) {
			((gt_opt_f32 *)(mem + a.d.opt_at))[2 * a.d.nlayers] = opt_of(GT_OP_EMA, &a.ema, gt_seg(), now->step, 0, NULL);
		}
		__syncthreads();
	}

	template <class Rows> __device__ void forward(int l, const Rows &rows) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l];
		const float *w = set(0, q) + y.shared, *bias = set(0, q) + y.shared_bias;
		for (int g = 0; g < y.cols / 4; g++) {
			float sum[RB][4] = {};
			each_tile<RB>(tile(), rows, y.in, a.d.wide, g && y.in <= a.d.wide,
			              [&](int from, int n) { multiply<RB>(sum, tile(), w + (g * y.in + from) * 4, n); });
			add_warps<RB>(sum, mem + a.d.part_at, [&](int i, float v) {
				int o = first(l) + 4 * g + i % 4;
				v += bias[4 * g + i % 4];
				float slope = 0;
				v = MORE ? activate(a.param[l].act, v, &slope) : gt_relu_f32(v);
				own(l)[g * R * 4 + i] = v;
				if (MORE)
					own_slope(l)[g * R * 4 + i] = slope;
				if (i / 4 < a.d.rows && o < y.out) {
					a.work[y.act[q] + (int64_t)(i / 4) * y.out + o] = v;
					if (MORE && y.slope[q] >= 0)
						a.work[y.slope[q] + (int64_t)(i / 4) * y.out + o] = slope;
				}
			});
		}
	}

	__device__ struct gt_cu_loss loss_of(int64_t s) const
	{
		struct gt_cu_loss c = {};
		c.x = mem + a.d.logits_at;
		c.dx = (void *)dlogits();
		c.target = (const int32_t *)(mem + a.d.labels_at);
		c.loss = (double *)(mem + a.d.loss_at);
		c.rank = (int32_t *)(mem + a.d.rank_at);
		c.rows = a.d.rows, c.cols = a.d.layer[a.d.nlayers - 1].out, c.ignore = a.loss.ignore_index;
		c.smoothing = a.loss.label_smoothing;
		if (MORE) {
			c.weights = a.loss.nweights ? a.class_weight : NULL;
			c.beta = a.loss.beta;
		}
		c.fault = a.look.fault;
		c.step_args.dev = a.look.step_args.dev + s;
		return c;
	}

	/* Computes the logits, the loss of each row and its gradient. Returns whether all losses are finite. */
	__device__ bool head(int64_t s) const
	{
		const gt_mlp_division_layer &y = a.d.layer[a.d.nlayers - 1];
		const float *next = a.work + y.next[q];
		float *last = mem + a.d.last_at, *part = mem + a.d.part_at, *logits = mem + a.d.logits_at, sum[RB][GT_MLP_CLASSES] = {};
		for (int i = me; i < y.in * a.d.classes / 4; i += BLOCK)
			((float4 *)last)[i] = __ldcg((const float4 *)next + i);
		each_tile<RB>(tile(), outputs(a.d.nlayers - 2), y.in, a.d.narrow, false,
		              [&](int from, int n) { multiply_last<RB>(sum, tile(), last + from * a.d.classes, a.d.classes, n); });
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
		const struct gt_cu_loss c = loss_of(s);
		bool plain = !MORE || (a.loss_code == GT_OP_CROSS_ENTROPY && !a.loss.nweights);
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
	__device__ void metrics(int64_t s) const
	{
		const double *loss = (const double *)(mem + a.d.loss_at);
		const int32_t *rank = (const int32_t *)(mem + a.d.rank_at);
		double sum = 0, weight = 0;
		int64_t count = 0, correct = 0, top5 = 0;
		bool weighs = MORE && a.loss_code == GT_OP_CROSS_ENTROPY && a.loss.nweights;
		if (blockIdx.x || me >= 32)
			return;
		for (int r = me; r < a.d.rows; r += 32) {
			if (rank[r] < 0)
				continue;
			sum += loss[r];
			weight += weighs ? (double)a.class_weight[((const int32_t *)(mem + a.d.labels_at))[r]] : 1;
			count += rank[r] != INT32_MAX;
			correct += rank[r] == 0;
			top5 += rank[r] < 5;
		}
		sum = team_sum(sum, 32);
		weight = team_sum(weight, 32);
		count = team_sum(count, 32);
		correct = team_sum(correct, 32);
		top5 = team_sum(top5, 32);
		if (me)
			return;
		struct gt_scalars out = {};
		out.metrics.loss = sum, out.metrics.weight = weight;
		out.metrics.count = count, out.metrics.correct = correct, out.metrics.top5 = top5;
		out.inv_scale = 1;
		a.scalars[s] = out;
	}

	/* Replaces columns of h, or with MORE of the slopes, by those of dh, before the last layer. */
	__device__ void last_gradient(int from, int n) const
	{
		const gt_mlp_division_layer &y = a.d.layer[a.d.nlayers - 1];
		const row_gradient dy(dlogits() + me % R * y.out, y.out);
		float *at = tile() + me % R;
		for (int k = me / R; k < n; k += BLOCK / R)
			at[k * LD] = back<MORE>(dy.dx(mem + a.d.last_at + (from + k) * a.d.classes, a.d.classes), at[k * LD]);
		__syncthreads();
	}

	__device__ const float *saved(int l) const /* what back() needs of own outputs */
	{
		return MORE ? own_slope(l) : own(l);
	}

	/* Computes own dh of the layer before the last one, and of layer l - 1 from dh of layer l. */
	__device__ void backward_last() const
	{
		const gt_mlp_division_layer &y = a.d.layer[a.d.nlayers - 1];
		int l = a.d.nlayers - 2;
		for (int i = me; i < y.cols * R; i += BLOCK) {
			int k = first(l) + i / (4 * R) * 4 + i % 4;
			const row_gradient dy(dlogits() + i / 4 % R * y.out, y.out);
			own_grad(l)[i] = k < y.in ? back<MORE>(dy.dx(mem + a.d.last_at + k * a.d.classes, a.d.classes), saved(l)[i]) : 0;
		}
	}

	__device__ void backward(int l) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l], &x = a.d.layer[l - 1];
		bool after = l == a.d.nlayers - 2;
		int most = after ? a.d.narrow : a.d.wide;
		float_rows rows = !after ? float_rows{a.work + y.grad[q], a.d.rows} : MORE ? slopes(l) : outputs(l);
		float *column = mem + a.d.column_at;
		for (int g = 0; g < x.cols / 4; g++) {
			int begin = first(l - 1) + 4 * g;
			float sum[RB][4] = {};
			__syncthreads();
			for (int i = me; i < y.out * 4; i += BLOCK)
				column[i] = begin + i % 4 < y.in ? __ldcg(a.work + y.next[q] + (int64_t)(i / 4) * y.in + begin + i % 4) : 0;
			__syncthreads();
			/* head() has left h in the tile if it has room for all columns */
			each_tile<RB>(tile(), rows, y.out, most, y.out <= most && (g || (after && !MORE)), [&](int from, int n) {
				if (after && (g == 0 || y.out > most))
					last_gradient(from, n);
				multiply<RB>(sum, tile(), column + from * 4, n);
			});
			add_warps<RB>(sum, mem + a.d.part_at, [&](int i, float v) {
				int o = begin + i % 4;
				v = o < x.out ? back<MORE>(v, saved(l - 1)[g * R * 4 + i]) : 0;
				own_grad(l - 1)[g * R * 4 + i] = v;
				if (x.grad[q] >= 0 && i / 4 < a.d.rows && o < x.out)
					a.work[x.grad[q] + (int64_t)(i / 4) * x.out + o] = v;
			});
		}
	}

	/* Updates the parameter p of which the sets have position i, and its states. Returns the new parameter. */
	__device__ float step_of(const gt_opt_f32 &h, float p, float g, float *s) const
	{
		return Step::f(h, p, g, s, h.first, a.update.nesterov);
	}

	/* Updates the parameter at position i of a set, or keeps its gradient. Returns whether the gradient is not finite. */
	template <int PASS> __device__ bool update(int l, int bias, int i, float g, float *out) const
	{
		if (PASS == KEEP) {
			set(0, q ^ 1)[i] = g;
			return false;
		}
		float s[3] = {};
#pragma unroll
		for (int k = 0; k < NS; k++)
			s[k] = set(1 + k, q)[i];
		float p = step_of(opt(l, bias), set(0, q)[i], g, s);
		set(0, q ^ 1)[i] = *out = p;
#pragma unroll
		for (int k = 0; k < NS; k++)
			set(1 + k, q ^ 1)[i] = s[k];
		if (averages())
			set(1 + NS, q ^ 1)[i] = gt_step_ema_f32(&opt(a.d.nlayers, 0), set(1 + NS, q)[i], p, NULL, NULL, NULL, false, false);
		return !(fabsf(g) <= FLT_MAX);
	}

	/* The same for four weights of neighbouring outputs: column k of group g. Those after the last output are 0, and so are their
	 * gradients: they stay 0. */
	template <int PASS> __device__ bool update_four(int l, int g, int k, const float (&grad)[4]) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l];
		int i = y.shared + (g * y.in + k) * 4;
		if (PASS == KEEP) {
			*(float4 *)(set(0, q ^ 1) + i) = make_float4(grad[0], grad[1], grad[2], grad[3]);
			return false;
		}
		float4 p = *(const float4 *)(set(0, q) + i), st[3] = {};
		float *each = &p.x;
		bool bad = false;
#pragma unroll
		for (int n = 0; n < NS; n++)
			st[n] = *(const float4 *)(set(1 + n, q) + i);
#pragma unroll
		for (int j = 0; j < 4; j++) {
			float s[3] = {(&st[0].x)[j], (&st[1].x)[j], (&st[2].x)[j]};
			each[j] = step_of(opt(l, 0), each[j], grad[j], s);
			(&st[0].x)[j] = s[0], (&st[1].x)[j] = s[1], (&st[2].x)[j] = s[2];
			bad |= !(fabsf(grad[j]) <= FLT_MAX);
		}
		*(float4 *)(set(0, q ^ 1) + i) = p;
#pragma unroll
		for (int n = 0; n < NS; n++)
			*(float4 *)(set(1 + n, q ^ 1) + i) = st[n];
#pragma unroll
		for (int j = 0; j < 4; j++)
			if (l > 0 && first(l) + 4 * g + j < y.out)
				publish(l, q ^ 1, first(l) + 4 * g + j, k, each[j]);
		if (averages()) {
			float4 m = *(const float4 *)(set(1 + NS, q) + i);
#pragma unroll
			for (int j = 0; j < 4; j++)
				(&m.x)[j] = gt_step_ema_f32(&opt(a.d.nlayers, 0), (&m.x)[j], each[j], NULL, NULL, NULL, false, false);
			*(float4 *)(set(1 + NS, q ^ 1) + i) = m;
		}
		return bad;
	}

	/* Computes the gradients of the rows of layer l's weight that the block owns, and updates or keeps them. */
	template <int PASS, class Rows> __device__ bool update_rows(int l, const Rows &rows) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l];
		bool bad = false;
		each_tile<RB>(tile(), rows, y.in, a.d.wide, false, [&](int from, int n) {
			for (int g = 0; g < y.cols / 4; g++)
				for (int k = me; k < n; k += BLOCK) {
					float sum[4] = {};
					const float *x = tile() + k * LD, *dy = own_grad(l) + g * R * 4;
#pragma unroll 8
					for (int b = 0; b < R; b++) {
						const float4 d = *(const float4 *)(dy + 4 * b);
						sum[0] = gt_fma_f32(x[b], d.x, sum[0]);
						sum[1] = gt_fma_f32(x[b], d.y, sum[1]);
						sum[2] = gt_fma_f32(x[b], d.z, sum[2]);
						sum[3] = gt_fma_f32(x[b], d.w, sum[3]);
					}
					bad |= update_four<PASS>(l, g, from + k, sum);
				}
		});
		for (int o = me; a.param[l].b >= 0 && o < y.cols && first(l) + o < y.out; o += BLOCK) {
			float sum = 0, v;
			for (int b = 0; b < a.d.rows; b++)
				sum += own_grad(l)[(o / 4 * R + b) * 4 + o % 4];
			bad |= update<PASS>(l, 1, y.shared_bias + o, sum, &v);
		}
		return bad;
	}

	/* Updates the rows with the gradients that were kept. */
	__device__ bool apply_rows(int l) const
	{
		const gt_mlp_division_layer &y = a.d.layer[l];
		const float *kept = set(0, q ^ 1);
		bool bad = false;
		for (int g = 0; g < y.cols / 4; g++)
			for (int k = me; k < y.in; k += BLOCK) {
				const float4 v = *(const float4 *)(kept + y.shared + (g * y.in + k) * 4);
				const float grad[4] = {v.x, v.y, v.z, v.w};
				bad |= update_four<APPLY>(l, g, k, grad);
			}
		for (int o = me; a.param[l].b >= 0 && o < y.cols && first(l) + o < y.out; o += BLOCK) {
			float v;
			bad |= update<APPLY>(l, 1, y.shared_bias + o, kept[y.shared_bias + o], &v);
		}
		return bad;
	}

	/* The same for the columns of the last layer's weight, and in the first block for its bias. */
	template <int PASS> __device__ bool update_last() const
	{
		int l = a.d.nlayers - 1;
		const gt_mlp_division_layer &y = a.d.layer[l];
		const float *dy = dlogits(), *kept = set(0, q ^ 1);
		bool bad = false;
		for (int i = me; i < y.cols * y.out; i += BLOCK) {
			int k = i / y.out, c = i - k * y.out, at = y.shared + k * a.d.classes + c;
			float sum = 0, v;
			if (first(l) + k >= y.in)
				continue;
			if (PASS == APPLY)
				sum = kept[at];
			else
				for (int b = 0; b < a.d.rows; b++)
					sum = gt_fma_f32(own(l - 1)[(k / 4 * R + b) * 4 + k % 4], dy[b * y.out + c], sum);
			bad |= update<PASS>(l, 0, at, sum, &v);
			if (PASS != KEEP)
				publish(l, q ^ 1, c, first(l) + k, v);
		}
		if (blockIdx.x == 0 && a.param[l].b >= 0 && me < y.out) {
			float sum = 0, v;
			if (PASS == APPLY)
				sum = kept[y.shared_bias + me];
			else
				for (int b = 0; b < a.d.rows; b++)
					sum += dy[b * y.out + me];
			bad |= update<PASS>(l, 1, y.shared_bias + me, sum, &v);
			if (PASS != KEEP)
				publish(l, q ^ 1, me, y.in, v);
		}
		return bad;
	}

	/* ---- the norm of the gradients ---- */
	/* Adds up the squares of n gradients at x in one warp: each lane in order, then the lanes in a tree. */
	__device__ double squares(const float *x, int n) const
	{
		double sum = 0;
		for (int i = me % 32; i < n; i += 32)
			sum += (double)x[i] * (double)x[i];
		return team_sum(sum, 32);
	}

	/* Writes the sums of squares of the gradients that the block has kept, one for each four outputs of a layer, which one block owns,
	 * whatever the number of blocks: d.norm[q] has all of them in the order of the layers. */
	__device__ void publish_squares() const
	{
		double *out = (double *)(a.work + a.d.norm[q]);
		const float *kept = set(0, q ^ 1);
		int last = a.d.nlayers - 1;
		__syncthreads();
		for (int l = 0; l <= last; l++) {
			const gt_mlp_division_layer &y = a.d.layer[l];
			int owned = l < last ? y.out : y.in, width = l < last ? 4 * y.in : 4 * a.d.classes;
			for (int g = me / 32; g < y.cols / 4 && first(l) + 4 * g < owned; g += WARPS) {
				double sum = squares(kept + y.shared + g * width, width);
				if (l < last)
					sum += squares(kept + y.shared_bias + 4 * g, 4);
				if (me % 32 == 0)
					out[first(l) / 4 + g] = sum;
			}
			out += (owned + 3) / 4;
		}
		if (blockIdx.x == 0 && me < 32) {
			double sum = squares(kept + a.d.layer[last].shared_bias, a.d.layer[last].out);
			if (me == 0)
				*out = sum;
		}
	}

	/* Adds up all sums of squares, and sets the factors by which the optimizer multiplies gradients. Returns whether the norm is finite. */
	__device__ bool clip(int64_t s) const
	{
		const double *from = (const double *)(a.work + a.d.norm[q]);
		double *norm = (double *)(mem + a.d.norm_at);
		if (me < 32) {
			double sum = 0;
			for (int i = me; i < a.d.norms; i += 32)
				sum += __ldcg(from + i);
			sum = team_sum(sum, 32);
			if (me == 0) {
				*norm = sum;
				if (blockIdx.x == 0)
					a.scalars[s].sumsq = sum;
			}
		}
		__syncthreads();
		if (me < 2 * a.d.nlayers)
			((gt_opt_f32 *)(mem + a.d.opt_at))[me].clip = (float)gt_clip_factor(a.clip_norm, *norm);
		__syncthreads();
		return fabs(*norm) <= DBL_MAX;
	}
};

/* has: bit mask of the existing states (optim_step.cuh). */
template <int RB, int CODE, int HAS, bool MORE>
__global__ void __launch_bounds__(BLOCK, 1) mlp_steps(const __grid_constant__ gt_cu_mlp a)
{
	after_previous();
	constexpr int NS = (HAS & 1) + (HAS >> 1 & 1) + (HAS >> 2 & 1);
	mlp<RB, step<CODE, HAS>, NS, MORE> m = {a, dynamic_shared(), (int)threadIdx.x, 0};
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
			if (l == 0)
				m.forward(l, m.images());
			else
				m.forward(l, m.outputs(l - 1));
			grid_barrier(arrived, goal);
			if (l == 0 && s > 0 && __ldcg(flag + (m.q ^ 1))) {
				halted = s - 1;
				break;
			}
		}
		if (halted < s)
			break;
		kept = m.q;
		bool finite = m.head(s);
		m.metrics(s);
		if (!finite) {
			halted = s;
			break;
		}
		m.backward_last();
		for (int l = last - 1; l > 0; l--) {
			m.backward(l);
			if (a.d.layer[l - 1].grad[0] >= 0)
				grid_barrier(arrived, goal);
		}
		__syncthreads();
		constexpr int PASS = MORE ? KEEP : BOTH;
		bool bad = m.template update_last<PASS>();
		for (int l = last - 1; l > 0; l--)
			bad |= m.template update_rows<PASS>(l, m.outputs(l - 1));
		bad |= m.template update_rows<PASS>(0, m.images());
		if (MORE) {
			if (a.clip_norm > 0) {
				m.publish_squares();
				grid_barrier(arrived, goal);
				if (!m.clip(s)) {
					halted = s;
					break;
				}
			}
			__syncthreads();
			bad |= m.template update_last<APPLY>();
			for (int l = last - 1; l >= 0; l--)
				bad |= m.apply_rows(l);
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

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void steps_fn(const gt_cu_mlp);

template <int CODE, int HAS, bool MORE> static steps_fn *of_rows(int rows)
{
	if (rows > 64)
		return MORE ? mlp_steps<4, CODE, HAS, true> : NULL;
	return rows <= 32 ? mlp_steps<1, CODE, HAS, MORE> : mlp_steps<2, CODE, HAS, MORE>;
}

template <bool MORE> static steps_fn *of_optimizer(int code, int rows, int nstates)
{
	if (code == GT_OP_SGD)
		return nstates == 0 ? of_rows<GT_OP_SGD, 0, MORE>(rows) : nstates == 1 ? of_rows<GT_OP_SGD, 1, MORE>(rows) : NULL;
	return code == GT_OP_ADAM && nstates == 2 ? of_rows<GT_OP_ADAM, 3, MORE>(rows) : NULL;
}

/* Returns the kernel of an optimizer for a division; NULL: there is none. */
static steps_fn *find(int code, const struct gt_mlp_division *d)
{
	if (d->rows < 1 || d->rows > GT_MLP_ROWS)
		return NULL;
	return d->more ? of_optimizer<true>(code, d->rows, d->nstates) : of_optimizer<false>(code, d->rows, d->nstates);
}

cudaError_t gt_cu_mlp_check(int code, const struct gt_mlp_division *d, int sms)
{
	steps_fn *fn = find(code, d);
	int each;
	if (!fn)
		return cudaErrorInvalidValue;
	cudaError_t e = cudaFuncSetAttribute(fn, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)d->shared);
	if (e == cudaSuccess)
		e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, fn, BLOCK, d->shared);
	return e != cudaSuccess ? e : each * sms < d->blocks ? cudaErrorCooperativeLaunchTooLarge : cudaSuccess;
}

cudaError_t gt_cu_mlp_start(int code, const struct gt_cu_mlp *a, cudaStream_t s)
{
	steps_fn *fn = find(code, &a->d);
	if (!fn)
		return cudaErrorInvalidValue;
	cudaError_t e = cudaMemsetAsync(a->work, 0, GT_MLP_HEAD * sizeof(uint32_t), s);
	return e == cudaSuccess ? launch_together(fn, dim3((unsigned)a->d.blocks), dim3(BLOCK), a->d.shared, s, *a) : e;
}
