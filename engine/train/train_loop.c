/* The training loop. The course of one optimizer step, with the function to read next in each line:
 *
 *     gt_trainer_run()          queues steps while the device works, collects them in order, and evaluates and saves between them
 *     queue_next_window()       how many steps are queued at once, and their program:  gt_session_next_prog(), session/session_programs.c
 *                               learning rate, momentum, seed of each step:            gt_optim_rates(), session/optim.c
 *                               which samples each step reads:                         gt_loader_take_parts(), exec/loader_gather.c
 *                               executes the list of steps, or replays it as a graph:  gt_exec_launch(), exec/execute.c
 *                                 each entry is a kernel (kernels/backend.h) or a message between ranks (exec/exec_comm.c)
 *     collect_oldest_window()   waits for the device, checks that each step was applied, reports loss and accuracy: report_step()
 *     gt_trainer_exchange_stops()  ranks agree on signals and time limits: train/trainer_stop.c
 *     gt_trainer_evaluate_and_save()  evaluate_weights(): score/measured_eval.c; gt_trainer_save(): train/state.c, store/ckpt_save.c
 *
 * `gtrain plan CFG` prints the list that gt_exec_launch() executes. engine/plan/ writes it before the first step. */
#include "train/trainer_parts.h"
#include "base/clock.h"
#include "session/lr_schedule.h"
#include "session/session_data.h"
#include "train/mistake_images.h"
#include "train/metric_watch.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool gt_trainer_complete(const struct gt_conf *c, int64_t step, int64_t epoch)
{
	return c->train.steps > 0 ? step >= c->train.steps : epoch >= c->train.epochs;
}

bool gt_trainer_finished(const struct gt_trainer *t)
{
	return gt_watch_stopped(&t->s->conf->train, &t->state.early_stop) || gt_trainer_complete(t->s->conf, t->state.step, t->state.epoch);
}

/* Sets *n to the number of steps, at least 1, from t->queued_position until an evaluation, a checkpoint, another program or the end is due,
 * and *p to their program. */
static enum gt_code next_window(const struct gt_trainer *t, const struct gt_prog **p, int64_t *n, struct gt_err *err)
{
	const struct gt_conf *c = t->s->conf;
	const int64_t marks[2] = {c->train.eval_every_steps, c->checkpoint.every_steps};
	int64_t most = INT64_MAX;
	for (int i = 0; i < 2; i++)
		if (marks[i] > 0 && most > marks[i] - t->queued_position.step % marks[i])
			most = marks[i] - t->queued_position.step % marks[i];
	if (c->train.steps > 0 && most > c->train.steps - t->queued_position.step)
		most = c->train.steps - t->queued_position.step;
	return gt_session_next_prog(t->s, t->queued_position.step + t->shift, t->queued_position.epoch, t->queued_position.cursor, most, p, n,
	                            err);
}

/* Returns whether scores of an epoch's training steps select the best checkpoint. */
static bool is_best_by_training(const struct gt_conf *c)
{
	return !strncmp(c->checkpoint.best_metric, "train/", 6);
}

