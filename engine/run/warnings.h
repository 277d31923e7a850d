/* Warnings: what a config allows and its user hardly wants, and what this machine lacks for a run. All of them are defined in warnings.c.
 */
#ifndef GT_RUN_WARNINGS_H
#define GT_RUN_WARNINGS_H

#include "base/problems.h"
#include "gtrain.h"
#include "session/session.h"

/* Adds what the config and the planned session say. dir: where checkpoints go, "" nowhere; NULL: not asked (a run that resumes has one).
 * The texts name file, line, key and remedy. */
enum gt_code gt_warnings(const struct gt_session *s, const char *dir, struct gt_problems *out, struct gt_err *err);

/* Adds what a run on this machine would fail of: the directory, the device and its precisions, the data. Each has the code that the run
 * would end with. device: instead of the config's; NULL. data_note: why the data is not here; NULL: it is. Creates and changes nothing. */
enum gt_code gt_machine_lacks(struct gt_conf *c, const char *device, const char *data_note, struct gt_problems *out, struct gt_err *err);

/* Puts the place of checkpoint.dir before an error about the directory, where it is the config's. Returns code. */
enum gt_code gt_at_directory(const struct gt_conf *c, const char *dir, enum gt_code code, struct gt_err *err);
/* log.tensorboard needs a directory: GT_ECONFIG without. */
enum gt_code gt_check_tensorboard(const struct gt_conf *c, const char *dir, struct gt_err *err);
/* Refuses a directory that holds the checkpoints of another run: GT_ECANTCREAT. */
enum gt_code gt_refuse_used(const char *dir, struct gt_err *err);

#endif
