/* Classes of which a run has too few samples to learn them or to measure them. */
#ifndef GT_TRAIN_RARE_CLASSES_H
#define GT_TRAIN_RARE_CLASSES_H

#include "session/session.h"

/* Writes a warning that names these classes with their numbers of samples in each split; "": there are none. A class is named if it has
 * fewer than 10 training samples and less than a third of the mean class, or if it has training samples, but none in another split of the
 * run. Classes without any sample are not named. Writes "" for synthetic data, with data.limit, and if the targets are not classes. A
 * session that only plans does not know the labels of arrays, and of texts and rows that are not training samples; it leaves out these
 * splits. */
enum gt_code gt_rare_classes(const struct gt_session *s, char *buf, size_t size, struct gt_err *err);

#endif
