/* Makes files for editors and other programs from the tables of the config language: `gtrain completion vim`, `vscode` and `json-schema`
 * print them. */
#ifndef GT_CLI_EDITOR_FILES_H
#define GT_CLI_EDITOR_FILES_H

#include "cli.h"

/* Prints a syntax file for Vim. */
enum gt_code gt_print_vim(struct gt_cli *cli, struct gt_err *err);
/* Prints a grammar for VS Code and other editors that read TextMate grammars. */
enum gt_code gt_print_vscode(struct gt_cli *cli, struct gt_err *err);
/* Prints a JSON schema (draft 2020-12) of a config whose groups are objects and whose lists and arrays are arrays. */
enum gt_code gt_print_json_schema(struct gt_cli *cli, struct gt_err *err);

#endif
