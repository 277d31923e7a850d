#include "index_place.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/memstream.h"
#include "dataset.h"
#include "file_system.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define DISK_RESERVE ((uint64_t)128 << 20) /* bytes of the disk that must stay free */
#define SETTLED_S 2 /* the coarsest times of a common file system (FAT) */
enum { HASH = 16 };

static void put_hash(const char *text, char *to)
{
	char hex[GT_DIGEST_HEX];
	gt_digest_bytes(text, strlen(text), hex);
	snprintf(to, HASH + 1, "%.*s", HASH, hex);
}

/* What the functions below say about the data files. */
struct description {
	char *state, *names; /* a line for each file; malloc'ed */
	uint64_t bytes;
	bool settled;
};

static bool describe_file(const char *path, FILE *state, FILE *names, struct description *d)
{
	char real[PATH_MAX];
	struct stat st;
	time_t until = time(NULL) - SETTLED_S;
	if (!realpath(path, real) || stat(real, &st) || !S_ISREG(st.st_mode) || strchr(real, '\n'))
		return false;
	/* without the device, whose number changes when some file systems are mounted again */
	fprintf(state, "%s: %llx %llx %lld.%09ld %lld.%09ld\n", real, (unsigned long long)st.st_ino, (unsigned long long)st.st_size,
	        (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	fprintf(names, "%s\n", real);
	d->bytes += (uint64_t)st.st_size;
	d->settled &= st.st_mtim.tv_sec < until && st.st_ctim.tv_sec < until;
	return true;
}

/* Returns false if a file is not a regular file. The caller frees the texts in any case. */
static bool describe_files(char *const *path, int n, struct description *d)
{
	struct gt_memstream m[2];
	*d = (struct description){.settled = true};
	FILE *state = gt_memstream_open(&m[0]), *names = gt_memstream_open(&m[1]);
	bool good = state && names;
	for (int i = 0; i < n && good; i++)
		good = describe_file(path[i], state, names, d);
	good &= state && gt_memstream_close(state, &m[0], &d->state, NULL, NULL) == GT_OK;
	good &= names && gt_memstream_close(names, &m[1], &d->names, NULL, NULL) == GT_OK;
	return good;
}

/* Sets directory, name and path of p. names: the real paths of the data files. */
static bool name_place(const char *names, const char *settings, struct gt_index_place *p)
{
	char hash[2][HASH + 1];
	if (gt_dataset_cache("index", p->dir, sizeof p->dir, NULL) != GT_OK || !(p->settings = strdup(settings)))
		return false;
	put_hash(names, hash[0]);
	put_hash(settings, hash[1]);
	snprintf(p->name, sizeof p->name, "%s-%s.index", hash[0], hash[1]);
	return gt_path_join(p->path, p->dir, p->name, NULL) == GT_OK;
}

bool gt_index_find_place(char *const *path, int n, const char *settings, struct gt_index_place *out)
{
	struct description d;
	*out = (struct gt_index_place){0};
	bool good = describe_files(path, n, &d) && name_place(d.names, settings, out);
	out->state = d.state;
	out->bytes = d.bytes;
	out->settled = d.settled;
	free(d.names);
	return good;
}

bool gt_index_place_of(const char *real_path, const char *settings, struct gt_index_place *out)
{
	*out = (struct gt_index_place){0};
	return name_place(real_path, settings, out);
}

void gt_index_place_free(struct gt_index_place *p)
{
	free(p->settings);
	free(p->state);
	p->settings = p->state = NULL;
}

bool gt_index_is_current(char *const *path, int n, const struct gt_index_place *p)
{
	struct description d;
	bool same = describe_files(path, n, &d) && !strcmp(d.state, p->state);
	free(d.state);
	free(d.names);
	return same;
}

void gt_index_changed_file(const char *was, const char *is, char *buf, size_t size)
{
	const char *line = is;
	for (; *was && *was == *is; was++, is++)
		if (*is == '\n')
			line = is + 1;
	const char *colon = strstr(line, ": "), *end = strchr(line, '\n');
	for (const char *next = colon; next && next < end; next = strstr(next + 1, ": ")) /* the path itself may have ": " */
		colon = next;
	snprintf(buf, size, "%.*s", colon ? (int)(colon - line) : 0, line);
}

/* ---- writing -------------------------------------------------------------------------------------------------------------------- */
/* Removes temporary files of killed processes, and all but the last used of the other indices of the same files. */
static void remove_others(const struct gt_index_place *p)
{
	char kept[NAME_MAX + 1] = "";
	struct timespec last = {0, 0};
	struct stat st;
	DIR *d = opendir(p->dir);
	for (int pass = 0; d && pass < 2; pass++, rewinddir(d))
		for (struct dirent *f; (f = readdir(d));) {
			if (pass == 0 && strstr(f->d_name, ".index.tmp-"))
				unlinkat(dirfd(d), f->d_name, 0);
			size_t n = strlen(f->d_name);
			if (strncmp(f->d_name, p->name, HASH + 1) != 0 || n < 6 || strcmp(f->d_name + n - 6, ".index") != 0 ||
			    !strcmp(f->d_name, p->name) || fstatat(dirfd(d), f->d_name, &st, AT_SYMLINK_NOFOLLOW))
				continue;
			bool later = st.st_mtim.tv_sec > last.tv_sec || (st.st_mtim.tv_sec == last.tv_sec && st.st_mtim.tv_nsec >= last.tv_nsec);
			if (pass == 0 && later) {
				snprintf(kept, sizeof kept, "%s", f->d_name);
				last = st.st_mtim;
			} else if (pass == 1 && strcmp(f->d_name, kept) != 0) {
				unlinkat(dirfd(d), f->d_name, 0);
			}
		}
	if (d)
		closedir(d);
}

bool gt_index_make_spill_dir(const char *dir)
{
	int fd = gt_dir_make(dir, NULL, NULL) == GT_OK ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	bool good = fd >= 0 && gt_fs_writes_in_place(fd);
	if (fd >= 0)
		close(fd);
	return good;
}

/* Writes to `why` that the disk of the locked directory is read-only, or too full for `bytes` bytes. */
static void explain_no_room(const struct gt_index_place *p, int fd, uint64_t bytes, char *why, size_t size)
{
	struct statvfs fs;
	char need[GT_BYTES_TEXT], room[GT_BYTES_TEXT];
	if (fstatvfs(fd, &fs))
		return;
	uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (fs.f_flag & ST_RDONLY)
		snprintf(why, size, "%s is on a read-only file system; set XDG_CACHE_HOME to a directory that can be written", p->dir);
	else if (free_bytes < bytes + DISK_RESERVE)
		snprintf(why, size, "%s: an index of %s would leave less than 128 MiB of the disk free (%s are free)", p->dir,
		         gt_bytes_text(need, sizeof need, bytes), gt_bytes_text(room, sizeof room, free_bytes));
}

/* Locks the directory by a file that only users who may write an index can open. It does not wait: a reader of large data should not wait
 * for another one. Returns false if another process has the lock, or with the reason in `why`. */
static bool lock_directory(const struct gt_index_place *p, int *lock, char *why, size_t size)
{
	char path[GT_PATH_SIZE];
	struct gt_err e = {0};
	bool held;
	long holder;
	enum gt_code code = gt_path_join(path, p->dir, ".lock", &e);
	if (code == GT_OK)
		code = gt_lock_take(path, lock, &held, &holder, &e);
	if (code != GT_OK)
		snprintf(why, size, "%s", e.msg);
	return code == GT_OK && !held;
}

bool gt_index_lock(const struct gt_index_place *p, uint64_t bytes, int *lock, char *why, size_t size)
{
	struct gt_err e = {0};
	*why = 0;
	*lock = -1;
	if (gt_dir_make(p->dir, NULL, &e) != GT_OK) {
		snprintf(why, size, "%s", e.msg);
		return false;
	}
	int fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(why, size, "%s: cannot open: %s", p->dir, strerror(errno));
		return false;
	}
	bool local = gt_fs_is_local(fd);
	if (!local)
		snprintf(why, size, "%s is on a network file system; set XDG_CACHE_HOME to a directory on a local disk", p->dir);
	else if (lock_directory(p, lock, why, size))
		remove_others(p);
	if (local && (*lock >= 0 || *why)) /* a full or read-only disk explains a failed lock, too */
		explain_no_room(p, fd, bytes, why, size);
	close(fd);
	if (*why) {
		gt_lock_drop(*lock);
		*lock = -1;
	}
	return *lock >= 0;
}

void gt_index_unlock(int lock)
{
	gt_lock_drop(lock);
}

uint64_t gt_index_inode(const struct gt_index_place *p)
{
	struct stat st;
	return lstat(p->path, &st) ? 0 : st.st_ino;
}

void gt_index_note_use(const struct gt_index_place *p)
{
	utimensat(AT_FDCWD, p->path, NULL, AT_SYMLINK_NOFOLLOW);
}
