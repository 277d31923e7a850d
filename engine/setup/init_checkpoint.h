/* The last section of a config that `gtrain init` writes, which is the same for all data. */
#ifndef GT_TUNE_INIT_CHECKPOINT_H
#define GT_TUNE_INIT_CHECKPOINT_H

#include <stdio.h>

/* Writes the section checkpoint: the directory runs/NAME, and the metric that selects the best checkpoint, "SPLIT/acc" or "SPLIT/loss".
 * name: letters, digits and _ . - */
void gt_init_checkpoint(FILE *f, const char *name, const char *split, const char *score);

#endif
