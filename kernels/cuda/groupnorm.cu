/* Group normalisation of channels-last activations. The elements of a group, `width` neighbouring channels of every pixel of a sample,
 * belong to a team of threads (device.cuh), which reads them three times, the second and third time from the caches. dgamma and dbeta are
 * sums over the pixels of all samples (columns.cuh). */
#include "cuda/columns.cuh"

struct groupnorm_args {
	const void *x, *dy; /* activations and their gradient, [samples, pixels, groups * width] */
	void *y;            /* output y; or gradient dx, which may be the memory of dy, or NULL if it is not computed */
	const float *gamma, *beta; /* NULL: not affine */
	float *mean, *rstd;        /* statistics of each group, [samples, groups]; in the forward pass, NULL if they are not stored */
	float *dgamma, *dbeta;     /* NULL: not computed */
	int64_t samples, pixels;
	int32_t groups, width, count; /* count: elements of a group of one sample */
	double eps;
	bool add_gamma, add_beta;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Returns the group of this thread's team, or -1 if the team has no group; then the whole warp returns. */
__device__ static inline int64_t group_of(const groupnorm_args &a, int team)
{
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	return r < a.samples * a.groups ? r : -1;
}

/* The position in memory of element i of group r. */
struct element {
	int64_t at;
	int32_t channel;
};

__device__ static inline element element_of(const groupnorm_args &a, int64_t r, int32_t i)
{
	int32_t pixel = i / a.width, channel = (int32_t)(r % a.groups) * a.width + (i - pixel * a.width);
	return {(r / a.groups * a.pixels + pixel) * ((int64_t)a.groups * a.width) + channel, channel};
}

template <class S, int V> __device__ static inline void get_at(float *v, const void *p, int64_t at)
{
	packed<S, V> q;
	q.fetch((const S *)p + at);
	q.get(v);
}

template <class S, int V> __global__ void __launch_bounds__(TEAM_BLOCK) groupnorm_forward(const groupnorm_args a, int team)
{
	after_previous();
	int64_t r = group_of(a, team);
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	float sum = 0, sq = 0, v[V];
	for (int32_t i = lane * V; i < a.count; i += team * V) {
		get_at<S, V>(v, a.x, element_of(a, r, i).at);
#pragma unroll
		for (int j = 0; j < V; j++)
			sum += v[j];
	}
	float mean = (float)(team_sum((double)sum, team) / (double)a.count);
	for (int32_t i = lane * V; i < a.count; i += team * V) {
		get_at<S, V>(v, a.x, element_of(a, r, i).at);
#pragma unroll
		for (int j = 0; j < V; j++)
			sq += (v[j] - mean) * (v[j] - mean);
	}
	float rstd = (float)(1 / sqrt(team_sum((double)sq, team) / (double)a.count + a.eps));
	if (lane == 0 && a.mean) {
		a.mean[r] = mean;
		a.rstd[r] = rstd;
	}
	for (int32_t i = lane * V; i < a.count; i += team * V) {
		element e = element_of(a, r, i);
		float gamma[V], beta[V];
		get_at<S, V>(v, a.x, e.at);
		if (a.gamma) {
			get_f32<V>(gamma, a.gamma + e.channel);
			get_f32<V>(beta, a.beta + e.channel);
		}
#pragma unroll
		for (int j = 0; j < V; j++) {
			v[j] = (v[j] - mean) * rstd;
			if (a.gamma)
				v[j] = v[j] * gamma[j] + beta[j];
		}
		store_packed<S, V>((S *)a.y + e.at, v);
	}
}

/* Computes dx = rstd (h - mean(h) - xhat mean(h xhat)) with h = dy gamma, xhat = (x - mean) rstd. */
template <class S, int V> __global__ void __launch_bounds__(TEAM_BLOCK) groupnorm_dx(const groupnorm_args a, int team)
{
	after_previous();
	int64_t r = group_of(a, team);
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	float mean = a.mean[r], rstd = a.rstd[r], sum = 0, dot = 0, v[V], h[V], gamma[V];
	for (int32_t i = lane * V; i < a.count; i += team * V) {
		element e = element_of(a, r, i);
		get_at<S, V>(v, a.x, e.at);
		get_at<S, V>(h, a.dy, e.at);
		if (a.gamma)
			get_f32<V>(gamma, a.gamma + e.channel);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = a.gamma ? h[j] * gamma[j] : h[j];
			sum += g;
			dot += g * ((v[j] - mean) * rstd);
		}
	}
	sum = (float)(team_sum((double)sum, team) / (double)a.count);
	dot = (float)(team_sum((double)dot, team) / (double)a.count);
	for (int32_t i = lane * V; i < a.count; i += team * V) {
		element e = element_of(a, r, i);
		get_at<S, V>(v, a.x, e.at);
		get_at<S, V>(h, a.dy, e.at);
		if (a.gamma)
			get_f32<V>(gamma, a.gamma + e.channel);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = a.gamma ? h[j] * gamma[j] : h[j];
			v[j] = rstd * (g - sum - (v[j] - mean) * rstd * dot);
		}
		store_packed<S, V>((S *)a.y + e.at, v);
	}
}

