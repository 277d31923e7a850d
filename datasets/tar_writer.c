#include "tar_writer.h"
#include "base/fileio.h"
#include "base/arena.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512, SIZE_DIGITS = 11, NAME = 0, MODE = 100, SIZE = 124, MTIME = 136, CHECKSUM = 148, TYPE = 156, MAGIC = 257 };

/* Fills a header block; path has at most 100 bytes, and a NUL if it has less. */
static void fill_header(char *h, const char *path, char type, uint64_t size)
{
	unsigned sum = 0;
	memset(h, 0, BLOCK);
	memcpy(h + NAME, path, strnlen(path, 100));
	snprintf(h + MODE, 8, "%07o", type == '5' ? 0755u : 0644u);
	snprintf(h + SIZE, SIZE_DIGITS + 1, "%0*llo", SIZE_DIGITS, (unsigned long long)size);
	snprintf(h + MTIME, SIZE_DIGITS + 1, "%0*o", SIZE_DIGITS, 0u);
	h[TYPE] = type;
	memcpy(h + MAGIC, "ustar\00000", 8);
	memset(h + CHECKSUM, ' ', 8);
	for (int i = 0; i < BLOCK; i++)
		sum += (unsigned char)h[i];
	snprintf(h + CHECKSUM, 7, "%06o", sum);
}

enum gt_code gt_tar_append(struct gt_tar_writer *w, const void *data, size_t n, struct gt_err *err)
{
	GT_TRY(gt_file_write(w->fd, w->name, data, n, err));
	w->bytes += n;
	return GT_OK;
}

static enum gt_code pad_block(struct gt_tar_writer *w, struct gt_err *err)
{
	static const char zeros[BLOCK];
	size_t rest = (size_t)(w->bytes % BLOCK);
	return rest ? gt_tar_append(w, zeros, BLOCK - rest, err) : GT_OK;
}

/* Writes GNU's header 'L', whose content is the path of the next member. */
static enum gt_code put_long_path(struct gt_tar_writer *w, const char *path, struct gt_err *err)
{
	char h[BLOCK];
	size_t n = strlen(path) + 1;
	fill_header(h, "././@LongLink", 'L', n);
	GT_TRY(gt_tar_append(w, h, BLOCK, err));
	GT_TRY(gt_tar_append(w, path, n, err));
	return pad_block(w, err);
}

enum gt_code gt_tar_begin(struct gt_tar_writer *w, const char *path, char type, struct gt_err *err)
{
	static const char zeros[BLOCK];
	size_t n = strlen(path);
	if (n > sizeof w->path)
		GT_TRY(put_long_path(w, path, err));
	memset(w->path, 0, sizeof w->path);
	memcpy(w->path, path, n < sizeof w->path ? n : sizeof w->path);
	w->type = type;
	w->header = w->bytes;
	return gt_tar_append(w, zeros, BLOCK, err);
}

enum gt_code gt_tar_end(struct gt_tar_writer *w, struct gt_err *err)
{
	char h[BLOCK], path[sizeof w->path + 1];
	uint64_t size = w->bytes - w->header - BLOCK;
	if (size >> 3 * SIZE_DIGITS)
		return gt_fail(err, GT_EIO, "%s: expected members of less than 8 GiB, got a longer member", w->name);
	GT_TRY(pad_block(w, err));
	snprintf(path, sizeof path, "%.*s", (int)sizeof w->path, w->path);
	fill_header(h, path, w->type, size);
	ssize_t n = pwrite(w->fd, h, BLOCK, (off_t)w->header); /* overwrites a block of a regular file, so it cannot be interrupted halfway */
	return n == BLOCK ? GT_OK : gt_fail_errno(err, GT_EIO, errno, "%s: cannot write", w->name);
}

enum gt_code gt_tar_finish(struct gt_tar_writer *w, struct gt_err *err)
{
	static const char zeros[2 * BLOCK];
	return gt_tar_append(w, zeros, sizeof zeros, err);
}
