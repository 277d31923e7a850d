/* The trackers of a run: programs and servers that get its events while it trains. Only rank 0 has them.
 *
 *     GT_TRY(gt_tracker_start(c, dir, &t, err));           after metrics.jsonl is open
 *     gt_tracker_event(t, line);                            each line of metrics.jsonl
 *     while ((why = gt_tracker_trouble(t)))  ...            a warning
 *     gt_tracker_end(t, GT_TRACKER_WAIT_S, warn, user);    after the logs are closed
 *
 * No call but gt_tracker_end() waits for a tracker, and no failure of a tracker ends the run. The functions accept NULL, which is the
 * tracker of a run whose config names none. */
#ifndef GT_TRACK_TRACKER_H
#define GT_TRACK_TRACKER_H

#include "conf/conf.h"

struct gt_tracker;

#define GT_TRACKER_WAIT_S 30.0 /* seconds that trackers have at the end of a run */

/* dir: directory of the run; "": it has none. *out becomes NULL if the config names no tracker. */
enum gt_code gt_tracker_start(const struct gt_conf *c, const char *dir, struct gt_tracker **out, struct gt_err *err);
void gt_tracker_event(struct gt_tracker *t, const char *line); /* line: without a newline */
const char *gt_tracker_trouble(struct gt_tracker *t);          /* the next sentence about a tracker that has failed; NULL: none */

/* Gives the trackers wait_s seconds to take what is left, and frees t. warn: gets a sentence for each tracker that did not take all. */
void gt_tracker_end(struct gt_tracker *t, double wait_s, void (*warn)(void *user, const char *text), void *user);

#endif
