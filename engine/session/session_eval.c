/* Evaluates a split: executes its programs on all samples, and computes the scores. Checks the names of scores in the config. */
#include "session/session.h"
#include "base/public.h"
#include "conf/metric_name.h"
#include "ir/op.h"
#include "session/session_team.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gt_session_has_classes(const struct gt_session *s)
{
	return !s->loss.dense || gt_loss_has_classes(gt_loss_row(s->loss.op->code));
}

int64_t gt_session_ignored_label(const struct gt_session *s)
{
	return gt_loss_ignores(&s->loss) ? s->loss.attr.ignore_index : -1;
}

/* The state of one evaluation of a split. */
struct evaluation {
	struct gt_eval_prog *e;
	int64_t all;    /* number of batches */
	bool diagnoses; /* set when the batches are evaluated a second time to find the first output that is not finite */
	char why[512];  /* with `diagnoses`: text about the first output that is not finite; "": not found yet */
};

/* Evaluates the next batch a second time. If an output is not finite, sets v->why to the same text on all ranks. */
static enum gt_code diagnose_batch(struct gt_session *s, struct evaluation *v, const struct gt_prog *p, const struct gt_step_args *numbers,
                                   struct gt_err *err)
{
	int64_t first = 0; /* world - (lowest rank with an output that is not finite); 0: there is no such rank */
	GT_TRY(gt_exec_diagnose_eval(&s->exec, p, v->e->loader, numbers, v->why, sizeof v->why, err));
	if (s->at.world == 1)
		return GT_OK;
	first = *v->why ? s->at.world - s->at.rank : 0;
	GT_TRY(gt_team_max(s->team, &first, 1, err));
	return first ? gt_team_broadcast(s->team, v->why, sizeof v->why, s->at.world - (int)first, "a diagnosis", err) : GT_OK;
}

/* Queues `times` batches on the device without waiting for them. behind: number of batches of the split that follow these. */
static enum gt_code queue_eval_batches(struct gt_session *s, struct evaluation *v, const struct gt_prog *p, int64_t times, int64_t behind,
                                       struct gt_err *err)
{
	const struct gt_step_args numbers = {.seed = (uint64_t)s->conf->seed, .stride = 1, .inv_weight = 1};
	while (times > 0 && !*v->why) {
		int n = s->after_batch ? 1 : gt_exec_window_size(&s->exec, p, times);
		struct gt_step_args *step_args;
		if (v->diagnoses) {
			GT_TRY(diagnose_batch(s, v, p, &numbers, err));
			times--;
			continue;
		}
		GT_TRY(gt_exec_step_args(&s->exec, &step_args, err));
		for (int i = 0; i < n; i++) {
			step_args[i] = numbers;
			GT_TRY(gt_loader_take_parts(v->e->loader, 1, &step_args[i], err));
		}
		GT_TRY(gt_exec_launch(&s->exec, p, v->e->loader, n, err));
		if (s->after_batch)
			GT_TRY(s->after_batch(s->after_batch_user, p, err));
		times -= n;
		if (s->watch)
			GT_TRY(s->watch(s->watch_user, 1 - (double)(times + behind) / (double)v->all, err));
	}
	return GT_OK;
}

/* Runs all full batches, each with the program of its length, and the short last batch. */
static enum gt_code run_eval_batches(struct gt_session *s, struct evaluation *v, struct gt_err *err)
{
	const struct gt_eval_prog *e = v->e;
	int64_t run = e->nfull;
	GT_TRY(gt_loader_start(e->loader, 0, 0, err));
	for (int64_t i = 0; i < e->nfull && !*v->why; i += run) {
		int at = s->data.lengths.n - 1;
		if (s->data.lengths.n)
			GT_TRY(gt_loader_length(e->loader, 0, i * e->batch, e->nfull - i, &at, &run, err));
		GT_TRY(queue_eval_batches(s, v, at < s->data.lengths.n - 1 ? &e->shorter[at] : &e->full, run, v->all - i - run, err));
	}
	return queue_eval_batches(s, v, &e->tail, e->ntail ? 1 : 0, 0, err);
}

