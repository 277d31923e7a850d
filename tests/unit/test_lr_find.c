/* The learning rates that a range test suggests, against fastai's (golden/make_lr_find.py). */
#include "setup/lr_suggest.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 1000

static struct gt_lr_point point[POINTS];
static uint64_t state;

static int64_t number(void) /* the generator of make_lr_find.py */
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(state >> 33);
}

static void fill(int steps, int points, int seed)
{
	state = (uint64_t)seed;
	int64_t depth = 1 + number() % 64, bottom = points / 3 + number() % points, noise = 1 + number() % 96;
	for (int i = 0; i < points; i++) {
		point[i].lr = 1e-7 * pow(10 / 1e-7, (double)i / (steps - 1));
		point[i].smooth = (double)(4096 + llabs(i - bottom) * depth + number() % noise) / 1024;
	}
}

/* The rates are those of the same points, which both sides compute with pow(): a few units of rounding. */
static bool same(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fabs(b);
}

TEST(suggestions_are_fastais)
{
	char path[512], name[32], line[512];
	snprintf(path, sizeof path, "%s/tests/golden/lr_find.txt", test_source());
	FILE *f = fopen(path, "r");
	CHECK(f != NULL);
	int n = 0, steps, points, seed;
	double want[GT_LR_METHODS];
	for (; fgets(line, sizeof line, f); n++) {
		struct gt_err e = {0};
		struct gt_lr_curve c = {.point = point};
		CHECK(sscanf(line, "%31s %d %d %d %lf %lf %lf", name, &steps, &points, &seed, &want[0], &want[1], &want[2]) == 7);
		CHECK(points <= POINTS);
		fill(steps, points, seed);
		c.steps = steps;
		c.n = points;
		CHECK_OK(gt_lr_suggest(&c, &e), e);
		for (int i = 0; i < GT_LR_METHODS; i++)
			CHECK_MSG(same(c.suggestion[i].lr, want[i]), "%s of seed %d: %s is %.17g, not %.17g", name, seed, c.suggestion[i].method,
			          c.suggestion[i].lr, want[i]);
	}
	fclose(f);
	CHECK(n == 60);
}

/* fastai suggests the first of the rates for a loss that never falls; gtrain suggests none. */
TEST(no_descent_no_suggestion)
{
	struct gt_err e = {0};
	for (int flat = 0; flat < 2; flat++) {
		struct gt_lr_curve c = {.point = point, .steps = 100, .n = 100};
		for (int i = 0; i < c.n; i++)
			point[i] = (struct gt_lr_point){1e-7 * (i + 1), 1, flat ? 2 : 2 + i};
		CHECK_OK(gt_lr_suggest(&c, &e), e);
		for (int i = 0; i < GT_LR_METHODS; i++)
			CHECK(isnan(c.suggestion[i].lr));
	}
}

/* With fewer than two points between the first tenth and the last five, there is no curve. */
TEST(few_points_no_suggestion)
{
	struct gt_err e = {0};
	for (int n = 0; n <= 16; n++) {
		struct gt_lr_curve c = {.point = point, .steps = 100, .n = n};
		for (int i = 0; i < n; i++)
			point[i] = (struct gt_lr_point){1e-7 * (i + 1), 1, 2.0 / (i + 1)};
		CHECK_OK(gt_lr_suggest(&c, &e), e);
		CHECK(isnan(c.suggestion[GT_LR_VALLEY].lr));
	}
}

RUN_TESTS()
