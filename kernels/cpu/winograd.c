/* 3x3 convolutions in f32 by Winograd's F(4x4, 3x3) (Lavin & Gray, "Fast algorithms for convolutional neural networks", 2016), which needs
 * 2.25 to 4 times fewer multiplications than the direct sum. A tile of 6x6 pixels of the input and a filter become 36 values each; the 36
 * products of [tiles, in] and [in, out] become tiles of 4x4 pixels of the output:
 *
 *     x --transform_input--> v [36][tiles][in] ---.
 *                                                 multiply --> m [36][tiles][out] --transform_output--> y
 *     w --transform_weights--> u [36][in][out] ---'
 *
 * dx is the same with dy in place of x and the transposed, rotated weights. For dw, each step is replaced by its transpose. Compared with
 * direct convolution, results differ by about 1e-6 of their rms (f32 itself: 2e-7 to 5e-7). `winograd = false` in a config disables it.
 *
 * If there are few tiles and many channels, most of the workspace would be u: 36 MiB for 512 x 512 channels. Then all of v is computed
 * first, and u and m hold a block of output channels at a time. The results are the same, bit for bit.
 *
 * The order of all sums depends on the shapes only, not on the number of threads. */
#include "cpu/loops.h"
#include <omp.h>
#include <string.h>

/* A product: y from x, or dx from dy. For dw, the names are those of the forward product. */
struct gt_wino {
	int64_t n, in, out, h, w, p, q; /* images, channels, sizes of the input and of the output */
	int64_t top, left;              /* padding */
	int64_t rows, cols;             /* tiles of an image */
	int64_t begin, width;           /* the block of output channels that m and u hold: begin … begin + width - 1 */
	const float *x, *b, *res, *dy;
	float *y, *u;
	int act; /* enum gt_act: none, relu or relu6 */
	/* distances in floats: between the 36 products in v, m and u, and between tiles in v and m */
	int64_t stride_in, stride_out, stride_u, ld_in, ld_out;
};

struct place {
	int64_t image, row, col;
};

static inline struct place place_of(const struct gt_wino *g, int64_t tile)
{
	int64_t of = g->rows * g->cols, at = tile % of;
	return (struct place){tile / of, at / g->cols, at % g->cols};
}

struct wino_isa {
	int64_t block; /* number of tiles in a block of a product */
	void (*transform_input)(const struct gt_wino *g, int64_t tile, float *v, int64_t row);
	void (*transform_output)(const struct gt_wino *g, int64_t tile, const float *m, int64_t row);
	void (*transform_dy)(const struct gt_wino *g, int64_t tile, float *m, int64_t row);
	void (*multiply)(const struct gt_wino *g, const float *v, const float *u, float *m, int64_t rows);
	void (*multiply_back)(const struct gt_wino *g, const float *v, const float *m, float *du, int64_t rows, int64_t o, bool add);
	void (*transform_weights)(const struct gt_wino *g, const float *t, int64_t i0, int64_t o0);
	void (*transform_dw)(const struct gt_wino *g, float *t, int64_t i0, int64_t o0);
	int64_t panel; /* columns that multiply_back computes */
};

/* The points of the interpolation are 0, a, -a, b, -b and infinity; a = 1 and b = 2 of the paper lose twice as many bits. The powers are
 * exact in f32. NA and NB are the factors 1 / prod(p - q) of the points a and b. */
#define A1 0.625f
#define A2 (A1 * A1)
#define B1 1.5f
#define B2 (B1 * B1)
#define NA (1 / (2 * A2 * (A2 - B2)))
#define NB (1 / (2 * B2 * (B2 - A2)))

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#define MR 12
#define KC 128 /* length of a part of a sum, whose weights stay in the L1 cache */
#include "cpu/winograd_tile.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#define MR 6
#define KC 256
#include "cpu/winograd_tile.inc"
#pragma GCC pop_options

static const struct wino_isa *choose_isa(void)
{
	return GT_CPU_AVX512 ? &wino_avx512 : GT_CPU_AVX2 ? &wino_avx2 : NULL;
}
#elif defined(__aarch64__)
#include <arm_neon.h>

