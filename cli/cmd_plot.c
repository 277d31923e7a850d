#include "base/arena.h"
#include "commands.h"
#include "gtrain_chart.h"
#include "gtrain_view.h"
#include "plot_follow.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 12 /* height of a panel's plot area in lines */

struct plot_args {
	const char *out, *x;
	bool follow, log;
	double smooth; /* weight of the previous values in the moving average; 0: option not given */
	struct gt_strlist scores;
};
#define OFFSET(member) offsetof(struct plot_args, member)

#define SCORE_WORD(word, ...) #word "|"
static const struct gt_option options[] = {
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE,
	 .help = "draw into a file whose name ends in .svg or .png, instead of the terminal"},
	{"follow", 'f', GT_OPTION_FLAG, OFFSET(follow), .help = "redraw the plot on the terminal until all runs have ended"},
	{"score", 0, GT_OPTION_LIST, OFFSET(scores), "NAME", GT_COMPLETE_CHOICE, GT_SCORES(SCORE_WORD) "lr",
	 .help = "draw only this score, for example loss, acc or lr; can be repeated"},
	{"smooth", 0, GT_OPTION_NUMBER, OFFSET(smooth), "WEIGHT",
	 .help = "smooth the values of training steps: average with this weight of earlier steps (0 to 1), for example 0.9"},
	{"log", 0, GT_OPTION_FLAG, OFFSET(log), .help = "use logarithmic axes for the loss, for errors and for the learning rate"},
	{"x", 0, GT_OPTION_CHOICE, OFFSET(x), "UNIT", GT_COMPLETE_CHOICE, "step|epoch",
	 .help = "unit of the horizontal axis: step or epoch; default: epoch, if the lengths of the runs' epochs are known"},
	{0},
};

static enum gt_code print_json(struct gt_cli *cli, const struct gt_run_curves *c, struct gt_err *err)
{
	static const char *const event[] = {"train", "epoch", "eval", "eval"}, *const split[] = {"train", "train", "valid", "test"};
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("path", c->dir), GT_STR("state", c->state), GT_INT("damaged_lines", c->damaged));
	gt_json_array(j, "series");
	for (int score = 0; score <= GT_SERIES_LR; score++)
		for (int source = 0; source < GT_SERIES_SOURCES; source++) {
			const struct gt_run_series *s = gt_run_curves_find(c, (enum gt_series_source)source, score);
			if (!s)
				continue;
			gt_json_object(j, NULL);
			gt_json_add(j, GT_STR("score", score == GT_SERIES_LR ? "lr" : gt_score_rows[score].word), GT_STR("split", split[source]),
			            GT_STR("event", event[source]), GT_INT("values", s->values), GT_INT("missing", s->missing));
			gt_json_array(j, "points");
			for (int i = 0; i < s->n; i++)
				gt_json_row(j, NULL, GT_INT("step", s->point[i].step), GT_NUM("epoch", s->point[i].epoch, 9),
				            GT_NUM("value", s->point[i].value, 17), GT_NUM("smooth", s->point[i].smooth, 17));
			gt_json_end(j);
			gt_json_end(j);
		}
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

/* Warns about values that are not finite and about unreadable lines of metrics.jsonl, which the chart does not show. */
static void warn_missing(struct gt_cli *cli, const struct gt_run_curves *c)
{
	char text[4400];
	int64_t missing = 0;
	for (int source = 0; source < GT_SERIES_SOURCES; source++)
		missing += c->series[source][GT_SCORE_loss].missing;
	if (missing) {
		snprintf(text, sizeof text, "%s: %" PRId64 " loss%s not finite; the plot leaves gaps there", c->dir, missing,
		         missing > 1 ? "es are" : " is");
		gt_cli_warn(cli, text);
	}
	if (c->damaged) {
		snprintf(text, sizeof text, "%s/metrics.jsonl: %" PRId64 " line%s left out", c->dir, c->damaged,
		         c->damaged > 1 ? "s cannot be read and are" : " cannot be read and is");
		gt_cli_warn(cli, text);
	}
}

static enum gt_code check_options(const struct gt_cli *cli, const struct plot_args *a, struct gt_err *err)
{
	if (a->out)
		GT_TRY(gt_chart_check_path(a->out, "--out", err));
	if (a->smooth >= 1)
		return gt_fail(err, GT_EUSAGE, "--smooth: expected a number > 0 and < 1, got %g", a->smooth);
	if (a->follow && (a->out || cli->args.json))
		return gt_fail(err, GT_EUSAGE, "--follow and %s cannot be combined, because --follow draws on the terminal",
		               a->out ? "--out" : "--json");
	const char *term = getenv("TERM");
	if (a->follow && !cli->terminal_out)
		return gt_fail(err, GT_EUSAGE, "--follow: expected a terminal as standard output, because --follow redraws its lines");
	if (a->follow && (!term || !*term || !strcmp(term, "dumb")))
		return gt_fail(err, GT_EUSAGE, "--follow: expected a terminal that can redraw lines, but the variable TERM %s; set TERM, or plot "
		               "without --follow", term && *term ? "is \"dumb\"" : "is not set");
	return GT_OK;
}

