/* A run of this program as a child process, for a command that trains several runs at once.
 *
 *     struct gt_run_process p;
 *     GT_TRY(gt_run_process_start(&spec, &p, err));
 *     while (!gt_run_process_ended(&p))
 *         …                              gt_run_process_signal(&p, SIGTERM): the run saves a checkpoint and ends
 *
 * The process has a process group of its own, so that Ctrl-C on the terminal reaches only the parent, which forwards it. The kernel kills
 * the process if the parent dies. */
#ifndef GT_LAUNCH_RUN_PROCESS_H
#define GT_LAUNCH_RUN_PROCESS_H

#include "base/err.h"
#include <stdbool.h>
#include <sys/types.h>

struct gt_run_process_spec {
	char *const *argv; /* arguments of this program, NULL-terminated */
	const char *log;   /* file to which the process appends its standard output and its standard error */
	int slot, slots;   /* the processors are divided into `slots` equal shares; the process gets share `slot`, 0 ... slots - 1 */
	const char *gpus;  /* value of CUDA_VISIBLE_DEVICES; NULL: as for this process */
};

struct gt_run_process {
	pid_t pid;
	bool ended;
	int status; /* if ended: the exit code, or 128 + the number of the signal that killed the process */
	int signal; /* if ended: the signal that killed the process; 0: the process has exited */
};

/* Starts the process; this process must have only one thread. GT_ECANTCREAT: the log cannot be opened. GT_EFAIL: fork has failed. */
enum gt_code gt_run_process_start(const struct gt_run_process_spec *spec, struct gt_run_process *out, struct gt_err *err);
bool gt_run_process_ended(struct gt_run_process *p);             /* returns at once */
void gt_run_process_signal(const struct gt_run_process *p, int sig); /* does nothing after its end */

#endif
