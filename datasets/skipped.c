#include "skipped.h"
#include "base/arena.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SETS 8

struct entry {
	int set;
	int64_t sample;
	char *why;
};

struct gt_skipped {
	pthread_mutex_t lock;
	struct entry *entry;
	int64_t n, cap;
	int64_t next[SETS]; /* of each set: 1 + the largest sample in the list */
	int64_t reported; /* number of entries that gt_skipped_new has passed on */
};

enum gt_code gt_skipped_open(struct gt_skipped **out, struct gt_err *err)
{
	if (!(*out = calloc(1, sizeof **out)))
		return gt_fail_memory(err, sizeof **out);
	pthread_mutex_init(&(*out)->lock, NULL);
	return GT_OK;
}

void gt_skipped_close(struct gt_skipped *l)
{
	if (!l)
		return;
	for (int64_t i = 0; i < l->n; i++)
		free(l->entry[i].why);
	free(l->entry);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static enum gt_code append(struct gt_skipped *l, int set, int64_t i, const char *why, struct gt_err *err)
{
	GT_GROW(l->entry, l->cap, l->n + 1, err);
	char *copy = strdup(why);
	if (!copy)
		return gt_fail_memory(err, strlen(why));
	l->entry[l->n++] = (struct entry){set, i, copy};
	l->next[set] = i >= l->next[set] ? i + 1 : l->next[set];
	return GT_OK;
}

enum gt_code gt_skipped_add(struct gt_skipped *l, int set, int64_t i, const char *why, struct gt_err *err)
{
	pthread_mutex_lock(&l->lock);
	bool known = false;
	for (int64_t k = 0; i < l->next[set] && k < l->n && !known; k++)
		known = l->entry[k].set == set && l->entry[k].sample == i;
	enum gt_code code = known ? GT_OK : append(l, set, i, why, err);
	pthread_mutex_unlock(&l->lock);
	return code;
}

void gt_skipped_drop(struct gt_skipped *l, int set)
{
	int64_t kept = 0;
	pthread_mutex_lock(&l->lock);
	for (int64_t k = 0; k < l->n; k++)
		if (l->entry[k].set == set)
			free(l->entry[k].why);
		else
			l->entry[kept++] = l->entry[k];
	l->n = kept;
	l->next[set] = 0;
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
