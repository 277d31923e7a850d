#include "base/public.h"
#include "track/mlflow/mlflow_parts.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 100        /* maximum number of parameters, or of tags, in a call */
#define VALUE_BYTES 500  /* maximum length of a parameter in every version of MLflow since 1.28 */

#define TRY_DONE(expr)                          \
	do {                                        \
		enum gt_mlflow_end end_ = (expr);       \
		if (end_ != GT_MLFLOW_DONE)             \
			return end_;                        \
	} while (0)

/* Closes the object m->json and posts it to a method of the server. */
static enum gt_mlflow_end post_json(struct gt_mlflow *m, const char *path, struct gt_arena *a, struct gt_mlflow_reply *out,
                                    struct gt_err *err)
{
	const char *body;
	gt_json_end(&m->json);
	*out = (struct gt_mlflow_reply){0};
	if (gt_json_finish(&m->json, &body, err))
		return GT_MLFLOW_NEVER;
	return gt_mlflow_call(m->http, path, body, a, out, err);
}

/* Like post_json, for a method whose reply is not needed. */
static enum gt_mlflow_end post_only(struct gt_mlflow *m, const char *path, struct gt_err *err)
{
	struct gt_mlflow_reply reply;
	struct gt_arena *a;
	if (gt_arena_open(&a, err))
		return GT_MLFLOW_AGAIN;
	enum gt_mlflow_end end = post_json(m, path, a, &reply, err);
	gt_arena_close(a);
	return end;
}

static void open_body(struct gt_mlflow *m)
{
	gt_json_reset(&m->json);
	gt_json_object(&m->json, NULL);
}

static void open_run_body(struct gt_mlflow *m)
{
	open_body(m);
	gt_json_string(&m->json, "run_id", m->state.run_id);
}

static void put_pair(struct gt_json *j, const char *key, const char *value, size_t most)
{
	char text[VALUE_BYTES + 4];
	if (strlen(value) > most)
		snprintf(text, sizeof text, "%.*s...", (int)most - 3, value);
	gt_json_row(j, NULL, GT_STR("key", key), GT_STR("value", strlen(value) > most ? text : value));
}

static int64_t to_milliseconds(double seconds)
{
	return llround(1000 * seconds);
}

