/* The parts of mlflow.so: mlflow_plugin.c follows a run and chooses the next call; mlflow_calls.c has the calls of MLflow's REST API
 * (mlflow.org, REST API 2.0), mlflow_http.c makes one HTTP request; mlflow_lines.c converts lines of metrics.jsonl to metrics;
 * mlflow_state.c reads and writes mlflow.json; mlflow_files.c uploads files. */
#ifndef GT_TRACK_MLFLOW_PARTS_H
#define GT_TRACK_MLFLOW_PARTS_H

#include "base/arena.h"
#include "base/fileio.h"
#include "base/json.h"
#include "base/json_read.h"
#include "track/mlflow.h"

/* ---- time: how long sending may go on ----------------------------------------------------------------------------------------- */
struct gt_mlflow_clock {
	int until;        /* as in struct gt_mlflow_job */
	double wait_s;
	bool ended;       /* the run has ended */
	double deadline;  /* once the run has ended: time (gt_clock) at which sending stops; INFINITY: no limit */
};
bool gt_mlflow_ended(struct gt_mlflow_clock *c); /* whether the run has ended */
bool gt_mlflow_over(struct gt_mlflow_clock *c);  /* whether the time limit for sending is over */
/* Waits for s seconds, or until the run ends or the time is over. */
void gt_mlflow_pause(struct gt_mlflow_clock *c, double s);

/* ---- mlflow_http.c ------------------------------------------------------------------------------------------------------------- */
enum gt_mlflow_end {
	GT_MLFLOW_DONE,
	GT_MLFLOW_AGAIN, /* failed, err has the reason: the server does not answer, or has an internal error; another attempt can succeed */
	GT_MLFLOW_NEVER  /* failed, err has the reason: the server has refused the request, and would refuse it again */
};

struct gt_mlflow_http;

struct gt_mlflow_reply {
	const struct gt_json_value *json; /* the object of the reply, in the arena of the request; NULL: the caller needs no object */
	char error[64];                   /* error_code of MLflow, such as "RESOURCE_DOES_NOT_EXIST"; "": none */
	long status;
};

/* Reads the credentials from the environment: MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN. No message
 * contains the credentials. */
enum gt_code gt_mlflow_http_open(const char *uri, struct gt_mlflow_clock *clock, struct gt_mlflow_http **out, struct gt_err *err);
void gt_mlflow_http_close(struct gt_mlflow_http *h);
/* Makes one request to <uri>/api/2.0/<path>. body: JSON; NULL: a GET request. The reply is untrusted: at most 4 MiB, strictly parsed. */
enum gt_mlflow_end gt_mlflow_call(struct gt_mlflow_http *h, const char *path, const char *body, struct gt_arena *a,
                                  struct gt_mlflow_reply *out, struct gt_err *err);
/* Uploads a file by PUT. */
enum gt_mlflow_end gt_mlflow_put(struct gt_mlflow_http *h, const char *path, int fd, uint64_t bytes, struct gt_err *err);
/* Writes text to buf, with %XX for all bytes but letters, digits, -._~ and the bytes in `keep`. Returns buf, or "" if buf is too small. */
const char *gt_mlflow_escape(const char *text, const char *keep, char *buf, size_t size);

/* ---- mlflow_state.c ------------------------------------------------------------------------------------------------------------ */
#define GT_MLFLOW_TEXT 512
struct gt_mlflow_state {
	char uri[GT_MLFLOW_TEXT], experiment[GT_MLFLOW_TEXT]; /* as in gt_mlflow_job; if these change, the whole run is sent again */
	char experiment_id[64], run_id[64];  /* "": not known yet */
	char artifact_uri[GT_MLFLOW_TEXT];   /* where the server stores the files of the run */
	char key[40];                        /* value of the tag gtrain.key, which finds the run if the reply to its creation was lost */
	bool creating;                       /* the server was asked to create the run; it may exist although run_id is not known */
	bool described;                      /* the server has the parameters */
	int64_t offset;                      /* bytes of metrics.jsonl that are sent */
	double time;                         /* "time" of the last line that is sent; 0: none */
	char status[32];                     /* how the run ended ("ok", "signal 15"), from the lines that were sent; "": not ended */
	char told[16];                       /* status that was last sent to the server: "RUNNING", "FINISHED", "FAILED", "KILLED" */
	char files[96];                      /* modification times of the uploaded files of the run directory; "": none */
	char model[96];                      /* the uploaded checkpoint, and the modification time of its model; "": none */
};
/* Reads <dir>/mlflow.json. The state is new if the file is missing or for another server or experiment. GT_EDATA: damaged file. */
enum gt_code gt_mlflow_state_read(const struct gt_mlflow_job *job, struct gt_mlflow_state *s, struct gt_err *err);
enum gt_code gt_mlflow_state_write(const char *dir, const struct gt_mlflow_state *s, struct gt_err *err);

