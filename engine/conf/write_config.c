/* Writes the resolved config: every key that applies with its value, so that loading the text gives the same struct even in a later version
 * with other defaults. Blocks are written in expanded form. gt_conf_each_scalar calls a function with the values of the same keys. */
#include "conf/conf_string.h"
#include "base/memstream.h"
#include "conf/schema.h"
#include "ir/op.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_int(FILE *f, int64_t v)
{
	fprintf(f, "%" PRId64 "%s", v, v > INT32_MAX || v < INT32_MIN ? "L" : "");
}

/* Writes v with the fewest digits that read back as v, and always with a point, because some readers reject 1e-05 as a float. */
static void put_float(FILE *f, double v)
{
	char s[40];
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(s, sizeof s, "%.*g", digits, v);
		if (strtod(s, NULL) == v)
			break;
	}
	size_t mantissa = strcspn(s, "e");
	fprintf(f, "%.*s%s%s", (int)mantissa, s, memchr(s, '.', mantissa) ? "" : ".0", s + mantissa);
}

/* Writes n integers in brackets. bare: without brackets if there is only one. */
static void put_ints(FILE *f, const int64_t *v, int n, bool bare)
{
	fputs(bare ? "" : "[", f);
	for (int i = 0; i < n; i++) {
		fputs(i ? ", " : "", f);
		put_int(f, v[i]);
	}
	fputs(bare ? "" : "]", f);
}

static void put_floats(FILE *f, const double *v, int n)
{
	fputc('[', f);
	for (int i = 0; i < n; i++) {
		fputs(i ? ", " : "", f);
		put_float(f, v[i]);
	}
	fputc(']', f);
}

static void put_value(FILE *f, const struct gt_row *r, const void *base)
{
	const void *at = (const char *)base + r->offset;
	const int64_t *v = at;
	const struct gt_floats *fl = at;
	const struct gt_ints *in = at;
	const struct gt_strings *st = at;
	char word[48];
	switch (r->type) {
	case GT_T_INT:
		put_int(f, *v);
		break;
	case GT_T_FLOAT:
		put_float(f, *(const double *)at);
		break;
	case GT_T_BOOL:
		fputs(*(const bool *)at ? "true" : "false", f);
		break;
	case GT_T_STRING:
	case GT_T_CHOICE:
		gt_string_write(f, *(const char *const *)at);
		break;
	case GT_T_ENUM:
		gt_string_write(f, gt_values_word(r->values, *(const int *)at, word, sizeof word));
		break;
	case GT_T_AUTO:
		if (*v)
			put_int(f, *v);
		else
			fputs("\"auto\"", f);
		break;
	case GT_T_FLOATS:
	case GT_T_WEIGHTS:
		if (fl->n == GT_FLOATS_AUTO)
			fputs("\"auto\"", f);
		else
			put_floats(f, fl->v, fl->n);
		break;
	case GT_T_INTS:
		put_ints(f, in->v, in->n, false);
		break;
	case GT_T_STRINGS:
		fputc('[', f);
		for (int i = 0; i < st->n; i++) {
			fputs(i ? ", " : "", f);
			gt_string_write(f, st->v[i]);
		}
		fputc(']', f);
		break;
	case GT_T_PAIR:
		put_floats(f, at, 2);
		break;
	case GT_T_DIMS:
		put_ints(f, v, v[1] == 1 && v[2] == 1 ? 1 : 3, false);
		break;
	case GT_T_INT2:
		put_ints(f, v, v[0] == v[1] ? 1 : 2, v[0] == v[1]);
		break;
	case GT_T_SIZE:
		put_ints(f, v, v[1] ? 2 : 1, !v[1]);
		break;
	case GT_T_OTHER:
		break;
	}
}

const char *gt_row_deciding(const struct gt_row *rows, const struct gt_row *r, const void *base, char word[48])
{
	const struct gt_row *sel = gt_row_when(rows, r);
	const void *value = (const char *)base + sel->offset;
	if (sel->type == GT_T_CHOICE) {
		const char *text = *(const char *const *)value;
		snprintf(word, 48, "%s", text ? text : "");
		return word;
	}
	return gt_values_word(sel->values, *(const int *)value, word, 48);
}

bool gt_row_applies(const struct gt_row *rows, const struct gt_row *r, const void *base)
{
	char word[48], is[GT_ROW_IS];
	return !r->when || (gt_row_applies(rows, gt_row_when(rows, r), base) &&
	                    gt_values_index(gt_row_is(r, is, sizeof is), gt_row_deciding(rows, r, base, word)) >= 0);
}

static void put_key(FILE *f, const struct gt_row *r, const void *base)
{
	fprintf(f, " %s = ", r->path);
	put_value(f, r, base);
	fputc(';', f);
}

