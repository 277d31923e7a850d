/* embedding, embedding_bag, the gradients of their tables, and the updates of the rows of a batch's tokens. The kernels of the forward pass
 * are in embedding_forward.cu.
 *
 * A gradient sorts its entries, the pairs of a token and its position, by token and then by position: first it sorts tiles of TILE entries
 * in shared memory; then it merges four sorted sequences to one until one is left. A run is the sorted entries of one token. A warp sums a
 * chunk of CHUNK sorted entries in 32 columns; if a run crosses chunks, its sums in these chunks are added in order afterwards.
 * So no result depends on timing, many warps share the sum of a token that fills half of a batch, and only the time to zero a stored
 * gradient depends on the number of rows of the table. */
#include "cuda/embedding.cuh"
#include "cuda/optim_step.cuh"

#define BLOCK 256
#define TILE GT_CU_SORT_TILE
#define CHUNK 16 /* number of sorted entries that a warp sums */
#define WAYS 4   /* sorted sequences that are merged to one; a power of two */
#define WARPS (BLOCK / 32)

/* ---- the order of the entries ---------------------------------------------------------------------------------------------------- */
/* Returns entry e with its token in the upper half. An entry without a gradient in this call gets the token `rows` and sorts last. */
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

/* Merges groups of WAYS sorted sequences of 1 << size_log entries. In the merged sequence, an entry follows the smaller entries of its own
 * sequence and of the other sequences of its group. */
