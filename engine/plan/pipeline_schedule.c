/* Makes pipeline schedules, computes when their cells run, and prints them. */
#include "plan/pipeline_schedule.h"
#include "base/memstream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CELLS ((int64_t)1 << 26) /* maximum number of cells (struct gt_cell); they take one gigabyte */

/* Appends a cell to the list of a rank. */
static void put_cell(struct gt_grid *g, int rank, enum gt_cell_kind kind, int stage, int micro)
{
	g->cell[rank][g->ncells[rank]++] = (struct gt_cell){.kind = kind, .stage = stage, .micro = micro};
}

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static void put_gpipe(struct gt_grid *g, int rank)
{
	for (int i = 0; i < g->micros; i++)
		put_cell(g, rank, GT_CELL_F, rank, i);
	for (int i = 0; i < g->micros; i++)
		put_cell(g, rank, GT_CELL_BW, rank, i);
}

/* Makes the list of one rank for the schedule 1f1b, or for zero-bubble (ZB-H1), which is 1f1b with each backward pass in two parts: part W
 * runs `rank` micro-batches after part B. */
static void put_1f1b(struct gt_grid *g, int rank)
{
	bool split = g->schedule == GT_PIPE_ZERO_BUBBLE;
	int ahead = min_int(g->ranks - 1 - rank, g->micros), f = 0, w = 0;
	while (f < ahead)
		put_cell(g, rank, GT_CELL_F, rank, f++);
	for (int b = 0; b < g->micros; b++) {
		if (f < g->micros)
			put_cell(g, rank, GT_CELL_F, rank, f++);
		put_cell(g, rank, split ? GT_CELL_B : GT_CELL_BW, rank, b);
		if (split && b >= rank)
			put_cell(g, rank, GT_CELL_W, rank, w++);
	}
	for (; split && w < g->micros; w++)
		put_cell(g, rank, GT_CELL_W, rank, w);
}

/* Appends the k-th forward (or backward) cell of a rank. Micro-batches form groups of p, and each group passes all stages of the rank. The
 * last group is treated as a full group, and cells of micro-batches that do not exist are left out. So the order is that of a schedule
 * without deadlocks. A shorter last group may deadlock: with 4 ranks, 3 stages on each and 5 micro-batches the ranks would wait for each
 * other. */
static void put_interleaved_cell(struct gt_grid *g, int rank, int k, bool backward)
{
	int group = g->ranks * g->chunks, chunk = k % group / g->ranks, micro = k / group * g->ranks + k % g->ranks;
	if (micro < g->micros)
		put_cell(g, rank, backward ? GT_CELL_BW : GT_CELL_F, (backward ? g->chunks - 1 - chunk : chunk) * g->ranks + rank, micro);
}

static void put_interleaved(struct gt_grid *g, int rank)
{
	int total = (g->micros + g->ranks - 1) / g->ranks * g->ranks * g->chunks, f = 0;
	int ahead = min_int((g->ranks - 1 - rank) * 2 + (g->chunks - 1) * g->ranks, total);
	while (f < ahead)
		put_interleaved_cell(g, rank, f++, false);
	for (int b = 0; b < total; b++) {
		if (f < total)
			put_interleaved_cell(g, rank, f++, false);
		put_interleaved_cell(g, rank, b, true);
	}
}

/* Assigns activation slots to the cells: a micro-batch has the first free slot of a stage from its forward cell to its last cell. */
static enum gt_code assign_act_slots(struct gt_arena *a, struct gt_grid *g, struct gt_err *err)
{
	int *slot; /* [stage][micro] */
	bool *busy; /* [stage][slot] */
	GT_NEW(slot, a, (int64_t)g->stages * g->micros, err);
	GT_NEW(busy, a, (int64_t)g->stages * g->micros, err);
	for (int r = 0; r < g->ranks; r++)
		for (int i = 0; i < g->ncells[r]; i++) {
			struct gt_cell *c = &g->cell[r][i];
			int64_t base = (int64_t)c->stage * g->micros;
			if (c->kind == GT_CELL_F) {
				int k = 0;
				while (busy[base + k])
					k++;
				busy[base + k] = true;
				slot[base + c->micro] = k;
				if (k >= g->slots[c->stage])
					g->slots[c->stage] = k + 1;
			}
			c->slot = slot[base + c->micro];
			if (c->kind == GT_CELL_W || c->kind == GT_CELL_BW)
				busy[base + c->slot] = false;
		}
	return GT_OK;
}

