#include "store/data_facts.h"
#include "base/json.h"
#include "store/json_read.h"
#include <math.h>
#include <string.h>

enum gt_code gt_data_facts_print(const struct gt_data_facts *f, struct gt_arena *a, const char **text, struct gt_err *err)
{
	struct gt_json j = {0};
	const char *line;
	*text = NULL;
	if (!f->nclasses && !f->files && !f->nweights)
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
	gt_json_end(&j);
	enum gt_code code = gt_json_finish(&j, &line, err);
	if (code == GT_OK && !(*text = gt_arena_printf(a, "%s\n", line)))
		code = gt_fail_memory(err, j.len);
	gt_json_free(&j);
	return code;
}

static enum gt_code damaged(const struct gt_ckpt *c, const char *why, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s/data.json: %s", gt_ckpt_path(c), why);
}

/* Reads "class_weights". The loss divides by a sum of weights, so one of them must be positive. */
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
			return damaged(c, "expected \"class_weights\" to be a list of numbers ≥ 0", err);
		sum += w[n++] = e->number;
	}
	if (!(sum > 0))
		return damaged(c, "expected \"class_weights\" to be a list with a number > 0", err);
	out->weights = w;
	out->nweights = n;
	return GT_OK;
}

enum gt_code gt_data_facts_read(const struct gt_ckpt *c, struct gt_arena *a, struct gt_data_facts *out, struct gt_err *err)
{
	const char *text = gt_ckpt_meta(c)->data, **class;
	const struct gt_json_value *v;
	int64_t format, n = 0;
	*out = (struct gt_data_facts){0};
	if (!text)
		return GT_OK;
	char *path = gt_arena_printf(a, "%s/data.json", gt_ckpt_path(c));
	if (!path)
		return gt_fail_memory(err, 0);
	GT_TRY(gt_json_parse(text, strlen(text), path, 3, strlen(text), a, &v, err));
	if (!gt_json_whole(gt_json_member(v, "format"), &format))
		return damaged(c, "expected a member \"format\"", err);
	if (format != 1)
		return gt_fail(err, GT_EDATA, "%s: expected format 1, got %lld, which a newer gtrain has written", path, (long long)format);
	const struct gt_json_value *list = gt_json_member(v, "classes");
	if (list && !gt_json_is(list, GT_JSON_ARRAY))
		return damaged(c, "expected \"classes\" to be a list of names", err);
	for (const struct gt_json_value *e = list ? list->child : NULL; e; e = e->next, n++)
		if (!gt_json_is(e, GT_JSON_STRING))
			return damaged(c, "expected \"classes\" to be a list of names", err);
	GT_NEW(class, a, n ? n : 1, err);
	n = 0;
	for (const struct gt_json_value *e = list ? list->child : NULL; e; e = e->next)
		class[n++] = e->text;
	const char *images = gt_json_text(gt_json_member(v, "images"));
	*out = (struct gt_data_facts){.files = images && !strcmp(images, "files"), .nclasses = n, .class = class};
	return read_weights(c, gt_json_member(v, "class_weights"), a, out, err);
}

enum gt_code gt_data_facts_compare(const struct gt_data_facts *ckpt, const struct gt_data_facts *now, const char *where, const char *path,
                                   struct gt_err *err)
{
	if (!ckpt->nclasses || !now->nclasses)
		return GT_OK;
	for (int64_t i = 0; i < ckpt->nclasses && i < now->nclasses; i++)
		if (strcmp(ckpt->class[i], now->class[i]))
			return gt_fail(err, GT_EDATA, "%.300s: expected class %lld to be \"%.100s\", as in the checkpoint %.300s, got \"%.100s\"",
			               where,
			               (long long)i, ckpt->class[i], path, now->class[i]);
	if (ckpt->nclasses != now->nclasses)
		return gt_fail(err, GT_EDATA, "%.300s: expected %lld classes, as in the checkpoint %.300s, got %lld", where,
		               (long long)ckpt->nclasses, path, (long long)now->nclasses);
	return GT_OK;
}
