/* lib/gtrain/archive.so: reads packed archives with libarchive. It is a plugin, so that only runs with packed archives load libarchive. It
 * enables only tar, zip and the compression filters below, because each further format of libarchive would expose more code to malicious
 * files. */
#include "archive_plugin.h"
#include "base/arena.h"
#include "base/fileio.h"
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };

struct packed {
	struct archive *a;
	char *path;  /* for messages */
	int fd;
	uint8_t magic[4];   /* the first bytes of the file */
	const char *member; /* path of the current member of the archive, for messages; NULL: none */
};

static bool has_magic(const struct packed *p, const char *magic)
{
	return !memcmp(p->magic, magic, strlen(magic));
}

/* Returns whether the first bytes of the file are those of a zip file or of a compressed format that is enabled. */
static bool begins_as_archive(const struct packed *p)
{
	static const char *const magics[] = {"PK\3\4", "\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd" "7zX", "BZh"};
	for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
		if (has_magic(p, magics[i]))
			return true;
	return false;
}

static enum gt_code fail_damaged(const struct packed *p, struct gt_err *err)
{
	const char *why = archive_error_string(p->a);
	if (archive_errno(p->a) == ENOMEM)
		return gt_fail_memory(err, 0);
	why = why ? why : "unknown reason";
	if (p->member)
		return gt_fail(err, GT_EDATA, "%s: the archive is damaged or truncated in member %.300s: %.200s", p->path, p->member, why);
	if (!begins_as_archive(p))
		return gt_fail(err, GT_EDATA, "%s: expected a zip file or a compressed tar archive: %.200s", p->path, why);
	if (has_magic(p, "PK\3\4") && !archive_format(p->a)) /* libarchive finds the directory at the end of a zip file first */
		why = "the directory at the end of the archive cannot be read";
	return gt_fail(err, GT_EDATA, "%s: the archive is damaged or truncated: %.200s", p->path, why);
}

static void close_packed(void *archive)
{
	struct packed *p = archive;
	archive_read_free(p->a);
	if (p->fd >= 0)
		close(p->fd);
	free(p->path);
	free(p);
}

static void enable_formats(struct archive *a)
{
	archive_read_support_format_tar(a);
	archive_read_support_format_zip_seekable(a); /* reads the directory at the end of a zip file, which contains the sizes */
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_zstd(a);
	archive_read_support_filter_xz(a);
	archive_read_support_filter_bzip2(a);
}

static enum gt_code open_packed(const char *path, void **out, struct gt_err *err)
{
	struct packed *p;
	uint64_t bytes;
	*out = NULL;
	GT_CALLOC(p, 1, err);
	p->fd = -1;
	p->path = strdup(path);
	p->a = archive_read_new();
	enum gt_code code = p->path && p->a ? gt_file_open(path, &p->fd, &bytes, err) : gt_fail_memory(err, 0);
	if (code == GT_OK && !bytes)
		code = gt_fail(err, GT_EDATA, "%s: the file is empty", path);
	if (code == GT_OK)
		code = gt_file_pread(p->fd, path, p->magic, bytes < sizeof p->magic ? (size_t)bytes : sizeof p->magic, 0, err);
	if (code == GT_OK) {
		enable_formats(p->a);
		if (archive_read_open_fd(p->a, p->fd, BLOCK) != ARCHIVE_OK)
			code = fail_damaged(p, err);
	}
	if (code != GT_OK) {
		close_packed(p);
		return code;
	}
	*out = p;
	return GT_OK;
}

static enum gt_archive_type member_type(struct archive_entry *e)
{
	mode_t type = archive_entry_filetype(e);
	if (archive_entry_hardlink(e) || type == AE_IFLNK)
		return GT_ARCHIVE_LINK;
	return type == AE_IFDIR ? GT_ARCHIVE_FOLDER : type == AE_IFREG ? GT_ARCHIVE_FILE : GT_ARCHIVE_SPECIAL;
}

static enum gt_code next_member(void *archive, struct gt_archive_member *out, struct gt_err *err)
{
	struct packed *p = archive;
	struct archive_entry *e;
	*out = (struct gt_archive_member){0};
	p->member = NULL;
	int rc = archive_read_next_header(p->a, &e);
	if (rc == ARCHIVE_EOF)
		return GT_OK;
	if (rc < ARCHIVE_WARN) /* ARCHIVE_WARN: the path has another encoding; it is read below */
		return fail_damaged(p, err);
	/* A path in an archive is UTF-8 or in another encoding. In the locale "C", archive_entry_pathname_utf8 returns only some paths;
	 * archive_entry_pathname returns the others. */
	out->path = archive_entry_pathname_utf8(e);
	out->path = out->path ? out->path : archive_entry_pathname(e);
	if (!out->path)
		return gt_fail(err, GT_EDATA, "%s: a member has a path in an unknown encoding", p->path);
	p->member = out->path;
	out->type = member_type(e);
	out->encrypted = archive_entry_is_encrypted(e);
	return GT_OK;
}

static enum gt_code read_content(void *archive, void *buf, size_t n, size_t *got, struct gt_err *err)
{
	struct packed *p = archive;
	la_ssize_t done = archive_read_data(p->a, buf, n);
	*got = done < 0 ? 0 : (size_t)done;
	return done < 0 ? fail_damaged(p, err) : GT_OK; /* libarchive only warns about wrong content, but wrong content is an error here */
}

static uint64_t count_unpacked(void *archive)
{
	struct packed *p = archive;
	la_int64_t n = archive_filter_bytes(p->a, 0);
	return n < 0 ? 0 : (uint64_t)n;
}

static const char *name_library(void)
{
	return archive_version_string();
}

extern const struct gt_archive_plugin gt_archive_plugin_v1;
__attribute__((visibility("default"))) const struct gt_archive_plugin gt_archive_plugin_v1 = {
    GT_ARCHIVE_ABI, open_packed, close_packed, next_member, read_content, count_unpacked, name_library};
