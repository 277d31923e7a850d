/* Internal header of execute.c, exec_comm.c and diagnose.c: functions that they share. */
#ifndef GT_EXEC_EXEC_PARTS_H
#define GT_EXEC_EXEC_PARTS_H

#include "exec/exec.h"

/* Queues the copy of the step arguments of the next window, n steps of p, to the device. */
enum gt_code gt_exec_send(struct gt_exec *x, const struct gt_prog *p, int n, struct gt_err *err);
/* Executes or queues program step p->step[i] for execution `slot` (0 ... n - 1) of the n executions in a window, with the step arguments
 * and scalars of this slot. */
enum gt_code gt_exec_step(struct gt_exec *x, const struct gt_prog *p, int i, int slot, int n, struct gt_loader *l, struct gt_err *err);
/* Executes or queues program step p->step[i], which is a COMM step, for execution `slot` of a window. */
enum gt_code gt_exec_comm(struct gt_exec *x, const struct gt_prog *p, int i, int slot, struct gt_err *err);
/* Makes the communicator's call of a COMM step whose two ends are different ranks. It does not tell the launcher that this rank waits, nor
 * count x->waited. */
enum gt_code gt_exec_communicate(const struct gt_exec *x, const struct gt_prog *p, int i, int slot, struct gt_err *err);
/* All calls are bound to the scalars of slot 0. If p points into these scalars, returns the corresponding address in the scalars of `slot`;
 * otherwise returns p. Do not use it for evaluations, whose steps all use slot 0. */
static inline void *gt_exec_slot_address(const struct gt_exec *x, void *p, int slot)
{
	char *zero = (char *)gt_space_scalars(x->space, 0), *at = p;
	return at >= zero && at < zero + sizeof(struct gt_scalars) ? at + (size_t)slot * sizeof(struct gt_scalars) : p;
}

#endif
