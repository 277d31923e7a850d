/* lib/gtrain/mlflow.so: follows a run and sends it to an MLflow server, in a process beside the run.
 *
 *     connect:   experiment, run, parameters, config.cfg        once a session
 *     follow:    lines of metrics.jsonl, every EVERY_S seconds
 *     finish:    lines that are left, state, files, model       when the run has ended
 *
 * Each step can be repeated: mlflow.json records which data the server has, and a line that is sent twice gives the same metric. */
#include "base/clock.h"
#include "track/mlflow/mlflow_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define EVERY_S 2.0     /* seconds between two reads of the log */
#define TRIES 4         /* maximum failed attempts in a row if the run has already ended */
#define RETRY_MAX_S 30.0

/* Returns MLflow's word for the status in the event `end` of a run. */
static const char *status_word(const char *status)
{
	if (!strcmp(status, "ok") || !strcmp(status, "early stop"))
		return "FINISHED";
	if (!strcmp(status, "time limit") || !strncmp(status, "signal ", 7))
		return "KILLED";
	return "FAILED"; /* the run was ended by an error or, if its log has no line `end`, by SIGKILL */
}

/* Calls a function that uploads files, if the config and the server allow it. If the server refuses files, other data is still sent. */
static enum gt_mlflow_end upload_files(struct gt_mlflow *m, enum gt_mlflow_end (*send)(struct gt_mlflow *m, struct gt_err *err),
                                       struct gt_err *err)
{
	char text[sizeof err->msg + 100] = "";
	enum gt_mlflow_end end = GT_MLFLOW_DONE;
	if (!m->job->artifacts)
		return end;
	if (!gt_mlflow_takes_files(m))
		snprintf(text, sizeof text, "MLflow stores the files of this run at %.200s, not behind its proxy, so gtrain uploads no files; set "
		         "log.mlflow.artifacts = false", m->state.artifact_uri);
	else if ((end = send(m, err)) == GT_MLFLOW_NEVER)
		snprintf(text, sizeof text, "MLflow does not accept the files of this run: %s", err->msg);
	if (*text && !m->said_files && m->job->say)
		m->job->say(m->job->user, text);
	m->said_files |= *text;
	return end == GT_MLFLOW_NEVER ? GT_MLFLOW_DONE : end;
}

static enum gt_mlflow_end connect_run(struct gt_mlflow *m, struct gt_err *err)
{
	enum gt_mlflow_end end = gt_mlflow_find_run(m, err);
	if (end == GT_MLFLOW_DONE)
		end = gt_mlflow_describe_run(m, err);
	m->announced = end == GT_MLFLOW_DONE;
	return end;
}

/* Sends the status of the ended run, its files and, last because it is large, the model. While the run is followed, the model is sent
 * only if the run is complete, because an incomplete run can be resumed. */
static enum gt_mlflow_end finish_run(struct gt_mlflow *m, struct gt_err *err)
{
	const char *word = status_word(m->state.status);
	bool complete = !strcmp(word, "FINISHED") || m->job->until < 0;
	enum gt_mlflow_end end = GT_MLFLOW_DONE;
	if (strcmp(m->state.told, word))
		end = gt_mlflow_send_status(m, word, err);
	if (end == GT_MLFLOW_DONE)
		end = upload_files(m, gt_mlflow_send_run_files, err);
	if (end == GT_MLFLOW_DONE && complete)
		end = upload_files(m, gt_mlflow_send_model, err);
	return end;
}

/* Sends all new data. Sets *last to whether the run has ended and everything was sent. */
static enum gt_mlflow_end send_all(struct gt_mlflow *m, bool *last, struct gt_err *err)
{
	bool ended = gt_mlflow_ended(&m->clock), more = true; /* checked before the log is read, so that the last lines are not missed */
	enum gt_mlflow_end end = m->announced ? GT_MLFLOW_DONE : connect_run(m, err);
	while (end == GT_MLFLOW_DONE && more)
		end = gt_mlflow_send_lines(m, &more, err);
	if (end == GT_MLFLOW_DONE && !ended && !*m->state.files)
		end = upload_files(m, gt_mlflow_send_run_files, err);
	if (end == GT_MLFLOW_DONE && ended)
		end = finish_run(m, err);
	*last = ended && end == GT_MLFLOW_DONE;
	return end;
}

