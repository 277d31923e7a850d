#include "index_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define PAGE ((uint64_t)4096) /* alignment of sections; gt_index_drop has no effect on systems with larger pages */

struct gt_index {
	struct gt_index_header header;
	uint8_t *base;
	uint64_t bytes;
};

static uint64_t hash_header(const struct gt_index_header *h)
{
	return XXH3_64bits(h, sizeof *h - sizeof h->hash);
}

/* ---- writing -------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_index_create(const char *path, struct gt_index_writer *w, struct gt_err *err)
{
	*w = (struct gt_index_writer){.fd = -1, .header = {.magic = GT_INDEX_MAGIC, .version = GT_INDEX_VERSION, .bytes = PAGE}};
	return gt_file_create_temporary(w->temporary, path, 0600, &w->fd, err);
}

enum gt_code gt_index_add(struct gt_index_writer *w, uint32_t tag, const void *data, uint64_t bytes, struct gt_err *err)
{
	struct gt_index_header *h = &w->header;
	uint64_t at = (h->bytes + PAGE - 1) / PAGE * PAGE;
	if (!bytes)
		return GT_OK;
	if (h->nsections == GT_INDEX_SECTIONS)
		return gt_fail(err, GT_EINTERNAL, "%s: more than %d sections", w->temporary, GT_INDEX_SECTIONS);
	if (lseek(w->fd, (off_t)at, SEEK_SET) < 0)
		return gt_fail_errno(err, GT_EIO, errno, "%s", w->temporary);
	GT_TRY(gt_file_write(w->fd, w->temporary, data, bytes, err));
	h->section[h->nsections++] = (struct gt_index_entry){tag, 0, at, bytes, XXH3_64bits(data, bytes)};
	h->bytes = at + bytes;
	return GT_OK;
}

enum gt_code gt_index_commit(struct gt_index_writer *w, const char *path, struct gt_err *err)
{
	w->header.hash = hash_header(&w->header);
	if (ftruncate(w->fd, (off_t)w->header.bytes) || lseek(w->fd, 0, SEEK_SET) < 0)
		return gt_fail_errno(err, GT_EIO, errno, "%s", w->temporary);
	GT_TRY(gt_file_write(w->fd, w->temporary, &w->header, sizeof w->header, err));
	int fd = w->fd;
	w->fd = -1;
	if (close(fd) || rename(w->temporary, path))
		return gt_fail_errno(err, GT_EIO, errno, "%s", path);
	return GT_OK;
}

void gt_index_abandon(struct gt_index_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	if (*w->temporary)
		unlink(w->temporary);
}

/* ---- reading -------------------------------------------------------------------------------------------------------------------- */
/* Returns what is wrong with the header of a file of `bytes` bytes; NULL: nothing. */
static const char *check_header(const struct gt_index_header *h, uint64_t bytes)
{
	uint64_t end = sizeof *h;
	if (memcmp(h->magic, GT_INDEX_MAGIC, sizeof h->magic) != 0 || h->version != GT_INDEX_VERSION)
		return "its format is not that of this gtrain";
	if (h->hash != hash_header(h))
		return "its header is damaged";
	if (h->bytes != bytes)
		return bytes < h->bytes ? "it is shorter than its header says" : "it is longer than its header says";
	if (h->nsections > GT_INDEX_SECTIONS)
		return "it has too many sections";
	for (uint32_t i = 0; i < h->nsections; i++) { /* the sections are in the order of the file */
		const struct gt_index_entry *s = &h->section[i];
		if (s->offset % PAGE || s->offset < end || s->offset > bytes || s->bytes > bytes - s->offset)
			return "a section is outside of the file";
		end = s->offset + s->bytes;
	}
	return NULL;
}

static const char *check_hashes(const struct gt_index *ix)
{
	const char *why = NULL;
	XXH3_state_t *state = XXH3_createState();
	if (!state)
		return "there is no memory to check it";
	for (uint32_t i = 0; i < ix->header.nsections && !why; i++) {
		const struct gt_index_entry *s = &ix->header.section[i];
		XXH3_64bits_reset(state);
		for (uint64_t at = 0; at < s->bytes; at += GT_INDEX_BLOCK) {
			uint64_t n = s->bytes - at < GT_INDEX_BLOCK ? s->bytes - at : GT_INDEX_BLOCK;
			XXH3_64bits_update(state, ix->base + s->offset + at, n);
			gt_index_drop(ix, ix->base + s->offset + at, n);
		}
		if (XXH3_64bits_digest(state) != s->hash)
			why = "it is damaged";
	}
	XXH3_freeState(state);
	return why;
}

/* Maps the open file and checks it. Returns what is wrong; NULL: nothing. */
static const char *map_file(int fd, uint64_t bytes, struct gt_index *ix)
{
	struct stat st;
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return "another user can change it";
	if (bytes < sizeof ix->header || gt_file_pread(fd, "", &ix->header, sizeof ix->header, 0, NULL) != GT_OK)
		return "it is shorter than a header";
	const char *why = check_header(&ix->header, bytes);
	if (why)
		return why;
	void *p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return "it cannot be mapped into memory";
	ix->base = p;
	ix->bytes = bytes;
	return check_hashes(ix);
}

void gt_index_open(const char *path, struct gt_index **out, char *why, size_t size)
{
	int fd = -1;
	uint64_t bytes = 0;
	struct gt_err e = {0};
	*out = NULL;
	*why = 0;
	if (gt_file_open_own(path, &fd, &bytes, &e) != GT_OK)
		snprintf(why, size, "%s", e.msg);
	if (fd < 0)
		return;
	struct gt_index *ix = calloc(1, sizeof *ix);
	const char *wrong = ix ? map_file(fd, bytes, ix) : "there is no memory to read it";
	close(fd);
	if (!wrong) {
		*out = ix;
		return;
	}
	snprintf(why, size, "%s", wrong);
	gt_index_close(ix);
}

void gt_index_close(struct gt_index *ix)
{
	if (ix && ix->base)
		munmap(ix->base, ix->bytes);
	free(ix);
}

const void *gt_index_section(const struct gt_index *ix, uint32_t tag, uint64_t *bytes)
{
	for (uint32_t i = 0; i < ix->header.nsections; i++)
		if (ix->header.section[i].tag == tag && ix->header.section[i].bytes) {
			*bytes = ix->header.section[i].bytes;
			return ix->base + ix->header.section[i].offset;
		}
	*bytes = 0;
	return NULL;
}

bool gt_index_owns(const struct gt_index *ix, const void *p)
{
	return ix && p && (uintptr_t)p >= (uintptr_t)ix->base && (uintptr_t)p - (uintptr_t)ix->base < ix->bytes;
}

void gt_index_drop_all(const struct gt_index *ix)
{
	if (ix)
		madvise(ix->base, ix->bytes, MADV_DONTNEED);
}

void gt_index_drop(const struct gt_index *ix, const void *p, uint64_t n)
{
	uintptr_t first = ((uintptr_t)p + PAGE - 1) / PAGE * PAGE, last = ((uintptr_t)p + n) / PAGE * PAGE;
	if (gt_index_owns(ix, p) && last > first)
		madvise((void *)first, last - first, MADV_DONTNEED);
}
