/* Pipeline schedules (plan/pipeline_schedule.h): complete, free of deadlock, within their memory, and as idle as theory says. */
#include "plan/pipeline_schedule.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct gt_arena *arena;
static const enum gt_pipe_schedule all[] = {GT_PIPE_GPIPE, GT_PIPE_1F1B, GT_PIPE_INTERLEAVED, GT_PIPE_ZERO_BUBBLE};
static const char *const name[] = {"gpipe", "1f1b", "interleaved", "zero-bubble"};

static struct gt_grid *make(enum gt_pipe_schedule s, int p, int v, int m)
{
	struct gt_grid *g = NULL;
	struct gt_err e;
	CHECK_OK(gt_grid_make(arena, s, p, v, m, &g, &e), e);
	return g;
}

static struct gt_grid_time timed(const struct gt_grid *g, double f, double b, double w, double transfer)
{
	struct gt_grid_time t = {0};
	struct gt_err e;
	double *cost[3], unit[3] = {f, b, w};
	for (int k = 0; k < 3; k++) {
		cost[k] = malloc((size_t)g->stages * sizeof(double));
		for (int s = 0; s < g->stages; s++)
			cost[k][s] = unit[k];
	}
	struct gt_grid_cost c = {cost[0], cost[1], cost[2], transfer};
	CHECK_OK(gt_grid_time(arena, g, &c, &t, &e), e);
	for (int k = 0; k < 3; k++)
		free(cost[k]);
	return t;
}

/* Every phase of every micro-batch once on every stage, on its rank, in ascending order; slots not shared by two that live at once. */
static void check_grid(const struct gt_grid *g, const char *what)
{
	int n = g->stages * g->micros;
	int *seen[3];
	int *holder = malloc((size_t)n * sizeof *holder); /* [stage][slot]: micro-batch, -1 */
	for (int k = 0; k < 3; k++)
		seen[k] = calloc((size_t)g->stages, sizeof(int)); /* micro-batches done */
	memset(holder, 0xff, (size_t)n * sizeof *holder);
	for (int r = 0; r < g->ranks; r++)
		for (int i = 0; i < g->ncells[r]; i++) {
			const struct gt_cell *c = &g->cell[r][i];
			CHECK(c->stage % g->ranks == r && c->slot >= 0 && c->slot < g->slots[c->stage]);
			int first = c->kind == GT_CELL_BW ? 1 : (int)c->kind, last = c->kind == GT_CELL_BW ? 2 : (int)c->kind;
			for (int k = first; k <= last; k++) {
				CHECK_MSG(seen[k][c->stage] == c->micro, "%s: phase %d of micro-batch %d on stage %d out of order", what, k, c->micro,
				          c->stage);
				seen[k][c->stage]++;
				CHECK(!k || seen[k][c->stage] <= seen[k - 1][c->stage]);
			}
			int *h = &holder[c->stage * g->micros + c->slot];
			CHECK_MSG(*h == (c->kind == GT_CELL_F ? -1 : c->micro), "%s: slot %d of stage %d is micro-batch %d's, not %d's", what, c->slot,
			          c->stage, *h, c->micro);
			*h = last == 2 ? -1 : c->micro;
		}
	for (int k = 0; k < 3; k++) {
		for (int s = 0; s < g->stages; s++)
			CHECK_MSG(seen[k][s] == g->micros, "%s: %d micro-batches on stage %d", what, seen[k][s], s);
		free(seen[k]);
	}
	free(holder);
}

TEST(every_schedule_is_complete_and_runs)
{
	int n = 0;
	gt_arena_open(&arena, NULL);
	for (size_t s = 0; s < sizeof all / sizeof *all; s++)
		for (int p = 1; p <= 8; p++)
			for (int v = 1; v <= (all[s] == GT_PIPE_INTERLEAVED ? 4 : 1); v++)
				for (int m = 1; m <= 20; m++) {
					char what[64];
					snprintf(what, sizeof what, "%s p=%d v=%d m=%d", name[s], p, v, m);
					struct gt_grid *g = make(all[s], p, v, m);
					check_grid(g, what);
					struct gt_grid_time t = timed(g, 1, 1, 1, 0);
					CHECK_MSG(t.span >= 3 * m * v, "%s: %g", what, t.span);
					timed(g, 1, 2, 0.5, 0.3);
					n++;
				}
	printf("# %d schedules\n", n);
	gt_arena_close(arena);
}

