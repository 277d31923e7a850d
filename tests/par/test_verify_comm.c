/* The proof that programs fit together (plan/verify_comm.h): good ones pass, with the room their sends need; every mutation is caught. */
#include "plan/pipeline_schedule.h"
#include "plan/verify_comm.h"
#include "test.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 16

struct world {
	struct gt_arena *a;
	int n;
	struct gt_prog prog[MAX_RANKS];
	const struct gt_prog *list[MAX_RANKS];
	struct gt_rank_coords coords[MAX_RANKS];
};

static void open_world(struct world *w, int n, int stages)
{
	memset(w, 0, sizeof *w);
	gt_arena_open(&w->a, NULL);
	w->n = n;
	for (int r = 0; r < n; r++) {
		w->prog[r].step = gt_arena_alloc(w->a, 8192, sizeof(struct gt_step));
		w->list[r] = &w->prog[r];
		w->coords[r] = gt_rank_coords_of(r, n, stages);
	}
}

static struct gt_step *add(struct world *w, int rank, int kind, int group, int peer, size_t count, int micro, const char *fmt, ...)
{
	struct gt_attr_comm *k = gt_arena_alloc(w->a, 1, sizeof *k);
	struct gt_call *c = gt_arena_alloc(w->a, 1, sizeof *c);
	char name[64];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	*k = (struct gt_attr_comm){.kind = kind, .group = group, .peer = peer};
	*c = (struct gt_call){
	    .comm = k, .count = count, .dtype = GT_F32, .op = gt_comm_name(k), .layer = gt_arena_strdup(w->a, name), .node = -1, .nin = 1};
	struct gt_prog *p = &w->prog[rank];
	p->step[p->n] = (struct gt_step){.kind = GT_STEP_COMM, .micro = micro, .call = c, .apart = true}; /* as if there were kernels between */
	return &p->step[p->n++];
}

static enum gt_code prove(struct world *w, struct gt_comm_report *out, struct gt_err *e)
{
	struct gt_arena *a;
	gt_arena_open(&a, NULL);
	enum gt_code code = gt_verify_comm(a, w->list, w->coords, w->n, out, e);
	gt_arena_close(a);
	return code;
}

/* A schedule's transfers between neighbouring stages: `count` elements each. */
static void chain(struct world *w, const struct gt_grid *g, size_t count)
{
	for (int r = 0; r < g->ranks; r++)
		for (int i = 0; i < g->ncells[r]; i++) {
			const struct gt_cell *c = &g->cell[r][i];
			int step = c->kind == GT_CELL_F ? 1 : -1, from = c->stage - step, to = c->stage + step;
			const char *dir = step > 0 ? "y" : "dy";
			if (c->kind == GT_CELL_W)
				continue;
			if (from >= 0 && from < g->stages)
				add(w, r, GT_COMM_RECV, GT_GROUP_PIPE, from % g->ranks, count, c->micro, "%s%d-%d", dir, from, c->stage);
			if (to >= 0 && to < g->stages)
				add(w, r, GT_COMM_SEND, GT_GROUP_PIPE, to % g->ranks, count, c->micro, "%s%d-%d", dir, c->stage, to);
		}
}

/* One step of every kind: two pipelines of two stages, gradients over the copies, scalars over the world. */
static void hybrid(struct world *w)
{
	open_world(w, 4, 2);
	for (int copy = 0; copy < 2; copy++) {
		for (int m = 0; m < 3; m++) {
			add(w, copy, GT_COMM_SEND, GT_GROUP_PIPE, 1, 100, m, "y");
			add(w, copy, GT_COMM_SEND, GT_GROUP_PIPE, 1, 40, m, "skip");
			add(w, 2 + copy, GT_COMM_RECV, GT_GROUP_PIPE, 0, 100, m, "y");
			add(w, 2 + copy, GT_COMM_RECV, GT_GROUP_PIPE, 0, 40, m, "skip");
			add(w, 2 + copy, GT_COMM_SEND, GT_GROUP_PIPE, 0, 100, m, "dy");
		}
		for (int m = 0; m < 3; m++)
			add(w, copy, GT_COMM_RECV, GT_GROUP_PIPE, 1, 100, m, "dy");
	}
	for (int r = 0; r < 4; r++) {
		add(w, r, GT_COLL_REDUCE_SCATTER, GT_GROUP_DATA, 0, 500 + (size_t)(r / 2), 0, "gradients");
		add(w, r, GT_COLL_ALL_REDUCE, GT_GROUP_WORLD, 0, 9, 0, "scalars");
		add(w, r, GT_COLL_BROADCAST, GT_GROUP_DATA, 0, 33, 0, "buffers");
	}
}

