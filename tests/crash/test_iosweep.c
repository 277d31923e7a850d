/* Every call of a save that changes the file system fails once, or from then on for ever, in every way: old checkpoints stay whole, the
 * error is GT_EIO and names a file, and the next run sweeps up and goes on. */
#include "ckpt_fixture.h"
#include "fast_dir.h"
#include "io_hook.h"
#include <stdlib.h>

enum kind { K_ENOSPC, K_EIO, K_EINTR, K_SHORT, K_COUNT };
static const int kind_errno[K_COUNT] = {ENOSPC, EIO, EINTR, 0};
static const char *const kind_name[K_COUNT] = {"ENOSPC", "EIO", "EINTR", "short"};

static struct {
	bool ever, no_exchange;
	enum kind kind;
	int at, count;
	enum io_op hit; /* the first call that failed */
	char path[512];
} inject;

static int before(struct io_call *c)
{
	if (inject.no_exchange && c->op == IO_EXCHANGE)
		return EINVAL; /* as a file system that cannot */
	if (inject.kind == K_SHORT && (c->op != IO_WRITE || c->n < 2))
		return 0;
	int n = ++inject.count;
	if (n < inject.at || (n > inject.at && !inject.ever))
		return 0;
	if (n == inject.at) {
		inject.hit = c->op;
		snprintf(inject.path, sizeof inject.path, "%s", c->path);
	}
	if (inject.kind == K_SHORT)
		c->n = c->n / 2;
	return kind_errno[inject.kind];
}

static int lost; /* old checkpoints that a fault took */

/* One save of `step` and a retention with the fault armed. Returns whether the fault came up. */
static bool one(const char *dir, int64_t first, int64_t step)
{
	struct gt_ckpt_dir *d;
	struct gt_ckpt *c;
	struct gt_err e, es = {0}, er = {0};
	char why[2048], what[256];
	int64_t found;
	CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	if (!d)
		return false;
	for (int64_t s = first; s <= 3; s++)
		CHECK_OK(fix_save(d, s, &e), e);
	inject.count = 0;
	io_before = before;
	enum gt_code save = fix_save(d, step, &es);
	enum gt_code retain = save ? GT_OK : gt_ckpt_retain(d, 2, &er);
	io_before = NULL;
	bool hit = inject.count >= inject.at;
	snprintf(what, sizeof what, "step %d, call %d (%s %.100s) %s%s", (int)step, inject.at, io_name(inject.hit), inject.path,
	         kind_name[inject.kind], inject.ever ? " for ever" : "");
	CHECK_MSG(!save || (save == GT_EIO && strstr(es.msg, dir)), "%s: code %d: %s", what, save, es.msg);
	CHECK_MSG(!retain || (retain == GT_EIO && strstr(er.msg, dir)), "%s: code %d: %s", what, retain, er.msg);
	if (!hit || inject.kind == K_SHORT || (inject.kind == K_EINTR && !inject.ever && inject.hit <= IO_WRITE))
		CHECK_MSG(!save && !retain, "%s: %s%s", what, es.msg, er.msg); /* these must not be seen at all */
	if (hit && inject.hit == IO_FSYNC && !inject.ever && strstr(inject.path, ".tmp-"))
		CHECK_MSG(!save, "%s: the temporary was not written again: %s", what, es.msg);
	/* Oracle: before anybody sweeps, and after. */
	for (int swept = 0; swept < 2; swept++) {
		if (!fix_oracle(dir, save ? 3 : step, step, &found, why, sizeof why)) {
			lost++;
			CHECK_MSG(false, "%s: %s", what, why);
		}
		if (save || step == 3) {
			CHECK_MSG(!gt_ckpt_open(dir, "3", true, NULL, NULL, &c, &e), "%s: %s", what, e.msg);
			gt_ckpt_close(c);
		}
		CHECK_MSG(!gt_ckpt_open(dir, "best", true, NULL, NULL, &c, &e), "%s: best: %s", what, e.msg);
		gt_ckpt_close(c);
		gt_ckpt_dir_close(d);
		CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	}
	CHECK_MSG(!fix_count_leftovers(dir), "%s: %d left over", what, fix_count_leftovers(dir));
	CHECK_OK(fix_save(d, 5, &e), e);
	CHECK_MSG(fix_oracle(dir, 5, 5, &found, why, sizeof why), "%s: %s", what, why);
	gt_ckpt_dir_close(d);
	return hit;
}

static void sweep(const char *name, int64_t step)
{
	char dir[256];
	int points = 0, calls = 0;
	for (int kind = 0; kind < K_COUNT; kind++) {
		for (int ever = 0; ever < 2; ever++) {
			for (int at = 1;; at++, points++) {
				snprintf(dir, sizeof dir, "%s/%s-%d-%d-%d", fast_dir(), name, kind, ever, at);
				inject.kind = (enum kind)kind;
				inject.ever = ever;
				inject.at = at;
				bool hit = one(dir, 1, step);
				CHECK(!gt_tree_remove(dir, NULL));
				if (!hit)
					break;
				calls = at > calls ? at : calls;
			}
		}
	}
	CHECK(calls > 30); /* a save makes that many, or the hooks see nothing */
	printf("# sweep failed calls of a save and a retention, %s: %d points, %d failures, %d calls\n", name, points, lost, calls);
}

TEST(iosweep_new_step)
{
	sweep("new step", 4);
}

TEST(iosweep_same_step)
{
	sweep("same step", 3);
}

TEST(iosweep_same_step_without_exchange)
{
	inject.no_exchange = true;
	sweep("same step, no RENAME_EXCHANGE", 3);
	inject.no_exchange = false;
}

RUN_TESTS()
