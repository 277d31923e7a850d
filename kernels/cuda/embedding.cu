/* embedding, embedding_bag, the gradients of their tables, and the updates of the rows that a batch names.
 *
 * A gradient sorts its entries, the pairs of a token and its place, by token and then by place: tiles of TILE entries in shared memory,
 * then an entry's place among all others by searches in the other tiles. A run is the sorted entries of one token. A warp sums a chunk of
 * GT_CU_ROW_CHUNK sorted entries in 32 columns; where a run goes beyond a chunk, the sums of its chunks are added in order afterwards. So
 * no result depends on timing, a token that fills half of a batch is summed by many warps, and nothing but zeroing a stored gradient
 * depends on the number of rows of the table. */
#include "cuda/optim_step.cuh"

#define BLOCK 256
#define TILE GT_CU_SORT_TILE
#define CHUNK GT_CU_ROW_CHUNK
#define WARPS (BLOCK / 32)

typedef gt_cu_embedding embedding_args;

/* ---- the forward pass ------------------------------------------------------------------------------------------------------------ */
/* Returns the token of entry e. One that the table lacks is reported, and counts as row 0. */
__device__ static inline int64_t token_of(const embedding_args &a, int64_t e)
{
	int64_t id = a.tokens[e * a.step + a.first];
	if (id >= 0 && id < a.rows)
		return id;
	fault(a.fault, GT_CU_FAULT_TOKEN, id, e / a.bag, a.rows);
	return 0;
}

__device__ static inline int64_t length_of(const embedding_args &a, int64_t sample)
{
	int64_t n = a.lengths ? a.lengths[sample] : a.bag;
	return n < 0 ? 0 : n > a.bag ? a.bag : n;
}

template <class S> __global__ void __launch_bounds__(BLOCK) lookup(const embedding_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, e = i / a.cols;
	if (e < a.entries)
		((S *)a.y)[i] = from_float<S>(a.w[token_of(a, e) * a.cols + (i - e * a.cols)]);
}

/* A thread makes one element of y. */
template <class S> __global__ void __launch_bounds__(BLOCK) bag(const embedding_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, s = i / a.cols, c = i - s * a.cols;
	if (s * a.bag >= a.entries)
		return;
	int64_t length = length_of(a, s), count = 0;
	float sum = 0;
	int32_t at = -1;
	for (int64_t t = 0; t < length; t++) {
		int64_t id = token_of(a, s * a.bag + t);
		if (id == a.padding)
			continue;
		float w = a.w[id * a.cols + c];
		bool more = !count || w > sum;
		if (a.mode != GT_BAG_MAX) {
			sum += w;
		} else if (more) {
			sum = w;
			at = (int32_t)t;
		}
		count++;
	}
	((S *)a.y)[i] = from_float<S>(a.mode == GT_BAG_MEAN && count ? sum / (float)count : sum);
	if (a.idx)
		a.idx[i] = at;
}

/* ---- the order of the entries ---------------------------------------------------------------------------------------------------- */
/* Returns entry e with its token in the upper half. One without a gradient here has the token `rows`, and sorts behind all others. */
__device__ static inline uint64_t pair_of(const embedding_args &a, int64_t e)
{
	int64_t id = a.tokens[e * a.step + a.first];
	bool counts = id != a.padding && id >= a.begin && id < a.end && e % a.bag < length_of(a, e / a.bag);
	return (uint64_t)(counts ? id : a.rows) << 32 | (uint64_t)e;
}

__device__ static inline int64_t token_in(uint64_t pair)
{
	return (int64_t)(pair >> 32);
}

/* A block sorts a tile (K. E. Batcher, Sorting networks and their applications, 1968: the bitonic sort). No two pairs are equal. */
__global__ void __launch_bounds__(TILE / 2) sort_tiles(const embedding_args a)
{
	after_previous();
	__shared__ uint64_t pair[TILE];
	int64_t begin = (int64_t)blockIdx.x * TILE;
	int t = (int)threadIdx.x;
	for (int i = t; i < TILE; i += TILE / 2)
		pair[i] = begin + i < a.entries ? pair_of(a, begin + i) : UINT64_MAX;
	for (int size = 2; size <= TILE; size *= 2)
		for (int d = size / 2; d; d /= 2) {
			int i = (t & ~(d - 1)) * 2 | (t & (d - 1));
			__syncthreads();
			uint64_t x = pair[i], y = pair[i + d];
			if ((x > y) == !(i & size)) {
				pair[i] = y;
				pair[i + d] = x;
			}
		}
	__syncthreads();
	for (int i = t; i < TILE; i += TILE / 2)
		if (begin + i < a.entries)
			a.tile[begin + i] = pair[i];
}

