/* ustar (POSIX pax, "ustar Interchange Format") inside gzip: blocks of 512 bytes; a header has the name at 0 (100 bytes), the size
 * in octal at 124, the sum of its bytes at 148, the type at 156, a prefix of the name at 345; the data follow, padded to a block. */
#include "fetch/fetch_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 512, CHUNK = 128 * 1024, MAX_HEADERS = 10000 };

struct stream {
	const char *path;
	int fd;
	z_stream z;
	unsigned char in[CHUNK], out[CHUNK];
	bool ended; /* of the file */
};

/* Reads exactly n bytes of the decompressed archive; *got is 0 at its end. */
static enum gt_code pull(struct stream *s, unsigned char *buf, size_t n, size_t *got, struct gt_err *err)
{
	s->z.next_out = buf;
	s->z.avail_out = (uInt)n;
	while (s->z.avail_out) {
		if (!s->z.avail_in && !s->ended) {
			ssize_t r = read(s->fd, s->in, CHUNK);
			if (r < 0 && errno == EINTR)
				continue;
			if (r < 0)
				return gt_fail(err, GT_EIO, "%s: %s", s->path, strerror(errno));
			s->ended = r == 0;
			s->z.next_in = s->in;
			s->z.avail_in = (uInt)r;
		}
		int zr = inflate(&s->z, Z_NO_FLUSH);
		if (zr == Z_STREAM_END && s->z.avail_out) {
			if (!s->z.avail_in && s->ended)
				break;
			if (s->z.avail_in)
				inflateReset(&s->z);
		} else if (zr != Z_OK && zr != Z_STREAM_END && !(zr == Z_BUF_ERROR && !s->ended)) {
			return gt_fail(err, GT_EDATA, "%s: gzip: %s", s->path, zr == Z_BUF_ERROR ? "truncated" : s->z.msg ? s->z.msg : "bad data");
		}
	}
	*got = n - s->z.avail_out;
	if (*got && *got < n)
		return gt_fail(err, GT_EDATA, "%s: truncated inside a block", s->path);
	return GT_OK;
}

static bool octal(const unsigned char *p, size_t n, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;
	while (i < n && p[i] == ' ')
		i++;
	if (i == n || p[i] < '0' || p[i] > '7')
		return false;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0'); /* at most 12 digits: 36 bits */
	*out = v;
	return i == n || !p[i] || p[i] == ' ';
}

static bool sum_ok(const unsigned char *b)
{
	uint64_t want, sum = 8 * ' ';
	for (int i = 0; i < BLOCK; i++)
		sum += i < 148 || i >= 156 ? b[i] : 0;
	return octal(b + 148, 8, &want) && want == sum;
}

static void name_of(const unsigned char *b, char *name)
{
	int prefix = !memcmp(b + 257, "ustar", 6) ? (int)strnlen((const char *)b + 345, 155) : 0; /* GNU's old format has no prefix */
	sprintf(name, "%.*s%s%.100s", prefix, (const char *)b + 345, prefix ? "/" : "", (const char *)b);
}

static enum gt_code write_all(int fd, const char *path, const unsigned char *p, size_t n, struct gt_err *err)
{
	while (n) {
		ssize_t w = write(fd, p, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return gt_fail(err, GT_EIO, "%s: %s", path, strerror(errno));
		p += w;
		n -= (size_t)w;
	}
	return GT_OK;
}

/* Copies the data of one member to fd and the digest, or skips it (fd < 0). */
static enum gt_code body(struct stream *s, uint64_t size, int fd, const char *path, struct gt_published *d, struct gt_err *err)
{
	for (uint64_t left = (size + BLOCK - 1) / BLOCK * BLOCK, data = size; left;) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK, got, useful = data < want ? (size_t)data : want;
		GT_TRY(pull(s, s->out, want, &got, err));
		if (!got)
			return gt_fail(err, GT_EDATA, "%s: truncated inside a member", s->path);
		if (d)
			gt_published_add(d, s->out, useful);
		if (fd >= 0)
			GT_TRY(write_all(fd, path, s->out, useful, err));
		left -= want;
		data -= useful;
	}
	return GT_OK;
}

static enum gt_code take(struct stream *s, const char *dir, const struct gt_known_member *m, struct gt_err *err)
{
	char part[GT_FETCH_PATH + 300], final[GT_FETCH_PATH + 300];
	struct gt_published *d = NULL;
	snprintf(part, sizeof part, "%s/%s.part", dir, m->name);
	snprintf(final, sizeof final, "%s/%s", dir, m->name);
	int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return gt_fail(err, GT_ECANTCREAT, "%s: %s", part, strerror(errno));
	enum gt_code rc = m->sha256 ? gt_published_open(NULL, m->sha256, &d, err) : GT_OK;
	if (rc == GT_OK)
		rc = body(s, m->size, fd, part, d, err);
	bool good = d ? gt_published_close(d) : !m->sha256;
	if (rc == GT_OK && !good)
		rc = gt_fail(err, GT_EDATA, "%s: the SHA-256 digest of %s differs from the published one", s->path, m->path);
	if (rc == GT_OK && fsync(fd))
		rc = gt_fail(err, GT_EIO, "%s: %s", part, strerror(errno));
	if (close(fd) && rc == GT_OK)
		rc = gt_fail(err, GT_EIO, "%s: %s", part, strerror(errno));
	if (rc == GT_OK && rename(part, final))
		rc = gt_fail(err, GT_ECANTCREAT, "%s: %s", final, strerror(errno));
	if (rc != GT_OK)
		unlink(part);
	return rc;
}

static enum gt_code walk(struct stream *s, const char *dir, const struct gt_known_member *members, int n, struct gt_err *err)
{
	static const unsigned char zero[BLOCK];
	unsigned taken = 0;
	for (int count = 0; taken != (1u << n) - 1; count++) {
		unsigned char b[BLOCK];
		char name[300];
		size_t got;
		uint64_t size;
		GT_TRY(pull(s, b, BLOCK, &got, err));
		if (!got || !memcmp(b, zero, BLOCK) || count == MAX_HEADERS)
			break;
		if (!sum_ok(b) || !octal(b + 124, 12, &size))
			return gt_fail(err, GT_EDATA, "%s: a damaged tar header", s->path);
		name_of(b, name);
		int k = 0;
		while (k < n && strcmp(members[k].path, name + (strncmp(name, "./", 2) ? 0 : 2)))
			k++;
		if (k == n) {
			GT_TRY(body(s, size, -1, "", NULL, err));
			continue;
		}
		if ((b[156] != '0' && b[156]) || size != members[k].size)
			return gt_fail(err, GT_EDATA, "%s: expected %s to be a file of %llu bytes", s->path, name, (unsigned long long)members[k].size);
		GT_TRY(take(s, dir, &members[k], err));
		taken |= 1u << k;
	}
	for (int k = 0; k < n; k++)
		if (!(taken & 1u << k))
			return gt_fail(err, GT_EDATA, "%s: the file %s is not in the archive", s->path, members[k].path);
	return GT_OK;
}

enum gt_code gt_untar(const char *path, const char *dir, const struct gt_known_member *members, int n, struct gt_err *err)
{
	struct stream *s = calloc(1, sizeof *s);
	if (!s || inflateInit2(&s->z, 15 + 16) != Z_OK) {
		free(s);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	s->path = path;
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	enum gt_code rc = s->fd < 0 ? gt_fail(err, GT_EIO, "%s: %s", path, strerror(errno)) : walk(s, dir, members, n, err);
	if (s->fd >= 0)
		close(s->fd);
	inflateEnd(&s->z);
	free(s);
	return rc;
}
