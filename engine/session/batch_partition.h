/* Divides the samples of an optimizer step into micro-batches, ranks and, with reproducible = "world", virtual shards.
 *
 *     batch        |          samples of one optimizer step, all ranks          |
 *     micro-batch  |        0        |        1        |        2        |  3   |
 *     parts        | r0 | r1 | r2 |r3| r0 | r1 | r2 |r3| ...                        one part for each rank, or for each virtual shard
 *     units of rank 1:  [ part 1 of 0 ], [ part 1 of 1 ], [ part 1 of 2 ], [ part 1 of 3 ]
 */
#ifndef GT_SESSION_BATCH_PARTITION_H
#define GT_SESSION_BATCH_PARTITION_H

#include "session/session.h"

/* Fills in s->batch from the config, the data and the rank. There is no function to close it. */
enum gt_code gt_batch_partition_open(struct gt_session *s, bool train, struct gt_err *err);

/* Fill in job->unit for n samples of all ranks: gt_batch_train_units for an optimizer step, gt_batch_eval_units for an evaluation batch. A
 * unit is this rank's part of one micro-batch. Full micro-batches come first, then the remaining samples. job->arena and job->space must be
 * set. */
enum gt_code gt_batch_train_units(struct gt_session *s, int64_t n, struct gt_job *job, struct gt_err *err);
enum gt_code gt_batch_eval_units(struct gt_session *s, int64_t n, struct gt_job *job, struct gt_err *err);

/* Divides the ranks of a data group into classes of consecutive ranks whose parts of every batch of the run, training and evaluation, have
 * equal sizes. Rank 0 is a class of its own, because it also does the work that is done once. The session may be of any rank; it must have
 * its programs. first[]: the first rank of each class, ascending. Returns the number of classes, 1 ... GT_BATCH_CLASSES. */
#define GT_BATCH_CLASSES (2 + 2 * 4 + 2 * 2 * GT_SPLITS)
int gt_batch_partition_classes(const struct gt_session *s, int first[GT_BATCH_CLASSES]);

/* Returns this rank's part of each batch of an evaluation. An evaluation uses every sample once, with any sampler. */
struct gt_batch_slice gt_batch_eval_slice(const struct gt_session *s);

#endif
