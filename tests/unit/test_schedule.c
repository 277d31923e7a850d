/* Learning-rate curves against PyTorch's (golden/make_schedules.py), and the orders of epochs. */
#include "base/public.h"
#include "conf/metric_name.h"
#include "exec/epoch_order.h"
#include "session/lr_schedule.h"
#include "test.h"
#include "train/metric_watch.h"
#include "train/rate_bends.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CYCLIC .type = GT_SCHED_CYCLIC, .unit = GT_UNIT_STEP, .base_lr = 0.01, .step_size_up = 6, .base_momentum = 0.8, .max_momentum = 0.9
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
	{"onecycle-three",
	 {.type = GT_SCHED_ONECYCLE, .unit = GT_UNIT_STEP, .pct_start = 0.3, .div_factor = 25, .final_div_factor = 1e4, .three_phase = true}},
	{"onecycle-linear", {.type = GT_SCHED_ONECYCLE, .unit = GT_UNIT_STEP, .pct_start = 0.25, .div_factor = 25, .final_div_factor = 100,
	                     .anneal_strategy = GT_ANNEAL_LINEAR}},
	{"momentum:onecycle", {.type = GT_SCHED_ONECYCLE, .pct_start = 0.3, .base_momentum = 0.85, .max_momentum = 0.95}},
	{"momentum:onecycle-three",
	 {.type = GT_SCHED_ONECYCLE, .pct_start = 0.3, .base_momentum = 0.85, .max_momentum = 0.95, .three_phase = true}},
	{"momentum:onecycle-linear",
	 {.type = GT_SCHED_ONECYCLE, .pct_start = 0.25, .base_momentum = 0.7, .max_momentum = 0.9, .anneal_strategy = GT_ANNEAL_LINEAR}},
	{"flat-cosine", {.type = GT_SCHED_FLAT_COSINE, .unit = GT_UNIT_STEP, .pct_flat = 0.75, .min_lr = 0.001}},
	{"restarts", {.type = GT_SCHED_COSINE_RESTARTS, .unit = GT_UNIT_STEP, .t_0 = 10, .t_mult = 1, .min_lr = 0.001}},
	{"restarts-longer", {.type = GT_SCHED_COSINE_RESTARTS, .unit = GT_UNIT_EPOCH, .t_0 = 1.5, .t_mult = 2}},
	{"cyclic-triangular", {CYCLIC}},
	{"cyclic-triangular2", {CYCLIC, .step_size_down = 10, .mode = GT_CYCLIC_TRIANGULAR2}},
	{"cyclic-exp_range", {CYCLIC, .step_size_down = 10, .mode = GT_CYCLIC_EXP_RANGE, .gamma = 0.97}},
	{"momentum:cyclic-triangular", {CYCLIC}},
	{"momentum:cyclic-triangular2", {CYCLIC, .step_size_down = 10, .mode = GT_CYCLIC_TRIANGULAR2}},
	{"momentum:cyclic-exp_range", {CYCLIC, .step_size_down = 10, .mode = GT_CYCLIC_EXP_RANGE, .gamma = 0.97}},
	{"inverse-sqrt", {.type = GT_SCHED_INVERSE_SQRT, .unit = GT_UNIT_STEP, .timescale = 16}},
	{"inverse-sqrt-warmup", {.type = GT_SCHED_INVERSE_SQRT, .unit = GT_UNIT_EPOCH, .warmup = 2}},
	{"inverse-sqrt-default", {.type = GT_SCHED_INVERSE_SQRT, .unit = GT_UNIT_EPOCH}},
	{"warmup-cosine", {.type = GT_SCHED_COSINE, .unit = GT_UNIT_EPOCH, .warmup = 2, .warmup_start = 0.1}},
	{"warmup-step", {.type = GT_SCHED_STEP, .unit = GT_UNIT_STEP, .step_size = 10, .gamma = 0.5, .warmup = 5, .warmup_start = 0.25}},
};

/* The rates of ReduceLROnPlateau(factor=0.5, patience=1, threshold=0.01, cooldown=1, min_lr=0.01) of PyTorch 2.15 after each of 24 values,
 * of which one is not a number. */
