/* gt_sweep_plan_make: chooses the values of the trials, and checks their configs. */
#include "sweep/sweep_plan.h"
#include "base/philox.h"
#include "conf/conf.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_METRIC "valid/loss"
#define SEED_MASK (((int64_t)1 << 53) - 1) /* the largest integer such that JSON represents it and all smaller ones exactly */
#define ATTEMPTS 1000 /* maximum number of random draws for one trial; its values must differ from the values of all earlier trials */

/* ---- values -------------------------------------------------------------------------------------------------------------- */
static enum gt_code count_grid(const struct gt_sweep_axes *x, int *n, struct gt_err *err)
{
	int64_t product = 1;
	for (int i = 0; i < x->n; i++)
		if ((product *= x->axis[i].nvalues) > GT_SWEEP_TRIALS)
			return gt_fail(err, GT_EUSAGE, "the lists have more than %d combinations, which is the maximum number of trials; write shorter "
			               "lists, or a range and --trials", GT_SWEEP_TRIALS);
	*n = (int)product;
	return GT_OK;
}

/* Sets the values of trial `index` of a grid, in which the last axis changes fastest. */
static void set_grid_values(const struct gt_sweep_axes *x, int index, const char **value)
{
	for (int i = x->n - 1; i >= 0; i--) {
		value[i] = x->axis[i].value[index % x->axis[i].nvalues];
		index /= x->axis[i].nvalues;
	}
}

static enum gt_code draw_values(const struct gt_sweep_axes *x, int64_t seed, int index, int attempt, struct gt_arena *a, const char **value,
                                struct gt_err *err)
{
	for (int i = 0; i < x->n; i++) {
		uint64_t key = gt_rng_key((uint64_t)seed, GT_RNG_SWEEP, (uint32_t)i);
		struct gt_philox r = gt_rng_draw(key, (uint32_t)index, (uint32_t)attempt, 0, 0);
		double u = (double)((uint64_t)(r.v[0] >> 5) << 26 | r.v[1] >> 6) * 0x1p-53;
		GT_NEW_STR(value[i], gt_sweep_axis_value(&x->axis[i], u, a), err);
	}
	return GT_OK;
}

static bool has_values(const struct gt_planned_trial *t, const char *const *value, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(t->value[i], value[i]))
			return false;
	return true;
}

/* Draws random values for trial `index` until they differ from the values of all earlier trials. */
static enum gt_code draw_trial(const struct gt_sweep_axes *x, struct gt_sweep_plan *p, int index, struct gt_arena *a, struct gt_err *err)
{
	const char **value = p->trial[index].value;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		int k = 0;
		GT_TRY(draw_values(x, p->seed, index, attempt, a, value, err));
		while (k < index && !has_values(&p->trial[k], value, x->n))
			k++;
		if (k == index)
			return GT_OK;
	}
	return gt_fail(err, GT_EUSAGE, "--trials %d: the settings have too few different values; at most %d trials are possible", p->ntrials,
	               index);
}

static enum gt_code plan_trials(const struct gt_sweep_spec *spec, const struct gt_sweep_axes *x, struct gt_arena *a,
                                struct gt_sweep_plan *p, struct gt_err *err)
{
	p->ntrials = spec->trials ? (int)spec->trials : GT_SWEEP_RANDOM;
	if (!x->ranges)
		GT_TRY(count_grid(x, &p->ntrials, err));
	if (!x->ranges && spec->trials)
		return gt_fail(err, GT_EUSAGE, "--trials %" PRId64 ": all settings are lists, so each of the %d combinations is a trial; remove "
		               "--trials, or write a range LOW..HIGH, from which values are drawn", spec->trials, p->ntrials);
	GT_NEW(p->trial, a, p->ntrials, err);
	for (int i = 0; i < p->ntrials; i++) {
		GT_NEW(p->trial[i].value, a, x->n, err);
		if (x->ranges)
			GT_TRY(draw_trial(x, p, i, a, err));
		else
			set_grid_values(x, i, p->trial[i].value);
	}
	return GT_OK;
}

