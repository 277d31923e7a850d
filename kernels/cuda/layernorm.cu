/* Layer normalisation. A row belongs to a team of threads (device.cuh), which walks it three times; the second and third time it comes
 * out of the caches. dgamma and dbeta are sums over rows (columns.cuh). */
#include "cuda/columns.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Where the parameter of column i stands. */
__device__ static inline int64_t param_at(int64_t i, int64_t cols, int64_t pixels)
{
	if (!pixels)
		return i;
	int64_t channels = cols / pixels, pixel = i / channels;
	return (i - pixel * channels) * pixels + pixel;
}

/* The row of this thread's team, or -1: then the whole warp leaves. */
__device__ static inline int64_t row_of(int64_t rows, int team)
{
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	return r < rows ? r : -1;
}

/* V elements of a row that begins at a multiple of 16 bytes where V > 1. */
template <class S, int V> __device__ static inline void get_at(float *v, const S *p)
{
	packed<S, V> q;
	q.fetch(p);
	q.get(v);
}

template <class S, int V> __global__ void __launch_bounds__(TEAM_BLOCK) layernorm(const gt_cu_layernorm a, int team)
{
	after_previous();
	int64_t r = row_of(a.rows, team), n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	const S *x = (const S *)a.x + r * n;
	S *y = (S *)a.y + r * n;
	float sum = 0, sq = 0, v[V];
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_at<S, V>(v, x + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			sum += v[j];
	}
	float mean = (float)(team_sum((double)sum, team) / (double)n);
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_at<S, V>(v, x + i);
#pragma unroll
		for (int j = 0; j < V; j++)
			sq += (v[j] - mean) * (v[j] - mean);
	}
	float rstd = (float)(1 / sqrt(team_sum((double)sq, team) / (double)n + a.eps));
	if (lane == 0 && a.mean) {
		a.mean[r] = mean;
		a.rstd[r] = rstd;
	}
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_at<S, V>(v, x + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			int64_t at = param_at(i + j, n, a.pixels);
			v[j] = (v[j] - mean) * rstd;
			if (a.gamma)
				v[j] = v[j] * a.gamma[at] + a.beta[at];
		}
		put<S, V>(y + i, v);
	}
}

/* dx = rstd (h - mean(h) - xhat mean(h xhat)), h = dy gamma, xhat = (x - mean) rstd */
template <class S, int V> __global__ void __launch_bounds__(TEAM_BLOCK) layernorm_dx(const gt_cu_layernorm_dx a, int team)
{
	after_previous();
	int64_t r = row_of(a.rows, team), n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	const S *x = (const S *)a.x + r * n, *dy = (const S *)a.dy + r * n;
	S *dx = (S *)a.dx + r * n;
	float mean = a.mean[r], rstd = a.rstd[r], sum = 0, dot = 0, v[V], h[V];
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_at<S, V>(v, x + i);
		get_at<S, V>(h, dy + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = a.gamma ? h[j] * a.gamma[param_at(i + j, n, a.pixels)] : h[j];
			sum += g;
			dot += g * ((v[j] - mean) * rstd);
		}
	}
	sum = (float)(team_sum((double)sum, team) / (double)n);
	dot = (float)(team_sum((double)dot, team) / (double)n);
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_at<S, V>(v, x + i);
		get_at<S, V>(h, dy + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = a.gamma ? h[j] * a.gamma[param_at(i + j, n, a.pixels)] : h[j];
			v[j] = rstd * (g - sum - (v[j] - mean) * rstd * dot);
		}
		put<S, V>(dx + i, v);
	}
}

/* Sums over rows of dy * xhat and of dy. */
template <class S, int V>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) layernorm_sums(const gt_cu_layernorm_dx a, float *part, const tiling t)
{
	after_previous();
	const place p = place_of<V>(t);
	float sum[2 * V] = {};
	if (p.in) {
		int64_t r = p.row, at = r * t.cols + p.col, step = p.ty * t.cols;
#pragma unroll 2
		for (int left = p.n; left > 0; left--, r += p.ty, at += step) {
			float d[V], v[V], mean = a.mean[r], rstd = a.rstd[r];
			get_at<S, V>(d, (const S *)a.dy + at);
			get_at<S, V>(v, (const S *)a.x + at);
#pragma unroll
			for (int j = 0; j < V; j++) {
				sum[j] += d[j] * ((v[j] - mean) * rstd);
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

__global__ void __launch_bounds__(FINISH_COLS *FINISH_LANES) layernorm_finish(const gt_cu_layernorm_dx a, const float *part, const tiling t)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * FINISH_COLS + threadIdx.x;
	double gamma = finish_plane(part, t, 2, 0, c), beta = finish_plane(part, t, 2, 1, c);
	if (threadIdx.y || c >= t.cols)
		return;
	int64_t at = param_at(c, t.cols, a.pixels);
	if (a.dgamma)
		a.dgamma[at] = (float)gamma + (a.add_gamma ? a.dgamma[at] : 0);
	if (a.dbeta)
		a.dbeta[at] = (float)beta + (a.add_beta ? a.dbeta[at] : 0);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void layernorm_fn(const gt_cu_layernorm, int);
typedef void layernorm_dx_fn(const gt_cu_layernorm_dx, int);

template <class S> static cudaError_t forward(const struct gt_cu_layernorm *a, cudaStream_t s)
{
	bool one = columns_of<S>(a->cols, (uintptr_t)a->x | (uintptr_t)a->y) == 1;
	int team = team_for(a->cols);
	layernorm_fn *fn = one ? layernorm<S, 1> : layernorm<S, width<S>::n>;
	int64_t blocks = ceil_div(a->rows, TEAM_BLOCK / team);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, team) : cudaSuccess;
}

cudaError_t gt_cu_layernorm_start(int type, const struct gt_cu_layernorm *a, cudaStream_t s)
{
	return OF_TYPE(type, forward)(a, s);
}

template <class S, int V> static cudaError_t params(const struct gt_cu_layernorm_dx *a, cudaStream_t s)
{
	struct tiling t = tile_columns(a->rows, a->cols, V);
	cudaError_t e = launch(layernorm_sums<S, V>, tiling_grid(t), dim3(COL_BLOCK), s, *a, a->scratch, t);
	if (e != cudaSuccess)
		return e;
	return launch(layernorm_finish, finish_grid(a->cols), dim3(FINISH_COLS, FINISH_LANES), s, *a, (const float *)a->scratch, t);
}

/* Parameters first: dx may overwrite dy. */
template <class S> static cudaError_t backward(const struct gt_cu_layernorm_dx *a, cudaStream_t s)
{
	bool one = columns_of<S>(a->cols, (uintptr_t)a->x | (uintptr_t)a->dy | (uintptr_t)a->dx) == 1;
	int team = team_for(a->cols);
	layernorm_dx_fn *fn = one ? layernorm_dx<S, 1> : layernorm_dx<S, width<S>::n>;
	int64_t blocks = ceil_div(a->rows, TEAM_BLOCK / team);
	cudaError_t e = cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (!blocks)
		return cudaSuccess;
	if (a->dgamma || a->dbeta)
		e = one ? params<S, 1>(a, s) : params<S, width<S>::n>(a, s);
	return e == cudaSuccess && a->dx ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, team) : e;
}

cudaError_t gt_cu_layernorm_dx_start(int type, const struct gt_cu_layernorm_dx *a, cudaStream_t s)
{
	return OF_TYPE(type, backward)(a, s);
}

size_t gt_cu_layernorm_scratch(int64_t rows, int64_t cols)
{
	return (size_t)tiling_floats(rows, cols, 2) * sizeof(float);
}