enum gt_code gt_grid_make(struct gt_arena *a, enum gt_pipe_schedule schedule, int ranks, int chunks, int micros, struct gt_grid **out,
                          struct gt_err *err)
{
	struct gt_grid *g;
	*out = NULL;
	if (ranks < 1 || chunks < 1 || micros < 1 || (chunks > 1 && schedule != GT_PIPE_INTERLEAVED) ||
	    (int64_t)ranks * chunks * micros > MAX_CELLS)
		return gt_fail(err, GT_EINTERNAL, "cannot make a schedule of %d micro-batches on %d ranks with %d stages each",
		               micros, ranks, chunks);
	GT_NEW(g, a, 1, err);
	*g = (struct gt_grid){.schedule = schedule, .ranks = ranks, .chunks = chunks, .micros = micros, .stages = ranks * chunks};
	GT_NEW(g->cell, a, ranks, err);
	GT_NEW(g->ncells, a, ranks, err);
	GT_NEW(g->slots, a, g->stages, err);
	for (int r = 0; r < ranks; r++) {
		GT_NEW(g->cell[r], a, (int64_t)chunks * micros * (gt_pipe_splits_backward(schedule) ? 3 : 2), err);
		switch (schedule) {
		case GT_PIPE_GPIPE:
			put_gpipe(g, r);
			break;
		case GT_PIPE_1F1B:
		case GT_PIPE_ZERO_BUBBLE:
			put_1f1b(g, r);
			break;
		case GT_PIPE_INTERLEAVED:
			put_interleaved(g, r);
			break;
		}
	}
	GT_TRY(assign_act_slots(a, g, err));
	*out = g;
	return GT_OK;
}

/* ---- times ---------------------------------------------------------------------------------------------------------------------- */

struct timeline {
	const struct gt_grid *g;
	const struct gt_grid_cost *cost;
	double *done[2]; /* [stage][micro]: times at which phase F (index 0) and phase B (index 1) ended; -1: they have not ended */
};

static double duration_of(const double *cost, int stage)
{
	return cost ? cost[stage] : 1;
}

/* Returns the time at which the result of `stage` for a micro-batch is available on rank `rank`; -1: not known yet. */
static double arrival_time(const struct timeline *p, int backward, int stage, int micro, int rank)
{
	double t = p->done[backward][(int64_t)stage * p->g->micros + micro];
	return t < 0 || stage % p->g->ranks == rank ? t : t + p->cost->transfer;
}

/* Returns the earliest start of a cell; -1: not known yet. */
static double earliest_start(const struct timeline *p, const struct gt_cell *c, int rank)
{
	double own = arrival_time(p, c->kind == GT_CELL_W, c->stage, c->micro, rank), other;
	if (c->kind == GT_CELL_F)
		return c->stage ? arrival_time(p, 0, c->stage - 1, c->micro, rank) : 0;
	if (c->kind == GT_CELL_W || c->stage == p->g->stages - 1)
		return own;
	other = arrival_time(p, 1, c->stage + 1, c->micro, rank);
	return own < 0 || other < 0 ? -1 : own > other ? own : other;
}

static double cell_duration(const struct gt_grid_cost *k, const struct gt_cell *c)
{
	switch (c->kind) {
	case GT_CELL_F:
		return duration_of(k->f, c->stage);
	case GT_CELL_B:
		return duration_of(k->b, c->stage);
	case GT_CELL_W:
		return duration_of(k->w, c->stage);
	case GT_CELL_BW:
		break;
	}
	return duration_of(k->b, c->stage) + duration_of(k->w, c->stage);
}

/* Runs the schedule in simulated time: each rank executes its next cell as soon as the inputs of the cell are available, until no rank can
 * continue. Then it computes the idle shares. */