/* Fills in the arguments of the next steps and queues these steps on the device. */
static enum gt_code queue_next_window(struct gt_trainer *t, struct gt_err *err)
{
	struct gt_session *s = t->s;
	const struct gt_conf *c = s->conf;
	const struct gt_prog *p;
	int64_t want, epoch = t->queued_position.epoch;
	struct gt_step_args *step_args;
	GT_TRY(next_window(t, &p, &want, err));
	if (!p->n) /* the session has no program for these steps (gt_session_open) */
		return gt_conf_refuse(c, "train.steps", err,
		                      "expected the data.batch of the checkpoint, because the run ends before the short last batch of its first "
		                      "epoch, got a different value");
	int n = gt_exec_window_size(&s->exec, p, want), all = n * p->nmicro;
	GT_TRY(gt_exec_step_args(&s->exec, &step_args, err));
	for (int i = 0; i < n; i++) {
		double weight, lr[GT_MAX_LR], momentum[GT_MAX_LR];
		GT_TRY(gt_loader_weight(s->prog.loader, t->queued_position.epoch, t->queued_position.cursor + i * p->samples, p->samples, &weight,
		                        err));
		int64_t at = t->shift + t->queued_position.step++;
		gt_optim_momenta(&s->optim, at, s->batch.steps, s->batch.steps_per_epoch, momentum);
		gt_optim_rates(&s->optim, at, s->batch.steps, s->batch.steps_per_epoch, lr);
		for (int m = 0; m < p->nmicro; m++) {
			struct gt_step_args *d = &step_args[i * p->nmicro + m];
			*d = (struct gt_step_args){.seed = (uint64_t)c->seed,
			                           .stride = 1,
			                           .step = t->queued_position.step,
			                           .inv_weight = weight > 0 ? 1 / weight : 0,
			                           .left = --all};
			memcpy(d->lr, lr, sizeof lr);
			memcpy(d->momentum, momentum, sizeof momentum);
		}
		GT_TRY(gt_loader_take_parts(s->prog.loader, p->nmicro, &step_args[i * p->nmicro], err));
	}
	GT_TRY(gt_exec_launch(&s->exec, p, s->prog.loader, n, err));
	t->queued_position.cursor += n * p->samples;
	if (t->queued_position.cursor == s->batch.samples) {
		t->queued_position.cursor = 0;
		t->queued_position.epoch++;
	}
	bool boundary = t->queued_position.epoch != epoch;
	t->due = gt_trainer_complete(c, t->queued_position.step, t->queued_position.epoch) ||
	         gt_is_multiple(c->train.eval_every_steps, t->queued_position.step) ||
	         gt_is_multiple(c->checkpoint.every_steps, t->queued_position.step) || (boundary && is_best_by_training(c)) ||
	         (boundary && (gt_is_multiple(c->train.eval_every_epochs, t->queued_position.epoch) ||
	                       gt_is_multiple(c->log.histograms, t->queued_position.epoch) ||
	                       gt_is_multiple(c->checkpoint.every_epochs, t->queued_position.epoch)));
	return GT_OK;
}

/* Fails with the reason why a step was not applied; no later step was applied either. step_args: the arguments of the step. */
static enum gt_code fail_diverged(struct gt_trainer *t, const struct gt_window *w, const struct gt_step_args *step_args, struct gt_err *err)
{
	struct gt_session *s = t->s;
	const struct gt_prog *p = w->prog;
	struct gt_step_args *own;
	GT_NEW(own, s->arena, p->nmicro, err);
	memcpy(own, step_args, (size_t)p->nmicro * sizeof *own);
	GT_TRY(gt_exec_drain(&s->exec, err));
	GT_TRY(gt_loader_start(s->prog.loader, t->state.epoch, t->state.cursor, err));
	enum gt_code code = gt_exec_diagnose(&s->exec, p, s->prog.loader, own, t->state.step + 1, err);
	if (gt_session_scales_loss(s))
		gt_fail_prefix(err, "%d steps in a row overflowed in fp16, the last step with the loss scale %g", GT_SKIPS, t->state.loss_scale);
	return code;
}

#define SETTLED_S 0.25 /* minimum seconds over which a speed is measured, except at the start of a session */

void gt_trainer_restart_speed(struct gt_trainer *t)
{
	t->speed_start = gt_clock();
	t->speed_samples = 0;
}

/* Estimates the seconds until the end of the run. Assumes that evaluations and checkpoints take the same share of time as until now. */
static double estimate_time_left(const struct gt_trainer *t)
{
	double left = (double)(t->s->batch.steps - t->shift - t->state.step);
	double pause_s = (t->pause_s - t->first_pause_s) / (double)t->session_steps; /* of a step */
	return t->samples_per_s > 0 ? left * (double)t->s->batch.size / t->samples_per_s + left * pause_s : 0;
}

