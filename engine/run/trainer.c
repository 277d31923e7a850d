#include "run/trainer.h"
#include "run/schedule.h"
#include "run/signals.h"
#include "run/state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double gt_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum gt_code gt_trainer_tell(struct gt_trainer *t, struct gt_event *ev, bool line, struct gt_err *err)
{
	const struct gt_session *s = t->s;
	ev->step = t->at.step;
	ev->steps = s->steps;
	ev->epochs = s->conf->train.epochs;
	if (line) {
		GT_TRY(gt_metrics_write(t->metrics, &t->json, ev, err));
		GT_TRY(gt_tensorboard_write(t->tensorboard, ev, err));
	}
	if (t->opts->observe)
		t->opts->observe(t->opts->user, ev);
	return GT_OK;
}

static bool finished(const struct gt_trainer *t)
{
	const struct gt_conf_train *c = &t->s->conf->train;
	return c->steps > 0 ? t->at.step >= c->steps : t->at.epoch >= c->epochs;
}

/* One optimizer step. *loss: the mean over the effective batch; *epoch: the one the step belonged to. */
static enum gt_code step(struct gt_trainer *t, double *loss, double *lr, struct gt_err *err)
{
	struct gt_session *s = t->s;
	int64_t left = s->samples - t->at.cursor, n = left < s->batch ? left : s->batch;
	const struct gt_prog *p = n == s->batch ? &s->full : &s->tail;
	double weight = gt_loader_weight(s->loader, n);
	*lr = gt_schedule_lr(&s->conf->train, t->at.step, s->steps, s->steps_per_epoch);
	for (int i = 0; i < p->nmicro; i++)
		s->dyn[i] = (struct gt_dyn){.seed = (uint64_t)s->conf->seed, .step = t->at.step + 1, .lr = *lr, .inv_weight = weight > 0 ? 1 / weight : 0};
	enum gt_code code = gt_exec_run(&s->exec, p, s->loader, s->dyn, err);
	if (code == GT_EDIVERGED) {
		GT_TRY(gt_loader_start(s->loader, t->at.epoch, t->at.cursor, err));
		return gt_exec_diagnose(&s->exec, p, s->loader, s->dyn, t->at.step + 1, err);
	}
	GT_TRY(code);
	struct gt_metrics m;
	GT_TRY(gt_exec_metrics(&s->exec, false, &m, err));
	*loss = m.weight > 0 ? m.loss / m.weight : 0;
	t->at.step++;
	t->at.cursor += n;
	t->window_samples += n;
	if (t->at.cursor == s->samples) {
		t->at.cursor = 0;
		t->at.epoch++;
	}
	return GT_OK;
}

static void restart_window(struct gt_trainer *t)
{
	t->window_start = gt_seconds();
	t->window_samples = 0;
}

static enum gt_code told_step(struct gt_trainer *t, int64_t epoch, double loss, double lr, struct gt_err *err)
{
	const struct gt_session *s = t->s;
	double dt = gt_seconds() - t->window_start;
	bool line = s->conf->log.every_steps > 0 && (t->at.step % s->conf->log.every_steps == 0 || finished(t));
	if (dt > 0)
		t->samples_per_s = (double)t->window_samples / dt;
	struct gt_event ev = {.kind = GT_EV_TRAIN, .epoch = epoch, .loss = loss, .acc = NAN, .lr = lr, .samples_per_s = t->samples_per_s};
	if (t->samples_per_s > 0)
		ev.eta_s = (double)(s->steps - t->at.step) * (double)s->batch / t->samples_per_s;
	GT_TRY(gt_trainer_tell(t, &ev, line, err));
	if (dt > 1)
		restart_window(t);
	return GT_OK;
}

/* Is `value` of metric "split/name" the best so far? Keeps it if so. */
static bool improves(struct gt_trainer *t, const char *split, const struct gt_eval_numbers *r)
{
	const struct gt_conf_checkpoint *c = &t->s->conf->checkpoint;
	const char *slash = strchr(c->best_metric, '/');
	if (!slash || strncmp(c->best_metric, split, (size_t)(slash - c->best_metric)) || strlen(split) != (size_t)(slash - c->best_metric))
		return false;
	double v = !strcmp(slash + 1, "loss") ? r->loss : !strcmp(slash + 1, "top5") ? r->top5 : r->acc;
	if (isnan(v) || (t->at.has_best && (c->best_mode == 0 ? v <= t->at.best : v >= t->at.best)))
		return false;
	t->at.has_best = true;
	t->at.best = v;
	t->at.best_step = t->at.step;
	return true;
}

