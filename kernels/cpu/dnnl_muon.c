/* The operation muon: momentum over the flat arena, then for each matrix the Newton-Schulz iteration as products of oneDNN's sgemm. A
 * weight has the (blocked) layout of its convolution, so its elements are first copied into the order [out, other dimensions], and copied
 * back at the end. In f64, which is only a reference, the products are plain loops.
 *
 * With a 16-bit work copy (precision = "bf16"), operands and results of the iteration are bf16 and its sums f32, as in torch.optim.Muon
 * and the CUDA backend. They are in the memory of f32: gemm_bf16.c multiplies them, or, on processors without its instructions, sgemm,
 * whose results are then rounded. */
#include "cpu/dnnl_util.h"
#include "cpu/gemm_bf16.h"
#include "cpu/loops.h"
#include "ew.h"
#include "optimizer.h"
#include <stdlib.h>
#include <string.h>

struct matrix {
	int64_t rows, cols, begin, elements; /* elements: number of elements in memory, from `begin` on */
	/* offset of each logical element in memory, relative to `begin`; NULL: logical and memory order are the same */
	int64_t *map;
	struct gt_seg hyper;
	double adjust;
};

struct muon {
	struct gt_cpu_loop loop; /* loop over the elements of one matrix at a time */
	char *p, *buf;
	const char *g;
	const struct gt_scalars *scalars;
	uint16_t *work;
	struct gt_attr_muon attr;
	bool f64, bf16; /* bf16: precision of the iteration */
	size_t at_products; /* byte offset in the workspace of that of gemm_bf16.c */
	int n;
	struct matrix *m;
	int64_t most, side; /* most: number of elements of the largest matrix; side: largest of the shorter sides of the matrices */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(muon, p, g, scalars, work), GT_SLOT_AS(muon, "momentum_buffer", buf)};

/* The arguments of one matrix at one step. */
struct args {
	const struct muon *k;
	const struct matrix *m;
	const void *opt; /* the scalars of the matrix, a struct gt_opt_f32 or gt_opt_f64 */
	void *p, *buf, *d, *x;
	const void *g;
	uint16_t *work;
	double scale, step; /* factors of the update p = p * scale - step * x */
};

#define BLOCK 128 /* rows of a symmetric result that are computed at once, from the diagonal on */

/* A product c[m, n] = alpha op(a) op(b) + beta c of contiguous matrices. symmetric: the result is. */
struct product {
	char ta, tb;
	int64_t m, n, k;
	double alpha, beta;
	const void *a, *b;
	void *c;
	bool symmetric;
};

static void mirror_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct product *p = ctx;
	float *c = p->c;
	for (int64_t j0 = 0; j0 < end; j0 += 16)
		for (int64_t i = begin > j0 ? begin : j0; i < end; i++)
			for (int64_t j = j0; j < j0 + 16 && j < i; j++)
				c[i * p->n + j] = c[j * p->n + i];
}

GT_CLONES static void round_elements(const void *ctx, int64_t begin, int64_t end)
{
	float *x = (float *)ctx;
	for (int64_t i = begin; i < end; i++)
		x[i] = gt_bf16_to_f32(gt_bf16_from_f32(x[i]));
}

static enum gt_code multiply_f32(struct gt_dev *dev, const struct muon *k, const struct product *p, char *scratch, struct gt_err *err)
{
	const float *a = p->a, *b = p->b;
	float *c = p->c;
	if (k->bf16 && gt_gemm_bf16_supported()) {
		struct gt_gemm_bf16 g = {.ta = p->ta, .tb = p->tb, .m = p->m, .n = p->n, .k = p->k, .a = a, .b = b, .c = c,
		                         .alpha = (float)p->alpha, .beta = (float)p->beta, .symmetric = p->symmetric};
		gt_gemm_bf16_run(dev, &g, scratch + k->at_products);
		return GT_OK;
	}
	int64_t lda = p->ta == 'N' ? p->k : p->m, ldb = p->tb == 'N' ? p->n : p->k, rows = p->symmetric ? BLOCK : p->m;
	for (int64_t i = 0; i < p->m; i += rows) {
		int64_t first = p->symmetric ? i : 0, m = p->m - i < rows ? p->m - i : rows;
		dnnl_status_t st = dnnl_sgemm(p->ta, p->tb, m, p->n - first, p->k, (float)p->alpha, a + i * (p->ta == 'N' ? lda : 1), lda,
		                              b + first * (p->tb == 'N' ? 1 : ldb), ldb, (float)p->beta, c + i * p->n + first, p->n);
		if (st != dnnl_success)
			return gt_fail(err, GT_EINTERNAL, "muon: sgemm failed with oneDNN's status %d", (int)st);
	}
	if (p->symmetric)
		gt_cpu_for(dev, p->m, 65536 / p->n + 1, 1, mirror_rows, p);
	if (k->bf16)
		gt_cpu_for(dev, p->m * p->n, 65536, 64, round_elements, c);
	return GT_OK;
}

static enum gt_code multiply_f64(struct gt_dev *dev, const struct muon *k, const struct product *p, char *scratch, struct gt_err *err)
{
	const double *a = p->a, *b = p->b;
	double *c = p->c;
	(void)dev, (void)k, (void)scratch, (void)err;
	for (int64_t i = 0; i < p->m; i++)
		for (int64_t j = 0; j < p->n; j++) {
			double sum = 0;
			for (int64_t l = 0; l < p->k; l++)
				sum += a[p->ta == 'N' ? i * p->k + l : l * p->m + i] * b[p->tb == 'N' ? l * p->n + j : j * p->k + l];
			c[i * p->n + j] = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * c[i * p->n + j]);
		}
	return GT_OK;
}