/* Reports a step that the device has completed. m: metrics of the batch of the step. lr: learning rates of the step (gt_step_args.lr). */
static enum gt_code report_step(struct gt_trainer *t, const struct gt_metrics *m, const double *lr, struct gt_err *err)
{
	const struct gt_session *s = t->s;
	double next[GT_MAX_LR];
	bool line = t->state.step % s->conf->log.every_steps == 0 || gt_trainer_finished(t);
	gt_optim_rates(&s->optim, t->shift + t->state.step, s->batch.steps, s->batch.steps_per_epoch, next);
	line = gt_rate_bends_take(&t->bends, t->state.step, lr[0], next[0], line);
	struct gt_scores r = gt_session_scores(s, m);
	gt_trainer_clear_top5(t, &r);
	struct gt_event ev = {.kind = GT_EV_TRAIN, .loss = r.loss, .acc = r.acc, .top5 = r.top5, .lr = lr[0]};
	ev.samples_per_s = t->samples_per_s;
	ev.loss_scale = t->state.loss_scale;
	double groups[GT_MAX_LR];
	gt_optim_group_rates(&s->optim, lr, groups);
	ev.lr_groups = groups;
	ev.ngroups = s->conf->train.ngroups;
	ev.eta_s = estimate_time_left(t);
	return gt_trainer_send_event(t, &ev, line, err);
}

static void advance_position(struct gt_trainer *t, int64_t samples)
{
	t->state.cursor += samples;
	if (t->state.cursor == t->s->batch.samples) {
		t->state.cursor = 0;
		t->state.epoch++;
	}
}

/* Adds the sums of m to *to. count: number of samples that m covers. */
static void add_sums(struct gt_metrics *to, const struct gt_metrics *m, int64_t count)
{
	to->loss += m->loss;
	to->weight += m->weight;
	to->correct += m->correct;
	to->top5 += m->top5;
	to->count += count;
}

/* Reports an epoch after its last step. GT_EDATA: all samples of the epoch were ignored, so nothing was trained. */
static enum gt_code report_epoch(struct gt_trainer *t, struct gt_err *err)
{
	double now = gt_clock();
	if (t->epoch_steps && !(t->state.epoch_sums.weight > 0))
		return gt_fail(err, GT_EDATA, "epoch %lld: none of its %lld samples could be used for training: they cannot be read (`gtrain check "
		               "CFG --data --verify` lists them), or have only ignored labels", (long long)gt_trainer_last_epoch(t),
		               (long long)t->s->batch.samples);
	t->epoch_steps = 0;
	struct gt_event ev = {.kind = GT_EV_EPOCH, .scores = gt_session_scores(t->s, &t->state.epoch_sums), .samples_per_s = t->samples_per_s};
	ev.seconds = gt_clock_since(t->epoch_start);
	t->scores[GT_TRAIN] = ev.scores;
	t->state.pending.epoch = t->state.epoch_sums;
	t->state.epoch_sums = (struct gt_metrics){0};
	t->epoch_start = now; /* the next epoch begins now unless an evaluation or a checkpoint comes first */
	return gt_trainer_send_event(t, &ev, true, err);
}

/* Waits for the steps that were queued first, and reports them. */
static enum gt_code collect_oldest_window(struct gt_trainer *t, struct gt_err *err)
{
	const struct gt_session *s = t->s;
	const struct gt_window *w;
	GT_TRY(gt_exec_collect(&t->s->exec, &w, err));
	const struct gt_prog *p = w->prog;
	double dt = gt_clock() - t->speed_start;
	t->speed_samples += w->n * p->samples;
	t->session_samples += w->n * p->samples;
	if (dt > SETTLED_S || (dt > 0 && !t->settled))
		t->samples_per_s = (double)t->speed_samples / dt;
	t->settled |= dt > SETTLED_S;
	bool scales = gt_session_scales_loss(s);
	for (int i = 0, applied = 0; i < w->n; i++) {
		const struct gt_metrics *m = &w->scalars[i].metrics;
		t->skips = w->scalars[i].skip ? t->skips + 1 : 0;
		if (t->skips && (!scales || t->skips >= GT_SKIPS))
			return fail_diverged(t, w, &w->step_args[applied * p->nmicro], err);
		advance_position(t, p->samples);
		if (scales)
			t->state.loss_scale = w->scalars[i].scale;
		if (t->skips) {
			struct gt_event ev = {.kind = GT_EV_SKIP, .acc = NAN, .loss_scale = t->state.loss_scale};
			GT_TRY(gt_trainer_send_event(t, &ev, true, err));
		} else {
			t->state.step++;
			t->session_steps++;
			t->epoch_steps++;
			add_sums(&t->state.epoch_sums, m, gt_session_counted(s, m, p->samples));
			GT_TRY(report_step(t, m, w->step_args[applied++ * p->nmicro].lr, err));
		}
		if (t->state.cursor == 0)
			GT_TRY(report_epoch(t, err));
	}
	if (scales) {
		t->state.good_steps = w->scaler->good;
		t->queued_position.step = t->state.step; /* with a loss scale, a step is queued only after the step before has ended */
	}
	if (dt > 1)
		gt_trainer_restart_speed(t);
	return GT_OK;
}

