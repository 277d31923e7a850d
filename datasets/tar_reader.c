#include "tar_reader.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, MAX_PAX = 1 << 20 };

/* Offsets of the fields in a header block of POSIX.1-1988 ustar. */
enum { NAME = 0, SIZE = 124, CHECKSUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };

/* Facts about the next member from 'L' and 'x' headers. Their path is in the reader; "": use the path in the member's own header. */
struct announced {
	uint64_t size; /* UINT64_MAX: use the size in the member's own header */
	bool sparse;
};

static enum gt_code refuse_damaged(const struct gt_tar_reader *t, const char *why, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s: damaged tar archive: %s at byte %llu", t->name, why, (unsigned long long)t->at);
}

/* Reads the content of the header at t->at. */
static enum gt_code read_content(const struct gt_tar_reader *t, void *buf, size_t n, struct gt_err *err)
{
	size_t got;
	GT_TRY(t->read(t->user, t->at + BLOCK, buf, n, &got, err));
	return got == n ? GT_OK : refuse_damaged(t, "the archive ends inside a member", err);
}

/* Parses a number: octal digits ended by a space or NUL, or GNU's big-endian binary form, whose first byte is 0x80. */
static bool parse_number(const uint8_t *p, int n, uint64_t *out)
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
	return parse_number(h + CHECKSUM, 8, &want) && want == sum;
}

/* Parses a number of n decimal digits below 2^63. */
static bool parse_decimal(const char *p, size_t n, uint64_t *out)
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

/* Reads the records "LENGTH KEY=VALUE\n" of an 'x' header, which describe the next member. */
static enum gt_code read_pax(struct gt_tar_reader *t, uint64_t size, struct announced *next, struct gt_err *err)
{
	if (size > MAX_PAX)
		return refuse_damaged(t, "an extended header of more than 1 MiB", err);
	char *text = malloc(size + 1), *p = text, *end = text + size;
	if (!text)
		return gt_fail_memory(err, size + 1);
	enum gt_code code = read_content(t, text, size, err);
	text[size] = 0;
	while (code == GT_OK && p < end) {
		char *rest;
		unsigned long n = *p >= '0' && *p <= '9' ? strtoul(p, &rest, 10) : (rest = p, 0);
		char *equals = *rest == ' ' ? strchr(rest, '=') : NULL;
		if (n < 5 || n > (size_t)(end - p) || !equals || equals >= p + n || p[n - 1] != '\n') {
			code = refuse_damaged(t, "an extended header that is not valid", err);
			break;
		}
		p[n - 1] = 0;
		*equals = 0;
		const char *key = rest + 1, *value = equals + 1;
		size_t len = (size_t)(p + n - 1 - value);
		if (!strcmp(key, "path")) {
			if (len >= sizeof t->path)
				code = refuse_damaged(t, "a path of more than 4095 bytes", err);
			else if (memchr(value, 0, len))
				code = refuse_damaged(t, "a path with a NUL byte", err);
			else
				strcpy(t->path, value);
		} else if (!strcmp(key, "size")) {
			if (!parse_decimal(value, len, &next->size))
				code = refuse_damaged(t, "a size that is not a number", err);
		} else if (!strncmp(key, "GNU.sparse.", 11)) {
			next->sparse = true;
		}
		p += n;
	}
	free(text);
	return code;
}

static enum gt_code read_long_name(struct gt_tar_reader *t, uint64_t size, struct gt_err *err)
{
	if (size >= sizeof t->path)
		return refuse_damaged(t, "a path of more than 4095 bytes", err);
	GT_TRY(read_content(t, t->path, size, err));
	t->path[size] = 0;
	size_t len = strlen(t->path);
	if (!len)
		return refuse_damaged(t, "an empty long name", err);
	for (size_t i = len; i < size; i++)
		if (t->path[i])
			return refuse_damaged(t, "a long name with a NUL byte", err);
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

void gt_tar_clean_path(char *path)
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

bool gt_tar_path_leaves(const char *path)
{
	if (*path == '/')
		return true;
	for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
			return true;
	return false;
}

enum gt_code gt_tar_next(struct gt_tar_reader *t, struct gt_tar_member *out, struct gt_err *err)
{
	struct announced next = {.size = UINT64_MAX};
	uint8_t h[BLOCK];
	*out = (struct gt_tar_member){0};
	for (t->path[0] = 0;; t->headers++) {
		uint64_t size;
		size_t got;
		GT_TRY(t->read(t->user, t->at, h, BLOCK, &got, err));
		if (!got || (got == BLOCK && !*h && !memcmp(h, h + 1, BLOCK - 1)) /* all bytes are 0 */)
			return GT_OK;
		if (got < BLOCK)
			return refuse_damaged(t, "the archive ends inside a member", err);
		if (!checksum_is_right(h) || !parse_number(h + SIZE, 12, &size))
			return t->headers ? refuse_damaged(t, "a header with a wrong checksum", err)
			                  : gt_fail(err, GT_EDATA, "%s: expected a tar archive", t->name);
		char type = (char)h[TYPE];
		bool extends = type == 'x' || type == 'g' || type == 'L' || type == 'K';
		if (!extends && next.size != UINT64_MAX)
			size = next.size;
		if (type == '1' || type == '2' || type == '5') /* links and folders have no content; the size in their header is ignored */
			size = 0;
		if (t->bytes - t->at < BLOCK || size > t->bytes - t->at - BLOCK)
			return refuse_damaged(t, "a member is longer than the rest of the archive", err);
		if (type == 'x')
			GT_TRY(read_pax(t, size, &next, err));
		else if (type == 'L')
			GT_TRY(read_long_name(t, size, err));
		uint64_t content = t->at + BLOCK;
		t->at = content + (size + BLOCK - 1) / BLOCK * BLOCK;
		if (extends)
			continue;
		t->headers++;
		if (!t->path[0])
			header_path(h, t->path);
		if (t->path[0] != '/')
			gt_tar_clean_path(t->path);
		*out = (struct gt_tar_member){.path = t->path, .offset = content, .size = size, .type = type, .sparse = type == 'S' || next.sparse};
		return GT_OK;
	}
}

bool gt_tar_is_file(const struct gt_tar_member *m)
{
	return (m->type == '0' || m->type == 0 || m->type == '7') && !m->sparse;
}
