/* The training loop: steps, evaluations, checkpoints, signals, and the events that tell of them. */
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
	bool saves;                       /* there are checkpoints */
	bool resumes;                     /* training goes on from one */
	struct gt_ckpt_dir *dir;          /* where, on rank 0 */
	struct gt_metrics_file *metrics;  /* NULL: no file */
	struct gt_tensorboard *tensorboard; /* NULL: not asked for */
	struct gt_json json;
	struct gt_ckpt_meta at;           /* where training stands; what a checkpoint says */
	struct gt_run_position ahead;            /* where it will stand when what is queued is done */
	struct gt_scores scores[GT_SPLITS]; /* train: of the epoch that ended last; others: of the last evaluation */
	double epoch_start;               /* when this session began the epoch */
	bool due;                         /* what is queued ends where something else is to be done first */
	int64_t skips;                    /* fp16: steps skipped in a row */
	int64_t saved_step;               /* the last one committed, -1 */
	double saved_seconds;             /* gt_ckpt_meta.seconds of it */
	int64_t finite_step;              /* the last one whose parameters were found finite, -1 */
	double start, saved_at;           /* monotonic seconds */
	double window_start;              /* samples_per_s is measured over a window */
	int64_t window_samples;
	double samples_per_s;
	bool settled;                     /* samples_per_s is of more than a moment */
	int64_t session_samples;          /* trained in this session */
	int64_t session_steps;
	double pause_s;                   /* of this session, in evaluations and checkpoints */
	int64_t windows;                  /* collected */
	int64_t agree_at;                 /* the window behind which ranks tell each other what only one of them has seen */
	bool timed_out, minutes_due;      /* what they agreed on */
	int signal;
};

/* Trains from t->at to the end of the run, to a signal (GT code 128 + n), or to the time limit. */
enum gt_code gt_trainer_run(struct gt_trainer *t, struct gt_err *err);

/* Whether a run that stands there has nothing left to do. epoch: of the next step. */
bool gt_trainer_complete(const struct gt_conf *c, int64_t step, int64_t epoch);

/* The epoch that the last step done belongs to, from 1; 0: no step is done. */
int64_t gt_trainer_epoch(const struct gt_trainer *t);

/* checkpoint.best.mode as it is written: "max" or "min". */
const char *gt_best_mode_name(const struct gt_conf_checkpoint *c);

/* Sends an event: written to metrics.jsonl if `line`, then told to the observer. */
enum gt_code gt_trainer_send_event(struct gt_trainer *t, struct gt_event *ev, bool line, struct gt_err *err);


#endif
