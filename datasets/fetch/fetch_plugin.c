/* lib/gtrain/fetch.so: downloads a known dataset from its mirrors. It is a plugin so that only `gtrain fetch` loads libcurl. */
#include "base/fileio.h"
#include "fetch/fetch_parts.h"
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 4, PROGRESS = 1 << 20 }; /* TRIES: maximum number of consecutive attempts that each receive less than PROGRESS bytes */

struct fetch {
	const struct gt_known_dataset *row;
	const char *dir, *base_url;
	void (*progress)(void *user, const char *file, uint64_t done, uint64_t total);
	void *user;
	int dirfd; /* descriptor of the folder, which is locked so that only one process downloads into it */
};

static enum gt_code add_to_digest(void *digest, const void *data, size_t n, struct gt_err *err)
{
	return EVP_DigestUpdate(digest, data, n) == 1 ? GT_OK : gt_fail(err, GT_EFAIL, "libcrypto cannot compute a SHA-256");
}

enum gt_code gt_published_file(int fd, const char *path, uint64_t size, const char *sha256, bool *good, struct gt_err *err)
{
	struct stat st;
	unsigned char digest[EVP_MAX_MD_SIZE];
	char hex[2 * EVP_MAX_MD_SIZE + 1] = "";
	unsigned n = 0;
	*good = false;
	if (fstat(fd, &st))
		return gt_fail_errno(err, GT_EIO, errno, "%s", path);
	bool fits = S_ISREG(st.st_mode) && (!size || (uint64_t)st.st_size == size);
	if (!fits || !sha256) {
		*good = fits;
		return GT_OK;
	}
	EVP_MD_CTX *of = EVP_MD_CTX_new();
	enum gt_code rc = of && EVP_DigestInit_ex(of, EVP_sha256(), NULL) == 1
	                      ? gt_file_each(fd, path, (uint64_t)st.st_size, add_to_digest, of, err)
	                      : gt_fail(err, GT_EFAIL, "libcrypto does not provide SHA-256");
	if (rc == GT_OK && EVP_DigestFinal_ex(of, digest, &n) == 1)
		for (unsigned k = 0; k < n; k++)
			snprintf(hex + 2 * k, 3, "%02x", digest[k]);
	EVP_MD_CTX_free(of);
	*good = rc == GT_OK && !strncmp(hex, sha256, strlen(sha256));
	return rc;
}

/* Locks the folder itself instead of a lock file: no file remains, and the lock ends with the process. */
static enum gt_code lock_dir(struct fetch *f, struct gt_err *err)
{
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dirfd < 0)
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%.500s", f->dir);
	if (flock(f->dirfd, LOCK_EX | LOCK_NB)) {
		enum gt_code rc = errno == EWOULDBLOCK ? gt_fail(err, GT_EFAIL, "%.500s: another gtrain process downloads into this directory; "
		                                                 "wait until that process has ended", f->dir)
		                                       : gt_fail_errno(err, GT_EIO, errno, "%.500s", f->dir);
		close(f->dirfd);
		return rc;
	}
	return GT_OK;
}

