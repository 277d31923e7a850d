/* What a resumed run keeps of its checkpoint where the config or the data has changed: its best result, what early stopping and the
 * schedule plateau have noted, and the place in the schedules. */
#ifndef GT_TRAIN_RESUME_H
#define GT_TRAIN_RESUME_H

#include "train/trainer.h"

/* Warnings of what is not kept as it was; "": there is none. */
struct gt_resume_notes {
	char best[512], stop[512], plateau[512], schedule[320];
};

/* Sets t->state, t->shift and the plateau schedule's count of reductions from a checkpoint. t->s must be open. */
void gt_resume_state(struct gt_trainer *t, const struct gt_ckpt_meta *from, struct gt_resume_notes *out);

#endif
