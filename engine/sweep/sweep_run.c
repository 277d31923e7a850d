/* gt_sweep_run: opens a sweep, runs its trials, and updates struct gt_sweep. */
#include "base/fileio.h"
#include "launch/launcher.h"
#include "launch/signals.h"
#include "sweep/sweep_data.h"
#include "sweep/sweep_jobs.h"
#include "sweep/trial_results.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_US 20000  /* microseconds between two checks of the processes */
#define TICKS_TELL 10  /* number of ticks after which `tell` is called even if nothing has changed */

const char *const gt_trial_states[] = {"waiting", "running", "complete", "stopped", "interrupted", "failed"};

struct sweep {
	const struct gt_sweep_spec *spec;
	struct gt_arena *arena;
	struct gt_sweep_plan plan;
	struct gt_trial_run *run; /* [plan.ntrials] */
	struct gt_sweep_jobs jobs;
	struct gt_sweep *view;
	int lock;                 /* descriptor of <dir>/.lock */
	bool goes_on;             /* the sweep in the directory was begun by an earlier call */
	int stop;                 /* number of the signal that ends the sweep; 0: no signal */
};

/* ---- what callers see --------------------------------------------------------------------------------------------------------------- */
static enum gt_trial_state trial_state(const struct sweep *s, const struct gt_trial_run *t)
{
	if (t->code)
		return GT_TRIAL_FAILED;
	if (t->running)
		return GT_TRIAL_RUNNING;
	if (t->done == s->plan.nrungs)
		return GT_TRIAL_COMPLETE;
	if (t->started)
		return GT_TRIAL_INTERRUPTED;
	return !t->done ? GT_TRIAL_WAITING : GT_TRIAL_STOPPED;
}

static bool is_better_trial(const struct gt_sweep *v, int i, int k)
{
	double a = v->trial[i].score, b = v->trial[k].score;
	if (gt_score_better(a, b, v->falls) || gt_score_better(b, a, v->falls))
		return gt_score_better(a, b, v->falls);
	return i < k;
}

static void sort_trials(struct gt_sweep *v)
{
	for (int i = 0; i < v->ntrials; i++) {
		int k = i;
		for (; k && is_better_trial(v, i, v->order[k - 1]); k--)
			v->order[k] = v->order[k - 1];
		v->order[k] = i;
	}
}

static void update_view(struct sweep *s)
{
	struct gt_sweep *v = s->view;
	v->ended = v->failed = 0;
	for (int i = 0; i < v->ntrials; i++) {
		const struct gt_trial_run *t = &s->run[i];
		struct gt_sweep_trial *to = &v->trial[i];
		to->state = trial_state(s, t);
		to->score = t->done && !t->code ? t->score[t->done - 1] : NAN;
		to->epochs = t->done ? s->plan.rung[t->done - 1] : 0;
		to->code = t->code;
		to->error = t->error;
		v->ended += t->done + !!t->code;
		v->failed += !!t->code;
	}
	sort_trials(v);
}

static void tell_caller(struct sweep *s, int index)
{
	update_view(s);
	if (s->spec->tell)
		s->spec->tell(s->spec->user, s->view, index);
}

static enum gt_code make_view(struct sweep *s, const char *dir, struct gt_err *err)
{
	const struct gt_sweep_plan *p = &s->plan;
	struct gt_sweep *v;
	GT_NEW(v, s->arena, 1, err);
	*v = (struct gt_sweep){.dir = dir, .name = p->name, .kind = p->kind, .metric = p->metric, .falls = p->falls, .seed = p->seed,
	                       .key = p->key, .naxes = p->naxes, .ntrials = p->ntrials, .runs = gt_trial_runs_expected(p)};
	GT_NEW(v->trial, s->arena, p->ntrials, err);
	GT_NEW(v->order, s->arena, p->ntrials, err);
	for (int i = 0; i < p->ntrials; i++) {
		v->trial[i] = (struct gt_sweep_trial){.number = i + 1, .value = p->trial[i].value};
		GT_NEW_STR(v->trial[i].dir, gt_arena_printf(s->arena, "%s/%d", dir, i + 1), err);
	}
	s->view = v;
	return GT_OK;
}

/* Reads the training time of each trial from its run directory. */
static void read_times(struct sweep *s)
{
	struct gt_run_record r;
	for (int i = 0; i < s->plan.ntrials; i++)
		if (gt_run_read(s->view->trial[i].dir, s->arena, &r, NULL) == GT_OK)
			s->view->trial[i].seconds = r.seconds;
}

