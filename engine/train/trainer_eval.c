/* Evaluates the weights and saves checkpoints between the steps of a training. */
#include "base/clock.h"
#include "conf/metric_name.h"
#include "session/session_data.h"
#include "train/ema.h"
#include "train/histograms.h"
#include "train/metric_watch.h"
#include "train/mistake_images.h"
#include "train/state.h"
#include "train/trainer_parts.h"
#include <math.h>
#include <stdio.h>

#define SAVE_S 600.0 /* maximum seconds that ranks wait for the rank that writes a checkpoint */

const char *gt_best_mode_name(const struct gt_conf_checkpoint *c)
{
	return c->best_mode ? "min" : "max";
}

/* Stores the scores of a split if they are the best until now by checkpoint.best.metric. Returns whether they are. */
static bool update_best(struct gt_trainer *t, enum gt_split split, const struct gt_scores *r)
{
	const struct gt_conf_checkpoint *c = &t->s->conf->checkpoint;
	struct gt_metric m;
	if (!gt_metric_parse(c->best_metric, &m) || m.split != split)
		return false;
	double v = gt_score_get(r, m.score);
	if (!isfinite(r->loss) || !isfinite(v) || (t->state.has_best && (c->best_mode == 0 ? v <= t->state.best : v >= t->state.best)))
		return false;
	t->state.has_best = true;
	t->state.best = v;
	t->state.best_step = t->state.step;
	t->state.best_epoch = gt_trainer_last_epoch(t);
	t->state.best_metric = c->best_metric;
	t->state.best_mode = gt_best_mode_name(c);
	return true;
}

/* Keeps the highest accuracy, for the summary of a run without checkpoint.best. */
static void update_peak(struct gt_trainer *t, enum gt_split split, const struct gt_scores *r)
{
	if (split != (t->s->prog.eval[GT_TEST].nfull ? GT_TEST : GT_VALID) || !isfinite(r->acc) ||
	    (t->state.peak_epoch > 0 && r->acc <= t->state.peak_acc))
		return;
	t->state.peak_acc = r->acc;
	t->state.peak_epoch = gt_trainer_last_epoch(t);
}

/* Passes the scores of a split to train.early_stop and to the schedule plateau. All ranks have the same scores. */
static void update_watches(struct gt_trainer *t, enum gt_split split, const struct gt_scores *r)
{
	const struct gt_conf_train *c = &t->s->conf->train;
	struct gt_metric m;
	if (gt_metric_parse(c->early_stop.metric, &m) && m.split == split)
		gt_watch_early_stop(c, &t->state.early_stop, gt_score_get(r, m.score));
	if (c->schedule.type == GT_SCHED_PLATEAU && gt_metric_parse(c->schedule.metric, &m) && m.split == split)
		gt_watch_plateau(&c->schedule, &t->state.plateau, gt_score_get(r, m.score));
	t->s->optim.drops = t->state.plateau.drops;
}

struct evaluation {
	struct gt_trainer *t;
	const char *split;
	struct gt_stop_pace pace;
};

/* gt_session.watch */
static enum gt_code on_eval_progress(void *user, double share, struct gt_err *err)
{
	struct evaluation *e = user;
	gt_trainer_report_phase(e->t, "evaluating", e->split, share);
	GT_TRY(gt_trainer_poll_stop(e->t, &e->pace, err));
	return gt_trainer_is_stopped(e->t) ? (enum gt_code)GT_EVAL_GIVEN_UP : GT_OK;
}

/* Checks that all weights are finite before they are evaluated or saved. The loss alone cannot prove it, because a relu can hide a NaN. */
static enum gt_code check_finite(struct gt_trainer *t, struct gt_err *err)
{
	if (t->finite_step == t->state.step)
		return GT_OK;
	GT_TRY(gt_session_finite(t->s, t->state.step, err));
	t->finite_step = t->state.step;
	return GT_OK;
}

