/* Mode "pipe": which part of the model this rank has. */
#ifndef GT_SESSION_SESSION_PIPE_H
#define GT_SESSION_SESSION_PIPE_H

#include "session/session.h"

static inline bool gt_session_piped(const struct gt_session *s)
{
	return s->conf->parallel.mode == GT_MODE_PIPE;
}

/* How many micro-batches and sets of activations a step has, after its samples are cut (batch_partition.c). */
enum gt_code gt_session_pipe_room(struct gt_session *s, struct gt_err *err);

/* Whether parameter i is of a stage of this rank. */
bool gt_session_pipe_has(const struct gt_session *s, int i);

/* *g, a whole graph, becomes that of stage w->stage. The first one decides where the model is cut. */
enum gt_code gt_session_pipe_stage(struct gt_session *s, const struct gt_plan_key *w, struct gt_graph **g, struct gt_err *err);

/* The plans of a unit: one a stage of this rank; want: what each is for. */
enum gt_code gt_session_pipe_unit(struct gt_session *s, struct gt_plan_key *want, struct gt_unit *u, struct gt_err *err);

/* parallel.deferred_bn: the calls that end a mini-batch on this rank's stages, made once, and what units are one, for a job whose plans are made.
 * Bind them after gt_space_alloc, close them before the space. */
enum gt_code gt_session_pipe_ending(struct gt_session *s, struct gt_job *job, struct gt_err *err);
void gt_session_pipe_bind(struct gt_session *s);
void gt_session_pipe_close(struct gt_session *s);

/* The name of the layer that a stage begins with, of any rank's. */
const char *gt_session_pipe_first(const struct gt_session *s, int stage);

/* The rank of the world that has parameter i, the first of its copies. */
int gt_session_pipe_home(const struct gt_session *s, int i);

#endif
