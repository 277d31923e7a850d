/* Reads values and groups of the tree into structs, by the rows of the schema. */
#include "conf/schema.h"
#include "conf/synonyms.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH 256

/* Returns the member of n that the first component of *path names, and advances *path. stop: characters that end a component. */
static const struct gt_cnode *enter_member(const struct gt_cnode *n, const char **path, const char *stop)
{
	char part[PATH];
	size_t len = strcspn(*path, stop);
	snprintf(part, sizeof part, "%.*s", (int)len, *path);
	*path += len + ((*path)[len] == '.');
	return gt_cnode_find(n, part);
}

const struct gt_cnode *gt_conf_given(const struct gt_cnode *n, const char *path)
{
	while (n && *path)
		n = enter_member(n, &path, ".");
	return n;
}

struct gt_source_loc gt_conf_location(const struct gt_cnode *n, const char *path)
{
	const struct gt_cnode *kid;
	while (*path && (kid = enter_member(n, &path, ".["))) {
		n = kid;
		if (*path != '[')
			continue;
		char *end;
		long i = strtol(path + 1, &end, 10);
		if (i < 0 || i >= n->nkids)
			break;
		n = n->kid[i];
		path = end + (*end == ']');
		path += *path == '.';
	}
	return n->loc;
}

bool gt_conf_refused(const struct gt_cnode *n, const char *path)
{
	while (*path) {
		const struct gt_cnode *kid = enter_member(n, &path, ".");
		for (int i = 0; !kid && n->type == GT_C_GROUP && i < n->nkids; i++)
			if (n->kid[i]->unknown)
				return true;
		if (!kid || kid->bad)
			return kid != NULL;
		n = kid;
	}
	return false;
}

enum gt_code gt_conf_collect(struct gt_reading *rd, enum gt_code code, const struct gt_err *err)
{
	if (code != GT_ECONFIG)
		return code;
	GT_TRY(gt_problems_add(rd->errors, err));
	return rd->errors->n < GT_CONF_MAX_ERRORS ? GT_OK : GT_ECONFIG;
}

/* ---- one value ------------------------------------------------------------------------------------------------------------ */
static bool in_range(const struct gt_row *r, double v)
{
	if (r->min == 0 && r->max == 0)
		return true;
	return (r->flags & GT_R_ABOVE ? v > r->min : v >= r->min) && (r->flags & GT_R_BELOW ? v < r->max : v <= r->max);
}

static bool get_number(const struct gt_row *r, const struct gt_cnode *n, double *out)
{
	if (n->type != GT_C_INT && n->type != GT_C_FLOAT)
		return false;
	*out = n->type == GT_C_INT ? (double)n->i : n->f;
	return in_range(r, *out);
}

static bool get_integer(const struct gt_row *r, const struct gt_cnode *n, int64_t *out)
{
	if (n->type != GT_C_INT)
		return false;
	*out = n->i;
	return in_range(r, (double)n->i);
}

/* Returns value i of n, or n itself if it is a scalar. */
static const struct gt_cnode *get_element(const struct gt_cnode *n, int i)
{
	return n->type == GT_C_ARRAY || n->type == GT_C_LIST ? n->kid[i] : n;
}

static int count_elements(const struct gt_cnode *n)
{
	return n->type == GT_C_ARRAY || n->type == GT_C_LIST ? n->nkids : 1;
}

