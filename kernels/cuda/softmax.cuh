/* The sum of a softmax, in one pass over a row: losses, softmax and log_softmax. */
#ifndef GT_KERNELS_CUDA_SOFTMAX_CUH
#define GT_KERNELS_CUDA_SOFTMAX_CUH

#include "cuda/columns.cuh"

/* Rows with fewer elements are read one element at a time. head.cu computes rows of at most GT_CU_HEAD_COLS elements with the same order of
 * sums, which depends on V. */
#define LEAST_VECTOR_ROW 128

/* Returns the number of elements that a thread reads at once of rows of `cols` elements; at: the bitwise or of the addresses. */
template <class S> static inline int row_vector(int64_t cols, uintptr_t at)
{
	return cols < LEAST_VECTOR_ROW ? 1 : columns_of<S>(cols, at);
}

/* Reads V elements of a row, which begins at a multiple of 16 bytes if V > 1. */
template <class S, int V> __device__ static inline void get_elements(float *v, const S *p)
{
	packed<S, V> q;
	q.fetch(p);
	q.get(v);
}

/* The largest element of a row, and sums over all elements x of exp(x - max) and of x - max. While elements are added, the sums of a thread
 * are relative to its largest element so far. */
struct softmax_sums {
	float max = -INFINITY, exp = 0, linear = 0;
	int count = 0; /* elements of this thread */

	/* Makes the sums relative to `top` >= max. Before the first element above -infinity, they are relative to 0. */
	__device__ void raise(float top)
	{
		float now = top > -INFINITY ? top : 0, before = max > -INFINITY ? max : 0;
		if (exp != 0)
			exp *= gt_exp_f32(max - top);
		linear += (float)count * (before - now);
		max = top;
	}
	template <int V> __device__ void add(const float *v)
	{
		float top = max;
#pragma unroll
		for (int j = 0; j < V; j++)
			top = fmaxf(top, v[j]);
		if (top > max)
			raise(top);
		float base = max > -INFINITY ? max : 0;
#pragma unroll
		for (int j = 0; j < V; j++) {
			float z = v[j] - base;
			exp += gt_exp_f32(z);
			linear += z;
		}
		count += V;
	}
	/* Combines the threads of a team. All of them get the result; linear is combined only if with_linear is true. */
	__device__ void join(int team, bool with_linear)
	{
		float top = team_max(max, team);
		if (top > max)
			raise(top);
		exp = team_sum(exp, team);
		if (with_linear)
			linear = team_sum(linear, team);
	}
};

#endif
