/* Pooling over NHWC. A thread computes V neighbouring channels (16 bytes) of one pixel of its output. Gradients are gathered: a pixel of
 * the input reads the windows that contain it, in ascending order. Nothing is added atomically, and the order is the same as in
 * kernels/cpu/pool.c. A mean multiplies by the reciprocal of its divisor. For a power of two the result equals that of a division, else
 * there is one more f32 rounding. If a mean has one window that covers the whole image, a block sums the pixels of a sample (planes.cuh).
 * Rules for windows and divisors: PyTorch's MaxPoolKernel, AvgPoolKernel, AdaptivePooling (ATen/native). */
#include "cuda/planes.cuh"

#define BLOCK 256
#define MAX_Y 65535

/* x is [n, h, w, c] and y is [n, oh, ow, c]. idx has the shape of y and may be NULL in the forward pass of a maximum. Pairs are height,
 * width. If adaptive is true, the pooling windows follow from the shapes alone. */
struct pool_args {
	const void *in; /* x, or dy */
	void *out;      /* y, or dx */
	/* maximum pooling: position of each maximum, which the forward pass writes and the backward pass reads: i32, in the input plane, or, if
	 * `bytes` is true, u8, in the pooling window */
	void *idx;
	bool bytes;
	int64_t n, c;
	int32_t h, w, oh, ow;
	int32_t kernel[2], stride[2], padding[2];
	bool adaptive, include_pad;
};

/* ---- kernels --------------------------------------------------------------------------------------------------------------------- */
struct span {
	int32_t begin, end;
	int32_t size; /* number of rows or columns by which an average divides */
};

/* Returns the range of pixels of window o in one direction, clipped to the image. With ceil_mode a window may extend beyond the right
 * padding, where pixels are ignored. */
template <int D> __host__ __device__ static inline span window_of(const pool_args &a, int32_t o)
{
	int32_t in = D ? a.w : a.h, out = D ? a.ow : a.oh, begin, end, size;
	if (a.adaptive) {
		begin = (int32_t)((uint32_t)o * (uint32_t)in / (uint32_t)out);
		end = (int32_t)(((uint32_t)(o + 1) * (uint32_t)in + (uint32_t)out - 1) / (uint32_t)out);
		return span{begin, end, end - begin};
	}
	begin = o * a.stride[D] - a.padding[D];
	end = begin + a.kernel[D];
	end = end < in + a.padding[D] ? end : in + a.padding[D];
	size = end - begin;
	begin = begin > 0 ? begin : 0;
	end = end < in ? end : in;
	return span{begin, end, a.include_pad ? size : end - begin};
}

/* Returns the range [begin, end) of windows that contain index i along one dimension. */
template <int D> __device__ static inline span windows_of(const pool_args &a, int32_t i)
{
	int32_t in = D ? a.w : a.h, out = D ? a.ow : a.oh, begin, end;
	if (a.adaptive) {
		begin = (int32_t)((uint32_t)i * (uint32_t)out / (uint32_t)in);
		end = (int32_t)(((uint32_t)(i + 1) * (uint32_t)out + (uint32_t)in - 1) / (uint32_t)in);
	} else {
		int32_t at = i + a.padding[D];
		begin = at < a.kernel[D] ? 0 : (at - a.kernel[D]) / a.stride[D] + 1;
		end = at / a.stride[D] + 1;
	}
	return span{begin, end < out ? end : out, 0};
}

/* Sets pixel and channel of this thread in a row of `width` pixels. Returns false if the thread is beyond the row. */
template <int V> __device__ static inline bool pixel_of(int64_t c, int32_t width, int32_t &pixel, int64_t &channel)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, units = (uint32_t)(c / V);
	pixel = (int32_t)(i / units);
	channel = (int64_t)(i - (uint32_t)pixel * units) * V;
	return pixel < width;
}

template <int V> __device__ static inline void put_idx(int32_t *p, const int32_t *v)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1)
			p[0] = v[0];
		else
			*(uint4 *)(p + j) = make_uint4((unsigned)v[j], (unsigned)v[j + 1], (unsigned)v[j + 2], (unsigned)v[j + 3]);
}

template <int V> __device__ static inline void get_idx(int32_t *v, const int32_t *p)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1) {
			v[0] = p[0];
		} else {
			uint4 u = *(const uint4 *)(p + j);
			v[j] = (int32_t)u.x, v[j + 1] = (int32_t)u.y, v[j + 2] = (int32_t)u.z, v[j + 3] = (int32_t)u.w;
		}
}

