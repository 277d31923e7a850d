/* Reads and writes sweep.json, the plan of a sweep, and compares it with the plan of a later call. */
#include "base/fileio.h"
#include "base/json_file.h"
#include "base/json_read.h"
#include "sweep/sweep_plan.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAN_BYTES ((size_t)64 << 20)
#define PLAN_NODES 1000000
#define FORMAT 1

/* ---- left-over files -------------------------------------------------------------------------------------------------------------- */
/* Returns whether gt_file_replace may have created a temporary file with this name. */
static bool is_temporary(const char *name)
{
	const char *at = strstr(name, ".tmp-");
	return at && strlen(at) == 5 + GT_NONCE_SIZE - 1 && strspn(at + 5, "0123456789abcdef") == GT_NONCE_SIZE - 1;
}

static void clean_dir(const char *dir)
{
	DIR *d = opendir(dir);
	for (struct dirent *e; d && (e = readdir(d));)
		if (is_temporary(e->d_name))
			unlinkat(dirfd(d), e->d_name, 0); /* a directory with such a name is not removed */
	if (d)
		closedir(d);
}

enum gt_code gt_sweep_clean(const char *dir, struct gt_err *err)
{
	char configs[GT_PATH_SIZE];
	GT_TRY(gt_path_join(configs, dir, "configs", err));
	clean_dir(dir);
	clean_dir(configs);
	return GT_OK;
}

/* ---- write ------------------------------------------------------------------------------------------------------------------------ */
static void put_strings(struct gt_json *j, const char *key, const char *const *v, int n)
{
	gt_json_array(j, key);
	for (int i = 0; i < n; i++)
		gt_json_string(j, NULL, v[i]);
	gt_json_end(j);
}

