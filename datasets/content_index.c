#include "content_index.h"
#include "index_file.h"
#include "index_place.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define NOT_USED "the images were read again, because the index of their contents could not be used: "
#define NOT_WRITTEN "the next command reads the images again, because no index of their contents was written: "
#define MOST ((int64_t)8 << 20) /* number of entries above which earlier ones are dropped, among them those of files that have changed */
#define CONTENT_BITS 48         /* of gt_sample_mark.content */

/* The version of the hashes. Increase it when gt_content_state or the content of an image changes. */
#define SETTINGS "contents of images, version 1"

/* tags of sections */
enum {
	SECTION_SETTINGS = 1, /* text: SETTINGS, and the real path of the directory in a second line */
	SECTION_ENTRIES       /* struct gt_content_entry [n], in ascending order of the states */
};

struct gt_content_index {
	struct gt_index_place place;
	struct gt_index *file; /* the mapped index; NULL: there is none */
	uint64_t inode;        /* of the file when it was opened; 0: there was none */
	const struct gt_content_entry *entry; /* [n] */
	int64_t n;
	/* The entries whose highest `bits` bits are b are entry[start[b] ... start[b + 1] - 1]. States are hashes, so these are few. */
	uint32_t *start;
	int bits;
};

uint64_t gt_content_state(const struct stat *st)
{
	const uint64_t v[] = {st->st_ino,
	                      (uint64_t)st->st_size,
	                      (uint64_t)st->st_mtim.tv_sec,
	                      (uint64_t)st->st_mtim.tv_nsec,
	                      (uint64_t)st->st_ctim.tv_sec,
	                      (uint64_t)st->st_ctim.tv_nsec};
	return XXH3_64bits(v, sizeof v);
}

/* ---- reading -------------------------------------------------------------------------------------------------------------------- */
static uint64_t top_bits(uint64_t state, int bits)
{
	return bits ? state >> (64 - bits) : 0;
}

/* Checks the entries, and fills x->start. Returns what is wrong; NULL: nothing. */
static const char *take_entries(struct gt_content_index *x, const struct gt_content_entry *entry, int64_t n)
{
	while (x->bits < 26 && n >> (x->bits + 3))
		x->bits++;
	size_t buckets = (size_t)1 << x->bits;
	if (!(x->start = calloc(buckets + 1, sizeof *x->start)))
		return "there is no memory to check it";
	for (int64_t i = 0; i < n; i++) {
		if ((i && entry[i].state <= entry[i - 1].state) || !entry[i].content || entry[i].content >> CONTENT_BITS)
			return "it contains values that are not possible";
		x->start[top_bits(entry[i].state, x->bits) + 1] = (uint32_t)(i + 1);
	}
	for (size_t b = 0; b < buckets; b++) /* empty ones end where those before them end */
		if (x->start[b + 1] < x->start[b])
			x->start[b + 1] = x->start[b];
	x->entry = entry;
	x->n = n;
	return NULL;
}

/* Maps the index file, if it exists. Returns the reason why it cannot be used, or NULL. */
static const char *open_file(struct gt_content_index *x, char *why, size_t size)
{
	uint64_t bytes;
	x->inode = gt_index_inode(&x->place);
	gt_index_open(x->place.path, &x->file, why, size);
	if (!x->file)
		return *why ? why : NULL;
	const char *settings = gt_index_section(x->file, SECTION_SETTINGS, &bytes);
	if (!settings || bytes != strlen(x->place.settings) || memcmp(settings, x->place.settings, bytes) != 0)
		return "it was made for another folder";
	const struct gt_content_entry *entry = gt_index_section(x->file, SECTION_ENTRIES, &bytes);
	if (!entry || bytes % sizeof *entry || bytes / sizeof *entry > UINT32_MAX)
		return "it contains values that are not possible";
	return take_entries(x, entry, (int64_t)(bytes / sizeof *entry));
}

static void drop_file(struct gt_content_index *x)
{
	gt_index_close(x->file);
	free(x->start);
	x->file = NULL;
	x->start = NULL;
	x->n = x->bits = 0;
}

