/* --set path=value: changes the tree before the schema reads it, so that the value is checked like a value in the file. */
#include "conf/conf_string.h"
#include "conf/schema.h"
#include "conf/source_reader.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_scalar(const struct gt_cnode *n)
{
	return n->type >= GT_C_INT;
}

static void mark_set(struct gt_cnode *n)
{
	n->set = true;
	for (int i = 0; i < n->nkids; i++)
		mark_set(n->kid[i]);
}

/* Parses a value in the syntax of libconfig, with the same checks as a file. */
static enum gt_code parse_value(struct gt_arena *a, const char *label, const char *value, struct gt_cnode **out, struct gt_err *err)
{
	struct gt_clean clean;
	struct gt_cnode *root;
	char *text;
	GT_NEW_STR(text, gt_arena_printf(a, "v = %s", value), err);
	enum gt_code code = gt_source_check_text(a, label, 0, text, strlen(text), &clean, err);
	if (code == GT_OK)
		code = gt_ctree_parse(a, &clean, &root, err);
	gt_clean_free(&clean);
	GT_TRY(code);
	if (root->nkids != 1)
		return gt_conf_fail(err, (struct gt_source_loc){label, 0}, NULL, "expected exactly one value after =");
	*out = root->kid[0];
	return GT_OK;
}

static enum gt_code make_value(struct gt_arena *a, const char *label, const char *value, struct gt_cnode **out, struct gt_err *err)
{
	struct gt_source_loc at = {label, 0};
	while (isspace((unsigned char)*value))
		value++;
	if (*value && strchr("[({\"", *value))
		return parse_value(a, label, value, out, err);
	/* The text is a number or a boolean if libconfig reads all of it as such; otherwise it is a string without quotes. */
	if (*value && value[strspn(value, "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")] == 0 &&
	    parse_value(a, label, value, out, NULL) == GT_OK && is_scalar(*out)) {
		GT_NEW_STR((*out)->raw, gt_arena_strdup(a, value), err);
		return GT_OK;
	}
	const char *fault = gt_string_fault(value, strlen(value));
	if (fault)
		return gt_conf_fail(err, at, NULL, "expected a value of UTF-8 text without control characters, got a value with %s", fault);
	GT_TRY(gt_cnode_new(a, GT_C_STRING, "v", at, out, err));
	GT_NEW_STR((*out)->s, gt_arena_strdup(a, value), err);
	return GT_OK;
}

/* The position of a path in the tree: a member of a group, or an element of a list. Its node need not exist. */
struct slot {
	struct gt_cnode *in;
	const char *name; /* name of the member; NULL: the position is element `index` */
	int index;
};

static struct gt_cnode **slot_node(const struct slot *s)
{
	for (int i = 0; s->name && i < s->in->nkids; i++)
		if (!strcmp(s->in->kid[i]->name, s->name))
			return &s->in->kid[i];
	return !s->name && s->index < s->in->nkids ? &s->in->kid[s->index] : NULL;
}

static enum gt_code put_node(struct gt_arena *a, const struct slot *s, struct gt_cnode *n, struct gt_err *err)
{
	struct gt_cnode **old = slot_node(s);
	n->name = s->name;
	if (!old)
		return gt_cnode_add(a, s->in, n, err);
	*old = n;
	return GT_OK;
}

/* Sets s->in to the node at position s, which must have the type `want` that the rest of the path needs. Creates the node if it is
 * missing. */
static enum gt_code enter_node(struct gt_arena *a, struct slot *s, enum gt_ctype want, struct gt_source_loc at, const char *path,
                               struct gt_err *err)
{
	struct gt_cnode **n = slot_node(s), *made;
	char got[64];
	if (!n) {
		GT_TRY(gt_cnode_new(a, want, NULL, at, &made, err));
		made->set = true;
		GT_TRY(put_node(a, s, made, err));
		s->in = made;
		return GT_OK;
	}
	bool list = (*n)->type == GT_C_LIST || (*n)->type == GT_C_ARRAY;
	if (list && want == GT_C_GROUP)
		return gt_conf_fail(err, at, path, "expected an index as in %s[0], got none for %s", path, gt_cnode_text(*n, got, sizeof got));
	if (want == GT_C_GROUP ? (*n)->type != GT_C_GROUP : !list)
		return gt_conf_fail(err, at, path, "expected %s, got %s", want == GT_C_GROUP ? "a group { }" : "a list ( ) or array [ ]",
		                    gt_cnode_text(*n, got, sizeof got));
	s->in = *n;
	return GT_OK;
}

enum gt_code gt_conf_set(struct gt_arena *a, struct gt_cnode *root, const char *arg, struct gt_err *err)
{
	struct gt_source_loc at = {NULL, 0};
	struct slot s = {.in = root};
	struct gt_cnode *value;
	const char *eq = strchr(arg, '='), *p = arg;
	char path[256], cut[200];
	size_t n;
	GT_NEW_STR(at.file, gt_arena_printf(a, "--set %s", gt_string_fault(arg, strlen(arg)) ? "…" : gt_utf8_truncate(arg, cut, sizeof cut)),
	           err);
	if (!eq || eq == arg || eq - arg >= (int)sizeof path)
		return gt_conf_fail(err, at, NULL, "expected KEY=VALUE");
	for (;;) {
		n = 0;
		while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '-')
			n++;
		if (!n || !isalpha((unsigned char)p[0]))
			return gt_conf_fail(err, at, NULL, "expected KEY=VALUE, with a key as in data.mean or model.layers[0].out");
		char *name;
		GT_NEW_STR(name, gt_arena_printf(a, "%.*s", (int)n, p), err);
		s.name = name;
		for (p += n; *p == '['; p++) {
			char *end;
			snprintf(path, sizeof path, "%.*s", (int)(p - arg), arg);
			GT_TRY(enter_node(a, &s, GT_C_LIST, at, path, err));
			long i = isdigit((unsigned char)p[1]) ? strtol(p + 1, &end, 10) : -1;
			if (i < 0 || *end != ']')
				return gt_conf_fail(err, at, path, "expected an index from 0 to %d in brackets", s.in->nkids);
			if (i > s.in->nkids) /* an index equal to the number of elements appends an element */
				return gt_conf_fail(err, at, path, "expected an index ≤ %d, got %ld", s.in->nkids, i);
			s.name = NULL;
			s.index = (int)i;
			p = end;
		}
		if (p == eq)
			break;
		snprintf(path, sizeof path, "%.*s", (int)(p - arg), arg);
		if (*p++ != '.')
			return gt_conf_fail(err, at, NULL, "expected KEY=VALUE, with a key as in data.mean or model.layers[0].out");
		GT_TRY(enter_node(a, &s, GT_C_GROUP, at, path, err));
	}
	GT_TRY(make_value(a, at.file, eq + 1, &value, err));
	mark_set(value);
	return put_node(a, &s, value, err);
}
