/* The loss of a row and the sums of a batch, for loss.cu and for head.cu. */
#ifndef GT_KERNELS_CUDA_LOSS_CUH
#define GT_KERNELS_CUDA_LOSS_CUH

#include "cuda/device.cuh"

/* Returns the number of elements of a row that come before the target in descending order. For ties the lower index is first; a NaN is
 * before all numbers. */
template <class S> __device__ static inline int row_rank(const S *x, int64_t n, int64_t target, float t, int lane, int team)
{
	int before = 0;
	for (int64_t j = lane; j < n; j += team) {
		float v = to_float(x[j]);
		before += j < target ? !(v < t) : j > target ? !(v <= t) : 0;
	}
	return team_sum(before, team);
}

/* Returns the mean of (x - one-hot target)^2 over the row, in double. */
template <class S> __device__ static inline double row_mse(const S *x, int64_t n, int64_t target, int lane, int team)
{
	double sum = 0;
	for (int64_t j = lane; j < n; j += team) {
		double d = (double)to_float(x[j]) - (j == target ? 1 : 0);
		sum += d * d;
	}
	return team_sum(sum, team) / (double)n;
}

/* A team of threads computes the loss and the rank of the target in row r and, if a.dx is not NULL, the row's gradient. An ignored label
 * counts nothing; one outside of the classes is reported as a fault. */
template <class S, int CODE> __device__ static inline void loss_row(const gt_cu_loss &a, int64_t r, int lane, int team)
{
	int64_t n = a.cols;
	const S *x = (const S *)a.x + r * n;
	S *dx = a.dx ? (S *)a.dx + r * n : NULL;
	int64_t t = a.target[r];
	bool ignored = CODE != GT_OP_MSE && t == a.ignore, bad = !ignored && (t < 0 || t >= n);
	double inv_weight = step_args_of(a.step_args).inv_weight * (a.scale ? *a.scale : 1);
	if (ignored || bad) {
		if (lane == 0) {
			a.rank[r] = -1;
			a.loss[r] = 0;
			if (bad)
				fault(a.fault, GT_CU_FAULT_LABEL, t, r, n);
		}
		for (int64_t j = lane; dx && j < n; j += team)
			dx[j] = from_float<S>(0);
		return;
	}
	float target_x = to_float(x[t]), max = 0, inv = 0, classes = (float)n, smoothing = (float)a.smoothing;
	int rank = row_rank(x, n, t, target_x, lane, team);
	double loss;
	if (CODE == GT_OP_CROSS_ENTROPY) {
		float sum = 0, zsum = 0;
		max = -INFINITY;
		for (int64_t j = lane; j < n; j += team)
			max = fmaxf(max, to_float(x[j]));
		max = team_max(max, team);
		for (int64_t j = lane; j < n; j += team) {
			float z = to_float(x[j]) - max;
			sum += gt_exp_f32(z);
			zsum += z;
		}
		sum = team_sum(sum, team);
		if (smoothing > 0)
			zsum = team_sum(zsum, team);
		inv = 1 / sum;
		loss = (double)gt_ce_loss_f32(gt_log_f32(sum), target_x - max, zsum, classes, smoothing);
	} else if (CODE == GT_OP_NLL) {
		loss = -(double)target_x;
	} else {
		loss = row_mse(x, n, t, lane, team);
	}
	if (lane == 0) {
		a.rank[r] = rank;
		a.loss[r] = loss;
	}
	/* dx may be x: the reductions above are barriers after every read of another thread's element. */
	float scale = (float)(CODE == GT_OP_MSE ? 2.0 * inv_weight / (double)n : inv_weight);
	for (int64_t j = lane; dx && j < n; j += team) {
		float v;
		if (CODE == GT_OP_CROSS_ENTROPY)
			v = gt_ce_grad_f32(gt_exp_f32(to_float(x[j]) - max) * inv, j == t, classes, smoothing, scale);
		else if (CODE == GT_OP_NLL)
			v = j == t ? -scale : 0;
		else
			v = gt_mse_grad_f32(to_float(x[j]), j == t, scale);
		dx[j] = from_float<S>(v);
	}
}

/* Adds up the losses of a batch in one block: each thread sums a strided part of the rows in order, then a tree adds the threads. */
__device__ static inline void loss_total(const gt_cu_loss &a)
{
	double sum = 0, weight = 0;
	int64_t count = 0, correct = 0, top5 = 0;
	for (int64_t r = threadIdx.x; r < a.rows; r += TEAM_BLOCK) {
		int32_t k = __ldcg(a.rank + r);
		if (k < 0)
			continue;
		sum += __ldcg(a.loss + r);
		weight += a.by_class && !a.dense ? (double)a.weights[a.target[r]] : 1;
		count += k != INT32_MAX;
		correct += k == 0;
		top5 += k < 5;
	}
	sum = team_sum(sum, TEAM_BLOCK);
	weight = team_sum(weight, TEAM_BLOCK);
	count = team_sum(count, TEAM_BLOCK);
	correct = team_sum(correct, TEAM_BLOCK);
	top5 = team_sum(top5, TEAM_BLOCK);
	if (threadIdx.x == 0) {
		a.metrics->loss += sum;
		a.metrics->weight += weight;
		a.metrics->count += count;
		a.metrics->correct += correct;
		a.metrics->top5 += top5;
	}
}

#endif
