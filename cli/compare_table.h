/* The table of `gtrain compare`, which fits the width of the output. */
#ifndef GT_CLI_COMPARE_TABLE_H
#define GT_CLI_COMPARE_TABLE_H

#include "cli.h"
#include "compare_scores.h"

/* Prints a row for each key that differs and for each score, and a column for each group of runs. all: every key of a list such as
 * model.layers has a row, even if many of them differ. */
enum gt_code gt_compare_print(struct gt_cli *cli, const struct gt_compared *x, bool all, struct gt_err *err);

#endif
