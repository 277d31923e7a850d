#include "commands.h"
#include "gtrain.h"
#include "gtrain_report.h"
#include <inttypes.h>
#include <stdio.h>

enum { NARROWEST = 16 }; /* minimum width of the column with names of layers; if less remains, another column is removed */

struct bench_args {
	struct gt_job_args job;
	int64_t steps;
};
#define OFFSET(member) offsetof(struct bench_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct bench_args),
	GT_OPT_DEVICE(struct bench_args),
	GT_OPT_NPROC(struct bench_args),
	{"world", 0, GT_OPTION_INT, OFFSET(job.world), "N", GT_COMPLETE_NONE, NULL, 1, 65536,
	 "measure the kernels of one rank of N, or of one rank of each pipeline stage, without communication; check --times reads the result"},
	{"steps", 0, GT_OPTION_INT, OFFSET(steps), "N", GT_COMPLETE_NONE, NULL, 1, 1000000, "number of training steps to time; default: 100"},
	{0},
};

static void ranks_json(struct gt_json *j, const struct gt_bench *b)
{
	gt_json_array(j, "ranks");
	for (int i = 0; i < b->nranks; i++)
		gt_json_row(j, NULL, GT_INT("rank", i), GT_INT("copy", b->ranks[i].copy), GT_INT("place", b->ranks[i].pipe_rank),
		            GT_NUM("step_ms", b->ranks[i].step_ms, 6), GT_NUM("wait_ms", b->ranks[i].wait_ms, 6));
	gt_json_end(j);
	gt_json_double(j, "wait", b->wait, 6);
	if (!b->nstages)
		return;
	gt_json_int(j, "micro_batches", b->micros);
	gt_json_array(j, "stages");
	for (int i = 0; i < b->nstages; i++)
		gt_json_row(j, NULL, GT_INT("place", b->stages[i].pipe_rank), GT_STR("first", b->stages[i].first),
		            GT_NUM("forward_ms", b->stages[i].forward_ms, 6), GT_NUM("backward_ms", b->stages[i].backward_ms, 6),
		            GT_NUM("weights_ms", b->stages[i].weights_ms, 6));
	gt_json_end(j);
	gt_json_add(j, GT_NUM("bubble", b->bubble, 6), GT_NUM("bubble_even", b->even, 6));
}

static enum gt_code print_json(struct gt_cli *cli, const struct gt_bench *b, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("device", b->device), GT_NUM("step_ms", b->step_ms, 6), GT_NUM("kernels_ms", b->kernels_ms, 6),
	            GT_NUM("samples_per_s", b->samples_per_s, 6), GT_NUM("gflops", b->gflops, 6), GT_NUM("peak_mb", b->peak_mb, 6));
	gt_json_array(j, "phases");
	for (int i = 0; i < b->nphases; i++)
		gt_json_row(j, NULL, GT_STR("when", b->phases[i].when), GT_NUM("step_ms", b->phases[i].step_ms, 6),
		            GT_NUM("samples_per_s", b->phases[i].samples_per_s, 6), GT_NUM("gflops", b->phases[i].gflops, 6));
	gt_json_end(j);
	gt_json_array(j, "kernels");
	for (int i = 0; i < b->nrows; i++)
		gt_json_row(j, NULL, GT_STR("op", b->rows[i].op), GT_STR("layer", b->rows[i].layer), GT_STR("impl", b->rows[i].impl),
		            GT_NUM("ms", b->rows[i].ms, 6), GT_NUM("gflops", b->rows[i].gflops, 6), GT_NUM("share", b->rows[i].share, 6),
		            GT_INT("calls", b->rows[i].calls), GT_INT("size", b->rows[i].size));
	gt_json_end(j);
	if (b->nranks)
		ranks_json(j, b);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code print_stages(struct gt_cli *cli, const struct gt_bench *b, struct gt_err *err)
{
	char number[32], place[32], f[GT_UNITS], back[GT_UNITS], w[GT_UNITS];
	struct gt_table t;
	gt_table_init(&t, cli->arena, "rrlrrr");
	gt_table_head(&t, "stage", "place", "from layer", "forward", "backward", "weights");
	for (int i = 0; i < b->nstages; i++) {
		const struct gt_bench_stage *s = &b->stages[i];
		snprintf(number, sizeof number, "%d", i);
		snprintf(place, sizeof place, "%d", s->pipe_rank);
		gt_table_add(&t, number, place, s->first, gt_units_seconds(f, s->forward_ms * 1e-3), gt_units_seconds(back, s->backward_ms * 1e-3),
		             s->weights_ms > 0 ? gt_units_seconds(w, s->weights_ms * 1e-3) : "");
	}
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out(cli, "times of one micro-batch; a step has %d micro-batches\n", b->micros);
	return GT_OK;
}

