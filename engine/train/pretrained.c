#include "train/pretrained.h"
#include "known_weights.h"
#include "store/convert.h"
#include "train/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "module." /* prefix of all names that torch.nn.DataParallel and DistributedDataParallel save */

/* Puts file, line and key of model.pretrained before the message in err. Returns `code`. */
static enum gt_code add_location(const struct gt_conf *c, enum gt_code code, struct gt_err *err)
{
	if (code == GT_OK || !err)
		return code;
	struct gt_err said = *err;
	gt_conf_refuse(c, "model.pretrained.file", err, "%s", said.msg);
	return err->code = code;
}

enum gt_code gt_pretrained_open(const struct gt_conf *c, struct gt_st_file **f, struct gt_err *err)
{
	enum gt_code code = gt_st_open(c->pretrained.file, f, err);
	const struct gt_known_weights *w = code == GT_ENOINPUT ? gt_known_weights_at(c->pretrained.file) : NULL;
	if (w)
		gt_fail(err, code, "%s: the weights %s are missing; `gtrain fetch %s` downloads them", c->pretrained.file, w->name, w->name);
	return add_location(c, code, err);
}

/* Returns whether name matches the pattern. part, len: the part of the name that the '*' matched, and its length in bytes. */
static bool match_pattern(const char *pattern, const char *name, const char **part, size_t *len)
{
	const char *star = strchr(pattern, '*');
	size_t head = star ? (size_t)(star - pattern) : strlen(pattern), tail = star ? strlen(star + 1) : 0, n = strlen(name);
	*part = name + head;
	*len = 0;
	if (!star)
		return !strcmp(pattern, name);
	if (n < head + tail || strncmp(pattern, name, head) != 0 || strcmp(star + 1, name + n - tail) != 0)
		return false;
	*len = n - head - tail;
	return true;
}

/* Sets *to to the name in the model of a name in the file, "" if the map drops it, and *entry to the entry that matches, or -1. */
static enum gt_code map_name(const struct gt_conf_pretrained *p, const char *name, struct gt_arena *a, const char **to, int *entry,
                             struct gt_err *err)
{
	const char *part;
	size_t len;
	*to = name;
	*entry = -1;
	for (int i = 0; i < p->nmap; i++) {
		if (!match_pattern(p->map[i].from, name, &part, &len))
			continue;
		const char *star = strchr(p->map[i].to, '*');
		*to = p->map[i].to;
		*entry = i;
		if (star)
			GT_NEW_STR(*to, gt_arena_printf(a, "%.*s%.*s%s", (int)(star - p->map[i].to), p->map[i].to, (int)len, part, star + 1), err);
		return GT_OK;
	}
	return GT_OK;
}

static bool are_all_prefixed(const struct gt_st_file *f)
{
	int n = gt_st_count(f);
	for (int i = 0; i < n; i++)
		if (strncmp(gt_st_at(f, i)->name, PREFIX, strlen(PREFIX)) != 0)
			return false;
	return n > 0;
}

static int find_param(const struct gt_graph *g, const char *name)
{
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		if (!strcmp(p->name, name))
			return i;
		for (int k = 0; k < p->naliases; k++)
			if (!strcmp(p->alias[k], name))
				return i;
	}
	return -1;
}

/* Returns whether dtype and shape of tensor t allow loading it as the parameter p or, with n > 1, as one of n parts of p. */
static bool can_load(const struct gt_param *p, const struct gt_st_tensor *t, int n)
{
	struct gt_tdesc whole = t->desc;
	if (n > 1)
		whole.dim[0] = whole.dim[0] <= p->desc.dim[0] ? whole.dim[0] * n : 0;
	return (t->desc.dtype == p->desc.dtype || (p->desc.dtype == GT_F32 && gt_converts_f32(t->desc.dtype))) &&
	       (n == 1 ? gt_tdesc_same_but_ones(&whole, &p->desc) : whole.rank > 0 && gt_tdesc_same_shape(&whole, &p->desc));
}

