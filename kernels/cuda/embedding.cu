/* embedding, embedding_bag and the gradients of their tables. A gradient first sorts the entries, the pairs of a token and its place, by
 * token: each entry counts the entries that come before it, so that the order does not depend on timing. A block then sums one row of the
 * table in the order of the places. */
#include "cuda/device.cuh"

#define BLOCK 256
#define COLS 128 /* threads of a block that sums a row of the table */

struct embedding_args {
	const int32_t *tokens, *lengths; /* lengths NULL: every token counts */
	int32_t *idx;
	const void *dy;
	const float *w;
	void *y;
	float *dw;
	int32_t *order;                  /* workspace: places of the sorted entries */
	int64_t entries, step, first, bag, rows, cols, padding;
	int mode;                        /* enum gt_bag */
	struct gt_cu_fault *fault;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
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

/* Returns the token of an entry that has a gradient, or `rows` for another, which sorts behind all. */
__device__ static inline int32_t key_of(const embedding_args &a, int64_t e)
{
	int64_t id = a.tokens[e * a.step + a.first];
	bool counts = id != a.padding && id >= 0 && id < a.rows && e % a.bag < length_of(a, e / a.bag);
	return (int32_t)(counts ? id : a.rows);
}

/* order[number of entries before e] = e, sorted by token and then by place. */
__global__ void __launch_bounds__(BLOCK) sort_entries(const embedding_args a)
{
	after_previous();
	__shared__ int32_t key[BLOCK];
	int64_t e = (int64_t)blockIdx.x * BLOCK + threadIdx.x, before = 0;
	int32_t mine = e < a.entries ? key_of(a, e) : 0;
	for (int64_t from = 0; from < a.entries; from += BLOCK) {
		int64_t other = from + threadIdx.x;
		__syncthreads();
		key[threadIdx.x] = other < a.entries ? key_of(a, other) : INT32_MAX;
		__syncthreads();
		int32_t n = 0;
#pragma unroll 8
		for (int j = 0; j < BLOCK; j++)
			n += key[j] < mine || (key[j] == mine && from + j < e);
		before += n;
	}
	if (e < a.entries)
		a.order[before] = (int32_t)e;
}

/* A block of COLS columns whose place in the order begins the entries of a token sums them and adds them to the row of the table. */
template <class S> __global__ void __launch_bounds__(COLS) sum_rows(const embedding_args a)
{
	after_previous();
	int64_t i = blockIdx.x, c = (int64_t)blockIdx.y * COLS + threadIdx.x;
	int32_t id = key_of(a, a.order[i]);
	if (id >= a.rows || (i && key_of(a, a.order[i - 1]) == id) || c >= a.cols)
		return;
	float sum = 0;
	for (; i < a.entries; i++) {
		int64_t e = a.order[i], s = e / a.bag;
		if (key_of(a, e) != id)
			break;
		float g = to_float(((const S *)a.dy)[s * a.cols + c]);
		if (a.mode == GT_BAG_MAX) {
			sum += a.idx[s * a.cols + c] == (int32_t)(e - s * a.bag) ? g : 0;
		} else if (a.mode == GT_BAG_MEAN) {
			int64_t length = length_of(a, s), count = 0;
			for (int64_t t = 0; t < length; t++)
				count += a.tokens[(s * a.bag + t) * a.step + a.first] != a.padding;
			sum += g * (1.0f / (float)count);
		} else {
			sum += g;
		}
	}
	a.dw[(int64_t)id * a.cols + c] += sum;
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
static bool is_bag(int code)
{
	return code == GT_OP_EMBEDDING_BAG || code == GT_OP_EMBEDDING_BAG_DW;
}

static bool is_back(int code)
{
	return code == GT_OP_EMBEDDING_DW || code == GT_OP_EMBEDDING_BAG_DW;
}

static const struct gt_tdesc *activation_of(const struct gt_opcall *op)
{
	return is_back(op->code) ? op->in[0] : op->out[0];
}

static embedding_args args_of(const struct gt_opcall *op)
{
	const struct gt_attr_embedding *at = (const struct gt_attr_embedding *)op->attr;
	const struct gt_tdesc *tokens = op->in[is_back(op->code)], *table = is_back(op->code) ? op->out[0] : op->in[is_bag(op->code) ? 2 : 1];
	embedding_args a = {};
	int64_t width = tokens->dim[tokens->rank - 1];
	a.step = at->column >= 0 ? width : 1;
	a.first = at->column >= 0 ? at->column : 0;
	a.entries = gt_tdesc_count(tokens) / a.step;
	a.bag = is_bag(op->code) ? width : 1;
	a.rows = table->dim[0], a.cols = table->dim[1];
	a.padding = at->padding;
	a.mode = is_bag(op->code) ? at->mode : GT_BAG_SUM;
	return a;
}

static const char *refuse(const struct gt_opcall *op)
{
	const struct gt_attr_embedding *at = (const struct gt_attr_embedding *)op->attr;
	const struct gt_tdesc *tokens = op->in[is_back(op->code)];
	if (activation_of(op)->dtype == GT_F64)
		return "f64 is not supported by the cuda backend (the cpu backend has it)";
	if (at->column >= 0 && (is_bag(op->code) || at->column >= tokens->dim[tokens->rank - 1]))
		return "the tokens have no such column";
	embedding_args a = args_of(op);
	if (activation_of(op)->dim[0] * a.bag != a.entries)
		return "there is not one row for each token, or for each bag";
	if (a.rows >= INT32_MAX || a.entries >= INT32_MAX / 2)
		return "there are too many rows, or tokens in a batch";
	bool idx = is_back(op->code) ? op->nin > 3 && op->in[3] : op->nout > 1 && op->out[1];
	return op->code == GT_OP_EMBEDDING_BAG_DW && a.mode == GT_BAG_MAX && !idx ? "the gradient of the maximum needs idx" : NULL;
}

static size_t scratch(const struct gt_opcall *op)
{
	return is_back(op->code) ? (size_t)args_of(op).entries * sizeof(int32_t) : 0;
}

template <class S> static cudaError_t run(const embedding_args &a, int code, bool add, cudaStream_t s)
{
	if (!is_back(code)) {
		int64_t n = a.entries / a.bag * a.cols, blocks = ceil_div(n, BLOCK);
		if (!grid_fits(blocks))
			return cudaErrorInvalidValue;
		return launch(is_bag(code) ? bag<S> : lookup<S>, dim3((unsigned)blocks), dim3(BLOCK), s, a);
	}
	cudaError_t e = cudaSuccess;
	int64_t tiles = ceil_div(a.cols, COLS);
	if (tiles > 65535)
		return cudaErrorInvalidValue;
	if (!add)
		e = cudaMemsetAsync(a.dw, 0, (size_t)(a.rows * a.cols) * sizeof(float), s);
	if (e == cudaSuccess)
		e = launch(sort_entries, dim3((unsigned)ceil_div(a.entries, BLOCK)), dim3(BLOCK), s, a);
	if (e == cudaSuccess)
		e = launch(sum_rows<S>, dim3((unsigned)a.entries, (unsigned)tiles), dim3(COLS), s, a);
	return e;
}

static cudaError_t start(const struct gt_cu_call *c, cudaStream_t s)
{
	const struct gt_opcall *op = c->op;
	bool back = is_back(op->code), b = is_bag(op->code);
	embedding_args a = args_of(op);
	a.tokens = (const int32_t *)gt_cu_in(c, back);
	a.lengths = b ? (const int32_t *)gt_cu_in(c, 1 + back) : NULL;
	a.fault = c->fault;
	if (back) {
		a.dy = gt_cu_in(c, 0);
		a.idx = b ? (int32_t *)gt_cu_in(c, 3) : NULL;
		a.dw = (float *)gt_cu_out(c, 0);
		a.order = (int32_t *)c->scratch;
	} else {
		a.w = (const float *)gt_cu_in(c, b ? 2 : 1);
		a.y = gt_cu_out(c, 0);
		a.idx = b && a.mode == GT_BAG_MAX ? (int32_t *)gt_cu_out(c, 1) : NULL;
	}
	int type = gt_cu_activation(activation_of(op)->dtype);
	return OF_TYPE(type, run)(a, op->code, op->accumulate & 1, s);
}

GT_CU_FAMILY(embedding, start, scratch, refuse, "rows")
