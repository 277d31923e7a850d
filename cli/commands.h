/* The commands of gtrain: one file each, cmd_<name>.c. Some commands are in plugins; a process opens only the plugin of its own command. */
#ifndef GT_CLI_COMMANDS_H
#define GT_CLI_COMMANDS_H

#include "cli.h"
#include "gtrain_report.h"

#define COMMAND(word, name, summary) extern const struct gt_command gt_cmd_##word;
#define PLUGIN_COMMAND(plugin, word, name, summary) COMMAND(word, name, summary)
#include "commands.inc"
#undef COMMAND
#undef PLUGIN_COMMAND

/* build_id.c: version and commit of the program or, in a plugin, of the plugin. Both must be equal, because program and plugin share
 * structs and functions. */
extern const char gt_build_id[];

/* Runs `gtrain run --smoke`, and prints each phase and the result. gt_smoke_command (smoke_view.c) is the implementation, in the plugin
 * smoke.so; gt_cli_smoke (command_open.c) opens the plugin and calls it. */
typedef enum gt_code gt_smoke_function(struct gt_cli *cli, const struct gt_job_args *job, struct gt_conf *conf, struct gt_err *err);
gt_smoke_function gt_cli_smoke;
extern gt_smoke_function *const gt_smoke_command;

/* The arguments of `gtrain check --suggest`. */
struct gt_suggest_args {
	const struct gt_job_args *job; /* --set and --device */
	int64_t world;                 /* number of ranks */
	const char *memory;            /* memory of a rank, such as "80G"; NULL: no limit */
	const char *link, *times;      /* as in struct gt_report_opts */
};

/* `gtrain check --link` and `--suggest`. gt_cost_view (cost_view.c) is the implementation, in the plugin cost.so; gt_cli_cost
 * (command_open.c) opens the plugin. */
struct gt_cost_view {
	/* Reads o->link and o->times. The arena of cli owns *out, which is the first argument of add. */
	enum gt_code (*open)(struct gt_cli *cli, const struct gt_report_opts *o, void **out, struct gt_err *err);
	const char *(*doubt)(const void *in); /* returns a warning about the times of kernels; NULL: there is none */
	gt_report_part *add; /* adds the predicted times to the report */
	enum gt_code (*print)(struct gt_cli *cli, const struct gt_json_value *report, struct gt_err *err);
	enum gt_code (*suggest)(struct gt_cli *cli, const struct gt_suggest_args *args, struct gt_err *err);
};
extern const struct gt_cost_view gt_cost_view;
enum gt_code gt_cli_cost(const struct gt_cost_view **out, struct gt_err *err);

/* command_open.c: writes the HTML report of a complete run whose config has log.report = true. A failure is only a warning, because the run
 * itself was successful. */
void gt_cli_page_of_run(struct gt_cli *cli, const char *dir, const struct gt_job_args *job);

/* complete_words.c: prints candidates for the last of n words after `gtrain`, for the completion scripts. The first line has the type of
 * the candidates and, after a tab, the part of the word that stays unchanged, such as "--out=". Types: `words` (candidates on the further
 * lines), `dirs`, `files`, or `configs` (*.cfg files or, if there are none, the further lines). A further line has a candidate and, after a
 * tab, an optional help text. A candidate that ends with = needs a value. */
enum gt_code gt_complete_words(struct gt_cli *cli, const char *const *words, int n, struct gt_err *err);

#endif
