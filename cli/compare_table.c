/* The table of `gtrain compare`. All rows are collected with their full texts; then as many columns as fit the width are printed side by
 * side, and the remaining columns in further tables. */
#include "compare_table.h"
#include "base/arena.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDEST 40     /* maximum width of a column of values */
#define NARROWEST 16  /* width to which a column of values is shortened if more runs then fit side by side */
#define GAP 2
#define FEW 4         /* maximum number of keys of a list with a row each; if more keys differ, one row describes the list */
#define TEXT 256

struct row {
	const char *key;   /* name of the key; NULL: the row is a horizontal rule */
	const char **cell; /* [ngroups] */
};

struct sheet {
	struct gt_cli *cli;
	const struct gt_compared *x;
	bool all;
	struct row *row;
	int n, cap;
	int folded; /* number of differing keys without a row of their own, because one row describes their list */
};

/* Adds a row. Returns its cells, each of TEXT bytes; NULL: there is no memory. */
static char (*add_row(struct sheet *s, const char *key, struct gt_err *err))[TEXT]
{
	int groups = s->x->c.ngroups;
	struct gt_arena *a = s->cli->arena;
	char(*text)[TEXT] = gt_arena_alloc(a, (size_t)groups, sizeof *text);
	const char **cell = gt_arena_alloc(a, (size_t)groups, sizeof *cell);
	char *copy = key ? gt_arena_strdup(a, key) : NULL;
	if (!text || !cell || (key && !copy) || gt_arena_grow(a, &s->row, s->n, &s->cap, sizeof *s->row, err)) {
		gt_fail_memory(err, sizeof *text * (size_t)groups);
		return NULL;
	}
	for (int g = 0; g < groups; g++) {
		text[g][0] = '\0';
		cell[g] = text[g];
	}
	s->row[s->n++] = (struct row){copy, cell};
	return text;
}

/* ---- the keys that differ ------------------------------------------------------------------------------------------------------- */
/* Returns the length of the list's name at the beginning of a key, "model.layers" in "model.layers[3].out"; 0: the key is not in a list. An
 * empty list is a key itself. */
static size_t list_length(const struct sheet *s, const char *key)
{
	size_t n = strcspn(key, "[");
	if (key[n])
		return n;
	for (int k = 0; k < s->x->c.nkeys; k++)
		if (!strncmp(s->x->c.key[k], key, n) && s->x->c.key[k][n] == '[')
			return n;
	return 0;
}

static bool in_list(const char *key, const char *list, size_t n)
{
	return n && !strncmp(key, list, n) && (!key[n] || key[n] == '[');
}

/* A list of the config, such as model.layers, in which the runs differ. */
struct list {
	const char *name; /* n bytes */
	size_t n;
	int keys, elements; /* number of keys and of elements of the list that differ */
};

/* Returns the index of the list element that contains a key; -1: the key is the whole list. */
static int element_index(const struct list *l, const char *key)
{
	int at = -1;
	return sscanf(key + l->n, "[%d]", &at) == 1 ? at : -1;
}

/* Counts the differing keys and elements of a list. Keys of an element are not always adjacent, because a run can have keys that other runs
 * lack. */
static enum gt_code count_keys(const struct sheet *s, struct list *l, struct gt_err *err)
{
	const struct gt_run_comparison *c = &s->x->c;
	int highest = -1;
	bool *differs;
	for (int k = 0; k < c->nkeys; k++)
		if (in_list(c->key[k], l->name, l->n) && element_index(l, c->key[k]) > highest)
			highest = element_index(l, c->key[k]);
	GT_NEW(differs, s->cli->arena, highest + 2, err); /* the last entry stands for the whole list */
	for (int k = 0; k < c->nkeys; k++) {
		if (!in_list(c->key[k], l->name, l->n))
			continue;
		int at = element_index(l, c->key[k]);
		l->keys++;
		l->elements += at >= 0 && !differs[at];
		differs[at < 0 ? highest + 1 : at] = true;
	}
	return GT_OK;
}

/* If v is the type of an element of the list, returns this type with its quotation marks; else NULL. */
static const char *element_type(const struct list *l, const struct gt_run_setting *v)
{
	const char *end = strncmp(v->path, l->name, l->n) || v->path[l->n] != '[' ? NULL : strchr(v->path + l->n, ']');
	return end && !strcmp(end, "].type") ? v->value : NULL;
}

/* Writes the elements of a list by type, in the order in which the types first occur: "14: 4 conv2d, 4 batchnorm2d, 4 relu, flatten,
 * linear". */
