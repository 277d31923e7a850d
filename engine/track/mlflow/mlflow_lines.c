#include "base/scores.h"
#include "track/mlflow/mlflow_parts.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "metrics.jsonl"
#define LINE_BYTES ((size_t)1 << 20) /* much longer than any line of gtrain */
#define PIECE_BYTES ((size_t)1 << 18)
#define MAX_METRICS 900   /* MLflow takes at most 1000 metrics, parameters and tags in a call */
#define MAX_BODY 900000   /* and 1 MB */

struct reading {
	const struct gt_mlflow_state *s;
	struct gt_mlflow_batch *b;
	struct gt_json *j;
	struct gt_arena *a;
	bool rewritten; /* the log was rewritten: skip lines up to gt_mlflow_state.time, which were sent before */
};

/* Reads n bytes at an offset, or up to the end of the file. Returns the number of bytes. */
static size_t read_at(int fd, char *buf, size_t n, int64_t offset)
{
	size_t have = 0;
	ssize_t got = 1;
	while (have < n && (got = pread(fd, buf + have, n - have, offset + (int64_t)have)) > 0)
		have += (size_t)got;
	return have;
}

/* ---- one line ------------------------------------------------------------------------------------------------------------------- */
static void put_metric(struct reading *r, const char *group, const char *name, double value, int64_t step)
{
	char key[96];
	if (!isfinite(value))
		return;
	snprintf(key, sizeof key, "%s/%s", group, name);
	gt_json_row(r->j, NULL, GT_STR("key", key), GT_NUM("value", value, 17), GT_INT("timestamp", llround(1000 * r->b->time)),
	            GT_INT("step", step));
	r->b->metrics++;
}

/* Adds the scores and other numeric members of a line as metrics. */
static void put_scores(struct reading *r, const char *group, const struct gt_json_value *o, int64_t step)
{
	static const char *const others[] = {"lr", "samples_per_s", "loss_scale"};
	for (int i = 0; i < GT_SCORE_COUNT; i++)
		put_metric(r, group, gt_score_rows[i].word, gt_json_num(o, gt_score_rows[i].word), step);
	for (size_t i = 0; i < sizeof others / sizeof *others && !strcmp(group, "train"); i++)
		put_metric(r, group, others[i], gt_json_num(o, others[i]), step);
}

static void put_end(struct reading *r, const struct gt_json_value *o)
{
	const struct gt_json_value *best = gt_json_member(o, "best");
	snprintf(r->b->status, sizeof r->b->status, "%s", gt_json_str(o, "status"));
	if (best)
		put_metric(r, "best", gt_json_str(best, "metric"), gt_json_num(best, "value"), gt_json_count(best, "step"));
}

static void put_event(struct reading *r, const struct gt_json_value *o, const char *event, int64_t step)
{
	struct gt_mlflow_batch *b = r->b;
	if (!strcmp(event, "start")) {
		*b->status = '\0';
		snprintf(b->note, sizeof b->note, "%s", gt_json_str(o, "text"));
	} else if (!strcmp(event, "train")) {
		put_scores(r, "train", o, step);
	} else if (!strcmp(event, "epoch")) {
		put_scores(r, "train_epoch", o, step);
	} else if (!strcmp(event, "eval")) {
		put_scores(r, gt_json_str(o, "split"), o, step);
	} else if (!strcmp(event, "end")) {
		put_end(r, o);
	}
}

/* Handles a complete line. A line that is not an event is skipped. */
static enum gt_code take_line(struct reading *r, const char *line, size_t n, struct gt_err *err)
{
	const struct gt_json_value *o = NULL;
	struct gt_err why = {0};
	int64_t step;
	enum gt_code code = gt_json_parse(line, n, NAME, 4, 4096, r->a, &o, &why);
	if (code == GT_EFAIL) /* parsing ran out of memory, so the line may be correct and must not be skipped */
		return gt_fail_copy(err, &why);
	double time = code ? NAN : gt_json_num(o, "time");
	const char *event = gt_json_text(gt_json_member(o, "event"));
	if (code || !event || !gt_json_whole(gt_json_member(o, "step"), &step) || !(time > 0) || (r->rewritten && time <= r->s->time))
		return GT_OK;
	r->b->time = time;
	r->b->lines++;
	put_event(r, o, event, step);
	return GT_OK;
}

/* Handles the complete lines of a piece of the log, until the batch is full. */
static enum gt_code take_lines(struct reading *r, const char *piece, size_t n, struct gt_err *err)
{
	const char *p = piece, *nl;
	while (r->b->metrics < MAX_METRICS && r->j->len < MAX_BODY && (nl = memchr(p, '\n', n - (size_t)(p - piece)))) {
		GT_TRY(take_line(r, p, (size_t)(nl - p), err));
		p = nl + 1;
	}
	r->b->offset += p - piece;
	return GT_OK;
}

