/* `gtrain check --suggest`, in the plugin cost.so. */
#ifndef GT_CLI_COST_SUGGEST_H
#define GT_CLI_COST_SUGGEST_H

#include "commands.h"

/* Plans the config of the first operand in every mode on args->world ranks, and prints the ways to train with the best first, with the
 * reasons and the lines for the config. GT_ECONFIG: no way is possible or fits into args->memory; GT_EUSAGE: the arguments are wrong. */
enum gt_code gt_cli_suggest(struct gt_cli *cli, const struct gt_suggest_args *args, struct gt_err *err);

#endif
