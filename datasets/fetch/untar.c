/* Extracts members of a .tar.gz archive. The archive is decompressed once, from its beginning to the last listed member. */
#include "base/arena.h"
#include "base/fileio.h"
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
	gzFile gz;
	unsigned char out[CHUNK];
};

/* A gt_tar_read callback: decompresses the archive up to `offset`, discarding the data before it, and reads n bytes. */
static enum gt_code pull_at(void *user, uint64_t offset, void *buf, size_t n, size_t *got, struct gt_err *err)
{
	struct stream *s = user;
	int number = Z_OK, r = gzseek(s->gz, (z_off_t)offset, SEEK_SET) < 0 ? -1 : gzread(s->gz, buf, (unsigned)n);
	*got = r < 0 ? 0 : (size_t)r;
	const char *why = *got < n ? gzerror(s->gz, &number) : "";
	if (gzdirect(s->gz))
		return gt_fail(err, GT_EDATA, "%s: expected a gzip file, got a file with another header", s->path);
	return number == Z_OK ? GT_OK : gt_fail(err, number == Z_ERRNO ? GT_EIO : GT_EDATA, "%s: gzip: %s", s->path,
	                                        number == Z_BUF_ERROR ? "truncated" : why);
}

/* Copies the content of a member to fd. */
static enum gt_code copy_content(struct stream *s, const struct gt_tar_member *m, int fd, const char *path, struct gt_err *err)
{
	for (uint64_t done = 0; done < m->size;) {
		size_t want = m->size - done < CHUNK ? (size_t)(m->size - done) : CHUNK, got;
		GT_TRY(pull_at(s, m->offset + done, s->out, want, &got, err));
		if (got < want)
			return gt_fail(err, GT_EDATA, "%s: the archive is truncated inside a member", s->path);
		GT_TRY(gt_file_write(fd, path, s->out, got, err));
		done += got;
	}
	return GT_OK;
}

/* Writes a member to a partial file in dir, then renames the file. */
static enum gt_code write_member(struct stream *s, const struct gt_tar_member *found, const char *dir, const struct gt_known_member *m,
                                 struct gt_err *err)
{
	char part[GT_FETCH_PATH + 300], final[GT_FETCH_PATH + 300];
	bool good = false;
	snprintf(part, sizeof part, "%s/%s.part", dir, m->name);
	snprintf(final, sizeof final, "%s/%s", dir, m->name);
	int fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s", part);
	enum gt_code rc = copy_content(s, found, fd, part, err);
	if (rc == GT_OK)
		rc = gt_published_file(fd, part, m->size, m->sha256, &good, err);
	if (rc == GT_OK && !good)
		rc = gt_fail(err, GT_EDATA, "%s: the SHA-256 digest of %s differs from the published digest", s->path, m->path);
	if (rc == GT_OK)
		rc = gt_file_sync_close(fd, part, err);
	else
		close(fd);
	if (rc == GT_OK && rename(part, final))
		rc = gt_fail_errno(err, GT_ECANTCREAT, errno, "%s", final);
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
	if (!s)
		return gt_fail_memory(err, sizeof *s);
	s->path = path;
	s->gz = gzopen(path, "re");
	enum gt_code rc = s->gz ? extract_members(s, &t, dir, members, n, err) : gt_fail_errno(err, GT_EIO, errno, "%s", path);
	if (s->gz)
		gzclose(s->gz);
	free(s);
	return rc;
}
