#include "skipped.h"
#include "base/arena.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETS 8

struct entry {
	int set;
	int64_t sample;
	char *why, *kind; /* strings from malloc; why: the reason; kind: entries of the same kind are summarised in one warning; NULL: the entry
	                     has its own warning */
	const char *noun; /* static */
};

struct gt_skipped {
	pthread_mutex_t lock;
	struct entry *entry;
	int64_t n, cap;
	int64_t next[SETS]; /* [set]: 1 + the largest sample index of that set in the list */
	int64_t reported; /* number of entries that gt_skipped_new has already passed to its callback */
};

enum gt_code gt_skipped_open(struct gt_skipped **out, struct gt_err *err)
{
	GT_CALLOC(*out, 1, err);
	pthread_mutex_init(&(*out)->lock, NULL);
	return GT_OK;
}

static void free_entry(struct entry *e)
{
	free(e->why);
	free(e->kind);
}

void gt_skipped_close(struct gt_skipped *l)
{
	if (!l)
		return;
	for (int64_t i = 0; i < l->n; i++)
		free_entry(&l->entry[i]);
	free(l->entry);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static enum gt_code append_entry(struct gt_skipped *l, int set, int64_t i, const char *noun, const char *kind, const char *why,
                                 struct gt_err *err)
{
	GT_GROW(l->entry, l->cap, l->n + 1, err);
	struct entry e = {set, i, strdup(why), kind ? strdup(kind) : NULL, noun};
	if (!e.why || (kind && !e.kind)) {
		free_entry(&e);
		return gt_fail_memory(err, strlen(why));
	}
	l->entry[l->n++] = e;
	l->next[set] = i >= l->next[set] ? i + 1 : l->next[set];
	return GT_OK;
}

enum gt_code gt_skipped_add(struct gt_skipped *l, int set, int64_t i, const char *noun, const char *kind, const char *why,
                            struct gt_err *err)
{
	pthread_mutex_lock(&l->lock);
	bool known = false;
	for (int64_t k = 0; !kind && i < l->next[set] && k < l->n && !known; k++)
		known = l->entry[k].set == set && l->entry[k].sample == i;
	enum gt_code code = known ? GT_OK : append_entry(l, set, i, noun, kind, why, err);
	pthread_mutex_unlock(&l->lock);
	return code;
}

void gt_skipped_drop(struct gt_skipped *l, int set)
{
	int64_t kept = 0, reported = 0;
	pthread_mutex_lock(&l->lock);
	for (int64_t k = 0; k < l->n; k++)
		if (l->entry[k].set == set) {
			free_entry(&l->entry[k]);
		} else {
			reported += k < l->reported;
			l->entry[kept++] = l->entry[k];
		}
	l->n = kept;
	l->reported = reported;
	l->next[set] = 0;
	pthread_mutex_unlock(&l->lock);
}

void gt_skipped_each(struct gt_skipped *l, int set, void (*fn)(void *user, int64_t i), void *user)
{
	pthread_mutex_lock(&l->lock);
	for (int64_t k = 0; k < l->n; k++)
		if (l->entry[k].set == set)
			fn(user, l->entry[k].sample);
	pthread_mutex_unlock(&l->lock);
}

int64_t gt_skipped_new(struct gt_skipped *l, void (*fn)(void *user, int set, int64_t i, const char *why), void *user)
{
	pthread_mutex_lock(&l->lock);
	int64_t n = l->n;
	for (; l->reported < n; l->reported++) {
		const struct entry *e = &l->entry[l->reported];
		fn(user, e->set, e->sample, e->why);
	}
	pthread_mutex_unlock(&l->lock);
	return n;
}

/* The new entries of one kind, which one warning summarises. */
struct group {
	const struct entry *first;
	int64_t n;
};

static bool is_same_kind(const struct entry *a, const struct entry *b)
{
	return a->set == b->set && a->kind && b->kind && a->noun == b->noun && !strcmp(a->kind, b->kind);
}

int64_t gt_skipped_report(struct gt_skipped *l, void (*fn)(void *user, const char *text), void (*each)(void *user, const char *why),
                          void *user)
{
	enum { GROUPS = 32 };
	struct group group[GROUPS]; /* entries of more than GROUPS kinds get a warning each */
	int groups = 0;
	char text[1200];
	pthread_mutex_lock(&l->lock);
	int64_t n = l->n;
	for (; l->reported < n; l->reported++) {
		const struct entry *e = &l->entry[l->reported];
		int g = 0;
		while (g < groups && !is_same_kind(group[g].first, e))
			g++;
		if (each)
			each(user, e->why);
		if (g < groups)
			group[g].n++;
		else if (e->kind && groups < GROUPS)
			group[groups++] = (struct group){e, 1};
		else
			fn(user, e->why);
	}
	for (int g = 0; g < groups; g++) {
		snprintf(text, sizeof text, "%lld %ss, the first is %s", (long long)group[g].n, group[g].first->noun, group[g].first->why);
		fn(user, group[g].n == 1 ? group[g].first->why : text);
	}
	pthread_mutex_unlock(&l->lock);
	return n;
}
