/* The plan of a sweep: the values of each trial, and the epochs of each rung. The plan depends only on the config, the settings and the
 * seed. All of it is checked, and written to <dir>/sweep.json, before the first trial starts. */
#ifndef GT_SWEEP_SWEEP_PLAN_H
#define GT_SWEEP_SWEEP_PLAN_H

#include "base/digest.h"
#include "gtrain_sweep.h"
#include "sweep/sweep_axis.h"

struct gt_conf;

#define GT_RUNGS_MAX 8 /* maximum number of rungs; with at most GT_SWEEP_TRIALS trials, no trial reaches a later rung */

struct gt_planned_trial {
	const char **value;         /* [naxes] */
	char digest[GT_DIGEST_HEX]; /* digest of the trial's resolved config */
};

struct gt_sweep_plan {
	const char *config, *name;  /* path of the config as given, and the value of its key `name` */
	const char *kind;           /* "grid", "random" or "halving" */
	int64_t seed;
	const char *metric;         /* as in struct gt_sweep */
	bool one_gpu;               /* a trial selects a certain GPU ("cuda:1"), so the sweep must not assign GPUs to trials */
	bool best, falls;           /* best: compare the best value of the metric, else the last value; falls: smaller is better */
	const char **key, **text;   /* [naxes] the axes: key and values as the user wrote them */
	int naxes;
	const char **fixed;         /* [nfixed] settings that are the same in all trials */
	int nfixed;
	/* [nrungs] train.epochs of each rung, ascending; {0} with nrungs = 1: each trial has the length that its config sets */
	int64_t rung[GT_RUNGS_MAX];
	int nrungs;
	struct gt_planned_trial *trial; /* [ntrials] */
	int ntrials;
};

/* Makes the plan of a new sweep, and checks the configs of all trials. Passes warnings to spec->warn. *texts: [ntrials] the resolved
 * configs. */
enum gt_code gt_sweep_plan_make(const struct gt_sweep_spec *spec, struct gt_arena *a, struct gt_sweep_plan *out, const char ***texts,
                                struct gt_err *err);

/* Loads the config of trial i of a plan that gt_sweep_plan_make has made. The caller frees *out. */
enum gt_code gt_sweep_plan_config(const struct gt_sweep_spec *spec, const struct gt_sweep_plan *p, int i, struct gt_arena *a,
                                  struct gt_conf **out, struct gt_err *err);

/* Removes the temporary files of a killed process from the directory dir, which the caller has locked. */
enum gt_code gt_sweep_clean(const char *dir, struct gt_err *err);
/* Reads <dir>/sweep.json. GT_ENOINPUT: the file does not exist. */
enum gt_code gt_sweep_plan_read(const char *dir, struct gt_arena *a, struct gt_sweep_plan *out, struct gt_err *err);
/* Writes the configs of the trials and then, atomically, sweep.json. GT_ECANTCREAT: the directory already has a file or a directory with
 * the name of a trial. */
enum gt_code gt_sweep_plan_write(const char *dir, const struct gt_sweep_plan *p, const char *const *texts, struct gt_err *err);
/* Fails with GT_ECANTCREAT, and describes the first difference, unless both plans are the same. dir: the directory of `old`. */
enum gt_code gt_sweep_plan_same(const char *dir, const struct gt_sweep_plan *old, const struct gt_sweep_plan *now, struct gt_err *err);

#endif
