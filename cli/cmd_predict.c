#include "commands.h"
#include "gtrain_use.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct predict_args {
	struct gt_job_args job;
	int64_t top;
	struct gt_strlist lists, texts, keep;
	bool append, csv;
};
#define OFFSET(member) offsetof(struct predict_args, member)

static const struct gt_option options[] = {
	{"top", 0, GT_OPTION_INT, OFFSET(top), "N", GT_COMPLETE_NONE, NULL, 1, GT_TOP, "number of most likely classes to show, 1 to 10; "
	 "default: 1"},
	{"list", 0, GT_OPTION_LIST, OFFSET(lists), "FILE", GT_COMPLETE_FILE,
	 .help = "also predict the files that FILE lists, one path on each line; -: standard input; can be repeated"},
	{"text", 0, GT_OPTION_LIST, OFFSET(texts), "TEXT", .help = "predict this text with a model of texts; can be repeated"},
	{"append", 0, GT_OPTION_FLAG, OFFSET(append),
	 .help = "with a model of tables, print all columns of the input, and then the prediction"},
	{"keep", 0, GT_OPTION_LIST, OFFSET(keep), "COLUMNS",
	 .help = "do the same with only these columns, whose names are separated by commas; can be repeated"},
	{"csv", 0, GT_OPTION_FLAG, OFFSET(csv), .help = "print CSV with a header line"},
	GT_OPT_DEVICE(struct predict_args),
	{0},
};

struct printing {
	struct gt_cli *cli;
	int top;                /* number of classes per prediction (--top); 0: option not given */
	bool csv;
	int64_t images, scaled; /* number of predicted images, and of images that were scaled to the input size of the model */
	char name[1024];        /* file of the first image that was scaled */
	enum gt_code code;
	struct gt_err *err;
};

static void class_json(struct gt_json *j, const struct gt_prediction *p, int i)
{
	gt_json_add(j, GT_INT("class", p->top[i].label), GT_STR("name", p->top[i].name), GT_NUM("probability", p->top[i].p, 9));
}

