#include "session/optim.h"
#include "session/schedule.h"
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COPY_NUMBER(attr, c, key) (attr)->key = (c)->key;
#define COPY_FLAG(attr, c, key) (attr)->key = (c)->key;
#define COPY_BETAS(attr, c, key) (attr)->beta1 = (c)->key[0], (attr)->beta2 = (c)->key[1];

static struct gt_optim_call call_of(const struct gt_conf_optimizer *c, const struct gt_conf_train *t)
{
	const struct gt_optimizer_row *row = &gt_optimizer_rows[c->type];
	struct gt_optim_call o;
	memset(&o, 0, sizeof o); /* clears the padding too, because calls are compared as bytes */
	o.row = gt_update_row(row->update);
#define GT_X(P, A, KIND, key, ...) COPY_##KIND(&o.attr.update, c, key)
	GT_OPTIMIZER_KEYS(GT_X, , )
#undef GT_X
	o.attr.update.decoupled = row->decoupled;
	o.attr.update.clip_norm = t->clip_norm;
	o.attr.update.clip_value = t->clip_value;
	o.attr.ns_steps = c->ns_steps;
	memcpy(o.attr.ns, c->ns.v, sizeof o.attr.ns);
	o.attr.adjust = c->adjust;
	o.attr.normalize = c->normalize;
	for (int i = 0; i < o.row->nslots; i++)
		if (gt_update_has(o.row, &o.attr.update, i))
			o.state[o.nstates++] = o.row->state[i].name;
	return o;
}

/* Adds a value to a list of n ascending values, unless it is there. Returns the new number of values. */
static int add_border(double *border, int n, double epochs)
{
	int at = 0;
	while (at < n && border[at] < epochs)
		at++;
	if (at < n && border[at] == epochs)
		return n;
	memmove(&border[at + 1], &border[at], (size_t)(n - at) * sizeof *border);
	border[at] = epochs;
	return n + 1;
}

/* Lists the phases: the intervals between neighbouring values of frozen_until and freeze_after in which a group is frozen. */
static void find_phases(struct gt_optim *o)
{
	const struct gt_conf_train *t = o->conf;
	double border[2 * GT_MAX_LR + 1] = {0, INFINITY}; /* the default of both keys is 0 */
	int n = 2;
	for (int i = 0; i < t->ngroups; i++) {
		n = add_border(border, n, t->group[i].frozen_until);
		n = add_border(border, n, t->group[i].freeze_after);
	}
	for (int k = 0; k + 1 < n; k++) {
		enum gt_freeze any = GT_FREEZE_NONE;
		o->phase[o->nphases] = (struct gt_optim_phase){border[k], border[k + 1]};
		for (int i = 0; i < t->ngroups && !any; i++)
			any = gt_optim_frozen(o, i, 1 + o->nphases);
		o->nphases += any != GT_FREEZE_NONE;
	}
}

int64_t gt_optim_steps(const struct gt_optim *o, double epochs)
{
	double steps = ceil(epochs * (double)o->per_epoch - 1e-9);
	return steps < 0x1p62 ? (int64_t)steps : (int64_t)1 << 62;
}

enum gt_freeze gt_optim_frozen(const struct gt_optim *o, int group, int phase)
{
	if (group < 0 || phase < 1)
		return GT_FREEZE_NONE;
	const struct gt_conf_group *g = &o->conf->group[group];
	const struct gt_optim_phase *p = &o->phase[phase - 1];
	if (g->frozen_until >= p->end)
		return GT_FREEZE_UNTIL;
	return g->freeze_after > 0 && g->freeze_after <= p->begin ? GT_FREEZE_AFTER : GT_FREEZE_NONE;
}

bool gt_optim_reaches(const struct gt_optim *o, int phase)
{
	double begin = o->phase[phase - 1].begin;
	if (o->conf->steps > 0) /* without the steps of an epoch all phases begin at 0 */
		return gt_optim_steps(o, begin) < o->conf->steps;
	return begin < (double)o->conf->epochs;
}

