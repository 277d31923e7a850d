/* The command in the key log.command, which gets each line of metrics.jsonl on its standard input.
 *
 *     run --- line ---> buffer (4 MiB) --- pipe (1 MiB) ---> sh -c COMMAND
 *
 * The run writes to the pipe without blocking. If the command reads slowly, lines wait in the buffer; if the buffer is full too, whole
 * lines are dropped and counted. The command is started once in each session, in the working directory of the run, with the path of the run
 * directory in GTRAIN_RUN_DIR. Its output goes to the standard error of the run. */
#ifndef GT_TRACK_LOG_COMMAND_H
#define GT_TRACK_LOG_COMMAND_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

struct gt_log_command;

/* Starts the command. dir: directory of the run; "": it has none, and GTRAIN_RUN_DIR is empty. */
enum gt_code gt_log_command_start(const char *command, const char *dir, struct gt_log_command **out, struct gt_err *err);

/* Passes a line (without newline) to the command. */
void gt_log_command_write(struct gt_log_command *c, const char *line);

/* If the command has ended before the run, returns a warning about it, once; otherwise returns NULL. */
const char *gt_log_command_trouble(struct gt_log_command *c);

/* Writes the rest of the buffer, closes the standard input of the command, and waits for its end, all within wait_s seconds; then kills the
 * command if it still runs. Frees c. Returns true if lines were lost or the command failed; text (size bytes) is then a sentence about
 * it. */
bool gt_log_command_end(struct gt_log_command *c, double wait_s, char *text, size_t size);

#endif