/* ---- the log -------------------------------------------------------------------------------------------------------------------- */
/* Returns whether the log was rewritten: it ends before the offset in the state, or the last sent line is not before this offset. */
static bool is_rewritten(int fd, const struct gt_mlflow_state *s, char *buf, struct gt_arena *a)
{
	const struct gt_json_value *o;
	struct gt_err why;
	size_t want = s->offset < (int64_t)PIECE_BYTES ? (size_t)s->offset : PIECE_BYTES;
	if (!s->offset || !(s->time > 0))
		return false;
	if (read_at(fd, buf, want, s->offset - (int64_t)want) < want || buf[want - 1] != '\n')
		return true;
	const char *line = want > 1 ? memrchr(buf, '\n', want - 1) : NULL;
	line = line ? line + 1 : buf;
	return gt_json_parse(line, (size_t)(buf + want - 1 - line), NAME, 4, 4096, a, &o, &why) || gt_json_num(o, "time") != s->time;
}

static enum gt_code read_lines(struct reading *r, int fd, struct gt_err *err)
{
	char *buf = malloc(LINE_BYTES);
	if (!buf)
		return gt_fail_memory(err, LINE_BYTES);
	r->rewritten = is_rewritten(fd, r->s, buf, r->a);
	if (r->rewritten)
		r->b->offset = 0;
	enum gt_code code = GT_OK;
	for (int64_t before = -1; code == GT_OK && r->b->offset != before && r->b->metrics < MAX_METRICS && r->j->len < MAX_BODY;) {
		before = r->b->offset;
		size_t n = read_at(fd, buf, PIECE_BYTES, before);
		if (n == PIECE_BYTES && !memchr(buf, '\n', n))
			n = read_at(fd, buf, LINE_BYTES, before);
		if (n == LINE_BYTES && !memchr(buf, '\n', n))
			r->b->offset += (int64_t)n; /* a line longer than LINE_BYTES is no event, so these bytes are skipped */
		else
			code = take_lines(r, buf, n, err);
	}
	free(buf);
	return code;
}

enum gt_code gt_mlflow_batch_read(const char *dir, const struct gt_mlflow_state *s, struct gt_json *j, struct gt_mlflow_batch *out,
                                  struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	struct reading r = {.s = s, .b = out, .j = j};
	uint64_t bytes;
	int fd;
	*out = (struct gt_mlflow_batch){.offset = s->offset, .time = s->time};
	snprintf(out->status, sizeof out->status, "%s", s->status);
	GT_TRY(gt_path_join(path, dir, NAME, err));
	GT_TRY(gt_file_open(path, &fd, &bytes, err));
	gt_json_array(j, "metrics");
	enum gt_code code = gt_arena_open(&r.a, err);
	if (code == GT_OK)
		code = read_lines(&r, fd, err);
	gt_arena_close(r.a);
	gt_json_end(j);
	close(fd);
	return code;
}

int64_t gt_mlflow_lines_left(const char *dir, const struct gt_mlflow_state *state)
{
	struct gt_mlflow_state s = *state;
	struct gt_mlflow_batch b = {.lines = 1};
	struct gt_err why;
	struct gt_json j = {0};
	int64_t n = 0;
	while (b.lines) {
		gt_json_reset(&j);
		gt_json_object(&j, NULL);
		if (gt_mlflow_batch_read(dir, &s, &j, &b, &why) != GT_OK)
			break;
		n += b.lines;
		s.offset = b.offset;
		s.time = b.time;
	}
	gt_json_free(&j);
	return n;
}

double gt_mlflow_first_time(const char *dir)
{
	char path[GT_PATH_SIZE], line[8192];
	const struct gt_json_value *o = NULL;
	struct gt_arena *a;
	struct gt_err why;
	uint64_t bytes;
	double time = NAN;
	int fd;
	if (gt_path_join(path, dir, NAME, &why) || gt_file_open(path, &fd, &bytes, &why))
		return NAN;
	char *end = memchr(line, '\n', read_at(fd, line, sizeof line, 0));
	if (end && gt_arena_open(&a, &why) == GT_OK) {
		if (gt_json_parse(line, (size_t)(end - line), path, 4, 4096, a, &o, &why) == GT_OK)
			time = gt_json_num(o, "time");
		gt_arena_close(a);
	}
	close(fd);
	return time;
}
