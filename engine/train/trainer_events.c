/* Sends the events of a training to its logs, its tracker and its observer. */
#include "base/clock.h"
#include "session/session_data.h"
#include "train/trainer_parts.h"
#include <math.h>
#include <stdio.h>

#define TOP 5 /* outputs among which the label must be for the score top5 */

/* Warns of a log file that cannot be written, and of a tracker that has failed. Training continues, and the exit status of the run reports
 * the failure of a log file at the end. */
static void warn_of_logs(struct gt_trainer *t)
{
	const char *why[3] = {gt_metrics_error(t->metrics), gt_tensorboard_error(t->tensorboard), gt_tracker_trouble(t->tracker)};
	for (int i = 0; i < 3; i++) {
		char text[700];
		struct gt_event ev = {.kind = GT_EV_WARN, .step = t->state.step, .text = text};
		snprintf(text, sizeof text, "%s; training continues", why[i] ? why[i] : "");
		if (why[i] && t->opts->observe)
			t->opts->observe(t->opts->user, &ev);
	}
}

int64_t gt_trainer_last_epoch(const struct gt_trainer *t)
{
	return t->state.epoch + (t->state.cursor > 0);
}

void gt_trainer_clear_top5(const struct gt_trainer *t, struct gt_scores *s)
{
	int64_t classes = t->s->data.set[GT_TRAIN].classes;
	if (classes > 0 && classes <= TOP)
		s->top5 = NAN;
}

enum gt_code gt_trainer_send_event(struct gt_trainer *t, struct gt_event *ev, bool line, struct gt_err *err)
{
	const struct gt_session *s = t->s;
	ev->step = t->state.step + (ev->kind == GT_EV_SKIP);
	ev->epoch = gt_trainer_last_epoch(t);
	ev->steps = s->batch.steps - t->shift;
	ev->epochs = s->conf->train.steps > 0 ? 0 : s->conf->train.epochs;
	gt_trainer_clear_top5(t, &ev->scores);
	if (line) {
		GT_TRY(gt_metrics_write(t->metrics, &t->json, ev, err));
		gt_tensorboard_write(t->tensorboard, ev);
		gt_tracker_event(t->tracker, ev->json);
		warn_of_logs(t);
	}
	if (t->opts->observe)
		t->opts->observe(t->opts->user, ev);
	return GT_OK;
}

void gt_trainer_report_phase(struct gt_trainer *t, const char *text, const char *split, double share)
{
	struct gt_event ev = {.kind = GT_EV_PHASE, .text = text, .split = split, .share = share};
	gt_trainer_send_event(t, &ev, false, NULL);
}

enum gt_code gt_trainer_end(struct gt_trainer *t, struct gt_event *ev, struct gt_err *err)
{
	double session_s = t->start > 0 ? gt_clock_since(t->start) : 0;
	/* If the last step has a checkpoint, reports the training time in it, because a resumed session continues from that time. */
	double seconds = t->saved_step == t->state.step ? t->saved_seconds : t->state.seconds + session_s;
	struct gt_run_result r = {.seconds = seconds,
	                          .peak_acc = t->state.peak_acc,
	                          .peak_epoch = t->state.peak_epoch,
	                          .valid = t->scores[GT_VALID],
	                          .test = t->scores[GT_TEST]};
	r.train = t->state.epoch_sums.count ? gt_session_scores(t->s, &t->state.epoch_sums) : t->scores[GT_TRAIN];
	gt_trainer_clear_top5(t, &r.train), gt_trainer_clear_top5(t, &r.valid), gt_trainer_clear_top5(t, &r.test);
	if (session_s > t->pause_s)
		r.samples_per_s = (double)t->session_samples / (session_s - t->pause_s);
	if (t->state.has_best && t->s->conf->checkpoint.best_metric[0]) {
		r.best_metric = t->s->conf->checkpoint.best_metric;
		r.best = t->state.best;
		r.best_step = t->state.best_step;
		r.best_epoch = t->state.best_epoch;
	}
	ev->kind = GT_EV_END;
	ev->result = &r;
	t->started = false;
	return gt_trainer_send_event(t, ev, true, err);
}