static void put_plan(struct gt_json *j, const struct gt_sweep_plan *p)
{
	gt_json_object(j, NULL);
	gt_json_add(j, GT_INT("format", FORMAT), GT_STR("kind", p->kind), GT_STR("config", p->config), GT_STR("name", p->name),
	            GT_INT("seed", p->seed), GT_STR("metric", p->metric), GT_BOOL("best", p->best), GT_BOOL("falls", p->falls),
	            GT_BOOL("one_gpu", p->one_gpu));
	put_strings(j, "keys", p->key, p->naxes);
	put_strings(j, "values", p->text, p->naxes);
	put_strings(j, "settings", p->fixed, p->nfixed);
	gt_json_array(j, "rungs");
	for (int i = 0; i < p->nrungs; i++)
		gt_json_int(j, NULL, p->rung[i]);
	gt_json_end(j);
	gt_json_array(j, "trials");
	for (int i = 0; i < p->ntrials; i++) {
		gt_json_object(j, NULL);
		put_strings(j, "values", p->trial[i].value, p->naxes);
		gt_json_string(j, "config", p->trial[i].digest);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
}

static enum gt_code check_name_free(const char *dir, int number, struct gt_err *err)
{
	char name[16], path[GT_PATH_SIZE];
	struct stat st;
	snprintf(name, sizeof name, "%d", number);
	GT_TRY(gt_path_join(path, dir, name, err));
	return lstat(path, &st) ? GT_OK
	                        : gt_fail(err, GT_ECANTCREAT, "%s: a trial needs this name, but the name exists and the directory has no "
	                                  "sweep.json; choose another directory with -o DIR", path);
}

static enum gt_code write_config(const char *dir, int number, const char *text, struct gt_err *err)
{
	char name[32], path[GT_PATH_SIZE];
	snprintf(name, sizeof name, "configs/%d.cfg", number);
	GT_TRY(gt_path_join(path, dir, name, err));
	return gt_file_replace(path, 0666, text, strlen(text), err);
}

enum gt_code gt_sweep_plan_write(const char *dir, const struct gt_sweep_plan *p, const char *const *texts, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	struct gt_json j = {0};
	for (int i = 0; i < p->ntrials; i++)
		GT_TRY(check_name_free(dir, i + 1, err));
	GT_TRY(gt_path_join(path, dir, "configs", err));
	GT_TRY(gt_dir_make(path, NULL, err));
	for (int i = 0; i < p->ntrials; i++)
		GT_TRY(write_config(dir, i + 1, texts[i], err));
	put_plan(&j, p);
	return gt_json_save(&j, dir, "sweep.json", err);
}

/* ---- read ------------------------------------------------------------------------------------------------------------------------- */
/* Reads an array of strings from the member `key`. want: the required number of strings; -1: any number. */
static bool read_strings(const struct gt_json_value *o, const char *key, int want, struct gt_arena *a, const char ***v, int *n)
{
	int cap = 0;
	*v = NULL;
	*n = 0;
	if (!gt_json_is(gt_json_member(o, key), GT_JSON_ARRAY))
		return false;
	for (const struct gt_json_value *e = gt_json_first(o, key); e; e = e->next) {
		if (!e->text || gt_arena_grow(a, v, *n, &cap, sizeof **v, NULL))
			return false;
		(*v)[(*n)++] = e->text;
	}
	return want < 0 || *n == want;
}

static bool read_rungs(const struct gt_json_value *o, struct gt_sweep_plan *p)
{
	for (const struct gt_json_value *e = gt_json_first(o, "rungs"); e; e = e->next)
		if (p->nrungs == GT_RUNGS_MAX || !gt_json_whole(e, &p->rung[p->nrungs++]))
			return false;
	return p->nrungs > 0;
}

static bool read_trials(const struct gt_json_value *o, struct gt_arena *a, struct gt_sweep_plan *p)
{
	int n;
	if (!(p->trial = gt_arena_alloc(a, GT_SWEEP_TRIALS, sizeof *p->trial)))
		return false;
	for (const struct gt_json_value *e = gt_json_first(o, "trials"); e; e = e->next) {
		struct gt_planned_trial *t = &p->trial[p->ntrials];
		if (p->ntrials++ == GT_SWEEP_TRIALS || !read_strings(e, "values", p->naxes, a, &t->value, &n))
			return false;
		snprintf(t->digest, sizeof t->digest, "%s", gt_json_str(e, "config"));
	}
	return p->ntrials > 0;
}

static bool take_plan(const struct gt_json_value *o, struct gt_arena *a, struct gt_sweep_plan *p)
{
	int n;
	*p = (struct gt_sweep_plan){.kind = gt_json_str(o, "kind"), .config = gt_json_str(o, "config"), .name = gt_json_str(o, "name"),
	                            .metric = gt_json_str(o, "metric"), .best = gt_json_true(o, "best"), .falls = gt_json_true(o, "falls"),
	                            .one_gpu = gt_json_true(o, "one_gpu")};
	return gt_json_count(o, "format") == FORMAT && gt_json_whole(gt_json_member(o, "seed"), &p->seed) &&
	       read_strings(o, "keys", -1, a, &p->key, &p->naxes) && read_strings(o, "values", p->naxes, a, &p->text, &n) &&
	       read_strings(o, "settings", -1, a, &p->fixed, &p->nfixed) && read_rungs(o, p) && read_trials(o, a, p);
}

enum gt_code gt_sweep_plan_read(const char *dir, struct gt_arena *a, struct gt_sweep_plan *out, struct gt_err *err)
{
	char path[GT_PATH_SIZE], *text, *kept;
	const struct gt_json_value *o;
	size_t n;
	GT_TRY(gt_path_join(path, dir, "sweep.json", err));
	GT_TRY(gt_file_read(path, PLAN_BYTES, &text, &n, err));
	kept = gt_arena_strdup(a, path);
	enum gt_code code = kept ? gt_json_parse(text, n, kept, 5, PLAN_NODES, a, &o, err) : gt_fail_memory(err, 0);
	free(text);
	GT_TRY(code);
	return take_plan(o, a, out) ? GT_OK : gt_fail(err, GT_EDATA, "%s: expected the plan of a sweep, which gtrain sweep writes", path);
}

/* ---- comparison ------------------------------------------------------------------------------------------------------------------- */
static enum gt_code fail_other(const char *dir, const char *what, const char *old, const char *now, struct gt_err *err)
{
	return gt_fail(err, GT_ECANTCREAT, "%.300s: this directory has a sweep with %.100s = %.150s, got %.150s; use another directory with -o "
	               "DIR, or continue that sweep with `gtrain sweep %.300s`", dir, what, old, now, dir);
}

static bool differs_text(const char *const *x, const char *const *y, int n, int *at)
{
	for (*at = 0; *at < n; ++*at)
		if (strcmp(x[*at], y[*at]))
			return true;
	return false;
}

static enum gt_code compare_counts(const char *dir, const char *what, int64_t old, int64_t now, struct gt_err *err)
{
	char number[2][32];
	snprintf(number[0], sizeof number[0], "%" PRId64, old);
	snprintf(number[1], sizeof number[1], "%" PRId64, now);
	return old == now ? GT_OK : fail_other(dir, what, number[0], number[1], err);
}

static enum gt_code compare_configs(const char *dir, const struct gt_sweep_plan *old, const struct gt_sweep_plan *now, struct gt_err *err)
{
	for (int i = 0; i < now->ntrials; i++)
		if (strcmp(old->trial[i].digest, now->trial[i].digest))
			return gt_fail(err, GT_ECANTCREAT, "%.250s: this directory has a sweep of another config: %.200s differs from "
			               "%.250s/configs/%d.cfg; use another directory with -o DIR, or continue that sweep with `gtrain sweep %.250s`",
			               dir, now->config, dir, i + 1, dir);
	return GT_OK;
}

enum gt_code gt_sweep_plan_same(const char *dir, const struct gt_sweep_plan *old, const struct gt_sweep_plan *now, struct gt_err *err)
{
	int i;
	if (strcmp(old->kind, now->kind))
		return fail_other(dir, "method", old->kind, now->kind, err);
	GT_TRY(compare_counts(dir, "number of keys with several values", old->naxes, now->naxes, err));
	if (differs_text(old->key, now->key, now->naxes, &i))
		return fail_other(dir, "key with several values", old->key[i], now->key[i], err);
	if (differs_text(old->text, now->text, now->naxes, &i))
		return fail_other(dir, old->key[i], old->text[i], now->text[i], err);
	GT_TRY(compare_counts(dir, "number of keys with one value", old->nfixed, now->nfixed, err));
	if (differs_text(old->fixed, now->fixed, now->nfixed, &i))
		return fail_other(dir, "setting", old->fixed[i], now->fixed[i], err);
	GT_TRY(compare_counts(dir, "seed", old->seed, now->seed, err));
	GT_TRY(compare_counts(dir, "number of trials", old->ntrials, now->ntrials, err));
	return compare_configs(dir, old, now, err);
}
