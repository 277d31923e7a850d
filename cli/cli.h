/* The command line. Parsing, `-h` and the completions use tables with one row per command and per option; tests/cli/ compares the manual
 * with the tables. Only the folder cli/ prints or exits. From the engine, cli/ includes only gtrain.h, gtrain_*.h and engine/base/. */
#ifndef GT_CLI_CLI_H
#define GT_CLI_CLI_H

#include "base/arena.h"
#include "base/json.h"
#include "base/public.h"

struct gt_conf;
struct gt_json_value;
struct gt_rank_link;
struct gt_run_opts;

/* The type of an operand or of the argument of an option, for the completions. */
enum gt_complete {
	GT_COMPLETE_NONE,
	GT_COMPLETE_CONFIG,     /* candidates: the *.cfg files in the working directory; if there are none, the configs of
	                           GT_COMPLETE_BUNDLED */
	GT_COMPLETE_BUNDLED,    /* candidates: the configs that come with gtrain */
	GT_COMPLETE_DIR,
	GT_COMPLETE_FILE,
	GT_COMPLETE_CHECKPOINT, /* candidates: run directories and step-… directories */
	GT_COMPLETE_KEY,        /* candidates: KEY= for the keys of a config */
	GT_COMPLETE_DEVICE,     /* candidates: the devices of this machine */
	GT_COMPLETE_DATASET,    /* the known datasets */
	GT_COMPLETE_TOPIC,      /* candidates: the commands, and the topics of the config language */
	GT_COMPLETE_COMMAND,
	GT_COMPLETE_CHOICE      /* candidates: the words in `choices` of the option or command */
};

enum gt_option_kind {
	GT_OPTION_FLAG,     /* bool */
	GT_OPTION_STRING,   /* member of type const char *; the argument is a non-empty string */
	GT_OPTION_CHOICE,   /* member of type const char *; the argument is one of the words in gt_option.choices */
	GT_OPTION_LIST,     /* member of type struct gt_strlist; the option can be repeated */
	GT_OPTION_INT,      /* member of type int64_t; the argument is from gt_option.min to gt_option.max */
	GT_OPTION_NUMBER,   /* member of type double; the argument is a finite number > 0 */
	GT_OPTION_RANGE,    /* member of type struct gt_option_range; the argument is N or MIN:MAX, each from gt_option.min to gt_option.max */
	GT_OPTION_NPROC,    /* member of type int64_t; the argument is from 1 to gt_option.max, or `auto` (GT_NPROC_AUTO) */
	GT_OPTION_DURATION  /* member of type double, in seconds; the argument is a duration: 90, 90s, 15m, 1h30m or 2d */
};

#define GT_NPROC_AUTO (-1)

struct gt_option_range { /* least is 0 if the argument is one number */
	int64_t least, most;
};

struct gt_strlist {
	const char **v;
	int n;
};

/* The operands, and the values of the options that every command has; zero if an option is not given. Strings point into argv. */
struct gt_args {
	bool json, quiet, verbose, no_progress, help, version;
	const char *color;
	struct gt_strlist operands;
};

/* Options that several commands share (the GT_OPT_ rows below), and the options of `gtrain run` that affect the config and the command
 * lines of ranks. A command with such options has this struct as the member `job` of its own options struct. */
struct gt_job_args {
	struct gt_strlist sets;
	const char *device, *init, *mode, *out, *against;
	bool dry_run, smoke;
	double time_limit; /* seconds; 0: none */
	const char *master_addr, *token_file;
	int64_t nproc, world, node_rank, master_port, max_restarts;
	struct gt_option_range nnodes;
};

struct gt_option {
	const char *name; /* long name of the option without dashes; NULL ends the table */
	char letter;      /* short name of the option, for example 's' for -s; 0: no short name */
	enum gt_option_kind kind;
	size_t offset;    /* offset of the option's member in the command's struct of options; of a global option, in struct gt_args */
	const char *arg;  /* name of the argument in the help; NULL: the option has no argument */
	enum gt_complete complete;
	const char *choices; /* the possible words of the argument, as "a|b|c" */
	int64_t min, max;    /* range of the argument; only for GT_OPTION_INT, GT_OPTION_RANGE and GT_OPTION_NPROC */
	const char *help;
	bool required;
};

