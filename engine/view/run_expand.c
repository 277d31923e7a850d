/* gt_runs_expand and gt_run_refuse_sweep of gtrain_view.h: the directory of a sweep (gtrain_sweep.h) in place of a run. */
#include "base/arena.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include "gtrain_view.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES ((size_t)16 << 20)
#define FILE_NODES 200000

static bool is_file(const char *dir, const char *name)
{
	char path[GT_PATH_SIZE];
	struct stat st;
	return !gt_path_join(path, dir, name, NULL) && !stat(path, &st) && S_ISREG(st.st_mode);
}

static bool is_sweep(const char *dir)
{
	return is_file(dir, "sweep.json") && !is_file(dir, "metrics.jsonl");
}

/* Returns the number of a trial from the name of its directory; 0: this is not the name of a trial. */
static long trial_number(const char *name)
{
	char *end;
	long n = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;
	return n > 0 && !*end ? n : 0;
}

static int compare_numbers(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

struct expansion {
	struct gt_arena *arena;
	const char **v;
	int n, cap;
};

static enum gt_code add_path(struct expansion *x, const char *path, struct gt_err *err)
{
	GT_TRY(gt_arena_grow(x->arena, &x->v, x->n, &x->cap, sizeof *x->v, err));
	GT_NEW_STR(x->v[x->n], gt_arena_strdup(x->arena, path), err);
	x->n++;
	return GT_OK;
}

/* Adds the trials of a sweep that have been started, in the order of their numbers. */
static enum gt_code add_trials(struct expansion *x, const char *dir, struct gt_err *err)
{
	DIR *d = opendir(dir);
	long *number = NULL;
	int n = 0, cap = 0, before = x->n;
	enum gt_code code = GT_OK;
	for (struct dirent *e; d && !code && (e = readdir(d));)
		if (trial_number(e->d_name) && !(code = gt_arena_grow(x->arena, &number, n, &cap, sizeof *number, err)))
			number[n++] = trial_number(e->d_name);
	if (d)
		closedir(d);
	GT_TRY(code);
	if (n)
		qsort(number, (size_t)n, sizeof *number, compare_numbers);
	for (int i = 0; i < n; i++) {
		const char *trial;
		GT_NEW_STR(trial, gt_arena_printf(x->arena, "%s%s%ld", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", number[i]), err);
		if (is_file(trial, "metrics.jsonl"))
			GT_TRY(add_path(x, trial, err));
	}
	return x->n > before ? GT_OK : gt_fail(err, GT_ENOINPUT, "%s: no trial of this sweep has been started", dir);
}

enum gt_code gt_runs_expand(const char *const *path, int n, struct gt_arena *a, const char *const **out, int *nout, struct gt_err *err)
{
	struct expansion x = {.arena = a};
	for (int i = 0; i < n; i++)
		GT_TRY(is_sweep(path[i]) ? add_trials(&x, path[i], err) : add_path(&x, path[i], err));
	*out = x.v;
	*nout = x.n;
	return GT_OK;
}

/* ---- the best trial --------------------------------------------------------------------------------------------------------------- */
static const struct gt_json_value *read_file(const char *dir, const char *name, struct gt_arena *a)
{
	char path[GT_PATH_SIZE], *text;
	const struct gt_json_value *o;
	struct gt_err why;
	size_t n;
	if (gt_path_join(path, dir, name, &why) || gt_file_read(path, FILE_BYTES, &text, &n, &why))
		return NULL;
	enum gt_code code = gt_json_parse(text, n, path, 5, FILE_NODES, a, &o, &why);
	free(text);
	return code ? NULL : o;
}

/* Returns the number of the trial with the best last score; 0: no trial has a score. */
static int find_best_trial(const char *dir, struct gt_arena *a)
{
	const struct gt_json_value *plan = read_file(dir, "sweep.json", a), *results = read_file(dir, "results.json", a);
	bool falls = gt_json_true(plan, "falls");
	int number = 0, best = 0;
	double most = NAN;
	for (const struct gt_json_value *t = gt_json_first(results, "trials"); t; t = t->next) {
		number++;
		for (const struct gt_json_value *s = gt_json_first(t, "scores"); s; s = s->next)
			if (!s->next && gt_json_is(s, GT_JSON_NUMBER) && (!best || (falls ? s->number < most : s->number > most))) {
				best = number;
				most = s->number;
			}
	}
	return best;
}

enum gt_code gt_run_refuse_sweep(const char *path, struct gt_arena *a, struct gt_err *err)
{
	int best = is_sweep(path) ? find_best_trial(path, a) : 0;
	if (!is_sweep(path))
		return GT_OK;
	if (best)
		return gt_fail(err, GT_ENOINPUT, "%s: expected the directory of a run, got that of a sweep; its best trial is the run %s%s%d", path,
		               path, path[strlen(path) - 1] == '/' ? "" : "/", best);
	return gt_fail(err, GT_ENOINPUT, "%s: expected the directory of a run, got that of a sweep; name one of its trials", path);
}