static enum gt_code evaluate_splits(struct gt_trainer *t, struct gt_scores scores[GT_SPLITS], struct gt_err *err)
{
	for (int i = GT_SPLITS - 1; i >= GT_VALID; i--) { /* the split of log.images last, so that no image is written before a stop */
		struct evaluation e = {t, gt_split_names[i], {.start = gt_clock()}};
		if (!t->s->prog.eval[i].nfull)
			continue;
		gt_rank_phase(t->s->exec.link, "evaluating", 0);
		gt_trainer_report_phase(t, "evaluating", e.split, 0);
		t->s->watch = on_eval_progress;
		t->s->watch_user = &e;
		enum gt_code code = gt_mistake_images_eval(t->s, (enum gt_split)i, t->tensorboard, t->state.step, &scores[i], err);
		t->s->watch = NULL;
		if (code == GT_EDIVERGED)
			gt_fail_prefix(err, "diverged at or before step %lld", (long long)t->state.step);
		GT_TRY(code);
	}
	return GT_OK;
}

/* Reports the scores and applies them to the state of the run, after all splits are evaluated: an evaluation that is given up has no
 * effect. */
static enum gt_code apply_scores(struct gt_trainer *t, const struct gt_scores scores[GT_SPLITS], bool *best, struct gt_err *err)
{
	for (int i = GT_VALID; i < GT_SPLITS; i++) {
		const struct gt_scores *r = &scores[i];
		if (!t->s->prog.eval[i].nfull)
			continue;
		t->scores[i] = *r;
		struct gt_event ev = {.kind = GT_EV_EVAL, .split = gt_split_names[i], .scores = *r};
		GT_TRY(gt_trainer_send_event(t, &ev, true, err));
		*best |= update_best(t, (enum gt_split)i, r);
		if (t->state.pending.due)
			update_watches(t, (enum gt_split)i, r);
		update_peak(t, (enum gt_split)i, r);
	}
	t->state.pending.set = false;
	return GT_OK;
}

/* Evaluates the weights, unless a stop ends the run before: then the evaluation remains pending. */
static enum gt_code evaluate_weights(struct gt_trainer *t, bool *best, struct gt_err *err)
{
	struct gt_scores scores[GT_SPLITS];
	struct gt_ema_held held;
	if (gt_trainer_is_stopped(t))
		return GT_OK;
	GT_TRY(check_finite(t, err));
	enum gt_code code = gt_ema_begin(t->s, &held, err);
	if (code == GT_OK)
		code = evaluate_splits(t, scores, err);
	bool given_up = code == GT_EVAL_GIVEN_UP;
	enum gt_code back = gt_ema_end(t->s, &held, code == GT_OK || given_up ? err : NULL);
	if (code == GT_OK || given_up)
		code = back;
	return code != GT_OK || given_up ? code : apply_scores(t, scores, best, err);
}

enum gt_code gt_trainer_save(struct gt_trainer *t, bool is_best, struct gt_err *err)
{
	char path[4400];
	struct gt_ckpt_meta meta = t->state;
	if (!t->saves || (t->saved_step == t->state.step && !is_best))
		return GT_OK;
	GT_TRY(check_finite(t, err));
	meta.seconds += gt_clock_since(t->start);
	meta.schedule_step = t->state.step + t->shift;
	gt_rank_phase(t->s->exec.link, "saving a checkpoint", SAVE_S);
	gt_trainer_report_phase(t, "saving a checkpoint", NULL, 0);
	gt_metrics_sync(t->metrics); /* the log lines about the steps of the checkpoint must be as durable as the checkpoint */
	gt_tensorboard_sync(t->tensorboard);
	double timeout = gt_team_set_timeout(t->team, SAVE_S);
	GT_TRY(gt_state_save(t->s, t->dir, &meta, path, sizeof path, err));
	gt_team_set_timeout(t->team, timeout);
	gt_rank_phase(t->s->exec.link, "", 0);
	t->saved_step = t->state.step;
	t->saved_at = gt_clock();
	t->saved_seconds = meta.seconds;
	if (!t->dir)
		return GT_OK;
	struct gt_event ev = {.kind = GT_EV_CHECKPOINT, .text = path};
	GT_TRY(gt_trainer_send_event(t, &ev, true, err));
	return gt_ckpt_retain(t->dir, t->s->conf->checkpoint.keep, err);
}

