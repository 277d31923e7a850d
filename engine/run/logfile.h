/* A file that a run appends whole records to: metrics.jsonl, TensorBoard's events. Mode 0600, created anew, never opened through a link.
 *
 *   GT_TRY(gt_logfile_create(path, path, &f, err));
 *   gt_logfile_write(f, line, n);            a record is in the file whole or not at all
 *   gt_logfile_sync(f);                      before a checkpoint that it tells of is committed
 *   if ((why = gt_logfile_error(f)))       once, after the first failure
 *   GT_TRY(gt_logfile_close(f, err));        GT_EIO if a record was lost
 *
 * A log must not cost the training that it tells of: a failure is kept, later records are tried again, and close tells of it. */
#ifndef GT_RUN_LOGFILE_H
#define GT_RUN_LOGFILE_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct gt_logfile;

/* Makes path, which must not exist. name: the path that messages say, of a file that is renamed later. GT_ECANTCREAT. */
enum gt_code gt_logfile_create(const char *path, const char *name, struct gt_logfile **out, struct gt_err *err);

/* NULL is fine for all of these. Interrupted and short writes go on; what a failed write left of its record is cut off again. */
void gt_logfile_write(struct gt_logfile *f, const void *data, size_t n);
void gt_logfile_sync(struct gt_logfile *f);
const char *gt_logfile_error(struct gt_logfile *f);
enum gt_code gt_logfile_close(struct gt_logfile *f, struct gt_err *err);

#endif
