/* The end of a session: the event END, with which a run says how it ended.
 *
 *     status        how the session ended
 *     ok            the run is complete
 *     early stop    train.early_stop has ended the run
 *     time limit    --time-limit has ended the session
 *     signal 15     a signal has ended it
 *     diverged      the loss, an output or a weight is not finite (exit status 3)
 *     error 65      another error, by its exit status */
#ifndef GT_TRAIN_RUN_END_H
#define GT_TRAIN_RUN_END_H

#include "store/ckpt.h"
#include "train/trainer.h"
#include <sys/types.h>

/* Sends END for a session that the error err ends, unless the session has not started or has sent END already. If the disk is full and the
 * run has a checkpoint, then adds to err how to continue the run. */
void gt_run_end_failed(struct gt_trainer *t, enum gt_code code, struct gt_err *err);

/* A rank that was killed writes no END, and a rank that lost another one does not know the exit status of the run. The process that started
 * the ranks knows it, and adds END to metrics.jsonl after all ranks have ended:
 *
 *     ino_t before = gt_run_log_inode(dir);         before ranks start; 0: there is no file
 *     gt_run_end_add(dir, before, code, why);       code: exit status, 128+n after signal n; why: the message
 *
 * It changes nothing if the file is still the one from before, or already says how the run ended. A failure to write is ignored, because
 * the run ends with an error in any case. */
ino_t gt_run_log_inode(const char *dir);
void gt_run_end_add(const char *dir, ino_t before, enum gt_code code, const char *why);

/* Writes END to metrics.jsonl, and config.cfg, for a run in dir that is complete with the checkpoint `from` by the config c, so
 * that no session trains: it was killed before END, or the config has fewer epochs now. Lines of later steps are dropped, as in a resumed
 * run. Changes nothing if the last line is such an END already, or if the directory has later checkpoints. status: "ok" or "early stop". */
enum gt_code gt_run_end_record(const char *dir, const struct gt_conf *c, const struct gt_ckpt *from, const char *status,
                               struct gt_err *err);

#endif
