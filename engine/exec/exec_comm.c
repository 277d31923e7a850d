/* Executes COMM steps: a collective, or a sequence of adjacent sends and receives, which run at the same time. */
#include "comm.h"
#include "base/clock.h"
#include "exec/exec_parts.h"

typedef enum gt_code collective(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);

static collective *find_collective(const struct gt_comm_api *a, int kind)
{
	switch (kind) {
	case GT_COLL_ALL_REDUCE: return a->all_reduce;
	case GT_COLL_REDUCE_SCATTER: return a->reduce_scatter;
	case GT_COLL_ALL_GATHER: return a->all_gather;
	case GT_COLL_BROADCAST: return a->broadcast;
	case GT_COLL_GATHER: return a->gather;
	case GT_COLL_SCATTER: return a->scatter;
	}
	return NULL;
}

/* Returns whether two transfers use the same communicator and stream. */
static bool use_same_group(const struct gt_step *a, const struct gt_step *b)
{
	return a->stream == b->stream && a->call->comm->group == b->call->comm->group && a->call->comm->lane == b->call->comm->lane;
}

static bool is_transfer(const struct gt_step *s)
{
	return s->kind == GT_STEP_COMM && !s->end && (s->call->comm->kind == GT_COMM_SEND || s->call->comm->kind == GT_COMM_RECV);
}

/* Runs the transfer of step i and the adjacent transfers after it in one call. The steps of the later transfers then do nothing. */
static enum gt_code exchange_transfers(const struct gt_prog *p, int i, struct gt_comm *c, struct gt_err *err)
{
	struct gt_p2p list[GT_COMM_BATCH];
	const struct gt_step *first = &p->step[i];
	int n = 0;
	if (i && !first->apart && is_transfer(first - 1) && use_same_group(first - 1, first))
		return GT_OK;
	for (const struct gt_step *s = first; s < p->step + p->n && is_transfer(s) && (s == first || !s->apart) && use_same_group(s, first);
	     s++) {
		const struct gt_attr_comm *a = s->call->comm;
		if (n == GT_COMM_BATCH)
			return gt_fail(err, GT_EINTERNAL, "expected at most %d transfers in one exchange, got more", GT_COMM_BATCH);
		list[n++] = (struct gt_p2p){.what = s->call->layer,
		                            .sends = a->kind == GT_COMM_SEND,
		                            .peer = a->peer,
		                            .send = *s->call->in,
		                            .recv = *s->call->out,
		                            .count = s->call->count,
		                            .dtype = s->call->dtype};
	}
	return c->api->exchange(c, list, n, first->stream, err);
}

enum gt_code gt_exec_communicate(const struct gt_exec *x, const struct gt_prog *p, int i, int slot, struct gt_err *err)
{
	const struct gt_step *s = &p->step[i];
	const struct gt_attr_comm *a = s->call->comm;
	struct gt_comm *c = a->lane ? x->lane[a->lane] : x->group[a->group];
	if (!c)
		return gt_fail(err, GT_EINTERNAL, "%s of %s: the communicator is not open", s->call->op, s->call->layer);
	if (is_transfer(s))
		return exchange_transfers(p, i, c, err);
	if (a->kind == GT_COLL_BARRIER)
		return c->api->barrier(c, s->stream, err);
	struct gt_coll coll = {.what = s->call->layer,
	                       .in = gt_exec_slot_address(x, *s->call->in, slot),
	                       .out = gt_exec_slot_address(x, *s->call->out, slot),
	                       .count = s->call->count,
	                       .dtype = s->call->dtype,
	                       .op = (enum gt_reduction)a->op,
	                       .root = a->peer,
	                       .stream = s->stream};
	return find_collective(c->api, a->kind)(c, &coll, err);
}

enum gt_code gt_exec_comm(struct gt_exec *x, const struct gt_prog *p, int i, int slot, struct gt_err *err)
{
	const struct gt_step *s = &p->step[i];
	const struct gt_attr_comm *a = s->call->comm;
	if (s->end) { /* sender and receiver are both on this rank, so the transfer is a copy */
		const struct gt_call *from = a->kind == GT_COMM_SEND ? s->call : s->end, *to = a->kind == GT_COMM_SEND ? s->end : s->call;
		return x->be->copy(x->dev, *to->out, *from->in, s->call->count * gt_dtype_size(s->call->dtype), GT_COPY_D2D, s->stream, err);
	}
	double start = x->waited ? gt_clock() : 0;
	gt_rank_set_waiting(x->link, true);
	enum gt_code code = gt_exec_communicate(x, p, i, slot, err);
	gt_rank_set_waiting(x->link, false);
	if (x->waited)
		*x->waited += gt_clock() - start;
	return code;
}