static int64_t time_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return to_milliseconds((double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
}

/* Copies an identifier from the server. Returns false if it contains other characters than letters, digits, '-' and '_'. */
static bool take_id(const char *text, char *buf, size_t size)
{
	static const char set[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
	size_t n = strlen(text);
	if (!n || n >= size || strspn(text, set) != n)
		return false;
	memcpy(buf, text, n + 1);
	return true;
}

static enum gt_mlflow_end refuse_reply(const struct gt_mlflow *m, const char *what, struct gt_err *err)
{
	gt_fail(err, GT_EIO, "%.300s: the reply has no valid %s; is this the address of an MLflow server?", m->job->uri, what);
	return GT_MLFLOW_AGAIN;
}

/* ---- experiment ----------------------------------------------------------------------------------------------------------------- */
static enum gt_mlflow_end create_experiment(struct gt_mlflow *m, struct gt_arena *a, struct gt_err *err)
{
	struct gt_mlflow_reply reply;
	open_body(m);
	gt_json_string(&m->json, "name", m->job->experiment);
	enum gt_mlflow_end end = post_json(m, "mlflow/experiments/create", a, &reply, err);
	if (end == GT_MLFLOW_NEVER && !strcmp(reply.error, "RESOURCE_ALREADY_EXISTS")) /* another run was faster */
		return GT_MLFLOW_AGAIN;
	TRY_DONE(end);
	bool good = take_id(gt_json_str(reply.json, "experiment_id"), m->state.experiment_id, sizeof m->state.experiment_id);
	return good ? GT_MLFLOW_DONE : refuse_reply(m, "experiment_id", err);
}

static enum gt_mlflow_end find_experiment(struct gt_mlflow *m, struct gt_arena *a, struct gt_err *err)
{
	char path[1700], name[1600];
	struct gt_mlflow_reply reply;
	gt_mlflow_escape(m->job->experiment, "", name, sizeof name);
	snprintf(path, sizeof path, "mlflow/experiments/get-by-name?experiment_name=%s", name);
	enum gt_mlflow_end end = gt_mlflow_call(m->http, path, NULL, a, &reply, err);
	if (end == GT_MLFLOW_NEVER && !strcmp(reply.error, "RESOURCE_DOES_NOT_EXIST"))
		return create_experiment(m, a, err);
	TRY_DONE(end);
	const struct gt_json_value *e = gt_json_member(reply.json, "experiment");
	if (!strcmp(gt_json_str(e, "lifecycle_stage"), "deleted")) {
		gt_fail(err, GT_EIO, "%.300s: the experiment \"%.200s\" is deleted; restore it, or choose another log.mlflow.experiment",
		        m->job->uri, m->job->experiment);
		return GT_MLFLOW_NEVER;
	}
	bool good = take_id(gt_json_str(e, "experiment_id"), m->state.experiment_id, sizeof m->state.experiment_id);
	return good ? GT_MLFLOW_DONE : refuse_reply(m, "experiment_id", err);
}

/* ---- run ------------------------------------------------------------------------------------------------------------------------ */
static enum gt_mlflow_end take_run(struct gt_mlflow *m, const struct gt_json_value *run, struct gt_err *err)
{
	const struct gt_json_value *info = gt_json_member(run, "info");
	if (!take_id(gt_json_str(info, "run_id"), m->state.run_id, sizeof m->state.run_id))
		return refuse_reply(m, "run_id", err);
	snprintf(m->state.artifact_uri, sizeof m->state.artifact_uri, "%s", gt_json_str(info, "artifact_uri"));
	snprintf(m->state.told, sizeof m->state.told, "RUNNING");
	m->state.creating = false;
	return gt_mlflow_state_write(m->job->dir, &m->state, err) ? GT_MLFLOW_AGAIN : GT_MLFLOW_DONE;
}

/* Finds the run that the server has created for a request whose reply was lost. Sets *found to whether the run exists. */
static enum gt_mlflow_end search_run(struct gt_mlflow *m, struct gt_arena *a, bool *found, struct gt_err *err)
{
	char filter[80];
	struct gt_mlflow_reply reply;
	*found = false;
	snprintf(filter, sizeof filter, "tags.`gtrain.key` = '%s'", m->state.key);
	open_body(m);
	gt_json_array(&m->json, "experiment_ids");
	gt_json_string(&m->json, NULL, m->state.experiment_id);
	gt_json_end(&m->json);
	gt_json_add(&m->json, GT_STR("filter", filter), GT_INT("max_results", 1));
	TRY_DONE(post_json(m, "mlflow/runs/search", a, &reply, err));
	const struct gt_json_value *run = gt_json_first(reply.json, "runs");
	*found = run != NULL;
	return run ? take_run(m, run, err) : GT_MLFLOW_DONE;
}

static void put_source_tags(struct gt_mlflow *m)
{
	char dir[PATH_MAX], host[256] = "";
	const char *user = getenv("LOGNAME") ? getenv("LOGNAME") : getenv("USER");
	gethostname(host, sizeof host - 1);
	gt_json_array(&m->json, "tags");
	put_pair(&m->json, "mlflow.source.name", "gtrain", VALUE_BYTES);
	put_pair(&m->json, "mlflow.source.type", "LOCAL", VALUE_BYTES);
	if (user && *user)
		put_pair(&m->json, "mlflow.user", user, VALUE_BYTES);
	put_pair(&m->json, "gtrain.key", m->state.key, VALUE_BYTES);
	put_pair(&m->json, "gtrain.version", GT_VERSION, VALUE_BYTES);
	put_pair(&m->json, "gtrain.host", host, VALUE_BYTES);
	put_pair(&m->json, "gtrain.directory", realpath(m->job->dir, dir) ? dir : m->job->dir, VALUE_BYTES);
	gt_json_end(&m->json);
}

static enum gt_mlflow_end create_run(struct gt_mlflow *m, struct gt_arena *a, struct gt_err *err)
{
	struct gt_mlflow_reply reply;
	double began = gt_mlflow_first_time(m->job->dir);
	m->state.creating = true;
	if (gt_mlflow_state_write(m->job->dir, &m->state, err))
		return GT_MLFLOW_AGAIN;
	open_body(m);
	gt_json_add(&m->json, GT_STR("experiment_id", m->state.experiment_id), GT_STR("run_name", m->job->name),
	            GT_INT("start_time", began > 0 ? to_milliseconds(began) : time_now()));
	put_source_tags(m);
	TRY_DONE(post_json(m, "mlflow/runs/create", a, &reply, err));
	return take_run(m, gt_json_member(reply.json, "run"), err);
}

static enum gt_mlflow_end find_in(struct gt_mlflow *m, struct gt_arena *a, struct gt_err *err)
{
	bool found = false;
	if (!*m->state.experiment_id)
		TRY_DONE(find_experiment(m, a, err));
	if (m->state.creating)
		TRY_DONE(search_run(m, a, &found, err));
	return found ? GT_MLFLOW_DONE : create_run(m, a, err);
}

enum gt_mlflow_end gt_mlflow_find_run(struct gt_mlflow *m, struct gt_err *err)
{
	struct gt_arena *a;
	if (*m->state.run_id)
		return GT_MLFLOW_DONE;
	if (gt_arena_open(&a, err))
		return GT_MLFLOW_AGAIN;
	enum gt_mlflow_end end = find_in(m, a, err);
	gt_arena_close(a);
	return end;
}

/* ---- parameters ----------------------------------------------------------------------------------------------------------------- */
/* Sends pairs as the array `kind` ("params" or "tags"), with a prefix before each key. */
static enum gt_mlflow_end send_pairs(struct gt_mlflow *m, const char *kind, const char *prefix, const struct gt_mlflow_pair *v, int n,
                                     struct gt_err *err)
{
	for (int i = 0; i < n; i += PAIRS) {
		open_run_body(m);
		gt_json_array(&m->json, kind);
		for (int k = i; k < n && k < i + PAIRS; k++) {
			char key[250];
			snprintf(key, sizeof key, "%s%s", prefix, v[k].key);
			put_pair(&m->json, key, v[k].value, VALUE_BYTES);
		}
		gt_json_end(&m->json);
		TRY_DONE(post_only(m, "mlflow/runs/log-batch", err));
	}
	return GT_MLFLOW_DONE;
}

/* Returns the value of a parameter at the server; NULL: the server does not have the parameter. */
static const char *find_param(const struct gt_json_value *data, const char *key)
{
	for (const struct gt_json_value *p = gt_json_first(data, "params"); p; p = p->next)
		if (!strcmp(gt_json_str(p, "key"), key))
			return gt_json_str(p, "value");
	return NULL;
}

/* Sends the parameters whose values differ from the values at the server. */
static enum gt_mlflow_end send_changes(struct gt_mlflow *m, const struct gt_json_value *run, struct gt_arena *a, struct gt_err *err)
{
	const struct gt_mlflow_job *job = m->job;
	struct gt_mlflow_pair *fresh = gt_arena_alloc(a, (size_t)job->nparams + 1, sizeof *fresh);
	struct gt_mlflow_pair *changed = gt_arena_alloc(a, (size_t)job->nparams + 1, sizeof *changed);
	int nfresh = 0, nchanged = 0;
	if (!fresh || !changed)
		return gt_fail_memory(err, 0), GT_MLFLOW_AGAIN;
	for (int i = 0; i < job->nparams; i++) {
		const char *old = find_param(gt_json_member(run, "data"), job->param[i].key);
		if (!old)
			fresh[nfresh++] = job->param[i];
		else if (strncmp(old, job->param[i].value, VALUE_BYTES - 3))
			changed[nchanged++] = job->param[i];
	}
	TRY_DONE(send_pairs(m, "params", "", fresh, nfresh, err));
	return send_pairs(m, "tags", "changed.", changed, nchanged, err);
}

static enum gt_mlflow_end compare_run(struct gt_mlflow *m, struct gt_arena *a, struct gt_err *err)
{
	char path[128];
	struct gt_mlflow_reply reply;
	snprintf(path, sizeof path, "mlflow/runs/get?run_id=%s", m->state.run_id);
	enum gt_mlflow_end end = gt_mlflow_call(m->http, path, NULL, a, &reply, err);
	const struct gt_json_value *run = gt_json_member(reply.json, "run");
	bool deleted = end == GT_MLFLOW_DONE && !strcmp(gt_json_str(gt_json_member(run, "info"), "lifecycle_stage"), "deleted");
	if (deleted || !strcmp(reply.error, "RESOURCE_DOES_NOT_EXIST")) {
		gt_fail(err, GT_EIO, "%.300s: the server no longer has the run %s; remove %.300s/mlflow.json to send it as a new one", m->job->uri,
		        m->state.run_id, m->job->dir);
		return GT_MLFLOW_NEVER;
	}
	TRY_DONE(end);
	return send_changes(m, run, a, err);
}

enum gt_mlflow_end gt_mlflow_describe_run(struct gt_mlflow *m, struct gt_err *err)
{
	struct gt_arena *a;
	enum gt_mlflow_end end = GT_MLFLOW_DONE;
	if (gt_arena_open(&a, err))
		return GT_MLFLOW_AGAIN;
	if (m->state.described)
		end = compare_run(m, a, err);
	else
		end = send_pairs(m, "params", "", m->job->param, m->job->nparams, err);
	gt_arena_close(a);
	TRY_DONE(end);
	m->state.described = true;
	if (!gt_mlflow_ended(&m->clock) && strcmp(m->state.told, "RUNNING"))
		TRY_DONE(gt_mlflow_send_status(m, "RUNNING", err));
	return gt_mlflow_state_write(m->job->dir, &m->state, err) ? GT_MLFLOW_AGAIN : GT_MLFLOW_DONE;
}

/* ---- metrics and status --------------------------------------------------------------------------------------------------------- */
enum gt_mlflow_end gt_mlflow_send_lines(struct gt_mlflow *m, bool *more, struct gt_err *err)
{
	struct gt_mlflow_batch b;
	*more = false;
	open_run_body(m);
	if (gt_mlflow_batch_read(m->job->dir, &m->state, &m->json, &b, err))
		return GT_MLFLOW_AGAIN;
	if (*b.note) {
		gt_json_array(&m->json, "tags");
		put_pair(&m->json, "mlflow.note.content", b.note, VALUE_BYTES);
		gt_json_end(&m->json);
	}
	if (b.metrics || *b.note)
		TRY_DONE(post_only(m, "mlflow/runs/log-batch", err));
	if (b.offset == m->state.offset)
		return GT_MLFLOW_DONE;
	m->state.offset = b.offset;
	m->state.time = b.time;
	memcpy(m->state.status, b.status, sizeof b.status);
	m->result->sent += b.lines;
	*more = b.metrics > 0;
	return gt_mlflow_state_write(m->job->dir, &m->state, err) ? GT_MLFLOW_AGAIN : GT_MLFLOW_DONE;
}

enum gt_mlflow_end gt_mlflow_send_status(struct gt_mlflow *m, const char *status, struct gt_err *err)
{
	open_run_body(m);
	gt_json_add(&m->json, GT_STR("status", status), GT_STR("run_name", m->job->name));
	if (strcmp(status, "RUNNING") && m->state.time > 0)
		gt_json_int(&m->json, "end_time", to_milliseconds(m->state.time));
	TRY_DONE(post_only(m, "mlflow/runs/update", err));
	snprintf(m->state.told, sizeof m->state.told, "%s", status);
	return gt_mlflow_state_write(m->job->dir, &m->state, err) ? GT_MLFLOW_AGAIN : GT_MLFLOW_DONE;
}
