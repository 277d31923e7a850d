/* Overlaps a pipeline's transfers with each other and with kernels. Memory ranges decide which steps may overlap. */
#include "plan/pipe_stream.h"

#define STREAM 1

/* A range of bytes in an activation slot. */
struct range {
	int act_slot;
	size_t begin, end;
};

static bool is_transfer(const struct gt_step *s)
{
	return s->kind == GT_STEP_COMM && s->plan && !s->end && s->call->comm->group == GT_GROUP_PIPE &&
	       (s->call->comm->kind == GT_COMM_SEND || s->call->comm->kind == GT_COMM_RECV);
}

/* Returns the memory of value v of a plan. The range is empty if v is not an activation. */
static struct range range_of(const struct gt_plan *p, gt_vid v)
{
	gt_vid root = v < 0 ? -1 : p->slot[v].root;
	if (root < 0 || p->graph->values[root].kind != GT_V_ACT)
		return (struct range){p->act_slot, 0, 0};
	size_t begin = p->slot[root].offset, bytes = gt_tdesc_bytes(&p->graph->values[root].desc);
	return (struct range){p->act_slot, begin, begin + bytes};
}

/* ---- side by side ------------------------------------------------------------------------------------------------------------------ */

/* Returns the memory that a transfer reads or writes. */
static struct range range_of_step(const struct gt_step *s)
{
	const struct gt_node *n = &s->plan->graph->nodes[s->call->node];
	return range_of(s->plan, s->call->comm->kind == GT_COMM_SEND ? gt_node_first_input(n) : gt_node_first_output(n));
}

static bool ranges_overlap(const struct range *a, const struct range *b)
{
	return a->act_slot == b->act_slot && a->begin < b->end && b->begin < a->end;
}

void gt_pipe_separate_transfers(struct gt_emit *e)
{
	struct gt_step *step = e->step;
	for (int i = 1, first = 0; i < e->n; i++) {
		if (!is_transfer(&step[i]))
			continue;
		if (!is_transfer(&step[i - 1])) {
			first = i;
			continue;
		}
		if (!is_transfer(&step[first]))
			first = i - 1;
		struct range own = range_of_step(&step[i]);
		for (int k = first; k < i && !step[i].apart; k++) {
			struct range other = range_of_step(&step[k]);
			bool both_send = step[k].call->comm->kind == GT_COMM_SEND && step[i].call->comm->kind == GT_COMM_SEND;
			step[i].apart = !both_send && ranges_overlap(&own, &other);
		}
		step[i].apart |= i - first == GT_COMM_BATCH;
		if (step[i].apart)
			first = i;
	}
}

/* ---- on a stream of their own ------------------------------------------------------------------------------------------------------ */

struct streams {
	struct gt_emit *e;
	struct range *sent; /* [nsent] memory ranges that the sends in progress read */
	int nsent;
	int event;          /* index of the event recorded after the transfers in progress; -1: kernels have already waited for all transfers */
};

/* Returns whether r overlaps with memory of a send in progress. */
static bool overlaps_send(const struct streams *s, const struct range *r)
{
	for (int i = 0; i < s->nsent; i++)
		if (ranges_overlap(&s->sent[i], r))
			return true;
	return false;
}

/* Returns whether a step may write memory that a send in progress reads. */
static bool overwrites_send(const struct streams *s, const struct gt_step *t)
{
	/* without a call of a graph, the step uses no activations, but sends read only activations */
	if (!t->call || !t->plan || t->call->node < 0)
		return false;
	const struct gt_node *n = &t->plan->graph->nodes[t->call->node];
	struct range scratch = {t->plan->act_slot, t->call->scratch_offset, t->call->scratch_offset + t->call->scratch};
	if (t->end) /* the step is a copy between two stages of this rank and may write to any activation slot */
		return true;
	for (int k = 0; k < n->nout; k++) {
		struct range r = range_of(t->plan, n->out[k]);
		if (overlaps_send(s, &r))
			return true;
	}
	return t->call->scratch && overlaps_send(s, &scratch);
}

/* Appends the steps that make later kernels wait for the transfers in progress. */
static void append_wait(struct streams *s)
{
	if (s->event >= 0)
		gt_emit_step(s->e, (struct gt_step){.kind = GT_STEP_WAIT, .stream = 0, .event = s->event});
	s->event = -1;
	s->nsent = 0;
}

/* Appends the transfers [i, end) of the old list on the transfer stream, with events before and after them. */
static void append_transfers(struct streams *s, const struct gt_step *old, int i, int end)
{
	int before = gt_emit_event(s->e);
	bool receives = false;
	gt_emit_step(s->e, (struct gt_step){.kind = GT_STEP_RECORD, .stream = 0, .event = before});
	gt_emit_step(s->e, (struct gt_step){.kind = GT_STEP_WAIT, .stream = STREAM, .event = before});
	for (; i < end; i++) {
		struct gt_step t = old[i];
		bool sends = t.call->comm->kind == GT_COMM_SEND;
		t.stream = STREAM;
		receives |= !sends;
		if (sends)
			s->sent[s->nsent++] = range_of_step(&t);
		gt_emit_step(s->e, t);
	}
	s->event = gt_emit_event(s->e);
	gt_emit_step(s->e, (struct gt_step){.kind = GT_STEP_RECORD, .stream = STREAM, .event = s->event});
	if (receives)
		append_wait(s);
}

void gt_pipe_streams(struct gt_emit *e)
{
	struct streams s = {.e = e, .event = -1};
	const struct gt_step *old = e->step;
	int n = e->n;
	if (!e->job->queues || e->code != GT_OK)
		return;
	if (!(s.sent = gt_arena_alloc(e->job->arena, (size_t)n + 1, sizeof *s.sent))) {
		e->code = gt_fail_memory(e->err, (size_t)n * sizeof *s.sent);
		return;
	}
	e->step = NULL;
	e->n = e->cap = 0;
	for (int i = 0, end; i < n; i = end) {
		for (end = i; end < n && is_transfer(&old[end]); end++)
			;
		if (end > i) {
			append_transfers(&s, old, i, end);
			continue;
		}
		if (overwrites_send(&s, &old[i]))
			append_wait(&s);
		gt_emit_step(e, old[i]);
		end = i + 1;
	}
	append_wait(&s);
}
