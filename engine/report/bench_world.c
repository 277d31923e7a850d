/* gt_bench_world: measures the kernels of the ranks of a world on one device, where no other rank runs. All kernels are measured with all
 * threads of the rank, also those of the communication stream, which exec/comm_thread.h executes with one thread in a run. */
#include "report/bench_parts.h"
#include "report/comm_echo.h"
#include "session/world_plan.h"
#include <string.h>

/* The ranks that are measured: the first rank of each stage. */
struct ranks {
	struct gt_conf *c;
	const char *device;
	int world, copies, stages, steps;
};

static enum gt_code measure_rank(const struct ranks *r, int rank, struct gt_bench **out, struct gt_err *err)
{
	struct gt_team team = {.world = {.how = "gtrain", .rank = rank, .world = r->world, .local_world = 1, .nnodes = r->world}};
	struct gt_session_spec spec = {.conf = r->c, .device = r->device, .team = &team, .train = true};
	struct gt_session *s = NULL;
	GT_TRY(gt_comm_echo_open(rank, r->world, r->copies, &team.comm, err));
	enum gt_code code = gt_session_open(&spec, &s, err);
	if (code == GT_OK) {
		code = gt_bench_session(s, r->steps, out, err);
		gt_session_close(s);
	}
	team.comm->api->close(team.comm);
	return code;
}

static struct gt_bench_row *find_row(struct gt_bench *b, const struct gt_bench_row *like)
{
	for (int i = 0; i < b->nrows; i++)
		if (b->rows[i].size == like->size && !strcmp(b->rows[i].op, like->op) && !strcmp(b->rows[i].layer, like->layer) &&
		    !strcmp(b->rows[i].impl, like->impl))
			return &b->rows[i];
	return NULL;
}

/* Adds the rows of another rank to *to. The share of a row is that of its own rank's time. */
static enum gt_code merge_ranks(struct gt_bench *to, const struct gt_bench *from, struct gt_err *err)
{
	struct gt_bench_row *rows;
	GT_NEW(rows, to->arena, to->nrows + from->nrows, err);
	memcpy(rows, to->rows, (size_t)to->nrows * sizeof *rows);
	to->rows = rows;
	for (int i = 0; i < from->nrows; i++) {
		struct gt_bench_row *r = find_row(to, &from->rows[i]);
		if (!r) {
			rows[to->nrows++] = from->rows[i];
			continue;
		}
		r->gflops = r->ms + from->rows[i].ms > 0 ? (r->gflops * r->ms + from->rows[i].gflops * from->rows[i].ms) /
		                                               (r->ms + from->rows[i].ms) : 0;
		r->ms += from->rows[i].ms;
		r->calls += from->rows[i].calls;
	}
	if (from->step_ms > to->step_ms) {
		to->step_ms = from->step_ms;
		to->kernels_ms = from->kernels_ms;
		to->samples_per_s = from->samples_per_s;
		to->gflops = from->gflops;
	}
	to->peak_mb = from->peak_mb > to->peak_mb ? from->peak_mb : to->peak_mb;
	return GT_OK;
}

enum gt_code gt_bench_world(struct gt_conf *c, const char *device, int world, int steps, struct gt_bench **out, struct gt_err *err)
{
	struct ranks r = {.c = c, .device = device, .world = world, .steps = steps};
	struct gt_world_plan *plan;
	*out = NULL;
	GT_TRY(gt_device_check_computes(device, err));
	GT_TRY(gt_world_plan_open(c, device, true, true, world, 0, &plan, err)); /* checks the config, and counts copies and stages */
	r.copies = plan->copies;
	r.stages = plan->ranks;
	gt_world_plan_close(plan);
	enum gt_code code = measure_rank(&r, 0, out, err);
	for (int i = 1; i < r.stages && code == GT_OK; i++) {
		struct gt_bench *b = NULL;
		code = measure_rank(&r, i * r.copies, &b, err);
		if (code == GT_OK)
			code = merge_ranks(*out, b, err);
		gt_bench_free(b);
	}
	if (code != GT_OK) {
		gt_bench_free(*out);
		*out = NULL;
	}
	return code;
}