/* Evaluates the split a second time to find the first operation whose output is not finite, and fails with its name. All ranks call it. */
static enum gt_code refuse_nonfinite(struct gt_session *s, enum gt_split split, struct evaluation *v, struct gt_err *err)
{
	v->diagnoses = true;
	GT_TRY(run_eval_batches(s, v, err));
	gt_loader_stop(v->e->loader);
	return gt_fail(err, GT_EDIVERGED, "evaluation of the split %s: %s", gt_split_names[split],
	               *v->why ? v->why : "the loss is not finite, although all outputs of the model are finite");
}

/* Discards the results of the batches so far. Returns GT_EVAL_GIVEN_UP. */
static enum gt_code give_up(struct gt_session *s, struct evaluation *v, struct gt_err *err)
{
	struct gt_metrics m;
	GT_TRY(gt_exec_drain(&s->exec, err));
	gt_loader_stop(v->e->loader);
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	return (enum gt_code)GT_EVAL_GIVEN_UP;
}

int64_t gt_session_counted(const struct gt_session *s, const struct gt_metrics *m, int64_t samples)
{
	return gt_session_has_classes(s) ? m->count : samples;
}

struct gt_scores gt_session_scores(const struct gt_session *s, const struct gt_metrics *m)
{
	double n = m->count > 0 && gt_session_has_classes(s) ? (double)m->count : NAN;
	struct gt_scores r = {.loss = m->weight > 0 ? m->loss / m->weight : 0, .acc = (double)m->correct / n, .top5 = (double)m->top5 / n,
	                      .samples = m->count};
	gt_scores_clear_outputs(&r);
	return r;
}

enum gt_code gt_session_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err)
{
	struct gt_eval_prog *e = &s->prog.eval[split];
	struct evaluation v = {.e = e, .all = e->nfull + (e->ntail ? 1 : 0)};
	struct gt_metrics m;
	bool graphs = s->exec.graphs;
	GT_TRY(gt_session_sync_buffers(s, err));
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	s->exec.graphs &= !s->after_batch; /* a replayed CUDA graph does not set exec.loaded_batches */
	enum gt_code code = run_eval_batches(s, &v, err);
	s->exec.graphs = graphs;
	if (code == GT_EDIVERGED && s->at.world == 1) /* the function after_batch has found an output that is not finite */
		return refuse_nonfinite(s, split, &v, err);
	if (code == GT_EVAL_GIVEN_UP)
		return give_up(s, &v, err);
	GT_TRY(code);
	gt_loader_stop(e->loader);
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	GT_TRY(gt_session_sum_metrics(s, &m, err));
	if (!(m.weight > 0)) /* if no sample was counted, the loss would be 0 and look like the best loss */
		return gt_fail(err, GT_EDATA, "evaluation of the split %s: none of its %lld samples could be evaluated: they cannot be read "
		               "(`gtrain check CFG --data --verify` lists them), or have only ignored labels", gt_split_names[split],
		               (long long)s->data.view[split].n);
	m.count = gt_session_counted(s, &m, s->data.view[split].n);
	*out = gt_session_scores(s, &m);
	return isfinite(out->loss) ? GT_OK : refuse_nonfinite(s, split, &v, err);
}

bool gt_session_predicts_numbers(const struct gt_session *s)
{
	return s->data.nvalues && s->loss.dense && gt_loss_row(s->loss.op->code)->output == GT_OUTPUT_VALUES;
}

/* Returns the kinds of the targets, as bits (metric_name.h). */
static unsigned target_kinds(const struct gt_session *s)
{
	return (gt_session_has_classes(s) ? GT_KIND_CLASS : 0) | (s->conf->data.targets == GT_TARGETS_LABELS ? GT_KIND_LABELS : 0) |
	       (gt_session_predicts_numbers(s) ? GT_KIND_NUMBERS : 0);
}

