#include "commands.h"
#include "base/shell_word.h"
#include "gtrain.h"
#include "gtrain_chart.h"
#include "gtrain_data.h"
#include "plot_chart.h"
#include "progress.h"
#include "status_line.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FROM 1e-7
#define TO 10.0
#define STEPS 100
#define ROWS 16 /* height of the chart's plot area in lines */

struct lr_find_args {
	struct gt_job_args job;
	double from, to; /* learning rates of the first and the last step; 0: option not given */
	int64_t steps;
	const char *out;
};
#define OFFSET(member) offsetof(struct lr_find_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct lr_find_args),
	{"from", 0, GT_OPTION_NUMBER, OFFSET(from), "LR", .help = "learning rate of the first step; default: 1e-7"},
	{"to", 0, GT_OPTION_NUMBER, OFFSET(to), "LR", .help = "learning rate of the last step; default: 10"},
	{"steps", 0, GT_OPTION_INT, OFFSET(steps), "N", GT_COMPLETE_NONE, NULL, 10, 100000, "number of training steps; default: 100"},
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE,
	 .help = "also draw the curve into a file whose name ends in .svg or .png"},
	GT_OPT_DEVICE(struct lr_find_args),
	GT_OPT_INIT(struct lr_find_args),
	GT_OPT_NPROC(struct lr_find_args),
	{0},
};

static enum gt_code print_json(struct gt_cli *cli, const struct gt_lr_curve *c, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("name", c->name), GT_STR("device", c->device), GT_STR("precision", c->precision), GT_INT("steps", c->steps),
	            GT_STR("ended", c->ended));
	gt_json_array(j, "curve");
	for (int i = 0; i < c->n; i++)
		gt_json_row(j, NULL, GT_NUM("lr", c->point[i].lr, 17), GT_NUM("loss", c->point[i].loss, 9),
		            GT_NUM("smooth", c->point[i].smooth, 17));
	gt_json_end(j);
	gt_json_double(j, "suggestion", c->suggestion[GT_LR_VALLEY].lr, 17);
	gt_json_object(j, "suggestions");
	for (int i = 0; i < GT_LR_METHODS; i++)
		gt_json_double(j, c->suggestion[i].method, c->suggestion[i].lr, 17);
	gt_json_end(j);
	if (c->ngroups)
		gt_json_array(j, "groups");
	for (int i = 0; i < c->ngroups; i++)
		gt_json_double(j, NULL, c->group[i], 17);
	if (c->ngroups)
		gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static const char *format_rate(double lr, char *buf)
{
	snprintf(buf, GT_UNITS, "%.3g", lr);
	return isnan(lr) ? "none" : buf;
}

struct lr_chart {
	struct gt_chart chart;
	struct gt_chart_panel panel;
	struct gt_chart_line line[2];
	struct gt_chart_mark mark[GT_LR_METHODS];
};

/* Returns the upper limit of the loss axis: the loss before the descent plus a quarter of the descent. Otherwise the huge losses of a
 * diverging run would make the rest of the curve flat. */
static double upper_limit(const struct gt_lr_curve *c, int least)
{
	double top = -INFINITY, most = -INFINITY;
	for (int i = 0; i < c->n; i++) {
		most = fmax(most, c->point[i].smooth);
		top = i <= least ? most : top;
	}
	double high = top + (top - c->point[least].smooth) / 4;
	return least && most > high ? high : most;
}

