#include "commands.h"
#include "compare_table.h"
#include <stdio.h>

struct compare_args {
	bool all;
};

static const struct gt_option options[] = {
	{"all", 'a', GT_OPTION_FLAG, offsetof(struct compare_args, all),
	 .help = "a row for each key that differs, also of lists such as model.layers"},
	{0},
};

/* ---- JSON ----------------------------------------------------------------------------------------------------------------------- */
static void write_statistics(struct gt_json *j, const struct gt_compared *x, int group, gt_run_score *get, const char *key)
{
	char name[64];
	gt_json_object(j, key);
	for (int i = 0; i < 3 * GT_SCORE_COUNT; i++) {
		struct gt_statistic v = gt_compared_statistic(x, group, get, i / GT_SCORE_COUNT, i % GT_SCORE_COUNT);
		if (!v.n)
			continue;
		snprintf(name, sizeof name, "%s/%s", gt_run_splits[i / GT_SCORE_COUNT], gt_score_rows[i % GT_SCORE_COUNT].word);
		gt_json_row(j, name, GT_NUM("mean", v.mean, 9), GT_NUM("deviation", v.deviation, 9), GT_INT("n", v.n));
	}
	gt_json_end(j);
}

static enum gt_code print_json(struct gt_cli *cli, const struct gt_compared *x, struct gt_err *err)
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
		write_statistics(j, x, g, gt_score_best, "best");
		write_statistics(j, x, g, gt_score_last, "last");
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code run_compare(struct gt_cli *cli, struct gt_err *err)
{
	const struct compare_args *a = cli->options;
	struct gt_compared x = {0};
	const char *const *path;
	GT_TRY(gt_runs_expand(cli->args.operands.v, cli->args.operands.n, cli->arena, &path, &x.n, err));
	GT_NEW(x.run, cli->arena, x.n, err);
	for (int i = 0; i < x.n; i++)
		GT_TRY(gt_run_read(path[i], cli->arena, &x.run[i], err));
	GT_TRY(gt_runs_compare(x.run, x.n, cli->arena, &x.c, err));
	return cli->args.json ? print_json(cli, &x, err) : gt_compare_print(cli, &x, a->all, err);
}

const struct gt_command gt_cmd_compare = {
	.name = "compare",
	.operands = "RUN...",
	.about = "Prints a table with a column for each run: the keys of the config in which the runs\n"
	         "differ, the best result, and the last scores. Runs whose configs differ only in the\n"
	         "seed share a column with the mean and the standard deviation of their scores.",
	.example = "gtrain compare runs/slow runs/fast",
	.min_operands = 1,
	.max_operands = -1,
	.first = GT_COMPLETE_CHECKPOINT,
	.rest = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct compare_args),
	.run = run_compare,
};
