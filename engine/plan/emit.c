/* Appends to a program the steps that all strategies use. */
#include "plan/emit.h"
#include <string.h>

void gt_emit_begin(struct gt_emit *e, const struct gt_job *job, struct gt_err *err)
{
	*e = (struct gt_emit){.job = job, .code = GT_OK, .err = err};
}

void gt_emit_step(struct gt_emit *e, struct gt_step s)
{
	if (e->code != GT_OK)
		return;
	if (e->n == e->cap) {
		int cap = e->cap ? 2 * e->cap : 64;
		struct gt_step *p = gt_arena_alloc(e->job->arena, (size_t)cap, sizeof *p);
		if (!p) {
			e->code = gt_fail_memory(e->err, (size_t)cap * sizeof *p);
			return;
		}
		if (e->n)
			memcpy(p, e->step, (size_t)e->n * sizeof *p);
		e->step = p;
		e->cap = cap;
	}
	e->step[e->n++] = s;
}

enum gt_code gt_emit_end(struct gt_emit *e, struct gt_prog *out)
{
	*out = (struct gt_prog){.step = e->step, .n = e->n, .nmicro = e->job->nunits, .samples = e->job->samples};
	return e->code;
}

static int count_levels(const struct gt_space *s)
{
	return s->memory.levels ? s->memory.levels : 1;
}

/* Returns the bytes of one level (copy) of the arena GRAD. */
static size_t level_bytes(const struct gt_space *s)
{
	return s->memory.bytes[GT_A_GRAD] / (size_t)count_levels(s);
}

void gt_emit_load(struct gt_emit *e, int unit)
{
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_LOAD, .micro = unit, .plan = e->job->unit[unit].plan});
}

void gt_emit_launch(struct gt_emit *e, int unit, struct gt_call *c)
{
	enum gt_step_kind kind = c->comm ? GT_STEP_COMM : GT_STEP_LAUNCH;
	gt_emit_step(e, (struct gt_step){.kind = kind, .micro = unit, .plan = e->job->unit[unit].plan, .call = c});
}

void gt_emit_unit(struct gt_emit *e, int unit)
{
	struct gt_plan *p = e->job->unit[unit].plan;
	gt_emit_clear(e, unit);
	if (p)
		gt_emit_load(e, unit);
	for (int i = 0; p && i < p->ncalls; i++)
		if (!p->call[i].fused_update)
			gt_emit_launch(e, unit, &p->call[i]);
}

int gt_emit_event(struct gt_emit *e)
{
	return e->event++ % (GT_EVENTS - GT_EVENTS_ENGINE);
}

void gt_emit_stream_wait(struct gt_emit *e, int from, int to)
{
	if (!e->job->queues || from == to)
		return;
	int event = gt_emit_event(e);
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_RECORD, .stream = from, .event = event});
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_WAIT, .stream = to, .event = event});
}

void gt_emit_collective(struct gt_emit *e, const struct gt_collective *c, int stream)
{
	struct gt_attr_comm *attr = gt_arena_alloc(e->job->arena, 1, sizeof *attr);
	struct gt_call *call = gt_arena_alloc(e->job->arena, 1, sizeof *call);
	if (!attr || !call) {
		e->code = e->code == GT_OK ? gt_fail_memory(e->err, sizeof *call) : e->code;
		return;
	}
	*attr = (struct gt_attr_comm){.kind = (int)c->kind, .group = (int)c->group, .op = GT_REDUCE_SUM};
	*call = (struct gt_call){.comm = attr,
	                         .count = c->count,
	                         .dtype = c->dtype,
	                         .from = c->from,
	                         .to = c->to,
	                         .op = gt_comm_name(attr),
	                         .layer = c->what,
	                         .node = -1,
	                         .nin = 1,
	                         .nout = 1};
	int at = e->job->queues ? stream : 0;
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_COMM, .stream = at, .micro = e->job->nunits - 1, .call = call});
}

void gt_emit_barrier(struct gt_emit *e, enum gt_group group, const char *what)
{
	struct gt_range own = gt_space_own_scalars(e->job->space);
	gt_emit_collective(e, &(struct gt_collective){.kind = GT_COLL_BARRIER, .group = group, .from = own, .to = own, .what = what}, 0);
}

