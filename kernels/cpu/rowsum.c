/* Sums over rows of [rows, C]: bias.db (all rows into one) and views.mean (the weighted views of each sample). */
#include "aug.h"
#include "cpu/loops.h"
#include "ew.h"
#include <stdlib.h>
#include <string.h>

#define ROWS 1024    /* number of rows of one partial sum; the last bits of the result depend on it */
#define COLS 1024    /* number of channels that are summed on the stack at once */

struct args {
	const void *x;
	void *y;
	int64_t rows, cols;
	int views;
};

#define GT_TYPED "cpu/rowsum.inc"
#include "cpu/typed.inc"

struct rowsum {
	struct gt_kernel head;
	gt_range_fn *fn;
	bool f64, add;
	int64_t rows, cols, pieces, grain;
	int views;
};

/* Computes bias.db. Partial sums are double and are added in a fixed tree. */
static enum gt_code launch_db(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct rowsum *k = (const struct rowsum *)kernel;
	struct args c = {.x = a->in[0], .y = a->scratch, .rows = k->rows, .cols = k->cols};
	double *part = a->scratch;
	(void)err;
	gt_cpu_for(dev, k->pieces, k->grain, 1, k->fn, &c);
	for (int64_t w = 1; w < k->pieces; w *= 2)
		for (int64_t i = 0; i + w < k->pieces; i += 2 * w)
			for (int64_t j = 0; j < k->cols; j++)
				part[i * k->cols + j] += part[(i + w) * k->cols + j];
	for (int64_t j = 0; j < k->cols; j++) {
		if (k->f64)
			((double *)a->out[0])[j] = part[j] + (k->add ? ((double *)a->out[0])[j] : 0);
		else
			((float *)a->out[0])[j] = (float)part[j] + (k->add ? ((float *)a->out[0])[j] : 0);
	}
	return GT_OK;
}

static enum gt_code launch_views(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct rowsum *k = (const struct rowsum *)kernel;
	struct args c = {.x = a->in[0], .y = a->out[0], .rows = k->rows, .cols = k->cols, .views = k->views};
	(void)err;
	gt_cpu_for(dev, k->rows, k->grain, 1, k->fn, &c);
	return GT_OK;
}

enum gt_code gt_cpu_rowsum(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const db[GT_T_COUNT] = {sum_bias_db_f32, sum_bias_db_bf16, sum_bias_db_f64},
	                   *const mean[GT_T_COUNT] = {average_views_f32, average_views_bf16, average_views_f64};
	const struct gt_tdesc *x = call->in[0];
	int type = gt_cpu_type(x->dtype);
	bool views = call->code == GT_OP_VIEWS_MEAN;
	struct rowsum *k;
	(void)dev;
	GT_KERNEL_NEW(k, views ? launch_views : launch_db, "loop", err);
	k->cols = x->dim[1];
	k->rows = views ? call->out[0]->dim[0] : gt_tdesc_count(x) / k->cols;
	k->views = views ? ((const struct gt_attr_views *)call->attr)->views : 0;
	k->f64 = x->dtype == GT_F64;
	k->add = call->accumulate & 1;
	k->fn = views ? mean[type] : db[type];
	k->grain = (views ? 16384 : 65536 / ROWS + 1) / (views ? k->cols : 1);
	k->grain = k->grain > 0 ? k->grain : 1;
	k->pieces = (k->rows + ROWS - 1) / ROWS;
	k->head.scratch = views ? 0 : (size_t)(k->pieces * k->cols) * sizeof(double);
	*out = &k->head;
	return GT_OK;
}
