/* What the mistakes of an evaluation are: the pixels, the text or the row of each sample, and its numbers in the unit of the targets.
 *
 *     GT_TRY(gt_sample_contents(s, GT_TEST, &mistakes, arena, &list, err));
 *
 * A sample that cannot be shown, because its file has changed or cannot be read, has the reason in `why`; it is not an error. */
#ifndef GT_USE_SAMPLE_CONTENT_H
#define GT_USE_SAMPLE_CONTENT_H

#include "score/mistakes.h"

/* Copies m->worst to *out, an array of m->n mistakes in the arena, and adds their samples. */
enum gt_code gt_sample_contents(const struct gt_session *s, enum gt_split split, const struct gt_mistakes *m, struct gt_arena *a,
                                struct gt_mistake **out, struct gt_err *err);

#endif