TEST(good_programs_pass)
{
	struct world w;
	struct gt_comm_report p;
	struct gt_err e;
	hybrid(&w);
	CHECK_OK(prove(&w, &p, &e), e);
	CHECK_MSG(p.transfers == 18 && p.collectives == 2 * 2 + 1 && p.bytes == 18 * 400 - 6 * 240, "%lld %lld %g", (long long)p.transfers,
	          (long long)p.collectives, p.bytes);
	/* y takes 448 + 64 bytes, skip 192 + 64. Rank 0 sends three of each before it receives anything; the last y and skip must find room
	 * while rank 2 waits to be rid of its second dy */
	CHECK_MSG(p.need == 512 + 256 && p.ahead == 3 * (512 + 256), "%zu %zu", p.need, p.ahead);
	gt_arena_close(w.a);
}

TEST(coords)
{
	struct gt_rank_coords s = gt_rank_coords_of(5, 6, 3); /* stage 2, copy 1 */
	CHECK(s.rank[GT_GROUP_WORLD] == 5 && s.color[GT_GROUP_PIPE] == 1 && s.rank[GT_GROUP_PIPE] == 2 && s.color[GT_GROUP_DATA] == 2 &&
	      s.rank[GT_GROUP_DATA] == 1);
	s = gt_rank_coords_of(3, 4, 1);
	CHECK(s.color[GT_GROUP_DATA] == 0 && s.rank[GT_GROUP_DATA] == 3);
}

/* Each step of each rank is left out, doubled, made longer, given another type, another peer or root: never proven. */
TEST(every_mutation_is_caught)
{
	int caught = 0;
	for (int r = 0; r < 4; r++)
		for (int i = 0;; i++) {
			struct world w;
			int n = 0;
			for (int how = 0; how < 7; how++) {
				struct gt_comm_report p;
				struct gt_err e = {0};
				char rank[32];
				hybrid(&w);
				n = w.prog[r].n;
				if (i >= n) {
					gt_arena_close(w.a);
					break;
				}
				struct gt_step *s = &w.prog[r].step[i];
				struct gt_attr_comm *k = (struct gt_attr_comm *)(uintptr_t)s->call->comm;
				bool transfer = k->kind >= GT_COMM_SEND;
				switch (how) {
				case 0:
					memmove(s, s + 1, (size_t)(--w.prog[r].n - i) * sizeof *s);
					break;
				case 1:
					memmove(s + 1, s, (size_t)(w.prog[r].n++ - i) * sizeof *s);
					break;
				case 2:
					s->call->count++;
					break;
				case 3:
					s->call->dtype = GT_BF16;
					break;
				case 4: /* another end, another root, another operation */
					if (transfer || k->kind == GT_COLL_BROADCAST)
						k->peer = 1 - k->peer;
					else
						k->op = GT_REDUCE_MAX;
					break;
				case 5:
					if (transfer)
						s->micro++;
					else
						k->kind = GT_COLL_ALL_GATHER;
					break;
				case 6:
					k->group = GT_GROUP_COUNT;
					break;
				}
				CHECK_MSG(prove(&w, &p, &e) == GT_EINTERNAL, "rank %d, step %d, mutation %d: not caught", r, i, how);
				snprintf(rank, sizeof rank, "rank ");
				CHECK_MSG(strstr(e.msg, rank) && strstr(e.msg, "step "), "%s", e.msg);
				caught++;
				gt_arena_close(w.a);
			}
			if (i >= n)
				break;
		}
	printf("# %d mutations caught\n", caught);
}