TEST(plateau_is_pytorchs)
{
	static const double want[2][24] = {
	    {0.1,   0.1,  0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125, 0.0125, 0.01,
	     0.01,  0.01, 0.01, 0.01, 0.01, 0.01,  0.01,  0.01,  0.01,   0.01,   0.01,   0.01},
	    {0.1,    0.1,    0.1,  0.1,  0.05, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125,
	     0.0125, 0.0125, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01,  0.01,  0.01,  0.01}};
	for (int max = 0; max < 2; max++) {
		struct gt_conf_schedule s = {.type = GT_SCHED_PLATEAU, .metric = max ? "test/acc" : "valid/loss", .factor = 0.5, .patience = 1,
		                             .threshold = 0.01, .cooldown = 1, .min_lr = 0.01};
		struct gt_ckpt_watch w = {0};
		for (int i = 0; i < 24; i++) {
			double v = 1 + (i * 7) % 5 * 0.004 - (i < 15 ? 0.05 * (max ? -(i / 6) : i / 6) : 0);
			gt_watch_plateau(&s, &w, i == 9 ? NAN : v);
			double got = gt_schedule_reduced(&s, 0.1, w.drops);
			CHECK_MSG(fabs(got - want[max][i]) < 1e-15, "%s, value %d: %g, PyTorch has %g", s.metric, i, got, want[max][i]);
		}
	}
}

TEST(early_stop_counts_evaluations)
{
	struct gt_conf_train t = {.early_stop = {"valid/loss", 2, 0.1}};
	struct gt_ckpt_watch w = {0};
	struct gt_scores r = {.loss = 3, .acc = 0.5, .top5 = 0.75};
	struct gt_metric m;
	CHECK(!gt_watch_early_stop(&t, &w, 1.0) && !gt_watch_early_stop(&t, &w, 0.95)); /* less than min_delta */
	CHECK(!gt_watch_early_stop(&t, &w, 0.85) && !gt_watch_early_stop(&t, &w, 0.8) && gt_watch_early_stop(&t, &w, NAN));
	CHECK(gt_metric_parse("test/top5", &m) && m.split == GT_TEST && gt_score_get(&r, m.score) == 0.75);
	CHECK(gt_metric_parse("valid/loss", &m) && m.split == GT_VALID && gt_score_get(&r, m.score) == 3);
	CHECK(!gt_metric_parse("", &m) && !gt_metric_parse("valid/", &m) && !gt_metric_parse("all/loss", &m) && !gt_metric_parse("loss", &m));
}

/* Each metric is the member of struct gt_scores with its name, and improves in its direction; also one that is negative. */
TEST(metrics_have_directions)
{
	static const struct { const char *name; bool falls; double value; } want[] = {
	    {"valid/loss", true, 1},  {"test/acc", false, 2}, {"train/top5", false, 3}, {"valid/f1", false, 4},
	    {"test/auc", false, 5},   {"valid/mae", true, 6}, {"test/rmse", true, 7},   {"valid/r2", false, -8},
	};
	struct gt_scores r = {.loss = 1, .acc = 2, .top5 = 3, .f1 = 4, .auc = 5, .mae = 6, .rmse = 7, .r2 = -8};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct gt_metric m;
		struct gt_conf_train t = {.early_stop = {want[i].name, 2, 0}};
		struct gt_conf_schedule s = {.type = GT_SCHED_PLATEAU, .metric = want[i].name, .patience = 1, .threshold = 0.01};
		struct gt_ckpt_watch stop = {0}, plateau = {0};
		double better = want[i].falls ? -0.1 : 0.1;
		CHECK_MSG(gt_metric_parse(want[i].name, &m) && gt_score_get(&r, m.score) == want[i].value, "%s", want[i].name);
		CHECK_MSG(gt_metric_falls(want[i].name) == want[i].falls, "%s", want[i].name);
		for (int k = 0; k < 5; k++)
			CHECK_MSG(!gt_watch_early_stop(&t, &stop, want[i].value + k * better), "%s, value %d", want[i].name, k);
		CHECK_MSG(!gt_watch_early_stop(&t, &stop, want[i].value) && gt_watch_early_stop(&t, &stop, want[i].value), "%s", want[i].name);
		/* a value that is a little worse, or less than the threshold better, is no improvement */
		for (int k = 0; k < 3; k++)
			gt_watch_plateau(&s, &plateau, want[i].value + (k == 1 ? -0.001 : 0.001) * better * k);
		CHECK_MSG(plateau.drops == 1, "%s: %d reductions", want[i].name, (int)plateau.drops);
	}
}

enum { BENT_STEPS = 2000, BENT_EPOCH = 100 };

/* Takes a line for each step that needs one, and every 100th. Returns the number of lines; *worst: the largest distance of a rate from the
 * straight lines between them, in units of the largest rate. */