/* ---- rungs of successive halving ------------------------------------------------------------------------------------------------- */
/* Sets the epochs of each rung: the last rung trains for the config's epochs, and each earlier rung for a third of the epochs of the next
 * rung. There are only as many rungs as at least one trial can reach. */
static void plan_rungs(int64_t epochs, struct gt_sweep_plan *p)
{
	int64_t least = epochs;
	p->nrungs = 1;
	for (int n = p->ntrials; n >= GT_SWEEP_ETA && least >= GT_SWEEP_ETA && p->nrungs < GT_RUNGS_MAX; n /= GT_SWEEP_ETA) {
		least /= GT_SWEEP_ETA;
		p->nrungs++;
	}
	for (int k = p->nrungs; k--; epochs /= GT_SWEEP_ETA)
		p->rung[k] = epochs;
}

static bool ends_with_run(const struct gt_conf_schedule *s)
{
	return gt_schedule_has(s->type, "t_max") && !(s->t_max > 0);
}

/* Appends a setting to `sets` that gives the schedule with the key `path` the length of the last rung, unless the config sets its length.
 * Otherwise the schedule would have the length of each rung, and a promoted trial, which resumes with more epochs, would continue with
 * another schedule. */
static enum gt_code fix_length(const struct gt_conf *c, const char *path, const struct gt_conf_schedule *s, struct gt_arena *a,
                               const char **sets, int *n, struct gt_err *err)
{
	double length = (double)c->train.epochs - s->warmup;
	/* a schedule with a length of its own, or a run that ends in its warm-up, needs no setting */
	if (!ends_with_run(s) || (s->unit == GT_UNIT_EPOCH && length <= 0))
		return GT_OK;
	if (s->unit != GT_UNIT_EPOCH)
		return gt_conf_refuse(c, path, err, "expected unit = \"epoch\", or t_max > 0, with --halving: the schedule \"%s\" lasts until the "
		                      "end of the run, whose number of steps is unknown before the data is read", gt_schedule_rows[s->type].word);
	GT_NEW_STR(sets[(*n)++], gt_arena_printf(a, "%s.t_max=%.17g", path, length), err);
	return GT_OK;
}

/* Sets sets[*n] to settings that give the schedules of a trial the length of the last rung. Rejects configs with which a promoted trial
 * would differ from a run that had the epochs of the last rung from its beginning. */
static enum gt_code fix_lengths(const struct gt_conf *c, struct gt_arena *a, const char ***sets, int *n, struct gt_err *err)
{
	char path[64];
	if (c->train.steps > 0)
		return gt_conf_refuse(c, "train.steps", err, "expected 0 with --halving, which trains promoted trials for more train.epochs");
	if (*c->train.early_stop.metric)
		return gt_conf_refuse(c, "train.early_stop.metric", err, "expected no early stop with --halving, because --halving stops trials "
		                      "itself");
	GT_NEW(*sets, a, c->train.ngroups + 1, err);
	GT_TRY(fix_length(c, "train.schedule", &c->train.schedule, a, *sets, n, err));
	for (int i = 0; i < c->train.ngroups; i++) {
		snprintf(path, sizeof path, "train.groups[%d].schedule", i);
		if (c->train.group[i].own_schedule)
			GT_TRY(fix_length(c, path, &c->train.group[i].schedule, a, *sets, n, err));
	}
	return GT_OK;
}

/* ---- configs -------------------------------------------------------------------------------------------------------------------- */
/* more: [nmore] further settings. */
static enum gt_code load_trial(const struct gt_sweep_spec *spec, const struct gt_sweep_axes *x, const char *const *value,
                               const char *const *more, int nmore, struct gt_arena *a, struct gt_conf **out, struct gt_err *err)
{
	const char **sets;
	int n = x->nfixed + x->n;
	GT_NEW(sets, a, n + nmore, err);
	if (x->nfixed)
		memcpy(sets, x->fixed, (size_t)x->nfixed * sizeof *sets);
	for (int i = 0; i < x->n; i++)
		GT_NEW_STR(sets[x->nfixed + i], gt_arena_printf(a, "%s=%s", x->axis[i].key, value[i]), err);
	if (nmore)
		memcpy(sets + n, more, (size_t)nmore * sizeof *sets);
	return gt_conf_load(spec->config, sets, n + nmore, out, err);
}

