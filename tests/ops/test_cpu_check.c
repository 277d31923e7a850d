/* check: the loss scale against PyTorch's GradScaler (golden/scaler.txt), what stops a step, what is moved when one is skipped. */
#include "cpu_raw.h"
#include "optimizer.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool check(const struct gt_attr_check *attr, struct gt_scalars *s, struct gt_scaler *c, struct gt_step_args *numbers)
{
	int64_t words[2] = {GT_SCALARS_WORDS, GT_SCALER_WORDS}, bytes = sizeof *numbers;
	struct gt_tdesc ds = gt_tdesc_make(GT_F64, 1, &words[0], false), dc = gt_tdesc_make(GT_F64, 1, &words[1], false),
	                dn = gt_tdesc_make(GT_U8, 1, &bytes, false);
	struct gt_opcall call = {.code = GT_OP_CHECK, .attr = attr, .nin = 3, .in = {&ds, &dc, numbers ? &dn : NULL}};
	return raw_run(1, &call, (void *[]){s, c, numbers}, NULL, NULL);
}

TEST(scale_goes_as_torchs_grad_scaler)
{
	char path[512], line[256], inv[32], after[32];
	struct gt_attr_check a = {.scaling = true, .dynamic = true};
	struct gt_scaler c = {0};
	struct gt_step_args step_args = {0};
	int quiet, bad, cases = 0, steps = 0, lines = 0;
	long long tracker;
	snprintf(path, sizeof path, "%s/tests/golden/scaler.txt", test_source());
	FILE *f = fopen(path, "r");
	CHECK(f);
	while (f && fgets(line, sizeof line, f)) {
		char init[32], growth[32], backoff[32];
		long long interval;
		if (sscanf(line, "case %31s %31s %31s %lld", init, growth, backoff, &interval) == 4) {
			a.growth = strtod(growth, NULL), a.backoff = strtod(backoff, NULL), a.interval = interval;
			c = (struct gt_scaler){.scale = strtod(init, NULL)};
			cases++;
			continue;
		}
		if (sscanf(line, "%d %d %31s %31s %lld", &quiet, &bad, inv, after, &tracker) != 5)
			continue;
		lines++;
		for (; quiet >= 0; quiet--, steps++) {
			double scale = c.scale;
			int64_t good = c.good;
			struct gt_scalars s = {.sumsq = quiet == 0 && bad ? INFINITY : 9};
			if (!check(&a, &s, &c, &step_args))
				return;
			CHECK(s.skip == (quiet == 0 && bad));
			if (quiet)
				CHECK(c.scale == scale && c.good == good + 1);
			else
				CHECK_MSG(s.inv_scale == strtod(inv, NULL) && c.scale == strtod(after, NULL) && c.good == tracker,
				          "case %d, step %d: 1/%a, %a, %lld instead of %s, %s, %lld", cases, steps, 1 / s.inv_scale, c.scale,
				          (long long)c.good, inv, after, tracker);
		}
	}
	if (f)
		fclose(f);
	CHECK(cases == 5 && lines > 300);
	printf("# loss scale: %d steps of %d cases equal PyTorch's\n", steps, cases);
}

TEST(a_constant_scale_stays)
{
	struct gt_attr_check a = {.scaling = true, .growth = 2, .backoff = 0.5, .interval = 1};
	struct gt_scaler c = {.scale = 128};
	struct gt_step_args step_args = {.step = 5, .lr = {1}};
	for (int i = 0; i < 4; i++) {
		struct gt_scalars s = {.sumsq = i == 2 ? NAN : 1};
		check(&a, &s, &c, &step_args);
		CHECK(c.scale == 128 && s.inv_scale == 1.0 / 128 && s.skip == (i == 2) && step_args.step == 5);
	}
}

TEST(too_many_skips_in_a_row_halt)
{
	struct gt_attr_check a = {.scaling = true, .dynamic = true, .growth = 2, .backoff = 0.5, .interval = 100, .patience = 3};
	static const char *const runs[] = {"bbgbbgbb", "bbbgg"}; /* bad, good */
	for (int r = 0; r < 2; r++) {
		struct gt_scaler c = {.scale = 1024};
		struct gt_step_args step_args = {0};
		for (int i = 0; runs[r][i]; i++) {
			struct gt_scalars s = {.sumsq = runs[r][i] == 'b' ? NAN : 1};
			bool halted = r == 1 && i > 2;
			check(&a, &s, &c, &step_args);
			CHECK(s.skip == (runs[r][i] == 'b' || halted) && (c.halted != 0) == (r == 1 && i >= 2));
		}
		CHECK(c.scale == (r ? 128 : 16)); /* nothing changes behind the halt */
	}
}

TEST(without_a_scale_a_step_that_is_not_finite_halts_all_that_follow)
{
	const struct {
		double loss, sumsq, bound;
		bool fine;
	} rows[] = {{1, 1, 1, true},     {1e300, 1e300, 0, true}, {NAN, 1, 1, false},     {-INFINITY, 1, 1, false}, {1, INFINITY, 1, false},
	            {1, NAN, 1, false},  {1, 1, NAN, false},      {1, 1, FLT_MAX, false}, {1, 1, 3e38, true},       {1, 1, INFINITY, false}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct gt_scaler c = {0};
		struct gt_scalars s = {.metrics.loss = rows[i].loss, .sumsq = rows[i].sumsq, .bound = rows[i].bound}, next = {.sumsq = 1};
		check(&(struct gt_attr_check){0}, &s, &c, NULL);
		CHECK_MSG(!s.skip == rows[i].fine && s.inv_scale == 1, "row %zu: skip %lld", i, (long long)s.skip);
		check(&(struct gt_attr_check){0}, &next, &c, NULL);
		CHECK_MSG(!next.skip == rows[i].fine, "the step behind row %zu: skip %lld", i, (long long)next.skip);
	}
}

