#include "commands.h"
#include "gtrain.h"
#include "gtrain_use.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CLASSES 40 /* above this number of classes, the table shows only the WORST classes */
#define WORST 20        /* number of the worst classes, and of the most confused pairs of classes, that are printed */
#define JSON_PAIRS 100  /* maximum number of confused pairs of classes in the JSON object */
#define NAME 24         /* maximum width of the name of a class, in columns */

struct eval_args {
	struct gt_job_args job;
	const char *split, *predictions;
	bool report, csv;
};
#define OFFSET(member) offsetof(struct eval_args, member)

static const struct gt_option options[] = {
	{"split", 0, GT_OPTION_CHOICE, OFFSET(split), "SPLIT", GT_COMPLETE_CHOICE, "train|valid|test",
	 .help = "split to evaluate: train, valid or test; default: test, or valid if the data has no split test"},
	{"report", 0, GT_OPTION_FLAG, OFFSET(report),
	 .help = "also show precision, recall, F1 and ROC AUC of each class, and the confused classes; for numeric targets, show their errors"},
	{"csv", 0, GT_OPTION_FLAG, OFFSET(csv), .help = "with --report, print only the scores of the classes, in CSV format"},
	{"predictions", 0, GT_OPTION_STRING, OFFSET(predictions), "FILE", GT_COMPLETE_FILE,
	 .help = "write path, label, prediction, probabilities and loss of each sample to this CSV file"},
	GT_OPT_SET(struct eval_args),
	GT_OPT_DEVICE(struct eval_args),
	{"nproc", 0, GT_OPTION_INT, OFFSET(job.nproc), "N", GT_COMPLETE_NONE, NULL, 1, 65536,
	 "number of ranks that share the samples of the split; default: 1"},
	{0},
};

/* ---- the report as JSON and CSV ------------------------------------------------------------------------------------------------- */

static void mean_json(struct gt_json *j, const char *key, const struct gt_class_mean *m)
{
	gt_json_row(j, key, GT_NUM("precision", m->precision, 17), GT_NUM("recall", m->recall, 17), GT_NUM("f1", m->f1, 17));
}

static void write_scores(struct gt_json *j, const struct gt_scores *s)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++) {
		double v = gt_score_get(s, (enum gt_score)i);
		if (!gt_score_rows[i].of_steps && !isnan(v))
			gt_json_double(j, gt_score_rows[i].word, v, 9);
	}
}

static void write_class_report(struct gt_json *j, const struct gt_class_report *r)
{
	gt_json_object(j, "report");
	gt_json_add(j, GT_INT("samples", r->samples), GT_NUM("accuracy", r->accuracy, 17), GT_NUM("top5", r->top5, 17),
	            GT_NUM("log_loss", r->log_loss, 17), GT_NUM("auc", r->auc, 17));
	mean_json(j, "macro", &r->macro);
	mean_json(j, "weighted", &r->weighted);
	if (r->several)
		mean_json(j, "micro", &r->micro);
	gt_json_array(j, "classes");
	for (int64_t c = 0; c < r->classes; c++) {
		const struct gt_class_score *s = &r->score[c];
		gt_json_row(j, NULL, GT_INT("class", c), GT_STR("name", s->name), GT_NUM("precision", s->precision, 17),
		            GT_NUM("recall", s->recall, 17), GT_NUM("f1", s->f1, 17), GT_NUM("auc", s->auc, 17), GT_INT("support", s->support),
		            GT_INT("predicted", s->predicted));
	}
	gt_json_end(j);
	gt_json_array(j, "confused");
	for (int64_t i = 0; i < r->nconfused && i < JSON_PAIRS; i++)
		gt_json_row(j, NULL, GT_INT("class", r->confused[i].label), GT_INT("predicted", r->confused[i].predicted),
		            GT_INT("samples", r->confused[i].n));
	gt_json_end(j);
	if (r->matrix)
		gt_json_array(j, "confusion");
	else
		gt_json_null(j, "confusion");
	for (int64_t c = 0; r->matrix && c < r->classes; c++) {
		gt_json_array(j, NULL);
		for (int64_t p = 0; p < r->classes; p++)
			gt_json_int(j, NULL, r->matrix[c * r->classes + p]);
		gt_json_end(j);
	}
	if (r->matrix)
		gt_json_end(j);
	gt_json_end(j);
}