/* Fails if the config has no validation split but needs one: trials are compared by valid/loss unless checkpoint.best.metric is set. */
static enum gt_code check_default_metric(const struct gt_sweep_spec *spec, const struct gt_sweep_axes *x, const char *const *value,
                                         struct gt_arena *a, struct gt_err *err)
{
	static const char *const metric = "checkpoint.best.metric=" DEFAULT_METRIC;
	struct gt_conf *c;
	enum gt_code code = load_trial(spec, x, value, &metric, 1, a, &c, err);
	if (code == GT_OK)
		gt_conf_free(c);
	return code ? gt_fail_prefix(err, "a sweep compares trials by checkpoint.best.metric or, if it is not set, by " DEFAULT_METRIC) : GT_OK;
}

/* Successive halving: replaces the config *c of a trial by one whose schedules have the length of the last rung. */
static enum gt_code reload_for_halving(const struct gt_sweep_spec *spec, const struct gt_sweep_axes *x, const char *const *value,
                                       struct gt_arena *a, struct gt_conf **c, struct gt_err *err)
{
	const char **sets;
	struct gt_conf *whole = *c;
	int n = 0;
	enum gt_code code = fix_lengths(*c, a, &sets, &n, err);
	if (code == GT_OK && n)
		code = load_trial(spec, x, value, sets, n, a, &whole, err);
	if (code == GT_OK && n) {
		gt_conf_free(*c);
		*c = whole;
	}
	return code;
}

/* Loads and checks the config of each trial, and stores the text and the digest of the resolved config. */
static enum gt_code check_configs(const struct gt_sweep_spec *spec, const struct gt_sweep_axes *x, struct gt_arena *a,
                                  struct gt_sweep_plan *p, const char **texts, struct gt_err *err)
{
	for (int i = 0; i < p->ntrials; i++) {
		struct gt_conf *c;
		GT_TRY(load_trial(spec, x, p->trial[i].value, NULL, 0, a, &c, err));
		enum gt_code code = spec->halving ? reload_for_halving(spec, x, p->trial[i].value, a, &c, err) : GT_OK;
		if (code == GT_OK && !(texts[i] = gt_arena_strdup(a, c->text)))
			code = gt_fail_memory(err, 0);
		p->one_gpu |= strchr(c->device, ':') != NULL;
		gt_conf_free(c);
		GT_TRY(code);
		gt_digest_bytes(texts[i], strlen(texts[i]), p->trial[i].digest);
	}
	return GT_OK;
}

/* Rejects axes of keys that the sweep itself sets, or that decide how trials are compared. */
static enum gt_code check_keys(const struct gt_sweep_axes *x, bool halving, struct gt_err *err)
{
	static const char *const own[] = {"checkpoint.dir", "checkpoint.best.metric", "checkpoint.best.mode", "name"};
	for (int i = 0; i < x->n; i++) {
		for (size_t k = 0; k < sizeof own / sizeof *own; k++)
			if (!strcmp(x->axis[i].key, own[k]))
				return gt_fail(err, GT_EUSAGE, "--set %s=%.200s: expected one value, because all trials of a sweep share this key", own[k],
				               x->axis[i].text);
		if (halving && !strcmp(x->axis[i].key, "train.epochs"))
			return gt_fail(err, GT_EUSAGE, "--set train.epochs=%.200s: expected one value with --halving, which chooses the epochs of each "
			               "trial", x->axis[i].text);
	}
	return GT_OK;
}

