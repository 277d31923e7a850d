/* Writes <dir>/metrics.jsonl: one JSON object per line, with the keys that gtrain-checkpoint(5) documents. */
#ifndef GT_TRAIN_METRICS_H
#define GT_TRAIN_METRICS_H

#include "base/json.h"
#include "gtrain.h"

struct gt_metrics_file; /* NULL: the run has no directory, and the functions below only format the text */

struct gt_metrics_spec {
	const char *dir;
	int64_t resume_step; /* >= 0: the run resumes, and lines up to this step are kept; < 0: the run is new */
	bool evaluates;      /* the resumed run evaluates the weights of resume_step (gt_ckpt_pending) and writes these lines anew */
	int64_t next;        /* *next of gt_ckpt_dir_continue(); > 0: the file has a temporary name until a checkpoint is committed */
};

/* Creates a new file, atomically, and copies those lines of the old file that are kept. *damaged receives the number of lines that were
 * dropped because they are not events, including a truncated last line. GT_ECANTCREAT: the name belongs to something that is not a regular
 * file. */
enum gt_code gt_metrics_open(const struct gt_metrics_spec *spec, struct gt_metrics_file **out, int64_t *damaged, struct gt_err *err);

/* gt_metrics_sync, gt_metrics_error and gt_metrics_close act as in train/logfile.h: a failed write does not end the training. */
void gt_metrics_sync(struct gt_metrics_file *m);
const char *gt_metrics_error(struct gt_metrics_file *m);
enum gt_code gt_metrics_close(struct gt_metrics_file *m, struct gt_err *err);

/* Formats ev into j, appends the line to the file, and sets ev->json to it (valid until the next call). */
enum gt_code gt_metrics_write(struct gt_metrics_file *m, struct gt_json *j, struct gt_event *ev, struct gt_err *err);

#endif