/* Fails with an error that lists all tensors whose shapes differ, and shows a map entry that would skip the first of these tensors. */
static enum gt_code fail_shapes(const struct gt_conf *c, const struct gt_graph *g, const struct gt_st_file *f,
                                const struct gt_pretrained_source *source, struct gt_err *err)
{
	char text[800] = "", want[96], got[96], skip[200] = "";
	size_t n = 0;
	int count = 0;
	for (int i = 0, k = 0; i < g->nparams; k = k + 1 < source[i].n ? k + 1 : (i++, 0)) {
		const struct gt_param *p = &g->params[i];
		const struct gt_st_tensor *t = source[i].n ? gt_st_at(f, source[i].tensor[k]) : NULL;
		if (!t || can_load(p, t, source[i].n))
			continue;
		const char *dot = strrchr(t->name, '.');
		if (!count++)
			snprintf(skip, sizeof skip, "%.*s%s", dot && dot - t->name < 150 ? (int)(dot + 1 - t->name) : 150, t->name, dot ? "*" : "");
		if (n < 400)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%.100s: expected %s%s %s, got %s %s", n ? "; " : "", p->name,
			                      source[i].n > 1 ? "a part of " : "", gt_dtype_name(p->desc.dtype),
			                      gt_tdesc_text(&p->desc, want, sizeof want), gt_dtype_name(t->desc.dtype),
			                      gt_tdesc_text(&t->desc, got, sizeof got));
	}
	gt_fail(err, GT_EDATA, "%.150s: %d tensor%s with a different shape than in the model: %.600s%s; to keep the initial values of a "
	        "tensor, add { from = \"%s\"; to = \"\"; } to model.pretrained.map",
	        c->pretrained.file, count, count == 1 ? "" : "s", text, n >= 400 ? "; …" : "", skip);
	return add_location(c, GT_EDATA, err);
}

/* Adds tensor i of the file, whole or as a part, to the sources of the model's tensor `to`. The file may have a tied
 * tensor several times. */
static enum gt_code add_source(const struct gt_conf *c, const struct gt_st_file *f, int i, const struct gt_ints *part, const char *to,
                               bool tied, struct gt_pretrained_source *s, struct gt_err *err)
{
	int n = part && part->n ? (int)part->v[1] : 1, k = n > 1 ? (int)part->v[0] : 0, other = s->n ? s->tensor[s->n == n ? k : 0] : -1;
	for (int j = 0; s->n && s->n != n && other < 0; j++)
		other = s->tensor[j];
	if (other >= 0 && tied && n == 1 && s->n == 1)
		return add_location(c, gt_state_same_tensors(c->pretrained.file, gt_st_at(f, other), gt_st_at(f, i), err), err);
	if (other >= 0)
		return add_location(c, gt_fail(err, GT_EDATA, "%s: expected one tensor for %s%s, got %s and %s; list one of the two in "
		                               "model.pretrained.map with to = \"\"", c->pretrained.file, n > 1 ? "a part of " : "", to,
		                               gt_st_at(f, other)->name, gt_st_at(f, i)->name), err);
	for (int j = 0; j < n && !s->n; j++)
		s->tensor[j] = -1;
	s->n = n;
	s->tensor[k] = i;
	return GT_OK;
}

/* Fills out->source and the lists of names in the file that are not loaded. used[i]: whether entry i of the map matched a name. */
static enum gt_code assign_sources(const struct gt_conf *c, const struct gt_graph *g, const struct gt_st_file *f, struct gt_arena *a,
                                   struct gt_pretrained *out, bool *used, struct gt_err *err)
{
	struct gt_pretrained_report *r = &out->report;
	int n = gt_st_count(f);
	const char **dropped, **unused;
	GT_NEW(dropped, a, n + 1, err);
	GT_NEW(unused, a, n + 1, err);
	r->dropped = dropped;
	r->unused = unused;
	for (int i = 0; i < n; i++) {
		const struct gt_st_tensor *t = gt_st_at(f, i);
		const char *name = t->name + (r->stripped ? strlen(PREFIX) : 0), *to, *kept;
		int entry;
		GT_TRY(map_name(&c->pretrained, name, a, &to, &entry, err));
		if (entry >= 0)
			used[entry] = true;
		int k = *to ? find_param(g, to) : -1;
		if (k < 0) {
			GT_NEW_STR(kept, gt_arena_strdup(a, t->name), err); /* the file is closed before the report is used */
			if (*to)
				unused[r->nunused++] = kept;
			else
				dropped[r->ndropped++] = kept;
			continue;
		}
		GT_TRY(add_source(c, f, i, entry >= 0 ? &c->pretrained.map[entry].part : NULL, to, g->params[k].tied, &out->source[k],
		                  err));
	}
	return GT_OK;
}

