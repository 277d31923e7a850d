/* Inside the room: what ddp and zero share, whose ranks have the whole model each and other samples. */
#ifndef GT_PAR_REPLICAS_H
#define GT_PAR_REPLICAS_H

#include "par/emit.h"

/* Buckets as parallel.bucket_mb has them, the first one 1 MiB as torch's. */
struct gt_cutting gt_replicas_cut(const struct gt_conf *c);

/* Forward and backward of every unit. For a training program, reduce(e, bucket, name) appends what joins a bucket's gradients of all ranks, as
 * soon as they are finished, in the order of the buckets; and where a rank has no samples at all, after it has cleared its gradients. */
enum gt_code gt_replicas_passes(struct gt_emit *e, void (*reduce)(struct gt_emit *e, int bucket, const char *name));

#endif
