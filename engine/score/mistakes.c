#include "score/mistakes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum gt_code alloc_mistakes(struct gt_mistakes *m, int64_t outputs, struct gt_err *err)
{
	GT_CALLOC(m->worst, m->most + 1, err);
	int64_t pairs = 2 * outputs * m->most;
	GT_CALLOC(m->probability, outputs, err);
	if (m->numbers)
		GT_CALLOC(m->numbers_of, pairs, err);
	for (int i = 0; m->numbers && i < m->most; i++) {
		m->worst[i].value = m->numbers_of + 2 * outputs * i;
		m->worst[i].wanted = m->worst[i].value + outputs;
	}
	return GT_OK;
}

void gt_mistakes_free(struct gt_mistakes *m)
{
	free(m->worst);
	free(m->numbers_of);
	free(m->probability);
	free(m->order);
}

/* Inserts a mistake after all worse or equal mistakes. Returns its entry, whose arrays the caller fills; NULL: x is not among the m->most
 * worst mistakes. */
static struct gt_mistake *insert_mistake(struct gt_mistakes *m, const struct gt_mistake *x)
{
	int i = m->n;
	if (m->n == m->most && (!m->n || m->worst[m->n - 1].error >= x->error))
		return NULL;
	if (m->n < m->most)
		m->n++;
	else
		i--;
	struct gt_mistake spare = m->worst[i];
	for (; i > 0 && m->worst[i - 1].error < x->error; i--)
		m->worst[i] = m->worst[i - 1];
	m->worst[i] = *x;
	m->worst[i].value = spare.value;
	m->worst[i].wanted = spare.wanted;
	return &m->worst[i];
}

/* ---- one label for each sample --------------------------------------------------------------------------------------------------- */
static int64_t find_largest(const float *z, int64_t n)
{
	int64_t best = 0;
	for (int64_t i = 1; i < n; i++)
		best = z[i] > z[best] ? i : best;
	return best;
}

/* Writes the softmax of the outputs z[n] to p. largest: index of the largest output. */
static void fill_softmax(double *p, const float *z, int64_t n, int64_t largest)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += p[i] = exp((double)z[i] - (double)z[largest]);
	for (int64_t i = 0; i < n; i++)
		p[i] /= sum;
}

static void add_class(struct gt_mistakes *m, const float *z, int64_t n, int32_t label)
{
	double *p = m->probability;
	int64_t best = find_largest(z, n);
	if (label == m->ignore)
		return;
	fill_softmax(p, z, n, best);
	gt_calibration_add(&m->calibration, p[best], best == label);
	struct gt_mistake x = {.at = m->seen, .label = label, .predicted = best, .probability = p[best], .right = p[label], .error = p[best]};
	if (best != label)
		insert_mistake(m, &x);
}

/* ---- several labels ---------------------------------------------------------------------------------------------------------------- */
static void add_labels(struct gt_mistakes *m, const float *z, const float *target, int64_t n)
{
	struct gt_mistake x = {.at = m->seen, .label = -1, .right = NAN};
	for (int64_t i = 0; i < n; i++) {
		bool there = target[i] > 0.5f, wrong = there != (z[i] > 0);
		double p = 1 / (1 + exp(-(double)z[i])), error = there ? 1 - p : p;
		gt_calibration_add(&m->calibration, p, there);
		if (!wrong || error <= x.error)
			continue;
		x.label = x.predicted = i;
		x.probability = p;
		x.error = error;
		x.missing = there;
	}
	if (x.label >= 0)
		insert_mistake(m, &x);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------------------- */
static void add_numbers(struct gt_mistakes *m, const float *z, const float *target, int64_t n)
{
	struct gt_mistake x = {.at = m->seen, .label = -1, .predicted = -1, .probability = NAN, .right = NAN, .nvalues = (int)n};
	for (int64_t i = 0; i < n; i++)
		x.error = fmax(x.error, fabs((double)z[i] - (double)target[i]));
	struct gt_mistake *kept = insert_mistake(m, &x);
	for (int64_t i = 0; kept && i < n; i++) {
		kept->value[i] = z[i];
		kept->wanted[i] = target[i];
	}
}

enum gt_code gt_mistakes_add(struct gt_mistakes *m, const struct gt_output_rows *rows, struct gt_err *err)
{
	int64_t n = rows->classes;
	if (!m->worst)
		GT_TRY(alloc_mistakes(m, n, err));
	for (int64_t i = 0; i < rows->n; i++, m->seen++) {
		const float *z = rows->z + i * n;
		if (!rows->target)
			add_class(m, z, n, rows->label[i]);
		else if (m->numbers)
			add_numbers(m, z, rows->target + i * n, n);
		else
			add_labels(m, z, rows->target + i * n, n);
	}
	return GT_OK;
}
