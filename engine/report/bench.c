/* gt_bench: measures the steps of a run with the config's data and plan: the time of each kernel and of the communication. With several
 * ranks, starts them and combines their measurements. */
#include "base/clock.h"
#include "comm.h"
#include "gtrain_report.h"
#include "plan/mode_pipe.h"
#include "report/bench_parts.h"
#include "report/step_size.h"
#include "session/session_pipe.h"
#include "session/world_plan.h"
#include "train/rank_session.h"
#include "train/trainer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MEASURE_STAGES 64 /* maximum number of pipeline stages that one rank has, which is the maximum of parallel.virtual_stages */

/* The measurements of one rank, which the ranks exchange. All times are in seconds. */
struct measured {
	double step, wait; /* time of an optimizer step; time that the rank spends in communication in a step */
	double rest; /* time in a step of kernels that belong to no cell of the pipeline schedule: the check and the update */
	/* time of one micro-batch in each phase (forward, backward, …) of each stage of the rank */
	double cell[MEASURE_STAGES][GT_PHASE_COUNT];
};

static int by_time(const void *a, const void *b)
{
	double x = ((const struct gt_bench_row *)a)->ms, y = ((const struct gt_bench_row *)b)->ms;
	return x < y ? 1 : x > y ? -1 : 0;
}

static enum gt_code collect_oldest_window(struct gt_session *s, struct gt_err *err)
{
	const struct gt_window *w;
	GT_TRY(gt_exec_collect(&s->exec, &w, err));
	for (int i = 0; i < w->n; i++)
		if (w->scalars[i].skip)
			return gt_fail(err, GT_EDIVERGED, "training diverged at step %lld of the benchmark",
			               (long long)w->step_args[i * w->prog->nmicro].step);
	return GT_OK;
}

/* Runs `steps` optimizer steps on full batches, queued in windows as in training. Begins a new epoch before the incomplete last batch of an
 * epoch. p: the program of a step. */
static enum gt_code run_steps(struct gt_session *s, const struct gt_prog *p, int steps, struct gt_err *err)
{
	int64_t full = s->batch.samples / s->batch.size, done = full;
	for (int i = 0; i < steps;) {
		struct gt_step_args *step_args;
		if (done >= full) {
			gt_loader_use_longest(s->prog.loader);
			GT_TRY(gt_loader_start(s->prog.loader, i, 0, err));
			done = 0;
		}
		int n = gt_exec_window_size(&s->exec, p, steps - i < full - done ? steps - i : full - done), left = n * p->nmicro;
		GT_TRY(gt_exec_step_args(&s->exec, &step_args, err));
		for (int k = 0; k < n; k++, i++, done++) {
			for (int m = 0; m < p->nmicro; m++) {
				struct gt_step_args *d = &step_args[k * p->nmicro + m];
				*d = (struct gt_step_args){
				    .seed = (uint64_t)s->conf->seed, .stride = 1, .step = i + 1, .inv_weight = 1 / (double)s->batch.size, .left = --left};
				gt_optim_rates(&s->optim, i, s->batch.steps, s->batch.steps_per_epoch, d->lr);
				gt_optim_momenta(&s->optim, i, s->batch.steps, s->batch.steps_per_epoch, d->momentum);
			}
			GT_TRY(gt_loader_take_parts(s->prog.loader, p->nmicro, &step_args[k * p->nmicro], err));
		}
		GT_TRY(gt_exec_launch(&s->exec, p, s->prog.loader, n, err));
		gt_rank_report_progress(s->exec.link, i);
		if (s->exec.queued == s->exec.depth)
			GT_TRY(collect_oldest_window(s, err));
	}
	while (s->exec.queued)
		GT_TRY(collect_oldest_window(s, err));
	return GT_OK;
}

/* Returns the row of the table to which a program step belongs. All micro-batches of one size share a row for each operation and layer. */
static struct gt_bench_row *find_row(struct gt_bench *b, const struct gt_session *s, const struct gt_step *st)
{
	struct gt_bench_row r = {.size = gt_step_size(s, st)};
	bool joins = st->call && st->call->comm && !st->end;
	snprintf(r.op, sizeof r.op, "%s", st->call ? st->call->op : gt_step_name(st->kind));
	snprintf(r.layer, sizeof r.layer, "%s", st->call ? st->call->layer : "");
	if (st->call && st->call->kernel)
		snprintf(r.impl, sizeof r.impl, "%s", s->device.be->describe(st->call->kernel));
	else if (joins && s->exec.group[st->call->comm->group])
		snprintf(r.impl, sizeof r.impl, "%s", s->exec.group[st->call->comm->group]->api->name);
	for (int i = 0; i < b->nrows; i++)
		if (b->rows[i].size == r.size && !strcmp(b->rows[i].op, r.op) && !strcmp(b->rows[i].layer, r.layer) &&
		    !strcmp(b->rows[i].impl, r.impl))
			return &b->rows[i];
	b->rows[b->nrows] = r;
	return &b->rows[b->nrows++];
}

