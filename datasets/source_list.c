#include "archive_cache.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "folder.h"
#include "tar_reader.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 32 };

const struct gt_folder_kind gt_folder_images = {"images (.jpg, .jpeg, .png or .webp)", {".jpg", ".jpeg", ".png", ".webp"}};
const struct gt_folder_kind gt_folder_texts = {"texts (.txt)", {".txt"}};
const struct gt_folder_kind gt_folder_tables = {"tables (.csv, .tsv or .jsonl, also with .gz, .npy or .npz)",
                                                {".csv", ".tsv", ".jsonl", ".ndjson", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".ndjson.gz",
                                                 ".npy", ".npz"}};

bool gt_folder_wants(const struct gt_folder_kind *kind, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name), len;
	for (int i = 0; kind->end[i] && *name != '.'; i++) /* hidden files are excluded, such as "._x.jpg" from macOS */
		if (n > (len = strlen(kind->end[i])) && !strcasecmp(name + n - len, kind->end[i]))
			return true;
	return false;
}

bool gt_folder_ignored(const char *name, size_t len)
{
	static const char *const others[] = {"__MACOSX", "lost+found", "$RECYCLE.BIN", "System Volume Information", "@eaDir"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strlen(others[i]) == len && !strncmp(others[i], name, len))
			return true;
	return len && name[0] == '.';
}

/* ---- directories -------------------------------------------------------------------------------------------------------------- */
/* The directories from the root of a walk to the current directory, to detect symbolic links that form a loop. */
struct trail {
	struct {
		dev_t dev;
		ino_t ino;
	} at[MAX_DEPTH + 1];
	int depth;
};

enum gt_code gt_folder_fail_read(const char *root, const char *path, struct gt_err *err)
{
	return gt_fail_errno(err, gt_errno_code(errno, GT_ENOINPUT), errno, "%.400s%s%.300s: cannot read the directory", root, *path ? "/" : "",
	                     path);
}

DIR *gt_folder_dir(int root, const char *path)
{
	int fd = openat(root, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0) {
		int why = errno;
		close(fd);
		errno = why;
	}
	return d;
}

struct dirent *gt_folder_next(DIR *d)
{
	struct dirent *e;
	errno = 0;
	while ((e = readdir(d)) && gt_folder_ignored(e->d_name, strlen(e->d_name)))
		;
	return e;
}

bool gt_folder_is_dir(int fd, const struct dirent *e, const char *path)
{
	struct stat st;
	bool unknown = e->d_type == DT_LNK || e->d_type == DT_UNKNOWN;
	return e->d_type == DT_DIR || (unknown && !fstatat(fd, path, &st, 0) && S_ISDIR(st.st_mode));
}

static enum gt_code walk_directory(struct gt_source *s, const struct gt_folder_kind *kind, char *path, struct trail *trail, bool *any,
                                struct gt_err *err)
{
	DIR *d = gt_folder_dir(s->fd, path);
	struct stat st;
	size_t len = strlen(path);
	enum gt_code code = GT_OK;
	if (!d)
		return gt_folder_fail_read(s->root, path, err);
	if (fstat(dirfd(d), &st))
		code = gt_folder_fail_read(s->root, path, err);
	for (int i = 0; code == GT_OK && i < trail->depth; i++)
		if (trail->at[i].dev == st.st_dev && trail->at[i].ino == st.st_ino)
			code = gt_fail(err, GT_EDATA, "%.400s/%.300s: a symbolic link leads back to a folder that contains it; remove the link",
			               s->root, path);
	if (code == GT_OK && trail->depth > MAX_DEPTH)
		code = gt_fail(err, GT_EDATA, "%.400s/%.300s: expected at most %d nested folders", s->root, path, MAX_DEPTH);
	if (code == GT_OK) {
		trail->at[trail->depth].dev = st.st_dev;
		trail->at[trail->depth++].ino = st.st_ino;
		for (struct dirent *e; code == GT_OK && !(any && *any) && (e = gt_folder_next(d));) {
			bool of_kind = gt_folder_wants(kind, e->d_name);
			if (!of_kind && e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
				continue;
			if ((size_t)snprintf(path + len, PATH_MAX - len, "%s%s", len ? "/" : "", e->d_name) >= PATH_MAX - len) {
				path[len] = 0;
				code = gt_fail(err, GT_EDATA, "%.400s/%.300s: a path in this folder is longer than %d bytes", s->root, path, PATH_MAX - 1);
				break;
			}
			if (e->d_type != DT_REG && gt_folder_is_dir(s->fd, e, path)) /* d_type of most entries is DT_REG, which avoids a call of stat */
				code = walk_directory(s, kind, path, trail, any, err);
			else if (of_kind && any)
				*any = true;
			else if (of_kind)
				code = gt_source_add(s, path, 0, 0, err);
			path[len] = 0;
			errno = 0;
		}
		if (code == GT_OK && errno)
			code = gt_folder_fail_read(s->root, path, err);
		trail->depth--;
	}
	closedir(d);
	return code;
}

enum gt_code gt_folder_walk(struct gt_source *s, const struct gt_folder_kind *kind, char *path, bool *any, struct gt_err *err)
{
	struct trail trail = {0};
	return walk_directory(s, kind, path, &trail, any, err);
}

/* ---- archives ----------------------------------------------------------------------------------------------------------------- */
struct archive {
	struct gt_tar_reader reader;
	int fd;
};

static enum gt_code read_archive(void *user, uint64_t offset, void *buf, size_t n, size_t *got, struct gt_err *err)
{
	const struct archive *a = user;
	uint64_t left = offset < a->reader.bytes ? a->reader.bytes - offset : 0;
	*got = n < left ? n : (size_t)left;
	return gt_file_pread(a->fd, a->reader.name, buf, *got, offset, err);
}

static enum gt_code add_member(struct gt_source *s, const struct gt_tar_member *m, struct gt_err *err)
{
	if (gt_tar_path_leaves(m->path))
		return gt_fail(err, GT_EDATA, "%s: the path of member %.300s leads out of the archive", s->root, m->path);
	if (m->type == '1' || m->type == '2')
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a link; expected a regular file", s->root, m->path);
	if (m->sparse)
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a sparse file; expected a regular file, because the archive is read in place",
		               s->root, m->path);
	if (!gt_tar_is_file(m))
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a special file of type '%c'; expected a regular file", s->root, m->path,
		               m->type >= ' ' && m->type < 127 ? m->type : '?');
	return gt_source_add(s, m->path, m->offset, m->size, err);
}

