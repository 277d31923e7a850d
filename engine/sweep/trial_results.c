#include "sweep/trial_results.h"
#include "base/fileio.h"
#include "base/json_file.h"
#include "base/json_read.h"
#include "conf/metric_name.h"
#include "launch/launcher.h"
#include "store/ckpt_scan.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESULTS_BYTES ((size_t)16 << 20)
#define RESULTS_NODES 200000
#define LOG_TAIL 8192 /* number of bytes at the end of a log in which an error message is searched */

/* ---- results.json ----------------------------------------------------------------------------------------------------------------- */
static void put_results(struct gt_json *j, const struct gt_sweep_plan *p, const struct gt_trial_run *t)
{
	gt_json_object(j, NULL);
	gt_json_array(j, "trials");
	for (int i = 0; i < p->ntrials; i++) {
		gt_json_object(j, NULL);
		gt_json_numbers(j, "scores", t[i].score, t[i].done, 17);
		gt_json_int(j, "code", t[i].code);
		gt_json_string(j, "error", t[i].error);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
}

enum gt_code gt_results_write(const char *dir, const struct gt_sweep_plan *p, const struct gt_trial_run *t, struct gt_err *err)
{
	struct gt_json j = {0};
	put_results(&j, p, t);
	return gt_json_save(&j, dir, "results.json", err);
}

static bool take_result(const struct gt_json_value *o, const struct gt_sweep_plan *p, struct gt_trial_run *t)
{
	int64_t code = gt_json_count(o, "code");
	for (const struct gt_json_value *e = gt_json_first(o, "scores"); e; e = e->next) {
		if (t->done == p->nrungs)
			return false;
		t->score[t->done++] = e->type == GT_JSON_NUMBER ? e->number : NAN;
	}
	if (code > 0 && !gt_launch_is_transient((enum gt_code)code)) {
		t->code = (int)code;
		t->error = gt_json_str(o, "error");
	}
	return code >= 0 && code < 256;
}

static enum gt_code read_results(const char *dir, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_trial_run *t,
                                 struct gt_err *err)
{
	char path[GT_PATH_SIZE], *text;
	const struct gt_json_value *o;
	size_t n;
	int i = 0;
	GT_TRY(gt_path_join(path, dir, "results.json", err));
	enum gt_code code = gt_file_read(path, RESULTS_BYTES, &text, &n, err);
	if (code == GT_ENOINPUT)
		return GT_OK;
	GT_TRY(code);
	code = gt_json_parse(text, n, path, 5, RESULTS_NODES, a, &o, err);
	free(text);
	GT_TRY(code);
	for (const struct gt_json_value *e = gt_json_first(o, "trials"); e; e = e->next)
		if (i == p->ntrials || !take_result(e, p, &t[i++]))
			i = p->ntrials + 1;
	return i == p->ntrials ? GT_OK : gt_fail(err, GT_EDATA, "%s: expected the results of %d trials", path, p->ntrials);
}

/* ---- run directories -------------------------------------------------------------------------------------------------------------- */
static double run_score(const struct gt_run_record *r, const struct gt_sweep_plan *p)
{
	struct gt_metric m;
	int64_t saved;
	if (p->best)
		return r->best_metric && !strcmp(r->best_metric, p->metric) ? r->best : NAN;
	if (gt_ckpt_link_step(r->dir, "latest", &saved, NULL) == GT_OK && saved > r->step)
		return NAN; /* metrics.jsonl lacks its last lines, for example because the disk was full */
	return gt_metric_parse(p->metric, &m) ? r->last[m.split][m.score] : NAN;
}

static void push_score(struct gt_trial_run *t, double score)
{
	t->score[t->done++] = score;
	t->started = false;
}

static bool has_log(const char *run_dir)
{
	char path[GT_PATH_SIZE];
	struct stat st;
	return !gt_path_join(path, run_dir, "metrics.jsonl", NULL) && !lstat(path, &st);
}

/* Reads the results of a trial from its run directory that are missing in results.json, because the sweep was killed before it wrote
 * them. */
static enum gt_code read_run(const char *run_dir, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_trial_run *t,
                             struct gt_err *err)
{
	struct gt_run_record r;
	struct gt_err why;
	/* a failure before the run had a log may be temporary, such as a missing file, so the trial runs again */
	if (t->code && !has_log(run_dir))
		t->code = 0;
	if (t->code || t->done == p->nrungs)
		return GT_OK;
	enum gt_code code = gt_run_read(run_dir, a, &r, &why);
	if (code == GT_EFAIL)
		return gt_fail_copy(err, &why);
	if (code) /* the trial has no run directory yet, or the files in it are incomplete */
		return GT_OK;
	bool here = p->nrungs == 1 || r.epochs == p->rung[t->done];
	t->started = here;
	if (here && (!strcmp(r.state, "complete") || !strcmp(r.state, "early stop")))
		push_score(t, run_score(&r, p));
	return GT_OK;
}

enum gt_code gt_results_read(const char *dir, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_trial_run *t, struct gt_err *err)
{
	char path[GT_PATH_SIZE], name[16];
	bool newer = false;
	GT_TRY(read_results(dir, p, a, t, err));
	for (int i = 0; i < p->ntrials; i++) {
		int done = t[i].done;
		snprintf(name, sizeof name, "%d", i + 1);
		GT_TRY(gt_path_join(path, dir, name, err));
		GT_TRY(read_run(path, p, a, &t[i], err));
		newer |= t[i].done > done;
	}
	/* written now, because the promotion of a trial changes its run directory, and this result could not be read again */
	return newer ? gt_results_write(dir, p, t, err) : GT_OK;
}

enum gt_code gt_trial_end_rung(const char *run_dir, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_trial_run *t,
                               struct gt_err *err)
{
	struct gt_run_record r;
	GT_TRY(gt_run_read(run_dir, a, &r, err));
	double score = run_score(&r, p);
	if (isnan(score) && p->nrungs > 1)
		return gt_fail(err, GT_ECONFIG, "%s: the run has no value of %s, by which --halving compares trials; set checkpoint.best.metric",
		               run_dir, p->metric);
	push_score(t, score);
	return GT_OK;
}

bool gt_trial_has_checkpoint(const char *run_dir)
{
	struct gt_ckpt_entry *e = NULL;
	int n = 0;
	bool some = false;
	if (gt_ckpt_scan(run_dir, false, &e, &n, NULL))
		return false;
	for (int i = 0; i < n; i++)
		some |= e[i].kind != GT_CKPT_LEFTOVER;
	free(e);
	return some;
}

/* ---- log -------------------------------------------------------------------------------------------------------------------------- */
static const char *last_complaint(char *text)
{
	static const char prefix[] = "gtrain: ";
	const char *found = "";
	char *rest;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!strncmp(line, prefix, sizeof prefix - 1))
			found = line + sizeof prefix - 1;
	return found;
}

enum gt_code gt_trial_log_error(const char *log, struct gt_arena *a, const char **why, struct gt_err *err)
{
	char tail[LOG_TAIL + 1] = "";
	uint64_t bytes = 0;
	int fd;
	GT_TRY(gt_file_open(log, &fd, &bytes, err));
	size_t n = bytes < LOG_TAIL ? (size_t)bytes : LOG_TAIL;
	enum gt_code code = gt_file_pread(fd, log, tail, n, bytes - n, err);
	close(fd);
	GT_TRY(code);
	GT_NEW_STR(*why, gt_arena_strdup(a, last_complaint(tail)), err);
	return GT_OK;
}
