/* A part of the public interface of the engine (gtrain.h): sends the logs of a run to an MLflow server.
 *
 *     struct gt_track_result r;
 *     GT_TRY(gt_track("runs/demo", &(struct gt_track_opts){0}, &r, err));
 */
#ifndef GT_GTRAIN_TRACK_H
#define GT_GTRAIN_TRACK_H

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

struct gt_track_opts {
	const char *const *sets; /* [nsets] "KEY=VALUE", which override keys of the config of the run */
	int nsets;
	bool follow;             /* continue until standard input ends, and for 30 seconds after that; gtrain run starts such a process */
	void (*say)(void *user, const char *text); /* gets warnings */
	void *user;
};

struct gt_track_result {
	char run_id[64];         /* id of the run in MLflow; "": there is none yet */
	char url[600];           /* address of the run's page on the MLflow server; "": there is none yet */
	int64_t sent, left;      /* number of events that were sent, and number of events that are not sent yet */
	bool complete;           /* the server has all events, the files and the state of the run */
};

/* Sends the events, the config and the model of a run to the server of its key log.mlflow.uri, except what was sent before. Changes only
 * <dir>/mlflow.json. GT_ENOINPUT: dir is not the directory of a run. GT_ECONFIG: its config names no server. GT_EIO: the server does not
 * answer, or refuses; another call sends the remaining data. */
enum gt_code gt_track(const char *dir, const struct gt_track_opts *o, struct gt_track_result *out, struct gt_err *err);

#endif
