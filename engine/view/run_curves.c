/* gt_run_curves_open, gt_run_curves_update and gt_run_curves_find of gtrain_view.h. */
#include "base/arena.h"
#include "base/fileio.h"
#include "store/ckpt.h"
#include "store/ckpt_scan.h"
#include "view/run_lines.h"
#include "view/run_log.h"
#include "view/series_builder.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Converts a step to epochs: the log has the steps at the ends of epochs; between them, the length of an epoch is used. */
struct epoch_clock {
	int64_t step, epoch; /* step and number of the epoch that ended last */
	double length;       /* steps of an epoch; 0: not known */
};

struct reader {
	struct gt_run_curves shown; /* first member: a gt_run_curves pointer is also a pointer to its reader */
	char dir[GT_PATH_SIZE], ended[64];
	double smooth;
	struct gt_run_lines *lines;
	struct epoch_clock clock;
	bool unknown_epochs;        /* the epoch of at least one point is not known yet */
	struct gt_series_builder builder[GT_SERIES_SOURCES][GT_SCORE_COUNT + 1];
};
#define EACH_SERIES(i) (int i = 0; i < GT_SERIES_SOURCES * (GT_SCORE_COUNT + 1); i++)

static struct gt_series_builder *builder_at(struct reader *r, int i)
{
	return &r->builder[i / (GT_SCORE_COUNT + 1)][i % (GT_SCORE_COUNT + 1)];
}

static struct gt_run_series *series_at(struct reader *r, int i)
{
	return &r->shown.series[i / (GT_SCORE_COUNT + 1)][i % (GT_SCORE_COUNT + 1)];
}

/* Returns the epochs at a step. epoch: number of the step's epoch, from 1; 0: not known. */
static double epochs_done(const struct epoch_clock *c, int64_t step, int64_t epoch)
{
	if (!(c->length > 0))
		return NAN;
	double done = (double)c->epoch + (double)(step - c->step) / c->length;
	return epoch > 0 ? fmin(fmax(done, (double)(epoch - 1)), (double)epoch) : done;
}

static void start_session(struct reader *r, const struct gt_json_value *o)
{
	int64_t steps = gt_json_count(o, "steps"), epochs = gt_json_count(o, "epochs");
	if (epochs > r->clock.epoch && steps > r->clock.step)
		r->clock.length = (double)(steps - r->clock.step) / (double)(epochs - r->clock.epoch);
}

static void end_epoch(struct reader *r, int64_t step, int64_t epoch)
{
	if (epoch <= r->clock.epoch || step <= r->clock.step)
		return;
	double length = (double)(step - r->clock.step) / (double)(epoch - r->clock.epoch);
	if (r->unknown_epochs)
		for EACH_SERIES (i)
			gt_series_set_epochs(builder_at(r, i), length);
	r->unknown_epochs = false;
	if (!(r->clock.length > 0))
		r->clock.length = length;
	r->clock.step = step;
	r->clock.epoch = epoch;
}

static enum gt_code add_value(struct reader *r, int source, int score, const struct gt_json_value *o, const char *key, int64_t step,
                              struct gt_err *err)
{
	const struct gt_json_value *value = gt_json_member(o, key);
	if (!gt_json_is(value, GT_JSON_NUMBER) && !gt_json_is(value, GT_JSON_NULL))
		return GT_OK;
	/* null: the value is not finite, or this kind of target has no such score */
	bool number = gt_json_is(value, GT_JSON_NUMBER), known = r->builder[source][score].values > 0 || score == GT_SCORE_loss;
	if (!number && !known)
		return GT_OK;
	double epoch = epochs_done(&r->clock, step, gt_json_count(o, "epoch"));
	r->unknown_epochs |= isnan(epoch);
	r->shown.changed = true;
	return gt_series_add(&r->builder[source][score], step, epoch, number ? value->number : NAN, r->smooth, err);
}

static enum gt_code add_scores(struct reader *r, int source, const struct gt_json_value *o, int64_t step, struct gt_err *err)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++)
		GT_TRY(add_value(r, source, i, o, gt_score_rows[i].word, step, err));
	return GT_OK;
}

