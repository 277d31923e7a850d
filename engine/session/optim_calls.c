/* The kernel calls of the optimizer: updates, sums of squares, the check, and sums of gradients. */
#include "session/optim.h"
#include <math.h>
#include <string.h>

/* Returns the hyper-parameters of a parameter: the factor of its learning rate, its weight decay, and the index of its learning rate. */
static struct gt_seg hyper_of(const struct gt_optim *o, const struct gt_graph *graph, int i)
{
	const struct gt_param *p = &graph->params[i];
	const struct gt_conf_train *t = o->conf;
	const struct gt_conf_group *g = p->group >= 0 ? &t->group[p->group] : NULL;
	const struct gt_conf_optimizer *c = g ? &g->optimizer : &t->optimizer;
	bool exempt = (p->cls == GT_PARAM_BIAS && !c->decay_bias) || (p->cls == GT_PARAM_NORM && !c->decay_norm);
	struct gt_seg s = {.lr_mul = p->lr_mul * (g ? g->lr_mul : 1), .lr = 1 + p->group};
	if (t->layer_decay < 1)
		s.lr_mul *= pow(t->layer_decay, gt_graph_depth(graph, i));
	s.since = g ? gt_optim_steps(o, g->frozen_until) : 0;
	s.weight_decay = !isnan(p->weight_decay)        ? p->weight_decay
	                 : g && !isnan(g->weight_decay) ? g->weight_decay
	                 : exempt                       ? 0
	                                                : c->weight_decay;
	return s;
}

enum gt_code gt_optim_update_spec(const struct gt_optim *o, const struct gt_graph *g, const struct gt_update_spec **out,
                                  struct gt_err *err)
{
	struct gt_update_spec *spec;
	GT_NEW(spec, g->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_optim_call *c = gt_optim_of(o, &g->params[i]);
		spec[i] = (struct gt_update_spec){.code = c->row->code, .attr = c->attr.update, .hyper = hyper_of(o, g, i)};
		spec[i].hyper.end = gt_tdesc_count(&g->params[i].desc);
	}
	*out = spec;
	return GT_OK;
}

/* Returns an exclusive upper bound, in elements, of the padding between two parameters of an arena (from the planner's alignment). Every
 * parameter has at least as many elements. */
static int64_t max_gap(const struct gt_space *s)
{
	return 256 / (int64_t)gt_dtype_size(s->layout.work);
}

/* Returns whether the optimizer on this rank may update parameter i. */
static bool is_updated(const struct gt_space *s, int i)
{
	const struct gt_param *w = &s->layout.first->params[i];
	return w->cls != GT_PARAM_BUFFER && !w->frozen && s->layout.param[i].offset >= 0;
}

static struct gt_tdesc describe_flat(const struct gt_space *s, int64_t n)
{
	return gt_tdesc_make(s->layout.master, 1, &n, false);
}

static struct gt_tdesc describe_scalars(int64_t words)
{
	return gt_tdesc_make(GT_F64, 1, &words, false);
}

/* Lists the trainable parameters of call p->of by their offset, relative to [p->begin, p->begin + p->n). Neighbours with equal
 * hyper-parameters become one segment, unless the optimizer needs whole parameters. Padding between parameters is always zero. */
static enum gt_code list_segments(struct gt_optim *o, struct gt_optim_part *p, int phase, struct gt_space *s, struct gt_err *err)
{
	const struct gt_graph *g = s->layout.first;
	const struct gt_tdesc **desc;
	struct gt_seg *seg;
	int n = 0, m = 0;
	GT_NEW(seg, s->arena, g->nparams ? g->nparams : 1, err);
	GT_NEW(desc, s->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *w = &g->params[i];
		if (!is_updated(s, i) || s->layout.param[i].fused_update || o->of[1 + w->group] != p->of || gt_optim_frozen(o, w->group, phase))
			continue;
		struct gt_seg x = hyper_of(o, g, i);
		x.begin = s->layout.param[i].offset - p->begin;
		x.end = x.begin + s->layout.param[i].count;
		if (x.begin < 0)
			x.begin = 0;
		if (x.end > p->n)
			x.end = p->n;
		if (x.begin >= x.end)
			continue;
		int at = n++;
		for (; at > 0 && seg[at - 1].begin > x.begin; at--) {
			seg[at] = seg[at - 1];
			desc[at] = desc[at - 1];
		}
		seg[at] = x;
		desc[at] = &s->layout.param[i].desc;
	}
	p->attr = o->call[p->of].attr;
	if (o->call[p->of].row->whole)
		m = n - 1;
	/* Merges segments. Between two of them is only padding: parameters that are frozen or have a fused update are at the end of the
	 * arena. */
	for (int i = m + 1; i < n; i++) {
		if (seg[m].lr_mul == seg[i].lr_mul && seg[m].weight_decay == seg[i].weight_decay && seg[m].lr == seg[i].lr &&
		    seg[m].since == seg[i].since && seg[i].begin - seg[m].end < max_gap(s))
			seg[m].end = seg[i].end;
		else
			seg[++m] = seg[i];
	}
	p->attr.update.seg = seg;
	p->attr.update.nseg = n ? m + 1 : 0;
	p->attr.desc = desc;
	return GT_OK;
}

