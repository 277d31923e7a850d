#include "track/mlflow/mlflow_parts.h"
#include "base/json_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME "mlflow.json"
#define FILE_BYTES ((size_t)64 << 10)

/* Applies X to each member of struct gt_mlflow_state that is a string; mlflow.json has a member of the same name. */
#define TEXTS(X) X(uri) X(experiment) X(experiment_id) X(run_id) X(artifact_uri) X(key) X(status) X(told) X(files) X(model)

/* Copies member `name` to buf. Returns false if it is missing or too long. */
static bool take_text(const struct gt_json_value *o, const char *name, char *buf, size_t size)
{
	const char *text = gt_json_text(gt_json_member(o, name));
	return text && (size_t)snprintf(buf, size, "%s", text) < size;
}

/* Returns the name of the first wrong member; NULL: all members are correct. */
static const char *take_members(const struct gt_json_value *o, struct gt_mlflow_state *s)
{
#define X(member)                                                   \
	if (!take_text(o, #member, s->member, sizeof s->member))        \
		return #member;
	TEXTS(X)
#undef X
	s->creating = gt_json_true(o, "creating");
	s->described = gt_json_true(o, "described");
	s->time = gt_json_num(o, "time");
	if (!(s->time >= 0))
		return "time";
	return gt_json_whole(gt_json_member(o, "offset"), &s->offset) ? NULL : "offset";
}

static enum gt_code parse_state(const char *path, const char *text, size_t n, struct gt_mlflow_state *s, struct gt_err *err)
{
	const struct gt_json_value *o;
	struct gt_arena *a;
	GT_TRY(gt_arena_open(&a, err));
	enum gt_code code = gt_json_parse(text, n, path, 2, 100, a, &o, err);
	const char *wrong = code ? NULL : take_members(o, s);
	gt_arena_close(a);
	if (code == GT_OK && wrong)
		code = gt_fail(err, GT_EDATA, "%s: the member %s is missing or wrong", path, wrong);
	if (code == GT_EDATA)
		gt_fail_suffix(err, "remove the file to send the run to MLflow once more, as a new run");
	return code;
}

enum gt_code gt_mlflow_state_read(const struct gt_mlflow_job *job, struct gt_mlflow_state *s, struct gt_err *err)
{
	char path[GT_PATH_SIZE], *text, nonce[2][GT_NONCE_SIZE];
	struct stat st;
	size_t n;
	*s = (struct gt_mlflow_state){0};
	GT_TRY(gt_path_join(path, job->dir, NAME, err));
	if (!lstat(path, &st)) {
		GT_TRY(gt_file_read(path, FILE_BYTES, &text, &n, err));
		enum gt_code code = parse_state(path, text, n, s, err);
		free(text);
		GT_TRY(code);
		if (!strcmp(s->uri, job->uri) && !strcmp(s->experiment, job->experiment))
			return GT_OK;
	}
	*s = (struct gt_mlflow_state){0};
	snprintf(s->uri, sizeof s->uri, "%s", job->uri);
	snprintf(s->experiment, sizeof s->experiment, "%s", job->experiment);
	gt_nonce(nonce[0]);
	gt_nonce(nonce[1]);
	snprintf(s->key, sizeof s->key, "%s%s", nonce[0], nonce[1]);
	return GT_OK;
}

enum gt_code gt_mlflow_state_write(const char *dir, const struct gt_mlflow_state *s, struct gt_err *err)
{
	struct gt_json j = {0};
	gt_json_object(&j, NULL);
#define X(member) gt_json_string(&j, #member, s->member);
	TEXTS(X)
#undef X
	gt_json_add(&j, GT_BOOL("creating", s->creating), GT_BOOL("described", s->described), GT_INT("offset", s->offset),
	            GT_NUM("time", s->time, 17));
	gt_json_end(&j);
	return gt_json_save(&j, dir, NAME, err);
}
