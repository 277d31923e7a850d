#include "pair.h"
#include "number.h"
#include "base/philox.h"
#include "base/plugin.h"
#include "ew.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PAD 64 /* bytes behind every tensor, which must stay as they are */

static const struct gt_backend *be[2];
static struct gt_dev *dev[2];
enum { CPU, CUDA };

static int compared;
static double worst[GT_DTYPE_COUNT]; /* |a - b| / max(1, |b|) */
static char worst_at[GT_DTYPE_COUNT][96];

static bool open_both(void)
{
	static const char *const names[2] = {"cpu", "cuda"}, *const symbols[2] = {"gt_backend_cpu", "gt_backend_cuda"};
	struct gt_err e = {0};
	for (int i = 0; i < 2 && !dev[i]; i++) {
		void *p;
		CHECK_OK(gt_plugin_open(names[i], symbols[i], &p, &e), e);
		if (e.code)
			return false;
		be[i] = p;
		const char *fused = getenv("TEST_CUDNN_ATTENTION"); /* unordered: with the gradient whose sums have no fixed order */
		struct gt_dev_opts opts = {.threads = 2, .deterministic = !fused || *fused != 'u', .cudnn_attention = fused};
		CHECK_OK(be[i]->open(&opts, &dev[i], &e), e);
	}
	return dev[CPU] && dev[CUDA];
}

/* ---- numbers ---------------------------------------------------------------------------------------------------------------- */
static void put(enum gt_dtype t, void *p, int64_t i, float x)
{
	if (t == GT_F32)
		((float *)p)[i] = x;
	else
		((uint16_t *)p)[i] = t == GT_BF16 ? gt_bf16_from_f32(x) : gt_f16_from_f32(x);
}

void *pair_filled(enum gt_dtype t, int64_t n, uint32_t seed)
{
	char *p = malloc((size_t)n * 8 + 8);
	for (int64_t i = 0; i < n; i++)
		put(t, p, i, gt_rng_uniform(gt_philox4x32((uint32_t)i, seed, 0, 0, 7, 11).v[0]) * 6 - 3);
	return p;
}

void pair_scale(enum gt_dtype t, void *p, int64_t n, double mul, double add)
{
	for (int64_t i = 0; i < n; i++)
		put(t, p, i, (float)(gt_load_number(t, p, i) * mul + add));
}

/* ---- jobs --------------------------------------------------------------------------------------------------------------------- */
void pair_tensor(struct pair_job *j, bool out, enum gt_dtype t, int rank, const int64_t *dim, void *data)
{
	int i = out ? j->call.nout++ : j->call.nin++;
	struct gt_tdesc *d = &j->d[out ? PAIR_T + i : i];
	*d = gt_tdesc_make(t, rank, dim, true);
	(out ? j->call.out : j->call.in)[i] = d;
	(out ? j->out : j->in)[i] = data ? data : pair_filled(t, gt_tdesc_count(d), (uint32_t)(i + 3));
}

void pair_absent(struct pair_job *j, bool out)
{
	(out ? j->call.out : j->call.in)[out ? j->call.nout++ : j->call.nin++] = NULL;
}

/* The number of channels in the memory of a tensor whose channels are padded; 0: they are not. */
static int64_t padded(const struct gt_tdesc *d)
{
	return d->rank == 4 && d->layout.nblk ? gt_tdesc_padded(d) / (d->dim[0] * d->dim[2] * d->dim[3]) : 0;
}

void pair_pad(struct pair_job *j, bool out)
{
	int i = out ? j->call.nout - 1 : j->call.nin - 1;
	struct gt_tdesc *d = &j->d[out ? PAIR_T + i : i];
	void **p = out ? &j->out[i] : &j->in[i];
	size_t size = gt_dtype_size(d->dtype), row = (size_t)d->dim[1] * size, rows = (size_t)gt_tdesc_count(d) / (size_t)d->dim[1];
	*d = gt_tdesc_pad_channels(d, GT_CHANNEL_PAD);
	size_t ld = gt_tdesc_bytes(d) / rows;
	char *q = malloc(rows * ld + 1);
	memset(q, out ? 0x3c : 0, rows * ld);
	for (size_t r = 0; r < rows; r++)
		memcpy(q + r * ld, (char *)*p + r * row, row);
	free(*p);
	*p = q;
}

void pair_free(struct pair_job *j)
{
	for (int i = 0; i < PAIR_T; i++)
		free(j->in[i]), free(j->out[i]);
}