/* An input of an update operation: its arena and, in the arena STATE, the slot of the optimizer state. */
struct operand {
	enum gt_arena_id arena; /* GT_A_METRICS: the input is the struct gt_scalars of the step; GT_A_COUNT: there is no such input */
	int state;
};

/* Lists the inputs of an update in the order of optimizer_rows.h. States that the optimizer lacks have no slot in STATE. */
static int list_operands(const struct gt_optim_call *o, const struct gt_space *s, struct operand *x)
{
	int n = 0, state = 0;
	x[n++] = (struct operand){GT_A_PARAM};
	x[n++] = (struct operand){GT_A_GRAD};
	for (int i = 0; i < o->row->nslots; i++) {
		bool exists = gt_update_has(o->row, &o->attr.update, i);
		x[n++] = (struct operand){exists ? GT_A_STATE : GT_A_COUNT, exists ? state++ : 0};
	}
	x[n++] = (struct operand){GT_A_METRICS};
	x[n++] = (struct operand){s->layout.work != s->layout.master ? GT_A_WORK : GT_A_COUNT};
	return n;
}

static enum gt_code prepare_update(struct gt_optim *o, struct gt_optim_part *p, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	const struct gt_optim_call *c = &o->call[p->of];
	struct operand x[GT_MAX_IO];
	struct gt_tdesc flat = describe_flat(s, p->n), work = flat, scalars = describe_scalars(GT_SCALARS_WORDS);
	struct gt_opcall up = {.code = c->row->code, .name = "optimizer", .deterministic = deterministic};
	up.attr = &p->attr; /* gt_attr_muon begins with a struct gt_attr_update */
	work.dtype = s->layout.work;
	up.nin = list_operands(c, s, x);
	for (int i = 0; i < up.nin; i++)
		up.in[i] = x[i].arena == GT_A_COUNT ? NULL : x[i].arena == GT_A_METRICS ? &scalars : x[i].arena == GT_A_WORK ? &work : &flat;
	return gt_call_prepare(s, &up, &p->call, err);
}

/* Prepares the kernel that updates the moving average of the range of p. */
static enum gt_code prepare_average(struct gt_optim *o, struct gt_optim_part *p, struct gt_space *s, struct gt_err *err)
{
	struct gt_tdesc flat = describe_flat(s, p->n), scalars = describe_scalars(GT_SCALARS_WORDS);
	struct gt_opcall oc = {.code = GT_OP_EMA, .name = "average", .nin = 3, .in = {&flat, &flat, &scalars}};
	struct gt_seg *seg;
	GT_NEW(seg, s->arena, 1, err);
	*seg = (struct gt_seg){.end = p->n, .lr_mul = 1};
	memset(&p->attr, 0, sizeof p->attr);
	p->attr.update.alpha = o->conf->ema.decay;
	p->attr.update.nesterov = o->conf->ema.warmup;
	p->attr.update.seg = seg;
	p->attr.update.nseg = 1;
	p->attr.update.work_dtype = s->layout.master;
	oc.attr = &p->attr;
	return gt_call_prepare(s, &oc, &p->call, err);
}

