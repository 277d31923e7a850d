#include "plan/plan.h"
#include "ir/op.h"
#include <stdlib.h>
#include <string.h>

#define ALIGN 256 /* bytes; what every device wants for vector loads and DMA */

const char *gt_arena_name(enum gt_arena_id id)
{
	static const char *const names[GT_A_COUNT] = {
#define GT_X(id, name) [id] = name,
		GT_ARENAS(GT_X)
#undef GT_X
	};
	return names[id];
}

enum gt_code gt_space_open(const struct gt_backend *be, struct gt_dev *dev, int nstates, struct gt_space **out, struct gt_err *err)
{
	struct gt_arena *a;
	*out = NULL;
	GT_TRY(gt_arena_open(&a, err));
	struct gt_space *s = gt_arena_alloc(a, 1, sizeof *s);
	if (!s) {
		gt_arena_close(a);
		return gt_fail_memory(err, sizeof *s);
	}
	*s = (struct gt_space){.be = be, .dev = dev, .arena = a, .nstates = nstates};
	*out = s;
	return GT_OK;
}

void gt_space_close(struct gt_space *s)
{
	if (!s)
		return;
	for (int i = 0; i < GT_A_COUNT; i++)
		if (s->base[i] && !s->lent[i])
			s->be->free(s->dev, s->base[i]);
	gt_arena_close(s->arena);
}

static enum gt_code prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err)
{
	struct gt_call c = {.op = gt_opcode_name(oc->code), .layer = oc->name, .node = -1, .nin = oc->nin, .nout = oc->nout};
	GT_TRY(s->be->prepare(s->dev, oc, &c.kernel, err));
	c.scratch = s->be->scratch(c.kernel);
	*out = c;
	return GT_OK;
}

enum gt_code gt_call_prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err)
{
	GT_TRY(prepare(s, oc, out, err));
	if (out->scratch > s->bytes[GT_A_SCRATCH])
		s->bytes[GT_A_SCRATCH] = out->scratch;
	return GT_OK;
}

static size_t gathered_bytes(const struct gt_space *s)
{
	return s->ranks < 2 ? 0 : ((size_t)s->ranks * sizeof(struct gt_scalars) + ALIGN - 1) / ALIGN * ALIGN;
}

static int at_least_one(int n)
{
	return n ? n : 1;
}

static enum gt_code alloc_arena(struct gt_space *s, enum gt_arena_id id, size_t bytes, struct gt_err *err)
{
	if (s->shared) {
		GT_TRY(s->shared(s->user, id, bytes, &s->base[id], err));
		s->lent[id] = s->base[id] != NULL;
	}
	return s->base[id] ? GT_OK : s->be->alloc(s->dev, bytes, &s->base[id], err);
}

enum gt_code gt_space_alloc(struct gt_space *s, struct gt_err *err)
{
	s->slots = at_least_one(s->slots);
	s->micros = at_least_one(s->micros);
	s->bytes[GT_A_METRICS] = gathered_bytes(s) + GT_SCALER_BYTES + (size_t)s->slots * (sizeof(struct gt_scalars) + (size_t)s->micros * sizeof(struct gt_dyn));
	for (int i = 0; i < GT_A_COUNT; i++) {
		if (!s->bytes[i] || s->base[i])
			continue;
		if (alloc_arena(s, (enum gt_arena_id)i, s->bytes[i], err) != GT_OK)
			return gt_fail_prefix(err, "%s (%.1f MB; a smaller data.batch or a larger train.accumulate needs less)", gt_arena_name((enum gt_arena_id)i),
			                      (double)s->bytes[i] / 1e6);
	}
	return GT_OK;
}

struct gt_range gt_space_gathered(const struct gt_space *s)
{
	(void)s;
	return (struct gt_range){GT_A_METRICS, 0};
}

struct gt_range gt_space_own(const struct gt_space *s)
{
	return (struct gt_range){GT_A_METRICS, gathered_bytes(s) + GT_SCALER_BYTES};
}

void *gt_space_at(const struct gt_space *s, struct gt_range r)
{
	char *base = s->base[r.arena];
	return base ? base + r.offset : NULL;
}

