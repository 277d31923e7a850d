/* Mode "pipe": pipeline parallelism. The model is divided into stages, one or more on each rank. The micro-batches of a step pass through
 * the stages in the order of the schedule (pipeline_schedule.h), and their gradients are added up before one update, as with
 * train.accumulate. There may be several copies of the pipeline (parallel.replicas), each with its own samples. The gradients of a stage
 * are then summed over its copies, bucket by bucket, as soon as the backward pass of the last micro-batch has finished a bucket. With
 * across = "zero" the copies of a stage also shard the optimizer state, as stage 1 of mode "zero" does.
 *
 * Ranks are numbered stage by stage: the copies of one stage exchange the most data and have consecutive ranks (gt_rank_coords_of). A rank
 * that reads neither images nor labels skips the samples, because random draws depend on the samples' positions in the epoch.
 *
 *	gt_grid_make --> append_cell(), for each cell of this rank: RECV, LOAD, kernels, SEND, reductions of finished buckets
 *	             --> gt_pipe_separate_transfers --> CHECK, update --> gt_pipe_streams */
#include "plan/mode_pipe.h"
#include "plan/emit.h"
#include "plan/pipe_stream.h"
#include "plan/replicas.h"
#include <string.h>

int gt_pipe_stages(const struct gt_conf *c, int npipe)
{
	return c->parallel.schedule == GT_PIPE_INTERLEAVED && npipe > 1 ? (int)c->parallel.virtual_stages : 1;
}

static enum gt_code refuse_setting(const struct gt_conf *c, const char *what, struct gt_err *err)
{
	return gt_conf_refuse(c, "parallel.mode", err, "%s and parallel.mode = \"pipe\" cannot be combined", what);
}

static enum gt_code find_position(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err)
{
	int copies = (int)c->parallel.replicas;
	if (world % copies)
		return gt_conf_refuse(c, "parallel.replicas", err, "expected a divisor of the number of ranks, %d, got %d", world, copies);
	if (c->parallel.sync_bn)
		return refuse_setting(c, "parallel.sync_bn = true", err);
	if (c->reproducible == GT_REPRO_WORLD && (c->parallel.schedule == GT_PIPE_INTERLEAVED || c->parallel.schedule == GT_PIPE_ZERO_BUBBLE))
		return gt_conf_refuse(c, "reproducible", err,
		                      "reproducible = \"world\" and parallel.schedule = \"%s\" cannot be combined: this schedule computes the "
		                      "gradients of several micro-batches at once; use \"1f1b\"",
		                      c->parallel.schedule == GT_PIPE_INTERLEAVED ? "interleaved" : "zero-bubble");
	if (c->parallel.across == GT_ACROSS_ZERO && copies > 1 && gt_replicas_whole_optimizer(c))
		return gt_conf_refuse(c, "parallel.across", err,
		                      "parallel.across = \"zero\" and the optimizer \"%s\" cannot be combined: this optimizer needs whole "
		                      "parameters, but each copy of the pipeline would have only a part of them; use parallel.across = \"ddp\"",
		                      gt_replicas_whole_optimizer(c));
	struct gt_rank_coords s = gt_rank_coords_of(rank, world, world / copies);
	*out = (struct gt_rank_position){.rank = rank,
	                                 .world = world,
	                                 .data = s.rank[GT_GROUP_DATA],
	                                 .ndata = copies,
	                                 .pipe = s.rank[GT_GROUP_PIPE],
	                                 .npipe = world / copies};
	return GT_OK;
}

static void shard_arenas(const struct gt_conf *c, const struct gt_rank_position *at, const struct gt_offers *offers,
                         struct gt_shard_spec *out)
{
	gt_replicas_shard(c, at, offers, out);
	out->pipeline_stages = at->npipe > 1;
}

/* Chooses the method by which the copies of a pipeline make the same update. */
static enum gt_sync_method choose_sync(const struct gt_conf *c, const struct gt_offers *offers)
{
	(void)offers;
	return c->parallel.across == GT_ACROSS_ZERO ? GT_SYNC_SHARDED_UPDATE : GT_SYNC_ALL_REDUCE;
}

/* With data.batch_per_rank, the batch size is also a multiple of the number of ranks. */
static int64_t find_least_micro(const struct gt_conf *c, int64_t ranks)
{
	int64_t parts = gt_replicas_least_micro(c, c->parallel.chunks * c->parallel.replicas);
	return c->data.batch_per_rank > 0 ? parts * ranks : parts;
}

