/* The forward pass of embedding and embedding_bag. */
#include "cuda/columns.cuh"
#include "cuda/embedding.cuh"

#define BLOCK 256
#define AHEAD 4    /* tokens of a bag whose rows a thread reads before it adds the first one */
#define PER_LANE 8 /* tokens of a bag for each lane, if the block has enough threads */

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Returns the token id of entry e. A token outside the table is reported and replaced by 0. */
__device__ static inline int64_t check_token(const embedding_args &a, int64_t id, int64_t e)
{
	if (id >= 0 && id < a.rows)
		return id;
	report_fault(a.fault, GT_CU_FAULT_TOKEN, id, e / a.bag, a.rows);
	return 0;
}

__device__ static inline int64_t token_of(const embedding_args &a, int64_t e)
{
	return check_token(a, a.tokens[e * a.step + a.first], e);
}

/* A thread copies V neighbouring elements of a row. */
template <class S, int V> __global__ void __launch_bounds__(BLOCK) lookup_rows(const embedding_args a)
{
	after_previous();
	int64_t units = a.cols / V, i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, e = i / units;
	float w[V];
	if (e >= a.entries)
		return;
	get_f32<V>(w, a.w + token_of(a, e) * a.cols + (i - e * units) * V);
	store_packed<S, V>((S *)a.y + i * V, w);
}

/* The threads of a block are divided into samples, each into 1 << ty_log lanes of 1 << tx_log threads. */
struct bag_tiling {
	int tx_log, ty_log;
};

/* The largest element of a column among some tokens of a bag, and its token; at is -1 before the first token. */
struct largest {
	float w;
	int32_t at;
	__device__ void take(float v, int32_t t)
	{
		bool first = at < 0, number = v == v, same = v == w && t < at;
		if (t >= 0 && (first || (number && !(v <= w)) || same || (v != v && w != w && t < at))) {
			w = v;
			at = t;
		}
	}
};

/* A thread computes V columns of one sample from the tokens of its lane, every (1 << ty_log)-th one; the lanes are added as a tree. The
 * order of the sum follows from the size of the bag and the number of columns. */
template <class S, int V, bool MAX> __global__ void __launch_bounds__(BLOCK, 4) reduce_bags(const embedding_args a, const bag_tiling t)
{
	after_previous();
	__shared__ float part[V][BLOCK];
	__shared__ int32_t part_at[MAX ? V : 1][BLOCK], part_count[BLOCK], part_first[BLOCK];
	int me = (int)threadIdx.x, lanes = 1 << t.ty_log, lane = me >> t.tx_log & (lanes - 1);
	int64_t s = ((int64_t)blockIdx.x * BLOCK + me) >> (t.tx_log + t.ty_log);
	int64_t c = (((int64_t)blockIdx.y << t.tx_log) + (me & ((1 << t.tx_log) - 1))) * V;
	bool in = s * a.bag < a.entries && c < a.cols;
	int32_t length = in ? (int32_t)length_of(a, s) : 0, count = 0, first = INT32_MAX;
	float sum[V] = {};
	largest top[V];
#pragma unroll
	for (int j = 0; j < V; j++)
		top[j] = {0, -1};
	for (int32_t begin = lane; begin < length; begin += lanes * AHEAD) {
		int32_t id[AHEAD]; /* -1: no token, or padding */
		float w[AHEAD][V];
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			int32_t at = begin + k * lanes;
			id[k] = at < length ? a.tokens[(s * a.bag + at) * a.step + a.first] : -1;
		}
#pragma unroll
		for (int k = 0; k < AHEAD; k++) /* after all loads, because a load is not moved across the report of a fault */
			if (begin + k * lanes < length) {
				id[k] = (int32_t)check_token(a, id[k], s * a.bag + begin + k * lanes);
				id[k] = id[k] == a.padding ? -1 : id[k];
			}
#pragma unroll
		for (int k = 0; k < AHEAD; k++)
			if (id[k] >= 0)
				get_f32<V>(w[k], a.w + id[k] * a.cols + c);
#pragma unroll
		for (int k = 0; k < AHEAD; k++) {
			if (id[k] < 0)
				continue;
			first = count++ ? first : begin + k * lanes;
#pragma unroll
			for (int j = 0; j < V; j++)
				if (MAX)
					top[j].take(w[k][j], begin + k * lanes);
				else
					sum[j] += w[k][j];
		}
	}
	for (int h = lanes / 2; h > 0; h /= 2) {
		if (lane >= h && lane < 2 * h) {
#pragma unroll
			for (int j = 0; j < V; j++) {
				part[j][me] = MAX ? top[j].w : sum[j];
				if (MAX)
					part_at[j][me] = top[j].at;
			}
			part_count[me] = count;
			part_first[me] = first;
		}
		__syncthreads();
		int from = me + (h << t.tx_log);
		if (lane < h) {
#pragma unroll
			for (int j = 0; j < V; j++)
				if (MAX)
					top[j].take(part[j][from], part_at[j][from]);
				else
					sum[j] += part[j][from];
			count += part_count[from];
			first = first < part_first[from] ? first : part_first[from];
		}
	}
	if (lane || !in)
		return;
#pragma unroll
	for (int j = 0; j < V; j++) {
		if (MAX) { /* a NaN stays only if it is the first element: a comparison with it is false */
			float begin = count ? a.w[token_of(a, s * a.bag + first) * a.cols + c + j] : 0;
			top[j] = begin == begin ? top[j] : largest{begin, first};
			if (a.idx)
				a.idx[s * a.cols + c + j] = top[j].at;
		}
		((S *)a.y)[s * a.cols + c + j] = from_float<S>(MAX ? top[j].w : a.mode == GT_BAG_MEAN && count ? sum[j] / (float)count : sum[j]);
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
template <class S> static cudaError_t launch_lookup(const embedding_args &a, cudaStream_t s)
{
	int v = columns_of<S>(a.cols, (uintptr_t)a.w | (uintptr_t)a.y);
	int64_t blocks = ceil_div(a.entries * (a.cols / v), BLOCK);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(v == 1 ? lookup_rows<S, 1> : lookup_rows<S, width<S>::n>, dim3((unsigned)blocks), dim3(BLOCK), s, a);
}

template <class S> static cudaError_t launch_bags(const embedding_args &a, cudaStream_t s)
{
	int v = columns_of<float>(a.cols, (uintptr_t)a.w);
	bool max = a.mode == GT_BAG_MAX;
	bag_tiling t = {};
	while (t.tx_log < 5 && ((int64_t)v << t.tx_log) < a.cols)
		t.tx_log++;
	while (t.tx_log + t.ty_log < 8 && ((int64_t)PER_LANE << t.ty_log) < a.bag)
		t.ty_log++;
	int64_t blocks = ceil_div(a.entries / a.bag, BLOCK >> (t.tx_log + t.ty_log)), columns = ceil_div(a.cols, (int64_t)v << t.tx_log);
	if (!grid_fits(blocks) || columns > 65535)
		return cudaErrorInvalidValue;
	dim3 grid((unsigned)blocks, (unsigned)columns);
	if (v == 1)
		return launch(max ? reduce_bags<S, 1, true> : reduce_bags<S, 1, false>, grid, dim3(BLOCK), s, a, t);
	return launch(max ? reduce_bags<S, 4, true> : reduce_bags<S, 4, false>, grid, dim3(BLOCK), s, a, t);
}

cudaError_t gt_cu_embedding_forward(int type, const embedding_args &a, bool bags, cudaStream_t s)
{
	return bags ? OF_TYPE(type, launch_bags)(a, s) : OF_TYPE(type, launch_lookup)(a, s);
}