/* Prints, once, why the data of a training run is not sent. */
static void say_trouble(struct gt_mlflow *m, enum gt_mlflow_end end, const struct gt_err *err)
{
	char text[sizeof err->msg + 100];
	if (m->said_trouble || m->job->until < 0 || gt_mlflow_ended(&m->clock))
		return;
	m->said_trouble = true;
	snprintf(text, sizeof text, "MLflow at %.700s; events wait in metrics.jsonl%s", err->msg,
	         end == GT_MLFLOW_AGAIN ? " until the server answers" : "");
	if (m->job->say)
		m->job->say(m->job->user, text);
}

/* Sends until the run has ended and everything is sent, the time is over, or the server refuses the data. If it refuses while the run
 * trains, waits for the end of the run, so that the error counts all events that are not sent. */
static enum gt_code follow_run(struct gt_mlflow *m, struct gt_err *err)
{
	bool last = false;
	double retry = 1;
	for (int failures = 0; !last;) {
		enum gt_mlflow_end end = send_all(m, &last, err);
		failures = end == GT_MLFLOW_DONE ? 0 : failures + 1;
		if (failures)
			say_trouble(m, end, err);
		while (end == GT_MLFLOW_NEVER && !gt_mlflow_ended(&m->clock))
			gt_mlflow_pause(&m->clock, EVERY_S);
		if (end == GT_MLFLOW_NEVER || (failures && gt_mlflow_over(&m->clock)) || (m->job->until < 0 && failures >= TRIES))
			return err->code;
		retry = failures < 2 ? 1 : fmin(2 * retry, gt_mlflow_ended(&m->clock) ? 4 : RETRY_MAX_S);
		if (!last)
			gt_mlflow_pause(&m->clock, failures ? retry : EVERY_S);
	}
	return GT_OK;
}

/* Locks the run directory itself, so that no lock file remains. A sender that follows a run waits for the sender of the previous
 * session. */
static enum gt_code lock_run(struct gt_mlflow *m, int *fd, struct gt_err *err)
{
	*fd = open(m->job->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0)
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%.500s", m->job->dir);
	while (flock(*fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return gt_fail_errno(err, GT_EIO, errno, "%.500s", m->job->dir);
		if (m->job->until < 0 || gt_mlflow_over(&m->clock))
			return gt_fail(err, GT_EFAIL, "%.500s: another process sends this run to MLflow; the run may still train", m->job->dir);
		gt_mlflow_pause(&m->clock, 0.2);
	}
	return GT_OK;
}

static void fill_result(struct gt_mlflow *m)
{
	struct gt_mlflow_result *r = m->result;
	const struct gt_mlflow_state *s = &m->state;
	r->left = gt_mlflow_lines_left(m->job->dir, s);
	snprintf(r->run_id, sizeof r->run_id, "%s", s->run_id);
	size_t n = strlen(s->uri);
	if (*s->run_id)
		snprintf(r->url, sizeof r->url, "%.*s/#/experiments/%s/runs/%s", (int)(n - (s->uri[n - 1] == '/')), s->uri, s->experiment_id,
		         s->run_id);
}

static enum gt_code send_run(const struct gt_mlflow_job *job, struct gt_mlflow_result *out, struct gt_err *err)
{
	struct gt_mlflow m = {.job = job, .result = out, .clock = {.until = job->until, .wait_s = job->wait_s}};
	int lock;
	*out = (struct gt_mlflow_result){0};
	enum gt_code code = lock_run(&m, &lock, err);
	if (code == GT_OK)
		code = gt_mlflow_state_read(job, &m.state, err);
	if (code == GT_OK) {
		code = gt_mlflow_http_open(job->uri, &m.clock, &m.http, err);
		if (code == GT_OK)
			code = follow_run(&m, err);
		gt_mlflow_http_close(m.http);
		fill_result(&m);
		out->complete = code == GT_OK;
	}
	gt_json_free(&m.json);
	if (lock >= 0)
		close(lock);
	return code;
}

__attribute__((visibility("default"))) extern const struct gt_mlflow_plugin gt_mlflow_plugin;
const struct gt_mlflow_plugin gt_mlflow_plugin = {GT_MLFLOW_ABI, send_run};