/* Puts every entry at its place among all tiles: the number of smaller entries in each. */
__global__ void __launch_bounds__(BLOCK) merge_tiles(const embedding_args a)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, own = i / TILE, place = i - own * TILE;
	if (i >= a.entries)
		return;
	uint64_t mine = a.tile[i];
#pragma unroll 4
	for (int64_t t = 0; t < (a.entries + TILE - 1) / TILE; t++) {
		const uint64_t *tile = a.tile + t * TILE;
		int64_t n = t == own ? 0 : a.entries - t * TILE < TILE ? a.entries - t * TILE : TILE, at = 0;
#pragma unroll
		for (int half = TILE / 2; half; half /= 2)
			if (at + half <= n && tile[at + half - 1] < mine)
				at += half;
		place += at + (at < n && tile[at] < mine);
	}
	a.sorted[place] = mine;
}

/* share[sample] = 1 / number of its tokens that count, by one warp. */
__global__ void __launch_bounds__(BLOCK) bag_shares(const embedding_args a)
{
	after_previous();
	int64_t s = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
	int count = 0;
	if (s * a.bag >= a.entries)
		return;
	for (int64_t t = threadIdx.x % 32; t < length_of(a, s); t += 32)
		count += a.tokens[s * a.bag + t] != a.padding;
	for (int h = 16; h; h /= 2)
		count += __shfl_down_sync(0xffffffffu, count, h);
	if (threadIdx.x % 32 == 0)
		a.share[s] = count ? 1.0f / (float)count : 0;
}

/* ---- the sums of the rows -------------------------------------------------------------------------------------------------------- */
/* Returns the gradient of an entry in column c. */
template <class S> __device__ static inline float gradient_of(const embedding_args &a, uint64_t pair, int64_t c)
{
	uint32_t e = (uint32_t)pair, s = e / (uint32_t)a.bag;
	float g = to_float(((const S *)a.dy)[s * a.cols + c]);
	if (a.mode == GT_BAG_MAX)
		return a.idx[s * a.cols + c] == (int32_t)(e - s * (uint32_t)a.bag) ? g : 0;
	return a.mode == GT_BAG_MEAN ? g * a.share[s] : g;
}

/* What is done with the sum of a row: added to dw, or applied to the table by sgd without momentum. */
struct add_to_row {
	__device__ add_to_row(const embedding_args &) {}
	__device__ float operator()(float dw, float sum) const
	{
		return dw + sum;
	}
};

struct apply_to_row {
	gt_opt_f32 h;
	__device__ apply_to_row(const embedding_args &a)
	{
		__shared__ gt_opt_f32 shared_opt;
		if (threadIdx.x == 0)
			shared_opt = opt_of(GT_OP_SGD, &a.attr, a.seg, a.step_args.dev ? a.step_args.dev->step : a.step_args.host.step,
			                    rate_of(a.step_args, a.seg.lr), 0, a.scalars);
		__syncthreads();
		h = shared_opt;
	}
	__device__ float operator()(float w, float sum) const
	{
		float none[3] = {};
		return step<GT_OP_SGD, 0>::f(h, w, sum, none, h.first, false);
	}
};

/* The two sums of a chunk that belong to runs beyond it: side 0 that of the run which began before it, 1 that of the run which begins in it
 * and goes on behind it. */
__device__ static inline float *part_of(const embedding_args &a, int64_t chunk, int side)
{
	return a.part + (chunk * 2 + side) * a.cols;
}

