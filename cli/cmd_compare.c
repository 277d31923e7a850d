#include "commands.h"
#include "gtrain_view.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDEST 40 /* maximum columns of a value */

struct comparison {
	struct gt_run_record *run;
	int n;
	struct gt_run_comparison c;
};

/* Mean and standard deviation (with n - 1) of a value, over those runs of a group that have the value. */
struct statistic {
	int n;
	double mean, deviation;
};

typedef double get_value(const struct gt_run_record *r, int split, int score);

static double last_score(const struct gt_run_record *r, int split, int score)
{
	return r->last[split][score];
}

static double best_value(const struct gt_run_record *r, int split, int score)
{
	char name[64];
	snprintf(name, sizeof name, "%s/%s", gt_run_splits[split], gt_score_rows[score].word);
	return r->best_metric && !strcmp(r->best_metric, name) ? r->best : NAN;
}

static struct statistic compute_statistic(const struct comparison *x, int group, get_value *get, int split, int score)
{
	struct statistic s = {0};
	double squares = 0;
	for (int i = 0; i < x->n; i++) {
		double v = get(&x->run[i], split, score);
		if (x->c.group[i] != group || isnan(v))
			continue;
		double delta = v - s.mean;
		s.mean += delta / ++s.n;
		squares += delta * (v - s.mean);
	}
	s.deviation = s.n > 1 ? sqrt(squares / (s.n - 1)) : 0;
	return s;
}

static const char *format_statistic(struct statistic s, char *buf, size_t size)
{
	char mean[GT_UNITS], deviation[GT_UNITS];
	if (!s.n)
		snprintf(buf, size, "-");
	else if (s.n == 1)
		snprintf(buf, size, "%s", gt_units_loss(mean, s.mean));
	else
		snprintf(buf, size, "%s ± %s", gt_units_loss(mean, s.mean), gt_units_loss(deviation, s.deviation));
	return buf;
}

/* Returns the first run of a group, and sets *n to the number of runs in the group. */
static const struct gt_run_record *first_run(const struct comparison *x, int group, int *n)
{
	const struct gt_run_record *first = NULL;
	*n = 0;
	for (int i = 0; i < x->n; i++)
		if (x->c.group[i] == group) {
			first = first ? first : &x->run[i];
			++*n;
		}
	return first;
}

/* ---- text ----------------------------------------------------------------------------------------------------------------------- */
struct sheet {
	struct gt_cli *cli;
	const struct comparison *x;
	struct gt_table table;
	const char **cell; /* [1 + ngroups] the cells of a row */
	char (*text)[256]; /* [ngroups] memory of the cells */
};

static enum gt_code open_sheet(struct sheet *s, struct gt_err *err)
{
	int columns = s->x->c.ngroups + 1;
	char *align;
	GT_NEW(align, s->cli->arena, columns + 1, err);
	GT_NEW(s->cell, s->cli->arena, columns, err);
	GT_NEW(s->text, s->cli->arena, columns, err);
	memset(align, 'l', (size_t)columns);
	for (int g = 0; g < columns - 1; g++)
		s->cell[g + 1] = s->text[g];
	gt_table_init(&s->table, s->cli->arena, align);
	return GT_OK;
}

/* Returns whether two runs of a group have the same seed: their results are then not independent. */
static bool repeats_seed(const struct comparison *x, int group)
{
	for (int i = 0; i < x->n; i++)
		for (int j = 0; j < i && x->c.group[i] == group; j++) {
			const char *a = gt_run_setting_find(&x->run[i], "seed"), *b = gt_run_setting_find(&x->run[j], "seed");
			if (x->c.group[j] == group && a && b && !strcmp(a, b))
				return true;
		}
	return false;
}

static void add_names(struct sheet *s)
{
	int n;
	s->cell[0] = "";
	for (int g = 0; g < s->x->c.ngroups; g++) {
		const struct gt_run_record *r = first_run(s->x, g, &n);
		char name[200];
		gt_text_fit(s->cli, r->dir, WIDEST, name, sizeof name);
		snprintf(s->text[g], sizeof s->text[g], n < 2 ? "%s" : repeats_seed(s->x, g) ? "%s (%d runs)" : "%s (%d seeds)", name, n);
	}
	gt_table_add_cells(&s->table, true, s->cell);
}

static void add_settings(struct sheet *s)
{
	int n;
	for (int k = 0; k < s->x->c.nkeys; k++) {
		s->cell[0] = s->x->c.key[k];
		for (int g = 0; g < s->x->c.ngroups; g++) {
			const char *value = gt_run_setting_find(first_run(s->x, g, &n), s->x->c.key[k]);
			gt_text_fit(s->cli, value ? value : "-", WIDEST, s->text[g], sizeof s->text[g]);
		}
		gt_table_add_cells(&s->table, false, s->cell);
	}
}

