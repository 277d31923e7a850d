#include "sweep/sweep_jobs.h"
#include "base/clock.h"
#include "base/fileio.h"
#include "launch/signals.h"
#include "sweep/trial_results.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RELEASE_S 20.0 /* maximum seconds to wait until a killed process has released the lock of its run directory */
#define GPU_DIRECTORY "/proc/driver/nvidia/gpus" /* has one directory for each GPU of the machine */

/* ---- GPUs --------------------------------------------------------------------------------------------------------------------------- */
static int count_gpus(void)
{
	DIR *d = opendir(GPU_DIRECTORY);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += *e->d_name != '.';
	if (d)
		closedir(d);
	return n;
}

/* Appends the name of a GPU to the list. */
static enum gt_code add_gpu(struct gt_sweep_jobs *jobs, int *cap, const char *name, int n, struct gt_err *err)
{
	GT_TRY(gt_arena_grow(jobs->arena, &jobs->gpu, jobs->ngpus, cap, sizeof *jobs->gpu, err));
	GT_NEW_STR(jobs->gpu[jobs->ngpus++], gt_arena_printf(jobs->arena, "%.*s", n, name), err);
	return GT_OK;
}

/* Lists the GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES, without calling CUDA. */
static enum gt_code list_gpus(struct gt_sweep_jobs *jobs, struct gt_err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int cap = 0, n = visible ? 0 : count_gpus();
	char number[16];
	for (int i = 0; i < n; i++) {
		snprintf(number, sizeof number, "%d", i);
		GT_TRY(add_gpu(jobs, &cap, number, (int)strlen(number), err));
	}
	for (const char *p = visible; p && *p;) {
		int len = (int)strcspn(p, ",");
		GT_TRY(add_gpu(jobs, &cap, p, len, err));
		p += len + (p[len] == ',');
	}
	if (jobs->ngpus < 2)
		jobs->ngpus = 0;
	return GT_OK;
}

/* Writes the names of a slot's GPUs (an equal share of all GPUs, at least one) to buf, as "0,1". Returns NULL if the slot may use all GPUs
 * of this process. */
static const char *slot_gpus(const struct gt_sweep_jobs *jobs, int slot, char *buf, size_t size)
{
	int share = jobs->ngpus / jobs->slots > 1 ? jobs->ngpus / jobs->slots : 1;
	size_t n = 0;
	for (int i = 0; jobs->ngpus && i < share && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? "," : "", jobs->gpu[(slot * share + i) % jobs->ngpus]);
	return jobs->ngpus && n < size ? buf : NULL;
}

enum gt_code gt_jobs_open(struct gt_sweep_jobs *jobs, int slots, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	jobs->slots = slots < 1 ? 1 : slots < GT_JOBS_MAX ? slots : GT_JOBS_MAX;
	for (int i = 0; i < GT_JOBS_MAX; i++)
		jobs->job[i].trial = -1;
	if (jobs->slots > 1 && !jobs->plan->one_gpu)
		GT_TRY(list_gpus(jobs, err));
	GT_TRY(gt_path_join(path, jobs->dir, "logs", err));
	return gt_dir_make(path, NULL, err);
}

/* ---- start -------------------------------------------------------------------------------------------------------------------------- */
/* Waits until no process has locked the run directory. After a sweep was killed, its trials may run a moment longer. */
static enum gt_code wait_for_lock(const char *run_dir, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	double start = gt_clock();
	struct stat st;
	long holder;
	bool held;
	int fd;
	GT_TRY(gt_path_join(path, run_dir, ".lock", err));
	while (!stat(run_dir, &st)) {
		GT_TRY(gt_lock_take(path, &fd, &held, &holder, err));
		gt_lock_drop(fd);
		if (!held)
			return GT_OK;
		if (gt_clock_since(start) > RELEASE_S || gt_signals_pending())
			return gt_fail(err, GT_ECANTCREAT, "%s: process %ld uses this directory", run_dir, holder);
		usleep(20000);
	}
	return GT_OK;
}

