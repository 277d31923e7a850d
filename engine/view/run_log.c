#include "view/run_log.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES ((size_t)1 << 20) /* much longer than any line of gtrain */
#define ARENA_BYTES ((size_t)1 << 20)    /* memory of parsed lines, after which it is freed */

const char *const gt_run_splits[3] = {"train", "valid", "test"};

struct reading {
	struct gt_run_record *r;
	struct gt_arena *keep;  /* memory of the record */
	struct gt_arena *lines; /* memory of the parsed lines */
	const char *path;
	char *line;             /* LINE_MAX_BYTES + 1 */
	size_t n;
	bool too_long;
};

static void take_scores(double *to, const struct gt_json_value *o)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++)
		to[i] = gt_json_num(o, gt_score_rows[i].word);
}

static int split_index(const char *name)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(gt_run_splits[i], name))
			return i;
	return -1;
}

static enum gt_code take_event(struct reading *t, const struct gt_json_value *o, const char *event, int64_t step, struct gt_err *err)
{
	struct gt_run_record *r = t->r;
	int64_t n;
	int split = split_index(gt_json_str(o, "split"));
	r->step = step;
	r->state = NULL;
	if (gt_json_whole(gt_json_member(o, "epoch"), &n))
		r->epoch = n;
	if (!isnan(gt_json_num(o, "time")))
		r->changed = gt_json_num(o, "time");
	if (!strcmp(event, "start")) {
		r->steps = gt_json_whole(gt_json_member(o, "steps"), &n) ? n : 0;
		r->epochs = gt_json_whole(gt_json_member(o, "epochs"), &n) ? n : 0;
	} else if (!strcmp(event, "epoch")) {
		take_scores(r->last[0], o);
	} else if (!strcmp(event, "eval") && split >= 0) {
		take_scores(r->last[split], o);
	} else if (!strcmp(event, "end")) {
		const char *status = gt_json_str(o, "status");
		GT_NEW_STR(r->state, gt_arena_strdup(t->keep, !strcmp(status, "ok") ? "complete" : status), err);
	}
	return GT_OK;
}

/* Handles a complete line without its newline. */
static enum gt_code take_line(struct reading *t, struct gt_err *err)
{
	const struct gt_json_value *o = NULL;
	struct gt_err why = {0};
	int64_t step;
	if (gt_arena_bytes(t->lines) > ARENA_BYTES) {
		gt_arena_close(t->lines);
		t->lines = NULL;
		GT_TRY(gt_arena_open(&t->lines, err));
	}
	enum gt_code code = t->too_long ? GT_EDATA : gt_json_parse(t->line, t->n, t->path, 4, 4096, t->lines, &o, &why);
	if (code == GT_EFAIL) { /* out of memory: the line may be correct */
		*err = why;
		return code;
	}
	const char *event = gt_json_text(gt_json_member(o, "event"));
	if (!code && event && gt_json_whole(gt_json_member(o, "step"), &step))
		return take_event(t, o, event, step, err);
	t->r->damaged++;
	return GT_OK;
}

static enum gt_code take_piece(void *user, const void *data, size_t n, struct gt_err *err)
{
	struct reading *t = user;
	for (const char *p = data, *end = p + n; p < end; p++) {
		if (*p == '\n') {
			GT_TRY(take_line(t, err));
			t->n = 0;
			t->too_long = false;
		} else if (t->n < LINE_MAX_BYTES) {
			t->line[t->n++] = *p;
		} else {
			t->too_long = true;
		}
	}
	return GT_OK;
}

enum gt_code gt_run_log_read(const char *dir, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	uint64_t bytes;
	int fd;
	struct reading t = {.r = r, .keep = a, .path = path};
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < GT_SCORE_COUNT; k++)
			r->last[i][k] = NAN;
	GT_TRY(gt_path_join(path, dir, "metrics.jsonl", err));
	GT_TRY(gt_file_open(path, &fd, &bytes, err));
	enum gt_code code = gt_arena_open(&t.lines, err);
	if (code == GT_OK && !(t.line = malloc(LINE_MAX_BYTES + 1)))
		code = gt_fail_memory(err, LINE_MAX_BYTES + 1);
	if (code == GT_OK)
		code = gt_file_each(fd, path, bytes, take_piece, &t, err);
	close(fd);
	free(t.line);
	gt_arena_close(t.lines);
	return code;
}