/* Sets *good to whether dir/name exists and has the expected size and digest. */
static enum gt_code is_there(const struct fetch *f, const char *name, uint64_t size, const char *sha256, bool *good, struct gt_err *err)
{
	struct stat st;
	*good = false;
	if (fstatat(f->dirfd, name, &st, 0) || !S_ISREG(st.st_mode)) /* checked before open, which would block on a FIFO */
		return GT_OK;
	int fd = openat(f->dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return GT_OK;
	enum gt_code rc = gt_published_file(fd, name, size, sha256, good, err);
	close(fd);
	return rc;
}

static void wait_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* Downloads a file from one mirror. Repeats the attempt until the digest matches or a further attempt is useless. *stop: another mirror
 * would not help. *unreached: the last attempt had no connection. */
static enum gt_code from_mirror(const struct fetch *f, const struct gt_known_file *file, const char *base, int fd, const char *part,
                                bool *stop, bool *unreached, struct gt_err *err)
{
	char url[2048];
	size_t n = strlen(base);
	uint64_t last = 0;
	*stop = *unreached = false;
	if ((size_t)snprintf(url, sizeof url, "%s%s%s", base, n && base[n - 1] == '/' ? "" : "/", file->name) >= sizeof url)
		return gt_fail(err, GT_EUSAGE, "%.200s...: the URL is too long", base);
	for (int k = 0; k < TRIES; k++) {
		struct stat st;
		if (fstat(fd, &st))
			return gt_fail_errno(err, GT_EIO, errno, "%s", part);
		uint64_t have = (uint64_t)st.st_size;
		if (file->size && have > file->size && !ftruncate(fd, 0)) /* The partial file is longer than the published file, so it is from
		                                                             another download and is discarded. */
			have = 0;
		if (have >= last + PROGRESS) {
			last = have;
			k = 0;
		}
		struct gt_transfer t = {url, part, file->name, fd, have, file->size, f->progress, f->user};
		enum gt_transfer_end end = file->size && have == file->size ? GT_TRANSFER_DONE : gt_transfer(&t, err);
		*unreached = end == GT_TRANSFER_UNREACHED;
		if (end == GT_TRANSFER_NEVER)
			return err->code;
		if (end == GT_TRANSFER_AGAIN || end == GT_TRANSFER_UNREACHED) {
			if (k + 1 < TRIES)
				wait_ms(200 << k);
			continue;
		}
		bool good;
		enum gt_code rc = gt_published_file(fd, part, file->size, file->sha256, &good, err);
		*stop = rc != GT_OK;
		if (rc != GT_OK || good)
			return rc;
		gt_fail(err, GT_EDATA, "%s: the digest differs from the digest of the published %s; the file was removed", url, file->name);
		if (ftruncate(fd, 0) || !have) /* A wrong digest can come from an older partial file, so the download restarts with an empty
		                                  file. */
			return GT_EDATA;
	}
	return err->code;
}

static enum gt_code put_in_place(const struct fetch *f, int fd, const char *part, const char *name, struct gt_err *err)
{
	char final[GT_FETCH_PATH + 300];
	snprintf(final, sizeof final, "%s/%s", f->dir, name);
	if (fsync(fd))
		return gt_fail_errno(err, GT_EIO, errno, "%s", part);
	if (rename(part, final))
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s", final);
	fsync(f->dirfd); /* a failed sync is harmless, because every digest is verified again */
	return GT_OK;
}

/* Extends the error message "no mirror could be reached" by what the user can do without a network connection. */
static enum gt_code add_advice(const struct fetch *f, const struct gt_known_file *file, enum gt_code code, struct gt_err *err)
{
	const char *digest = file->sha256 ? file->sha256 : "unknown";
	char why[sizeof err->msg];
	snprintf(why, sizeof why, "%.480s", err->msg);
	return gt_fail(err, code, "%s; behind a proxy, set https_proxy; without a network, download %s elsewhere (SHA-256 %s%s), put it into "
	               "%.200s, and run this command again", why, file->name, digest, strlen(digest) < 64 ? "..." : "", f->dir);
}

/* Tries all mirrors in turn. If all fail, the error names each mirror with its reason. */
static enum gt_code from_mirrors(const struct fetch *f, const struct gt_known_file *file, int fd, const char *part, struct gt_err *err)
{
	const char *one[] = {f->base_url, NULL}, *const *mirrors = f->base_url ? one : f->row->mirrors;
	enum gt_code rc = GT_EINTERNAL;
	char all[sizeof err->msg] = "";
	size_t n = 0;
	int tried = 0, without = 0; /* without: number of mirrors to which no connection could be made */
	for (; mirrors[tried]; tried++) {
		bool stop, unreached;
		enum gt_code one_rc = from_mirror(f, file, mirrors[tried], fd, part, &stop, &unreached, err);
		without += unreached;
		if (one_rc == GT_OK || stop)
			return one_rc;
		rc = !tried || rc == one_rc ? one_rc : GT_EIO; /* If the mirrors fail with different codes, returns GT_EIO, because one of the
		                                                  failures may be temporary. */
		if (n < sizeof all)
			n += (size_t)snprintf(all + n, sizeof all - n, "%s%.280s", tried ? "; " : "", err->msg);
	}
	if (tried > 1)
		gt_fail(err, rc, "%s: the download failed from all %d mirrors: %s", file->name, tried, all);
	return without == tried ? add_advice(f, file, rc, err) : rc;
}

static enum gt_code fetch_file(const struct fetch *f, const struct gt_known_file *file, struct gt_err *err)
{
	bool good;
	GT_TRY(is_there(f, file->name, file->size, file->sha256, &good, err));
	if (good) {
		if (f->progress)
			f->progress(f->user, file->name, file->size, file->size);
		return GT_OK;
	}
	char part[GT_FETCH_PATH + 300];
	snprintf(part, sizeof part, "%s/%s.part", f->dir, file->name);
	int fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
	if (fd < 0)
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s", part);
	enum gt_code rc = from_mirrors(f, file, fd, part, err);
	if (rc == GT_OK)
		rc = put_in_place(f, fd, part, file->name, err);
	struct stat st;
	if (rc != GT_OK && !fstat(fd, &st) && !st.st_size)
		unlink(part);
	close(fd);
	return rc;
}

static enum gt_code fetch_archive(const struct fetch *f, struct gt_err *err)
{
	const struct gt_known_file *file = &f->row->file[0];
	const struct gt_known_member *m = f->row->member;
	char path[GT_FETCH_PATH + 300];
	int n = 0;
	bool all = true;
	for (; n < 8 && m[n].path; n++) {
		bool good = false;
		if (all)
			GT_TRY(is_there(f, m[n].name, m[n].size, m[n].sha256, &good, err));
		all &= good;
	}
	if (all)
		return GT_OK;
	GT_TRY(fetch_file(f, file, err));
	snprintf(path, sizeof path, "%s/%s", f->dir, file->name);
	GT_TRY(gt_untar(path, f->dir, m, n, err));
	unlink(path);
	fsync(f->dirfd);
	return GT_OK;
}

static enum gt_code fetch_dataset(const struct gt_known_dataset *row, const char *dir, const char *base_url,
                                  void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user,
                                  struct gt_err *err)
{
	struct fetch f = {row, dir, base_url, progress, user, -1};
	struct gt_err tries = {0}; /* collects the failures of mirrors, which are reported only if all mirrors fail */
	if (base_url && strncmp(base_url, "http://", 7) && strncmp(base_url, "https://", 8))
		return gt_fail(err, GT_EUSAGE, "expected a URL that begins with http:// or https://, got %.200s", base_url);
	size_t existed = 0;
	enum gt_code rc = gt_dir_make(dir, &existed, err);
	if (rc == GT_OK)
		GT_TRY(lock_dir(&f, err)); /* Without the lock, another process may be using the folder, so a failure here does not remove the
		                              folder. */
	if (rc == GT_OK && curl_global_init(CURL_GLOBAL_DEFAULT))
		rc = gt_fail(err, GT_EFAIL, "cannot initialise libcurl");
	bool archive = row->member[0].path;
	for (int i = 0; rc == GT_OK && i < (archive ? 1 : 4) && row->file[i].name; i++) {
		rc = archive ? fetch_archive(&f, &tries) : fetch_file(&f, &row->file[i], &tries);
		if (rc != GT_OK && err)
			*err = tries;
	}
	if (rc != GT_OK)
		gt_dir_unmake(dir, existed);
	if (f.dirfd >= 0)
		close(f.dirfd);
	return rc;
}

__attribute__((visibility("default"))) extern const struct gt_fetch_plugin gt_fetch_plugin;
const struct gt_fetch_plugin gt_fetch_plugin = {GT_FETCH_ABI, fetch_dataset};
