/* The samples that a run could not read and goes on without (data.on_error = "skip"). Threads add to the list; another reads it. */
#ifndef GT_DATASETS_SKIPPED_H
#define GT_DATASETS_SKIPPED_H

#include "base/err.h"
#include <stdint.h>

struct gt_skipped;

enum gt_code gt_skipped_open(struct gt_skipped **out, struct gt_err *err);
void gt_skipped_close(struct gt_skipped *l); /* does nothing if l is NULL */

/* Adds sample i of a dataset, which `set` (0 ... 7) identifies, with the reason. noun: "sample", "row" or "cell". kind: of rows and cells
 * of a table, the reason without line and text; entries of a dataset with the same noun and kind are reported together. NULL: the sample is
 * reported by itself, and added only once. */
enum gt_code gt_skipped_add(struct gt_skipped *l, int set, int64_t i, const char *noun, const char *kind, const char *why,
                            struct gt_err *err);

/* Removes the samples of a dataset, which is read again. */
void gt_skipped_drop(struct gt_skipped *l, int set);

/* Calls fn with each sample that was added since the last call. Returns the number of samples in the list. */
int64_t gt_skipped_new(struct gt_skipped *l, void (*fn)(void *user, int set, int64_t i, const char *why), void *user);

/* Calls fn with each sample that was added since the last call, but once for rows or cells of one kind: "600 rows, the first is mm.csv:6:
 * …". each, if it is not NULL, is called with every sample besides. Returns the number of samples in the list. */
int64_t gt_skipped_report(struct gt_skipped *l, void (*fn)(void *user, const char *text), void (*each)(void *user, const char *why),
                          void *user);

#endif