/* Computes the gradients of gamma and beta: the sums of dy * xhat and of dy over the pixels of all samples. */
template <class S, int V>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) groupnorm_sums(const groupnorm_args a, float *part, const tiling t)
{
	after_previous();
	const place p = place_of<V>(t);
	float sum[2 * V] = {};
	if (p.in) {
		int64_t r = p.row, at = r * t.cols + p.col, step = p.ty * t.cols;
		for (int left = p.n; left > 0; left--, r += p.ty, at += step) {
			float d[V], v[V];
			int64_t first = r / a.pixels * a.groups;
			get_at<S, V>(d, a.dy, at);
			get_at<S, V>(v, a.x, at);
#pragma unroll
			for (int j = 0; j < V; j++) {
				int64_t k = first + (int32_t)(p.col + j) / a.width;
				sum[j] += d[j] * ((v[j] - a.mean[k]) * a.rstd[k]);
				sum[V + j] += d[j];
			}
		}
	}
	block_columns<2 * V>(sum, p);
	if (p.y || !p.in)
		return;
	put_f32<V>(part + (int64_t)blockIdx.y * 2 * t.cols + p.col, sum);
	put_f32<V>(part + ((int64_t)blockIdx.y * 2 + 1) * t.cols + p.col, sum + V);
}

__global__ void __launch_bounds__(FINISH_COLS *FINISH_LANES) groupnorm_finish(const groupnorm_args a, const float *part, const tiling t)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * FINISH_COLS + threadIdx.x;
	double gamma = finish_plane(part, t, 2, 0, c), beta = finish_plane(part, t, 2, 1, c);
	if (threadIdx.y || c >= t.cols)
		return;
	if (a.dgamma)
		a.dgamma[c] = (float)gamma + (a.add_gamma ? a.dgamma[c] : 0);
	if (a.dbeta)
		a.dbeta[c] = (float)beta + (a.add_beta ? a.dbeta[c] : 0);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void groupnorm_fn(const groupnorm_args, int);

static bool backward_call(const struct gt_opcall *op)
{
	return op->code == GT_OP_GROUPNORM_DX;
}

static bool wants_sums(const struct gt_opcall *op)
{
	return gt_cu_operand(op, "dgamma", "dbeta") != NULL;
}

static int64_t pixels_of(const struct gt_tdesc *x)
{
	return x->rank == 4 ? x->dim[2] * x->dim[3] : 1;
}

template <class S, int V> static cudaError_t launch_sums(const groupnorm_args &a, float *part, cudaStream_t s)
{
	struct tiling t = tile_columns(a.samples * a.pixels, (int64_t)a.groups * a.width, V);
	cudaError_t e = launch(groupnorm_sums<S, V>, tiling_grid(t), dim3(COL_BLOCK), s, a, part, t);
	if (e != cudaSuccess)
		return e;
	return launch(groupnorm_finish, finish_grid(t.cols), dim3(FINISH_COLS, FINISH_LANES), s, a, (const float *)part, t);
}

/* Launches the gradient. The gradients of the parameters are computed first, because dx may overwrite dy. */
template <class S> static cudaError_t launch_kernels(const struct gt_cu_call *c, const groupnorm_args &a, cudaStream_t s)
{
	uintptr_t at = (uintptr_t)a.x | (uintptr_t)a.dy | (uintptr_t)a.y | (uintptr_t)a.gamma | (uintptr_t)a.beta;
	bool back = backward_call(c->op), one = columns_of<S>(a.width, at) == 1;
	int team = team_for(a.count / (one ? 1 : width<S>::n));
	int64_t blocks = ceil_div(a.samples * a.groups, TEAM_BLOCK / team);
	groupnorm_fn *fn = back ? (one ? groupnorm_dx<S, 1> : groupnorm_dx<S, width<S>::n>)
	                        : (one ? groupnorm_forward<S, 1> : groupnorm_forward<S, width<S>::n>);
	cudaError_t e = cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (wants_sums(c->op))
		e = one ? launch_sums<S, 1>(a, (float *)c->scratch, s) : launch_sums<S, width<S>::n>(a, (float *)c->scratch, s);
	return e == cudaSuccess && a.y ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, a, team) : e;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_opcall_operand(op, "x");
	if (!backward_call(op) && !gt_opcall_operand(op, "gamma") != !gt_opcall_operand(op, "beta"))
		return "gamma and beta must both be present or absent";
	return pixels_of(x) * x->dim[1] > INT32_MAX / 2 ? "a sample has more than 2^30 elements" : NULL;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_opcall_operand(op, "x");
	return wants_sums(op) ? (size_t)tiling_floats(x->dim[0] * pixels_of(x), x->dim[1], 2) * sizeof(float) : 0;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(groupnorm_args, x, dy, y, gamma, beta, mean, rstd, dgamma, dbeta), GT_SLOT_AS(groupnorm_args, "dx", y)};
	const struct gt_attr_norm *attr = (const struct gt_attr_norm *)c->op->attr;
	const struct gt_tdesc *x = gt_opcall_operand(c->op, "x");
	groupnorm_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.samples = x->dim[0], a.pixels = pixels_of(x), a.groups = (int32_t)attr->groups, a.width = (int32_t)(x->dim[1] / attr->groups);
	a.count = (int32_t)a.pixels * a.width;
	a.eps = attr->eps;
	a.add_gamma = gt_opcall_adds(c->op, "dgamma"), a.add_beta = gt_opcall_adds(c->op, "dbeta");
	if (!a.mean || !a.rstd) /* mean and rstd are both present or both absent; the gradient requires both */
		a.mean = a.rstd = NULL;
	return OF_TYPE(c->type, launch_kernels)(c, a, s);
}

GT_CU_FAMILY(groupnorm, start_call, scratch_bytes, refuse_call, "groups")
