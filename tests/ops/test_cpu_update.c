/* The CPU backend's optimizers against PyTorch's numbers and against formulas in double; sums of squares; the speed of an update. */
/* tests/run: beside others */
#include "cpu_raw.h"
#include "ew.h"
#include "optimizer.h"
#include "session/lr_schedule.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ADAM_DEFAULT .beta1 = .9, .beta2 = .999, .eps = 1e-8
#define RMS_DEFAULT .alpha = .99, .eps = 1e-8
/* One optimizer and what torch.optim (2.15) leaves in every eighth element after five steps; printed by tests/golden/make_updates.py. */
static const struct opt_case {
	enum gt_opcode code;
	double lr, wd;
	struct gt_attr_update attr;
	float torch[8];
	double momentum; /* gt_step_args.momentum */
} cases[] = {
    {GT_OP_SGD,
     .1,
     0,
     {0},
     {-0x1.680000p-1f, 0x1.c66668p-1f, 0x1.01999ap-1f, 0x1.080000p-1f, 0x1.0e6666p-1f, 0x1.266666p-3f, 0x1.3ffffep-3f, 0x1.599998p-3f}},
    {GT_OP_SGD,
     .1,
     5e-4,
     {.momentum = .9},
     {0x1.ff84b4p-4f, 0x1.f48210p-1f, 0x1.6be228p-3f, 0x1.4abb46p+0f, 0x1.228ff4p-1f, -0x1.dbe650p-3f, 0x1.c3846cp-1f, 0x1.427754p-3f}},
    {GT_OP_SGD,
     .05,
     0,
     {.momentum = .9, .dampening = .3},
     {-0x1.5f834ap-2f, 0x1.a7b862p-1f, 0x1.935e42p-2f, 0x1.bf8e78p-1f, 0x1.de1100p-2f, 0x1.0ff3e6p-5f, 0x1.06de98p-1f, 0x1.b2c4f2p-4f}},
    {GT_OP_SGD,
     .05,
     1e-3,
     {.momentum = .9, .nesterov = true},
     {-0x1.5624a0p-2f, 0x1.d5d47cp-1f, 0x1.70ceb2p-2f, 0x1.b977cep-1f, 0x1.130c9cp-1f, -0x1.4c104ep-6f, 0x1.ed5fe8p-2f, 0x1.41130ap-3f}},
    {GT_OP_ADAM,
     1e-3,
     0,
     {ADAM_DEFAULT},
     {-0x1.8e6930p-1f, 0x1.60c9f2p-1f, 0x1.26ddc2p-1f, 0x1.e30f90p-2f, 0x1.7148eap-2f, 0x1.fb22f2p-3f, 0x1.25dfd2p-3f, 0x1.07dcaap-5f}},
    {GT_OP_ADAM,
     1e-3,
     1e-2,
     {.beta1 = .8, .beta2 = .95, .eps = 1e-6},
     {-0x1.8e905ep-1f, 0x1.60c228p-1f, 0x1.26f40ep-1f, 0x1.e2b8d4p-2f, 0x1.713e68p-2f, 0x1.fb7fa0p-3f, 0x1.253206p-3f, 0x1.07b616p-5f}},
    {GT_OP_ADAM,
     1e-2,
     0,
     {.beta1 = .3, .beta2 = .9, .eps = 1e-8},
     {-0x1.8bb310p-1f, 0x1.67b2aap-1f, 0x1.21a4d0p-1f, 0x1.e6fc9ep-2f, 0x1.7cc19ep-2f, 0x1.e33e7ap-3f, 0x1.2aad00p-3f, 0x1.50d1bap-5f}},
    {GT_OP_ADAM,
     1e-3,
     1e-2,
     {ADAM_DEFAULT, .decoupled = true},
     {-0x1.8e6412p-1f, 0x1.60c56ap-1f, 0x1.26d9f8p-1f, 0x1.e30962p-2f, 0x1.714430p-2f, 0x1.fb1c6cp-3f, 0x1.25dc16p-3f, 0x1.07d950p-5f}},
    {GT_OP_RMSPROP,
     1e-2,
     0,
     {RMS_DEFAULT},
     {-0x1.6ef33cp-1f, 0x1.8eecbep-1f, 0x1.d3830cp-2f, 0x1.0c135cp-1f, 0x1.bcd692p-2f, 0x1.ed3c60p-4f, 0x1.7bce6cp-3f, 0x1.708b84p-4f}},
    {GT_OP_RMSPROP,
     1e-2,
     1e-3,
     {.alpha = .9, .eps = 1e-8, .momentum = .9},
     {-0x1.44477ap-1f, 0x1.8399a0p-1f, 0x1.a7319cp-2f, 0x1.383bb2p-1f, 0x1.a7a1fcp-2f, 0x1.49028ep-4f, 0x1.195a40p-2f, 0x1.22d9fap-4f}},
    {GT_OP_RMSPROP,
     1e-2,
     0,
     {RMS_DEFAULT, .centered = true},
     {-0x1.6e85bep-1f, 0x1.8f2c96p-1f, 0x1.d23770p-2f, 0x1.0c7e36p-1f, 0x1.bd3712p-2f, 0x1.e814c2p-4f, 0x1.7d6e0cp-3f, 0x1.719a20p-4f}},
    {GT_OP_RMSPROP,
     1e-2,
     0,
     {RMS_DEFAULT, .centered = true, .momentum = .5},
     {-0x1.2e428ep-1f, 0x1.a04530p-1f, 0x1.5b33a2p-2f, 0x1.4a56fap-1f, 0x1.d30adap-2f, -0x1.b18bc6p-12f, 0x1.3544eep-2f, 0x1.9948e2p-4f}},
    {GT_OP_LION,
     1e-2,
     0,
     {.beta1 = .9, .beta2 = .99},
     {-0x1.8ae148p-1f, 0x1.651eb8p-1f, 0x1.22e148p-1f, 0x1.ea3d70p-2f, 0x1.7a3d70p-2f, 0x1.eb851ep-3f, 0x1.347ae2p-3f, 0x1.51eb84p-5f}},
    {GT_OP_LION,
     1e-2,
     1e-1,
     {.beta1 = .5, .beta2 = .8},
     {-0x1.88ecc8p-1f, 0x1.635d10p-1f, 0x1.216c66p-1f, 0x1.e7c354p-2f, 0x1.78675cp-2f, 0x1.e90c00p-3f, 0x1.32e116p-3f, 0x1.50a488p-5f}},
    {GT_OP_ADAM,
     1e-2,
     1e-2,
     {.beta1 = .8, .beta2 = .5, .eps = 1e-8, .amsgrad = true},
     {-0x1.8287b6p-1f, 0x1.670a90p-1f, 0x1.1e00f2p-1f, 0x1.f9779cp-2f, 0x1.7bde44p-2f, 0x1.d535dcp-3f, 0x1.50c310p-3f, 0x1.4b5342p-5f}},
    {GT_OP_ADAM,
     1e-2,
     1e-2,
     {ADAM_DEFAULT, .amsgrad = true, .decoupled = true},
     {-0x1.7fe9c8p-1f, 0x1.67b5e6p-1f, 0x1.1c8498p-1f, 0x1.fe5bf2p-2f, 0x1.7ca926p-2f, 0x1.cf1fc4p-3f, 0x1.5a9356p-3f, 0x1.4e7734p-5f}},
    {GT_OP_NADAM,
     1e-2,
     0,
     {ADAM_DEFAULT, .momentum_decay = 4e-3},
     {-0x1.8c1e76p-1f, 0x1.6661e4p-1f, 0x1.210f1ep-1f, 0x1.e6745ep-2f,
      0x1.7aa1acp-2f, 0x1.e1d7bcp-3f, 0x1.2a3798p-3f, 0x1.441726p-5f}},
    {GT_OP_NADAM,
     1e-2,
     1e-2,
     {.beta1 = .6, .beta2 = .9, .eps = 1e-6, .momentum_decay = .1},
     {-0x1.8d001cp-1f, 0x1.673da6p-1f, 0x1.20d6a4p-1f, 0x1.e3fccep-2f,
      0x1.7c0d66p-2f, 0x1.e05ac6p-3f, 0x1.24ba4cp-3f, 0x1.4d3b38p-5f}},
    {GT_OP_NADAM,
     1e-2,
     1e-1,
     {ADAM_DEFAULT, .momentum_decay = 4e-3, .decoupled_weight_decay = true},
     {-0x1.8a273ep-1f, 0x1.649d6cp-1f, 0x1.1f9c60p-1f, 0x1.e4000ep-2f,
      0x1.78c71cp-2f, 0x1.df67c0p-3f, 0x1.28aa2cp-3f, 0x1.42b56ep-5f}},
    {GT_OP_RADAM,
     1e-2,
     0,
     {ADAM_DEFAULT},
     {-0x1.76d464p-1f, 0x1.661b5ep-1f, 0x1.1c8ac8p-1f, 0x1.079200p-1f,
      0x1.790386p-2f, 0x1.cbc4b6p-3f, 0x1.77e19ep-3f, 0x1.2e8292p-5f}},
    {GT_OP_RADAM,
     1e-2,
     1e-2,
     {.beta1 = .8, .beta2 = .97, .eps = 1e-6},
     {-0x1.78d9d4p-1f, 0x1.66241cp-1f, 0x1.1d79bap-1f, 0x1.053ab6p-1f,
      0x1.79401cp-2f, 0x1.cfd6b0p-3f, 0x1.6edaa6p-3f, 0x1.31c00ap-5f}},
    {GT_OP_RADAM,
     1e-2,
     1e-1,
     {ADAM_DEFAULT, .decoupled_weight_decay = true},
     {-0x1.74e8d8p-1f, 0x1.64565ep-1f, 0x1.1b19b6p-1f, 0x1.064cd0p-1f,
      0x1.772860p-2f, 0x1.c95e26p-3f, 0x1.762a94p-3f, 0x1.2d203cp-5f}},
    {GT_OP_ADAGRAD,
     1e-2,
     0,
     {.eps = 1e-10},
     {-0x1.8ca71cp-1f, 0x1.64b02cp-1f, 0x1.21c4dep-1f, 0x1.e5b45ap-2f,
      0x1.77acacp-2f, 0x1.e57232p-3f, 0x1.295e36p-3f, 0x1.30043ap-5f}},
    {GT_OP_ADAGRAD,
     1e-1,
     1e-2,
     {.eps = 1e-6, .lr_decay = .1, .initial_accumulator_value = .5},
     {-0x1.67d502p-1f, 0x1.7ee06ep-1f, 0x1.f0697ep-2f, 0x1.136902p-1f,
      0x1.9f5d68p-2f, 0x1.2f2a98p-3f, 0x1.9e0e84p-3f, 0x1.026c3ap-4f}},
    {GT_OP_LAMB,
     1e-2,
     1e-2,
     {.beta1 = .9, .beta2 = .999, .eps = 1e-6},
     {-0x1.83490ap-1f, 0x1.677ea6p-1f, 0x1.208204p-1f, 0x1.f6c54cp-2f,
      0x1.7be1b6p-2f, 0x1.dd5bdep-3f, 0x1.49e6b8p-3f, 0x1.456a92p-5f}},
    {GT_OP_LAMB,
     1e-1,
     1e-1,
     {.beta1 = .8, .beta2 = .95, .eps = 1e-3, .trust_clip = true},
     {-0x1.23c2d8p-1f, 0x1.81266ep-1f, 0x1.c6f77ap-2f, 0x1.3ce778p-1f,
      0x1.a85042p-2f, 0x1.d18faap-4f, 0x1.2a86bap-2f, 0x1.374a92p-4f}},
    {GT_OP_LAMB,
     1e-2,
     0,
     {.beta1 = .9, .beta2 = .999, .eps = 1e-6, .always_adapt = true},
     {-0x1.8380dcp-1f, 0x1.67b4acp-1f, 0x1.20ab3cp-1f, 0x1.f70f9ap-2f,
      0x1.7c1bc2p-2f, 0x1.dd9cf2p-3f, 0x1.4a17eap-3f, 0x1.45aab4p-5f}},
    {GT_OP_LAMB,
     1e-2,
     0,
     {.beta1 = .9, .beta2 = .999, .eps = 1e-6},
     {-0x1.801bd6p-1f, 0x1.67e384p-1f, 0x1.1ca988p-1f, 0x1.fe9ba6p-2f,
      0x1.7cd93ep-2f, 0x1.cf5d74p-3f, 0x1.5abe2cp-3f, 0x1.4e9e9ep-5f}},
    {GT_OP_EMA, /* torch.optim.swa_utils.get_ema_multi_avg_fn(0.9) after a copy; g are the parameters */
     0,
     0,
     {.alpha = .9},
     {-0x1.26102ep+0f, -0x1.1e34d6p-1f, 0x1.da6736p-2f, -0x1.16102ep+0f,
      -0x1.fc69acp-2f, 0x1.0d339cp-1f, -0x1.06102ep+0f, -0x1.bc69aep-2f}},
};
#define NCASES (sizeof cases / sizeof cases[0])

