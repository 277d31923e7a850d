/* The last layer of a classifier. It has so few outputs that most of a library product's cost would be its launch. linear+loss computes
 * rows and their losses in one kernel, linear.dx+dw both gradients. Sums are f32, in an order that depends on the shape only. offers.c has
 * the limits of both operations. */
#include "cuda/loss.cuh"

#define WARPS (TEAM_BLOCK / 32)
#define COLS 32  /* number of columns of x for which a block of head_back computes dx and dw */
#define LANES 8  /* number of rows that a block of head_back processes at once */
#define PIECE 64 /* number of rows of dy that are in shared memory at a time */

/* A linear layer with few outputs and the loss after it. x [rows, in], w [cols, in]; writes y [rows, cols], which the loss reads. */
struct head_args {
	const void *x, *w;
	const float *bias; /* NULL: none */
	void *y;
	int64_t in;
	loss_args loss; /* arguments of the loss, whose x is the member y of this struct */
};

/* The gradients of a linear layer with few outputs: dx = dy w, but 0 where mask <= 0; dw = dy' x; db = the column sums of dy. If add_dw or
 * add_db is true, dw or db is added to the existing values. db may be NULL. */
struct head_back_args {
	const void *dy, *x, *w, *mask; /* mask may be x; NULL: no mask */
	void *dx;
	float *dw, *db;
	int64_t rows, in, cols;
	bool add_dw, add_db;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
/* Adds to each output the products of a row of x and its weights for up to V columns. x points to the first of these columns in the row,
 * w to the same column of the weights, end to the end of the row. With VECTOR, V columns exist and are read at once. */
template <class S, bool VECTOR>
__device__ static inline void add_products(float (&sum)[GT_CU_HEAD_COLS], const head_args &a, const S *x, const S *end, const S *w)
{
	constexpr int V = width<S>::n, C = GT_CU_HEAD_COLS;
	int cols = (int)a.loss.cols;
	if constexpr (VECTOR) {
		float v[V], u[V];
		unpack_vector(v, *(const uint4 *)x, S());
#pragma unroll
		for (int c = 0; c < C; c++, w += a.in) {
			if (c >= cols)
				break;
			unpack_vector(u, *(const uint4 *)w, S());
#pragma unroll
			for (int j = 0; j < V; j++)
				sum[c] += v[j] * u[j];
		}
	} else {
#pragma unroll 1
		for (int j = 0; j < V && x + j < end; j++) {
			float v = to_float(x[j]);
#pragma unroll
			for (int c = 0; c < C; c++)
				if (c < cols)
					sum[c] += v * to_float(w[c * a.in + j]);
		}
	}
}

/* A block computes one row. Its threads share the sum over `in`; lane c of the first warp adds up output c, and that warp computes the
 * row's loss. code: operation of the loss, a branch in that warp only. vector: rows of x and of the weights are whole vectors. */
template <class S> __global__ void __launch_bounds__(TEAM_BLOCK) head_loss(const head_args a, int code, bool vector)
{
	after_previous();
	constexpr int V = width<S>::n, C = GT_CU_HEAD_COLS;
	__shared__ float part[WARPS][C];
	int64_t r = blockIdx.x;
	int cols = (int)a.loss.cols, lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
	const S *x = (const S *)a.x + r * a.in, *end = x + a.in, *w = (const S *)a.w + threadIdx.x * V;
	float sum[C] = {};
	if (vector)
		for (x += threadIdx.x * V; x < end; x += TEAM_BLOCK * V, w += TEAM_BLOCK * V)
			add_products<S, true>(sum, a, x, end, w);
	else
		for (x += threadIdx.x * V; x < end; x += TEAM_BLOCK * V, w += TEAM_BLOCK * V)
			add_products<S, false>(sum, a, x, end, w);
#pragma unroll
	for (int c = 0; c < C; c++) {
		if (c >= cols)
			break;
#pragma unroll
		for (int h = 16; h > 0; h /= 2)
			sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], h);
		if (lane == 0)
			part[warp][c] = sum[c];
	}
	__syncthreads();
	if (warp == 0) {
		if (lane < cols) {
			float y = 0;
#pragma unroll
			for (int i = 0; i < WARPS; i++)
				y += part[i][lane];
			if (a.bias) /* the bias is rounded to S, as the epilogue of a product does (cuda_linear.c) */
				y += to_float(from_float<S>(a.bias[lane]));
			((S *)a.y)[r * cols + lane] = from_float<S>(y);
		}
		__syncwarp();
		if (code == GT_OP_CROSS_ENTROPY)
			loss_row<S, 1, loss_cross_entropy>(a.loss, r, lane, 32);
		else if (code == GT_OP_NLL)
			loss_row<S, 1, loss_nll>(a.loss, r, lane, 32);
		else
			loss_row<S, 1, loss_mse>(a.loss, r, lane, 32);
	}
	if (last_of(a.loss.counter, gridDim.x))
		loss_total(a.loss);
}

