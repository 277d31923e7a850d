#include "score/class_report.h"
#include "score/roc.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gt_class_tally {
	int64_t classes, ignore, cap; /* cap: number of samples for which there is memory */
	int64_t n;                    /* samples that count */
	int64_t added;                /* samples that were added, including those that do not count; for messages */
	float *z;                     /* [n][classes]: outputs minus the largest output of the sample */
	double *sum;                  /* [n]: sum of exp(z) of the sample */
	int32_t *label, *predicted;   /* [n] */
	int64_t top5;
	double loss;                  /* sum of -log(probability of the label) */
};

enum gt_code gt_class_tally_open(int64_t samples, int64_t classes, int64_t ignore_index, struct gt_class_tally **out, struct gt_err *err)
{
	struct gt_class_tally *t = calloc(1, sizeof *t);
	size_t n = samples > 0 ? (size_t)samples : 1, k = (size_t)classes, bytes;
	*out = t;
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	t->classes = classes;
	t->ignore = ignore_index;
	t->cap = samples;
	if (__builtin_mul_overflow(n, k * sizeof *t->z, &bytes))
		return gt_fail_memory(err, SIZE_MAX);
	t->z = malloc(bytes);
	t->sum = malloc(n * sizeof *t->sum);
	t->label = malloc(n * sizeof *t->label);
	t->predicted = malloc(n * sizeof *t->predicted);
	return t->z && t->sum && t->label && t->predicted ? GT_OK : gt_fail_memory(err, bytes + n * 16);
}

void gt_class_tally_close(struct gt_class_tally *t)
{
	if (!t)
		return;
	free(t->z);
	free(t->sum);
	free(t->label);
	free(t->predicted);
	free(t);
}

/* Adds one sample that counts. */
static enum gt_code add_sample(struct gt_class_tally *t, const float *z, int32_t label, struct gt_err *err)
{
	float *own = t->z + t->n * t->classes;
	int64_t best = 0, before = 0;
	double sum = 0;
	bool nan = false;
	for (int64_t c = 0; c < t->classes; c++) {
		nan |= isnan(z[c]);
		best = z[c] > z[best] ? c : best;
		before += c < label ? z[c] >= z[label] : z[c] > z[label];
	}
	if (nan || isinf(z[best]))
		return gt_fail(err, GT_EDIVERGED, "sample %lld of the split: an output of the model is not a finite number, so its classes have no "
		               "order", (long long)t->added);
	for (int64_t c = 0; c < t->classes; c++) {
		own[c] = z[c] - z[best];
		sum += exp((double)own[c]);
	}
	t->sum[t->n] = sum;
	t->label[t->n] = label;
	t->predicted[t->n] = (int32_t)best;
	t->top5 += before < 5;
	t->loss += log(sum) - (double)own[label];
	t->n++;
	return GT_OK;
}

enum gt_code gt_class_tally_add(struct gt_class_tally *t, const float *z, const int32_t *label, int64_t n, struct gt_err *err)
{
	if (t->added + n > t->cap)
		return gt_fail(err, GT_EINTERNAL, "an evaluation of %lld samples returned more outputs", (long long)t->cap);
	for (int64_t i = 0; i < n; i++, t->added++) {
		if (label[i] == t->ignore)
			continue;
		if (label[i] < 0 || label[i] >= t->classes)
			return gt_fail(err, GT_EDATA, "sample %lld of the split: expected a label from 0 to %lld, got %d", (long long)t->added,
			               (long long)t->classes - 1, label[i]);
		GT_TRY(add_sample(t, z + i * t->classes, label[i], err));
	}
	return GT_OK;
}

/* ---- the areas under the ROC curves -------------------------------------------------------------------------------------------- */

#define BLOCK 16 /* number of classes whose probabilities are computed at once: their outputs are in one or two cache lines */

/* Sets the areas of all classes, and their mean over the classes that have one. */
static enum gt_code compute_areas(const struct gt_class_tally *t, struct gt_class_report *r, struct gt_err *err)
{
	size_t rows = (size_t)t->n + 1;
	double *p = malloc((BLOCK + 1) * rows * sizeof *p), sum = 0;
	bool *own = malloc(rows * sizeof *own);
	int64_t n = 0;
	if (!p || !own) {
		free(p);
		free(own);
		return gt_fail_memory(err, (BLOCK + 1) * rows * sizeof *p);
	}
	for (int64_t c0 = 0; c0 < t->classes; c0 += BLOCK) {
		int64_t k = t->classes - c0 < BLOCK ? t->classes - c0 : BLOCK;
		for (int64_t i = 0; i < t->n; i++)
			for (int64_t c = 0; c < k; c++)
				p[(size_t)c * rows + (size_t)i] = exp((double)t->z[i * t->classes + c0 + c]) / t->sum[i];
		for (int64_t c = 0; c < k; c++) {
			for (int64_t i = 0; i < t->n; i++)
				own[i] = t->label[i] == c0 + c;
			r->score[c0 + c].auc = gt_roc_area(p + (size_t)c * rows, own, t->n, p + BLOCK * rows);
		}
	}
	free(p);
	free(own);
	if (t->classes == 2) /* the areas are the same but for their last bits */
		r->score[0].auc = r->score[1].auc;
	for (int64_t c = 0; c < t->classes; c++) {
		sum += isnan(r->score[c].auc) ? 0 : r->score[c].auc;
		n += !isnan(r->score[c].auc);
	}
	r->auc = n ? sum / (double)n : NAN;
	return GT_OK;
}

