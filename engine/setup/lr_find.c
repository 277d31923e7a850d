/* The learning-rate range test (Smith 2015, "Cyclical Learning Rates for Training Neural Networks"), as fastai's lr_find does it.
 *
 *     step i of n:  rate = from * (to / from)^(i / (n - 1));  forward, backward, update with this rate
 *     loss  --> moving average (gt_lr_smooth), corrected for its start --> curve --> setup/lr_suggest.h
 *     end:  after n steps, when the average exceeds 4 times its minimum, or when a loss or a gradient is not finite
 *
 * All rates of the config change by the same factor: rate / train.optimizer.lr. Schedules are ignored. All steps train like the first step
 * of a run: parameters that are frozen in the first step stay frozen. The test uses full batches only, unless the data is smaller than one
 * batch. In fp16, a step whose gradients overflow is repeated with the next batch and the same rate. */
#include "base/clock.h"
#include "gtrain.h"
#include "gtrain_data.h"
#include "session/session_data.h"
#include "setup/lr_suggest.h"
#include "train/pretrained.h"
#include "train/rank_session.h"
#include "train/state.h"
#include "train/warnings.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* a test with fewer steps causes a warning: 60 steps suggested rates that differed by a factor of 10 from those of 100 steps */
#define ENOUGH 100
#define RISE 4      /* the test ends when the average is this multiple of its minimum */

/* ---- the test on one rank ------------------------------------------------------------------------------------------------------ */

struct test {
	struct gt_session *s;
	const struct gt_lr_find_spec *spec;
	const struct gt_prog *prog;
	struct gt_lr_curve *curve;
	gt_observer observe;
	void *user;
	int ahead;             /* number of steps that are queued or applied */
	int64_t epoch, cursor; /* position of the next batch: its epoch, and the number of samples of the epoch before it */
	int skips;             /* number of consecutive steps that were not applied */
	double smooth;         /* weight of the old value in the moving average of the loss, 0 ... 1 */
	/* average: moving average of the losses, not corrected for its start; least: minimum of the corrected average so far */
	double average, least;
	double start;          /* time (gt_clock) at which the test began */
};

static double rate_of(const struct gt_lr_find_spec *spec, int step)
{
	double x = (double)step / (spec->steps - 1);
	return step == spec->steps - 1 ? spec->to : spec->from * pow(spec->to / spec->from, x);
}

/* Sets the rates of gt_step_args.lr for a rate `rate` of train.optimizer. */
static void set_rates(const struct gt_optim *o, double rate, double lr[GT_MAX_LR])
{
	const struct gt_conf_train *t = o->conf;
	memset(lr, 0, GT_MAX_LR * sizeof *lr);
	lr[0] = rate;
	for (int i = 0; i < t->ngroups; i++)
		lr[1 + i] = t->group[i].frozen_until > 0 ? 0
		            : t->group[i].own_optimizer  ? t->group[i].optimizer.lr * (rate / t->optimizer.lr)
		                                         : rate;
}

/* Returns whether the epoch has less than a batch left. */
static bool epoch_ends(const struct test *t)
{
	return t->cursor + t->prog->samples > t->s->batch.samples;
}

/* Returns whether another step can be queued now. The loader begins the next epoch only when no step is queued. */
static bool can_queue(const struct test *t)
{
	const struct gt_exec *x = &t->s->exec;
	return t->ahead < t->spec->steps && x->queued < x->depth && !(x->queued && epoch_ends(t));
}

static enum gt_code queue_step(struct test *t, struct gt_err *err)
{
	struct gt_session *s = t->s;
	struct gt_step_args *step_args;
	double weight, lr[GT_MAX_LR];
	int left = t->prog->nmicro;
	if (epoch_ends(t)) {
		t->epoch++;
		t->cursor = 0;
		GT_TRY(gt_loader_start(s->prog.loader, t->epoch, 0, err));
	}
	GT_TRY(gt_exec_step_args(&s->exec, &step_args, err));
	GT_TRY(gt_loader_weight(s->prog.loader, t->epoch, t->cursor, t->prog->samples, &weight, err));
	set_rates(&s->optim, rate_of(t->spec, t->ahead++), lr);
	for (int m = 0; m < t->prog->nmicro; m++) {
		step_args[m] = (struct gt_step_args){
		    .seed = (uint64_t)s->conf->seed, .stride = 1, .step = t->ahead, .inv_weight = weight > 0 ? 1 / weight : 0, .left = --left};
		memcpy(step_args[m].lr, lr, sizeof lr);
	}
	GT_TRY(gt_loader_take_parts(s->prog.loader, t->prog->nmicro, step_args, err));
	t->cursor += t->prog->samples;
	return gt_exec_launch(&s->exec, t->prog, s->prog.loader, 1, err);
}