enum gt_code gt_pretrained_match(const struct gt_conf *c, const struct gt_graph *g, const struct gt_st_file *f, struct gt_arena *a,
                                 struct gt_pretrained *out, struct gt_err *err)
{
	bool used[GT_MAX_RENAMES] = {false}, differ = false;
	struct gt_pretrained_report *r = &out->report;
	const char **initial;
	*out = (struct gt_pretrained){.report = {.tensors = g->nparams}};
	GT_NEW_STR(r->file, gt_arena_strdup(a, c->pretrained.file), err);
	GT_NEW(out->source, a, g->nparams + 1, err);
	GT_NEW(initial, a, g->nparams + 1, err);
	r->initial = initial;
	r->stripped = are_all_prefixed(f);
	GT_TRY(assign_sources(c, g, f, a, out, used, err));
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_pretrained_source *s = &out->source[i];
		if (!s->n) {
			GT_NEW_STR(initial[r->ninitial], gt_arena_strdup(a, g->params[i].name), err);
			r->ninitial++;
			continue;
		}
		r->loaded++;
		for (int k = 0; k < s->n; k++) {
			if (s->tensor[k] < 0)
				return add_location(c, gt_fail(err, GT_EDATA, "%s: expected %d parts of %s, got none for part %d", c->pretrained.file, s->n,
				                               g->params[i].name, k), err);
			const struct gt_st_tensor *t = gt_st_at(f, s->tensor[k]);
			differ |= !can_load(&g->params[i], t, s->n);
			r->elements += gt_tdesc_count(&t->desc);
			if (t->desc.dtype != g->params[i].desc.dtype && !differ)
				r->converted = gt_dtype_name(t->desc.dtype);
		}
	}
	for (int i = 0; i < c->pretrained.nmap; i++) {
		char path[64];
		snprintf(path, sizeof path, "model.pretrained.map[%d].from", i);
		if (!used[i])
			return gt_conf_refuse(c, path, err, "expected a pattern that matches a tensor of %s, other than those that earlier entries "
			                      "match, such as \"%s\", got \"%s\"", c->pretrained.file,
			                      gt_st_count(f) ? gt_st_at(f, 0)->name + (r->stripped ? strlen(PREFIX) : 0) : "fc.weight",
			                      c->pretrained.map[i].from);
	}
	if (!r->loaded)
		return add_location(c, gt_fail(err, GT_EDATA, "%s: expected tensors of the model, such as %s, got only others, such as %s; map the "
		                               "names in model.pretrained.map", c->pretrained.file, g->nparams ? g->params[0].name : "fc.weight",
		                               gt_st_count(f) ? gt_st_at(f, 0)->name : "an empty file"), err);
	return differ ? fail_shapes(c, g, f, out->source, err) : GT_OK;
}

enum gt_code gt_pretrained_check(const struct gt_conf *c, const struct gt_graph *g, struct gt_arena *a,
                                 const struct gt_pretrained_report **report, struct gt_err *err)
{
	struct gt_pretrained *p;
	struct gt_st_file *f;
	*report = NULL;
	if (!*c->pretrained.file)
		return GT_OK;
	GT_NEW(p, a, 1, err);
	GT_TRY(gt_pretrained_open(c, &f, err));
	enum gt_code code = gt_pretrained_match(c, g, f, a, p, err);
	gt_st_close(f);
	if (code == GT_OK)
		*report = &p->report;
	return code;
}

