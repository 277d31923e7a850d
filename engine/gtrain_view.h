/* A part of the public interface of the engine (gtrain.h): reads the directories of runs, during training and afterwards.
 *
 *     struct gt_run_record *runs;
 *     GT_TRY(gt_runs_find("runs", arena, &runs, &n, err));
 */
#ifndef GT_GTRAIN_VIEW_H
#define GT_GTRAIN_VIEW_H

#include "base/err.h"
#include "base/scores.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_arena;

struct gt_run_setting { /* a key of the resolved config */
	const char *path;   /* "train.optimizer.lr", "model.layers[0].out" */
	const char *value;  /* as in a config: "0.001", "\"adam\"", "[0.9, 0.999]" */
};

/* A start of a run by `gtrain run` or `gtrain resume`. */
struct gt_run_start {
	int64_t step, steps;    /* optimizer steps done at the start; steps of the whole run, 0: not known */
	bool resumed, recorded; /* resumed: the start resumed the run. recorded: `set` is known; false: an earlier version of gtrain, which did
	                           not record it, resumed the run */
	bool saved;             /* a checkpoint was committed before the next start; otherwise, all steps since this start were lost */
	bool ended;             /* the session trained to the end of its config, or until train.early_stop ended it */
	const char **set;       /* [nset] settings of a resume that changed the config of the checkpoint, for example "train.epochs=10" */
	int nset;
	const char *init, *device; /* values of the options --init and --device of the start; "": not given */
	int64_t ranks;
};

/* A run, from its metrics.jsonl, its newest checkpoint and its config.cfg. All memory belongs to the arena of the call that read it. */
struct gt_run_record {
	const char *dir;        /* run directory */
	const char *name;       /* name of the run in its config */
	/* "running": a process has locked the directory. "complete": the run has done all steps of its config. "early stop", "signal 15",
	 * "time limit": how it ended. "diverged", "error 65": the error that ended it, by its exit status. "interrupted": the run has
	 * not ended, but is not running: its process was killed. */
	const char *state;
	int64_t step, steps;    /* optimizer steps done; steps of the whole run, 0: not known */
	int64_t epoch, epochs;  /* epoch of the last step, from 1; epochs of the run, 0: train.steps is set, or not known */
	double seconds;         /* training time in seconds up to the newest checkpoint, over all resumes; 0: there is no checkpoint */
	double changed;         /* time of the last line of metrics.jsonl, in seconds since 1970 */
	uint64_t bytes;         /* size of all files of the directory */
	const char *best_metric; /* key checkpoint.best.metric; NULL: the run has no such metric, or has not measured it so far */
	double best;            /* best value of that metric */
	int64_t best_step, best_epoch; /* optimizer step and epoch (from 1) at which the best value was measured; epoch -1: not known */
	double last[3][GT_SCORE_COUNT]; /* the last scores of the splits train (of an epoch), valid and test; NAN: not measured */
	struct gt_run_setting *setting; /* [nsettings] keys of the resolved config, in the order of the config */
	int nsettings;
	int64_t damaged;        /* number of lines of metrics.jsonl that cannot be read and were left out */
	struct gt_run_start *start; /* [nstarts] the starts that have lines in metrics.jsonl */
	int nstarts;
	const char *started;    /* first line that the run printed, with parameters, device, ranks and data; "": not known */
};
extern const char *const gt_run_splits[3]; /* "train", "valid", "test": the rows of `last` */

/* Reads a run. path: a run directory, or a checkpoint in a run directory. Changes nothing. GT_ENOINPUT: there is no run. */
enum gt_code gt_run_read(const char *path, struct gt_arena *a, struct gt_run_record *out, struct gt_err *err);
/* Reads all runs in and below dir, sorted by their last change, newest first. Does not follow symbolic links, and leaves out the histories
 * of runs. warn: receives a sentence for each run that cannot be read. */
enum gt_code gt_runs_find(const char *dir, struct gt_arena *a, void (*warn)(void *user, const char *text), void *user,
                          struct gt_run_record **out, int *n, struct gt_err *err);
/* Replaces the directory of each sweep among n paths by the run directories of its trials that have been started, in their order. *out, in
 * the arena: [*nout]. GT_ENOINPUT: no trial of a sweep has been started. */