template <int V> __device__ static inline void put_idx(uint8_t *p, const int32_t *v)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1)
			p[0] = (uint8_t)v[0];
		else
			*(uint32_t *)(p + j) = (uint32_t)v[j] | (uint32_t)v[j + 1] << 8 | (uint32_t)v[j + 2] << 16 | (uint32_t)v[j + 3] << 24;
}

template <int V> __device__ static inline void get_idx(int32_t *v, const uint8_t *p)
{
#pragma unroll
	for (int j = 0; j < V; j += 4)
		if constexpr (V == 1) {
			v[0] = p[0];
		} else {
			uint32_t u = *(const uint32_t *)(p + j);
			v[j] = u & 255, v[j + 1] = u >> 8 & 255, v[j + 2] = u >> 16 & 255, v[j + 3] = u >> 24;
		}
}

/* Returns the index of pixel (y, x) as the maximum of window (oy, ox). I is the type of the indices. */
template <class I> __device__ static inline int32_t index_of(const pool_args &a, int32_t y, int32_t x, int32_t oy, int32_t ox)
{
	if (sizeof(I) > 1)
		return y * a.w + x;
	return (y + a.padding[0] - oy * a.stride[0]) * a.kernel[1] + x + a.padding[1] - ox * a.stride[1];
}

/* The forward pass: a thread computes one pixel of the output from its window. */
template <class S, int V, bool MAX, class I> __global__ void __launch_bounds__(BLOCK, 4) pool_windows(const pool_args a)
{
	after_previous();
	int32_t ox;
	int64_t ch, rows = a.n * a.oh;
	if (!pixel_of<V>(a.c, a.ow, ox, ch))
		return;
	const span w = window_of<1>(a, ox);
	for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows; r += (int64_t)gridDim.y * blockDim.y) {
		int64_t n = (uint32_t)r / (uint32_t)a.oh;
		int32_t oy = (int32_t)(r - n * a.oh);
		const span h = window_of<0>(a, oy);
		const S *x = (const S *)a.in + n * a.h * a.w * a.c + ch;
		int64_t at = (r * a.ow + ox) * a.c + ch;
		float best[V], v[V];
		int32_t where[V];
#pragma unroll
		for (int j = 0; j < V; j++) {
			best[j] = MAX ? -INFINITY : 0;
			where[j] = index_of<I>(a, h.begin, w.begin, oy, ox);
		}
		for (int32_t p = h.begin; p < h.end; p++)
			for (int32_t q = w.begin; q < w.end; q++) {
				int32_t tap = index_of<I>(a, p, q, oy, ox);
				packed<S, V> u;
				u.fetch(x + (int64_t)(p * a.w + q) * a.c);
				u.get(v);
#pragma unroll
				for (int j = 0; j < V; j++) {
					bool take = v[j] > best[j] || v[j] != v[j];
					if (MAX) {
						best[j] = take ? v[j] : best[j];
						where[j] = take ? tap : where[j];
					} else {
						best[j] += v[j];
					}
				}
			}
		if (!MAX) {
			float share = 1 / ((float)h.size * (float)w.size);
#pragma unroll
			for (int j = 0; j < V; j++)
				best[j] *= share;
		}
		store_packed<S, V>((S *)a.out + at, best);
		if (MAX && a.idx)
			put_idx<V>((I *)a.idx + at, where);
	}
}

/* The forward pass of a mean over the whole image. share: reciprocal of the divisor. */
template <class S, int V>
__global__ void __launch_bounds__(COL_BLOCK, COL_RESIDENT)
    pool_planes(const pool_args a, float share, const tiling t, float *part, uint32_t *counter)
{
	after_previous();
	place p;
	int64_t sample;
	float sum[V];
	if (!sum_plane<S, V, false>((const S *)a.in, NULL, t, part, counter, sum, p, sample))
		return;
#pragma unroll
	for (int j = 0; j < V; j++)
		sum[j] *= share;
	store_packed<S, V>((S *)a.out + sample * t.cols + p.col, sum);
}