/* ---- mlflow_lines.c ------------------------------------------------------------------------------------------------------------ */
/* The next lines of a log as members of a request of log-batch. */
struct gt_mlflow_batch {
	int64_t offset;   /* offset in the log after these lines; an incomplete line is left out */
	int64_t lines;    /* number of events among these lines */
	int metrics;      /* number of metrics */
	double time;      /* value that the member `time` of the stored state gets when these lines have been sent */
	char status[32];  /* value that the member `status` of the stored state gets when these lines have been sent */
	char note[1024];  /* text of the last event `start` among these lines; "": none */
};
/* Appends the array "metrics" to the open object of j. If the log was rewritten since the last call, because the run went back or dropped
 * damaged lines, the log is read from its beginning, and lines up to the time of the last sent line are skipped. */
enum gt_code gt_mlflow_batch_read(const char *dir, const struct gt_mlflow_state *s, struct gt_json *j, struct gt_mlflow_batch *out,
                                  struct gt_err *err);
/* Returns the member "time" of the first line of the log; NAN: the log is empty. */
double gt_mlflow_first_time(const char *dir);
/* Returns the number of events of the log that are not sent. */
int64_t gt_mlflow_lines_left(const char *dir, const struct gt_mlflow_state *s);

/* ---- mlflow_calls.c ------------------------------------------------------------------------------------------------------------ */
struct gt_mlflow {
	const struct gt_mlflow_job *job;
	struct gt_mlflow_clock clock;
	struct gt_mlflow_http *http;
	struct gt_mlflow_state state;
	struct gt_mlflow_result *result;
	struct gt_json json; /* the body of a request */
	bool announced;      /* gt_mlflow_describe_run was called in this session */
	bool said_trouble;   /* the warning that the server does not answer was printed */
	bool said_files;     /* the warning that files cannot be uploaded was printed */
};
/* Finds or creates the experiment and the run. */
enum gt_mlflow_end gt_mlflow_find_run(struct gt_mlflow *m, struct gt_err *err);
/* Sends the parameters of a new run. Marks an existing run as running, and sends its changed parameters as tags "changed.KEY", because
 * MLflow cannot change a parameter. */
enum gt_mlflow_end gt_mlflow_describe_run(struct gt_mlflow *m, struct gt_err *err);
/* Sends the next lines of the log. Sets *more to whether further lines exist. */
enum gt_mlflow_end gt_mlflow_send_lines(struct gt_mlflow *m, bool *more, struct gt_err *err);
enum gt_mlflow_end gt_mlflow_send_status(struct gt_mlflow *m, const char *status, struct gt_err *err);

/* ---- mlflow_files.c ------------------------------------------------------------------------------------------------------------ */
/* Returns whether files of the run can be uploaded: the server must store artifacts through its proxy (mlflow-artifacts:). */
bool gt_mlflow_takes_files(const struct gt_mlflow *m);
/* Uploads config.cfg and, if it exists, report.html of the run directory. */
enum gt_mlflow_end gt_mlflow_send_run_files(struct gt_mlflow *m, struct gt_err *err);
/* Uploads the best checkpoint, or the latest checkpoint if none is marked as the best, as model/, without the optimizer state. */
enum gt_mlflow_end gt_mlflow_send_model(struct gt_mlflow *m, struct gt_err *err);

#endif
