/* Between exec.c, exec_comm.c and diagnose.c. */
#ifndef GT_EXEC_EXEC_PARTS_H
#define GT_EXEC_EXEC_PARTS_H

#include "exec/exec.h"

/* Copies the numbers of the next window, n steps of p, to the device. */
enum gt_code gt_exec_send(struct gt_exec *x, const struct gt_prog *p, int n, struct gt_err *err);
/* Step i of p with the numbers and scalars of a slot, in a window of n slots. */
enum gt_code gt_exec_step(struct gt_exec *x, const struct gt_prog *p, int i, int slot, int n, struct gt_loader *l, struct gt_err *err);
/* Step i of p joins ranks. */
enum gt_code gt_exec_comm(struct gt_exec *x, const struct gt_prog *p, int i, int slot, struct gt_err *err);
/* Calls are bound to slot 0: what lies in its scalars moves to the slot's own. An evaluation has one set for all. */
void *gt_exec_move(const struct gt_exec *x, void *p, int slot);

#endif
