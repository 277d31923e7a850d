/* The loss of a row and the sums of a batch, for loss.cu and head.cu. */
#ifndef GT_KERNELS_CUDA_LOSS_CUH
#define GT_KERNELS_CUDA_LOSS_CUH

#include "cuda/softmax.cuh"

/* The arguments of a loss. */
struct loss_args {
	const void *x;
	const int32_t *target; /* label of each row; not used if dense is not NULL */
	const float *dense;    /* target of each output, [rows, cols]; NULL: labels */
	const float *weights;  /* gt_attr_loss.weights; NULL: all 1 */
	bool by_class;         /* `weights` has a weight for each class: a row has the weight of its label */
	const double *scale; /* factor of the gradient; NULL: 1 */
	void *dx; /* gradient of x; may be the same memory as x; NULL: no gradient is computed */
	struct gt_metrics *metrics;
	double *loss;  /* workspace: the loss of each row */
	int32_t *rank; /* workspace: the rank of the target in each row; -1: the row is not counted; INT32_MAX: the target is not a class */
	uint32_t *counter; /* one counter, which is 0 before a launch */
	int64_t rows, cols, ignore; /* ignore: gt_attr_loss.ignore_index */
	double number[GT_LOSS_NUMBERS]; /* gt_attr_loss.number */
	struct gt_cu_fault *fault;
	struct gt_cu_step_args step_args;
};

/* Returns whether element j of a row, x, comes before the target, which is element `target`, t, in descending order. Of equal elements the
 * lower index is first; a NaN comes first. */
__device__ static inline bool is_before(float x, int64_t j, float t, int64_t target)
{
	return j < target ? !(x < t) : j > target ? !(x <= t) : false;
}

/* Returns the rank of the target: the number of elements of a row that come before it. */
template <class S> __device__ static inline int row_rank(const S *x, int64_t n, int64_t target, float t, int lane, int team)
{
	int before = 0;
	for (int64_t j = lane; j < n; j += team)
		before += is_before(to_float(x[j]), j, t, target);
	return team_sum(before, team);
}

/* The losses that loss_row computes, as template arguments; with operation codes, names of kernels would change with other operations. */
struct loss_cross_entropy {
	static constexpr int code = GT_OP_CROSS_ENTROPY;
};
struct loss_nll {
	static constexpr int code = GT_OP_NLL;
};
struct loss_mse {
	static constexpr int code = GT_OP_MSE;
};

/* A team of threads computes the loss and the rank of the target in row r and, if a.dx is not NULL, the row's gradient. It reads the row
 * once for the loss and once for the gradient, V elements at a time. An ignored label has no effect; a label outside the classes is
 * reported as a fault. */
