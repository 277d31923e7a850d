/* Batch normalisation over [rows, c] with the reductions of columns.cuh: the forward pass, which reads the data once for the statistics and
 * once to normalise. The second pass reads backwards, from rows that the first has left in the L2 cache. The last block of each tile
 * computes the final statistics of its channels, so that the pass takes two launches. batchnorm_dx.cu has the backward pass.
 *
 * Statistics: a thread computes mean and squared distances of COL_AHEAD rows that it holds in registers. Such groups are combined, then
 * threads, then pieces (Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). So a
 * single pass has the accuracy of two passes. Formulas and roundings are those of kernels/cpu/batchnorm.c. */
#include "cuda/batchnorm.cuh"

/* x and y are [rows, c]. A gamma of NULL counts as 1, a beta of NULL as 0. If batch is true, the statistics of the batch are used,
 * otherwise the running statistics. If update is true, the running statistics are updated, and nbt if it is not NULL. res is added before
 * the activation act (enum gt_act); it may be NULL. mean and rstd receive the statistics, unless they are NULL. If again is true, the
 * statistics are read from mean and rstd instead; eps, momentum and the running statistics are not used. If part is not NULL, only the
 * statistics of the batch are computed, and part receives them as [3, c] (moments.h). */
struct batchnorm_args {
	const void *x, *res;
	void *y;
	const float *gamma, *beta;
	float *rmean, *rvar, *mean, *rstd;
	int64_t *nbt;
	int64_t rows, c;
	double eps, momentum;
	bool batch, update, again;
	int act;
	double *part;
	float *scratch;
	uint32_t *counter; /* counters of finished blocks, one for each tile; calls that run at the same time need separate counters */
};

/* Merges n parts of [3, c], n < GT_MOMENTS_PARTS. Outputs that do not exist are NULL. rmean and rvar are either both NULL or both not
 * NULL. */
struct merge_args {
	const double *parts;
	float *rmean, *rvar, *mean, *rstd;
	int64_t *nbt;
	int64_t c;
	double eps, momentum;
	int n;
};

/* ---- kernels: statistics ----------------------------------------------------------------------------------------------------------- */
/* Combines two groups of values: (n, mean, m2) += (nb, meanb, m2b). */
__device__ static inline void combine_groups(float n, float &mean, float &m2, float nb, float meanb, float m2b)
{
	float share = nb / (n + nb), d = meanb - mean;
	mean += d * share;
	m2 += m2b + d * d * (n * share);
}

/* Computes the coefficients of y = x * scale + shift, and the saved and running statistics of a channel. The variance for normalisation is
 * biased, the running variance is not. */
__device__ static inline void finish_channel(const batchnorm_args &a, float *coef, int64_t c, double mean, double var)
{
	double rstd = 1 / sqrt(var + a.eps), count = (double)a.rows;
	float scale = (float)rstd * (a.gamma ? a.gamma[c] : 1);
	coef[C_SCALE * a.c + c] = scale;
	coef[C_SHIFT * a.c + c] = (a.beta ? a.beta[c] : 0) - (float)mean * scale;
	if (a.mean)
		a.mean[c] = (float)mean;
	if (a.rstd)
		a.rstd[c] = (float)rstd;
	if (a.update) {
		a.rmean[c] = (float)((1 - a.momentum) * (double)a.rmean[c] + a.momentum * mean);
		a.rvar[c] = (float)((1 - a.momentum) * (double)a.rvar[c] + a.momentum * var * (count / (count - 1)));
		if (c == 0 && a.nbt)
			++*a.nbt;
	}
}

/* Computes the statistics of a tile, which is a range of channels. Several blocks share a tile, and each has some of the rows. Each thread
 * makes partial statistics of four rows at a time. The block merges the statistics of its threads. The block that finishes last merges the
 * statistics of all blocks of the tile, and stores the mean and the scale of the tile's channels. */
