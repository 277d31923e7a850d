/* Writes the resolved config: every key that applies with its value, so that loading it gives the same struct even if a later version has
 * other defaults. Blocks are written in expanded form. gt_conf_each_scalar calls a function with the values of the same keys. */
#include "conf/conf_string.h"
#include "conf/schema.h"
#include "base/memstream.h"
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

/* Writes v with the fewest digits that read back as v, and always with a point, because not every reader accepts 1e-05 as a float. */
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
	case GT_T_WEIGHTS:
		if (fl->n == GT_FLOATS_AUTO) {
			fputs("\"auto\"", f);
			break;
		}
		/* fall through */
	case GT_T_FLOATS:
		fputc('[', f);
		for (int i = 0; i < fl->n; i++) {
			fputs(i ? ", " : "", f);
			put_float(f, fl->v[i]);
		}
		fputc(']', f);
		break;
	case GT_T_INTS:
		fputc('[', f);
		for (int i = 0; i < in->n; i++) {
			fputs(i ? ", " : "", f);
			put_int(f, in->v[i]);
		}
		fputc(']', f);
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
		fputc('[', f);
		put_float(f, ((const double *)at)[0]);
		fputs(", ", f);
		put_float(f, ((const double *)at)[1]);
		fputc(']', f);
		break;
	case GT_T_DIMS:
		if (v[1] == 1 && v[2] == 1)
			fprintf(f, "[%" PRId64 "]", v[0]);
		else
			fprintf(f, "[%" PRId64 ", %" PRId64 ", %" PRId64 "]", v[0], v[1], v[2]);
		break;
	case GT_T_INT2:
		if (v[0] == v[1])
			put_int(f, v[0]);
		else
			fprintf(f, "[%" PRId64 ", %" PRId64 "]", v[0], v[1]);
		break;
	case GT_T_SIZE:
		if (!v[1])
			put_int(f, v[0]);
		else
			fprintf(f, "[%" PRId64 ", %" PRId64 "]", v[0], v[1]);
		break;
	case GT_T_OTHER:
		break;
	}
}

const char *gt_row_deciding(const struct gt_row *rows, const struct gt_row *r, const void *base, char word[48])
{
	const struct gt_row *sel = gt_row_find(rows, r->when);
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
	return !r->when || (gt_row_applies(rows, gt_row_find(rows, r->when), base) &&
	                    gt_values_index(gt_row_is(r, is, sizeof is), gt_row_deciding(rows, r, base, word)) >= 0);
}

static void put_keys(FILE *f, const struct gt_row *rows, const void *base)
{
	for (const struct gt_row *r = rows; r->path; r++) {
		if (r->type == GT_T_OTHER || !gt_row_applies(rows, r, base))
			continue;
		fprintf(f, " %s = ", r->path);
		put_value(f, r, base);
		fputc(';', f);
	}
}

static void put_transforms(FILE *f, const char *key, const struct gt_transform *t, int n)
{
	fprintf(f, "\t%s = (", key);
	for (int i = 0; i < n; i++) {
		fprintf(f, "%s\n\t\t{", i ? "," : "");
		put_keys(f, gt_rows_augment, &t[i]);
		fputs(" }", f);
	}
	fputs(n ? "\n\t);\n" : ");\n", f);
}

static void put_columns(FILE *f, const struct gt_conf *c)
{
	fputs("\tcolumns = (", f);
	for (int i = 0; i < c->data.ncolumns; i++) {
		fprintf(f, "%s\n\t\t{", i ? "," : "");
		put_keys(f, gt_rows_column, &c->data.columns[i]);
		fputs(" }", f);
	}
	fputs(c->data.ncolumns ? "\n\t);\n" : ");\n", f);
}

