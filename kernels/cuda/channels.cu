/* Operations of an activation [N, C, H, W] with one value for each channel: mul and add with a second input [N, C] or [N, C, 1, 1], their
 * gradients, and prelu. Activations are channels last: a pixel is a row of C elements. The order of a sum depends on the shape only. */
#include "cuda/planes.cuh"

#define BLOCK 256

struct channels_args {
	const void *x, *dy, *v; /* v: one value per channel; prelu's v is f32 */
	void *y;                /* y, dx or dv */
	float *dw;              /* NULL: not computed */
	int64_t n;              /* elements of x */
	int64_t rows, cols, pixels;
	bool one, add_dw;       /* one: prelu has a single weight for all channels */
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* A thread computes V neighbouring channels of one pixel. */
template <class S, int V, int CODE> __global__ void __launch_bounds__(BLOCK) apply_channels(const channels_args a)
{
	after_previous();
	int64_t i = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) * V;
	if (i >= a.n)
		return;
	constexpr bool learned = CODE == GT_OP_PRELU || CODE == GT_OP_PRELU_DX;
	int64_t row = i / a.cols, c = i - row * a.cols;
	packed<S, V> q;
	float x[V], v[V], d[V];
	q.fetch((const S *)a.x + i);
	q.get(x);
	if (learned) {
#pragma unroll
		for (int j = 0; j < V; j++)
			v[j] = ((const float *)a.v)[a.one ? 0 : c + j];
	} else {
		q.fetch((const S *)a.v + row / a.pixels * a.cols + c);
		q.get(v);
	}
	if (CODE == GT_OP_PRELU_DX) {
		q.fetch((const S *)a.dy + i);
		q.get(d);
	}
#pragma unroll
	for (int j = 0; j < V; j++)
		x[j] = CODE == GT_OP_MUL_CHANNELS   ? x[j] * v[j]
		       : CODE == GT_OP_ADD_CHANNELS ? x[j] + v[j]
		       : CODE == GT_OP_PRELU        ? gt_leaky_relu_f32(x[j], v[j])
		                                    : gt_leaky_relu_dx_f32(d[j], x[j], v[j]);
	store_packed<S, V>((S *)a.y + i, x);
}

/* Computes dv: the sums over the pixels of a sample of dy or, if MUL is true, of dy * x. */
template <class S, int V, bool MUL>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT)
    channels_dv(const channels_args a, const tiling t, float *part, uint32_t *counter)
{
	after_previous();
	place p;
	int64_t sample;
	float sum[V];
	if (sum_plane<S, V, MUL>((const S *)a.dy, (const S *)a.x, t, part, counter, sum, p, sample))
		store_packed<S, V>((S *)a.y + sample * t.cols + p.col, sum);
}

/* Sums the gradient of prelu's weight over pieces of the rows. */
template <class S, int V>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) prelu_pieces(const channels_args a, float *part, const tiling t)
{
	after_previous();
	const place p = place_of<V>(t);
	float sum[V] = {};
	if (p.in) {
		int64_t at = p.row * t.cols + p.col, step = p.ty * t.cols;
		for (int left = p.n; left > 0; left--, at += step) {
			packed<S, V> q;
			float d[V], x[V];
			q.fetch((const S *)a.dy + at);
			q.get(d);
			q.fetch((const S *)a.x + at);
			q.get(x);
#pragma unroll
			for (int j = 0; j < V; j++)
				sum[j] += gt_prelu_dw_f32(d[j], x[j]);
		}
	}
	block_columns<V>(sum, p);
	if (!p.y && p.in)
		put_f32<V>(part + (int64_t)blockIdx.y * t.cols + p.col, sum);
}

__global__ void __launch_bounds__(FINISH_COLS *FINISH_LANES) prelu_finish(float *dw, bool add, const float *part, const tiling t)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * FINISH_COLS + threadIdx.x;
	double sum = finish_plane(part, t, 1, 0, c);
	if (threadIdx.y == 0 && c < t.cols)
		dw[c] = (float)sum + (add ? dw[c] : 0);
}

