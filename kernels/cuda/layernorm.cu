/* Layer normalisation. A team of threads (device.cuh) handles one row. It reads the row three times, the second and third time from the
 * caches. dgamma and dbeta are sums over rows (columns.cuh). */
#include "cuda/columns.cuh"

/* x and y are [rows, cols]. gamma and beta are NULL if the layer is not affine. If pixels is 0, the parameters have the element order of a
 * row; otherwise they are plain [cols / pixels, pixels] and a row is NHWC. mean and rstd have one value for each row, or are NULL. */
struct layernorm_args {
	const void *x;
	void *y;
	const float *gamma, *beta;
	float *mean, *rstd;
	int64_t rows, cols, pixels;
	double eps;
};

/* The arguments of the gradient. dx may be the same memory as dy. dx, dgamma and dbeta may be NULL. */
struct layernorm_dx_args {
	const void *dy, *x;
	void *dx;
	const float *gamma, *mean, *rstd;
	float *dgamma, *dbeta;
	int64_t rows, cols, pixels;
	bool add_gamma, add_beta;
	float *scratch;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Returns the index in gamma and beta of column i of a row. */
__device__ static inline int64_t param_at(int64_t i, int64_t cols, int64_t pixels)
{
	if (!pixels)
		return i;
	int64_t channels = cols / pixels, pixel = i / channels;
	return (i - pixel * channels) * pixels + pixel;
}

/* Returns the row of this thread's team, or -1 for all threads of a warp without a row. */
__device__ static inline int64_t row_of(int64_t rows, int team)
{
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	return r < rows ? r : -1;
}

/* Reads V elements of a row, which begins at a multiple of 16 bytes if V > 1. */
template <class S, int V> __device__ static inline void get_at(float *v, const S *p)
{
	packed<S, V> q;
	q.fetch(p);
	q.get(v);
}

/* PLAIN: the parameters may be plain, and are read one by one. Otherwise they have the element order of a row, and V > 1. */
template <class S, int V, bool PLAIN> __global__ void __launch_bounds__(TEAM_BLOCK) layernorm_forward(const layernorm_args a, int team)
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
		float gamma[V], beta[V];
		get_at<S, V>(v, x + i);
		if (a.gamma && !PLAIN) {
			get_f32<V>(gamma, a.gamma + i);
			get_f32<V>(beta, a.beta + i);
		}
#pragma unroll
		for (int j = 0; j < V; j++) {
			int64_t at = param_at(i + j, n, a.pixels);
			v[j] = (v[j] - mean) * rstd;
			if (a.gamma)
				v[j] = v[j] * (PLAIN ? a.gamma[at] : gamma[j]) + (PLAIN ? a.beta[at] : beta[j]);
		}
		store_packed<S, V>(y + i, v);
	}
}

/* Computes dx = rstd (h - mean(h) - xhat mean(h xhat)) with h = dy gamma, xhat = (x - mean) rstd. */
template <class S, int V, bool PLAIN> __global__ void __launch_bounds__(TEAM_BLOCK) layernorm_dx(const layernorm_dx_args a, int team)
{
	after_previous();
	int64_t r = row_of(a.rows, team), n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < 0)
		return;
	const S *x = (const S *)a.x + r * n, *dy = (const S *)a.dy + r * n;
	S *dx = (S *)a.dx + r * n;
	float mean = a.mean[r], rstd = a.rstd[r], sum = 0, dot = 0, v[V], h[V], gamma[V];
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_at<S, V>(v, x + i);
		get_at<S, V>(h, dy + i);
		if (a.gamma && !PLAIN)
			get_f32<V>(gamma, a.gamma + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = a.gamma ? h[j] * (PLAIN ? a.gamma[param_at(i + j, n, a.pixels)] : gamma[j]) : h[j];
			sum += g;
			dot += g * ((v[j] - mean) * rstd);
		}
	}
	sum = (float)(team_sum((double)sum, team) / (double)n);
	dot = (float)(team_sum((double)dot, team) / (double)n);
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_at<S, V>(v, x + i);
		get_at<S, V>(h, dy + i);
		if (a.gamma && !PLAIN)
			get_f32<V>(gamma, a.gamma + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			float g = a.gamma ? h[j] * (PLAIN ? a.gamma[param_at(i + j, n, a.pixels)] : gamma[j]) : h[j];
			v[j] = rstd * (g - sum - (v[j] - mean) * rstd * dot);
		}
		store_packed<S, V>(dx + i, v);
	}
}

/* Computes the gradients of gamma and beta: the sums of dy * xhat and of dy over the rows. */
template <class S, int V>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) layernorm_sums(const layernorm_dx_args a, float *part, const tiling t)
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

__global__ void __launch_bounds__(FINISH_COLS *FINISH_LANES) layernorm_finish(const layernorm_dx_args a, const float *part, const tiling t)
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
typedef void layernorm_fn(const layernorm_args, int);
typedef void layernorm_dx_fn(const layernorm_dx_args, int);

/* Returns the bitwise or of the addresses of the parameters that are read as vectors. */
static uintptr_t params_at(int64_t pixels, const float *gamma, const float *beta)
{
	return pixels ? 0 : (uintptr_t)gamma | (uintptr_t)beta;
}

template <class S> static cudaError_t launch_forward(const layernorm_args *a, cudaStream_t s)
{
	bool one = columns_of<S>(a->cols, (uintptr_t)a->x | (uintptr_t)a->y | params_at(a->pixels, a->gamma, a->beta)) == 1;
	int team = team_for(a->cols / (one ? 1 : width<S>::n));
	layernorm_fn *fn = one ? layernorm_forward<S, 1, true>
	                       : a->pixels ? layernorm_forward<S, width<S>::n, true> : layernorm_forward<S, width<S>::n, false>;
	int64_t blocks = ceil_div(a->rows, TEAM_BLOCK / team);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, team) : cudaSuccess;
}

