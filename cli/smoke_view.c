/* `gtrain run --smoke`: prints a line, or a JSON object, for each phase on stdout. */
#include "against_view.h"
#include "base/clock.h"
#include "commands.h"
#include "gtrain.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct view {
	struct gt_cli *cli;
	double start;
	char name[128];
};

/* Writes "6 steps, a checkpoint after step 4; batches of 16 (in the config: 512); fp32, ddp on 2 ranks" to buf. */
static void plan_text(const struct gt_smoke *s, char *buf, size_t size)
{
	char batch[GT_UNITS], config[GT_UNITS], of[64] = "", world[64] = "";
	if (s->batch != s->config_batch)
		snprintf(of, sizeof of, " (in the config: %s)", gt_units_count(config, s->config_batch));
	if (strcmp(s->mode, "single") != 0)
		snprintf(world, sizeof world, ", %s on %d rank%s", s->mode, s->ranks, s->ranks == 1 ? "" : "s");
	int n = snprintf(buf, size, "%" PRId64 " steps, a checkpoint after step %" PRId64 "; batches of %s%s; %s%s", s->steps, s->saved,
	                 gt_units_count(batch, s->batch), of, s->precision, world);
	if (s->config_ranks && s->config_ranks != s->ranks && n > 0 && (size_t)n < size)
		snprintf(buf + n, size - (size_t)n, " (in the config: %d)", s->config_ranks);
}

static void phase_text(const struct gt_smoke *s, char *buf, size_t size)
{
	char a[GT_UNITS], b[GT_UNITS];
	if (!strcmp(s->phase, "plan"))
		plan_text(s, buf, size);
	else if (!strcmp(s->phase, "train"))
		snprintf(buf, size, "steps 1 to %" PRId64 ", loss %s to %s", s->steps, gt_units_loss(a, s->first_loss),
		         gt_units_loss(b, s->last_loss));
	else if (!strcmp(s->phase, "evaluate") && !s->split[0])
		snprintf(buf, size, "no evaluation: the data has no split \"valid\" or \"test\"");
	else if (!strcmp(s->phase, "evaluate") && isnan(s->acc))
		snprintf(buf, size, "%s loss %s", s->split, gt_units_loss(a, s->loss));
	else if (!strcmp(s->phase, "evaluate"))
		snprintf(buf, size, "%s accuracy %.4f  loss %s", s->split, s->acc, gt_units_loss(a, s->loss));
	else if (!strcmp(s->phase, "checkpoint"))
		snprintf(buf, size, "steps %" PRId64 " and %" PRId64 ", %s each", s->saved, s->steps, gt_units_bytes(a, s->bytes));
	else if (!strcmp(s->phase, "resume"))
		snprintf(buf, size, "from step %" PRId64 " to %" PRId64, s->saved, s->steps);
	else if (!strcmp(s->phase, "cpu"))
		snprintf(buf, size, "steps 1 to %" PRId64 " on the CPU", s->steps);
	else if (!strcmp(s->phase, "runs"))
		gt_against_runs_text(s->runs, buf, size);
	else if (!strcmp(s->phase, "operations"))
		gt_against_operations_text(s->operations, buf, size);
	else
		snprintf(buf, size, "equal: model %.16s%s%.16s", s->model, s->optimizer ? "  optimizer " : "", s->optimizer ? s->optimizer : "");
}

static void text_line(struct view *v, const struct gt_smoke *s)
{
	char text[512], data[1280], clean[1280], took[GT_UNITS];
	if (v->cli->args.quiet)
		return;
	phase_text(s, text, sizeof text);
	gt_out(v->cli, "%-10s %8s  %s\n", s->phase, gt_units_seconds(took, s->seconds), text);
	if (!strcmp(s->phase, "plan")) {
		snprintf(data, sizeof data, "%s%s%s", s->data, s->synthetic ? ": " : "", s->synthetic ? s->why : "");
		gt_out(v->cli, "%-10s %8s  %s", "data", "", gt_cli_printable(data, clean, sizeof clean));
		if (s->samples > 0)
			gt_out(v->cli, "; %s samples of each split%s", gt_units_count(took, s->samples), s->synthetic ? "" : " at most");
		gt_out(v->cli, "\n");
		if (s->weights)
			gt_out(v->cli, "%-10s %8s  %s\n", "weights", "", gt_cli_printable(s->weights, clean, sizeof clean));
	}
	if (!strcmp(s->phase, "runs"))
		gt_against_print_runs(v->cli, s->runs);
	if (!strcmp(s->phase, "operations"))
		gt_against_print_operations(v->cli, s->operations);
	gt_out_flush(v->cli);
}