/* Writes the value of n to `to`. Returns false if n has a type other than the row. */
static bool read_value(const struct gt_row *r, const struct gt_cnode *n, void *to)
{
	int len = count_elements(n), i = 0;
	const char *s = gt_cnode_word(n);
	struct gt_floats *f = to;
	struct gt_ints *w = to;
	struct gt_strings *t = to;
	int64_t *v = to;
	switch (r->type) {
	case GT_T_INT:
		return get_integer(r, n, to);
	case GT_T_FLOAT:
		return get_number(r, n, to);
	case GT_T_BOOL:
		*(bool *)to = n->b;
		return n->type == GT_C_BOOL;
	case GT_T_STRING:
	case GT_T_CHOICE:
		*(const char **)to = s;
		return s && (r->type == GT_T_STRING || gt_values_index(r->values, s) >= 0);
	case GT_T_ENUM:
		*(int *)to = s ? gt_values_index(r->values, s) : -1;
		return *(int *)to >= 0;
	case GT_T_AUTO:
		*v = 0;
		return (s && !strcmp(s, "auto")) || (get_integer(r, n, v) && *v > 0);
	case GT_T_WEIGHTS:
		if (s && !strcmp(s, "auto")) {
			f->n = GT_FLOATS_AUTO;
			return true;
		}
		/* fall through */
	case GT_T_FLOATS:
		for (f->n = len; len <= GT_MAX_LIST && i < len && get_number(r, get_element(n, i), &f->v[i]); i++)
			;
		return i == len;
	case GT_T_INTS:
		for (w->n = len; len <= GT_MAX_LIST && i < len && get_integer(r, get_element(n, i), &w->v[i]); i++)
			;
		return i == len;
	case GT_T_STRINGS:
		for (t->n = len; len <= GT_MAX_LIST && i < len && (t->v[i] = gt_cnode_word(get_element(n, i))); i++)
			;
		return i == len;
	case GT_T_PAIR:
		return len == 2 && get_number(r, get_element(n, 0), to) && get_number(r, get_element(n, 1), (double *)to + 1);
	case GT_T_INT2:
		return (len == 1 || len == 2) && get_integer(r, get_element(n, 0), &v[0]) && get_integer(r, get_element(n, len - 1), &v[1]);
	case GT_T_SIZE:
		v[1] = 0;
		return (len == 1 || len == 2) && get_integer(r, get_element(n, 0), &v[0]) && (len == 1 || get_integer(r, get_element(n, 1), &v[1]));
	case GT_T_DIMS:
		v[0] = v[1] = v[2] = 1;
		for (; (len == 1 || len == 3) && i < len && get_integer(r, get_element(n, i), &v[i]); i++)
			;
		return i == len;
	case GT_T_OTHER:
		return true;
	}
	return false;
}

/* Makes the node of a scalar of a default, such as 1, 0.5, true or "word" (without escapes), and moves *p after it. */
static enum gt_code parse_scalar(struct gt_arena *a, const char **p, struct gt_cnode *n, struct gt_err *err)
{
	const char *from = *p;
	char *end;
	*n = (struct gt_cnode){.type = *from == '"' ? GT_C_STRING : *from == 't' || *from == 'f' ? GT_C_BOOL : GT_C_FLOAT, .b = *from == 't'};
	if (n->type == GT_C_STRING) {
		size_t len = strcspn(from + 1, "\"");
		GT_NEW_STR(n->s, gt_arena_printf(a, "%.*s", (int)len, from + 1), err);
		*p = from + len + 2;
	} else if (n->type == GT_C_FLOAT) {
		n->f = strtod(from, &end);
		n->i = fabs(n->f) < 1e15 ? (int64_t)n->f : 0;
		n->type = (double)n->i == n->f ? GT_C_INT : GT_C_FLOAT;
		*p = end;
	}
	return GT_OK;
}

enum gt_code gt_row_default(struct gt_arena *a, const struct gt_row *r, void *base, struct gt_err *err)
{
	struct gt_cnode value, elements[GT_MAX_LIST], *kid[GT_MAX_LIST], list = {.type = GT_C_ARRAY, .kid = kid};
	const char *p = r->def;
	if (!p || p[0] == '(' || r->type == GT_T_OTHER)
		return GT_OK;
	if (*p != '[') {
		GT_TRY(parse_scalar(a, &p, &value, err));
		read_value(r, &value, (char *)base + r->offset);
		return GT_OK;
	}
	for (p++; *p != ']'; p += strspn(p, ", ")) {
		kid[list.nkids] = &elements[list.nkids];
		GT_TRY(parse_scalar(a, &p, kid[list.nkids++], err));
	}
	read_value(r, &list, (char *)base + r->offset);
	return GT_OK;
}