/* Returns whether a key without a fixed default is not set, so that a value of the data or of the optimizer applies. */
static bool is_unset(const struct gt_row *r, const void *base)
{
	const void *at = (const char *)base + r->offset;
	if (!r->def || *r->def != '(')
		return false;
	return r->type == GT_T_FLOAT ? isnan(*(const double *)at) : (r->type == GT_T_INT || r->type == GT_T_DIMS) && !*(const int64_t *)at;
}

static void put_keys(FILE *f, const struct gt_row *rows, const void *base)
{
	for (const struct gt_row *r = rows; r->path; r++)
		if (r->type != GT_T_OTHER && gt_row_applies(rows, r, base) && !is_unset(r, base))
			put_key(f, r, base);
}

static void put_indent(FILE *f, int depth)
{
	while (depth-- > 0)
		fputc('\t', f);
}

/* Writes a list of n groups, of `size` bytes each, with the name of the key `path`. */
static void put_entries(FILE *f, int depth, const char *path, const struct gt_row *rows, const void *list, size_t size, int n)
{
	put_indent(f, depth);
	fprintf(f, "%s = (", gt_row_name(path));
	for (int i = 0; i < n; i++) {
		fputs(i ? ",\n" : "\n", f);
		put_indent(f, depth + 1);
		fputc('{', f);
		put_keys(f, rows, (const char *)list + (size_t)i * size);
		fputs(" }", f);
	}
	fputs(n ? "\n" : "", f);
	put_indent(f, n ? depth : 0);
	fputs(");\n", f);
}

static void put_groups(FILE *f, const struct gt_conf *c)
{
	const struct gt_conf_train *t = &c->train;
	fputs("\tgroups = (", f);
	for (int i = 0; i < t->ngroups; i++) {
		const struct gt_conf_group *g = &t->group[i];
		fprintf(f, "%s\n\t\t{", i ? "," : "");
		for (const struct gt_row *r = gt_rows_group; r->path; r++) {
			/* of an entry of train.groups with frozen parameters, only match, frozen and frozen_stats are written */
			bool first = !strcmp(r->path, "match"), frozen = !strcmp(r->path, "frozen");
			bool stats = g->frozen_stats && !strcmp(r->path, "frozen_stats");
			if (r->type != GT_T_OTHER && (g->frozen ? first || frozen || stats : !frozen && !is_unset(r, g)))
				put_key(f, r, g);
		}
		if (g->own_optimizer) {
			fputs("\n\t\t\toptimizer = {", f);
			put_keys(f, gt_rows_optimizer, &g->optimizer);
			fputs(" };", f);
		}
		if (g->own_schedule) {
			fputs("\n\t\t\tschedule = {", f);
			put_keys(f, gt_rows_schedule, &g->schedule);
			fputs(" };", f);
		}
		fputs(" }", f);
	}
	fputs(t->ngroups ? "\n\t);\n" : ");\n", f);
}

static void put_layer(FILE *f, const struct gt_layer_spec *l)
{
	fprintf(f, "\t\t{ name = \"%s\"; type = \"%s\";", l->name, gt_op_name(l->op));
	if (l->nin) {
		fputs(" in = [", f);
		for (int i = 0; i < l->nin; i++)
			fprintf(f, "%s\"%s\"", i ? ", " : "", l->in[i]);
		fputs("];", f);
	}
	if (l->tie)
		fprintf(f, " tie = \"%s\";", l->tie);
	for (const struct gt_attr_def *d = l->op->attrs; d && d->key; d++) {
		char def[48];
		struct gt_row r = gt_row_of_attr(d, def);
		put_key(f, &r, l->attr);
	}
	for (const struct gt_row *r = gt_rows_layer; r->path; r++) {
		/* common keys of a layer are written only if they differ from the default */
		if (r->type == GT_T_OTHER || (!strcmp(r->path, "lr_mul") && l->lr_mul == 1) || (!strcmp(r->path, "frozen") && !l->frozen) ||
		    (!strcmp(r->path, "recompute") && !l->recompute) || (!strcmp(r->path, "weight_decay") && isnan(l->weight_decay)) ||
		    (!strcmp(r->path, "init") && l->init < 0) || (!strcmp(r->path, "init_std") && l->init_std == 0) ||
		    (!strncmp(r->path, "init_", 5) && strcmp(r->path, "init_std") && l->init != GT_INIT_WHITENING))
			continue;
		put_key(f, r, l);
	}
	fputs(" }", f);
}

static void put_layers(FILE *f, const struct gt_conf *c)
{
	fputs("\tlayers = (\n", f);
	for (int i = 0; i < c->model.nlayers; i++) {
		put_layer(f, &c->model.layers[i]);
		fputs(i + 1 < c->model.nlayers ? ",\n" : "\n", f);
	}
	fputs("\t);\n", f);
}

/* Closes the groups of path `from` that do not contain path `to`, then opens the remaining groups of `to`. Returns the number of open
 * groups. */