/* Buffers of one run; of type t. */
struct arena {
	enum gt_dtype t;
	int64_t n;
	void *p, *g, *state[GT_MAX_STATES];
	uint16_t *work;
	struct gt_scalars scalars; /* the sum of squares */
};

static void arena_open(struct arena *a, enum gt_dtype t, int64_t n)
{
	*a = (struct arena){
	    .t = t, .n = n, .scalars = {.inv_scale = 1}, .p = raw_alloc(t, n), .g = raw_alloc(t, n), .work = raw_alloc(GT_BF16, n)};
	for (int i = 0; i < GT_MAX_STATES; i++) {
		a->state[i] = raw_alloc(t, n);
		memset(a->state[i], 0, (size_t)n * gt_dtype_size(t));
	}
}

static void arena_close(struct arena *a)
{
	free(a->p), free(a->g), free(a->work);
	for (int i = 0; i < GT_MAX_STATES; i++)
		free(a->state[i]);
}

/* One step through the backend. SGD's momentum buffer is filled with NaN before the first step: it must not be read. */
static enum gt_code step(int threads, const struct opt_case *c, struct arena *a, const struct gt_seg *seg, int nseg, int64_t t, bool work,
                         struct gt_err *e)
{
	struct gt_attr_update attr = c->attr;
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc d = gt_tdesc_make(a->t, 1, &a->n, false), w = gt_tdesc_make(GT_BF16, 1, &a->n, false),
	                s = gt_tdesc_make(GT_F64, 1, &words, false);
	const struct gt_update_row *row = gt_update_row(c->code);
	int nstate = row->nslots;
	struct gt_opcall call = {.code = c->code, .attr = &attr, .nin = nstate + 4, .in = {&d, &d}};
	void *in[GT_MAX_IO] = {a->p, a->g};
	attr.seg = seg;
	attr.nseg = nseg;
	attr.work_dtype = GT_BF16;
	for (int i = 0; i < nstate; i++) {
		call.in[2 + i] = gt_update_has(row, &attr, i) ? &d : NULL;
		in[2 + i] = gt_update_has(row, &attr, i) ? a->state[i] : NULL;
	}
	call.in[2 + nstate] = attr.clip_norm > 0 ? &s : NULL;
	in[2 + nstate] = attr.clip_norm > 0 ? &a->scalars : NULL;
	call.in[3 + nstate] = work ? &w : NULL;
	in[3 + nstate] = work ? a->work : NULL;
	if (t == 1 && c->code == GT_OP_SGD)
		memset(a->state[0], 0xff, (size_t)a->n * gt_dtype_size(a->t));
	return raw_try(threads, &call, in, NULL, &(struct gt_step_args){.step = t, .lr = {c->lr}, .momentum = {c->momentum}}, e);
}

