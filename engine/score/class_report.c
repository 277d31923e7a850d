#include "score/class_report.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- ratios, means and areas ------------------------------------------------------------------------------------------------------ */

static double ratio_or_zero(int64_t a, int64_t b)
{
	return b ? (double)a / (double)b : 0;
}

/* Computes the scores of a class from its counts. */
static void set_ratios(struct gt_class_score *s)
{
	s->precision = ratio_or_zero(s->correct, s->predicted);
	s->recall = ratio_or_zero(s->correct, s->support);
	s->f1 = ratio_or_zero(2 * s->correct, s->support + s->predicted);
}

static void add_weighted(struct gt_class_mean *m, double weight, const struct gt_class_score *s)
{
	m->precision += weight * s->precision;
	m->recall += weight * s->recall;
	m->f1 += weight * s->f1;
}

/* Returns the mean area under the ROC curve over the classes for which the area is defined. */
static double mean_area(const struct gt_class_report *r)
{
	double sum = 0;
	int64_t n = 0;
	for (int64_t c = 0; c < r->classes; c++) {
		sum += isnan(r->score[c].auc) ? 0 : r->score[c].auc;
		n += !isnan(r->score[c].auc);
	}
	return n ? sum / (double)n : NAN;
}

static enum gt_code open_report(int64_t classes, int64_t samples, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err)
{
	GT_NEW(*out, a, 1, err);
	GT_NEW((*out)->score, a, classes, err);
	(*out)->classes = classes;
	(*out)->samples = samples;
	return GT_OK;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Counts the values < v (<= v if `equal`) in the ascending array sorted[n]. */
static int64_t count_below(const double *sorted, int64_t n, double v, bool equal)
{
	int64_t lo = 0, hi = n;
	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;
		if (sorted[mid] < v || (equal && sorted[mid] == v))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Returns the probability that a positive sample has a larger score than a negative sample, where equal scores count half (Mann-Whitney;
 * the sum is exact). NAN: no positive or no negative sample. p[all]: the scores. positive[all]: whether each sample is positive. own:
 * scratch memory for one value per positive sample. */
static double roc_area(const double *p, const bool *positive, int64_t all, double *own)
{
	int64_t n = 0, halves = 0;
	for (int64_t i = 0; i < all; i++)
		if (positive[i])
			own[n++] = p[i];
	if (n == 0 || n == all)
		return NAN;
	qsort(own, (size_t)n, sizeof *own, by_value);
	for (int64_t i = 0; i < all; i++) {
		if (positive[i])
			continue;
		int64_t above = n - count_below(own, n, p[i], false);
		halves += above + (above && own[n - above] == p[i] ? n - count_below(own, n, p[i], true) : above);
	}
	return 0.5 * (double)halves / ((double)n * (double)(all - n));
}

/* ---- one label for each sample --------------------------------------------------------------------------------------------------- */

struct gt_class_tally {
	int64_t classes, ignore, cap; /* cap: number of samples for which memory is allocated */
	int64_t n;                    /* number of counted samples */
	int64_t added;                /* number of added samples, including ignored samples, for error messages */
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

/* Adds one sample that is not ignored. */
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
		return gt_fail(err, GT_EDIVERGED, "sample %lld of the split: an output of the model is not finite, so the classes cannot be ranked",
		               (long long)t->added);
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
		return gt_fail(err, GT_EINTERNAL, "expected outputs for %lld samples, got outputs for more samples", (long long)t->cap);
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

#define BLOCK 16 /* number of classes whose probabilities are computed at once; their outputs of a sample are in one or two cache lines */

/* Sets the areas of all classes, and their mean over the classes for which the area is defined. */
static enum gt_code compute_areas(const struct gt_class_tally *t, struct gt_class_report *r, struct gt_err *err)
{
	size_t rows = (size_t)t->n + 1;
	double *p = malloc((BLOCK + 1) * rows * sizeof *p);
	bool *own = malloc(rows * sizeof *own);
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
			r->score[c0 + c].auc = roc_area(p + (size_t)c * rows, own, t->n, p + BLOCK * rows);
		}
	}
	free(p);
	free(own);
	if (t->classes == 2) /* with two classes, the areas are equal except for rounding */
		r->score[0].auc = r->score[1].auc;
	r->auc = mean_area(r);
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

/* Sets the list of confused pairs of classes, the most frequent pair first, and, with at most GT_CONFUSION_CLASSES classes, the confusion
 * matrix. */
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
		set_ratios(s);
		correct += s->correct;
		if (!s->support && !s->predicted)
			continue;
		seen++;
		add_weighted(&r->macro, 1, s);
		add_weighted(&r->weighted, ratio_or_zero(s->support, t->n), s);
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
	GT_TRY(open_report(t->classes, t->n, a, &r, err));
	compute_scores(t, r);
	GT_TRY(compute_confusion(t, a, r, err));
	GT_TRY(compute_areas(t, r, err));
	*out = r;
	return GT_OK;
}

/* ---- several labels --------------------------------------------------------------------------------------------------------------- */

struct gt_target_tally {
	/* width: number of labels of a sample; cap: number of samples for which there is memory; n: number of added samples */
	int64_t width, cap, n;
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
		return gt_fail(err, GT_EINTERNAL, "expected outputs for %lld samples, got outputs for more samples", (long long)t->cap);
	for (size_t i = 0; i < count; i++)
		if (!isfinite(z[i]))
			return gt_fail(err, GT_EDIVERGED, "sample %lld of the split: an output of the model is not finite",
			               (long long)t->n + (long long)i / (long long)t->width);
	memcpy(t->z + t->n * t->width, z, count * sizeof *z);
	memcpy(t->target + t->n * t->width, target, count * sizeof *target);
	t->n += n;
	return GT_OK;
}

static bool has_label(const struct gt_target_tally *t, int64_t i)
{
	return t->target[i] > 0.5f;
}

/* Counts the labels, predictions and correct predictions of each class. Returns the number of samples whose labels are all predicted
 * correctly. */
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

static void compute_label_means(const struct gt_target_tally *t, struct gt_class_report *r)
{
	int64_t correct = 0, support = 0, predicted = 0;
	for (int64_t c = 0; c < t->width; c++)
		support += r->score[c].support;
	for (int64_t c = 0; c < t->width; c++) {
		struct gt_class_score *s = &r->score[c];
		set_ratios(s);
		add_weighted(&r->macro, 1 / (double)t->width, s);
		add_weighted(&r->weighted, ratio_or_zero(s->support, support), s);
		correct += s->correct;
		predicted += s->predicted;
	}
	r->micro = (struct gt_class_mean){ratio_or_zero(correct, predicted), ratio_or_zero(correct, support),
	                                  ratio_or_zero(2 * correct, support + predicted)};
}

/* Sets the area under the ROC curve of each label, the mean of these areas, and the mean binary cross entropy of all labels. */
static enum gt_code compute_label_areas(const struct gt_target_tally *t, struct gt_class_report *r, struct gt_err *err)
{
	size_t n = (size_t)t->n + 1;
	double *p = malloc(2 * n * sizeof *p), loss = 0;
	bool *there = malloc(n * sizeof *there);
	for (int64_t c = 0; c < t->width && p && there; c++) {
		for (int64_t i = 0; i < t->n; i++) {
			double z = (double)t->z[i * t->width + c];
			p[i] = z; /* an output ranks samples like its probability, which grows with it */
			there[i] = has_label(t, i * t->width + c);
			loss += (z > 0 ? z : 0) - z * (double)t->target[i * t->width + c] + log1p(exp(-fabs(z)));
		}
		r->score[c].auc = roc_area(p, there, t->n, p + n);
	}
	bool enough = p && there;
	free(p);
	free(there);
	r->auc = mean_area(r);
	r->log_loss = t->n ? loss / (double)(t->n * t->width) : NAN;
	return enough ? GT_OK : gt_fail_memory(err, 2 * n * sizeof *p);
}

enum gt_code gt_target_tally_labels(struct gt_target_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err)
{
	struct gt_class_report *r;
	GT_TRY(open_report(t->width, t->n, a, &r, err));
	r->several = true;
	r->accuracy = t->n ? ratio_or_zero(count_labels(t, r), t->n) : NAN;
	r->top5 = NAN;
	compute_label_means(t, r);
	GT_TRY(compute_label_areas(t, r, err));
	*out = r;
	return GT_OK;
}

/* ---- one label or several --------------------------------------------------------------------------------------------------------- */

enum gt_code gt_report_tally_add(struct gt_report_tally *t, const struct gt_output_rows *rows, struct gt_err *err)
{
	if (rows->target) {
		if (!t->labels)
			GT_TRY(gt_target_tally_open(t->samples, rows->classes, &t->labels, err));
		return gt_target_tally_add(t->labels, rows->z, rows->target, rows->n, err);
	}
	if (!t->classes)
		GT_TRY(gt_class_tally_open(t->samples, rows->classes, t->ignore, &t->classes, err));
	return gt_class_tally_add(t->classes, rows->z, rows->label, rows->n, err);
}

enum gt_code gt_report_tally_report(const struct gt_report_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err)
{
	return t->labels ? gt_target_tally_labels(t->labels, a, out, err) : gt_class_tally_report(t->classes, a, out, err);
}

void gt_report_tally_free(struct gt_report_tally *t)
{
	gt_class_tally_close(t->classes);
	gt_target_tally_close(t->labels);
}
