/* What test_kill.sh runs and kills.
 *   tool_ckpt save DIR FROM TO KEEP   saves FROM..TO with retention; "begin N" and "done N" on stdout, each in one write
 *   tool_ckpt check DIR LO HI         the oracle: the newest checkpoint that verifies is of step LO..HI and whole, before and after a
 *                                     sweep, which leaves nothing over; LO -1: there may be none. Prints the step. */
#include "ckpt_fixture.h"
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

static int fail(const struct gt_err *e)
{
	fprintf(stderr, "tool_ckpt: %s\n", e->msg);
	return e->code;
}

static void say(const char *word, int64_t step)
{
	char line[64];
	int n = snprintf(line, sizeof line, "%s %lld\n", word, (long long)step);
	if (write(1, line, (size_t)n) != n)
		_exit(1);
}

static int save(const char *dir, int64_t from, int64_t to, int64_t keep)
{
	struct gt_ckpt_dir *d;
	struct gt_err e;
	if (gt_ckpt_dir_open(dir, &d, &e))
		return fail(&e);
	for (int64_t s = from; s <= to; s++) {
		say("begin", s);
		if (fix_save(d, s, &e))
			return fail(&e);
		say("done", s);
		if (gt_ckpt_retain(d, keep, &e))
			return fail(&e);
	}
	gt_ckpt_dir_close(d);
	return 0;
}

static int check(const char *dir, int64_t lo, int64_t hi)
{
	struct gt_ckpt_dir *d;
	struct gt_ckpt *c;
	struct gt_err e;
	char why[2048] = "";
	int64_t found, again;
	if (!fix_oracle(dir, lo, hi, &found, why, sizeof why)) {
		printf("%s\n", why);
		return 1;
	}
	if (gt_ckpt_dir_open(dir, &d, &e))
		return fail(&e);
	gt_ckpt_dir_close(d);
	if (!fix_oracle(dir, found, found, &again, why, sizeof why)) {
		printf("after a sweep: %s\n", why);
		return 1;
	}
	if (fix_count_leftovers(dir)) {
		printf("%d left over after a sweep\n", fix_count_leftovers(dir));
		return 1;
	}
	if (found >= 3) {
		if (gt_ckpt_open(dir, "best", true, NULL, NULL, &c, &e))
			return fail(&e);
		if (gt_ckpt_meta(c)->step != found - found % 3) {
			printf("best is %lld, the newest %lld\n", (long long)gt_ckpt_meta(c)->step, (long long)found);
			return 1;
		}
		gt_ckpt_close(c);
	}
	printf("%lld\n", (long long)found);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "save"))
		return save(argv[2], atoll(argv[3]), atoll(argv[4]), atoll(argv[5]));
	if (argc == 5 && !strcmp(argv[1], "check"))
		return check(argv[2], atoll(argv[3]), atoll(argv[4]));
	fprintf(stderr, "usage: tool_ckpt save DIR FROM TO KEEP | check DIR LO HI\n");
	return 64;
}
