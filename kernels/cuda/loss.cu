/* The losses. A team of threads computes the loss and the rank of one row and stores them in the scratch memory. The last
 * block adds them up in a fixed order. */
#include "cuda/loss.cuh"

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S, int CODE> __global__ void __launch_bounds__(TEAM_BLOCK) loss_rows(const gt_cu_loss a, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team;
	if (r < a.rows)
		loss_row<S, CODE>(a, r, (int)threadIdx.x % team, team);
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* The target of output j of row r. */
__device__ static inline float target_of(const gt_cu_loss &a, int64_t r, int64_t j)
{
	return a.dense ? a.dense[r * a.cols + j] : (float)(j == a.target[r]);
}

__device__ static inline float share_of(const gt_cu_loss &a, int64_t r, int64_t j)
{
	return gt_ce_share_f32(target_of(a, r, j), a.weights ? a.weights[j] : 1, (float)a.cols, (float)a.smoothing);
}

/* Returns the first of the largest targets of row r. The index is exact in f32, because a layer has at most 2^24 outputs. */
__device__ static inline int64_t class_of(const gt_cu_loss &a, int64_t r, int lane, int team)
{
	float most = -INFINITY, first = -INFINITY;
	for (int64_t j = lane; j < a.cols; j += team)
		most = fmaxf(most, a.dense[r * a.cols + j]);
	most = team_max(most, team);
	for (int64_t j = lane; j < a.cols; j += team)
		if (a.dense[r * a.cols + j] == most)
			first = fmaxf(first, -(float)j);
	first = team_max(first, team);
	return first > -INFINITY ? (int64_t)-first : 0;
}

/* Cross entropy with weights of classes, or with a probability for each class as the target. */
template <class S> __device__ static inline double shares_row(const gt_cu_loss &a, int64_t r, int lane, int team, float scale)
{
	const S *x = (const S *)a.x + r * a.cols;
	S *dx = a.dx ? (S *)a.dx + r * a.cols : NULL;
	float max = -INFINITY, sum = 0, all = 0;
	double loss = 0;
	for (int64_t j = lane; j < a.cols; j += team)
		max = fmaxf(max, to_float(x[j]));
	max = team_max(max, team);
	for (int64_t j = lane; j < a.cols; j += team)
		sum += gt_exp_f32(to_float(x[j]) - max);
	sum = team_sum(sum, team);
	float lsum = gt_log_f32(sum), inv = 1 / sum;
	for (int64_t j = lane; j < a.cols; j += team) {
		float share = share_of(a, r, j);
		loss += share == 0 ? 0 : (double)(share * (lsum - (to_float(x[j]) - max)));
		all += share;
	}
	loss = team_sum(loss, team);
	all = team_sum(all, team);
	for (int64_t j = lane; dx && j < a.cols; j += team)
		dx[j] = from_float<S>((gt_exp_f32(to_float(x[j]) - max) * inv * all - share_of(a, r, j)) * scale);
	return loss;
}

/* A loss that is the mean over the outputs. */
template <class S> __device__ static inline double mean_row(const gt_cu_loss &a, int code, int64_t r, int lane, int team, float scale)
{
	const S *x = (const S *)a.x + r * a.cols;
	S *dx = a.dx ? (S *)a.dx + r * a.cols : NULL;
	float beta = (float)a.beta;
	double sum = 0;
	for (int64_t j = lane; j < a.cols; j += team) { /* dx may be x: each thread reads and writes its own elements */
		float v = to_float(x[j]), t = target_of(a, r, j), pos = a.weights ? a.weights[j] : 1, g;
		if (code == GT_OP_BCE) {
			sum += (double)gt_bce_loss_f32(v, t, pos);
			g = gt_bce_grad_f32(v, t, pos);
		} else if (code == GT_OP_SMOOTH_L1) {
			sum += (double)gt_smooth_l1_loss_f32(v - t, beta);
			g = gt_smooth_l1_grad_f32(v - t, beta);
		} else {
			sum += (double)(v - t) * (double)(v - t);
			g = 2 * (v - t);
		}
		if (dx)
			dx[j] = from_float<S>(g * scale);
	}
	return team_sum(sum, team) / (double)a.cols;
}

/* Losses that loss_row does not compute: those with weights, with numbers as targets, and bce and smooth_l1. */
template <class S> __global__ void __launch_bounds__(TEAM_BLOCK) other_rows(const gt_cu_loss a, int code, int team)
{
	after_previous();
	int64_t r = (int64_t)blockIdx.x * (TEAM_BLOCK / team) + threadIdx.x / team, n = a.cols;
	int lane = (int)threadIdx.x % team;
	if (r < a.rows) {
		const S *x = (const S *)a.x + r * n;
		bool classes = code == GT_OP_CROSS_ENTROPY || code == GT_OP_NLL;
		int64_t t = a.dense ? classes ? class_of(a, r, lane, team) : -1 : a.target[r];
		bool ignored = !a.dense && classes && t == a.ignore, bad = !a.dense && !ignored && (t < 0 || t >= n);
		double inv_weight = step_args_of(a.step_args).inv_weight * (a.scale ? *a.scale : 1), loss = 0;
		int rank = ignored || bad ? -1 : INT32_MAX;
		float own = rank >= 0 && t >= 0 ? to_float(x[t]) : 0;
		if (rank >= 0 && t >= 0) /* dx may be x: after this reduction no thread reads elements of another one */
			rank = row_rank(x, n, t, own, lane, team);
		if (rank < 0) {
			if (bad && lane == 0)
				fault(a.fault, GT_CU_FAULT_LABEL, t, r, n);
			for (int64_t j = lane; a.dx && j < n; j += team)
				((S *)a.dx)[r * n + j] = from_float<S>(0);
		} else if (code == GT_OP_CROSS_ENTROPY) {
			loss = shares_row<S>(a, r, lane, team, (float)inv_weight);
		} else if (code == GT_OP_NLL) {
			double w = a.weights[t];
			loss = -w * (double)own;
			for (int64_t j = lane; a.dx && j < n; j += team)
				((S *)a.dx)[r * n + j] = from_float<S>(j == t ? (float)(-w * inv_weight) : 0);
		} else {
			loss = mean_row<S>(a, code, r, lane, team, (float)(inv_weight / (double)n));
		}
		if (lane == 0) {
			a.rank[r] = rank;
			a.loss[r] = loss;
		}
	}
	if (last_of(a.counter, gridDim.x))
		loss_total(a);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void loss_fn(const gt_cu_loss, int);
typedef void other_fn(const gt_cu_loss, int, int);

template <class S> static loss_fn *find(int code)
{
	switch (code) {
	case GT_OP_CROSS_ENTROPY:
		return loss_rows<S, GT_OP_CROSS_ENTROPY>;
	case GT_OP_NLL:
		return loss_rows<S, GT_OP_NLL>;
	case GT_OP_MSE:
		return loss_rows<S, GT_OP_MSE>;
	}
	return NULL;
}

cudaError_t gt_cu_loss_start(int code, int type, const struct gt_cu_loss *a, cudaStream_t s)
{
	int team = team_for(a->cols);
	int64_t blocks = ceil_div(a->rows, TEAM_BLOCK / team);
	loss_fn *fn = OF_TYPE(type, find)(code);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (!blocks)
		return cudaSuccess;
	if (!fn || a->weights || a->dense)
		return launch(OF_TYPE(type, other_rows), dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, code, team);
	return launch(fn, dim3((unsigned)blocks), dim3(TEAM_BLOCK), s, *a, team);
}