TEST(updates_give_torchs_numbers)
{
	int same = 0, all = 0;
	for (size_t k = 0; k < NCASES; k++) {
		struct arena a;
		struct gt_err e = {0};
		struct gt_seg seg = {0, 64, 1, cases[k].wd};
		arena_open(&a, GT_F32, 64);
		float *p = a.p, *g = a.g;
		for (int i = 0; i < 64; i++)
			p[i] = (float)(37 * i % 101 - 50) / 64;
		for (int t = 0; t < 5; t++) {
			for (int i = 0; i < 64; i++)
				g[i] = (float)((53 * i + 29 * t) % 127 - 63) / 32;
			CHECK_OK(step(1, &cases[k], &a, &seg, 1, t + 1, false, &e), e);
		}
		for (int i = 0; i < 8; i++) {
			/* SGD: the same bits. PyTorch's square root comes from MKL, which does not always round correctly: an ulp in a step
			 * of Adam or RMSprop, of which five are made, is at most a few ulp of the largest value that p went through (2^-24). */
			double tol = cases[k].code == GT_OP_SGD ? 0 : 4 * 0x1p-24;
			CHECK_MSG(fabs((double)p[8 * i] - cases[k].torch[i]) <= tol, "case %zu, element %d: %a, PyTorch has %a", k, 8 * i, p[8 * i],
			          cases[k].torch[i]);
			same += p[8 * i] == cases[k].torch[i];
			all++;
		}
		arena_close(&a);
	}
	printf("# optimizers: %d of %d elements have PyTorch's bits after 5 steps\n", same, all);
}