bool gt_optim_trains(const struct gt_optim *o, const struct gt_graph *g, int phase)
{
	for (int i = 0; i < g->nparams; i++)
		if (g->params[i].cls != GT_PARAM_BUFFER && !g->params[i].frozen && !gt_optim_frozen(o, g->params[i].group, phase))
			return true;
	return false;
}

const char *gt_optim_phase_text(const struct gt_optim *o, int phase, char *buf, size_t size)
{
	const struct gt_optim_phase *p = &o->phase[phase - 1];
	if (p->begin <= 0)
		snprintf(buf, size, "in the epochs before %g", p->end);
	else if (isinf(p->end))
		snprintf(buf, size, "in the epochs after %g", p->begin);
	else
		snprintf(buf, size, "in the epochs from %g to %g", p->begin, p->end);
	return buf;
}

void gt_optim_init(struct gt_optim *o, const struct gt_conf_train *t)
{
	memset(o, 0, sizeof *o);
	o->conf = t;
	o->ema = t->ema.decay > 0;
	find_phases(o);
	for (int i = 0; i <= t->ngroups; i++) {
		struct gt_optim_call c = call_of(i ? &t->group[i - 1].optimizer : &t->optimizer, t);
		int k = 0;
		while (k < o->ncalls && (o->call[k].row != c.row || memcmp(&o->call[k].attr, &c.attr, sizeof c.attr) != 0))
			k++;
		if (k == o->ncalls)
			o->call[o->ncalls++] = c;
		o->of[i] = k;
		o->nstates = c.nstates > o->nstates ? c.nstates : o->nstates;
	}
}

void gt_optim_rates(const struct gt_optim *o, int64_t step, int64_t total, int64_t per_epoch, double lr[GT_MAX_LR])
{
	const struct gt_conf_train *t = o->conf;
	memset(lr, 0, GT_MAX_LR * sizeof *lr);
	lr[0] = gt_schedule_rate(&t->schedule, gt_schedule_reduced(&t->schedule, t->optimizer.lr, o->drops), step, total, per_epoch);
	for (int i = 0; i < t->ngroups; i++) {
		const struct gt_conf_group *g = &t->group[i];
		bool over = g->freeze_after > 0 && (double)step >= g->freeze_after * (double)per_epoch - 1e-9;
		bool before = (double)step < g->frozen_until * (double)per_epoch - 1e-9;
		double rate = gt_schedule_reduced(&g->schedule, g->optimizer.lr, o->drops);
		lr[1 + i] = over || before ? 0 : gt_schedule_rate(&g->schedule, rate, step, total, per_epoch);
	}
}

static double momentum_of(const struct gt_conf_optimizer *o, const struct gt_conf_schedule *s, int64_t step, int64_t total,
                          int64_t per_epoch)
{
	return gt_schedule_cycles_momentum(s, o) ? gt_schedule_momentum(s, step, total, per_epoch) : 0;
}

void gt_optim_momenta(const struct gt_optim *o, int64_t step, int64_t total, int64_t per_epoch, double momentum[GT_MAX_LR])
{
	const struct gt_conf_train *t = o->conf;
	memset(momentum, 0, GT_MAX_LR * sizeof *momentum);
	momentum[0] = momentum_of(&t->optimizer, &t->schedule, step, total, per_epoch);
	for (int i = 0; i < t->ngroups; i++)
		momentum[1 + i] = momentum_of(&t->group[i].optimizer, &t->group[i].schedule, step, total, per_epoch);
}

void gt_optim_group_rates(const struct gt_optim *o, const double lr[GT_MAX_LR], double out[GT_MAX_LR])
{
	for (int i = 0; i < o->conf->ngroups; i++)
		out[i] = o->conf->group[i].frozen ? 0 : lr[1 + i] * o->conf->group[i].lr_mul;
}

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