static void phase_json(struct gt_json *j, const struct gt_smoke *s)
{
	if (!strcmp(s->phase, "plan")) {
		gt_json_add(j, GT_STR("name", s->name), GT_STR("mode", s->mode), GT_STR("precision", s->precision), GT_INT("ranks", s->ranks),
		            GT_INT("config_ranks", s->config_ranks), GT_INT("steps", s->steps), GT_INT("saved", s->saved),
		            GT_INT("batch", s->batch), GT_INT("config_batch", s->config_batch), GT_INT("samples", s->samples),
		            GT_STR("data", s->data), GT_BOOL("synthetic", s->synthetic), GT_STR("why", s->why), GT_STR("weights", s->weights));
	} else if (!strcmp(s->phase, "train")) {
		gt_json_add(j, GT_STR("start", s->start), GT_NUM("first_loss", s->first_loss, 9), GT_NUM("last_loss", s->last_loss, 9));
	} else if (!strcmp(s->phase, "evaluate")) {
		gt_json_add(j, GT_STR("split", s->split), GT_NUM("loss", s->loss, 9), GT_NUM("acc", s->acc, 9));
	} else if (!strcmp(s->phase, "checkpoint")) {
		gt_json_uint(j, "bytes", s->bytes);
	} else if (!strcmp(s->phase, "runs")) {
		gt_against_write_runs(j, s->runs);
	} else if (!strcmp(s->phase, "operations")) {
		gt_against_write_operations(j, s->operations);
	} else if (!strcmp(s->phase, "compare")) {
		gt_json_add(j, GT_STR("model", s->model), GT_STR("optimizer", s->optimizer));
	}
}

static void on_phase(void *user, const struct gt_smoke *s)
{
	struct view *v = user;
	struct gt_json *j = &v->cli->json;
	struct gt_err err;
	snprintf(v->name, sizeof v->name, "%s", s->name);
	if (!v->cli->args.json) {
		text_line(v, s);
		return;
	}
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("event", "smoke"), GT_STR("phase", s->phase), GT_NUM("seconds", s->seconds, 6));
	phase_json(j, s);
	gt_json_end(j);
	if (gt_out_json(v->cli, &err) != GT_OK)
		gt_cli_complain(v->cli, err.msg);
}

static void print_note(void *user, const char *line)
{
	const struct view *v = user;
	gt_cli_note(v->cli, "%s", line);
}

static enum gt_code report_end(struct view *v, enum gt_code code, struct gt_err *err)
{
	struct gt_cli *cli = v->cli;
	char took[GT_UNITS], clean[sizeof v->name];
	double seconds = gt_clock() - v->start;
	if (!cli->args.json) {
		if (code == GT_OK)
			gt_out(cli, "%ssmoke test passed%s: %s in %s\n", gt_style(cli->color_out, GT_STYLE_BOLD),
			       gt_style(cli->color_out, GT_STYLE_NONE), gt_cli_printable(v->name, clean, sizeof clean),
			       gt_units_seconds(took, seconds));
		return code;
	}
	gt_json_object(&cli->json, NULL);
	gt_json_add(&cli->json, GT_STR("event", "smoke"), GT_STR("phase", "end"), GT_NUM("seconds", seconds, 6),
	            GT_STR("status", code == GT_OK ? "ok" : "failed"), GT_INT("code", code));
	if (code != GT_OK)
		gt_json_string(&cli->json, "error", err->msg);
	gt_json_end(&cli->json);
	struct gt_err lost;
	enum gt_code written = gt_out_json(cli, code == GT_OK ? err : &lost);
	return code == GT_OK ? written : code;
}

static enum gt_code run_smoke_test(struct gt_cli *cli, const struct gt_job_args *job, struct gt_conf *conf, struct gt_err *err)
{
	struct view v = {.cli = cli, .start = gt_clock()};
	struct gt_run_opts o = {
	    .out = job->out, .device = job->device, .init = job->init, .against = job->against, .time_limit_s = job->time_limit,
	    .say = print_note, .user = &v};
	GT_TRY(gt_cli_ranks(cli, job, &o, err));
	return report_end(&v, gt_smoke(conf, &o, on_phase, err), err);
}

gt_smoke_function *const gt_smoke_command = run_smoke_test;