__global__ void __launch_bounds__(BLOCK) merge_tiles(const uint64_t *from, uint64_t *to, int32_t entries, int size_log)
{
	after_previous();
	int32_t i = (int32_t)(blockIdx.x * BLOCK + threadIdx.x), size = 1 << size_log;
	if (i >= entries)
		return;
	int32_t own = i >> size_log, group = own & ~(WAYS - 1), n[WAYS], at[WAYS] = {};
	uint64_t mine = from[i];
	int64_t place = ((int64_t)group << size_log) + (i & (size - 1));
	const uint64_t *first = from + ((int64_t)group << size_log);
#pragma unroll
	for (int k = 0; k < WAYS; k++) {
		int64_t left = entries - ((int64_t)(group + k) << size_log);
		n[k] = group + k == own || left < 0 ? 0 : left < size ? (int32_t)left : size;
	}
	for (int32_t half = size / 2; half; half /= 2)
#pragma unroll
		for (int k = 0; k < WAYS; k++)
			if (at[k] + half <= n[k] && first[((int64_t)k << size_log) + at[k] + half - 1] < mine)
				at[k] += half;
#pragma unroll
	for (int k = 0; k < WAYS; k++)
		place += at[k] + (at[k] < n[k] && first[((int64_t)k << size_log) + at[k]] < mine);
	to[place] = mine;
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

/* The two uses of the summed gradient of a row: add_to_row adds it to dw, apply_to_row updates the table by sgd without momentum. */
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

/* Returns the address of one of the two sums that a chunk stores for runs that cross its ends. side 0: the run that began before the
 * chunk; 1: the run that begins in the chunk and continues after it. */
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

/* The warp of the chunk in which a run begins adds the run's sums from the later chunks. */
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
/* Sorts the entries into a.sorted. The tiles are sorted into the array from which the last merge ends in a.sorted. */
static cudaError_t launch_sort(const embedding_args &a, cudaStream_t s)
{
	int64_t tiles = ceil_div(a.entries, TILE);
	int merges = 0, size_log = 0;
	while ((int64_t)1 << size_log < TILE)
		size_log++;
	for (int64_t sequences = tiles; sequences > 1; sequences = ceil_div(sequences, WAYS))
		merges++;
	embedding_args first = a;
	first.tile = merges % 2 ? a.tile : a.sorted;
	uint64_t *from = first.tile, *to = merges % 2 ? a.sorted : a.tile;
	cudaError_t e = launch(sort_tiles, dim3((unsigned)tiles), dim3(TILE / 2), s, first);
	for (int i = 0; i < merges && e == cudaSuccess; i++) {
		e = launch(merge_tiles, dim3((unsigned)ceil_div(a.entries, BLOCK)), dim3(BLOCK), s, (const uint64_t *)from, to, (int32_t)a.entries,
		           size_log);
		for (int w = WAYS; w > 1; w /= 2)
			size_log++;
		uint64_t *swap = from;
		from = to;
		to = swap;
	}
	return e;
}

template <class S> static cudaError_t launch_gradient(const embedding_args &a, cudaStream_t s)
{
	int64_t columns = ceil_div(a.cols, 32);
	dim3 chunks((unsigned)ceil_div(ceil_div(a.entries, CHUNK), WARPS), (unsigned)columns);
	if (columns > 65535)
		return cudaErrorInvalidValue;
	cudaError_t e = cudaSuccess;
	if (a.zero)
		e = cudaMemsetAsync(a.dw, 0, (size_t)(a.rows * a.cols) * sizeof(float), s);
	if (e == cudaSuccess)
		e = launch_sort(a, s);
	if (e == cudaSuccess && a.mode == GT_BAG_MEAN)
		e = launch(bag_shares, dim3((unsigned)ceil_div(a.entries / a.bag, WARPS)), dim3(BLOCK), s, a);
	if (e == cudaSuccess)
		e = launch(a.update ? sum_chunks<S, apply_to_row> : sum_chunks<S, add_to_row>, chunks, dim3(BLOCK), s, a);
	if (e == cudaSuccess && a.entries > CHUNK)
		e = launch(a.update ? join_chunks<apply_to_row> : join_chunks<add_to_row>, chunks, dim3(BLOCK), s, a);
	return e;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
static bool is_bag(int code)
{
	return code == GT_OP_EMBEDDING_BAG || code == GT_OP_EMBEDDING_BAG_DW || code == GT_OP_EMBEDDING_BAG_DW_UPDATE;
}

static bool is_update(int code)
{
	return code == GT_OP_EMBEDDING_DW_UPDATE || code == GT_OP_EMBEDDING_BAG_DW_UPDATE;
}

static bool is_forward(int code)
{
	return code == GT_OP_EMBEDDING || code == GT_OP_EMBEDDING_BAG;
}

static const struct gt_attr_embedding *table_attr(const struct gt_opcall *op)
{
	return is_update(op->code) ? &((const struct gt_attr_embedding_update *)op->attr)->table : (const struct gt_attr_embedding *)op->attr;
}

/* Returns the arguments of a call with their sizes and attributes; the pointers are NULL. */
static embedding_args shape_args(const struct gt_opcall *op)
{
	bool bags = is_bag(op->code), update = is_update(op->code), forward = is_forward(op->code);
	const struct gt_attr_embedding *attr = table_attr(op);
	const struct gt_tdesc *tokens = gt_opcall_operand(op, "tokens"), *table = gt_cu_operand(op, "w", "dw");
	int64_t width = tokens->dim[tokens->rank - 1];
	embedding_args a = {};
	a.mode = bags ? attr->mode : GT_BAG_SUM;
	a.step = attr->column >= 0 ? width : 1;
	a.first = attr->column >= 0 ? attr->column : 0;
	a.entries = gt_tdesc_count(tokens) / a.step;
	a.bag = bags ? width : 1;
	a.rows = a.end = table->dim[0];
	a.cols = table->dim[1];
	a.padding = attr->padding;
	a.zero = !forward && !update && !gt_opcall_adds(op, "dw");
	if (!update)
		return a;
	const struct gt_attr_embedding_update *up = (const struct gt_attr_embedding_update *)op->attr;
	if (up->parts) {
		a.begin = a.rows * up->part / up->parts;
		a.end = a.rows * (up->part + 1) / up->parts;
	}
	a.update = true;
	a.attr = up->update;
	a.seg = *up->update.seg;
	a.attr.seg = NULL;
	return a;
}

static const char *refuse_call(const struct gt_opcall *op)
{
	bool bags = is_bag(op->code), forward = is_forward(op->code);
	const struct gt_tdesc *rows = gt_cu_operand(op, "y", "dy"), *tokens = gt_opcall_operand(op, "tokens");
	int64_t column = table_attr(op)->column;
	if (rows->dtype == GT_F64)
		return "f64 is not supported by the cuda backend (the cpu backend has it)";
	if (column >= 0 && (bags || column >= tokens->dim[tokens->rank - 1]))
		return "the requested column of the tokens does not exist";
	const embedding_args a = shape_args(op);
	if (rows->dim[0] * a.bag != a.entries)
		return "expected one row for each token, or for each bag";
	if (a.rows >= INT32_MAX || a.entries >= INT32_MAX / 2)
		return "there are too many rows, or tokens in a batch";
	if (!forward && a.mode == GT_BAG_MAX && !gt_opcall_operand(op, "idx"))
		return "the gradient of the maximum needs idx";
	return NULL;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const embedding_args a = shape_args(op);
	return is_forward(op->code) ? 0 : (size_t)a.entries * 2 * sizeof *a.tile +
	                                      (size_t)(ceil_div(a.entries, CHUNK) * 2 * a.cols + a.entries / a.bag) * sizeof *a.part;
}

static bool reads_step_args(const struct gt_opcall *op)
{
	return is_update(op->code);
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(embedding_args, tokens, lengths, idx, w, y, dy, dw, scalars)};
	const struct gt_opcall *op = c->op;
	int type = gt_cuda_type(gt_cu_operand(op, "y", "dy")->dtype);
	embedding_args a = shape_args(op);
	GT_CU_BIND(c, slots, &a);
	a.fault = c->fault;
	if (a.mode != GT_BAG_MAX)
		a.idx = NULL;
	if (is_forward(op->code))
		return gt_cu_embedding_forward(type, a, is_bag(op->code), s);
	a.tile = (uint64_t *)c->scratch;
	a.sorted = a.tile + a.entries;
	a.part = (float *)(void *)(a.sorted + a.entries);
	a.share = a.part + ceil_div(a.entries, CHUNK) * 2 * a.cols;
	if (a.update) {
		a.dw = (float *)a.w;
		a.step_args = c->step_args;
	}
	return OF_TYPE(type, launch_gradient)(a, s);
}

GT_CU_FAMILY(embedding, start_call, scratch_bytes, refuse_call, "rows", NULL, reads_step_args)