static enum gt_code print_ranks(struct gt_cli *cli, const struct gt_bench *b, struct gt_err *err)
{
	char number[32], step[GT_UNITS], wait[GT_UNITS], share[32];
	struct gt_table t;
	gt_table_init(&t, cli->arena, "rrrr");
	gt_table_head(&t, "rank", "step", "communication", "share");
	for (int i = 0; i < b->nranks; i++) {
		const struct gt_bench_rank *r = &b->ranks[i];
		snprintf(number, sizeof number, "%d", i);
		snprintf(share, sizeof share, "%.1f%%", r->step_ms > 0 ? 100 * r->wait_ms / r->step_ms : 0);
		gt_table_add(&t, number, gt_units_seconds(step, r->step_ms * 1e-3), gt_units_seconds(wait, r->wait_ms * 1e-3), share);
	}
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	if (b->nstages)
		GT_TRY(print_stages(cli, b, err));
	gt_out(cli, "\nwaiting for other ranks and for communication: %.1f%% of the ranks' time", 100 * b->wait);
	if (b->nstages)
		gt_out(cli, "; idle time of the schedule: %.1f%% with the measured times of the stages, %.1f%% with equal times",
		       100 * b->bubble, 100 * b->even);
	gt_out(cli, "\n");
	return GT_OK;
}

/* world: value of --world, or 0 */
static enum gt_code print_text(struct gt_cli *cli, const struct gt_bench *b, int64_t world, struct gt_err *err)
{
	char ms[GT_UNITS], gflops[GT_UNITS], share[GT_UNITS], a[GT_UNITS], line[400], note[96] = "";
	struct gt_table t;
	gt_table_init(&t, cli->arena, "lllrrr");
	gt_table_head(&t, "layer", "operation", "implementation", "time", "FLOP/s", "share");
	for (int i = 0; i < b->nrows; i++) {
		const struct gt_bench_row *r = &b->rows[i];
		snprintf(share, sizeof share, "%.1f%%", 100 * r->share);
		gt_table_add(&t, r->layer, r->op, r->impl, gt_units_seconds(ms, r->ms * 1e-3),
		             r->gflops > 0 ? gt_units_si(gflops, r->gflops * 1e9, "") : "", share);
	}
	gt_table_rule(&t);
	gt_table_add(&t, "step", "", "", gt_units_seconds(ms, b->step_ms * 1e-3), gt_units_si(gflops, b->gflops * 1e9, ""), "");
	for (int i = 0; i < b->nphases; i++) {
		char when[GT_UNITS + 64];
		snprintf(when, sizeof when, "step %s", b->phases[i].when);
		gt_table_add(&t, when, "", "", gt_units_seconds(ms, b->phases[i].step_ms * 1e-3),
		             gt_units_si(gflops, b->phases[i].gflops * 1e9, ""), "");
	}
	gt_table_narrow(cli, &t, 0, NARROWEST, "2"); /* the implementation */
	GT_TRY(gt_table_print(cli, &t, err));
	if (b->nranks)
		GT_TRY(print_ranks(cli, b, err));
	if (world)
		snprintf(note, sizeof note, "; %" PRId64 " ranks together, without the time of communication", world);
	snprintf(line, sizeof line, "%s samples/s on %s, at most %.0f MB of memory%s%s", gt_units_si(a, b->samples_per_s, ""), b->device,
	         b->peak_mb, b->nranks ? " on rank 0, whose kernels are listed" : "", note);
	gt_out(cli, "\n");
	gt_out_sentence(cli, line);
	return GT_OK;
}

static void print_note(void *user, const char *line)
{
	gt_cli_note(user, "%s", line);
}

static enum gt_code run_bench(struct gt_cli *cli, struct gt_err *err)
{
	const struct bench_args *a = cli->options;
	struct gt_conf *conf;
	struct gt_bench *b = NULL;
	GT_TRY(gt_cli_conf(cli, &a->job, &conf, err));
	struct gt_run_opts o = {.device = a->job.device, .say = print_note, .user = cli};
	int steps = a->steps ? (int)a->steps : 100;
	enum gt_code code = GT_OK;
	if (a->job.world && (a->job.nproc || cli->link))
		code = gt_fail(err, GT_EUSAGE, "--world and --nproc cannot be combined: --world measures ranks of a world that does not run");
	else if (a->job.world)
		code = gt_bench_world(conf, a->job.device, (int)a->job.world, steps, &b, err);
	else if ((code = gt_cli_ranks(cli, &a->job, &o, err)) == GT_OK)
		code = gt_bench(conf, &o, steps, &b, err);
	if (code == GT_OK && b) /* b is NULL if rank 0 is another process; that process has printed the result */
		code = cli->args.json ? print_json(cli, b, err) : print_text(cli, b, a->job.world, err);
	gt_bench_free(b);
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_bench = {
	.name = "bench",
	.operands = "CFG",
	.about = "Measures the time of a training step of CFG and shows it kernel by kernel. With\n"
	         "several ranks, also shows how long each rank waits for the other ranks.",
	.example = "gtrain bench configs/fmnist_mlp.cfg --steps 500",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct bench_args),
	.run = run_bench,
};
