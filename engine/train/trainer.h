/* The training loop: steps, evaluations, checkpoints, signals, and the events that report them. */
#ifndef GT_TRAIN_TRAINER_H
#define GT_TRAIN_TRAINER_H

#include "gtrain.h"
#include "session/session.h"
#include "store/ckpt.h"
#include "track/tracker.h"
#include "train/metrics.h"
#include "train/rate_bends.h"
#include "train/tensorboard.h"

struct gt_run_position {
	int64_t step, epoch, cursor; /* as in struct gt_ckpt_meta */
};

struct gt_trainer {
	struct gt_session *s;
	const struct gt_run_opts *opts;   /* options of the run; on all ranks but 0, their member observe is NULL */
	const struct gt_team *team;
	bool saves;                       /* the run writes checkpoints */
	bool resumes;                     /* the run resumes from a checkpoint */
	bool started;                     /* the event START was sent, and END was not */
	struct gt_ckpt_dir *dir;          /* directory of the checkpoints, on rank 0 */
	struct gt_metrics_file *metrics;  /* NULL: no file */
	struct gt_tensorboard *tensorboard; /* NULL: log.tensorboard = false */
	struct gt_tracker *tracker;       /* NULL: the config names no tracker, or this is not rank 0 */
	struct gt_json json;
	struct gt_ckpt_meta state;        /* state of the training, as a checkpoint contains it */
	struct gt_run_position queued_position; /* position after all steps that are queued on the device */
	struct gt_scores scores[GT_SPLITS]; /* train: scores of the last complete epoch; other splits: of the last evaluation */
	double epoch_start;               /* time at which this session began the epoch */
	struct gt_rate_bends bends;       /* the steps at which the learning rate bends have a line in metrics.jsonl */
	int64_t shift;                    /* gt_ckpt_meta.schedule_step - step; constant in a session */
	bool due;                         /* an evaluation, a checkpoint or the end of the run follows the steps that are queued */
	int64_t skips;                    /* number of consecutive steps that were skipped, up to the last one */
	int64_t saved_step;               /* step of the last committed checkpoint; -1: none */
	double saved_seconds;             /* gt_ckpt_meta.seconds of that checkpoint */
	int64_t finite_step;              /* last step after which all parameters were checked as finite; -1: none */
	double start, saved_at;           /* times (gt_clock) at which the session began, and at which it last committed a checkpoint */
	double speed_start;               /* time (gt_clock) at which the period over which samples_per_s is measured began */
	int64_t speed_samples;            /* number of samples trained since speed_start */
	double samples_per_s;             /* speed of training over all ranks; 0: not measured yet */
	bool settled;                     /* samples_per_s was measured over a long enough period */
	int64_t session_samples;          /* number of samples trained in this session */
	int64_t epoch_steps;              /* number of steps applied in this session since the last epoch was complete */
	int64_t session_steps;            /* number of steps applied in this session */
	double pause_s;                   /* seconds that this session has spent in evaluations and checkpoints */
	double first_pause_s;             /* those before its first step, in an evaluation that a stop had interrupted */
	double steps_s, waited_s;         /* seconds of steps since the last report of a straggler; seconds of waiting for ranks in them */
	double comm_s;                    /* seconds of the communication thread until that report (gt_comm_thread_busy) */
	int64_t windows;                  /* number of windows (groups of steps that are queued at once) that are complete */
	int64_t agree_at;                 /* value of `windows` at which ranks next exchange signals and time limits */
	bool timed_out, minutes_due;      /* the last exchange found that the time limit has passed; that checkpoint.every_minutes has passed */
	bool regroups;                    /* the last exchange found that the hosts of the run change (GT_RANK_REGROUP) */
	int signal;                       /* the signal that ends the run, on all ranks; 0: none */
};

/* Trains from t->state to the end of the run or to its time limit, or until a signal n, after which it returns the code 128 + n. */
enum gt_code gt_trainer_run(struct gt_trainer *t, struct gt_err *err);

/* Returns whether a run is complete after `step` optimizer steps and `epoch` epochs. */
bool gt_trainer_complete(const struct gt_conf *c, int64_t step, int64_t epoch);

/* Returns checkpoint.best.mode as a word: "max" or "min". */
const char *gt_best_mode_name(const struct gt_conf_checkpoint *c);

/* Passes an event to the observer and, if `line` is set, writes it to metrics.jsonl. */
enum gt_code gt_trainer_send_event(struct gt_trainer *t, struct gt_event *ev, bool line, struct gt_err *err);

/* Sends the event END, whose text, code and why are set, with the results of the run. */
enum gt_code gt_trainer_end(struct gt_trainer *t, struct gt_event *ev, struct gt_err *err);

#endif
