#include "view/run_lines.h"
#include "base/fileio.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)1 << 20) /* much longer than any line of gtrain */
#define ARENA_BYTES ((size_t)1 << 20)    /* the memory of parsed lines is freed when it is larger */
#define PIECE_BYTES ((size_t)1 << 16)

struct gt_run_lines {
	char path[GT_PATH_SIZE];
	int fd;
	uint64_t at;            /* number of bytes read from the file so far */
	struct gt_arena *arena; /* memory of the parsed lines */
	char *line;             /* [LINE_MAX_BYTES + 1] the beginning of the next line */
	char *piece;            /* [PIECE_BYTES] */
	size_t n;
	bool too_long;
	int64_t damaged;
};

enum gt_code gt_run_lines_open(const char *dir, struct gt_run_lines **out, struct gt_err *err)
{
	uint64_t bytes;
	struct gt_run_lines *l;
	*out = NULL;
	GT_CALLOC(l, 1, err);
	l->fd = -1;
	enum gt_code code = gt_path_join(l->path, dir, "metrics.jsonl", err);
	if (!code)
		code = gt_file_open(l->path, &l->fd, &bytes, err);
	if (!code)
		code = gt_arena_open(&l->arena, err);
	if (!code && (!(l->line = malloc(LINE_MAX_BYTES + 1)) || !(l->piece = malloc(PIECE_BYTES))))
		code = gt_fail_memory(err, LINE_MAX_BYTES + 1);
	if (code)
		gt_run_lines_close(l);
	else
		*out = l;
	return code;
}

void gt_run_lines_close(struct gt_run_lines *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	free(l->line);
	free(l->piece);
	gt_arena_close(l->arena);
	free(l);
}

int64_t gt_run_lines_damaged(const struct gt_run_lines *l)
{
	return l->damaged;
}

bool gt_run_lines_replaced(const struct gt_run_lines *l)
{
	struct stat now, then;
	return stat(l->path, &now) || fstat(l->fd, &then) || now.st_ino != then.st_ino || now.st_dev != then.st_dev ||
	       (uint64_t)then.st_size < l->at;
}

/* Handles a complete line without its newline. */
static enum gt_code take_line(struct gt_run_lines *l, gt_run_event_fn *fn, void *user, struct gt_err *err)
{
	const struct gt_json_value *o = NULL;
	struct gt_err why = {0};
	int64_t step;
	if (gt_arena_bytes(l->arena) > ARENA_BYTES) {
		gt_arena_close(l->arena);
		l->arena = NULL;
		GT_TRY(gt_arena_open(&l->arena, err));
	}
	enum gt_code code = l->too_long ? GT_EDATA : gt_json_parse(l->line, l->n, l->path, 4, 4096, l->arena, &o, &why);
	if (code == GT_EFAIL) /* parsing ran out of memory, so the line may be correct and does not count as damaged */
		return gt_fail(err, code, "%s", why.msg);
	const char *event = gt_json_text(gt_json_member(o, "event"));
	if (!code && event && gt_json_whole(gt_json_member(o, "step"), &step))
		return fn(user, o, event, step, err);
	l->damaged++;
	return GT_OK;
}

static enum gt_code take_piece(struct gt_run_lines *l, size_t n, gt_run_event_fn *fn, void *user, struct gt_err *err)
{
	for (const char *p = l->piece, *end = p + n; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((newline ? newline : end) - p), room = LINE_MAX_BYTES - l->n;
		l->too_long |= len > room;
		memcpy(l->line + l->n, p, len < room ? len : room);
		l->n += len < room ? len : room;
		p += len + 1;
		if (!newline)
			break;
		GT_TRY(take_line(l, fn, user, err));
		l->n = 0;
		l->too_long = false;
	}
	return GT_OK;
}

enum gt_code gt_run_lines_read(struct gt_run_lines *l, gt_run_event_fn *fn, void *user, struct gt_err *err)
{
	struct stat st;
	if (fstat(l->fd, &st))
		return gt_fail(err, GT_EIO, "%s: cannot read the size of this file", l->path);
	for (uint64_t end = (uint64_t)st.st_size; l->at < end;) {
		size_t n = end - l->at < PIECE_BYTES ? (size_t)(end - l->at) : PIECE_BYTES;
		GT_TRY(gt_file_pread(l->fd, l->path, l->piece, n, l->at, err));
		l->at += n;
		GT_TRY(take_piece(l, n, fn, user, err));
	}
	return GT_OK;
}