enum gt_code gt_row_read(const struct gt_row *r, const struct gt_cnode *n, const char *path, void *base, struct gt_err *err)
{
	char want[512], got[64], word[48], words[16][48];
	if (read_value(r, n, (char *)base + r->offset))
		return GT_OK;
	gt_row_expects(r, n, want, sizeof want);
	bool floats = r->type == GT_T_FLOATS || r->type == GT_T_WEIGHTS;
	if (count_elements(n) > GT_MAX_LIST && (floats || r->type == GT_T_STRINGS))
		return gt_conf_fail(err, n->loc, path, "expected at most %d values, got %d", GT_MAX_LIST, count_elements(n));
	if (n->type == GT_C_ARRAY || n->type == GT_C_LIST) { /* find the element that has the wrong type or value, for the error */
		for (int i = 0; i < n->nkids; i++) {
			const struct gt_cnode *e = n->kid[i];
			double v;
			bool fine = r->type == GT_T_STRINGS             ? gt_cnode_word(e) != NULL
			            : floats || r->type == GT_T_PAIR ? get_number(r, e, &v)
			                                             : e->type == GT_C_INT && get_number(r, e, &v);
			if (!fine && r->type >= GT_T_FLOATS && r->type != GT_T_OTHER)
				return gt_conf_fail(err, e->loc, path, "expected %s, got %s as element %d", want, gt_cnode_text(e, got, sizeof got), i);
		}
	}
	const char *s = gt_cnode_word(n);
	const struct gt_synonym *syn = s ? gt_synonym_find(path, s) : NULL;
	const char *meant = syn ? syn->meant : NULL;
	if (s && r->values && !syn) {
		struct gt_guess g = gt_guess_open(s);
		for (int i = 0; i < 16 && gt_values_word(r->values, i, words[i], sizeof words[i]); i++)
			gt_guess_try(&g, words[i]);
		meant = g.best && g.best[0] ? g.best : NULL;
	}
	if (meant)
		return gt_conf_fail(err, n->loc, path, "expected %s, got \"%s\"; did you mean \"%s\"?", want,
		                    gt_utf8_truncate(s, word, sizeof word), meant);
	if (syn)
		return gt_conf_fail(err, n->loc, path, "expected %s, got \"%s\"; %s", want, gt_utf8_truncate(s, word, sizeof word), syn->reason);
	return gt_conf_fail(err, n->loc, path, "expected %s, got %s", want, gt_cnode_text(n, got, sizeof got));
}

/* ---- a group -------------------------------------------------------------------------------------------------------------- */
static bool is_generic_key(const char *word)
{
	return !strcmp(word, "type") || !strcmp(word, "name") || !strcmp(word, "mode");
}

static bool has_key(const struct gt_row *rows, const char *const *words, const char *key)
{
	for (; words && *words; words++)
		if (!strcmp(*words, key))
			return true;
	return gt_row_find(rows, key) != NULL;
}

/* Finds a group of a section that has the name of the unknown key n, such as train.optimizer for "optimizer", and writes its path to out.
 * If n is a group with a single key, which the found group has, too, writes the path of this key. Returns false if no group is found. */
static bool suggest_section(const struct gt_cnode *n, const struct gt_row *rows, char *out, size_t size)
{
	size_t len = strlen(n->name);
	for (const struct gt_row *r = rows; r->path; r++) {
		const char *group = strchr(r->path, '.');
		if (!group || strncmp(group + 1, n->name, len) || (group[1 + len] != '.' && (group[1 + len] || is_generic_key(n->name))))
			continue;
		int taken = snprintf(out, size, "%.*s", (int)(group + 1 + len - r->path), r->path);
		if (n->type == GT_C_GROUP && n->nkids == 1 && taken > 0 && (size_t)taken < size) {
			snprintf(out + taken, size - (size_t)taken, ".%s", n->kid[0]->name);
			if (!gt_row_find(rows, out))
				out[taken] = 0;
		}
		return true;
	}
	return false;
}

