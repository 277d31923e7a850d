#include "test.h"
#include "base/digest.h"
#include "base/fileio.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *at(const char *name)
{
	static char buf[16][512];
	static int k;
	char *p = buf[k++ % 16];
	snprintf(p, sizeof buf[0], "%s/%s", test_tmpdir(), name);
	return p;
}

static bool holds(const char *path, const char *text)
{
	char *data = NULL;
	size_t n = 0;
	struct gt_err e;
	bool same = !gt_file_read(path, 4096, &data, &n, &e) && n == strlen(text) && !memcmp(data, text, n);
	free(data);
	return same;
}

TEST(fileio_paths)
{
	char buf[GT_PATH_SIZE], longer[GT_PATH_SIZE + 8];
	struct gt_err e;
	static const char *const cases[][2] = {{"a", "."},    {"a/b", "a"},    {"/a", "/"}, {"/", "/"},
	                                       {"a/b/", "a"}, {"/a//b", "/a"}, {"", "."},   {"//x", "/"}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK_OK(gt_path_parent(buf, cases[i][0], &e), e);
		CHECK_MSG(!strcmp(buf, cases[i][1]), "parent of %s: %s", cases[i][0], buf);
	}
	CHECK(!gt_path_join(buf, "a", "b", &e) && !strcmp(buf, "a/b"));
	CHECK(!gt_path_join(buf, "/", "b", &e) && !strcmp(buf, "/b"));
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	CHECK(gt_path_join(buf, longer, "b", &e) == GT_ECANTCREAT && gt_dir_make(longer, NULL, &e) == GT_ECANTCREAT);
	CHECK(gt_file_replace(longer, 0600, "", 0, &e) == GT_ECANTCREAT);
}

TEST(fileio_replace)
{
	struct gt_err e;
	struct stat st;
	const char *f = at("file");
	CHECK_OK(gt_file_replace(f, 0600, "one", 3, &e), e);
	CHECK_OK(gt_file_replace(f, 0640, "second", 6, &e), e);
	CHECK(holds(f, "second") && !stat(f, &st) && (st.st_mode & 0777) == 0640);
	/* A symlink is replaced, not written through. */
	CHECK(!symlink("file", at("link")));
	CHECK_OK(gt_file_replace(at("link"), 0600, "third", 5, &e), e);
	CHECK(holds(f, "second") && holds(at("link"), "third"));
	/* Failures leave what was there, and no temporary. */
	CHECK(!mkdir(at("dir"), 0700) && !mkdir(at("dir/full"), 0700));
	CHECK(gt_file_replace(at("dir"), 0600, "x", 1, &e) == GT_EIO && strstr(e.msg, "dir"));
	CHECK(gt_file_replace(at("none/x"), 0600, "x", 1, &e) == GT_ECANTCREAT);
	/* Devices and FIFOs are not replaced, and not through a link. */
	CHECK(!mkfifo(at("fifo"), 0600) && !symlink("fifo", at("to_fifo")));
	CHECK(gt_file_replace(at("fifo"), 0600, "x", 1, &e) == GT_ECANTCREAT && strstr(e.msg, "expected a regular file, got a FIFO"));
	CHECK(gt_file_replace(at("to_fifo"), 0600, "x", 1, &e) == GT_ECANTCREAT && !lstat(at("to_fifo"), &st) && S_ISLNK(st.st_mode));
	CHECK(!symlink("/proc/self/fd/1", at("stdout")));
	CHECK(gt_file_replace(at("stdout"), 0600, "x", 1, &e) == GT_ECANTCREAT && !lstat(at("stdout"), &st) && S_ISLNK(st.st_mode));
	char cmd[600];
	snprintf(cmd, sizeof cmd, "ls '%s' | grep -q tmp-", test_tmpdir());
	CHECK(system(cmd));
}

TEST(fileio_read)
{
	struct gt_err e;
	char *data;
	size_t n;
	CHECK_OK(gt_file_replace(at("ten"), 0600, "0123456789", 10, &e), e);
	CHECK_OK(gt_file_read(at("ten"), 10, &data, &n, &e), e);
	CHECK(n == 10 && !memcmp(data, "0123456789", 11)); /* the NUL is there */
	free(data);
	CHECK(gt_file_read(at("ten"), 9, &data, &n, &e) == GT_EDATA && strstr(e.msg, "ten"));
	CHECK(gt_file_read(at("nothing"), 9, &data, &n, &e) == GT_ENOINPUT);
	CHECK(gt_file_read(test_tmpdir(), 9, &data, &n, &e) == GT_EDATA);
	CHECK(gt_file_read("/dev/zero", 9, &data, &n, &e) == GT_EDATA);
	CHECK(!symlink("loop", at("loop")) && gt_file_read(at("loop"), 9, &data, &n, &e) == GT_EDATA);
	int fd = open("/dev/full", O_WRONLY);
	CHECK(gt_file_write(fd, "this/file", "x", 1, &e) == GT_EIO && strstr(e.msg, "this/file: cannot write: No space left"));
	close(fd);
}