/* Loads parameter or buffer i. Parts are consecutive in memory, because they are parts of the first dimension. */
static enum gt_code load_tensor(struct gt_session *s, int i, const struct gt_st_file *f, const struct gt_pretrained_source *from,
                                enum gt_dtype *converted, struct gt_err *err)
{
	struct gt_st_tensor t = *gt_st_at(f, from->tensor[0]);
	if (from->n == 1)
		return gt_state_import_tensor(s, s->conf->pretrained.file, i, &t, converted, err);
	size_t bytes = gt_tdesc_bytes(&t.desc);
	char *whole = malloc(bytes * (size_t)from->n);
	if (!whole)
		return gt_fail_memory(err, bytes * (size_t)from->n);
	enum gt_code code = GT_OK;
	for (int k = 0; k < from->n && code == GT_OK; k++) {
		const struct gt_st_tensor *part = gt_st_at(f, from->tensor[k]);
		if (part->desc.dtype != t.desc.dtype)
			code = gt_fail(err, GT_EDATA, "%s: %s: expected %s, the type of %s, which is a part of the same tensor, got %s",
			               s->conf->pretrained.file, part->name, gt_dtype_name(t.desc.dtype), t.name, gt_dtype_name(part->desc.dtype));
		else
			memcpy(whole + (size_t)k * bytes, part->data, bytes);
	}
	t.desc.dim[0] *= from->n;
	t.data = whole;
	if (code == GT_OK)
		code = gt_state_import_tensor(s, s->conf->pretrained.file, i, &t, converted, err);
	free(whole);
	return code;
}

enum gt_code gt_pretrained_load(struct gt_session *s, const struct gt_pretrained_report **report, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	struct gt_pretrained *p;
	struct gt_st_file *f;
	enum gt_dtype converted;
	*report = NULL;
	if (!*s->conf->pretrained.file)
		return GT_OK;
	GT_NEW(p, s->arena, 1, err);
	GT_TRY(gt_pretrained_open(s->conf, &f, err));
	enum gt_code code = gt_pretrained_match(s->conf, g, f, s->arena, p, err);
	for (int i = 0; i < g->nparams && code == GT_OK; i++)
		if (p->source[i].n)
			code = load_tensor(s, i, f, &p->source[i], &converted, err);
	gt_st_close(f);
	GT_TRY(code);
	*report = &p->report;
	return gt_session_cast_weights(s, err);
}

/* ---- functions of gtrain.h ------------------------------------------------------------------------------------------------ */
static size_t append_names(char *buf, size_t size, size_t n, const char *title, const char *const *name, int count)
{
	for (int i = 0; i < count && i < 6 && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%.120s", i ? ", " : title, name[i]);
	if (count > 6 && n < size)
		n += (size_t)snprintf(buf + n, size - n, " and %d more", count - 6);
	return n;
}

const char *gt_pretrained_text(const struct gt_pretrained_report *r, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "%d of %d tensors (%lld elements) from %.300s", r->loaded, r->tensors, (long long)r->elements,
	                            r->file);
	if (r->stripped && n < size)
		n += (size_t)snprintf(buf + n, size - n, ", whose names begin with " PREFIX);
	if (r->converted && n < size)
		n += (size_t)snprintf(buf + n, size - n, ", converted from %s", r->converted);
	n = append_names(buf, size, n, "; at their initial values: ", r->initial, r->ninitial);
	n = append_names(buf, size, n, "; left out (model.pretrained.map): ", r->dropped, r->ndropped);
	append_names(buf, size, n, "; in the file, but not in the model: ", r->unused, r->nunused);
	return buf;
}

static void put_list(struct gt_json *j, const char *key, const char *const *name, int n)
{
	gt_json_array(j, key);
	for (int i = 0; i < n; i++)
		gt_json_string(j, NULL, name[i]);
	gt_json_end(j);
}

void gt_pretrained_json(struct gt_json *j, const struct gt_pretrained_report *r)
{
	gt_json_string(j, "file", r->file);
	gt_json_int(j, "loaded", r->loaded);
	gt_json_int(j, "tensors", r->tensors);
	gt_json_int(j, "elements", r->elements);
	gt_json_string(j, "converted", r->converted);
	gt_json_bool(j, "stripped", r->stripped);
	put_list(j, "initial", r->initial, r->ninitial);
	put_list(j, "dropped", r->dropped, r->ndropped);
	put_list(j, "unused", r->unused, r->nunused);
}