enum gt_code gt_conf_unknown(const struct gt_cnode *n, const char *shown, const char *path, const struct gt_row *rows,
                             const char *const *words, struct gt_err *err)
{
	char at[2 * PATH], level[80][40], all[512], cut[64], lower[PATH];
	size_t prefix = (size_t)(gt_row_name(path) - path), len = 0;
	int nlevel = 0;
	const char *name = gt_utf8_truncate(n->name, cut, sizeof cut);
	struct gt_guess g = gt_guess_open(name);
	bool layer = rows == gt_rows_layer;
	const struct gt_synonym *syn = gt_synonym_find(layer ? GT_SYN_LAYER_KEY : GT_SYN_KEY, name);
	snprintf(at, sizeof at, "%s%.*s%s", shown, (int)prefix, path, name);
	if (syn && !syn->meant)
		return gt_conf_fail(err, n->loc, at, "unknown key; %s", syn->reason);
	if (syn && layer ? has_key(rows, words, syn->meant) : syn && rows == gt_rows)
		return gt_conf_fail(err, n->loc, at, "unknown key; did you mean %s%s?", layer ? shown : "", syn->meant);
	if (rows == gt_rows && !prefix && suggest_section(n, rows, lower, sizeof lower)) /* e.g. train.optimizer for "optimizer" */
		return gt_conf_fail(err, n->loc, at, "unknown key; did you mean %s?", lower);
	for (const struct gt_row *r = rows; r && r->path; r++) /* suggests a key with this name in a subgroup of the group */
		if (!strncmp(r->path, path, prefix) && strchr(r->path + prefix, '.') && !strcmp(gt_row_name(r->path), name) &&
		    !is_generic_key(name))
			return gt_conf_fail(err, n->loc, at, "unknown key; did you mean %s%s?", shown, r->path);
	for (const struct gt_row *r = rows; r && r->path && nlevel < 64; r++) {
		if (strncmp(r->path, path, prefix))
			continue;
		snprintf(level[nlevel], sizeof *level, "%.*s", (int)strcspn(r->path + prefix, "."), r->path + prefix);
		if (!nlevel || strcmp(level[nlevel], level[nlevel - 1]))
			nlevel++;
	}
	for (int i = 0; words && words[i] && nlevel < 80; i++)
		snprintf(level[nlevel++], sizeof *level, "%s", words[i]);
	for (int i = 0; i < nlevel; i++)
		gt_guess_try(&g, level[i]);
	if (g.best)
		return gt_conf_fail(err, n->loc, at, "unknown key; did you mean %s%.*s%s?", shown, (int)prefix, path, g.best);
	for (const struct gt_row *r = rows; r && r->path; r++) /* suggests a key with this name in any section */
		if (!strcmp(gt_row_name(r->path), name) && !is_generic_key(name))
			return gt_conf_fail(err, n->loc, at, "unknown key; did you mean %s%s?", shown, r->path);
	all[0] = 0;
	for (int i = 0; i < nlevel && len + 48 < sizeof all; i++)
		len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", i ? ", " : "", level[i]);
	return gt_conf_fail(err, n->loc, at, "unknown key; the keys here are: %s", all);
}

/* Reads the value of a row. After an error the field keeps its default, and the node is marked as bad. */
static enum gt_code read_key(struct gt_reading *rd, const struct gt_row *r, struct gt_cnode *n, const char *at, void *base,
                             struct gt_err *err)
{
	enum gt_code code = gt_row_read(r, n, at, base, err);
	if (code != GT_ECONFIG)
		return code;
	n->bad = true;
	GT_TRY(gt_conf_collect(rd, code, err));
	return gt_row_default(rd->arena, r, base, err);
}

