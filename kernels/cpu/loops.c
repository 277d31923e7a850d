#include "cpu/loops.h"
#include <omp.h>

void gt_cpu_for(const struct gt_dev *dev, int64_t n, int64_t grain, int64_t align, gt_range_fn *fn, const void *ctx)
{
	int64_t pieces = n / (grain > 0 ? grain : 1);
	int threads = gt_cpu_threads_now(dev);
	if (pieces < threads)
		threads = pieces < 1 ? 1 : (int)pieces;
	if (threads == 1) {
		fn(ctx, 0, n);
		return;
	}
	int64_t units = (n + align - 1) / align;
#pragma omp parallel num_threads(threads)
	{
		int64_t i = omp_get_thread_num(), of = omp_get_num_threads();
		int64_t begin = units * i / of * align, end = units * (i + 1) / of * align;
		end = end < n ? end : n;
		if (begin < end)
			fn(ctx, begin, end);
	}
}

static enum gt_code launch_loop(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct gt_cpu_loop *k = gt_cpu_loop_bind(head, a);
	(void)err;
	gt_cpu_for(dev, k->n, k->grain, k->align, k->fn, k);
	return GT_OK;
}

void gt_cpu_loop_init(struct gt_cpu_loop *k, const struct gt_operand_slot *slots, size_t n, const struct gt_opcall *call, const char *text)
{
	k->head.launch = launch_loop;
	k->head.describe = text;
	k->align = 1;
	gt_binding_make(&k->binding, slots, n, call);
}