/* Two transfers of one direction, or two collectives of one group, in another order. */
TEST(every_swap_is_caught)
{
	int caught = 0;
	for (int r = 0; r < 4; r++)
		for (int i = 0; i < 15; i++)
			for (int j = i + 1; j < 15; j++) {
				struct world w;
				struct gt_comm_report p;
				struct gt_err e;
				hybrid(&w);
				if (j < w.prog[r].n) {
					struct gt_step *s = w.prog[r].step, x = s[i];
					const struct gt_attr_comm *a = s[i].call->comm, *b = s[j].call->comm;
					if (a->kind >= GT_COMM_SEND ? a->kind == b->kind : b->kind < GT_COMM_SEND && a->group == b->group) {
						s[i] = s[j];
						s[j] = x;
						CHECK_MSG(prove(&w, &p, &e) == GT_EINTERNAL, "rank %d: steps %d and %d swapped: not caught", r, i, j);
						caught++;
					}
				}
				gt_arena_close(w.a);
			}
	printf("# %d swaps caught\n", caught);
	CHECK(caught > 40);
}

static void says(struct world *w, const char *what)
{
	struct gt_comm_report p;
	struct gt_err e = {0};
	CHECK_MSG(prove(w, &p, &e) == GT_EINTERNAL && strstr(e.msg, what), "expected \"%s\", got \"%s\"", what, e.msg);
	gt_arena_close(w->a);
}

TEST(sentences)
{
	struct world w;
	open_world(&w, 2, 2); /* both wait for the other */
	add(&w, 0, GT_COMM_RECV, GT_GROUP_PIPE, 1, 10, 0, "a");
	add(&w, 0, GT_COMM_SEND, GT_GROUP_PIPE, 1, 10, 0, "b");
	add(&w, 1, GT_COMM_RECV, GT_GROUP_PIPE, 0, 10, 0, "b");
	add(&w, 1, GT_COMM_SEND, GT_GROUP_PIPE, 0, 10, 0, "a");
	says(&w, "rank 0, step 0: recv of a (f32 x 10, micro-batch 0, pipe) waits for rank 1, which is at rank 1, step 0: recv of b");
	open_world(&w, 2, 1);
	add(&w, 0, GT_COLL_ALL_REDUCE, GT_GROUP_WORLD, 0, 10, 0, "loss");
	says(&w, "all_reduce of loss (f32 x 10, micro-batch 0, world): rank 1 has no matching collective");
	open_world(&w, 2, 1); /* two groups in another order */
	add(&w, 0, GT_COLL_ALL_REDUCE, GT_GROUP_WORLD, 0, 10, 0, "loss");
	add(&w, 0, GT_COLL_ALL_REDUCE, GT_GROUP_DATA, 0, 10, 0, "gradients");
	add(&w, 1, GT_COLL_ALL_REDUCE, GT_GROUP_DATA, 0, 10, 0, "gradients");
	add(&w, 1, GT_COLL_ALL_REDUCE, GT_GROUP_WORLD, 0, 10, 0, "loss");
	says(&w, "waits for rank 1, which is at rank 1, step 0: all_reduce of gradients");
	open_world(&w, 2, 2);
	add(&w, 0, GT_COMM_SEND, GT_GROUP_PIPE, 1, 10, 0, "a");
	add(&w, 1, GT_COMM_RECV, GT_GROUP_PIPE, 0, 12, 0, "a");
	says(&w, "rank 1, step 0: recv of a (f32 x 12, micro-batch 0, pipe) does not match rank 0, step 0: send of a (f32 x 10, micro-batch 0, "
	         "pipe)");
	open_world(&w, 2, 2);
	add(&w, 0, GT_COMM_SEND, GT_GROUP_PIPE, 2, 10, 0, "a");
	says(&w, "the group has no rank 2");
}