struct gt_scaler *gt_space_scaler(const struct gt_space *s)
{
	char *base = s->base[GT_A_METRICS];
	return base ? (struct gt_scaler *)(void *)(base + gathered_bytes(s)) : NULL;
}

struct gt_scalars *gt_space_scalars(const struct gt_space *s, int slot)
{
	struct gt_scalars *first = gt_space_at(s, gt_space_own(s));
	return first ? first + slot : NULL;
}

struct gt_dyn *gt_space_dyn(const struct gt_space *s, int slot)
{
	struct gt_scalars *end = gt_space_scalars(s, s->slots);
	return end ? (struct gt_dyn *)(void *)end + (int64_t)slot * s->micros : NULL;
}

/* ---- shards ---------------------------------------------------------------------------------------------------------------------- */
bool gt_space_sharded(const struct gt_space *s, enum gt_arena_id a)
{
	switch (a) {
	case GT_A_STATE: return s->cut.state;
	case GT_A_GRAD: return s->cut.grads;
	case GT_A_PARAM:
	case GT_A_WORK: return s->cut.params;
	default: return false;
	}
}

static size_t element_size(const struct gt_space *s, enum gt_arena_id a)
{
	return gt_dtype_size(a == GT_A_WORK ? s->work : s->master);
}

struct gt_range gt_space_element(const struct gt_space *s, enum gt_arena_id a, int64_t e)
{
	return (struct gt_range){a, (size_t)e * element_size(s, a)};
}

int64_t gt_space_shard(const struct gt_space *s, int b)
{
	return (s->bucket[b].end - s->bucket[b].begin) / at_least_one(s->cut.shards);
}

struct gt_range gt_space_own_shard(const struct gt_space *s, enum gt_arena_id a, int b)
{
	if (gt_space_sharded(s, a)) /* those of the buckets before it are as long together as these are, divided */
		return gt_space_element(s, a, s->bucket[b].begin / s->cut.shards);
	return gt_space_element(s, a, s->bucket[b].begin + s->cut.shard * gt_space_shard(s, b));
}

struct gt_range gt_space_bucket(const struct gt_space *s, enum gt_arena_id a, int b, int place)
{
	if (!gt_space_sharded(s, a))
		return gt_space_element(s, a, s->bucket[b].begin);
	return gt_space_element(s, a, s->elements / s->cut.shards + place * s->widest);
}

int gt_space_bucket_of(const struct gt_space *s, int64_t element)
{
	int b = 0;
	while (b + 1 < s->nbuckets && s->bucket[b].end <= element)
		b++;
	return b;
}

/* Of a parameter whose bucket is whole in a place. */
static void *in_place(const struct gt_space *s, int param, enum gt_arena_id a, int place)
{
	int64_t offset = s->place[param].offset;
	int b = gt_space_bucket_of(s, offset);
	char *at = gt_space_at(s, gt_space_bucket(s, a, b, place));
	return at && offset >= 0 ? at + (size_t)(offset - s->bucket[b].begin) * element_size(s, a) : NULL;
}

/* ---- addresses ------------------------------------------------------------------------------------------------------------------- */
void *gt_space_param(const struct gt_space *s, int i, enum gt_arena_id id, int state)
{
	const struct gt_place *p = &s->place[i];
	char *base = s->base[id];
	if (!base || p->offset < 0 || gt_space_sharded(s, id))
		return NULL;
	switch (id) {
	case GT_A_BUFFER:
		return base + p->offset;
	case GT_A_WORK:
		return base + p->offset * (int64_t)gt_dtype_size(s->work);
	case GT_A_STATE:
		return base + (p->offset + state * s->elements) * (int64_t)gt_dtype_size(s->master);
	default:
		return base + p->offset * (int64_t)gt_dtype_size(s->master);
	}
}

void *gt_space_part(const struct gt_space *s, int i)
{
	return s->base[GT_A_BUFFER] && s->place[i].part >= 0 ? (char *)s->base[GT_A_BUFFER] + s->place[i].part : NULL;
}