static int log_rates(const double *rate, double *worst)
{
	struct gt_rate_bends b = {0};
	double most = 0;
	int lines = 0, before = 0;
	*worst = 0;
	for (int step = 1; step <= BENT_STEPS; step++) {
		most = fmax(most, rate[step]);
		if (!gt_rate_bends_take(&b, step, rate[step], rate[step == BENT_STEPS ? step : step + 1], step % 100 == 0))
			continue;
		for (int i = before + 1; before && i < step; i++) {
			double share = (double)(i - before) / (step - before);
			*worst = fmax(*worst, fabs(rate[before] + share * (rate[step] - rate[before]) - rate[i]));
		}
		before = step;
		lines++;
	}
	*worst /= most;
	return lines;
}

/* Straight lines between the training lines of metrics.jsonl are the curve of every schedule. */
TEST(bends_are_logged)
{
	double rate[BENT_STEPS + 1], worst;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct gt_conf_train t = {.optimizer = {.lr = 0.1}, .schedule = cases[i].s};
		if (!strncmp(cases[i].name, "momentum:", 9))
			continue;
		for (int step = 1; step <= BENT_STEPS; step++)
			rate[step] = gt_schedule_lr(&t, step - 1, BENT_STEPS, BENT_EPOCH);
		bool often = t.schedule.type == GT_SCHED_CYCLIC || t.schedule.type == GT_SCHED_COSINE_RESTARTS;
		int lines = log_rates(rate, &worst), most = often ? 1900 : 80;
		CHECK_MSG(worst <= 0.0101 && lines <= most, "%s: %g of the largest rate in %d lines", cases[i].name, worst, lines);
	}
	for (int step = 1; step <= BENT_STEPS; step++)
		rate[step] = 0.1;
	int lines = log_rates(rate, &worst);
	CHECK_MSG(worst == 0 && lines == 21, "a constant has %d lines", lines);
	struct gt_rate_bends b = {0};
	lines = 0;
	for (int step = 1; step <= 100000; step++)
		lines += gt_rate_bends_take(&b, step, step % 2, (step + 1) % 2, false);
	CHECK_MSG(lines == 2000, "a rate that bends at every step has %d lines", lines);
	b = (struct gt_rate_bends){0};
	CHECK(!gt_rate_bends_take(&b, 501, 0.1, 0.1, false)); /* a resumed run has lines before its first step */
	CHECK(gt_rate_bends_take(&b, 502, 0.05, 0.05, false)); /* a drop that was not known a step before */
}

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
			double want = strtod(word, NULL);
			double got = strncmp(name, "momentum:", 9) ? gt_schedule_lr(&t, step, 40, 4) : gt_schedule_momentum(&t.schedule, step, 40, 4);
			/* PyTorch multiplies its recursive forms up; both are doubles, 40 steps of rounding */
			CHECK_MSG(fabs(got - want) <= 1e-13 + 1e-12 * fabs(want), "%s at step %d: %.17g, PyTorch %.17g", name, step, got, want);
		}
	}
	CHECK_MSG(seen == (int)(sizeof cases / sizeof *cases), "%d curves compared", seen);
	free(line);
	if (f)
		fclose(f);
}

/* Lengths in epochs need not be whole: the same lengths in steps give the same rates. */
TEST(fractions_of_epochs)
{
	static const struct gt_conf_schedule epochs[] = {
		{.type = GT_SCHED_STEP, .step_size = 1.5, .gamma = 0.5},
		{.type = GT_SCHED_STEP, .step_size = 0.5, .gamma = 0.5},
		{.type = GT_SCHED_STEP, .step_size = 0.3, .gamma = 0.9},
		{.type = GT_SCHED_STEP, .step_size = 2.1, .gamma = 0.5, .warmup = 0.7, .warmup_start = 0.1},
		{.type = GT_SCHED_MULTISTEP, .milestones = {2, {0.4, 2.3}}, .gamma = 0.1},
		{.type = GT_SCHED_COSINE, .t_max = 2.5, .min_lr = 0.01, .warmup = 0.3},
		{.type = GT_SCHED_POLYNOMIAL, .t_max = 3.7, .power = 2},
		{.type = GT_SCHED_ONECYCLE, .t_max = 4.5, .pct_start = 0.3, .div_factor = 25, .final_div_factor = 1e4},
	};
	for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) {
		struct gt_conf_train e = {.optimizer = {.lr = 0.1}, .schedule = epochs[i]}, s = e;
		e.schedule.unit = GT_UNIT_EPOCH;
		s.schedule.unit = GT_UNIT_STEP;
		s.schedule.step_size = round(s.schedule.step_size * 10);
		s.schedule.warmup = round(s.schedule.warmup * 10);
		s.schedule.t_max = round(s.schedule.t_max * 10);
		for (int k = 0; k < s.schedule.milestones.n; k++)
			s.schedule.milestones.v[k] = round(s.schedule.milestones.v[k] * 10);
		for (int step = 0; step < 60; step++) {
			double a = gt_schedule_lr(&e, step, 60, 10), b = gt_schedule_lr(&s, step, 60, 10);
			/* products of a fraction with 10 are rounded once */
			CHECK_MSG(fabs(a - b) <= 1e-14, "schedule %zu at step %d: %.17g in epochs, %.17g in steps", i, step, a, b);
		}
	}
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