struct gt_cli;

struct gt_command {
	const char *name;
	const char *operands; /* operands in the usage line of the command, for example "CKPT FILE..." */
	const char *about;    /* description of the command for -h: a paragraph with line breaks */
	const char *example;
	int min_operands, max_operands; /* number of operands; max_operands -1: no maximum */
	enum gt_complete first, rest;   /* types of the first operand and of the following operands, for the completions */
	const char *choices;            /* possible words of the first operand, if its type is GT_COMPLETE_CHOICE */
	const struct gt_option *options;
	size_t args_size;               /* size of the options struct, which is zeroed before parsing; 0: no options */
	enum gt_code (*run)(struct gt_cli *cli, struct gt_err *err);
	/* gt_cmd_report only: writes the HTML report of a complete run after training; a failure is only a warning. Other commands: NULL */
	void (*after_run)(struct gt_cli *cli, const char *dir, const struct gt_job_args *job);
};

/* A row of commands.inc: a command of the program or of a plugin. */
struct gt_command_row {
	const char *name, *summary;       /* name of the command; summary: one line for the list of commands */
	const struct gt_command *command; /* the command, if it is part of the program; NULL: it is in a plugin */
	const char *plugin, *symbol;      /* name of the plugin that has the command, and of the symbol in it; NULL: the command is part of the
	                                     program */
};

extern const struct gt_command_row gt_commands[];      /* one row for each command, in the order of the help; a row with name NULL ends the
                                                          table */
extern const struct gt_option gt_global_options[];
const struct gt_command_row *gt_command_find(const char *name); /* returns NULL if no command has this name */
/* command_open.c. Sets *out to the command of a row. If the command is in a plugin, opens the plugin first. GT_EUNAVAILABLE: the plugin is
 * missing or cannot be loaded. GT_EINTERNAL: the plugin and the program are from different builds. */
enum gt_code gt_command_open(const struct gt_command_row *row, const struct gt_command **out, struct gt_err *err);
/* Returns GT_EUSAGE with a message that suggests a command similar to `name`. what: "command" or "topic", the role of the word. */
enum gt_code gt_command_unknown(const char *what, const char *name, struct gt_err *err);

/* The state of the program. main() creates it and passes it to all functions. */
struct gt_cli {
	struct gt_arena *arena; /* memory for objects that live until the process ends */
	struct gt_args args;
	const struct gt_command *command;
	void *options;          /* options struct of `command`, command->args_size bytes in the arena */
	char **argv;            /* argv of main() */
	struct gt_rank_link *link; /* connection to the launcher if this process is a rank; else NULL */
	struct gt_json json;    /* the JSON line that gt_out_json prints */
	bool color_out, color_err;
	bool terminal_out;      /* stdout is a terminal */
	bool animate;           /* the progress line on stderr is rewritten in place */
	bool painted;           /* the progress line is on the terminal now, without a newline (status_line.h) */
	bool utf8;
	int out_errno;          /* errno of the first failed write to stdout; 0: none */
};

/* ---- options.c: parsing. Errors are GT_EUSAGE: one line, with a suggestion if there is a similar word --------------------- */
/* Parses the words from index *pos to n - 1 into cli->args and cli->options. If command is NULL, it parses global options only, and stops
 * at the first other word. */
enum gt_code gt_options_parse(struct gt_cli *cli, const struct gt_command *command, char **words, int n, int *pos, struct gt_err *err);
/* Finds an option of a command (NULL: no command) or else a global option, by its letter or, if letter is 0, by the first len bytes of
 * name. Returns NULL if no option matches. */
