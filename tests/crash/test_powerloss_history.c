/* What a power cut may leave of a run that goes back to an earlier checkpoint: the commit, the move of what is left behind to history-6,
 * and the file that changes places with it; then the next writer finishes it. No checkpoint may be lost in any state. */
/* tests/run: beside others */
#include "ckpt_fixture.h"
#include "disk_model.h"
#include "fast_dir.h"
#include "store/ckpt_scan.h"

#define RANDOM_STATES 10 /* for each prefix, beside the fixed policies; SWEEP=full: */
#define RANDOM_STATES_FULL 40

enum {
	LAST = 5,
	BACK = 2,
	NEW_STEP = 4,
	NEW_SERIAL = LAST + 1
}; /* steps 1 to 5 have the serials 1 to 5; then step 4 once more, from step 2 */

static int failures;
#define STATE(cond, ...) ((cond) ? (void)0 : (failures++, test_fail(__FILE__, __LINE__, __VA_ARGS__)))

/* The serials of the whole checkpoints in dir, as bits. */
static unsigned serials(const char *dir, const char *what)
{
	struct gt_ckpt_entry *list;
	struct gt_ckpt *c;
	struct gt_err e;
	unsigned found = 0;
	int n;
	if (gt_ckpt_scan(dir, false, &list, &n, &e))
		return 0;
	for (int i = 0; i < n; i++) {
		char path[512];
		snprintf(path, sizeof path, "%.300s/%.100s", dir, list[i].name);
		if (list[i].kind != GT_CKPT_STEP || gt_ckpt_open(path, NULL, true, NULL, NULL, &c, &e)) {
			STATE(list[i].kind != GT_CKPT_STEP, "%s: %s", what, e.msg);
			continue;
		}
		STATE(!fix_differs(c), "%s: %s differs", what, path);
		STATE(!(found & 1u << gt_ckpt_serial(c)), "%s: serial %d twice", what, (int)gt_ckpt_serial(c));
		found |= 1u << gt_ckpt_serial(c);
		gt_ckpt_close(c);
	}
	free(list);
	return found;
}

/* The first byte of dir/log: 'o' of the run of before, 'n' of the one that went back, 0: there is none. */
static int log_of(const char *dir)
{
	char path[512], byte = 0;
	snprintf(path, sizeof path, "%.400s/log", dir);
	FILE *f = fopen(path, "r");
	if (f) {
		byte = (char)fgetc(f);
		fclose(f);
	}
	return byte;
}

/* Names in dir that are none of those a run directory has when nobody writes. */
static int strange(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += strstr(e->d_name, ".tmp-") || strstr(e->d_name, ".old-") || strstr(e->d_name, ".prev-") || !strncmp(e->d_name, "next-", 5);
	if (d)
		closedir(d);
	return n;
}

static void check_state(const char *dir, bool done, const char *what)
{
	const unsigned old = 0x3e, kept = 0x06, left = old & ~kept, new = 1u << NEW_SERIAL;
	struct gt_ckpt_dir *d;
	struct gt_err e;
	char history[512];
	int64_t serial;
	snprintf(history, sizeof history, "%.400s/history-%d", dir, NEW_SERIAL);
	STATE(!((old & ~(serials(dir, what) | serials(history, what) | (done ? 0 : old)))), "%s: a checkpoint is lost", what);
	enum gt_code code = gt_ckpt_dir_open(dir, &d, &e);
	STATE(!code, "%s: %s", what, e.msg);
	if (code)
		return;
	STATE(!gt_ckpt_newest_serial(dir, &serial, &e) && (serial == NEW_SERIAL || (!done && serial == LAST)), "%s: the newest serial is %d",
	      what, (int)serial);
	bool went = serial == NEW_SERIAL;
	unsigned here = serials(dir, what), there = serials(history, what);
	STATE(here == (went ? kept | new : old), "%s: the run has the serials %x", what, here);
	STATE(there == (went ? left : 0), "%s: the history has the serials %x", what, there);
	STATE(log_of(dir) == (went ? 'n' : 'o'), "%s: the run's log is of the wrong line", what);
	STATE(log_of(history) == (went ? 'o' : 0), "%s: the history's log is of the wrong line", what);
	STATE(!strange(dir) && (!went || !strange(history)), "%s: something is left over", what);
	int64_t latest, best;
	STATE(!gt_ckpt_link_step(dir, "latest", &latest, &e) && latest == (went ? NEW_STEP : LAST), "%s: latest is %d", what, (int)latest);
	STATE(!gt_ckpt_link_step(dir, "best", &best, &e) && best == (went ? -1 : 3), "%s: best is %d", what,
	      (int)best); /* step 3 is off the new line */
	STATE(!went || (!gt_ckpt_link_step(history, "latest", &latest, &e) && latest == LAST), "%s: the history's latest is %d", what,
	      (int)latest);
	STATE(!went || (!gt_ckpt_link_step(history, "best", &best, &e) && best == 3), "%s: the history's best is %d", what, (int)best);
	gt_ckpt_dir_close(d);
}

