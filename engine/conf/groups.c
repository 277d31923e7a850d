/* Reads train.groups: patterns of parameter names, each with an optimizer and a schedule. */
#include "conf/schema.h"
#include "optimizer.h"
#include <math.h>
#include <stdio.h>

enum gt_code gt_conf_type_defaults(struct gt_reading *rd, const struct gt_row *r, int type, const struct gt_cnode *given, void *base,
                                   struct gt_err *err)
{
	for (; r->path; r++) {
		struct gt_row own = *r;
		own.def = gt_row_default_of(r, type);
		if (own.def != r->def && !(given && gt_cnode_find(given, r->path)))
			GT_TRY(gt_row_default(rd->arena, &own, base, err));
	}
	return GT_OK;
}

bool gt_conf_has_momentum(const struct gt_conf_optimizer *o)
{
	if (o->type < 0) /* an unknown type of optimizer is already an error, and whether it has a momentum is not known */
		return true;
	const struct gt_type_key *keys = gt_optimizer_rows[o->type].key;
	return gt_type_key_find(keys, "betas") || (gt_type_key_find(keys, "momentum") && o->momentum > 0);
}

enum gt_code gt_conf_schedule_defaults(struct gt_reading *rd, const struct gt_cnode *given, const struct gt_conf_optimizer *o,
                                       struct gt_conf_schedule *s, struct gt_err *err)
{
	/* A checkpoint's config with pct_start (a onecycle schedule) but no cycle_momentum is from a version that did not cycle momentum. */
	bool before = rd->resolved && given && gt_cnode_find(given, "pct_start");
	if (!given || !gt_cnode_find(given, "cycle_momentum"))
		s->cycle_momentum = gt_schedule_has(s->type, "cycle_momentum") && !before && gt_conf_has_momentum(o);
	return gt_conf_type_defaults(rd, gt_rows_schedule, s->type, given, s, err);
}

static const struct gt_cnode *group_of(const struct gt_cnode *entry, const char *key, const char *shown, struct gt_err *err,
                                       enum gt_code *code)
{
	const struct gt_cnode *n = gt_cnode_find(entry, key);
	char path[128];
	if (n && n->type != GT_C_GROUP) {
		snprintf(path, sizeof path, "%s%s", shown, key);
		*code = gt_conf_expect(err, n, path, "a group { }");
	}
	return n;
}

static enum gt_code read_group(struct gt_reading *rd, const struct gt_cnode *entry, const char *shown, void *element, struct gt_err *err)
{
	struct gt_conf_group *g = element;
	static const char *const trains[] = {"frozen_until", "freeze_after", "lr_mul", "weight_decay", "optimizer", "schedule"};
	const struct gt_conf_train *t = &rd->conf->train;
	enum gt_code code = GT_OK;
	char path[128];
	g->weight_decay = NAN;
	GT_TRY(gt_object_read(rd, gt_rows_group, entry, shown, g, err));
	const struct gt_cnode *opt = group_of(entry, "optimizer", shown, err, &code), *sched = group_of(entry, "schedule", shown, err, &code);
	GT_TRY(code);
	g->file = entry->loc.file;
	g->line = entry->loc.line;
	g->optimizer = t->optimizer;
	g->schedule = t->schedule;
	g->own_optimizer = opt != NULL;
	g->own_schedule = sched != NULL;
	snprintf(path, sizeof path, "%smatch", shown);
	if (!g->match.n && gt_cnode_find(entry, "match") && !gt_conf_refused(entry, "match"))
		return gt_conf_fail(err, gt_conf_location(entry, "match"), path, "expected at least one pattern, got none");
	for (size_t i = 0; g->frozen && i < sizeof trains / sizeof *trains; i++) {
		snprintf(path, sizeof path, "%s%s", shown, trains[i]);
		if (gt_cnode_find(entry, trains[i]))
			return gt_conf_fail(err, gt_conf_location(entry, trains[i]), path,
			                    "parameters with frozen = true do not use this key; remove the key");
	}
	if (g->frozen_stats && g->freeze_after > 0) {
		snprintf(path, sizeof path, "%sfrozen_stats", shown);
		return gt_conf_fail(
		    err, gt_conf_location(entry, "frozen_stats"), path,
		    "frozen_stats = true and freeze_after = %g cannot be combined, because frozen_stats freezes statistics for the whole run; "
		    "remove a key", g->freeze_after);
	}
	if (g->freeze_after > 0 && g->freeze_after <= g->frozen_until) {
		snprintf(path, sizeof path, "%sfreeze_after", shown);
		return gt_conf_fail(err, gt_conf_location(entry, "freeze_after"), path,
		                    "expected more than frozen_until = %g epochs, got %g: these parameters would never be trained; write frozen = "
		                    "true", g->frozen_until, g->freeze_after);
	}
	if (opt) {
		snprintf(path, sizeof path, "%soptimizer.", shown);
		GT_TRY(gt_object_read(rd, gt_rows_optimizer, opt, path, &g->optimizer, err));
		GT_TRY(gt_conf_type_defaults(rd, gt_rows_optimizer, g->optimizer.type, opt, &g->optimizer, err));
	}
	if (sched) {
		snprintf(path, sizeof path, "%sschedule.", shown);
		GT_TRY(gt_object_read(rd, gt_rows_schedule, sched, path, &g->schedule, err));
		GT_TRY(gt_conf_schedule_defaults(rd, sched, &g->optimizer, &g->schedule, err));
		if (g->schedule.type == GT_SCHED_PLATEAU)
			return gt_conf_fail(err, gt_conf_location(sched, "type"), path,
			                    "expected a type whose learning rates are known before the run, got \"plateau\"; write \"plateau\" in "
			                    "train.schedule, which all groups without their own schedule use");
	}
	return gt_conf_check_optimizer(rd, shown, entry, "optimizer", "schedule", &g->optimizer, &g->schedule, err);
}

enum gt_code gt_conf_groups(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_conf_train *t = &rd->conf->train;
	struct gt_param_group *match;
	void *group = NULL;
	GT_TRY(gt_list_read(rd, "train.groups", GT_MAX_PGROUPS, sizeof *t->group, read_group, &group, &t->ngroups, err));
	t->group = group;
	GT_NEW(match, rd->arena, t->ngroups + 1, err);
	for (int i = 0; i < t->ngroups; i++) {
		const struct gt_conf_group *g = &t->group[i];
		match[i] = (struct gt_param_group){g->match.v, g->match.n, g->frozen, g->frozen_stats};
	}
	rd->conf->model.ngroups = t->ngroups;
	rd->conf->model.groups = match;
	return GT_OK;
}
