/* A vocabulary from the words of a training split. */
#include "base/arena.h"
#include "text/vocab_rep.h"
#include <stdlib.h>
#include <string.h>

struct gt_vocab_counter {
	struct gt_token_table table;
	int64_t *count; /* [cap] of each string of the table */
	int32_t cap;
};

enum gt_code gt_vocab_counter_open(size_t max_bytes, struct gt_vocab_counter **out, struct gt_err *err)
{
	*out = NULL;
	struct gt_vocab_counter *c = calloc(1, sizeof *c);
	if (!c)
		return gt_fail_memory(err, sizeof *c);
	enum gt_code code = gt_token_table_open(&c->table, max_bytes, err);
	if (code != GT_OK) {
		free(c);
		return code;
	}
	*out = c;
	return GT_OK;
}

void gt_vocab_counter_close(struct gt_vocab_counter *c)
{
	if (!c)
		return;
	gt_token_table_close(&c->table);
	free(c->count);
	free(c);
}

/* Makes room for the counts of all strings that the table has room for. */
static enum gt_code grow_counts(struct gt_vocab_counter *c, struct gt_err *err)
{
	size_t old = (size_t)c->cap * sizeof *c->count, bytes = (size_t)c->table.cap * sizeof *c->count;
	if (!gt_token_table_fits(&c->table, bytes))
		return gt_token_table_full(&c->table, err);
	int64_t *now = realloc(c->count, bytes);
	if (!now)
		return gt_fail_memory(err, bytes);
	memset((char *)now + old, 0, bytes - old);
	c->count = now;
	c->cap = c->table.cap;
	c->table.beside = bytes;
	return GT_OK;
}

enum gt_code gt_vocab_count(struct gt_vocab_counter *c, const char *token, size_t n, struct gt_err *err)
{
	int32_t id;
	bool added;
	if (n > GT_TOKEN_MAX)
		return GT_OK;
	GT_TRY(gt_token_table_add(&c->table, token, n, &id, &added, err));
	if (id >= c->cap)
		GT_TRY(grow_counts(c, err));
	c->count[id]++;
	return GT_OK;
}

static int by_frequency(const void *a, const void *b, void *user)
{
	const struct gt_vocab_counter *c = user;
	int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
	if (c->count[i] != c->count[j])
		return c->count[i] < c->count[j] ? 1 : -1;
	size_t n, m;
	const char *p = gt_token_table_get(&c->table, i, &n), *q = gt_token_table_get(&c->table, j, &m);
	int order = memcmp(p, q, n < m ? n : m);
	return order ? order : n < m ? -1 : n > m;
}

static enum gt_code add_sorted(struct gt_vocab *v, const struct gt_vocab_counter *c, const int32_t *order, int32_t n, int64_t max_vocab,
                               struct gt_err *err)
{
	int32_t id;
	bool added;
	GT_TRY(gt_token_table_add(&v->table, GT_PAD_TOKEN, strlen(GT_PAD_TOKEN), &id, &added, err));
	GT_TRY(gt_token_table_add(&v->table, GT_UNK_TOKEN, strlen(GT_UNK_TOKEN), &id, &added, err));
	for (int32_t i = 0; i < n && v->table.n < max_vocab; i++) {
		size_t len;
		const char *p = gt_token_table_get(&c->table, order[i], &len);
		GT_TRY(gt_token_table_add(&v->table, p, len, &id, &added, err)); /* does nothing for a word that is like a special token */
	}
	return GT_OK;
}

enum gt_code gt_vocab_build(const struct gt_vocab_counter *c, int64_t min_freq, int64_t max_vocab, struct gt_vocab **out,
                            struct gt_err *err)
{
	*out = NULL;
	if (max_vocab < 3)
		return gt_fail(err, GT_EDATA, "expected a max_vocab of at least 3, for %s, %s and a word, got %lld", GT_PAD_TOKEN, GT_UNK_TOKEN,
		               (long long)max_vocab);
	size_t bytes = (size_t)(c->table.n ? c->table.n : 1) * sizeof(int32_t);
	int32_t *order = malloc(bytes), n = 0;
	if (!order)
		return gt_fail_memory(err, bytes);
	for (int32_t i = 0; i < c->table.n && i < c->cap; i++) /* the last one has no count if there was no memory for it */
		if (c->count[i] >= min_freq)
			order[n++] = i;
	enum gt_code code = GT_OK;
	if (!n)
		code = gt_fail(err, GT_EDATA, "expected a word that occurs at least %lld times (min_freq) in the training split, got none",
		               (long long)min_freq);
	else
		qsort_r(order, (size_t)n, sizeof *order, by_frequency, (void *)c);
	struct gt_vocab *v = NULL;
	if (code == GT_OK)
		code = gt_vocab_new(GT_VOCAB_WORDS, SIZE_MAX, &v, err);
	if (code == GT_OK)
		code = add_sorted(v, c, order, n, max_vocab, err);
	free(order);
	if (code != GT_OK) {
		gt_vocab_close(v);
		return code;
	}
	*out = v;
	return GT_OK;
}