/* PyTorch's formulas of one element, in double. s: state of the element. Returns the new parameter; of NORMS, the direction. */
static double reference(const struct opt_case *c, const struct gt_seg *seg, int t, double clip, double p, double g, double s[3], bool *tie)
{
	const struct gt_attr_update *a = &c->attr;
	double lr = c->lr * seg->lr_mul;
	if (c->code == GT_OP_EMA) /* g is no gradient */
		return t == 1 ? g : a->alpha * p + (1 - a->alpha) * g;
	g *= clip;
	if (a->clip_value > 0)
		g = fmax(-a->clip_value, fmin(g, a->clip_value));
	if (c->code == GT_OP_LION) {
		double d = a->beta1 * s[0] + (1 - a->beta1) * g;
		*tie = fabs(d) <= 16 * 0x1p-24 * (fabs(s[0]) + fabs(g)); /* f32 may round it to the other sign */
		s[0] = a->beta2 * s[0] + (1 - a->beta2) * g;
		return p - lr * ((d > 0) - (d < 0) + seg->weight_decay * p);
	}
	if (c->code == GT_OP_LAMB) {
		s[0] = a->beta1 * s[0] + (1 - a->beta1) * g;
		s[1] = a->beta2 * s[1] + (1 - a->beta2) * g * g;
		return s[0] / (1 - pow(a->beta1, t)) / (sqrt(s[1] / (1 - pow(a->beta2, t))) + a->eps) + seg->weight_decay * p;
	}
	if (a->decoupled || a->decoupled_weight_decay)
		p *= 1 - lr * seg->weight_decay;
	else
		g += seg->weight_decay * p;
	if (c->code == GT_OP_SGD) {
		if (a->momentum == 0)
			return p - lr * g;
		s[0] = t == 1 ? g : a->momentum * s[0] + (1 - a->dampening) * g;
		return p - lr * (a->nesterov ? g + a->momentum * s[0] : s[0]);
	}
	if (c->code == GT_OP_ADAM) {
		s[0] = a->beta1 * s[0] + (1 - a->beta1) * g;
		s[1] = a->beta2 * s[1] + (1 - a->beta2) * g * g;
		s[2] = fmax(s[2], s[1]);
		double v = a->amsgrad ? s[2] : s[1];
		return p - lr / (1 - pow(a->beta1, t)) * s[0] / (sqrt(v) / sqrt(1 - pow(a->beta2, t)) + a->eps);
	}
	if (c->code == GT_OP_NADAM) {
		double product = 1, mu[2] = {0};
		for (int i = 1; i <= t + 1; i++) {
			mu[i - t > 0] = a->beta1 * (1 - .5 * pow(.96, i * a->momentum_decay));
			product *= i <= t ? mu[0] : 1;
		}
		s[0] = a->beta1 * s[0] + (1 - a->beta1) * g;
		s[1] = a->beta2 * s[1] + (1 - a->beta2) * g * g;
		double denom = sqrt(s[1] / (1 - pow(a->beta2, t))) + a->eps;
		return p - lr * ((1 - mu[0]) / (1 - product) * g + mu[1] / (1 - product * mu[1]) * s[0]) / denom;
	}
	if (c->code == GT_OP_RADAM) {
		double most = 2 / (1 - a->beta2) - 1, power = pow(a->beta2, t), rho = most - 2 * t * power / (1 - power);
		s[0] = a->beta1 * s[0] + (1 - a->beta1) * g;
		s[1] = a->beta2 * s[1] + (1 - a->beta2) * g * g;
		double d = s[0] / (1 - pow(a->beta1, t));
		if (rho > 5)
			d *= sqrt((1 - power) * (rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho)) / (sqrt(s[1]) + a->eps);
		return p - lr * d;
	}
	if (c->code == GT_OP_ADAGRAD) {
		s[0] = (t == 1 ? a->initial_accumulator_value : s[0]) + g * g;
		return p - lr / (1 + (t - 1) * a->lr_decay) * g / (sqrt(s[0]) + a->eps);
	}
	if (c->code != GT_OP_RMSPROP)
		return NAN; /* no formula here: no result equals it */
	s[0] = a->alpha * s[0] + (1 - a->alpha) * g * g;
	double v = s[0];
	if (a->centered) {
		s[2] = a->alpha * s[2] + (1 - a->alpha) * g;
		v -= s[2] * s[2];
	}
	double d = g / (sqrt(v) + a->eps);
	if (a->momentum > 0) {
		s[1] = a->momentum * s[1] + d;
		d = s[1];
	}
	return p - lr * d;
}

