#include "train/run_end.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include "base/shell_word.h"
#include "store/ckpt_scan.h"
#include "train/metrics.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "metrics.jsonl"
#define TAIL_BYTES ((size_t)1 << 16) /* bytes at the end of the file in which the last line is searched */

static const char *failure_status(enum gt_code code, char *buf, size_t size)
{
	if (code == GT_EDIVERGED)
		snprintf(buf, size, "diverged");
	else
		snprintf(buf, size, code > 128 ? "signal %d" : "error %d", code > 128 ? (int)code - 128 : (int)code);
	return buf;
}

void gt_run_end_failed(struct gt_trainer *t, enum gt_code code, struct gt_err *err)
{
	char status[32], word[GT_PATH_SIZE];
	struct gt_event ev = {.text = failure_status(code, status, sizeof status), .code = code, .why = err->msg};
	if (t->started)
		gt_trainer_end(t, &ev, NULL);
	bool full = code == GT_EIO && (err->sys_errno == ENOSPC || err->sys_errno == EDQUOT);
	if (full && t->dir && t->dir->serial > 0)
		gt_fail_suffix(err, "once there is space, `gtrain resume %.300s` continues the run from its last checkpoint",
		               gt_shell_word(t->dir->path, word, sizeof word));
}

/* ---- an end that the ranks did not write ---------------------------------------------------------------------------------------- */
ino_t gt_run_log_inode(const char *dir)
{
	char path[GT_PATH_SIZE];
	struct stat st;
	return gt_path_join(path, dir, NAME, NULL) || lstat(path, &st) ? 0 : st.st_ino;
}

/* Parses the last line of the file, which must end with a newline. Returns NULL if the line is no event. */
static const struct gt_json_value *read_last_event(int fd, const char *path, struct gt_arena *a)
{
	struct stat st;
	struct gt_err why;
	const struct gt_json_value *o;
	char *tail = gt_arena_alloc(a, TAIL_BYTES, 1);
	size_t n = fstat(fd, &st) || st.st_size > (off_t)TAIL_BYTES ? TAIL_BYTES : (size_t)st.st_size;
	if (!tail || n < 2 || gt_file_pread(fd, path, tail, n, (uint64_t)st.st_size - n, &why) || tail[n - 1] != '\n')
		return NULL;
	const char *before = memrchr(tail, '\n', n - 1), *line = before ? before + 1 : tail;
	return gt_json_parse(line, (size_t)(tail + n - 1 - line), path, 4, 4096, a, &o, &why) ? NULL : o;
}

/* Returns whether the event says how the run ended. An event of a rank that only lost its peer (GT_EPEER) does not say so. */
static bool tells_end(const struct gt_json_value *o)
{
	char lost[32];
	return !strcmp(gt_json_str(o, "event"), "end") &&
	       strcmp(gt_json_str(o, "status"), failure_status(GT_EPEER, lost, sizeof lost)) != 0;
}

/* Appends END after the event `last`, with its step and epoch. */
static void append_end(int fd, const char *path, const struct gt_json_value *last, enum gt_code code, const char *why)
{
	char status[32];
	struct gt_json j = {0};
	struct gt_err err;
	struct gt_event ev = {.kind = GT_EV_END, .text = failure_status(code, status, sizeof status), .code = code, .why = why};
	ev.step = gt_json_count(last, "step");
	ev.epoch = gt_json_count(last, "epoch");
	ev.epoch = ev.epoch < 0 ? 0 : ev.epoch;
	if (gt_metrics_write(NULL, &j, &ev, &err) == GT_OK) {
		gt_json_line(&j);
		if (!j.no_memory)
			gt_file_write(fd, path, j.text, j.len, &err);
	}
	gt_json_free(&j);
}

void gt_run_end_add(const char *dir, ino_t before, enum gt_code code, const char *why)
{
	char path[GT_PATH_SIZE];
	struct gt_arena *a = NULL;
	ino_t now = gt_run_log_inode(dir);
	if (!*dir || !now || now == before || gt_path_join(path, dir, NAME, NULL) || gt_arena_open(&a, NULL))
		return;
	int fd = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const struct gt_json_value *last = fd < 0 ? NULL : read_last_event(fd, path, a);
	if (last && !tells_end(last))
		append_end(fd, path, last, code, why);
	if (fd >= 0)
		close(fd);
	gt_arena_close(a);
}

/* ---- a run that needs no session ------------------------------------------------------------------------------------------------ */
/* Returns whether the last line says that the run is complete. */
static bool says_complete(const char *dir)
{
	char path[GT_PATH_SIZE];
	struct gt_arena *a = NULL;
	const struct gt_json_value *last = NULL;
	bool ready = !gt_path_join(path, dir, NAME, NULL) && !gt_arena_open(&a, NULL);
	int fd = ready ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd >= 0) {
		last = read_last_event(fd, path, a);
		close(fd);
	}
	const char *status = last && !strcmp(gt_json_str(last, "event"), "end") ? gt_json_str(last, "status") : "";
	bool complete = !strcmp(status, "ok") || !strcmp(status, "early stop");
	gt_arena_close(a);
	return complete;
}

static enum gt_code write_end(struct gt_metrics_file *m, const struct gt_conf *c, const struct gt_ckpt_meta *at, const char *status,
                              struct gt_err *err)
{
	struct gt_json j = {0};
	struct gt_event ev = {.kind = GT_EV_END, .step = at->step, .steps = at->step, .epoch = at->epoch + (at->cursor > 0), .text = status};
	ev.epochs = c->train.steps > 0 ? 0 : c->train.epochs;
	enum gt_code code = gt_metrics_write(m, &j, &ev, err);
	gt_json_free(&j);
	return code;
}

static enum gt_code record_in_dir(struct gt_ckpt_dir *d, const char *dir, const struct gt_conf *c, const struct gt_ckpt *from,
                                  const char *status, struct gt_err *err)
{
	char back[GT_PATH_SIZE + 512], config[GT_PATH_SIZE];
	struct gt_metrics_file *m;
	int64_t next, damaged;
	GT_TRY(gt_ckpt_dir_continue(d, from, &next, back, sizeof back, err));
	if (next) /* the directory has checkpoints after `from`, whose lines must stay in the log */
		return GT_OK;
	GT_TRY(gt_path_join(config, dir, "config.cfg", err));
	GT_TRY(gt_metrics_open(&(struct gt_metrics_spec){.dir = dir, .resume_step = gt_ckpt_meta(from)->step}, &m, &damaged, err));
	enum gt_code code = write_end(m, c, gt_ckpt_meta(from), status, err), closed = gt_metrics_close(m, code == GT_OK ? err : NULL);
	GT_TRY(code == GT_OK ? closed : code);
	return gt_file_replace(config, 0666, c->text, strlen(c->text), err);
}

enum gt_code gt_run_end_record(const char *dir, const struct gt_conf *c, const struct gt_ckpt *from, const char *status,
                               struct gt_err *err)
{
	struct gt_ckpt_dir *d;
	if (says_complete(dir))
		return GT_OK;
	GT_TRY(gt_ckpt_dir_open(dir, &d, err));
	enum gt_code code = record_in_dir(d, dir, c, from, status, err);
	gt_ckpt_dir_close(d);
	return code;
}
