/* Verifies the transfers of a pipeline before plans exist. This is possible because the order of the transfers in the ranks' programs
 * depends only on the partition and the schedule. */
#include "plan/mode_pipe.h"

/* Makes a program of one rank that has only its transfers: for each cell first the receives, then the sends. */
static enum gt_code make_transfers(struct gt_arena *a, const struct gt_partition *p, const struct gt_grid *g, int rank, struct gt_prog *out,
                                   struct gt_err *err)
{
	int64_t cap = 1;
	*out = (struct gt_prog){0};
	for (int i = 0; i < g->ncells[rank]; i++)
		cap += p->ncross;
	GT_NEW(out->step, a, cap, err);
	for (int i = 0; i < g->ncells[rank]; i++) {
		const struct gt_cell *c = &g->cell[rank][i];
		bool behind_kernels = i && g->cell[rank][i - 1].kind != GT_CELL_F;
		for (int sends = 0; sends < 2; sends++, behind_kernels = true)
			for (const struct gt_stage_transfer *x = p->cross; x < p->cross + p->ncross; x++) {
				const struct gt_value *v = &p->full->values[x->v];
				struct gt_attr_comm *k;
				struct gt_call *call;
				if (!gt_cell_has(c, x->phase) || c->stage != (sends ? x->from : x->to) || x->from % p->ranks == x->to % p->ranks)
					continue;
				GT_NEW(k, a, 1, err);
				GT_NEW(call, a, 1, err);
				*k = (struct gt_attr_comm){.kind = sends ? GT_COMM_SEND : GT_COMM_RECV,
				                           .group = GT_GROUP_PIPE,
				                           .peer = (sends ? x->to : x->from) % p->ranks,
				                           .lane = x->lane};
				*call = (struct gt_call){.comm = k,
				                         .count = (size_t)gt_tdesc_padded(&v->desc),
				                         .dtype = v->desc.dtype,
				                         .op = gt_comm_name(k),
				                         .layer = v->name,
				                         .node = -1};
				out->step[out->n++] = (struct gt_step){.kind = GT_STEP_COMM, .micro = c->micro, .call = call, .apart = behind_kernels};
				behind_kernels = sends && x->phase == GT_PHASE_B;
			}
	}
	return GT_OK;
}

enum gt_code gt_pipe_verify(struct gt_arena *a, const struct gt_partition *partition, enum gt_pipe_schedule schedule, int units,
                            struct gt_comm_report *out, struct gt_err *err)
{
	struct gt_grid *g;
	struct gt_prog *prog;
	const struct gt_prog **list;
	struct gt_rank_coords *coords;
	int n = partition->ranks;
	GT_TRY(gt_grid_make(a, schedule, n, partition->stages / n, units, &g, err));
	GT_NEW(prog, a, n, err);
	GT_NEW(list, a, n, err);
	GT_NEW(coords, a, n, err);
	for (int r = 0; r < n; r++) {
		GT_TRY(make_transfers(a, partition, g, r, &prog[r], err));
		list[r] = &prog[r];
		coords[r] = gt_rank_coords_of(r, n, n);
	}
	return gt_verify_comm(a, list, coords, n, out, err);
}
