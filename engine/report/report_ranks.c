#include "report/report_ranks.h"
#include "comm.h"
#include "ir/op.h"
#include "train/ema.h"
#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------------------------------------------- */

enum { ROW_BATCH = GT_A_COUNT, ROW_DATA, ROW_FETCHED, ROW_KEPT, ROWS };

/* Returns the memory of this rank's batches in bytes: the inputs and targets of the largest micro-batch part, times the number of parts
 * that the loader keeps. */
static uint64_t batch_bytes(const struct gt_session *s)
{
	size_t most = 0;
	for (int i = 0; i < s->prog.full.n; i++) {
		const struct gt_step *t = &s->prog.full.step[i];
		if (t->kind != GT_STEP_LOAD)
			continue;
		const struct gt_graph *g = t->plan->graph;
		size_t bytes = g->target < 0 ? 0 : gt_tdesc_bytes(gt_graph_desc(g, g->target));
		/* images in memory that all ranks share are counted with the arenas */
		for (int k = 0; k < g->ninputs && !gt_space_factored(s->space); k++)
			bytes += gt_tdesc_bytes(gt_graph_desc(g, g->input[k]));
		most = bytes > most ? bytes : most;
	}
	return (uint64_t)most * (uint64_t)(s->batch.keep > 1 ? s->batch.keep : 1);
}

static const char *row_name(const struct gt_world_plan *world_plan, int row)
{
	bool several = false;
	for (int i = 0; i < world_plan->nplanned; i++)
		several |= world_plan->rank[i]->batch.keep > 1;
	return row == ROW_BATCH     ? (several ? "batches" : "one batch")
	       : row == ROW_DATA    ? "datasets"
	       : row == ROW_FETCHED ? "decoded batches"
	       : row == ROW_KEPT    ? "weights kept in evaluations" /* the trained weights, while an evaluation uses their moving average */
	                            : gt_arena_name((enum gt_arena_id)row);
}

static uint64_t data_bytes(const struct gt_session *s)
{
	uint64_t n = 0;
	for (int i = 0; i < GT_SPLITS; i++)
		n += gt_dataset_bytes(&s->data.set[i]);
	return n;
}

static uint64_t row_bytes(const struct gt_session *s, int row)
{
	return row == ROW_BATCH     ? batch_bytes(s)
	       : row == ROW_DATA    ? data_bytes(s)
	       : row == ROW_FETCHED ? s->prog.fetched_bytes
	       : row == ROW_KEPT    ? gt_ema_held_bytes(s)
	                            : s->space->memory.bytes[row];
}

static bool is_shared_by_ranks(const struct gt_session *s, int row)
{
	if (row == ROW_DATA)
		return s->strategy->ranks == GT_RANKS_THREADS && s->at.world > 1;
	return row < GT_A_COUNT && gt_space_is_shared(s->space, (enum gt_arena_id)row);
}

/* The memory that each planned rank needs: bytes[index in world_plan->rank][row], with a row for each arena and other use of memory. */
struct memory {
	uint64_t (*bytes)[ROWS];
	bool shown[ROWS];
	int largest; /* index of the planned rank that needs the most memory */
};

static enum gt_code sum_memory(const struct gt_world_plan *world_plan, struct memory *m, struct gt_err *err)
{
	uint64_t most = 0;
	GT_NEW(m->bytes, world_plan->arena, world_plan->nplanned, err);
	m->shown[ROW_BATCH] = true;
	for (int i = 0; i < world_plan->nplanned; i++) {
		uint64_t total = 0;
		for (int row = 0; row < ROWS; row++) {
			total += m->bytes[i][row] = row_bytes(world_plan->rank[i], row);
			m->shown[row] |= m->bytes[i][row] > 0;
		}
		m->largest = total > most ? i : m->largest;
		most = total > most ? total : most;
	}
	return GT_OK;
}

static void write_memory(struct gt_json *j, const struct gt_world_plan *world_plan, const struct memory *m, int rank)
{
	gt_json_object(j, "memory");
	for (int row = 0; row < ROWS; row++)
		if (m->shown[row])
			gt_json_uint(j, row_name(world_plan, row), m->bytes[rank][row]);
	gt_json_end(j);
}

/* Writes, for each arena whose blocks share memory, the maximum bytes that are live at the same time. No layout can need less. */
static void write_live(struct gt_json *j, const struct gt_session *s)
{
	gt_json_object(j, "live");
	for (int row = 0; row < GT_A_COUNT; row++)
		if (s->space->memory.live[row])
			gt_json_uint(j, gt_arena_name((enum gt_arena_id)row), s->space->memory.live[row]);
	gt_json_end(j);
}

