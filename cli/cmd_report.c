#include "commands.h"
#include "gtrain_page.h"
#include "gtrain_view.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct report_args {
	struct gt_job_args job;
	const char *out, *split;
};
#define OFFSET(member) offsetof(struct report_args, member)

static const struct gt_option options[] = {
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE,
	 .help = "name of the file to write; default: report.html in the directory of the run"},
	{"split", 0, GT_OPTION_CHOICE, OFFSET(split), "SPLIT", GT_COMPLETE_CHOICE, "train|valid|test",
	 .help = "split to evaluate: train, valid or test; default: test, or valid if the data has no split test"},
	GT_OPT_SET(struct report_args),
	GT_OPT_DEVICE(struct report_args),
	{0},
};

static void print_warning(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

static enum gt_code print_json(struct gt_cli *cli, const struct gt_page *page, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("event", "report"), GT_STR("path", page->path), GT_UINT("bytes", page->bytes), GT_STR("split", page->split),
	            GT_INT("samples", page->samples), GT_INT("images", page->images));
	gt_json_array(j, "missing");
	for (int i = 0; i < page->nmissing; i++)
		gt_json_string(j, NULL, page->missing[i]);
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code run_report(struct gt_cli *cli, struct gt_err *err)
{
	const struct report_args *a = cli->options;
	char bytes[GT_UNITS];
	struct gt_page_spec spec = {.run = cli->args.operands.v[0], .out = a->out, .split = a->split, .sets = a->job.sets.v,
	                            .nsets = a->job.sets.n, .device = a->job.device, .warn = print_warning, .user = cli};
	struct gt_page page;
	if (a->out && !strcmp(a->out, "-"))
		return gt_fail(err, GT_EUSAGE, "--out: expected the name of a file, got '-'; a page is not written to standard output");
	const char *ending = a->out ? strrchr(a->out, '.') : NULL;
	if (a->out && (!ending || (strcasecmp(ending, ".html") && strcasecmp(ending, ".htm"))))
		return gt_fail(err, GT_EUSAGE, "--out: expected a file name that ends in .html, got '%.500s'", a->out);
	GT_TRY(gt_page_write(&spec, cli->arena, &page, err));
	if (cli->args.json)
		return print_json(cli, &page, err);
	if (!cli->args.quiet)
		gt_cli_note(cli, "wrote %s (%s)", page.path, gt_units_bytes(bytes, page.bytes));
	return GT_OK;
}

/* Returns whether the run has done all its steps. A run that a time limit ended is not complete: it is resumed later, and writes its report
 * then. */
static bool is_complete(struct gt_cli *cli, const char *dir)
{
	struct gt_run_record run;
	struct gt_err err;
	return !gt_run_read(dir, cli->arena, &run, &err) && (!strcmp(run.state, "complete") || !strcmp(run.state, "early stop"));
}

static void write_page_after_run(struct gt_cli *cli, const char *dir, const struct gt_job_args *job)
{
	struct gt_page_spec spec = {.run = dir, .device = job->device, .warn = print_warning, .user = cli};
	struct gt_page page;
	struct gt_err err = {0};
	char text[sizeof err.msg + 64], bytes[GT_UNITS];
	if (!is_complete(cli, dir))
		return;
	if (gt_page_write(&spec, cli->arena, &page, &err)) {
		snprintf(text, sizeof text, "log.report: cannot write the page of the run: %s", err.msg);
		gt_cli_warn(cli, text);
	} else if (!cli->args.quiet && !cli->args.json) {
		gt_cli_note(cli, "wrote %s (%s)", page.path, gt_units_bytes(bytes, page.bytes));
	}
}

const struct gt_command gt_cmd_report = {
	.name = "report",
	.operands = "RUN",
	.about = "Evaluates the best checkpoint of RUN and writes a page in one HTML file: results and\n"
	         "how to repeat them, curves, scores of the classes, calibration, the most confident\n"
	         "mistakes, layers, config and checkpoints. The page needs no network.",
	.example = "gtrain report runs/fmnist-mlp -o report.html",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct report_args),
	.run = run_report,
	.after_run = write_page_after_run,
};
