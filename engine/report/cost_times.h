/* The times of kernels that `gtrain bench --json` has measured. The file has one line of bench for each measurement: several lines, of
 * several batch sizes, give times for the sizes between them. */
#ifndef GT_REPORT_COST_TIMES_H
#define GT_REPORT_COST_TIMES_H

#include "base/arena.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

/* The time of one call. */
struct gt_time_row {
	const char *op, *layer;
	int64_t size;   /* what the call works on (report/step_size.h) */
	double calls;   /* number of calls in a step that were measured */
	double seconds; /* mean time of a call */
};

struct gt_times {
	struct gt_time_row *row; /* [n] sorted by op, layer and size; each triple occurs once */
	int n, cap;              /* cap: number of rows for which `row` has memory, if gt_times_read has filled it in */
	const char *device;      /* name of the device in the first line; in messages */
	const char *path;        /* the file; in messages */
	const char *doubt;       /* a warning that the times do not fit the step of their line, for the line that fits worst; NULL: none */
	const char *options;     /* options of `gtrain bench` that set what the config does not; in messages; NULL: none */
};

/* Reads a file of lines of `gtrain bench --json`. GT_ENOINPUT: there is no such file. GT_EDATA: it is not such a file. */
enum gt_code gt_times_read(struct gt_arena *a, const char *path, struct gt_times *out, struct gt_err *err);
/* Sorts the rows and merges those of the same call. Call it once after filling in `row` and `n` by hand. */
void gt_times_sort(struct gt_times *t);

/* Sets *seconds to the time of a call. With rows of other sizes only, the time is scaled: in proportion to the size if the rows have
 * one size, else on the line through the two nearest sizes. *scaled: the nearest size differs by more than 2 %. Returns false if no row has
 * this op and layer. */
bool gt_times_find(const struct gt_times *t, const char *op, const char *layer, int64_t size, double *seconds, bool *scaled);

#endif
