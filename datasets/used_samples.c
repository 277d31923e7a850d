#include "used_samples.h"
#include "base/arena.h"
#include "tar_reader.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

uint64_t gt_mark_hash(const void *data, size_t n, uint64_t seed)
{
	uint64_t h = XXH3_64bits_withSeed(data, n, seed) >> 16;
	return h ? h : 1;
}

uint64_t gt_mark_path(const char *path)
{
	char clean[4096];
	snprintf(clean, sizeof clean, "%s", path);
	gt_tar_clean_path(clean);
	return gt_mark_hash(clean, strlen(clean), 0);
}

enum gt_code gt_used_add(struct gt_sample_list *l, const struct gt_sample_mark *mark, int64_t n, struct gt_err *err)
{
	GT_GROW(l->mark, l->cap, l->n + n, err);
	if (n)
		memcpy(l->mark + l->n, mark, (size_t)n * sizeof *mark);
	l->n += n;
	return GT_OK;
}

static int by_id(const void *a, const void *b)
{
	const struct gt_sample_mark *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->content != y->content)
		return x->content < y->content ? -1 : 1;
	return (x->label > y->label) - (x->label < y->label);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void sort_marks(struct gt_sample_mark *mark, int64_t n)
{
	if (n > 1)
		qsort(mark, (size_t)n, sizeof *mark, by_id);
}

/* Creates a sorted array of the content hashes in a and b; b NULL: only in a. */
static enum gt_code collect_contents(const struct gt_sample_list *a, const struct gt_sample_list *b, uint64_t **out, int64_t *n,
                                     struct gt_err *err)
{
	const struct gt_sample_list *const from[] = {a, b};
	size_t most = (size_t)(a->n + (b ? b->n : 0));
	free(*out);
	*n = 0;
	GT_CALLOC(*out, most + 1, err);
	for (int k = 0; k < 2 && from[k]; k++)
		for (int64_t i = 0; i < from[k]->n; i++)
			if (from[k]->mark[i].content)
				(*out)[(*n)++] = from[k]->mark[i].content;
	if (*n > 1)
		qsort(*out, (size_t)*n, sizeof **out, by_value);
	return GT_OK;
}

enum gt_code gt_used_index(struct gt_used_samples *u, struct gt_err *err)
{
	for (int i = 0; i < GT_SPLITS; i++)
		sort_marks(u->list[i].mark, u->list[i].n);
	sort_marks(u->past.mark, u->past.n);
	GT_TRY(collect_contents(&u->list[GT_TRAIN], &u->past, &u->trained, &u->ntrained, err));
	return collect_contents(&u->list[GT_VALID], NULL, &u->held, &u->nheld, err);
}

void gt_used_free(struct gt_used_samples *u)
{
	for (int i = 0; i < GT_SPLITS; i++)
		free(u->list[i].mark);
	free(u->past.mark);
	free(u->trained);
	free(u->held);
	*u = (struct gt_used_samples){0};
}

const struct gt_sample_mark *gt_used_find(const struct gt_sample_list *l, uint64_t id)
{
	int64_t lo = 0, hi = l->n;
	while (lo < hi) {
		int64_t mid = (lo + hi) / 2;
		if (l->mark[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < l->n && l->mark[lo].id == id ? &l->mark[lo] : NULL;
}

static bool contains_content(const uint64_t *v, int64_t n, uint64_t content)
{
	return content && n && bsearch(&content, v, (size_t)n, sizeof content, by_value);
}

bool gt_used_trained(const struct gt_used_samples *u, uint64_t content)
{
	return contains_content(u->trained, u->ntrained, content);
}

/* Returns whether a list has a sample with this id and content; if m->content is unknown (0), the id suffices. */
static bool list_has_sample(const struct gt_sample_list *l, const struct gt_sample_mark *m)
{
	const struct gt_sample_mark *k = gt_used_find(l, m->id), *end = l->mark + l->n;
	for (; k && k < end && k->id == m->id; k++)
		if (!m->content || k->content == m->content)
			return true;
	return false;
}

bool gt_used_measures(const struct gt_used_samples *u, enum gt_split split, const struct gt_sample_mark *m)
{
	return list_has_sample(&u->list[split], m) || !gt_used_trained(u, m->content);
}

int gt_used_part(const struct gt_used_samples *u, const struct gt_sample_mark *m)
{
	if (list_has_sample(&u->list[GT_VALID], m))
		return 1;
	if (gt_used_find(&u->list[GT_TRAIN], m->id) || gt_used_find(&u->past, m->id) || gt_used_trained(u, m->content))
		return 0;
	return gt_used_find(&u->list[GT_VALID], m->id) || contains_content(u->held, u->nheld, m->content) ? 1 : -1;
}

enum gt_code gt_used_compare(const struct gt_sample_list *const *list, int nlists, const struct gt_sample_mark *mark, int64_t n,
                             struct gt_data_changes *out, struct gt_err *err)
{
	struct gt_sample_list was = {0}, is = {0};
	enum gt_code code = gt_used_add(&is, mark, n, err);
	for (int i = 0; i < nlists && code == GT_OK; i++)
		code = gt_used_add(&was, list[i]->mark, list[i]->n, err);
	sort_marks(was.mark, was.n);
	sort_marks(is.mark, is.n);
	out->samples += was.n;
	for (int64_t i = 0, k = 0; code == GT_OK && (i < was.n || k < is.n);) {
		const struct gt_sample_mark *a = i < was.n ? &was.mark[i] : NULL, *b = k < is.n ? &is.mark[k] : NULL;
		if (!b || (a && a->id < b->id)) {
			out->missing++;
			i++;
		} else if (!a || b->id < a->id) {
			out->added++;
			k++;
		} else {
			out->changed += (a->content && b->content && a->content != b->content) || a->label != b->label;
			i++;
			k++;
		}
	}
	free(was.mark);
	free(is.mark);
	return code;
}