/* Makes a chart with the losses as a pale line, their moving average, and a mark at each suggested learning rate. */
static enum gt_code make_chart(struct gt_cli *cli, const struct gt_lr_curve *c, struct lr_chart *out, struct gt_err *err)
{
	double *x, *loss, *smooth;
	int least = 0;
	char number[GT_UNITS];
	GT_NEW(x, cli->arena, 3 * c->n, err);
	loss = x + c->n;
	smooth = loss + c->n;
	for (int i = 0; i < c->n; i++) {
		x[i] = c->point[i].lr;
		loss[i] = c->point[i].loss;
		smooth[i] = c->point[i].smooth;
		least = smooth[i] < smooth[least] ? i : least;
	}
	out->line[0] = (struct gt_chart_line){.name = "loss", .x = x, .y = loss, .n = c->n, .faint = true};
	out->line[1] = (struct gt_chart_line){.name = "smoothed loss", .x = x, .y = smooth, .n = c->n};
	for (int i = 0; i < GT_LR_METHODS; i++) {
		out->mark[i] = (struct gt_chart_mark){.x = c->suggestion[i].lr, .letter = "VSM"[i]};
		GT_NEW_STR(out->mark[i].text,
		           gt_arena_printf(cli->arena, "%s %s", c->suggestion[i].method, format_rate(c->suggestion[i].lr, number)), err);
	}
	out->panel = (struct gt_chart_panel){.title = "smoothed loss", .low = smooth[least], .high = upper_limit(c, least), .line = out->line,
	                                     .nlines = 2, .mark = out->mark, .nmarks = GT_LR_METHODS};
	out->chart = (struct gt_chart){.title = c->name, .x_title = "learning rate", .log_x = true, .panel = &out->panel, .npanels = 1};
	return GT_OK;
}

static enum gt_code plot_losses(struct gt_cli *cli, const struct gt_chart *chart, struct gt_err *err)
{
	int columns = gt_out_columns(), lines = 0;
	struct gt_plot_size size = {columns < GT_PLOT_WIDEST ? columns : GT_PLOT_WIDEST, ROWS, 1};
	return gt_plot_chart(cli, chart, size, cli->arena, &lines, err);
}

/* Prints an option and its argument, quoted for a shell, as a part of a command. */
static enum gt_code print_word(struct gt_cli *cli, const char *option, const char *word, struct gt_err *err)
{
	size_t size = 4 * strlen(word) + 8;
	char *quoted;
	GT_NEW(quoted, cli->arena, size, err);
	gt_out(cli, "%s %s", option, gt_shell_word(word, quoted, size));
	return GT_OK;
}

/* Prints the `gtrain run` command for this config with the suggested learning rate of the method "valley" and with the options of this
 * test. */
static enum gt_code print_command(struct gt_cli *cli, const struct gt_lr_curve *c, struct gt_err *err)
{
	const struct lr_find_args *args = cli->options;
	const struct gt_job_args *a = &args->job;
	char program[4096], number[GT_UNITS], set[128];
	gt_out(cli, "%s%s run", gt_style(cli->color_out, GT_STYLE_BOLD), gt_cli_program(cli, program, sizeof program));
	GT_TRY(print_word(cli, "", cli->args.operands.v[0], err));
	if (c->used)
		gt_out(cli, " --new");
	for (int i = 0; i < a->sets.n; i++)
		GT_TRY(print_word(cli, " -s", a->sets.v[i], err));
	if (a->init)
		GT_TRY(print_word(cli, " --init", a->init, err));
	if (a->device)
		GT_TRY(print_word(cli, " --device", a->device, err));
	if (a->nproc > 0)
		gt_out(cli, " --nproc %d", (int)a->nproc);
	else if (a->nproc < 0)
		gt_out(cli, " --nproc auto");
	gt_out(cli, " -s train.optimizer.lr=%s", format_rate(c->suggestion[GT_LR_VALLEY].lr, number));
	for (int i = 0; i < c->ngroups; i++)
		if (c->own[i] && !isnan(c->group[i])) {
			snprintf(set, sizeof set, "train.groups[%d].optimizer.lr=%s", i, format_rate(c->group[i], number));
			GT_TRY(print_word(cli, " -s", set, err));
		}
	gt_out(cli, "%s\n", gt_style(cli->color_out, GT_STYLE_NONE));
	return GT_OK;
}

