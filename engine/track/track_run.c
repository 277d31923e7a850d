#include "base/arena.h"
#include "base/fileio.h"
#include "base/plugin.h"
#include "base/shell_word.h"
#include "conf/conf.h"
#include "gtrain_track.h"
#include "track/mlflow.h"
#include "track/tracker.h"
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONFIG_BYTES ((size_t)16 << 20)
#define NICENESS 10 /* niceness of a helper process */

struct params {
	struct gt_arena *arena;
	struct gt_mlflow_pair *v;
	int n, cap;
	enum gt_code code;
};

/* Adds a key of the config as a parameter, except the keys of checkpoint and log, which only set the output of a run. */
static void add_param(void *user, const char *path, const char *text)
{
	struct params *p = user;
	struct gt_err why;
	if (p->code || !*text || !strncmp(path, "checkpoint.", 11) || !strncmp(path, "log.", 4) || !strcmp(path, "schema"))
		return;
	p->code = gt_arena_grow(p->arena, &p->v, p->n, &p->cap, sizeof *p->v, &why);
	char *copy = p->code ? NULL : gt_arena_strdup(p->arena, text);
	if (copy)
		p->v[p->n++] = (struct gt_mlflow_pair){path, copy};
	else
		p->code = GT_EFAIL;
}

static enum gt_code load_config(const char *dir, const struct gt_track_opts *o, struct gt_conf **out, struct gt_err *err)
{
	char path[GT_PATH_SIZE], log[GT_PATH_SIZE], *text;
	size_t n;
	*out = NULL;
	GT_TRY(gt_path_join(log, dir, "metrics.jsonl", err));
	GT_TRY(gt_path_join(path, dir, "config.cfg", err));
	if (access(log, R_OK) || access(path, R_OK))
		return gt_fail(err, GT_ENOINPUT, "%.600s: expected the directory of a run, with config.cfg and metrics.jsonl", dir);
	GT_TRY(gt_file_read(path, CONFIG_BYTES, &text, &n, err));
	enum gt_code code = gt_conf_load_resolved(path, text, n, o->sets, o->nsets, out, err);
	free(text);
	if (code == GT_OK && !*(*out)->log.mlflow.uri)
		code = gt_conf_refuse(*out, "log.mlflow.uri", err, "expected the address of an MLflow server, got \"\"; add -s "
		                      "log.mlflow.uri=http://HOST:PORT");
	return code;
}

/* Prepares this process to work beside a run: it ignores the signals that end the run, because it ends at the end of its standard input,
 * and has a low priority. */
static void stand_beside_run(void)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	setpriority(PRIO_PROCESS, 0, NICENESS);
}

/* Writes the arguments with which `gtrain track` sends the run to the same server: the directory and the settings of this call. */
static void write_arguments(const char *dir, const struct gt_track_opts *o, char *buf, size_t size)
{
	char word[512];
	size_t n = (size_t)snprintf(buf, size, "%s", gt_shell_word(dir, word, sizeof word));
	for (int i = 0; i < o->nsets && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, " -s %s", gt_shell_word(o->sets[i], word, sizeof word));
}

/* Adds the number of remaining events, and the command that sends them, to the error of the server. */
static enum gt_code explain_rest(const char *dir, const struct gt_track_opts *o, const struct gt_mlflow_result *r, enum gt_code code,
                                 struct gt_err *err)
{
	char args[1024], reason[sizeof err->msg];
	memcpy(reason, err->msg, sizeof reason);
	write_arguments(dir, o, args, sizeof args);
	if (code == GT_EIO && r->left)
		gt_fail(err, code, "MLflow did not get %lld events: %.900s; `gtrain track %s` sends them", (long long)r->left, reason, args);
	else if (code == GT_EIO)
		gt_fail(err, code, "MLflow has all events, but not the rest: %.900s; `gtrain track %s` sends it", reason, args);
	return code;
}

/* Writes the name of the run for the server: the name in its config, and the name of its directory if that is different, as for the trials
 * of a sweep. Returns buf. */
static const char *name_run(const struct gt_conf *c, const char *dir, char *buf, size_t size)
{
	char path[PATH_MAX];
	const char *last = realpath(dir, path) ? strrchr(path, '/') : NULL;
	bool same = !last || !strcmp(last + 1, c->name);
	snprintf(buf, size, same ? "%s" : "%s (%s)", c->name, same ? "" : last + 1);
	return buf;
}

static enum gt_code send_run(const struct gt_conf *c, const char *dir, const struct gt_track_opts *o, struct gt_mlflow_result *r,
                             struct gt_err *err)
{
	struct params params = {.arena = c->arena};
	char name[PATH_MAX];
	void *symbol;
	gt_conf_each_value(c, add_param, &params);
	if (params.code)
		return gt_fail_memory(err, 0);
	GT_TRY(gt_plugin_open("mlflow", GT_MLFLOW_SYMBOL, &symbol, err));
	const struct gt_mlflow_plugin *plugin = symbol;
	if (plugin->abi != GT_MLFLOW_ABI)
		return gt_fail(err, GT_EUNAVAILABLE, "the mlflow plugin has version %u, but this gtrain needs %u: install both from one build",
		               plugin->abi, GT_MLFLOW_ABI);
	struct gt_mlflow_job job = {.dir = dir,
	                            .uri = c->log.mlflow.uri,
	                            .experiment = c->log.mlflow.experiment,
	                            .name = name_run(c, dir, name, sizeof name),
	                            .artifacts = c->log.mlflow.artifacts,
	                            .param = params.v,
	                            .nparams = params.n,
	                            .until = o->follow ? STDIN_FILENO : -1,
	                            .wait_s = GT_TRACKER_WAIT_S,
	                            .say = o->say,
	                            .user = o->user};
	return explain_rest(dir, o, r, plugin->send(&job, r, err), err);
}

enum gt_code gt_track(const char *dir, const struct gt_track_opts *o, struct gt_track_result *out, struct gt_err *err)
{
	struct gt_conf *c;
	struct gt_mlflow_result r = {0};
	*out = (struct gt_track_result){0};
	if (o->follow)
		stand_beside_run();
	enum gt_code code = load_config(dir, o, &c, err);
	if (code == GT_OK)
		code = send_run(c, dir, o, &r, err);
	memcpy(out->run_id, r.run_id, sizeof out->run_id);
	memcpy(out->url, r.url, sizeof out->url);
	out->sent = r.sent;
	out->left = r.left;
	out->complete = r.complete;
	gt_conf_free(c);
	return code;
}
