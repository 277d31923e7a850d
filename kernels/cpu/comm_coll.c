/* The collectives of the shared-memory communicator. There are three methods. All ranks choose the same one, because each rank reads the
 * descriptions of all ranks:
 *   small   The data go through the staging memory in the first phase, and every rank reduces or copies for itself. One phase.
 *   direct  The operands are in the segment and every rank reads those of the others. In an all-reduce a rank reduces its part and stores
 *           it in all results. Each part of a buffer is thus read and written by one rank only, so that in-place calls need no copy.
 *           Two phases.
 *   staged  For operands elsewhere: pieces go through the staging memory, one phase each. */
#include "cpu/comm_shm.h"
#include <stdio.h>
#include <string.h>

#define GRAIN 64 /* bytes; parts of ranks are multiples of it, so that in aligned buffers two ranks do not write to one cache line */

struct job {
	struct shm_comm *c;
	const struct gt_coll *x;
	enum gt_coll_kind kind;
	uint32_t seq;
	size_t size, bytes; /* size: bytes of one element; bytes: bytes of `count` elements */
	bool done;          /* true: this rank waits for others to finish the call; false: for others to begin it */
};

static const struct shm_desc *desc_of(const struct job *j, int rank)
{
	return &j->c->slot[rank].desc[j->seq & 1];
}

static void doing(const struct shm_comm *c, const void *ctx, char *buf, size_t size)
{
	const struct job *j = ctx;
	const char *what = desc_of(j, c->pub.rank)->call.what;
	snprintf(buf, size, "has not %s %s #%u%s%s (%s)", j->done ? "finished" : "reached", gt_coll_name(j->kind), j->seq, *what ? " of " : "",
	         what, c->pub.name);
}

static enum gt_code phase(const struct job *j, struct gt_err *err)
{
	gt_shm_publish(j->c);
	return gt_shm_wait_all(j->c, doing, j, err);
}

/* ---- comparison of the calls of all ranks ------------------------------------------------------------------------------------------- */
static enum gt_code compare(const struct job *j, struct gt_err *err)
{
	struct shm_comm *c = j->c;
	const struct gt_coll_call *first = &desc_of(j, 0)->call;
	for (int r = 1; r < c->pub.world; r++) {
		const struct gt_coll_call *other = &desc_of(j, r)->call;
		if (!memcmp(first, other, sizeof *first))
			continue;
		char a[160], b[160];
		gt_coll_text(first, a, sizeof a);
		gt_coll_text(other, b, sizeof b);
		return gt_shm_break(c, err, "rank %d calls %s, but rank %d calls %s (group %s)", c->member[r], b, c->member[0], a, c->pub.name);
	}
	return GT_OK;
}

/* ---- staging memory ----------------------------------------------------------------------------------------------------------------- */
static char *stage(const struct job *j, int rank, uint32_t of_phase)
{
	return j->c->stage + ((size_t)rank * 2 + (of_phase & 1)) * GT_SHM_HALF;
}

/* Returns true if, in a collective of this kind, the staging memory of a rank holds a piece of the block for every rank. */
static bool is_blocked(enum gt_coll_kind k)
{
	return k == GT_COLL_REDUCE_SCATTER || k == GT_COLL_SCATTER;
}

/* Copies n elements of the operand (if it has blocks: of each block), from element `at` on, into this rank's staging memory for the next
 * phase. */
static void stage_in(const struct job *j, size_t at, size_t n)
{
	const struct shm_comm *c = j->c;
	int rank = c->pub.rank;
	bool rooted = j->kind == GT_COLL_BROADCAST || j->kind == GT_COLL_SCATTER;
	if (rooted && rank != j->x->root)
		return;
	char *to = stage(j, rank, c->phase + 1);
	const char *from = (const char *)j->x->in + at * j->size;
	for (int r = 0; r < (is_blocked(j->kind) ? c->pub.world : 1); r++)
		memcpy(to + (size_t)r * n * j->size, from + (size_t)r * j->bytes, n * j->size);
}

static void stage_out(const struct job *j, size_t at, size_t n)
{
	const struct shm_comm *c = j->c;
	int rank = c->pub.rank, world = c->pub.world, root = j->x->root;
	size_t m = n * j->size;
	char *to = (char *)j->x->out + at * j->size;
	const void *in[GT_COMM_RANKS];
	switch (j->kind) {
	case GT_COLL_ALL_REDUCE:
	case GT_COLL_REDUCE_SCATTER:
		for (int r = 0; r < world; r++)
			in[r] = stage(j, r, c->phase) + (is_blocked(j->kind) ? (size_t)rank * m : 0);
		gt_comm_reduce(j->x->op, j->x->dtype)((void *[]){to}, 1, in, world, n);
		return;
	case GT_COLL_GATHER:
		if (rank != root)
			return;
		__attribute__((fallthrough));
	case GT_COLL_ALL_GATHER:
		for (int r = 0; r < world; r++)
			memcpy(to + (size_t)r * j->bytes, stage(j, r, c->phase), m);
		return;
	case GT_COLL_BROADCAST:
		if (rank == root && (!j->x->out || j->x->out == j->x->in))
			return;
		memcpy(to, stage(j, root, c->phase), m);
		return;
	case GT_COLL_SCATTER:
		memcpy(to, stage(j, root, c->phase) + (size_t)rank * m, m);
		return;
	default:
		return;
	}
}

