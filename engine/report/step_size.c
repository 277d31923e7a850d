#include "report/step_size.h"

/* Returns the number of elements that a call compresses or decompresses (session/compress_calls.c); 0: c is no such call. */
static int64_t compress_size(const struct gt_session *s, const struct gt_call *c)
{
	const struct gt_space *sp = s->space;
	for (int b = 0; b < s->optim.ncompress; b++) {
		const struct gt_compression *x = &s->optim.compress[b];
		int64_t elements = sp->shards.bucket[b].end - sp->shards.bucket[b].begin;
		if (c == &x->unpack)
			return gt_space_sharded(sp, GT_A_STATE) ? gt_space_shard(sp, b) : elements;
		if (c >= x->pack && c < x->pack + GT_PACK_CALLS)
			return elements;
	}
	return 0;
}

static int64_t update_size(const struct gt_session *s, const struct gt_call *c)
{
	const struct gt_optim *o = &s->optim;
	const struct gt_space *sp = s->space;
	for (int i = 0; i < o->nparts; i++)
		if (c == &o->part[i].call)
			return o->part[i].n;
	for (int i = 0; i < o->nsumsq; i++)
		if (c == &o->sumsq[i])
			return gt_space_sharded(sp, GT_A_STATE) ? gt_space_shard(sp, o->summed[i]) : sp->layout.checked;
	for (int b = 0; b < o->nadd; b++)
		if (c == &o->add[b])
			return gt_space_shard(sp, b);
	for (int i = 0; i < o->nmerge; i++)
		if (c == &o->merge[i])
			return sp->layout.elements;
	if (c == &o->check)
		return o->nsumsq ? 0 : sp->layout.checked;
	return compress_size(s, c);
}

int64_t gt_step_size(const struct gt_session *s, const struct gt_step *t)
{
	if (t->kind == GT_STEP_CLEAR)
		return (int64_t)t->bytes;
	if (t->plan)
		return t->plan->graph->batch;
	return t->call && !t->call->comm ? update_size(s, t->call) : 0;
}
