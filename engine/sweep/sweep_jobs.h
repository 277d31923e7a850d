/* The processes of a sweep: up to `slots` trials run at the same time, one in each slot. Each slot has an equal share of the processors and
 * of the GPUs, but at least one GPU. */
#ifndef GT_SWEEP_SWEEP_JOBS_H
#define GT_SWEEP_SWEEP_JOBS_H

#include "launch/run_process.h"
#include "sweep/trial_rungs.h"

#define GT_JOBS_MAX 64

struct gt_sweep_job {
	int trial;                /* index of the trial in this slot; -1: the slot is free */
	struct gt_run_process process;
};

struct gt_sweep_jobs {
	const char *dir;          /* directory of the sweep */
	const struct gt_sweep_plan *plan;
	char *program;            /* argv[0] of the trials */
	struct gt_arena *arena;
	int slots;
	struct gt_sweep_job job[GT_JOBS_MAX];
	const char **gpu;         /* [ngpus] names of GPUs for CUDA_VISIBLE_DEVICES; if ngpus is 0, trials may use all GPUs of this process */
	int ngpus;
};

enum gt_code gt_jobs_open(struct gt_sweep_jobs *jobs, int slots, struct gt_err *err);
/* Starts or resumes trial `index` in a free slot. GT_ECANTCREAT: another process uses the directory of the trial, or the log cannot be
 * opened. */
enum gt_code gt_jobs_start(struct gt_sweep_jobs *jobs, int index, const struct gt_trial_run *t, struct gt_err *err);
/* Sends a signal to all running trials. */
void gt_jobs_signal(const struct gt_sweep_jobs *jobs, int sig);
bool gt_jobs_free_slot(const struct gt_sweep_jobs *jobs);
/* Returns the slot of a trial that has ended, and frees the slot; -1: no trial has ended. Sets *out to the trial and its process. */
int gt_jobs_collect(struct gt_sweep_jobs *jobs, struct gt_sweep_job *out);
int gt_jobs_running(const struct gt_sweep_jobs *jobs);

#endif