/* Takes the step of a whole parameter in the directions d. */
static void scale_step(const struct opt_case *c, const struct gt_seg *seg, double *p, const double *d)
{
	double pp = 0, dd = 0, ratio = 1;
	for (int64_t i = seg->begin; i < seg->end; i++)
		pp += p[i] * p[i], dd += d[i] * d[i];
	if (pp > 0 && dd > 0 && (seg->weight_decay != 0 || c->attr.always_adapt))
		ratio = sqrt(pp / dd);
	for (int64_t i = seg->begin; i < seg->end; i++)
		p[i] -= c->lr * seg->lr_mul * (c->attr.trust_clip ? fmin(ratio, 1) : ratio) * d[i];
}

/* Returns the case with what the schedule, which may be NULL, has changed at a step, from 1, of `steps`. */
static struct opt_case at_step(const struct opt_case *c, const struct gt_conf_schedule *s, int k, int steps)
{
	struct opt_case now = *c;
	if (!s)
		return now;
	now.lr = gt_schedule_rate(s, c->lr, k - 1, steps, 1);
	now.momentum = gt_schedule_momentum(s, k - 1, steps, 1);
	return now;
}

/* The same with the momentum among the attributes, as the formulas expect it. */
static struct opt_case without_cycle(struct opt_case c)
{
	if (c.momentum > 0 && c.attr.momentum > 0)
		c.attr.momentum = c.momentum;
	if (c.momentum > 0 && c.attr.beta1 > 0)
		c.attr.beta1 = c.momentum;
	return c;
}

/* Segments with their own rates, gaps between them, clipping, the work copy, thread counts: all at once over several steps. schedule: a
 * one-cycle schedule that changes rate and momentum, or NULL. */
