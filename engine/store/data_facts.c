#include "store/data_facts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JSON_LEVELS 6 /* maximum nesting of data.json, which has objects in a list in an object (table_facts.h) */

enum gt_code gt_data_facts_print(const struct gt_data_facts *f, struct gt_arena *a, const char **text, struct gt_err *err)
{
	struct gt_json j = {0};
	const char *line;
	*text = NULL;
	if (!f->nclasses && !f->files && !f->nweights && !f->learned)
		return GT_OK;
	gt_json_object(&j, NULL);
	gt_json_int(&j, "format", 1);
	if (f->files)
		gt_json_string(&j, "images", "files");
	gt_json_array(&j, "classes");
	for (int64_t i = 0; i < f->nclasses; i++)
		gt_json_string(&j, NULL, f->class[i]);
	gt_json_end(&j);
	if (f->nweights)
		gt_json_array(&j, "class_weights");
	for (int64_t i = 0; i < f->nweights; i++)
		gt_json_double(&j, NULL, f->weights[i], 17);
	if (f->nweights)
		gt_json_end(&j);
	enum gt_code code = f->learned ? f->learned->by->put_json(f->learned, &j, err) : GT_OK;
	if (code == GT_OK && f->samples)
		code = gt_sample_json_put(&j, "samples", f->samples, err);
	gt_json_end(&j);
	if (code == GT_OK)
		code = gt_json_finish(&j, &line, err);
	if (code == GT_OK && !(*text = gt_arena_printf(a, "%s\n", line)))
		code = gt_fail_memory(err, j.len);
	gt_json_free(&j);
	return code;
}

static enum gt_code fail_damaged(const struct gt_ckpt *c, const char *why, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s/data.json: %s", gt_ckpt_path(c), why);
}

/* Reads "class_weights". The loss divides by a sum of weights, so at least one weight must be positive. */
static enum gt_code read_weights(const struct gt_ckpt *c, const struct gt_json_value *list, struct gt_arena *a, struct gt_data_facts *out,
                                 struct gt_err *err)
{
	double *w, sum = 0;
	int64_t n = 0;
	if (!list)
		return GT_OK;
	const struct gt_json_value *first = gt_json_is(list, GT_JSON_ARRAY) ? list->child : NULL;
	for (const struct gt_json_value *e = first; e; e = e->next)
		n++;
	GT_NEW(w, a, n ? n : 1, err);
	n = 0;
	for (const struct gt_json_value *e = first; e; e = e->next) {
		if (!gt_json_is(e, GT_JSON_NUMBER) || !(e->number >= 0) || !isfinite(e->number))
			return fail_damaged(c, "expected \"class_weights\" to be a list of numbers ≥ 0", err);
		sum += w[n++] = e->number;
	}
	if (!(sum > 0))
		return fail_damaged(c, "expected \"class_weights\" to be a list with a number > 0", err);
	out->weights = w;
	out->nweights = n;
	return GT_OK;
}

/* The parsed data.json of a checkpoint; v is NULL if the checkpoint has no such file. */
struct data_json {
	/* memory of v; it is closed when the facts are copied, because the parsed text may have many words that the facts do not need */
	struct gt_arena *arena;
	const char *path;
	const struct gt_json_value *v;
};

/* Parses data.json. The caller closes the arena, also after a failure. */
static enum gt_code parse_data_json(const struct gt_ckpt *c, struct data_json *d, struct gt_err *err)
{
	const char *text = gt_ckpt_meta(c)->data;
	int64_t format;
	*d = (struct data_json){0};
	GT_TRY(gt_arena_open(&d->arena, err));
	if (!text)
		return GT_OK;
	GT_NEW_STR(d->path, gt_arena_printf(d->arena, "%s/data.json", gt_ckpt_path(c)), err);
	GT_TRY(gt_json_parse(text, strlen(text), d->path, JSON_LEVELS, strlen(text), d->arena, &d->v, err));
	if (!gt_json_whole(gt_json_member(d->v, "format"), &format))
		return fail_damaged(c, "expected a member \"format\"", err);
	if (format != 1)
		return gt_fail(err, GT_EDATA, "%s: expected format 1, got %lld: a newer gtrain wrote this file", d->path, (long long)format);
	return GT_OK;
}

