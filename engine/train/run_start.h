/* The start line of a run and the warnings that follow it. */
#ifndef GT_TRAIN_RUN_START_H
#define GT_TRAIN_RUN_START_H

#include "train/pretrained.h"
#include "train/trainer.h"

/* Writes a count with separators to buf and returns buf: "669,706". */
const char *gt_format_grouped(int64_t n, char *buf, size_t size);

/* Sends the event START: model, device, batch, samples and seed in one line. */
enum gt_code gt_run_report_start(struct gt_trainer *t, struct gt_err *err);
/* Prints a warning and writes it to metrics.jsonl. */
enum gt_code gt_run_warn(struct gt_trainer *t, const char *text, struct gt_err *err);
/* Warns if the number of ranks has changed, because the results then differ in their last bits. The number can come from the command line,
 * so the config of the checkpoint may lack it. wrote: the number of ranks that wrote it. */
enum gt_code gt_run_warn_of_ranks(struct gt_trainer *t, int64_t wrote, struct gt_err *err);
/* The function gt_session_spec.sized of a run: prints the warnings before memory is allocated, because a machine with too little memory can
 * end the process. The warnings are not in metrics.jsonl, which is not open yet. */
enum gt_code gt_run_report_warnings(void *user, const struct gt_session *s, struct gt_err *err);
/* Warns that the weights of --init had another type than f32. */
enum gt_code gt_run_warn_of_conversion(struct gt_trainer *t, enum gt_dtype from, struct gt_err *err);
/* Reports which tensors of a pretrained file were used. */
enum gt_code gt_run_report_pretrained(struct gt_trainer *t, const struct gt_pretrained_report *r, struct gt_err *err);

#endif
