/* Internal header of execute.c, exec_comm.c and diagnose.c: functions that they share. */
#ifndef GT_EXEC_EXEC_PARTS_H
#define GT_EXEC_EXEC_PARTS_H

#include "exec/exec.h"

/* Queues the copy of the numbers of the next window, n steps of p, to the device. */
enum gt_code gt_exec_send(struct gt_exec *x, const struct gt_prog *p, int n, struct gt_err *err);
/* Executes or queues step i of p with the numbers and scalars of `slot` (0 ... n - 1), in a window of n slots. */
enum gt_code gt_exec_step(struct gt_exec *x, const struct gt_prog *p, int i, int slot, int n, struct gt_loader *l, struct gt_err *err);
/* Executes or queues step i of p, a COMM step. */
enum gt_code gt_exec_comm(struct gt_exec *x, const struct gt_prog *p, int i, int slot, struct gt_err *err);
/* Translates an operand address to another slot: an address in the scalars of slot 0, to which all calls are bound, becomes the same offset
 * in the scalars of `slot`; any other address stays as it is. Not for evaluations, which use slot 0 only. */
static inline void *gt_exec_slot_address(const struct gt_exec *x, void *p, int slot)
{
	char *zero = (char *)gt_space_scalars(x->space, 0), *at = p;
	return at >= zero && at < zero + sizeof(struct gt_scalars) ? at + (size_t)slot * sizeof(struct gt_scalars) : p;
}

#endif
