#include "class_list.h"
#include "base/arena.h"
#include "base/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_CLASSES = 1 << 20 };

void gt_class_list_free(struct gt_class_list *c)
{
	for (int64_t i = 0; i < c->n; i++)
		free(c->v[i]);
	free(c->v);
	*c = (struct gt_class_list){0};
}

enum gt_code gt_class_list_add(struct gt_class_list *c, const char *name, size_t len, struct gt_err *err)
{
	if (c->n && !strncmp(c->v[c->n - 1], name, len) && !c->v[c->n - 1][len]) /* the usual case: the file has the same class as the previous
	                                                                            file */
		return GT_OK;
	GT_GROW(c->v, c->cap, c->n + 1, err);
	if (!(c->v[c->n] = strndup(name, len)))
		return gt_fail_memory(err, len);
	c->n++;
	return GT_OK;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_letters(const void *a, const void *b)
{
	return strcasecmp(*(char *const *)a, *(char *const *)b);
}

static void remove_duplicates(struct gt_class_list *c)
{
	int64_t kept = 0;
	if (c->n > 1)
		qsort(c->v, (size_t)c->n, sizeof *c->v, by_bytes);
	for (int64_t i = 0; i < c->n; i++)
		if (!kept || strcmp(c->v[i], c->v[kept - 1]))
			c->v[kept++] = c->v[i];
		else
			free(c->v[i]);
	c->n = kept;
}

enum gt_code gt_class_list_check(struct gt_class_list *c, const char *where, struct gt_err *err)
{
	remove_duplicates(c);
	for (int64_t i = 0; i < c->n; i++) /* names must be UTF-8, because checkpoints store them as JSON */
		if (!gt_utf8_valid(c->v[i]))
			return gt_fail(err, GT_EDATA, "%s: expected class names in UTF-8, got \"%.100s\"; rename the class", where, c->v[i]);
	if (c->n > 1)
		qsort(c->v, (size_t)c->n, sizeof *c->v, by_letters);
	for (int64_t i = 1; i < c->n; i++)
		if (!strcasecmp(c->v[i - 1], c->v[i]) && strcmp(c->v[i - 1], c->v[i]))
			return gt_fail(err, GT_EDATA,
			               "%s: the names of the classes \"%.100s\" and \"%.100s\" differ only in their case; rename or merge them", where,
			               c->v[i - 1], c->v[i]);
	if (c->n > 1)
		qsort(c->v, (size_t)c->n, sizeof *c->v, by_bytes);
	if (c->n == 1)
		return gt_fail(err, GT_EDATA, "%s: expected at least two classes, got only \"%.200s\"", where, c->v[0]);
	if (c->n > MAX_CLASSES)
		return gt_fail(err, GT_EDATA, "%s: expected at most %d classes, got %lld", where, MAX_CLASSES, (long long)c->n);
	return GT_OK;
}

enum gt_code gt_class_list_unknown(const struct gt_class_list *c, const char *name, size_t len, const char *where, struct gt_err *err)
{
	char shown[300] = "";
	for (int64_t k = 0; k < c->n && k < 5; k++) {
		size_t n = strlen(shown);
		snprintf(shown + n, sizeof shown - n, "%s%.50s", k ? ", " : "", c->v[k]);
	}
	return gt_fail(err, GT_EDATA, "%.400s: the data has the class \"%.*s\", which is unknown to the checkpoint: its classes are %s%s; "
	               "remove the class, or train a new run", where, (int)(len < 100 ? len : 100), name, shown, c->n > 5 ? ", …" : "");
}

enum gt_code gt_class_list_use(struct gt_class_list *c, const char *const *known, int64_t nknown, const char *where, struct gt_err *err)
{
	struct gt_class_list own = {0};
	enum gt_code code = GT_OK;
	for (int64_t i = 0; i < nknown && code == GT_OK; i++)
		code = gt_class_list_add(&own, known[i], strlen(known[i]), err);
	remove_duplicates(&own);
	for (int64_t i = 0; i < c->n && code == GT_OK; i++)
		if (gt_class_list_find(&own, c->v[i], strlen(c->v[i])) < 0)
			code = gt_class_list_unknown(&own, c->v[i], strlen(c->v[i]), where, err);
	if (code != GT_OK) {
		gt_class_list_free(&own);
		return code;
	}
	gt_class_list_free(c);
	*c = own;
	return GT_OK;
}

int64_t gt_class_list_find(const struct gt_class_list *c, const char *name, size_t len)
{
	for (int64_t lo = 0, hi = c->n; lo < hi;) {
		int64_t mid = (lo + hi) / 2;
		int d = strncmp(c->v[mid], name, len);
		d = d ? d : c->v[mid][len] != 0;
		if (!d)
			return mid;
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

void gt_class_list_text(struct gt_class_list *c, char *buf, size_t size)
{
	enum { MORE = 24 }; /* maximum length of the suffix " and 1048576 more" */
	size_t n = 0;
	*buf = 0;
	remove_duplicates(c);
	for (int64_t i = 0; i < c->n; i++) {
		size_t need = strlen(c->v[i]) + 2;
		if (i && n + need + MORE >= size) {
			snprintf(buf + n, size - n, " and %lld more", (long long)(c->n - i));
			return;
		}
		int room = (int)(size - n) - MORE - 2; /* The first name is truncated if it does not fit; a later name is left out instead. */
		n += (size_t)snprintf(buf + n, size - n, "%s%.*s", i ? ", " : "", room, c->v[i]);
	}
}