static int change_group(FILE *f, const char *from, const char *to)
{
	size_t same = 0;
	int depth = 0, deep;
	for (size_t i = 0; from[i] && from[i] == to[i]; i++) {
		if (from[i] == '.') {
			same = i + 1;
			depth++;
		}
	}
	deep = depth;
	for (const char *p = from + same; (p = strchr(p, '.')); p++)
		deep++;
	for (; deep > depth; deep--) {
		put_indent(f, deep - 1);
		fputs("};\n", f);
	}
	for (const char *p = to + same, *dot; (dot = strchr(p, '.')); p = dot + 1) {
		put_indent(f, depth++);
		fprintf(f, "%.*s = {\n", (int)(dot - p), p);
	}
	return depth;
}

enum gt_code gt_conf_write(struct gt_conf *c, struct gt_err *err)
{
	char *text = NULL, *kept;
	size_t n;
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	const char *group = "";
	for (const struct gt_row *r = gt_rows; r->path; r++) {
		if (!gt_row_applies(gt_rows, r, c) || !strcmp(r->path, "model.blocks"))
			continue;
		int depth = change_group(f, group, r->path);
		group = r->path;
		if (!strcmp(r->path, c->model.ninputs ? "model.input" : "model.inputs"))
			continue;
		if (!strcmp(r->path, "model.inputs"))
			put_entries(f, depth, r->path, gt_rows_input, c->model.inputs, sizeof *c->model.inputs, c->model.ninputs);
		else if (!strcmp(r->path, "data.augment"))
			put_entries(f, depth, r->path, gt_rows_augment, c->data.augment, sizeof *c->data.augment, c->data.naugment);
		else if (!strcmp(r->path, "data.columns"))
			put_entries(f, depth, r->path, gt_rows_column, c->data.columns, sizeof *c->data.columns, c->data.ncolumns);
		else if (!strcmp(r->path, "eval.transforms"))
			put_entries(f, depth, r->path, gt_rows_augment, c->eval.transforms, sizeof *c->eval.transforms, c->eval.ntransforms);
		else if (!strcmp(r->path, "model.pretrained.map"))
			put_entries(f, depth, r->path, gt_rows_rename, c->pretrained.map, sizeof *c->pretrained.map, c->pretrained.nmap);
		else if (!strcmp(r->path, "train.groups"))
			put_groups(f, c);
		else if (!strcmp(r->path, "model.layers"))
			put_layers(f, c);
		else {
			put_indent(f, depth);
			fprintf(f, "%s = ", gt_row_name(r->path));
			put_value(f, r, c);
			fputs(";\n", f);
		}
	}
	change_group(f, group, "");
	GT_TRY(gt_memstream_close(f, &m, &text, &n, err));
	kept = gt_arena_strdup(c->arena, text);
	free(text);
	if (!kept)
		return gt_fail_memory(err, n);
	c->text = kept;
	return GT_OK;
}

void gt_conf_each_scalar(const struct gt_conf *c, void (*fn)(void *user, const struct gt_conf_scalar *s), void *user)
{
	for (const struct gt_row *r = gt_rows; r->path; r++) {
		const void *at = (const char *)c + r->offset;
		char word[48];
		struct gt_conf_scalar s = {.path = r->path, .kind = GT_SCALAR_NUMBER};
		if (r->type == GT_T_OTHER || !gt_row_applies(gt_rows, r, c))
			continue;
		switch (r->type) {
		case GT_T_INT:
		case GT_T_AUTO:
			s.number = (double)*(const int64_t *)at;
			break;
		case GT_T_FLOAT:
			s.number = *(const double *)at;
			break;
		case GT_T_BOOL:
			s.kind = GT_SCALAR_BOOL;
			s.number = *(const bool *)at;
			break;
		case GT_T_STRING:
		case GT_T_CHOICE:
			s.kind = GT_SCALAR_TEXT;
			s.text = *(const char *const *)at;
			break;
		case GT_T_ENUM:
			s.kind = GT_SCALAR_TEXT;
			s.text = gt_values_word(r->values, *(const int *)at, word, sizeof word);
			break;
		default:
			continue; /* gt_conf_each_scalar passes only keys with a single value */
		}
		fn(user, &s);
	}
}

void gt_conf_each_value(const struct gt_conf *c, void (*fn)(void *user, const char *path, const char *text), void *user)
{
	for (const struct gt_row *r = gt_rows; r->path; r++) {
		const void *at = (const char *)c + r->offset;
		char text[4096] = "", word[48];
		if (r->type == GT_T_OTHER || !gt_row_applies(gt_rows, r, c) || is_unset(r, c))
			continue;
		FILE *f = fmemopen(text, sizeof text, "w"); /* a text that is longer than the buffer is truncated */
		if (!f)
			return;
		if (r->type == GT_T_STRING || r->type == GT_T_CHOICE)
			fputs(*(const char *const *)at, f);
		else if (r->type == GT_T_ENUM)
			fputs(gt_values_word(r->values, *(const int *)at, word, sizeof word), f);
		else
			put_value(f, r, c);
		fclose(f);
		fn(user, r->path, text);
	}
}
