/* The table of `gtrain compare`, which fits the width of the output. */
#ifndef GT_CLI_COMPARE_TABLE_H
#define GT_CLI_COMPARE_TABLE_H

#include "cli.h"
#include "compare_scores.h"

/* Prints the table with a row for each differing key and each score, and a column for each group of runs. all: each key of a list such as
 * model.layers gets its own row, however many differ. */
enum gt_code gt_compare_print(struct gt_cli *cli, const struct gt_compared *x, bool all, struct gt_err *err);

#endif