static void trajectory(const struct opt_case *c0, enum gt_dtype t, double clip_norm, int64_t n, int steps,
                       const struct gt_conf_schedule *schedule)
{
	struct opt_case c = *c0;
	struct gt_seg seg[4] = {{0, n / 3, 1, c.wd}, {n / 3, n / 2, 0.5, 0}, {n / 2 + n / 8, n - 2, 2, 0.02}, {n - 1, n, 1, 0}};
	struct arena a, b;
	struct gt_err e = {0};
	double *p = calloc((size_t)n, 8), (*s)[3] = calloc((size_t)n, sizeof *s), *tol = calloc((size_t)n, 8), *d = calloc((size_t)n, 8);
	bool whole = gt_update_row(c.code)->whole;
	int64_t ties = 0;
	c.attr.clip_norm = clip_norm;
	arena_open(&a, t, n);
	arena_open(&b, t, n);
	raw_random(t, a.p, n, 1, -1, 1);
	memcpy(b.p, a.p, (size_t)n * gt_dtype_size(t));
	for (int64_t i = 0; i < n; i++)
		p[i] = gt_load_number(t, a.p, i);
	for (int k = 1; k <= steps; k++) {
		raw_random(t, a.g, n, 100 + (uint32_t)k, -1, 3);
		memcpy(b.g, a.g, (size_t)n * gt_dtype_size(t));
		a.scalars.sumsq = 0;
		for (int64_t i = 0; i < n; i++)
			a.scalars.sumsq += gt_load_number(t, a.g, i) * gt_load_number(t, a.g, i);
		b.scalars = a.scalars;
		double clip = clip_norm > 0 ? fmin(1, clip_norm / (sqrt(a.scalars.sumsq) + 1e-6)) : 1;
		struct opt_case now = at_step(&c, schedule, k, steps), fixed = without_cycle(now);
		CHECK_OK(step(1, &now, &a, seg, 4, k, true, &e), e);
		CHECK_OK(step(3, &now, &b, seg, 4, k, k % 2 == steps % 2, &e), e);
		for (int j = 0; j < 4; j++) {
			for (int64_t i = seg[j].begin; i < seg[j].end; i++) {
				bool tie = false;
				double *to = whole ? &d[i] : &p[i];
				*to = reference(&fixed, &seg[j], k, clip, p[i], gt_load_number(t, a.g, i), s[i], &tie);
				tol[i] += tie ? 2 * c.lr * seg[j].lr_mul : 0;
				ties += tie;
			}
			if (whole)
				scale_step(&fixed, &seg[j], p, d);
		}
	}
	/* A step makes about ten roundings of quantities no larger than |p| + lr |update|; centered RMSprop subtracts two nearly equal
	 * averages first, whose errors the square root can double per lost bit: 64 times as much. */
	for (int64_t i = 0; i < n; i++)
		tol[i] += steps * 10 * raw_eps(t) * (fabs(p[i]) + 1 + 30 * c.lr) * (c.attr.centered ? 64 : 1);
	CHECK_MSG(ties <= 1 + n / 1000, "%lld directions are near 0", (long long)ties); /* random ones are not */
	RAW_CHECK(gt_opcode_name(c.code), t, a.p, p, tol, n);
	CHECK_MSG(!memcmp(a.p, b.p, (size_t)n * gt_dtype_size(t)), "three threads give other bits than one");
	for (int j = 0; j < 4; j++)
		for (int64_t i = seg[j].begin; i < seg[j].end; i++)
			CHECK(a.work[i] == gt_bf16_from_f32((float)gt_load_number(t, a.p, i)));
	/* What no segment covers is left alone. */
	for (int64_t i = n / 2; i < n / 2 + n / 8; i++)
		CHECK(gt_load_number(t, a.p, i) == p[i] && a.work[i] == 0xffff);
	arena_close(&a);
	arena_close(&b);
	free(p), free(s), free(tol), free(d);
}

/* Whether a case has these states, bit k for state k. */
static bool covered(enum gt_opcode code, int states)
{
	for (size_t k = 0; k < NCASES; k++) {
		int has = 0;
		for (int i = 0; i < gt_update_row(code)->nslots; i++)
			has |= gt_update_has(gt_update_row(code), &cases[k].attr, i) << i;
		if (cases[k].code == code && has == states)
			return true;
	}
	return false;
}

TEST(every_update_has_its_cases)
{
#define GT_X(NAME, name, s0, s1, s2, loops) GT_OP_##NAME,
	static const enum gt_opcode codes[] = {GT_ELEMENT_UPDATES(GT_X) GT_NORM_UPDATES(GT_X)};
#undef GT_X
#define GT_X(NAME, name, s0, s1, s2, loops) {GT_STATES_ALL(s0, s1, s2), GT_STATES_MUST(s0, s1, s2)},
	static const int masks[][2] = {GT_ELEMENT_UPDATES(GT_X) GT_NORM_UPDATES(GT_X)};
#undef GT_X
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		for (int has = 0; has < 1 << GT_MAX_STATES; has++) {
			bool possible = !(has & ~masks[i][0]) && (has & masks[i][1]) == masks[i][1];
			CHECK_MSG(!possible || covered(codes[i], has), "%s has no case with the states %d", gt_opcode_name(codes[i]), has);
		}
}

TEST(updates_follow_the_formulas)
{
	for (size_t k = 0; k < NCASES; k++)
		for (int t = 0; t < 2; t++) {
			trajectory(&cases[k], t ? GT_F64 : GT_F32, 0, 17, 7, NULL);
			trajectory(&cases[k], t ? GT_F64 : GT_F32, 0, 200003, 7, NULL);
			struct opt_case by_value = cases[k];
			by_value.attr.clip_value = 0.5; /* gradients are from -1 to 3 */
			trajectory(&by_value, t ? GT_F64 : GT_F32, 0, 1000, 7, NULL);
			trajectory(&cases[k], t ? GT_F64 : GT_F32, 10, 1000, 7, NULL);  /* norm is about 48: clipped */
			trajectory(&cases[k], t ? GT_F64 : GT_F32, 1e4, 1000, 7, NULL); /* not reached */
		}
}