enum gt_code gt_runs_expand(const char *const *path, int n, struct gt_arena *a, const char *const **out, int *nout, struct gt_err *err);
/* Fails with GT_ENOINPUT if path is the directory of a sweep; the message names the best trial of the sweep. */
enum gt_code gt_run_refuse_sweep(const char *path, struct gt_arena *a, struct gt_err *err);
/* Returns the value of a key in the resolved config of a run; NULL: the config has no such key. */
const char *gt_run_setting_find(const struct gt_run_record *r, const char *path);

/* The checkpoints of a run. */
struct gt_run_checkpoint {
	const char *path;     /* of its directory */
	int64_t step;         /* optimizer steps done */
	uint64_t bytes;       /* size of the checkpoint's files in bytes */
	bool best, latest;    /* the link `best`, or `latest`, of the run points to this checkpoint */
};
/* Lists the checkpoints in a run directory, sorted by their steps. Does not verify the checkpoints. */
enum gt_code gt_run_checkpoints(const char *dir, struct gt_arena *a, struct gt_run_checkpoint **out, int *n, struct gt_err *err);

/* Differences between runs. Runs are in one group if their configs differ at most in the seed, name and checkpoint.dir. */
struct gt_run_comparison {
	int *group;       /* [number of runs] the group of each run, from 0, in the order of their first runs */
	int ngroups;
	const char **key; /* [nkeys] the keys whose values differ between groups, in the order of the configs */
	int nkeys;
};
enum gt_code gt_runs_compare(const struct gt_run_record *runs, int n, struct gt_arena *a, struct gt_run_comparison *out,
                             struct gt_err *err);

/* ---- curves: the values of a run over its steps ------------------------------------------------------------------------------------
 *
 *     GT_TRY(gt_run_curves_open("runs/fast", 0.9, &curves, err));
 *     GT_TRY(gt_run_curves_update(curves, err));     again later: reads what the run has written since
 *     const struct gt_run_series *s = gt_run_curves_find(curves, GT_SERIES_VALID, GT_SCORE_loss);
 */
struct gt_run_point {
	int64_t step;
	double epoch;  /* epochs done after the step, with fractions; NAN: the length of an epoch is not known yet */
	double value;  /* finite */
	double smooth; /* exponential moving average up to this value, corrected for the bias of its initial value; always finite */
	bool gap;      /* a value between the previous point and this point was not finite */
};

enum gt_series_source { /* the kind of lines of metrics.jsonl from which the values are read */
	GT_SERIES_STEP,  /* training steps, each the mean of a batch */
	GT_SERIES_TRAIN, /* epochs: the mean of the training steps of each epoch */
	GT_SERIES_VALID, /* evaluations of the splits valid and test */
	GT_SERIES_TEST,
	GT_SERIES_SOURCES
};
#define GT_SERIES_LR GT_SCORE_COUNT /* score index that selects the learning rate, only with the source GT_SERIES_STEP */

/* Values of one score of a run. A long series is reduced: of each group of neighbouring values, only the lowest and the highest value
 * remain, with their steps. */
struct gt_run_series {
	struct gt_run_point *point; /* [n] in the order of the steps */
	int n;                      /* at most GT_SERIES_POINTS */
	int64_t values, missing;    /* number of finite values in the file, and number of values that are not finite */
};
#define GT_SERIES_POINTS 2048

struct gt_run_curves {
	const char *dir;     /* run directory */
	const char *state;   /* state of the run at the last update, as in struct gt_run_record */
	bool epochs;         /* the epoch of every point is known */
	bool changed;        /* the last update has found new values */
	struct gt_run_series series[GT_SERIES_SOURCES][GT_SCORE_COUNT + 1];
	int64_t damaged;     /* number of unreadable lines of metrics.jsonl, which were left out */
};

/* Opens the curves of a run for reading. path: as for gt_run_read. smooth: weight of the past in the moving average, 0 <= smooth < 1; 0:
 * `smooth` of each point is its value. No values are read before the first update. The caller closes *out. */
enum gt_code gt_run_curves_open(const char *path, double smooth, struct gt_run_curves **out, struct gt_err *err);
/* Reads the lines of metrics.jsonl that were appended since the last update. If the run was resumed meanwhile, which replaces the file,
 * reads all lines. */
enum gt_code gt_run_curves_update(struct gt_run_curves *c, struct gt_err *err);
void gt_run_curves_close(struct gt_run_curves *c);
/* Returns the series of a source and a score; NULL: it has no values. */
const struct gt_run_series *gt_run_curves_find(const struct gt_run_curves *c, enum gt_series_source source, int score);

#endif
