/* lib/gtrain/mlflow.so: sends a run to an MLflow server. It is a plugin so that no other process loads libcurl.
 *
 *     metrics.jsonl  --- lines after state.offset --->  POST runs/log-batch  --->  MLflow
 *          |                                                   |
 *     the queue: a run appends, nothing                   <dir>/mlflow.json: the id of the MLflow run,
 *     is lost while the server is away                    and the offset of the first line not sent
 */
#ifndef GT_TRACK_MLFLOW_H
#define GT_TRACK_MLFLOW_H

#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

#define GT_MLFLOW_ABI 1
#define GT_MLFLOW_SYMBOL "gt_mlflow_plugin"

struct gt_mlflow_pair {
	const char *key, *value;
};

struct gt_mlflow_job {
	const char *dir;        /* directory of the run */
	const char *uri;        /* address of the server, http:// or https:// */
	const char *experiment; /* name of the experiment, which is created if the server does not have it */
	const char *name;       /* name of the run in MLflow */
	bool artifacts;         /* upload the config and the model, if the server accepts artifacts */
	const struct gt_mlflow_pair *param; /* [nparams] the keys of the config and their values */
	int nparams;
	int until;              /* descriptor whose end of file means that the run has ended; -1: send the present lines only */
	double wait_s;          /* with until >= 0: maximum seconds of sending after the run has ended */
	void (*say)(void *user, const char *text); /* called with a sentence when the server does not answer for the first time; may be NULL */
	void *user;
};

struct gt_mlflow_result {
	char run_id[64];        /* id of the run in MLflow; "": the run was not created yet */
	char url[600];          /* address of the page of the run; "": not created yet */
	int64_t sent, left;     /* number of lines of metrics.jsonl that this call has sent, and that remain */
	bool complete;          /* the server has all lines, files and the status of the run */
};

struct gt_mlflow_plugin {
	uint32_t abi;
	/* Sends the data that the server does not have yet: creates the MLflow run, or continues the MLflow run of an earlier call. With until
	 * >= 0, follows the log until the run has ended. GT_EIO: the server does not answer, or refuses the data; *out has the number of
	 * remaining lines, which a later call sends. GT_EFAIL: another process sends this run. */
	enum gt_code (*send)(const struct gt_mlflow_job *job, struct gt_mlflow_result *out, struct gt_err *err);
};

#endif
