/* Restores the state of a checkpoint in a run whose config or data may have changed: the best result, the state of early stopping and of
 * the schedule plateau, and the position in the schedules. */
#ifndef GT_TRAIN_RESUME_H
#define GT_TRAIN_RESUME_H

#include "train/trainer.h"

/* Warnings about state that is not restored as it was; "": none. */
struct gt_resume_notes {
	char best[512], stop[512], plateau[512], schedule[320], jump[640];
};

/* Sets t->state, t->shift and the plateau schedule's count of reductions from a checkpoint. t->s must be open. */
void gt_resume_state(struct gt_trainer *t, const struct gt_ckpt_meta *from, struct gt_resume_notes *out);

#endif
