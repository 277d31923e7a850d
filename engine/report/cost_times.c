#include "report/cost_times.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RATIO 1.3 /* ratio of a step to the sum of its kernels, or the inverse, above which there is a warning; normally 1.05 */
#define MOST_CALLS 1e15 /* upper limit of the calls of a row, so that means over rows are finite */
#define SAME 0.02 /* relative difference of two sizes that count as equal: layouts of devices differ in padding */

enum {
	MOST_BYTES = 64 << 20,  /* maximum size of a file of times */
	MOST_VALUES = 4 << 20,  /* maximum number of JSON values in a line */
	DEPTH = 4               /* levels of nesting of a line of bench */
};

static int compare_names(const struct gt_time_row *r, const char *op, const char *layer)
{
	int c = strcmp(r->op, op);
	return c ? c : strcmp(r->layer, layer);
}

static int by_name(const void *x, const void *y)
{
	const struct gt_time_row *a = x, *b = y;
	int c = compare_names(a, b->op, b->layer);
	return c ? c : a->size < b->size ? -1 : a->size > b->size;
}

void gt_times_sort(struct gt_times *t)
{
	int n = 0;
	qsort(t->row, (size_t)t->n, sizeof *t->row, by_name);
	for (int i = 0; i < t->n; i++) {
		struct gt_time_row *r = &t->row[i], *last = n ? &t->row[n - 1] : NULL;
		if (!last || by_name(last, r)) {
			t->row[n++] = *r;
			continue;
		}
		last->seconds = (last->seconds * last->calls + r->seconds * r->calls) / (last->calls + r->calls);
		last->calls += r->calls;
	}
	t->n = n;
}

bool gt_times_find(const struct gt_times *t, const char *op, const char *layer, int64_t size, double *seconds, bool *scaled)
{
	int begin = 0, end = t->n;
	while (begin < end) {
		int middle = (begin + end) / 2;
		if (compare_names(&t->row[middle], op, layer) < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	for (end = begin; end < t->n && !compare_names(&t->row[end], op, layer);)
		end++;
	if (begin == end)
		return false;
	int high = begin;
	while (high < end - 1 && t->row[high].size < size)
		high++;
	const struct gt_time_row *b = &t->row[high], *a = high > begin ? b - 1 : high + 1 < end ? b + 1 : b;
	*scaled = fabs((double)(b->size - size)) > SAME * (double)b->size;
	*seconds = b->seconds;
	if (b->size == size)
		return true;
	if (a != b)
		*seconds += (a->seconds - b->seconds) * (double)(size - b->size) / (double)(a->size - b->size);
	if ((a == b || *seconds < 0) && b->size > 0)
		*seconds = b->seconds * (double)size / (double)b->size;
	return true;
}

/* ---- the file ------------------------------------------------------------------------------------------------------------------------ */

/* Makes room for n more rows. The memory at least doubles, so that a file of many lines is copied a few times only. */
static enum gt_code reserve_rows(struct gt_arena *a, int n, struct gt_times *t, struct gt_err *err)
{
	struct gt_time_row *row;
	if (t->n + n <= t->cap)
		return GT_OK;
	t->cap = t->n + n > 2 * t->cap ? t->n + n : 2 * t->cap;
	GT_NEW(row, a, t->cap, err);
	if (t->n)
		memcpy(row, t->row, (size_t)t->n * sizeof *row);
	t->row = row;
	return GT_OK;
}

/* Sets t->doubt if the times of the kernels in a line, which are measured in other steps than the step itself, do not fit it, and fit worse
 * than those of the lines before. *worst: the largest ratio so far. */
static enum gt_code compare_with_step(struct gt_arena *a, int line, const struct gt_json_value *v, double *worst, struct gt_times *t,
                                      struct gt_err *err)
{
	double step = gt_json_num(v, "step_ms"), kernels = gt_json_num(v, "kernels_ms");
	double ratio = step > 0 && kernels > 0 ? fmax(kernels / step, step / kernels) : 1; /* 1: an older version has written the line */
	if (!(ratio > *worst))
		return GT_OK;
	*worst = ratio;
	GT_NEW_STR(t->doubt, gt_arena_printf(a, "%.300s:%d: the kernels take %.3g ms together, but the step took %.3g ms, so the prediction "
	                                     "may be wrong; measure them again while nothing else runs on the machine", t->path, line, kernels,
	                                     step), err);
	return GT_OK;
}

/* Appends the rows of one line of bench, which has `kernels`. */
static enum gt_code add_line(struct gt_arena *a, const char *path, int line, const struct gt_json_value *v, struct gt_times *t,
                             struct gt_err *err)
{
	int n = 0;
	for (const struct gt_json_value *k = gt_json_first(v, "kernels"); k; k = k->next)
		n++;
	GT_TRY(reserve_rows(a, n, t, err));
	for (const struct gt_json_value *k = gt_json_first(v, "kernels"); k; k = k->next) {
		struct gt_time_row r = {.op = gt_json_str(k, "op"), .layer = gt_json_str(k, "layer"), .size = gt_json_count(k, "size"),
		                        .calls = gt_json_num(k, "calls")};
		r.seconds = 1e-3 * gt_json_num(k, "ms") / r.calls;
		if (!*r.op || r.size < 0 || !(r.calls > 0 && r.calls < MOST_CALLS) || !(r.seconds >= 0 && r.seconds < 1e9))
			n = 0;
		t->row[t->n++] = r;
	}
	if (!n)
		return gt_fail(err, GT_EDATA, "%s:%d: expected the times of kernels, as gtrain bench CFG --json prints them", path, line);
	if (!t->device)
		t->device = gt_json_str(v, "device");
	return GT_OK;
}

enum gt_code gt_times_read(struct gt_arena *a, const char *path, struct gt_times *out, struct gt_err *err)
{
	char *text;
	size_t n;
	int line = 1;
	double worst = MOST_RATIO;
	enum gt_code code = GT_OK;
	*out = (struct gt_times){.path = path};
	GT_TRY(gt_file_read(path, MOST_BYTES, &text, &n, err));
	for (size_t i = 0, length; i < n && code == GT_OK; i += length + 1, line++) {
		const struct gt_json_value *v;
		length = strcspn(text + i, "\n");
		if (strspn(text + i, " \t\r") >= length)
			continue;
		code = gt_json_parse(text + i, length, path, DEPTH, MOST_VALUES, a, &v, err);
		if (code == GT_OK)
			code = add_line(a, path, line, v, out, err);
		if (code == GT_OK)
			code = compare_with_step(a, line, v, &worst, out, err);
	}
	free(text);
	GT_TRY(code);
	if (!out->n)
		return gt_fail(err, GT_EDATA, "%.300s: the file is empty; gtrain bench CFG --world N --json >%.300s writes the times of kernels to "
		               "it, unless bench fails", path, path);
	gt_times_sort(out);
	return GT_OK;
}
