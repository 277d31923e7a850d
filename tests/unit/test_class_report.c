/* The report by class against scikit-learn's numbers (golden/make_class_report.py). */
#include "score/class_report.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES 32
#define SAMPLES 512

static uint64_t state;

static int64_t number(void) /* the generator of make_class_report.py */
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(state >> 33);
}

static float z[SAMPLES * CLASSES];
static int32_t label[SAMPLES];

static void fill(int64_t samples, int64_t classes, int64_t levels, int64_t labels, int64_t cut)
{
	state = (uint64_t)(samples * 1000 + classes);
	for (int64_t i = 0; i < samples; i++) {
		float *row = z + i * classes;
		label[i] = (int32_t)(number() % labels);
		for (int64_t c = 0; c < classes; c++)
			row[c] = c < cut ? (float)((double)(number() % levels) * (8.0 / (double)levels)) : -20;
		if (number() % 2 && label[i] < cut)
			row[label[i]] += 1.5f;
	}
}

/* Scores are ratios of the same whole numbers, sums of at most 32 of them, or sums of 400 logarithms: a few units of rounding. */
static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * (1 + fabs(b));
}

/* Makes the report of the samples in z and label, added in pieces. */
static struct gt_class_report *report(struct gt_arena *a, int64_t samples, int64_t classes, int64_t ignore)
{
	struct gt_class_tally *t;
	struct gt_class_report *r = NULL;
	struct gt_err e = {0};
	CHECK_OK(gt_class_tally_open(samples, classes, ignore, &t, &e), e);
	for (int64_t i = 0; i < samples; i += 7)
		CHECK_OK(gt_class_tally_add(t, z + i * classes, label + i, samples - i < 7 ? samples - i : 7, &e), e);
	CHECK_OK(gt_class_tally_report(t, a, &r, &e), e);
	gt_class_tally_close(t);
	return r;
}

static void check_class(const char *name, const struct gt_class_report *r, int64_t c, char *save)
{
	const struct gt_class_score *s = &r->score[c];
	const double got[] = {s->precision, s->recall, s->f1, (double)s->support, s->auc};
	for (int i = 0; i < 5; i++) {
		double want = strtod(strtok_r(NULL, " ", &save), NULL);
		CHECK_MSG(same(got[i], want), "%s: number %d of class %d: %.17g, scikit-learn %.17g", name, i, (int)c, got[i], want);
	}
	for (int64_t p = 0; p < r->classes; p++) {
		long want = atol(strtok_r(NULL, " ", &save));
		CHECK_MSG(r->matrix[c * r->classes + p] == want, "%s: confusion of %d with %d", name, (int)c, (int)p);
	}
}

static void check_numbers(const char *name, const char *what, const double *got, int n, char **save)
{
	for (int i = 0; i < n; i++) {
		double want = strtod(strtok_r(NULL, " ", save), NULL);
		CHECK_MSG(same(got[i], want), "%s: %s %d: %.17g, scikit-learn %.17g", name, what, i, got[i], want);
	}
}

TEST(numbers_are_scikit_learns)
{
	char path[512], *line = NULL, name[64] = "";
	size_t cap = 0;
	int cases = 0, classes = 0;
	struct gt_arena *a;
	struct gt_class_report *r = NULL;
	CHECK(gt_arena_open(&a, NULL) == GT_OK);
	snprintf(path, sizeof path, "%s/tests/golden/class_report.txt", test_source());
	FILE *f = fopen(path, "r");
	CHECK_MSG(f != NULL, "%s is missing", path);
	while (f && getline(&line, &cap, f) > 0) {
		char *save, *word = strtok_r(line, " \n", &save);
		long v[5];
		if (!strcmp(word, "case")) {
			snprintf(name, sizeof name, "%s", strtok_r(NULL, " ", &save));
			for (int i = 0; i < 5; i++)
				v[i] = atol(strtok_r(NULL, " ", &save));
			fill(v[0], v[1], v[2], v[3], v[4]);
			r = report(a, v[0], v[1], -100);
			cases++;
			classes = 0;
		} else if (!strcmp(word, "class")) {
			check_class(name, r, classes++, save);
		} else if (!strcmp(word, "all")) {
			const double got[] = {r->accuracy, r->auc, r->log_loss};
			check_numbers(name, "total", got, 3, &save);
			double want = strtod(strtok_r(NULL, " ", &save), NULL);
			CHECK_MSG(isnan(want) || same(r->top5, want), "%s: top-5 %.17g, scikit-learn %.17g", name, r->top5, want);
		} else {
			const struct gt_class_mean *m = !strcmp(word, "macro") ? &r->macro : &r->weighted;
			const double got[] = {m->precision, m->recall, m->f1};
			check_numbers(name, word, got, 3, &save);
		}
	}
	CHECK_MSG(cases == 9, "%d cases compared", cases);
	free(line);
	if (f)
		fclose(f);
	gt_arena_close(a);
}

