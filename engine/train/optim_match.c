/* Compares the optimizers of a checkpoint with the optimizers of the session that resumes it. An optimizer cannot use the state of another
 * optimizer, even if the names are equal: lion's "exp_avg" differs from adam's, and muon's "momentum_buffer" from sgd's. */
#include "session/optim.h"
#include "train/state.h"
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The optimizer of one parameter in one config. */
struct used {
	const struct gt_optim_call *call; /* NULL: the parameter is frozen for the whole run and has no optimizer */
	const char *type;                 /* type of the optimizer as in the config: "adamw" */
	int group;                        /* entry of train.groups that sets this optimizer; -1: train.optimizer */
};

static struct used find_optimizer(const struct gt_conf *c, const struct gt_optim *o, const struct gt_param *p)
{
	int group = -1;
	for (int i = 0; i < c->train.ngroups && group < 0; i++)
		for (int k = 0; k < c->train.group[i].match.n && group < 0; k++)
			if (!fnmatch(c->train.group[i].match.v[k], p->name, 0))
				group = i;
	const struct gt_conf_group *g = group < 0 ? NULL : &c->train.group[group];
	const struct gt_conf_optimizer *of = g ? &g->optimizer : &c->train.optimizer;
	return (struct used){.call = g && g->frozen ? NULL : &o->call[o->of[1 + group]],
	                     .type = gt_optimizer_rows[of->type].word,
	                     .group = g && g->own_optimizer ? group : -1};
}

static bool has_same_state(const struct gt_optim_call *a, const struct gt_optim_call *b)
{
	bool same = a->nstates == b->nstates && (a->row == b->row || !a->nstates);
	for (int i = 0; same && i < a->nstates; i++)
		same = !strcmp(a->state[i], b->state[i]);
	return same;
}

/* Writes the type of an optimizer and the names of its states: "adam" (exp_avg, exp_avg_sq); "sgd" (no state). */
static const char *describe_optimizer(const struct used *u, char *buf, size_t size)
{
	if (!u->call) {
		snprintf(buf, size, "frozen (no state)");
		return buf;
	}
	size_t n = (size_t)snprintf(buf, size, "\"%s\" (%s", u->type, u->call->nstates ? "" : "no state");
	for (int i = 0; i < u->call->nstates && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", i ? ", " : "", u->call->state[i]);
	if (n < size)
		snprintf(buf + n, size - n, ")");
	return buf;
}

static enum gt_code reject_optimizer(const struct gt_conf *c, const struct gt_ckpt *from, const struct gt_param *p, const struct used *was,
                                     const struct used *now, struct gt_err *err)
{
	char key[64] = "train.optimizer", before[160], after[160];
	if (!was->call)
		snprintf(key, sizeof key, "train.groups");
	else if (now->group >= 0)
		snprintf(key, sizeof key, "train.groups[%d].optimizer", now->group);
	if (was->call && strcmp(was->type, now->type))
		strcat(key, ".type");
	return gt_conf_refuse(c, key, err,
	                      "the optimizer of %.100s was %s in %.300s and is now %s, which cannot continue from the old state; keep the "
	                      "optimizer, or start a new run from the weights: `gtrain run CFG --init %.300s/model.safetensors`",
	                      p->name, describe_optimizer(was, before, sizeof before), gt_ckpt_path(from),
	                      describe_optimizer(now, after, sizeof after), gt_ckpt_path(from));
}

enum gt_code gt_state_check_optimizers(const struct gt_session *s, const struct gt_ckpt *from, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	const char *text = gt_ckpt_meta(from)->config;
	struct gt_optim *o = malloc(sizeof *o);
	struct gt_conf *c = NULL;
	if (!o)
		return gt_fail_memory(err, sizeof *o);
	enum gt_code code = gt_conf_load_resolved(gt_ckpt_path(from), text, strlen(text), NULL, 0, &c, err);
	if (code == GT_OK)
		gt_optim_init(o, &c->train);
	for (int i = 0; i < g->nparams && code == GT_OK; i++) {
		const struct gt_param *p = &g->params[i];
		if (p->cls == GT_PARAM_BUFFER || p->frozen) /* a parameter that is frozen now needs no state */
			continue;
		struct used was = find_optimizer(c, o, p), now = find_optimizer(s->conf, &s->optim, p);
		if (!was.call || !has_same_state(was.call, now.call))
			code = was.call || now.call->nstates ? reject_optimizer(s->conf, from, p, &was, &now, err) : GT_OK;
	}
	gt_conf_free(c);
	free(o);
	return code;
}
