/* The optimizers' update kernels against PyTorch's trajectories (the update: cases of cases.txt). test_updates [-b BACKEND] */
/* tests/run: beside others */
#include "harness.h"
#include "harness_update.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 10

struct state {
	int64_t n;
	float *p, *g, *s[GT_MAX_STATES]; /* s: in the order of optimizer_rows.h */
	uint16_t *work;
	struct gt_scalars scalars;
	struct gt_attr_update attr;
	struct gt_seg seg[2];
};

static void setup(struct state *s, const struct opcase *c, const struct gt_optimizer_row *row, double *lr)
{
	double wd = opcase_number(c, "weight_decay", 0);
	s->n = c->in[0].dim[0];
	s->p = calloc((size_t)s->n, sizeof(float));
	s->g = calloc((size_t)s->n, sizeof(float));
	s->work = calloc((size_t)s->n, sizeof(uint16_t));
	for (int i = 0; i < GT_MAX_STATES; i++)
		s->s[i] = calloc((size_t)s->n, sizeof(float));
	*lr = opcase_number(c, "lr", NAN);
	s->seg[0] = (struct gt_seg){.begin = 0, .end = s->n / 2, .lr_mul = 1, .weight_decay = wd};
	s->seg[1] = (struct gt_seg){.begin = s->n / 2, .end = s->n, .lr_mul = 0.5, .weight_decay = 2 * wd};
	s->attr = (struct gt_attr_update){.seg = s->seg, .nseg = 2};
	update_keys(c, row, &s->attr);
}

static void teardown(struct state *s)
{
	free(s->p), free(s->g), free(s->work);
	for (int i = 0; i < GT_MAX_STATES; i++)
		free(s->s[i]);
}

static enum gt_code one_step(struct harness *h, struct state *s, enum gt_opcode code, bool with_work, struct gt_err *err)
{
	int64_t one = 1, words = GT_SCALARS_WORDS;
	struct gt_tdesc f = gt_tdesc_make(GT_F32, 1, &s->n, false), w = gt_tdesc_make(GT_BF16, 1, &s->n, false);
	struct gt_tdesc d = gt_tdesc_make(GT_F64, 0, &one, false), sc = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall sum = {.code = GT_OP_SUMSQ, .name = "sumsq", .nin = 1, .nout = 1, .in = {&f}, .out = {&d}, .deterministic = true};
	struct gt_opcall up = {.code = code, .name = "update", .attr = &s->attr, .in = {&f, &f}, .deterministic = true};
	void *in[GT_MAX_IO] = {s->p, s->g}, *out[GT_MAX_IO] = {&s->scalars.sumsq};
	s->scalars.inv_scale = 1;
	if (s->attr.clip_norm > 0)
		GT_TRY(harness_call(h, &sum, (void *[]){s->g}, out, err));
	const struct gt_update_row *row = gt_update_row(code);
	int k = 2;
	for (int i = 0; i < row->nslots; i++, k++)
		if (gt_update_has(row, &s->attr, i))
			up.in[k] = &f, in[k] = s->s[i];
	if (s->attr.clip_norm > 0)
		up.in[k] = &sc, in[k] = &s->scalars;
	k++;
	if (with_work)
		up.in[k] = &w, in[k] = s->work;
	up.nin = k + 1;
	return harness_call(h, &up, in, out, err);
}

static double worst;
static char worst_case[64];
static int64_t exact, total;

static enum gt_code check(struct harness *h, const struct optable *t, const struct opcase *c, bool with_work, struct gt_err *err)
{
	struct state s = {0};
	char name[160];
	double lr;
	const struct gt_optimizer_row *row = update_optimizer(c);
	enum gt_code code = GT_OK;
	if (!row)
		return gt_fail(err, GT_EFAIL, "cases.txt has the type %s, which no optimizer is called", c->type);
	setup(&s, c, row, &lr);
	snprintf(name, sizeof name, "%s f32 p", c->name);
	const struct golden *want = optable_golden(t, name);
	if (!want || want->n != STEPS * s.n)
		code = gt_fail(err, GT_EFAIL, "golden/ops.bin has no \"%s\" of %lld elements", name, (long long)(STEPS * s.n));
	snprintf(name, sizeof name, "%s/p", c->name);
	for (int64_t i = 0; i < s.n; i++)
		s.p[i] = (float)harness_uniform(name, i);
	for (int step = 0; code == GT_OK && step < STEPS; step++) {
		snprintf(name, sizeof name, "%s/g%d", c->name, step);
		for (int64_t i = 0; i < s.n; i++)
			s.g[i] = (float)harness_uniform(name, i);
		h->step_args.step = step + 1;
		h->step_args.lr[0] = lr;
		code = one_step(h, &s, row->update, with_work, err);
		for (int64_t i = 0; code == GT_OK && i < s.n; i++) {
			float w = want->v[step * s.n + i];
			/* torch.testing's f32 rtol, and an atol of 1e-6 in place of 1e-5: parameters are of order 1 and ten steps round each a few
			 * times, so a looser one would let a wrong eps pass. */
			double ratio = fabs((double)s.p[i] - w) / (1e-6 + 1.3e-6 * fabs(w));
			total++;
			exact += s.p[i] == w;
			if (!(ratio <= 1))
				code = gt_fail(err, GT_EFAIL, "step %d, p[%lld] = %.9g, PyTorch has %.9g", step + 1, (long long)i, s.p[i], w);
			else if (ratio > worst)
				worst = ratio, snprintf(worst_case, sizeof worst_case, "%s", c->name);
			uint32_t bits = (uint32_t)s.work[i] << 16;
			float back;
			memcpy(&back, &bits, 4);
			if (code == GT_OK && with_work && (double)back != harness_bf16(s.p[i]))
				code = gt_fail(err, GT_EFAIL, "step %d, the work copy of p[%lld] = %.9g is %.9g", step + 1, (long long)i, s.p[i], back);
		}
	}
	teardown(&s);
	return code;
}

int main(int argc, char **argv)
{
	struct optable t;
	struct harness h;
	struct gt_err err = {0};
	char cases[512], goldens[512];
	const char *backend = argc > 2 && !strcmp(argv[1], "-b") ? argv[2] : "cpu";
	int bad = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(cases, sizeof cases, "%s/tests/ops/cases.txt", test_source());
	snprintf(goldens, sizeof goldens, "%s/tests/golden/ops.bin", test_source());
	if (optable_read(cases, goldens, &t, &err) != GT_OK || harness_open(&h, backend, &err) != GT_OK) {
		printf("not ok updates: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < t.ncases; i++)
		for (int work = 0; work < 2 && !strncmp(t.cases[i].type, "update:", 7); work++) {
			enum gt_code code = check(&h, &t, &t.cases[i], work, &err);
			if (code == GT_OK)
				printf("ok update %s%s\n", t.cases[i].name, work ? " (bf16 work copy)" : "");
			else
				printf("not ok update %s%s: %s\n", t.cases[i].name, work ? " (bf16 work copy)" : "", err.msg), bad++;
		}
	printf("# optimizer trajectories: %.1f %% of values bit-equal to PyTorch's, worst share of the tolerance %.3f (%s)\n",
	       total ? 100.0 * (double)exact / (double)total : 0, worst, worst_case);
	harness_close(&h);
	gt_arena_close(t.arena);
	return bad != 0;
}
