/* Members of a tar archive inside gzip. The archive is decompressed once, from its begin to the last member that is wanted. */
#include "fetch/fetch_parts.h"
#include "tar_reader.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK = 128 * 1024, MAX_MEMBERS = 10000 };

struct stream {
	const char *path;
	int fd;
	z_stream z;
	unsigned char in[CHUNK], out[CHUNK];
	bool ended;  /* the file has been read to its end */
	uint64_t at; /* number of bytes that have been decompressed */
};

/* Reads the next n bytes of the decompressed archive; *got is less only at its end. */
static enum gt_code read_decompressed(struct stream *s, unsigned char *buf, size_t n, size_t *got, struct gt_err *err)
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
	s->at += *got;
	return GT_OK;
}

/* A gt_tar_read: decompresses and drops what comes before `offset`. */
static enum gt_code pull_at(void *user, uint64_t offset, void *buf, size_t n, size_t *got, struct gt_err *err)
{
	struct stream *s = user;
	while (s->at < offset) {
		uint64_t left = offset - s->at;
		GT_TRY(read_decompressed(s, s->out, left < CHUNK ? (size_t)left : CHUNK, got, err));
		if (!*got)
			return GT_OK;
	}
	return read_decompressed(s, buf, n, got, err);
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

/* Copies the content of a member to fd and to the digest, which may be NULL. */
static enum gt_code copy_content(struct stream *s, const struct gt_tar_member *m, int fd, const char *path, struct gt_published *d,
                                 struct gt_err *err)
{
	for (uint64_t done = 0; done < m->size;) {
		size_t want = m->size - done < CHUNK ? (size_t)(m->size - done) : CHUNK, got;
		GT_TRY(pull_at(s, m->offset + done, s->out, want, &got, err));
		if (got < want)
			return gt_fail(err, GT_EDATA, "%s: truncated inside a member", s->path);
		if (d)
			gt_published_add(d, s->out, got);
		GT_TRY(write_all(fd, path, s->out, got, err));
		done += got;
	}
	return GT_OK;
}

/* Writes a member to dir, through a partial file. */
static enum gt_code write_member(struct stream *s, const struct gt_tar_member *found, const char *dir, const struct gt_known_member *m,
                                 struct gt_err *err)
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
		rc = copy_content(s, found, fd, part, d, err);
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

static enum gt_code extract_members(struct stream *s, struct gt_tar_reader *t, const char *dir, const struct gt_known_member *members,
                                    int n, struct gt_err *err)
{
	unsigned taken = 0;
	for (int count = 0; taken != (1u << n) - 1 && count < MAX_MEMBERS; count++) {
		struct gt_tar_member m;
		int k = 0;
		GT_TRY(gt_tar_next(t, &m, err));
		if (!m.path)
			break;
		while (k < n && strcmp(members[k].path, m.path))
			k++;
		if (k == n)
			continue;
		if (!gt_tar_is_file(&m) || m.size != members[k].size)
			return gt_fail(err, GT_EDATA, "%s: expected %s to be a file of %llu bytes", s->path, m.path,
			               (unsigned long long)members[k].size);
		GT_TRY(write_member(s, &m, dir, &members[k], err));
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
	struct gt_tar_reader t = {.name = path, .bytes = UINT64_MAX, .read = pull_at, .user = s};
	if (!s || inflateInit2(&s->z, 15 + 16) != Z_OK) {
		free(s);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	s->path = path;
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	enum gt_code rc = s->fd < 0 ? gt_fail(err, GT_EIO, "%s: %s", path, strerror(errno)) : extract_members(s, &t, dir, members, n, err);
	if (s->fd >= 0)
		close(s->fd);
	inflateEnd(&s->z);
	free(s);
	return rc;
}
