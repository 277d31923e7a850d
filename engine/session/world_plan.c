#include "session/world_plan.h"
#include "comm.h"
#include "ir/op.h"
#include "session/batch_partition.h"
#include <string.h>

struct gt_session_spec gt_world_plan_spec(struct gt_conf *c, const char *device, bool paper, int rank, int world)
{
	if (device && !strcmp(device, "null")) {
		device = NULL;
		paper = true;
	}
	return (struct gt_session_spec){.conf = c,
	                                .device = device,
	                                .rank = rank,
	                                .world = world,
	                                .train = true,
	                                .eval = {[GT_VALID] = true, [GT_TEST] = true},
	                                .dry = true,
	                                .paper = paper};
}

static int stages_of(const struct gt_session *s)
{
	for (int i = 0; i < s->prog.nplans; i++)
		if (s->prog.plan[i]->graph->stages)
			return s->prog.plan[i]->graph->stages;
	return 1;
}

/* Opens the session of a rank, which stands for `equal` ranks. */
static enum gt_code plan_rank(struct gt_world_plan *w, const struct gt_session_spec *first, int rank, int equal, struct gt_err *err)
{
	struct gt_session_spec spec = *first;
	spec.rank = rank;
	if (w->nplanned)
		spec.data = w->rank[0]->data.files;
	w->equal[w->nplanned] = equal;
	GT_TRY(gt_session_open(&spec, &w->rank[w->nplanned], err));
	w->nplanned++;
	return GT_OK;
}

/* Plans every rank of a small world. In a larger one, plans rank 0, which determines the classes of ranks, and then the first rank of each
 * class. Ranks are numbered stage by stage (gt_rank_coords_of), so the ranks of a class are consecutive. */
static enum gt_code plan_ranks(struct gt_world_plan *w, const struct gt_session_spec *spec, int each, struct gt_err *err)
{
	int first[GT_BATCH_CLASSES], classes;
	size_t most = w->world <= each ? (size_t)w->world : 1;
	GT_NEW(w->rank, w->arena, most, err);
	GT_NEW(w->equal, w->arena, most, err);
	GT_TRY(plan_rank(w, spec, 0, 1, err));
	w->copies = w->rank[0]->at.ndata;
	w->ranks = w->rank[0]->at.npipe;
	w->stages = stages_of(w->rank[0]);
	if (w->world <= each) {
		for (int r = 1; r < w->world; r++)
			GT_TRY(plan_rank(w, spec, r, 1, err));
		return GT_OK;
	}
	classes = gt_batch_partition_classes(w->rank[0], first);
	struct gt_session *rank0 = w->rank[0];
	GT_NEW(w->rank, w->arena, (int64_t)classes * w->ranks, err);
	GT_NEW(w->equal, w->arena, (int64_t)classes * w->ranks, err);
	w->rank[0] = rank0;
	w->equal[0] = 1;
	for (int pipe = 0; pipe < w->ranks; pipe++)
		for (int k = pipe == 0; k < classes; k++)
			GT_TRY(plan_rank(w, spec, pipe * w->copies + first[k], (k + 1 < classes ? first[k + 1] : w->copies) - first[k], err));
	return GT_OK;
}

enum gt_code gt_world_plan_open(struct gt_conf *c, const char *device, bool paper, bool apart, int world, int each,
                                struct gt_world_plan **out, struct gt_err *err)
{
	struct gt_session_spec spec = gt_world_plan_spec(c, device, paper, 0, world);
	struct gt_world_plan *w;
	struct gt_arena *a;
	*out = NULL;
	spec.apart = apart;
	if (world > GT_WORLD_MAX)
		return gt_fail(err, GT_EUSAGE, "expected at most %d ranks in a plan, got %d", GT_WORLD_MAX, world);
	GT_TRY(gt_arena_open(&a, err));
	w = gt_arena_alloc(a, 1, sizeof *w);
	if (!w) {
		gt_arena_close(a);
		return gt_fail_memory(err, sizeof *w);
	}
	*w = (struct gt_world_plan){.arena = a, .world = world};
	enum gt_code code = plan_ranks(w, &spec, each, err);
	if (code == GT_OK)
		*out = w;
	else
		gt_world_plan_close(w);
	return code;
}