/* ---- confusion ------------------------------------------------------------------------------------------------------------------- */

static int by_cell(const void *a, const void *b)
{
	const struct gt_confusion_cell *x = a, *y = b;
	return x->label != y->label ? (x->label < y->label ? -1 : 1) : x->predicted < y->predicted ? -1 : x->predicted > y->predicted;
}

static int by_frequency(const void *a, const void *b)
{
	const struct gt_confusion_cell *x = a, *y = b;
	return x->n != y->n ? (x->n > y->n ? -1 : 1) : by_cell(a, b);
}

/* Sets the list of confused classes, and the matrix if it is not too large. */
static enum gt_code compute_confusion(const struct gt_class_tally *t, struct gt_arena *a, struct gt_class_report *r, struct gt_err *err)
{
	struct gt_confusion_cell *cell;
	int64_t errors = 0, n = 0, k = t->classes;
	if (k <= GT_CONFUSION_CLASSES)
		GT_NEW(r->matrix, a, k * k, err);
	for (int64_t i = 0; i < t->n; i++) {
		errors += t->predicted[i] != t->label[i];
		if (r->matrix)
			r->matrix[t->label[i] * k + t->predicted[i]]++;
	}
	GT_NEW(cell, a, errors + 1, err);
	for (int64_t i = 0; i < t->n; i++)
		if (t->predicted[i] != t->label[i])
			cell[n++] = (struct gt_confusion_cell){t->label[i], t->predicted[i], 1};
	qsort(cell, (size_t)n, sizeof *cell, by_cell);
	for (int64_t i = 0; i < n; i++) {
		if (r->nconfused && by_cell(&cell[r->nconfused - 1], &cell[i]) == 0)
			cell[r->nconfused - 1].n++;
		else
			cell[r->nconfused++] = cell[i];
	}
	qsort(cell, (size_t)r->nconfused, sizeof *cell, by_frequency);
	r->confused = cell;
	return GT_OK;
}

/* ---- the report ------------------------------------------------------------------------------------------------------------------ */

static double ratio_or_zero(int64_t a, int64_t b)
{
	return b ? (double)a / (double)b : 0;
}

static void compute_scores(const struct gt_class_tally *t, struct gt_class_report *r)
{
	int64_t correct = 0, seen = 0;
	for (int64_t i = 0; i < t->n; i++) {
		r->score[t->label[i]].support++;
		r->score[t->predicted[i]].predicted++;
		r->score[t->label[i]].correct += t->predicted[i] == t->label[i];
	}
	for (int64_t c = 0; c < t->classes; c++) {
		struct gt_class_score *s = &r->score[c];
		s->precision = ratio_or_zero(s->correct, s->predicted);
		s->recall = ratio_or_zero(s->correct, s->support);
		s->f1 = ratio_or_zero(2 * s->correct, s->support + s->predicted);
		correct += s->correct;
		if (!s->support && !s->predicted)
			continue;
		double w = ratio_or_zero(s->support, t->n);
		seen++;
		r->macro.precision += s->precision;
		r->macro.recall += s->recall;
		r->macro.f1 += s->f1;
		r->weighted.precision += w * s->precision;
		r->weighted.recall += w * s->recall;
		r->weighted.f1 += w * s->f1;
	}
	r->macro.precision /= seen ? (double)seen : NAN;
	r->macro.recall /= seen ? (double)seen : NAN;
	r->macro.f1 /= seen ? (double)seen : NAN;
	r->accuracy = t->n ? ratio_or_zero(correct, t->n) : NAN;
	r->top5 = t->n ? ratio_or_zero(t->top5, t->n) : NAN;
	r->log_loss = t->n ? t->loss / (double)t->n : NAN;
}

enum gt_code gt_class_tally_report(struct gt_class_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err)
{
	struct gt_class_report *r;
	GT_NEW(r, a, 1, err);
	GT_NEW(r->score, a, t->classes, err);
	r->classes = t->classes;
	r->samples = t->n;
	compute_scores(t, r);
	GT_TRY(compute_confusion(t, a, r, err));
	GT_TRY(compute_areas(t, r, err));
	*out = r;
	return GT_OK;
}
