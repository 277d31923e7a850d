/* gt_bench on several ranks: starts them and combines their measurements. */
#include "report/bench.h"
#include "comm.h"
#include "plan/mode_pipe.h"
#include "session/session_pipe.h"
#include "session/world_plan.h"
#include "train/rank_session.h"
#include <stdlib.h>

/* ---- what they have measured ------------------------------------------------------------------------------------------------------------
 */

/* Computes the mean over the copies of the pipeline for each stage. all: one measurement per rank. */
static enum gt_code average_stages(const struct gt_session *s, const struct gt_measured *all, struct gt_bench *b, struct gt_err *err)
{
	int npipe = s->at.npipe;
	b->nstages = npipe * gt_pipe_stages(s->conf, npipe);
	b->micros = s->prog.full.nmicro;
	GT_NEW(b->stages, b->arena, b->nstages, err);
	for (int i = 0; i < b->nstages; i++) {
		double mean[GT_PHASE_COUNT] = {0};
		const char *first;
		GT_NEW_STR(first, gt_arena_strdup(b->arena, gt_session_pipe_first_layer(s, i)), err);
		for (int r = 0; r < s->at.world; r++)
			for (int k = 0; b->ranks[r].pipe_rank == i % npipe && k < GT_PHASE_COUNT; k++)
				mean[k] += 1e3 * all[r].cell[i / npipe][k] / s->at.ndata;
		b->stages[i] = (struct gt_bench_stage){.pipe_rank = i % npipe,
		                                       .first = first,
		                                       .forward_ms = mean[GT_PHASE_F],
		                                       .backward_ms = mean[GT_PHASE_B],
		                                       .weights_ms = mean[GT_PHASE_W]};
	}
	return GT_OK;
}

/* Computes the idle share of a step by the schedule with the measured times of the stages. All ranks start the work after the schedule
 * together. */
static enum gt_code predict_bubble(const struct gt_session *s, const struct gt_measured *all, struct gt_bench *b, struct gt_err *err)
{
	struct gt_grid *g;
	struct gt_grid_time t;
	struct gt_grid_cost cost = {0};
	double *part[GT_PHASE_COUNT], busy = 0, rest = 0;
	GT_TRY(gt_session_pipe_grid(s, b->arena, &g, err));
	GT_TRY(gt_grid_time(b->arena, g, &cost, &t, err));
	b->even = t.bubble;
	for (int k = 0; k < GT_PHASE_COUNT; k++)
		GT_NEW(part[k], b->arena, b->nstages, err);
	for (int i = 0; i < b->nstages; i++) {
		part[GT_PHASE_F][i] = b->stages[i].forward_ms;
		part[GT_PHASE_B][i] = b->stages[i].backward_ms;
		part[GT_PHASE_W][i] = b->stages[i].weights_ms;
	}
	cost = (struct gt_grid_cost){.f = part[GT_PHASE_F], .b = part[GT_PHASE_B], .w = part[GT_PHASE_W]};
	GT_TRY(gt_grid_time(b->arena, g, &cost, &t, err));
	for (int r = 0; r < s->at.world; r++) {
		busy += (1 - t.idle[b->ranks[r].pipe_rank]) * t.span + 1e3 * all[r].rest;
		rest = 1e3 * all[r].rest > rest ? 1e3 * all[r].rest : rest;
	}
	b->bubble = t.span + rest > 0 ? 1 - busy / s->at.world / (t.span + rest) : 0;
	return GT_OK;
}

enum gt_code gt_bench_ranks(struct gt_session *s, const struct gt_measured *own, struct gt_bench *b, struct gt_err *err)
{
	const struct gt_comm *c = s->team ? s->team->comm : NULL;
	struct gt_measured *all;
	struct { int32_t copy, pipe_rank; } at = {s->at.data, s->at.pipe}, *places;
	double step = 0, wait = 0;
	if (!c)
		return GT_OK;
	GT_NEW(all, b->arena, s->at.world, err);
	GT_NEW(places, b->arena, s->at.world, err);
	struct gt_coll x = {.what = "times", .in = own, .out = all, .count = sizeof *own, .dtype = GT_U8};
	struct gt_coll y = {.what = "places", .in = &at, .out = places, .count = sizeof at, .dtype = GT_U8};
	GT_TRY(c->api->all_gather(s->team->comm, &x, err));
	GT_TRY(c->api->all_gather(s->team->comm, &y, err));
	b->nranks = s->at.world;
	GT_NEW(b->ranks, b->arena, b->nranks, err);
	for (int r = 0; r < b->nranks; r++) {
		b->ranks[r] = (struct gt_bench_rank){.copy = places[r].copy, .pipe_rank = places[r].pipe_rank, .step_ms = 1e3 * all[r].step,
		                                     .wait_ms = 1e3 * all[r].wait};
		step += all[r].step;
		wait += all[r].wait;
	}
	b->wait = step > 0 ? wait / step : 0;
	if (s->at.npipe < 2)
		return GT_OK;
	GT_TRY(average_stages(s, all, b, err));
	return predict_bubble(s, all, b, err);
}

/* ---- the ranks ----------------------------------------------------------------------------------------------------------------------- */

struct job {
	struct gt_conf *c;
	int steps;
	struct gt_bench *result; /* result of rank 0 */
};

static enum gt_code measure_session(void *user, struct gt_session *s, struct gt_err *err)
{
	struct job *j = user;
	struct gt_arena *a;
	struct gt_measured own;
	if (!s->prog.full.n)
		return gt_conf_refuse(j->c, "data.batch", err, "expected at most as many samples as the training split has, got a batch of %lld",
		                      (long long)s->batch.size);
	GT_TRY(gt_arena_open(&a, err));
	struct gt_bench *b = gt_arena_alloc(a, 1, sizeof *b);
	enum gt_code code = b ? GT_OK : gt_fail_memory(err, sizeof *b);
	if (code == GT_OK) {
		b->arena = a;
		code = gt_bench_session(s, j->steps, b, &own, err);
	}
	if (code == GT_OK)
		code = gt_bench_ranks(s, &own, b, err);
	if (code == GT_OK && s->at.rank == 0)
		j->result = b;
	else
		gt_arena_close(a);
	return code;
}

enum gt_code gt_bench(struct gt_conf *c, const struct gt_run_opts *o, int steps, struct gt_bench **out, struct gt_err *err)
{
	struct job j = {.c = c, .steps = steps};
	struct gt_rank_session r = {
	    .conf = c, .opts = o, .spec = {.train = true}, .start = "a benchmark", .body = measure_session, .user = &j};
	*out = NULL;
	if (steps <= 0)
		return gt_fail(err, GT_EUSAGE, "--steps: expected an integer > 0, got %d", steps);
	GT_TRY(gt_rank_session_run(&r, err));
	*out = j.result;
	return GT_OK;
}

void gt_bench_free(struct gt_bench *b)
{
	if (b)
		gt_arena_close(b->arena);
}