void gt_world_plan_close(struct gt_world_plan *c)
{
	if (!c)
		return;
	for (int r = c->nplanned; r-- > 0;) /* closes the first session last, because the other sessions use its data */
		gt_session_close(c->rank[r]);
	gt_arena_close(c->arena);
}

/* ---- comparison of the ranks -------------------------------------------------------------------------------------------------------- */

static struct gt_rank_coords coords_of(const struct gt_rank_position *at, int copies)
{
	struct gt_rank_coords s = {{0}, {0}};
	s.rank[GT_GROUP_WORLD] = at->rank;
	s.color[GT_GROUP_DATA] = at->pipe;
	s.rank[GT_GROUP_DATA] = at->data;
	s.color[GT_GROUP_PIPE] = at->npipe > 1 ? at->data : -1;
	s.rank[GT_GROUP_PIPE] = at->pipe;
	s.copies = copies;
	return s;
}

/* Program k of a rank is: 0 the optimizer step, 1 the last step of an epoch, then for each split the evaluation of a full and of the last
 * batch, then for each phase its two steps. */
#define PROGRAMS (2 + 2 * GT_SPLITS)
static const struct gt_prog *select_program(const struct gt_session *s, int k)
{
	if (k >= PROGRAMS) {
		const struct gt_train_phase *p = &s->prog.phase[(k - PROGRAMS) / 2];
		return (k - PROGRAMS) % 2 ? &p->tail : &p->full;
	}
	const struct gt_eval_prog *e = &s->prog.eval[k < 2 ? 0 : (k - 2) / 2];
	if (k < 2)
		return k ? &s->prog.tail : &s->prog.full;
	return k % 2 ? &e->tail : &e->full;
}

/* Checks that ranks with the same stages have the same layout of parameters. */
static enum gt_code check_same_layout(const struct gt_world_plan *c, int r, struct gt_err *err)
{
	int like = 0;
	while (c->rank[like]->at.pipe != c->rank[r]->at.pipe)
		like++;
	const struct gt_space *a = c->rank[like]->space, *b = c->rank[r]->space;
	bool same = a->layout.elements == b->layout.elements && a->shards.nbuckets == b->shards.nbuckets;
	for (int i = 0; same && i < a->layout.first->nparams; i++) {
		const struct gt_param_slot *p = &a->layout.param[i], *q = &b->layout.param[i];
		same = p->offset == q->offset && p->count == q->count && !memcmp(&p->desc.layout, &q->desc.layout, sizeof p->desc.layout);
		if (!same)
			return gt_fail(err, GT_EINTERNAL, "the parameter %s has a different offset or layout on rank %d than on rank %d",
			               a->layout.first->params[i].name, c->rank[r]->at.rank, c->rank[like]->at.rank);
	}
	return same ? GT_OK : gt_fail(err, GT_EINTERNAL, "the parameter memory of rank %d differs from rank %d", c->rank[r]->at.rank,
	                                    c->rank[like]->at.rank);
}

enum gt_code gt_world_plan_verify(const struct gt_world_plan *c, struct gt_world_report *out, struct gt_err *err)
{
	const struct gt_prog **prog;
	struct gt_rank_coords *coords;
	size_t room = c->rank[0]->pipe.pair_bytes ? c->rank[0]->pipe.pair_bytes : GT_PAIR_BYTES;
	*out = (struct gt_world_report){.least = c->rank[0]->prog.full.n};
	GT_NEW(prog, c->arena, c->nplanned, err);
	GT_NEW(coords, c->arena, c->nplanned, err);
	for (int r = 0; r < c->nplanned; r++) {
		int n = c->rank[r]->prog.full.n;
		coords[r] = coords_of(&c->rank[r]->at, c->equal[r]);
		out->least = n < out->least ? n : out->least;
		out->most = n > out->most ? n : out->most;
		GT_TRY(check_same_layout(c, r, err));
	}
	for (int k = 0; k < PROGRAMS + 2 * c->rank[0]->optim.nphases; k++) {
		struct gt_comm_report proof;
		for (int r = 0; r < c->nplanned; r++)
			prog[r] = select_program(c->rank[r], k);
		GT_TRY(gt_verify_comm(c->arena, prog, coords, c->nplanned, &proof, err));
		out->ahead = proof.ahead > out->ahead ? proof.ahead : out->ahead;
		if (proof.need > room) /* transfers alone determine `room` (session_pipe.c), and collectives must not need larger buffers */
			return gt_fail(err, GT_EINTERNAL, "two ranks need a send buffer of %zu bytes, but the buffers have only %zu", proof.need, room);
		if (k)
			continue;
		out->transfers = proof.transfers;
		out->collectives = proof.collectives;
	}
	return GT_OK;
}