#define T float
#define F(name) name##_f32
#include "cpu/muon.inc"
#undef T
#undef F
#define T double
#define F(name) name##_f64
#include "cpu/muon.inc"
#undef T
#undef F

static enum gt_code launch_muon(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct muon *k = gt_cpu_loop_bind(head, a);
	if (k->scalars && k->scalars->skip)
		return GT_OK;
	for (int i = 0; i < k->n; i++) {
		const struct matrix *m = &k->m[i];
		struct gt_opt_f32 h = gt_opt_make_f32(GT_OP_MUON, &k->attr.update, &m->hyper, a->step_args, k->scalars);
		struct gt_opt_f64 hd = gt_opt_make_f64(GT_OP_MUON, &k->attr.update, &m->hyper, a->step_args, k->scalars);
		size_t at = (size_t)m->begin * (k->f64 ? sizeof(double) : sizeof(float));
		struct args c = {.k = k,
		                 .m = m,
		                 .opt = k->f64 ? (const void *)&hd : &h,
		                 .p = k->p + at,
		                 .g = k->g + at,
		                 .buf = k->buf + at,
		                 .work = k->work ? k->work + m->begin : NULL};
		GT_TRY((k->f64 ? matrix_f64 : matrix_f32)(dev, &c, a->scratch, hd.shrink, -hd.neg_lr * m->adjust, err));
	}
	return GT_OK;
}

static void release_muon(struct gt_kernel *kernel)
{
	struct muon *k = (struct muon *)kernel;
	for (int i = 0; k->m && i < k->n; i++)
		free(k->m[i].map);
	free(k->m);
	free(k);
}

/* Allocates a list of the offsets in memory of the logical elements. Sets *out to NULL if the layout is plain. */
static enum gt_code make_map(const struct gt_tdesc *d, int64_t **out, struct gt_err *err)
{
	int64_t idx[GT_MAX_RANK] = {0}, n = gt_tdesc_count(d);
	*out = NULL;
	if (gt_tdesc_plain(d))
		return GT_OK;
	if (!(*out = malloc((size_t)n * sizeof **out)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int64_t i = 0; i < n; i++) {
		(*out)[i] = gt_tdesc_offset(d, idx);
		for (int k = d->rank - 1; k >= 0 && ++idx[k] == d->dim[k]; k--)
			idx[k] = 0;
	}
	return GT_OK;
}

enum gt_code gt_cpu_muon(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_muon *attr = call->attr;
	const struct gt_tdesc *work = gt_opcall_operand(call, "work");
	bool f64 = gt_opcall_operand(call, "p")->dtype == GT_F64;
	const char *why = gt_update_check(call);
	struct muon *k;
	enum gt_code code = GT_OK;
	size_t products = 0;
	(void)dev;
	if (why || (work && work->dtype != GT_BF16))
		return gt_opcall_refuse(call, err, why ? why : "the work copy must be bf16");
	const char *text = f64 ? "muon:f64" : !work ? "muon:sgemm" : gt_gemm_bf16_supported() ? "muon:avx512_bf16" : "muon:sgemm:bf16";
	GT_LOOP_NEW(k, slots, call, text, err);
	k->loop.head.launch = launch_muon;
	k->loop.head.release = release_muon;
	k->attr = *attr;
	k->f64 = f64;
	k->bf16 = work && !f64;
	k->n = attr->update.nseg;
	k->m = calloc((size_t)k->n + 1, sizeof *k->m);
	if (!k->m)
		code = gt_fail(err, GT_EFAIL, "out of memory");
	for (int i = 0; i < k->n && code == GT_OK; i++) {
		const struct gt_seg *s = &attr->update.seg[i];
		const struct gt_tdesc *d = attr->desc[i];
		struct matrix *m = &k->m[i];
		*m = (struct matrix){.rows = d->dim[0], .cols = gt_tdesc_count(d) / d->dim[0], .begin = s->begin, .elements = s->end - s->begin,
		                     .hyper = *s};
		m->adjust = gt_muon_adjust(attr->adjust, m->rows, m->cols);
		int64_t side = m->rows < m->cols ? m->rows : m->cols, other = m->rows + m->cols - side;
		k->most = m->elements > k->most ? m->elements : k->most;
		k->side = side > k->side ? side : k->side;
		size_t bytes = gt_gemm_bf16_scratch(side, side, other), next = gt_gemm_bf16_scratch(m->rows, m->cols, side);
		products = bytes > products ? bytes : products;
		products = next > products ? next : products;
		code = make_map(d, &m->map, err);
	}
	if (code != GT_OK) {
		release_muon(&k->loop.head);
		return code;
	}
	k->attr.update.seg = NULL; /* the segments belong to the caller, so the kernel keeps no pointer to them */
	k->attr.desc = NULL;
	k->at_products = ((size_t)(3 * k->most + 2 * k->side * k->side) * (f64 ? sizeof(double) : sizeof(float)) + 63) / 64 * 64;
	k->loop.head.scratch = k->at_products + (k->bf16 && gt_gemm_bf16_supported() ? products : 0);
	*out = &k->loop.head;
	return GT_OK;
}
