#include "commands.h"
#include "gtrain.h"
#include "gtrain_use.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct eval_args {
	struct gt_job_args job;
	const char *split, *predictions;
	bool report, csv;
};
#define OFFSET(member) offsetof(struct eval_args, member)

static const struct gt_option options[] = {
	{"split", 0, GT_OPTION_CHOICE, OFFSET(split), "SPLIT", GT_COMPLETE_CHOICE, "train|valid|test", 0, 0,
	 "split to use: train, valid or test; default: test, or valid if the data has no split test"},
	{"report", 0, GT_OPTION_FLAG, OFFSET(report), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "also show precision, recall, F1 and ROC AUC of each class, and which classes are confused; for columns of numbers, their errors"},
	{"csv", 0, GT_OPTION_FLAG, OFFSET(csv), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "with --report, print only the scores of the classes, as CSV"},
	{"predictions", 0, GT_OPTION_STRING, OFFSET(predictions), "FILE", GT_COMPLETE_FILE, NULL, 0, 0,
	 "write the path, label, prediction, probabilities and loss of each sample to this CSV file"},
	GT_OPT_SET(struct eval_args),
	GT_OPT_DEVICE(struct eval_args),
	{"nproc", 0, GT_OPTION_INT, OFFSET(job.nproc), "N", GT_COMPLETE_NONE, NULL, 1, 65536,
	 "number of ranks that share the samples; default: 1"},
	{0},
};

static enum gt_code print_json(struct gt_cli *cli, const struct gt_eval_result *r, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("event", "eval"), GT_INT("step", r->step), GT_STR("split", r->split), GT_INT("samples", r->samples),
	            GT_NUM("loss", r->loss, 9), GT_NUM("acc", r->acc, 9), GT_NUM("top5", r->top5, 9));
	gt_cli_scores_json(j, &r->scores);
	gt_json_double(j, "seconds", r->seconds, 6);
	if (r->report)
		gt_cli_class_json(j, r->report);
	if (r->value_report)
		gt_cli_value_json(j, r->value_report);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code print_text(struct gt_cli *cli, const struct gt_eval_result *r, struct gt_err *err)
{
	char acc[48] = "", top5[48] = "", more[GT_UNITS_SCORES], samples[GT_UNITS], step[GT_UNITS], took[GT_UNITS], loss[GT_UNITS];
	if (!isnan(r->acc))
		snprintf(acc, sizeof acc, "accuracy %.4f  ", r->acc);
	if (!isnan(r->top5) && (!r->classes || r->classes > 5)) /* of five classes, the label is always among the first five */
		snprintf(top5, sizeof top5, "top-5 %.4f  ", r->top5);
	gt_units_scores(more, &r->scores, "  ");
	gt_out(cli, "%s %s%sloss %s%s%s  (%s samples, step %s, %s)\n", r->split, acc, top5, gt_units_loss(loss, r->loss),
	       *more ? "  " : "", more, gt_units_count(samples, r->samples), gt_units_count(step, r->step), gt_units_seconds(took, r->seconds));
	if (r->value_report)
		return gt_cli_value_text(cli, r->value_report, err);
	return r->report ? gt_cli_class_text(cli, r->report, err) : GT_OK;
}

static void print_note(void *user, const char *line)
{
	gt_cli_note(user, "%s", line);
}

static void observe_event(void *user, const struct gt_event *ev)
{
	struct gt_cli *cli = user;
	if (ev->kind == GT_EV_WARN && !cli->args.quiet)
		gt_cli_warn(cli, ev->text);
	if (ev->kind == GT_EV_DETAIL && cli->args.verbose)
		gt_cli_note(cli, "skipped %s", ev->text);
}

static enum gt_code run_eval(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *g = &cli->args;
	const struct eval_args *a = cli->options;
	struct gt_eval_result *r;
	struct gt_run_opts o = {.device = a->job.device, .observe = observe_event, .say = print_note, .user = cli};
	enum gt_code code = GT_OK;
	if (a->csv && (!a->report || g->json))
		return gt_fail(err, GT_EUSAGE, g->json ? "--csv and --json do not go together" : "--csv: expected --report beside it");
	if (a->predictions && !strcmp(a->predictions, "-"))
		return gt_fail(err, GT_EUSAGE, "--predictions: expected the name of a file, got -, which has the scores");
	o.predictions = a->predictions;
	GT_TRY(gt_cli_ranks(cli, &a->job, &o, err));
	GT_TRY(gt_eval(g->operands.v[0], g->operands.n > 1 ? g->operands.v[1] : NULL, a->split, a->report, a->job.sets.v, a->job.sets.n, &o, &r,
	               err));
	if (!r) /* rank 0 is another process, which has printed the result */
		return GT_OK;
	if (!a->split && !strcmp(r->split, "valid") && !g->quiet)
		gt_cli_note(cli, "the data has no split \"test\"; evaluating \"%s\"", r->split);
	if (a->csv && r->value_report)
		gt_cli_value_csv(cli, r->value_report);
	else if (a->csv)
		gt_cli_class_csv(cli, r->report);
	else
		code = g->json ? print_json(cli, r, err) : print_text(cli, r, err);
	if (a->predictions && !g->quiet && !g->json)
		gt_cli_note(cli, "wrote %s", a->predictions);
	gt_eval_free(r);
	return code;
}

const struct gt_command gt_cmd_eval = {
	.name = "eval",
	.operands = "CKPT [DATA]",
	.summary = "measure the loss and accuracy of a checkpoint",
	.about = "Measures the loss and accuracy of a checkpoint. CKPT is a step-... directory or the\n"
	         "directory of a run, of which the best checkpoint is used, or else the newest.\n"
	         "DATA is data with labels, all of which is measured in place of a split of the\n"
	         "run's data: a folder or .tar archive with a folder of images or texts for each\n"
	         "class, a CSV table, a CSV list of images, or an IDX file of images.",
	.example = "gtrain eval runs/fmnist-mlp --report",
	.min_operands = 1,
	.max_operands = 2,
	.rest = GT_COMPLETE_FILE,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct eval_args),
	.run = run_eval,
};