static enum gt_code plot_once(struct gt_cli *cli, const struct gt_plot_runs *runs, struct gt_err *err)
{
	const struct plot_args *a = cli->options;
	struct gt_chart *chart;
	int columns = gt_out_columns(), lines = 0;
	struct gt_plot_size size = {columns < GT_PLOT_WIDEST ? columns : GT_PLOT_WIDEST, ROWS, GT_SCORE_COUNT + 1};
	for (int i = 0; i < runs->n; i++)
		GT_TRY(gt_run_curves_update(runs->run[i], err));
	for (int i = 0; i < runs->n && cli->args.json; i++)
		GT_TRY(print_json(cli, runs->run[i], err));
	if (cli->args.json && !a->out)
		return GT_OK;
	GT_TRY(gt_plot_runs_chart(runs, cli->arena, &chart, err));
	for (int i = 0; i < runs->n; i++)
		warn_missing(cli, runs->run[i]);
	if (!chart->npanels)
		return gt_fail(err, GT_ENOINPUT, "%s: no values have been logged yet", runs->run[0]->dir);
	if (a->out && runs->n > GT_CHART_COLORS)
		gt_cli_warn(cli, "some runs share a colour, because there are more runs than colours");
	if (!a->out)
		return gt_plot_chart(cli, chart, size, cli->arena, &lines, err);
	GT_TRY(gt_chart_write(chart, a->out, err));
	if (!cli->args.quiet)
		gt_cli_note(cli, "wrote %s", a->out);
	return GT_OK;
}

/* Opens the curves of the runs that an operand names. */
static enum gt_code open_operand(struct gt_plot_runs *runs, const char *operand, double smooth, struct gt_arena *arena, struct gt_err *err)
{
	const char *const *path;
	int n;
	GT_TRY(gt_runs_expand(&operand, 1, arena, &path, &n, err));
	struct gt_run_curves **run = gt_arena_alloc(arena, (size_t)(runs->n + n), sizeof *run);
	if (!run)
		return gt_fail_memory(err, 0);
	for (int i = 0; i < runs->n; i++)
		run[i] = runs->run[i];
	runs->run = run;
	for (int i = 0; i < n; i++) {
		GT_TRY(gt_run_curves_open(path[i], smooth, &runs->run[runs->n], err));
		runs->n++;
	}
	return GT_OK;
}

/* Opens the runs of all operands, with memory of cli->arena. With --follow, waits for a run that does not exist yet. */
static enum gt_code open_runs(struct gt_cli *cli, const struct plot_args *a, struct gt_plot_runs *runs, struct gt_err *err)
{
	for (int i = 0; i < cli->args.operands.n; i++) {
		const char *operand = cli->args.operands.v[i];
		if (a->follow)
			gt_plot_wait(cli, operand);
		GT_TRY(open_operand(runs, operand, a->smooth, cli->arena, err));
	}
	return GT_OK;
}

static enum gt_code run_plot(struct gt_cli *cli, struct gt_err *err)
{
	const struct plot_args *a = cli->options;
	struct gt_plot_runs runs = {.spec = {.log = a->log, .smooth = a->smooth > 0, .score = a->scores.v, .nscores = a->scores.n,
	                                     .partial = a->follow, .x = !a->x ? GT_X_AUTO : !strcmp(a->x, "step") ? GT_X_STEP : GT_X_EPOCH}};
	GT_TRY(check_options(cli, a, err));
	enum gt_code code = open_runs(cli, a, &runs, err);
	if (!code)
		code = a->follow ? gt_plot_follow(cli, &runs, err) : plot_once(cli, &runs, err);
	for (int i = 0; i < runs.n; i++)
		gt_run_curves_close(runs.run[i]);
	return code;
}

const struct gt_command gt_cmd_plot = {
	.name = "plot",
	.operands = "RUN...",
	.about = "Draws the curves of one or several runs on the terminal, or with -o into an SVG or\n"
	         "PNG file: the training, validation and test values of each score, and the learning\n"
	         "rate. Values of single training steps are pale, means of steps are not.",
	.example = "gtrain plot runs/slow runs/fast -o curves.svg",
	.min_operands = 1,
	.max_operands = -1,
	.first = GT_COMPLETE_CHECKPOINT,
	.rest = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct plot_args),
	.run = run_plot,
};
