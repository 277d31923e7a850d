/* Pipeline parallelism (mode "pipe") in a session: assigns layers and parameters to stages, and makes the plans of this rank's stages. */
#ifndef GT_SESSION_SESSION_PIPE_H
#define GT_SESSION_SESSION_PIPE_H

#include "session/session.h"

/* Returns whether the session runs in mode "pipe". */
static inline bool gt_session_is_pipeline(const struct gt_session *s)
{
	return s->conf->parallel.mode == GT_MODE_PIPE;
}

/* Computes, for the optimizer step, the number of activation slots and of batches that the loader keeps. Call it after the samples of a
 * step are divided (batch_partition.h). The first call of gt_session_pipe_stage partitions the model. */
enum gt_code gt_session_pipe_open(struct gt_session *s, bool train, struct gt_err *err);

/* Returns whether parameter i belongs to a stage of this rank. */
bool gt_session_pipe_has_param(const struct gt_session *s, int i);

/* Replaces *g, the graph of the whole model, by the graph of stage w->stage. The first call decides the partition of the layers into
 * stages. */
enum gt_code gt_session_pipe_stage(struct gt_session *s, const struct gt_plan_key *w, struct gt_graph **g, struct gt_err *err);

/* Returns the name of the first layer of a stage, which may belong to another rank. */
const char *gt_session_pipe_first_layer(const struct gt_session *s, int stage);

/* Returns the world rank that has parameter i; if several copies of the model have it, the rank in the first copy. */
int gt_session_pipe_rank_of(const struct gt_session *s, int i);

#endif