template <class S, int V, bool MAX, class I> __global__ void __launch_bounds__(BLOCK, 4) pool_dx(const pool_args a)
{
	after_previous();
	int32_t ix;
	int64_t ch, rows = a.n * a.h;
	if (!pixel_of<V>(a.c, a.w, ix, ch))
		return;
	const span ws = windows_of<1>(a, ix);
	for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < rows; r += (int64_t)gridDim.y * blockDim.y) {
		int64_t n = (uint32_t)r / (uint32_t)a.h;
		int32_t iy = (int32_t)(r - n * a.h);
		const span hs = windows_of<0>(a, iy);
		float sum[V] = {}, v[V];
		for (int32_t p = hs.begin; p < hs.end; p++)
			for (int32_t q = ws.begin; q < ws.end; q++) {
				int64_t at = ((n * a.oh + p) * a.ow + q) * a.c + ch;
				packed<S, V> u;
				u.fetch((const S *)a.in + at);
				u.get(v);
				if (MAX) {
					int32_t from[V];
					int32_t me = index_of<I>(a, iy, ix, p, q);
					get_idx<V>(from, (const I *)a.idx + at);
#pragma unroll
					for (int j = 0; j < V; j++)
						sum[j] += from[j] == me ? v[j] : 0;
				} else {
					float share = 1 / ((float)window_of<0>(a, p).size * (float)window_of<1>(a, q).size);
#pragma unroll
					for (int j = 0; j < V; j++)
						sum[j] += v[j] * share;
				}
			}
		store_packed<S, V>((S *)a.out + (r * a.w + ix) * a.c + ch, sum);
	}
}

/* ---- launchers ------------------------------------------------------------------------------------------------------------------- */
typedef void pool_fn(const pool_args);

template <class S, int V> static pool_fn *find_kernel(bool max, bool back, bool bytes)
{
	if (!max)
		return back ? pool_dx<S, V, false, int32_t> : pool_windows<S, V, false, int32_t>;
	if (bytes)
		return back ? pool_dx<S, V, true, uint8_t> : pool_windows<S, V, true, uint8_t>;
	return back ? pool_dx<S, V, true, int32_t> : pool_windows<S, V, true, int32_t>;
}

template <class S> static cudaError_t launch_pool(bool max, bool back, const pool_args &a, cudaStream_t s)
{
	int v = columns_of<S>(a.c, (uintptr_t)a.in | (uintptr_t)a.out | (uintptr_t)a.idx);
	pool_fn *fn = v == 1 ? find_kernel<S, 1>(max, back, a.bytes) : find_kernel<S, width<S>::n>(max, back, a.bytes);
	int64_t units = (back ? a.w : a.ow) * (a.c / v), rows = a.n * (back ? a.h : a.oh);
	unsigned tx = 32;
	while (tx < BLOCK && tx < units)
		tx *= 2;
	int64_t x = ceil_div(units, tx), y = ceil_div(rows, BLOCK / tx);
	if (!units || !rows)
		return cudaSuccess;
	if (!grid_fits(x) || rows > UINT32_MAX || units > INT32_MAX)
		return cudaErrorInvalidValue;
	return launch(fn, dim3((unsigned)x, (unsigned)(y < MAX_Y ? y : MAX_Y)), dim3(tx, BLOCK / tx), s, a);
}

template <class S, int V> static cudaError_t launch_planes(const struct gt_cu_call *c, const pool_args &a, float share, cudaStream_t s)
{
	struct tiling t = tile_columns((int64_t)a.h * a.w, a.c, V, a.n);
	if (!grid_fits(a.n * t.tiles))
		return cudaErrorInvalidValue;
	if (!a.n || !a.c)
		return cudaSuccess;
	return launch(pool_planes<S, V>, planes_grid(a.n, t), dim3(COL_BLOCK), s, a, share, t, (float *)c->scratch, (uint32_t *)c->counter);
}