/* ---- what a rank sends and does -------------------------------------------------------------------------------------------------- */

static int group_size(const struct gt_session *s, int group)
{
	return group == GT_GROUP_DATA ? s->at.ndata : group == GT_GROUP_PIPE ? s->at.npipe : s->at.world;
}

/* Returns the bytes that a rank sends in a call. For collectives in which each rank has a block, c->count is the number of elements of one
 * block. */
static uint64_t bytes_sent(const struct gt_session *s, const struct gt_call *c)
{
	uint64_t n = c->count * gt_dtype_size(c->dtype), w = (uint64_t)group_size(s, c->comm->group);
	int rank = c->comm->group == GT_GROUP_DATA ? s->at.data : c->comm->group == GT_GROUP_PIPE ? s->at.pipe : s->at.rank;
	switch (c->comm->kind) {
	case GT_COLL_ALL_REDUCE:
		return 2 * (w - 1) * n / w;
	case GT_COLL_REDUCE_SCATTER:
	case GT_COLL_ALL_GATHER:
		return (w - 1) * n;
	case GT_COLL_GATHER:
		return rank == c->comm->peer ? 0 : n;
	case GT_COLL_SCATTER:
		return rank == c->comm->peer ? (w - 1) * n : 0;
	case GT_COLL_BROADCAST:
		return w > 1 ? n : 0;
	case GT_COMM_SEND:
		return rank == c->comm->peer ? 0 : n;
	default: /* barrier, recv */
		return 0;
	}
}

/* The communication of a rank in one optimizer step, summed over the calls of the same kind in the same group of ranks. */
struct traffic {
	const char *kind, *group;
	int64_t calls;
	/* Bytes that the rank has to send with an optimal algorithm. For n bytes on W ranks: all_reduce 2 n (W - 1) / W, reduce_scatter and
	 * all_gather n (W - 1) / W, broadcast n. */
	uint64_t bytes;
};

static void write_traffic(struct gt_json *j, const struct gt_session *s)
{
	struct traffic sum[(GT_COMM_RECV + 1) * GT_GROUP_COUNT] = {{0}};
	int n = 0;
	for (int i = 0; i < s->prog.full.n; i++) {
		const struct gt_step *t = &s->prog.full.step[i];
		int k = 0;
		if (t->kind != GT_STEP_COMM)
			continue;
		const char *kind = gt_comm_name(t->call->comm), *group = gt_group_name(t->call->comm->group);
		while (k < n && (strcmp(sum[k].kind, kind) || strcmp(sum[k].group, group)))
			k++;
		if (k == n)
			sum[n++] = (struct traffic){.kind = kind, .group = group};
		sum[k].calls++;
		sum[k].bytes += bytes_sent(s, t->call);
	}
	gt_json_array(j, "traffic");
	for (int i = 0; i < n; i++)
		gt_json_row(j, NULL, GT_STR("kind", sum[i].kind), GT_STR("group", sum[i].group), GT_INT("calls", sum[i].calls),
		            GT_UINT("bytes_sent", sum[i].bytes));
	gt_json_end(j);
}

/* Writes what one planned rank needs and does. The member "last" is the last of the consecutive ranks that it stands for; "place" is its
 * index within its copy of the model, 0 without a pipeline; "steps", "samples", "flops" and the traffic are for one optimizer step. */
static enum gt_code write_rank(struct gt_json *j, const struct gt_world_plan *world_plan, const struct memory *m, int rank,
                               struct gt_err *err)
{
	const struct gt_session *s = world_plan->rank[rank];
	const struct gt_prog *p = &s->prog.full;
	int64_t samples = 0;
	double flops = 0;
	bool *seen;
	GT_NEW(seen, world_plan->arena, p->nmicro + 1, err);
	for (int i = 0; i < p->n; i++) {
		const struct gt_step *t = &p->step[i];
		if (t->kind == GT_STEP_LOAD && !seen[t->micro]) { /* a batch is counted once, because the stages of one rank share it */
			seen[t->micro] = true;
			samples += t->plan->graph->batch / t->plan->graph->views;
		}
		if (t->kind == GT_STEP_LAUNCH)
			flops += t->call->flops;
	}
	gt_json_object(j, NULL);
	gt_json_add(j, GT_INT("rank", s->at.rank), GT_INT("last", s->at.rank + world_plan->equal[rank] - 1),
	            GT_INT("copy", s->at.data), GT_INT("place", s->at.pipe), GT_INT("steps", p->n),
	            GT_INT("samples", samples), GT_NUM("flops", flops, 15));
	write_memory(j, world_plan, m, rank);
	write_live(j, s);
	write_traffic(j, s);
	gt_json_end(j);
	return GT_OK;
}