/* Rejects a removed key or value, unless it is in the config of a checkpoint and ignored there. */
static enum gt_code read_removed(struct gt_reading *rd, const struct gt_removed_key *k, struct gt_cnode *n, const char *at,
                                 struct gt_err *err)
{
	if (rd->resolved && gt_removed_key_ignored(k, n))
		return GT_OK;
	n->bad = true;
	return gt_conf_collect(rd, gt_conf_fail(err, n->loc, at, "%s", k->sentence), err);
}

static enum gt_code unknown_key(struct gt_reading *rd, struct gt_cnode *n, const char *shown, const char *path, const struct gt_row *rows,
                                struct gt_err *err)
{
	n->unknown = true;
	return gt_conf_collect(rd, gt_conf_unknown(n, shown, path, rows, NULL, err), err);
}

static enum gt_code read_keys(struct gt_reading *rd, const struct gt_row *rows, const struct gt_cnode *group, const char *prefix,
                              const char *shown, void *base, struct gt_err *err)
{
	for (int i = 0; i < group->nkids; i++) {
		struct gt_cnode *n = group->kid[i];
		char path[PATH], at[2 * PATH];
		bool section = false;
		size_t len = (size_t)snprintf(path, sizeof path, "%s%s", prefix, n->name);
		if (len + 2 > sizeof path) { /* too long, because a dot and the NUL must fit, too */
			GT_TRY(unknown_key(rd, n, shown, prefix, rows, err));
			continue;
		}
		snprintf(at, sizeof at, "%s%s", shown, path);
		const struct gt_removed_key *removed = gt_removed_key_find(gt_removed_keys, at, n);
		if (removed) {
			GT_TRY(read_removed(rd, removed, n, at, err));
			continue;
		}
		const struct gt_row *r = gt_row_find(rows, path);
		if (r) {
			GT_TRY(read_key(rd, r, n, at, base, err));
			continue;
		}
		for (r = rows; r->path && !section; r++)
			section = !strncmp(r->path, path, len) && r->path[len] == '.';
		if (!section) {
			GT_TRY(unknown_key(rd, n, shown, path, rows, err));
			continue;
		}
		if (n->type != GT_C_GROUP) {
			n->bad = true;
			GT_COLLECT(rd, err, gt_conf_expect(err, n, at, "a group { }"));
			continue;
		}
		path[len] = '.';
		path[len + 1] = 0;
		GT_TRY(read_keys(rd, rows, n, path, shown, base, err));
	}
	return GT_OK;
}

