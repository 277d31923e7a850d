/* A log file of whole records: metrics.jsonl and the events of TensorBoard. It is created anew, never through a symbolic
 * link.
 *
 *   GT_TRY(gt_logfile_create(path, path, &f, err));
 *   gt_logfile_write(f, line, n);            writes the record completely or not at all
 *   gt_logfile_sync(f);                      before the checkpoint that it mentions is committed
 *   if ((why = gt_logfile_error(f)))       once after the first failure: the message
 *   GT_TRY(gt_logfile_close(f, err));        GT_EIO if a record was lost
 *
 * A failed write must not end the training: later records are still tried, and gt_logfile_close returns the first failure. */
#ifndef GT_TRAIN_LOGFILE_H
#define GT_TRAIN_LOGFILE_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct gt_logfile;

/* Creates the file `path`, which must not exist. Messages call it `name`, which differs from path if the file is renamed later.
 * GT_ECANTCREAT: the file cannot be created. */
enum gt_code gt_logfile_create(const char *path, const char *name, struct gt_logfile **out, struct gt_err *err);

/* Writes a record. Continues interrupted and short writes, and truncates the incomplete record of a failed write. Like the functions below,
 * it does nothing if f is NULL. */
void gt_logfile_write(struct gt_logfile *f, const void *data, size_t n);
void gt_logfile_sync(struct gt_logfile *f);
const char *gt_logfile_error(struct gt_logfile *f);
enum gt_code gt_logfile_close(struct gt_logfile *f, struct gt_err *err);

#endif
