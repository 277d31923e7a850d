/* gt_eval: measures the scores of a checkpoint on a split, and makes the report by class. */
#include "base/clock.h"
#include "gtrain.h"
#include "ir/op.h"
#include "score/class_report.h"
#include "score/measured_eval.h"
#include "score/mistakes.h"
#include "score/value_tally.h"
#include "session/session_data.h"
#include "skipped.h"
#include "train/rank_session.h"
#include "train/sample_content.h"
#include "train/state.h"
#include "use/inference.h"
#include "use/sample_table.h"
#include <stdio.h>
#include <string.h>

struct job {
	const struct gt_ckpt *ckpt;
	struct gt_conf *c;
	const struct gt_run_opts *opts;
	bool report;
	const char *data;              /* a file or folder to evaluate in place of a split; NULL: a split */
	bool moved;                    /* -s selects data other than the data of the run */
	struct gt_sample_table *table; /* rank 0, with opts->predictions */
	struct gt_report_tally tally;  /* rank 0, with report, if targets are labels */
	struct gt_value_tally *values; /* rank 0, with report, if targets are numeric; opened at the first outputs */
	struct gt_mistakes mistakes;   /* rank 0, with report and opts->mistakes */
	bool numbers;                  /* rank 0: targets are numeric */
	enum gt_split split;           /* rank 0: the split that is evaluated */
	struct gt_eval_result *result; /* result of rank 0 */
};

/* Called by the session with outputs of the model, on rank 0. */
static enum gt_code add_outputs(void *user, const struct gt_output_rows *rows, struct gt_err *err)
{
	struct job *j = user;
	if (j->table)
		GT_TRY(gt_sample_table_add(j->table, rows, err));
	if (!j->report)
		return GT_OK;
	if (j->mistakes.most)
		GT_TRY(gt_mistakes_add(&j->mistakes, rows, err));
	if (rows->target && j->numbers) {
		if (!j->values)
			GT_TRY(gt_value_tally_open(rows->classes, &j->values, err));
		gt_value_tally_add(j->values, rows->z, rows->target, rows->n);
		return GT_OK;
	}
	return gt_report_tally_add(&j->tally, rows, err);
}

/* gt_session.watch: reports progress to the launcher, so that a long evaluation is not treated as a hang. */
static enum gt_code report_progress(void *user, double share, struct gt_err *err)
{
	(void)share;
	(void)err;
	gt_rank_phase(user, "evaluating", 0);
	return GT_OK;
}

/* Rejects a report by class if the loss does not predict the class with the largest output. */
static enum gt_code check_report(const struct job *j, const struct gt_session *s, struct gt_err *err)
{
	if (j->report && !s->loss.dense && gt_loss_row(s->loss.op->code)->output == GT_OUTPUT_LABELS)
		return gt_conf_refuse(j->c, "train.loss", err,
		                      "--report and the loss %s cannot be combined if each sample has one label; remove --report, or write "
		                      "data.label_separator for several labels", j->c->train.loss);
	return GT_OK;
}

static enum gt_code make_report(struct job *j, const struct gt_session *s, struct gt_eval_result *r, struct gt_err *err)
{
	if (j->values) {
		GT_TRY(gt_value_tally_report(j->values, r->arena, &r->value_report, err));
		for (int64_t i = 0; i < r->value_report->values; i++) {
			struct gt_value_score *v = &r->value_report->score[i];
			v->mae *= s->data.value_scale[i].std; /* the outputs are normalised */
			v->rmse *= s->data.value_scale[i].std;
			GT_NEW_STR(v->name, gt_arena_strdup(r->arena, s->data.value_name[i]), err);
		}
		return GT_OK;
	}
	GT_TRY(gt_report_tally_report(&j->tally, r->arena, &r->report, err));
	for (int64_t i = 0; i < r->report->classes; i++) {
		const char *name = gt_session_class_name(s, i);
		if (name)
			GT_NEW_STR(r->report->score[i].name, gt_arena_strdup(r->arena, name), err);
	}
	return GT_OK;
}

/* Returns the number of outputs of the model or, if another stage of a pipeline has the outputs, the number of classes of the data. */
static int64_t count_classes(const struct gt_session *s, enum gt_split split)
{
	for (int i = 0; i < s->prog.nplans; i++) {
		const struct gt_graph *g = s->prog.plan[i]->graph;
		const struct gt_tdesc *d = g->output < 0 ? NULL : gt_graph_desc(g, g->output);
		if (d && d->rank == 2)
			return d->dim[1];
	}
	return s->data.set[split].classes;
}