template <class S, int V>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) bn_stats(const batchnorm_args a, float *coef, float *part, const tiling t)
{
	after_previous();
	__shared__ float s_mean[V][COL_BLOCK], s_m2[V][COL_BLOCK], s_n[COL_BLOCK];
	const place p = place_of<V>(t);
	float mean[V] = {}, m2[V] = {}, n = 0;
	int me = (int)threadIdx.x;
	if (p.in) {
		int64_t step = p.ty * t.cols;
		const S *at = (const S *)a.x + p.row * t.cols + p.col;
		int left = p.n;
		for (; left >= 4; left -= 4, at += 4 * step) {
			packed<S, V> q[4];
			float v[4][V], share = 4 / (n + 4), cross = n * share;
#pragma unroll
			for (int k = 0; k < 4; k++)
				q[k].fetch(at + k * step);
#pragma unroll
			for (int k = 0; k < 4; k++)
				q[k].get(v[k]);
#pragma unroll
			for (int j = 0; j < V; j++) {
				float m = ((v[0][j] + v[1][j]) + (v[2][j] + v[3][j])) * 0.25f;
				float e0 = v[0][j] - m, e1 = v[1][j] - m, e2 = v[2][j] - m, e3 = v[3][j] - m, d = m - mean[j];
				mean[j] += d * share;
				m2[j] += (e0 * e0 + e1 * e1) + (e2 * e2 + e3 * e3) + d * d * cross;
			}
			n += 4;
		}
		for (; left > 0; left--, at += step) {
			packed<S, V> q;
			float v[V];
			q.fetch(at);
			q.get(v);
#pragma unroll
			for (int j = 0; j < V; j++)
				combine_groups(n, mean[j], m2[j], 1, v[j], 0);
			n++;
		}
	}
	for (int h = p.ty / 2; h > 0; h /= 2) {
		if (p.y >= h && p.y < 2 * h) {
			s_n[me] = n;
#pragma unroll
			for (int j = 0; j < V; j++)
				s_mean[j][me] = mean[j], s_m2[j][me] = m2[j];
		}
		__syncthreads();
		int from = me + h * p.tx;
		if (p.y < h && s_n[from] > 0) {
#pragma unroll
			for (int j = 0; j < V; j++)
				combine_groups(n, mean[j], m2[j], s_n[from], s_mean[j][from], s_m2[j][from]);
			n += s_n[from];
		}
	}
	if (!p.y && p.in) {
		put_f32<V>(part + (int64_t)blockIdx.y * 2 * t.cols + p.col, mean);
		put_f32<V>(part + ((int64_t)blockIdx.y * 2 + 1) * t.cols + p.col, m2);
	}
	int64_t c;
	double mu, sq;
	if (last_of_tile(a.counter, t) && tile_totals<V, true>(part, t, c, mu, sq)) {
		if (a.part)
			gt_moments_put(a.part, t.cols, c, gt_moments{mu, sq, (double)t.rows});
		else
			finish_channel(a, coef, c, mu, sq / (double)t.rows);
	}
}

/* Combines the statistics of all parts; a thread handles one channel. */
__global__ void __launch_bounds__(COL_BLOCK) bn_merge(const merge_args a)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * COL_BLOCK + threadIdx.x;
	if (c >= a.c)
		return;
	const gt_moments all = gt_moments_tree(a.parts, a.n, a.c, c);
	double var = all.n > 0 ? all.m2 / all.n : 0, unbias = all.n / (all.n - 1);
	if (a.mean)
		a.mean[c] = (float)all.mean;
	if (a.rstd)
		a.rstd[c] = (float)(1 / sqrt(var + a.eps));
	if (a.rmean && all.n > 0) {
		a.rmean[c] = (float)((1 - a.momentum) * (double)a.rmean[c] + a.momentum * all.mean);
		a.rvar[c] = (float)((1 - a.momentum) * (double)a.rvar[c] + a.momentum * var * unbias);
	}
	if (a.nbt && c == 0 && all.n > 0)
		++*a.nbt;
}

/* For an evaluation: computes the coefficients of y = x * scale + shift from the running statistics. */
__global__ void __launch_bounds__(COL_BLOCK) bn_running(const batchnorm_args a, float *coef)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * COL_BLOCK + threadIdx.x;
	if (c < a.c)
		finish_channel(a, coef, c, a.rmean[c], a.rvar[c]);
}

