#include "commands.h"
#include "gtrain_view.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#define NARROWEST 14 /* minimum width of the column with paths */

static void print_warning(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

static enum gt_code print_json(struct gt_cli *cli, const struct gt_run_record *r, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("path", r->dir), GT_STR("name", r->name), GT_STR("state", r->state), GT_INT("step", r->step),
	            GT_INT("steps", r->steps), GT_INT("epoch", r->epoch), GT_INT("epochs", r->epochs), GT_NUM("seconds", r->seconds, 6),
	            GT_NUM("changed", r->changed, 13), GT_UINT("bytes", r->bytes), GT_INT("damaged_lines", r->damaged));
	gt_cli_run_results(j, r);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

/* Writes the progress of a run to buf: "3/5 epochs" (complete epochs), or "100/400 steps" for a run with train.steps. */
static const char *format_progress(const struct gt_run_record *r, char *buf, size_t size)
{
	int64_t per_epoch = r->epochs ? r->steps / r->epochs : 0;
	if (r->epochs)
		snprintf(buf, size, "%" PRId64 "/%" PRId64 " epochs", per_epoch ? r->step / per_epoch : r->epoch, r->epochs);
	else
		snprintf(buf, size, "%" PRId64 "/%" PRId64 " steps", r->step, r->steps);
	return buf;
}

static const char *format_time(double seconds, char *buf, size_t size)
{
	time_t t = (time_t)seconds;
	struct tm at;
	if (!(seconds > 0) || !localtime_r(&t, &at) || !strftime(buf, size, "%Y-%m-%d %H:%M", &at))
		snprintf(buf, size, "-");
	return buf;
}

static void add_row(struct gt_table *t, const struct gt_run_record *r)
{
	char dir[4096], state[64], done[64], best[128] = "-", bytes[GT_UNITS], value[GT_UNITS], when[32];
	if (r->best_metric)
		snprintf(best, sizeof best, "%.60s %s", r->best_metric, gt_units_loss(value, r->best));
	gt_table_add(t, gt_cli_printable(r->dir, dir, sizeof dir), gt_cli_printable(r->state, state, sizeof state),
	             format_progress(r, done, sizeof done), gt_cli_printable(best, best, sizeof best), gt_units_bytes(bytes, r->bytes),
	             format_time(r->changed, when, sizeof when));
}

static enum gt_code run_runs(struct gt_cli *cli, struct gt_err *err)
{
	const char *dir = cli->args.operands.n ? cli->args.operands.v[0] : ".";
	struct gt_run_record *runs;
	struct gt_table t;
	int n;
	GT_TRY(gt_runs_find(dir, cli->arena, print_warning, cli, &runs, &n, err));
	if (!n && !cli->args.json && !cli->args.quiet)
		gt_cli_note(cli, "there is no run in %s", dir);
	gt_table_init(&t, cli->arena, "lllllr");
	gt_table_head(&t, "run", "state", "done", "best", "size", "changed");
	for (int i = 0; i < n; i++) {
		if (cli->args.json)
			GT_TRY(print_json(cli, &runs[i], err));
		else
			add_row(&t, &runs[i]);
	}
	if (cli->args.json || !n)
		return GT_OK;
	gt_table_leave_out(&t, gt_out_columns(), 0, NARROWEST, "453"); /* size, changed, best */
	gt_table_shorten(cli, &t, gt_out_columns(), 0);
	return gt_table_print(cli, &t, err);
}

const struct gt_command gt_cmd_runs = {
	.name = "runs",
	.operands = "[DIR]",
	.about = "Lists the runs in and below DIR (default: the working directory), the last changed\n"
	         "run first: state (running, complete, diverged, interrupted and others), completed\n"
	         "part of the training, best result, and size on disk.",
	.example = "gtrain runs runs",
	.max_operands = 1,
	.first = GT_COMPLETE_DIR,
	.options = (const struct gt_option[]){{0}},
	.run = run_runs,
};