/* Prints the suggested learning rates: "valley (V) 0.00209, steep (S) 0.0012, minimum/10 (M) 0.004". */
static void print_suggestions(struct gt_cli *cli, const struct gt_lr_curve *c)
{
	char number[GT_UNITS];
	for (int i = 0; i < GT_LR_METHODS; i++)
		gt_out(cli, "%s%s (%c) %s", i ? ", " : "", c->suggestion[i].method, "VSM"[i], format_rate(c->suggestion[i].lr, number));
	gt_out(cli, "\n");
}

static enum gt_code print_text(struct gt_cli *cli, const struct gt_lr_curve *c, const struct gt_chart *chart, struct gt_err *err)
{
	char number[GT_UNITS];
	if (!cli->args.quiet) {
		gt_out(cli, "%s: %s on %s; %d of %d steps%s\n", c->name, c->precision, c->device, c->n, c->steps,
		       !strcmp(c->ended, "range")  ? ""
		       : !strcmp(c->ended, "rise") ? ", until the smoothed loss was 4 times its minimum"
		                                   : ", until a loss or gradient was not finite");
		if (c->n > 1)
			GT_TRY(plot_losses(cli, chart, err));
	}
	print_suggestions(cli, c);
	for (int i = 0; i < c->ngroups && cli->args.verbose; i++)
		gt_out(cli, "train.groups[%d]: %s\n", i, isnan(c->group[i]) ? "frozen" : format_rate(c->group[i], number));
	return isnan(c->suggestion[GT_LR_VALLEY].lr) ? GT_OK : print_command(cli, c, err);
}

/* Prints the result, and writes the chart. */
static enum gt_code show_result(struct gt_cli *cli, const struct gt_lr_curve *c, struct gt_err *err)
{
	const struct lr_find_args *a = cli->options;
	struct lr_chart chart;
	GT_TRY(make_chart(cli, c, &chart, err));
	GT_TRY(cli->args.json ? print_json(cli, c, err) : print_text(cli, c, &chart.chart, err));
	if (!a->out)
		return GT_OK;
	GT_TRY(gt_chart_write(&chart.chart, a->out, err));
	if (!cli->args.quiet)
		gt_cli_note(cli, "wrote %s", a->out);
	return GT_OK;
}

static enum gt_code run_lr_find(struct gt_cli *cli, struct gt_err *err)
{
	const struct lr_find_args *a = cli->options;
	struct gt_progress progress;
	struct gt_conf *conf;
	struct gt_lr_curve *c = NULL;
	struct gt_lr_find_spec spec = {.from = a->from > 0 ? a->from : FROM, .to = a->to > 0 ? a->to : TO,
	                               .steps = a->steps ? (int)a->steps : STEPS};
	if (a->out)
		GT_TRY(gt_chart_check_path(a->out, "--out", err));
	gt_progress_init(&progress, cli, &a->job);
	GT_TRY(gt_cli_conf(cli, &a->job, &conf, err));
	struct gt_run_opts o = {
	    .device = a->job.device, .init = a->job.init, .observe = gt_progress_observe, .say = gt_progress_say, .user = &progress};
	enum gt_code code = gt_cli_ranks(cli, &a->job, &o, err);
	if (code == GT_OK)
		code = gt_lr_find(conf, &o, &spec, &c, err);
	gt_status_erase(cli);
	if (code == GT_OK && c) /* c is NULL if rank 0 is another process; that process has printed the result */
		code = show_result(cli, c, err);
	if (code == GT_OK && c && isnan(c->suggestion[GT_LR_VALLEY].lr))
		code = gt_fail(err, GT_EFAIL, "the curve gives no suggestion, because the loss does not fall in its %d steps between the learning "
		               "rates %g and %g; try another range (--from, --to) or more steps (--steps)", c->n, spec.from, spec.to);
	gt_lr_curve_free(c);
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_lr_find = {
	.name = "lr-find",
	.operands = "CFG",
	.about = "Trains the model of CFG for 100 steps with a learning rate that grows from step to\n"
	         "step, plots the loss, and suggests a learning rate. Writes no file except that of -o.",
	.example = "gtrain lr-find configs/fmnist_cnn.cfg",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct lr_find_args),
	.run = run_lr_find,
};