/* Computes the coefficients of y = x * scale + shift again from the statistics that the forward pass saved. */
__global__ void __launch_bounds__(COL_BLOCK) bn_again(const batchnorm_args a, float *coef)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * COL_BLOCK + threadIdx.x;
	if (c >= a.c)
		return;
	float scale = a.rstd[c] * (a.gamma ? a.gamma[c] : 1);
	coef[C_SCALE * a.c + c] = scale;
	coef[C_SHIFT * a.c + c] = (a.beta ? a.beta[c] : 0) - a.mean[c] * scale;
}

/* Normalises one row. Each step is rounded to S as if it had been stored, so that fusion does not change the bits. There is no gelu after a
 * residual (offers.c). */
template <class S, int V, bool RES>
__device__ static inline void apply_row(S *y, const packed<S, V> &x, const packed<S, V> &res, const float *scale, const float *shift,
                                        int act)
{
	float v[V], other[V];
	x.get(v);
	if (RES)
		res.get(other);
#pragma unroll
	for (int j = 0; j < V; j++) {
		v[j] = v[j] * scale[j] + shift[j];
		if (RES)
			v[j] = to_float(from_float<S>(v[j])) + other[j];
		v[j] = act == GT_ACT_RELU ? gt_relu_f32(v[j]) : v[j];
	}
	if (!RES && act > GT_ACT_RELU)
#pragma unroll
		for (int j = 0; j < V; j++) {
			v[j] = to_float(from_float<S>(v[j]));
			v[j] = act == GT_ACT_GELU ? gt_gelu_f32(v[j]) : gt_gelu_tanh_f32(v[j]);
		}
	store_packed<S, V>(y, v);
}

/* Blocks per multiprocessor of bn_apply. 4: a thread has 64 registers, and on an A100, which has fewer multiprocessors than an H200, all
 * COL_BLOCKS blocks run at once. In f16 with a residual, the kernel would spill registers. */
template <class S, bool RES> __device__ static constexpr int resident_apply()
{
	return 4;
}
template <> __device__ constexpr int resident_apply<f16, true>()
{
	return COL_RESIDENT;
}

