/* The training loop: steps, evaluations, checkpoints, signals, and the events that report them. */
#ifndef GT_RUN_TRAINER_H
#define GT_RUN_TRAINER_H

#include "gtrain.h"
#include "run/metrics.h"
#include "run/tensorboard.h"
#include "session/session.h"
#include "store/ckpt.h"

struct gt_run_position {
	int64_t step, epoch, cursor; /* as in struct gt_ckpt_meta */
};

struct gt_trainer {
	struct gt_session *s;
	const struct gt_run_opts *opts;   /* observe is NULL on all ranks but 0 */
	const struct gt_team *team;
	bool saves;                       /* the run writes checkpoints */
	bool resumes;                     /* the run resumes from a checkpoint */
	struct gt_ckpt_dir *dir;          /* directory of the checkpoints, on rank 0 */
	struct gt_metrics_file *metrics;  /* NULL: no file */
	struct gt_tensorboard *tensorboard; /* NULL: log.tensorboard = false */
	struct gt_json json;
	struct gt_ckpt_meta at;           /* state of the training, as a checkpoint contains it */
	struct gt_run_position ahead;            /* position after all queued steps */
	struct gt_scores scores[GT_SPLITS]; /* train: scores of the last complete epoch; others: of the last evaluation */
	double epoch_start;               /* time at which this session began the epoch */
	bool due;                         /* an evaluation, a checkpoint or the end follows the queued steps */
	int64_t skips;                    /* fp16: number of consecutive skipped steps */
	int64_t saved_step;               /* step of the last committed checkpoint; -1: none */
	double saved_seconds;             /* gt_ckpt_meta.seconds of that checkpoint */
	int64_t finite_step;              /* last step after which all parameters were checked as finite; -1: none */
	double start, saved_at;           /* of the session, of the last checkpoint: seconds of gt_clock() */
	double window_start;              /* begin of the period over which samples_per_s is measured */
	int64_t window_samples;
	double samples_per_s;
	bool settled;                     /* samples_per_s covers a complete period */
	int64_t session_samples;          /* number of samples trained in this session */
	int64_t session_steps;
	double pause_s;                   /* seconds of this session in evaluations and checkpoints */
	int64_t windows;                  /* number of collected windows */
	int64_t agree_at;                 /* the window after which ranks exchange signals and time limits */
	bool timed_out, minutes_due;      /* the result of that exchange */
	int signal;
};

/* Trains from t->at to the end of the run, to a signal (GT code 128 + n), or to the time limit. */
enum gt_code gt_trainer_run(struct gt_trainer *t, struct gt_err *err);

/* Returns whether a run at this step is complete. epoch: that of the next step. */
bool gt_trainer_complete(const struct gt_conf *c, int64_t step, int64_t epoch);

/* Returns the epoch of the last step, from 1; 0: there was no step. */
int64_t gt_trainer_epoch(const struct gt_trainer *t);

/* Returns checkpoint.best.mode as a word: "max" or "min". */
const char *gt_best_mode_name(const struct gt_conf_checkpoint *c);

/* Writes an event to metrics.jsonl if `line`, and passes it to the observer. */
enum gt_code gt_trainer_send_event(struct gt_trainer *t, struct gt_event *ev, bool line, struct gt_err *err);


#endif
