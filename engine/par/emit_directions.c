/* Lets the calls of muon.directions overlap with the backward pass. It rewrites a list of steps that is otherwise finished, so that all
 * modes share it: each call starts on a stream of its own when the last step that writes its gradients has ended. */
#include "par/emit.h"

#define COMM_STREAM 1
#define STREAM 2

/* What gt_emit_directions found out about one call of muon.directions. */
struct group {
	int after; /* index of the step after which the call is inserted */
	bool comm; /* a communication on COMM_STREAM writes some of its gradients */
};

static bool meets(const struct gt_elements *e, int64_t begin, int64_t end)
{
	return begin < e->end && e->begin < end;
}

/* Returns whether the range of n bytes at r has elements of e. */
static bool range_meets(const struct gt_space *s, struct gt_range r, size_t n, const struct gt_elements *e)
{
	int64_t size = (int64_t)gt_dtype_size(s->layout.master), begin = (int64_t)r.offset / size;
	return r.arena == GT_A_GRAD && meets(e, begin, begin + (int64_t)n / size);
}

/* Returns whether the node of a call makes gradients of elements of e. */
static bool node_meets(const struct gt_space *s, const struct gt_plan *p, const struct gt_call *c, const struct gt_elements *e)
{
	const struct gt_node *n = &p->graph->nodes[c->node];
	for (int k = 0; k < n->nout; k++) {
		const struct gt_value *v = n->out[k] < 0 ? NULL : &p->graph->values[n->out[k]];
		const struct gt_param_slot *slot = v && v->kind == GT_V_GRAD ? &s->layout.param[v->param] : NULL;
		if (slot && meets(e, slot->offset, slot->offset + slot->count))
			return true;
	}
	return false;
}

/* Returns whether a step writes elements of e of the arena GRAD. A call outside of graphs writes all of it, unless it is known to write
 * nothing there. */
static bool writes(const struct gt_job *job, const struct gt_step *t, const struct gt_elements *e)
{
	const struct gt_space *s = job->space;
	const struct gt_call *c = t->call;
	if (t->kind == GT_STEP_CLEAR)
		return range_meets(s, t->range, t->bytes, e);
	if (t->end) /* a copy between two stages of this rank */
		return true;
	if (t->kind != GT_STEP_LAUNCH && t->kind != GT_STEP_COMM)
		return false;
	if (c->node >= 0)
		return !t->plan || node_meets(s, t->plan, c, e);
	if (c->comm)
		return range_meets(s, c->to, c->count * gt_dtype_size(c->dtype), e);
	for (int i = 0; i < job->update->nsumsq; i++)
		if (c == job->update->sumsq[i])
			return false;
	return true;
}

/* Finds the step after which a call that reads elements e may run; end: index of the step that waits for the call. */
static struct group find(const struct gt_emit *e, const struct gt_elements *reads, int end)
{
	struct group g = {.after = -1};
	for (int i = 0; i < end; i++) {
		const struct gt_step *t = &e->step[i];
		bool is_check = t->kind == GT_STEP_CHECK;
		if (is_check && g.after < 0) /* no step of this program makes these gradients */
			g.after = i;
		if (is_check || !writes(e->job, t, reads))
			continue;
		g.after = i;
		g.comm |= t->stream == COMM_STREAM;
	}
	while (g.after + 1 < end && e->step[g.after].kind == GT_STEP_COMM && e->step[g.after + 1].kind == GT_STEP_COMM)
		g.after++; /* adjacent transfers run at the same time and must stay adjacent */
	return g;
}

/* Returns the index of the step of the first call that reads directions; -1: this rank makes no such update. */
static int find_reader(const struct gt_emit *e)
{
	for (int i = 0; i < e->n; i++)
		if (e->step[i].kind == GT_STEP_UPDATE && e->step[i].call->reads_directions)
			return i;
	return -1;
}

void gt_emit_directions(struct gt_emit *e)
{
	const struct gt_update *u = e->job->update;
	int reader = u && u->ndirections && e->job->queues && e->code == GT_OK ? find_reader(e) : -1, n = e->n;
	struct gt_step *old = e->step;
	struct group *g;
	if (reader < 0)
		return;
	if (!(g = gt_arena_alloc(e->job->arena, (size_t)u->ndirections, sizeof *g))) {
		e->code = gt_fail_memory(e->err, (size_t)u->ndirections * sizeof *g);
		return;
	}
	for (int k = 0; k < u->ndirections; k++)
		g[k] = find(e, &u->reads[k], reader);
	e->step = NULL;
	e->n = e->cap = 0;
	for (int i = 0; i < n; i++) {
		if (i == reader)
			gt_emit_stream_wait(e, STREAM, 0);
		gt_emit_step(e, old[i]);
		bool waits = false, waits_comm = old[i].stream == COMM_STREAM;
		for (int k = 0; k < u->ndirections; k++) {
			if (g[k].after != i)
				continue;
			/* A communication has waited for the kernels before it, but kernels need not have waited for a communication. */
			if (!waits)
				gt_emit_stream_wait(e, old[i].stream, STREAM);
			if (g[k].comm && !waits_comm)
				gt_emit_stream_wait(e, COMM_STREAM, STREAM);
			waits = true;
			waits_comm |= g[k].comm;
			gt_emit_step(e, (struct gt_step){
			    .kind = GT_STEP_LAUNCH, .stream = STREAM, .micro = e->job->nunits - 1, .call = u->directions[k]});
		}
	}
}