static enum gt_code describe_list(const struct sheet *s, const struct gt_run_record *r, const struct list *l, char *buf, struct gt_err *err)
{
	const char **type;
	int n = 0;
	GT_NEW(type, s->cli->arena, r->nsettings, err);
	for (int i = 0; i < r->nsettings; i++)
		if ((type[n] = element_type(l, &r->setting[i])))
			n++;
	int len = snprintf(buf, TEXT, n ? "%d:" : "-", n);
	for (int i = 0; i < n && len < TEXT; i++) {
		int same = 0, first = n;
		for (int k = n - 1; k >= 0; k--)
			if (!strcmp(type[k], type[i])) {
				first = k;
				same++;
			}
		if (first < i)
			continue;
		char count[16] = "";
		if (same > 1)
			snprintf(count, sizeof count, "%d ", same);
		len += snprintf(buf + len, TEXT - (size_t)len, "%s %s%.*s", i ? "," : "", count, (int)strcspn(type[i] + 1, "\""), type[i] + 1);
	}
	return GT_OK;
}

static enum gt_code add_list(struct sheet *s, const struct list *l, struct gt_err *err)
{
	char key[160];
	int runs;
	snprintf(key, sizeof key, "%.*s: %d differ%s", (int)l->n, l->name, l->elements, l->elements == 1 ? "s" : "");
	char(*text)[TEXT] = add_row(s, key, err);
	for (int g = 0; text && g < s->x->c.ngroups; g++)
		GT_TRY(describe_list(s, gt_compared_first(s->x, g, &runs), l, text[g], err));
	s->folded += l->keys;
	return text ? GT_OK : err->code;
}

static enum gt_code add_key(struct sheet *s, const char *key, struct gt_err *err)
{
	int runs;
	char(*text)[TEXT] = add_row(s, key, err);
	for (int g = 0; text && g < s->x->c.ngroups; g++) {
		const char *value = gt_run_setting_find(gt_compared_first(s->x, g, &runs), key);
		snprintf(text[g], TEXT, "%.*s", TEXT - 8, value ? value : "-");
	}
	return text ? GT_OK : err->code;
}

/* Returns whether a key before key k is in the same list, which then already has its row. */
static bool is_known(const struct sheet *s, const struct list *l, int k)
{
	while (k--)
		if (in_list(s->x->c.key[k], l->name, l->n))
			return true;
	return false;
}

static enum gt_code add_settings(struct sheet *s, struct gt_err *err)
{
	const struct gt_run_comparison *c = &s->x->c;
	struct list l = {0};
	for (int k = 0; k < c->nkeys; k++) {
		if (!in_list(c->key[k], l.name, l.n)) {
			l = (struct list){.name = c->key[k], .n = list_length(s, c->key[k])};
			GT_TRY(count_keys(s, &l, err));
		}
		if (s->all || l.keys <= FEW)
			GT_TRY(add_key(s, c->key[k], err));
		else if (!is_known(s, &l, k))
			GT_TRY(add_list(s, &l, err));
	}
	return c->nkeys && !add_row(s, NULL, err) ? err->code : GT_OK;
}

/* ---- progress and scores -------------------------------------------------------------------------------------------------------- */
static enum gt_code add_progress(struct sheet *s, struct gt_err *err)
{
	int runs;
	char(*steps)[TEXT] = add_row(s, "steps", err), (*state)[TEXT] = steps ? add_row(s, "state", err) : NULL;
	for (int g = 0; state && g < s->x->c.ngroups; g++) {
		const struct gt_run_record *r = gt_compared_first(s->x, g, &runs);
		snprintf(steps[g], TEXT, "%" PRId64 " of %" PRId64, r->step, r->steps);
		snprintf(state[g], TEXT, "%.60s", r->state);
	}
	return state ? GT_OK : err->code;
}

static void format_statistic(struct gt_statistic s, char *buf, size_t size)
{
	char mean[GT_UNITS], deviation[GT_UNITS];
	if (!s.n)
		snprintf(buf, size, "-");
	else if (s.n == 1)
		snprintf(buf, size, "%s", gt_units_loss(mean, s.mean));
	else
		snprintf(buf, size, "%s ± %s", gt_units_loss(mean, s.mean), gt_units_loss(deviation, s.deviation));
}

/* Adds a row for each score that a run has. */
static enum gt_code add_scores(struct sheet *s, gt_run_score *get, const char *head, struct gt_err *err)
{
	char name[80];
	for (int i = 0; i < 3 * GT_SCORE_COUNT; i++) {
		int split = i / GT_SCORE_COUNT, score = i % GT_SCORE_COUNT, some = 0;
		for (int g = 0; g < s->x->c.ngroups; g++)
			some += gt_compared_statistic(s->x, g, get, split, score).n;
		if (!some)
			continue;
		snprintf(name, sizeof name, "%s%s/%s", head, gt_run_splits[split], gt_score_rows[score].word);
		char(*text)[TEXT] = add_row(s, name, err);
		for (int g = 0; text && g < s->x->c.ngroups; g++)
			format_statistic(gt_compared_statistic(s->x, g, get, split, score), text[g], TEXT);
		if (!text)
			return err->code;
	}
	return GT_OK;
}

