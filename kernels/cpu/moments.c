/* batchnorm.merge: combines the statistics of several ranks into those of a batch. These are a few thousand numbers, so one thread computes
 * them, in double. */
#include "moments.h"
#include "cpu/loops.h"
#include <math.h>
#include <stdlib.h>

struct merge {
	struct gt_kernel head;
	struct gt_attr_norm attr;
	int64_t c;
	int nparts;
	bool f64; /* statistics are f64, otherwise f32 */
	bool running, counts, mean, rstd; /* which optional operands exist */
};

static double get(const struct merge *k, const void *p, int64_t i)
{
	return k->f64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

static void put(const struct merge *k, void *p, int64_t i, double v)
{
	if (k->f64)
		((double *)p)[i] = v;
	else
		((float *)p)[i] = (float)v;
}

static enum gt_code launch(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct merge *k = (const struct merge *)head;
	const double *parts = a->in[0];
	double m = k->attr.momentum, total = 0;
	(void)dev, (void)err;
	for (int64_t i = 0; i < k->c; i++) {
		struct gt_moments all = gt_moments_tree(parts, k->nparts, k->c, i);
		double var = all.n > 0 ? all.m2 / all.n : 0, unbias = all.n / (all.n - 1);
		total = all.n;
		if (k->mean)
			put(k, a->out[0], i, all.mean);
		if (k->rstd)
			put(k, a->out[1], i, 1 / sqrt(var + k->attr.eps));
		if (k->running && all.n > 0) {
			put(k, a->in[1], i, (1 - m) * get(k, a->in[1], i) + m * all.mean);
			put(k, a->in[2], i, (1 - m) * get(k, a->in[2], i) + m * var * unbias);
		}
	}
	if (k->counts && total > 0)
		++*(int64_t *)a->in[3];
	return GT_OK;
}

static bool table(const struct gt_tdesc *d, int64_t n)
{
	return !d || d->dim[d->rank - 1] == n;
}

enum gt_code gt_cpu_moments(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *p = call->in[0], *in[4] = {NULL}, *to[2] = {NULL};
	int64_t c = p->rank < 2 ? 0 : p->dim[p->rank - 1], n = c ? gt_tdesc_count(p) / (3 * c) : 0;
	enum gt_dtype t = GT_F32;
	struct merge *k;
	(void)dev;
	for (int i = 1; i < 4 && i < call->nin; i++)
		in[i] = call->in[i];
	for (int i = 0; i < 2 && i < call->nout; i++)
		to[i] = call->out[i];
	if (n < 1 || n >= GT_MOMENTS_PARTS || p->dim[p->rank - 2] != 3)
		return gt_cpu_refuse(call, err, "parts are [k, 3, C], k from 1 to 1023");
	if ((to[0] && to[0]->dtype == GT_F64) || (in[1] && in[1]->dtype == GT_F64))
		t = GT_F64;
	if (!table(in[1], c) || !in[1] != !in[2] || !table(to[0], c) || !table(to[1], c))
		return gt_cpu_refuse(call, err, "statistics are [C], both running ones or none");
	GT_KERNEL_NEW(k, launch, "loops:batchnorm.merge", err);
	k->head.small = true;
	k->attr = *(const struct gt_attr_norm *)call->attr;
	k->c = c;
	k->nparts = (int)n;
	k->f64 = t == GT_F64;
	k->running = in[1];
	k->counts = in[3];
	k->mean = to[0];
	k->rstd = to[1];
	*out = &k->head;
	return GT_OK;
}
