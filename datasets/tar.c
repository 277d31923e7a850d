#include "tar.h"
#include "base/arena.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512, MAX_PATH = 4096, MAX_PAX = 1 << 20 };

/* A header block: offsets of the fields of POSIX.1-1988 ustar. */
enum { NAME = 0, SIZE = 124, CHECKSUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };

struct tar {
	const struct gt_source *s;
	uint64_t bytes;       /* of the archive */
	uint64_t at;          /* offset of the next header */
	char path[MAX_PATH];  /* the path of the next member from a preceding 'L' or 'x' header; "": the path in its own header */
	uint64_t size;        /* its size from a preceding 'x' header; UINT64_MAX: the size in its own header */
	bool sparse;          /* a preceding 'x' header says that it is sparse */
};

static enum gt_code damaged(const struct tar *t, const char *why, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s: damaged tar archive: %s at byte %llu", t->s->root, why, (unsigned long long)t->at);
}

static enum gt_code read_at(const struct tar *t, void *buf, size_t n, uint64_t offset, struct gt_err *err)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(t->s->fd, (char *)buf + done, n - done, (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return gt_fail(err, GT_EIO, "%s: %s", t->s->root, strerror(errno));
		if (got == 0)
			return damaged(t, "it ends inside a member", err);
		done += (size_t)got;
	}
	return GT_OK;
}

/* Parses a number: octal digits ended by a space or NUL, or GNU's big-endian binary form, whose first byte is 0x80. */
static bool number(const uint8_t *p, int n, uint64_t *out)
{
	uint64_t v = 0;
	int i = 0;
	if (p[0] == 0x80) {
		for (i = 1; i < n; i++) {
			if (v >> 55)
				return false;
			v = v << 8 | p[i];
		}
		*out = v;
		return true;
	}
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	*out = v;
	return i == n || p[i] == ' ' || p[i] == 0;
}

static bool checksum_is_right(const uint8_t *h)
{
	uint64_t want, sum = 0;
	for (int i = 0; i < BLOCK; i++)
		sum += i >= CHECKSUM && i < CHECKSUM + 8 ? ' ' : h[i];
	return number(h + CHECKSUM, 8, &want) && want == sum;
}

static bool all_zero(const uint8_t *h)
{
	for (int i = 0; i < BLOCK; i++)
		if (h[i])
			return false;
	return true;
}

/* Parses a number of n decimal digits below 2^63. */
static bool decimal(const char *p, size_t n, uint64_t *out)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9' || v > (INT64_MAX - 9) / 10)
			return false;
		v = v * 10 + (uint64_t)(p[i] - '0');
	}
	*out = v;
	return n > 0;
}

/* Reads the records "LENGTH KEY=VALUE\n" of an 'x' header for the next member. */
static enum gt_code read_pax(struct tar *t, uint64_t offset, uint64_t size, struct gt_err *err)
{
	if (size > MAX_PAX)
		return damaged(t, "an extended header of more than 1 MiB", err);
	char *text = malloc(size + 1), *p = text, *end = text + size;
	if (!text)
		return gt_fail_memory(err, size + 1);
	enum gt_code code = read_at(t, text, size, offset, err);
	text[size] = 0;
	while (code == GT_OK && p < end) {
		char *rest;
		unsigned long n = *p >= '0' && *p <= '9' ? strtoul(p, &rest, 10) : (rest = p, 0);
		char *equals = *rest == ' ' ? strchr(rest, '=') : NULL;
		if (n < 5 || n > (size_t)(end - p) || !equals || equals >= p + n || p[n - 1] != '\n') {
			code = damaged(t, "an extended header that is not valid", err);
			break;
		}
		p[n - 1] = 0;
		*equals = 0;
		const char *key = rest + 1, *value = equals + 1;
		size_t len = (size_t)(p + n - 1 - value);
		if (!strcmp(key, "path")) {
			if (len >= sizeof t->path)
				code = damaged(t, "a path of more than 4095 bytes", err);
			else if (memchr(value, 0, len))
				code = damaged(t, "a path with a NUL byte", err);
			else
				strcpy(t->path, value);
		} else if (!strcmp(key, "size")) {
			if (!decimal(value, len, &t->size))
				code = damaged(t, "a size that is no number of bytes", err);
		} else if (!strncmp(key, "GNU.sparse.", 11)) {
			t->sparse = true;
		}
		p += n;
	}
	free(text);
	return code;
}

static enum gt_code read_long_name(struct tar *t, uint64_t offset, uint64_t size, struct gt_err *err)
{
	if (size >= sizeof t->path)
		return damaged(t, "a path of more than 4095 bytes", err);
	GT_TRY(read_at(t, t->path, size, offset, err));
	t->path[size] = 0;
	size_t len = strlen(t->path);
	if (!len)
		return damaged(t, "an empty long name", err);
	for (size_t i = len; i < size; i++)
		if (t->path[i])
			return damaged(t, "a long name with a NUL byte", err);
	return GT_OK;
}