static enum gt_code evaluate(struct gt_trainer *t, int64_t epoch, bool *best, struct gt_err *err)
{
	for (int i = GT_VALID; i < GT_SPLITS; i++) {
		struct gt_eval_numbers r;
		if (!t->s->eval[i].nfull)
			continue;
		GT_TRY(gt_session_eval(t->s, (enum gt_split_id)i, &r, err));
		struct gt_event ev = {.kind = GT_EV_EVAL, .epoch = epoch, .split = gt_split_names[i], .loss = r.loss, .acc = r.acc};
		GT_TRY(gt_trainer_tell(t, &ev, true, err));
		*best |= improves(t, gt_split_names[i], &r);
	}
	return GT_OK;
}

static enum gt_code save(struct gt_trainer *t, bool is_best, struct gt_err *err)
{
	char path[4400];
	struct gt_ckpt_meta meta = t->at;
	if (!t->dir || (t->saved_step == t->at.step && !is_best))
		return GT_OK;
	meta.seconds += gt_seconds() - t->start;
	GT_TRY(gt_state_save(t->s, t->dir, &meta, is_best, path, sizeof path, err));
	t->saved_step = t->at.step;
	t->saved_at = gt_seconds();
	struct gt_event ev = {.kind = GT_EV_CHECKPOINT, .epoch = t->at.epoch, .text = path};
	GT_TRY(gt_trainer_tell(t, &ev, true, err));
	return gt_ckpt_retain(t->dir, t->s->conf->checkpoint.keep, err);
}

static bool every(int64_t n, int64_t count)
{
	return n > 0 && count % n == 0;
}

static bool save_due(const struct gt_trainer *t, bool boundary)
{
	const struct gt_conf_checkpoint *c = &t->s->conf->checkpoint;
	return (boundary && every(c->every_epochs, t->at.epoch)) || every(c->every_steps, t->at.step) ||
	       (c->every_minutes > 0 && gt_seconds() - t->saved_at >= 60 * c->every_minutes);
}

static enum gt_code end(struct gt_trainer *t, const char *status, struct gt_err *err)
{
	struct gt_event ev = {.kind = GT_EV_END, .epoch = t->at.epoch, .text = status, .samples_per_s = t->samples_per_s};
	return gt_trainer_tell(t, &ev, true, err);
}

enum gt_code gt_trainer_run(struct gt_trainer *t, struct gt_err *err)
{
	const struct gt_conf *c = t->s->conf;
	t->start = t->saved_at = gt_seconds();
	t->saved_step = t->at.step > 0 ? t->at.step : -1;
	GT_TRY(gt_loader_start(t->s->loader, t->at.epoch, t->at.cursor, err));
	restart_window(t);
	while (!finished(t)) {
		int64_t epoch = t->at.epoch;
		double loss = 0, lr = 0;
		GT_TRY(step(t, &loss, &lr, err));
		GT_TRY(told_step(t, epoch, loss, lr, err));
		bool boundary = t->at.epoch != epoch, last = finished(t), best = false;
		if ((boundary && every(c->train.eval_every_epochs, t->at.epoch)) || every(c->train.eval_every_steps, t->at.step) || last) {
			GT_TRY(evaluate(t, epoch, &best, err));
			restart_window(t);
		}
		if (best || last || save_due(t, boundary)) {
			GT_TRY(save(t, best, err));
			restart_window(t);
		}
		int sig = gt_signals_pending();
		if (sig && !last) {
			char status[32];
			if (c->checkpoint.on_signal)
				GT_TRY(save(t, false, err));
			snprintf(status, sizeof status, "signal %d", sig);
			GT_TRY(end(t, status, err));
			return gt_fail(err, (enum gt_code)(128 + sig), "ended by signal %d (%s) after step %lld", sig, strsignal(sig), (long long)t->at.step);
		}
		if (t->opts->time_limit_s > 0 && gt_seconds() - t->start >= t->opts->time_limit_s && !last) {
			GT_TRY(save(t, false, err));
			return end(t, "time limit", err);
		}
	}
	return end(t, "ok", err);
}