/* ---- pipeline ----------------------------------------------------------------------------------------------------------------------- */

const struct gt_graph *gt_world_plan_graph(const struct gt_world_plan *c, int stage, int phase)
{
	if (c->stages == 1 && !phase)
		return c->rank[0]->space->layout.first;
	for (int r = 0; r < c->nplanned; r++) {
		const struct gt_session *s = c->rank[r];
		for (int i = 0; s->at.data == 0 && i < s->prog.nplans; i++) {
			const struct gt_plan_key *k = &s->prog.plan_key[i];
			if (k->train && k->phase == phase && !k->idle && s->prog.plan[i]->graph->stage == stage)
				return s->prog.plan[i]->graph;
		}
	}
	return NULL;
}

enum gt_code gt_session_pipe_grid(const struct gt_session *s, struct gt_arena *a, struct gt_grid **out, struct gt_err *err)
{
	*out = NULL;
	if (s->at.npipe < 2)
		return GT_OK;
	return gt_grid_make(a, (enum gt_pipe_schedule)s->conf->parallel.schedule, s->at.npipe, stages_of(s) / s->at.npipe, s->prog.full.nmicro,
	                    out, err);
}

enum gt_code gt_world_plan_schedule(const struct gt_world_plan *c, struct gt_world_plan_schedule *out, struct gt_err *err)
{
	double *part[GT_PHASE_COUNT];
	struct gt_grid_cost cost = {0};
	struct gt_grid_time time;
	*out = (struct gt_world_plan_schedule){0};
	GT_TRY(gt_session_pipe_grid(c->rank[0], c->arena, &out->grid, err));
	if (!out->grid)
		return GT_OK;
	GT_TRY(gt_grid_time(c->arena, out->grid, &cost, &time, err));
	out->even = time.bubble;
	for (int k = 0; k < GT_PHASE_COUNT; k++) {
		GT_NEW(part[k], c->arena, c->stages, err);
		for (int i = 0; i < c->stages; i++) {
			const struct gt_graph *g = gt_world_plan_graph(c, i, 0);
			for (int n = 0; g && n < g->nnodes; n++)
				if ((int)gt_node_phase(&g->nodes[n]) == k)
					part[k][i] += gt_node_flops(g, &g->nodes[n]);
		}
	}
	cost = (struct gt_grid_cost){.f = part[GT_PHASE_F], .b = part[GT_PHASE_B], .w = part[GT_PHASE_W]};
	GT_TRY(gt_grid_time(c->arena, out->grid, &cost, &time, err));
	out->bubble = time.bubble;
	return GT_OK;
}

/* ---- checks before a start ---------------------------------------------------------------------------------------------------------- */

static enum gt_code check_ready(const struct gt_session *s, gt_session_check *also, struct gt_err *err)
{
	if (also)
		GT_TRY(also(s, err));
	return s->data.note ? gt_fail(err, GT_ENOINPUT, "%s", s->data.note) : gt_session_check_metrics(s, err);
}

/* Makes the checks before step 0 that one process can make. */
enum gt_code gt_world_plan_preflight(struct gt_conf *c, const char *device, int world, gt_session_check *also, struct gt_err *err)
{
	struct gt_world_plan *world_plan = NULL;
	struct gt_world_report proof;
	GT_TRY(gt_device_check_computes(device, err));
	GT_TRY(gt_world_plan_open(c, device, true, false, world, GT_WORLD_PLAN_EACH, &world_plan, err));
	enum gt_code code = check_ready(world_plan->rank[0], also, err);
	if (code == GT_OK)
		code = gt_world_plan_verify(world_plan, &proof, err);
	gt_world_plan_close(world_plan);
	return code;
}