static void report_step(const struct test *t, const struct gt_lr_point *p)
{
	struct gt_event ev = {.kind = GT_EV_TRAIN, .step = t->curve->n, .steps = t->spec->steps, .loss = p->smooth, .lr = p->lr, .acc = NAN};
	ev.eta_s = (gt_clock() - t->start) / t->curve->n * (t->spec->steps - t->curve->n);
	if (t->observe)
		t->observe(t->user, &ev);
}

/* Adds an applied step to the curve. */
static void add_point(struct test *t, double loss)
{
	struct gt_lr_curve *c = t->curve;
	struct gt_lr_point *p = &c->point[c->n];
	t->average = t->smooth * t->average + (1 - t->smooth) * loss;
	*p = (struct gt_lr_point){rate_of(t->spec, c->n), loss, t->average / (1 - pow(t->smooth, c->n + 1))};
	c->n++;
	if (p->smooth < t->least)
		t->least = p->smooth;
	if (p->smooth > RISE * t->least)
		c->ended = "rise";
	else if (c->n == t->spec->steps)
		c->ended = "range";
	report_step(t, p);
}

/* Evaluates the first step again to find the reason why it was not applied, and fails with this reason. */
static enum gt_code fail_first_step(struct test *t, const struct gt_window *w, struct gt_err *err)
{
	struct gt_session *s = t->s;
	struct gt_step_args *own;
	GT_NEW(own, s->arena, t->prog->nmicro, err);
	memcpy(own, w->step_args, (size_t)t->prog->nmicro * sizeof *own);
	/* in fp16, a step that overflows is repeated with the next batch, so the last batch failed, not the first one */
	bool again = gt_session_scales_loss(s);
	GT_TRY(gt_exec_drain(&s->exec, err));
	GT_TRY(gt_loader_start(s->prog.loader, again ? t->epoch : 0, again ? t->cursor - t->prog->samples : 0, err));
	return gt_exec_diagnose(&s->exec, t->prog, s->prog.loader, own, 1, err);
}

static enum gt_code collect_step(struct test *t, struct gt_err *err)
{
	struct gt_session *s = t->s;
	const struct gt_window *w;
	bool scales = gt_session_scales_loss(s);
	GT_TRY(gt_exec_collect(&s->exec, &w, err));
	const struct gt_scalars *r = &w->scalars[0];
	gt_rank_report_progress(s->exec.link, t->ahead);
	t->skips = r->skip ? t->skips + 1 : 0;
	if (!r->skip)
		add_point(t, gt_session_scores(s, &r->metrics).loss);
	else if (!scales || t->skips >= GT_SKIPS)
		t->curve->ended = "diverged";
	if (t->curve->ended && !t->curve->n)
		return fail_first_step(t, w, err);
	if (scales) /* counts only applied steps: a skipped step is repeated with the next batch */
		t->ahead = t->curve->n;
	return GT_OK;
}

/* Runs the test on one rank, with a session that has initial weights. Steps are queued one by one, so that all ranks queue the same steps,
 * and end after the same step, with the same losses. GT_EDIVERGED: the first step has a loss or a gradient that is not finite. */
static enum gt_code test_session(struct gt_session *s, const struct gt_lr_find_spec *spec, gt_observer observe, void *user,
                                 struct gt_lr_curve *c, struct gt_err *err)
{
	struct test t = {.s = s, .spec = spec, .curve = c, .observe = observe, .user = user, .least = INFINITY, .start = gt_clock(),
	                 .smooth = gt_lr_smooth(spec->steps)};
	int64_t end;
	t.prog = gt_session_step_prog(s, 0, false, &end);
	if (!t.prog->n)
		t.prog = gt_session_step_prog(s, 0, true, &end);
	GT_NEW(c->point, c->arena, spec->steps, err);
	gt_loader_use_longest(s->prog.loader);
	GT_TRY(gt_loader_start(s->prog.loader, 0, 0, err));
	s->exec.max_window_steps = 1;
	while (!c->ended) {
		while (can_queue(&t))
			GT_TRY(queue_step(&t, err));
		GT_TRY(collect_step(&t, err));
	}
	GT_TRY(gt_exec_drain(&s->exec, err));
	gt_loader_stop(s->prog.loader);
	return gt_lr_suggest(c, err);
}

/* ---- the ranks ----------------------------------------------------------------------------------------------------------------- */

struct job {
	struct gt_conf *c;
	const struct gt_run_opts *opts;
	const struct gt_lr_find_spec *spec;
	struct gt_lr_curve *result; /* result of rank 0 */
};

static void emit_warning(void *user, const char *text)
{
	const struct gt_run_opts *o = user;
	struct gt_event ev = {.kind = GT_EV_WARN, .text = text};
	if (o->observe)
		o->observe(o->user, &ev);
}

static void warn_of_skipped(void *user, const char *why)
{
	char text[1200];
	snprintf(text, sizeof text, "skipped %s", why);
	emit_warning(user, text);
}

