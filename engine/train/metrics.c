#include "train/metrics.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include "store/ckpt.h"
#include "train/logfile.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME "metrics.jsonl"
#define LINE_MAX_BYTES (1 << 20) /* much longer than any line of gtrain */
#define ARENA_BYTES ((size_t)1 << 20)

struct gt_metrics_file {
	struct gt_logfile *log;
};

/* ---- kept lines of an older file ---------------------------------------------------------------------------------------------- */

struct copy {
	const struct gt_metrics_spec *spec;
	const char *path;
	struct gt_logfile *to;
	char *line; /* LINE_MAX_BYTES + 1 */
	size_t n;
	bool too_long;
	int64_t damaged;
	struct gt_arena *arena; /* memory of the values of parsed lines */
};

/* Returns whether the resumed run writes the line anew, because it makes the evaluation of its first step. */
static bool is_written_again(const struct gt_metrics_spec *s, const char *event, int64_t step)
{
	return s->evaluates && step == s->resume_step && (!strcmp(event, "eval") || !strcmp(event, "checkpoint"));
}

/* Handles a complete line without its newline: keeps, drops or counts it. */
static enum gt_code take_line(struct copy *c, struct gt_err *err)
{
	struct gt_err why = {0};
	const struct gt_json_value *o = NULL;
	int64_t step;
	enum gt_code code = c->too_long ? GT_EDATA : gt_json_parse(c->line, c->n, c->path, 4, 4096, c->arena, &o, &why);
	if (code == GT_EFAIL) /* parsing ran out of memory, so the line may be correct and must not be dropped */
		return gt_fail_copy(err, &why);
	const char *event = gt_json_text(gt_json_member(o, "event"));
	if (code || !event || !gt_json_whole(gt_json_member(o, "step"), &step)) {
		c->damaged++;
	} else if (step <= c->spec->resume_step && !is_written_again(c->spec, event, step)) {
		c->line[c->n] = '\n';
		gt_logfile_write(c->to, c->line, c->n + 1);
	}
	return GT_OK;
}

/* Handles a piece of the metrics.jsonl of earlier sessions. */
static enum gt_code take_piece(void *user, const void *data, size_t n, struct gt_err *err)
{
	struct copy *c = user;
	for (const char *p = data, *end = p + n; p < end;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p), room = LINE_MAX_BYTES - c->n;
		c->too_long |= len > room;
		memcpy(c->line + c->n, p, len < room ? len : room);
		c->n += len < room ? len : room;
		p += len + 1;
		if (!nl)
			return GT_OK;
		GT_TRY(take_line(c, err));
		if (gt_arena_bytes(c->arena) > ARENA_BYTES) {
			gt_arena_close(c->arena);
			c->arena = NULL;
			GT_TRY(gt_arena_open(&c->arena, err));
		}
		c->n = 0;
		c->too_long = false;
	}
	return GT_OK;
}

static enum gt_code copy_kept(struct copy *c, int fd, uint64_t bytes, struct gt_err *err)
{
	GT_TRY(gt_arena_open(&c->arena, err));
	c->line = malloc(LINE_MAX_BYTES + 1);
	enum gt_code code = c->line ? gt_file_each(fd, c->path, bytes, take_piece, c, err) : gt_fail_memory(err, LINE_MAX_BYTES + 1);
	c->damaged += c->n > 0; /* a truncated last line */
	free(c->line);
	gt_arena_close(c->arena);
	return code;
}

/* ---- the file ----------------------------------------------------------------------------------------------------------------- */

/* Creates the new file under a temporary name, copies those lines of the old file that are kept, and renames it. */
static enum gt_code create_file(struct copy *c, int fd, uint64_t bytes, const char *to, struct gt_logfile **out, struct gt_err *err)
{
	char tmp[GT_PATH_SIZE];
	GT_TRY(gt_file_temporary(tmp, to, err));
	GT_TRY(gt_logfile_create(tmp, c->path, &c->to, err));
	enum gt_code code = fd >= 0 && c->spec->resume_step >= 0 ? copy_kept(c, fd, bytes, err) : GT_OK;
	gt_logfile_sync(c->to);
	const char *trouble = gt_logfile_error(c->to);
	if (!code && trouble) /* before the first step a failed write is an error; later it is only a warning */
		code = gt_fail(err, GT_EIO, "%s", trouble);
	if (!code)
		code = gt_file_rename(tmp, to, err);
	if (code) {
		gt_logfile_close(c->to, NULL);
		unlink(tmp);
		return code;
	}
	*out = c->to;
	return GT_OK;
}

enum gt_code gt_metrics_open(const struct gt_metrics_spec *spec, struct gt_metrics_file **out, int64_t *damaged, struct gt_err *err)
{
	char path[GT_PATH_SIZE], to[GT_PATH_SIZE];
	struct copy c = {.spec = spec, .path = path};
	uint64_t bytes = 0;
	int fd;
	*out = NULL;
	*damaged = 0;
	GT_TRY(gt_path_join(path, spec->dir, NAME, err));
	GT_TRY(gt_ckpt_next_path(to, spec->dir, spec->next, NAME, err));
	struct gt_metrics_file *m = calloc(1, sizeof *m);
	if (!m)
		return gt_fail_memory(err, sizeof *m);
	enum gt_code code = gt_file_open_own(path, &fd, &bytes, err);
	if (!code)
		code = create_file(&c, fd, bytes, to, &m->log, err);
	if (fd >= 0)
		close(fd);
	if (code) {
		free(m);
		return code;
	}
	*damaged = c.damaged;
	*out = m;
	return GT_OK;
}

void gt_metrics_sync(struct gt_metrics_file *m)
{
	gt_logfile_sync(m ? m->log : NULL);
}