/* Windows of three steps of two micro-batches: after a skip in step k the steps behind it use what they would have used one earlier. */
TEST(a_skipped_step_moves_the_numbers_of_those_behind_it)
{
	const struct gt_attr_check a = {.scaling = true, .dynamic = true, .growth = 2, .backoff = 0.5, .interval = 100};
	for (int skips = 0; skips < 8; skips++) { /* bit k: step k is skipped */
		struct gt_scaler c = {.scale = 1024};
		struct gt_step_args d[6];
		int applied = 0;
		for (int i = 0; i < 6; i++)
			d[i] = (struct gt_step_args){
			    .step = 11 + i / 2, .lr = {0.5 - 0.1 * (i / 2), 7 - i / 2}, .sample0 = (uint64_t)i, .left = 5 - i, .inv_weight = 0.25};
		for (int k = 0; k < 3; k++) {
			struct gt_scalars s = {.sumsq = skips >> k & 1 ? INFINITY : 1};
			for (int m = 0; m < 2; m++)
				CHECK_MSG(d[2 * k + m].step == 11 + applied && d[2 * k + m].lr[0] == 0.5 - 0.1 * applied &&
				              d[2 * k + m].lr[1] == 7 - applied && d[2 * k + m].sample0 == (uint64_t)(2 * k + m),
				          "skips %d, step %d: t %lld, lr %g", skips, k, (long long)d[2 * k + m].step, d[2 * k + m].lr[0]);
			check(&a, &s, &c, &d[2 * k + 1]);
			CHECK(s.skip == (skips >> k & 1));
			applied += !s.skip;
		}
	}
}

/* Gradients that were multiplied by a scale give the bits of those that were not; a skipped step leaves everything alone. */
TEST(updates_unscale_and_skip)
{
	enum { TENSORS = 2 + GT_MAX_STATES }; /* p, g, states */
#define GT_X(NAME, ...) GT_OP_##NAME,
	static const enum gt_opcode codes[] = {GT_NORM_UPDATES(GT_X) GT_ELEMENT_UPDATES(GT_X)};
#undef GT_X
	int64_t n = 1000, words = GT_SCALARS_WORDS;
	struct gt_tdesc d = gt_tdesc_make(GT_F32, 1, &n, false), sc = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_seg seg = {0, n, 1, 0.01};
	struct gt_step_args step_args = {.step = 3, .lr = {0.1}};
	for (size_t i = 0; i < sizeof codes / sizeof *codes && codes[i] != GT_OP_EMA; i++) /* the last one, which reads no gradient */
		for (int clip = 0; clip < 2; clip++) {
			float *p[TENSORS];
			struct gt_attr_update attr = {.momentum = 0.9,
			                              .beta1 = 0.9,
			                              .beta2 = 0.999,
			                              .eps = 1e-8,
			                              .alpha = 0.99,
			                              .clip_norm = clip ? 0.5 : 0,
			                              .seg = &seg,
			                              .nseg = 1};
			const struct gt_update_row *row = gt_update_row(codes[i]);
			int nstate = row->nslots;
			struct gt_opcall call = {.code = codes[i], .attr = &attr, .nin = 3 + nstate, .in = {&d, &d}};
			for (int k = 0; k < nstate; k++)
				call.in[2 + k] = gt_update_has(row, &attr, k) ? &d : NULL;
			call.in[2 + nstate] = &sc;
			for (int run = 0; run < 3; run++) { /* plain; scaled; skipped */
				double scale = run ? 4096 : 1, sum = 0;
				float *x[TENSORS];
				for (int k = 0; k < TENSORS; k++) {
					x[k] = raw_alloc(GT_F32, n);
					raw_random(GT_F32, x[k], n, 7 + (uint32_t)k, k < 2 ? -1 : 0, 1);
				}
				for (int64_t k = 0; k < n; k++) {
					sum += (double)x[1][k] * (double)x[1][k];
					x[1][k] *= (float)scale;
				}
				struct gt_scalars s = {.sumsq = sum * scale * scale, .inv_scale = 1 / scale, .skip = run == 2};
				void *in[GT_MAX_IO] = {0};
				for (int k = 0; k < TENSORS; k++)
					in[k] = k < 2 || call.in[k] == &d ? x[k] : NULL;
				in[2 + nstate] = &s;
				raw_run(1, &call, in, NULL, &step_args);
				if (run == 0)
					memcpy(p, x, sizeof p);
				for (int k = 0; k < TENSORS && run; k++)
					for (int64_t j = 0; j < n && k != 1; j++) {
						float before = (float)(raw_uniform(7 + (uint32_t)k, (uint32_t)j) * (k < 2 ? 2 : 1) - (k < 2 ? 1 : 0));
						float want = run == 1 ? p[k][j] : before;
						CHECK_MSG(x[k][j] == want, "%s, tensor %d, run %d: %a, not %a", gt_opcode_name(codes[i]), k, run, x[k][j], want);
						if (x[k][j] != want)
							return;
					}
				for (int k = 0; k < TENSORS && run; k++)
					free(x[k]);
			}
			for (int k = 0; k < TENSORS; k++)
				free(p[k]);
		}
}

RUN_TESTS()