/* Prepares the update kernels, and the range of the arenas that each kernel updates. */
static enum gt_code prepare_parts(struct gt_optim *o, int phase, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	bool sharded = gt_space_sharded(s, GT_A_STATE);
	int ranges = sharded ? s->shards.nbuckets : 1, *bucket, n = 0;
	struct gt_call **update;
	if (!phase)
		GT_NEW(o->part, s->arena, (1 + o->nphases) * ranges * (o->ncalls + 1), err);
	GT_NEW(update, s->arena, ranges * (o->ncalls + 1), err);
	GT_NEW(bucket, s->arena, ranges * (o->ncalls + 1), err);
	for (int b = 0; b < ranges; b++) {
		const struct gt_bucket *range = &s->shards.bucket[b];
		int64_t shard = gt_space_shard(s, b);
		if (sharded && !range->trainable)
			continue;
		/* the moving average comes last, because it reads the updated parameters of the range */
		for (int k = 0; k < o->ncalls + o->ema; k++) {
			struct gt_optim_part *p = &o->part[o->nparts];
			*p = (struct gt_optim_part){.of = k < o->ncalls ? k : -1, .bucket = -1, .n = s->layout.elements};
			if (sharded) {
				p->bucket = b;
				p->begin = range->begin + s->shards.spec.rank * shard;
				p->n = shard;
			}
			if (p->of >= 0)
				GT_TRY(list_segments(o, p, phase, s, err));
			if (p->of >= 0 && !p->attr.update.nseg)
				continue;
			p->attr.update.work_dtype = s->layout.work;
			GT_TRY(p->of < 0 ? prepare_average(o, p, s, err) : prepare_update(o, p, s, deterministic, err));
			bucket[n] = sharded ? b : -1;
			update[n++] = &p->call;
			o->nparts++;
		}
	}
	o->steps[phase] = o->steps[0];
	o->steps[phase].update = update;
	o->steps[phase].bucket = bucket;
	o->steps[phase].nupdates = n;
	return GT_OK;
}

/* Lists the elements of GRAD that still have gradients of an earlier phase, because `phase` freezes their parameters. */
static enum gt_code find_stale(struct gt_optim *o, int phase, struct gt_space *s, struct gt_err *err)
{
	const struct gt_graph *g = s->layout.first;
	struct gt_elements *e;
	int n = 0;
	GT_NEW(e, s->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param_slot *p = &s->layout.param[i];
		if (!is_updated(s, i) || p->fused_update || gt_optim_frozen(o, g->params[i].group, phase) != GT_FREEZE_AFTER)
			continue;
		int at = n++;
		for (; at > 0 && e[at - 1].begin > p->offset; at--)
			e[at] = e[at - 1];
		e[at] = (struct gt_elements){p->offset, p->offset + p->count};
	}
	int m = 0;
	for (int i = 1; i < n; i++) {
		if (e[i].begin - e[m].end < max_gap(s))
			e[m].end = e[i].end;
		else
			e[++m] = e[i];
	}
	o->steps[phase].stale = e;
	o->steps[phase].nstale = n ? m + 1 : 0;
	return GT_OK;
}

/* Marks the buckets that have no parameter which `phase` trains. */
static enum gt_code find_idle(struct gt_optim *o, int phase, struct gt_space *s, struct gt_err *err)
{
	const struct gt_graph *g = s->layout.first;
	bool *idle;
	GT_NEW(idle, s->arena, s->shards.nbuckets + 1, err);
	for (int b = 0; b < s->shards.nbuckets; b++)
		idle[b] = true;
	for (int i = 0; i < g->nparams; i++)
		if (is_updated(s, i) && !gt_optim_frozen(o, g->params[i].group, phase))
			idle[gt_space_bucket_of(s, s->layout.param[i].offset)] = false;
	o->steps[phase].idle = idle;
	return GT_OK;
}

/* Prepares the calls that sum the squares of the stored gradients. If gradients are sharded, there is a call for each of this rank's
 * shards, and each call adds its sum to the sum of the calls before it. */
static enum gt_code prepare_norms(struct gt_optim *o, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	struct gt_tdesc flat = describe_flat(s, s->layout.checked), scalar = gt_tdesc_make(GT_F64, 0, NULL, false);
	struct gt_opcall norm = {
	    .code = GT_OP_SUMSQ, .name = "gradients", .nin = 1, .nout = 1, .in = {&flat}, .out = {&scalar}, .deterministic = deterministic};
	struct gt_call **list;
	int n = gt_space_sharded(s, GT_A_STATE) && !gt_space_sharded(s, GT_A_GRAD) ? s->shards.nbuckets : 1;
	GT_NEW(o->sumsq, s->arena, n, err);
	GT_NEW(o->summed, s->arena, n, err);
	GT_NEW(list, s->arena, n, err);
	for (int b = 0; b < n && s->layout.checked; b++) {
		if (gt_space_sharded(s, GT_A_GRAD)) /* the shards are contiguous */
			flat.dim[0] = s->layout.checked / s->shards.spec.shards;
		else if (gt_space_sharded(s, GT_A_STATE))
			flat.dim[0] = gt_space_shard(s, b);
		if (gt_space_sharded(s, GT_A_STATE) && !s->shards.bucket[b].trainable)
			continue;
		norm.accumulate = o->nsumsq > 0;
		GT_TRY(gt_call_prepare(s, &norm, &o->sumsq[o->nsumsq], err));
		o->summed[o->nsumsq] = b;
		list[o->nsumsq] = &o->sumsq[o->nsumsq];
		o->nsumsq++;
	}
	o->steps[0].sumsq = list;
	o->steps[0].nsumsq = o->nsumsq;
	return GT_OK;
}