template <class S, int V, class Loss> __device__ static inline void loss_row(const loss_args &a, int64_t r, int lane, int team)
{
	int64_t n = a.cols;
	const S *x = (const S *)a.x + r * n;
	S *dx = a.dx ? (S *)a.dx + r * n : NULL;
	int64_t t = a.target[r];
	bool ignored = Loss::code != GT_OP_MSE && t == a.ignore, bad = !ignored && (t < 0 || t >= n);
	double inv_weight = step_args_of(a.step_args).inv_weight * (a.scale ? *a.scale : 1);
	float v[V];
	if (ignored || bad) {
		if (lane == 0) {
			a.rank[r] = -1;
			a.loss[r] = 0;
			if (bad)
				report_fault(a.fault, GT_CU_FAULT_LABEL, t, r, n);
		}
#pragma unroll
		for (int j = 0; j < V; j++)
			v[j] = 0;
		for (int64_t i = lane * V; dx && i < n; i += team * V)
			store_packed<S, V>(dx + i, v);
		return;
	}
	float target_x = to_float(x[t]), inv = 0, classes = (float)n, smoothing = (float)a.number[0];
	int before = 0;
	softmax_sums sums;
	double loss = 0;
	for (int64_t i = lane * V; i < n; i += team * V) {
		get_elements<S, V>(v, x + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			before += is_before(v[j], i + j, target_x, t);
			if (Loss::code == GT_OP_MSE) { /* the square of the distance to a vector that is 1 at the target and 0 elsewhere */
				double d = (double)v[j] - (i + j == t ? 1 : 0);
				loss += d * d;
			}
		}
		if (Loss::code == GT_OP_CROSS_ENTROPY)
			sums.add<V>(v);
	}
	int rank = team_sum(before, team);
	if (Loss::code == GT_OP_CROSS_ENTROPY) {
		sums.join(team, smoothing > 0);
		inv = 1 / sums.exp;
		loss = (double)gt_ce_loss_f32(gt_log_f32(sums.exp), target_x - sums.max, sums.linear, classes, smoothing);
	} else if (Loss::code == GT_OP_NLL) {
		loss = -(double)target_x;
	} else {
		loss = team_sum(loss, team) / (double)n;
	}
	if (lane == 0) {
		a.rank[r] = rank;
		a.loss[r] = loss;
	}
	/* dx may be x: the reductions above are barriers after every read of another thread's element. */
	float scale = (float)(Loss::code == GT_OP_MSE ? 2.0 * inv_weight / (double)n : inv_weight);
	for (int64_t i = lane * V; dx && i < n; i += team * V) {
		if (Loss::code != GT_OP_NLL)
			get_elements<S, V>(v, x + i);
#pragma unroll
		for (int j = 0; j < V; j++) {
			bool own = i + j == t;
			if (Loss::code == GT_OP_CROSS_ENTROPY)
				v[j] = gt_ce_grad_f32(gt_exp_f32(v[j] - sums.max) * inv, own, classes, smoothing, scale);
			else if (Loss::code == GT_OP_NLL)
				v[j] = own ? -scale : 0;
			else
				v[j] = gt_mse_label_grad_f32(v[j], own, scale);
		}
		store_packed<S, V>(dx + i, v);
	}
}

/* Returns the target of output j of row r. */
__device__ static inline float target_of(const loss_args &a, int64_t r, int64_t j)
{
	return a.dense ? a.dense[r * a.cols + j] : (float)(j == a.target[r]);
}

__device__ static inline float share_of(const loss_args &a, int64_t r, int64_t j)
{
	return gt_ce_share_f32(target_of(a, r, j), a.weights ? a.weights[j] : 1, (float)a.cols, (float)a.number[0]);
}

/* Returns the first of the largest targets of row r. The index is exact in f32, because a layer has at most 2^24 outputs. */
__device__ static inline int64_t class_of(const loss_args &a, int64_t r, int lane, int team)
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

/* Like gt_loss_has_classes (losses.h). */
#define HAS_CLASSES_LOGITS true
#define HAS_CLASSES_LOG_PROBABILITIES true
#define HAS_CLASSES_LABELS false
#define HAS_CLASSES_VALUES false
__device__ static inline bool has_classes(int code)
{
	switch (code) {
#define GT_X(arg, CODE, name, kind, output, ...)                                                                                           \
	case GT_OP_##CODE:                                                                                                                     \
		return HAS_CLASSES_##output;
		GT_LOSSES(GT_X)
#undef GT_X
	}
	return false;
}

/* Computes the loss and the gradient of row r for cross entropy with weights of classes, or with a probability for each class as the
 * target. */
template <class S> __device__ static inline double shares_row(const loss_args &a, int64_t r, int lane, int team, float scale)
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

/* Computes row r of a loss that is a mean over the outputs or a sum over classes. divisor: the number of outputs for a mean, 1 for a
 * sum. */