/* Copies the names of the classes and the class weights from parsed data.json to *out, in the arena a. */
static enum gt_code get_facts(const struct gt_ckpt *c, const struct gt_json_value *v, struct gt_arena *a, struct gt_data_facts *out,
                              struct gt_err *err)
{
	const char **class;
	int64_t n = 0;
	const struct gt_json_value *list = gt_json_member(v, "classes");
	bool good = !list || gt_json_is(list, GT_JSON_ARRAY);
	for (const struct gt_json_value *e = list ? list->child : NULL; e; e = e->next, n++)
		good = good && gt_json_is(e, GT_JSON_STRING);
	if (!good)
		return fail_damaged(c, "expected \"classes\" to be a list of names", err);
	GT_NEW(class, a, n ? n : 1, err);
	n = 0;
	for (const struct gt_json_value *e = list ? list->child : NULL; e; e = e->next)
		GT_NEW_STR(class[n++], gt_arena_strdup(a, e->text), err);
	const char *images = gt_json_text(gt_json_member(v, "images"));
	*out = (struct gt_data_facts){.files = images && !strcmp(images, "files"), .nclasses = n, .class = class};
	return read_weights(c, gt_json_member(v, "class_weights"), a, out, err);
}

enum gt_code gt_data_facts_read(const struct gt_ckpt *c, struct gt_arena *a, struct gt_data_facts *out, struct gt_err *err)
{
	struct data_json d;
	*out = (struct gt_data_facts){0};
	enum gt_code code = parse_data_json(c, &d, err);
	if (code == GT_OK && d.v)
		code = get_facts(c, d.v, a, out, err);
	gt_arena_close(d.arena);
	return code;
}

/* Reads the facts that the format `by` has fitted to the training data. */
static enum gt_code get_learned(const struct gt_ckpt *c, const struct data_json *d, const struct gt_fitting *by, struct gt_fitted *out,
                                struct gt_err *err)
{
	struct gt_data_facts facts;
	if (!gt_json_member(d->v, by->json_member))
		return gt_fail(err, GT_EDATA, "%s: expected a checkpoint with facts fitted to data of format \"%s\", got no such facts",
		               gt_ckpt_path(c), by->format);
	GT_TRY(by->get_json(d->v, d->path, out, err));
	if (!by->names_classes)
		return GT_OK;
	GT_TRY(get_facts(c, d->v, d->arena, &facts, err));
	if (!(out->text.class = calloc((size_t)facts.nclasses + 1, sizeof *out->text.class)))
		return gt_fail_memory(err, (size_t)facts.nclasses);
	for (int64_t i = 0; i < facts.nclasses; i++, out->text.nclasses++)
		GT_NEW_STR(out->text.class[i], strdup(facts.class[i]), err);
	return GT_OK;
}

enum gt_code gt_data_facts_learned(const struct gt_ckpt *c, const struct gt_fitting *by, struct gt_fitted **out, struct gt_err *err)
{
	struct data_json d;
	*out = NULL;
	enum gt_code code = parse_data_json(c, &d, err);
	if (code == GT_OK)
		code = gt_fitted_new(by, out, err);
	if (code == GT_OK)
		code = get_learned(c, &d, by, *out, err);
	gt_arena_close(d.arena);
	if (code != GT_OK) {
		gt_fitted_free(*out);
		*out = NULL;
	}
	return code;
}

enum gt_code gt_data_facts_samples(const struct gt_ckpt *c, struct gt_used_samples *out, struct gt_err *err)
{
	struct data_json d;
	*out = (struct gt_used_samples){0};
	enum gt_code code = parse_data_json(c, &d, err);
	if (code == GT_OK)
		code = gt_sample_json_get(gt_json_member(d.v, "samples"), d.path, out, err);
	gt_arena_close(d.arena);
	return code;
}

enum gt_code gt_data_facts_compare(const struct gt_data_facts *ckpt, const struct gt_data_facts *now, const char *where, const char *path,
                                   struct gt_err *err)
{
	if (!ckpt->nclasses || !now->nclasses)
		return GT_OK;
	for (int64_t i = 0; i < ckpt->nclasses && i < now->nclasses; i++)
		if (strcmp(ckpt->class[i], now->class[i]))
			return gt_fail(err, GT_EDATA, "%.300s: expected class %lld to be \"%.100s\", as in the checkpoint %.300s, got \"%.100s\"",
			               where, (long long)i, ckpt->class[i], path, now->class[i]);
	if (ckpt->nclasses != now->nclasses)
		return gt_fail(err, GT_EDATA, "%.300s: expected %lld classes, as in the checkpoint %.300s, got %lld", where,
		               (long long)ckpt->nclasses, path, (long long)now->nclasses);
	return GT_OK;
}
