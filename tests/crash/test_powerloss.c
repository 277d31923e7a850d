/* What a power cut during saves and retention may leave: every prefix of their calls, each with several states of the disk (disk_model.h).
 * Each state must satisfy the oracle. */
/* tests/run: beside others */
#include "ckpt_fixture.h"
#include "fast_dir.h"
#include "disk_model.h"

#define RANDOM_STATES 10 /* for each prefix, beside the fixed policies; SWEEP=full: */
#define RANDOM_STATES_FULL 40

static int failures;

/* CHECK_MSG that counts. */
#define STATE(cond, ...) ((cond) ? (void)0 : (failures++, test_fail(__FILE__, __LINE__, __VA_ARGS__)))

/* Stronger than the oracle: whatever bears the name of a checkpoint is whole, the old ones that a retention was at too. */
static void check_every_name(const char *dir, const char *what)
{
	char path[512];
	struct gt_ckpt *c;
	struct gt_err e;
	DIR *d = opendir(dir);
	for (struct dirent *i; d && (i = readdir(d));) {
		if (strncmp(i->d_name, "step-", 5) || strchr(i->d_name, '.'))
			continue;
		snprintf(path, sizeof path, "%.200s/%.100s", dir, i->d_name);
		enum gt_code code = gt_ckpt_open(path, "latest", true, NULL, NULL, &c, &e);
		STATE(!code, "%s: %s", what, e.msg);
		if (!code)
			gt_ckpt_close(c);
	}
	if (d)
		closedir(d);
}

static void check_state(const char *dir, int64_t done, int64_t begun, const char *what)
{
	struct gt_ckpt_dir *d;
	struct gt_ckpt *c;
	struct gt_err e;
	char why[2048] = "";
	int64_t found, again;
	check_every_name(dir, what);
	STATE(fix_oracle(dir, done, begun, &found, why, sizeof why), "%s: %s", what, why);
	enum gt_code best = gt_ckpt_open(dir, "best", true, NULL, NULL, &c, &e);
	STATE(!best || (done < 3 && best == GT_ENOINPUT), "%s: best: %s", what, e.msg);
	if (!best)
		gt_ckpt_close(c);
	enum gt_code code = gt_ckpt_dir_open(dir, &d, &e);
	STATE(!code, "%s: %s", what, e.msg);
	if (code)
		return;
	STATE(!fix_count_leftovers(dir), "%s: %d left over", what, fix_count_leftovers(dir));
	STATE(fix_oracle(dir, found, found, &again, why, sizeof why), "%s, swept: %s", what, why);
	/* The run that goes on keeps what its newest manifest calls the best. */
	int64_t next = found < 0 ? 1 : found + 1;
	STATE(!fix_save(d, next, &e) && !gt_ckpt_retain(d, 1, &e), "%s: %s", what, e.msg);
	STATE(fix_oracle(dir, next, next, &again, why, sizeof why), "%s, saved again: %s", what, why);
	best = gt_ckpt_open(dir, "best", true, NULL, NULL, &c, &e);
	int64_t best_step = best ? -1 : gt_ckpt_meta(c)->step;
	STATE(next < 3 ? best_step <= 0 : best_step == next - next % 3, "%s: best is %d after step %d", what, (int)best_step, (int)next);
	if (!best)
		gt_ckpt_close(c);
	gt_ckpt_dir_close(d);
}

static void try_prefixes(const char *name)
{
	char dir[256], what[256];
	const char *sweep = getenv("SWEEP");
	int states = 0, policies = FIXED_POLICIES + (sweep && !strcmp(sweep, "full") ? RANDOM_STATES_FULL : RANDOM_STATES);
	failures = 0;
	int64_t done = -1, begun = -1;
	int top = new_node(DIR_NODE);
	for (int k = 0; k <= nrecords; k++) {
		for (int policy = 0; policy < policies; policy++) {
			snprintf(dir, sizeof dir, "%s/state", fast_dir());
			snprintf(what, sizeof what, "%s, after %d calls, policy %d", name, k, policy);
			lose_power(dir, top, k, policy);
			check_state(dir, done, begun, what);
			if (gt_tree_remove(dir, NULL))
				abort();
			states++;
		}
		if (k == nrecords)
			break;
		if (records[k].op == MARK_BEGIN)
			begun = records[k].step > begun ? records[k].step : begun;
		else if (records[k].op == MARK_DONE)
			done = records[k].step;
		else
			replay(&records[k]);
	}
	printf("# sweep power loss, %s: %d points, %d failures, %d calls\n", name, states, failures, nrecords);
	forget_records();
}

/* Saves first..last with retention, then the last one again, on a record. */
static void record_run(const char *name, int64_t last)
{
	struct gt_ckpt_dir *d;
	struct gt_err e;
	snprintf(root, sizeof root, "%s/%s", fast_dir(), name);
	CHECK_OK(gt_ckpt_dir_open(root, &d, &e), e);
	if (!d)
		return;
	io_before = before;
	io_after = after;
	for (int64_t s = 1; s <= last + 1; s++) {
		int64_t step = s <= last ? s : last;
		mark(MARK_BEGIN, step);
		CHECK_OK(fix_save(d, step, &e), e);
		mark(MARK_DONE, step);
		CHECK_OK(gt_ckpt_retain(d, 2, &e), e);
	}
	io_before = NULL;
	io_after = NULL;
	gt_ckpt_dir_close(d);
	CHECK(nrecords > 100); /* or the hooks saw nothing */
}

TEST(powerloss_saves_and_retention)
{
	record_run("exchange", 5);
	try_prefixes("saves and retention");
}

TEST(powerloss_without_exchange)
{
	no_exchange = true;
	record_run("rename", 3);
	no_exchange = false;
	try_prefixes("no RENAME_EXCHANGE");
}

RUN_TESTS()
