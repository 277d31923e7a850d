#include "report/report_ranks.h"
#include "comm.h"
#include "ir/op.h"
#include "train/ema.h"
#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------------------------------------------- */

enum { ROW_BATCH = GT_A_COUNT, ROW_DATA, ROW_FETCHED, ROW_KEPT, ROWS };

/* Returns the bytes of the batches that this rank keeps: inputs and targets of the largest part of a batch, times the number of slots. */
static uint64_t batch_bytes(const struct gt_session *s)
{
	size_t most = 0;
	for (int i = 0; i < s->prog.full.n; i++) {
		const struct gt_step *t = &s->prog.full.step[i];
		if (t->kind != GT_STEP_LOAD)
			continue;
		const struct gt_graph *g = t->plan->graph;
		size_t bytes = g->target < 0 ? 0 : gt_tdesc_bytes(gt_graph_desc(g, g->target));
		for (int k = 0; k < g->ninputs && !gt_space_factored(s->space); k++) /* images that all ranks share are counted as an arena */
			bytes += gt_tdesc_bytes(gt_graph_desc(g, g->input[k]));
		most = bytes > most ? bytes : most;
	}
	return (uint64_t)most * (uint64_t)(s->batch.keep > 1 ? s->batch.keep : 1);
}

static const char *row_name(const struct gt_world_plan *world_plan, int row)
{
	bool several = false;
	for (int i = 0; i < world_plan->world; i++)
		several |= world_plan->rank[i]->batch.keep > 1;
	return row == ROW_BATCH     ? (several ? "batches" : "one batch")
	       : row == ROW_DATA    ? "datasets"
	       : row == ROW_FETCHED ? "decoded batches"
	       : row == ROW_KEPT    ? "weights kept in evaluations" /* while the moving average is evaluated */
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

static enum gt_code list_memory(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	GT_NEW(r->memory, r->arena, ROWS, err);
	for (int i = 0; i < world_plan->world; i++)
		GT_NEW(r->ranks[i].memory, r->arena, ROWS, err);
	for (int row = 0; row < ROWS; row++) {
		bool some = row == ROW_BATCH;
		for (int i = 0; i < world_plan->world; i++) {
			uint64_t n = row_bytes(world_plan->rank[i], row);
			some |= n > 0;
			r->ranks[i].memory[r->nmemory] = n;
			r->ranks[i].total += n;
		}
		if (some)
			r->memory[r->nmemory++] = (struct gt_check_memory){.arena = row_name(world_plan, row),
			                                                   .common = is_shared_by_ranks(world_plan->rank[0], row)};
	}
	for (int i = 0; i < world_plan->world; i++) {
		r->largest = r->ranks[i].total > r->ranks[r->largest].total ? i : r->largest;
		r->smallest = r->ranks[i].total < r->ranks[r->smallest].total ? i : r->smallest;
	}
	r->decoding = world_plan->rank[r->largest]->prog.decoding_bytes;
	for (int k = 0; k < r->nmemory; k++) {
		r->memory[k].bytes = r->ranks[r->largest].memory[k];
		r->memory[k].least = r->ranks[r->smallest].memory[k];
	}
	return GT_OK;
}

/* ---- what a rank sends and does -------------------------------------------------------------------------------------------------- */

static int group_size(const struct gt_session *s, int group)
{
	return group == GT_GROUP_DATA ? s->at.ndata : group == GT_GROUP_PIPE ? s->at.npipe : s->at.world;
}

/* Returns the bytes that a rank sends in a call. count is that of one rank's block if every rank has one. */
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

static enum gt_code add_traffic(struct gt_check_rank *k, const struct gt_session *s, const struct gt_call *c)
{
	const char *kind = gt_comm_name(c->comm), *group = gt_group_name(c->comm->group);
	int i = 0;
	while (i < k->ntraffic && (strcmp(k->traffic[i].kind, kind) || strcmp(k->traffic[i].group, group)))
		i++;
	if (i == k->ntraffic)
		k->traffic[k->ntraffic++] = (struct gt_check_traffic){.kind = kind, .group = group};
	k->traffic[i].calls++;
	k->traffic[i].bytes += bytes_sent(s, c);
	k->sent += bytes_sent(s, c);
	return GT_OK;
}

static enum gt_code fill_rank(struct gt_report *r, const struct gt_session *s, struct gt_check_rank *k, struct gt_err *err)
{
	const struct gt_prog *p = &s->prog.full;
	bool *seen;
	k->copy = s->at.data;
	k->pipe_rank = s->at.pipe;
	k->steps = p->n;
	GT_NEW(k->traffic, r->arena, (GT_COMM_RECV + 1) * GT_GROUP_COUNT, err);
	GT_NEW(seen, r->arena, p->nmicro + 1, err);
	for (int i = 0; i < p->n; i++) {
		const struct gt_step *t = &p->step[i];
		if (t->kind == GT_STEP_LOAD && !seen[t->micro]) { /* the stages of one rank share the batch */
			seen[t->micro] = true;
			k->samples += t->plan->graph->batch / t->plan->graph->views;
		}
		if (t->kind == GT_STEP_LAUNCH)
			k->flops += t->call->flops;
		if (t->kind == GT_STEP_COMM)
			GT_TRY(add_traffic(k, s, t->call));
	}
	return GT_OK;
}

/* ---- buckets and owners -------------------------------------------------------------------------------------------------------------- */

static bool param_in_bucket(const struct gt_space *s, int param, int bucket)
{
	const struct gt_param_slot *p = &s->layout.param[param];
	return s->layout.first->params[param].cls != GT_PARAM_BUFFER && p->offset >= 0 && gt_space_bucket_of(s, p->offset) == bucket;
}

static enum gt_code add_bucket(struct gt_report *r, const struct gt_session *s, int b, struct gt_err *err)
{
	const struct gt_space *sp = s->space;
	struct gt_check_bucket *k = &r->buckets[r->nbuckets++];
	int first = -1, last = -1;
	*k = (struct gt_check_bucket){.pipe_rank = s->at.pipe, .learned = sp->shards.bucket[b].trainable};
	for (int i = 0; i < sp->layout.first->nparams; i++) {
		if (!param_in_bucket(sp, i, b))
			continue;
		k->nparams++;
		first = first < 0 || sp->layout.param[i].offset < sp->layout.param[first].offset ? i : first;
		last = last < 0 || sp->layout.param[i].offset > sp->layout.param[last].offset ? i : last;
	}
	k->bytes = gt_space_element(sp, GT_A_GRAD, sp->shards.bucket[b].end - sp->shards.bucket[b].begin).offset;
	k->shard = gt_space_sharded(sp, GT_A_STATE) ? k->bytes / (uint64_t)sp->shards.spec.shards : 0;
	if (first < 0)
		return GT_OK;
	GT_NEW_STR(k->first, gt_arena_strdup(r->arena, sp->layout.first->params[first].name), err);
	GT_NEW_STR(k->last, gt_arena_strdup(r->arena, sp->layout.first->params[last].name), err);
	return GT_OK;
}

static enum gt_code add_owners(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	const struct gt_space *sp = s->space;
	for (int i = 0; i < sp->layout.first->nparams && gt_space_sharded(sp, GT_A_STATE); i++) {
		const struct gt_param_slot *p = &sp->layout.param[i];
		if (sp->layout.first->params[i].cls == GT_PARAM_BUFFER || p->offset < 0)
			continue;
		int b = gt_space_bucket_of(sp, p->offset);
		int64_t at = p->offset - sp->shards.bucket[b].begin, shard = gt_space_shard(sp, b);
		struct gt_check_owner *o = &r->owners[r->nowners++];
		*o = (struct gt_check_owner){.bucket = r->nbuckets + b, .first = (int)(at / shard), .last = (int)((at + p->count - 1) / shard)};
		GT_NEW_STR(o->name, gt_arena_strdup(r->arena, sp->layout.first->params[i].name), err);
	}
	return GT_OK;
}

static enum gt_code list_buckets(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	static const char *const sharded[] = {[GT_SHARD_NONE] = "",
	                                      [GT_SHARD_STATE] = "optimizer state",
	                                      [GT_SHARD_STATE_GRADS] = "optimizer state, gradients",
	                                      [GT_SHARD_STATE_PARAMS] = "optimizer state, parameters",
	                                      [GT_SHARD_ALL] = "optimizer state, gradients, parameters"};
	int n = 0;
	for (int i = 0; i < world_plan->world; i++)
		n += world_plan->rank[i]->at.data ? 0 : world_plan->rank[i]->space->shards.nbuckets;
	GT_NEW(r->buckets, r->arena, n + 1, err);
	GT_NEW(r->owners, r->arena, world_plan->rank[0]->space->layout.first->nparams * world_plan->ranks + 1, err);
	for (int i = 0; i < world_plan->world; i++) {
		const struct gt_session *s = world_plan->rank[i];
		if (s->at.data)
			continue;
		GT_TRY(add_owners(r, s, err));
		for (int b = 0; b < s->space->shards.nbuckets; b++)
			GT_TRY(add_bucket(r, s, b, err));
	}
	r->sync = world_plan->copies > 1 ? gt_sync_method_name(world_plan->rank[0]->space->shards.spec.sync) : "";
	r->sharded = sharded[world_plan->rank[0]->space->shards.spec.sharding];
	return GT_OK;
}

/* ---- pipeline ----------------------------------------------------------------------------------------------------------------------- */

static void fill_stage(struct gt_check_stage *k, const struct gt_graph *g, const int *stage_of, const struct gt_model_spec *m)
{
	int first = 0, last = m->nlayers - 1;
	for (int i = 0; i < g->nnodes; i++)
		k->share += gt_node_flops(g, &g->nodes[i]) / (double)g->batch;
	while (first <= last && stage_of[first] != g->stage)
		first++;
	while (last >= first && stage_of[last] != g->stage)
		last--;
	for (int i = 0; i < g->nparams; i++)
		if (g->params[i].cls != GT_PARAM_BUFFER && g->params[i].value >= 0)
			k->params += gt_tdesc_count(&g->params[i].desc);
	if (last < first)
		return;
	k->first = m->layers[first].name;
	k->last = m->layers[last].name;
	k->nlayers = last - first + 1;
}

static enum gt_code list_stages(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	struct gt_world_plan_schedule grid;
	char *text;
	size_t len;
	double all = 0;
	GT_TRY(gt_world_plan_schedule(world_plan, &grid, err));
	if (!grid.grid)
		return GT_OK;
	r->bubble = grid.bubble;
	r->even = grid.even;
	GT_TRY(gt_grid_text(world_plan->arena, grid.grid, 138, &text, &len, err));
	r->grid = gt_arena_strdup(r->arena, text);
	free(text);
	if (!r->grid)
		return gt_fail_memory(err, len);
	GT_NEW(r->stages, r->arena, world_plan->stages, err);
	r->nstages = world_plan->stages;
	r->balance = world_plan->rank[0]->conf->parallel.cuts.n ? "by hand" : "computed";
	for (int i = 0; i < r->nstages; i++) {
		const struct gt_graph *g = gt_world_plan_graph(world_plan, i, 0);
		r->stages[i] = (struct gt_check_stage){.pipe_rank = i % world_plan->ranks, .slots = grid.grid->slots[i]};
		if (g)
			fill_stage(&r->stages[i], g, world_plan->rank[0]->pipe.stage_of, &world_plan->rank[0]->conf->model);
		all += r->stages[i].share;
	}
	for (int i = 0; i < r->nstages; i++)
		r->stages[i].share = all > 0 ? r->stages[i].share / all : 0;
	return GT_OK;
}

enum gt_code gt_report_ranks(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	struct gt_world_report proof;
	r->copies = world_plan->copies;
	GT_NEW(r->ranks, r->arena, world_plan->world, err);
	for (int i = 0; i < world_plan->world; i++)
		GT_TRY(fill_rank(r, world_plan->rank[i], &r->ranks[i], err));
	GT_TRY(list_memory(r, world_plan, err));
	GT_TRY(list_buckets(r, world_plan, err));
	GT_TRY(list_stages(r, world_plan, err));
	GT_TRY(gt_world_plan_verify(world_plan, &proof, err));
	r->collectives = proof.collectives;
	r->transfers = proof.transfers;
	return GT_OK;
}
