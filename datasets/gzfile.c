#include "gzfile.h"
#include "base/arena.h"
#include "base/fileio.h"
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MIB ((uint64_t)1 << 20)
#define GZ_MIN 18          /* header + trailer of an empty member */
#define DEFLATE_RATIO 1032 /* maximum expansion of deflate (technical notes of zlib) */
#define GZ_FREE (64 * MIB) /* size to which every gzip file may expand */
#define GZ_RATIO 64        /* maximum expansion of larger files. FashionMNIST: 1.8, MNIST: 4.7; a decompression bomb: 1,000 */
#define HUGE_PAGE (2 * MIB)

void *gt_big_alloc(size_t bytes)
{
	if (bytes < 2 * HUGE_PAGE)
		return malloc(bytes ? bytes : 1);
	void *p;
	if (posix_memalign(&p, HUGE_PAGE, bytes))
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE); /* optional: fails if the kernel has no huge pages */
	return p;
}

static enum gt_code fail_not_regular(const char *shown, mode_t mode, struct gt_err *err)
{
	const char *what = S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
	return gt_fail(err, GT_EDATA, "%s: expected a regular file, got %s", shown, what);
}

static bool has_gzip_magic(const uint8_t *p, uint64_t n)
{
	return n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

enum gt_code gt_gzfile_open(const char *path, uint64_t max_bytes, struct gt_gzfile *f, struct gt_err *err)
{
	struct stat st;
	size_t n = strlen(path);
	*f = (struct gt_gzfile){0};
	if (!strncmp(path, GT_FD_PATH, strlen(GT_FD_PATH)))
		strcpy(f->shown, "standard input");
	else if (n < sizeof f->shown)
		strcpy(f->shown, path);
	else
		snprintf(f->shown, sizeof f->shown, "...%s", path + n - (sizeof f->shown - 4));
	/* stat before open, because opening a FIFO or a device can block or have effects; fstat again for the file that was opened. */
	if (stat(path, &st))
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%s", f->shown);
	if (!S_ISREG(st.st_mode))
		return fail_not_regular(f->shown, st.st_mode, err);
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f->fd < 0)
		return gt_fail_errno(err, gt_errno_code(errno, GT_ENOINPUT), errno, "%s", f->shown);
	f->open = true;
	enum gt_code rc = GT_OK;
	uint8_t first[2] = {0};
	if (fstat(f->fd, &st))
		rc = gt_fail_errno(err, GT_EIO, errno, "%s", f->shown);
	else if (!S_ISREG(st.st_mode))
		rc = fail_not_regular(f->shown, st.st_mode, err);
	else if (!st.st_size)
		rc = gt_fail(err, GT_EDATA, "%s: the file is empty", f->shown);
	else
		rc = gt_file_pread(f->fd, f->shown, first, st.st_size < 2 ? 1 : 2, 0, err);
	if (rc != GT_OK) {
		gt_gzfile_close(f);
		return rc;
	}
	f->size = (uint64_t)st.st_size;
	f->gz = has_gzip_magic(first, 2);
	f->limit = max_bytes;
	if (f->gz) {
		uint64_t most = f->size > UINT64_MAX / GZ_RATIO ? UINT64_MAX : f->size * GZ_RATIO;
		if (most < GZ_FREE)
			most = GZ_FREE;
		if (most < f->limit)
			f->limit = most;
	}
	return GT_OK;
}

void gt_gzfile_close(struct gt_gzfile *f)
{
	if (f->open)
		close(f->fd);
	f->open = false;
}

static enum gt_code fail_zlib(const struct gt_gzfile *f, int rc, const char *msg, uint64_t at, struct gt_err *err)
{
	if (rc == Z_MEM_ERROR)
		return gt_fail_memory(err, 0);
	if (msg && !strcmp(msg, "incorrect data check"))
		return gt_fail(err, GT_EDATA, "%s: gzip: the file is damaged: its checksum does not match", f->shown);
	return gt_fail(err, GT_EDATA, "%s: gzip: the file is damaged near byte %llu (%s)",
	               f->shown, (unsigned long long)at, msg ? msg : "bad data");
}

/* Decompresses the file from offset `at` into buf[want] with zlib, which gives reasons for errors. diagnose: libdeflate could not
 * decompress the member at this offset; zlib finds the reason, and the call fails. */