static int64_t round_up(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

/* Elements at which a parameter may begin: of the smallest type that the arenas have. */
static int64_t grain(const struct gt_space *s)
{
	return ALIGN / (int64_t)gt_dtype_size(s->work);
}

/* Gives parameter i the next offset of the flat arenas, in the bucket that is open. */
static void place_flat(struct gt_space *s, int i)
{
	struct gt_place *p = &s->place[i];
	p->count = gt_tdesc_padded(&p->desc);
	p->offset = s->elements;
	s->elements = round_up(s->elements + p->count, grain(s));
}

/* Ends the bucket that began where the last one ended, if there is something in it. */
static void close_bucket(struct gt_space *s, bool learned)
{
	int64_t begin = s->nbuckets ? s->bucket[s->nbuckets - 1].end : 0;
	if (s->elements == begin)
		return;
	s->elements = round_up(s->elements, grain(s) * at_least_one(s->cut.shards));
	s->bucket[s->nbuckets++] = (struct gt_bucket){begin, s->elements, learned};
}

static bool bucket_full(const struct gt_space *s)
{
	int64_t limit = s->nbuckets ? s->cut.bucket_bytes : s->cut.first_bytes, begin = s->nbuckets ? s->bucket[s->nbuckets - 1].end : 0;
	return limit > 0 && (s->elements - begin) * (int64_t)gt_dtype_size(s->master) >= limit;
}

/* An arena of this rank: its shards and `places` whole buckets behind them, or everything. */
static size_t arena_bytes(const struct gt_space *s, enum gt_arena_id a, int places)
{
	int64_t n = gt_space_sharded(s, a) ? s->elements / s->cut.shards + places * s->widest : s->elements;
	return (size_t)n * element_size(s, a);
}

static void flat_bytes(struct gt_space *s)
{
	for (int b = 0; b < s->nbuckets; b++)
		if (s->bucket[b].end - s->bucket[b].begin > s->widest)
			s->widest = s->bucket[b].end - s->bucket[b].begin;
	s->bytes[GT_A_PARAM] = arena_bytes(s, GT_A_PARAM, s->places);
	if (s->work != s->master)
		s->bytes[GT_A_WORK] = arena_bytes(s, GT_A_WORK, s->places);
	if (s->first->train) {
		s->bytes[GT_A_GRAD] = arena_bytes(s, GT_A_GRAD, 1) * (size_t)at_least_one(s->levels);
		s->bytes[GT_A_STATE] = arena_bytes(s, GT_A_STATE, 0) * (size_t)s->nstates;
	}
}

/* Settles where what g uses lies, once its kernels have chosen their layouts. The first graph uses everything, unless it is a stage of a
 * pipeline: then the next one adds what it uses, and what none of them does gets no memory. */
static enum gt_code lay_out(struct gt_space *s, const struct gt_graph *g, struct gt_err *err)
{
	size_t buffers = s->bytes[GT_A_BUFFER] / (size_t)at_least_one(s->copies);
	if (!s->bucket)
		GT_NEW(s->bucket, s->arena, 2 * g->nparams + 1, err);
	for (int n = 0; n < g->nnodes; n++) { /* gradients in the order in which they are finished */
		if (g->nodes[n].op->code == GT_OP_LINEAR_DW_UPDATE && s->checked < 0)
			s->checked = s->elements;
		for (int o = 0; o < g->nodes[n].nout; o++) {
			gt_vid v = g->nodes[n].out[o];
			if (v >= 0 && g->values[v].kind == GT_V_GRAD && s->place[g->values[v].param].offset < 0)
				place_flat(s, g->values[v].param);
		}
		if (bucket_full(s)) /* behind a node, so that what it writes is one bucket's */
			close_bucket(s, true);
	}
	close_bucket(s, true);
	if (s->checked < 0 || g->stages)
		s->checked = s->elements;
	for (int i = 0; i < g->nparams; i++) {
		struct gt_place *p = &s->place[i];
		if (g->params[i].value < 0)
			continue;
		p->desc.any = false; /* nobody asked for another layout */
		if (g->params[i].cls == GT_PARAM_BUFFER && p->offset < 0) {
			p->count = gt_tdesc_padded(&p->desc);
			p->offset = (int64_t)buffers;
			buffers = (buffers + gt_tdesc_bytes(&p->desc) + ALIGN - 1) / ALIGN * ALIGN;
		} else if (p->offset < 0) {
			place_flat(s, i);
		}
	}
	for (gt_vid v = 0; v < g->nvalues; v++)
		if (g->values[v].kind == GT_V_PART && s->place[g->values[v].param].part < 0) {
			s->place[g->values[v].param].part = (int64_t)buffers;
			buffers = (buffers + gt_tdesc_bytes(&g->values[v].desc) + ALIGN - 1) / ALIGN * ALIGN;
		}
	close_bucket(s, false);
	s->bytes[GT_A_BUFFER] = buffers * (size_t)at_least_one(s->copies);
	flat_bytes(s);
	return GT_OK;
}

static enum gt_code start(struct gt_space *s, struct gt_graph *g, struct gt_err *err)
{
	s->first = g;
	s->master = gt_graph_stat_dtype(g);
	s->work = gt_dtype_size(g->compute) == 2 ? g->compute : s->master;
	s->checked = -1;
	GT_NEW(s->place, s->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		s->place[i].desc = p->desc;
		s->place[i].desc.any = p->cls == GT_PARAM_WEIGHT && p->desc.rank >= 2;
		s->place[i].offset = s->place[i].part = -1;
	}
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].op->code == GT_OP_LINEAR_DW_UPDATE)
			s->place[g->values[g->nodes[i].in[2]].param].early = true;
	return GT_OK;
}