/* ---- open --------------------------------------------------------------------------------------------------------------------------- */
static enum gt_code choose_dir(const struct sweep *s, const char **dir, struct gt_err *err)
{
	const char *name = s->plan.name;
	*dir = s->spec->dir;
	if (*dir)
		return GT_OK;
	if (!*name || *name == '.' || strchr(name, '/'))
		return gt_fail(err, GT_EUSAGE, "the name of the config, \"%.100s\", cannot name a directory; choose a directory with -o DIR", name);
	GT_NEW_STR(*dir, gt_arena_printf(s->arena, "runs/%s-sweep", name), err);
	return GT_OK;
}

static enum gt_code lock_dir(struct sweep *s, const char *dir, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	bool held;
	long holder;
	GT_TRY(gt_path_join(path, dir, ".lock", err));
	GT_TRY(gt_lock_take(path, &s->lock, &held, &holder, err));
	return !held ? gt_sweep_clean(dir, err)
	             : gt_fail(err, GT_ECANTCREAT, "%s: another sweep, process %ld, uses this directory", dir, holder);
}

static bool has_plan(const char *dir)
{
	char path[GT_PATH_SIZE];
	return !gt_path_join(path, dir, "sweep.json", NULL) && !access(path, F_OK);
}

/* Makes the plan of the sweep. If the directory already has a plan, checks that both are the same. */
static enum gt_code open_new(struct sweep *s, const char **dir, struct gt_err *err)
{
	const char **texts;
	struct gt_sweep_plan old;
	GT_TRY(gt_sweep_plan_make(s->spec, s->arena, &s->plan, &texts, err));
	GT_TRY(choose_dir(s, dir, err));
	if (!has_plan(*dir))
		GT_TRY(gt_sweep_data_new(s->spec, &s->plan, s->arena, err));
	GT_TRY(gt_dir_make(*dir, NULL, err));
	GT_TRY(lock_dir(s, *dir, err));
	enum gt_code code = gt_sweep_plan_read(*dir, s->arena, &old, err);
	if (code == GT_ENOINPUT)
		return gt_sweep_plan_write(*dir, &s->plan, texts, err);
	s->goes_on = true;
	return code ? code : gt_sweep_plan_same(*dir, &old, &s->plan, err);
}

static enum gt_code open_old(struct sweep *s, const char **dir, struct gt_err *err)
{
	*dir = s->spec->dir;
	s->goes_on = true;
	enum gt_code code = gt_sweep_plan_read(*dir, s->arena, &s->plan, err);
	if (code == GT_ENOINPUT)
		return gt_fail(err, code, "%.300s: expected a config, or the directory of a sweep, with sweep.json", *dir);
	return code ? code : lock_dir(s, *dir, err);
}

/* Fails if torchrun or another launcher has started this process: it starts several, which would each run the sweep, and its environment
 * variables would affect the trials. */
static enum gt_code check_alone(struct gt_err *err)
{
	struct gt_world w;
	GT_TRY(gt_world_from_environment(NULL, NULL, &w, err));
	return w.world < 2 ? GT_OK : gt_fail(err, GT_EUSAGE, "expected one process, got %d ranks that another program started; run the sweep "
	                                     "without that program, and use --jobs", w.world);
}

static enum gt_code open_sweep(struct sweep *s, struct gt_err *err)
{
	const char *dir;
	GT_TRY(check_alone(err));
	GT_TRY(s->spec->config ? open_new(s, &dir, err) : open_old(s, &dir, err));
	GT_NEW(s->run, s->arena, s->plan.ntrials, err);
	GT_TRY(make_view(s, dir, err));
	GT_TRY(gt_results_read(dir, &s->plan, s->arena, s->run, err));
	if (s->goes_on)
		GT_TRY(gt_sweep_data_continued(dir, &s->plan, s->run, err));
	s->jobs = (struct gt_sweep_jobs){.dir = dir, .plan = &s->plan, .program = s->spec->program, .arena = s->arena};
	return gt_jobs_open(&s->jobs, s->spec->jobs, err);
}

/* ---- trials ------------------------------------------------------------------------------------------------------------------------- */
static enum gt_code note_failure(struct sweep *s, struct gt_trial_run *t, int code, const char *why, struct gt_err *err)
{
	t->code = code;
	GT_NEW_STR(t->error, gt_arena_strdup(s->arena, *why ? why : gt_code_text((enum gt_code)code)), err);
	return GT_OK;
}

/* Returns whether the process ended because of a signal but saved a checkpoint before: its exit status is then 128 + signal. */
static bool was_asked_to_end(const struct gt_run_process *p)
{
	int sig = p->status - 128;
	return !p->signal && (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGUSR1);
}