static enum gt_code inflate_from(const struct gt_gzfile *f, uint64_t at, bool diagnose, void *buf, size_t want, size_t *got,
                                 struct gt_err *err)
{
	enum { IN = 64 * 1024, IN_TOTAL = 1024 * 1024 };
	uint8_t *in = malloc(IN);
	z_stream z = {.next_out = buf, .avail_out = (uInt)want};
	if (!in || inflateInit2(&z, 15 + 16) != Z_OK) {
		free(in);
		return gt_fail_memory(err, IN);
	}
	enum gt_code rc = GT_OK;
	while (z.avail_out && rc == GT_OK) {
		if (!z.avail_in) {
			uint64_t n = f->size - at < IN ? f->size - at : IN;
			if (!n)
				rc = gt_fail(err, GT_EDATA, "%s: gzip: the file is truncated after %llu bytes", f->shown, (unsigned long long)f->size);
			else if (at >= IN_TOTAL && !diagnose) /* all members so far are empty, or a header field does not end */
				rc = gt_fail(err, GT_EDATA, "%s: gzip: the first %d KiB contain no data", f->shown, IN_TOTAL / 1024);
			else
				rc = gt_file_pread(f->fd, f->shown, in, n, at, err);
			at += n;
			z.next_in = in;
			z.avail_in = (uInt)n;
			continue;
		}
		int zr = inflate(&z, Z_NO_FLUSH);
		if (diagnose && (zr == Z_STREAM_END || z.total_out > f->limit)) {
			rc = gt_fail(err, GT_EDATA, "%s: gzip: the compressed data is damaged", f->shown);
		} else if (zr == Z_STREAM_END) {
			if (at == f->size && !z.avail_in)
				break; /* the content is shorter than requested; gt_gzfile_read reports this */
			inflateReset(&z);
		} else if (zr != Z_OK && zr != Z_BUF_ERROR) {
			rc = fail_zlib(f, zr, z.msg, at - z.avail_in, err);
		} else if (diagnose) { /* the bytes are not needed */
			z.next_out = buf;
			z.avail_out = (uInt)want;
		}
	}
	*got = want - z.avail_out;
	inflateEnd(&z);
	free(in);
	return rc;
}

enum gt_code gt_gzfile_head(const struct gt_gzfile *f, void *buf, size_t want, size_t *got, struct gt_err *err)
{
	*got = 0;
	if (f->gz)
		return inflate_from(f, 0, false, buf, want, got, err);
	size_t n = want < f->size ? want : (size_t)f->size;
	GT_TRY(gt_file_pread(f->fd, f->shown, buf, n, 0, err));
	*got = n;
	return GT_OK;
}

uint64_t gt_gzfile_hint(const struct gt_gzfile *f)
{
	uint8_t t[4];
	if (!f->gz)
		return f->size;
	if (f->size < GZ_MIN || gt_file_pread(f->fd, f->shown, t, 4, f->size - 4, NULL) != GT_OK)
		return 0;
	uint64_t n = (uint64_t)t[0] | (uint64_t)t[1] << 8 | (uint64_t)t[2] << 16 | (uint64_t)t[3] << 24;
	/* Deflate expands data by at most 5 bytes per 16 KiB, so a smaller size in the trailer means several members or more than 4 GiB. */
	bool whole = n + n / 1024 + 4096 >= f->size && n / DEFLATE_RATIO <= f->size;
	return whole ? n : 0;
}

enum gt_code gt_gzfile_expect(const struct gt_gzfile *f, uint64_t size, struct gt_err *err)
{
	unsigned long long want = size, have = f->size;
	if (!f->gz && size != f->size)
		return gt_fail(err, GT_EDATA, "%s: the file has %llu bytes, but its header declares %llu: %s", f->shown, have, want,
		               size > f->size ? "truncated" : "there are too many bytes at the end");
	if (f->gz && size / DEFLATE_RATIO > f->size)
		return gt_fail(err, GT_EDATA, "%s: the file's header declares %llu bytes, which is more than %llu compressed bytes can hold; the "
		               "file may be truncated", f->shown,
		               want, have);
	if (size <= f->limit)
		return GT_OK;
	return gt_fail(err, GT_EDATA, "%s: %s to %llu bytes, more than the %llu bytes allowed%s", f->shown,
	               f->gz ? "the file would expand" : "the file amounts", want, (unsigned long long)f->limit,
	               f->gz ? "; it may be a decompression bomb; if not, decompress it with gunzip" : "");
}

/* Decompresses the gzip members of raw from offset *in to offset *out of dst, and advances both offsets. Stops at the end, at an error, or
 * at a member that does not fit into dst: then it sets *full, and the offsets remain at the start of this member. */