static bool in_space(enum gt_vkind k)
{
	return k == GT_V_PARAM || k == GT_V_WORK || k == GT_V_GRAD || k == GT_V_BUFFER;
}

/* The description a kernel sees: of a parameter, the one that the space has settled on, in the value's dtype. */
static struct gt_tdesc desc_of(const struct gt_space *s, const struct gt_value *v)
{
	if (!in_space(v->kind))
		return v->desc;
	struct gt_tdesc d = s->place[v->param].desc;
	d.dtype = v->desc.dtype;
	return d;
}

static void settle(struct gt_space *s, const struct gt_value *v, const struct gt_tdesc *d)
{
	struct gt_tdesc *p = &s->place[v->param].desc;
	if (!in_space(v->kind) || !p->any || d->any)
		return;
	p->layout = d->layout;
	p->any = false;
}

/* A collective's count is that of one rank's block: the smaller of its two operands. */
static void lower_comm(const struct gt_graph *g, int i, struct gt_call *c)
{
	const struct gt_node *n = &g->nodes[i];
	*c = (struct gt_call){.comm = n->attr, .op = gt_comm_name(n->attr), .layer = n->name, .node = i, .phase = gt_node_phase(n), .nin = n->nin, .nout = n->nout};
	for (int k = 0; k < n->nin + n->nout; k++) {
		gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		size_t count = v < 0 ? 0 : (size_t)gt_tdesc_padded(&g->values[v].desc);
		if (v < 0)
			continue;
		c->dtype = g->values[v].desc.dtype;
		if (!c->count || count < c->count)
			c->count = count;
	}
}

static enum gt_code lower_node(struct gt_plan *p, int i, bool deterministic, struct gt_err *err)
{
	struct gt_space *s = p->space;
	const struct gt_graph *g = p->graph;
	const struct gt_node *n = &g->nodes[i];
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc in[GT_MAX_IO], out[GT_MAX_IO], scalars = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall oc = {.code = n->op->code, .name = n->name, .attr = n->attr, .nin = n->nin, .nout = n->nout, .deterministic = deterministic};
	struct gt_call *c = &p->call[p->ncalls];