/* Launches a mean over the whole image. */
template <class S> static cudaError_t launch_global(const struct gt_cu_call *c, const pool_args &a, cudaStream_t s)
{
	float share = 1 / ((float)window_of<0>(a, 0).size * (float)window_of<1>(a, 0).size);
	return columns_of<S>(a.c, (uintptr_t)a.in | (uintptr_t)a.out) == 1 ? launch_planes<S, 1>(c, a, share, s)
	                                                                    : launch_planes<S, width<S>::n>(c, a, share, s);
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------------- */
static bool is_max(int code)
{
	return code == GT_OP_MAXPOOL2D || code == GT_OP_ADAPTIVE_MAXPOOL2D || code == GT_OP_MAXPOOL2D_DX;
}

static bool is_gradient(int code)
{
	return code == GT_OP_MAXPOOL2D_DX || code == GT_OP_AVGPOOL2D_DX || code == GT_OP_ADAPTIVE_AVGPOOL2D_DX;
}

/* Returns the attributes with the pooling windows of a call, or NULL if pooling is adaptive. The gradient of adaptive_maxpool2d has
 * attributes without windows (kernel 0, 0); its windows follow from the shapes. */
static const struct gt_attr_pool2d *windows_attr(const struct gt_opcall *op)
{
	const struct gt_attr_pool2d *attr = (const struct gt_attr_pool2d *)op->attr;
	switch (op->code) {
	case GT_OP_MAXPOOL2D:
	case GT_OP_AVGPOOL2D:
	case GT_OP_AVGPOOL2D_DX:
		return attr;
	case GT_OP_MAXPOOL2D_DX:
		return attr->kernel[0] ? attr : NULL;
	default:
		return NULL;
	}
}

/* Returns true if, in direction d, every pooling window overlaps the image and 32-bit arithmetic can hold all indices. */
static bool windows_fit(const struct gt_attr_pool2d *attr, int d, int64_t in, int64_t out)
{
	if (in < 1 || out < 1 || (in + 1) * (out + 1) > INT32_MAX)
		return false;
	if (!attr)
		return true;
	int64_t k = attr->kernel[d], s = attr->stride[d], p = attr->padding[d];
	return k > 0 && s > 0 && p >= 0 && p < k && k + p + in + s < INT32_MAX / 2 && out * s < INT32_MAX / 2 && (out - 1) * s - p < in;
}

static const char *refuse_call(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_cu_operand(op, "x", "dx"), *y = gt_cu_operand(op, "y", "dy");
	const struct gt_attr_pool2d *attr = windows_attr(op);
	if (!windows_fit(attr, 0, x->dim[2], y->dim[2]) || !windows_fit(attr, 1, x->dim[3], y->dim[3]))
		return "a window contains no pixel of the image, or the image is too large";
	int64_t rows = x->dim[0] * (x->dim[2] > y->dim[2] ? x->dim[2] : y->dim[2]), width = x->dim[3] > y->dim[3] ? x->dim[3] : y->dim[3];
	if (rows > UINT32_MAX || width * x->dim[1] > INT32_MAX || x->dim[2] * x->dim[3] > INT32_MAX)
		return "the images are too large";
	return NULL;
}

static const char *name_variant(const struct gt_opcall *op)
{
	bool back = is_gradient(op->code);
	return is_max(op->code) ? (back ? "gather:max" : "max") : (back ? "gather:mean" : "mean");
}

/* Returns the arguments of a call with their sizes and attributes; the pointers are NULL. */
static pool_args shape_args(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_cu_operand(op, "x", "dx"), *y = gt_cu_operand(op, "y", "dy"), *idx = gt_opcall_operand(op, "idx");
	const struct gt_attr_pool2d *attr = windows_attr(op);
	pool_args a = {};
	a.bytes = idx && idx->dtype == GT_U8;
	a.n = x->dim[0], a.c = x->dim[1];
	a.h = (int32_t)x->dim[2], a.w = (int32_t)x->dim[3];
	a.oh = (int32_t)y->dim[2], a.ow = (int32_t)y->dim[3];
	a.adaptive = !attr;
	for (int d = 0; attr && d < 2; d++) {
		a.kernel[d] = (int32_t)attr->kernel[d];
		a.stride[d] = (int32_t)attr->stride[d];
		a.padding[d] = (int32_t)attr->padding[d];
	}
	a.include_pad = attr && attr->count_include_pad && !is_max(op->code);
	return a;
}

/* Returns whether a call is the forward pass of a mean whose only window contains the whole image. */
static bool is_global(const struct gt_opcall *op)
{
	const pool_args a = shape_args(op);
	if (is_max(op->code) || is_gradient(op->code) || a.oh != 1 || a.ow != 1)
		return false;
	const span h = window_of<0>(a, 0), w = window_of<1>(a, 0);
	return h.begin == 0 && h.end == a.h && w.begin == 0 && w.end == a.w;
}

static size_t scratch_bytes(const struct gt_opcall *op)
{
	const pool_args a = shape_args(op);
	return is_global(op) ? (size_t)planes_floats(a.n, (int64_t)a.h * a.w, a.c) * sizeof(float) : 0;
}

static int64_t count_counters(const struct gt_opcall *op)
{
	const struct gt_tdesc *x = gt_cu_operand(op, "x", "dx");
	return is_global(op) ? planes_counters(x->dim[0], x->dim[1]) : 0;
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOT_AS(pool_args, "idx", idx), GT_SLOT_AS(pool_args, "x", in), GT_SLOT_AS(pool_args, "dy", in),
	    GT_SLOT_AS(pool_args, "y", out), GT_SLOT_AS(pool_args, "dx", out)};
	const struct gt_opcall *op = c->op;
	pool_args a = shape_args(op);
	GT_CU_BIND(c, slots, &a);
	if (is_global(op))
		return OF_TYPE(c->type, launch_global)(c, a, s);
	return OF_TYPE(c->type, launch_pool)(is_max(op->code), is_gradient(op->code), a, s);
}

GT_CU_FAMILY(pool, start_call, scratch_bytes, refuse_call, NULL, count_counters, NULL, name_variant)
