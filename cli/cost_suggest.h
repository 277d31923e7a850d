/* `gtrain check --suggest`, in the plugin cost.so. */
#ifndef GT_CLI_COST_SUGGEST_H
#define GT_CLI_COST_SUGGEST_H

#include "commands.h"

/* Plans the config of the first operand in every mode on args->world ranks, and prints the ways to train with the best first, with the
 * reasons and the lines for the config. GT_ECONFIG: no way is possible or fits into args->memory; GT_EUSAGE: the arguments are wrong. */
enum gt_code gt_cli_suggest(struct gt_cli *cli, const struct gt_suggest_args *args, struct gt_err *err);

/* cost_view.c. Sets *out to the options of `gtrain bench` with which it measures the plan of a config whose keys `job` and keys[nkeys],
 * strings "path=value", have set (gt_cost_set_options). The arena of cli owns *out. */
enum gt_code gt_cli_bench_options(struct gt_cli *cli, const struct gt_job_args *job, const char *const *keys, int nkeys, const char **out,
                                  struct gt_err *err);

#endif