/* The same call in f32 for the CPU: *j is a copy whose data pair_free frees. */
static void *widened(const struct gt_tdesc *d, const void *p, bool widen)
{
	int64_t n = gt_tdesc_padded(d);
	size_t bytes = gt_tdesc_bytes(d);
	char *q = malloc(bytes * 2 + 8);
	memcpy(q, p, bytes);
	for (int64_t i = 0; widen && i < n; i++)
		((float *)q)[i] = gt_f16_to_f32(((const uint16_t *)p)[i]);
	size_t ld = (size_t)padded(d), c = (size_t)d->dim[1], size = widen ? 4 : gt_dtype_size(d->dtype);
	for (size_t r = 1; ld && r < (size_t)n / ld; r++) /* the CPU has no padded channels */
		memmove(q + r * c * size, q + r * ld * size, c * size);
	return q;
}

static struct pair_job in_f32(const struct pair_job *from)
{
	struct pair_job j = *from;
	for (int i = 0; i < 2 * PAIR_T; i++) {
		struct gt_tdesc *d = &j.d[i];
		bool out = i >= PAIR_T, here = i % PAIR_T < (out ? j.call.nout : j.call.nin);
		void **p = out ? &j.out[i - PAIR_T] : &j.in[i];
		struct gt_tdesc **slot = out ? &j.call.out[i - PAIR_T] : &j.call.in[i];
		bool there = here && *slot;
		*p = there ? widened(d, *p, d->dtype == GT_F16) : NULL;
		if (!there)
			continue;
		if (d->dtype == GT_F16)
			d->dtype = GT_F32;
		if (padded(d))
			*d = gt_tdesc_make(d->dtype, 4, d->dim, true);
		*slot = j.copy && i == j.copy ? NULL : d;
	}
	return j;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------ */
struct held {
	char *base, *p;
	size_t bytes;
};

static struct held to_device(int side, const struct pair_job *j, const struct gt_tdesc *d, const void *host)
{
	struct gt_err e = {0};
	size_t size = gt_dtype_size(d->dtype), bytes = gt_tdesc_bytes(d);
	size_t shift = side == CUDA ? (j->shift + size - 1) / size * size : 0; /* an element is aligned to its own size */
	struct held h = {.bytes = bytes};
	char *stage = malloc(bytes + PAD + shift);
	void *p = NULL;
	memset(stage, 0x5a, bytes + PAD + shift);
	memcpy(stage + shift, host, bytes);
	CHECK_OK(be[side]->alloc(dev[side], bytes + PAD + shift, &p, &e), e);
	CHECK_OK(be[side]->copy(dev[side], p, stage, bytes + PAD + shift, GT_COPY_H2D, 0, &e), e);
	free(stage);
	h.base = p;
	h.p = h.base + shift;
	return h;
}

static void from_device(int side, const struct held *h, void *host)
{
	struct gt_err e = {0};
	unsigned char behind[PAD];
	CHECK_OK(be[side]->copy(dev[side], host, h->p, h->bytes, GT_COPY_D2H, 0, &e), e);
	CHECK_OK(be[side]->copy(dev[side], behind, h->p + h->bytes, PAD, GT_COPY_D2H, 0, &e), e);
	for (int i = 0; i < PAD; i++)
		if (behind[i] != 0x5a) {
			test_fail(__FILE__, __LINE__, "wrote behind a tensor");
			break;
		}
	be[side]->free(dev[side], h->base);
}

/* Runs the job on one side; the inputs (updates change them) and outputs as they are then go to `in` and `out`. */
static bool run(int side, const struct pair_job *j, void **in, void **out)
{
	struct gt_err e = {0};
	struct gt_opcall call = j->call;
	struct gt_tdesc d[2 * PAIR_T];
	struct held hin[PAIR_T] = {{0}}, hout[PAIR_T] = {{0}};
	void *pin[PAIR_T] = {0}, *pout[PAIR_T] = {0}, *scratch = NULL;
	struct gt_kernel *k;
	memcpy(d, j->d, sizeof d);
	for (int i = 0; i < call.nin; i++)
		call.in[i] = j->call.in[i] ? &d[i] : NULL;
	for (int i = 0; i < call.nout; i++)
		call.out[i] = j->call.out[i] ? &d[PAIR_T + i] : NULL;
	if (be[side]->prepare(dev[side], &call, &k, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s", e.msg);
		return false;
	}
	for (int i = 0; i < call.nin; i++)
		if (call.in[i]) {
			hin[i] = to_device(side, j, &d[i], j->in[i]);
			pin[i] = hin[i].p;
		}
	for (int i = 0; i < call.nout; i++)
		if (call.out[i] && !(i == 0 && j->in_place)) {
			hout[i] = to_device(side, j, &d[PAIR_T + i], j->out[i]);
			pout[i] = hout[i].p;
		}
	if (j->in_place)
		pout[0] = pin[0];
	CHECK_OK(be[side]->alloc(dev[side], be[side]->scratch(k) + 1, &scratch, &e), e);
	void *nan = memset(malloc(be[side]->scratch(k) + 1), 0xff, be[side]->scratch(k) + 1); /* workspace holds anything */
	CHECK_OK(be[side]->copy(dev[side], scratch, nan, be[side]->scratch(k) + 1, GT_COPY_H2D, 0, &e), e);
	free(nan);
	struct gt_launch a = {.in = pin, .out = pout, .scratch = scratch, .step_args = &j->step_args};
	CHECK_OK(be[side]->launch(dev[side], k, &a, &e), e);
	be[side]->release(dev[side], k);
	for (int i = 0; i < call.nin; i++)
		if (call.in[i])
			from_device(side, &hin[i], in[i] = malloc(hin[i].bytes + 1));
	for (int i = 0; i < call.nout; i++)
		if (hout[i].base)
			from_device(side, &hout[i], out[i] = malloc(hout[i].bytes + 1));
	be[side]->free(dev[side], scratch);
	return e.code == GT_OK;
}

void pair_run_cuda(const struct pair_job *j, void **in)
{
	pair_run_cuda_out(j, in, NULL, 0);
}

void pair_run_cuda_out(const struct pair_job *j, void **in, void *out0, size_t bytes)
{
	void *out[PAIR_T] = {0};
	if (open_both())
		run(CUDA, j, in, out);
	if (out[0] && bytes)
		memcpy(out0, out[0], bytes);
	for (int i = 0; i < PAIR_T; i++)
		free(out[i]);
}

const char *pair_refused_cuda(const struct pair_job *j)
{
	static struct gt_err e;
	struct gt_kernel *k = NULL;
	e = (struct gt_err){0};
	if (open_both() && be[CUDA]->prepare(dev[CUDA], &j->call, &k, &e) == GT_OK)
		be[CUDA]->release(dev[CUDA], k);
	return e.msg;
}

/* ---- comparing ---------------------------------------------------------------------------------------------------------------- */
struct seen {
	const struct pair_job *j;
	double tol, tol16;
	const char *what;
};

/* Calls that must agree bit for bit do so where both sides have one mathematical library. A GPU ($PAIR_GPU) has another exp, tanh and erf,
 * each within 2 units of the last place (CUDA C++ Programming Guide, "Mathematical Functions"), and a result is made of a few: 8 units of a
 * number near 1, and in 16 bits one step of a result below 4 whose rounding falls on the other side of a tie. */
static double tolerance(const struct pair_job *j, bool half, enum gt_dtype t, double tol)
{
#define CODE_GRAIN(_, CODE, name, saved, numbers, grain, ...)                                                                              \
	{GT_OP_##CODE, grain}, {GT_OP_##CODE##_DX, GT_ACTIVATION_GRAIN_##saved(grain)},
	static const struct {
		enum gt_opcode code;
		int grain; /* 65536: without an exponential */
	} rows[] = {GT_ACTIVATIONS(CODE_GRAIN, )};
	for (size_t i = 0; i < sizeof rows / sizeof *rows && tol == 0 && getenv("PAIR_GPU"); i++)
		if (j->call.code == rows[i].code && rows[i].grain != 65536)
			return !half ? 0x1p-20 : t == GT_BF16 ? 0x1p-7 : 0x1p-10;
	return tol;
}

/* cpu: of type t; cuda: as d says */
static void same(const struct seen *s, const struct gt_tdesc *d, enum gt_dtype t, const void *cpu, const void *cuda, const char *which,
                 int at)
{
	char shape[96];
	int64_t n = gt_tdesc_count(d), c = d->rank > 1 ? d->dim[1] : 1, ld = padded(d) ? padded(d) : c;
	size_t size = gt_dtype_size(d->dtype);
	bool half = d->dtype == GT_BF16 || d->dtype == GT_F16;
	double tol = tolerance(s->j, half, d->dtype, half ? s->tol16 : s->tol);
	for (int64_t i = 0; i < n; i++) {
		int64_t here = i / c * ld + i % c;
		for (int64_t k = here + 1; i % c == c - 1 && k % ld; k++)
			if (gt_load_number(d->dtype, cuda, k) != 0) {
				test_fail(__FILE__, __LINE__, "%s: %s %d[%lld] is padding, but %g", gt_opcode_name(s->j->call.code), which, at,
				          (long long)k, gt_load_number(d->dtype, cuda, k));
				return;
			}
		uint16_t rounded = t == d->dtype ? 0 : gt_f16_from_f32(((const float *)cpu)[i]);
		const char *want = t == d->dtype ? (const char *)cpu + (size_t)i * size : (const char *)&rounded;
		if (!memcmp(want, (const char *)cuda + (size_t)here * size, size))
			continue;
		double a = gt_load_number(d->dtype, want, 0), b = gt_load_number(d->dtype, cuda, here), diff = fabs(a - b) / fmax(1, fabs(a));
		if (isnan(a) && isnan(b) && getenv("PAIR_GPU")) /* a GPU has one NaN */
			continue;
		if (tol > 0 && ((isnan(a) && isnan(b)) || diff <= tol)) {
			if (diff > worst[d->dtype]) {
				worst[d->dtype] = diff;
				snprintf(worst_at[d->dtype], sizeof *worst_at, "%s %s%s", gt_opcode_name(s->j->call.code), s->what, s->what[0] ? " " : "");
			}
			continue;
		}
		test_fail(__FILE__, __LINE__, "%s %s %s: %s %d[%lld] is %.9g, the CPU has %.9g %s%s", gt_opcode_name(s->j->call.code),
		          gt_dtype_name(d->dtype), gt_tdesc_text(d, shape, sizeof shape), which, at, (long long)i, b, a, s->what,
		          s->j->shift      ? " (shifted)"
		          : s->j->in_place ? " (in place)"
		                           : "");
		return;
	}
}

static void check_copy(const struct seen *s, void *const *in)
{
	const struct pair_job *j = s->j;
	const struct gt_attr_update *attr = j->call.attr;
	const uint16_t *copy = in[j->copy], *before = j->in[j->copy];
	int64_t n = gt_tdesc_count(&j->d[0]);
	bool *moved = calloc((size_t)n + 1, 1);
	for (int k = 0; k < attr->nseg; k++)
		for (int64_t i = attr->seg[k].begin; i < attr->seg[k].end; i++)
			moved[i] = true;
	for (int64_t i = 0; i < n; i++) {
		uint16_t want = moved[i] ? gt_f16_from_f32(((const float *)in[0])[i]) : before[i];
		if (copy[i] != want) {
			test_fail(__FILE__, __LINE__, "%s: work copy [%lld] is %#x, not %#x", gt_opcode_name(j->call.code), (long long)i, copy[i],
			          want);
			break;
		}
	}
	free(moved);
}

void pair_compare2(const struct pair_job *j, double tol, double tol16, const char *what)
{
	struct seen s = {j, tol, tol16, what};
	struct pair_job wide = in_f32(j);
	void *in[2][PAIR_T] = {{0}}, *out[2][PAIR_T] = {{0}};
	if (open_both() && run(CPU, &wide, in[0], out[0]) && run(CUDA, j, in[1], out[1])) {
		for (int i = 0; i < j->call.nin; i++)
			if (in[0][i])
				same(&s, &j->d[i], wide.d[i].dtype, in[0][i], in[1][i], "input", i);
		for (int i = 0; i < j->call.nout; i++)
			if (out[0][i])
				same(&s, &j->d[PAIR_T + i], wide.d[PAIR_T + i].dtype, out[0][i], out[1][i], "output", i);
		if (j->copy)
			check_copy(&s, in[1]);
		compared++;
	}
	for (int side = 0; side < 2; side++)
		for (int i = 0; i < PAIR_T; i++)
			free(in[side][i]), free(out[side][i]);
	pair_free(&wide);
}

void pair_compare(const struct pair_job *j, double tol, const char *what)
{
	pair_compare2(j, tol, tol, what);
}

void pair_report(int least)
{
	CHECK_MSG(compared >= least, "only %d calls were compared", compared);
	printf("# cudasim: %d calls agree with the CPU backend\n", compared);
	for (int t = 0; t < GT_DTYPE_COUNT; t++)
		if (worst[t] > 0)
			printf("# cudasim: calls: largest difference in %s: %.2g (%s)\n", gt_dtype_name(t), worst[t], worst_at[t]);
}