template <class S>
__device__ static inline double pointwise_row(const loss_args &a, int code, int64_t r, int lane, int team, double inv_weight,
                                              double divisor)
{
	const S *x = (const S *)a.x + r * a.cols;
	S *dx = a.dx ? (S *)a.dx + r * a.cols : NULL;
	float scale = (float)(inv_weight / divisor);
	float n0 = (float)a.number[0], n1 = (float)a.number[1];
	double sum = 0;
	(void)n0, (void)n1;
	for (int64_t j = lane; j < a.cols; j += team) { /* dx may be x: each thread reads and writes its own elements */
		float v = to_float(x[j]), t = target_of(a, r, j), w = a.weights ? a.weights[j] : 1, g = 0;
		(void)w;
		switch (code) {
#define GT_X(CODE, name, is_sum, ...)                                                                                                      \
	case GT_OP_##CODE:                                                                                                                     \
		sum += gt_##name##_loss_f32(v, t __VA_ARGS__);                                                                                     \
		g = gt_##name##_grad_f32(v, t __VA_ARGS__);                                                                                        \
		break;
			GT_LOSS_POINTWISE(GT_X)
#undef GT_X
		}
		if (dx)
			dx[j] = from_float<S>(g * scale);
	}
	return team_sum(sum, team) / divisor;
}

/* Like loss_row, for every loss, with or without weights, and with labels or values as targets. */
template <class S> __device__ static inline void other_row(const loss_args &a, int code, int64_t r, int lane, int team)
{
	int64_t n = a.cols;
	const S *x = (const S *)a.x + r * n;
	bool classes = has_classes(code);
	int64_t t = a.dense ? classes ? class_of(a, r, lane, team) : -1 : a.target[r];
	bool ignored = !a.dense && classes && t == a.ignore, bad = !a.dense && !ignored && (t < 0 || t >= n);
	double inv_weight = step_args_of(a.step_args).inv_weight * (a.scale ? *a.scale : 1), loss = 0;
	int rank = ignored || bad ? -1 : INT32_MAX;
	float own = rank >= 0 && t >= 0 ? to_float(x[t]) : 0;
	if (rank >= 0 && t >= 0) /* dx may be x: after this reduction no thread reads elements of another thread */
		rank = row_rank(x, n, t, own, lane, team);
	if (rank < 0) {
		if (bad && lane == 0)
			report_fault(a.fault, GT_CU_FAULT_LABEL, t, r, n);
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
		loss = pointwise_row<S>(a, code, r, lane, team, inv_weight, classes ? 1 : (double)n);
	}
	if (lane == 0) {
		a.rank[r] = rank;
		a.loss[r] = loss;
	}
}

/* Adds up the losses of a batch in one block: each thread sums a strided part of the rows in order, then a tree adds the threads. */
__device__ static inline void loss_total(const loss_args &a)
{
	constexpr int AHEAD = 4; /* rows that a thread reads before it adds the first one */
	double sum = 0, weight = 0;
	int count = 0, correct = 0, top5 = 0; /* of the rows of one thread */
	for (int64_t first = threadIdx.x; first < a.rows; first += TEAM_BLOCK * AHEAD) {
		int32_t rank[AHEAD];
		double loss[AHEAD];
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			int64_t r = first + k * TEAM_BLOCK;
			rank[k] = r < a.rows ? __ldcg(a.rank + r) : -1;
			loss[k] = r < a.rows ? __ldcg(a.loss + r) : 0;
		}
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			if (rank[k] < 0)
				continue;
			sum += loss[k];
			weight += a.by_class && !a.dense ? (double)a.weights[a.target[first + k * TEAM_BLOCK]] : 1;
			count += rank[k] != INT32_MAX;
			correct += rank[k] == 0;
			top5 += rank[k] < 5;
		}
	}
	sum = team_sum(sum, TEAM_BLOCK);
	weight = team_sum(weight, TEAM_BLOCK);
	int64_t counts = team_sum((int64_t)count, TEAM_BLOCK), corrects = team_sum((int64_t)correct, TEAM_BLOCK);
	int64_t top5s = team_sum((int64_t)top5, TEAM_BLOCK);
	if (threadIdx.x == 0) {
		a.metrics->loss += sum;
		a.metrics->weight += weight;
		a.metrics->count += counts;
		a.metrics->correct += corrects;
		a.metrics->top5 += top5s;
	}
}

#endif