static bool is_path_ignored(const char *path)
{
	for (size_t len; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (gt_folder_ignored(path, len))
			return true;
	}
	return false;
}

/* Keeps only the last of several members with the same path, as tar does when it extracts; drops members that are not part of the data. */
static void drop_members(struct gt_source *s)
{
	int64_t kept = 0;
	for (int64_t i = 0; i < s->n; i++)
		if ((i + 1 == s->n || strcmp(gt_source_path(s, i), gt_source_path(s, i + 1))) && !is_path_ignored(gt_source_path(s, i)))
			s->file[kept++] = s->file[i];
	s->n = kept;
}

static enum gt_code list_members(struct gt_source *s, const struct gt_folder_kind *kind, struct gt_err *err)
{
	struct gt_tar_member m;
	struct stat st;
	enum gt_code code;
	if (fstat(s->fd, &st))
		return gt_fail_errno(err, GT_EIO, errno, "%s", s->root);
	struct archive *a = malloc(sizeof *a);
	if (!a)
		return gt_fail_memory(err, sizeof *a);
	*a = (struct archive){.reader = {.name = s->root, .bytes = (uint64_t)st.st_size, .read = read_archive, .user = a}, .fd = s->fd};
	while ((code = gt_tar_next(&a->reader, &m, err)) == GT_OK && m.path)
		if (m.type != '5' && gt_folder_wants(kind, m.path) && (code = add_member(s, &m, err)) != GT_OK)
			break;
	free(a);
	return code;
}

/* ---- both --------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_folder_open(const char *root, struct gt_source **out, struct gt_err *err)
{
	struct stat st;
	int fd;
	if (gt_archive_is_packed(root)) {
		GT_TRY(gt_archive_cache_open(root, &fd, err));
		return gt_source_open(root, fd, true, out, err);
	}
	fd = open(root, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		int why = errno;
		if (fd >= 0)
			close(fd);
		return gt_fail_errno(err, gt_errno_code(why, GT_ENOINPUT), why, "%s: cannot open", root);
	}
	return gt_source_open(root, fd, !S_ISDIR(st.st_mode), out, err);
}

static int by_path_and_offset(const void *a, const void *b, void *names)
{
	const struct gt_source_file *x = a, *y = b;
	int d = strcmp((char *)names + x->name, (char *)names + y->name);
	return d ? d : (x->offset > y->offset) - (x->offset < y->offset);
}

enum gt_code gt_folder_list(struct gt_source *s, const struct gt_folder_kind *kind, struct gt_err *err)
{
	char path[PATH_MAX] = "";
	GT_TRY(s->archive ? list_members(s, kind, err) : gt_folder_walk(s, kind, path, NULL, err));
	if (s->n)
		qsort_r(s->file, (size_t)s->n, sizeof *s->file, by_path_and_offset, s->names);
	if (s->archive)
		drop_members(s);
	return GT_OK;
}

bool gt_folder_is_source(const char *path)
{
	struct stat st;
	size_t n = strlen(path);
	bool archive = (n > 4 && !strcmp(path + n - 4, ".tar")) || gt_archive_has_name(path);
	return !stat(path, &st) && (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && archive));
}