bool gt_optim_fused_update(const struct gt_optim *o)
{
	return o->conf->clip_norm == 0;
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

/* Rejects patterns that match only the name that a tied weight has in another layer than its own, unless the group has the weight. */
static enum gt_code check_tied(const struct gt_conf *c, const struct gt_graph *g, int group, struct gt_err *err)
{
	const struct gt_strings *match = &c->train.group[group].match;
	char path[64];
	snprintf(path, sizeof path, "train.groups[%d].match", group);
	for (int m = 0; m < match->n; m++) {
		const struct gt_param *tied = NULL;
		const char *alias = NULL;
		bool matches = false;
		for (int i = 0; i < g->nparams; i++) {
			const struct gt_param *p = &g->params[i];
			matches |= !fnmatch(match->v[m], p->name, 0);
			for (int k = 0; k < p->naliases; k++) {
				bool here = !fnmatch(match->v[m], p->alias[k], 0);
				matches |= here && p->group == group;
				tied = here ? p : tied;
				alias = here ? p->alias[k] : alias;
			}
		}
		if (tied && !matches)
			return gt_conf_refuse(c, path, err, "expected the name of a parameter, got \"%s\", but %s is tied to %s; write \"%s\"",
			                      match->v[m], alias, tied->name, tied->name);
	}
	return GT_OK;
}

/* Rejects groups that match no parameter, and optimizers of whole matrices (muon) for parameters that are not weights. */
static enum gt_code check_groups(const struct gt_optim *o, const struct gt_conf *c, const struct gt_graph *g, struct gt_err *err)
{
	const struct gt_conf_train *t = o->conf;
	char path[64];
	for (int i = 0; i < t->ngroups; i++) {
		int n = 0, stats = 0;
		GT_TRY(check_tied(c, g, i, err));
		for (int k = 0; k < g->nparams; k++) {
			n += g->params[k].group == i;
			stats += g->params[k].group == i && g->params[k].cls == GT_PARAM_BUFFER;
		}
		snprintf(path, sizeof path, "train.groups[%d].%s", i, n ? "frozen_stats" : "match");
		if (!n)
			return gt_conf_refuse(c, path, err,
			                      "expected patterns of parameter names that no earlier group matches, such as \"%s\", got none that match",
			                      g->nparams ? g->params[0].name : "fc.weight");
		if (t->group[i].frozen_stats && !stats)
			return gt_conf_refuse(c, path, err, "expected a match of the weight and the bias of a batch normalisation, got none");
	}
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		if (p->cls == GT_PARAM_BUFFER || p->frozen || p->cls == GT_PARAM_WEIGHT || !gt_optim_of(o, p)->row->matrix)
			continue;
		const struct gt_conf_optimizer *of = p->group < 0 ? &t->optimizer : &t->group[p->group].optimizer;
		snprintf(path, sizeof path, "train.groups[%d].optimizer.type", p->group);
		return gt_conf_refuse(c, p->group < 0 ? "train.optimizer.type" : path, err,
		                      "expected an optimizer that can update %s, got \"%s\", which only updates weights of linear and convolution "
		                      "layers; add a group to train.groups%s that gives this parameter another optimizer",
		                      p->name, gt_optimizer_rows[of->type].word,
		                      p->group < 0 ? "" : ", before this one,");
	}
	return GT_OK;
}

/* Returns a number of elements that is larger than the padding between two parameters of the arenas, which comes from the planner's
 * alignment; another parameter takes at least as much. */
static int64_t max_gap(const struct gt_space *s)
{
	return 256 / (int64_t)gt_dtype_size(s->layout.work);
}

