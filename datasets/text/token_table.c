#include "text/token_table.h"
#include "base/arena.h"
#include "base/bytes.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_SLOTS = 64, FIRST_TOKENS = 32, FIRST_TEXT = 256 };

static inline uint32_t hash_of(const struct gt_token_table *t, const char *p, size_t n)
{
	uint64_t h = XXH3_64bits_withSeed(p, n, t->seed);
	return (uint32_t)(h ^ h >> 32);
}

size_t gt_token_table_bytes(const struct gt_token_table *t)
{
	return (size_t)t->text_cap + (size_t)t->cap * sizeof *t->end + (t->slot ? ((size_t)t->mask + 1) * sizeof *t->slot : 0);
}

bool gt_token_table_fits(const struct gt_token_table *t, size_t bytes)
{
	size_t used = gt_token_table_bytes(t) + t->beside;
	return used <= t->max_bytes && bytes <= t->max_bytes - used;
}

enum gt_code gt_token_table_full(const struct gt_token_table *t, struct gt_err *err)
{
	char limit[GT_BYTES_TEXT];
	return gt_fail(err, GT_EDATA, "expected a vocabulary of at most %s in memory, got more after %d different words",
	               gt_bytes_text(limit, sizeof limit, t->max_bytes), t->n);
}

/* Allocates memory that fits into the limit beside all that the table has now. */
static enum gt_code alloc_limited(const struct gt_token_table *t, size_t bytes, void **out, struct gt_err *err)
{
	if (!gt_token_table_fits(t, bytes))
		return gt_token_table_full(t, err);
	*out = malloc(bytes);
	return *out ? GT_OK : gt_fail_memory(err, bytes);
}

static enum gt_code double_slots(struct gt_token_table *t, struct gt_err *err)
{
	size_t old = t->slot ? (size_t)t->mask + 1 : 0, slots = old ? 2 * old : FIRST_SLOTS;
	void *p;
	GT_TRY(alloc_limited(t, slots * sizeof *t->slot, &p, err));
	struct gt_token_slot *now = memset(p, 0, slots * sizeof *now);
	for (size_t i = 0; i < old; i++)
		if (t->slot[i].id1) {
			size_t at = t->slot[i].hash & (slots - 1);
			while (now[at].id1)
				at = (at + 1) & (slots - 1);
			now[at] = t->slot[i];
		}
	free(t->slot);
	t->slot = now;
	t->mask = (uint32_t)(slots - 1);
	return GT_OK;
}

enum gt_code gt_token_table_open(struct gt_token_table *t, size_t max_bytes, struct gt_err *err)
{
	*t = (struct gt_token_table){.max_bytes = max_bytes};
	/* Without random numbers (an old kernel, a sandbox) the seed is 0: slower on texts made for that, and nothing else. */
	if (getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) != (ssize_t)sizeof t->seed)
		t->seed = 0;
	return double_slots(t, err);
}

void gt_token_table_close(struct gt_token_table *t)
{
	free(t->text);
	free(t->end);
	free(t->slot);
	*t = (struct gt_token_table){0};
}

static inline bool slot_has(const struct gt_token_table *t, const struct gt_token_slot *s, uint32_t hash, const char *p, size_t n)
{
	if (s->hash != hash)
		return false;
	size_t len;
	const char *q = gt_token_table_get(t, (int32_t)(s->id1 - 1), &len);
	return len == n && !memcmp(q, p, n);
}

/* Returns the slot of the string, or the empty slot where it belongs. */
static inline struct gt_token_slot *find_slot(const struct gt_token_table *t, uint32_t hash, const char *p, size_t n)
{
	uint32_t i = hash & t->mask;
	while (t->slot[i].id1 && !slot_has(t, &t->slot[i], hash, p, n))
		i = (i + 1) & t->mask;
	return &t->slot[i];
}

int32_t gt_token_table_find(const struct gt_token_table *t, const char *p, size_t n)
{
	return (int32_t)find_slot(t, hash_of(t, p, n), p, n)->id1 - 1;
}

static enum gt_code reserve_token(struct gt_token_table *t, size_t n, struct gt_err *err)
{
	size_t used = t->n ? t->end[t->n - 1] : 0;
	void *p;
	if (t->n == GT_TOKEN_TABLE_MAX || n > UINT32_MAX / 2 - used)
		return gt_fail(err, GT_EDATA, "expected at most %d different words of together at most 2 GiB, got more", GT_TOKEN_TABLE_MAX);
	if (n > t->text_cap - used) {
		size_t bytes = t->text_cap ? 2 * (size_t)t->text_cap : FIRST_TEXT;
		while (bytes < used + n)
			bytes *= 2;
		GT_TRY(alloc_limited(t, bytes, &p, err));
		if (used)
			memcpy(p, t->text, used);
		free(t->text);
		t->text = p;
		t->text_cap = (uint32_t)bytes;
	}
	if (t->n == t->cap) {
		int32_t cap = t->cap ? 2 * t->cap : FIRST_TOKENS;
		GT_TRY(alloc_limited(t, (size_t)cap * sizeof *t->end, &p, err));
		if (t->n)
			memcpy(p, t->end, (size_t)t->n * sizeof *t->end);
		free(t->end);
		t->end = p;
		t->cap = cap;
	}
	return (uint32_t)t->n <= t->mask / 2 ? GT_OK : double_slots(t, err);
}

static enum gt_code put_token(struct gt_token_table *t, uint32_t hash, const char *p, size_t n, struct gt_err *err)
{
	GT_TRY(reserve_token(t, n, err));
	size_t used = t->n ? t->end[t->n - 1] : 0;
	if (n)
		memcpy(t->text + used, p, n);
	t->end[t->n] = (uint32_t)(used + n);
	if (n > t->longest)
		t->longest = (uint32_t)n;
	struct gt_token_slot *s = find_slot(t, hash, p, n);
	s->hash = hash;
	s->id1 = (uint32_t)++t->n;
	return GT_OK;
}

enum gt_code gt_token_table_append(struct gt_token_table *t, const char *p, size_t n, struct gt_err *err)
{
	return put_token(t, hash_of(t, p, n), p, n, err);
}

enum gt_code gt_token_table_add(struct gt_token_table *t, const char *p, size_t n, int32_t *id, bool *added, struct gt_err *err)
{
	uint32_t hash = hash_of(t, p, n);
	*id = (int32_t)find_slot(t, hash, p, n)->id1 - 1;
	*added = *id < 0;
	if (!*added)
		return GT_OK;
	GT_TRY(put_token(t, hash, p, n, err));
	*id = t->n - 1;
	return GT_OK;
}
