/* A communicator of one process that is the only rank of its world: every other rank sends what this rank sends, and takes no time. With
 * it, gtrain bench measures the kernels of one rank of a large world on one device.
 *
 *     struct gt_comm *c;
 *     GT_TRY(gt_comm_echo_open(0, 64, 64, &c, err));
 *     c->api->all_reduce(c, &x, err);      64 times the operand
 *     c->api->close(c);
 *
 * A received message, and a block that only other ranks have, is 0. It provides no memory (buffer, common), because ranks of several hosts
 * share none. */
#ifndef GT_REPORT_COMM_ECHO_H
#define GT_REPORT_COMM_ECHO_H

#include "comm.h"

/* Opens the communicator of `rank` in a world of copies * N ranks: `copies` copies of a pipeline of N ranks, numbered stage by stage. It
 * can be split into the groups of a session, "replicas" (the ranks with the same stages) and "pipeline" (the ranks of one copy). Its
 * interface has no create() and open(). */
enum gt_code gt_comm_echo_open(int rank, int world, int copies, struct gt_comm **out, struct gt_err *err);

#endif