/* Adds up the times of each row. times: seconds of each program step, summed over `steps` executions of the program. */
static enum gt_code sum_rows(struct gt_bench *b, const struct gt_session *s, const double *times, int steps, struct gt_err *err)
{
	const struct gt_prog *p = &s->prog.full;
	double total = 0, flops = 0;
	GT_NEW(b->rows, b->arena, p->n, err);
	for (int i = 0; i < p->n; i++)
		total += times[i];
	for (int i = 0; i < p->n; i++) {
		struct gt_bench_row *r = find_row(b, s, &p->step[i]);
		double own = p->step[i].call ? p->step[i].call->flops : 0;
		r->ms += 1e3 * times[i] / steps;
		r->calls++;
		r->gflops += own;
		flops += own;
	}
	for (int i = 0; i < b->nrows; i++) {
		struct gt_bench_row *r = &b->rows[i];
		r->share = total > 0 ? r->ms * 1e-3 * steps / total : 0;
		r->gflops = r->ms > 0 ? r->gflops / r->ms / 1e6 : 0;
	}
	b->kernels_ms = 1e3 * total / steps;
	b->gflops = flops / b->step_ms / 1e6;
	qsort(b->rows, (size_t)b->nrows, sizeof *b->rows, by_time);
	return GT_OK;
}

static bool is_communication(const struct gt_step *st)
{
	return st->kind == GT_STEP_COMM && !st->end;
}

/* Adds the time of each program step to a cell of the pipeline schedule, to communication, or to the rest. */
static void assign_times(const struct gt_session *s, const double *times, int steps, struct measured *out)
{
	const struct gt_prog *p = &s->prog.full;
	int micros = p->nmicro > 0 ? p->nmicro : 1;
	for (int i = 0; i < p->n; i++) {
		const struct gt_step *st = &p->step[i];
		bool loads = st->kind == GT_STEP_LOAD || st->kind == GT_STEP_BIND || st->kind == GT_STEP_PASS;
		int k = st->plan && st->plan->graph->stages ? st->plan->graph->stage / s->at.npipe : 0;
		if (is_communication(st))
			continue;
		if (loads || (st->plan && st->call && !st->call->fused_update))
			out->cell[k][loads ? GT_PHASE_F : st->call->phase] += times[i] / steps / micros;
		else
			out->rest += times[i] / steps;
	}
}

/* Waits for all ranks, so that a measurement does not include earlier work of another rank. */
static enum gt_code sync_ranks(const struct gt_session *s, struct gt_err *err)
{
	const struct gt_team *t = s->team;
	if (!t || !t->comm)
		return GT_OK;
	gt_rank_set_waiting(t->link, true);
	enum gt_code code = t->comm->api->barrier(t->comm, 0, err);
	gt_rank_set_waiting(t->link, false);
	return code;
}

static enum gt_code time_steps(struct gt_session *s, const struct gt_prog *p, int steps, double *seconds, struct gt_err *err)
{
	GT_TRY(s->device.be->sync(s->device.dev, 0, err));
	GT_TRY(sync_ranks(s, err));
	double start = gt_clock();
	GT_TRY(run_steps(s, p, steps, err));
	GT_TRY(s->device.be->sync(s->device.dev, 0, err));
	*seconds = (gt_clock() - start) / steps;
	return GT_OK;
}

/* Measures the time of communication. With host memory, a call of the communicator has finished when it returns, so its time is measured in
 * an additional pass that queues steps as in training. Otherwise, the time comes from `times`, for which the host waited after every
 * program step. */
static enum gt_code measure_comm_wait(struct gt_session *s, int steps, const double *times, struct measured *out, struct gt_err *err)
{
	const struct gt_prog *p = &s->prog.full;
	out->step = out->wait = 0;
	if (s->device.be->host_memory) {
		s->exec.waited = &out->wait;
		enum gt_code code = time_steps(s, p, steps, &out->step, err);
		s->exec.waited = NULL;
		out->wait /= steps;
		return code;
	}
	for (int i = 0; i < p->n; i++) {
		out->step += times[i] / steps;
		out->wait += is_communication(&p->step[i]) ? times[i] / steps : 0;
	}
	return GT_OK;
}

static enum gt_code warm_up(struct gt_session *s, const struct gt_prog *p, int steps, struct gt_err *err)
{
	/* without times: fills caches, maps pages, and lets the clock frequency settle before the measurement */
	GT_TRY(run_steps(s, p, steps < 10 ? 2 : 10, err));
	if (s->exec.graphs) /* now that the time of a step is known, more steps are queued at once and recorded as CUDA graphs */
		for (int i = 0; i < 2; i++)
			GT_TRY(run_steps(s, p, steps, err));
	return GT_OK;
}

