#include "commands.h"
#include "gtrain.h"
#include <errno.h>
#include <stdio.h>

#define NARROWEST 30 /* minimum width of the column of descriptions, which are broken into lines of this width on a terminal */

/* Prints a config with its comments, as a template for a new config. */
static enum gt_code print_file(struct gt_cli *cli, const char *name, struct gt_err *err)
{
	const char *path;
	char buf[4096];
	size_t n;
	GT_TRY(gt_bundled_find(cli->arena, name, &path, err));
	if (!path)
		return gt_cli_no_config(cli, name, err);
	FILE *f = fopen(path, "re");
	if (!f)
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%s", path);
	while ((n = fread(buf, 1, sizeof buf, f)) > 0)
		gt_out(cli, "%.*s", (int)n, buf);
	bool failed = ferror(f);
	fclose(f);
	return failed ? gt_fail(err, GT_EIO, "%s: cannot read the file", path) : GT_OK;
}

static enum gt_code run_configs(struct gt_cli *cli, struct gt_err *err)
{
	struct gt_bundled *rows;
	struct gt_table t;
	int n;
	if (cli->args.operands.n)
		return print_file(cli, cli->args.operands.v[0], err);
	GT_TRY(gt_bundled_list(cli->arena, &rows, &n, err));
	gt_table_init(&t, cli->arena, "lll");
	gt_table_head(&t, "config", "dataset", "description");
	for (int i = 0; i < n; i++) {
		const struct gt_bundled *r = &rows[i];
		if (!cli->args.json) {
			gt_table_add(&t, r->name, r->dataset, r->summary);
			continue;
		}
		gt_json_row(&cli->json, NULL, GT_STR("name", r->name), GT_STR("dataset", r->dataset), GT_STR("summary", r->summary),
		            GT_STR("path", r->path));
		GT_TRY(gt_out_json(cli, err));
	}
	if (cli->args.json)
		return GT_OK;
	if (gt_out_terminal())
		gt_table_leave_out(&t, gt_out_columns(), 2, NARROWEST, "1"); /* the dataset */
	return gt_table_print(cli, &t, err);
}

const struct gt_command gt_cmd_configs = {
	.name = "configs",
	.operands = "[NAME]",
	.about = "Lists the configs that come with gtrain. Commands find these configs by\n"
	         "name, without .cfg, if the working directory has no file of that name. With NAME,\n"
	         "prints the config NAME, for example as a start for your own config.",
	.example = "gtrain configs fmnist_mlp >mine.cfg",
	.max_operands = 1,
	.first = GT_COMPLETE_BUNDLED,
	.options = (const struct gt_option[]){{0}},
	.run = run_configs,
};
