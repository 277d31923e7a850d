/* The comparison of `gtrain run --smoke --against`: the text of its phases, the lines below them, and their members in JSON. */
#ifndef GT_CLI_AGAINST_VIEW_H
#define GT_CLI_AGAINST_VIEW_H

#include "base/json.h"
#include "cli.h"

struct gt_against_runs;
struct gt_against_operations;

/* The _text functions write the text of a phase to buf. The _print_ functions print the lines below this text. */
void gt_against_runs_text(const struct gt_against_runs *r, char *buf, size_t size);
void gt_against_print_runs(struct gt_cli *cli, const struct gt_against_runs *r);
void gt_against_operations_text(const struct gt_against_operations *r, char *buf, size_t size);
void gt_against_print_operations(struct gt_cli *cli, const struct gt_against_operations *r);

/* Write the results of a phase as members of the open JSON object. */
void gt_against_write_runs(struct gt_json *j, const struct gt_against_runs *r);
void gt_against_write_operations(struct gt_json *j, const struct gt_against_operations *r);

#endif
