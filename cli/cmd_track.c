#include "commands.h"
#include "gtrain_track.h"
#include <inttypes.h>

struct track_args {
	struct gt_job_args job;
	bool follow;
};
#define OFFSET(member) offsetof(struct track_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct track_args),
	{"follow", 0, GT_OPTION_FLAG, OFFSET(follow),
	 .help = "continue until 30 seconds after the end of standard input; 'gtrain run' starts such a process"},
	{0},
};

static void print_warning(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

static enum gt_code report_run(struct gt_cli *cli, const char *dir, const struct gt_track_result *r, struct gt_err *err)
{
	if (cli->args.json) {
		gt_json_row(&cli->json, NULL, GT_STR("path", dir), GT_STR("run_id", r->run_id), GT_STR("url", r->url), GT_INT("sent", r->sent),
		            GT_INT("left", r->left), GT_BOOL("complete", r->complete));
		return gt_out_json(cli, err);
	}
	if (!cli->args.quiet && r->complete)
		gt_cli_note(cli, "%s: sent %" PRId64 " event%s; %s", dir, r->sent, r->sent == 1 ? "" : "s", r->url);
	return GT_OK;
}

/* Sends the runs of all operands. If one run fails, the following runs are still sent, and the command returns the last error. */
static enum gt_code run_track(struct gt_cli *cli, struct gt_err *err)
{
	const struct track_args *a = cli->options;
	const struct gt_strlist *dirs = &cli->args.operands;
	struct gt_track_opts o = {.sets = a->job.sets.v, .nsets = a->job.sets.n, .follow = a->follow, .say = print_warning, .user = cli};
	struct gt_track_result r;
	enum gt_code all = GT_OK;
	if (a->follow && dirs->n > 1)
		return gt_fail(err, GT_EUSAGE, "--follow: expected one run, got %d", dirs->n);
	for (int i = 0; i < dirs->n; i++) {
		struct gt_err why = {0};
		enum gt_code code = gt_track(dirs->v[i], &o, &r, &why);
		if (code && all)
			gt_cli_complain(cli, err->msg);
		if (code)
			*err = why;
		all = code ? code : all;
		GT_TRY(report_run(cli, dirs->v[i], &r, err));
	}
	return all;
}

const struct gt_command gt_cmd_track = {
	.name = "track",
	.operands = "RUN...",
	.about = "Sends the events, the config and the model that the MLflow server of log.mlflow.uri\n"
	         "does not have yet. 'gtrain run' and 'gtrain resume' send them during training; this\n"
	         "command is for runs whose server did not answer, or whose config names no server.",
	.example = "gtrain track runs/* -s log.mlflow.uri=http://127.0.0.1:5000",
	.min_operands = 1,
	.max_operands = -1,
	.first = GT_COMPLETE_DIR,
	.rest = GT_COMPLETE_DIR,
	.options = options,
	.args_size = sizeof(struct track_args),
	.run = run_track,
};
