/* A part of the public interface of the engine (gtrain.h): a sweep trains one config with several values of its keys and compares the runs.
 *
 *     const char *sets[] = {"train.optimizer.lr=1e-4..1e-2", "data.batch=32,64", "train.epochs=5"};
 *     struct gt_sweep_spec spec = {.config = "net.cfg", .sets = sets, .nsets = 3, .jobs = 1, .seed = -1, .program = argv[0]};
 *     GT_TRY(gt_sweep_run(&spec, arena, &sweep, err));
 *
 * Each trial is an ordinary run in a directory of its own, <dir>/<number>, and a process of its own:
 *
 *     <dir>/sweep.json       the plan: settings, seed, the values of each trial. Written atomically before the first trial starts
 *     <dir>/results.json     the scores of the trials that have ended, and the errors of those that have failed
 *     <dir>/configs/3.cfg    the config of trial 3, complete
 *     <dir>/logs/3.log       what trial 3 has printed
 *     <dir>/3/               the run directory of trial 3
 *
 * The plan is a function of the config, the settings and the seed. A sweep that was ended at any moment, even by SIGKILL, is continued by
 * the same call, or by a call without a config: trials that have ended do not run again, others resume from their newest checkpoint. */
#ifndef GT_GTRAIN_SWEEP_H
#define GT_GTRAIN_SWEEP_H

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct gt_arena;

#define GT_SWEEP_TRIALS 1000 /* maximum number of trials */
#define GT_SWEEP_RANDOM 16   /* number of trials of a sweep with a range, if the caller gives none */
#define GT_SWEEP_ETA 3       /* successive halving: the best 1 of ETA trials continue, with ETA times as many epochs */

enum gt_trial_state {
	GT_TRIAL_WAITING,     /* the trial has not been started */
	GT_TRIAL_RUNNING,
	GT_TRIAL_COMPLETE,
	GT_TRIAL_STOPPED,     /* successive halving has stopped the trial after some epochs, because other trials were better */
	GT_TRIAL_INTERRUPTED, /* the trial was started and has not ended; the next gt_sweep_run continues it */
	GT_TRIAL_FAILED
};
extern const char *const gt_trial_states[]; /* "waiting", "running", ... */

struct gt_sweep_trial {
	int number;         /* number of the trial, from 1, in the order of the plan */
	const char *dir;    /* run directory */
	const char **value; /* [naxes] values of the keys, in the notation of a config */
	enum gt_trial_state state;
	double score;       /* value of the metric; NAN: not measured, or the trial failed. Successive halving: after the most epochs so far */
	int64_t epochs;     /* successive halving: number of trained epochs after which `score` was measured; 0: not measured */
	double seconds;     /* training time up to the newest checkpoint */
	int code;           /* exit code of a failed trial */
	const char *error;  /* message of the error of a failed trial; NULL: the trial has not failed */
};

struct gt_sweep {
	const char *dir, *name, *kind; /* directory; name of the config; "grid", "random" or "halving" */
	const char *metric;            /* metric of a trial's score: checkpoint.best.metric (its best value) or "valid/loss" (its last value) */
	bool falls;                    /* a lower value of the metric is better */
	int64_t seed;
	const char **key;              /* [naxes] the keys with several values */
	int naxes;
	struct gt_sweep_trial *trial;  /* [ntrials] */
	int ntrials;
	int *order;                    /* [ntrials] indices of the trials, best first; trials without a score last */
	int ended, runs;               /* number of runs that have ended, including failed runs, and of all runs of the sweep. In successive
	                                  halving, each promotion of a trial is a run; the total is exact if no trial fails */
	int failed;                    /* number of trials that have failed */
};

struct gt_sweep_spec {
	const char *config;      /* path of the config; NULL: continue the sweep in dir */
	const char *const *sets; /* [nsets] "KEY=V", "KEY=V1,V2", "KEY=LOW..HIGH" */
	int nsets;
	const char *dir;         /* directory of the sweep; NULL: runs/<name of the config>-sweep */
	int64_t trials;          /* number of trials of a sweep with a range; 0: GT_SWEEP_RANDOM */
	int jobs;                /* trials that run at the same time, at least 1; may differ from call to call */
	int64_t seed;            /* seed of the random values; -1: the config's seed */
	bool halving;
	char *program;           /* path of the gtrain program, argv[0], that runs the trials */
	/* Called when trial `index` starts or ends, and several times a second with index -1. */
	void (*tell)(void *user, const struct gt_sweep *s, int index);
	void (*warn)(void *user, const char *text); /* receives warnings about the plan, before the first trial; NULL: not called */
	void *user;
};

/* Checks the configs of all trials, and that the data of one exists, then runs those that have not ended. *out, in the arena, has the
 * results, also after a signal (code 128 + its number); it is NULL after an error before the first trial. GT_EUSAGE: settings that make no
 * sweep. GT_ECONFIG: a trial's config is wrong. GT_ENOINPUT: the data of every trial is missing. GT_ECANTCREAT: the directory has another
 * sweep, or is in use. Trials that fail do not end a sweep: the code is GT_OK if a trial has succeeded, else the code of the first
 * failure. Call it while the process has one thread. */
enum gt_code gt_sweep_run(const struct gt_sweep_spec *spec, struct gt_arena *a, struct gt_sweep **out, struct gt_err *err);

#endif