static enum gt_code report_end(struct gt_trainer *t, const char *status, struct gt_err *err)
{
	return gt_trainer_end(t, &(struct gt_event){.text = status}, err);
}

static enum gt_code end_by_signal(struct gt_trainer *t, struct gt_err *err)
{
	char status[32];
	int sig = t->signal;
	if (t->s->conf->checkpoint.on_signal)
		GT_TRY(gt_trainer_save(t, false, err));
	snprintf(status, sizeof status, "signal %d", sig);
	GT_TRY(report_end(t, status, err));
	return gt_fail(err, (enum gt_code)(128 + sig), "ended by signal %d (%s) after step %lld", sig, strsignal(sig),
	               (long long)t->state.step);
}

static enum gt_code end_stopped(struct gt_trainer *t, struct gt_err *err)
{
	if (t->signal)
		return end_by_signal(t, err);
	GT_TRY(gt_trainer_save(t, false, err));
	return report_end(t, "time limit", err);
}

enum gt_code gt_trainer_run(struct gt_trainer *t, struct gt_err *err)
{
	struct gt_exec *x = &t->s->exec;
	bool stop = false, timed = gt_trainer_times_steps(t);
	t->start = t->saved_at = t->epoch_start = gt_clock();
	t->saved_step = t->state.step > 0 ? t->state.step : -1;
	t->saved_seconds = t->state.seconds;
	t->finite_step = -1;
	t->queued_position = (struct gt_run_position){t->state.step, t->state.epoch, t->state.cursor};
	x->uses_rank0_time = t->s->at.world > 1;
	GT_TRY(gt_mistake_images_check(t->s, err));
	GT_TRY(gt_loader_start(t->s->prog.loader, t->state.epoch, t->state.cursor, err));
	if (t->state.pending.set)
		GT_TRY(gt_trainer_make_pending_evaluation(t, err));
	if (gt_trainer_is_stopped(t))
		return end_stopped(t, err);
	gt_trainer_restart_speed(t);
	while (!gt_trainer_finished(t)) {
		double begin = timed ? gt_clock() : 0;
		x->waited = timed ? &t->waited_s : NULL;
		while (!t->due && !stop && x->queued < x->depth)
			GT_TRY(queue_next_window(t, err));
		GT_TRY(gt_loader_order_next_epoch(t->s->prog.loader, err)); /* the device executes the queued steps meanwhile */
		int64_t epoch = t->state.epoch, step = t->state.step;
		GT_TRY(collect_oldest_window(t, err));
		t->windows++;
		gt_rank_report_progress(x->link, t->state.step);
		GT_TRY(gt_trainer_exchange_stops(t, err));
		x->waited = NULL; /* do not count waits of evaluations and checkpoints as waits of steps */
		t->steps_s += timed ? gt_clock() - begin : 0;
		/* After a signal, the time limit or checkpoint.every_minutes, no more steps are queued until the queued ones are complete. */
		stop = gt_trainer_is_stopped(t) || t->minutes_due || t->regroups;
		if (x->queued)
			continue;
		GT_TRY(gt_trainer_evaluate_and_save(t, epoch, step, err));
		t->due = stop = false;
		if (gt_trainer_finished(t) && !t->state.pending.set)
			break;
		if (gt_trainer_is_stopped(t))
			return end_stopped(t, err);
		if (t->regroups) { /* the run goes on in other processes, so its log gets no end */
			GT_TRY(gt_trainer_save(t, false, err));
			return gt_fail(err, (enum gt_code)GT_RANK_REGROUP, "the hosts of the run change after step %lld", (long long)t->state.step);
		}
	}
	return report_end(t, gt_trainer_complete(t->s->conf, t->state.step, t->state.epoch) ? "ok" : "early stop", err);
}
