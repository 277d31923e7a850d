/* Detects that the learning rate jumps when a run resumes, because its length has changed: a schedule that lasts until the end of the run
 * (cosine, onecycle and others with t_max = 0) is stretched over the new length, so that a step in it has another learning rate. */
#ifndef GT_TRAIN_RATE_JUMP_H
#define GT_TRAIN_RATE_JUMP_H

#include "train/trainer.h"

/* Compares the learning rate of the next step with its rate in the config of the checkpoint `from`. t->state and t->shift must be set. text
 * (size bytes): a warning about the first schedule whose rate jumps; "": no rate jumps because of the length of the run. */
void gt_rate_jump(const struct gt_trainer *t, const struct gt_ckpt_meta *from, char *text, size_t size);

#endif