/* The share (p-1)/(m+p-1), whatever the costs of forward and backward. */
TEST(gpipe_and_1f1b_idle_as_theory_says)
{
	gt_arena_open(&arena, NULL);
	for (int p = 1; p <= 8; p++)
		for (int m = p; m <= 32; m += 3)
			for (int k = 0; k < 2; k++) {
				double want = (p - 1.0) / (m + p - 1), f = 1, b = 1.25, w = 0.5;
				struct gt_grid_time t = timed(make(k ? GT_PIPE_1F1B : GT_PIPE_GPIPE, p, 1, m), f, b, w, 0);
				CHECK_MSG(fabs(t.bubble - want) < 1e-12, "p=%d m=%d: %g idle, %g expected", p, m, t.bubble, want);
				for (int r = 0; r < p; r++)
					CHECK(fabs(t.idle[r] - want) < 1e-12);
			}
	gt_arena_close(arena);
}

TEST(interleaving_divides_the_bubble)
{
	gt_arena_open(&arena, NULL);
	for (int p = 2; p <= 8; p++)
		for (int v = 2; v <= 4; v++)
			for (int m = p; m <= 32; m += p) { /* whole groups: (p-1)/v of a micro-batch's time, each chunk taking 1/v of it */
				double want = (p - 1.0) / (v * m + p - 1);
				struct gt_grid_time t = timed(make(GT_PIPE_INTERLEAVED, p, v, m), 1, 1, 1, 0);
				CHECK_MSG(fabs(t.bubble - want) < 1e-12, "p=%d v=%d m=%d: %g idle, %g expected", p, v, m, t.bubble, want);
			}
	for (int p = 2; p <= 6; p++)
		for (int v = 2; v <= 3; v++)
			for (int m = p + 1; m <= 24; m++) /* a small last group costs at most the bubble of one without interleaving */
				if (m % p) {
					struct gt_grid_time t = timed(make(GT_PIPE_INTERLEAVED, p, v, m), 1, 1, 1, 0);
					double plain = 3.0 * v * (m + p - 1);
					CHECK_MSG(t.span <= plain + 1e-9, "p=%d v=%d m=%d: %g, 1f1b %g", p, v, m, t.span, plain);
				}
	gt_arena_close(arena);
}

/* ZB-H1: (p-1)(tF + tB - tW) idle, against (p-1)(tF + tB + tW). */
TEST(zero_bubble_idles_less)
{
	gt_arena_open(&arena, NULL);
	for (int p = 2; p <= 8; p++)
		for (int m = p; m <= 24; m++) {
			struct gt_grid_time t = timed(make(GT_PIPE_ZERO_BUBBLE, p, 1, m), 1, 1, 1, 0);
			CHECK_MSG(fabs(t.span - (3 * m + p - 1)) < 1e-9, "p=%d m=%d: %g", p, m, t.span);
		}
	gt_arena_close(arena);
}

TEST(memory_is_what_the_schedule_promises)
{
	gt_arena_open(&arena, NULL);
	for (int p = 1; p <= 8; p++)
		for (int m = 1; m <= 20; m++) {
			struct gt_grid *gpipe = make(GT_PIPE_GPIPE, p, 1, m), *f1b = make(GT_PIPE_1F1B, p, 1, m),
			               *zb = make(GT_PIPE_ZERO_BUBBLE, p, 1, m);
			for (int s = 0; s < p; s++) {
				CHECK(gpipe->slots[s] == m);
				CHECK_MSG(f1b->slots[s] == (p - s < m ? p - s : m), "1f1b p=%d m=%d stage %d: %d", p, m, s, f1b->slots[s]);
				CHECK_MSG(zb->slots[s] == (p < m ? p : m), "zero-bubble p=%d m=%d stage %d: %d", p, m, s, zb->slots[s]);
			}
			for (int v = 2; v <= 4; v++) {
				struct gt_grid *g = make(GT_PIPE_INTERLEAVED, p, v, m);
				int most = 0, now = 0; /* rank 0 keeps the most: its warm-up and one */
				for (int i = 0; i < g->ncells[0]; i++) {
					now += g->cell[0][i].kind == GT_CELL_F ? 1 : -1;
					most = now > most ? now : most;
				}
				CHECK_MSG(most <= (p - 1) * 2 + (v - 1) * p + 1, "interleaved p=%d v=%d m=%d: %d", p, v, m, most);
				for (int st = 0; st < g->stages; st++) /* one group under way, the next one begun */
					CHECK_MSG(g->slots[st] <= 2 * p, "interleaved p=%d v=%d m=%d stage %d: %d", p, v, m, st, g->slots[st]);
			}
		}
	gt_arena_close(arena);
}