static enum gt_code prepare_check(struct gt_optim *o, struct gt_space *s, struct gt_err *err)
{
	const struct gt_conf_loss_scale *ls = &o->conf->loss_scale;
	int64_t step_args = sizeof(struct gt_step_args) /* bytes of a step's arguments */, parts[2] = {s->memory.ranks, GT_SCALARS_WORDS};
	struct gt_tdesc scalars = describe_scalars(GT_SCALARS_WORDS), scaler = describe_scalars(GT_SCALER_WORDS),
	                numbers = gt_tdesc_make(GT_U8, 1, &step_args, false), gathered = gt_tdesc_make(GT_F64, 2, parts, false);
	struct gt_attr_check attr = {.scaling = s->layout.first->compute == GT_F16,
	                             .dynamic = ls->dynamic,
	                             .growth = ls->growth,
	                             .backoff = ls->backoff,
	                             .interval = ls->interval,
	                             .patience = GT_SKIPS,
	                             .ranks = s->memory.ranks,
	                             .sharded = gt_space_sharded(s, GT_A_STATE) || s->shards.spec.pipeline_stages};
	bool several = s->memory.ranks > 1;
	struct gt_opcall check = {.code = GT_OP_CHECK, .name = "step", .attr = &attr, .nin = several ? 4 : attr.scaling ? 3 : 2,
	                          .in = {&scalars, &scaler, attr.scaling ? &numbers : NULL, several ? &gathered : NULL}};
	o->steps[0].check = &o->check;
	if (o->nsumsq == 1 && !several) { /* without other ranks, a device may have one kernel that sums the squares and checks the sum */
		struct gt_tdesc flat = describe_flat(s, s->layout.checked);
		struct gt_opcall joined = check;
		joined.in[gt_opsig_find_input(GT_OP_CHECK, "g")] = &flat;
		joined.nin = gt_opsig_find_input(GT_OP_CHECK, "g") + 1;
		if (gt_call_prepare(s, &joined, &o->check, NULL) == GT_OK) {
			o->steps[0].nsumsq = 0;
			return GT_OK;
		}
	}
	return gt_call_prepare(s, &check, &o->check, err);
}

/* Prepares a call that adds n gradients to n gradients at another address. */
static enum gt_code prepare_add(struct gt_space *s, int64_t n, struct gt_call *out, struct gt_err *err)
{
	struct gt_tdesc flat = describe_flat(s, n);
	struct gt_opcall add = {.code = GT_OP_ADD, .name = "gradients", .nin = 2, .nout = 1, .in = {&flat, &flat}, .out = {&flat}};
	return gt_call_prepare(s, &add, out, err);
}

/* Prepares the additions of level i + 1 of the gradients to level i and, with sharded gradients, the addition of a reduced shard of each
 * bucket to the rank's own shard. */
static enum gt_code prepare_adds(struct gt_optim *o, struct gt_space *s, struct gt_err *err)
{
	int levels = s->memory.levels > 1 ? s->memory.levels - 1 : 0, buckets = gt_space_sharded(s, GT_A_GRAD) ? s->shards.nbuckets : 0;
	GT_NEW(o->merge, s->arena, levels + 1, err);
	GT_NEW(o->add, s->arena, buckets + 1, err);
	for (; o->nmerge < levels; o->nmerge++)
		GT_TRY(prepare_add(s, s->layout.checked, &o->merge[o->nmerge], err));
	for (; o->nadd < buckets; o->nadd++)
		GT_TRY(prepare_add(s, gt_space_shard(s, o->nadd), &o->add[o->nadd], err));
	o->steps[0].merge = o->merge;
	o->steps[0].add = o->add;
	return GT_OK;
}

enum gt_code gt_optim_prepare(struct gt_optim *o, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	GT_TRY(prepare_norms(o, s, deterministic, err));
	GT_TRY(prepare_adds(o, s, err));
	GT_TRY(prepare_check(o, s, err));
	GT_TRY(gt_compress_prepare(o, s, err));
	for (int phase = 0; phase <= o->nphases; phase++) {
		GT_TRY(prepare_parts(o, phase, s, deterministic, err));
		GT_TRY(find_stale(o, phase, s, err));
		if (phase && s->shards.nbuckets)
			GT_TRY(find_idle(o, phase, s, err));
	}
	return GT_OK;
}

