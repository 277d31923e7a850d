/* The trackers of a run: programs and servers that receive the events while the run trains. Only rank 0 has trackers.
 *
 *     GT_TRY(gt_tracker_start(c, dir, &t, err));           after metrics.jsonl is open
 *     gt_tracker_event(t, line);                            each line of metrics.jsonl
 *     while ((why = gt_tracker_trouble(t)))  ...            a warning
 *     gt_tracker_end(t, GT_TRACKER_WAIT_S, warn, user);    after the logs are closed
 *
 * Only gt_tracker_end() waits for a tracker, and no failure of a tracker ends the run. All functions accept NULL, which means that the
 * config names no tracker. */
#ifndef GT_TRACK_TRACKER_H
#define GT_TRACK_TRACKER_H

#include "conf/conf.h"

struct gt_tracker;

#define GT_TRACKER_WAIT_S 30.0 /* maximum seconds that a run waits for trackers at its end */

/* dir: directory of the run; "": the run has no directory. *out becomes NULL if the config names no tracker. */
enum gt_code gt_tracker_start(const struct gt_conf *c, const char *dir, struct gt_tracker **out, struct gt_err *err);
void gt_tracker_event(struct gt_tracker *t, const char *line); /* line: without a newline */
const char *gt_tracker_trouble(struct gt_tracker *t);          /* the next warning about a failed tracker; NULL: none */

/* Waits at most wait_s seconds until the trackers have all events, and frees t. warn: called with a sentence for each tracker that lacks
 * events. */
void gt_tracker_end(struct gt_tracker *t, double wait_s, void (*warn)(void *user, const char *text), void *user);

#endif