const struct gt_option *gt_option_find(const struct gt_command *command, const char *name, size_t len, char letter);
/* Returns whether value is one of the words in choices, which has the form "a|b|c". */
bool gt_option_is_choice(const char *choices, const char *value);
/* Returns the seconds of a duration such as "90", "90s", "15m", "1h30m" or "2d"; a negative number if s is not a duration. */
double gt_cli_duration_parse(const char *s);

/* ---- help.c ------------------------------------------------------------------------------------------------------------- */
#define GT_HELP_WIDTH 80
/* Returns the width of help texts in columns: GT_HELP_WIDTH, or less on a narrower terminal. */
int gt_help_width(void);
/* Prints `head`, then text from column `indent` on. Breaks text at spaces into lines of at most `width` columns; a longer word is not
 * broken. If head is wider than `indent`, text begins on the next line. */
void gt_out_wrapped(struct gt_cli *cli, const char *head, int indent, const char *text, int width);
void gt_help_program(struct gt_cli *cli);
/* help_topics.c. Explains a topic of the config language (as JSON with --json). A topic is a key with or without the groups of its path, a
 * group of keys, a layer type or another value of a key, a list such as "layers", or the name of one of these in PyTorch. Sets *found to
 * the number of explanations. */
enum gt_code gt_help_topic(struct gt_cli *cli, const char *topic, int *found, struct gt_err *err);
/* Sets *near to the topic of the config language whose name is most similar to `topic`, in cli->arena; NULL: no name is similar enough. */
enum gt_code gt_help_nearest(struct gt_cli *cli, const char *topic, const char **near, struct gt_err *err);
/* about.c. Prints the version, and how and where the program was built. */
enum gt_code gt_cli_version(struct gt_cli *cli, struct gt_err *err);
void gt_help_command(struct gt_cli *cli, const struct gt_command *c);

