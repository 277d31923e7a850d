/* For the error that a path is not a run: finds runs near this path, which the message suggests. */
#include "base/fileio.h"
#include "store/ckpt_scan.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FOUND 64
#define MAX_SEEN 2000 /* maximum number of directory entries to examine, so that a large directory takes no noticeable time */
#define SHOWN 4

struct found {
	char path[MAX_FOUND][256];
	struct timespec changed[MAX_FOUND];
	int n;
};

/* Returns whether dir is the directory of a run: it has a symlink to the latest checkpoint. */
static bool is_run_dir(const char *dir)
{
	int64_t step;
	return gt_ckpt_link_step(dir, "latest", &step, NULL) == GT_OK && step >= 0;
}

/* Adds the directories in dir that are runs to f. shown: how the message writes dir, with a slash at the end. */
static void find_runs(const char *dir, const char *shown, struct found *f)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	for (int seen = 0; d && f->n < MAX_FOUND && seen < MAX_SEEN && (e = readdir(d)); seen++) {
		char path[GT_PATH_SIZE], *to = f->path[f->n];
		struct stat st;
		if (e->d_name[0] == '.' || gt_path_join(path, dir, e->d_name, NULL) || stat(path, &st) || !S_ISDIR(st.st_mode) || !is_run_dir(path))
			continue;
		if (snprintf(to, sizeof *f->path, "%s%s", shown, e->d_name) >= (int)sizeof *f->path)
			continue;
		bool known = false;
		for (int i = 0; i < f->n; i++)
			known |= !strcmp(f->path[i], to);
		f->changed[f->n] = st.st_mtim;
		f->n += !known;
	}
	if (d)
		closedir(d);
}

static bool is_newer(const struct found *f, int a, int b)
{
	if (f->changed[a].tv_sec != f->changed[b].tv_sec)
		return f->changed[a].tv_sec > f->changed[b].tv_sec;
	if (f->changed[a].tv_nsec != f->changed[b].tv_nsec)
		return f->changed[a].tv_nsec > f->changed[b].tv_nsec;
	return strcmp(f->path[a], f->path[b]) < 0;
}

const char *gt_ckpt_near(const char *path, char *buf, size_t size)
{
	struct found *f = calloc(1, sizeof *f);
	char parent[GT_PATH_SIZE], shown[GT_PATH_SIZE + 2];
	size_t n = 0;
	*buf = 0;
	if (!f)
		return buf;
	snprintf(shown, sizeof shown, "%s%s", path, *path && path[strlen(path) - 1] == '/' ? "" : "/");
	find_runs(path, shown, f);
	if (!f->n && gt_path_parent(parent, path, NULL) == GT_OK && strcmp(parent, ".")) {
		snprintf(shown, sizeof shown, "%s%s", parent, strcmp(parent, "/") ? "/" : "");
		find_runs(parent, shown, f);
	}
	if (!f->n) {
		find_runs("runs", "runs/", f);
		find_runs(".", "", f);
	}
	for (int i = 0; i < SHOWN && i < f->n && n < size; i++) { /* the newest runs */
		int next = -1;
		for (int k = 0; k < f->n; k++)
			if (*f->path[k] && (next < 0 || is_newer(f, k, next)))
				next = k;
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ", " : "; runs in nearby directories: ", f->path[next]);
		*f->path[next] = 0;
	}
	if (f->n > SHOWN && n < size)
		snprintf(buf + n, size - n, " and %d more", f->n - SHOWN);
	if (!f->n)
		snprintf(buf, size, "; `gtrain run CFG` writes such a directory: checkpoint.dir of CFG, or --out DIR");
	free(f);
	return buf;
}
