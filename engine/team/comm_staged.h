/* A communicator for device memory that copies operands through host memory. It uses a communicator on host memory between the same ranks.
 *
 *     device memory --copy--> host memory --inner communicator--> host memory --copy--> device memory
 *
 * It is slow, but ranks that share a GPU have no other way, because NCCL rejects them. A call first waits for the work that precedes it on
 * its stream, and its own work is complete when it returns (gt_comm_api.async = false). Sums follow the same tree as in the inner
 * communicator.
 *
 * It provides no memory (buffer, common), because arenas are device memory, and cannot be opened with create() and open(). */
#ifndef GT_TEAM_COMM_STAGED_H
#define GT_TEAM_COMM_STAGED_H

#include "backend.h"
#include "comm.h"

/* Opens a communicator on the device's memory. The caller owns inner, which must outlive *out. */
enum gt_code gt_comm_staged_open(struct gt_comm *inner, const struct gt_backend *be, struct gt_dev *dev, struct gt_comm **out,
                                 struct gt_err *err);

#endif
