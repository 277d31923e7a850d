/* Learning-rate curves against PyTorch's (golden/make_schedules.py), and the orders of epochs. */
#include "run/permute.h"
#include "run/schedule.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	struct gt_conf_schedule s;
} cases[] = {
	{"step", {.type = GT_SCHED_STEP, .unit = GT_UNIT_EPOCH, .step_size = 3, .gamma = 0.5}},
	{"multistep", {.type = GT_SCHED_MULTISTEP, .unit = GT_UNIT_EPOCH, .milestones = {2, {2, 5}}, .gamma = 0.1}},
	{"multistep-steps", {.type = GT_SCHED_MULTISTEP, .unit = GT_UNIT_STEP, .milestones = {2, {7, 21}}, .gamma = 0.1}},
	{"exponential", {.type = GT_SCHED_EXPONENTIAL, .unit = GT_UNIT_EPOCH, .gamma = 0.8}},
	{"cosine", {.type = GT_SCHED_COSINE, .unit = GT_UNIT_EPOCH, .min_lr = 0.001}},
	{"polynomial", {.type = GT_SCHED_POLYNOMIAL, .unit = GT_UNIT_STEP, .power = 2, .t_max = 40}},
	{"onecycle", {.type = GT_SCHED_ONECYCLE, .unit = GT_UNIT_STEP, .pct_start = 0.3, .div_factor = 25, .final_div_factor = 1e4}},
	{"warmup-cosine", {.type = GT_SCHED_COSINE, .unit = GT_UNIT_EPOCH, .warmup = 2, .warmup_start = 0.1}},
	{"warmup-step", {.type = GT_SCHED_STEP, .unit = GT_UNIT_STEP, .step_size = 10, .gamma = 0.5, .warmup = 5, .warmup_start = 0.25}},
};

TEST(curves_are_pytorchs)
{
	char path[512], *line = NULL;
	size_t cap = 0;
	int seen = 0;
	snprintf(path, sizeof path, "%s/tests/golden/schedules.txt", test_source());
	FILE *f = fopen(path, "r");
	CHECK_MSG(f != NULL, "%s is missing", path);
	while (f && getline(&line, &cap, f) > 0) {
		char *save, *name = strtok_r(line, " ", &save), *word;
		struct gt_conf_train t = {.optimizer = {.lr = 0.1}};
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
			if (!strcmp(cases[i].name, name)) {
				t.schedule = cases[i].s;
				seen++;
			}
		for (int step = 0; (word = strtok_r(NULL, " ", &save)); step++) {
			double want = strtod(word, NULL), got = gt_schedule_lr(&t, step, 40, 4);
			/* PyTorch multiplies its recursive forms up; both are doubles, 40 steps of rounding */
			CHECK_MSG(fabs(got - want) <= 1e-13 + 1e-12 * fabs(want), "%s at step %d: %.17g, PyTorch %.17g", name, step, got, want);
		}
	}
	CHECK_MSG(seen == (int)(sizeof cases / sizeof *cases), "%d curves compared", seen);
	free(line);
	if (f)
		fclose(f);
}

static bool is_permutation(const int64_t *p, int64_t n)
{
	char *seen = calloc((size_t)n, 1);
	bool ok = true;
	for (int64_t i = 0; i < n; i++)
		ok = ok && p[i] >= 0 && p[i] < n && !seen[p[i]]++;
	free(seen);
	return ok;
}

TEST(epochs_are_permutations_and_differ)
{
	enum { N = 1001 };
	int64_t a[N], b[N], c[N];
	struct gt_err e;
	for (int s = 0; s < 2; s++) {
		CHECK_OK(gt_permute((enum gt_sampler)s, 7, 0, N, a, &e), e);
		CHECK_OK(gt_permute((enum gt_sampler)s, 7, 1, N, b, &e), e);
		CHECK_OK(gt_permute((enum gt_sampler)s, 7, 0, N, c, &e), e);
		CHECK(is_permutation(a, N) && is_permutation(b, N));
		CHECK(memcmp(a, b, sizeof a) && !memcmp(a, c, sizeof a));
	}
}

TEST(torch_order)
{
	static const int64_t want[10] = {4, 1, 7, 5, 3, 9, 0, 8, 6, 2}; /* torch.randperm(10) after manual_seed(0): PARITY */
	int64_t got[10];
	struct gt_err e;
	CHECK_OK(gt_permute(GT_SAMPLER_TORCH, 0, 0, 10, got, &e), e);
	CHECK(!memcmp(got, want, sizeof got));
}

TEST(split_keeps_every_sample_once)
{
	enum { N = 500, V = 50 };
	int64_t all[N];
	struct gt_err e;
	CHECK_OK(gt_permute_split(3, N, V, all, all + N - V, &e), e);
	CHECK(is_permutation(all, N));
}

/* Each position must be equally likely: 10 values, 20,000 epochs; chi-square with 81 degrees of freedom, limit at p = 1e-6. */
TEST(shuffle_is_uniform)
{
	int count[10][10] = {{0}};
	int64_t p[10];
	double chi = 0;
	for (uint64_t e = 0; e < 20000; e++) {
		gt_permute(GT_SAMPLER_GTRAIN, 1, e, 10, p, NULL);
		for (int i = 0; i < 10; i++)
			count[i][p[i]]++;
	}
	for (int i = 0; i < 10; i++)
		for (int j = 0; j < 10; j++)
			chi += (count[i][j] - 2000.0) * (count[i][j] - 2000.0) / 2000;
	CHECK_MSG(chi < 152, "chi-square %g", chi);
}

RUN_TESTS()