static void write_log(const char *dir, int64_t next, const char *text)
{
	char path[GT_PATH_SIZE];
	struct gt_err e;
	CHECK_OK(gt_ckpt_next_path(path, dir, next, "log", &e), e);
	CHECK_OK(gt_file_replace(path, 0600, text, strlen(text), &e), e);
}

/* What a run and then one that goes back do to their directory; returns the number of calls before the second one begins. */
static int record_run(const char *name)
{
	struct gt_ckpt_dir *d;
	struct gt_ckpt *from;
	struct gt_err e;
	char path[512], text[2048];
	int64_t next;
	snprintf(root, sizeof root, "%s/%s", fast_dir(), name);
	CHECK_OK(gt_ckpt_dir_open(root, &d, &e), e);
	if (!d)
		return 0;
	io_before = before;
	io_after = after;
	write_log(root, 0, "old");
	for (int64_t s = 1; s <= LAST; s++)
		CHECK_OK(fix_save(d, s, &e), e);
	int start = nrecords;
	snprintf(path, sizeof path, "%d", BACK);
	CHECK_OK(gt_ckpt_open(root, path, true, NULL, NULL, &from, &e), e);
	CHECK_OK(gt_ckpt_dir_continue(d, from, &next, text, sizeof text, &e), e);
	CHECK(next == NEW_SERIAL);
	gt_ckpt_close(from);
	write_log(root, next, "new");
	mark(MARK_BEGIN, NEW_STEP);
	CHECK_OK(fix_save(d, NEW_STEP, &e), e);
	mark(MARK_DONE, NEW_STEP);
	io_before = NULL;
	io_after = NULL;
	gt_ckpt_dir_close(d);
	CHECK(nrecords - start > 30); /* or the hooks saw nothing */
	return start;
}

static void sweep(const char *name, int start)
{
	char dir[256], what[256];
	const char *full = getenv("SWEEP");
	int states = 0, policies = FIXED_POLICIES + (full && !strcmp(full, "full") ? RANDOM_STATES_FULL : RANDOM_STATES);
	bool done = false;
	failures = 0;
	int top = new_node(DIR_NODE);
	for (int k = 0; k <= nrecords; k++) {
		for (int policy = 0; k >= start && policy < policies; policy++) {
			snprintf(dir, sizeof dir, "%s/state", fast_dir());
			snprintf(what, sizeof what, "%s, after %d calls, policy %d", name, k, policy);
			lose_power(dir, top, k, policy);
			check_state(dir, done, what);
			if (gt_tree_remove(dir, NULL))
				abort();
			states++;
		}
		if (k == nrecords)
			break;
		done |= records[k].op == MARK_DONE;
		if (records[k].op != MARK_BEGIN && records[k].op != MARK_DONE)
			replay(&records[k]);
	}
	printf("# sweep power loss, %s: %d points, %d failures, %d calls\n", name, states, failures, nrecords - start);
	forget_records();
}

TEST(powerloss_going_back)
{
	sweep("going back", record_run("back"));
}

TEST(powerloss_going_back_without_exchange)
{
	no_exchange = true;
	int start = record_run("back-rename");
	no_exchange = false;
	sweep("going back, no RENAME_NOREPLACE", start);
}

RUN_TESTS()