const char *gt_metrics_error(struct gt_metrics_file *m)
{
	return gt_logfile_error(m ? m->log : NULL);
}

enum gt_code gt_metrics_close(struct gt_metrics_file *m, struct gt_err *err)
{
	enum gt_code code = gt_logfile_close(m ? m->log : NULL, err);
	free(m);
	return code;
}

static void put_scores(struct gt_json *j, const struct gt_scores *s)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++) {
		double v = gt_score_get(s, (enum gt_score)i);
		if (gt_score_rows[i].of_steps || !isnan(v))
			gt_json_double(j, gt_score_rows[i].word, v, 9);
	}
	gt_json_int(j, "samples", s->samples);
}

static void put_result(struct gt_json *j, const struct gt_run_result *r)
{
	const char *const names[] = {"train", "valid", "test"};
	const struct gt_scores *const scores[] = {&r->train, &r->valid, &r->test};
	gt_json_double(j, "seconds", r->seconds, 6);
	gt_json_double(j, "samples_per_s", r->samples_per_s, 6);
	for (int i = 0; i < 3; i++) {
		if (!scores[i]->samples)
			continue;
		gt_json_object(j, names[i]);
		put_scores(j, scores[i]);
		gt_json_end(j);
	}
	if (!r->best_metric)
		return;
	gt_json_object(j, "best");
	gt_json_string(j, "metric", r->best_metric);
	gt_json_double(j, "value", r->best, 9);
	gt_json_int(j, "step", r->best_step);
	gt_json_int(j, "epoch", r->best_epoch);
	gt_json_end(j);
}

/* Formats an event. "event" and "step" are always first, and "time" is last. */
static void format_event(struct gt_json *j, const struct gt_event *e)
{
	static const char *const names[] = {"start", "train", "eval", "checkpoint", "resume", "warn", "end", "skip", "epoch", "",
	                                    "pretrained", "complete"};
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	gt_json_reset(j);
	gt_json_object(j, NULL);
	gt_json_string(j, "event", names[e->kind]);
	gt_json_int(j, "step", e->step);
	switch (e->kind) {
	case GT_EV_START:
		gt_json_int(j, "steps", e->steps);
		gt_json_int(j, "epochs", e->epochs);
		gt_json_string(j, "text", e->text);
		gt_json_int(j, "ranks", e->ranks);
		if (e->device)
			gt_json_string(j, "device", e->device);
		if (e->init)
			gt_json_string(j, "init", e->init);
		break;
	case GT_EV_TRAIN:
		gt_json_int(j, "epoch", e->epoch);
		gt_json_double(j, "loss", e->loss, 9);
		gt_json_double(j, "acc", e->acc, 9);
		gt_json_double(j, "top5", e->top5, 9);
		gt_json_double(j, "lr", e->lr, 17);
		if (e->ngroups) {
			gt_json_array(j, "lr_groups");
			for (int i = 0; i < e->ngroups; i++)
				gt_json_double(j, NULL, e->lr_groups[i], 17);
			gt_json_end(j);
		}
		gt_json_double(j, "samples_per_s", e->samples_per_s, 6);
		if (e->loss_scale > 0)
			gt_json_double(j, "loss_scale", e->loss_scale, 9);
		break;
	case GT_EV_EVAL:
		gt_json_int(j, "epoch", e->epoch);
		gt_json_string(j, "split", e->split);
		put_scores(j, &e->scores);
		break;
	case GT_EV_EPOCH:
		gt_json_int(j, "epoch", e->epoch);
		put_scores(j, &e->scores);
		gt_json_double(j, "seconds", e->seconds, 6);
		gt_json_double(j, "samples_per_s", e->samples_per_s, 6);
		break;
	case GT_EV_RESUME:
	case GT_EV_CHECKPOINT:
		gt_json_string(j, "path", e->text);
		if (e->kind != GT_EV_RESUME)
			break;
		gt_json_array(j, "set");
		for (int i = 0; i < e->nsets; i++)
			gt_json_string(j, NULL, e->sets[i]);
		gt_json_end(j);
		break;
	case GT_EV_WARN:
	case GT_EV_COMPLETE:
		gt_json_string(j, "text", e->text);
		break;
	case GT_EV_PRETRAINED:
		gt_pretrained_json(j, e->pretrained);
		break;
	case GT_EV_SKIP:
		gt_json_int(j, "epoch", e->epoch);
		gt_json_double(j, "loss_scale", e->loss_scale, 9);
		break;
	case GT_EV_END:
		gt_json_int(j, "epoch", e->epoch);
		if (e->steps > 0) {
			gt_json_int(j, "steps", e->steps);
			gt_json_int(j, "epochs", e->epochs);
		}
		gt_json_string(j, "status", e->text);
		if (e->code) {
			gt_json_int(j, "code", e->code);
			gt_json_string(j, "error", e->why);
		}
		if (e->result)
			put_result(j, e->result);
		break;
	case GT_EV_PHASE:
	case GT_EV_DETAIL:
		break;
	}
	gt_json_double(j, "time", (double)now.tv_sec + 1e-9 * (double)now.tv_nsec, 13);
	gt_json_end(j);
}

enum gt_code gt_metrics_write(struct gt_metrics_file *m, struct gt_json *j, struct gt_event *ev, struct gt_err *err)
{
	const char *text;
	format_event(j, ev);
	GT_TRY(gt_json_finish(j, &text, err));
	ev->json = text;
	if (!m)
		return GT_OK;
	gt_json_line(j);
	if (j->no_memory)
		return gt_fail_memory(err, 0);
	/* Each line is one write, so that readers and crashes see complete lines. */
	gt_logfile_write(m->log, j->text, j->len);
	j->text[--j->len] = 0; /* the observer gets the line without its newline */
	ev->json = j->text;
	return GT_OK;
}