#include "cpu/vector_neon.inc"
#define MR 12
#define KC 256
#include "cpu/winograd_tile.inc"

static const struct wino_isa *choose_isa(void)
{
	return &wino_neon;
}
#else
static const struct wino_isa *choose_isa(void)
{
	return NULL;
}
#endif

enum pass { FORWARD, DX, DW };

struct wino {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const void *x, *w, *b, *res, *dy;
	void *y, *dx, *dw;
	float *db;
	enum pass pass;
	const struct wino_isa *isa;
	struct gt_wino g;
	int64_t chunk;           /* tiles that a thread (for dw: all threads) transforms before it multiplies them; a multiple of isa->block */
	int64_t block;           /* output channels of a block */
	size_t shared_v;         /* floats of v of all tiles, which all threads share; 0: a thread transforms its tiles chunk by chunk */
	size_t per_thread;       /* floats of v (unless it is shared) and m of a thread */
	float *v;                /* shared v, behind u */
	float *work;             /* v and m of all threads, behind u and the shared v */
	int64_t first, count;    /* for dw: tiles of the current chunk */
	bool add_dw, add_db;
	float *kept;             /* u, if the weights are constant: a launch transforms them only once; NULL: u is in the workspace */
	bool transformed;        /* kept has the transformed weights */
	int finish;              /* an activation that is applied to the whole output, because transform_output lacks it */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(wino, x, w, b, res, dy, y, dx, dw, db)};

/* ---- weights ------------------------------------------------------------------------------------------------------------------------ */
/* Transforms units [begin, end) of the weights, which are [O, I, 3, 3] in memory. A unit is a block of 16 x 16 channels of the product.
 * For dx, the filters are rotated by 180 degrees, and input and output channels are exchanged. */
static void transform_weight_blocks(const void *ctx, int64_t begin, int64_t end)
{
	const struct wino *k = ctx;
	const struct gt_wino *g = &k->g;
	bool back = k->pass == DX;
	for (int64_t unit = begin; unit < end; unit++) {
		float t[9 * 256] __attribute__((aligned(64)));
		int64_t o0 = unit / (g->in / 16) * 16, i0 = unit % (g->in / 16) * 16, from = g->begin + o0;
		for (int o = 0; o < 16; o++)
			for (int i = 0; i < 16; i++) {
				const float *w = (const float *)k->w + (back ? (i0 + i) * g->out + from + o : (from + o) * g->in + i0 + i) * 9;
				for (int j = 0; j < 9; j++)
					t[j * 256 + i * 16 + o] = w[back ? 8 - j : j];
			}
		k->isa->transform_weights(g, t, i0, o0);
	}
}

static void store_dw_blocks(const void *ctx, int64_t begin, int64_t end)
{
	const struct wino *k = ctx;
	const struct gt_wino *g = &k->g;
	for (int64_t unit = begin; unit < end; unit++) {
		float t[9 * 256] __attribute__((aligned(64)));
		int64_t o0 = unit / (g->in / 16) * 16, i0 = unit % (g->in / 16) * 16;
		k->isa->transform_dw(g, t, i0, o0);
		for (int o = 0; o < 16; o++)
			for (int i = 0; i < 16; i++) {
				float *dw = (float *)k->dw + ((g->begin + o0 + o) * g->in + i0 + i) * 9;
				for (int j = 0; j < 9; j++)
					dw[j] = t[j * 256 + i * 16 + o] + (k->add_dw ? dw[j] : 0);
			}
	}
}

/* Selects the block of output channels that begins at `begin`. Returns false if there is none. */
static bool select_block(struct wino *k, int64_t begin)
{
	k->g.begin = begin;
	k->g.width = k->g.out - begin < k->block ? k->g.out - begin : k->block;
	return begin < k->g.out;
}

