#include "archive_cache.h"
#include "archive_plugin.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/fileio.h"
#include "base/plugin.h"
#include "dataset.h"
#include "folder.h"
#include "source.h"
#include "tar_reader.h"
#include "tar_writer.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define FREE_SIZE (64 * MIB)  /* bytes to which every archive may expand, whatever its size; the same limit as for gzip files (gzfile.c) */
#define MAX_RATIO 64          /* maximum expansion factor of archives that expand to more. A zip of PNG or JPEG has 1, texts have 3 to 10, a
                                 decompression bomb > 1,000 */
#define DISK_RESERVE (128 * MIB) /* bytes of the disk that must stay free when an archive is converted */
#define WAIT_US 20000         /* microseconds between two looks at the lock of another process */
#define STATE_VERSION 1       /* version of the converted files, a part of the hash STATE; a new version makes all archives be converted
                                 again */
enum { PIECE = 1 << 20, HASH = 16 };

static const char *const names[] = {".zip", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".txz", ".tar.bz2", NULL};

bool gt_archive_has_name(const char *path)
{
	size_t n = strlen(path);
	for (int i = 0; names[i]; i++)
		if (n > strlen(names[i]) && !strcasecmp(path + n - strlen(names[i]), names[i]))
			return true;
	return false;
}

bool gt_archive_is_packed(const char *path)
{
	struct stat st;
	return gt_archive_has_name(path) && !stat(path, &st) && S_ISREG(st.st_mode);
}

enum gt_code gt_archive_plugin(const struct gt_archive_plugin **out, struct gt_err *err)
{
	void *symbol;
	GT_TRY(gt_plugin_open("archive", GT_ARCHIVE_SYMBOL, &symbol, err));
	*out = symbol;
	if ((*out)->abi == GT_ARCHIVE_ABI)
		return GT_OK;
	return gt_fail(err, GT_EUNAVAILABLE, "the archive plugin has version %u, but this gtrain needs %u: install both from one build",
	               (*out)->abi, GT_ARCHIVE_ABI);
}

/* ---- conversion ----------------------------------------------------------------------------------------------------------------- */
struct conversion {
	const char *path;               /* of the archive */
	const struct gt_archive_plugin *plugin;
	void *archive;
	uint64_t limit;                 /* maximum bytes of the .tar, and of the decompressed archive */
	uint64_t checked;               /* size of the .tar up to which the free disk space has been checked */
	struct gt_tar_writer tar;
	uint8_t *piece;                 /* [PIECE] */
};

static enum gt_code fail_bomb(const struct conversion *c, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s: the archive expands to more than the %llu MiB allowed (64 MiB, or 64 times its size); it may be a "
	               "decompression bomb; if you trust the archive, unpack it and write the name of the folder",
	               c->path, (unsigned long long)(c->limit / MIB));
}

/* Checks that the disk has room for n more bytes. Checks for the next pieces in advance, so that not every piece needs a call of
 * statvfs. */
static enum gt_code check_disk(struct conversion *c, uint64_t n, struct gt_err *err)
{
	struct statvfs fs;
	char text[GT_BYTES_TEXT];
	if (c->tar.bytes + n <= c->checked || fstatvfs(c->tar.fd, &fs))
		return GT_OK;
	uint64_t room = (uint64_t)fs.f_bavail * fs.f_frsize, want = n > FREE_SIZE ? n : FREE_SIZE;
	c->checked = c->tar.bytes + want;
	if (room >= n + DISK_RESERVE)
		return GT_OK;
	return gt_fail(err, GT_EIO, "%s: unpacking the archive into %s would leave less than 128 MiB of the disk free (%s are free); set "
	               "XDG_CACHE_HOME to a directory on a larger disk, or unpack the archive", c->path, c->tar.name,
	               gt_bytes_text(text, sizeof text, room));
}