static enum gt_code add_mistakes(const struct job *j, const struct gt_session *s, struct gt_eval_result *r, struct gt_err *err)
{
	r->calibration = j->mistakes.calibration;
	gt_calibration_finish(&r->calibration);
	r->nmistakes = j->mistakes.n;
	return gt_sample_contents(s, j->split, &j->mistakes, r->arena, &r->mistake, err);
}

static void count_one(void *user, int64_t i)
{
	(void)i;
	++*(int64_t *)user;
}

/* Returns the number of image files of the split that the evaluation has skipped. */
static int64_t count_skipped(const struct gt_session *s, enum gt_split split)
{
	int64_t n = 0;
	if (s->data.skipped)
		gt_skipped_each(s->data.skipped, (int)(s->data.view[split].data - s->data.set), count_one, &n);
	return n;
}

/* Fills in the result of the evaluation from the scores, on rank 0. */
static enum gt_code make_result(struct job *j, const struct gt_session *s, const struct gt_scores *scores, double seconds,
                                struct gt_err *err)
{
	struct gt_arena *a;
	GT_TRY(gt_arena_open(&a, err));
	struct gt_eval_result *r = gt_arena_alloc(a, 1, sizeof *r);
	enum gt_code code = r ? GT_OK : gt_fail_memory(err, sizeof *r);
	if (code == GT_OK) {
		*r = (struct gt_eval_result){.scores = *scores, .step = gt_ckpt_meta(j->ckpt)->step, .classes = count_classes(s, j->split),
		                             .skipped = count_skipped(s, j->split), .arena = a};
		snprintf(r->split, sizeof r->split, "%s", j->data ? "data" : gt_split_names[j->split]);
		double start = gt_clock();
		if (j->report)
			code = make_report(j, s, r, err);
		if (code == GT_OK && j->mistakes.most)
			code = add_mistakes(j, s, r, err);
		r->seconds = seconds + gt_clock_since(start);
	}
	if (code == GT_OK)
		j->result = r;
	else
		gt_arena_close(a);
	return code;
}

static void emit_warning(const struct job *j, const char *text)
{
	struct gt_event ev = {.kind = GT_EV_WARN, .text = text};
	if (j->opts->observe)
		j->opts->observe(j->opts->user, &ev);
}

/* Prints a warning about a skipped text or row. */
static void warn_of_skipped(void *user, const char *why)
{
	char text[1200];
	snprintf(text, sizeof text, "skipped %s", why);
	emit_warning(user, text);
}

/* Samples of the data that were measured, and those among them that the run has trained on. */
struct measured {
	const struct gt_session_files *files;
	int64_t samples, trained;
};

static void leave_out_skipped(void *user, int64_t i)
{
	struct measured *m = user;
	m->samples--;
	m->trained -= gt_used_trained(&m->files->was, m->files->set[GT_TEST].mark[i].content);
}

/* Warns of measured samples that the run has trained on. */
static void warn_of_trained(const struct job *j, const struct gt_session *s)
{
	const struct gt_session_files *f = s->data.files;
	struct measured m = {f, f->set[GT_TEST].n, f->trained};
	char text[1400];
	if (!f->trained)
		return;
	if (s->data.skipped)
		gt_skipped_each(s->data.skipped, GT_TEST, leave_out_skipped, &m);
	snprintf(text, sizeof text, "%s: %lld of its %lld samples %s in the training split of the run", j->data, (long long)m.trained,
	         (long long)m.samples, m.trained == 1 ? "is" : "are");
	if (m.trained)
		emit_warning(j, text);
}

/* Prints warnings about samples that differ from the samples of the run, and about a split that is a part of the data. */
static void warn_of_data_changes(const struct job *j, const struct gt_session *s)
{
	const struct gt_session_files *f = s->data.files;
	char text[1400];
	if (*f->changed)
		emit_warning(j, f->changed);
	warn_of_trained(j, s);
	if (!f->was.listed && f->was.by_number && f->set[GT_TRAIN].mark && f->index[GT_VALID] && j->split != GT_TEST)
		emit_warning(j, "an earlier gtrain, which divided samples by their index, wrote this checkpoint: if files or rows were added or "
		                "removed since, the split \"valid\" may have samples that the run trained on");
	if (j->moved && j->split == GT_VALID && j->c->data.valid > 0) {
		snprintf(text, sizeof text, "%lld of the %lld samples are evaluated, because data.valid is %g; to evaluate all samples, name the "
		         "data after the checkpoint: gtrain eval CKPT DATA", (long long)s->data.view[GT_VALID].n, (long long)f->set[GT_TRAIN].n,
		         j->c->data.valid);
		emit_warning(j, text);
	}
}

