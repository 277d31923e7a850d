#include "track/mlflow/mlflow_parts.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROXY "mlflow-artifacts:/"

bool gt_mlflow_takes_files(const struct gt_mlflow *m)
{
	const char *uri = m->state.artifact_uri;
	return !strncmp(uri, PROXY, strlen(PROXY)) && uri[strlen(PROXY)] != '/' && !strstr(uri, "..");
}

/* Uploads <dir>/<name> as <folder><name>. A file that does not exist is left out. */
static enum gt_mlflow_end send_file(struct gt_mlflow *m, const char *dir, const char *name, const char *folder, struct gt_err *err)
{
	char path[GT_PATH_SIZE], where[2 * GT_MLFLOW_TEXT], to[2 * GT_MLFLOW_TEXT + 200];
	struct stat st;
	uint64_t bytes;
	int fd;
	if (gt_path_join(path, dir, name, err))
		return GT_MLFLOW_NEVER;
	if (lstat(path, &st))
		return GT_MLFLOW_DONE;
	if (gt_file_open(path, &fd, &bytes, err))
		return GT_MLFLOW_NEVER;
	gt_mlflow_escape(m->state.artifact_uri + strlen(PROXY), "/", where, sizeof where);
	snprintf(to, sizeof to, "mlflow-artifacts/artifacts/%s/%s%s", where, folder, name);
	enum gt_mlflow_end end = gt_mlflow_put(m->http, to, fd, bytes, err);
	close(fd);
	return end;
}

static enum gt_mlflow_end send_files(struct gt_mlflow *m, const char *dir, const char *const *name, const char *folder, struct gt_err *err)
{
	enum gt_mlflow_end end = GT_MLFLOW_DONE;
	for (; end == GT_MLFLOW_DONE && *name; name++)
		end = send_file(m, dir, *name, folder, err);
	return end;
}

enum gt_mlflow_end gt_mlflow_send_run_files(struct gt_mlflow *m, struct gt_err *err)
{
	static const char *const names[] = {"config.cfg", "report.html", NULL};
	char now[sizeof m->state.files] = "";
	for (const char *const *name = names; *name; name++) {
		char path[GT_PATH_SIZE];
		struct stat st;
		if (!gt_path_join(path, m->job->dir, *name, NULL) && !lstat(path, &st)) /* sends a changed file again */
			snprintf(now + strlen(now), sizeof now - strlen(now), "%lld.%ld ", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
	if (!strcmp(now, m->state.files))
		return GT_MLFLOW_DONE;
	enum gt_mlflow_end end = send_files(m, m->job->dir, names, "", err);
	if (end != GT_MLFLOW_DONE)
		return end;
	memcpy(m->state.files, now, sizeof now);
	return gt_mlflow_state_write(m->job->dir, &m->state, err) ? GT_MLFLOW_AGAIN : GT_MLFLOW_DONE;
}

/* Finds the best checkpoint, or the latest checkpoint if none is marked as the best. name: a string that identifies the checkpoint and its
 * files. Returns false if there is no checkpoint. */
static bool find_model(const char *run, char *dir, char *name, size_t size)
{
	char model[GT_PATH_SIZE], target[64] = "";
	struct stat st;
	if (gt_path_join(dir, run, "best", NULL))
		return false;
	ssize_t n = readlink(dir, target, sizeof target - 1);
	if (n <= 0 && !gt_path_join(dir, run, "latest", NULL))
		n = readlink(dir, target, sizeof target - 1);
	if (n <= 0 || gt_path_join(model, dir, "model.safetensors", NULL) || stat(model, &st))
		return false;
	snprintf(name, size, "%.*s %lld", (int)n, target, (long long)st.st_mtim.tv_sec);
	return true;
}

enum gt_mlflow_end gt_mlflow_send_model(struct gt_mlflow *m, struct gt_err *err)
{
	static const char *const names[] = {"model.safetensors", "config.cfg", "data.json", NULL};
	char dir[GT_PATH_SIZE], name[sizeof m->state.model];
	if (!find_model(m->job->dir, dir, name, sizeof name) || !strcmp(name, m->state.model))
		return GT_MLFLOW_DONE;
	enum gt_mlflow_end end = send_files(m, dir, names, "model/", err);
	if (end != GT_MLFLOW_DONE)
		return end;
	memcpy(m->state.model, name, sizeof name);
	return gt_mlflow_state_write(m->job->dir, &m->state, err) ? GT_MLFLOW_AGAIN : GT_MLFLOW_DONE;
}
