/* Warnings: settings that a config allows but that are probably mistakes, and requirements of a run that this machine does not meet. */
#ifndef GT_TRAIN_WARNINGS_H
#define GT_TRAIN_WARNINGS_H

#include "base/problems.h"
#include "session/session.h"

/* Adds the warnings about the config and the planned session to out. Each names file, line, key and remedy. dir: directory of the
 * checkpoints; "": the run has no directory; NULL: do not check it (a resumed run). */
enum gt_code gt_warnings(const struct gt_session *s, const char *dir, struct gt_problems *out, struct gt_err *err);

/* Adds the texts and rows that were left out because they cannot be read. */
enum gt_code gt_warn_skipped(const struct gt_session *s, struct gt_problems *out, struct gt_err *err);

/* Adds to out the reasons for which a run on this machine would fail: the directory, the device and its precisions, the data. Each reason
 * has the exit code of such a run. device: replaces the config's device unless it is NULL. data_note: the reason why the data is missing;
 * NULL: the data exists. *info receives the device; its id is empty if it cannot be opened. Creates and changes no files. */
enum gt_code gt_machine_lacks(struct gt_conf *c, const char *device, const char *data_note, struct gt_devinfo *info,
                              struct gt_problems *out, struct gt_err *err);

/* Adds file and line of checkpoint.dir to an error about the directory of the run if this directory comes from the config. Returns code. */
enum gt_code gt_at_directory(const struct gt_conf *c, const char *dir, enum gt_code code, struct gt_err *err);
/* Fails if a key of `log` needs the directory of the run, and the run has none (dir is ""): GT_ECONFIG; or if it needs a plugin that is not
 * installed: GT_EUNAVAILABLE. */
enum gt_code gt_check_logs(const struct gt_conf *c, const char *dir, struct gt_err *err);
/* Fails with GT_ECANTCREAT if the directory contains the checkpoints of another run. */
enum gt_code gt_refuse_used(const char *dir, struct gt_err *err);

#endif
