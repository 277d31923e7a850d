/* The operation muon. One kernel computes momentum and directions of all matrices. cuBLASLt computes the products of the Newton-Schulz
 * iterations, with all matrices of one shape in a batch. One kernel updates all weights. Nothing waits for the host, and the list of
 * launches does not depend on values of the step: a skipped step, or a step with learning rate 0, computes the products and keeps the
 * weights.
 *
 * Precision of the iteration: with a 16-bit work copy (precision = "bf16", "fp16") its operands and results are bf16 and its sums f32, as
 * in the author's code and torch.optim.Muon. Otherwise it is f32, with products in tf32 if the config enables them. Momentum and weights
 * are always f32, sums of squares f64. The CPU backend has the same rule.
 *
 * X, [rows, cols] in row-major order, is a column-major Xc of [cols, rows]. If rows <= cols,
 *   A = X X'  is  Xc' Xc       P = c A A + b A       Y = P X + a X  is  Xc P + a Xc
 * otherwise A = X' X is Xc Xc', and Y = X P + a X is P Xc + a Xc. The order of the columns (NHWC in memory, NCHW in a checkpoint) makes no
 * difference, because it permutes A's rows and columns, or Y's columns, as it permutes X's. Sizes are rounded up to 16 bytes, which the
 * libraries' fast kernels require. The padding is zeros and stays zero in every product. */
#include "cuda/cublaslt.h"
#include "ew.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {          /* The matrices of one shape, which are consecutive in memory. */
	int64_t rows, cols; /* size of a matrix, rounded up to 16 bytes */
	int n;
	int64_t x; /* offset, in elements, of the first of these matrices in the memory of the operands */
	struct gt_lt_gemm gram, poly, next;
};

struct muon {
	struct gt_kernel head;
	struct gt_attr_muon attr;
	enum gt_dtype type;            /* type of the operands of the Newton-Schulz iteration */
	struct gt_binding binding;
	int n, nshapes; /* number of matrices, and of their shapes */
	struct gt_cu_muon_matrix *matrix;
	int *of; /* index of the shape of each matrix */
	struct shape *shape;
	void *dmatrix; /* the matrices in device memory */
	struct gt_cu_table chunk, fill; /* chunks of the arena, chunks of the operands of the products */
	size_t part, factor, x, y, a, p, workspace; /* offsets of the kernels' arrays in the scratch memory, in bytes */
	char text[80];
};

