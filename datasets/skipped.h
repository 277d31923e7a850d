/* The list of unreadable samples that a run leaves out (data.on_error = "skip"). Threads may add samples while another thread reads. */
#ifndef GT_DATASETS_SKIPPED_H
#define GT_DATASETS_SKIPPED_H

#include "base/err.h"
#include <stdint.h>

struct gt_skipped;

enum gt_code gt_skipped_open(struct gt_skipped **out, struct gt_err *err);
void gt_skipped_close(struct gt_skipped *l); /* does nothing if l is NULL */

/* Adds sample i of a dataset, which `set` (0 ... 7) identifies, with the reason. noun: "sample", "row" or "cell". kind: for table rows and
 * cells, the reason without line and text; entries of a dataset with the same noun and kind are reported together. kind NULL: the sample is
 * reported individually, and added only once. */
enum gt_code gt_skipped_add(struct gt_skipped *l, int set, int64_t i, const char *noun, const char *kind, const char *why,
                            struct gt_err *err);

/* Removes the samples of a dataset before the dataset is read again. */
void gt_skipped_drop(struct gt_skipped *l, int set);

/* Calls fn with each sample of a dataset in the list, whether or not it has been reported. */
void gt_skipped_each(struct gt_skipped *l, int set, void (*fn)(void *user, int64_t i), void *user);

/* Calls fn with each sample that was added since the last call. Returns the number of samples in the list. */
int64_t gt_skipped_new(struct gt_skipped *l, void (*fn)(void *user, int set, int64_t i, const char *why), void *user);

/* Calls fn for each sample that was added since the last call, but only once for all rows or cells of the same kind: "600 rows, the first
 * is mm.csv:6: …". If `each` is not NULL, it is also called for every sample. Returns the number of samples in the list. */
int64_t gt_skipped_report(struct gt_skipped *l, void (*fn)(void *user, const char *text), void (*each)(void *user, const char *why),
                          void *user);

#endif
