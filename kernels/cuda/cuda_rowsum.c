/* Sums over rows: bias.db (colsum.cu) and views.mean (views.cu). */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

struct rowsum {
	struct gt_kernel head;
	int type, views;
	int64_t rows, cols;
	bool add;
};

static enum gt_code launch_db(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct rowsum *k = (const struct rowsum *)kernel;
	GT_CUDA(dev, gt_cu_colsum_start(k->type, a->in[0], a->out[0], k->rows, k->cols, k->add, a->scratch, s), "bias.db", err);
	return GT_OK;
}

static enum gt_code launch_views(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                 struct gt_err *err)
{
	const struct rowsum *k = (const struct rowsum *)kernel;
	GT_CUDA(dev, gt_cu_views_start(k->type, a->in[0], a->out[0], k->rows * k->cols, k->views, s), "views.mean", err);
	return GT_OK;
}

/* Prepares a sum over rows. Dimension 1 is contiguous in a rank-4 tensor (NHWC) too, so every tensor consists of rows of C elements. */
enum gt_code gt_cuda_rowsum(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[0];
	bool views = call->code == GT_OP_VIEWS_MEAN;
	struct rowsum *k;
	(void)dev;
	GT_CUDA_NEW(k, views ? launch_views : launch_db, views ? "views" : "colsum", err);
	k->type = gt_cuda_type(x->dtype);
	k->cols = x->dim[1];
	k->rows = views ? call->out[0]->dim[0] : gt_tdesc_count(x) / k->cols;
	k->views = views ? ((const struct gt_attr_views *)call->attr)->views : 0;
	k->add = call->accumulate & 1;
	k->head.scratch = views ? 0 : gt_cu_colsum_scratch(k->rows, k->cols);
	*out = &k->head;
	return GT_OK;
}
