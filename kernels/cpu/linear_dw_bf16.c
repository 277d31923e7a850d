/* The gradients of a linear layer's weights and bias in bf16, for processors with the instructions of avx512_bf16: dw = dyT x, db = the sum
 * of the rows of dy.
 *
 * dw is f32 in the layout in which oneDNN's bf16 products read weights, blocks of 16 inputs and 16 to 64 outputs, in which two inputs of an
 * output are neighbours (8b64a2b). oneDNN's own gradient has another layout; converting it takes as long as the product of a small batch.
 * Here a tile of dw is in registers for the whole batch, and is interleaved when it is stored. dw is larger than the caches of most
 * processors, so that this single pass over it decides.
 *
 * x and dy are packed into panels, 16 inputs and as many outputs as a block has: two samples of a column are one word, the first one in
 * the upper half, which the instruction multiplies first. Every element of dw is summed over the batch in order, so that results do not
 * depend on the number of threads. With larger batches, packing takes as long as the conversion: oneDNN is as fast with 2,048 samples. */
#include "cpu/loops.h"
#include "ew.h"
#include <string.h>

#define BLOCK_IN 16
#define MOST_OUT 64
#define MOST_ROWS 1024 /* samples of the largest batch */
#define DB_ROWS 64     /* rows of dy that are summed in f32 */

struct linear_dw {
	struct gt_cpu_loop loop;
	const uint16_t *dy, *x;
	float *dw, *db;
	uint32_t *px, *pdy; /* [panels][pairs][BLOCK_IN], [panels][pairs][block_out] */
	int64_t m, in, out, pairs;
	int64_t block_out, panels_in, panels_out;
	int64_t step_in, step_out; /* elements of dw from one block to the next along each dimension */
	bool add_dw, add_db;
};

#if defined(__x86_64__)
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,prefer-vector-width=512")

/* Packs panel q of the columns of a matrix [m, n], `width` columns; columns beyond n and the sample beyond m are 0. */
static void pack_panel(uint32_t *to, const uint16_t *a, int64_t m, int64_t n, int64_t q, int64_t width)
{
	int64_t j0 = q * width, cols = n - j0 < width ? n - j0 : width;
	if (cols < width)
		memset(to, 0, (size_t)((m + 1) / 2 * width) * sizeof *to);
	for (int64_t l = 0; l < m / 2; l++, to += width) {
		const uint16_t *even = a + 2 * l * n + j0, *odd = even + n;
		for (int64_t j = 0; j < cols; j++)
			to[j] = (uint32_t)even[j] << 16 | odd[j];
	}
	for (int64_t j = 0; m % 2 && j < cols; j++)
		to[j] = (uint32_t)a[(m - 1) * n + j0 + j] << 16;
}

/* Packs panels [begin, end), where the panels of x have the lower numbers, and sums the columns of dy's panels. */
static void pack_panels(const void *ctx, int64_t begin, int64_t end)
{
	const struct linear_dw *k = ctx;
	for (int64_t p = begin; p < end; p++) {
		int64_t q = p - k->panels_in, width = k->block_out, j0 = q * width, cols = k->out - j0 < width ? k->out - j0 : width;
		if (q < 0) {
			pack_panel(k->px + p * k->pairs * BLOCK_IN, k->x, k->m, k->in, p, BLOCK_IN);
			continue;
		}
		pack_panel(k->pdy + q * k->pairs * width, k->dy, k->m, k->out, q, width);
		if (!k->db)
			continue;
		double sum[MOST_OUT] = {0};
		for (int64_t i = 0; i < k->m; i += DB_ROWS) {
			int64_t last = i + DB_ROWS < k->m ? i + DB_ROWS : k->m;
			float part[MOST_OUT] = {0};
			for (int64_t r = i; r < last; r++)
				for (int64_t j = 0; j < cols; j++)
					part[j] += gt_bf16_to_f32(k->dy[r * k->out + j0 + j]);
			for (int64_t j = 0; j < cols; j++)
				sum[j] += (double)part[j];
		}
		for (int64_t j = 0; j < cols; j++)
			k->db[j0 + j] = (float)sum[j] + (k->add_db ? k->db[j0 + j] : 0);
	}
}

/* Stores two rows of 16 sums, interleaved; `add`: adds them. */
static inline __attribute__((always_inline)) void store_pair(float *to, __m512 even, __m512 odd, const bool add)
{
	const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
	__m512 first = _mm512_permutex2var_ps(even, low, odd);
	__m512 second = _mm512_permutex2var_ps(even, _mm512_add_epi32(low, _mm512_set1_epi32(8)), odd);
	_mm512_storeu_ps(to, add ? _mm512_add_ps(_mm512_loadu_ps(to), first) : first);
	_mm512_storeu_ps(to + 16, add ? _mm512_add_ps(_mm512_loadu_ps(to + 16), second) : second);
}

