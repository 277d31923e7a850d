#include "cpu_raw.h"
#include "base/philox.h"
#include "base/plugin.h"
#include "ew.h"
#include <stdlib.h>

static const struct gt_backend *backend(void)
{
	static void *sym;
	struct gt_err e = {0};
	if (!sym && gt_plugin_open("cpu", "gt_backend_cpu", &sym, &e) != GT_OK) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	return sym;
}

static struct gt_dev *device(int threads)
{
	static struct gt_dev *dev[9];
	struct gt_err e = {0};
	if (!dev[threads] && backend()->open(&(struct gt_dev_opts){.threads = threads}, &dev[threads], &e) != GT_OK) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	return dev[threads];
}

enum gt_code raw_try(int threads, const struct gt_opcall *call, void *const *in, void *const *out, const struct gt_step_args *step_args,
                     struct gt_err *err)
{
	const struct gt_backend *b = backend();
	struct gt_dev *dev = device(threads);
	struct gt_kernel *k;
	GT_TRY(b->prepare(dev, call, &k, err));
	size_t need = b->scratch(k), canary = 64;
	unsigned char *scratch = aligned_alloc(64, (need + canary + 63) / 64 * 64);
	memset(scratch, 0xff, need);
	memset(scratch + need, 0x5a, canary);
	struct gt_launch a = {.in = in, .out = out, .scratch = scratch, .step_args = step_args};
	enum gt_code code = b->launch(dev, k, &a, err);
	for (size_t i = 0; i < canary; i++)
		if (scratch[need + i] != 0x5a) {
			test_fail(__FILE__, __LINE__, "%s wrote past its scratch memory", gt_opcode_name(call->code));
			break;
		}
	free(scratch);
	b->release(dev, k);
	return code;
}

bool raw_run(int threads, const struct gt_opcall *call, void *const *in, void *const *out, const struct gt_step_args *step_args)
{
	struct gt_err e = {0};
	if (raw_try(threads, call, in, out, step_args, &e) == GT_OK)
		return true;
	test_fail(__FILE__, __LINE__, "%s", e.msg);
	return false;
}

void *raw_alloc(enum gt_dtype t, int64_t n)
{
	size_t bytes = (size_t)n * gt_dtype_size(t);
	void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
	memset(p, 0xff, bytes);
	return p;
}

double raw_uniform(uint32_t seed, uint32_t i)
{
	return gt_rng_uniform(gt_philox4x32(i, seed, 1, 2, 3, 4).v[0]);
}

void raw_random(enum gt_dtype t, void *p, int64_t n, uint32_t seed, double lo, double hi)
{
	for (int64_t i = 0; i < n; i++)
		number_put(t, p, i, lo + (hi - lo) * raw_uniform(seed, (uint32_t)i));
}

void raw_check(const char *file, int line, const char *what, enum gt_dtype t, const void *got, const double *want, const double *tol,
               int64_t n)
{
	double half = t == GT_BF16 ? 0x1p-8 : t == GT_F32 ? 0x1p-24 : 0x1p-53, over = 0;
	int64_t worst = -1;
	for (int64_t i = 0; i < n; i++) {
		double g = gt_load_number(t, got, i), w = want[i];
		/* 1e-37: below it f32 and bf16 have fewer digits */
		double d = isnan(w) ? (isnan(g) ? 0 : HUGE_VAL)
		           : g == w ? 0
		                    : fabs(g - w) / (tol[i] + half * fabs(w) + (t == GT_F64 ? 1e-300 : 1e-37));
		if (!(d <= over)) {
			over = isnan(d) ? HUGE_VAL : d;
			worst = i;
		}
	}
	if (over > 1)
		test_fail(file, line, "%s %s: element %lld of %lld is %.9g, should be %.9g (%.3g times the tolerance)", what, gt_dtype_name(t),
		          (long long)worst, (long long)n, gt_load_number(t, got, worst), want[worst], over);
}