/* Computes dw of a prelu with one weight for all channels: adds up the sums of the channels. */
__global__ void __launch_bounds__(TEAM_BLOCK) prelu_total(const float *sums, int64_t cols, float *dw, bool add)
{
	after_previous();
	double sum = 0;
	for (int64_t c = threadIdx.x; c < cols; c += TEAM_BLOCK)
		sum += (double)sums[c];
	sum = team_sum(sum, TEAM_BLOCK);
	if (threadIdx.x == 0)
		dw[0] = (float)sum + (add ? dw[0] : 0);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void channels_fn(const channels_args);

template <class S, int V> static channels_fn *find_kernel(int code)
{
	switch (code) {
	case GT_OP_MUL_CHANNELS:
		return apply_channels<S, V, GT_OP_MUL_CHANNELS>;
	case GT_OP_ADD_CHANNELS:
		return apply_channels<S, V, GT_OP_ADD_CHANNELS>;
	case GT_OP_PRELU:
		return apply_channels<S, V, GT_OP_PRELU>;
	}
	return apply_channels<S, V, GT_OP_PRELU_DX>;
}

template <class S, int V> static cudaError_t launch_weight_gradient(const channels_args &a, float *scratch, cudaStream_t s)
{
	struct tiling t = tile_columns(a.rows, a.cols, V);
	float *part = scratch + a.cols, *sums = a.one ? scratch : a.dw;
	cudaError_t e = launch(prelu_pieces<S, V>, tiling_grid(t), dim3(COL_BLOCK), s, a, part, t);
	if (e == cudaSuccess)
		e = launch(prelu_finish, finish_grid(a.cols), dim3(FINISH_COLS, FINISH_LANES), s, sums, a.add_dw && !a.one, (const float *)part, t);
	if (e == cudaSuccess && a.one)
		e = launch(prelu_total, dim3(1), dim3(TEAM_BLOCK), s, (const float *)sums, a.cols, a.dw, a.add_dw);
	return e;
}

static bool makes_dv(int code)
{
	return code == GT_OP_MUL_CHANNELS_DV || code == GT_OP_ADD_CHANNELS_DV;
}

template <class S, int V> static cudaError_t launch_dv(const struct gt_cu_call *c, const channels_args &a, cudaStream_t s)
{
	int64_t samples = a.rows / a.pixels;
	struct tiling t = tile_columns(a.pixels, a.cols, V, samples);
	if (!grid_fits(samples * t.tiles))
		return cudaErrorInvalidValue;
	return launch(c->op->code == GT_OP_MUL_CHANNELS_DV ? channels_dv<S, V, true> : channels_dv<S, V, false>, planes_grid(samples, t),
	              dim3(COL_BLOCK), s, a, t, (float *)c->scratch, (uint32_t *)c->counter);
}

/* Computes the gradient of the weight first, because dx may overwrite dy. */
template <class S> static cudaError_t launch_kernels(const struct gt_cu_call *c, const channels_args &a, cudaStream_t s)
{
	int code = c->op->code;
	if (makes_dv(code))
		return columns_of<S>(a.cols, (uintptr_t)a.x | (uintptr_t)a.dy | (uintptr_t)a.y) == 1 ? launch_dv<S, 1>(c, a, s)
		                                                                                      : launch_dv<S, width<S>::n>(c, a, s);
	uintptr_t at = (uintptr_t)a.x | (uintptr_t)a.y | (uintptr_t)a.dy | (code == GT_OP_PRELU || code == GT_OP_PRELU_DX ? 0 : (uintptr_t)a.v);
	bool single = columns_of<S>(a.cols, at) == 1;
	int64_t blocks = ceil_div(a.n, BLOCK * (single ? 1 : width<S>::n));
	cudaError_t e = cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (a.dw) /* the partial sums begin after `cols` floats, so that vectors of them are aligned if cols is a multiple of 4 */
		e = single ? launch_weight_gradient<S, 1>(a, (float *)c->scratch, s)
		           : launch_weight_gradient<S, width<S>::n>(a, (float *)c->scratch, s);
	channels_fn *fn = single ? find_kernel<S, 1>(code) : find_kernel<S, width<S>::n>(code);
	return e == cudaSuccess && a.y ? launch(fn, dim3((unsigned)blocks), dim3(BLOCK), s, a) : e;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
static const struct gt_tdesc *vector_of(const struct gt_opcall *op)
{
	return makes_dv(op->code) ? gt_opcall_operand(op, "dv") : gt_cu_operand(op, "v", "w");
}

static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_opcall_input(op);
	int64_t count = gt_tdesc_count(vector_of(op)), cols = x->dim[1];
	bool learned = op->code == GT_OP_PRELU || op->code == GT_OP_PRELU_DX;
	return (learned ? count == 1 || count == cols : count == x->dim[0] * cols) ? NULL : "expected one value for each channel";
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_opcall_input(op);
	int64_t cols = x->dim[1];
	if (makes_dv(op->code))
		return (size_t)planes_floats(x->dim[0], gt_tdesc_count(x) / (x->dim[0] * cols), cols) * sizeof(float);
	return gt_opcall_operand(op, "dw") ? (size_t)(cols + tiling_floats(gt_tdesc_count(x) / cols, cols, 1)) * sizeof(float) : 0;
}

static int64_t count_counters(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_opcall_input(op);
	return makes_dv(op->code) ? planes_counters(x->dim[0], x->dim[1]) : 0;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(channels_args, x, dy, v, y, dw), GT_SLOT_AS(channels_args, "w", v), GT_SLOT_AS(channels_args, "dx", y),
	    GT_SLOT_AS(channels_args, "dv", y)};
	const struct gt_tdesc *x = gt_opcall_input(c->op);
	channels_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.n = gt_tdesc_count(x), a.cols = x->dim[1], a.rows = a.n / a.cols, a.pixels = a.rows / x->dim[0];
	a.one = gt_tdesc_count(vector_of(c->op)) == 1;
	a.add_dw = gt_opcall_adds(c->op, "dw");
	return OF_TYPE(c->type, launch_kernels)(c, a, s);
}

GT_CU_FAMILY(channels, start_call, scratch_bytes, refuse_call, "channels", count_counters)