/* Computes `rows` rows of a block, with `vectors` vectors of 16 outputs: x and dy are at the first row and pair. */
static inline __attribute__((always_inline)) void make_tile(float *to, const uint32_t *x, const uint32_t *dy, int64_t pairs,
                                                            const int rows, const int vectors, const bool add)
{
	__m512 acc[6][4];
#pragma GCC unroll 6
	for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			acc[i][v] = _mm512_setzero_ps();
	for (int64_t l = 0; l < pairs; l++) {
		__m512i w[4];
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			w[v] = _mm512_loadu_si512(dy + (l * vectors + v) * 16);
#pragma GCC unroll 6
		for (int i = 0; i < rows; i++) {
			__m512i s = _mm512_set1_epi32((int)x[l * BLOCK_IN + i]);
#pragma GCC unroll 4
			for (int v = 0; v < vectors; v++)
				acc[i][v] = _mm512_dpbf16_ps(acc[i][v], (__m512bh)s, (__m512bh)w[v]);
		}
	}
#pragma GCC unroll 3
	for (int i = 0; i < rows; i += 2)
#pragma GCC unroll 4
		for (int v = 0; v < vectors; v++)
			store_pair(to + (i * vectors + 2 * v) * 16, acc[i][v], acc[i + 1][v], add);
}

static inline __attribute__((always_inline)) void make_block(float *to, const uint32_t *x, const uint32_t *dy, int64_t pairs,
                                                             const int vectors, const bool add)
{
	make_tile(to, x, dy, pairs, 6, vectors, add);
	make_tile(to + 6 * vectors * 16, x + 6, dy, pairs, 6, vectors, add);
	make_tile(to + 12 * vectors * 16, x + 12, dy, pairs, 4, vectors, add);
}

static void make_block_of(float *to, const uint32_t *x, const uint32_t *dy, int64_t pairs, int64_t out, bool add)
{
#define OF(vectors)                                                                                                                        \
	case vectors * 16:                                                                                                                     \
		add ? make_block(to, x, dy, pairs, vectors, true) : make_block(to, x, dy, pairs, vectors, false);                                  \
		break;
	switch (out) {
		OF(1)
		OF(2)
		OF(3)
		OF(4)
	}
#undef OF
}

/* Computes blocks [begin, end) of dw, those of one panel of dy after the other. */
static void make_blocks(const void *ctx, int64_t begin, int64_t end)
{
	const struct linear_dw *k = ctx;
	while (begin < end) {
		int64_t q = begin / k->panels_in, first = begin % k->panels_in;
		int64_t last = end - begin < k->panels_in - first ? first + end - begin : k->panels_in;
		for (int64_t p = first; p < last; p++)
			make_block_of(k->dw + p * k->step_in + q * k->step_out, k->px + p * k->pairs * BLOCK_IN,
			              k->pdy + q * k->pairs * k->block_out, k->pairs, k->block_out, k->add_dw);
		begin += last - first;
	}
}
#pragma GCC pop_options

static enum gt_code launch_linear_dw(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct linear_dw *k = gt_cpu_loop_bind(head, a);
	int64_t panels = k->panels_in + k->panels_out, most = k->pairs * MOST_OUT;
	(void)err;
	k->pdy = a->scratch;
	k->px = k->pdy + k->panels_out * k->pairs * k->block_out;
	gt_cpu_for(dev, panels, 16384 / most + 1, 1, pack_panels, k);
	gt_cpu_for(dev, k->panels_in * k->panels_out, 131072 / most + 1, 1, make_blocks, k);
	return GT_OK;
}

/* Returns whether d has blocks of 8 pairs of inputs and a multiple of 16 outputs. */
static bool in_pairs(const struct gt_tdesc *d)
{
	const struct gt_layout *l = &d->layout;
	return !d->any && d->rank == 2 && d->dtype == GT_F32 && l->nblk == 3 && l->blk_dim[0] == 1 && l->blk_dim[1] == 0 &&
	       l->blk_dim[2] == 1 && l->blk[0] * 2 == BLOCK_IN && l->blk[2] == 2 && l->blk[1] % 16 == 0 && l->blk[1] <= MOST_OUT;
}

enum gt_code gt_cpu_linear_dw_bf16(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(linear_dw, dy, x, dw, db)};
	const struct gt_tdesc *x = gt_opcall_operand(call, "x"), *dy = gt_opcall_operand(call, "dy"), *dw = gt_opcall_operand(call, "dw");
	struct linear_dw *k;
	(void)dev;
	*out = NULL;
	if (!GT_CPU_BF16 || !dw || x->dtype != GT_BF16 || x->rank != 2 || x->dim[0] > MOST_ROWS || !gt_tdesc_plain(x) || !gt_tdesc_plain(dy) ||
	    !in_pairs(dw))
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "gemm:avx512_bf16", err);
	k->loop.head.launch = launch_linear_dw;
	k->m = x->dim[0], k->in = x->dim[1], k->out = dy->dim[1], k->pairs = (k->m + 1) / 2;
	k->block_out = dw->layout.blk[1];
	k->panels_in = (k->in + BLOCK_IN - 1) / BLOCK_IN, k->panels_out = (k->out + k->block_out - 1) / k->block_out;
	bool inputs_first = dw->layout.order[0] == 1;
	int64_t block = BLOCK_IN * k->block_out;
	k->step_in = inputs_first ? block * k->panels_out : block;
	k->step_out = inputs_first ? block : block * k->panels_in;
	k->add_dw = gt_opcall_adds(call, "dw");
	k->add_db = gt_opcall_adds(call, "db");
	k->loop.head.scratch = (size_t)(k->pairs * (k->panels_in * BLOCK_IN + k->panels_out * k->block_out)) * sizeof(uint32_t);
	*out = &k->loop.head;
	return GT_OK;
}
#else
enum gt_code gt_cpu_linear_dw_bf16(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	(void)dev, (void)call, (void)err;
	*out = NULL;
	return GT_OK;
}
#endif
