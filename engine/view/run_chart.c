/* gt_run_chart of gtrain_chart.h: makes the lines of a chart from the values of runs. */
#include "base/arena.h"
#include "gtrain_chart.h"
#include "gtrain_view.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY_RUNS 4   /* with this number of runs or more, only averages are drawn, without raw values */
#define FEW_POINTS 25 /* a line with at most this number of values has a dot at each value */
#define WIDEST_NAME 60 /* maximum bytes of a run's name; the beginning of a longer name is cut off */

struct building {
	const struct gt_run_curves *const *run;
	const char **name; /* [n] names of the runs in the legend */
	int n;
	const struct gt_run_chart_spec *spec;
	bool by_epoch;
	struct gt_arena *arena;
	struct gt_chart *chart;
	bool has[3]; /* whether the chart has a line of the split */
};

static const char *score_word(int score)
{
	return score == GT_SERIES_LR ? "lr" : gt_score_rows[score].word;
}

/* Returns the split of a source: 0 train, 1 valid, 2 test. */
static int split_of(int source)
{
	return source > GT_SERIES_TRAIN ? source - GT_SERIES_TRAIN : 0;
}

/* One run: each split has a colour. Several runs: each run has a colour, and each split a dash. */
static int line_color(const struct building *b, int run, int split)
{
	return b->n > 1 ? run % GT_CHART_COLORS : split;
}

static enum gt_chart_dash line_dash(const struct building *b, int split)
{
	static const enum gt_chart_dash dash[] = {GT_DASH_SOLID, GT_DASH_LONG, GT_DASH_DOTTED};
	return b->n > 1 ? dash[split] : GT_DASH_SOLID;
}

static char line_letter(const struct building *b, int run, int split)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	return letters[(b->n > 1 ? run : split) % (int)(sizeof letters - 1)];
}

/* Copies points to a line; a gap becomes a NaN. */
static enum gt_code copy_points(const struct building *b, const struct gt_run_series *s, bool smooth, struct gt_chart_line *l,
                                struct gt_err *err)
{
	double *x, *y;
	int n = 0;
	GT_NEW(x, b->arena, 2 * s->n, err); /* room for a gap before each point */
	GT_NEW(y, b->arena, 2 * s->n, err);
	for (int i = 0; i < s->n; i++) {
		const struct gt_run_point *p = &s->point[i];
		double at = b->by_epoch ? p->epoch : (double)p->step;
		if (i && p->gap) {
			x[n] = at;
			y[n++] = NAN;
		}
		x[n] = at;
		y[n++] = smooth ? p->smooth : p->value;
	}
	*l = (struct gt_chart_line){.x = x, .y = y, .n = n};
	return GT_OK;
}

static enum gt_code add_line(struct building *b, struct gt_chart_panel *p, const struct gt_run_series *s, int run, int source, bool smooth,
                             bool faint, struct gt_err *err)
{
	struct gt_chart_line *l = &p->line[p->nlines++];
	int split = split_of(source);
	GT_TRY(copy_points(b, s, smooth, l, err));
	l->color = line_color(b, run, split);
	l->dash = line_dash(b, split);
	l->letter = line_letter(b, run, split);
	l->faint = faint;
	l->points = !faint && source != GT_SERIES_STEP && s->n <= FEW_POINTS;
	GT_NEW_STR(l->name, b->n > 1 ? gt_arena_printf(b->arena, "%s, %s", b->name[run], gt_run_splits[split])
	                             : gt_arena_strdup(b->arena, gt_run_splits[split]), err);
	b->has[split] = true;
	return GT_OK;
}

/* Adds the values of the training steps as a pale line, unless there are many runs. */
static enum gt_code add_raw(struct building *b, struct gt_chart_panel *p, const struct gt_run_series *s, int run, struct gt_err *err)
{
	return b->n < MANY_RUNS ? add_line(b, p, s, run, GT_SERIES_STEP, false, true, err) : GT_OK;
}

/* Adds the averages of the training steps: moving averages, or, from the second epoch on, the means of the epochs. */
static enum gt_code add_training(struct building *b, struct gt_chart_panel *p, int score, int run, struct gt_err *err)
{
	const struct gt_run_series *steps = gt_run_curves_find(b->run[run], GT_SERIES_STEP, score);
	const struct gt_run_series *epochs = gt_run_curves_find(b->run[run], GT_SERIES_TRAIN, score);
	bool average = b->spec->smooth && score != GT_SERIES_LR;
	if (steps && average) {
		GT_TRY(add_raw(b, p, steps, run, err));
		return add_line(b, p, steps, run, GT_SERIES_STEP, true, false, err);
	}
	if (steps && (!epochs || epochs->n < 2))
		return add_line(b, p, steps, run, GT_SERIES_STEP, false, false, err);
	if (steps)
		GT_TRY(add_raw(b, p, steps, run, err));
	return epochs ? add_line(b, p, epochs, run, GT_SERIES_TRAIN, false, false, err) : GT_OK;
}

/* Adds the evaluations. They are drawn without smoothing, because each is the mean of a whole split. */
static enum gt_code add_evaluations(struct building *b, struct gt_chart_panel *p, int score, int run, int source, struct gt_err *err)
{
	const struct gt_run_series *s = gt_run_curves_find(b->run[run], (enum gt_series_source)source, score);
	return s ? add_line(b, p, s, run, source, false, false, err) : GT_OK;
}

