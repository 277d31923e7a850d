/* The commands: one file each, cmd_<name>.c. */
#ifndef GT_CLI_COMMANDS_H
#define GT_CLI_COMMANDS_H

#include "cli.h"

#define X(name) extern const struct gt_command gt_cmd_##name;
#include "commands.inc"
#undef X

/* smoke_view.c: executes `gtrain run --smoke` and prints each phase and the result. */
enum gt_code gt_cli_smoke(struct gt_cli *cli, const struct gt_job_args *job, struct gt_conf *conf, struct gt_err *err);

/* complete_words.c: prints what can take the place of the last of n words after `gtrain`, for the completion scripts. The first line has
 * the type of the word and, after a tab, how much of it is no part of the completion, such as "--out=". The type is `words`: it is one of
 * the words on the further lines; `dirs` or `files`; or `configs`: a file *.cfg or, where there are none, one of the further lines. These
 * have a word and, after a tab, a help text if there is one. A word that ends with = is continued. */
enum gt_code gt_complete_words(struct gt_cli *cli, const char *const *words, int n, struct gt_err *err);

#endif