static enum gt_code decompress_members(const struct gt_gzfile *f, struct libdeflate_decompressor *d, const uint8_t *raw, uint64_t *in,
                                       uint8_t *dst, uint64_t *out, uint64_t cap, bool *full, struct gt_err *err)
{
	*full = false;
	while (*in < f->size) {
		size_t used, made;
		char ignored[1024];
		if (!has_gzip_magic(raw + *in, f->size - *in) && *in)
			return gt_fail(err, GT_EDATA, "%s: gzip: %llu bytes of other data follow the compressed data", f->shown,
			               (unsigned long long)(f->size - *in));
		switch (libdeflate_gzip_decompress_ex(d, raw + *in, f->size - *in, dst + *out, cap - *out, &used, &made)) {
		case LIBDEFLATE_SUCCESS:
			break;
		case LIBDEFLATE_INSUFFICIENT_SPACE:
			*full = true;
			return GT_OK;
		default:
			return inflate_from(f, *in, true, ignored, sizeof ignored, &made, err);
		}
		*in += used;
		*out += made;
	}
	return GT_OK;
}

/* Helper of gt_gzfile_read and gt_gzfile_load: reads the compressed bytes and opens a decompressor. */
static enum gt_code read_compressed(const struct gt_gzfile *f, uint8_t **raw, struct libdeflate_decompressor **d, struct gt_err *err)
{
	*d = NULL;
	if (!(*raw = gt_big_alloc(f->size)))
		return gt_fail_memory(err, f->size);
	enum gt_code rc = gt_file_pread(f->fd, f->shown, *raw, f->size, 0, err);
	if (rc == GT_OK && !(*d = libdeflate_alloc_decompressor()))
		rc = gt_fail_memory(err, 0);
	if (rc != GT_OK)
		free(*raw);
	return rc;
}

enum gt_code gt_gzfile_read(const struct gt_gzfile *f, uint8_t *dst, uint64_t size, struct gt_err *err)
{
	GT_TRY(gt_gzfile_expect(f, size, err));
	if (!f->gz)
		return gt_file_pread(f->fd, f->shown, dst, size, 0, err);
	uint8_t *raw;
	struct libdeflate_decompressor *d;
	GT_TRY(read_compressed(f, &raw, &d, err));
	uint64_t in = 0, out = 0;
	bool full;
	enum gt_code rc = decompress_members(f, d, raw, &in, dst, &out, size, &full, err);
	if (rc == GT_OK && full)
		rc = gt_fail(err, GT_EDATA, "%s: gzip: the file contains more than the %llu bytes that its header declares", f->shown,
		             (unsigned long long)size);
	else if (rc == GT_OK && out < size)
		rc = gt_fail(err, GT_EDATA, "%s: gzip: the file contains only %llu of the %llu bytes that its header declares", f->shown,
		             (unsigned long long)out, (unsigned long long)size);
	libdeflate_free_decompressor(d);
	free(raw);
	return rc;
}

/* Reads a plain file, or decompresses into memory that grows until every member fits. */
enum gt_code gt_gzfile_load(const struct gt_gzfile *f, uint8_t **out, uint64_t *size, struct gt_err *err)
{
	*out = NULL;
	*size = 0;
	uint64_t cap = gt_gzfile_hint(f);
	if (!f->gz)
		GT_TRY(gt_gzfile_expect(f, cap, err));
	else if (!cap || cap > f->limit) /* the size in the trailer may be wrong: grow the buffer until the content fits */
		cap = f->size < f->limit / 2 && !cap ? f->size * 2 : f->limit;
	uint8_t *raw = NULL, *buf = gt_big_alloc(cap);
	struct libdeflate_decompressor *d = NULL;
	if (!buf)
		return gt_fail_memory(err, cap);
	enum gt_code rc = f->gz ? read_compressed(f, &raw, &d, err) : gt_file_pread(f->fd, f->shown, buf, cap, 0, err);
	uint64_t in = 0, made = f->gz ? 0 : cap;
	while (rc == GT_OK && f->gz) {
		bool full;
		rc = decompress_members(f, d, raw, &in, buf, &made, cap, &full, err);
		if (rc != GT_OK || !full)
			break;
		uint64_t more = cap < f->limit / 2 ? cap * 2 : f->limit;
		uint8_t *wider = cap < f->limit ? gt_big_alloc(more) : NULL;
		if (cap >= f->limit) {
			rc = gt_fail(
			    err, GT_EDATA,
			    "%s: gzip: the file expands to more than the %llu bytes allowed; it may be a decompression bomb; if not, decompress it "
			    "with gunzip", f->shown, (unsigned long long)f->limit);
		} else if (!wider) {
			rc = gt_fail_memory(err, more);
		} else {
			memcpy(wider, buf, made);
			free(buf);
			buf = wider;
			cap = more;
		}
	}
	if (d) {
		libdeflate_free_decompressor(d);
		free(raw);
	}
	if (rc != GT_OK) {
		free(buf);
		return rc;
	}
	*out = buf;
	*size = made;
	return GT_OK;
}

const char *gt_gzfile_libraries(char *buf, size_t size)
{
	snprintf(buf, size, "zlib %s, libdeflate %s", zlibVersion(), LIBDEFLATE_VERSION_STRING);
	return buf;
}