TEST(costs_of_their_own)
{
	gt_arena_open(&arena, NULL);
	struct gt_grid_time t;
	struct gt_err e;
	const double f[] = {1, 3}, b[] = {2, 1}, w[] = {1, 1};
	CHECK_OK(gt_grid_time(arena, make(GT_PIPE_1F1B, 2, 1, 2), &(struct gt_grid_cost){f, b, w, 0.5}, &t, &e), e);
	/* rank 0: F0 0-1, F1 1-2, B0 from 7 (rank 1 ends it at 6.5), B1 from 12; rank 1: F0 1.5-4.5, B0 4.5-6.5, F1 6.5-9.5, B1 9.5-11.5 */
	CHECK(fabs(t.start[1][0] - 1.5) < 1e-12 && fabs(t.end[1][3] - 11.5) < 1e-12 && fabs(t.start[0][2] - 7) < 1e-12 &&
	      fabs(t.span - 15) < 1e-12);
	CHECK(fabs(t.idle[0] - (1 - 8 / 15.0)) < 1e-12 && fabs(t.idle[1] - (1 - 10 / 15.0)) < 1e-12);
	gt_arena_close(arena);
}

TEST(drawn)
{
	static const char *const want[] = {
	    "rank 0 F0 F1 F2 .  .  .  B0 B0 B1 B1 B2 B2\n"
	    "rank 1 .  F0 F1 F2 B0 B0 B1 B1 B2 B2 .  .\n",
	    "rank 0 F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2\n"
	    "rank 1 .  F0 B0 B0 F1 B1 B1 F2 B2 B2 .  .\n",
	    NULL,
	    "rank 0 F0 F1 .  B0 W0 F2 B1 W1 B2 W2\n"
	    "rank 1 .  F0 B0 F1 B1 W0 F2 B2 W1 W2\n"};
	char *text;
	size_t len;
	struct gt_err e;
	gt_arena_open(&arena, NULL);
	for (int s = 0; s < 4; s++) {
		if (!want[s])
			continue;
		CHECK_OK(gt_grid_text(arena, make((enum gt_pipe_schedule)s, 2, 1, 3), 80, &text, &len, &e), e);
		CHECK_MSG(!strcmp(text, want[s]), "%s:\n%s", name[s], text);
		free(text);
	}
	CHECK_OK(gt_grid_text(arena, make(GT_PIPE_INTERLEAVED, 2, 2, 2), 80, &text, &len, &e), e);
	CHECK_MSG(strstr(text, "rank 0 F0a F1a F0b F1b "), "%s", text);
	free(text);
	CHECK_OK(gt_grid_text(arena, make(GT_PIPE_GPIPE, 2, 1, 100), 40, &text, &len, &e), e);
	CHECK_MSG(strchr(text, '\n') - text <= 40 && strstr(text, "...\n"), "%s", text);
	free(text);
	gt_arena_close(arena);
}

TEST(refused)
{
	struct gt_grid *g;
	struct gt_err e;
	gt_arena_open(&arena, NULL);
	CHECK(gt_grid_make(arena, GT_PIPE_1F1B, 2, 2, 4, &g, &e) == GT_EINTERNAL && !g);
	CHECK(gt_grid_make(arena, GT_PIPE_1F1B, 0, 1, 4, &g, &e) == GT_EINTERNAL);
	CHECK(gt_grid_make(arena, GT_PIPE_1F1B, 65536, 1, 65536, &g, &e) == GT_EINTERNAL);
	gt_arena_close(arena);
}

RUN_TESTS()