/* ---- names of the columns ------------------------------------------------------------------------------------------------------- */
/* Returns whether two runs of a group have the same seed. Their scores are then not independent, so their deviation is too small. */
static bool repeats_seed(const struct gt_compared *x, int group)
{
	for (int i = 0; i < x->n; i++)
		for (int j = 0; j < i && x->c.group[i] == group; j++) {
			const char *a = gt_run_setting_find(&x->run[i], "seed"), *b = gt_run_setting_find(&x->run[j], "seed");
			if (x->c.group[j] == group && a && b && !strcmp(a, b))
				return true;
		}
	return false;
}

/* Writes the name of a group in at most `width` columns: the end of the path of its first run, and the number of its runs. */
static const char *name_group(const struct sheet *s, int group, int width, char *buf, size_t size)
{
	int n;
	char more[40] = "", path[TEXT];
	const struct gt_run_record *r = gt_compared_first(s->x, group, &n);
	if (n > 1)
		snprintf(more, sizeof more, repeats_seed(s->x, group) ? " (%d runs)" : " (%d seeds)", n);
	int left = width - (int)strlen(more);
	snprintf(buf, size, "%s%s", gt_text_tail(s->cli, r->dir, left < 4 ? 4 : left, path, sizeof path), more);
	return buf;
}

/* ---- output --------------------------------------------------------------------------------------------------------------------- */
static int name_width(const struct sheet *s, int group)
{
	char name[TEXT + 48];
	return gt_text_width(name_group(s, group, WIDEST, name, sizeof name));
}

static int column_width(const struct sheet *s, int group)
{
	int widest = name_width(s, group);
	for (int i = 0; i < s->n; i++) {
		int w = s->row[i].key ? gt_text_width(s->row[i].cell[group]) : 0;
		widest = w > widest ? w : widest;
	}
	return widest < WIDEST ? widest : WIDEST;
}

static int key_width(const struct sheet *s, int columns)
{
	int widest = 0, most = columns * 2 / 5;
	for (int i = 0; i < s->n; i++) {
		int w = s->row[i].key ? gt_text_width(s->row[i].key) : 0;
		widest = w > widest ? w : widest;
	}
	return widest < most ? widest : most;
}

/* Returns the width of the columns of n groups, starting with group `from`, if each column is at most `limit` wide. */
static int total_width(const struct sheet *s, int from, int n, int limit)
{
	int sum = 0;
	for (int g = from; g < from + n; g++) {
		int w = column_width(s, g);
		sum += GAP + (w < limit ? w : limit);
	}
	return sum;
}

/* Prints a table with the columns of n groups, starting with group `from`. */
static enum gt_code print_columns(const struct sheet *s, int from, int n, int key, int limit, struct gt_err *err)
{
	struct gt_table t;
	const char *cell[GT_TABLE_COLUMNS];
	char text[GT_TABLE_COLUMNS][TEXT + 48], align[GT_TABLE_COLUMNS + 1] = "";
	memset(align, 'l', (size_t)n + 1);
	gt_table_init(&t, s->cli->arena, align);
	cell[0] = "";
	for (int c = 1; c <= n; c++)
		cell[c] = name_group(s, from + c - 1, limit, text[c], sizeof text[c]);
	gt_table_add_cells(&t, true, cell);
	for (int i = 0; i < s->n; i++) {
		const struct row *r = &s->row[i];
		if (!r->key) {
			gt_table_rule(&t);
			continue;
		}
		cell[0] = gt_text_tail(s->cli, r->key, key, text[0], sizeof text[0]);
		for (int c = 1; c <= n; c++)
			cell[c] = gt_text_fit(s->cli, r->cell[from + c - 1], limit, text[c], sizeof text[c]);
		gt_table_add_cells(&t, false, cell);
	}
	return gt_table_print(s->cli, &t, err);
}

static enum gt_code print_tables(const struct sheet *s, struct gt_err *err)
{
	int columns = gt_out_columns(), key = key_width(s, columns), room = columns - key, groups = s->x->c.ngroups;
	for (int from = 0, n; from < groups; from += n) {
		int limit = WIDEST;
		for (n = 1; n < groups - from && n + 1 < GT_TABLE_COLUMNS && total_width(s, from, n + 1, NARROWEST) <= room;)
			n++;
		while (limit > NARROWEST && total_width(s, from, n, limit) > room)
			limit--;
		gt_out(s->cli, "%s", from ? "\n" : "");
		GT_TRY(print_columns(s, from, n, key, limit, err));
	}
	return GT_OK;
}

enum gt_code gt_compare_print(struct gt_cli *cli, const struct gt_compared *x, bool all, struct gt_err *err)
{
	struct sheet s = {.cli = cli, .x = x, .all = all};
	GT_TRY(add_settings(&s, err));
	GT_TRY(add_progress(&s, err));
	GT_TRY(add_scores(&s, gt_score_best, "best ", err));
	GT_TRY(add_scores(&s, gt_score_last, "last ", err));
	GT_TRY(print_tables(&s, err));
	if (s.folded && !cli->args.quiet)
		gt_cli_note(cli, "%d keys of lists differ; --all shows each", s.folded);
	return GT_OK;
}
