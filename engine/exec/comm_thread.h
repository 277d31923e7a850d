/* A thread that executes the steps of the communication stream on a device that uses host memory, so that communication between hosts
 * overlaps with kernels:
 *
 *	rank's thread:   linear.dw | linear.dx | linear.dw | ... | wait                | all_gather of scalars | check | update
 *	comm thread:               | all_reduce of bucket 1     | all_reduce of bucket 2 |
 *
 *     gt_comm_thread_open(&x, &t, err);               x.group[] is set
 *     gt_comm_thread_step(t, prog, i, slot, err);     for each step for which gt_comm_thread_takes returns true, in the program's order
 *     gt_comm_thread_drain(t, err);                   at the end of a program
 *     gt_comm_thread_close(t);
 *
 * Only this thread uses the communicators while a program runs, because a communicator must not be used by two threads at once, and because
 * all ranks must make the calls of a group in the same order. A collective on stream 0 therefore also runs in this thread; the caller waits
 * for it. */
#ifndef GT_EXEC_COMM_THREAD_H
#define GT_EXEC_COMM_THREAD_H

#include "exec/exec.h"

struct gt_comm_thread;
enum gt_code gt_comm_thread_open(struct gt_exec *x, struct gt_comm_thread **out, struct gt_err *err);
/* If steps are still queued, because the program has failed, breaks the group of all ranks first: otherwise they would wait. */
void gt_comm_thread_close(struct gt_comm_thread *t);

/* Returns whether gt_comm_thread_step must execute a step: communication, all other steps of the communication stream, and events. */
bool gt_comm_thread_takes(const struct gt_step *s);
/* Queues step p->step[i], or waits for an event, or does nothing if the order of the program's steps already implies the event. A failure
 * of an earlier step is returned by the next call that waits. */
enum gt_code gt_comm_thread_step(struct gt_comm_thread *t, const struct gt_prog *p, int i, int slot, struct gt_err *err);
/* Waits until all queued steps have been executed. */
enum gt_code gt_comm_thread_drain(struct gt_comm_thread *t, struct gt_err *err);
/* Returns the total seconds in which the thread has executed steps. No step may be queued. */
double gt_comm_thread_busy(struct gt_comm_thread *t);

#endif
