/* batchnorm.merge: combines the statistics of several ranks into the statistics of a batch. One thread computes the few thousand values, in
 * double. */
#include "moments.h"
#include "cpu/loops.h"
#include <math.h>

struct merge {
	struct gt_cpu_loop loop;
	double *parts;
	void *rmean, *rvar; /* NULL: there are no running statistics */
	int64_t *nbt;
	void *mean, *rstd;
	struct gt_attr_norm attr;
	int64_t c;
	int nparts;
	bool f64; /* statistics are f64, otherwise f32 */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(merge, parts, rmean, rvar, nbt, mean, rstd)};

static double load_stat(const struct merge *k, const void *p, int64_t i)
{
	return k->f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void store_stat(const struct merge *k, void *p, int64_t i, double v)
{
	if (k->f64)
		((double *)p)[i] = v;
	else
		((float *)p)[i] = (float)v;
}

static enum gt_code launch_merge(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct merge *k = gt_cpu_loop_bind(head, a);
	double m = k->attr.momentum, total = 0;
	(void)dev, (void)err;
	for (int64_t i = 0; i < k->c; i++) {
		struct gt_moments all = gt_moments_tree(k->parts, k->nparts, k->c, i);
		double var = all.n > 0 ? all.m2 / all.n : 0, unbias = all.n / (all.n - 1);
		total = all.n;
		if (k->mean)
			store_stat(k, k->mean, i, all.mean);
		if (k->rstd)
			store_stat(k, k->rstd, i, 1 / sqrt(var + k->attr.eps));
		if (k->rmean && all.n > 0) {
			store_stat(k, k->rmean, i, (1 - m) * load_stat(k, k->rmean, i) + m * all.mean);
			store_stat(k, k->rvar, i, (1 - m) * load_stat(k, k->rvar, i) + m * var * unbias);
		}
	}
	if (k->nbt && total > 0)
		++*k->nbt;
	return GT_OK;
}

static bool has_width(const struct gt_tdesc *d, int64_t n)
{
	return !d || d->dim[d->rank - 1] == n;
}

enum gt_code gt_cpu_moments(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *p = gt_opcall_operand(call, "parts");
	const struct gt_tdesc *rmean = gt_opcall_operand(call, "rmean"), *rvar = gt_opcall_operand(call, "rvar");
	const struct gt_tdesc *mean = gt_opcall_operand(call, "mean"), *rstd = gt_opcall_operand(call, "rstd");
	int64_t c = p->rank < 2 ? 0 : p->dim[p->rank - 1], n = c ? gt_tdesc_count(p) / (3 * c) : 0;
	struct merge *k;
	(void)dev;
	if (n < 1 || n >= GT_MOMENTS_PARTS || p->dim[p->rank - 2] != 3)
		return gt_opcall_refuse(call, err, "parts must be [k, 3, C] with k from 1 to 1023");
	if (!has_width(rmean, c) || !rmean != !rvar || !has_width(mean, c) || !has_width(rstd, c))
		return gt_opcall_refuse(call, err, "statistics must be [C], with both running statistics or neither");
	GT_LOOP_NEW(k, slots, call, "loops:batchnorm.merge", err);
	k->loop.head.launch = launch_merge;
	k->loop.head.small = true;
	k->attr = *(const struct gt_attr_norm *)call->attr;
	k->c = c;
	k->nparts = (int)n;
	k->f64 = (mean && mean->dtype == GT_F64) || (rmean && rmean->dtype == GT_F64);
	*out = &k->loop.head;
	return GT_OK;
}