static void print_class_csv(struct gt_cli *cli, const struct gt_class_report *r)
{
	gt_out(cli, "class,name,precision,recall,f1,auc,support,predicted\n");
	for (int64_t c = 0; c < r->classes; c++) {
		const struct gt_class_score *s = &r->score[c];
		gt_out(cli, "%" PRId64 ",", c);
		gt_out_csv(cli, s->name ? s->name : "");
		gt_out(cli, ",%.17g,%.17g,%.17g,", s->precision, s->recall, s->f1);
		if (!isnan(s->auc)) /* auc is NAN if the class has no samples or all samples; the CSV field is then empty */
			gt_out(cli, "%.17g", s->auc);
		gt_out(cli, ",%" PRId64 ",%" PRId64 "\n", s->support, s->predicted);
	}
}

/* ---- the report as text ------------------------------------------------------------------------------------------------------------- */

static const char *format_score(double v, char *buf)
{
	if (isnan(v))
		return "";
	snprintf(buf, GT_UNITS, "%.4f", v);
	return buf;
}

/* Writes "3 Dress", or "3" if the class has no name, in at most `width` columns. */
static const char *class_text(const struct gt_cli *cli, const struct gt_class_report *r, int64_t c, int width, char *buf, size_t size)
{
	char all[256];
	snprintf(all, sizeof all, "%" PRId64 "%s%s", c, r->score[c].name ? " " : "", r->score[c].name ? r->score[c].name : "");
	return gt_text_fit(cli, all, width, buf, size);
}

static void add_mean_row(struct gt_table *t, const char *name, const struct gt_class_mean *m, double auc, int64_t support)
{
	char precision[GT_UNITS], recall[GT_UNITS], f1[GT_UNITS], area[GT_UNITS], count[GT_UNITS];
	gt_table_add(t, name, format_score(m->precision, precision), format_score(m->recall, recall), format_score(m->f1, f1),
	             gt_units_count(count, support), format_score(auc, area));
}

struct ranked {
	double f1;
	int64_t c;
};

static int compare_f1(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	return x->f1 != y->f1 ? (x->f1 < y->f1 ? -1 : 1) : x->c < y->c ? -1 : 1;
}

/* Prints the scores of all classes, or of the worst classes, and the means. */
static enum gt_code print_scores(struct gt_cli *cli, const struct gt_class_report *r, int width, struct gt_err *err)
{
	struct ranked *order;
	struct gt_table t;
	char name[160];
	int64_t n = 0, shown, support = 0; /* support: sum of the samples of all classes; equal to the number of samples if each sample has one
	                                      label */
	GT_NEW(order, cli->arena, r->classes + 1, err);
	for (int64_t c = 0; c < r->classes; c++)
		if (r->classes <= MOST_CLASSES || r->score[c].support)
			order[n++] = (struct ranked){r->score[c].f1, c};
	shown = n;
	if (r->classes > MOST_CLASSES) {
		qsort(order, (size_t)n, sizeof *order, compare_f1);
		shown = n < WORST ? n : WORST;
		gt_out(cli, "\nThe %" PRId64 " classes of %" PRId64 " with the lowest F1:\n", shown, r->classes);
	}
	int space = width - 46;                                         /* The columns of numbers are 46 characters wide. */
	gt_table_init(&t, cli->arena, space >= 8 ? "lrrrrr" : "lrrrr"); /* If fewer than 8 characters remain for the names, the AUC column of 9
	                                                                   characters is omitted. */
	space = space >= 8 ? space : space + 9;
	space = space < 8 ? 8 : space > NAME ? NAME : space;
	gt_table_head(&t, "class", "precision", "recall", "F1", "support", "ROC AUC");
	for (int64_t i = 0; i < shown; i++) {
		const struct gt_class_score *s = &r->score[order[i].c];
		add_mean_row(&t, class_text(cli, r, order[i].c, space, name, sizeof name), &(struct gt_class_mean){s->precision, s->recall, s->f1},
		             s->auc, s->support);
	}
	gt_table_rule(&t);
	for (int64_t c = 0; c < r->classes; c++)
		support += r->score[c].support;
	if (r->several)
		add_mean_row(&t, space >= 16 ? "micro average" : "micro", &r->micro, NAN, support);
	add_mean_row(&t, space >= 16 ? "macro average" : "macro", &r->macro, r->auc, support);
	add_mean_row(&t, space >= 16 ? "weighted average" : "weighted", &r->weighted, NAN, support);
	gt_out(cli, "\n");
	return gt_table_print(cli, &t, err);
}