struct command {
	char *word[12];
	char out[GT_PATH_SIZE + 8], run_dir[GT_PATH_SIZE], config[GT_PATH_SIZE], log[GT_PATH_SIZE], epochs[48];
};

static enum gt_code make_paths(const struct gt_sweep_jobs *jobs, int number, struct command *c, struct gt_err *err)
{
	char name[32];
	snprintf(name, sizeof name, "%d", number);
	GT_TRY(gt_path_join(c->run_dir, jobs->dir, name, err));
	snprintf(name, sizeof name, "configs/%d.cfg", number);
	GT_TRY(gt_path_join(c->config, jobs->dir, name, err));
	snprintf(name, sizeof name, "logs/%d.log", number);
	return gt_path_join(c->log, jobs->dir, name, err);
}

/* Makes the command line that runs trial t up to the end of its next rung, t->done: `gtrain run` for a trial without a checkpoint,
 * otherwise `gtrain resume`. */
static void make_command(const struct gt_sweep_jobs *jobs, const struct gt_trial_run *t, struct command *c)
{
	int n = 0;
	bool resume = gt_trial_has_checkpoint(c->run_dir);
	c->word[n++] = jobs->program;
	c->word[n++] = resume ? "resume" : "run";
	c->word[n++] = "--no-progress";
	c->word[n++] = "--color=never";
	if (!resume) {
		snprintf(c->out, sizeof c->out, "--out=%s", c->run_dir);
		c->word[n++] = c->out;
	}
	if (jobs->plan->nrungs > 1) {
		snprintf(c->epochs, sizeof c->epochs, "--set=train.epochs=%" PRId64, jobs->plan->rung[t->done]);
		c->word[n++] = c->epochs;
	}
	c->word[n++] = "--";
	c->word[n++] = resume ? c->run_dir : c->config;
	c->word[n] = NULL;
}

static int find_slot(const struct gt_sweep_jobs *jobs)
{
	for (int i = 0; i < jobs->slots; i++)
		if (jobs->job[i].trial < 0)
			return i;
	return -1;
}

enum gt_code gt_jobs_start(struct gt_sweep_jobs *jobs, int index, const struct gt_trial_run *t, struct gt_err *err)
{
	struct command c;
	int slot = find_slot(jobs);
	char gpus[4096];
	struct gt_run_process_spec spec = {.argv = c.word, .log = c.log, .slot = slot, .slots = jobs->slots,
	                                   .gpus = slot_gpus(jobs, slot, gpus, sizeof gpus)};
	if (slot < 0)
		return gt_fail(err, GT_EINTERNAL, "cannot start a trial, because the sweep already runs the maximum number of trials");
	GT_TRY(make_paths(jobs, index + 1, &c, err));
	GT_TRY(wait_for_lock(c.run_dir, err));
	make_command(jobs, t, &c);
	GT_TRY(gt_run_process_start(&spec, &jobs->job[slot].process, err));
	jobs->job[slot].trial = index;
	return GT_OK;
}

/* ---- running jobs ------------------------------------------------------------------------------------------------------------------- */
void gt_jobs_signal(const struct gt_sweep_jobs *jobs, int sig)
{
	for (int i = 0; i < jobs->slots; i++)
		if (jobs->job[i].trial >= 0)
			gt_run_process_signal(&jobs->job[i].process, sig);
}

bool gt_jobs_free_slot(const struct gt_sweep_jobs *jobs)
{
	return find_slot(jobs) >= 0;
}

int gt_jobs_collect(struct gt_sweep_jobs *jobs, struct gt_sweep_job *out)
{
	for (int i = 0; i < jobs->slots; i++)
		if (jobs->job[i].trial >= 0 && gt_run_process_ended(&jobs->job[i].process)) {
			*out = jobs->job[i];
			jobs->job[i].trial = -1;
			return i;
		}
	return -1;
}

int gt_jobs_running(const struct gt_sweep_jobs *jobs)
{
	int n = 0;
	for (int i = 0; i < jobs->slots; i++)
		n += jobs->job[i].trial >= 0;
	return n;
}
