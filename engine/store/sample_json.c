/* The samples that a run used (datasets/used_samples.h), as a member of data.json in a checkpoint:
 *   {"split":"identity","train":{"id":"…","content":"…","label":"…"},"valid":{…},"test":{…},"past":{…}}
 * split    "class": samples were divided by their identity within each class (engine/exec/split_samples.h); "identity": without
 *          classes, or with data.stratify as before it took the share of each class; "number": by their indices, as in a checkpoint
 *          without this member.
 * changed  true if gt_used_samples.changed, else absent.
 * train …  the samples of each split; absent if it has none. If all are absent, there were too many to list.
 * id       6 bytes a sample, in base64, least significant byte first; content too, absent if equal to id; label has 3 bytes,
 *          absent if all are 0. */
#include "store/data_facts.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

enum { HASH = 6, LABEL = 3 }; /* bytes */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum part { ID, CONTENT, LABELS };
static const char *const part_names[] = {"id", "content", "label"};

static uint64_t get_mark_value(const struct gt_sample_mark *m, enum part part)
{
	return part == ID ? m->id : part == CONTENT ? m->content : m->label;
}

/* Appends one member of all samples (their ids, contents or labels) as base64 text. A value has 3 or 6 bytes, and 3 bytes are 4 digits, so
 * no padding is needed. */
static enum gt_code put_part(struct gt_json *j, const struct gt_sample_list *l, enum part part, struct gt_err *err)
{
	int bytes = part == LABELS ? LABEL : HASH;
	size_t each = (size_t)bytes / 3 * 4;
	char *text = malloc((size_t)l->n * each + 1), *p = text;
	if (!text)
		return gt_fail_memory(err, (size_t)l->n * each + 1);
	for (int64_t i = 0; i < l->n; i++)
		for (int b = 0; b < bytes; b += 3) {
			uint32_t v = (uint32_t)(get_mark_value(&l->mark[i], part) >> (8 * b)) & 0xffffff;
			for (int k = 0; k < 4; k++, v >>= 6)
				*p++ = digits[v & 63];
		}
	*p = 0;
	gt_json_string(j, part_names[part], text);
	free(text);
	return GT_OK;
}

static enum gt_code put_list(struct gt_json *j, const char *key, const struct gt_sample_list *l, struct gt_err *err)
{
	bool contents = false, labels = false;
	if (!l->n)
		return GT_OK;
	for (int64_t i = 0; i < l->n; i++) {
		contents |= l->mark[i].content != l->mark[i].id;
		labels |= l->mark[i].label != 0;
	}
	gt_json_object(j, key);
	enum gt_code code = put_part(j, l, ID, err);
	if (code == GT_OK && contents)
		code = put_part(j, l, CONTENT, err);
	if (code == GT_OK && labels)
		code = put_part(j, l, LABELS, err);
	gt_json_end(j);
	return code;
}

enum gt_code gt_sample_json_put(struct gt_json *j, const char *key, const struct gt_used_samples *u, struct gt_err *err)
{
	int64_t n = u->past.n;
	enum gt_code code = GT_OK;
	for (int i = 0; i < GT_SPLITS; i++)
		n += u->list[i].n;
	gt_json_object(j, key);
	gt_json_string(j, "split", u->by_number ? "number" : u->by_draw ? "identity" : "class");
	if (u->changed)
		gt_json_bool(j, "changed", true);
	for (int i = 0; i < GT_SPLITS && n <= GT_SAMPLES_MAX && code == GT_OK; i++)
		code = put_list(j, gt_split_names[i], &u->list[i], err);
	if (n <= GT_SAMPLES_MAX && code == GT_OK)
		code = put_list(j, "past", &u->past, err);
	gt_json_end(j);
	return code;
}

/* Sets *out to the 24 bits of 4 digits. */
static bool decode_digits(const char *p, uint32_t *out)
{
	*out = 0;
	for (int k = 3; k >= 0; k--) {
		const char *at = p[k] ? strchr(digits, p[k]) : NULL;
		if (!at)
			return false;
		*out = *out << 6 | (uint32_t)(at - digits);
	}
	return true;
}

static bool get_part(const struct gt_json_value *v, enum part part, struct gt_sample_list *l)
{
	const char *p = gt_json_text(v);
	int bytes = part == LABELS ? LABEL : HASH;
	if (!p || strlen(p) != (size_t)l->n * (size_t)bytes / 3 * 4)
		return false;
	for (int64_t i = 0; i < l->n; i++) {
		uint64_t sum = 0;
		for (int b = 0; b < bytes; b += 3, p += 4) {
			uint32_t got;
			if (!decode_digits(p, &got))
				return false;
			sum |= (uint64_t)got << (8 * b);
		}
		struct gt_sample_mark *m = &l->mark[i];
		*(part == ID ? &m->id : &m->content) = part == LABELS ? m->content : sum;
		m->label = part == LABELS ? (uint32_t)sum : m->label;
	}
	return true;
}

static enum gt_code get_list(const struct gt_json_value *v, const char *path, const char *key, struct gt_sample_list *l, struct gt_err *err)
{
	const struct gt_json_value *part[3];
	for (int i = 0; i < 3; i++)
		part[i] = gt_json_member(v, part_names[i]);
	const char *ids = gt_json_text(part[ID]);
	if (!v)
		return GT_OK;
	size_t n = ids ? strlen(ids) / (HASH / 3 * 4) : 0;
	if (!(l->mark = calloc(n + 1, sizeof *l->mark)))
		return gt_fail_memory(err, n * sizeof *l->mark);
	l->n = l->cap = (int64_t)n;
	bool good = n && get_part(part[ID], ID, l);
	for (size_t i = 0; i < n && good; i++)
		l->mark[i].content = l->mark[i].id;
	for (int i = CONTENT; i <= LABELS; i++)
		good = good && (!part[i] || get_part(part[i], (enum part)i, l));
	if (good)
		return GT_OK;
	return gt_fail(err, GT_EDATA, "%s: expected \"%s\" in \"samples\" to have 8 digits per sample in \"id\" and \"content\", and 4 digits "
	               "in \"label\"", path, key);
}

enum gt_code gt_sample_json_get(const struct gt_json_value *v, const char *path, struct gt_used_samples *out, struct gt_err *err)
{
	const char *split = gt_json_text(gt_json_member(v, "split"));
	enum gt_code code = GT_OK;
	*out = (struct gt_used_samples){.by_number = !v || (split && !strcmp(split, "number")),
	                                .by_draw = split && !strcmp(split, "identity"),
	                                .changed = gt_json_is(gt_json_member(v, "changed"), GT_JSON_TRUE)};
	if (v && !out->by_number && !out->by_draw && (!split || strcmp(split, "class")))
		return gt_fail(err, GT_EDATA, "%s: expected \"split\" in \"samples\" to be \"class\", \"identity\" or \"number\", got \"%.40s\", "
		               "which a newer gtrain may have written", path, split ? split : "");
	for (int i = 0; i < GT_SPLITS && code == GT_OK; i++)
		code = get_list(gt_json_member(v, gt_split_names[i]), path, gt_split_names[i], &out->list[i], err);
	if (code == GT_OK)
		code = get_list(gt_json_member(v, "past"), path, "past", &out->past, err);
	if (code == GT_OK)
		code = gt_used_index(out, err);
	for (int i = 0; i < GT_SPLITS; i++)
		out->listed |= out->list[i].n > 0;
	if (code != GT_OK)
		gt_used_free(out);
	return code;
}