template <class S, int V, bool RES>
__global__ void __launch_bounds__(COL_BLOCK, resident_apply<S, RES>())
    bn_apply(const S *x, const S *res, S *y, const float *coef, int act, const tiling t)
{
	after_previous();
	const place p = place_back<V>(t);
	float scale[V], shift[V];
	if (!p.in)
		return;
	get_f32<V>(scale, coef + C_SCALE * t.cols + p.col);
	get_f32<V>(shift, coef + C_SHIFT * t.cols + p.col);
	int64_t at = p.row * t.cols + p.col, step = -p.ty * t.cols;
	int left = p.n;
	for (; left >= COL_AHEAD; left -= COL_AHEAD, at += COL_AHEAD * step) {
		packed<S, V> a[COL_AHEAD], b[COL_AHEAD];
#pragma unroll
		for (int k = 0; k < COL_AHEAD; k++) {
			a[k].fetch(x + at + k * step);
			if (RES)
				b[k].fetch(res + at + k * step);
		}
#pragma unroll
		for (int k = 0; k < COL_AHEAD; k++)
			apply_row<S, V, RES>(y + at + k * step, a[k], b[k], scale, shift, act);
	}
	for (; left > 0; left--, at += step) {
		packed<S, V> a, b;
		a.fetch(x + at);
		if (RES)
			b.fetch(res + at);
		apply_row<S, V, RES>(y + at, a, b, scale, shift, act);
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
template <class S, int V> static cudaError_t launch_forward(const batchnorm_args &a, cudaStream_t s)
{
	struct tiling t = tile_columns(a.rows, a.c, V);
	float *part = partials_of(a.scratch, a.c);
	const S *x = (const S *)a.x, *res = (const S *)a.res;
	dim3 grid((unsigned)ceil_div(a.c, COL_BLOCK));
	cudaError_t e = a.again   ? launch(bn_again, grid, dim3(COL_BLOCK), s, a, a.scratch)
	                : a.batch ? launch(bn_stats<S, V>, tiling_grid(t), dim3(COL_BLOCK), s, a, a.scratch, part, t)
	                          : launch(bn_running, grid, dim3(COL_BLOCK), s, a, a.scratch);
	if (e != cudaSuccess || a.part)
		return e;
	return launch(res ? bn_apply<S, V, true> : bn_apply<S, V, false>, tiling_grid(t), dim3(COL_BLOCK), s, x, res, (S *)a.y,
	              (const float *)a.scratch, a.act, t);
}

template <class S> static cudaError_t launch_any(const batchnorm_args &a, cudaStream_t s)
{
	uintptr_t at = (uintptr_t)a.x | (uintptr_t)a.res | (uintptr_t)a.y;
	return columns_of<S>(a.c, at) == 1 ? launch_forward<S, 1>(a, s) : launch_forward<S, width<S>::n>(a, s);
}

/* ---- calls: batchnorm ------------------------------------------------------------------------------------------------------------ */
static const struct gt_attr_norm *norm_attr(const struct gt_opcall *op)
{
	return (const struct gt_attr_norm *)op->attr;
}

static bool is_gradient(int code)
{
	return code == GT_OP_BATCHNORM_DX || code == GT_OP_BATCHNORM_SUMS;
}

static bool uses_batch(const struct gt_attr_norm *attr)
{
	return attr->train || !attr->track;
}

static bool is_empty(const struct gt_opcall *op)
{
	return op->code == GT_OP_BATCHNORM_STATS && norm_attr(op)->empty;
}

static int64_t channels_of(const struct gt_opcall *op)
{
	return gt_opcall_operand(op, op->code == GT_OP_BATCHNORM_STATS ? "part" : "x")->dim[1];
}

static int64_t rows_of(const struct gt_opcall *op)
{
	return gt_tdesc_count(gt_opcall_operand(op, "x")) / channels_of(op);
}

/* Checks what the signature of batch normalisation (opsig.h) cannot express. */
static const char *refuse_batchnorm(const struct gt_opcall *op)
{
	const struct gt_attr_norm *attr = norm_attr(op);
	const struct gt_tdesc *x = gt_opcall_operand(op, "x");
	if (op->code == GT_OP_BATCHNORM_STATS && !attr->empty && channels_of(op) != x->dim[1])
		return "a partial sum must be [3, C]";
	if (op->code == GT_OP_BATCHNORM_DX && gt_opcall_operand(op, "sums") && gt_opcall_operand(op, "more"))
		return "the inputs sums and more cannot be combined";
	if (op->code != GT_OP_BATCHNORM)
		return NULL;
	if (!uses_batch(attr) && (!gt_opcall_operand(op, "rmean") || !gt_opcall_operand(op, "rvar")))
		return "evaluation needs the running statistics";
	return attr->train && gt_tdesc_count(x) == x->dim[1] ? "batch statistics need at least two values per channel" : NULL;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	int64_t c = channels_of(op);
	return is_empty(op) ? 0 : (size_t)(C_COUNT * ((c + 3) / 4 * 4) + tiling_floats(rows_of(op), c, 2)) * sizeof(float);
}

static int64_t count_counters(const struct gt_opcall *op)
{
	return is_empty(op) ? 0 : ceil_div(channels_of(op), 32); /* every tile has at least 32 columns, unless there is only one tile */
}

/* Returns the gradient of the activation that a call applies to dy: GT_CU_MASK_... */
static int mask_of(const struct gt_opcall *op)
{
	int act = norm_attr(op)->act;
	bool given = op->code == GT_OP_BATCHNORM_DX && gt_opcall_operand(op, "sums");
	if (op->nin <= 5 || (gt_opcall_operand(op, "more") && !act) || given)
		return GT_CU_MASK_NONE;
	if (act > GT_ACT_RELU)
		return act == GT_ACT_GELU ? GT_CU_MASK_GELU : GT_CU_MASK_GELU_TANH;
	return gt_opcall_operand(op, "y") ? GT_CU_MASK_Y : GT_CU_MASK_BN;
}

static cudaError_t start_gradient(const struct gt_cu_call *c, cudaStream_t s)
{
	typedef batchnorm_dx_args args;
	static const struct gt_operand_slot slots[] = {GT_SLOTS(args, dy, x, gamma, mean, rstd, beta, y, more, sums, dx, dgamma, dbeta, g)};
	batchnorm_dx_args a = {};
	GT_CU_BIND(c, slots, &a);
	if (c->op->code == GT_OP_BATCHNORM_DX) /* sums is an input */
		a.given = a.sums, a.sums = NULL;
	a.rows = rows_of(c->op), a.c = channels_of(c->op);
	a.mask = mask_of(c->op);
	a.batch = uses_batch(norm_attr(c->op));
	a.add_gamma = gt_opcall_adds(c->op, "dgamma");
	a.add_beta = gt_opcall_adds(c->op, "dbeta");
	a.scratch = (float *)c->scratch;
	a.counter = c->counter;
	return gt_cu_batchnorm_dx_start(c->type, a, s);
}

static cudaError_t start_batchnorm(const struct gt_cu_call *c, cudaStream_t s)
{
	typedef batchnorm_args args;
	static const struct gt_operand_slot slots[] = {GT_SLOTS(args, x, gamma, beta, rmean, rvar, nbt, res, y, mean, rstd, part)};
	const struct gt_attr_norm *attr = norm_attr(c->op);
	if (is_gradient(c->op->code))
		return start_gradient(c, s);
	batchnorm_args a = {};
	GT_CU_BIND(c, slots, &a);
	if (is_empty(c->op))
		return cudaMemsetAsync(a.part, 0, (size_t)channels_of(c->op) * 3 * sizeof(double), s);
	a.rows = rows_of(c->op), a.c = channels_of(c->op);
	a.scratch = (float *)c->scratch;
	a.counter = c->counter;
	a.act = attr->act;
	a.again = c->op->code == GT_OP_BATCHNORM_Y;
	a.batch = a.part || (!a.again && uses_batch(attr));
	if (c->op->code == GT_OP_BATCHNORM) {
		a.eps = attr->eps, a.momentum = attr->momentum;
		a.update = attr->train && attr->track && a.rmean;
	}
	return a.rows ? OF_TYPE(c->type, launch_any)(a, s) : cudaSuccess;
}

GT_CU_FAMILY(batchnorm, start_batchnorm, scratch_bytes, refuse_batchnorm, "columns", count_counters)

/* ---- calls: batchnorm.merge ------------------------------------------------------------------------------------------------------ */
/* Returns true if a table is absent, or if its last dimension has n channels. */
static bool table_fits(const struct gt_tdesc *d, int64_t n)
{
	return !d || d->dim[d->rank - 1] == n;
}

static const char *refuse_merge(const struct gt_opcall *op)
{
	const struct gt_tdesc *p = gt_opcall_operand(op, "parts"), *rmean = gt_opcall_operand(op, "rmean");
	int64_t c = p->rank < 2 ? 0 : p->dim[p->rank - 1], n = c ? gt_tdesc_count(p) / (3 * c) : 0;
	if (n < 1 || n >= GT_MOMENTS_PARTS || p->dim[p->rank - 2] != 3)
		return "parts must be [k, 3, C] with k from 1 to 1023";
	if (!table_fits(rmean, c) || !rmean != !gt_opcall_operand(op, "rvar") || !table_fits(gt_opcall_operand(op, "mean"), c) ||
	    !table_fits(gt_opcall_operand(op, "rstd"), c))
		return "statistics must be [C], with both running statistics or neither";
	return NULL;
}

static cudaError_t start_merge(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(merge_args, parts, rmean, rvar, nbt, mean, rstd)};
	const struct gt_tdesc *p = gt_opcall_operand(c->op, "parts");
	merge_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.c = p->dim[p->rank - 1];
	a.n = (int)(gt_tdesc_count(p) / (3 * a.c));
	a.eps = norm_attr(c->op)->eps, a.momentum = norm_attr(c->op)->momentum;
	return launch(bn_merge, dim3((unsigned)ceil_div(a.c, COL_BLOCK)), dim3(COL_BLOCK), s, a);
}

GT_CU_FAMILY(moments, start_merge, NULL, refuse_merge, "channels")