/* ---- forward and dx ----------------------------------------------------------------------------------------------------------------- */
static int64_t round_up(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

static void clear_rows(float *v, int64_t stride, int64_t ld, int64_t from, int64_t to)
{
	for (int f = 0; f < 36 && from < to; f++)
		memset(v + f * stride + from * ld, 0, (size_t)((to - from) * ld) * sizeof *v);
}

/* Transforms tiles [begin, end) of the input to the shared v, whose rows are the tiles. */
static void transform_tiles(const void *ctx, int64_t begin, int64_t end)
{
	const struct wino *k = ctx;
	const struct gt_wino *g = &k->g;
	for (int64_t i = begin; i < end; i++)
		k->isa->transform_input(g, i, k->v, i);
	clear_rows(k->v, g->stride_in, g->ld_in, end, round_up(end, k->isa->block));
}

static void compute_tiles(const void *ctx, int64_t begin, int64_t end)
{
	const struct wino *k = ctx;
	const struct gt_wino *g = &k->g;
	float *own = k->work + (size_t)omp_get_thread_num() * k->per_thread, *m = k->shared_v ? own : own + 36 * g->stride_in;
	for (int64_t t = begin; t < end; t += k->chunk) {
		int64_t n = end - t < k->chunk ? end - t : k->chunk, rows = round_up(n, k->isa->block);
		const float *v = k->shared_v ? k->v + t * g->ld_in : own;
		for (int64_t i = 0; i < n && !k->shared_v; i++)
			k->isa->transform_input(g, t + i, own, i);
		if (!k->shared_v)
			clear_rows(own, g->stride_in, g->ld_in, n, rows);
		for (int f = 0; f < 36; f++)
			k->isa->multiply(g, v + f * g->stride_in, g->u + f * g->stride_u, m + f * g->stride_out, rows);
		for (int64_t i = 0; i < n; i++)
			k->isa->transform_output(g, t + i, m, i);
	}
}

static void compute_product(struct gt_dev *dev, struct wino *k)
{
	struct gt_wino *g = &k->g;
	int64_t tiles = g->n * g->rows * g->cols;
	if (k->shared_v)
		gt_cpu_for(dev, tiles, k->isa->block, k->isa->block, transform_tiles, k);
	for (int64_t o = 0; select_block(k, o); o += k->block) {
		if (!k->transformed)
			gt_cpu_for(dev, g->in / 16 * (g->width / 16), 1, 1, transform_weight_blocks, k);
		gt_cpu_for(dev, tiles, k->isa->block, k->isa->block, compute_tiles, k);
	}
	k->transformed = k->kept;
	if (k->finish)
		gt_cpu_finish(dev, GT_F32, k->finish, k->y, NULL, g->n * g->p * g->q * g->out);
}

/* ---- dw ----------------------------------------------------------------------------------------------------------------------------- */
static void transform_x(const void *ctx, int64_t begin, int64_t end)
{
	const struct wino *k = ctx;
	for (int64_t i = begin; i < end; i++)
		k->isa->transform_input(&k->g, k->first + i, k->v, i);
}

static void transform_dy(const void *ctx, int64_t begin, int64_t end)
{
	const struct wino *k = ctx;
	for (int64_t i = begin; i < end; i++)
		k->isa->transform_dy(&k->g, k->first + i, k->work, i);
}

/* Computes units [begin, end) of the products. A unit is a panel of columns of one of the 36 products. */
static void multiply_chunk(const void *ctx, int64_t begin, int64_t end)
{
	const struct wino *k = ctx;
	const struct gt_wino *g = &k->g;
	int64_t panels = (g->width + k->isa->panel - 1) / k->isa->panel;
	for (int64_t unit = begin; unit < end; unit++) {
		int64_t f = unit / panels;
		k->isa->multiply_back(g, k->v + f * g->stride_in, k->work + f * g->stride_out, g->u + f * g->stride_u, k->count,
		                      unit % panels * k->isa->panel, k->first > 0);
	}
}

/* Computes the gradient of the weights. Several blocks of output channels are used only if one chunk holds all tiles. */
static void compute_dw(struct gt_dev *dev, struct wino *k)
{
	struct gt_wino *g = &k->g;
	int64_t tiles = g->n * g->rows * g->cols;
	for (int64_t o = 0; select_block(k, o); o += k->block) {
		int64_t panels = (g->width + k->isa->panel - 1) / k->isa->panel;
		for (k->first = 0; k->first < tiles; k->first += k->chunk) {
			k->count = tiles - k->first < k->chunk ? tiles - k->first : k->chunk;
			if (!o)
				gt_cpu_for(dev, k->count, 4, 1, transform_x, k);
			gt_cpu_for(dev, k->count, 4, 1, transform_dy, k);
			gt_cpu_for(dev, 36 * panels, 1, 1, multiply_chunk, k);
		}
		gt_cpu_for(dev, g->in / 16 * (g->width / 16), 1, 1, store_dw_blocks, k);
	}
	if (k->db)
		gt_cpu_sum_bias(dev, &(struct gt_cpu_bias){g->dy, k->db, g->n, g->p * g->q, g->out, k->add_db});
}

/* ---- the kernel --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code launch_wino(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct wino *k = gt_cpu_loop_bind(head, a);
	struct gt_wino *g = &k->g;
	(void)err;
	g->x = k->pass == DX ? k->dy : k->x;
	g->y = k->pass == DX ? k->dx : k->y;
	g->dy = k->dy;
	g->b = k->pass == FORWARD ? k->b : NULL;
	g->res = k->pass == FORWARD ? k->res : NULL;
	g->u = k->kept ? k->kept : a->scratch;
	k->v = k->kept ? a->scratch : g->u + 36 * g->stride_u;
	k->work = k->v + k->shared_v;
	if (k->pass == DW)
		compute_dw(dev, k);
	else
		compute_product(dev, k);
	return GT_OK;
}

static void release_wino(struct gt_kernel *head)
{
	free(((struct wino *)head)->kept);
	free(head);
}

/* Returns whether Winograd's algorithm is faster than the direct sum. Measured against oneDNN's best kernel, one thread, AVX2 and AVX-512
 * (on arm64 nothing has been measured):
 * 1.1 to 2 times as fast with 16 channels, 2 to 3 times with 64 and more. It is slower if more than half of the tiles' pixels are outside
 * of the images, and for so few tiles that transforming the weights dominates, or reading the transformed weights if that is done once. */
static bool is_winograd_faster(const struct gt_attr_conv2d *a, const struct gt_tdesc *x, const struct gt_tdesc *y, bool constant)
{
	int64_t tiles = ((y->dim[2] + 3) / 4) * ((y->dim[3] + 3) / 4);
	return a->kernel[0] == 3 && a->kernel[1] == 3 && a->stride[0] == 1 && a->stride[1] == 1 && a->dilation[0] == 1 && a->dilation[1] == 1 &&
	       a->padding[0] <= 1 && a->padding[1] <= 1 && a->groups <= 1 && x->dtype == GT_F32 && x->dim[1] % 16 == 0 &&
	       y->dim[1] % 16 == 0 && y->dim[2] * y->dim[3] >= 8 * tiles && y->dim[0] * tiles >= (constant ? 16 : 32);
}

#define CHUNK_FLOATS (192 << 10) /* floats of v and m for which the chunk of a thread stays in its L2 cache */
#define DW_FLOATS (2 << 20)      /* floats of v and m for which a chunk of all threads stays in the L3 cache */
#define CHUNK_LEAST 96 /* with fewer tiles, reading the transformed weights would take longer than the products */

#define BLOCK 64 /* output channels of a block of u */

/* Divides v and m into chunks, and u into blocks of `block` output channels. Returns the number of floats in the workspace. For dw, the
 * chunk decides the order of sums, so it must not depend on the number of threads. */
static size_t choose_chunk(struct wino *k, int threads, int64_t block)
{
	struct gt_wino *g = &k->g;
	bool dw = k->pass == DW;
	int64_t rows = k->isa->block, tiles = g->n * g->rows * g->cols, share = dw ? tiles : (tiles + threads - 1) / threads;
	int64_t fit = (dw ? DW_FLOATS : CHUNK_FLOATS) / (36 * (g->in + g->out + 32)), least = dw ? 2 * CHUNK_LEAST : CHUNK_LEAST;
	int64_t n = fit < least ? least : fit;
	bool shared = dw || block < g->out; /* for dw, all threads share one chunk of v */
	k->block = block;
	k->chunk = round_up(n < share ? n : share, rows);
	g->ld_in = g->in + 16; /* the 16 extra floats avoid strides of powers of two, which map to few cache sets */
	g->ld_out = block + 16;
	g->stride_in = (shared && !dw ? round_up(tiles, rows) : k->chunk) * g->ld_in + 16;
	g->stride_out = k->chunk * g->ld_out + 16;
	g->stride_u = g->in * block + 16;
	k->shared_v = shared ? (size_t)(36 * g->stride_in) : 0;
	k->per_thread = (size_t)(36 * (g->stride_out + (shared ? 0 : g->stride_in)));
	return (size_t)(36 * g->stride_u) + k->shared_v + k->per_thread * (size_t)(dw ? 1 : threads);
}

/* Chooses blocks of output channels if they need less than half of the workspace. A block of dw needs all tiles in one chunk. Weights that
 * are kept are transformed whole. Returns the number of floats of u, v and m together. */
static size_t choose_blocks(struct wino *k, int threads, bool keeps)
{
	size_t whole = choose_chunk(k, threads, k->g.out);
	bool possible = !keeps && k->g.out > BLOCK && (k->pass != DW || k->chunk >= k->g.n * k->g.rows * k->g.cols);
	size_t blocks = possible ? choose_chunk(k, threads, BLOCK) : whole;
	return blocks < whole / 2 ? blocks : choose_chunk(k, threads, k->g.out);
}

enum gt_code gt_cpu_winograd_conv(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	enum pass pass = call->code == GT_OP_CONV2D ? FORWARD : call->code == GT_OP_CONV2D_DX ? DX : DW;
	const struct gt_tdesc *x = gt_opcall_operand(call, pass == DX ? "dx" : "x"), *y = gt_opcall_operand(call, pass == FORWARD ? "y" : "dy");
	struct gt_tdesc *w = gt_opcall_operand(call, pass == DW ? "dw" : "w");
	const struct wino_isa *isa = choose_isa();
	struct wino *k;
	*out = NULL;
	if (!isa || !is_winograd_faster(a, x, y, call->constant) || w->dtype != GT_F32 || (!w->any && !gt_tdesc_plain(w)))
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "winograd", err);
	k->loop.head.launch = launch_wino;
	k->pass = pass;
	k->isa = isa;
	k->add_dw = gt_opcall_adds(call, "dw");
	k->add_db = gt_opcall_adds(call, "db");
	const struct gt_tdesc *from = pass == DX ? y : x, *to = pass == DX ? x : y;
	k->g = (struct gt_wino){.n = x->dim[0], .in = from->dim[1], .out = to->dim[1], .h = from->dim[2], .w = from->dim[3], .p = to->dim[2],
	                        .q = to->dim[3], .top = pass == DX ? 2 - a->padding[0] : a->padding[0],
	                        .left = pass == DX ? 2 - a->padding[1] : a->padding[1], .rows = (to->dim[2] + 3) / 4,
	                        .cols = (to->dim[3] + 3) / 4};
	if (pass == FORWARD)
		*(a->act == GT_ACT_RELU || a->act == GT_ACT_RELU6 ? &k->g.act : &k->finish) = a->act;
	size_t floats = choose_blocks(k, gt_cpu_threads(dev), call->constant), weights = (size_t)(36 * k->g.stride_u);
	k->loop.head.scratch = (call->constant ? floats - weights : floats) * sizeof(float);
	if (call->constant) {
		void *kept;
		enum gt_code code = gt_cpu_keep(weights * sizeof(float), &kept, err);
		k->loop.head.release = release_wino;
		if (code != GT_OK) {
			release_wino(&k->loop.head);
			return code;
		}
		k->kept = kept;
	}
	gt_cpu_choose_plain(w);
	*out = &k->loop.head;
	return GT_OK;
}