enum gt_code gt_pipe_act_slots(struct gt_arena *a, enum gt_pipe_schedule schedule, int ranks, int stages, int rank, int units,
                               int *act_slots, int *batches, struct gt_err *err)
{
	*act_slots = *batches = 0;
	/* the last batch of an epoch may have fewer micro-batches */
	for (int m = 1; m <= units; m = m < units && 2 * m > units ? units : 2 * m) {
		struct gt_grid *g;
		int n = 0;
		GT_TRY(gt_grid_make(a, schedule, ranks, stages, m, &g, err));
		for (int s = rank; s < g->stages; s += ranks)
			n += g->slots[s];
		*act_slots = n > *act_slots ? n : *act_slots;
		*batches = g->slots[rank] > *batches ? g->slots[rank] : *batches;
	}
	return GT_OK;
}

/* ---- the steps of one cell --------------------------------------------------------------------------------------------------------- */

struct pipe {
	struct gt_emit e;
	const struct gt_job *job;
	int *unit;               /* [micro]: index in job->unit of the micro-batch's unit; units without a plan are not in the schedule */
	int *act_slot;           /* [k]: first activation slot of stage k of this rank */
	struct gt_plan **plan;   /* [micro * nstages + k]: instance of the stage's plan; NULL: not made yet */
	int micros;              /* number of micro-batches in the schedule: units that have a plan */
	int before;              /* number of units for which flush_grad_levels has appended steps */
	gt_reduce *reduce;       /* appends the reduction of a bucket over the copies of the pipeline; NULL: there is one copy */
	bool sums;               /* some units add up levels of GRAD (gt_unit.carry), so gradients are complete only after all units */
	int bucket;              /* index of the next bucket to reduce */
};

/* Returns the instance (gt_plan_instance) of the stage's plan that a cell executes. It uses the activation slot of the cell. */
static struct gt_plan *plan_of_cell(struct pipe *p, const struct gt_cell *c)
{
	const struct gt_job *job = p->job;
	int k = c->stage / job->at.npipe;
	struct gt_plan **at = &p->plan[c->micro * job->nstages + k], *base = job->unit[p->unit[c->micro]].stage[k];
	int act_slot = p->act_slot[k] + c->slot, act_slots = job->space->memory.act_slots[base->graph->train];
	act_slots = act_slots ? act_slots : 1;
	/* reuses the instance of an earlier micro-batch that has the same kernels and the same memory */
	for (int m = 0; !*at && m < c->micro; m++) {
		struct gt_plan *q = p->plan[m * job->nstages + k];
		if (q && q->act_slot == act_slot && q->of == (base->of ? base->of : base) && q->level == base->level && q->copy == base->copy)
			*at = q;
	}
	if (!*at && p->e.code == GT_OK)
		p->e.code = act_slot < act_slots ? gt_plan_instance(base, act_slot, base->level, base->copy, at, p->e.err)
		                                 : gt_fail(p->e.err, GT_EINTERNAL, "a pipeline of %d micro-batches needs activation slot "
		                                           "%d, but has %d slots", p->job->nunits, act_slot, act_slots);
	return *at;
}

/* Returns whether a plan reads images or labels. */
static bool reads_batch(const struct gt_plan *p)
{
	return gt_graph_reads_batch(p->graph);
}

/* Appends the step that loads the micro-batch of forward cell c. The cell of the rank's first stage gets a LOAD, or a PASS if no stage of
 * this rank reads images or labels. A cell of a later stage of the rank that reads them gets a BIND. */
static void append_load(struct pipe *p, const struct gt_cell *c, struct gt_plan *q)
{
	const struct gt_unit *u = &p->job->unit[p->unit[c->micro]];
	bool any = false;
	for (int k = 0; k < p->job->nstages; k++)
		any |= reads_batch(u->stage[k]);
	if (c->stage == p->job->at.pipe)
		gt_emit_step(&p->e, (struct gt_step){.kind = any ? GT_STEP_LOAD : GT_STEP_PASS,
		                                     .micro = p->unit[c->micro],
		                                     .plan = any ? q : NULL});
	else if (reads_batch(q))
		gt_emit_step(&p->e, (struct gt_step){.kind = GT_STEP_BIND, .micro = p->unit[c->micro], .plan = q});
}

