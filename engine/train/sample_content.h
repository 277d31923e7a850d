/* The contents of the mistakes of an evaluation: the pixels, the text or the row of each sample, and its values in the unit of the targets.
 *
 *     GT_TRY(gt_sample_contents(s, GT_TEST, &mistakes, arena, &list, err));
 *
 * If a sample cannot be shown because its file has changed or is unreadable, `why` has the reason; this is not an error. */
#ifndef GT_TRAIN_SAMPLE_CONTENT_H
#define GT_TRAIN_SAMPLE_CONTENT_H

#include "score/mistakes.h"

/* Copies m->worst to *out, an array of m->n mistakes in the arena, and adds the contents of their samples. */
enum gt_code gt_sample_contents(const struct gt_session *s, enum gt_split split, const struct gt_mistakes *m, struct gt_arena *a,
                                struct gt_mistake **out, struct gt_err *err);

#endif
