/* The process that sends a run to MLflow while it trains: `gtrain track --follow`, which reads metrics.jsonl. The run only starts it, and
 * closes its standard input at the end. */
#ifndef GT_TRACK_MLFLOW_SENDER_H
#define GT_TRACK_MLFLOW_SENDER_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

struct gt_mlflow_sender;

/* Starts the process. dir: directory of the run, which contains config.cfg and metrics.jsonl. */
enum gt_code gt_mlflow_sender_start(const char *dir, struct gt_mlflow_sender **out, struct gt_err *err);
/* Returns the next line that the process has printed, without waiting; NULL: no new line. It is valid until the next call. */
const char *gt_mlflow_sender_trouble(struct gt_mlflow_sender *s);
/* Informs the process that the run has ended: the process then sends the last lines. */
void gt_mlflow_sender_finish(struct gt_mlflow_sender *s);
/* Waits for the process for at most wait_s seconds, passes the lines that it prints to warn, and frees s. If the process is still sending
 * then, it continues on its own, and ends GT_TRACKER_WAIT_S seconds after the run. */
void gt_mlflow_sender_end(struct gt_mlflow_sender *s, double wait_s, void (*warn)(void *user, const char *text), void *user);

#endif
