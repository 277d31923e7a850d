/* The collectives of the shared-memory communicator. There are three methods. All ranks choose the same method, because each rank reads the
 * descriptions of all ranks:
 *   small   The data go through the staging memory in the first phase, and every rank reduces or copies for itself. One phase.
 *   direct  The operands are in the segment and every rank reads the others' operands. In an all-reduce a rank reduces its part and stores
 *           it in all results. So each part of a buffer is read and written by only one rank, and in-place calls need no copy. Two phases.
 *   staged  For operands outside the segment: pieces go through the staging memory, one phase each. */
#include "cpu/comm_shm.h"
#include <stdio.h>
#include <string.h>

static struct shm_comm *comm_of(const struct gt_comm_call *k)
{
	return (struct shm_comm *)k->c;
}

static const struct shm_desc *desc_of(const struct gt_comm_call *k, int rank)
{
	return &comm_of(k)->slot[rank].desc[k->sign.seq & 1];
}

static void describe_wait(const struct shm_comm *c, const void *ctx, char *buf, size_t size)
{
	(void)c;
	gt_comm_call_text(ctx, buf, size);
}

static enum gt_code finish_phase(const struct gt_comm_call *k, struct gt_err *err)
{
	gt_shm_publish(comm_of(k));
	return gt_shm_wait_all(comm_of(k), describe_wait, k, err);
}

/* Breaks the group if the ranks make different calls. */
static enum gt_code compare_calls(const struct gt_comm_call *k, struct gt_err *err)
{
	const struct gt_coll_call *sign[GT_COMM_RANKS];
	char text[GT_COMM_CALL_TEXT];
	for (int r = 0; r < k->c->world; r++)
		sign[r] = &desc_of(k, r)->call;
	return gt_comm_call_compare(k, sign, text, sizeof text) < 0 ? GT_OK : gt_shm_break(comm_of(k), err, "%s", text);
}

/* ---- staging memory ----------------------------------------------------------------------------------------------------------------- */
static char *stage_of(const struct gt_comm_call *k, int rank, uint32_t of_phase)
{
	return comm_of(k)->stage + ((size_t)rank * 2 + (of_phase & 1)) * GT_SHM_HALF;
}

static void stage_in(const struct gt_comm_call *k, size_t at, size_t n)
{
	gt_comm_call_stage_in(k, at, n, stage_of(k, k->c->rank, comm_of(k)->phase + 1));
}

static void stage_out(const struct gt_comm_call *k, size_t at, size_t n)
{
	char *from[GT_COMM_RANKS];
	for (int r = 0; r < k->c->world; r++)
		from[r] = stage_of(k, r, comm_of(k)->phase);
	gt_comm_call_stage_out(k, at, n, from);
}

static enum gt_code run_staged(const struct gt_comm_call *k, struct gt_err *err)
{
	size_t piece = GT_SHM_HALF / (k->blocked ? (size_t)k->c->world : 1) / k->size;
	for (size_t at = 0; at < k->x->count; at += piece) {
		size_t n = k->x->count - at < piece ? k->x->count - at : piece;
		stage_in(k, at, n);
		GT_TRY(finish_phase(k, err));
		stage_out(k, at, n);
	}
	return GT_OK;
}

/* ---- direct access to the operands -------------------------------------------------------------------------------------------------- */
static bool is_direct(const struct gt_comm_call *k)
{
	int world = k->c->world, root = k->x->root;
	for (int r = 0; r < world; r++) {
		const struct shm_desc *d = desc_of(k, r);
		bool rooted = k->kind == GT_COLL_BROADCAST || k->kind == GT_COLL_SCATTER;
		if (!d->in && (!rooted || r == root))
			return false;
		if (!d->out && k->kind == GT_COLL_ALL_REDUCE)
			return false;
	}
	return true;
}

/* Copies a block of n bytes, unless `to` and `from` are the same memory. */
static void copy_block(void *to, const void *from, size_t n)
{
	if (to != from)
		memcpy(to, from, n);
}