/* For a transfer from one stage of this rank to another: returns the call at the other end, which is in the other stage's plan of the same
 * micro-batch. NULL: no such call. */
static struct gt_call *other_end(struct pipe *p, int micro, const struct gt_plan *q, const struct gt_call *c)
{
	for (int k = 0; k < p->job->nstages; k++) {
		struct gt_plan *o = p->plan[micro * p->job->nstages + k];
		for (int i = 0; o && o != q && i < o->ncalls; i++)
			if (o->call[i].comm && o->call[i].comm->kind != c->comm->kind && o->call[i].comm->peer == p->job->at.pipe &&
			    !strcmp(o->call[i].layer, c->layer))
				return &o->call[i];
	}
	return NULL;
}

/* Appends a transfer. A transfer within the rank is one copy: in the forward pass the receiver makes it, in the backward pass the sender.
 * The SEND of a forward copy is in the backward pass (plan/pipeline_partition.h) only to keep the value until then. It makes no step,
 * because the receiver's memory may then be in other use. */
static void append_transfer(struct pipe *p, const struct gt_cell *cell, struct gt_plan *q, struct gt_call *c)
{
	struct gt_call *end = NULL;
	if (c->comm->group == GT_GROUP_PIPE && c->comm->peer == p->job->at.pipe) {
		bool receives = c->comm->kind == GT_COMM_RECV;
		if (receives != (cell->kind == GT_CELL_F))
			return;
		if (!(end = other_end(p, cell->micro, q, c))) {
			if (p->e.code == GT_OK)
				p->e.code = gt_fail(p->e.err, GT_EINTERNAL, "%s of %s within one rank has no matching send or receive", c->op, c->layer);
			return;
		}
		if (!receives && end->phase == GT_PHASE_F)
			return;
	}
	gt_emit_step(&p->e, (struct gt_step){.kind = GT_STEP_COMM, .micro = p->unit[cell->micro], .plan = q, .call = c, .end = end});
}

/* Appends the steps that clear and add up levels of GRAD for the units before `end`, including units without samples. The gradients of all
 * these units must be complete. */
static void flush_grad_levels(struct pipe *p, int end)
{
	for (; p->before < end; p->before++) {
		gt_emit_clear(&p->e, p->before);
		gt_emit_sum_levels(&p->e, p->before);
	}
}

/* Appends the reductions of buckets over the copies of the pipeline, in ascending order, until a bucket is not yet finished after call i of
 * a plan. ready: the result of gt_emit_bucket_ready for this plan; NULL: all buckets are finished. */
static void reduce_ready_buckets(struct pipe *p, const int *ready, int i)
{
	const struct gt_space *s = p->job->space;
	for (; p->bucket < s->shards.nbuckets; p->bucket++) {
		if (!gt_replicas_trains(p->job, p->bucket))
			continue;
		if (ready && (ready[p->bucket] < 0 || ready[p->bucket] > i))
			return;
		gt_replicas_reduce(&p->e, p->reduce, p->bucket, p->job->nunits - 1);
	}
}

/* If cell c completes the gradients of its stage, because it is a backward cell of the last micro-batch, returns the result of
 * gt_emit_bucket_ready; otherwise returns NULL. All ranks reduce buckets in the same order, from the last stage of a rank to its first, for
 * any number of micro-batches. Therefore two ranks cannot wait for each other. */
static int *find_ready_buckets(struct pipe *p, const struct gt_cell *c, const struct gt_plan *q)
{
	int *ready = NULL;
	if (!p->reduce || p->sums || c->kind == GT_CELL_F || c->micro < p->micros - 1)
		return NULL;
	ready = gt_arena_alloc(p->job->arena, (size_t)p->job->space->shards.nbuckets + 1, sizeof *ready);
	if (ready)
		gt_emit_bucket_ready(q, ready);
	else if (p->e.code == GT_OK)
		p->e.code = gt_fail_memory(p->e.err, (size_t)p->job->space->shards.nbuckets * sizeof *ready);
	return ready;
}

/* Appends one cell: the calls of its phase in the order of the plan. The step that loads the batch comes after the receives of the cell,
 * and the reduction of a bucket comes after the call that finishes its gradients. */