TEST(fileio_tree_remove_follows_nothing)
{
	struct gt_err e;
	char cmd[2048];
	snprintf(cmd, sizeof cmd,
	         "cd '%s' && mkdir -p out/side tree/a/b/c && touch out/side/file tree/f tree/a/f tree/a/b/c/f && "
	         "ln -s ../../out tree/a/link && ln -s /etc tree/etc && ln -s nowhere tree/broken && mkfifo tree/fifo",
	         test_tmpdir());
	CHECK(!system(cmd));
	CHECK_OK(gt_tree_remove(at("tree"), &e), e);
	CHECK(access(at("tree"), F_OK) && !access(at("out/side/file"), F_OK) && !access("/etc/passwd", F_OK));
	CHECK_OK(gt_tree_remove(at("tree"), &e), e); /* not there: fine */
	CHECK(!symlink("out", at("out-link")));
	CHECK_OK(gt_tree_remove(at("out-link"), &e), e); /* the link itself */
	CHECK(!access(at("out/side/file"), F_OK) && access(at("out-link"), F_OK));
	/* Deeper than we ever build: refused, not a stack overflow. */
	snprintf(cmd, sizeof cmd, "cd '%s' && for i in $(seq 100); do mkdir d; cd d; done", test_tmpdir());
	CHECK(!system(cmd));
	CHECK(gt_tree_remove(at("d"), &e) == GT_EIO);
}

TEST(fileio_dir_make)
{
	struct gt_err e;
	struct stat st;
	mode_t mask = umask(027);
	CHECK_OK(gt_dir_make(at("p/q//r/"), NULL, &e), e);
	CHECK(!stat(at("p/q/r"), &st) && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0750);
	umask(mask);
	CHECK_OK(gt_dir_make(at("p/q/r"), NULL, &e), e);
	CHECK_OK(gt_dir_make("/", NULL, &e), e);
	CHECK_OK(gt_dir_make(".", NULL, &e), e);
	CHECK_OK(gt_file_replace(at("plain"), 0600, "", 0, &e), e);
	CHECK(gt_dir_make(at("plain"), NULL, &e) == GT_ECANTCREAT && gt_dir_make(at("plain/x"), NULL, &e) == GT_ECANTCREAT &&
	      gt_dir_make("", NULL, &e) == GT_ECANTCREAT);
}

TEST(fileio_dir_unmake)
{
	struct gt_err e;
	struct stat st;
	size_t existed, before = strlen(at("u"));
	CHECK_OK(gt_dir_make(at("u"), &existed, &e), e);
	CHECK(existed == before - 2);
	CHECK_OK(gt_dir_make(at("u"), &existed, &e), e);
	CHECK(existed == before);
	CHECK_OK(gt_dir_make(at("u/a//b/c/"), &existed, &e), e);
	CHECK_MSG(existed == before, "%zu", existed);
	CHECK_OK(gt_file_replace(at("u/a/other"), 0600, "", 0, &e), e);
	gt_dir_unmake(at("u/a//b/c/"), existed);
	CHECK(stat(at("u/a/b"), &st) && !stat(at("u/a/other"), &st)); /* a folder that is not empty stays */
	CHECK(!unlink(at("u/a/other")));
	gt_dir_unmake(at("u/a//b/c/"), existed);
	CHECK(stat(at("u/a"), &st) && !stat(at("u"), &st));
	/* what was made before a failure */
	CHECK_OK(gt_file_replace(at("u/plain"), 0600, "", 0, &e), e);
	CHECK(gt_dir_make(at("u/new/../plain/x"), &existed, &e) == GT_ECANTCREAT && existed == before);
}

/* Another process that removes the folder `gone` (gt_dir_unmake) around a call of mkdir for the path `when`. */
static struct { const char *when, *gone; bool before; } other;

