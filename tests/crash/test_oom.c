/* Memory that runs out: the Nth allocation fails, once or from then on, for every N, while checkpoints are saved, searched, read, inspected
 * and exported. A clean error, nothing leaked into a wrong answer: above all, the newest checkpoint is not passed over for an older one. */
#include "base/json.h"
#include "ckpt_fixture.h"
#include "fast_dir.h"
#include "gtrain_use.h"
#include "store/safetensors.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

TEST(oom_sweep)
{
	test_skip("the sanitizer has an allocator of its own");
}

#else

#include "failing_malloc.h"

static char dir[256];
static int passed_over, wrong;

static void warn(void *user, const char *text)
{
	(void)user, (void)text;
	passed_over++;
}

enum what { SAVE, RETAIN, OPEN, INSPECT, EXPORT, MAPPED, WHATS };
static const char *const names[WHATS] = {"save", "retain", "open and read", "inspect", "export", "open safetensors"};

static enum gt_code once(enum what what, struct gt_ckpt_dir *d, int64_t step, struct gt_err *e)
{
	char path[300];
	struct gt_ckpt *c;
	struct gt_json j = {0};
	const char *line;
	struct gt_st_file *f;
	enum gt_code code;
	switch (what) {
	case SAVE:
		return fix_save(d, step, e);
	case RETAIN:
		return gt_ckpt_retain(d, 2, e);
	case OPEN:
		code = gt_ckpt_open(dir, "latest", true, warn, NULL, &c, e);
		if (code)
			return code;
		armed = false;
		CHECK(!fix_differs(c) && gt_ckpt_meta(c)->step == step);
		gt_ckpt_close(c);
		return GT_OK;
	case INSPECT:
		code = gt_inspect(dir, true, &j, e);
		code = code ? code : gt_json_finish(&j, &line, e);
		snprintf(path, sizeof path, "\"step\":%lld,\"epoch\"", (long long)(step - step % 3)); /* the best */
		CHECK(code || strstr(line, path));
		gt_json_free(&j);
		return code;
	case EXPORT:
		snprintf(path, sizeof path, "%s/out.safetensors", dir);
		return gt_export(dir, path, e);
	default:
		snprintf(path, sizeof path, "%s/latest/model.safetensors", dir);
		code = gt_st_open(path, &f, e);
		if (code)
			return code;
		CHECK(gt_st_count(f) == 3);
		gt_st_close(f);
		return GT_OK;
	}
}

TEST(oom_sweep)
{
	struct gt_ckpt_dir *d;
	struct gt_err e;
	char why[2048];
	int tried = 0;
	int64_t step = 3, found;
	snprintf(dir, sizeof dir, "%s/oom", fast_dir());
	CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	for (int64_t s = 1; s <= step; s++)
		CHECK_OK(fix_save(d, s, &e), e);
	for (int what = 0; what < WHATS; what++) {
		int most = 0;
		for (int mode = 0; mode < 2; mode++) {
			for (at = 1;; at++, tried++) {
				count = 0;
				ever = mode;
				e = (struct gt_err){0};
				long blocks = live;
				armed = true;
				enum gt_code code = once((enum what)what, d, what == SAVE ? step + 1 : step, &e);
				bool hit = count >= at;
				armed = false;
				bool leaked = live != blocks;
				CHECK_MSG(!leaked, "%s, allocation %d%s: %ld blocks leaked", names[what], at, mode ? " and all later" : "",
				          live - blocks);
				most = at > most ? at : most;
				/* A library may get by without what it was refused; then the answer must be right. */
				CHECK_MSG(!code || (hit && code == GT_EFAIL && strstr(e.msg, "out of memory")), "%s, allocation %d%s: code %d: %s",
				          names[what], at, mode ? " and all later" : "", code, e.msg);
				if (what == SAVE && !code)
					step++;
				bool whole = fix_oracle(dir, step, step, &found, why, sizeof why);
				CHECK_MSG(whole, "%s, allocation %d: %s", names[what], at, why);
				wrong += leaked || (code && (!hit || code != GT_EFAIL)) || !whole;
				if (!hit)
					break;
			}
		}
		CHECK_MSG(most > 3, "%s: only %d allocations seen", names[what], most);
	}
	CHECK(!passed_over);
	gt_ckpt_dir_close(d);
	printf("# sweep refused allocations, checkpoints: %d points, %d failures\n", tried, wrong + passed_over);
}

#endif

RUN_TESTS()