/* Copies the content of the current member. */
static enum gt_code copy_content(struct conversion *c, const struct gt_archive_member *m, struct gt_err *err)
{
	uint64_t done = 0;
	for (size_t got = 1; got;) {
		GT_TRY(c->plugin->read(c->archive, c->piece, PIECE, &got, err));
		done += got;
		if (done > GT_SOURCE_MAX_FILE)
			return gt_fail(err, GT_EDATA, "%s: %.300s: expected at most 256 MiB, got more", c->path, m->path);
		if (c->tar.bytes + got > c->limit)
			return fail_bomb(c, err);
		GT_TRY(check_disk(c, got, err));
		GT_TRY(gt_tar_append(&c->tar, c->piece, got, err));
	}
	return GT_OK;
}

static enum gt_code copy_member(struct conversion *c, const struct gt_archive_member *m, struct gt_err *err)
{
	if (gt_tar_path_leaves(m->path))
		return gt_fail(err, GT_EDATA, "%s: the path of member %.300s leads out of the archive", c->path, m->path);
	if (m->type != GT_ARCHIVE_FILE)
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a %s; expected a regular file", c->path, m->path,
		               m->type == GT_ARCHIVE_LINK ? "link" : "special file");
	if (strlen(m->path) >= PATH_MAX)
		return gt_fail(err, GT_EDATA, "%s: expected paths of at most %d bytes, got a longer path", c->path, PATH_MAX - 1);
	if (m->encrypted)
		return gt_fail(err, GT_EDATA, "%s: %.300s is encrypted; unpack the archive with its password", c->path, m->path);
	GT_TRY(gt_tar_begin(&c->tar, m->path, '0', err));
	GT_TRY(copy_content(c, m, err));
	return gt_tar_end(&c->tar, err);
}

static enum gt_code copy_members(struct conversion *c, struct gt_err *err)
{
	struct gt_archive_member m;
	for (;;) {
		GT_TRY(c->plugin->next(c->archive, &m, err));
		if (c->plugin->unpacked(c->archive) > c->limit || c->tar.bytes > c->limit)
			return fail_bomb(c, err);
		if (!m.path)
			return gt_tar_finish(&c->tar, err);
		if (m.type != GT_ARCHIVE_FOLDER && (gt_folder_wants(&gt_folder_images, m.path) || gt_folder_wants(&gt_folder_texts, m.path)))
			GT_TRY(copy_member(c, &m, err));
	}
}

/* Converts the packed archive at path, which has `bytes` bytes, to a .tar in the open, empty file fd. */
static enum gt_code convert_archive(const char *path, uint64_t bytes, const char *to, int fd, struct gt_err *err)
{
	struct conversion c = {.path = path, .tar = {.name = to, .fd = fd}};
	c.limit = bytes > UINT64_MAX / MAX_RATIO ? UINT64_MAX : bytes * MAX_RATIO;
	c.limit = c.limit < FREE_SIZE ? FREE_SIZE : c.limit;
	GT_TRY(gt_archive_plugin(&c.plugin, err));
	if (!(c.piece = malloc(PIECE)))
		return gt_fail_memory(err, PIECE);
	enum gt_code code = c.plugin->open(path, &c.archive, err);
	if (code == GT_OK) {
		code = copy_members(&c, err);
		c.plugin->close(c.archive);
	}
	free(c.piece);
	return code;
}

/* ---- the cache ------------------------------------------------------------------------------------------------------------------ */
struct entry {
	char dir[GT_PATH_SIZE], path[GT_PATH_SIZE];
	char name[2 * HASH + 8]; /* PATH-STATE.tar */
	uint64_t bytes;          /* size of the archive */
};

static void put_hash(const char *text, char *to)
{
	char hex[GT_DIGEST_HEX];
	gt_digest_bytes(text, strlen(text), hex);
	snprintf(to, HASH + 1, "%.*s", HASH, hex);
}