/* Writes the words of "adam|adamw" as "adam and adamw do". */
static const char *list_users(const char *is, char *buf, size_t size)
{
	size_t n = 0;
	char word[48], next[48];
	buf[0] = 0;
	for (int i = 0; gt_values_word(is, i, word, sizeof word) && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", !i ? "" : gt_values_word(is, i + 1, next, sizeof next) ? ", " : " and ", word);
	if (n < size)
		snprintf(buf + n, size - n, strchr(is, '|') ? " do" : " does");
	return buf;
}

/* Returns whether key r does not apply because of --set: --set changed the key named by r->when, on which r depends, or a key on which
 * r->when depends. */
static bool ruled_out_by_set(const struct gt_row *rows, const struct gt_row *r, const struct gt_cnode *group, const void *base)
{
	for (; r->when && !gt_row_applies(rows, r, base); r = gt_row_when(rows, r)) {
		const struct gt_cnode *by = gt_conf_given(group, r->when);
		if (by && by->set)
			return true;
	}
	return false;
}

/* Returns true if it is unknown whether key r applies, because a key on which it depends has an error or is missing. */
static bool is_undecided(const struct gt_row *rows, const struct gt_row *r, const struct gt_cnode *group)
{
	for (; r->when; r = gt_row_when(rows, r)) {
		const struct gt_row *sel = gt_row_when(rows, r);
		if (gt_conf_refused(group, r->when) || (sel->flags & GT_R_REQUIRED && !gt_conf_given(group, r->when)))
			return true;
	}
	return false;
}

/* Checks that key r is absent if it does not apply, and present if it is required. */
static enum gt_code check_row(const struct gt_reading *rd, const struct gt_row *rows, const struct gt_row *r,
                              const struct gt_cnode *group, const char *shown, void *base, struct gt_err *err)
{
	if (is_undecided(rows, r, group) || gt_conf_refused(group, r->path))
		return GT_OK;
	const struct gt_cnode *n = gt_conf_given(group, r->path);
	char at[2 * PATH], text[512], value[48] = "", is[GT_ROW_IS];
	bool applies = gt_row_applies(rows, r, base);
	snprintf(at, sizeof at, "%s%s", shown, r->path);
	if (n && !applies) {
		const struct gt_row *top = r; /* becomes the outermost key that does not apply: r may depend on a key that does not apply either */
		while (!gt_row_applies(rows, gt_row_when(rows, top), base))
			top = gt_row_when(rows, top);
		/* In a checkpoint's config (rd->resolved), such a key is ignored: an earlier version, in which it applied, wrote its default. */
		if (n->set || (!rd->resolved && !ruled_out_by_set(rows, r, group, base)))
			return gt_conf_fail(err, n->loc, at, "%s = \"%s\" does not use this key; %s%s%s",
			                    top->when, gt_row_deciding(rows, top, base, value),
			                    list_users(gt_row_is(top, is, sizeof is), text, sizeof text), top->beside ? "; " : "",
			                    top->beside ? top->beside : "");
		/* The file alone was correct: --set selected another type, so the keys of the old type are ignored. */
		return gt_row_default(rd->arena, r, base, err);
	}
	if (!n && applies && r->flags & GT_R_REQUIRED)
		return gt_conf_fail(err, gt_conf_location(group, r->path), at, "expected %s%s, got nothing", r->type == GT_T_OTHER ? "a " : "",
		                    r->type == GT_T_OTHER ? gt_row_typename(r) : gt_row_expects(r, NULL, text, sizeof text));
	return GT_OK;
}

enum gt_code gt_object_read(struct gt_reading *rd, const struct gt_row *rows, const struct gt_cnode *group, const char *shown, void *base,
                            struct gt_err *err)
{
	for (const struct gt_row *r = rows; r->path; r++)
		GT_TRY(gt_row_default(rd->arena, r, base, err));
	GT_TRY(read_keys(rd, rows, group, "", shown, base, err));
	for (const struct gt_row *r = rows; r->path; r++)
		GT_COLLECT(rd, err, check_row(rd, rows, r, group, shown, base, err));
	return GT_OK;
}

enum gt_code gt_list_read(struct gt_reading *rd, const char *path, int max, size_t size, gt_entry_fn *fn, void **out, int *n,
                          struct gt_err *err)
{
	const struct gt_cnode *list = gt_conf_given(rd->root, path);
	char shown[64], got[64], most[32] = "";
	if (!list || (list->type == GT_C_ARRAY && !list->nkids))
		return GT_OK;
	if (max)
		snprintf(most, sizeof most, "at most %d ", max);
	if (list->type != GT_C_LIST || (max && list->nkids > max))
		return gt_conf_fail(err, list->loc, path, "expected a list ( ) of %sgroups, got %s", most, gt_cnode_text(list, got, sizeof got));
	if (!*out && !(*out = gt_arena_alloc(rd->arena, (size_t)list->nkids + 1, size)))
		return gt_fail_memory(err, (size_t)list->nkids * size);
	for (int i = 0; i < list->nkids; i++) {
		const struct gt_cnode *e = list->kid[i];
		bool group = e->type == GT_C_GROUP;
		snprintf(shown, sizeof shown, "%s[%d]%s", path, i, group ? "." : "");
		GT_COLLECT(rd, err, group ? fn(rd, e, shown, (char *)*out + (size_t)i * size, err)
		                          : gt_conf_expect(err, e, shown, "a group { }"));
	}
	*n = list->nkids;
	return GT_OK;
}
