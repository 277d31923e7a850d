/* Evaluates a split: executes its programs on all samples, and computes the scores. Checks the names of scores in the config. */
#include "session/session.h"
#include "ir/op.h"
#include "session/session_team.h"
#include <math.h>
#include <string.h>

bool gt_session_has_classes(const struct gt_session *s)
{
	return !s->loss.dense || s->loss.op->flags & GT_OPF_CLASSES;
}

int64_t gt_session_ignored_label(const struct gt_session *s)
{
	return gt_loss_ignores(&s->loss) ? s->loss.attr.ignore_index : -1;
}

/* Queues `times` batches on the device without waiting for them. all: number of batches of the evaluation that these complete; behind:
 * number of batches that follow. */
static enum gt_code eval_run(struct gt_session *s, const struct gt_prog *p, struct gt_loader *l, int64_t times, int64_t behind, int64_t all,
                             struct gt_err *err)
{
	while (times > 0) {
		int n = s->after_batch ? 1 : gt_exec_window_size(&s->exec, p, times);
		struct gt_step_args *step_args;
		GT_TRY(gt_exec_step_args(&s->exec, &step_args, err));
		for (int i = 0; i < n; i++) {
			step_args[i] = (struct gt_step_args){.seed = (uint64_t)s->conf->seed, .stride = 1, .inv_weight = 1};
			GT_TRY(gt_loader_take_parts(l, 1, &step_args[i], err));
		}
		GT_TRY(gt_exec_launch(&s->exec, p, l, n, err));
		if (s->after_batch)
			GT_TRY(s->after_batch(s->after_batch_user, p, err));
		times -= n;
		if (s->watch)
			s->watch(s->watch_user, 1 - (double)(times + behind) / (double)all);
	}
	return GT_OK;
}

/* Runs all full batches, each with the program of its length. */
static enum gt_code eval_full(struct gt_session *s, const struct gt_eval_prog *e, int64_t all, struct gt_err *err)
{
	int64_t run = e->nfull;
	for (int64_t i = 0; i < e->nfull; i += run) {
		int at = s->data.lengths.n - 1;
		if (s->data.lengths.n)
			GT_TRY(gt_loader_length(e->loader, 0, i * e->batch, e->nfull - i, &at, &run, err));
		GT_TRY(eval_run(s, at < s->data.lengths.n - 1 ? &e->shorter[at] : &e->full, e->loader, run, all - i - run, all, err));
	}
	return GT_OK;
}

int64_t gt_session_counted(const struct gt_session *s, const struct gt_metrics *m, int64_t samples)
{
	return gt_session_has_classes(s) ? m->count : samples;
}

struct gt_scores gt_session_scores(const struct gt_session *s, const struct gt_metrics *m)
{
	double n = m->count > 0 && gt_session_has_classes(s) ? (double)m->count : NAN;
	return (struct gt_scores){.loss = m->weight > 0 ? m->loss / m->weight : 0, .acc = (double)m->correct / n, .top5 = (double)m->top5 / n,
	                          .f1 = NAN, .auc = NAN, .samples = m->count};
}

enum gt_code gt_session_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err)
{
	struct gt_eval_prog *e = &s->prog.eval[split];
	struct gt_metrics m;
	int64_t all = e->nfull + (e->ntail ? 1 : 0);
	bool graphs = s->exec.graphs;
	GT_TRY(gt_session_sync_buffers(s, err));
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	GT_TRY(gt_loader_start(e->loader, 0, 0, err));
	s->exec.graphs &= !s->after_batch; /* a replayed CUDA graph does not set exec.held */
	enum gt_code code = eval_full(s, e, all, err);
	if (code == GT_OK)
		code = eval_run(s, &e->tail, e->loader, e->ntail ? 1 : 0, 0, all, err);
	s->exec.graphs = graphs;
	GT_TRY(code);
	gt_loader_stop(e->loader);
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	GT_TRY(gt_session_sum_metrics(s, &m, err));
	m.count = gt_session_counted(s, &m, s->data.view[split].n);
	*out = gt_session_scores(s, &m);
	return GT_OK;
}

/* Returns whether targets are labels: one of each sample, or several. */
static bool has_labels(const struct gt_session *s)
{
	return gt_session_has_classes(s) || s->conf->data.targets == GT_TARGETS_LABELS;
}

/* Returns whether the run measures this metric: "SPLIT/SCORE". */
static bool measures(const struct gt_session *s, const char *metric)
{
	const char *slash = strchr(metric, '/'), *score = slash ? slash + 1 : "";
	int i = 0;
	while (slash && i < GT_SPLITS && (strlen(gt_split_names[i]) != (size_t)(slash - metric) ||
	                                  strncmp(metric, gt_split_names[i], (size_t)(slash - metric))))
		i++;
	if (!slash || i == GT_SPLITS || (i == GT_TRAIN ? !s->prog.full.n && !s->prog.tail.n : !s->prog.eval[i].nfull))
		return false;
	if (!strcmp(score, "loss"))
		return true;
	if (!strcmp(score, "f1") || !strcmp(score, "auc"))
		return i != GT_TRAIN && has_labels(s);
	return gt_session_has_classes(s) && (!strcmp(score, "acc") || !strcmp(score, "top5"));
}

enum gt_code gt_session_check_best(const struct gt_session *s, struct gt_err *err)
{
	const char *m = s->conf->checkpoint.best_metric, *stop = s->conf->train.early_stop.metric;
	const struct gt_conf_schedule *sched = &s->conf->train.schedule;
	if (*stop && !measures(s, stop))
		return gt_conf_refuse(s->conf, "train.early_stop.metric", err, "expected a metric of an evaluated split, got \"%s\", of which "
		                      "there are no samples", stop);
	if (sched->type == GT_SCHED_PLATEAU && !measures(s, sched->metric))
		return gt_conf_refuse(s->conf, "train.schedule.metric", err, "expected a metric of an evaluated split, got \"%s\", of which "
		                      "there are no samples", sched->metric);
	if (!*m)
		return GT_OK;
	if (!gt_session_has_classes(s) && !strstr(m, "/loss") && !(has_labels(s) && (strstr(m, "/f1") || strstr(m, "/auc"))))
		return gt_conf_refuse(s->conf, "checkpoint.best.metric", err,
		                      "\"%s\" does not go together with targets that are numbers: it needs one class for each sample; write "
		                      "\"valid/loss\"%s", m, has_labels(s) ? ", \"valid/f1\" or \"valid/auc\"" : "");
	if (!measures(s, m))
		return gt_conf_refuse(s->conf, "checkpoint.best.metric", err,
		                      "expected SPLIT/acc, SPLIT/loss, SPLIT/top5, SPLIT/f1 or SPLIT/auc of an evaluated split (valid, test), or "
		                      "train/acc, train/loss or train/top5, got \"%s\"", m);
	return GT_OK;
}