template <class S, int V> static cudaError_t launch_params(const layernorm_dx_args *a, cudaStream_t s)
{
	struct tiling t = tile_columns(a->rows, a->cols, V);
	cudaError_t e = launch(layernorm_sums<S, V>, tiling_grid(t), dim3(COL_BLOCK), s, *a, a->scratch, t);
	if (e != cudaSuccess)
		return e;
	return launch(layernorm_finish, finish_grid(a->cols), dim3(FINISH_COLS, FINISH_LANES), s, *a, (const float *)a->scratch, t);
}

/* The gradients of the parameters are computed first, because dx may overwrite dy. */
template <class S> static cudaError_t launch_gradient(const layernorm_dx_args *a, cudaStream_t s)
{
	uintptr_t at = (uintptr_t)a->x | (uintptr_t)a->dy | (uintptr_t)a->dx | params_at(a->pixels, a->gamma, NULL);
	bool one = columns_of<S>(a->cols, at) == 1;
	int team = team_for(a->cols / (one ? 1 : width<S>::n));
	layernorm_dx_fn *fn = one ? layernorm_dx<S, 1, true>
	                          : a->pixels ? layernorm_dx<S, width<S>::n, true> : layernorm_dx<S, width<S>::n, false>;
	int64_t blocks = ceil_div(a->rows, TEAM_BLOCK / team);
	cudaError_t e = cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (!blocks)
		return cudaSuccess;
	if (a->dgamma || a->dbeta)
		e = one ? launch_params<S, 1>(a, s) : launch_params<S, width<S>::n>(a, s);
	return e == cudaSuccess && a->dx ? launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, team) : e;
}

/* ---- calls --------------------------------------------------------------------------------------------------------------------------- */
static bool backward_call(const struct gt_opcall *op)
{
	return op->code == GT_OP_LAYERNORM_DX;
}

static int64_t cols_of(const struct gt_tdesc *x)
{
	int64_t n = 1;
	for (int i = 1; i < x->rank; i++)
		n *= x->dim[i];
	return n;
}

/* Returns the element order of a parameter: 1 for the order of a row, 0 for plain [C, H, W] with activations in NHWC, -1 for any other
 * order. An open layout is set to the order of a row. */
static int param_order(const struct gt_tdesc *x, struct gt_tdesc *p)
{
	static const uint8_t chw[3] = {0, 1, 2}, hwc[3] = {1, 2, 0};
	bool rank3 = p->rank == 3, plain = !rank3 || !memcmp(p->layout.order, chw, sizeof chw);
	if (p->any && rank3)
		memcpy(p->layout.order, hwc, sizeof hwc);
	else if (!p->any && plain && !p->layout.nblk)
		return x->rank < 4 || x->dim[1] == 1 || x->dim[2] * x->dim[3] == 1;
	p->any = false;
	return !p->layout.nblk && (!rank3 || !memcmp(p->layout.order, hwc, sizeof hwc)) ? 1 : -1;
}

/* Returns the order in memory of the elements of gamma, beta and their gradients, as param_order(), or -1 if it is not the same for all. */
static int order_of(const struct gt_opcall *op)
{
	static const char *const names[] = {"gamma", "beta", "dgamma", "dbeta"};
	int order = -2; /* none seen */
	for (const char *name : names)
		if (struct gt_tdesc *p = gt_opcall_operand(op, name)) {
			int o = param_order(gt_opcall_operand(op, "x"), p);
			order = order == -2 || order == o ? o : -1;
		}
	return order == -2 ? 1 : order;
}

static const char *refuse_call(const struct gt_opcall *op)
{
	if (!backward_call(op) && !gt_opcall_operand(op, "gamma") != !gt_opcall_operand(op, "beta"))
		return "gamma and beta must both be present or absent";
	return order_of(op) < 0 ? "gamma, beta and their gradients must have the same layout, plain or channels last" : NULL;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_opcall_operand(op, "x");
	bool sums = gt_cu_operand(op, "dgamma", "dbeta") != NULL;
	return sums ? (size_t)tiling_floats(x->dim[0], cols_of(x), 2) * sizeof(float) : 0;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(layernorm_args, x, y, gamma, beta, mean, rstd)};
	static const struct gt_operand_slot slots_dx[] = {GT_SLOTS(layernorm_dx_args, dy, x, dx, gamma, mean, rstd, dgamma, dbeta)};
	const struct gt_opcall *op = c->op;
	const struct gt_tdesc *x = gt_opcall_operand(op, "x");
	int64_t pixels = order_of(op) ? 0 : x->dim[2] * x->dim[3];
	if (backward_call(op)) {
		layernorm_dx_args a = {};
		GT_CU_BIND(c, slots_dx, &a);
		a.rows = x->dim[0], a.cols = cols_of(x), a.pixels = pixels;
		a.add_gamma = gt_opcall_adds(op, "dgamma"), a.add_beta = gt_opcall_adds(op, "dbeta");
		a.scratch = (float *)c->scratch;
		return OF_TYPE(c->type, launch_gradient)(&a, s);
	}
	layernorm_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.rows = x->dim[0], a.cols = cols_of(x), a.pixels = pixels;
	a.eps = ((const struct gt_attr_norm *)op->attr)->eps;
	if (!a.mean || !a.rstd) /* both or none */
		a.mean = a.rstd = NULL;
	return OF_TYPE(c->type, launch_forward)(&a, s);
}

GT_CU_FAMILY(layernorm, start_call, scratch_bytes, refuse_call, "rows")