/* Pairs are sorted by frequency, and each error is in one of them, also where there are too many classes for a matrix. */
TEST(confused_pairs)
{
	enum { MANY = GT_CONFUSION_CLASSES + 1 };
	struct gt_arena *a;
	float *wide = calloc(6 * MANY, sizeof *wide);
	const int32_t truth[6] = {3, 3, 3, 7, 7, 1000}, said[6] = {4, 4, 3, 3, 7, 0};
	struct gt_class_tally *t;
	struct gt_class_report *r;
	struct gt_err e = {0};
	CHECK(gt_arena_open(&a, NULL) == GT_OK);
	for (int i = 0; i < 6; i++)
		wide[i * MANY + said[i]] = 1;
	CHECK_OK(gt_class_tally_open(6, MANY, -100, &t, &e), e);
	CHECK_OK(gt_class_tally_add(t, wide, truth, 6, &e), e);
	CHECK_OK(gt_class_tally_report(t, a, &r, &e), e);
	CHECK(!r->matrix && r->nconfused == 3);
	CHECK(r->confused[0].label == 3 && r->confused[0].predicted == 4 && r->confused[0].n == 2);
	CHECK(r->confused[1].label == 7 && r->confused[1].predicted == 3 && r->confused[1].n == 1);
	CHECK(r->confused[2].label == 1000 && r->confused[2].predicted == 0 && r->confused[2].n == 1);
	CHECK(gt_class_tally_add(t, wide, truth, 1, &e) == GT_EINTERNAL);
	gt_class_tally_close(t);
	gt_arena_close(a);
	free(wide);
}

/* Ignored samples do not count; a label without an output and an output that is not a number are errors that name the sample. */
TEST(labels_and_outputs)
{
	struct gt_arena *a;
	struct gt_class_tally *t;
	struct gt_err e = {0};
	CHECK(gt_arena_open(&a, NULL) == GT_OK);
	fill(60, 3, 8, 3, 3);
	for (int i = 1; i < 60; i += 2)
		label[i] = -1;
	struct gt_class_report *r = report(a, 60, 3, -1);
	CHECK(r->samples == 30 && r->score[0].support + r->score[1].support + r->score[2].support == 30);
	CHECK_OK(gt_class_tally_open(4, 3, -1, &t, &e), e);
	CHECK_OK(gt_class_tally_add(t, z, label, 2, &e), e);
	CHECK(gt_class_tally_add(t, z, (const int32_t[]){3}, 1, &e) == GT_EDATA && strstr(e.msg, "sample 2 of the split"));
	CHECK(gt_class_tally_add(t, (const float[]){1, NAN, 0}, (const int32_t[]){0}, 1, &e) == GT_EDIVERGED);
	CHECK(gt_class_tally_add(t, (const float[]){1, INFINITY, 0}, (const int32_t[]){0}, 1, &e) == GT_EDIVERGED);
	CHECK_OK(gt_class_tally_add(t, (const float[]){1, -INFINITY, 0}, (const int32_t[]){0}, 1, &e), e);
	gt_class_tally_close(t);
	gt_arena_close(a);
}

RUN_TESTS()
