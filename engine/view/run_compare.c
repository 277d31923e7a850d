/* gt_runs_compare of gtrain_view.h. */
#include "base/arena.h"
#include "gtrain_view.h"
#include <stdbool.h>
#include <string.h>

static bool key_counts(const char *key)
{
	return strcmp(key, "seed") && strcmp(key, "name") && strcmp(key, "checkpoint.dir");
}

static bool same_value(const struct gt_run_record *a, const struct gt_run_record *b, const char *key)
{
	const char *x = gt_run_setting_find(a, key), *y = gt_run_setting_find(b, key);
	return x && y ? !strcmp(x, y) : x == y;
}

/* Returns whether run b has the same value for each compared setting of run a. */
static bool is_contained(const struct gt_run_record *a, const struct gt_run_record *b)
{
	for (int i = 0; i < a->nsettings; i++)
		if (key_counts(a->setting[i].path) && !same_value(a, b, a->setting[i].path))
			return false;
	return true;
}

static int find_group(const struct gt_run_record *runs, int i, const int *group)
{
	for (int k = 0; k < i; k++)
		if (is_contained(&runs[k], &runs[i]) && is_contained(&runs[i], &runs[k]))
			return group[k];
	return -1;
}

/* Returns whether a run before run `last` has the key. */
static bool is_known(const struct gt_run_record *runs, int last, const char *key)
{
	for (int k = 0; k < last; k++)
		if (gt_run_setting_find(&runs[k], key))
			return true;
	return false;
}

static bool value_differs(const struct gt_run_record *runs, int n, const char *key)
{
	for (int k = 1; k < n; k++)
		if (!same_value(&runs[0], &runs[k], key))
			return true;
	return false;
}

enum gt_code gt_runs_compare(const struct gt_run_record *runs, int n, struct gt_arena *a, struct gt_run_comparison *out,
                             struct gt_err *err)
{
	int cap = 0;
	*out = (struct gt_run_comparison){0};
	GT_NEW(out->group, a, n, err);
	for (int i = 0; i < n; i++) {
		int g = find_group(runs, i, out->group);
		out->group[i] = g < 0 ? out->ngroups++ : g;
		for (int k = 0; k < runs[i].nsettings; k++) {
			const char *key = runs[i].setting[k].path;
			if (!key_counts(key) || is_known(runs, i, key) || !value_differs(runs, n, key))
				continue;
			GT_TRY(gt_arena_grow(a, &out->key, out->nkeys, &cap, sizeof *out->key, err));
			out->key[out->nkeys++] = key;
		}
	}
	return GT_OK;
}
