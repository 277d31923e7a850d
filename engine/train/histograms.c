#include "train/histograms.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Counts n values in buckets of equal width between the smallest and the largest value. Leaves out values that are not finite. */
static void fill_histogram(struct gt_histogram *h, const float *v, int64_t n)
{
	*h = (struct gt_histogram){.min = INFINITY, .max = -INFINITY};
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(v[i]))
			continue;
		h->min = v[i] < h->min ? v[i] : h->min;
		h->max = v[i] > h->max ? v[i] : h->max;
		h->sum += v[i];
		h->sum_squares += (double)v[i] * v[i];
		h->n++;
	}
	double scale = h->max > h->min ? GT_HISTOGRAM_BUCKETS / (h->max - h->min) : 0;
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(v[i]))
			continue;
		int k = (int)((v[i] - h->min) * scale);
		h->count[k < GT_HISTOGRAM_BUCKETS ? k : GT_HISTOGRAM_BUCKETS - 1]++;
	}
}

/* Gathers a parameter and writes its histogram. *buf: memory for a tensor, of *size bytes, which grows. */
static enum gt_code write_param(struct gt_session *s, struct gt_tensorboard *t, int64_t step, int i, void **buf, size_t *size,
                                struct gt_err *err)
{
	struct gt_tdesc d = gt_session_desc(s, i);
	size_t bytes = gt_tdesc_bytes(&d);
	struct gt_histogram h;
	char tag[300];
	if (s->at.rank && gt_session_has_tensor(s, i, -1))
		return GT_OK;
	if (bytes > *size) {
		void *p = realloc(*buf, bytes);
		if (!p)
			return gt_fail_memory(err, bytes);
		*buf = p;
		*size = bytes;
	}
	GT_TRY(gt_session_get(s, i, -1, *buf, err));
	if (!t || d.dtype != GT_F32)
		return GT_OK;
	fill_histogram(&h, *buf, gt_tdesc_count(&d));
	snprintf(tag, sizeof tag, "weights/%s", s->space->layout.first->params[i].name);
	gt_tensorboard_histogram(t, tag, step, &h);
	return GT_OK;
}

enum gt_code gt_histograms_write(struct gt_session *s, struct gt_tensorboard *t, int64_t step, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	enum gt_code code = GT_OK;
	void *buf = NULL;
	size_t size = 0;
	for (int i = 0; i < g->nparams && code == GT_OK; i++)
		if (g->params[i].cls != GT_PARAM_BUFFER)
			code = write_param(s, t, step, i, &buf, &size, err);
	free(buf);
	return code;
}
