/* A helper process of a run, with a pipe to its standard input. The helper never blocks the run: all functions except gt_side_wait() return
 * at once. The caller must ignore SIGPIPE, as main() does. */
#ifndef GT_TRACK_SIDE_PROCESS_H
#define GT_TRACK_SIDE_PROCESS_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct gt_side_process {
	pid_t pid;
	int in;      /* non-blocking end of the pipe to the helper's standard input; -1: closed */
	int out;     /* non-blocking end of the pipe from the helper's standard output and error; -1: the helper writes to our standard error */
	bool ended;
	int status;  /* if ended: status as from waitpid(2) */
};

/* Starts the program `path` with the arguments argv in a process group of its own, so that a Ctrl-C on the terminal reaches the run only.
 * variable: "NAME=value", which is added to the environment; NULL: none. read_output: open p->out. GT_EFAIL: the process cannot be
 * started. */
enum gt_code gt_side_start(const char *path, char *const *argv, const char *variable, bool read_output, struct gt_side_process *p,
                           struct gt_err *err);

/* Waits until the process has ended, for at most wait_s seconds, or until a signal asks this process to end. Returns whether the process
 * has ended. */
bool gt_side_wait(struct gt_side_process *p, double wait_s);

/* Closes the pipes. If the process still runs, kills it and its children: first with SIGTERM, half a second later with SIGKILL. */
void gt_side_kill(struct gt_side_process *p);

/* Describes how the process has ended, such as "ended with status 2" or "was killed by signal 9 (Killed)". Returns buf. */
const char *gt_side_end_text(const struct gt_side_process *p, char *buf, size_t size);

#endif