/* A block computes 32 columns of dx and of dw; a thread reads every eighth row of one column. C is an upper limit of a.cols. */
template <class S, int C> __global__ void __launch_bounds__(COLS *LANES) head_back(const head_back_args a)
{
	after_previous();
	__shared__ float dy[PIECE][C];
	__shared__ float part[LANES][C][COLS];
	__shared__ float part_db[LANES][C];
	int64_t k = (int64_t)blockIdx.x * COLS + threadIdx.x, cols = a.cols;
	int tx = (int)threadIdx.x, lane = (int)threadIdx.y, me = lane * COLS + tx;
	bool in = k < a.in, bias = a.db && blockIdx.x == 0 && tx < cols;
	float w[C] = {}, dw[C] = {}, db = 0;
#pragma unroll
	for (int c = 0; c < C; c++)
		if (in && c < cols)
			w[c] = to_float(((const S *)a.w)[c * a.in + k]);
	for (int64_t first = 0; first < a.rows; first += PIECE) {
		int n = (int)(a.rows - first < PIECE ? a.rows - first : PIECE);
		__syncthreads(); /* all threads have to read the last piece before it is overwritten */
		for (int i = me; i < PIECE * C; i += COLS * LANES) {
			int r = i / C, c = i % C;
			dy[r][c] = r < n && c < cols ? to_float(((const S *)a.dy)[(first + r) * cols + c]) : 0;
		}
		__syncthreads();
#pragma unroll 2
		for (int r = lane; r < n; r += LANES) {
			int64_t at = (first + r) * a.in + k;
			float x = in ? to_float(((const S *)a.x)[at]) : 0, g = 0;
#pragma unroll
			for (int c = 0; c < C; c++) {
				dw[c] += dy[r][c] * x;
				g += dy[r][c] * w[c];
			}
			if (bias)
				db += dy[r][tx];
			if (!in)
				continue;
			if (a.mask && to_float(((const S *)a.mask)[at]) <= 0)
				g = 0;
			((S *)a.dx)[at] = from_float<S>(g);
		}
	}
#pragma unroll
	for (int c = 0; c < C; c++)
		part[lane][c][tx] = dw[c];
	if (bias)
		part_db[lane][tx] = db;
	__syncthreads();
	for (int c = lane; in && c < cols; c += LANES) {
		float sum = part[0][c][tx];
#pragma unroll
		for (int i = 1; i < LANES; i++)
			sum += part[i][c][tx];
		float *to = a.dw + c * a.in + k;
		*to = a.add_dw ? *to + sum : sum;
	}
	if (bias && lane == 0) {
		float sum = part_db[0][tx];
#pragma unroll
		for (int i = 1; i < LANES; i++)
			sum += part_db[i][tx];
		a.db[tx] = a.add_db ? a.db[tx] + sum : sum;
	}
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
typedef void head_fn(const head_args, int, bool);
typedef void head_back_fn(const head_back_args);

static void set_open_layout(struct gt_tdesc *d)
{
	if (d && d->any)
		*d = gt_tdesc_make(d->dtype, d->rank, d->dim, false);
}

static const char *refuse_head(const struct gt_opcall *op)
{
	struct gt_tdesc *w = gt_opcall_operand(op, "w");
	set_open_layout(w);
	return gt_tdesc_plain(w) ? NULL : "weights must have the plain layout";
}

/* Returns the bytes for loss and rank of each row; see loss_args. */
static size_t head_scratch(const struct gt_opcall *op)
{
	return (size_t)gt_opcall_operand(op, "x")->dim[0] * (sizeof(double) + sizeof(int32_t));
}

static cudaError_t start_head(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(head_args, x, w, y), GT_SLOT_AS(head_args, "b", bias), GT_SLOT_AS(head_args, "target", loss.target),
	    GT_SLOT_AS(head_args, "scale", loss.scale), GT_SLOT_AS(head_args, "metrics", loss.metrics), GT_SLOT_AS(head_args, "dy", loss.dx)};
	const struct gt_attr_linear_loss *attr = (const struct gt_attr_linear_loss *)c->op->attr;
	const struct gt_tdesc *x = gt_opcall_operand(c->op, "x");
	int64_t rows = x->dim[0], vector = c->type == GT_CU_F32 ? width<float>::n : width<bf16>::n;
	head_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.in = x->dim[1];
	a.loss.x = a.y;
	a.loss.loss = (double *)c->scratch;
	a.loss.rank = (int32_t *)(a.loss.loss + rows);
	a.loss.counter = c->counter;
	a.loss.rows = rows, a.loss.cols = attr->linear.out;
	a.loss.number[0] = attr->code == GT_OP_CROSS_ENTROPY ? attr->loss.number[0] : 0;
	a.loss.ignore = attr->code == GT_OP_MSE ? INT64_MIN : attr->loss.ignore_index;
	a.loss.fault = c->fault;
	a.loss.step_args = c->step_args;
	head_fn *fn = OF_TYPE(c->type, head_loss);
	bool known = attr->code == GT_OP_CROSS_ENTROPY || attr->code == GT_OP_NLL || attr->code == GT_OP_MSE;
	bool aligned = ((uintptr_t)a.x | (uintptr_t)a.w) % 16 == 0 && a.in % vector == 0;
	if (!known || a.loss.cols > GT_CU_HEAD_COLS || !grid_fits(rows))
		return cudaErrorInvalidValue;
	return rows ? launch(fn, dim3((unsigned)rows), dim3(TEAM_BLOCK), s, a, attr->code, aligned) : cudaSuccess;
}

