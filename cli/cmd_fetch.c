#include "commands.h"
#include "base/clock.h"
#include "gtrain_data.h"
#include "status_line.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct fetch_args {
	const char *dir, *url;
};
#define OFFSET(member) offsetof(struct fetch_args, member)

static const struct gt_option options[] = {
	{"dir", 0, GT_OPTION_STRING, OFFSET(dir), "DIR", GT_COMPLETE_DIR, .help = "directory to download to; default: the user's cache"},
	{"url", 0, GT_OPTION_STRING, OFFSET(url), "URL", .help = "download from this address instead of the known mirrors"},
	{0},
};

struct showing {
	struct gt_cli *cli;
	double last;
	char file[256]; /* name of the file that is being downloaded */
};

static void show_transfer(void *user, const char *file, uint64_t done, uint64_t total)
{
	struct showing *s = user;
	const struct gt_args *a = &s->cli->args;
	char have[GT_UNITS], of[GT_UNITS], name[sizeof s->file];
	if (a->quiet || a->no_progress)
		return;
	gt_cli_printable(file, name, sizeof name);
	bool first = strcmp(name, s->file) != 0;
	memcpy(s->file, name, sizeof s->file);
	if (!s->cli->animate) {
		if (first)
			gt_cli_note(s->cli, "fetching %s", name);
		return;
	}
	double now = gt_clock();
	if (!first && now - s->last < 0.1)
		return;
	s->last = now;
	char text[1024];
	struct gt_parts parts = {0};
	gt_parts_add(&parts, 0, "%.40s", name);
	if (total) {
		gt_parts_bar(&parts, 3, (double)done / (double)total);
		gt_parts_add(&parts, 1, "%d%%", (int)(100 * ((double)done / (double)total)));
	}
	gt_parts_add(&parts, 2, "%s%s%s", gt_units_bytes(have, done), total ? " of " : "", total ? gt_units_bytes(of, total) : "");
	gt_parts_join(&parts, gt_status_columns() - 1, text, sizeof text);
	gt_status_paint(s->cli, text);
}

static enum gt_code run_fetch(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *g = &cli->args;
	const struct fetch_args *a = cli->options;
	const char *name = g->operands.v[0];
	struct showing s = {.cli = cli};
	char path[PATH_MAX];
	GT_TRY(gt_fetch_path(name, a->dir, path, sizeof path, err));
	enum gt_code code = gt_fetch(name, a->dir, a->url, show_transfer, &s, err);
	gt_status_erase(cli);
	if (code != GT_OK)
		return code;
	if (g->json) {
		gt_json_row(&cli->json, NULL, GT_STR("dataset", name), GT_STR("path", path), GT_STR("status", "ok"));
		return gt_out_json(cli, err);
	}
	if (!g->quiet)
		gt_cli_note(cli, "%s is complete, and its digests match: %s", name, path);
	return GT_OK;
}

const struct gt_command gt_cmd_fetch = {
	.name = "fetch",
	.operands = "NAME",
	.about = "Downloads a dataset, or the published weights of a network such as resnet18, into the\n"
	         "user's cache, where runs look for them. An interrupted transfer continues where it\n"
	         "stopped. A file appears only after its digest has been verified.",
	.example = "gtrain fetch fashion-mnist",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_DATASET,
	.options = options,
	.args_size = sizeof(struct fetch_args),
	.run = run_fetch,
};