/* Computes the name of the cached .tar of an archive. */
static enum gt_code find_entry(const char *path, struct entry *e, struct gt_err *err)
{
	struct stat st;
	char real[PATH_MAX], state[200], hash[2][HASH + 1];
	if (!realpath(path, real) || stat(real, &st))
		return gt_fail_errno(err, gt_errno_code(errno, GT_ENOINPUT), errno, "%s: cannot open", path);
	snprintf(state, sizeof state, "%d:%llx:%llx:%llx:%lld.%ld:%lld.%ld", STATE_VERSION, (unsigned long long)st.st_dev,
	         (unsigned long long)st.st_ino, (unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
	         (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	put_hash(real, hash[0]);
	put_hash(state, hash[1]);
	snprintf(e->name, sizeof e->name, "%s-%s.tar", hash[0], hash[1]);
	e->bytes = (uint64_t)st.st_size;
	if (gt_dataset_cache("archives", e->dir, sizeof e->dir, NULL) != GT_OK)
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a directory for the unpacked archive, but neither XDG_CACHE_HOME nor HOME is set "
		               "to an absolute path", path);
	return gt_path_join(e->path, e->dir, e->name, err);
}

/* Removes cached .tar files of former states of the archive. A process that has opened such a file can still read it. */
static void remove_former_states(const struct entry *e)
{
	DIR *d = opendir(e->dir);
	for (struct dirent *f; d && (f = readdir(d));) {
		size_t n = strlen(f->d_name);
		if (!strncmp(f->d_name, e->name, HASH + 1) && n > 4 && !strcmp(f->d_name + n - 4, ".tar") && strcmp(f->d_name, e->name))
			unlinkat(dirfd(d), f->d_name, 0);
	}
	if (d)
		closedir(d);
}

/* Removes temporary files of conversions that were killed. The caller has locked the folder. */
static void remove_temporaries(const struct entry *e)
{
	DIR *d = opendir(e->dir);
	for (struct dirent *f; d && (f = readdir(d));)
		if (strstr(f->d_name, ".tar.tmp-"))
			unlinkat(dirfd(d), f->d_name, 0);
	if (d)
		closedir(d);
}

static enum gt_code make_entry(const char *path, const struct entry *e, bool locked, struct gt_err *err)
{
	char temporary[GT_PATH_SIZE];
	int fd;
	if (locked)
		remove_temporaries(e);
	GT_TRY(gt_file_create_temporary(temporary, e->path, 0666, &fd, err));
	enum gt_code code = convert_archive(path, e->bytes, e->dir, fd, err);
	code = gt_file_commit(code, fd, temporary, e->path, err);
	if (code == GT_OK)
		remove_former_states(e);
	return code;
}

/* Creates the cached .tar of an archive, unless another process has created it in the meantime. The lock is a file that only users who may
 * write into the cache can open, so that no other user can make this process wait. Without a lock, as on a file system without locks,
 * or if the file belongs to another user, several processes convert the archive, and the last rename wins. */
static enum gt_code make_entry_once(const char *path, const struct entry *e, struct gt_err *err)
{
	char name[GT_PATH_SIZE];
	bool held = true;
	long holder;
	int lock = -1;
	GT_TRY(gt_dir_make(e->dir, NULL, err));
	GT_TRY(gt_path_join(name, e->dir, ".lock", err));
	while (gt_lock_take(name, &lock, &held, &holder, NULL) == GT_OK && held)
		usleep(WAIT_US);
	enum gt_code code = access(e->path, F_OK) ? make_entry(path, e, lock >= 0, err) : GT_OK;
	gt_lock_drop(lock);
	return code;
}

enum gt_code gt_archive_cache_open(const char *path, int *fd, struct gt_err *err)
{
	struct entry *e = malloc(sizeof *e);
	uint64_t bytes;
	*fd = -1;
	if (!e)
		return gt_fail_memory(err, sizeof *e);
	enum gt_code code = find_entry(path, e, err);
	if (code == GT_OK && access(e->path, F_OK))
		code = make_entry_once(path, e, err);
	if (code == GT_OK)
		code = gt_file_open_own(e->path, fd, &bytes, err);
	if (code == GT_OK && *fd < 0)
		code = gt_fail(err, GT_EIO, "%s: the file was removed while it was opened", e->path);
	free(e);
	return code;
}