/* Lists the learned parameters of call k by their offset, relative to [p->begin, p->begin + p->n). Neighbours with equal hyper-parameters
 * become one segment, unless the optimizer needs whole parameters. The padding between two parameters is zero and stays zero. */
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
		if (w->cls == GT_PARAM_BUFFER || w->frozen || s->layout.param[i].offset < 0 || s->layout.param[i].fused_update ||
		    o->of[1 + w->group] != p->of || gt_optim_frozen(o, w->group, phase))
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
	for (int i = m + 1; i < n; i++) { /* frozen parameters and those with a fused update come after all others in the arena */
		if (seg[m].lr_mul == seg[i].lr_mul && seg[m].weight_decay == seg[i].weight_decay && seg[m].lr == seg[i].lr &&
		    seg[m].since == seg[i].since &&
		    seg[i].begin - seg[m].end < max_gap(s))
			seg[m].end = seg[i].end;
		else
			seg[++m] = seg[i];
	}
	p->attr.update.seg = seg;
	p->attr.update.nseg = n ? m + 1 : 0;
	p->attr.desc = desc;
	return GT_OK;
}

/* The kind of each input of an update: the index of a state slot of the arena, or one of these. */
enum { NONE = -1, SCALARS = -2, WORK = -3, P = -4, G = -5 };

/* Lists the inputs of an update in the order of optimizer_rows.h. The arena has no slots for states that do not exist. */
static int list_operands(const struct gt_optim_call *o, const struct gt_space *s, int *kind)
{
	int n = 0, state = 0;
	kind[n++] = P;
	kind[n++] = G;
	for (int i = 0; i < o->row->nslots; i++)
		kind[n++] = gt_update_has(o->row, &o->attr.update, i) ? state++ : NONE;
	kind[n++] = SCALARS;
	kind[n++] = s->layout.work != s->layout.master ? WORK : NONE;
	return n;
}

static enum gt_code prepare_update(struct gt_optim *o, struct gt_optim_part *p, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	const struct gt_optim_call *c = &o->call[p->of];
	int kind[GT_MAX_IO];
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc flat = gt_tdesc_make(s->layout.master, 1, &p->n, false), work = flat, scalars = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall up = {.code = c->row->code, .name = "optimizer", .deterministic = deterministic};
	up.attr = &p->attr; /* gt_attr_muon begins with a struct gt_attr_update */
	work.dtype = s->layout.work;
	up.nin = list_operands(c, s, kind);
	for (int i = 0; i < up.nin; i++)
		up.in[i] = kind[i] == NONE ? NULL : kind[i] == SCALARS ? &scalars : kind[i] == WORK ? &work : &flat;
	return gt_call_prepare(s, &up, &p->call, err);
}