/* Returns whether the run computes scores for a split. */
static bool is_split_measured(const struct gt_session *s, enum gt_split split)
{
	return split == GT_TRAIN ? s->prog.full.n || s->prog.tail.n : s->prog.eval[split].nfull > 0;
}

/* Writes the metrics of the split that these kinds of targets allow: "valid/loss", "valid/acc" or "valid/top5". */
static const char *list_metrics(const struct gt_metric *m, unsigned kinds, char *buf, size_t size)
{
	const char *name[GT_SCORE_COUNT];
	int n = 0, at = 0;
	for (const struct gt_score_row *r = gt_score_rows; r < gt_score_rows + GT_SCORE_COUNT; r++)
		if ((r->kinds == GT_KIND_ANY || r->kinds & kinds) && (r->of_steps || m->split != GT_TRAIN))
			name[n++] = r->word;
	for (int i = 0; i < n && at < (int)size; i++)
		at += snprintf(buf + at, size - (size_t)at, "%s\"%s/%s\"", i == 0 ? "" : i == n - 1 ? " or " : ", ", gt_split_names[m->split],
		               name[i]);
	return buf;
}

/* Rejects a metric that the run never measures. key: the config key that names the metric. */
static enum gt_code check_metric(const struct gt_session *s, const char *key, const char *metric, struct gt_err *err)
{
	static const char *const what[] = {[GT_KIND_CLASS] = "one class for each sample",
	                                   [GT_KIND_CLASS | GT_KIND_LABELS] = "classes or labels",
	                                   [GT_KIND_NUMBERS] = "columns of numbers"};
	struct gt_metric m;
	unsigned kinds = target_kinds(s);
	char list[256];
	if (!gt_metric_parse(metric, &m))
		return GT_OK;
	if (!is_split_measured(s, m.split))
		return gt_conf_refuse(s->conf, key, err, "expected a metric of an evaluated split, got \"%s\", but the split \"%s\" has no "
		                      "samples%s", metric, gt_split_names[m.split],
		                      m.split == GT_VALID ? "; raise data.valid, or name another split" : "");
	unsigned needs = gt_score_rows[m.score].kinds;
	if (needs != GT_KIND_ANY && !(needs & kinds))
		return gt_conf_refuse(s->conf, key, err, "\"%s\" cannot be combined with train.loss = \"%s\" on this data, whose targets are %s: "
		                      "the metric needs %s; write %s", metric, s->conf->train.loss,
		                      kinds & GT_KIND_LABELS  ? "labels, possibly several per sample"
		                      : kinds & GT_KIND_CLASS ? "classes"
		                                              : "numbers",
		                      what[needs], list_metrics(&m, kinds, list, sizeof list));
	return GT_OK;
}

enum gt_code gt_session_check_metrics(const struct gt_session *s, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	GT_TRY(check_metric(s, "train.early_stop.metric", c->train.early_stop.metric, err));
	if (c->train.schedule.type == GT_SCHED_PLATEAU)
		GT_TRY(check_metric(s, "train.schedule.metric", c->train.schedule.metric, err));
	return check_metric(s, "checkpoint.best.metric", c->checkpoint.best_metric, err);
}

enum gt_code gt_session_eval_order(const struct gt_session *s, enum gt_split split, int64_t **out, struct gt_err *err)
{
	const struct gt_view *v = &s->data.view[split];
	const int64_t *order = v->index;
	if (s->prog.eval[split].loader)
		GT_TRY(gt_loader_order(s->prog.eval[split].loader, 0, &order, err));
	GT_CALLOC(*out, v->n, err);
	for (int64_t i = 0; i < v->n; i++)
		(*out)[i] = order ? order[i] : i;
	return GT_OK;
}