/* Does this rank's part of a collective whose operands are in the shared segment, so that every rank can read them. All ranks are in this
 * function at the same time. */
static void run_direct(const struct gt_comm_call *k)
{
	const struct shm_comm *c = comm_of(k);
	const struct shm_root *root = c->root;
	int rank = c->pub.rank, world = c->pub.world;
	const void *in[GT_COMM_RANKS];
	void *out[GT_COMM_RANKS];
	for (int r = 0; r < world; r++) {
		in[r] = gt_shm_at(root, desc_of(k, r)->in);
		out[r] = gt_shm_at(root, desc_of(k, r)->out);
	}
	switch (k->kind) {
	case GT_COLL_ALL_REDUCE: {
		struct gt_span part = gt_comm_call_part(k, rank);
		if (!part.n)
			return;
		for (int r = 0; r < world; r++) {
			in[r] = (const char *)in[r] + part.at;
			out[r] = (char *)out[r] + part.at;
		}
		gt_comm_reduce(k->x->op, k->x->dtype)(out, world, in, world, part.n / k->size);
		return;
	}
	case GT_COLL_REDUCE_SCATTER:
		for (int r = 0; r < world; r++)
			in[r] = (const char *)in[r] + (size_t)rank * k->bytes;
		gt_comm_reduce(k->x->op, k->x->dtype)((void *[]){k->x->out}, 1, in, world, k->x->count);
		return;
	case GT_COLL_GATHER:
		if (rank != k->x->root)
			return;
		__attribute__((fallthrough));
	case GT_COLL_ALL_GATHER:
		for (int i = 0; i < world; i++) {
			int r = (rank + i) % world; /* the ranks begin with different peers, so that not all read from rank 0 first */
			copy_block((char *)k->x->out + (size_t)r * k->bytes, in[r], k->bytes);
		}
		return;
	case GT_COLL_BROADCAST:
		if (rank != k->x->root || k->x->out)
			copy_block(k->x->out, in[k->x->root], k->bytes);
		return;
	case GT_COLL_SCATTER:
		copy_block(k->x->out, (const char *)in[k->x->root] + (size_t)rank * k->bytes, k->bytes);
		return;
	default:
		return;
	}
}

/* ---- entry point -------------------------------------------------------------------------------------------------------------------- */
static void publish_call(const struct gt_comm_call *k)
{
	const struct shm_comm *c = comm_of(k);
	struct shm_desc *d = &c->slot[c->pub.rank].desc[k->sign.seq & 1];
	size_t all = k->bytes * (size_t)c->pub.world;
	d->call = k->sign;
	d->in = gt_shm_offset(c->root, k->x->in, k->staged);
	d->out = gt_shm_offset(c->root, k->x->out, k->kind == GT_COLL_ALL_GATHER || k->kind == GT_COLL_GATHER ? all : k->bytes);
}

enum gt_code gt_shm_coll(struct gt_comm *pub, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err)
{
	struct shm_comm *c = (struct shm_comm *)pub;
	struct gt_err bad = {0};
	if (gt_shm_is_broken(c))
		return gt_shm_broken(c, err);
	if (gt_coll_check(pub, kind, x, &bad) != GT_OK)
		return gt_shm_reject(c, &bad, err);
	struct gt_comm_call k = gt_comm_call_make(pub, c->member, kind, ++c->seq, x);
	publish_call(&k);
	bool small = k.staged <= GT_SHM_SMALL;
	if (small)
		stage_in(&k, 0, x->count);
	GT_TRY(finish_phase(&k, err));
	GT_TRY(compare_calls(&k, err));
	if (small && x->count)
		stage_out(&k, 0, x->count);
	if (small || !x->count)
		return GT_OK;
	k.done = true;
	if (!is_direct(&k))
		return run_staged(&k, err);
	run_direct(&k);
	return finish_phase(&k, err);
}