static void add_progress(struct sheet *s)
{
	int n;
	s->cell[0] = "steps";
	for (int g = 0; g < s->x->c.ngroups; g++) {
		const struct gt_run_record *r = first_run(s->x, g, &n);
		snprintf(s->text[g], sizeof s->text[g], "%" PRId64 " of %" PRId64 ", %.30s", r->step, r->steps, r->state);
	}
	gt_table_add_cells(&s->table, false, s->cell);
}

/* Adds a row for each score that a run has. */
static void add_scores(struct sheet *s, get_value *get, const char *head)
{
	char name[80];
	for (int i = 0; i < 3 * GT_SCORE_COUNT; i++) {
		int split = i / GT_SCORE_COUNT, score = i % GT_SCORE_COUNT, some = 0;
		snprintf(name, sizeof name, "%s%s/%s", head, gt_run_splits[split], gt_score_rows[score].word);
		s->cell[0] = name;
		for (int g = 0; g < s->x->c.ngroups; g++) {
			struct statistic v = compute_statistic(s->x, g, get, split, score);
			some += v.n;
			format_statistic(v, s->text[g], sizeof s->text[g]);
		}
		if (some)
			gt_table_add_cells(&s->table, false, s->cell);
	}
}

static enum gt_code print_text(struct gt_cli *cli, const struct comparison *x, struct gt_err *err)
{
	struct sheet s = {.cli = cli, .x = x};
	GT_TRY(open_sheet(&s, err));
	add_names(&s);
	add_settings(&s);
	if (x->c.nkeys)
		gt_table_rule(&s.table);
	add_progress(&s);
	add_scores(&s, best_value, "best ");
	add_scores(&s, last_score, "last ");
	return gt_table_print(cli, &s.table, err);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------------------- */
static void write_statistics(struct gt_json *j, const struct comparison *x, int group, get_value *get, const char *key)
{
	char name[64];
	gt_json_object(j, key);
	for (int i = 0; i < 3 * GT_SCORE_COUNT; i++) {
		struct statistic v = compute_statistic(x, group, get, i / GT_SCORE_COUNT, i % GT_SCORE_COUNT);
		if (!v.n)
			continue;
		snprintf(name, sizeof name, "%s/%s", gt_run_splits[i / GT_SCORE_COUNT], gt_score_rows[i % GT_SCORE_COUNT].word);
		gt_json_row(j, name, GT_NUM("mean", v.mean, 9), GT_NUM("deviation", v.deviation, 9), GT_INT("n", v.n));
	}
	gt_json_end(j);
}

static enum gt_code print_json(struct gt_cli *cli, const struct comparison *x, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_array(j, "runs");
	for (int i = 0; i < x->n; i++) {
		gt_json_object(j, NULL);
		gt_json_add(j, GT_STR("path", x->run[i].dir), GT_INT("group", x->c.group[i]), GT_STR("state", x->run[i].state),
		            GT_INT("step", x->run[i].step), GT_INT("steps", x->run[i].steps));
		gt_json_object(j, "settings");
		for (int k = 0; k < x->c.nkeys; k++)
			gt_json_string(j, x->c.key[k], gt_run_setting_find(&x->run[i], x->c.key[k]));
		gt_json_end(j);
		gt_cli_run_results(j, &x->run[i]);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_array(j, "groups");
	for (int g = 0; g < x->c.ngroups; g++) {
		gt_json_object(j, NULL);
		write_statistics(j, x, g, best_value, "best");
		write_statistics(j, x, g, last_score, "last");
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code run_compare(struct gt_cli *cli, struct gt_err *err)
{
	struct comparison x = {.n = cli->args.operands.n};
	GT_NEW(x.run, cli->arena, x.n, err);
	for (int i = 0; i < x.n; i++)
		GT_TRY(gt_run_read(cli->args.operands.v[i], cli->arena, &x.run[i], err));
	GT_TRY(gt_runs_compare(x.run, x.n, cli->arena, &x.c, err));
	return cli->args.json ? print_json(cli, &x, err) : print_text(cli, &x, err);
}

const struct gt_command gt_cmd_compare = {
	.name = "compare",
	.operands = "RUN...",
	.about = "Prints a table with a column for each run: the keys of the config in which the runs\n"
	         "differ, the best result, and the last scores. Runs whose configs differ in the seed\n"
	         "only share a column with the mean and the standard deviation of their scores.",
	.example = "gtrain compare runs/slow runs/fast",
	.min_operands = 1,
	.max_operands = -1,
	.first = GT_COMPLETE_CHECKPOINT,
	.rest = GT_COMPLETE_CHECKPOINT,
	.options = (const struct gt_option[]){{0}},
	.run = run_compare,
};
