#include "cpu_case.h"
#include "clones.h"
#include "number.h"
#include "base/philox.h"
#include "base/plugin.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct gt_dev *device;
static bool direct, reference;

void cpu_reference(void)
{
	reference = true;
}

const struct gt_backend *cpu_backend(void)
{
	static void *sym;
	struct gt_err e = {0};
	if (!sym && gt_plugin_open(reference ? "ref" : "cpu", reference ? "gt_backend_ref" : "gt_backend_cpu", &sym, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return NULL;
	}
	return sym;
}

struct gt_dev *cpu_device(void)
{
	struct gt_err e = {0};
	const struct gt_backend *b = cpu_backend();
	if (!device && b && b->open(&(struct gt_dev_opts){.threads = 2, .winograd = !direct}, &device, &e) != GT_OK)
		test_fail(__FILE__, __LINE__, "%s", e.msg);
	return device;
}

void cpu_winograd(bool on)
{
	direct = !on;
	if (device)
		cpu_backend()->close(device);
	device = NULL;
}

bool cpu_has_winograd(void)
{
#if !defined(__aarch64__)
	if (!GT_CPU_AVX2) {
		test_skip("Winograd's algorithm needs AVX2 or NEON");
		return false;
	}
#endif
	return true;
}

struct tens *tens_new(enum gt_dtype t, int rank, const int64_t *dim)
{
	struct tens *x = calloc(1, sizeof *x);
	x->d = gt_tdesc_make(t, rank, dim, true);
	x->v = calloc((size_t)gt_tdesc_count(&x->d), sizeof *x->v);
	return x;
}

struct tens *tens_weights(enum gt_dtype t, int rank, const int64_t *dim)
{
	struct tens *x = tens_new(t, rank, dim);
	x->d = gt_tdesc_make(t, rank, dim, false);
	x->d.any = true;
	return x;
}

void tens_free(struct tens *t)
{
	if (!t)
		return;
	if (t->p)
		cpu_backend()->free(cpu_device(), t->p);
	free(t->v);
	free(t->mag);
	free(t);
}

double tens_round(enum gt_dtype t, double v)
{
	return t == GT_BF16 ? gt_bf16_to_f32(gt_bf16_from_f32((float)v)) : t == GT_F32 ? (float)v : v;
}

void tens_random(struct tens *t, uint32_t seed, double lo, double hi)
{
	int64_t n = gt_tdesc_count(&t->d);
	for (int64_t i = 0; i < n; i++) {
		struct gt_philox r = gt_philox4x32((uint32_t)i, seed, 0, 0, 7, 11);
		double u = gt_rng_uniform(r.v[0]);
		t->v[i] = t->d.dtype == GT_U8 || t->d.dtype == GT_I32 || t->d.dtype == GT_I64 ? floor(lo + u * (hi - lo))
		                                                                              : tens_round(t->d.dtype, lo + u * (hi - lo));
	}
}

static void device_alloc(struct tens *t)
{
	struct gt_err e;
	if (!t->p && cpu_backend()->alloc(cpu_device(), gt_tdesc_bytes(&t->d), &t->p, &e) != GT_OK)
		abort();
}

void tens_upload(struct tens *t)
{
	int64_t n = gt_tdesc_count(&t->d);
	void *plain = malloc((size_t)n * 8 + 8);
	for (int64_t i = 0; i < n; i++)
		number_put(t->d.dtype, plain, i, t->v[i]);
	device_alloc(t);
	gt_tdesc_pack(&t->d, plain, t->p);
	free(plain);
}

void tens_download(struct tens *t)
{
	int64_t n = gt_tdesc_count(&t->d);
	void *plain = malloc((size_t)n * 8 + 8);
	gt_tdesc_unpack(&t->d, t->p, plain);
	for (int64_t i = 0; i < n; i++)
		t->v[i] = gt_load_number(t->d.dtype, plain, i);
	free(plain);
}

bool op_run(struct op_case *c)
{
	const struct gt_backend *b = cpu_backend();
	struct gt_dev *dev = cpu_device();
	struct gt_opcall call = {.code = c->code, .name = "t", .attr = c->attr, .nin = c->nin, .nout = c->nout, .accumulate = c->accumulate};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	static char text[128];
	void *in[GT_MAX_IO] = {0}, *out[GT_MAX_IO] = {0}, *scratch = NULL;
	bool ok = false;
	if (!dev)
		return false;
	for (int i = 0; i < c->nin; i++)
		call.in[i] = c->in[i] ? &c->in[i]->d : NULL;
	for (int i = 0; i < c->nout; i++)
		call.out[i] = c->out[i] ? &c->out[i]->d : NULL;
	if (b->prepare(dev, &call, &k, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return false;
	}
	snprintf(text, sizeof text, "%s", b->describe(k));
	c->describe = text;
	for (int i = 0; i < c->nin; i++)
		if (c->in[i]) {
			tens_upload(c->in[i]);
			in[i] = c->in[i]->p;
		}
	for (int i = 0; i < c->nout; i++)
		if (c->out[i]) {
			if (c->keep_out || c->accumulate >> i & 1) {
				tens_upload(c->out[i]);
			} else {
				device_alloc(c->out[i]);
				memset(c->out[i]->p, 0xff, gt_tdesc_bytes(&c->out[i]->d)); /* NaN: what is not written shows */
			}
			out[i] = c->out[i]->p;
		}
	if (b->alloc(dev, b->scratch(k) + 64, &scratch, &e) != GT_OK)
		abort();
	memset(scratch, 0xff, b->scratch(k));
	memset((char *)scratch + b->scratch(k), 0x5a, 64); /* a canary behind the promised size */
	struct gt_launch a = {.in = in, .out = out, .scratch = scratch, .step_args = &c->step_args};
	ok = b->launch(dev, k, &a, &e) == GT_OK;
	if (ok && !c->accumulate && !c->keep_out)
		ok = b->launch(dev, k, &a, &e) == GT_OK;
	if (!ok)
		test_fail(__FILE__, __LINE__, "%s", e.msg);
	for (int i = 0; i < 64; i++)
		if (((unsigned char *)scratch)[b->scratch(k) + (size_t)i] != 0x5a) {
			test_fail(__FILE__, __LINE__, "%s: wrote past its scratch memory", text);
			ok = false;
			break;
		}
	b->free(dev, scratch);
	b->release(dev, k);
	for (int i = 0; i < c->nout; i++)
		if (c->out[i]) {
			/* Padding of a blocked layout must be zero. */
			const struct gt_tdesc *d = &c->out[i]->d;
			if (d->layout.nblk && gt_tdesc_padded(d) != gt_tdesc_count(d)) {
				double all = 0, logical = 0;
				tens_download(c->out[i]);
				for (int64_t n = 0; n < gt_tdesc_padded(d); n++)
					all += fabs(gt_load_number(d->dtype, c->out[i]->p, n));
				for (int64_t n = 0; n < gt_tdesc_count(d); n++)
					logical += fabs(c->out[i]->v[n]);
				if (!(fabs(all - logical) <= 1e-9 * logical)) /* two orders of a sum of doubles */
					test_fail(__FILE__, __LINE__, "%s: padding of output %d is not zero", text, i);
			}
			tens_download(c->out[i]);
		}
	for (int i = 0; i < c->nin; i++)
		if (c->in[i])
			tens_download(c->in[i]);
	return ok;
}

void tens_check(const char *file, int line, const struct tens *got, const struct tens *want, double rel)
{
	int64_t n = gt_tdesc_count(&got->d), worst = -1;
	double over = 0;
	char shape[96];
	/* Rounding of the stored result: half a unit in the last place, 2^-8 of a bf16 (8 significant bits), 2^-24 of an f32. */
	double out = got->d.dtype == GT_BF16 ? 0x1p-8 : got->d.dtype == GT_F32 ? 0x1p-24 : 0;
	for (int64_t i = 0; i < n; i++) {
		double mag = want->mag ? want->mag[i] : fabs(want->v[i]);
		double tol = rel * mag + out * fabs(want->v[i]) + 1e-37, d = fabs(got->v[i] - want->v[i]) / tol;
		if (!(d <= over)) {
			over = isnan(d) ? HUGE_VAL : d;
			worst = i;
		}
	}
	if (over > 1)
		test_fail(file, line, "%s %s: element %lld is %.9g, should be %.9g (%.3g times the tolerance)", gt_dtype_name(got->d.dtype),
		          gt_tdesc_text(&got->d, shape, sizeof shape), (long long)worst, got->v[worst], want->v[worst], over);
}

double tens_sum_tol(double k)
{
	return (8 + 2 * sqrt(k)) * 0x1p-24;
}

void tens_need_mag(struct tens *t)
{
	t->mag = calloc((size_t)gt_tdesc_count(&t->d), sizeof *t->mag);
}
