/* Errors: the errno of a failed call, texts before and after a message, and messages that are too long. */
#include "base/err.h"
#include "test.h"
#include <errno.h>
#include <string.h>

TEST(err_errno_is_kept)
{
	struct gt_err e, copy;
	char full[200];
	snprintf(full, sizeof full, "run: a/b: cannot write: %s; free some space", strerror(ENOSPC));
	CHECK(gt_fail_errno(&e, GT_EIO, ENOSPC, "%s: cannot write", "a/b") == GT_EIO);
	CHECK(e.sys_errno == ENOSPC);
	CHECK(gt_fail_prefix(&e, "%s", "run") == GT_EIO);
	CHECK(gt_fail_suffix(&e, "free some %s", "space") == GT_EIO);
	CHECK_MSG(!strcmp(e.msg, full), "%s", e.msg);
	CHECK(gt_fail_copy(&copy, &e) == GT_EIO);
	CHECK(copy.sys_errno == ENOSPC && !strcmp(copy.msg, full));
	CHECK(gt_fail(&e, GT_EDATA, "bad") == GT_EDATA); /* an error without a failed call has no errno of an older one */
	CHECK(e.sys_errno == 0);
}

TEST(err_position_is_kept_by_suffix)
{
	struct gt_err e;
	gt_fail(&e, GT_ECONFIG, "a.cfg:3: train.lr: expected a number");
	e.line = 3;
	e.subject = 18;
	gt_fail_suffix(&e, "see gtrain.cfg(5)");
	CHECK(e.line == 3 && e.subject == 18);
	gt_fail_prefix(&e, "trial 4"); /* the message no longer begins with file, line and key */
	CHECK(e.line == 0 && e.subject == 0);
}

TEST(err_suffix_has_room)
{
	struct gt_err e;
	char name[2000];
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	gt_fail(&e, GT_EIO, "%s", name);
	CHECK(strlen(e.msg) == sizeof e.msg - 1);
	gt_fail_suffix(&e, "remove the file");
	CHECK(strlen(e.msg) == sizeof e.msg - 1);
	CHECK(!strcmp(e.msg + sizeof e.msg - sizeof "; remove the file", "; remove the file"));
	gt_fail_errno(&e, GT_EIO, ENOSPC, "%s", name);
	gt_fail_prefix(&e, "%s", name);
	CHECK(strlen(e.msg) == sizeof e.msg - 1 && e.sys_errno == ENOSPC);
	gt_fail_suffix(&e, "%s", name);
	CHECK(strlen(e.msg) == sizeof e.msg - 1);
}

TEST(err_may_be_null)
{
	struct gt_err e;
	gt_fail(&e, GT_EIO, "no");
	CHECK(gt_fail(NULL, GT_EIO, "no") == GT_EIO);
	CHECK(gt_fail_errno(NULL, GT_EIO, ENOSPC, "no") == GT_EIO);
	CHECK(gt_fail_copy(NULL, &e) == GT_EIO);
	gt_fail_prefix(NULL, "no");
	gt_fail_suffix(NULL, "no");
}

RUN_TESTS()