template <class S, class Use> __global__ void __launch_bounds__(BLOCK) sum_chunks(const embedding_args a)
{
	after_previous();
	if (a.scalars && a.scalars->skip)
		return;
	const Use use(a);
	int64_t chunk = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, begin = chunk * CHUNK;
	int64_t c = (int64_t)blockIdx.y * 32 + threadIdx.x % 32;
	if (begin >= a.entries || c >= a.cols)
		return;
	int32_t token[CHUNK + 1]; /* -1: no entry */
	float g[CHUNK], sum = 0;
#pragma unroll
	for (int i = 0; i < CHUNK; i++) {
		uint64_t pair = begin + i < a.entries ? a.sorted[begin + i] : UINT64_MAX;
		token[i] = (int32_t)token_in(pair);
		g[i] = token_in(pair) < a.rows ? gradient_of<S>(a, pair, c) : 0;
	}
	token[CHUNK] = begin + CHUNK < a.entries ? (int32_t)token_in(a.sorted[begin + CHUNK]) : -1;
	bool before = begin && token_in(a.sorted[begin - 1]) == token[0];
#pragma unroll
	for (int i = 0; i < CHUNK; i++) {
		int64_t id = token[i];
		if (id < 0 || id >= a.rows)
			return;
		sum += g[i];
		bool last = token[i + 1] != id;
		if (before && (last || i == CHUNK - 1)) {
			part_of(a, chunk, 0)[c] = sum;
		} else if (last) {
			float *w = a.dw + id * a.cols + c;
			*w = use(*w, sum);
		} else if (i == CHUNK - 1) {
			part_of(a, chunk, 1)[c] = sum;
		}
		if (last) {
			sum = 0;
			before = false;
		}
	}
}

/* The chunk in which a run begins adds the sums of the chunks up to its end. */
template <class Use> __global__ void __launch_bounds__(BLOCK) join_chunks(const embedding_args a)
{
	after_previous();
	if (a.scalars && a.scalars->skip)
		return;
	const Use use(a);
	int64_t chunk = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, end = (chunk + 1) * CHUNK;
	int64_t c = (int64_t)blockIdx.y * 32 + threadIdx.x % 32;
	if (end >= a.entries || c >= a.cols)
		return;
	int64_t id = token_in(a.sorted[end - 1]), begin = end - CHUNK;
	bool before = begin && token_in(a.sorted[begin - 1]) == id && token_in(a.sorted[begin]) == id;
	if (id >= a.rows || before || token_in(a.sorted[end]) != id)
		return;
	int64_t from = end, to = a.entries; /* the first entry of a larger token is in [from, to] */
	while (from < to) {
		int64_t mid = from + (to - from) / 2;
		if (token_in(a.sorted[mid]) > id)
			to = mid;
		else
			from = mid + 1;
	}
	float sum = part_of(a, chunk, 1)[c];
#pragma unroll 8
	for (int64_t k = chunk + 1; k <= (from - 1) / CHUNK; k++)
		sum += part_of(a, k, 0)[c];
	float *w = a.dw + id * a.cols + c;
	*w = use(*w, sum);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
template <class S> static cudaError_t forward(const embedding_args &a, bool bags, cudaStream_t s)
{
	int64_t n = a.entries / a.bag * a.cols, blocks = ceil_div(n, BLOCK);
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(bags ? bag<S> : lookup<S>, dim3((unsigned)blocks), dim3(BLOCK), s, a);
}

template <class S> static cudaError_t back(const embedding_args &sorting, cudaStream_t s)
{
	embedding_args a = sorting;
	int64_t tiles = ceil_div(a.entries, TILE), columns = ceil_div(a.cols, 32);
	dim3 chunks((unsigned)ceil_div(ceil_div(a.entries, CHUNK), WARPS), (unsigned)columns);
	if (columns > 65535)
		return cudaErrorInvalidValue;
	cudaError_t e = cudaSuccess;
	if (tiles == 1)
		a.tile = a.sorted;
	if (a.zero)
		e = cudaMemsetAsync(a.dw, 0, (size_t)(a.rows * a.cols) * sizeof(float), s);
	if (e == cudaSuccess)
		e = launch(sort_tiles, dim3((unsigned)tiles), dim3(TILE / 2), s, a);
	if (e == cudaSuccess && tiles > 1)
		e = launch(merge_tiles, dim3((unsigned)ceil_div(a.entries, BLOCK)), dim3(BLOCK), s, a);
	if (e == cudaSuccess && a.mode == GT_BAG_MEAN)
		e = launch(bag_shares, dim3((unsigned)ceil_div(a.entries / a.bag, WARPS)), dim3(BLOCK), s, a);
	if (e == cudaSuccess)
		e = launch(a.update ? sum_chunks<S, apply_to_row> : sum_chunks<S, add_to_row>, chunks, dim3(BLOCK), s, a);
	if (e == cudaSuccess && a.entries > CHUNK)
		e = launch(a.update ? join_chunks<apply_to_row> : join_chunks<add_to_row>, chunks, dim3(BLOCK), s, a);
	return e;
}

cudaError_t gt_cu_embedding_start(int type, bool bags, const struct gt_cu_embedding *a, cudaStream_t s)
{
	return a->dy ? OF_TYPE(type, back)(*a, s) : OF_TYPE(type, forward)(*a, bags, s);
}