int mkdir(const char *path, mode_t mode)
{
	bool now = other.when && !strcmp(path, other.when);
	if (now)
		other.when = NULL;
	if (now && other.before)
		rmdir(other.gone);
	int rc = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode), e = errno;
	if (now && !other.before)
		rmdir(other.gone);
	errno = e;
	return rc;
}

TEST(fileio_dir_make_again)
{
	struct gt_err e;
	struct stat st;
	const char *parent = at("g"), *path = at("g/h");
	size_t existed, before = strlen(parent) - 2;
	for (int i = 0; i < 2; i++) { /* between the calls for g and g/h; between the call for g and the look at what exists */
		CHECK_OK(gt_dir_make(parent, NULL, &e), e);
		other.when = i ? parent : path;
		other.gone = parent;
		other.before = !i;
		CHECK_OK(gt_dir_make(path, &existed, &e), e);
		CHECK(!other.when && !stat(path, &st) && existed == before);
		gt_dir_unmake(path, existed);
		CHECK(stat(parent, &st));
	}
	CHECK(!symlink("nowhere", parent)); /* a name that exists and leads nowhere is an error, not an endless loop */
	CHECK(gt_dir_make(path, &existed, &e) == GT_ECANTCREAT && strstr(e.msg, "g: cannot create directory: File exists"));
	unlink(parent);
}

TEST(fileio_nonces_differ)
{
	char a[GT_NONCE_SIZE], b[GT_NONCE_SIZE];
	gt_nonce(a);
	gt_nonce(b);
	CHECK(strlen(a) == 16 && strspn(a, "0123456789abcdef") == 16 && strcmp(a, b));
}

/* Starts a process that locks the file with the operation for ms milliseconds, and waits until it has the lock. */
static pid_t hold_lock(const char *path, int operation, int ms)
{
	int ready[2];
	char byte = 1;
	CHECK(!pipe(ready));
	pid_t child = fork();
	if (!child) {
		int fd = open(path, O_RDWR);
		byte = !flock(fd, operation);
		_exit(write(ready[1], &byte, 1) == 1 && !usleep(1000 * (useconds_t)ms) ? 0 : 1);
	}
	CHECK(child > 0 && read(ready[0], &byte, 1) == 1 && byte);
	close(ready[0]);
	close(ready[1]);
	return child;
}

/* gtrain runs and plot ask with a shared lock whether a run has locked its directory. A run that starts meanwhile must not fail. */
TEST(lock_ignores_those_who_only_ask)
{
	struct gt_err e;
	const char *path = at("lock");
	bool held;
	long holder;
	int fd, status = 1;
	CHECK_OK(gt_file_replace(path, 0600, "77\n", 3, &e), e);
	pid_t child = hold_lock(path, LOCK_SH, 100);
	CHECK_OK(gt_lock_take(path, &fd, &held, &holder, &e), e);
	CHECK(!held && fd >= 0);
	gt_lock_drop(fd);
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK_OK(gt_file_replace(path, 0600, "77\n", 3, &e), e);
	child = hold_lock(path, LOCK_EX, 100);
	CHECK_OK(gt_lock_take(path, &fd, &held, &holder, &e), e);
	CHECK(held && holder == 77 && fd < 0);
	CHECK(waitpid(child, &status, 0) == child && !status);
}

TEST(digest_vectors)
{
	/* XXH3_128bits of nothing with seed 0, from xxHash's own sanity values; and a value of libxxhash in its canonical form, which is what
	 * xxhsum -H2 prints. */
	char hex[GT_DIGEST_HEX], again[GT_DIGEST_HEX];
	gt_digest_bytes("", 0, hex);
	CHECK(!strcmp(hex, "99aa06d3014798d86001c324468d497f"));
	gt_digest_bytes("gtrain", 6, hex);
	CHECK(!strcmp(hex, "b01472bda65d5af1856ab3f234dc9fe5"));
	struct gt_digest *d;
	struct gt_err e;
	static char data[5000];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * 31 + i / 256);
	CHECK_OK(gt_digest_open(&d, &e), e);
	for (size_t n = 0; n < sizeof data; n += 61) { /* in pieces it is the same, through every branch of lengths */
		gt_digest_start(d);
		gt_digest_add(d, data, n / 3);
		gt_digest_add(d, data + n / 3, n - n / 3);
		gt_digest_get(d, again);
		gt_digest_bytes(data, n, hex);
		CHECK(!strcmp(hex, again));
	}
	gt_digest_close(d);
}

RUN_TESTS()