static int count_digits(int64_t n)
{
	return snprintf(NULL, 0, "%" PRId64, n);
}

/* Prints the confusion matrix if it fits into `width` columns; else returns false. */
static bool print_matrix(struct gt_cli *cli, const struct gt_class_report *r, int width)
{
	int64_t k = r->classes, most = k - 1;
	int name = 0;
	char text[160];
	if (!r->matrix || k > MOST_CLASSES)
		return false;
	for (int64_t i = 0; i < k * k; i++)
		most = r->matrix[i] > most ? r->matrix[i] : most;
	for (int64_t c = 0; c < k; c++) {
		int w = gt_text_width(class_text(cli, r, c, NAME, text, sizeof text));
		name = w > name ? w : name;
	}
	int cell = count_digits(most), space = width - (int)k * (cell + 1);
	int least = count_digits(k - 1) + 4; /* minimum width of a column: a name may be truncated to three letters */
	if (space < (least < name ? least : name))
		return false;
	name = name < space ? name : space;
	gt_out(cli, "\nConfusion (row: class, column: prediction)\n%s%*s", gt_style(cli->color_out, GT_STYLE_BOLD), name,
	       "");
	for (int64_t p = 0; p < k; p++)
		gt_out(cli, " %*" PRId64, cell, p);
	gt_out(cli, "%s\n", gt_style(cli->color_out, GT_STYLE_NONE));
	for (int64_t c = 0; c < k; c++) {
		class_text(cli, r, c, name, text, sizeof text);
		gt_out(cli, "%s%*s", text, name - gt_text_width(text), "");
		for (int64_t p = 0; p < k; p++) {
			int64_t n = r->matrix[c * k + p];
			const char *style = gt_style(cli->color_out, c == p ? GT_STYLE_GREEN : n ? GT_STYLE_YELLOW : GT_STYLE_DIM);
			char count[32] = ".";
			if (n)
				snprintf(count, sizeof count, "%" PRId64, n);
			gt_out(cli, " %s%*s%s", style, cell, count, gt_style(cli->color_out, GT_STYLE_NONE));
		}
		gt_out(cli, "\n");
	}
	return true;
}

/* Prints the pairs of a label and a wrong prediction that occur most often. */
static enum gt_code print_confused_pairs(struct gt_cli *cli, const struct gt_class_report *r, int width, struct gt_err *err)
{
	struct gt_table t;
	char label[160], predicted[160], count[GT_UNITS], share[GT_UNITS];
	int64_t shown = r->nconfused < WORST ? r->nconfused : WORST;
	int space = (width - 24) / 2;
	space = space < 4 ? 4 : space > NAME ? NAME : space;
	gt_out(cli, "\nThe most frequent confusions, %" PRId64 " of %" PRId64 " pairs:\n", shown, r->nconfused);
	gt_table_init(&t, cli->arena, "llrr");
	gt_table_head(&t, "class", "prediction", "samples", "of class");
	for (int64_t i = 0; i < shown; i++) {
		const struct gt_confusion_cell *x = &r->confused[i];
		snprintf(share, sizeof share, "%.1f%%", 100 * (double)x->n / (double)r->score[x->label].support);
		gt_table_add(&t, class_text(cli, r, x->label, space, label, sizeof label),
		             class_text(cli, r, x->predicted, space, predicted, sizeof predicted), gt_units_count(count, x->n), share);
	}
	return gt_table_print(cli, &t, err);
}

