/* The commands: one file each, cmd_<name>.c. */
#ifndef GT_CLI_COMMANDS_H
#define GT_CLI_COMMANDS_H

#include "cli.h"

extern const struct gt_command gt_cmd_run, gt_cmd_resume, gt_cmd_check, gt_cmd_plan, gt_cmd_eval, gt_cmd_predict, gt_cmd_inspect,
	gt_cmd_export, gt_cmd_lr_find, gt_cmd_bench, gt_cmd_configs, gt_cmd_init,
	gt_cmd_fetch, gt_cmd_devices, gt_cmd_completion, gt_cmd_help;

/* smoke_view.c: executes `gtrain run --smoke` and prints each phase and the result. */
enum gt_code gt_cli_smoke(struct gt_cli *cli, struct gt_conf *conf, struct gt_err *err);

/* complete_bash.c, complete_zsh.c and complete_fish.c: each function prints the completion script of one shell, which it generates from the
 * tables of options, on stdout. */
void gt_complete_bash(struct gt_cli *cli);
void gt_complete_zsh(struct gt_cli *cli);
void gt_complete_fish(struct gt_cli *cli);

#endif