enum gt_code gt_grid_time(struct gt_arena *a, const struct gt_grid *g, const struct gt_grid_cost *cost, struct gt_grid_time *out,
                          struct gt_err *err)
{
	struct timeline p = {.g = g, .cost = cost};
	double *clock, *busy, all = 0;
	int *at;
	bool moved = true;
	int64_t n = (int64_t)g->stages * g->micros;
	*out = (struct gt_grid_time){0};
	for (int k = 0; k < 2; k++) {
		GT_NEW(p.done[k], a, n, err);
		for (int64_t i = 0; i < n; i++)
			p.done[k][i] = -1;
	}
	GT_NEW(clock, a, g->ranks, err);
	GT_NEW(busy, a, g->ranks, err);
	GT_NEW(at, a, g->ranks, err);
	GT_NEW(out->idle, a, g->ranks, err);
	GT_NEW(out->start, a, g->ranks, err);
	GT_NEW(out->end, a, g->ranks, err);
	for (int r = 0; r < g->ranks; r++) {
		GT_NEW(out->start[r], a, g->ncells[r], err);
		GT_NEW(out->end[r], a, g->ncells[r], err);
	}
	while (moved) {
		moved = false;
		for (int r = 0; r < g->ranks; r++)
			for (; at[r] < g->ncells[r]; at[r]++) {
				const struct gt_cell *c = &g->cell[r][at[r]];
				double t = earliest_start(&p, c, r);
				if (t < 0)
					break;
				out->start[r][at[r]] = t > clock[r] ? t : clock[r];
				clock[r] = out->end[r][at[r]] = out->start[r][at[r]] + cell_duration(cost, c);
				busy[r] += cell_duration(cost, c);
				if (c->kind != GT_CELL_W)
					p.done[c->kind != GT_CELL_F][(int64_t)c->stage * g->micros + c->micro] = clock[r];
				moved = true;
			}
	}
	for (int r = 0; r < g->ranks; r++) {
		if (at[r] < g->ncells[r])
			return gt_fail(err, GT_EINTERNAL,
			               "the schedule of %d micro-batches on %d ranks with %d stages each has a deadlock: rank %d waits for "
			               "micro-batch %d of stage %d",
			               g->micros, g->ranks, g->chunks, r, g->cell[r][at[r]].micro, g->cell[r][at[r]].stage);
		out->span = clock[r] > out->span ? clock[r] : out->span;
		all += busy[r];
	}
	for (int r = 0; r < g->ranks; r++)
		out->idle[r] = out->span > 0 ? 1 - busy[r] / out->span : 0;
	out->bubble = out->span > 0 ? 1 - all / (out->span * g->ranks) : 0;
	return GT_OK;
}

/* ---- as text ----------------------------------------------------------------------------------------------------------------------- */

enum gt_code gt_grid_text(struct gt_arena *a, const struct gt_grid *g, int columns, char **text, size_t *len, struct gt_err *err)
{
	struct gt_grid_cost cost = {0};
	struct gt_grid_time t;
	char cell[48];
	GT_TRY(gt_grid_time(a, g, &cost, &t, err));
	int width = snprintf(cell, sizeof cell, "F%d", g->micros - 1) + (g->chunks > 1) + 1;
	int label = snprintf(cell, sizeof cell, "rank %d ", g->ranks - 1);
	int span = (int)(t.span + 0.5), fit = (columns - label) / width;
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	if (fit < span)
		fit = fit > 1 ? fit - 1 : 1; /* reserves space for the "..." at the end of a line that is cut off */
	for (int r = 0; r < g->ranks; r++) {
		int x = 0, i = 0;
		snprintf(cell, sizeof cell, "rank %d ", r);
		fprintf(f, "%-*s", label, cell);
		for (; x < span && x < fit; x++) {
			const struct gt_cell *c = NULL;
			while (i < g->ncells[r] && t.end[r][i] < x + 0.5)
				i++;
			if (i < g->ncells[r] && t.start[r][i] < x + 0.5)
				c = &g->cell[r][i];
			if (!c)
				snprintf(cell, sizeof cell, ".");
			else if (g->chunks > 1)
				snprintf(cell, sizeof cell, "%c%d%c", "FBWB"[c->kind], c->micro, 'a' + c->stage / g->ranks % 26);
			else
				snprintf(cell, sizeof cell, "%c%d", "FBWB"[c->kind], c->micro);
			fprintf(f, "%-*s", x + 1 < span ? width : 0, cell);
		}
		fprintf(f, "%s\n", x < span ? "..." : "");
	}
	return gt_memstream_close(f, &m, text, len, err);
}