static enum gt_code print_class_report(struct gt_cli *cli, const struct gt_class_report *r, struct gt_err *err)
{
	int width = gt_out_columns();
	char loss[GT_UNITS];
	GT_TRY(print_scores(cli, r, width, err));
	gt_out(cli, "\n");
	if (r->several)
		gt_out(cli, "all labels correct %.4f  ", r->accuracy);
	gt_out(cli, "log loss %s", gt_units_loss(loss, r->log_loss));
	if (!isnan(r->auc))
		gt_out(cli, "  ROC AUC %.4f", r->auc);
	gt_out(cli, "\n");
	if (r->several)
		return GT_OK;
	return print_matrix(cli, r, width) || !r->nconfused ? GT_OK : print_confused_pairs(cli, r, width, err);
}

/* ---- columns of numbers -------------------------------------------------------------------------------------------------------- */
static void write_value_report(struct gt_json *j, const struct gt_value_report *r)
{
	gt_json_object(j, "report");
	gt_json_int(j, "samples", r->samples);
	gt_json_array(j, "values");
	for (int64_t i = 0; i < r->values; i++)
		gt_json_row(j, NULL, GT_STR("name", r->score[i].name), GT_NUM("mae", r->score[i].mae, 17), GT_NUM("rmse", r->score[i].rmse, 17),
		            GT_NUM("r2", r->score[i].r2, 17));
	gt_json_end(j);
	gt_json_end(j);
}

static void print_value_csv(struct gt_cli *cli, const struct gt_value_report *r)
{
	gt_out(cli, "name,mae,rmse,r2\n");
	for (int64_t i = 0; i < r->values; i++) {
		gt_out_csv(cli, r->score[i].name);
		gt_out(cli, ",%.17g,%.17g,", r->score[i].mae, r->score[i].rmse);
		if (!isnan(r->score[i].r2)) /* r2 is NAN if there are fewer than two samples; the CSV field is then empty */
			gt_out(cli, "%.17g", r->score[i].r2);
		gt_out(cli, "\n");
	}
}

static enum gt_code print_value_report(struct gt_cli *cli, const struct gt_value_report *r, struct gt_err *err)
{
	struct gt_table t;
	char name[160], mae[GT_UNITS], rmse[GT_UNITS], r2[GT_UNITS];
	gt_table_init(&t, cli->arena, "lrrr");
	gt_table_head(&t, "column", "MAE", "RMSE", "R2");
	for (int64_t i = 0; i < r->values; i++) {
		const struct gt_value_score *s = &r->score[i];
		snprintf(mae, sizeof mae, "%.6g", s->mae);
		snprintf(rmse, sizeof rmse, "%.6g", s->rmse);
		gt_table_add(&t, gt_text_fit(cli, s->name, NAME, name, sizeof name), mae, rmse, format_score(s->r2, r2));
	}
	gt_out(cli, "\n");
	return gt_table_print(cli, &t, err);
}