static enum gt_code print_json(struct gt_cli *cli, const struct gt_prediction *p, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_string(j, "path", p->file);
	if (p->error) {
		gt_json_string(j, "error", p->error);
		gt_json_end(j);
		return gt_out_json(cli, err);
	}
	gt_json_int(j, "index", p->index);
	if (p->text)
		gt_json_string(j, "text", p->text);
	if (p->ncolumns)
		gt_json_object(j, "row");
	for (int i = 0; i < p->ncolumns; i++)
		gt_json_string(j, p->column_name[i], p->column[i]);
	if (p->ncolumns)
		gt_json_end(j);
	gt_json_bool(j, "scaled", p->scaled);
	if (p->nvalues) {
		gt_json_object(j, "values");
		for (int i = 0; i < p->nvalues; i++)
			gt_json_double(j, p->value_name[i], (double)p->value[i], 9);
		gt_json_end(j);
		gt_json_end(j);
		return gt_out_json(cli, err);
	}
	if (p->n) {
		class_json(j, p, 0);
	} else { /* The prediction has no classes because an output of the model is not finite. */
		gt_json_null(j, "class");
		gt_json_null(j, "name");
		gt_json_null(j, "probability");
	}
	gt_json_array(j, "top");
	for (int i = 0; i < p->n; i++) {
		gt_json_object(j, NULL);
		class_json(j, p, i);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static void print_row(struct gt_cli *cli, const struct gt_prediction *p)
{
	if (p->target) {
		gt_out(cli, ",");
		gt_out_csv(cli, p->n && p->top[0].name ? p->top[0].name : "");
	}
	for (int64_t i = 0; i < p->nclasses; i++)
		gt_out(cli, ",%.9g", p->probability[i]);
	gt_out(cli, "\n");
}

/* Returns whether the output has the probability of every class: for rows of tables, unless --top is given. */
static bool every_class(const struct gt_prediction *p, int top)
{
	return p->row && !p->nvalues && !top;
}

/* Names of the columns that a prediction adds to the output. If the output also has the input's columns, these names begin with
 * "predicted_". */
struct columns {
	struct gt_arena *arena;
	const char *prefix, **name;
	int n;
};

static enum gt_code add_column(struct columns *c, const char *prefix, const char *name, int number, struct gt_err *err)
{
	GT_NEW_STR(c->name[c->n++], number > 1 ? gt_arena_printf(c->arena, "%s%s_%d", prefix, name, number)
	                                       : gt_arena_printf(c->arena, "%s%s", prefix, name), err);
	return GT_OK;
}

/* Lists the columns of a prediction. For rows of tables: the class (unless a row can have several labels), and the probability of every
 * class. */
static enum gt_code list_columns(struct columns *c, const struct gt_prediction *p, int top, struct gt_err *err)
{
	static const char *const of_class[] = {"class", "name", "probability"};
	GT_NEW(c->name, c->arena, p->nclasses + p->nvalues + 3 * GT_TOP + 1, err);
	if (every_class(p, top)) {
		if (p->target)
			GT_TRY(add_column(c, c->prefix, p->target, 1, err));
		for (int64_t i = 0; i < p->nclasses; i++)
			GT_TRY(add_column(c, "probability_", p->class_name[i] ? p->class_name[i] : "", 1, err));
		return GT_OK;
	}
	for (int i = 0; i < p->nvalues; i++)
		GT_TRY(add_column(c, c->prefix, p->value_name[i], 1, err));
	for (int i = 1; (i == 1 || i <= top) && !p->nvalues; i++)
		for (int k = 0; k < 3; k++)
			GT_TRY(add_column(c, c->prefix, of_class[k], i, err));
	return GT_OK;
}

/* Prints the CSV header. Fails if a column of the input has the same name as a column of the prediction. */
static enum gt_code csv_header(struct gt_cli *cli, const struct gt_prediction *p, int top, struct gt_err *err)
{
	struct columns c = {.arena = cli->arena, .prefix = p->ncolumns ? "predicted_" : ""};
	GT_TRY(list_columns(&c, p, top, err));
	for (int i = 0; i < c.n; i++)
		for (int k = 0; k < p->ncolumns; k++)
			if (!strcmp(p->column_name[k], c.name[i]))
				return gt_fail(err, GT_EUSAGE, "--append: the input and the prediction both have a column \"%.200s\"; select the columns "
				               "to print with --keep", c.name[i]);
	for (int i = 0; i < p->ncolumns; i++) {
		gt_out(cli, i ? "," : "");
		gt_out_csv(cli, p->column_name[i]);
	}
	if (!p->ncolumns)
		gt_out(cli, "path,index");
	for (int i = 0; i < c.n; i++) {
		gt_out(cli, ",");
		gt_out_csv(cli, c.name[i]);
	}
	gt_out(cli, "\n");
	return GT_OK;
}

static void print_csv(struct gt_cli *cli, const struct gt_prediction *p, int top)
{
	for (int i = 0; i < p->ncolumns; i++) {
		gt_out(cli, i ? "," : "");
		gt_out_csv(cli, p->column[i]);
	}
	if (!p->ncolumns) {
		gt_out_csv(cli, p->file);
		gt_out(cli, ",%" PRId64, p->index);
	}
	if (every_class(p, top)) {
		print_row(cli, p);
		return;
	}
	for (int i = 0; i < p->nvalues; i++)
		gt_out(cli, ",%.9g", (double)p->value[i]);
	for (int i = 0; (i == 0 || i < top) && !p->nvalues; i++) {
		if (i >= p->n) { /* Fewer classes than columns, or an output of the model is not finite: the fields are empty. */
			gt_out(cli, i ? ",,," : ",,,nan");
			continue;
		}
		gt_out(cli, ",%d,", p->top[i].label);
		gt_out_csv(cli, p->top[i].name ? p->top[i].name : "");
		gt_out(cli, ",%.9g", p->top[i].p);
	}
	gt_out(cli, "\n");
}

static void print_text(struct gt_cli *cli, const struct gt_prediction *p)
{
	char file[1024], name[128];
	gt_out(cli, "%s", gt_cli_printable(p->text ? p->text : p->file, file, sizeof file));
	if (p->index > 0 && !p->text)
		gt_out(cli, "[%" PRId64 "]", p->index);
	for (int i = 0; i < p->nvalues; i++)
		gt_out(cli, "\t%s %.6g", gt_cli_printable(p->value_name[i], name, sizeof name), (double)p->value[i]);
	if (!p->n && !p->nvalues)
		gt_out(cli, "\tnan");
	for (int i = 0; i < p->n; i++) {
		if (p->top[i].name)
			gt_out(cli, "\t%s %.4f", gt_cli_printable(p->top[i].name, name, sizeof name), p->top[i].p);
		else
			gt_out(cli, "\t%d %.4f", p->top[i].label, p->top[i].p);
	}
	gt_out(cli, "\n");
}

/* Prints one prediction. Returns false if the write to stdout fails, which ends gt_predict. */
static bool print_prediction(void *user, const struct gt_prediction *p)
{
	struct printing *s = user;
	struct gt_cli *cli = s->cli;
	if (p->error)
		gt_cli_complain(cli, p->error);
	else if (p->scaled && !s->scaled++)
		snprintf(s->name, sizeof s->name, "%s", p->file);
	s->images += !p->error;
	if (cli->args.json)
		s->code = print_json(cli, p, s->err);
	else if (!p->error && (s->csv || p->row)) {
		if (s->images == 1)
			s->code = csv_header(cli, p, s->top, s->err);
		if (s->code == GT_OK)
			print_csv(cli, p, s->top);
	}
	else if (!p->error)
		print_text(cli, p);
	return s->code == GT_OK && !cli->out_errno;
}

static void warn_scaled(struct printing *s)
{
	char text[1280], scaled[GT_UNITS], images[GT_UNITS];
	if (!s->scaled || s->cli->args.quiet)
		return;
	if (s->images == 1)
		snprintf(text, sizeof text, "%s: the image was scaled to the input size of the model", s->name);
	else
		snprintf(text, sizeof text, "%s of %s images were scaled to the input size of the model; the first image is %s",
		         gt_units_count(scaled, s->scaled), gt_units_count(images, s->images), s->name);
	gt_cli_warn(s->cli, text);
}

static void print_warning(void *user, const char *text)
{
	const struct printing *s = user;
	gt_cli_warn(s->cli, text);
}

static enum gt_code run_predict(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *g = &cli->args;
	const struct predict_args *a = cli->options;
	struct printing s = {.cli = cli, .top = (int)a->top, .csv = a->csv, .err = err};
	struct gt_predict_spec spec = {.ckpt = g->operands.v[0], .inputs = g->operands.v + 1, .ninputs = g->operands.n - 1, .lists = a->lists.v,
	                               .nlists = a->lists.n, .top = s.top, .device = a->job.device, .texts = a->texts.v, .ntexts = a->texts.n,
	                               .append = a->append, .keep = a->keep.v, .nkeep = a->keep.n, .warn = print_warning};
	if (!spec.ninputs && !spec.nlists && !spec.ntexts)
		return gt_fail(err, GT_EUSAGE, "expected a FILE, --list or --text, got none");
	if (a->append && a->keep.n)
		return gt_fail(err, GT_EUSAGE, "--append and --keep cannot be combined");
	if (a->csv && g->json)
		return gt_fail(err, GT_EUSAGE, "--csv and --json cannot be combined");
	enum gt_code code = gt_predict(&spec, print_prediction, &s, err);
	warn_scaled(&s);
	return s.code != GT_OK ? s.code : code;
}

const struct gt_command gt_cmd_predict = {
	.name = "predict",
	.operands = "CKPT [FILE...]",
	.about = "Classifies images with a checkpoint. A FILE is a PNG, JPEG or WebP image, an IDX or\n"
	         "NumPy file of images, a directory, which means all images below it, or @LIST, which\n"
	         "means the files that LIST names, one on each line; - is such a list on\n"
	         "standard input. Prints one line per image: the file, then classes and their\n"
	         "probabilities, separated by tabs. If a file is damaged, reports it, classifies the\n"
	         "others, and ends with status 65. For a model of tables, a FILE is a table (CSV, TSV,\n"
	         "JSON Lines, .npz) with the columns of the training data, with or without the\n"
	         "targets, and - is standard input. Prints CSV: file, row, the prediction, and\n"
	         "for classes the probability of each; with --top only the N most likely classes. For\n"
	         "a model of texts, a FILE is one text, and - a text on each line of standard input.",
	.example = "gtrain predict --top 3 runs/fmnist-mlp shoe.png",
	.min_operands = 1,
	.max_operands = -1,
	.first = GT_COMPLETE_CHECKPOINT,
	.rest = GT_COMPLETE_FILE,
	.options = options,
	.args_size = sizeof(struct predict_args),
	.run = run_predict,
};
