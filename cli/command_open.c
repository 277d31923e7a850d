/* Opens the commands that are in plugins. A plugin calls functions of the program, so a plugin of another build is refused. */
#include "base/plugin.h"
#include "commands.h"
#include <stdio.h>
#include <string.h>

static enum gt_code open_plugin(const char *name, const char *symbol, void **out, struct gt_err *err)
{
	void *id;
	GT_TRY(gt_plugin_open(name, "gt_build_id", &id, err));
	if (strcmp(id, gt_build_id))
		return gt_fail(err, GT_EINTERNAL, "%s has the version %.64s, but this gtrain has %.64s: install both from one build", name,
		               (const char *)id, gt_build_id);
	return gt_plugin_open(name, symbol, out, err);
}

enum gt_code gt_command_open(const struct gt_command_row *row, const struct gt_command **out, struct gt_err *err)
{
	void *symbol;
	struct gt_err why = {0};
	*out = row->command;
	if (!row->plugin)
		return GT_OK;
	enum gt_code code = open_plugin(row->plugin, row->symbol, &symbol, &why);
	if (code)
		return gt_fail(err, code, "the command %s needs a plugin: %s", row->name, why.msg);
	*out = symbol;
	return GT_OK;
}

enum gt_code gt_cli_smoke(struct gt_cli *cli, const struct gt_job_args *job, struct gt_conf *conf, struct gt_err *err)
{
	void *run;
	struct gt_err why = {0};
	enum gt_code code = open_plugin("smoke", "gt_smoke_command", &run, &why);
	return code ? gt_fail(err, code, "--smoke needs a plugin: %s", why.msg) : (*(gt_smoke_function *const *)run)(cli, job, conf, err);
}

enum gt_code gt_cli_cost(const struct gt_cost_view **out, struct gt_err *err)
{
	void *view;
	struct gt_err why = {0};
	enum gt_code code = open_plugin("cost", "gt_cost_view", &view, &why);
	if (code)
		return gt_fail(err, code, "the cost model needs a plugin: %s", why.msg);
	*out = view;
	return GT_OK;
}

void gt_cli_page_of_run(struct gt_cli *cli, const char *dir, const struct gt_job_args *job)
{
	const struct gt_command *report;
	struct gt_err err = {0};
	char text[sizeof err.msg + 64];
	if (!gt_command_open(gt_command_find("report"), &report, &err)) {
		report->after_run(cli, dir, job);
		return;
	}
	snprintf(text, sizeof text, "log.report: the page of the run is not written: %s", err.msg);
	gt_cli_warn(cli, text);
}
