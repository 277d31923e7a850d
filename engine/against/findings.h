/* What a comparing device has found: one row for each kernel, that is for each pair of operation and layer.
 *
 *     gt_findings_add(f, &name, step, &result, err);           a call was compared
 *     gt_findings_write(f, "operations-0.jsonl", err);
 *
 * Each line of the file is a JSON object:
 *     operation, layer, kernel   names of the operation, of the layer and of the implementation
 *     calls, differ              number of compared calls, and of those that differ by more than rounding explains
 *     share                      worst difference of all calls, in units of its tolerance
 *     step, before               of the first call that differs: its step, and the number of calls of this step before it that agree
 *     operand, worst, allowed    of this call: the tensor, its worst difference, and the tolerance of that element
 *     at                         index of the element
 *     absent                     why the CPU cannot compute the call; then `calls` counts the calls that were not compared */
#ifndef GT_AGAINST_FINDINGS_H
#define GT_AGAINST_FINDINGS_H

#include "against/judge.h"

struct gt_findings; /* owned by the device */

/* The key of a row: calls with equal names are counted in the same row. */
struct gt_finding_name {
	char operation[48], layer[128], kernel[96];
};

struct gt_findings *gt_findings_open(void); /* returns NULL if memory runs out; close the result with gt_findings_close */
void gt_findings_close(struct gt_findings *f);

/* The result of the comparison of one call. */
struct gt_finding {
	const char *operand;             /* name of the result with the largest verdict.share */
	const struct gt_tdesc *desc;     /* its description */
	struct gt_verdict verdict;
};

/* Count a call in its row: gt_findings_add a call that was compared, gt_findings_skip a call that was not, with the reason. GT_EFAIL: out
 * of memory. step: optimizer step of the call; 0: the step of the preceding call. */
enum gt_code gt_findings_add(struct gt_findings *f, const struct gt_finding_name *name, int64_t step, const struct gt_finding *result,
                             struct gt_err *err);
enum gt_code gt_findings_skip(struct gt_findings *f, const struct gt_finding_name *name, const char *why, struct gt_err *err);

enum gt_code gt_findings_write(const struct gt_findings *f, const char *path, struct gt_err *err);

#endif
