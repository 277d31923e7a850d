/* Functions that the files of the training loop share. */
#ifndef GT_TRAIN_TRAINER_PARTS_H
#define GT_TRAIN_TRAINER_PARTS_H

#include "train/trainer.h"

/* Returns whether the run is complete or train.early_stop has ended it. */
bool gt_trainer_finished(const struct gt_trainer *t);

/* Returns whether count is a multiple of n. False if n is 0, the value of a key that is off. */
static inline bool gt_is_multiple(int64_t n, int64_t count)
{
	return n > 0 && count % n == 0;
}

/* Begins a new period over which the speed is measured. */
void gt_trainer_restart_speed(struct gt_trainer *t);

/* Evaluates and saves, if either is due, after all queued steps are complete. epoch, step: the position before these steps. */
enum gt_code gt_trainer_evaluate_and_save(struct gt_trainer *t, int64_t epoch, int64_t step, struct gt_err *err);

/* After a resume, makes the evaluation that a stop has interrupted (t->state.pending), and saves the checkpoint again. */
enum gt_code gt_trainer_make_pending_evaluation(struct gt_trainer *t, struct gt_err *err);

/* The pace at which ranks exchange stops during an evaluation. */
struct gt_stop_pace {
	double start;     /* time (gt_clock) at which the evaluation began */
	int64_t calls;    /* number of calls of gt_trainer_poll_stop */
	int64_t agree_at; /* value of `calls` at which ranks exchange next */
};

/* Exchange events that only one rank may have observed: a signal, the end of the time limit and, between steps only, a change of hosts and
 * checkpoint.every_minutes. All ranks do this after the same windows (groups of steps or batches that are queued at once), at most every
 * AGREE_S seconds. gt_trainer_exchange_stops: after a window of training. gt_trainer_poll_stop: during an evaluation. */
enum gt_code gt_trainer_exchange_stops(struct gt_trainer *t, struct gt_err *err);
enum gt_code gt_trainer_poll_stop(struct gt_trainer *t, struct gt_stop_pace *pace, struct gt_err *err);
/* Returns whether a signal or the time limit ends the run, as the last exchange found. */
bool gt_trainer_is_stopped(const struct gt_trainer *t);

/* Saves a checkpoint, unless the last step has one and `is_best` is false. */
enum gt_code gt_trainer_save(struct gt_trainer *t, bool is_best, struct gt_err *err);

/* Returns the epoch of the last step, from 1; 0: there was no step. */
int64_t gt_trainer_last_epoch(const struct gt_trainer *t);

/* Top-5 accuracy is always 1 if there are at most five classes; the events lack it then. */
void gt_trainer_clear_top5(const struct gt_trainer *t, struct gt_scores *s);

/* Reports a phase other than training, such as an evaluation of `split` (or NULL). */
void gt_trainer_report_phase(struct gt_trainer *t, const char *text, const char *split, double share);

/* Returns whether the trainer measures how long a rank waits for other ranks: on several ranks with a CPU. */
bool gt_trainer_times_steps(const struct gt_trainer *t);

/* Reports, as an event of kind DETAIL on rank 0, a rank that has worked much longer than the others in the steps since the last report.
 * Every rank calls it at the same position of the run. */
enum gt_code gt_trainer_report_straggler(struct gt_trainer *t, struct gt_err *err);

#endif
