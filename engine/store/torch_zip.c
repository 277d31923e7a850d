#include "store/torch_zip.h"
#include "base/bytes.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	END = 22, /* bytes of the end-of-directory record without the archive's comment */
	END64 = 56,
	LOCATOR = 20,
	ENTRY = 46, /* bytes of a directory entry without the member's name */
	LOCAL = 30, /* bytes of a member's local header without its name */
	COMMENT_MAX = 65535,
	MEMBERS_MAX = 400100 /* maximum number of members: a storage for each of GT_ST_TENSORS_MAX tensors, and a few other members */
};

/* The archive in memory, and the location of its directory. */
struct archive {
	const unsigned char *file;
	uint64_t bytes, at, count;
	const char *path;
};

static enum gt_code fail_damaged(const struct archive *z, const char *what, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s: expected a complete zip archive of PyTorch, got a damaged one (%s); copy or download it again",
	               z->path, what);
}

/* Returns the end-of-directory record, which only the archive's comment follows; NULL: not found. */
static const unsigned char *find_end(const struct archive *z)
{
	uint64_t last = z->bytes < END ? 0 : z->bytes - END, first = last < COMMENT_MAX ? 0 : last - COMMENT_MAX;
	for (uint64_t at = last + 1; z->bytes >= END && at-- > first;)
		if (!memcmp(z->file + at, "PK\5\6", 4) && gt_get_le(z->file + at + 20, 2) == z->bytes - at - END)
			return z->file + at;
	return NULL;
}

/* Reads count and location of the directory from the zip64 end record, if they do not fit into the end record. */
static enum gt_code read_end64(struct archive *z, const unsigned char *end, struct gt_err *err)
{
	if (end - z->file < LOCATOR || memcmp(end - LOCATOR, "PK\6\7", 4) != 0)
		return fail_damaged(z, "no zip64 locator", err);
	uint64_t at = gt_get_le(end - LOCATOR + 8, 8);
	if (at > z->bytes || z->bytes - at < END64 || memcmp(z->file + at, "PK\6\6", 4) != 0)
		return fail_damaged(z, "no zip64 end record", err);
	z->count = gt_get_le(z->file + at + 32, 8);
	z->at = gt_get_le(z->file + at + 48, 8);
	return GT_OK;
}

static enum gt_code find_directory(struct archive *z, struct gt_err *err)
{
	const unsigned char *end = find_end(z);
	if (!end)
		return fail_damaged(z, "its end is missing", err);
	z->count = gt_get_le(end + 10, 2);
	z->at = gt_get_le(end + 16, 4);
	if (z->count == UINT16_MAX || z->at == UINT32_MAX)
		GT_TRY(read_end64(z, end, err));
	return z->count <= MEMBERS_MAX ? GT_OK
	                               : gt_fail(err, GT_EDATA, "%s: the archive has %llu members, but at most %d are supported", z->path,
	                                         (unsigned long long)z->count, MEMBERS_MAX);
}

/* Reads the zip64 field of an entry's extra data. value: two sizes and an offset; those that are 2^32 - 1 are replaced by the values in the
 * field, which lists them in this order. Returns false if the field is damaged. */
static bool read_extra(const unsigned char *p, size_t n, uint64_t *const value[3])
{
	while (n >= 4) {
		size_t id = gt_get_le(p, 2), len = gt_get_le(p + 2, 2), at = 4;
		if (len > n - 4)
			return false;
		for (int i = 0; id == 1 && i < 3; i++) {
			if (*value[i] != UINT32_MAX)
				continue;
			if (at + 8 > len + 4)
				return false;
			*value[i] = gt_get_le(p + at, 8);
			at += 8;
		}
		p += 4 + len;
		n -= 4 + len;
	}
	return true;
}

/* Sets the start of a member's data, which only the member's local header at byte `local` tells. */
static enum gt_code read_local(const struct archive *z, uint64_t local, struct gt_zip_member *m, struct gt_err *err)
{
	if (local > z->bytes || z->bytes - local < LOCAL || memcmp(z->file + local, "PK\3\4", 4) != 0)
		return fail_damaged(z, "a member has no header", err);
	m->begin = local + LOCAL + gt_get_le(z->file + local + 26, 2) + gt_get_le(z->file + local + 28, 2);
	if (m->begin > z->bytes || m->size > z->bytes - m->begin)
		return fail_damaged(z, "a member extends beyond the end of the file", err);
	return GT_OK;
}

/* Reads the directory entry at byte *at, and moves *at to the next entry. */
static enum gt_code read_entry(const struct archive *z, uint64_t *at, struct gt_zip_member *m, struct gt_err *err)
{
	if (*at > z->bytes || z->bytes - *at < ENTRY || memcmp(z->file + *at, "PK\1\2", 4) != 0)
		return fail_damaged(z, "its directory is truncated", err);
	const unsigned char *p = z->file + *at;
	size_t name = gt_get_le(p + 28, 2), extra = gt_get_le(p + 30, 2), rest = name + extra + gt_get_le(p + 32, 2);
	uint64_t packed = gt_get_le(p + 20, 4), size = gt_get_le(p + 24, 4), local = gt_get_le(p + 42, 4);
	if (z->bytes - *at - ENTRY < rest || !read_extra(p + ENTRY + name, extra, (uint64_t *const[]){&size, &packed, &local}))
		return fail_damaged(z, "its directory is truncated", err);
	if (gt_get_le(p + 10, 2) != 0 || packed != size || gt_get_le(p + 8, 2) & 1)
		return gt_fail(err, GT_EDATA,
		               "%s: expected an archive as torch.save writes it, without compression, got an archive with compressed or encrypted "
		               "members", z->path);
	*m = (struct gt_zip_member){.name = (const char *)p + ENTRY, .len = name, .size = size};
	*at += ENTRY + rest;
	return read_local(z, local, m, err);
}

static int compare_names(const char *a, size_t na, const char *b, size_t nb)
{
	int d = memcmp(a, b, na < nb ? na : nb);
	return d ? d : na < nb ? -1 : na > nb;
}

static int compare_members(const void *pa, const void *pb)
{
	const struct gt_zip_member *a = pa, *b = pb;
	return compare_names(a->name, a->len, b->name, b->len);
}

enum gt_code gt_zip_read(const unsigned char *file, uint64_t bytes, const char *path, struct gt_arena *a, struct gt_zip *out,
                         struct gt_err *err)
{
	struct archive z = {.file = file, .bytes = bytes, .path = path};
	GT_TRY(find_directory(&z, err));
	if (z.count > bytes / ENTRY)
		return fail_damaged(&z, "its directory is truncated", err);
	out->n = (int)z.count;
	GT_NEW(out->member, a, out->n + 1, err);
	for (int i = 0; i < out->n; i++)
		GT_TRY(read_entry(&z, &z.at, &out->member[i], err));
	qsort(out->member, (size_t)out->n, sizeof *out->member, compare_members);
	for (int i = 1; i < out->n; i++)
		if (!compare_members(&out->member[i - 1], &out->member[i]))
			return fail_damaged(&z, "two members have the same name", err);
	return GT_OK;
}

static int compare_key(const void *name, const void *m)
{
	const struct gt_zip_member *b = m;
	return compare_names(name, strlen(name), b->name, b->len);
}

const struct gt_zip_member *gt_zip_find(const struct gt_zip *z, const char *name)
{
	return z->n ? bsearch(name, z->member, (size_t)z->n, sizeof *z->member, compare_key) : NULL;
}
