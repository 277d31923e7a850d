#include "commands.h"
#include "gtrain.h"
#include "gtrain_report.h"
#include <stdlib.h>
#include <string.h>

enum { INDENT = 12 }; /* number of bytes before the operation in a line of `gtrain plan`: the index and the kind of the step */

struct plan_args {
	struct gt_job_args job;
	int64_t rank;
};
#define OFFSET(member) offsetof(struct plan_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct plan_args),
	GT_OPT_DEVICE(struct plan_args),
	GT_OPT_WORLD(struct plan_args),
	GT_OPT_MODE(struct plan_args),
	{"rank", 0, GT_OPTION_INT, OFFSET(rank), "R", GT_COMPLETE_NONE, NULL, 0, 65535, "rank whose list of steps is printed; default: 0"},
	{0},
};

/* Prints the steps of a plan on a terminal. A line that is wider than the terminal is broken; its continuation is indented to the
 * operation. */
static void print_lines(struct gt_cli *cli, char *text, int width)
{
	for (char *line = text, *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		if (*end)
			*end++ = '\0';
		if (gt_text_width(line) <= width || strlen(line) <= INDENT) {
			gt_out(cli, "%s\n", line);
			continue;
		}
		gt_out(cli, "%.*s", INDENT, line);
		gt_out_words(cli, line + INDENT, INDENT, width);
		gt_out(cli, "\n");
	}
}

static enum gt_code run_plan(struct gt_cli *cli, struct gt_err *err)
{
	const struct plan_args *a = cli->options;
	struct gt_conf *conf;
	char *text = NULL;
	GT_TRY(gt_cli_conf(cli, &a->job, &conf, err));
	enum gt_code code = gt_plan_text(conf, a->job.device, (int)a->job.world, (int)a->rank, cli->args.json, &text, err);
	if (code == GT_OK && !cli->args.json && gt_out_terminal()) {
		print_lines(cli, text, gt_out_columns());
	} else if (code == GT_OK) {
		size_t len = strlen(text);
		gt_out(cli, "%s%s", text, len && text[len - 1] == '\n' ? "" : "\n");
	}
	free(text);
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_plan = {
	.name = "plan",
	.operands = "CFG",
	.about = "Prints the operations that a rank executes in every step, in order: kernels with the\n"
	         "memory that they read and write, and transfers.",
	.example = "gtrain plan configs/fmnist_mlp.cfg --mode zero --world 8 --rank 3",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct plan_args),
	.run = run_plan,
};
