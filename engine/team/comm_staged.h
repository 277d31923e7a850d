/* A communicator for devices whose memory is not the host's, over one that joins their hosts: operands go through host memory. Slow, and
 * the only way for ranks that share a GPU, which NCCL refuses. A call returns when its work is done (gt_comm_api.async = false); it waits
 * for what stands before it on its stream. The same tree of sums as the communicator below it.
 *
 * It offers no memory of its own (buffer, common): the arenas are the device's. create() and open() are not for it. */
#ifndef GT_TEAM_COMM_STAGED_H
#define GT_TEAM_COMM_STAGED_H

#include "backend.h"
#include "comm.h"

/* inner is the caller's, and must outlive *out. */
enum gt_code gt_comm_staged_open(struct gt_comm *inner, const struct gt_backend *be, struct gt_dev *dev, struct gt_comm **out, struct gt_err *err);

#endif