static int64_t round_up(int64_t n, int64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* ---- launch ------------------------------------------------------------------------------------------------------------------------- */
/* Iterates from the operands in x to the results in x, or in y if ns_steps is odd. */
static enum gt_code run_newton_schulz(struct gt_dev *dev, const struct muon *k, char *x, char *y, char *scratch, cudaStream_t s,
                                      struct gt_err *err)
{
	char *a = scratch + k->a, *p = scratch + k->p, *ws = scratch + k->workspace;
	for (int i = 0; i < k->nshapes; i++) {
		const struct shape *g = &k->shape[i];
		size_t at = (size_t)g->x * gt_dtype_size(k->type);
		char *from = x + at, *to = y + at;
		for (int64_t step = 0; step < k->attr.ns_steps; step++) {
			char *swap = from;
			GT_TRY(gt_lt_run(dev, &g->gram, from, from, a, a, NULL, NULL, ws, s, err));
			GT_TRY(gt_lt_run(dev, &g->poly, a, a, a, p, NULL, NULL, ws, s, err));
			GT_TRY(
			    gt_lt_run(dev, &g->next, g->rows <= g->cols ? from : p, g->rows <= g->cols ? p : from, from, to, NULL, NULL, ws, s, err));
			from = to;
			to = swap;
		}
	}
	return GT_OK;
}

static enum gt_code fill_arguments(struct gt_dev *dev, const struct muon *k, const struct gt_launch *a, struct gt_cu_muon *c,
                                   struct gt_err *err)
{
	*c = (struct gt_cu_muon){
	    .matrix = k->dmatrix,
	    .chunk = k->chunk.p,
	    .fill = k->fill.p,
	    .nchunks = (int)k->chunk.n,
	    .nfill = (int)k->fill.n,
	    .attr = k->attr.update,
	    .normalize = k->attr.normalize,
	    .counter = k->head.counter,
	};
	gt_binding_apply(&k->binding, c, a->in, a->out);
	return gt_cuda_step_args(dev, a, &c->step_args, err);
}

static enum gt_code launch_muon(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct muon *k = (const struct muon *)kernel;
	char *scratch = a->scratch;
	struct gt_cu_muon c;
	if (!k->n)
		return GT_OK;
	GT_TRY(fill_arguments(dev, k, a, &c, err));
	c.part = (double *)(scratch + k->part);
	c.factor = (struct gt_cu_muon_factor *)(scratch + k->factor);
	c.x = scratch + k->x;
	GT_CUDA(dev, gt_cu_muon_begin(k->type == GT_BF16, &c, s), "muon", err);
	GT_TRY(run_newton_schulz(dev, k, scratch + k->x, scratch + k->y, scratch, s, err));
	if (k->attr.ns_steps % 2)
		c.x = scratch + k->y;
	GT_CUDA(dev, gt_cu_muon_end(k->type == GT_BF16, &c, s), "muon", err);
	return GT_OK;
}

/* ---- preparation -------------------------------------------------------------------------------------------------------------------- */
static void release_muon(struct gt_dev *dev, struct gt_kernel *kernel)
{
	struct muon *k = (struct muon *)kernel;
	for (int i = 0; i < k->nshapes; i++) {
		gt_lt_drop(dev, &k->shape[i].gram);
		gt_lt_drop(dev, &k->shape[i].poly);
		gt_lt_drop(dev, &k->shape[i].next);
	}
	gt_cuda_free(dev, k->dmatrix);
	gt_cuda_free(dev, k->chunk.p);
	gt_cuda_free(dev, k->fill.p);
	free(k->matrix);
	free(k->of);
	free(k->shape);
	free(k);
}

static enum gt_code check_call(const struct gt_opcall *call, struct gt_err *err)
{
	const struct gt_attr_muon *attr = call->attr;
	const struct gt_tdesc *work = gt_opcall_operand(call, "work");
	const char *why = gt_update_check(call);
	if (why)
		return gt_opcall_refuse(call, err, why);
	if (work && ((work->dtype != GT_BF16 && work->dtype != GT_F16) || work->dtype != attr->update.work_dtype))
		return gt_opcall_refuse(call, err, "the work copy must be bf16 or f16, as in the attribute");
	for (int i = 0; i < attr->update.nseg; i++)
		if (attr->desc[i]->layout.nblk || attr->desc[i]->layout.order[0] != 0 || gt_tdesc_padded(attr->desc[i]) > INT32_MAX)
			return gt_opcall_refuse(call, err, "a matrix must be stored row by row and have less than 2^31 elements");
	return GT_OK;
}

/* Fills the arrays matrix, of and shape of k: assigns each matrix to the shape of its rounded size, and sets the offsets of both. */
static void sort_shapes(struct muon *k)
{
	int64_t unit = 16 / (int64_t)gt_dtype_size(k->type), at = 0;
	for (int i = 0; i < k->n; i++) {
		const struct gt_seg *s = &k->attr.update.seg[i];
		const struct gt_tdesc *d = k->attr.desc[i];
		int64_t rows = d->dim[0], cols = gt_tdesc_count(d) / rows, r = round_up(rows, unit), c = round_up(cols, unit);
		k->matrix[i] = (struct gt_cu_muon_matrix){.hyper = *s, .rows = (int32_t)rows, .cols = (int32_t)cols, .ld = (int32_t)c};
		k->matrix[i].adjust = gt_muon_adjust(k->attr.adjust, rows, cols);
		int j = 0;
		while (j < k->nshapes && (k->shape[j].rows != r || k->shape[j].cols != c))
			j++;
		k->shape[j].rows = r, k->shape[j].cols = c;
		k->nshapes = j == k->nshapes ? j + 1 : k->nshapes;
		k->matrix[i].x = k->shape[j].n++ * r * c; /* offset within the shape's memory; the shape's offset is added below */
		k->of[i] = j;
	}
	for (int j = 0; j < k->nshapes; j++) {
		k->shape[j].x = at;
		at = round_up(at + k->shape[j].n * k->shape[j].rows * k->shape[j].cols, 256);
	}
	for (int i = 0; i < k->n; i++)
		k->matrix[i].x += k->shape[k->of[i]].x;
}

static enum gt_code make_gemms(struct gt_dev *dev, const struct gt_opcall *call, struct muon *k, size_t *workspace, struct gt_err *err)
{
	const double *ns = k->attr.ns; /* coefficients of X = a X + (b A + c A A) X */
	for (int j = 0; j < k->nshapes; j++) {
		struct shape *g = &k->shape[j];
		bool wide = g->rows <= g->cols;
		int64_t r = g->rows, c = g->cols, side = wide ? r : c;
		struct gt_lt_spec s = {.m = side, .n = side, .k = wide ? c : r, .batch = g->n, .ta = wide, .tb = !wide, .alpha = 1};
		s.in = s.out = k->type;
		s.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
		struct gt_lt_gemm *gemm[3] = {&g->gram, &g->poly, &g->next};
		for (int i = 0; i < 3; i++) {
			bool found;
			if (i == 1)
				s.k = side, s.ta = s.tb = false, s.alpha = (float)ns[2], s.beta = (float)ns[1];
			if (i == 2)
				s.m = c, s.n = r, s.alpha = 1, s.beta = (float)ns[0];
			GT_TRY(gt_lt_make(dev, &s, gemm[i], &found, err));
			if (!found)
				return gt_opcall_refuse(call, err, "cuBLASLt has no algorithm for these batched products");
			*workspace = gemm[i]->workspace > *workspace ? gemm[i]->workspace : *workspace;
		}
	}
	return GT_OK;
}

/* Uploads two lists of chunks: chunks of the arena, and chunks of the operands of the products. */
static enum gt_code make_chunks(struct gt_dev *dev, struct muon *k, struct gt_err *err)
{
	struct gt_seg *fill = calloc((size_t)k->n + 1, sizeof *fill);
	int32_t at = 0;
	if (!fill)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int i = 0; i < k->n; i++) {
		struct gt_cu_muon_matrix *m = &k->matrix[i];
		fill[i].end = k->shape[k->of[i]].rows * k->shape[k->of[i]].cols;
		m->first = at;
		m->chunks = (int32_t)(round_up(m->hyper.end - m->hyper.begin, GT_CU_CHUNK) / GT_CU_CHUNK);
		at += m->chunks;
	}
	enum gt_code code = gt_cuda_upload_chunks(dev, k->attr.update.seg, k->n, &k->chunk, err);
	if (code == GT_OK)
		code = gt_cuda_upload_chunks(dev, fill, k->n, &k->fill, err);
	free(fill);
	return code;
}

