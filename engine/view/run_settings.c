#include "view/run_settings.h"
#include "base/memstream.h"
#include "conf/conf_string.h"
#include "conf/source_reader.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct flattening {
	struct gt_arena *arena;
	struct gt_run_setting *v;
	int n, cap;
};

static void write_number(FILE *f, double v)
{
	char text[40];
	for (int digits = 6; digits <= 17; digits++) { /* the fewest digits that give the same double when they are read */
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	fputs(text, f);
}

static void write_scalar(FILE *f, const struct gt_cnode *n)
{
	if (n->type == GT_C_STRING)
		gt_string_write(f, n->s);
	else if (n->type == GT_C_FLOAT)
		write_number(f, n->f);
	else if (n->type == GT_C_INT)
		fprintf(f, "%" PRId64, n->i);
	else
		fputs(n->b ? "true" : "false", f);
}

/* Appends n, a scalar, an array or an empty list, as a setting with this path. */
static enum gt_code append_setting(struct flattening *to, const char *path, const struct gt_cnode *n, struct gt_err *err)
{
	struct gt_memstream m;
	char *text;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	if (n->type == GT_C_ARRAY || n->type == GT_C_LIST) {
		fputs("[", f);
		for (int i = 0; i < n->nkids; i++) {
			fputs(i ? ", " : "", f);
			write_scalar(f, n->kid[i]);
		}
		fputs("]", f);
	} else {
		write_scalar(f, n);
	}
	GT_TRY(gt_memstream_close(f, &m, &text, NULL, err));
	enum gt_code code = gt_arena_grow(to->arena, &to->v, to->n, &to->cap, sizeof *to->v, err);
	char *value = code ? NULL : gt_arena_strdup(to->arena, text);
	free(text);
	if (code)
		return code;
	if (!value)
		return gt_fail_memory(err, 0);
	to->v[to->n++] = (struct gt_run_setting){path, value};
	return GT_OK;
}

static enum gt_code append_node(struct flattening *to, const char *path, const struct gt_cnode *n, struct gt_err *err)
{
	bool nested = n->type == GT_C_GROUP || (n->type == GT_C_LIST && n->nkids);
	if (!nested)
		return append_setting(to, path, n, err);
	for (int i = 0; i < n->nkids; i++) {
		char *name;
		const struct gt_cnode *kid = n->kid[i];
		GT_NEW_STR(name,
		           n->type == GT_C_LIST ? gt_arena_printf(to->arena, "%s[%d]", path, i)
		                                : gt_arena_printf(to->arena, "%s%s%s", path, *path ? "." : "", kid->name),
		           err);
		GT_TRY(append_node(to, name, kid, err));
	}
	return GT_OK;
}

enum gt_code gt_run_settings_read(const char *label, const char *text, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err)
{
	struct gt_clean clean = {0};
	struct gt_cnode *root;
	struct flattening to = {.arena = a};
	enum gt_code code = gt_source_check_text(a, label, 1, text, strlen(text), &clean, err);
	if (code == GT_OK)
		code = gt_ctree_parse(a, &clean, &root, err);
	gt_clean_free(&clean);
	if (code == GT_OK)
		code = append_node(&to, "", root, err);
	r->setting = to.v;
	r->nsettings = to.n;
	return code;
}

const char *gt_run_setting_find(const struct gt_run_record *r, const char *path)
{
	for (int i = 0; i < r->nsettings; i++)
		if (!strcmp(r->setting[i].path, path))
			return r->setting[i].value;
	return NULL;
}