/* Sets the initial weights, as a run does. */
static enum gt_code set_first_weights(const struct job *j, struct gt_session *s, gt_observer observe, struct gt_err *err)
{
	const struct gt_pretrained_report *r = NULL;
	enum gt_dtype converted;
	char text[2048];
	if (j->opts->init)
		return gt_state_import(s, j->opts->init, &converted, err);
	GT_TRY(gt_session_init(s, err));
	GT_TRY(gt_pretrained_load(s, &r, err));
	if (r && observe)
		observe(j->opts->user, &(struct gt_event){.kind = GT_EV_PRETRAINED, .pretrained = r,
		                                          .text = gt_pretrained_text(r, text, sizeof text)});
	return GT_OK;
}

static enum gt_code describe_curve(const struct job *j, const struct gt_session *s, struct gt_lr_curve *c, struct gt_err *err)
{
	const struct gt_conf_train *t = &j->c->train;
	double lr[GT_MAX_LR];
	set_rates(&s->optim, c->suggestion[GT_LR_VALLEY].lr, lr);
	GT_NEW_STR(c->name, gt_arena_strdup(c->arena, j->c->name), err);
	GT_NEW_STR(c->device, gt_arena_strdup(c->arena, s->device.info.name), err);
	c->precision = gt_precision_names[j->c->precision];
	c->used = *j->c->checkpoint.dir && gt_refuse_used(j->c->checkpoint.dir, NULL) != GT_OK;
	c->ngroups = t->ngroups;
	GT_NEW(c->group, c->arena, t->ngroups + 1, err);
	GT_NEW(c->own, c->arena, t->ngroups + 1, err);
	for (int i = 0; i < t->ngroups; i++) {
		c->group[i] = t->group[i].frozen || t->group[i].frozen_until > 0 ? NAN : lr[1 + i];
		c->own[i] = t->group[i].own_optimizer;
	}
	return GT_OK;
}

/* gt_rank_session.body */
static enum gt_code find_rate(void *user, struct gt_session *s, struct gt_err *err)
{
	struct job *j = user;
	struct gt_arena *a;
	gt_observer observe = s->at.rank ? NULL : j->opts->observe;
	if (observe && j->spec->steps < ENOUGH) {
		char text[200];
		snprintf(text, sizeof text, "the suggestion after %d steps may be wrong by a factor of 10, because the learning rate grows too "
		         "fast for the loss; use at least %d steps", j->spec->steps, ENOUGH);
		emit_warning((void *)j->opts, text);
	}
	GT_TRY(set_first_weights(j, s, observe, err));
	GT_TRY(gt_arena_open(&a, err));
	struct gt_lr_curve *c = gt_arena_alloc(a, 1, sizeof *c);
	enum gt_code code = c ? GT_OK : gt_fail_memory(err, sizeof *c);
	if (code == GT_OK) {
		*c = (struct gt_lr_curve){.steps = j->spec->steps, .arena = a};
		code = test_session(s, j->spec, observe, j->opts->user, c, err);
	}
	if (code == GT_OK)
		code = gt_session_skipped(s, warn_of_skipped, NULL, (void *)j->opts, err);
	if (code == GT_OK)
		code = describe_curve(j, s, c, err);
	if (code == GT_OK && s->at.rank == 0)
		j->result = c;
	else
		gt_arena_close(a);
	return code;
}

/* Rejects a config in which train.optimizer.lr is 0, because rates of groups are multiples of it. */
static enum gt_code check_groups(const struct gt_conf *c, struct gt_err *err)
{
	for (int i = 0; i < c->train.ngroups && c->train.optimizer.lr == 0; i++)
		if (c->train.group[i].own_optimizer)
			return gt_conf_refuse(c, "train.optimizer.lr", err, "expected a number > 0, because gtrain lr-find multiplies it and "
			                      "train.groups[%d].optimizer.lr by the same factor, got 0", i);
	return GT_OK;
}

enum gt_code gt_lr_find(struct gt_conf *c, const struct gt_run_opts *o, const struct gt_lr_find_spec *spec, struct gt_lr_curve **out,
                        struct gt_err *err)
{
	struct job j = {.c = c, .opts = o, .spec = spec};
	struct gt_rank_session r = {
	    .conf = c, .opts = o, .spec = {.train = true}, .start = "a learning-rate range test", .body = find_rate, .user = &j};
	*out = NULL;
	if (spec->steps < 10)
		return gt_fail(err, GT_EUSAGE, "--steps: expected an integer ≥ 10, got %d", spec->steps);
	if (!(spec->from > 0) || !(spec->from < spec->to) || !isfinite(spec->to))
		return gt_fail(err, GT_EUSAGE, "--from and --to: expected two learning rates with 0 < from < to, got %g and %g", spec->from,
		               spec->to);
	GT_TRY(check_groups(c, err));
	c->train.ema.decay = 0; /* switches off the moving average of the weights, which does not change training losses */
	enum gt_code code = gt_rank_session_run(&r, err);
	if (code == GT_OK)
		*out = j.result;
	else
		gt_lr_curve_free(j.result);
	return code;
}

void gt_lr_curve_free(struct gt_lr_curve *c)
{
	if (c)
		gt_arena_close(c->arena);
}
