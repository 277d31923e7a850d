/* The operation check, which decides whether the step is applied. If gradients are an operand, the kernel that ends their sum of squares
 * also checks, which saves a kernel in every step. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

struct check {
	struct gt_kernel head;
	struct gt_attr_check attr;
	int64_t n; /* number of gradients whose squares the kernel adds up; -1: gradients are not an operand */
};

static enum gt_code launch_check(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                 struct gt_err *err)
{
	const struct check *k = (const struct check *)kernel;
	struct gt_cu_check c = {.attr = k->attr, .scalars = a->in[0], .scaler = a->in[1]};
	c.numbers = k->attr.scaling ? a->in[2] : NULL;
	c.parts = k->attr.ranks > 1 ? a->in[3] : NULL;
	GT_CUDA(dev, k->n < 0 ? gt_cu_check_start(&c, s) : gt_cu_sumsq_check_start(a->in[4], k->n, a->scratch, kernel->counter, &c, s), "check",
	        err);
	return GT_OK;
}

enum gt_code gt_cuda_check(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_check *attr = call->attr;
	const struct gt_tdesc *g = call->nin > 4 ? call->in[4] : NULL;
	struct check *k;
	if (attr->scaling && (call->nin < 3 || !call->in[2]))
		return gt_cuda_refuse(call, err, "a loss scale needs the arguments of the following steps");
	if (attr->ranks > 1 && (call->nin < 4 || !call->in[3] || call->in[3]->dim[0] != attr->ranks))
		return gt_cuda_refuse(call, err, "with several ranks it needs the scalars of every rank");
	GT_CUDA_NEW(k, launch_check, g ? "sumsq + check" : "check", err);
	k->attr = *attr;
	k->n = g ? gt_tdesc_padded(g) : -1;
	*out = &k->head;
	if (!g)
		return GT_OK;
	k->head.scratch = (size_t)(k->n / GT_CU_CHUNK + 1) * sizeof(double);
	enum gt_code code = gt_cuda_counters(dev, &k->head, 1, err);
	if (code != GT_OK) {
		free(k);
		*out = NULL;
	}
	return code;
}