/* ---- buckets and owners -------------------------------------------------------------------------------------------------------------- */

static bool param_in_bucket(const struct gt_space *s, int param, int bucket)
{
	const struct gt_param_slot *p = &s->layout.param[param];
	return s->layout.first->params[param].cls != GT_PARAM_BUFFER && p->offset >= 0 && gt_space_bucket_of(s, p->offset) == bucket;
}

/* Writes a bucket: consecutive parameters whose gradients are communicated together, in the order in which the backward pass completes
 * them. The member "learned" means that the parameters are trained; "shard_bytes" is the size of one rank's shard, if the bucket is
 * sharded. */
static void write_bucket(struct gt_json *j, const struct gt_session *s, int b)
{
	const struct gt_space *sp = s->space;
	const struct gt_param *param = sp->layout.first->params;
	int first = -1, last = -1, n = 0;
	for (int i = 0; i < sp->layout.first->nparams; i++) {
		if (!param_in_bucket(sp, i, b))
			continue;
		n++;
		first = first < 0 || sp->layout.param[i].offset < sp->layout.param[first].offset ? i : first;
		last = last < 0 || sp->layout.param[i].offset > sp->layout.param[last].offset ? i : last;
	}
	uint64_t bytes = gt_space_element(sp, GT_A_GRAD, sp->shards.bucket[b].end - sp->shards.bucket[b].begin).offset;
	uint64_t shard = gt_space_sharded(sp, GT_A_STATE) ? bytes / (uint64_t)sp->shards.spec.shards : 0;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_INT("place", s->at.pipe), GT_BOOL("learned", sp->shards.bucket[b].trainable), GT_INT("parameters", n),
	            GT_STR("first", first < 0 ? NULL : param[first].name), GT_STR("last", first < 0 ? NULL : param[last].name),
	            GT_UINT("bytes", bytes));
	if (shard)
		gt_json_uint(j, "shard_bytes", shard);
	gt_json_end(j);
}

/* Writes, for each parameter, the range of ranks whose shards of its bucket contain it. nbuckets: number of buckets that were written for
 * the ranks before this one. */
static void write_owners(struct gt_json *j, const struct gt_session *s, int nbuckets)
{
	const struct gt_space *sp = s->space;
	for (int i = 0; i < sp->layout.first->nparams && gt_space_sharded(sp, GT_A_STATE); i++) {
		const struct gt_param_slot *p = &sp->layout.param[i];
		if (sp->layout.first->params[i].cls == GT_PARAM_BUFFER || p->offset < 0)
			continue;
		int b = gt_space_bucket_of(sp, p->offset);
		int64_t at = p->offset - sp->shards.bucket[b].begin, shard = gt_space_shard(sp, b);
		gt_json_row(j, NULL, GT_STR("parameter", sp->layout.first->params[i].name), GT_INT("bucket", nbuckets + b),
		            GT_INT("first", at / shard), GT_INT("last", (at + p->count - 1) / shard));
	}
}

/* Writes the buckets, and the owners of parameters, of all ranks in the first copy of the model. */
static void write_buckets(struct gt_json *j, const struct gt_world_plan *world_plan)
{
	static const char *const sharded[] = {[GT_SHARD_NONE] = "",
	                                      [GT_SHARD_STATE] = "optimizer state",
	                                      [GT_SHARD_STATE_GRADS] = "optimizer state, gradients",
	                                      [GT_SHARD_STATE_PARAMS] = "optimizer state, parameters",
	                                      [GT_SHARD_ALL] = "optimizer state, gradients, parameters"};
	const struct gt_shard_spec *spec = &world_plan->rank[0]->space->shards.spec;
	int n = 0;
	gt_json_array(j, "buckets");
	for (int i = 0; i < world_plan->nplanned; i++)
		for (int b = 0; !world_plan->rank[i]->at.data && b < world_plan->rank[i]->space->shards.nbuckets; b++)
			write_bucket(j, world_plan->rank[i], b);
	gt_json_end(j);
	/* the method by which all copies of the model make the same update */
	gt_json_string(j, "sync", world_plan->copies > 1 ? gt_sync_method_name(spec->sync) : "");
	gt_json_string(j, "sharded", sharded[spec->sharding]);
	gt_json_array(j, "owners");
	for (int i = 0; i < world_plan->nplanned; i++) {
		if (world_plan->rank[i]->at.data)
			continue;
		write_owners(j, world_plan->rank[i], n);
		n += world_plan->rank[i]->space->shards.nbuckets;
	}
	gt_json_end(j);
}