/* Returns the address at which an optimizer kernel begins to read or write an arena: the elements of `bucket` in a slot of the arena, or
 * with bucket < 0 the first element of the whole slot. */
static void *part_of(struct gt_space *s, enum gt_arena_id a, int bucket, int slot)
{
	if (bucket < 0)
		return gt_space_at(s, gt_space_element(s, a, slot * s->layout.elements));
	struct gt_range r = gt_space_own_shard(s, a, bucket);
	r.offset += gt_space_element(s, a, slot * (s->layout.elements / s->shards.spec.shards)).offset;
	return gt_space_at(s, r);
}

static void bind_update(const struct gt_optim_call *c, struct gt_optim_part *p, struct gt_space *s)
{
	struct operand x[GT_MAX_IO];
	int n = list_operands(c, s, x);
	for (int i = 0; i < n; i++)
		p->call.in[i] = x[i].arena == GT_A_COUNT     ? NULL
		                : x[i].arena == GT_A_METRICS ? gt_space_scalars(s, 0)
		                                             : part_of(s, x[i].arena, p->bucket, x[i].state);
}

static void bind_input(struct gt_call *c, enum gt_opcode code, const char *name, void *address)
{
	c->in[gt_opsig_find_input(code, name)] = address;
}

void gt_optim_bind(struct gt_optim *o, struct gt_space *s)
{
	struct gt_scalars *scalars = gt_space_scalars(s, 0);
	size_t level = s->memory.bytes[GT_A_GRAD] / (size_t)(s->memory.levels ? s->memory.levels : 1);
	for (int b = 0; b < o->nsumsq; b++) {
		o->sumsq[b].work = s->memory.base[GT_A_SCRATCH];
		*o->sumsq[b].in = part_of(s, GT_A_GRAD, gt_space_sharded(s, GT_A_STATE) ? o->summed[b] : -1, 0);
		*o->sumsq[b].out = &scalars->sumsq;
	}
	for (int i = 0; i < o->nmerge; i++) {
		*o->merge[i].out = *o->merge[i].in = (char *)s->memory.base[GT_A_GRAD] + (size_t)i * level;
		bind_input(&o->merge[i], GT_OP_ADD, "b", (char *)s->memory.base[GT_A_GRAD] + (size_t)(i + 1) * level);
	}
	for (int b = 0; b < o->nadd; b++) {
		struct gt_range whole = gt_space_bucket(s, GT_A_GRAD, b, 0);
		whole.offset += gt_space_element(s, GT_A_GRAD, s->shards.spec.rank * gt_space_shard(s, b)).offset;
		*o->add[b].out = *o->add[b].in = part_of(s, GT_A_GRAD, b, 0);
		bind_input(&o->add[b], GT_OP_ADD, "b", gt_space_at(s, whole));
	}
	gt_compress_bind(o, s);
	o->check.work = s->memory.base[GT_A_SCRATCH];
	bind_input(&o->check, GT_OP_CHECK, "scalars", scalars);
	bind_input(&o->check, GT_OP_CHECK, "scaler", gt_space_scaler(s));
	bind_input(&o->check, GT_OP_CHECK, "parts", gt_space_at(s, gt_space_all_scalars(s)));
	bind_input(&o->check, GT_OP_CHECK, "g", s->memory.base[GT_A_GRAD]);
	for (int i = 0; i < o->nparts; i++) {
		struct gt_optim_part *p = &o->part[i];
		p->call.work = s->memory.base[GT_A_SCRATCH];
		if (p->of >= 0) {
			bind_update(&o->call[p->of], p, s);
			continue;
		}
		bind_input(&p->call, GT_OP_EMA, "p", part_of(s, GT_A_STATE, p->bucket, o->nstates));
		bind_input(&p->call, GT_OP_EMA, "g", part_of(s, GT_A_PARAM, p->bucket, 0));
		bind_input(&p->call, GT_OP_EMA, "scalars", scalars);
	}
}

void gt_optim_close(struct gt_optim *o, struct gt_space *s)
{
	gt_call_release(s, &o->check);
	gt_compress_close(o, s);
	for (int i = 0; i < o->nsumsq; i++)
		gt_call_release(s, &o->sumsq[i]);
	for (int i = 0; i < o->nmerge; i++)
		gt_call_release(s, &o->merge[i]);
	for (int i = 0; i < o->nadd; i++)
		gt_call_release(s, &o->add[i]);
	for (int i = 0; i < o->nparts; i++)
		gt_call_release(s, &o->part[i].call);
}