static enum gt_code add_panel(struct building *b, int score, struct gt_err *err)
{
	struct gt_chart_panel *p = &b->chart->panel[b->chart->npanels];
	bool lr = score == GT_SERIES_LR;
	*p = (struct gt_chart_panel){.title = lr ? "learning rate" : gt_score_rows[score].label, .score = score_word(score),
	                             .log_y = b->spec->log && (lr || gt_score_rows[score].falls), .low = NAN, .high = NAN};
	GT_NEW(p->line, b->arena, b->n * GT_SERIES_SOURCES * 2, err);
	for (int i = 0; i < b->n; i++) {
		GT_TRY(add_training(b, p, score, i, err));
		GT_TRY(add_evaluations(b, p, score, i, GT_SERIES_VALID, err));
		GT_TRY(add_evaluations(b, p, score, i, GT_SERIES_TEST, err));
	}
	b->chart->npanels += p->nlines > 0;
	return GT_OK;
}

static int find_score(const char *word)
{
	for (int i = 0; i <= GT_SCORE_COUNT; i++)
		if (!strcmp(word, score_word(i)))
			return i;
	return -1;
}

static enum gt_code refuse_score(const char *word, struct gt_err *err)
{
	char names[256] = "";
	for (int i = 0; i <= GT_SCORE_COUNT; i++) {
		size_t n = strlen(names);
		snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", score_word(i));
	}
	return gt_fail(err, GT_EUSAGE, "unknown score '%.60s'; expected one of: %s", word, names);
}

static enum gt_code add_panels(struct building *b, struct gt_err *err)
{
	const struct gt_run_chart_spec *spec = b->spec;
	GT_NEW(b->chart->panel, b->arena, spec->nscores > GT_SCORE_COUNT ? spec->nscores + 1 : GT_SCORE_COUNT + 1, err);
	for (int i = 0; i <= GT_SCORE_COUNT && !spec->nscores; i++)
		GT_TRY(add_panel(b, i, err));
	for (int i = 0; i < spec->nscores; i++) {
		int score = find_score(spec->score[i]), before = b->chart->npanels;
		if (score < 0)
			return refuse_score(spec->score[i], err);
		GT_TRY(add_panel(b, score, err));
		if (b->chart->npanels == before && !spec->partial)
			return gt_fail(err, GT_EUSAGE, "no run has logged values of %s", spec->score[i]);
	}
	return GT_OK;
}

/* ---- names and the legend -------------------------------------------------------------------------------------------------------- */
/* Returns the path of a run, or its full path if it is "." or "..", which name no run. buf: PATH_MAX bytes. */
static const char *path_of(const struct gt_run_curves *r, char *buf)
{
	bool dots = !strcmp(r->dir, ".") || !strcmp(r->dir, "..");
	return dots && realpath(r->dir, buf) ? buf : r->dir;
}

/* Returns the length of the directory prefix that the paths of all runs have in common. */
static size_t common_length(const struct building *b)
{
	size_t n = 0;
	const char *first = b->run[0]->dir;
	for (size_t i = 0; first[i]; i++) {
		for (int k = 1; k < b->n; k++)
			if (b->run[k]->dir[i] != first[i])
				return n;
		n = first[i] == '/' ? i + 1 : n;
	}
	return n;
}

static enum gt_code name_runs(struct building *b, struct gt_err *err)
{
	size_t from = b->n > 1 ? common_length(b) : 0;
	GT_NEW(b->name, b->arena, b->n, err);
	for (int i = 0; i < b->n; i++) {
		char full[PATH_MAX];
		const char *name = path_of(b->run[i], full) + from, *end = name + strlen(name);
		const char *tail = end - name > WIDEST_NAME ? end - WIDEST_NAME : name;
		while (tail > name && (*tail & 0xc0) == 0x80) /* not inside a character */
			tail++;
		GT_NEW_STR(b->name[i], gt_arena_printf(b->arena, "%s%s", tail > name ? "..." : "", tail), err);
	}
	return GT_OK;
}

/* The legend: the runs, if there are several, and the splits. */
static enum gt_code add_keys(struct building *b, struct gt_err *err)
{
	struct gt_chart_key *key;
	int n = 0;
	GT_NEW(key, b->arena, b->n + 3, err);
	for (int i = 0; i < b->n && b->n > 1; i++)
		key[n++] = (struct gt_chart_key){b->name[i], line_color(b, i, 0), GT_DASH_SOLID, line_letter(b, i, 0)};
	for (int i = 0; i < 3; i++)
		if (b->has[i])
			key[n++] = (struct gt_chart_key){gt_run_splits[i], b->n > 1 ? -1 : i, line_dash(b, i), b->n > 1 ? 0 : line_letter(b, 0, i)};
	b->chart->key = key;
	b->chart->nkeys = n;
	return GT_OK;
}

/* Chooses epochs or steps for the x axis. */
static enum gt_code choose_x(struct building *b, struct gt_err *err)
{
	b->by_epoch = b->spec->x != GT_X_STEP;
	for (int i = 0; i < b->n && b->by_epoch; i++) {
		if (b->run[i]->epochs)
			continue;
		if (b->spec->x == GT_X_EPOCH)
			return gt_fail(err, GT_EUSAGE, "%s: the length of an epoch is not known before the first epoch has ended; draw steps instead",
			               b->run[i]->dir);
		b->by_epoch = false;
	}
	b->chart->x_title = b->by_epoch ? "epoch" : "step";
	return GT_OK;
}

enum gt_code gt_run_chart(const struct gt_run_curves *const *runs, int n, const struct gt_run_chart_spec *spec, struct gt_arena *a,
                          struct gt_chart **out, struct gt_err *err)
{
	struct building b = {.run = runs, .n = n, .spec = spec, .arena = a};
	GT_NEW(b.chart, a, 1, err);
	GT_TRY(choose_x(&b, err));
	GT_TRY(name_runs(&b, err));
	b.chart->title = n == 1 ? b.name[0] : "";
	GT_TRY(add_panels(&b, err));
	GT_TRY(add_keys(&b, err));
	*out = b.chart;
	return GT_OK;
}