static enum gt_code take_event(void *user, const struct gt_json_value *o, const char *event, int64_t step, struct gt_err *err)
{
	struct reader *r = user;
	r->ended[0] = '\0';
	if (!strcmp(event, "start")) {
		start_session(r, o);
	} else if (!strcmp(event, "train")) {
		GT_TRY(add_scores(r, GT_SERIES_STEP, o, step, err));
		return add_value(r, GT_SERIES_STEP, GT_SERIES_LR, o, "lr", step, err);
	} else if (!strcmp(event, "epoch")) {
		end_epoch(r, step, gt_json_count(o, "epoch"));
		return add_scores(r, GT_SERIES_TRAIN, o, step, err);
	} else if (!strcmp(event, "eval")) {
		int split = gt_run_split_index(gt_json_str(o, "split"));
		return split > 0 ? add_scores(r, GT_SERIES_TRAIN + split, o, step, err) : GT_OK;
	} else if (!strcmp(event, "end")) {
		const char *status = gt_json_str(o, "status");
		strncpy(r->ended, !strcmp(status, "ok") ? "complete" : status, sizeof r->ended - 1);
	}
	return GT_OK;
}

enum gt_code gt_run_curves_open(const char *path, double smooth, struct gt_run_curves **out, struct gt_err *err)
{
	struct reader *r;
	struct stat st;
	int64_t step;
	if (stat(path, &st))
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%s", path);
	GT_CALLOC(r, 1, err);
	r->smooth = smooth;
	r->shown.dir = r->dir;
	r->shown.state = "";
	enum gt_code code = gt_ckpt_run_dir(path, r->dir, &step, err);
	if (!code)
		code = gt_run_lines_open(r->dir, &r->lines, err);
	if (code) {
		char near[512];
		free(r);
		return code != GT_ENOINPUT ? code
		                           : gt_fail(err, code, "%s: expected the directory of a run, with metrics.jsonl%s", path,
		                                     gt_ckpt_near(path, near, sizeof near));
	}
	*out = &r->shown;
	return GT_OK;
}

/* Opens the new file of a resumed run, and reads it from its first line. */
static enum gt_code reopen_lines(struct reader *r, struct gt_err *err)
{
	struct gt_run_lines *lines;
	GT_TRY(gt_run_lines_open(r->dir, &lines, err));
	gt_run_lines_close(r->lines);
	r->lines = lines;
	r->clock = (struct epoch_clock){0};
	r->unknown_epochs = false;
	r->shown.changed = true;
	for EACH_SERIES (i) {
		struct gt_series_group *group = builder_at(r, i)->group;
		*builder_at(r, i) = (struct gt_series_builder){.group = group, .size = 1};
	}
	return GT_OK;
}

enum gt_code gt_run_curves_update(struct gt_run_curves *c, struct gt_err *err)
{
	struct reader *r = (struct reader *)c;
	c->changed = false;
	if (gt_run_lines_replaced(r->lines))
		GT_TRY(reopen_lines(r, err));
	GT_TRY(gt_run_lines_read(r->lines, take_event, r, err));
	for EACH_SERIES (i) {
		if (builder_at(r, i)->group && !series_at(r, i)->point)
			GT_CALLOC(series_at(r, i)->point, GT_SERIES_POINTS, err);
		if (series_at(r, i)->point && c->changed)
			gt_series_store(builder_at(r, i), series_at(r, i));
	}
	c->epochs = !r->unknown_epochs;
	c->state = gt_run_state(r->dir, r->ended[0] ? r->ended : NULL);
	c->damaged = gt_run_lines_damaged(r->lines);
	return GT_OK;
}

const struct gt_run_series *gt_run_curves_find(const struct gt_run_curves *c, enum gt_series_source source, int score)
{
	return c->series[source][score].n ? &c->series[source][score] : NULL;
}

void gt_run_curves_close(struct gt_run_curves *c)
{
	struct reader *r = (struct reader *)c;
	if (!r)
		return;
	gt_run_lines_close(r->lines);
	for EACH_SERIES (i) {
		free(builder_at(r, i)->group);
		free(series_at(r, i)->point);
	}
	free(r);
}