static void detail_of_skipped(void *user, const char *why)
{
	const struct job *j = user;
	char text[1200];
	snprintf(text, sizeof text, "skipped %s", why);
	struct gt_event ev = {.kind = GT_EV_DETAIL, .text = text};
	if (j->opts->observe)
		j->opts->observe(j->opts->user, &ev);
}

/* gt_rank_session.body */
static enum gt_code evaluate_split(void *user, struct gt_session *s, struct gt_err *err)
{
	struct job *j = user;
	struct gt_scores scores;
	int split = 0;
	while (split < GT_SPLITS && !s->prog.eval[split].nfull)
		split++;
	if (split == GT_SPLITS)
		return gt_fail(err, GT_EINTERNAL, "the data has no split to evaluate");
	GT_TRY(check_report(j, s, err));
	GT_TRY(gt_state_load(s, j->ckpt, false, err));
	GT_TRY(gt_session_fold_norms(s, err));
	if (s->at.rank == 0) {
		j->split = (enum gt_split)split;
		j->tally.samples = s->data.view[split].n;
		j->tally.ignore = gt_session_ignored_label(s);
		j->numbers = s->data.nvalues > 0;
		j->mistakes = (struct gt_mistakes){.most = j->report ? j->opts->mistakes : 0, .ignore = j->tally.ignore, .numbers = j->numbers};
		if (j->mistakes.most)
			GT_TRY(gt_session_eval_order(s, j->split, &j->mistakes.order, err));
		if (j->opts->predictions)
			GT_TRY(gt_sample_table_open(s, j->split, j->opts->predictions, &j->table, err));
	}
	double start = gt_clock();
	s->watch = report_progress;
	s->watch_user = s->exec.link;
	GT_TRY(gt_measured_eval_also(s, (enum gt_split)split, j->report || j->opts->predictions ? add_outputs : NULL, j, &scores, err));
	if (s->at.rank == 0 && j->table) /* only rank 0, because ranks that are threads share the job */
		GT_TRY(gt_sample_table_finish(j->table, err));
	GT_TRY(gt_session_skipped(s, warn_of_skipped, detail_of_skipped, j, err));
	if (s->at.rank == 0)
		warn_of_data_changes(j, s);
	return s->at.rank == 0 ? make_result(j, s, &scores, gt_clock_since(start), err) : GT_OK;
}

enum gt_code gt_eval(const char *path, const char *data, const char *split, bool report, const char *const *sets, int nsets,
                     const struct gt_run_opts *o, struct gt_eval_result **out, struct gt_err *err)
{
	struct job j = {.report = report, .opts = o, .data = data};
	struct gt_ckpt *ckpt;
	char start[64];
	int id = split ? 0 : GT_TEST;
	*out = NULL;
	if (data && split)
		return gt_fail(err, GT_EUSAGE, "--split: expected no split with %.600s, because all its samples are evaluated, got \"%s\"", data,
		               split);
	for (int i = 0; i < nsets; i++)
		j.moved |= !strncmp(sets[i], "data.root=", 10) || !strncmp(sets[i], "data.train=", 11);
	while (split && id < GT_SPLITS && strcmp(split, gt_split_names[id]))
		id++;
	if (id == GT_SPLITS)
		return gt_fail(err, GT_EUSAGE, "--split: expected train, valid or test, got \"%s\"", split);
	GT_TRY(gt_inference_open(path, sets, nsets, &ckpt, &j.c, err));
	j.ckpt = ckpt;
	if (!o->nproc && !o->link)
		j.c->parallel.nproc = 1;
	snprintf(start, sizeof start, "an evaluation of step %lld", (long long)gt_ckpt_meta(ckpt)->step);
	struct gt_rank_session r = {.conf = j.c, .opts = o, .start = start, .body = evaluate_split, .user = &j};
	r.spec.ckpt = ckpt;
	r.spec.inference = true;
	r.spec.eval[id] = true;
	r.spec.or_valid = !split && !data;
	r.spec.measure = data;
	enum gt_code code = gt_rank_session_run(&r, err);
	if (code == GT_OK)
		*out = j.result;
	else
		gt_eval_free(j.result);
	gt_sample_table_close(j.table);
	gt_report_tally_free(&j.tally);
	gt_mistakes_free(&j.mistakes);
	gt_value_tally_close(j.values);
	gt_ckpt_close(ckpt);
	gt_conf_free(j.c);
	return code;
}

void gt_eval_free(struct gt_eval_result *r)
{
	if (r)
		gt_arena_close(r->arena);
}