GT_CU_FAMILY(head, start_head, head_scratch, refuse_head, "rows", gt_cu_one_counter, gt_cu_always)

static const char *refuse_head_back(const struct gt_opcall *op)
{
	struct gt_tdesc *w = gt_opcall_operand(op, "w"), *dw = gt_opcall_operand(op, "dw");
	set_open_layout(w);
	set_open_layout(dw);
	return gt_tdesc_plain(w) && gt_tdesc_plain(dw) ? NULL : "weights and their gradients must have the plain layout";
}

static cudaError_t start_head_back(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(head_back_args, dy, x, w, dx, dw, db), GT_SLOT_AS(head_back_args, "y", mask)};
	const struct gt_tdesc *x = gt_opcall_operand(c->op, "x");
	head_back_args a = {};
	GT_CU_BIND(c, slots, &a);
	a.rows = x->dim[0], a.in = x->dim[1], a.cols = gt_opcall_operand(c->op, "dy")->dim[1];
	a.add_dw = gt_opcall_adds(c->op, "dw");
	a.add_db = gt_opcall_adds(c->op, "db");
	int64_t blocks = ceil_div(a.in, COLS);
	head_back_fn *fn = a.cols <= 16 ? OF_TYPE(c->type, head_back, 16) : OF_TYPE(c->type, head_back, GT_CU_HEAD_COLS);
	if (a.cols > GT_CU_HEAD_COLS || !grid_fits(blocks))
		return cudaErrorInvalidValue;
	return blocks ? launch(fn, dim3((unsigned)blocks), dim3(COLS, LANES), s, a) : cudaSuccess;
}

GT_CU_FAMILY(head_back, start_head_back, NULL, refuse_head_back, "columns")