/* 50 steps of OneCycleLR, whose rates and momenta tests/unit/test_schedule.c compares with PyTorch's. */
TEST(updates_with_a_cycled_momentum)
{
	static const struct gt_conf_schedule cycle = {.type = GT_SCHED_ONECYCLE, .unit = GT_UNIT_STEP, .pct_start = 0.3, .div_factor = 25,
	                                              .final_div_factor = 1e4, .base_momentum = 0.85, .max_momentum = 0.95};
	for (size_t k = 0; k < NCASES; k++)
		for (int t = 0; t < 2; t++)
			if (cases[k].attr.momentum > 0 || cases[k].attr.beta1 > 0)
				trajectory(&cases[k], t ? GT_F64 : GT_F32, 0, 1000, 50, &cycle);
}

TEST(a_nan_norm_reaches_every_parameter)
{
	struct arena a;
	struct gt_err e = {0};
	struct gt_seg seg = {0, 100, 1, 0};
	struct opt_case c = cases[0];
	c.attr.clip_norm = 1;
	arena_open(&a, GT_F32, 100);
	raw_random(GT_F32, a.p, 100, 1, -1, 1);
	raw_random(GT_F32, a.g, 100, 1, -1, 1);
	a.scalars.sumsq = NAN;
	CHECK_OK(step(1, &c, &a, &seg, 1, 1, false, &e), e);
	for (int i = 0; i < 100; i++)
		CHECK(isnan(((float *)a.p)[i])); /* as torch.nn.utils.clip_grad_norm_ leaves it: the trainer looks at the norm before */
	arena_close(&a);
}

TEST(updates_refuse_what_does_not_fit)
{
	struct arena a;
	struct gt_err e = {0};
	struct gt_seg seg[2] = {{0, 60, 1, 0}, {50, 101, 1, 0}};
	arena_open(&a, GT_F32, 100);
	CHECK(step(1, &cases[0], &a, seg, 2, 1, false, &e) == GT_EUNAVAILABLE && strstr(e.msg, "segments"));
	seg[1].begin = 60;
	CHECK(step(1, &cases[0], &a, seg, 2, 1, false, &e) == GT_EUNAVAILABLE && strstr(e.msg, "segments"));
	struct gt_tdesc d = gt_tdesc_make(GT_F32, 1, (int64_t[]){100}, false);
	struct gt_attr_update attr = {.momentum = 0.9};
	struct gt_opcall call = {.code = GT_OP_SGD, .attr = &attr, .nin = 2, .in = {&d, &d}};
	CHECK(raw_try(1, &call, NULL, NULL, NULL, &e) == GT_EUNAVAILABLE && strstr(e.msg, "state"));
	arena_close(&a);
}

/* linear.dw+update applies element-wise updates only. Muon and Lamb need whole parameters. */
TEST(fused_updates_refuse_other_optimizers)
{
	struct gt_err e = {0};
	int64_t words = GT_SCALARS_WORDS;
	struct gt_seg seg = {0, 1024, 1, 0};
	struct gt_scalars skipped = {.skip = 1}; /* a launch does nothing */
	void *in[GT_MAX_IO] = {NULL, NULL, NULL, &skipped};
	static const enum gt_opcode optimizer[] = {GT_OP_SGD, GT_OP_MUON, GT_OP_LAMB};
	for (int i = 0; i < 3; i++) {
		struct gt_tdesc dy = gt_tdesc_make(GT_F32, 2, (int64_t[]){8, 32}, false), x = dy,
		                w = gt_tdesc_make(GT_F32, 2, (int64_t[]){32, 32}, false), scalars = gt_tdesc_make(GT_F64, 1, &words, false);
		struct gt_attr_dw_update attr = {.optimizer = optimizer[i], .update = {.momentum = 0.9, .seg = &seg, .nseg = 1}};
		struct gt_opcall call = {.code = GT_OP_LINEAR_DW_UPDATE, .attr = &attr, .nin = 5, .in = {&dy, &x, &w, &scalars, &w}};
		w.any = true;
		enum gt_code code = raw_try(1, &call, in, NULL, &(struct gt_step_args){.step = 1}, &e);
		if (!i && code != GT_OK)
			return; /* this processor has no kernel for it */
		CHECK_MSG(i ? code == GT_EUNAVAILABLE && strstr(e.msg, "optimizer") : code == GT_OK, "%s: code %d: %s",
		          gt_opcode_name(attr.optimizer), (int)code, e.msg);
	}
}