static void append_cell(struct pipe *p, const struct gt_cell *c)
{
	struct gt_plan *q = plan_of_cell(p, c);
	int unit = p->unit[c->micro], *ready, done = -1;
	if (!q)
		return;
	if (c->kind == GT_CELL_BW)
		flush_grad_levels(p, unit);
	ready = find_ready_buckets(p, c, q);
	bool loads = c->kind == GT_CELL_F;
	for (int i = 0; i < q->ncalls; i++) {
		struct gt_call *k = &q->call[i];
		if (!gt_cell_has(c, k->phase))
			continue;
		/* The batch is loaded after the receives, because the receives may run at the same time as the sends of the preceding cell. */
		if (loads && !(k->comm && k->comm->kind == GT_COMM_RECV)) {
			append_load(p, c, q);
			loads = false;
		}
		if (k->comm)
			append_transfer(p, c, q, k);
		else
			gt_emit_step(&p->e, (struct gt_step){.kind = GT_STEP_LAUNCH, .micro = unit, .plan = q, .call = k});
		done = i;
		if (ready && p->job->queues)
			reduce_ready_buckets(p, ready, i);
	}
	if (loads)
		append_load(p, c, q);
	if (ready) /* without streams, a reduction blocks the rank, so the sends come first: other stages wait for them */
		reduce_ready_buckets(p, ready, done);
	if (c->kind == GT_CELL_BW && p->job->nstages == 1)
		flush_grad_levels(p, unit + 1);
}

/* ---- the program ------------------------------------------------------------------------------------------------------------------- */

static enum gt_code list_micros(struct pipe *p, int *m, struct gt_err *err)
{
	const struct gt_job *job = p->job;
	GT_NEW(p->unit, job->arena, job->nunits + 1, err);
	GT_NEW(p->plan, job->arena, job->nunits * job->nstages + 1, err);
	GT_NEW(p->act_slot, job->arena, job->nstages + 1, err);
	*m = 0;
	for (int i = 0; i < job->nunits; i++) {
		if (job->unit[i].plan)
			p->unit[(*m)++] = i;
		p->sums |= job->unit[i].carry > 0;
	}
	p->micros = *m;
	return GT_OK;
}

/* Appends the steps of an evaluation: the forward passes of all micro-batches, one after the other. */
static enum gt_code append_eval(struct pipe *p, int m)
{
	for (int i = 0; i < m; i++)
		for (int k = 0; k < p->job->nstages; k++) {
			struct gt_cell c = {.kind = GT_CELL_F, .stage = k * p->job->at.npipe + p->job->at.pipe, .micro = i};
			p->act_slot[k] = k;
			append_cell(p, &c);
		}
	return p->e.code;
}

static enum gt_code make_steps(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	struct pipe p = {.job = job,
	                 .reduce = job->at.ndata == 1              ? NULL
	                           : gt_space_sharded(job->space, GT_A_STATE) ? gt_replicas_scatter
	                                                           : gt_replicas_sum};
	struct gt_grid *g = NULL;
	int m = 0;
	gt_emit_begin(&p.e, job, err);
	GT_TRY(list_micros(&p, &m, err));
	if (!job->update) {
		GT_TRY(append_eval(&p, m));
		gt_pipe_streams(&p.e);
		return gt_emit_end(&p.e, out);
	}
	gt_emit_zero(&p.e);
	if (m) {
		GT_TRY(gt_grid_make(job->arena, job->schedule, job->at.npipe, job->nstages, m, &g, err));
		for (int k = 1; k < job->nstages; k++)
			p.act_slot[k] = p.act_slot[k - 1] + g->slots[(k - 1) * job->at.npipe + job->at.pipe];
		for (int i = 0; i < g->ncells[job->at.pipe]; i++)
			append_cell(&p, &g->cell[job->at.pipe][i]);
		gt_pipe_separate_transfers(&p.e);
	}
	flush_grad_levels(&p, job->nunits);
	if (p.reduce) {
		reduce_ready_buckets(&p, NULL, 0);
		gt_emit_stream_wait(&p.e, 1, 0);
	}
	gt_emit_check(&p.e);
	gt_replicas_update(&p.e);
	gt_pipe_streams(&p.e);
	return gt_emit_end(&p.e, out);
}

const struct gt_strategy gt_strategy_pipe = {GT_STRATEGY_MODE(pipe),
                                             .position = find_position,
                                             .shard = shard_arenas,
                                             .sync = choose_sync,
                                             .least_micro = find_least_micro,
                                             .schedule = make_steps};
