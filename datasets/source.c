#include "source.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "sample_mark.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum gt_code gt_source_open(const char *root, int fd, bool archive, struct gt_source **out, struct gt_err *err)
{
	struct gt_source *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s || !(s->root = strdup(root))) {
		free(s);
		close(fd);
		return gt_fail_memory(err, sizeof *s);
	}
	s->fd = fd;
	s->archive = archive;
	*out = s;
	return GT_OK;
}

void gt_source_close(struct gt_source *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s->root);
	free(s->file);
	free(s->names);
	free(s);
}

enum gt_code gt_source_add(struct gt_source *s, const char *path, uint64_t offset, uint64_t size, struct gt_err *err)
{
	int64_t len = (int64_t)strlen(path) + 1;
	if (s->n == INT32_MAX)
		return gt_fail(err, GT_EDATA, "%s: expected at most %d images, got more", s->root, INT32_MAX);
	GT_GROW(s->file, s->cap, s->n + 1, err);
	GT_GROW(s->names, s->names_cap, s->names_size + len, err);
	memcpy(s->names + s->names_size, path, (size_t)len);
	s->file[s->n++] = (struct gt_source_file){.name = (uint64_t)s->names_size, .offset = offset, .size = size,
	                                             .id = gt_mark_path(path)};
	s->names_size += len;
	return GT_OK;
}

uint64_t gt_source_bytes(const struct gt_source *s)
{
	return sizeof *s + (uint64_t)s->cap * sizeof *s->file + (uint64_t)s->names_cap;
}

const char *gt_source_name(const struct gt_source *s, int64_t i, char *buf, size_t size)
{
	snprintf(buf, size, "%.300s%s%.400s", s->root, s->archive ? ": " : "/", gt_source_path(s, i));
	return buf;
}

enum gt_code gt_source_locate(const struct gt_source *s, int64_t i, int *fd, uint64_t *offset, uint64_t *size, struct stat *state,
                              struct gt_err *err)
{
	char name[720];
	struct stat st;
	*offset = s->file[i].offset;
	*size = s->file[i].size;
	*fd = s->fd;
	if (s->archive)
		return GT_OK;
	*fd = openat(s->fd, gt_source_path(s, i), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		/* Without free descriptors or memory, an undamaged file cannot be opened either, so the error code is that of errno. */
		return gt_fail_errno(err, gt_errno_code(errno, GT_EDATA), errno, "%s: cannot open", gt_source_name(s, i, name, sizeof name));
	int failed = fstat(*fd, &st) ? errno : 0;
	if (failed || !S_ISREG(st.st_mode)) {
		close(*fd);
		gt_source_name(s, i, name, sizeof name);
		return failed ? gt_fail_errno(err, GT_EDATA, failed, "%s: cannot read", name)
		              : gt_fail(err, GT_EDATA, "%s: expected a regular file", name);
	}
	*size = (uint64_t)st.st_size;
	if (state)
		*state = st;
	return GT_OK;
}

enum gt_code gt_source_read(const struct gt_source *s, int64_t i, struct gt_bytes_buf *buf, struct gt_err *err)
{
	return gt_source_read_head(s, i, SIZE_MAX, buf, err);
}

enum gt_code gt_source_read_head(const struct gt_source *s, int64_t i, size_t most, struct gt_bytes_buf *buf, struct gt_err *err)
{
	char name[720];
	uint64_t offset, size;
	int fd;
	GT_TRY(gt_source_locate(s, i, &fd, &offset, &size, NULL, err));
	enum gt_code code = GT_OK;
	if (!size || size > GT_SOURCE_MAX_FILE)
		code = gt_fail(err, GT_EDATA, "%s: expected 1 byte to %d MiB, got %llu bytes", gt_source_name(s, i, name, sizeof name),
		               (int)(GT_SOURCE_MAX_FILE >> 20), (unsigned long long)size);
	buf->size = size < most ? (size_t)size : most;
	if (code == GT_OK && buf->size > buf->cap) {
		free(buf->data);
		buf->cap = buf->size + buf->size / 4;
		if (!(buf->data = malloc(buf->cap))) {
			code = gt_fail_memory(err, buf->cap);
			buf->cap = 0;
		}
	}
	struct gt_err why;
	if (code == GT_OK && gt_file_pread(fd, gt_source_name(s, i, name, sizeof name), buf->data, buf->size, offset, &why) != GT_OK)
		code = gt_fail(err, GT_EDATA, "%s", why.msg);
	if (!s->archive)
		close(fd);
	return code;
}

void gt_source_thin_out(struct gt_source *s, int64_t limit)
{
	if (limit <= 0 || s->n <= limit)
		return;
	for (int64_t i = 0; i < limit; i++)
		s->file[i] = s->file[(int64_t)((__int128)i * s->n / limit)];
	s->n = limit;
}
