/* Warnings: settings that a config allows but that are probably mistakes, and requirements of a run that this machine does not meet. */
#ifndef GT_RUN_WARNINGS_H
#define GT_RUN_WARNINGS_H

#include "base/problems.h"
#include "gtrain.h"
#include "session/session.h"

/* Adds the warnings about the config and the planned session. dir: directory of the checkpoints; "": none; NULL: not checked, because a run
 * that resumes has one. The texts name file, line, key and remedy. */
enum gt_code gt_warnings(const struct gt_session *s, const char *dir, struct gt_problems *out, struct gt_err *err);

/* Adds the reasons for which a run on this machine would fail: the directory, the device and its precisions, the data. Each has the exit
 * code of that run. device: instead of that of the config, or NULL. data_note: why the data is missing; NULL: it exists. Creates and
 * changes no files. */
enum gt_code gt_machine_lacks(struct gt_conf *c, const char *device, const char *data_note, struct gt_problems *out, struct gt_err *err);

/* Puts file and line of checkpoint.dir before an error about the directory, if the directory is from the config. Returns code. */
enum gt_code gt_at_directory(const struct gt_conf *c, const char *dir, enum gt_code code, struct gt_err *err);
/* Checks that a run with log.tensorboard has a directory. GT_ECONFIG: it has none. */
enum gt_code gt_check_tensorboard(const struct gt_conf *c, const char *dir, struct gt_err *err);
/* Fails with GT_ECANTCREAT if the directory contains the checkpoints of another run. */
enum gt_code gt_refuse_used(const char *dir, struct gt_err *err);

#endif
