#include "view/run_log.h"
#include "view/run_lines.h"
#include <math.h>
#include <string.h>

const char *const gt_run_splits[3] = {"train", "valid", "test"};

struct reading {
	struct gt_run_record *r;
	struct gt_arena *keep; /* memory of the record */
	int cap;               /* of r->start */
};

static enum gt_code keep_text(struct reading *t, const char *text, const char **out, struct gt_err *err)
{
	GT_NEW_STR(*out, gt_arena_strdup(t->keep, text), err);
	return GT_OK;
}

static enum gt_code add_start(struct reading *t, const struct gt_json_value *o, int64_t step, struct gt_err *err)
{
	struct gt_run_record *r = t->r;
	GT_TRY(gt_arena_grow(t->keep, &r->start, r->nstarts, &t->cap, sizeof *r->start, err));
	struct gt_run_start *s = &r->start[r->nstarts++];
	*s = (struct gt_run_start){.step = step, .steps = r->steps, .resumed = step > 0, .recorded = step == 0};
	s->ranks = gt_json_count(o, "ranks");
	GT_TRY(keep_text(t, gt_json_str(o, "init"), &s->init, err));
	return keep_text(t, gt_json_str(o, "device"), &s->device, err);
}

/* Adds the settings of a line `resume`, which follows a line `start`. */
static enum gt_code add_settings(struct reading *t, const struct gt_json_value *o, struct gt_err *err)
{
	struct gt_run_record *r = t->r;
	struct gt_run_start *s = r->nstarts ? &r->start[r->nstarts - 1] : NULL;
	int n = 0;
	if (!s)
		return GT_OK;
	s->resumed = true;
	s->recorded = gt_json_member(o, "set") != NULL;
	for (const struct gt_json_value *v = gt_json_first(o, "set"); v; v = v->next)
		n++;
	GT_NEW(s->set, t->keep, n + 1, err);
	for (const struct gt_json_value *v = gt_json_first(o, "set"); v; v = v->next)
		if (gt_json_text(v))
			GT_TRY(keep_text(t, gt_json_text(v), &s->set[s->nset++], err));
	return GT_OK;
}

static void take_scores(double *to, const struct gt_json_value *o)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++)
		to[i] = gt_json_num(o, gt_score_rows[i].word);
}

int gt_run_split_index(const char *name)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(gt_run_splits[i], name))
			return i;
	return -1;
}

static enum gt_code take_event(void *user, const struct gt_json_value *o, const char *event, int64_t step, struct gt_err *err)
{
	struct reading *t = user;
	struct gt_run_record *r = t->r;
	struct gt_run_start *s = r->nstarts ? &r->start[r->nstarts - 1] : NULL;
	int64_t n;
	int split = gt_run_split_index(gt_json_str(o, "split"));
	r->step = step;
	r->state = NULL;
	if (gt_json_whole(gt_json_member(o, "epoch"), &n))
		r->epoch = n;
	if (!isnan(gt_json_num(o, "time")))
		r->changed = gt_json_num(o, "time");
	if (gt_json_whole(gt_json_member(o, "steps"), &n)) { /* only lines `start` and `end` have this member */
		r->steps = n;
		r->epochs = gt_json_whole(gt_json_member(o, "epochs"), &n) ? n : 0;
	}
	if (!strcmp(event, "start")) {
		GT_NEW_STR(r->started, gt_arena_strdup(t->keep, gt_json_str(o, "text")), err);
		return add_start(t, o, step, err);
	} else if (!strcmp(event, "resume")) {
		return add_settings(t, o, err);
	} else if (!strcmp(event, "checkpoint") && s) {
		s->saved = true;
	} else if (!strcmp(event, "epoch")) {
		take_scores(r->last[0], o);
	} else if (!strcmp(event, "eval") && split >= 0) {
		take_scores(r->last[split], o);
	} else if (!strcmp(event, "end")) {
		const char *status = gt_json_str(o, "status");
		GT_NEW_STR(r->state, gt_arena_strdup(t->keep, !strcmp(status, "ok") ? "complete" : status), err);
		if (s)
			s->ended = !strcmp(status, "ok") || !strcmp(status, "early stop");
	}
	return GT_OK;
}

enum gt_code gt_run_log_read(const char *dir, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err)
{
	struct reading t = {.r = r, .keep = a};
	struct gt_run_lines *lines;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < GT_SCORE_COUNT; k++)
			r->last[i][k] = NAN;
	GT_TRY(gt_run_lines_open(dir, &lines, err));
	enum gt_code code = gt_run_lines_read(lines, take_event, &t, err);
	r->damaged = gt_run_lines_damaged(lines);
	gt_run_lines_close(lines);
	return code;
}