	if (oc.code == GT_OP_COMM) {
		lower_comm(g, i, c);
		p->ncalls++;
		return GT_OK;
	}
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] >= 0) {
			in[k] = desc_of(s, &g->values[n->in[k]]);
			oc.in[k] = &in[k];
		}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0) {
			out[k] = desc_of(s, &g->values[n->out[k]]);
			oc.out[k] = &out[k];
			enum gt_vkind kind = g->values[n->out[k]].kind;
			if ((p->accumulate && kind == GT_V_GRAD) || kind == GT_V_PART)
				oc.accumulate |= 1u << k;
		}
	if (oc.code == GT_OP_LINEAR_DW_UPDATE) {
		oc.in[oc.nin++] = &scalars;
		for (int k = 0; k < s->nstates; k++) /* the states lie as the weights do */
			oc.in[oc.nin++] = &in[2];
	}
	GT_TRY(prepare(s, &oc, c, err));
	p->ncalls++;
	c->node = i;
	c->phase = gt_node_phase(n);
	c->early = oc.code == GT_OP_LINEAR_DW_UPDATE;
	c->flops = gt_node_flops(g, n);
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] >= 0)
			settle(s, &g->values[n->in[k]], &in[k]);
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0)
			settle(s, &g->values[n->out[k]], &out[k]);
	return GT_OK;
}

enum gt_code gt_plan_make(struct gt_space *s, struct gt_graph *g, bool accumulate, bool deterministic, struct gt_plan **out, struct gt_err *err)
{
	struct gt_plan *p;
	bool first = !s->first;
	*out = NULL;
	if (first)
		GT_TRY(start(s, g, err));
	if (g->nparams != s->first->nparams)
		return gt_fail(err, GT_EINTERNAL, "a graph with %d parameters in a space of %d", g->nparams, s->first->nparams);
	GT_NEW(p, s->arena, 1, err);
	p->space = s;
	p->graph = g;
	p->accumulate = accumulate;
	GT_NEW(p->slot, s->arena, g->nvalues, err);
	GT_NEW(p->call, s->arena, g->nnodes ? g->nnodes : 1, err);
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		if (gt_node_alias(g, n))
			continue;
		enum gt_code code = lower_node(p, i, deterministic, err);
		if (code != GT_OK) {
			gt_plan_close(p);
			return code;
		}
	}
	enum gt_code code = first || g->stages ? lay_out(s, g, err) : GT_OK;
	if (code == GT_OK && s->cut.params)
		code = gt_plan_stays(p, err);
	if (code == GT_OK)
		flat_bytes(s);
	if (code == GT_OK)
		code = gt_memory_plan(p, err);
	if (code != GT_OK) {
		gt_plan_close(p);
		return code;
	}
	if (p->act_bytes * (size_t)at_least_one(s->seats) > s->bytes[GT_A_ACT])
		s->bytes[GT_A_ACT] = p->act_bytes * (size_t)at_least_one(s->seats);
	*out = p;
	return GT_OK;
}

enum gt_code gt_plan_instance(struct gt_plan *p, int seat, int level, int copy, struct gt_plan **out, struct gt_err *err)
{
	struct gt_plan *q;
	GT_NEW(q, p->space->arena, 1, err);
	*q = *p;
	GT_NEW(q->call, p->space->arena, p->ncalls ? p->ncalls : 1, err);
	memcpy(q->call, p->call, (size_t)p->ncalls * sizeof *q->call);
	q->of = p->of ? p->of : p;
	q->seat = seat;
	q->level = level;
	q->copy = copy;
	*out = q;
	return GT_OK;
}

void gt_plan_close(struct gt_plan *p)
{
	if (!p || p->of)
		return;
	for (int i = 0; i < p->ncalls; i++)
		if (p->call[i].kernel)
			p->space->be->release(p->space->dev, p->call[i].kernel);
	p->ncalls = 0;
}

/* at, in part i of an arena of n equal ones. */
static void *part(void *at, size_t bytes, int n, int i)
{
	return at ? (char *)at + bytes / (size_t)at_least_one(n) * (size_t)i : NULL;
}