void gt_content_index_open(const char *root, struct gt_content_index **out, char *note, size_t size)
{
	char real[PATH_MAX], settings[PATH_MAX + 100], why[200];
	struct gt_content_index *x = calloc(1, sizeof *x);
	*note = 0;
	*out = x;
	if (!x || !realpath(root, real)) {
		free(x);
		*out = NULL;
		return;
	}
	snprintf(settings, sizeof settings, SETTINGS "\n%s\n", real);
	if (!gt_index_place_of(real, settings, &x->place)) {
		snprintf(note, size, NOT_WRITTEN "neither XDG_CACHE_HOME nor HOME is set");
		gt_content_index_close(x);
		*out = NULL;
		return;
	}
	const char *wrong = open_file(x, why, sizeof why);
	if (wrong) {
		snprintf(note, size, NOT_USED "%s", wrong);
		drop_file(x);
	} else if (x->file) {
		gt_index_note_use(&x->place);
	}
}

void gt_content_index_close(struct gt_content_index *x)
{
	if (!x)
		return;
	drop_file(x);
	gt_index_place_free(&x->place);
	free(x);
}

int64_t gt_content_index_count(const struct gt_content_index *x)
{
	return x->n;
}

uint64_t gt_content_index_find(const struct gt_content_index *x, uint64_t state)
{
	if (!x->n)
		return 0;
	uint64_t b = top_bits(state, x->bits);
	for (uint32_t i = x->start[b]; i < x->start[b + 1]; i++)
		if (x->entry[i].state == state)
			return x->entry[i].content;
	return 0;
}

/* ---- writing -------------------------------------------------------------------------------------------------------------------- */
static int by_state(const void *a, const void *b)
{
	const struct gt_content_entry *x = a, *y = b;
	return (x->state > y->state) - (x->state < y->state);
}

/* Moves the entries with a content to the front, in the order of their states and each state once, and returns their number. */
static int64_t sort_entries(struct gt_content_entry *found, int64_t n)
{
	int64_t some = 0, kept = 0;
	for (int64_t i = 0; i < n; i++)
		if (found[i].content)
			found[some++] = found[i];
	if (some > 1)
		qsort(found, (size_t)some, sizeof *found, by_state);
	for (int64_t i = 0; i < some; i++)
		if (!kept || found[i].state != found[kept - 1].state)
			found[kept++] = found[i];
	return kept;
}

/* Merges two sorted lists into `to`, and returns the number of entries. New entries replace earlier ones of the same state. */
static int64_t merge_entries(const struct gt_content_entry *was, int64_t nwas, const struct gt_content_entry *found, int64_t nfound,
                             struct gt_content_entry *to)
{
	int64_t n = 0, i = 0, k = 0;
	while (i < nwas || k < nfound) {
		bool old = k >= nfound || (i < nwas && was[i].state < found[k].state);
		if (!old && i < nwas && was[i].state == found[k].state)
			i++;
		to[n++] = old ? was[i++] : found[k++];
	}
	return n;
}

static enum gt_code write_file(const struct gt_content_index *x, const struct gt_content_entry *entry, int64_t n, struct gt_err *err)
{
	struct gt_index_writer w;
	GT_TRY(gt_index_create(x->place.path, &w, err));
	enum gt_code code = gt_index_add(&w, SECTION_SETTINGS, x->place.settings, strlen(x->place.settings), err);
	if (code == GT_OK)
		code = gt_index_add(&w, SECTION_ENTRIES, entry, (uint64_t)n * sizeof *entry, err);
	if (code == GT_OK)
		code = gt_index_commit(&w, x->place.path, err);
	if (code != GT_OK)
		gt_index_abandon(&w);
	return code;
}

void gt_content_index_save(struct gt_content_index *x, struct gt_content_entry *found, int64_t n, char *note, size_t size)
{
	char why[512] = "";
	struct gt_err e = {0};
	int lock = -1;
	int64_t some = sort_entries(found, n), was = x->n + some <= (MOST > 4 * n ? MOST : 4 * n) ? x->n : 0;
	struct gt_content_entry *all = some ? malloc((size_t)(was + some) * sizeof *all) : NULL;
	if (!all)
		return; /* without memory for an index, the run may still have enough */
	int64_t total = merge_entries(x->entry, was, found, some, all);
	enum gt_code code = GT_OK;
	if (gt_index_lock(&x->place, (uint64_t)total * sizeof *all + 8192, &lock, why, sizeof why)) {
		uint64_t now = gt_index_inode(&x->place);
		if (!now || now == x->inode) /* otherwise another rank has read the same files and written its index */
			code = write_file(x, all, total, &e);
		gt_index_unlock(lock);
	}
	if (code != GT_OK || *why)
		snprintf(note, size, NOT_WRITTEN "%.500s", *why ? why : e.msg);
	free(all);
}
