#include "train/resume.h"
#include "train/metric_watch.h"
#include "train/rate_jump.h"
#include <stdio.h>
#include <string.h>

/* Discards the best result if the config now names another metric. text: a warning in this case, else "". */
static void keep_best(struct gt_trainer *t, char *text, size_t size)
{
	const struct gt_conf_checkpoint *c = &t->s->conf->checkpoint;
	struct gt_ckpt_meta *at = &t->state;
	const char *mode = gt_best_mode_name(c);
	char now[64] = "not set";
	*text = 0;
	if (!at->has_best)
		return;
	/* A checkpoint of an earlier version has no epoch. The epoch computed here is correct if the batch has never changed. */
	if (at->best_epoch < 0)
		at->best_epoch = (at->best_step + t->s->batch.steps_per_epoch - 1) / t->s->batch.steps_per_epoch;
	if (!at->best_metric || (!strcmp(at->best_metric, c->best_metric) && !strcmp(at->best_mode, mode)))
		return;
	if (*c->best_metric)
		snprintf(now, sizeof now, "%s (%s)", c->best_metric, mode);
	snprintf(text, size, "checkpoint.best was %s (%s) and is now %s, so the best checkpoint before, of step %lld, no longer counts as the "
	         "best checkpoint%s",
	         at->best_metric, at->best_mode, now, (long long)at->best_step, *c->best_metric ? "; the next evaluation starts a new "
	         	"comparison" : "");
	at->has_best = false;
}

/* Resets the state of train.early_stop or of the schedule plateau if the config now names another metric. key: the config's key of the
 * metric. metric: "" without such a setting. text: a warning after a reset, else "". */
static void keep_metric_watch(struct gt_ckpt_watch *w, const char *key, const char *metric, char *text, size_t size)
{
	const char *before = w->metric;
	*text = 0;
	if (!*metric)
		*w = (struct gt_ckpt_watch){0};
	else if (gt_watch_continue(w, metric))
		snprintf(text, size, "%s was %s and is now %s, so the earlier values no longer count; the next evaluation starts a new comparison",
		         key, before, metric);
}

/* Returns whether a schedule has a length or position in epochs. */
static bool is_by_epochs(const struct gt_conf_schedule *s)
{
	return s->unit == GT_UNIT_EPOCH && (gt_schedule_rows[s->type].counted || s->t_max > 0 || s->warmup > 0);
}

/* Returns whether the run has a schedule with unit = "epoch", or a group that is frozen for some epochs. */
static bool has_epoch_schedule(const struct gt_session *s)
{
	bool any = is_by_epochs(&s->conf->train.schedule) || s->optim.nphases > 0;
	for (int i = 0; i < s->conf->train.ngroups; i++)
		any |= is_by_epochs(&s->conf->train.group[i].schedule);
	return any;
}

/* Returns whether the learning rate of a step depends on its position in the run. */
static bool has_schedule(const struct gt_session *s)
{
	bool any = has_epoch_schedule(s) || s->conf->train.schedule.type != GT_SCHED_CONSTANT || s->conf->train.schedule.warmup > 0;
	for (int i = 0; i < s->conf->train.ngroups; i++)
		any |= s->conf->train.group[i].schedule.type != GT_SCHED_CONSTANT || s->conf->train.group[i].schedule.warmup > 0;
	return any;
}

/* Sets t->shift. If the steps of an epoch have changed, because the number of samples or data.batch has changed, a run that is counted in
 * epochs continues its schedules at the same epoch. Otherwise the learning rate would jump, and a schedule of the whole run would end too
 * early or never. text: a warning if the steps have changed, else "". */
static void keep_schedule(struct gt_trainer *t, char *text, size_t size)
{
	const struct gt_batch_partition *b = &t->s->batch;
	int64_t before = t->state.epoch_steps, now = b->steps_per_epoch;
	*text = 0;
	t->shift = t->state.schedule_step - t->state.step;
	if (before <= 0 || now <= 0 || before == now)
		return;
	int64_t place = t->state.epoch * now + t->state.cursor / b->size;
	bool by_epochs = t->s->conf->train.steps == 0;
	if (by_epochs)
		t->shift = place - t->state.step;
	if (!(by_epochs ? has_schedule(t->s) : has_epoch_schedule(t->s)))
		return;
	int n = snprintf(text, size, "an epoch has %lld optimizer steps now, and had %lld before; ", (long long)now, (long long)before);
	if (!by_epochs)
		snprintf(text + n, size - (size_t)n, "schedules with unit = \"epoch\" continue at a different epoch, because the run is counted in "
		         "steps (train.steps)");
	else
		snprintf(text + n, size - (size_t)n, "the schedules continue at the same epoch, which is now step %lld of %lld", (long long)place,
		                           (long long)b->steps);
}

void gt_resume_state(struct gt_trainer *t, const struct gt_ckpt_meta *from, struct gt_resume_notes *out)
{
	const struct gt_conf_train *c = &t->s->conf->train;
	bool plateau = c->schedule.type == GT_SCHED_PLATEAU;
	t->state = *from;
	keep_metric_watch(&t->state.plateau, "train.schedule.metric", plateau ? c->schedule.metric : "", out->plateau, sizeof out->plateau);
	keep_metric_watch(&t->state.early_stop, "train.early_stop.metric", c->early_stop.metric, out->stop, sizeof out->stop);
	t->s->optim.drops = t->state.plateau.drops;
	keep_best(t, out->best, sizeof out->best);
	keep_schedule(t, out->schedule, sizeof out->schedule);
	*out->jump = 0;
	if (!gt_trainer_complete(t->s->conf, t->state.step, t->state.epoch)) /* no step follows if only an evaluation is left */
		gt_rate_jump(t, from, out->jump, sizeof out->jump);
}