/* Sends that cross need room; those in turns do not. */
TEST(room_for_sends)
{
	struct world w;
	struct gt_comm_report p;
	struct gt_err e;
	open_world(&w, 2, 2);
	for (int r = 0; r < 2; r++) {
		add(&w, r, GT_COMM_SEND, GT_GROUP_PIPE, 1 - r, 100, 0, "a%d", r);
		add(&w, r, GT_COMM_SEND, GT_GROUP_PIPE, 1 - r, 50, 0, "b%d", r);
		add(&w, r, GT_COMM_RECV, GT_GROUP_PIPE, 1 - r, 100, 0, "a%d", 1 - r);
		add(&w, r, GT_COMM_RECV, GT_GROUP_PIPE, 1 - r, 50, 0, "b%d", 1 - r);
	}
	CHECK_OK(prove(&w, &p, &e), e);
	/* 400 bytes go as 448 + 64, 200 as 256 + 64. The second sends may wait for the first ones' recvs on one side only */
	CHECK_MSG(p.need == 512 + 320 && p.ahead == 512 + 320, "%zu %zu", p.need, p.ahead);
	gt_arena_close(w.a);
	open_world(&w, 2, 2); /* a copy to itself is none of the others' business, but has both ends in one step */
	struct gt_step *self = add(&w, 0, GT_COMM_SEND, GT_GROUP_PIPE, 0, 100, 0, "a");
	self->end = self->call;
	CHECK_OK(prove(&w, &p, &e), e);
	CHECK(p.transfers == 0);
	gt_arena_close(w.a);
	open_world(&w, 2, 2);
	add(&w, 0, GT_COMM_SEND, GT_GROUP_PIPE, 0, 100, 0, "a");
	says(&w, "a transfer within one rank");
}

/* Transfers side by side need no room, and receive in any order. */
TEST(side_by_side)
{
	struct world w;
	struct gt_comm_report p;
	struct gt_err e;
	open_world(&w, 2, 2);
	for (int r = 0; r < 2; r++) {
		add(&w, r, GT_COMM_RECV, GT_GROUP_PIPE, 1 - r, 100, 0, "a%d", 1 - r);
		add(&w, r, GT_COMM_SEND, GT_GROUP_PIPE, 1 - r, 100, 0, "a%d", r)->apart = false;
	}
	CHECK_OK(prove(&w, &p, &e), e);
	CHECK_MSG(p.need == 0 && p.ahead == 512, "%zu %zu", p.need, p.ahead);
	w.prog[0].step[1].apart = true; /* one of them waits first: the other one still does both */
	CHECK_OK(prove(&w, &p, &e), e);
	CHECK(p.need == 0);
	w.prog[1].step[1].apart = true;
	says(&w, "deadlock: ");
}

/* Every schedule's transfers between neighbours. What is sent ahead is bounded by the micro-batches in flight. */
TEST(schedules)
{
	static const enum gt_pipe_schedule all[] = {GT_PIPE_GPIPE, GT_PIPE_1F1B, GT_PIPE_INTERLEAVED, GT_PIPE_ZERO_BUBBLE};
	int n = 0;
	size_t need = 0;
	for (int s = 0; s < 4; s++)
		for (int p = 2; p <= 6; p++)
			for (int v = 1; v <= (all[s] == GT_PIPE_INTERLEAVED ? 3 : 1); v++)
				for (int m = 1; m <= 14; m++) {
					struct world w;
					struct gt_grid *g;
					struct gt_comm_report proof;
					struct gt_err e;
					open_world(&w, p, p);
					CHECK_OK(gt_grid_make(w.a, all[s], p, v, m, &g, &e), e);
					chain(&w, g, 16); /* 64 bytes and their head */
					enum gt_code code = prove(&w, &proof, &e);
					CHECK_MSG(code == GT_OK, "schedule %d p=%d v=%d m=%d: %s", s, p, v, m, e.msg);
					if (code == GT_OK) {
						CHECK(proof.transfers == 2 * m * (p * v - 1) && proof.need <= proof.ahead && proof.ahead <= (size_t)(m * v) * 128);
						CHECK_MSG(all[s] != GT_PIPE_GPIPE || proof.ahead == (size_t)m * 128, "gpipe p=%d m=%d: %zu", p, m, proof.ahead);
						need = proof.need > need ? proof.need : need;
						n++;
					}
					gt_arena_close(w.a);
				}
	printf("# %d schedules proven, at most %zu messages of room needed\n", n, need / 128);
}

RUN_TESTS()