static void make_scratch(struct muon *k, size_t workspace)
{
	size_t size = gt_dtype_size(k->type), most = 0, all = 0, at = 0;
	for (int j = 0; j < k->nshapes; j++) {
		const struct shape *g = &k->shape[j];
		int64_t side = g->rows < g->cols ? g->rows : g->cols;
		size_t grams = (size_t)(g->n * side * side) * size;
		most = grams > most ? grams : most;
		all = (size_t)(g->x + g->n * g->rows * g->cols) * size;
	}
	const struct {
		size_t *offset, bytes;
	} parts[] = {{&k->part, (size_t)k->chunk.n * 2 * sizeof(double)},
	             {&k->factor, (size_t)k->n * sizeof(struct gt_cu_muon_factor)},
	             {&k->x, all},
	             {&k->y, all},
	             {&k->a, most},
	             {&k->p, most},
	             {&k->workspace, workspace}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		*parts[i].offset = at;
		at += (parts[i].bytes + 255) / 256 * 256;
	}
	k->head.scratch = at;
}

static enum gt_code build_muon(struct gt_dev *dev, const struct gt_opcall *call, struct muon *k, struct gt_err *err)
{
	size_t n = (size_t)k->n + 1, workspace = 0;
	k->matrix = calloc(n, sizeof *k->matrix);
	k->of = calloc(n, sizeof *k->of);
	k->shape = calloc(n, sizeof *k->shape);
	if (!k->matrix || !k->of || !k->shape)
		return gt_fail(err, GT_EFAIL, "out of memory");
	sort_shapes(k);
	GT_TRY(make_gemms(dev, call, k, &workspace, err));
	GT_TRY(make_chunks(dev, k, err));
	GT_TRY(gt_cuda_upload(dev, k->matrix, n * sizeof *k->matrix, &k->dmatrix, err));
	make_scratch(k, workspace);
	return gt_cuda_counters(dev, &k->head, k->n, err);
}

static const char *precision_name(const struct gt_dev *dev, const struct muon *k)
{
	return k->type == GT_BF16 ? "bf16" : dev->tf32 ? "tf32" : "f32";
}

static enum gt_code prepare_muon(struct gt_dev *dev, const struct gt_opcall *call, struct muon *k, struct gt_err *err)
{
	static const struct gt_operand_slot slots[] = {
	    GT_SLOTS(gt_cu_muon, p, g, scalars, work), GT_SLOT_AS(gt_cu_muon, "momentum_buffer", buf)};
	const struct gt_attr_muon *attr = call->attr;
	k->head.release = release_muon;
	k->attr = *attr;
	k->n = attr->update.nseg;
	gt_binding_make(&k->binding, slots, sizeof slots / sizeof *slots, call);
	k->type = gt_opcall_operand(call, "work") ? GT_BF16 : GT_F32;
	GT_TRY(check_call(call, err));
	GT_TRY(build_muon(dev, call, k, err));
	k->attr.update.seg = NULL; /* the segments belong to the caller, so the kernel keeps no pointer to them */
	k->attr.desc = NULL;
	snprintf(k->text, sizeof k->text, "cublasLt:%s, %d matrices of %d shapes", precision_name(dev, k), k->n, k->nshapes);
	k->head.describe = k->text;
	return GT_OK;
}

enum gt_code gt_cuda_muon(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct muon *k;
	GT_CUDA_NEW(k, launch_muon, NULL, err);
	enum gt_code code = prepare_muon(dev, call, k, err);
	if (code == GT_OK)
		*out = &k->head;
	else
		release_muon(dev, &k->head);
	return code;
}
