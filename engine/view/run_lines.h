/* Reads the lines of metrics.jsonl in order: first all lines of the file, later the lines that the run has appended since the last call.
 *
 *     GT_TRY(gt_run_lines_open(dir, &lines, err));
 *     GT_TRY(gt_run_lines_read(lines, take_event, &facts, err));
 * */
#ifndef GT_VIEW_RUN_LINES_H
#define GT_VIEW_RUN_LINES_H

#include "base/json_read.h"
#include <stdbool.h>

struct gt_run_lines;

/* Receives the event of a line, which is valid only during the call. */
typedef enum gt_code gt_run_event_fn(void *user, const struct gt_json_value *o, const char *event, int64_t step, struct gt_err *err);

/* Opens <dir>/metrics.jsonl. GT_ENOINPUT: the file does not exist. */
enum gt_code gt_run_lines_open(const char *dir, struct gt_run_lines **out, struct gt_err *err);
/* Calls fn for each complete line that has been written since the last call. An incomplete last line is left for the next call. */
enum gt_code gt_run_lines_read(struct gt_run_lines *l, gt_run_event_fn *fn, void *user, struct gt_err *err);
int64_t gt_run_lines_damaged(const struct gt_run_lines *l); /* number of damaged lines, which were skipped */
/* Returns whether the file was replaced or has become shorter, for example by a resumed run: open it again. */
bool gt_run_lines_replaced(const struct gt_run_lines *l);
void gt_run_lines_close(struct gt_run_lines *l);

#endif