/* ---- pipeline ----------------------------------------------------------------------------------------------------------------------- */

static double stage_flops(const struct gt_graph *g)
{
	double flops = 0;
	for (int i = 0; g && i < g->nnodes; i++)
		flops += gt_node_flops(g, &g->nodes[i]) / (double)g->batch;
	return flops;
}

/* Writes one pipeline stage. all: FLOPs of all stages. slots: maximum number of micro-batches whose activations are in memory at the same
 * time. */
static void write_stage(struct gt_json *j, const struct gt_world_plan *world_plan, int stage, double all, int slots)
{
	const struct gt_graph *g = gt_world_plan_graph(world_plan, stage, 0);
	const struct gt_model_spec *m = &world_plan->rank[0]->conf->model;
	const int *stage_of = world_plan->rank[0]->pipe.stage_of;
	int first = 0, last = g ? m->nlayers - 1 : -1;
	int64_t params = 0;
	while (first <= last && stage_of[first] != g->stage)
		first++;
	while (last >= first && stage_of[last] != g->stage)
		last--;
	for (int i = 0; g && i < g->nparams; i++)
		if (g->params[i].cls != GT_PARAM_BUFFER && g->params[i].value >= 0)
			params += gt_tdesc_count(&g->params[i].desc);
	gt_json_row(j, NULL, GT_INT("place", stage % world_plan->ranks), GT_INT("layers", last - first + 1),
	            GT_STR("first", last < first ? NULL : m->layers[first].name), GT_STR("last", last < first ? NULL : m->layers[last].name),
	            GT_INT("params", params), GT_NUM("flop_share", all > 0 ? stage_flops(g) / all : 0, 6), GT_INT("slots", slots));
}

static enum gt_code write_stages(struct gt_json *j, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	struct gt_world_plan_schedule grid;
	char *text;
	size_t len;
	double all = 0;
	GT_TRY(gt_world_plan_schedule(world_plan, &grid, err));
	if (!grid.grid)
		return GT_OK;
	for (int i = 0; i < world_plan->stages; i++)
		all += stage_flops(gt_world_plan_graph(world_plan, i, 0));
	gt_json_array(j, "stages");
	for (int i = 0; i < world_plan->stages; i++)
		write_stage(j, world_plan, i, all, grid.grid->slots[i]);
	gt_json_end(j);
	gt_json_string(j, "balance", world_plan->rank[0]->conf->parallel.cuts.n ? "by hand" : "computed");
	GT_TRY(gt_grid_text(world_plan->arena, grid.grid, 138, &text, &len, err));
	gt_json_string(j, "grid", text);
	free(text);
	gt_json_add(j, GT_NUM("bubble", grid.bubble, 6), GT_NUM("bubble_even", grid.even, 6));
	return GT_OK;
}

enum gt_code gt_report_ranks(struct gt_json *j, const struct gt_world_plan *world_plan, int64_t part, struct gt_err *err)
{
	struct gt_world_report proof;
	struct memory m = {0};
	GT_TRY(sum_memory(world_plan, &m, err));
	GT_TRY(gt_world_plan_verify(world_plan, &proof, err));
	write_memory(j, world_plan, &m, m.largest);
	write_live(j, world_plan->rank[m.largest]);
	gt_json_uint(j, "decoding", world_plan->rank[m.largest]->prog.decoding_bytes); /* bytes of the decoder buffers of one rank */
	gt_json_array(j, "common"); /* names of the arenas that all ranks of a host share */
	for (int row = 0; row < ROWS; row++)
		if (m.shown[row] && is_shared_by_ranks(world_plan->rank[0], row))
			gt_json_string(j, NULL, row_name(world_plan, row));
	gt_json_end(j);
	gt_json_add(j, GT_INT("copies", world_plan->copies), GT_INT("part", part), GT_INT("collectives", proof.collectives),
	            GT_INT("transfers", proof.transfers));
	gt_json_array(j, "ranks");
	for (int i = 0; i < world_plan->nplanned; i++)
		GT_TRY(write_rank(j, world_plan, &m, i, err));
	gt_json_end(j);
	write_buckets(j, world_plan);
	return write_stages(j, world_plan, err);
}
