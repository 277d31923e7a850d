#include "cpu/loops.h"
#include <assert.h>
#include <omp.h>
#include <string.h>

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

void *gt_cpu_loop_bind(struct gt_kernel *head, const struct gt_launch *a)
{
	struct gt_cpu_loop *k = (struct gt_cpu_loop *)head;
	for (int i = 0; i < k->nslots; i++) {
		void *p = (k->slot[i].from.output ? a->out : a->in)[k->slot[i].from.index];
		memcpy((char *)k + k->slot[i].to, &p, sizeof p);
	}
	return k;
}

static enum gt_code launch_loop(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct gt_cpu_loop *k = gt_cpu_loop_bind(head, a);
	(void)err;
	gt_cpu_for(dev, k->n, k->grain, k->align, k->fn, k);
	return GT_OK;
}

void gt_cpu_loop_init(struct gt_cpu_loop *k, const struct gt_cpu_slot *slots, size_t n, const struct gt_opcall *call, const char *text)
{
	k->head.launch = launch_loop;
	k->head.describe = text;
	k->align = 1;
	for (size_t i = 0; i < n; i++) {
		struct gt_operand_ref from = gt_opcall_find(call, slots[i].name);
		if (from.index < 0)
			continue;
		assert(k->nslots < 2 * GT_MAX_IO);
		k->slot[k->nslots].from = from;
		k->slot[k->nslots++].to = slots[i].at;
	}
}
