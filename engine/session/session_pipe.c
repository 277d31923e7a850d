#include "session/session_pipe.h"
#include "plan/mode_pipe.h"

enum gt_code gt_session_pipe_open(struct gt_session *s, bool train, struct gt_err *err)
{
	if (!train || !gt_session_is_pipeline(s))
		return GT_OK;
	const struct gt_conf_parallel *p = &s->conf->parallel;
	int own = gt_pipe_stages(s->conf, s->at.npipe);
	s->space->memory.act_slots[false] = own; /* in an evaluation, a micro-batch passes through all stages of the rank */
	return gt_pipe_act_slots(s->arena, (enum gt_pipe_schedule)p->schedule, s->at.npipe, own, s->at.pipe, (int)s->batch.units,
	                         &s->space->memory.act_slots[true], &s->batch.keep, err);
}

/* Partitions the layers into stages: as parallel.cuts requests, else by the cost of the layers. */
static enum gt_code choose_partition(struct gt_session *s, struct gt_graph *g, int stages, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	const struct gt_conf_parallel *p = &c->parallel;
	int layers = gt_graph_layers(g);
	double *cost;
	GT_NEW(s->pipe.stage_of, s->arena, layers + 1, err);
	if (p->cuts.n && p->cuts.n != stages - 1)
		return gt_conf_refuse(c, "parallel.cuts", err, "expected %d name%s, one less than the number of stages, got %d", stages - 1,
		                      stages == 2 ? "" : "s", p->cuts.n);
	if (p->cuts.n) {
		for (int i = 0, k = 0; i < layers; i++) {
			k += k < p->cuts.n && p->cut[k] == i;
			s->pipe.stage_of[i] = k;
		}
		return GT_OK;
	}
	GT_NEW(cost, s->arena, g->nnodes + 1, err);
	gt_partition_costs(g, s->queues ? GT_CUT_GPU : GT_CUT_CPU, cost);
	if (gt_partition_balance(g, cost, stages, s->pipe.stage_of, err) != GT_OK)
		return gt_fail_prefix(err, "%s: parallel", c->path);
	return GT_OK;
}

/* Finds the stage of each parameter. */
static enum gt_code find_homes(struct gt_session *s, const struct gt_partition *partition, struct gt_err *err)
{
	const struct gt_graph *g = partition->full;
	GT_NEW(s->pipe.home, s->arena, g->nparams + 1, err);
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin; k++) {
			gt_vid v = g->nodes[i].in[k];
			if (v >= 0 && g->values[v].param >= 0)
				s->pipe.home[g->values[v].param] = partition->stage[i];
		}
	return GT_OK;
}

#define ROOM ((size_t)1 << 30) /* maximum bytes of the send buffer between two ranks of neighbouring stages */
/* Maximum bytes that are added to the send buffer only to keep sends from waiting for receivers, for example when a rank defers work
 * (zero-bubble). */
#define AHEAD ((size_t)32 << 20)

/* Verifies the transfers of a whole step of all ranks, and sets the size of the send buffers. Fails if the transfers need larger buffers
 * than ROOM. */
static enum gt_code verify_transfers(struct gt_session *s, const struct gt_partition *partition, struct gt_err *err)
{
	size_t need = 0, ahead = 0;
	enum gt_code code = GT_OK;
	/* the last batch of an epoch may have fewer micro-batches; above 16, only some numbers of micro-batches are tried */
	for (int m = (int)s->batch.units; m > 0 && code == GT_OK; m = m > 16 ? m / 2 : m - 1) {
		struct gt_comm_report p;
		struct gt_arena *a;
		GT_TRY(gt_arena_open(&a, err));
		code = gt_pipe_verify(a, partition, (enum gt_pipe_schedule)s->conf->parallel.schedule, m, &p, err);
		gt_arena_close(a);
		need = p.need > need ? p.need : need;
		ahead = p.ahead > ahead ? p.ahead : ahead;
	}
	ahead = ahead < AHEAD ? ahead : AHEAD;
	s->pipe.pair_bytes = need > ahead ? need : ahead;
	s->pipe.pair_bytes = s->pipe.pair_bytes > GT_PAIR_BYTES ? s->pipe.pair_bytes : GT_PAIR_BYTES;
	if (code == GT_OK && need > ROOM)
		code = gt_conf_refuse(s->conf, "parallel.chunks", err,
		                      "transfers between two stages need a buffer of %zu bytes, but the maximum is %zu; use more parallel.chunks, "
		                      "or other parallel.cuts", need, ROOM);
	return code;
}

static enum gt_code verify_with_lanes(struct gt_session *s, struct gt_partition *partition, struct gt_err *err)
{
	enum gt_code code = verify_transfers(s, partition, err);
	if (code != GT_EINTERNAL)
		return code;
	s->pipe.lanes = gt_partition_lanes(partition);
	return s->pipe.lanes <= GT_LANES ? verify_transfers(s, partition, err) : code;
}

enum gt_code gt_session_pipe_stage(struct gt_session *s, const struct gt_plan_key *w, struct gt_graph **g, struct gt_err *err)
{
	int stages = s->at.npipe * gt_pipe_stages(s->conf, s->at.npipe);
	struct gt_partition *partition;
	bool first = !s->pipe.stage_of;
	if (first)
		GT_TRY(choose_partition(s, *g, stages, err));
	GT_TRY(gt_graph_send_tied(*g, s->pipe.stage_of, stages, err));
	GT_TRY(gt_partition_make(*g, s->pipe.stage_of, stages, s->at.npipe,
	                         gt_pipe_splits_backward((enum gt_pipe_schedule)s->conf->parallel.schedule), &partition, err));
	if (s->pipe.lanes > 1)
		gt_partition_lanes(partition);
	if (first) {
		GT_TRY(find_homes(s, partition, err));
		if (w->train && stages > 1)
			GT_TRY(verify_with_lanes(s, partition, err));
	}
	GT_TRY(gt_partition_stage(partition, w->stage, g, err));
	s->pipe.reads |= gt_graph_reads_batch(*g);
	return GT_OK;
}

int gt_session_pipe_rank_of(const struct gt_session *s, int i)
{
	return s->pipe.home[i] % s->at.npipe * s->at.ndata;
}

const char *gt_session_pipe_first_layer(const struct gt_session *s, int stage)
{
	int i = 0;
	while (i < s->conf->model.nlayers - 1 && s->pipe.stage_of[i] < stage)
		i++;
	return s->conf->model.layers[i].name;
}

bool gt_session_pipe_has_param(const struct gt_session *s, int i)
{
	return s->pipe.home[i] % s->at.npipe == s->at.pipe;
}
