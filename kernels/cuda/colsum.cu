/* Operations that sum over rows: bias.db and views.mean.
 *
 * The gradient of a bias is the sum of each column of dy. For few rows (the batch of a linear layer) one kernel sums them: a block owns
 * 32 columns, its 8 warps read every eighth row in order, and the sums of the warps are added in order. Many rows (the pixels of a
 * convolution) need the two-level reduction of columns.cuh. */
#include "cuda/columns.cuh"
#include "aug.h"

#define COLS 32
#define LANES 8
#define FEW 1024 /* maximum number of rows that sum_columns sums in one kernel: a warp reads 128 of them, four at a time */
#define VIEWS_BLOCK 256

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
template <class S>
__global__ void __launch_bounds__(COLS *LANES) sum_columns(const void *data, float *out, int64_t rows, int64_t cols, bool add)
{
	after_previous();
	__shared__ float part[LANES][COLS];
	const S *x = (const S *)data;
	int64_t c = (int64_t)blockIdx.x * COLS + threadIdx.x;
	float sum = 0;
	if (c < cols)
#pragma unroll 4
		for (int64_t r = threadIdx.y; r < rows; r += LANES)
			sum += to_float(x[r * cols + c]);
	part[threadIdx.y][threadIdx.x] = sum;
	__syncthreads();
	if (threadIdx.y || c >= cols)
		return;
#pragma unroll
	for (int i = 1; i < LANES; i++)
		sum += part[i][threadIdx.x];
	out[c] = add ? out[c] + sum : sum;
}

template <class S, int V> __global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT) colsum_pieces(const S *x, float *part, const tiling t)
{
	after_previous();
	const place p = place_of<V>(t);
	float sum[V] = {};
	if (p.in) {
		int64_t step = p.ty * t.cols;
		const S *at = x + p.row * t.cols + p.col;
		int left = p.n;
		for (; left >= COL_AHEAD; left -= COL_AHEAD, at += COL_AHEAD * step) {
			packed<S, V> q[COL_AHEAD];
#pragma unroll
			for (int k = 0; k < COL_AHEAD; k++)
				q[k].fetch(at + k * step);
#pragma unroll
			for (int k = 0; k < COL_AHEAD; k++) {
				float v[V];
				q[k].get(v);
#pragma unroll
				for (int j = 0; j < V; j++)
					sum[j] += v[j];
			}
		}
		for (; left > 0; left--, at += step) {
			packed<S, V> q;
			float v[V];
			q.fetch(at);
			q.get(v);
#pragma unroll
			for (int j = 0; j < V; j++)
				sum[j] += v[j];
		}
	}
	block_columns<V>(sum, p);
	if (!p.y && p.in)
		put_f32<V>(part + (int64_t)blockIdx.y * t.cols + p.col, sum);
}

__global__ void __launch_bounds__(FINISH_COLS *FINISH_LANES) colsum_finish(const float *part, float *out, bool add, const tiling t)
{
	after_previous();
	int64_t c = (int64_t)blockIdx.x * FINISH_COLS + threadIdx.x;
	double sum = finish_plane(part, t, 1, 0, c);
	if (threadIdx.y == 0 && c < t.cols)
		out[c] = add ? out[c] + (float)sum : (float)sum;
}

/* Computes the weighted mean of the views of each sample. A thread computes one element of the output; the sum is f32. */
template <class S> __global__ void __launch_bounds__(VIEWS_BLOCK) views_mean(const S *x, S *y, int64_t n, int views)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * VIEWS_BLOCK + threadIdx.x;
	float sum = 0;
	if (i >= n)
		return;
	for (int v = 0; v < views; v++)
		sum += gt_aug_view_weight(views, v) * to_float(x[v * n + i]);
	y[i] = from_float<S>(sum);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
template <class S, int V>
static cudaError_t sum_pieces(const void *x, float *out, int64_t rows, int64_t cols, bool add, float *part, cudaStream_t s)
{
	struct tiling t = tile_columns(rows, cols, V);
	cudaError_t e = launch(colsum_pieces<S, V>, tiling_grid(t), dim3(COL_BLOCK), s, (const S *)x, part, t);
	if (e != cudaSuccess)
		return e;
	return launch(colsum_finish, finish_grid(cols), dim3(FINISH_COLS, FINISH_LANES), s, (const float *)part, out, add, t);
}

template <class S>
static cudaError_t sum_many_rows(const void *x, float *out, int64_t rows, int64_t cols, bool add, float *part, cudaStream_t s)
{
	return columns_of<S>(cols, (uintptr_t)x) == 1 ? sum_pieces<S, 1>(x, out, rows, cols, add, part, s)
	                                              : sum_pieces<S, width<S>::n>(x, out, rows, cols, add, part, s);
}

size_t gt_cu_colsum_scratch(int64_t rows, int64_t cols)
{
	return rows > FEW ? (size_t)tiling_floats(rows, cols, 1) * sizeof(float) : 0;
}

cudaError_t gt_cu_colsum_start(int type, const void *x, float *out, int64_t rows, int64_t cols, bool add, void *scratch, cudaStream_t s)
{
	int64_t blocks = ceil_div(cols, COLS);
	dim3 grid((unsigned)blocks), block(COLS, LANES);
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	if (rows > FEW)
		return OF_TYPE(type, sum_many_rows)(x, out, rows, cols, add, (float *)scratch, s);
	return launch(OF_TYPE(type, sum_columns), grid, block, s, x, out, rows, cols, add);
}

template <class S> static cudaError_t launch_views(const void *x, void *y, int64_t n, int views, cudaStream_t s)
{
	int64_t blocks = ceil_div(n, VIEWS_BLOCK);
	if (!blocks)
		return cudaSuccess;
	if (!grid_fits(blocks))
		return cudaErrorInvalidValue;
	return launch(views_mean<S>, dim3((unsigned)blocks), dim3(VIEWS_BLOCK), s, (const S *)x, (S *)y, n, views);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the number of rows of C elements. Dimension 1 is contiguous in a rank-4 tensor (NHWC) too, so every tensor consists of such
 * rows. */
static int64_t count_rows(const struct gt_opcall *op)
{
	return gt_tdesc_count(gt_opcall_input(op)) / gt_opcall_input(op)->dim[1];
}

static const char *name_variant(const struct gt_opcall *op)
{
	return op->code == GT_OP_VIEWS_MEAN ? "views" : "colsum";
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	return op->code == GT_OP_VIEWS_MEAN ? 0 : gt_cu_colsum_scratch(count_rows(op), gt_opcall_input(op)->dim[1]);
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	struct args {
		const void *x;
		void *y;
	} a = {};
	static const struct gt_operand_slot slots[] = {GT_SLOTS(args, x, y), GT_SLOT_AS(args, "dy", x), GT_SLOT_AS(args, "db", y)};
	const struct gt_opcall *op = c->op;
	int64_t rows = count_rows(op), cols = gt_opcall_input(op)->dim[1];
	GT_CU_BIND(c, slots, &a);
	if (op->code != GT_OP_VIEWS_MEAN)
		return gt_cu_colsum_start(c->type, a.x, (float *)a.y, rows, cols, gt_opcall_adds(op, "db"), c->scratch, s);
	int views = ((const struct gt_attr_views *)op->attr)->views;
	return OF_TYPE(c->type, launch_views)(a.x, a.y, gt_tdesc_count(gt_opcall_output(op)), views, s);
}

GT_CU_FAMILY(rowsum, start_call, scratch_bytes, NULL, NULL, NULL, NULL, name_variant)