static bool is_save_due(const struct gt_trainer *t, bool boundary, bool advanced)
{
	const struct gt_conf_checkpoint *c = &t->s->conf->checkpoint;
	return (boundary && gt_is_multiple(c->every_epochs, t->state.epoch)) || (advanced && gt_is_multiple(c->every_steps, t->state.step)) ||
	       t->minutes_due;
}

/* Warns of a sample that could not be read. Rank 0 writes the warning to metrics.jsonl too. */
static void warn_of_skipped(void *user, const char *why)
{
	struct gt_trainer *t = user;
	char text[1200];
	snprintf(text, sizeof text, "skipped %s", why);
	struct gt_event ev = {.kind = GT_EV_WARN, .text = text};
	gt_trainer_send_event(t, &ev, true, NULL);
}

static void report_skipped(void *user, const char *why)
{
	char text[1200];
	snprintf(text, sizeof text, "skipped %s", why);
	struct gt_event ev = {.kind = GT_EV_DETAIL, .text = text};
	gt_trainer_send_event(user, &ev, false, NULL);
}

enum gt_code gt_trainer_evaluate_and_save(struct gt_trainer *t, int64_t epoch, int64_t step, struct gt_err *err)
{
	const struct gt_conf *c = t->s->conf;
	bool boundary = t->state.epoch != epoch, last = gt_trainer_finished(t), best = false;
	double start = gt_clock();
	bool due = (boundary && gt_is_multiple(c->train.eval_every_epochs, t->state.epoch)) ||
	           (t->state.step != step && gt_is_multiple(c->train.eval_every_steps, t->state.step));
	if (due || last) {
		/* If the evaluation is not due, it is made only because the run ends. train.early_stop and the schedule plateau ignore it, so that
		 * a resume continues as if the run had not ended. */
		t->state.pending.set = true;
		t->state.pending.due = due;
		GT_TRY(evaluate_weights(t, &best, err));
		gt_rank_phase(t->s->exec.link, "", 0);
		gt_trainer_restart_speed(t);
	}
	if (boundary && gt_is_multiple(c->log.histograms, t->state.epoch))
		GT_TRY(gt_histograms_write(t->s, t->tensorboard, t->state.step, err));
	if (boundary || last)
		GT_TRY(gt_session_skipped(t->s, warn_of_skipped, report_skipped, t, err));
	if (boundary || last)
		GT_TRY(gt_trainer_report_straggler(t, err));
	if (boundary)
		best |= update_best(t, GT_TRAIN, &t->scores[GT_TRAIN]);
	if (best || last || gt_trainer_finished(t) || is_save_due(t, boundary, t->state.step != step)) {
		GT_TRY(gt_trainer_save(t, best, err));
		gt_rank_phase(t->s->exec.link, "", 0);
		t->minutes_due = false;
		gt_trainer_restart_speed(t);
	}
	t->pause_s += gt_clock() - start;
	if (t->state.cursor == 0) /* the time between two epochs, for evaluations and checkpoints, belongs to neither epoch */
		t->epoch_start = gt_clock();
	return GT_OK;
}

enum gt_code gt_trainer_make_pending_evaluation(struct gt_trainer *t, struct gt_err *err)
{
	bool best = false;
	double start = gt_clock();
	if (t->state.pending.epoch.weight > 0)
		t->scores[GT_TRAIN] = gt_session_scores(t->s, &t->state.pending.epoch);
	/* The checkpoint of this step is saved again in any case: without the request for the evaluation or, after another stop, with the
	 * config of this session. */
	t->saved_step = -1;
	GT_TRY(evaluate_weights(t, &best, err));
	if (!t->state.pending.set) {
		GT_TRY(gt_session_skipped(t->s, warn_of_skipped, report_skipped, t, err));
		GT_TRY(gt_trainer_save(t, best, err));
	}
	gt_rank_phase(t->s->exec.link, "", t->s->device.be->host_memory ? 0 : GT_PATIENCE * t->s->conf->parallel.timeout);
	t->pause_s = t->first_pause_s = gt_clock() - start;
	t->epoch_start = gt_clock();
	return GT_OK;
}