static enum gt_code staged(const struct job *j, struct gt_err *err)
{
	size_t piece = GT_SHM_HALF / (is_blocked(j->kind) ? (size_t)j->c->pub.world : 1) / j->size;
	for (size_t at = 0; at < j->x->count; at += piece) {
		size_t n = j->x->count - at < piece ? j->x->count - at : piece;
		stage_in(j, at, n);
		GT_TRY(phase(j, err));
		stage_out(j, at, n);
	}
	return GT_OK;
}

/* ---- direct access to the operands -------------------------------------------------------------------------------------------------- */
static bool is_direct(const struct job *j)
{
	int world = j->c->pub.world, root = j->x->root;
	for (int r = 0; r < world; r++) {
		const struct shm_desc *d = desc_of(j, r);
		bool rooted = j->kind == GT_COLL_BROADCAST || j->kind == GT_COLL_SCATTER;
		if (!d->in && (!rooted || r == root))
			return false;
		if (!d->out && j->kind == GT_COLL_ALL_REDUCE)
			return false;
	}
	return true;
}

/* Copies a block of n bytes, unless `to` and `from` are the same memory. */
static void take(void *to, const void *from, size_t n)
{
	if (to != from)
		memcpy(to, from, n);
}

/* Does this rank's part of a collective whose operands are in the shared segment, so that every rank can read them. All ranks are in this
 * function at the same time. */
static void direct(const struct job *j)
{
	const struct shm_comm *c = j->c;
	const struct shm_root *root = c->root;
	int rank = c->pub.rank, world = c->pub.world;
	const void *in[GT_COMM_RANKS];
	void *out[GT_COMM_RANKS];
	for (int r = 0; r < world; r++) {
		in[r] = gt_shm_at(root, desc_of(j, r)->in);
		out[r] = gt_shm_at(root, desc_of(j, r)->out);
	}
	switch (j->kind) {
	case GT_COLL_ALL_REDUCE: {
		size_t grain = GRAIN / j->size, units = (j->x->count + grain - 1) / grain;
		size_t begin = units * (size_t)rank / (size_t)world * grain, end = units * ((size_t)rank + 1) / (size_t)world * grain;
		end = end < j->x->count ? end : j->x->count;
		if (begin >= end)
			return;
		for (int r = 0; r < world; r++) {
			in[r] = (const char *)in[r] + begin * j->size;
			out[r] = (char *)out[r] + begin * j->size;
		}
		gt_comm_reduce(j->x->op, j->x->dtype)(out, world, in, world, end - begin);
		return;
	}
	case GT_COLL_REDUCE_SCATTER:
		for (int r = 0; r < world; r++)
			in[r] = (const char *)in[r] + (size_t)rank * j->bytes;
		gt_comm_reduce(j->x->op, j->x->dtype)((void *[]){j->x->out}, 1, in, world, j->x->count);
		return;
	case GT_COLL_GATHER:
		if (rank != j->x->root)
			return;
		__attribute__((fallthrough));
	case GT_COLL_ALL_GATHER:
		for (int i = 0; i < world; i++) {
			int r = (rank + i) % world; /* the ranks begin with different peers, so that not all read from rank 0 first */
			take((char *)j->x->out + (size_t)r * j->bytes, in[r], j->bytes);
		}
		return;
	case GT_COLL_BROADCAST:
		if (rank != j->x->root || j->x->out)
			take(j->x->out, in[j->x->root], j->bytes);
		return;
	case GT_COLL_SCATTER:
		take(j->x->out, (const char *)in[j->x->root] + (size_t)rank * j->bytes, j->bytes);
		return;
	default:
		return;
	}
}

/* ---- entry point -------------------------------------------------------------------------------------------------------------------- */
static void describe(const struct job *j)
{
	const struct shm_comm *c = j->c;
	const struct gt_coll *x = j->x;
	struct shm_desc *d = &c->slot[c->pub.rank].desc[j->seq & 1];
	size_t all = j->bytes * (size_t)c->pub.world;
	d->call = gt_coll_signature(j->kind, j->seq, x);
	d->in = gt_shm_offset(c->root, x->in, is_blocked(j->kind) ? all : j->bytes);
	d->out = gt_shm_offset(c->root, x->out, j->kind == GT_COLL_ALL_GATHER || j->kind == GT_COLL_GATHER ? all : j->bytes);
}

enum gt_code gt_shm_coll(struct shm_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err)
{
	if (gt_shm_is_broken(c))
		return gt_shm_broken(c, err);
	struct gt_err bad = {0};
	if (gt_coll_check(&c->pub, kind, x, &bad) != GT_OK) {
		gt_shm_break(c, NULL, "rank %d: %.900s", c->member[c->pub.rank], bad.msg);
		return gt_fail(err, bad.code, "%s", bad.msg);
	}
	struct job j = {.c = c, .x = x, .kind = kind, .seq = ++c->seq, .size = gt_dtype_size(x->dtype)};
	j.bytes = x->count * j.size;
	describe(&j);
	bool small = j.bytes * (is_blocked(kind) ? (size_t)c->pub.world : 1) <= GT_SHM_SMALL;
	if (small && x->count)
		stage_in(&j, 0, x->count);
	GT_TRY(phase(&j, err));
	GT_TRY(compare(&j, err));
	if (!x->count)
		return GT_OK;
	if (small) {
		stage_out(&j, 0, x->count);
		return GT_OK;
	}
	if (is_direct(&j)) {
		direct(&j);
		j.done = true;
		return phase(&j, err);
	}
	j.done = true;
	return staged(&j, err);
}
