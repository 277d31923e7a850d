#include "score/value_tally.h"
#include <math.h>
#include <stdlib.h>

/* Sums over all samples, for one target. */
struct sums {
	double absolute, square; /* sums of the absolute and of the squared differences between outputs and targets */
	double mean, spread;     /* mean of the targets, and sum of their squared distances from the mean */
};

struct gt_value_tally {
	int64_t width, n;
	int64_t bad; /* number, from 1, of the first sample with a non-finite output; 0: none */
	struct sums of[];
};

enum gt_code gt_value_tally_open(int64_t width, struct gt_value_tally **out, struct gt_err *err)
{
	size_t bytes = sizeof **out + (size_t)width * sizeof(struct sums);
	if (!(*out = calloc(1, bytes)))
		return gt_fail_memory(err, bytes);
	(*out)->width = width;
	return GT_OK;
}

void gt_value_tally_close(struct gt_value_tally *t)
{
	free(t);
}

void gt_value_tally_add(struct gt_value_tally *t, const float *z, const float *target, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		t->n++;
		for (int64_t c = 0; c < t->width; c++) {
			struct sums *s = &t->of[c];
			double y = (double)target[i * t->width + c], d = (double)z[i * t->width + c] - y, before = y - s->mean;
			s->absolute += fabs(d);
			s->square += d * d;
			s->mean += before / (double)t->n;
			s->spread += before * (y - s->mean);
			if (!isfinite(z[i * t->width + c]) && !t->bad)
				t->bad = t->n;
		}
	}
}

static struct gt_value_score output_score(const struct gt_value_tally *t, int64_t c)
{
	const struct sums *s = &t->of[c];
	double n = (double)t->n, r2 = s->spread > 0 ? 1 - s->square / s->spread : s->square > 0 ? 0 : 1;
	return (struct gt_value_score){.mae = s->absolute / n, .rmse = sqrt(s->square / n), .r2 = t->n < 2 ? NAN : r2};
}

enum gt_code gt_value_tally_report(const struct gt_value_tally *t, struct gt_arena *a, struct gt_value_report **out, struct gt_err *err)
{
	struct gt_value_report *r;
	if (t->bad)
		return gt_fail(err, GT_EDIVERGED, "sample %lld of the split: an output of the model is not finite",
		               (long long)t->bad - 1);
	GT_NEW(r, a, 1, err);
	GT_NEW(r->score, a, t->width, err);
	r->values = t->width;
	r->samples = t->n;
	for (int64_t c = 0; c < t->width; c++)
		r->score[c] = output_score(t, c);
	*out = r;
	return GT_OK;
}

void gt_value_tally_means(const struct gt_value_tally *t, const struct gt_value_scale *scale, struct gt_scores *out)
{
	out->mae = out->rmse = out->r2 = 0;
	for (int64_t c = 0; c < t->width; c++) {
		struct gt_value_score s = output_score(t, c);
		out->mae += s.mae * scale[c].std / (double)t->width;
		out->rmse += s.rmse * scale[c].std / (double)t->width;
		out->r2 += s.r2 / (double)t->width;
	}
}