/* Writes the path from the header itself: prefix/name in ustar, else name. */
static void header_path(const uint8_t *h, char *path)
{
	size_t n = 0;
	if (!memcmp(h + MAGIC, "ustar", 6) && h[PREFIX]) {
		n = strnlen((const char *)h + PREFIX, 155);
		memcpy(path, h + PREFIX, n);
		path[n++] = '/';
	}
	size_t name = strnlen((const char *)h + NAME, 100);
	memcpy(path + n, h + NAME, name);
	path[n + name] = 0;
}

static bool leaves_archive(const char *path)
{
	if (*path == '/')
		return true;
	for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
			return true;
	return false;
}

/* Removes what does not change a path: "./" and further slashes, as in "./a//b". */
static void clean(char *path)
{
	char *to = path;
	bool begin = true;
	for (const char *p = path; *p; p++) {
		if (begin && (*p == '/' || (p[0] == '.' && p[1] == '/'))) {
			p += *p == '.';
			continue;
		}
		begin = *p == '/';
		*to++ = *p;
	}
	*to = 0;
}

/* Adds the member that begins with header h, if it is wanted. */
static enum gt_code add_member(struct tar *t, struct gt_source *s, const uint8_t *h, uint64_t size, bool (*wanted)(const char *path),
                               struct gt_err *err)
{
	char own[300];
	char *path = t->path, type = (char)h[TYPE];
	if (!*path) {
		header_path(h, own);
		path = own;
	}
	if (*path != '/')
		clean(path);
	if (type == '5' || !wanted(path))
		return GT_OK;
	if (leaves_archive(path))
		return gt_fail(err, GT_EDATA, "%s: the path of member %.300s leads out of the archive", s->root, path);
	if (type == '1' || type == '2')
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a link; expected a regular file, because the archive is read in place", s->root,
		               path);
	if (type == 'S' || t->sparse)
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a sparse file; expected a regular file, because the archive is read in place",
		               s->root, path);
	if (type != '0' && type != 0 && type != '7')
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a special file of type '%c'; expected a regular file", s->root, path,
		               type >= ' ' && type < 127 ? type : '?');
	return gt_source_add(s, path, t->at + BLOCK, size, err);
}

static int by_path_and_place(const void *a, const void *b, void *names)
{
	const struct gt_source_file *x = a, *y = b;
	int d = strcmp((char *)names + x->name, (char *)names + y->name);
	return d ? d : (x->offset > y->offset) - (x->offset < y->offset);
}

/* Of members of the same path, keeps the last one, which tar would leave on the disk. */
static void keep_last(struct gt_source *s)
{
	int64_t kept = 0;
	if (s->n > 1)
		qsort_r(s->file, (size_t)s->n, sizeof *s->file, by_path_and_place, s->names);
	for (int64_t i = 0; i < s->n; i++)
		if (i + 1 == s->n || strcmp(gt_source_path(s, i), gt_source_path(s, i + 1)))
			s->file[kept++] = s->file[i];
	s->n = kept;
}

enum gt_code gt_tar_list(struct gt_source *s, bool (*wanted)(const char *path), struct gt_err *err)
{
	struct tar *t = calloc(1, sizeof *t);
	uint8_t h[BLOCK];
	struct stat st;
	enum gt_code code = GT_OK;
	int members = 0;
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	t->s = s;
	t->size = UINT64_MAX;
	if (fstat(s->fd, &st))
		code = gt_fail(err, GT_EIO, "%s: %s", s->root, strerror(errno));
	else
		t->bytes = (uint64_t)st.st_size;
	/* An archive ends with two blocks of zeros; one that ends exactly after a member is accepted, as by tar. */
	while (code == GT_OK && t->at < t->bytes) {
		uint64_t size;
		if ((code = read_at(t, h, BLOCK, t->at, err)) != GT_OK || all_zero(h))
			break;
		if (!checksum_is_right(h) || !number(h + SIZE, 12, &size)) {
			code = members ? damaged(t, "a header with a wrong checksum", err)
			               : gt_fail(err, GT_EDATA, "%s: expected a tar archive", s->root);
			break;
		}
		char type = (char)h[TYPE];
		bool extends = type == 'x' || type == 'g' || type == 'L' || type == 'K';
		if (!extends && t->size != UINT64_MAX)
			size = t->size;
		if (type == '1' || type == '2' || type == '5') /* links and folders have no content, whatever their header says */
			size = 0;
		if (size > t->bytes - t->at - BLOCK) {
			code = damaged(t, "a member is longer than the rest of the archive", err);
			break;
		}
		if (type == 'x')
			code = read_pax(t, t->at + BLOCK, size, err);
		else if (type == 'L')
			code = read_long_name(t, t->at + BLOCK, size, err);
		else if (!extends)
			code = add_member(t, s, h, size, wanted, err);
		if (!extends) {
			t->path[0] = 0;
			t->size = UINT64_MAX;
			t->sparse = false;
		}
		members++;
		t->at += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
	}
	free(t);
	if (code == GT_OK)
		keep_last(s);
	return code;
}