/* RandomSampler's order over epochs, by make_sampler.py. */
TEST(random_sampler_order)
{
	char path[512], *line = NULL;
	size_t cap = 0;
	int seen = 0;
	int64_t *got = malloc(60000 * sizeof *got);
	snprintf(path, sizeof path, "%s/tests/golden/sampler.txt", test_source());
	FILE *f = fopen(path, "r");
	CHECK_MSG(f != NULL, "%s is missing", path);
	while (f && getline(&line, &cap, f) > 0) {
		char *p = line;
		struct gt_err e;
		if (*p == '#')
			continue;
		uint64_t seed = strtoull(p, &p, 10), n = strtoull(p, &p, 10), epoch = strtoull(p, &p, 10);
		CHECK_OK(gt_permute(GT_SAMPLER_TORCH_RANDOM, seed, epoch, (int64_t)n, got, &e), e);
		CHECK(is_permutation(got, (int64_t)n));
		for (uint64_t i = 0; i < n && i < 24 && *p == ' '; i++) /* drop_last: fewer than n */
			if (got[i] != strtoll(p, &p, 10)) {
				test_fail(__FILE__, __LINE__, "seed %llu, %llu samples, epoch %llu: another index at %llu", (unsigned long long)seed,
				          (unsigned long long)n, (unsigned long long)epoch, (unsigned long long)i);
				break;
			}
		seen++;
	}
	CHECK_MSG(seen == 3 * 7 * 4, "%d epochs compared", seen);
	free(line);
	free(got);
	if (f)
		fclose(f);
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

/* gt_permute_split_classes: every sample is in one of the parts, every class gives its share to within one sample, and the parts depend on
 * the seed alone. */
TEST(stratified_split)
{
	enum { N = 1003, CLASSES = 7 };
	static int32_t labels[N];
	static int64_t train[N], valid[N], again[N], other[N];
	struct gt_err e = {0};
	int64_t size[CLASSES] = {0};
	for (int i = 0; i < N; i++) {
		labels[i] = i % 11 < 5 ? 0 : i % CLASSES; /* class 0 is the largest */
		size[labels[i]]++;
	}
	for (int64_t nvalid = 1; nvalid < N; nvalid += 97) {
		int64_t taken[CLASSES] = {0}, t = 0, v = 0;
		CHECK_OK(gt_permute_split_classes(5, labels, N, CLASSES, nvalid, train, valid, &e), e);
		for (int64_t i = 0; i < N; i++) { /* both parts are in ascending order and have all samples together */
			bool is_valid = v < nvalid && valid[v] == i;
			CHECK(is_valid || (t < N - nvalid && train[t] == i));
			taken[labels[i]] += is_valid;
			v += is_valid;
			t += !is_valid;
		}
		CHECK(v == nvalid && t == N - nvalid);
		for (int k = 0; k < CLASSES; k++) {
			double share = (double)size[k] * (double)nvalid / N;
			CHECK_MSG(fabs((double)taken[k] - share) < 1, "class %d: %lld of %lld, expected %.2f", k, (long long)taken[k],
			          (long long)size[k], share);
		}
		CHECK_OK(gt_permute_split_classes(5, labels, N, CLASSES, nvalid, train, again, &e), e);
		CHECK(!memcmp(valid, again, (size_t)nvalid * sizeof *valid));
		CHECK_OK(gt_permute_split_classes(6, labels, N, CLASSES, nvalid, train, other, &e), e);
		CHECK(nvalid < 3 || memcmp(valid, other, (size_t)nvalid * sizeof *valid));
	}
}

RUN_TESTS()