void gt_emit_sum_levels(struct gt_emit *e, int unit)
{
	const struct gt_unit *u = &e->job->unit[unit];
	for (int i = 1; i <= u->carry; i++)
		gt_emit_step(e, (struct gt_step){.kind = GT_STEP_LAUNCH, .micro = unit, .call = &e->job->update->merge[u->level - i]});
}

void gt_emit_zero(struct gt_emit *e)
{
	const struct gt_space *s = e->job->space;
	const struct gt_update *u = e->job->update;
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_ZERO});
	if (gt_space_sharded(s, GT_A_GRAD)) /* sharded gradients of all buckets use the same memory, which mode_zero.c clears for each bucket */
		return;
	for (int level = 0; level < count_levels(s); level++)
		for (int i = 0; i < u->nstale; i++) {
			struct gt_range r = gt_space_element(s, GT_A_GRAD, u->stale[i].begin);
			r.offset += (size_t)level * level_bytes(s);
			size_t bytes = gt_space_element(s, GT_A_GRAD, u->stale[i].end - u->stale[i].begin).offset;
			gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CLEAR, .range = r, .bytes = bytes});
			if (s->shards.spec.compressed) /* rounding errors would become gradients */
				gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CLEAR, .range = {GT_A_RESIDUAL, r.offset}, .bytes = bytes});
		}
}

void gt_emit_clear(struct gt_emit *e, int unit)
{
	size_t level = level_bytes(e->job->space);
	if (e->job->unit[unit].clears && level) /* level_bytes is 0 if this pipeline stage has no parameters */
		gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CLEAR,
		                                 .micro = unit,
		                                 .range = {GT_A_GRAD, (size_t)e->job->unit[unit].level * level},
		                                 .bytes = level});
}

void gt_emit_check(struct gt_emit *e)
{
	const struct gt_job *job = e->job;
	const struct gt_update *u = job->update;
	int last = job->nunits - 1;
	struct gt_plan *p = job->unit[last].plan;
	/* CHECK adds up the sums of all ranks. If several copies of a pipeline stage have the same gradients, only the first copy computes a
	 * sum, so that these gradients are added once. */
	bool sums = !job->space->shards.spec.pipeline_stages || gt_space_sharded(job->space, GT_A_STATE) || job->at.data == 0;
	for (int i = 0; i < u->nsumsq && sums; i++)
		gt_emit_step(e, (struct gt_step){.kind = GT_STEP_LAUNCH, .micro = last, .call = u->sumsq[i]});
	if (job->at.world > 1)
		gt_emit_collective(e, &(struct gt_collective){GT_COLL_ALL_GATHER, GT_GROUP_WORLD, gt_space_own_scalars(job->space),
		                                              gt_space_all_scalars(job->space), GT_SCALARS_WORDS, GT_F64, "scalars"}, 0);
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CHECK, .micro = last, .call = u->check});
	for (int i = 0; p && i < p->ncalls; i++)
		if (p->call[i].fused_update)
			gt_emit_launch(e, last, &p->call[i]);
}

void gt_emit_bucket_ready(const struct gt_plan *p, int *ready)
{
	const struct gt_space *s = p->space;
	for (int b = 0; b < s->shards.nbuckets; b++)
		ready[b] = -1;
	for (int i = 0; i < p->ncalls; i++) {
		const struct gt_node *n = &p->graph->nodes[p->call[i].node];
		for (int k = 0; k < n->nout; k++) {
			const struct gt_value *v = n->out[k] < 0 ? NULL : &p->graph->values[n->out[k]];
			if (!v || v->kind != GT_V_GRAD)
				continue;
			ready[gt_space_bucket_of(s, s->layout.param[v->param].offset)] = i;
		}
	}
	for (int b = 1; b < s->shards.nbuckets; b++) /* buckets are reduced in the order of the arena, which is the same on every rank */
		if (ready[b] >= 0 && ready[b] < ready[b - 1])
			ready[b] = ready[b - 1];
}
