#include "commands.h"
#include "base/shell_word.h"
#include "gtrain.h"
#include "gtrain_data.h"
#include "plot_curve.h"
#include "progress.h"
#include "status_line.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FROM 1e-7
#define TO 10.0
#define STEPS 100
#define WIDEST 100 /* columns of the plot on a wide terminal */
#define ROWS 18    /* lines of the plot */

struct lr_find_args {
	struct gt_job_args job;
	double from, to; /* learning rates; 0: not given */
	int64_t steps;
};
#define OFFSET(member) offsetof(struct lr_find_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct lr_find_args),
	{"from", 0, GT_OPTION_NUMBER, OFFSET(from), "LR", .help = "learning rate of the first step; default: 1e-7"},
	{"to", 0, GT_OPTION_NUMBER, OFFSET(to), "LR", .help = "learning rate of the last step; default: 10"},
	{"steps", 0, GT_OPTION_INT, OFFSET(steps), "N", GT_COMPLETE_NONE, NULL, 10, 100000, "number of training steps; default: 100"},
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

/* The upper limit of the plot is the loss before the descent plus a quarter of the descent. Without this limit, the huge losses of a
 * diverging run would flatten the rest of the curve. */
static enum gt_code plot_losses(struct gt_cli *cli, const struct gt_lr_curve *c, struct gt_err *err)
{
	double *x, *y, mark[GT_LR_METHODS], top = -INFINITY;
	int least = 0, columns = gt_out_columns();
	GT_NEW(x, cli->arena, c->n, err);
	GT_NEW(y, cli->arena, c->n, err);
	for (int i = 0; i < c->n; i++) {
		x[i] = log10(c->point[i].lr);
		y[i] = c->point[i].smooth;
		least = y[i] < y[least] ? i : least;
	}
	for (int i = 0; i <= least; i++)
		top = y[i] > top ? y[i] : top;
	double high = top + (top - y[least]) / 4, most = y[0];
	for (int i = 0; i < c->n; i++)
		most = y[i] > most ? y[i] : most;
	for (int i = 0; i < GT_LR_METHODS; i++)
		mark[i] = log10(c->suggestion[i].lr);
	struct gt_plot p = {.x = x, .y = y, .n = c->n, .low = y[least], .high = least && most > high ? high : most,
	                    .mark = mark, .letter = "VSM", .nmarks = GT_LR_METHODS,
	                    .columns = columns < WIDEST ? columns : WIDEST, .rows = ROWS};
	gt_out(cli, "smoothed loss by learning rate\n");
	return gt_plot_print(cli, &p, err);
}

static const char *format_rate(double lr, char *buf)
{
	snprintf(buf, GT_UNITS, "%.3g", lr);
	return isnan(lr) ? "none" : buf;
}

/* Prints an option and its argument as part of a command. */
static enum gt_code print_word(struct gt_cli *cli, const char *option, const char *word, struct gt_err *err)
{
	size_t size = 4 * strlen(word) + 8;
	char *quoted;
	GT_NEW(quoted, cli->arena, size, err);
	gt_out(cli, "%s %s", option, gt_shell_word(word, quoted, size));
	return GT_OK;
}

/* Prints the command that runs the config with the suggested learning rate (the valley) and the options of this test. */
static enum gt_code print_command(struct gt_cli *cli, const struct gt_lr_curve *c, struct gt_err *err)
{
	const struct lr_find_args *args = cli->options;
	const struct gt_job_args *a = &args->job;
	char program[4096], number[GT_UNITS], set[128];
	gt_out(cli, "%s%s run", gt_style(cli->color_out, GT_STYLE_BOLD), gt_cli_program(cli, program, sizeof program));
	GT_TRY(print_word(cli, "", cli->args.operands.v[0], err));
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

/* Prints "valley (V) 0.00209, steep (S) 0.0012, minimum/10 (M) 0.004". */
static void print_suggestions(struct gt_cli *cli, const struct gt_lr_curve *c)
{
	char number[GT_UNITS];
	for (int i = 0; i < GT_LR_METHODS; i++)
		gt_out(cli, "%s%s (%c) %s", i ? ", " : "", c->suggestion[i].method, "VSM"[i], format_rate(c->suggestion[i].lr, number));
	gt_out(cli, "\n");
}

static enum gt_code print_text(struct gt_cli *cli, const struct gt_lr_curve *c, struct gt_err *err)
{
	char number[GT_UNITS];
	if (!cli->args.quiet) {
		gt_out(cli, "%s: %s on %s; %d of %d steps%s\n", c->name, c->precision, c->device, c->n, c->steps,
		       !strcmp(c->ended, "range")  ? ""
		       : !strcmp(c->ended, "rise") ? ", until the smoothed loss was 4 times its minimum"
		                                   : ", until a loss or gradient was not finite");
		if (c->n > 1)
			GT_TRY(plot_losses(cli, c, err));
	}
	print_suggestions(cli, c);
	for (int i = 0; i < c->ngroups && cli->args.verbose; i++)
		gt_out(cli, "train.groups[%d]: %s\n", i, isnan(c->group[i]) ? "frozen" : format_rate(c->group[i], number));
	return isnan(c->suggestion[GT_LR_VALLEY].lr) ? GT_OK : print_command(cli, c, err);
}

static enum gt_code run_lr_find(struct gt_cli *cli, struct gt_err *err)
{
	const struct lr_find_args *a = cli->options;
	struct gt_progress progress;
	struct gt_conf *conf;
	struct gt_lr_curve *c = NULL;
	struct gt_lr_find_spec spec = {.from = a->from > 0 ? a->from : FROM, .to = a->to > 0 ? a->to : TO,
	                               .steps = a->steps ? (int)a->steps : STEPS};
	gt_progress_init(&progress, cli, &a->job);
	GT_TRY(gt_cli_conf(cli, &a->job, &conf, err));
	struct gt_run_opts o = {
	    .device = a->job.device, .init = a->job.init, .observe = gt_progress_observe, .say = gt_progress_say, .user = &progress};
	enum gt_code code = gt_cli_ranks(cli, &a->job, &o, err);
	if (code == GT_OK)
		code = gt_lr_find(conf, &o, &spec, &c, err);
	gt_status_erase(cli);
	if (code == GT_OK && c) /* c is NULL if rank 0 is another process, which has printed the result */
		code = cli->args.json ? print_json(cli, c, err) : print_text(cli, c, err);
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
	.summary = "train with growing learning rates and suggest one",
	.about = "Trains the model of CFG for 100 steps with a learning rate that grows from step to\n"
	         "step, plots the loss, and suggests a learning rate. Writes no files.",
	.example = "gtrain lr-find configs/fmnist_cnn.cfg",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct lr_find_args),
	.run = run_lr_find,
};
