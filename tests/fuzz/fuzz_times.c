/* libFuzzer target: a file of times that `gtrain bench --json` has measured (make fuzz F=times).
 *
 * What is accepted must be usable: the rows are in order and different, each has a finite time and number of calls, and the time of every
 * row, and of sizes between and outside of the rows, is finite and not negative. */
#include "base/arena.h"
#include "fuzz_file.h"
#include "report/cost_times.h"
#include <math.h>
#include <string.h>

static void check_time(const struct gt_times *t, const struct gt_time_row *r, int64_t size)
{
	double seconds;
	bool scaled;
	FUZZ_ASSERT(gt_times_find(t, r->op, r->layer, size, &seconds, &scaled));
	FUZZ_ASSERT(isfinite(seconds) && seconds >= 0);
	FUZZ_ASSERT(size != r->size || (!scaled && seconds == r->seconds));
}

static void check_rows(const struct gt_times *t)
{
	double seconds;
	bool scaled;
	for (int i = 0; i < t->n; i++) {
		const struct gt_time_row *r = &t->row[i], *next = i + 1 < t->n ? r + 1 : NULL;
		FUZZ_ASSERT(*r->op && r->size >= 0 && isfinite(r->calls) && r->calls > 0 && isfinite(r->seconds) && r->seconds >= 0);
		int order = next ? strcmp(r->op, next->op) : -1;
		order = order ? order : strcmp(r->layer, next->layer);
		FUZZ_ASSERT(order < 0 || (order == 0 && r->size < next->size));
		check_time(t, r, r->size);
		check_time(t, r, 0);
		check_time(t, r, r->size + 1);
		check_time(t, r, next ? (r->size + next->size) / 2 : INT64_C(1) << 53);
	}
	FUZZ_ASSERT(!gt_times_find(t, "no operation has this name", "", 1, &seconds, &scaled));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file;
	struct gt_arena *a;
	struct gt_err e = {0};
	struct gt_times t;
	if (gt_arena_open(&a, &e))
		return 0;
	enum gt_code code = gt_times_read(a, fuzz_put(&file, data, size), &t, &e);
	FUZZ_ASSERT(code == GT_OK || (code == GT_EDATA && e.msg[0]));
	if (code == GT_OK) {
		FUZZ_ASSERT(t.n > 0 && t.device);
		check_rows(&t);
	}
	gt_arena_close(a);
	return 0;
}
