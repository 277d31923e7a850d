/* The command of the key log.command: it gets each line of metrics.jsonl on its standard input.
 *
 *     run --- line ---> buffer (4 MiB) --- pipe (1 MiB) ---> sh -c COMMAND
 *
 * The run writes to the pipe without blocking. If the command reads slowly, lines wait in the buffer; if the buffer is full too, whole
 * lines are dropped and counted. The command starts once a session, in the working directory of the run, with the directory of the run in
 * GTRAIN_RUN_DIR. What it prints goes to the standard error of the run. */
#ifndef GT_TRACK_LOG_COMMAND_H
#define GT_TRACK_LOG_COMMAND_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

struct gt_log_command;

/* Starts the command. dir: directory of the run; "": it has none, and GTRAIN_RUN_DIR is empty. */
enum gt_code gt_log_command_start(const char *command, const char *dir, struct gt_log_command **out, struct gt_err *err);

/* Passes a line, which has no newline, to the command. */
void gt_log_command_write(struct gt_log_command *c, const char *line);

/* Returns, once, a sentence that says that the command has ended before the run; NULL: it has not, or the sentence was returned. */
const char *gt_log_command_trouble(struct gt_log_command *c);

/* Writes the lines that wait in the buffer, closes the standard input of the command, waits for its end, for at most wait_s seconds
 * altogether, and ends it if it still runs. Frees c. Returns whether text (size bytes) has one sentence about lines that the command did
 * not get or about its end. */
bool gt_log_command_end(struct gt_log_command *c, double wait_s, char *text, size_t size);

#endif