/* Lion: a direction of 0 leaves the parameter alone, so padding stays 0; NaN reaches parameter and state. */
TEST(lion_keeps_zero_and_nan)
{
	struct arena a;
	struct gt_err e = {0};
	struct gt_seg seg = {0, 32, 1, 0};
	struct opt_case c = {GT_OP_LION, 0.5, 0, {.beta1 = .9, .beta2 = .99}, {0}};
	arena_open(&a, GT_F32, 32);
	float *p = a.p, *g = a.g, *m = a.state[0];
	for (int i = 0; i < 32; i++)
		p[i] = 2, g[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? NAN : -1;
	CHECK_OK(step(1, &c, &a, &seg, 1, 1, false, &e), e);
	for (int i = 0; i < 32; i++)
		CHECK(i % 3 == 0 ? p[i] == 2 && m[i] == 0 : i % 3 == 1 ? isnan(p[i]) && isnan(m[i]) : p[i] == 2.5f && m[i] < 0);
	arena_close(&a);
}

/* ---- sumsq -------------------------------------------------------------------------------------------------------------------- */
static double sumsq(int threads, enum gt_dtype t, const void *x, int64_t n)
{
	struct gt_tdesc d = gt_tdesc_make(t, 1, &n, false), s = gt_tdesc_make(GT_F64, 0, NULL, false);
	struct gt_opcall call = {.code = GT_OP_SUMSQ, .nin = 1, .nout = 1, .in = {&d}, .out = {&s}};
	double out = NAN;
	raw_run(threads, &call, (void *[]){(void *)x}, (void *[]){&out}, NULL);
	return out;
}

TEST(sumsq_is_exact_and_fixed)
{
	static const int64_t ns[] = {1, 31, 32, 33, 4095, 4096, 4097, 12288, 1000003};
	for (size_t k = 0; k < sizeof ns / sizeof ns[0]; k++)
		for (int t = 0; t < 2; t++) {
			enum gt_dtype type = t ? GT_F64 : GT_F32;
			void *x = raw_alloc(type, ns[k]);
			long double want = 0;
			raw_random(type, x, ns[k], 8, -1, 1);
			for (int64_t i = 0; i < ns[k]; i++)
				want += (long double)gt_load_number(type, x, i) * gt_load_number(type, x, i);
			double got = sumsq(1, type, x, ns[k]);
			/* a tree of sums: 128 in a lane, then log2 of the rest */
			CHECK_MSG(fabsl(got - want) <= 150 * 0x1p-53L * want, "%lld: %.17g, should be %.17Lg", (long long)ns[k], got, want);
			for (int threads = 2; threads <= 5; threads++)
				CHECK(sumsq(threads, type, x, ns[k]) == got);
			for (int64_t at = 0; at < ns[k]; at += 1 + ns[k] / 3) {
				double keep = gt_load_number(type, x, at);
				number_put(type, x, at, NAN);
				CHECK(isnan(sumsq(2, type, x, ns[k])));
				number_put(type, x, at, -INFINITY);
				CHECK(isinf(sumsq(2, type, x, ns[k])));
				number_put(type, x, at, keep);
			}
			free(x);
		}
	/* Squares that f32 could not hold. */
	float big[3] = {3e38f, -3e38f, 1};
	CHECK(fabs(sumsq(1, GT_F32, big, 3) / 1.8e77 - 1) < 1e-6);
}

/* ---- speed -------------------------------------------------------------------------------------------------------------------- */
static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TEST(update_speed)
{
	static const struct {
		const char *name;
		int index, streams; /* arrays of f32 read + written */
	} which[] = {{"sgd", 0, 3}, {"sgd momentum", 1, 5}, {"adam", 4, 7}, {"rmsprop", 8, 5}};
	for (size_t k = 0; k < 4; k++)
		for (int64_t n = 669706; n <= 16 * 669706; n *= 16) { /* the tutorial's MLP; what no cache holds */
			struct arena a;
			struct gt_err e = {0};
			struct gt_seg seg = {0, n, 1, 0};
			arena_open(&a, GT_F32, n);
			raw_random(GT_F32, a.p, n, 1, -1, 1);
			raw_random(GT_F32, a.g, n, 2, -1, 1);
			double best[2];
			for (int threads = 1; threads <= 2; threads++) {
				double start = seconds(), t = INFINITY;
				while (seconds() - start < 0.1) {
					double t0 = seconds();
					CHECK_OK(step(threads, &cases[which[k].index], &a, &seg, 1, 2, false, &e), e);
					t = fmin(t, seconds() - t0);
				}
				best[threads - 1] = t;
			}
			double bytes = (double)n * 4 * which[k].streams;
			printf("# update %s, %.1f M parameters: 1 thread %.0f us (%.1f GB/s), 2 threads %.0f us (%.1f GB/s)\n", which[k].name,
			       (double)n / 1e6, best[0] * 1e6, bytes / best[0] / 1e9, best[1] * 1e6, bytes / best[1] / 1e9);
			CHECK(best[0] > 0 && best[0] < 10); /* that it ran; a busy machine decides the rest */
			arena_close(&a);
		}
}
RUN_TESTS()
