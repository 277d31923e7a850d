#include "session/optim.h"
#include "session/lr_schedule.h"
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
	memset(&o, 0, sizeof o); /* memset also sets the padding bytes to 0, because calls are compared byte by byte */
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

/* Inserts a value into a list of n ascending values, unless the value is already in the list. Returns the new number of values. */
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
	double border[2 * GT_MAX_LR + 1] = {0, INFINITY}; /* the run begins at 0, which is also the default of frozen_until and freeze_after */
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
	if (o->conf->steps > 0) /* per_epoch may be unknown (0); every phase then begins at step 0 */
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

bool gt_optim_fused_update(const struct gt_optim *o)
{
	return o->conf->clip_norm == 0;
}

/* Rejects patterns of train.groups that match a tied weight only by its name in a layer that does not own the weight, unless the weight is
 * in the group. */
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
			return gt_conf_refuse(c, path, err, "expected the name of a parameter, got \"%s\": %s is an alias of %s (tie); write \"%s\"",
			                      match->v[m], alias, tied->name, tied->name);
	}
	return GT_OK;
}

/* Returns whether p is a weight that a matrix update may change. Scale factors, such as the gamma of a normalisation, whose initial values
 * are all equal, are not such weights. */
static bool is_matrix(const struct gt_param *p)
{
	return p->cls == GT_PARAM_WEIGHT && p->init.kind != GT_INIT_CONST;
}

enum gt_code gt_optim_check(const struct gt_optim *o, const struct gt_conf *c, const struct gt_graph *g, struct gt_err *err)
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
			                      "expected patterns that match a parameter which no earlier group matches, such as \"%s\", got no match",
			                      g->nparams ? g->params[0].name : "fc.weight");
		if (t->group[i].frozen_stats && !stats)
			return gt_conf_refuse(c, path, err, "expected a match that includes the weight and bias of a batch normalisation, got none");
	}
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		if (p->cls == GT_PARAM_BUFFER || p->frozen || is_matrix(p) || !gt_optim_of(o, p)->row->matrix)
			continue;
		const struct gt_conf_optimizer *of = p->group < 0 ? &t->optimizer : &t->group[p->group].optimizer;
		snprintf(path, sizeof path, "train.groups[%d].optimizer.type", p->group);
		return gt_conf_refuse(c, p->group < 0 ? "train.optimizer.type" : path, err,
		                      "expected an optimizer that can update %s, got \"%s\", which only updates weights of linear and convolution "
		                      "layers; add a group to train.groups%s that gives this parameter another optimizer",
		                      p->name, gt_optimizer_rows[of->type].word,
		                      p->group < 0 ? "" : ", before this group,");
	}
	return GT_OK;
}
