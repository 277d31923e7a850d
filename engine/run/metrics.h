/* <dir>/metrics.jsonl: one JSON object a line, keys stable (gtrain-checkpoint(5)). */
#ifndef GT_RUN_METRICS_H
#define GT_RUN_METRICS_H

#include "base/json.h"
#include "gtrain.h"

struct gt_metrics_file; /* NULL where a run keeps no directory: the functions below then only make the text */

struct gt_metrics_spec {
	const char *dir;
	int64_t resume_step; /* >= 0: a run that goes on: the lines up to this step are kept */
	int64_t next;        /* of gt_ckpt_dir_continue(): the file is written beside the one that is there until a checkpoint commits */
};

/* Makes the file anew, atomically: what is kept of the old one is copied. *damaged: whole lines that are no event, and a last line that
 * was cut short; they are dropped. GT_ECANTCREAT where the name is taken by something that is not a regular file. */
enum gt_code gt_metrics_open(const struct gt_metrics_spec *spec, struct gt_metrics_file **out, int64_t *damaged, struct gt_err *err);

/* The rest is as in run/logfile.h: a failed write ends no training. */
void gt_metrics_sync(struct gt_metrics_file *m);
const char *gt_metrics_error(struct gt_metrics_file *m);
enum gt_code gt_metrics_close(struct gt_metrics_file *m, struct gt_err *err);

/* Formats ev into j, appends the line to the file, points ev->json at it (valid until the next call). */
enum gt_code gt_metrics_write(struct gt_metrics_file *m, struct gt_json *j, struct gt_event *ev, struct gt_err *err);

#endif
