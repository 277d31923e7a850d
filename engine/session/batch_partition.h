/* How the samples of a step are cut: over micro-batches, over ranks, and with reproducible = "world" over virtual shards. */
#ifndef GT_SESSION_BATCH_PARTITION_H
#define GT_SESSION_BATCH_PARTITION_H

#include "session/session.h"

/* Sizes that follow from the config, the data and where the rank stands: batch, micro, cut, units, samples, steps. */
enum gt_code gt_batch_sizes(struct gt_session *s, bool train, struct gt_err *err);

/* This rank's units of a step over n samples of all ranks: full micro-batches, then what is left; job->arena and space are set. */
enum gt_code gt_batch_train_jobs(struct gt_session *s, int64_t n, struct gt_job *job, struct gt_err *err);
enum gt_code gt_batch_eval_jobs(struct gt_session *s, int64_t n, struct gt_job *job, struct gt_err *err);

/* Evaluations count every sample once, whatever the sampler. */
struct gt_batch_slice gt_batch_eval_slice(const struct gt_session *s);

#endif
