/* Disks that fill up while a checkpoint is written: files that may not grow (RLIMIT_FSIZE) and small tmpfs. */
#include "ckpt_fixture.h"
#include "fast_dir.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOOD = 0, FULL = 1, SKIP = 77, BAD = 99 }; /* exit codes of a child */

/* In a child: saves `step` on a disk that may be full, and compares what is left with the oracle. */
static int save_once(const char *dir, int64_t before, int64_t step)
{
	struct gt_ckpt_dir *d;
	struct gt_err e = {0};
	char why[2048] = "";
	int64_t found;
	enum gt_code code = gt_ckpt_dir_open(dir, &d, &e);
	if (code) { /* the lock is a file with our pid, so a full disk is detected before step 0 */
		if (code != GT_ECANTCREAT || !strstr(e.msg, dir)) {
			printf("open: code %d: %s\n", code, e.msg);
			return BAD;
		}
	} else {
		code = fix_save(d, step, &e);
		gt_ckpt_dir_close(d);
		if (code && (code != GT_EIO || !strstr(e.msg, dir) || (e.sys_errno != EFBIG && e.sys_errno != ENOSPC))) {
			printf("save: code %d: %s\n", code, e.msg);
			return BAD;
		}
	}
	if (!fix_oracle(dir, code ? before : step, code ? before : step, &found, why, sizeof why)) {
		printf("code %d (%s): %s\n", code, e.msg, why);
		return BAD;
	}
	return code ? FULL : GOOD;
}

TEST(diskfull_file_size_limit)
{
	char dir[256];
	struct gt_ckpt_dir *d;
	struct gt_err e;
	int full = 0, good = 0, bad = 0;
	snprintf(dir, sizeof dir, "%s/limit", fast_dir());
	CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	CHECK_OK(fix_save(d, 1, &e), e);
	gt_ckpt_dir_close(d);
	for (rlim_t limit = 0; limit < 800; limit += 7) {
		fflush(stdout);
		pid_t pid = fork();
		if (!pid) {
			struct rlimit r = {limit, limit};
			signal(SIGXFSZ, SIG_IGN); /* as gtrain does: write then fails with EFBIG */
			setrlimit(RLIMIT_FSIZE, &r);
			_exit(save_once(dir, 1, 2));
		}
		int status;
		waitpid(pid, &status, 0);
		int rc = WIFEXITED(status) ? WEXITSTATUS(status) : BAD;
		CHECK_MSG(rc == GOOD || rc == FULL, "limit %d: status %x", (int)limit, status);
		bad += rc != GOOD && rc != FULL;
		full += rc == FULL;
		good += rc == GOOD;
		if (rc == GOOD) { /* back to step 1 alone */
			char path[300];
			snprintf(path, sizeof path, "%s/step-00000002", dir);
			CHECK_OK(gt_tree_remove(path, &e), e);
		}
	}
	CHECK(full > 50 && good > 10);
	printf("# sweep full disk, file size limit: %d points, %d failures, %d sizes were too small\n", full + good, bad, full);
}

/* In a child, in a mount namespace of its own. */
static int on_tmpfs(const char *at, int kib)
{
	char dir[300], options[64];
	struct gt_ckpt_dir *d;
	struct gt_err e = {0};
	if (unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return SKIP;
	snprintf(options, sizeof options, "size=%dk", kib);
	if (mount("tmpfs", at, "tmpfs", 0, options))
		return SKIP;
	snprintf(dir, sizeof dir, "%s/run", at);
	int64_t last = -1;
	enum gt_code code = gt_ckpt_dir_open(dir, &d, &e);
	for (int64_t s = 1; !code && s < 40; s++) { /* without retention: until it is full */
		code = fix_save(d, s, &e);
		last = code ? last : s;
	}
	if (!code || !strstr(e.msg, at) || e.sys_errno != ENOSPC || (last > 0 && code != GT_EIO)) {
		printf("%d KiB: code %d: %s\n", kib, code, e.msg);
		return BAD;
	}
	if (last < 0)
		return FULL;
	/* Full, and yet: the last one is whole; retention frees room; the run goes on. */
	char why[2048] = "";
	int64_t found;
	if (!fix_oracle(dir, last, last, &found, why, sizeof why)) {
		printf("%d KiB: %s\n", kib, why);
		return BAD;
	}
	if (last >= 3) {
		if (gt_ckpt_retain(d, 1, &e) || fix_save(d, last + 1, &e)) {
			printf("%d KiB, after a retention: %s\n", kib, e.msg);
			return BAD;
		}
		if (!fix_oracle(dir, last + 1, last + 1, &found, why, sizeof why)) {
			printf("%d KiB, after a retention: %s\n", kib, why);
			return BAD;
		}
	}
	return GOOD;
}

TEST(diskfull_tmpfs)
{
	char at[256];
	struct gt_err e;
	int tried = 0, bad = 0;
	snprintf(at, sizeof at, "%s/tmpfs", fast_dir());
	CHECK_OK(gt_dir_make(at, NULL, &e), e);
	for (int kib = 4; kib <= 160; kib += 4, tried++) {
		fflush(stdout);
		pid_t pid = fork();
		if (!pid)
			_exit(on_tmpfs(at, kib));
		int status;
		waitpid(pid, &status, 0);
		int rc = WIFEXITED(status) ? WEXITSTATUS(status) : BAD;
		if (rc == SKIP) {
			test_skip("mounting a tmpfs is not permitted here");
			return;
		}
		CHECK_MSG(rc == GOOD || (rc == FULL && kib < 32), "%d KiB: status %x", kib, status);
		bad += rc != GOOD && (rc != FULL || kib >= 32);
	}
	printf("# sweep full disk, tmpfs: %d points, %d failures\n", tried, bad);
}

RUN_TESTS()
