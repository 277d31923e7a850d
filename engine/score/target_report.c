#include "score/target_report.h"
#include "score/roc.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gt_target_tally {
	int64_t width, cap, n; /* cap: number of samples for which there is memory */
	float *z, *target;     /* [n][width] */
};

enum gt_code gt_target_tally_open(int64_t samples, int64_t width, struct gt_target_tally **out, struct gt_err *err)
{
	struct gt_target_tally *t = calloc(1, sizeof *t);
	size_t bytes;
	*out = t;
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	t->width = width;
	t->cap = samples;
	if (__builtin_mul_overflow((size_t)(samples > 0 ? samples : 1), (size_t)width * sizeof *t->z, &bytes))
		return gt_fail_memory(err, SIZE_MAX);
	t->z = malloc(bytes);
	t->target = malloc(bytes);
	return t->z && t->target ? GT_OK : gt_fail_memory(err, 2 * bytes);
}

void gt_target_tally_close(struct gt_target_tally *t)
{
	if (!t)
		return;
	free(t->z);
	free(t->target);
	free(t);
}

enum gt_code gt_target_tally_add(struct gt_target_tally *t, const float *z, const float *target, int64_t n, struct gt_err *err)
{
	size_t count = (size_t)(n * t->width);
	if (t->n + n > t->cap)
		return gt_fail(err, GT_EINTERNAL, "an evaluation of %lld samples returned more outputs", (long long)t->cap);
	for (size_t i = 0; i < count; i++)
		if (!isfinite(z[i]))
			return gt_fail(err, GT_EDIVERGED, "sample %lld of the split: an output of the model is not a finite number",
			               (long long)t->n + (long long)i / (long long)t->width);
	memcpy(t->z + t->n * t->width, z, count * sizeof *z);
	memcpy(t->target + t->n * t->width, target, count * sizeof *target);
	t->n += n;
	return GT_OK;
}

static double ratio_or_zero(int64_t a, int64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static bool has_label(const struct gt_target_tally *t, int64_t i)
{
	return t->target[i] > 0.5f;
}

/* Counts each label, and the samples whose labels are all predicted correctly. */
static int64_t count_labels(const struct gt_target_tally *t, struct gt_class_report *r)
{
	int64_t exact = 0;
	for (int64_t i = 0; i < t->n; i++) {
		bool all = true;
		for (int64_t c = 0; c < t->width; c++) {
			bool there = has_label(t, i * t->width + c), predicted = t->z[i * t->width + c] > 0;
			r->score[c].support += there;
			r->score[c].predicted += predicted;
			r->score[c].correct += there && predicted;
			all &= there == predicted;
		}
		exact += all;
	}
	return exact;
}

static void compute_means(const struct gt_target_tally *t, struct gt_class_report *r)
{
	int64_t correct = 0, support = 0, predicted = 0;
	for (int64_t c = 0; c < t->width; c++)
		support += r->score[c].support;
	for (int64_t c = 0; c < t->width; c++) {
		struct gt_class_score *s = &r->score[c];
		double w = ratio_or_zero(s->support, support), k = 1 / (double)t->width;
		s->precision = ratio_or_zero(s->correct, s->predicted);
		s->recall = ratio_or_zero(s->correct, s->support);
		s->f1 = ratio_or_zero(2 * s->correct, s->support + s->predicted);
		r->macro.precision += k * s->precision;
		r->macro.recall += k * s->recall;
		r->macro.f1 += k * s->f1;
		r->weighted.precision += w * s->precision;
		r->weighted.recall += w * s->recall;
		r->weighted.f1 += w * s->f1;
		correct += s->correct;
		predicted += s->predicted;
	}
	r->micro = (struct gt_class_mean){ratio_or_zero(correct, predicted), ratio_or_zero(correct, support),
	                                  ratio_or_zero(2 * correct, support + predicted)};
}

/* Sets the areas of all labels and their mean, and the mean loss: the binary cross entropy of all labels. */
static enum gt_code compute_areas(const struct gt_target_tally *t, struct gt_class_report *r, struct gt_err *err)
{
	size_t n = (size_t)t->n + 1;
	double *p = malloc(2 * n * sizeof *p), sum = 0, loss = 0;
	bool *there = malloc(n * sizeof *there);
	int64_t have = 0;
	for (int64_t c = 0; c < t->width && p && there; c++) {
		for (int64_t i = 0; i < t->n; i++) {
			double z = (double)t->z[i * t->width + c];
			p[i] = z; /* in the order of the probabilities */
			there[i] = has_label(t, i * t->width + c);
			loss += (z > 0 ? z : 0) - z * (double)t->target[i * t->width + c] + log1p(exp(-fabs(z)));
		}
		r->score[c].auc = gt_roc_area(p, there, t->n, p + n);
		sum += isnan(r->score[c].auc) ? 0 : r->score[c].auc;
		have += !isnan(r->score[c].auc);
	}
	bool enough = p && there;
	free(p);
	free(there);
	r->auc = have ? sum / (double)have : NAN;
	r->log_loss = t->n ? loss / (double)(t->n * t->width) : NAN;
	return enough ? GT_OK : gt_fail_memory(err, 2 * n * sizeof *p);
}

enum gt_code gt_target_tally_labels(struct gt_target_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err)
{
	struct gt_class_report *r;
	GT_NEW(r, a, 1, err);
	GT_NEW(r->score, a, t->width, err);
	r->classes = t->width;
	r->samples = t->n;
	r->several = true;
	r->accuracy = t->n ? ratio_or_zero(count_labels(t, r), t->n) : NAN;
	r->top5 = NAN;
	compute_means(t, r);
	GT_TRY(compute_areas(t, r, err));
	*out = r;
	return GT_OK;
}