static enum gt_code copy_axes(const struct gt_sweep_axes *x, struct gt_arena *a, struct gt_sweep_plan *p, struct gt_err *err)
{
	GT_NEW(p->key, a, x->n, err);
	GT_NEW(p->text, a, x->n, err);
	for (int i = 0; i < x->n; i++) {
		p->key[i] = x->axis[i].key;
		p->text[i] = x->axis[i].text;
	}
	p->naxes = x->n;
	p->fixed = x->fixed;
	p->nfixed = x->nfixed;
	return GT_OK;
}

/* Warns if an axis `seed` makes the trials evaluate different samples. c: the config of any trial. */
static void warn_of_splits(const struct gt_sweep_spec *spec, const struct gt_sweep_axes *x, const struct gt_conf *c)
{
	bool seeds = false;
	for (int i = 0; i < x->n; i++)
		seeds |= !strcmp(x->axis[i].key, "seed");
	if (seeds && c->data.valid > 0 && c->data.valid_seed < 0 && spec->warn)
		spec->warn(spec->user, "seed also decides which samples data.valid keeps for the evaluation, so the trials are measured on "
		           "different samples and cannot be compared; add -s data.valid_seed=1 for the same samples in all trials");
}

/* Loads the config of one trial, and copies to the plan what all trials have in common. */
static enum gt_code copy_common(const struct gt_sweep_spec *spec, const struct gt_sweep_axes *x, struct gt_arena *a,
                                struct gt_sweep_plan *p, int64_t *epochs, struct gt_err *err)
{
	const char **value;
	struct gt_conf *c;
	GT_NEW(value, a, x->n, err);
	GT_TRY(draw_values(x, 0, 0, 0, a, value, err));
	GT_TRY(load_trial(spec, x, value, NULL, 0, a, &c, err));
	p->best = *c->checkpoint.best_metric;
	p->falls = p->best ? c->checkpoint.best_mode == 1 : true;
	p->seed = (spec->seed < 0 ? c->seed : spec->seed) & SEED_MASK;
	p->name = gt_arena_strdup(a, c->name);
	p->metric = p->best ? gt_arena_strdup(a, c->checkpoint.best_metric) : DEFAULT_METRIC;
	*epochs = c->train.epochs;
	warn_of_splits(spec, x, c);
	gt_conf_free(c);
	if (!p->name || !p->metric)
		return gt_fail_memory(err, 0);
	return p->best ? GT_OK : check_default_metric(spec, x, value, a, err);
}

enum gt_code gt_sweep_plan_make(const struct gt_sweep_spec *spec, struct gt_arena *a, struct gt_sweep_plan *out, const char ***texts,
                                struct gt_err *err)
{
	struct gt_sweep_axes x;
	int64_t epochs = 0;
	*out = (struct gt_sweep_plan){.config = spec->config};
	GT_TRY(gt_sweep_axes_parse(spec->sets, spec->nsets, a, &x, err));
	GT_TRY(check_keys(&x, spec->halving, err));
	out->kind = spec->halving ? "halving" : x.ranges ? "random" : "grid";
	GT_TRY(copy_axes(&x, a, out, err));
	GT_TRY(copy_common(spec, &x, a, out, &epochs, err));
	GT_TRY(plan_trials(spec, &x, a, out, err));
	out->nrungs = 1;
	if (spec->halving)
		plan_rungs(epochs, out);
	if (spec->halving && out->nrungs < 2)
		return gt_fail(err, GT_EUSAGE, "--halving: expected at least %d trials and train.epochs >= %d, got %d trials of %" PRId64 " epochs",
		               GT_SWEEP_ETA, GT_SWEEP_ETA, out->ntrials, epochs);
	GT_NEW(*texts, a, out->ntrials, err);
	return check_configs(spec, &x, a, out, *texts, err);
}

enum gt_code gt_sweep_plan_config(const struct gt_sweep_spec *spec, const struct gt_sweep_plan *p, int i, struct gt_arena *a,
                                  struct gt_conf **out, struct gt_err *err)
{
	struct gt_sweep_axes x;
	GT_TRY(gt_sweep_axes_parse(spec->sets, spec->nsets, a, &x, err));
	return load_trial(spec, &x, p->trial[i].value, NULL, 0, a, out, err);
}
