/* <dir>/metrics.jsonl: one JSON object a line, keys stable (gtrain-checkpoint(5)). */
#ifndef GT_RUN_METRICS_H
#define GT_RUN_METRICS_H

#include "base/json.h"
#include "gtrain.h"

struct gt_metrics_file; /* NULL where a run keeps no directory: the functions below then only make the text */

/* resume_step >= 0: lines of later steps are dropped first (atomically), so that a resumed run continues the file. */
enum gt_code gt_metrics_open(const char *dir, int64_t resume_step, struct gt_metrics_file **out, struct gt_err *err);
void gt_metrics_close(struct gt_metrics_file *m);

/* Formats ev into j, appends the line to the file, points ev->json at it (valid until the next call). */
enum gt_code gt_metrics_write(struct gt_metrics_file *m, struct gt_json *j, struct gt_event *ev, struct gt_err *err);

#endif