/* ---- the scores --------------------------------------------------------------------------------------------------------------- */
static enum gt_code print_json(struct gt_cli *cli, const struct gt_eval_result *r, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("event", "eval"), GT_INT("step", r->step), GT_STR("split", r->split), GT_INT("samples", r->scores.samples),
	            GT_NUM("loss", r->scores.loss, 9), GT_NUM("acc", r->scores.acc, 9), GT_NUM("top5", r->scores.top5, 9));
	write_scores(j, &r->scores);
	gt_json_add(j, GT_INT("skipped", r->skipped), GT_NUM("seconds", r->seconds, 6));
	if (r->report)
		write_class_report(j, r->report);
	if (r->value_report)
		write_value_report(j, r->value_report);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code print_text(struct gt_cli *cli, const struct gt_eval_result *r, struct gt_err *err)
{
	char acc[48] = "", top5[48] = "", more[GT_UNITS_SCORES], samples[GT_UNITS], step[GT_UNITS], took[GT_UNITS], loss[GT_UNITS];
	char skipped[GT_UNITS + 16] = "", count[GT_UNITS], line[1024];
	if (!isnan(r->scores.acc))
		snprintf(acc, sizeof acc, "accuracy %.4f  ", r->scores.acc);
	if (!isnan(r->scores.top5) && (!r->classes || r->classes > 5)) /* with at most five classes, top-5 accuracy is always 1 */
		snprintf(top5, sizeof top5, "top-5 %.4f  ", r->scores.top5);
	gt_units_scores(more, &r->scores, "  ");
	if (r->skipped)
		snprintf(skipped, sizeof skipped, ", %s skipped", gt_units_count(count, r->skipped));
	snprintf(line, sizeof line, "%s %s%sloss %s%s%s  (%s samples%s, step %s, %s)", r->split, acc, top5, gt_units_loss(loss, r->scores.loss),
	         *more ? "  " : "", more, gt_units_count(samples, r->scores.samples), skipped, gt_units_count(step, r->step),
	         gt_units_seconds(took, r->seconds));
	gt_out_sentence(cli, line);
	if (r->value_report)
		return print_value_report(cli, r->value_report, err);
	return r->report ? print_class_report(cli, r->report, err) : GT_OK;
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
		gt_cli_note(cli, "%s", ev->text);
}

static enum gt_code run_eval(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *g = &cli->args;
	const struct eval_args *a = cli->options;
	struct gt_eval_result *r;
	struct gt_run_opts o = {.device = a->job.device, .observe = observe_event, .say = print_note, .user = cli};
	enum gt_code code = GT_OK;
	if (a->csv && (!a->report || g->json))
		return gt_fail(err, GT_EUSAGE, g->json ? "--csv and --json cannot be combined" : "--csv: expected --report too, got only --csv");
	if (a->predictions && !strcmp(a->predictions, "-"))
		return gt_fail(err, GT_EUSAGE, "--predictions: expected the name of a file, got -, but standard output shows the scores");
	o.predictions = a->predictions;
	GT_TRY(gt_cli_ranks(cli, &a->job, &o, err));
	GT_TRY(gt_eval(g->operands.v[0], g->operands.n > 1 ? g->operands.v[1] : NULL, a->split, a->report, a->job.sets.v, a->job.sets.n, &o, &r,
	               err));
	if (!r) /* rank 0 is another process; that process has printed the result */
		return GT_OK;
	if (!a->split && !strcmp(r->split, "valid") && !g->quiet)
		gt_cli_note(cli, "the data has no split \"test\"; evaluating \"%s\"", r->split);
	if (a->csv && r->value_report)
		print_value_csv(cli, r->value_report);
	else if (a->csv)
		print_class_csv(cli, r->report);
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
	.about = "Measures the loss and accuracy of a checkpoint. CKPT is a step-... directory or the\n"
	         "directory of a run, whose best checkpoint is used, or else the newest.\n"
	         "DATA is data with labels, all of which is evaluated instead of a split of the\n"
	         "run's data: a folder or archive (.zip, .tar, .tar.gz, .tar.zst, .tar.xz) with a\n"
	         "folder of images or texts for each class, a table or list of images (CSV, TSV, JSON\n"
	         "Lines), an .npz file, or an IDX file of images.",
	.example = "gtrain eval runs/fmnist-mlp --report",
	.min_operands = 1,
	.max_operands = 2,
	.rest = GT_COMPLETE_FILE,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct eval_args),
	.run = run_eval,
};