/* ---- output.c: stdout and stderr ----------------------------------------------------------------------------------------- */
void gt_output_init(struct gt_cli *cli); /* prepares output without colours; call it before options are parsed */
/* Decides whether to use colours and animation, from the terminal, the environment and the options. Call it after options are parsed. */
void gt_output_style(struct gt_cli *cli);
/* Writes to stdout. A failure of the write is stored in cli->out_errno and reported when the program ends. */
void gt_out(struct gt_cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool gt_out_bytes(struct gt_cli *cli, const void *data, size_t n); /* writes n bytes to stdout like gt_out; returns false if the output
                                                                      cannot be written */
void gt_out_line(struct gt_cli *cli, const char *line); /* writes the line and a newline to stdout, and flushes stdout */
void gt_out_flush(struct gt_cli *cli); /* flushes stdout; stores a failure like gt_out, which fflush alone would lose */
enum gt_code gt_out_json(struct gt_cli *cli, struct gt_err *err); /* writes cli->json as a line to stdout, and empties cli->json */
/* Parses the complete report in cli->json into values in cli->arena, from which the commands print the report as text. */
enum gt_code gt_out_facts(struct gt_cli *cli, const struct gt_json_value **out, struct gt_err *err);
enum gt_code gt_out_finish(struct gt_cli *cli, struct gt_err *err); /* flushes stdout; GT_EIO: a write to stdout has failed */
/* Writes a text as a field of a CSV file (RFC 4180): in quotation marks if it has a comma, a quotation mark or a line break. On a terminal,
 * characters are replaced as by gt_cli_printable. */
void gt_out_csv(struct gt_cli *cli, const char *text);
/* Returns the number of columns to use on stdout: $COLUMNS, the width of the terminal, or 80. */
int gt_out_columns(void);
bool gt_out_terminal(void); /* whether the width of stdout is known: stdout is a terminal, or $COLUMNS is set */
/* Prints text at the cursor, which is at column `indent`. Breaks text at spaces so that lines end before column `width`; a longer word is
 * not broken. The following lines begin at column `indent`. */
void gt_out_words(struct gt_cli *cli, const char *text, int indent, int width);
/* Prints text as one line; breaks it at spaces if stdout is a terminal that is narrower than text. */
void gt_out_sentence(struct gt_cli *cli, const char *text);
/* Prints a message on stderr like gt_cli_note, and breaks it at spaces if stderr is a terminal. Do not use it for messages that contain
 * commands, which users copy. */
void gt_cli_note_words(struct gt_cli *cli, const char *text);
/* Writes a line to stderr. Replaces control characters by '?', because names from untrusted files could contain escape sequences. */
void gt_cli_note(struct gt_cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void gt_cli_warn(struct gt_cli *cli, const char *text);
void gt_cli_complain(struct gt_cli *cli, const char *text); /* writes "gtrain: text" */

enum gt_style { GT_STYLE_NONE, GT_STYLE_BOLD, GT_STYLE_DIM, GT_STYLE_RED, GT_STYLE_YELLOW, GT_STYLE_GREEN };
const char *gt_style(bool color, enum gt_style s); /* returns the escape sequence of a style, or "" if color is false */
/* Writes to buf the name of this program, for commands that messages suggest to the user: the path that the user typed, quoted for a shell
 * if necessary, or "gtrain". Returns buf. */
const char *gt_cli_program(const struct gt_cli *cli, char *buf, size_t size);
/* Copies s into buf (buf may be s). Replaces control characters, text direction marks and bytes that are not UTF-8 by '?'. If s is too
 * long, truncates it between two characters. Returns buf. */
const char *gt_cli_printable(const char *s, char *buf, size_t size);

/* ---- text_table.c: aligned columns on stdout ------------------------------------------------------------------------------ */
#define GT_TABLE_COLUMNS 12 /* maximum number of columns of a table */
struct gt_table {
	struct gt_arena *arena; /* not owned */
	const char *align;      /* alignment of each column: 'l' (left) or 'r' (right) */
	int cols, rows, cap;
	struct gt_table_row *row;
	bool no_memory;
};
void gt_table_init(struct gt_table *t, struct gt_arena *arena, const char *align);
/* gt_table_head and gt_table_add append a row with one text per column, and copy the texts. A head row is printed in bold, with a
 * horizontal rule below it. */
#define gt_table_head(t, ...) gt_table_add_cells((t), true, (const char *[]){__VA_ARGS__})
#define gt_table_add(t, ...) gt_table_add_cells((t), false, (const char *[]){__VA_ARGS__})
void gt_table_add_cells(struct gt_table *t, bool head, const char *const *cell);
void gt_table_rule(struct gt_table *t);
/* Removes columns of a table until the table fits `width` and column `flexible` keeps its full width or at least `least`. drop: the numbers
 * of the columns to remove, one digit each, in the order of removal. */
void gt_table_leave_out(struct gt_table *t, int width, int flexible, int least, const char *drop);
/* Removes characters from the beginning of the texts in a column until the table fits `width`. */
void gt_table_shorten(const struct gt_cli *cli, struct gt_table *t, int width, int column);
/* If stdout is a terminal, fits a table to the width of the terminal: gt_table_leave_out, then gt_table_shorten for column `flexible`. */
void gt_table_narrow(const struct gt_cli *cli, struct gt_table *t, int flexible, int least, const char *drop);
enum gt_code gt_table_print(struct gt_cli *cli, const struct gt_table *t, struct gt_err *err);
int gt_text_width(const char *s); /* returns the width of s on a terminal: its number of code points */
/* Copies at most `width` code points of s to buf and replaces control characters by '?'. If s is longer, the last code point is an
 * ellipsis. Returns buf. */
const char *gt_text_fit(const struct gt_cli *cli, const char *s, int width, char *buf, size_t size);
/* Like gt_text_fit, for paths: if s is longer than `width`, buf has an ellipsis and the end of s. */
const char *gt_text_tail(const struct gt_cli *cli, const char *s, int width, char *buf, size_t size);

/* ---- units.c: numbers as text. Each function writes into buf (GT_UNITS bytes suffice) and returns it ------------------------- */
#define GT_UNITS 48
const char *gt_units_count(char *buf, int64_t n);              /* 669,706 */
const char *gt_units_bytes(char *buf, uint64_t n);             /* 2.55 MiB */
const char *gt_units_si(char *buf, double v, const char *unit); /* 102.8 MFLOP */
const char *gt_units_seconds(char *buf, double s);             /* seconds, for example 4.1 s, 2 min 05 s, 1 h 02 min */
const char *gt_units_clock(char *buf, double s);               /* seconds, for example 0:07, 12:34, 1:02:34, 3 d 04 h */
const char *gt_units_number(char *buf, double v);              /* at most four significant digits, for example 0.001, 3e-05 */
const char *gt_units_loss(char *buf, double v);                 /* a loss, for example 2.3026, 0.3301, 0.01234, 8.300e-05, 2.7e+29 */
/* gt_units_scores writes the measured scores except loss and accuracy, for example "MAE 1.523 RMSE 2.211 R2 0.5713"; "" if there are none.
 * between: separator of the scores, for example " ". buf: GT_UNITS_SCORES bytes. */
#define GT_UNITS_SCORES 160
const char *gt_units_scores(char *buf, const struct gt_scores *s, const char *between);

/* ---- shared by commands --------------------------------------------------------------------------------------------------- */
/* Loads the config that the first operand names, and applies options such as --set and --nproc to it. */
enum gt_code gt_cli_conf(struct gt_cli *cli, const struct gt_job_args *job, struct gt_conf **out, struct gt_err *err);
/* Sets *path to the file of the operand CFG. CFG is a path or, without a slash and without .cfg, the name of a config that comes with
 * gtrain. If the config comes with gtrain, prints its path. */
enum gt_code gt_cli_config_path(struct gt_cli *cli, const char *name, const char **path, struct gt_err *err);
/* Returns GT_ENOINPUT for a name that is neither a file nor a config that comes with gtrain, and suggests a similar name. */
enum gt_code gt_cli_no_config(struct gt_cli *cli, const char *name, struct gt_err *err);
/* Copies the options about ranks to *o, with the command lines that start and restart ranks. */
enum gt_code gt_cli_ranks(struct gt_cli *cli, const struct gt_job_args *job, struct gt_run_opts *o, struct gt_err *err);
/* Options of gt_cli_report, which prints the report of `gtrain check` or of a dry run. */
struct gt_report_opts {
	const char *device; /* the device to open and plan for; NULL: plan for the config's device without opening it */
	bool dry_run;       /* the command is a dry run, which has already checked this machine */
	bool time;          /* also measure the duration of some training steps */
	bool strict;        /* exit with an error if the report has a warning */
	const char *link;   /* predict the time of a step over these links (gtrain_cost.h); NULL: no prediction */
	const char *times;  /* with link: file of measured times of kernels */
	const struct gt_job_args *job; /* with link: the options that have set keys of the config */
	bool listed;        /* the command has already listed the unreadable samples of the data */
};
enum gt_code gt_cli_report(struct gt_cli *cli, struct gt_conf *c, int world, const struct gt_report_opts *o, struct gt_err *err);

/* check_text.c. Prints parts of the report of `gtrain check` as text. f: the object that --json prints. The functions print the columns of
 * a data table (nothing for other data); add rows about texts and sequence lengths to an output table; print memory, buckets, stages and
 * traffic of each rank; write one line about the ranks to buf. */
enum gt_code gt_cli_columns_text(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err);
void gt_cli_texts_facts(struct gt_table *table, const struct gt_json_value *f);
enum gt_code gt_cli_ranks_text(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err);
void gt_cli_ranks_line(const struct gt_json_value *f, char *buf, size_t size);

/* run_results.c. Writes the best result and the last scores of a run as members of the open JSON object. */
struct gt_run_record;
void gt_cli_run_results(struct gt_json *j, const struct gt_run_record *r);

/* The GT_OPT_ macros are rows of option tables. type: the command's options struct, which has a struct gt_job_args as its member `job`. */
#define GT_OPT_SET(type)                                                                                               \
	{"set", 's', GT_OPTION_LIST, offsetof(type, job.sets), "KEY=VALUE", GT_COMPLETE_KEY, NULL, 0, 0,                   \
	 "set a key of the config, for example train.epochs=3; can be repeated"}
#define GT_OPT_DEVICE(type)                                                                                            \
	{"device", 0, GT_OPTION_STRING, offsetof(type, job.device), "DEVICE", GT_COMPLETE_DEVICE, NULL, 0, 0,              \
	 "use cpu, cuda or cuda:N instead of the config's device"}
#define GT_OPT_INIT(type)                                                                                              \
	{"init", 0, GT_OPTION_STRING, offsetof(type, job.init), "FILE", GT_COMPLETE_FILE, NULL, 0, 0,                      \
	 "read the initial weights from a safetensors file"}
#define GT_OPT_NPROC(type)                                                                                             \
	{"nproc", 0, GT_OPTION_NPROC, offsetof(type, job.nproc), "N", GT_COMPLETE_CHOICE, "auto", 1, 65536,                \
	 "use this number of ranks, or auto, instead of parallel.nproc"}
#define GT_OPT_RANKS(type)                                                                                             \
	GT_OPT_NPROC(type),                                                                                                \
	{"nnodes", 0, GT_OPTION_RANGE, offsetof(type, job.nnodes), "N", GT_COMPLETE_NONE, NULL, 1, 65536,                  \
	 "number of hosts, with --nproc ranks each; start the command on every host; MIN:MAX: go on when hosts are lost or join"}, \
	{"node-rank", 0, GT_OPTION_INT, offsetof(type, job.node_rank), "R", GT_COMPLETE_NONE, NULL, 0, 65535,              \
	 "index of this host, from 0"},                                                                                    \
	{"master-addr", 0, GT_OPTION_STRING, offsetof(type, job.master_addr), "HOST", GT_COMPLETE_NONE, NULL, 0, 0,        \
	 "address at which the other hosts reach the first host"}, \
	{"master-port", 0, GT_OPTION_INT, offsetof(type, job.master_port), "PORT", GT_COMPLETE_NONE, NULL, 1, 65535,       \
	 "port on the first host; default: 29500"},                                                                        \
	{"token-file", 0, GT_OPTION_STRING, offsetof(type, job.token_file), "FILE", GT_COMPLETE_FILE, NULL, 0, 0,          \
	 "file of 64 hexadecimal digits that authenticates ranks on several hosts; other users must not be able to read the file"}, \
	{"max-restarts", 0, GT_OPTION_INT, offsetof(type, job.max_restarts), "N", GT_COMPLETE_NONE, NULL, 0, 1000000,      \
	 "after a rank is lost, continue from the newest checkpoint, at most N times"}
#define GT_OPT_TIME_LIMIT(type)                                                                                        \
	{"time-limit", 0, GT_OPTION_DURATION, offsetof(type, job.time_limit), "DURATION", GT_COMPLETE_NONE, NULL, 0, 0,    \
	 "write a checkpoint and end the run after this time, for example 90s, 15m or 1h30m"}
#define GT_OPT_WORLD(type)                                                                                             \
	{"world", 0, GT_OPTION_INT, offsetof(type, job.world), "N", GT_COMPLETE_NONE, NULL, 1, 65536,                      \
	 "plan for N ranks, instead of parallel.nproc"}
#define GT_OPT_MODE(type)                                                                                              \
	{"mode", 0, GT_OPTION_CHOICE, offsetof(type, job.mode), "MODE", GT_COMPLETE_CHOICE, GT_MODE_WORDS, 0, 0,           \
	 "plan for this parallel.mode, instead of the config's: " GT_MODE_LIST}

#endif