/* With cut.params: the place of param's bucket while call i runs. */
static int place_at(const struct gt_plan *p, int i, int param)
{
	int b = gt_space_bucket_of(p->space, p->space->place[param].offset);
	for (int k = 0; k < p->nstays; k++)
		if (p->stay[k].bucket == b && p->stay[k].first <= i && i <= p->stay[k].last)
			return p->stay[k].slot;
	return 0;
}

/* The same for an operand of call i. */
static void *operand(const struct gt_plan *p, int i, gt_vid v)
{
	const struct gt_space *s = p->space;
	const struct gt_value *val = v < 0 ? NULL : &p->graph->values[v];
	if (val && val->kind == GT_V_GRAD && s->cut.grads)
		return in_place(s, val->param, GT_A_GRAD, 0);
	if (val && (val->kind == GT_V_PARAM || val->kind == GT_V_WORK) && s->cut.params)
		return in_place(s, val->param, val->kind == GT_V_PARAM ? GT_A_PARAM : GT_A_WORK, place_at(p, i, val->param));
	return gt_plan_value(p, v);
}

void *gt_plan_value(const struct gt_plan *p, gt_vid v)
{
	const struct gt_space *s = p->space;
	if (v < 0)
		return NULL;
	const struct gt_value *val = &p->graph->values[v];
	switch (val->kind) {
	case GT_V_PARAM:
		return gt_space_param(s, val->param, GT_A_PARAM, 0);
	case GT_V_WORK:
		return gt_space_param(s, val->param, GT_A_WORK, 0);
	case GT_V_GRAD:
		return part(gt_space_param(s, val->param, GT_A_GRAD, 0), s->bytes[GT_A_GRAD], s->levels, p->level);
	case GT_V_BUFFER:
		return part(gt_space_param(s, val->param, GT_A_BUFFER, 0), s->bytes[GT_A_BUFFER], s->copies, p->copy);
	case GT_V_PART:
		return part(gt_space_part(s, val->param), s->bytes[GT_A_BUFFER], s->copies, p->copy);
	case GT_V_METRICS:
		return gt_space_scalars(s, 0); /* they stand first */
	case GT_V_SCALE:
		return s->base[GT_A_METRICS] ? &gt_space_scaler(s)->scale : NULL;
	case GT_V_BOUND:
		return s->base[GT_A_METRICS] ? &gt_space_scalars(s, 0)->bound : NULL;
	default:
		break;
	}
	gt_vid root = p->slot[v].root;
	if (p->graph->values[root].kind != GT_V_ACT)
		return NULL;
	return (char *)part(s->base[GT_A_ACT], s->bytes[GT_A_ACT], s->seats, p->seat) + p->slot[root].offset;
}

void gt_plan_bind(struct gt_plan *p)
{
	for (int i = 0; i < p->ncalls; i++) {
		struct gt_call *c = &p->call[i];
		const struct gt_node *n = &p->graph->nodes[c->node];
		for (int k = 0; k < n->nin; k++)
			c->in[k] = operand(p, i, n->in[k]);
		if (c->early) { /* lower_node: scalars, then the states */
			c->in[n->nin] = gt_space_scalars(p->space, 0);
			for (int k = n->nin + 1; k < c->nin; k++)
				c->in[k] = gt_space_param(p->space, p->graph->values[n->in[2]].param, GT_A_STATE, k - n->nin - 1);
		}
		for (int k = 0; k < n->nout; k++)
			c->out[k] = operand(p, i, n->out[k]);
		c->work = c->scratch ? (char *)part(p->space->base[GT_A_ACT], p->space->bytes[GT_A_ACT], p->space->seats, p->seat) + c->scratch_offset : NULL;
	}
}

void gt_plan_bind_batch(struct gt_plan *p, void *x, void *target)
{
	for (int i = 0; i < p->ncalls; i++) {
		struct gt_call *c = &p->call[i];
		const struct gt_node *n = &p->graph->nodes[c->node];
		for (int k = 0; k < n->nin; k++) {
			if (n->in[k] < 0)
				continue;
			gt_vid root = p->slot[n->in[k]].root;
			if (root == p->graph->input)
				c->in[k] = x;
			else if (root == p->graph->target)
				c->in[k] = target;
		}
	}
}
