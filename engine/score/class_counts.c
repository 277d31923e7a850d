#include "score/class_counts.h"
#include <math.h>
#include <stdlib.h>

enum gt_code gt_class_counts_add(struct gt_class_counts *t, const struct gt_output_rows *rows, struct gt_err *err)
{
	t->classes = rows->classes;
	if (!t->of && !(t->of = calloc((size_t)rows->classes, sizeof *t->of)))
		return gt_fail_memory(err, (size_t)rows->classes * sizeof *t->of);
	for (int64_t i = 0; i < rows->n; i++) {
		const float *z = rows->z + i * rows->classes;
		for (int64_t c = 0; c < rows->classes && rows->target; c++) { /* samples with several labels: each label is predicted or not */
			bool there = rows->target[i * rows->classes + c] > 0.5f;
			t->of[c].support += there;
			t->of[c].predicted += z[c] > 0;
			t->of[c].correct += there && z[c] > 0;
		}
		if (rows->target)
			continue;
		int64_t label = rows->label[i], best = 0;
		if (label == t->ignore)
			continue;
		for (int64_t c = 1; c < rows->classes; c++)
			best = z[c] > z[best] ? c : best;
		t->of[label].support++;
		t->of[best].predicted++;
		t->of[label].correct += label == best;
	}
	return GT_OK;
}

void gt_class_counts_free(struct gt_class_counts *t)
{
	free(t->of);
	t->of = NULL;
}

/* Returns the mean F1 over the classes that occur as a label or a prediction, like scikit-learn's f1_score with average="macro" and
 * zero_division=0. */
double gt_counts_f1(const struct gt_class_counts *t)
{
	double sum = 0;
	int64_t seen = 0;
	for (int64_t c = 0; t->of && c < t->classes; c++) {
		int64_t both = t->of[c].support + t->of[c].predicted;
		sum += both ? 2 * (double)t->of[c].correct / (double)both : 0;
		seen += both > 0;
	}
	return seen ? sum / (double)seen : NAN;
}

/* Returns the Matthews correlation coefficient, like scikit-learn's matthews_corrcoef; 0 if all labels or all predictions are the same
 * class. */
double gt_counts_mcc(const struct gt_class_counts *t)
{
	double n = 0, correct = 0, both = 0, support2 = 0, predicted2 = 0;
	for (int64_t c = 0; t->of && c < t->classes; c++) {
		double support = (double)t->of[c].support, predicted = (double)t->of[c].predicted;
		n += support;
		correct += (double)t->of[c].correct;
		both += support * predicted;
		support2 += support * support;
		predicted2 += predicted * predicted;
	}
	double scale = sqrt((n * n - support2) * (n * n - predicted2));
	return n > 0 ? scale > 0 ? (correct * n - both) / scale : 0 : NAN;
}

/* Returns the mean recall over the classes that occur as a label, like scikit-learn's balanced_accuracy_score. */
double gt_counts_balanced_acc(const struct gt_class_counts *t)
{
	double sum = 0;
	int64_t seen = 0;
	for (int64_t c = 0; t->of && c < t->classes; c++) {
		if (!t->of[c].support)
			continue;
		sum += (double)t->of[c].correct / (double)t->of[c].support;
		seen++;
	}
	return seen ? sum / (double)seen : NAN;
}