static enum gt_code end_failed(struct sweep *s, const struct gt_sweep_job *job, struct gt_trial_run *t, struct gt_err *err)
{
	char log[GT_PATH_SIZE], name[32], text[128];
	const char *why = text;
	snprintf(name, sizeof name, "logs/%d.log", job->trial + 1);
	GT_TRY(gt_path_join(log, s->jobs.dir, name, err));
	if (job->process.signal)
		snprintf(text, sizeof text, "was killed by signal %d (%s)", job->process.signal, strsignal(job->process.signal));
	else
		GT_TRY(gt_trial_log_error(log, s->arena, &why, err));
	return note_failure(s, t, job->process.status, why, err);
}

/* Handles the end of a trial's process: reads its score, and writes results.json. */
static enum gt_code end_trial(struct sweep *s, const struct gt_sweep_job *job, struct gt_err *err)
{
	struct gt_trial_run *t = &s->run[job->trial];
	struct gt_err why;
	t->running = false;
	if (was_asked_to_end(&job->process) || (s->stop && job->process.signal)) {
		t->started = t->postponed = true;
		return GT_OK;
	}
	if (job->process.status) {
		GT_TRY(end_failed(s, job, t, err));
	} else {
		enum gt_code code = gt_trial_end_rung(s->view->trial[job->trial].dir, &s->plan, s->arena, t, &why);
		if (code)
			GT_TRY(note_failure(s, t, (int)code, why.msg, err));
	}
	return gt_results_write(s->jobs.dir, &s->plan, s->run, err);
}

static enum gt_code start_trials(struct sweep *s, struct gt_err *err)
{
	struct gt_err why;
	int i;
	while (!s->stop && gt_jobs_free_slot(&s->jobs) && (i = gt_trial_next(s->run, &s->plan)) >= 0) {
		enum gt_code code = gt_jobs_start(&s->jobs, i, &s->run[i], &why);
		if (code)
			GT_TRY(note_failure(s, &s->run[i], (int)code, why.msg, err));
		else
			s->run[i].running = true;
		tell_caller(s, i);
	}
	return GT_OK;
}

static enum gt_code collect_trials(struct sweep *s, struct gt_err *err)
{
	struct gt_sweep_job job;
	while (gt_jobs_collect(&s->jobs, &job) >= 0) {
		GT_TRY(end_trial(s, &job, err));
		tell_caller(s, job.trial);
	}
	return GT_OK;
}

/* Sends the first signal that this process has received to all running trials, once. */
static void check_signal(struct sweep *s)
{
	int sig = gt_signals_pending();
	if (!sig || s->stop)
		return;
	s->stop = sig;
	gt_jobs_signal(&s->jobs, sig);
}

static enum gt_code run_trials(struct sweep *s, struct gt_err *err)
{
	int tick = 0;
	for (;;) {
		check_signal(s);
		GT_TRY(collect_trials(s, err));
		GT_TRY(start_trials(s, err));
		if (!gt_jobs_running(&s->jobs))
			return GT_OK;
		if (!(tick++ % TICKS_TELL))
			tell_caller(s, -1);
		usleep(TICK_US);
	}
}

/* Ends the running trials after an error of the sweep itself, such as a full disk. Each trial saves a checkpoint first. */
static void end_running(struct sweep *s)
{
	struct gt_sweep_job job;
	gt_jobs_signal(&s->jobs, SIGTERM);
	while (gt_jobs_running(&s->jobs))
		if (gt_jobs_collect(&s->jobs, &job) < 0)
			usleep(TICK_US);
		else
			s->run[job.trial].running = false;
}

/* Fails with the error of the first failed trial if no trial has completed a rung. */
static enum gt_code judge_results(const struct sweep *s, struct gt_err *err)
{
	const struct gt_trial_run *failed = NULL;
	for (int i = 0; i < s->plan.ntrials; i++) {
		if (s->run[i].done)
			return GT_OK;
		failed = failed || !s->run[i].code ? failed : &s->run[i];
	}
	return failed ? gt_fail(err, (enum gt_code)failed->code, "no trial has succeeded; %.700s", failed->error) : GT_OK;
}

static enum gt_code run_open_sweep(struct sweep *s, struct gt_err *err)
{
	gt_signals_install();
	enum gt_code code = run_trials(s, err);
	if (code)
		end_running(s);
	gt_signals_restore();
	update_view(s);
	read_times(s);
	if (code || !s->stop)
		return code ? code : judge_results(s, err);
	return gt_fail(err, (enum gt_code)(128 + s->stop), "ended by signal %d (%s)", s->stop, strsignal(s->stop));
}

enum gt_code gt_sweep_run(const struct gt_sweep_spec *spec, struct gt_arena *a, struct gt_sweep **out, struct gt_err *err)
{
	struct sweep s = {.spec = spec, .arena = a, .lock = -1};
	*out = NULL;
	enum gt_code code = open_sweep(&s, err);
	if (code == GT_OK) {
		code = run_open_sweep(&s, err);
		*out = s.view;
	}
	gt_lock_drop(s.lock);
	return code;
}