/* Measures a step in each phase of the run (with each set of frozen parameters). */
static enum gt_code measure_phases(struct gt_bench *b, struct gt_session *s, int steps, struct gt_err *err)
{
	char when[64];
	GT_NEW(b->phases, b->arena, s->optim.nphases + 1, err);
	for (int k = 0; k < s->optim.nphases; k++) {
		const struct gt_prog *p = &s->prog.phase[k].full;
		struct gt_bench_phase *out = &b->phases[b->nphases];
		double seconds, flops = 0;
		if (!p->n || !gt_optim_reaches(&s->optim, 1 + k))
			continue;
		GT_NEW_STR(out->when, gt_arena_strdup(b->arena, gt_optim_phase_text(&s->optim, 1 + k, when, sizeof when)), err);
		GT_TRY(warm_up(s, p, steps, err));
		GT_TRY(time_steps(s, p, steps, &seconds, err));
		for (int i = 0; i < p->n; i++)
			flops += p->step[i].call ? p->step[i].call->flops : 0;
		out->step_ms = 1e3 * seconds;
		out->samples_per_s = (double)s->batch.size / seconds;
		out->gflops = flops / seconds / 1e9;
		b->nphases++;
	}
	return GT_OK;
}

/* Runs the benchmark on the session of this rank. Fills *out, and the members of b that describe one rank. */
static enum gt_code bench_session(struct gt_session *s, int steps, struct gt_bench *b, struct measured *out, struct gt_err *err)
{
	const struct gt_prog *p = &s->prog.full;
	double *times, seconds;
	struct rusage ru;
	*out = (struct measured){0};
	GT_TRY(gt_session_init(s, err));
	GT_NEW(times, b->arena, s->prog.full.n, err);
	GT_TRY(warm_up(s, p, steps, err));
	GT_TRY(time_steps(s, p, steps, &seconds, err));
	b->step_ms = 1e3 * seconds;
	b->samples_per_s = 1e3 * (double)s->batch.size / b->step_ms;
	s->exec.times = times; /* times are measured in a second pass, because reading the clock after each program step slows the steps down */
	enum gt_code code = time_steps(s, p, steps, &seconds, err);
	s->exec.times = NULL;
	GT_TRY(code);
	GT_TRY(measure_comm_wait(s, steps, times, out, err));
	assign_times(s, times, steps, out);
	GT_NEW_STR(b->device, gt_arena_strdup(b->arena, s->device.info.name), err);
	getrusage(RUSAGE_SELF, &ru);
	b->peak_mb = (double)ru.ru_maxrss / 1e3;
	GT_TRY(sum_rows(b, s, times, steps, err));
	return measure_phases(b, s, steps, err);
}

/* ---- several ranks: the measurements of all ---------------------------------------------------------------------------------------- */

/* Computes the mean time of each pipeline stage over the copies of the model. all: the measurements of each rank. */
static enum gt_code average_stages(const struct gt_session *s, const struct measured *all, struct gt_bench *b, struct gt_err *err)
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

/* Computes the idle share of a step from the pipeline schedule and the measured times of the stages. The check and the update begin after
 * the schedule on all ranks at the same time. */
static enum gt_code predict_bubble(const struct gt_session *s, const struct measured *all, struct gt_bench *b, struct gt_err *err)
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

/* Exchanges the measurements, and fills the members of b that describe all ranks. All ranks call it. */
static enum gt_code exchange_measurements(struct gt_session *s, const struct measured *own, struct gt_bench *b, struct gt_err *err)
{
	const struct gt_comm *c = s->team ? s->team->comm : NULL;
	struct measured *all;
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
	int steps;
	struct gt_bench *result; /* result of rank 0 */
};

/* Measures the kernels of this rank. The caller frees *out; *own has the measurements for the other ranks. */
static enum gt_code measure_rank(struct gt_session *s, int steps, struct gt_bench **out, struct measured *own, struct gt_err *err)
{
	struct gt_arena *a;
	*out = NULL;
	if (!s->prog.full.n)
		return gt_conf_refuse(s->conf, "data.batch", err, "expected at most as many samples as the training split has, got a batch of %lld",
		                      (long long)s->batch.size);
	GT_TRY(gt_arena_open(&a, err));
	struct gt_bench *b = gt_arena_alloc(a, 1, sizeof *b);
	enum gt_code code = b ? GT_OK : gt_fail_memory(err, sizeof *b);
	if (code == GT_OK) {
		b->arena = a;
		code = bench_session(s, steps, b, own, err);
	}
	if (code == GT_OK)
		*out = b;
	else
		gt_arena_close(a);
	return code;
}

static enum gt_code measure_session(void *user, struct gt_session *s, struct gt_err *err)
{
	struct job *j = user;
	struct gt_bench *b;
	struct measured own;
	GT_TRY(measure_rank(s, j->steps, &b, &own, err));
	enum gt_code code = exchange_measurements(s, &own, b, err);
	if (code == GT_OK && s->at.rank == 0)
		j->result = b;
	else
		gt_bench_free(b);
	return code;
}

enum gt_code gt_bench_session(struct gt_session *s, int steps, struct gt_bench **out, struct gt_err *err)
{
	struct measured own;
	return measure_rank(s, steps, out, &own, err);
}

enum gt_code gt_bench(struct gt_conf *c, const struct gt_run_opts *o, int steps, struct gt_bench **out, struct gt_err *err)
{
	struct job j = {.steps = steps};
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