static void put_inputs(FILE *f, const struct gt_conf *c)
{
	fputs("\tinputs = (", f);
	for (int i = 0; i < c->model.ninputs; i++) {
		const struct gt_model_input *in = &c->model.inputs[i];
		fprintf(f, "%s\n\t\t{", i ? "," : "");
		for (const struct gt_row *r = gt_rows_input; r->path; r++) {
			if ((!strcmp(r->path, "shape") && !in->shape[0]) || (!strcmp(r->path, "vocabulary") && !in->vocabulary))
				continue;
			fprintf(f, " %s = ", r->path);
			put_value(f, r, in);
			fputc(';', f);
		}
		fputs(" }", f);
	}
	fputs("\n\t);\n", f);
}

static void put_map(FILE *f, const struct gt_conf *c)
{
	const struct gt_conf_pretrained *p = &c->pretrained;
	fputs("\t\tmap = (", f);
	for (int i = 0; i < p->nmap; i++) {
		fprintf(f, "%s\n\t\t\t{", i ? "," : "");
		put_keys(f, gt_rows_rename, &p->map[i]);
		fputs(" }", f);
	}
	fputs(p->nmap ? "\n\t\t);\n" : ");\n", f);
}

static void put_groups(FILE *f, const struct gt_conf *c)
{
	const struct gt_conf_train *t = &c->train;
	fputs("\tgroups = (", f);
	for (int i = 0; i < t->ngroups; i++) {
		const struct gt_conf_group *g = &t->group[i];
		fprintf(f, "%s\n\t\t{ match = ", i ? "," : "");
		put_value(f, gt_row_find(gt_rows_group, "match"), g);
		fputs(";", f);
		if (g->frozen) {
			fputs(g->frozen_stats ? " frozen = true; frozen_stats = true; }" : " frozen = true; }", f);
			continue;
		}
		for (const struct gt_row *r = gt_rows_group; r->path; r++) {
			if (r->type == GT_T_OTHER || !strcmp(r->path, "match") || !strcmp(r->path, "frozen") ||
			    (!strcmp(r->path, "weight_decay") && isnan(g->weight_decay)))
				continue;
			fprintf(f, " %s = ", r->path);
			put_value(f, r, g);
			fputc(';', f);
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
		fprintf(f, " %s = ", d->key);
		put_value(f, &r, l->attr);
		fputc(';', f);
	}
	for (const struct gt_row *r = gt_rows_layer; r->path; r++) {
		/* common keys of a layer are written only if they differ from the default */
		if (r->type == GT_T_OTHER || (!strcmp(r->path, "lr_mul") && l->lr_mul == 1) || (!strcmp(r->path, "frozen") && !l->frozen) ||
		    (!strcmp(r->path, "recompute") && !l->recompute) || (!strcmp(r->path, "weight_decay") && isnan(l->weight_decay)) ||
		    (!strcmp(r->path, "init") && l->init < 0) || (!strcmp(r->path, "init_std") && l->init_std == 0) ||
		    (!strncmp(r->path, "init_", 5) && strcmp(r->path, "init_std") && l->init != GT_INIT_WHITENING))
			continue;
		fprintf(f, " %s = ", r->path);
		put_value(f, r, l);
		fputc(';', f);
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

static void put_indent(FILE *f, int depth)
{
	while (depth-- > 0)
		fputc('\t', f);
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
		if (!strcmp(r->path, "model.inputs")) {
			put_inputs(f, c);
		} else if (!strcmp(r->path, "data.augment")) {
			put_transforms(f, "augment", c->data.augment, c->data.naugment);
		} else if (!strcmp(r->path, "data.columns")) {
			put_columns(f, c);
		} else if (!strcmp(r->path, "eval.transforms")) {
			put_transforms(f, "transforms", c->eval.transforms, c->eval.ntransforms);
		} else if (!strcmp(r->path, "model.pretrained.map")) {
			put_map(f, c);
		} else if (!strcmp(r->path, "train.groups")) {
			put_groups(f, c);
		} else if (!strcmp(r->path, "model.layers")) {
			put_layers(f, c);
		} else {
			put_indent(f, depth);
			fprintf(f, "%s = ", strrchr(r->path, '.') ? strrchr(r->path, '.') + 1 : r->path);
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
			continue; /* keys with several values are left out */
		}
		fn(user, &s);
	}
}