/* Prepares the kernel that updates the moving average of the range of p. */
static enum gt_code prepare_average(struct gt_optim *o, struct gt_optim_part *p, struct gt_space *s, struct gt_err *err)
{
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc flat = gt_tdesc_make(s->layout.master, 1, &p->n, false), scalars = gt_tdesc_make(GT_F64, 1, &words, false);
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

/* Prepares the kernels of the updates, and the range of the arenas that each updates. */
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
		if (sharded && !range->learned)
			continue;
		for (int k = 0; k < o->ncalls + o->ema; k++) { /* the average comes after all updates of the range */
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

/* Lists the elements of the arena GRAD for which an earlier phase has computed gradients, but `phase` does not. */
static enum gt_code find_stale(struct gt_optim *o, int phase, struct gt_space *s, struct gt_err *err)
{
	const struct gt_graph *g = s->layout.first;
	struct gt_elements *e;
	int n = 0;
	GT_NEW(e, s->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *w = &g->params[i];
		const struct gt_param_slot *p = &s->layout.param[i];
		if (w->cls == GT_PARAM_BUFFER || w->frozen || p->offset < 0 || p->fused_update ||
		    gt_optim_frozen(o, w->group, phase) != GT_FREEZE_AFTER)
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

/* Marks the buckets of which `phase` trains no parameter. */
static enum gt_code find_idle(struct gt_optim *o, int phase, struct gt_space *s, struct gt_err *err)
{
	const struct gt_graph *g = s->layout.first;
	bool *idle;
	GT_NEW(idle, s->arena, s->shards.nbuckets + 1, err);
	for (int b = 0; b < s->shards.nbuckets; b++)
		idle[b] = true;
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *w = &g->params[i];
		if (w->cls != GT_PARAM_BUFFER && !w->frozen && s->layout.param[i].offset >= 0 && !gt_optim_frozen(o, w->group, phase))
			idle[gt_space_bucket_of(s, s->layout.param[i].offset)] = false;
	}
	o->steps[phase].idle = idle;
	return GT_OK;
}

/* Prepares the sums of squares of the stored gradients. If gradients are sharded, these are the rank's shards, and each sum adds to the one
 * before it. */
static enum gt_code prepare_norms(struct gt_optim *o, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	struct gt_tdesc flat = gt_tdesc_make(s->layout.master, 1, &s->layout.checked, false), scalar = gt_tdesc_make(GT_F64, 0, NULL, false);
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
		if (gt_space_sharded(s, GT_A_STATE) && !s->shards.bucket[b].learned)
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
	int64_t words[2] = {GT_SCALARS_WORDS, GT_SCALER_WORDS}, step_args = sizeof(struct gt_step_args) /* those of the first step */,
	        parts[2] = {s->memory.ranks, GT_SCALARS_WORDS};
	struct gt_tdesc scalars = gt_tdesc_make(GT_F64, 1, &words[0], false), scaler = gt_tdesc_make(GT_F64, 1, &words[1], false),
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
	if (o->nsumsq == 1 && !several) { /* a device may sum the squares and check the sum in one kernel */
		struct gt_tdesc flat = gt_tdesc_make(s->layout.master, 1, &s->layout.checked, false);
		struct gt_opcall joined = check;
		joined.nin = 5;
		joined.in[4] = &flat;
		if (gt_call_prepare(s, &joined, &o->check, NULL) == GT_OK) {
			o->steps[0].nsumsq = 0;
			return GT_OK;
		}
	}
	return gt_call_prepare(s, &check, &o->check, err);
}

/* Prepares the additions of level i + 1 of the gradients to level i. */
static enum gt_code prepare_merges(struct gt_optim *o, struct gt_space *s, struct gt_err *err)
{
	struct gt_tdesc flat = gt_tdesc_make(s->layout.master, 1, &s->layout.checked, false);
	struct gt_opcall add = {.code = GT_OP_ADD, .name = "gradients", .nin = 2, .nout = 1, .in = {&flat, &flat}, .out = {&flat}};
	int n = s->memory.levels > 1 ? s->memory.levels - 1 : 0;
	GT_NEW(o->merge, s->arena, n + 1, err);
	for (int i = 0; i < n; i++, o->nmerge++)
		GT_TRY(gt_call_prepare(s, &add, &o->merge[i], err));
	o->steps[0].merge = o->merge;
	return GT_OK;
}

/* Prepares the calls that add a shard of a bucket's gradients to the sum of the rank's shard. */
static enum gt_code prepare_adds(struct gt_optim *o, struct gt_space *s, struct gt_err *err)
{
	if (!gt_space_sharded(s, GT_A_GRAD))
		return GT_OK;
	GT_NEW(o->add, s->arena, s->shards.nbuckets, err);
	for (int b = 0; b < s->shards.nbuckets; b++, o->nadd++) {
		int64_t n = gt_space_shard(s, b);
		struct gt_tdesc flat = gt_tdesc_make(s->layout.master, 1, &n, false);
		struct gt_opcall add = {.code = GT_OP_ADD, .name = "gradients", .nin = 2, .nout = 1, .in = {&flat, &flat}, .out = {&flat}};
		GT_TRY(gt_call_prepare(s, &add, &o->add[b], err));
	}
	o->steps[0].add = o->add;
	return GT_OK;
}

enum gt_code gt_optim_prepare(struct gt_optim *o, const struct gt_conf *c, struct gt_space *s, bool deterministic, struct gt_err *err)
{
	GT_TRY(check_groups(o, c, s->layout.first, err));
	GT_TRY(prepare_norms(o, s, deterministic, err));
	GT_TRY(prepare_merges(o, s, err));
	GT_TRY(prepare_adds(o, s, err));
	GT_TRY(prepare_check(o, s, err));
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
	int kind[GT_MAX_IO], n = list_operands(c, s, kind);
	p->call.work = s->memory.base[GT_A_SCRATCH];
	for (int i = 0; i < n; i++) {
		switch (kind[i]) {
		case NONE:
			p->call.in[i] = NULL;
			break;
		case P:
			p->call.in[i] = part_of(s, GT_A_PARAM, p->bucket, 0);
			break;
		case G:
			p->call.in[i] = part_of(s, GT_A_GRAD, p->bucket, 0);
			break;
		case SCALARS:
			p->call.in[i] = gt_space_scalars(s, 0);
			break;
		case WORK:
			p->call.in[i] = part_of(s, GT_A_WORK, p->bucket, 0);
			break;
		default:
			p->call.in[i] = part_of(s, GT_A_STATE, p->bucket, kind[i]);
		}
	}
}

void gt_optim_bind(struct gt_optim *o, struct gt_space *s)
{
	struct gt_scalars *scalars = gt_space_scalars(s, 0);
	size_t level = s->memory.bytes[GT_A_GRAD] / (size_t)(s->memory.levels ? s->memory.levels : 1);
	for (int b = 0; b < o->nsumsq; b++) {
		o->sumsq[b].work = s->memory.base[GT_A_SCRATCH];
		o->sumsq[b].in[0] = part_of(s, GT_A_GRAD, gt_space_sharded(s, GT_A_STATE) ? o->summed[b] : -1, 0);
		o->sumsq[b].out[0] = &scalars->sumsq;
	}
	for (int i = 0; i < o->nmerge; i++) {
		o->merge[i].out[0] = o->merge[i].in[0] = (char *)s->memory.base[GT_A_GRAD] + (size_t)i * level;
		o->merge[i].in[1] = (char *)s->memory.base[GT_A_GRAD] + (size_t)(i + 1) * level;
	}
	for (int b = 0; b < o->nadd; b++) {
		struct gt_range whole = gt_space_bucket(s, GT_A_GRAD, b, 0);
		whole.offset += gt_space_element(s, GT_A_GRAD, s->shards.spec.rank * gt_space_shard(s, b)).offset;
		o->add[b].out[0] = o->add[b].in[0] = part_of(s, GT_A_GRAD, b, 0);
		o->add[b].in[1] = gt_space_at(s, whole);
	}
	o->check.work = s->memory.base[GT_A_SCRATCH];
	o->check.in[0] = scalars;
	o->check.in[1] = gt_space_scaler(s);
	o->check.in[3] = gt_space_at(s, gt_space_all_scalars(s));
	o->check.in[4] = s->memory.base[GT_A_GRAD];
	for (int i = 0; i < o->nparts; i++) {
		struct gt_optim_part *p = &o->part[i];
		if (p->of >= 0) {
			bind_update(&o->call[p->of], p, s);
			continue;
		}
		p->call.work = s->memory.base[GT_A_SCRATCH];
		p->call.in[0] = part_of(s, GT_A_STATE, p->bucket, o->nstates);
		p->call.in[1] = part_of(s, GT_A_PARAM, p->bucket, 0);
		p->call.in[2] = scalars;
	}
}

static void release_call(struct gt_space *s, struct gt_call *c)
{
	if (c->kernel)
		s->be->release(s->dev, c->kernel);
	c->kernel = NULL;
}

void gt_optim_close(struct gt_optim *o, struct gt_space *s)
{
	release_call(s, &o->check);
	for (int i = 0; i < o->nsumsq; i++)
		release_call(s, &o->sumsq[i]);
	for (int i = 0; i < o->nmerge; i++)
		release_call(s, &o->merge[i]);
	for (int i = 0; i < o->nadd; i++)
		release_call(s, &o->add[i]);
	for (int i = 0; i < o->nparts; i++)
		release_call(s, &o->part[i].call);
}
