/* The collectives between hosts. First each rank sends a description of its call to every other rank; small data travel with it. Larger
 * data follow in two kinds of transfer. Both are cut into pieces, and all pieces are in flight at once:
 *   part   a part of every rank's operand, sent to the rank that reduces it or, in a broadcast, forwards it
 *   whole  a result, or a block that needs no reduction, sent to the rank that keeps it */
#include "cpu/comm_reduce.h"
#include "gloo/gloo.h"
#include <stdio.h>
#include <string.h>

#define GRAIN 64 /* bytes; all_reduce and broadcast divide their operands among the ranks at multiples of it */

struct job {
	struct gloo_comm *c;
	const struct gt_coll *x;
	enum gt_coll_kind kind;
	uint32_t seq;
	size_t size, bytes; /* size: bytes of one element; bytes: bytes of `count` elements */
	bool done;          /* true: this rank waits for others to finish the call; false: for others to begin it */
};

static const struct gloo_call *call_of(const struct job *j, int rank)
{
	const struct gloo_comm *c = j->c;
	return (const struct gloo_call *)(const void *)((rank == c->pub.rank ? c->own : c->peer[rank].calls) + (j->seq & 1) * GT_GLOO_CALL);
}

static char *data_of(const struct job *j, int rank)
{
	return (char *)(uintptr_t)(call_of(j, rank) + 1);
}

/* ---- failures ---------------------------------------------------------------------------------------------------------------- */
static enum gt_code report_failure(const struct job *j, int peer, enum gloo_end end, struct gt_err *err)
{
	struct gloo_comm *c = j->c;
	struct gloo_root *r = c->root;
	const char *what = call_of(j, c->pub.rank)->call.what;
	char text[160], others[48] = "";
	if (end == GLOO_FAIL)
		return gt_gloo_broken(r, err);
	snprintf(text, sizeof text, "has not %s %s #%u%s%s (%s)", j->done ? "finished" : "reached", gt_coll_name(j->kind), j->seq,
	         *what ? " of " : "", what, c->pub.name);
	if (end == GLOO_LOST)
		return gt_gloo_break(r, GLOO_DEAD, c->member[peer], err, "rank %d has %s: it %s", c->member[peer],
		                     gt_gloo_has_left(r, c->member[peer]) ? "closed its communicator" : "died or cannot be reached", text);
	int more = 0;
	for (int i = 0; i < c->pub.world && !j->done; i++)
		more += i != c->pub.rank && i != peer && __atomic_load_n(&call_of(j, i)->call.seq, __ATOMIC_RELAXED) != j->seq;
	if (more)
		snprintf(others, sizeof others, ", and neither have %d other ranks", more);
	return gt_gloo_break(r, GLOO_LATE, c->member[peer], err, "rank %d %s after %g s%s", c->member[peer], text, r->limit_s, others);
}

static enum gt_code wait_received(const struct job *j, int peer, int lane, struct gt_err *err)
{
	struct gloo_comm *c = j->c;
	enum gloo_end end = gt_gloo_wait(c->root, c->peer[peer].in[lane], c->member[peer], false);
	return end == GLOO_END ? GT_OK : report_failure(j, peer, end, err);
}

/* Waits until at most `left` of the messages that this rank has sent to the peer in this lane are still in flight. */
static enum gt_code wait_sent(const struct job *j, int peer, int lane, uint32_t left, struct gt_err *err)
{
	struct gloo_comm *c = j->c;
	struct gloo_peer *p = &c->peer[peer];
	for (; p->open[lane] > left; p->open[lane]--) {
		enum gloo_end end = gt_gloo_wait(c->root, p->out[lane], c->member[peer], false);
		if (end != GLOO_END)
			return report_failure(j, peer, end, err);
	}
	return GT_OK;
}

static enum gt_code post_receive(const struct job *j, int peer, int lane, void *mem, size_t n, struct gt_err *err)
{
	struct gloo_comm *c = j->c;
	return gl_post(c->peer[peer].in[lane], gt_gloo_slot(c, lane), mem, n) ? GT_OK : report_failure(j, peer, GLOO_LOST, err);
}

static enum gt_code post_send(const struct job *j, int peer, int lane, const void *mem, size_t n, struct gt_err *err)
{
	struct gloo_comm *c = j->c;
	if (!gl_post(c->peer[peer].out[lane], gt_gloo_slot(c, lane), (void *)(uintptr_t)mem, n))
		return report_failure(j, peer, GLOO_LOST, err);
	c->peer[peer].open[lane]++;
	return GT_OK;
}

/* ---- comparison of the calls of all ranks ------------------------------------------------------------------------------------------- */
static enum gt_code compare_calls(const struct job *j, struct gt_err *err)
{
	struct gloo_comm *c = j->c;
	const struct gloo_call *first = call_of(j, 0);
	for (int r = 0; r < c->pub.world; r++) {
		const struct gloo_call *d = call_of(j, r);
		if (d->left) {
			const char *what = call_of(j, c->pub.rank)->call.what;
			return gt_gloo_break(c->root, GLOO_SAID, c->member[r], err,
			                     "rank %d has closed its communicator: it has not reached %s #%u%s%s (%s)", c->member[r],
			                     gt_coll_name(j->kind), j->seq, *what ? " of " : "", what, c->pub.name);
		}
		if (!memcmp(first, d, sizeof *d))
			continue;
		char a[160], b[160];
		gt_coll_text(&first->call, a, sizeof a);
		gt_coll_text(&d->call, b, sizeof b);
		return gt_gloo_break(c->root, GLOO_SAID, c->member[r], err, "rank %d calls %s, but rank %d calls %s (group %s)",
		                     c->member[r], b, c->member[0],
		                     a, c->pub.name);
	}
	return GT_OK;
}

/* Returns true if, in a collective of this kind, the operand of a rank has one block for every rank. */
static bool is_blocked(enum gt_coll_kind k)
{
	return k == GT_COLL_REDUCE_SCATTER || k == GT_COLL_SCATTER;
}

/* ---- small data, which travel with the descriptions of the call --------------------------------------------------------------------- */
static size_t pack_small_data(const struct job *j)
{
	int rank = j->c->pub.rank;
	if (((j->kind == GT_COLL_BROADCAST || j->kind == GT_COLL_SCATTER) && rank != j->x->root) || j->kind == GT_COLL_BARRIER)
		return 0;
	size_t n = j->bytes * (is_blocked(j->kind) ? (size_t)j->c->pub.world : 1);
	memcpy(data_of(j, rank), j->x->in, n);
	return n;
}

/* Forms the result of a small call from the data that arrived with the descriptions of the calls. */
static void complete_small(const struct job *j)
{
	int rank = j->c->pub.rank, world = j->c->pub.world, root = j->x->root;
	char *out = j->x->out;
	const void *in[GT_COMM_RANKS];
	switch (j->kind) {
	case GT_COLL_ALL_REDUCE:
	case GT_COLL_REDUCE_SCATTER:
		for (int r = 0; r < world; r++)
			in[r] = data_of(j, r) + (is_blocked(j->kind) ? (size_t)rank * j->bytes : 0);
		gt_comm_reduce(j->x->op, j->x->dtype)((void *[]){out}, 1, in, world, j->x->count);
		return;
	case GT_COLL_GATHER:
		if (rank != root)
			return;
		__attribute__((fallthrough));
	case GT_COLL_ALL_GATHER:
		for (int r = 0; r < world; r++)
			memcpy(out + (size_t)r * j->bytes, data_of(j, r), j->bytes);
		return;
	case GT_COLL_BROADCAST:
		if (rank != root || (out && out != j->x->in))
			memcpy(out, data_of(j, root), j->bytes);
		return;
	case GT_COLL_SCATTER:
		memcpy(out, data_of(j, root) + (size_t)rank * j->bytes, j->bytes);
		return;
	default:
		return;
	}
}

/* ---- large data -------------------------------------------------------------------------------------------------------------- */
struct span {
	size_t at, n; /* offset and size of a range in bytes */
};

/* Returns the part of the operand of an all_reduce or a broadcast that rank r reduces or forwards. */
static struct span get_part(const struct job *j, int r)
{
	size_t grain = GRAIN / j->size, units = (j->x->count + grain - 1) / grain, world = (size_t)j->c->pub.world;
	size_t begin = units * (size_t)r / world * grain, end = units * ((size_t)r + 1) / world * grain;
	begin = begin < j->x->count ? begin : j->x->count;
	end = end < j->x->count ? end : j->x->count;
	return (struct span){begin * j->size, (end - begin) * j->size};
}

/* The transfers between this rank and rank r. Sizes are in bytes; 0 means that there is no transfer. */
struct flow {
	const char *part_from;
	char *part_to; /* destination of the received part; NULL: the staging memory, where the part is reduced */
	size_t part_out, part_in;
	const char *whole_from;
	char *whole_to;
	size_t whole_out, whole_in;
};

/* Lists the transfers between this rank and rank r in a large collective. */
static struct flow flow_of(const struct job *j, int r)
{
	const struct gt_coll *x = j->x;
	int rank = j->c->pub.rank, root = x->root;
	const char *in = x->in;
	char *out = x->out;
	struct span own, his;
	struct flow f = {0};
	switch (j->kind) {
	case GT_COLL_ALL_REDUCE:
		own = get_part(j, rank), his = get_part(j, r);
		f = (struct flow){.part_from = in + his.at,
		                  .part_out = his.n,
		                  .part_in = own.n,
		                  .whole_from = out + own.at,
		                  .whole_out = own.n,
		                  .whole_to = out + his.at,
		                  .whole_in = his.n};
		break;
	case GT_COLL_REDUCE_SCATTER:
		f = (struct flow){.part_from = in + (size_t)r * j->bytes, .part_out = j->bytes, .part_in = j->bytes};
		break;
	case GT_COLL_ALL_GATHER:
		f = (struct flow){.whole_from = in, .whole_out = j->bytes, .whole_to = out + (size_t)r * j->bytes, .whole_in = j->bytes};
		break;
	case GT_COLL_BROADCAST: /* the root sends every other rank a part to forward, and its own part to all ranks */
		own = get_part(j, rank), his = get_part(j, r);
		if (rank == root)
			f = (struct flow){.part_from = in + his.at, .part_out = his.n, .whole_from = in + own.at, .whole_out = own.n};
		else {
			f = (struct flow){.whole_from = out + own.at, .whole_out = r == root ? 0 : own.n, .whole_to = out + his.at, .whole_in = his.n};
			if (r == root) {
				f.part_to = out + own.at;
				f.part_in = own.n;
			}
		}
		break;
	case GT_COLL_GATHER:
		if (r == root)
			f = (struct flow){.whole_from = in, .whole_out = j->bytes};
		if (rank == root)
			f = (struct flow){.whole_to = out + (size_t)r * j->bytes, .whole_in = j->bytes};
		break;
	case GT_COLL_SCATTER:
		if (rank == root)
			f = (struct flow){.whole_from = in + (size_t)r * j->bytes, .whole_out = j->bytes};
		if (r == root)
			f = (struct flow){.whole_to = out, .whole_in = j->bytes};
		break;
	default:
		break;
	}
	return f;
}

static size_t count_pieces(size_t n)
{
	return (n + GT_GLOO_PIECE - 1) / GT_GLOO_PIECE;
}

static size_t piece_bytes(size_t n, size_t k)
{
	size_t left = n - k * GT_GLOO_PIECE;
	return left < GT_GLOO_PIECE ? left : GT_GLOO_PIECE;
}

static char *stage_at(const struct job *j, int r, size_t k)
{
	return j->c->stage + ((size_t)r * GT_GLOO_AHEAD + k % GT_GLOO_AHEAD) * GT_GLOO_PIECE;
}

static void copy_own_block(const struct job *j)
{
	const struct gt_coll *x = j->x;
	int rank = j->c->pub.rank;
	const char *from = NULL;
	char *to = NULL;
	if (j->c->pub.world == 1 && x->out)
		from = x->in, to = x->out;
	else if (j->kind == GT_COLL_ALL_GATHER || (j->kind == GT_COLL_GATHER && rank == x->root))
		from = x->in, to = (char *)x->out + (size_t)rank * j->bytes;
	if (j->kind == GT_COLL_SCATTER && rank == x->root)
		from = (const char *)x->in + (size_t)rank * j->bytes, to = x->out;
	if (j->kind == GT_COLL_BROADCAST && rank == x->root && x->out)
		from = x->in, to = x->out;
	if (from != to && to)
		memcpy(to, from, j->bytes);
}

/* Reduces the k-th piece of this rank's part. */
static void reduce_piece(const struct job *j, size_t k, size_t n)
{
	int rank = j->c->pub.rank;
	size_t at = (j->kind == GT_COLL_ALL_REDUCE ? get_part(j, rank).at : (size_t)rank * j->bytes) + k * GT_GLOO_PIECE;
	char *to = (char *)j->x->out + (j->kind == GT_COLL_ALL_REDUCE ? at : k * GT_GLOO_PIECE);
	const void *in[GT_COMM_RANKS];
	for (int r = 0; r < j->c->pub.world; r++)
		in[r] = r == rank ? (const char *)j->x->in + at : stage_at(j, r, k);
	gt_comm_reduce(j->x->op, j->x->dtype)((void *[]){to}, 1, in, j->c->pub.world, n / j->size);
}

/* Posts all transfers that can be in flight at once. A result may overwrite an operand that this rank has sent, because results arrive only
 * after every rank's operand has arrived. */
static enum gt_code post_transfers(const struct job *j, struct gt_err *err)
{
	int rank = j->c->pub.rank, world = j->c->pub.world;
	for (int i = 1; i < world; i++) {
		int r = (rank + i) % world; /* the ranks begin with different peers, so that not all send to rank 0 first */
		struct flow f = flow_of(j, r);
		for (size_t k = 0; k < count_pieces(f.part_in) && (f.part_to || k < GT_GLOO_AHEAD); k++)
			GT_TRY(post_receive(j, r, GLOO_PART, f.part_to ? f.part_to + k * GT_GLOO_PIECE : stage_at(j, r, k), piece_bytes(f.part_in, k),
			                    err));
		for (size_t k = 0; k < count_pieces(f.whole_in); k++)
			GT_TRY(post_receive(j, r, GLOO_WHOLE, f.whole_to + k * GT_GLOO_PIECE, piece_bytes(f.whole_in, k), err));
	}
	for (int i = 1; i < world; i++) {
		int r = (rank + i) % world;
		struct flow f = flow_of(j, r);
		for (size_t k = 0; k < count_pieces(f.part_out); k++)
			GT_TRY(post_send(j, r, GLOO_PART, f.part_from + k * GT_GLOO_PIECE, piece_bytes(f.part_out, k), err));
		bool there = j->kind != GT_COLL_ALL_REDUCE && (j->kind != GT_COLL_BROADCAST || rank == j->x->root);
		for (size_t k = 0; there && k < count_pieces(f.whole_out); k++)
			GT_TRY(post_send(j, r, GLOO_WHOLE, f.whole_from + k * GT_GLOO_PIECE, piece_bytes(f.whole_out, k), err));
	}
	return GT_OK;
}

/* Moves large data: posts all transfers, copies the rank's own block, reduces and forwards pieces as they arrive, waits for the results of
 * the others, and at last for its own sends. */
static enum gt_code move_large_data(struct job *j, struct gt_err *err)
{
	int rank = j->c->pub.rank, world = j->c->pub.world;
	j->done = true;
	GT_TRY(post_transfers(j, err));
	copy_own_block(j);
	/* Handles this rank's part piece by piece: waits for the piece of every rank, reduces it, and sends the result to the others. All ranks
	 * that send something to this one send the same number of bytes. */
	size_t mine = 0;
	for (int r = 0; r < world; r++)
		mine = r != rank && flow_of(j, r).part_in > mine ? flow_of(j, r).part_in : mine;
	for (size_t k = 0; k < count_pieces(mine); k++) {
		for (int r = 0; r < world; r++) {
			if (r != rank && flow_of(j, r).part_in)
				GT_TRY(wait_received(j, r, GLOO_PART, err));
		}
		if (gt_coll_reduces(j->kind))
			reduce_piece(j, k, piece_bytes(mine, k));
		for (int i = 1; i < world; i++) {
			int r = (rank + i) % world;
			struct flow f = flow_of(j, r);
			size_t next = k + GT_GLOO_AHEAD;
			if (f.part_in && !f.part_to && next < count_pieces(mine))
				GT_TRY(post_receive(j, r, GLOO_PART, stage_at(j, r, next), piece_bytes(mine, next), err));
			if (f.whole_out)
				GT_TRY(post_send(j, r, GLOO_WHOLE, f.whole_from + k * GT_GLOO_PIECE, piece_bytes(f.whole_out, k), err));
		}
	}
	for (int r = 0; r < world; r++) {
		for (size_t k = 0; r != rank && k < count_pieces(flow_of(j, r).whole_in); k++)
			GT_TRY(wait_received(j, r, GLOO_WHOLE, err));
	}
	for (int r = 0; r < world; r++) {
		if (r == rank)
			continue;
		GT_TRY(wait_sent(j, r, GLOO_PART, 0, err));
		GT_TRY(wait_sent(j, r, GLOO_WHOLE, 0, err));
	}
	return GT_OK;
}

/* ---- entry point -------------------------------------------------------------------------------------------------------------------- */
/* Sends the description of this rank's call, with small data, to every other rank. */
static enum gt_code send_call(const struct job *j, bool small, struct gt_err *err)
{
	struct gloo_comm *c = j->c;
	const struct gt_coll *x = j->x;
	/* The memory of this description held the description of the call before the last one. Every rank has received that description,
	 * because otherwise the last call could not have ended. */
	for (int r = 0; r < c->pub.world; r++) {
		if (r != c->pub.rank)
			GT_TRY(wait_sent(j, r, GLOO_CALL, 1, err));
	}
	struct gloo_call *d = (struct gloo_call *)(uintptr_t)call_of(j, c->pub.rank);
	*d = (struct gloo_call){.call = gt_coll_signature(j->kind, j->seq, x)};
	size_t n = small && x->count ? pack_small_data(j) : 0;
	for (int i = 1; i < c->pub.world; i++)
		GT_TRY(post_send(j, (c->pub.rank + i) % c->pub.world, GLOO_CALL, d, sizeof *d + n, err));
	return GT_OK;
}

/* Posts receives into the memory of this call's descriptions, for the descriptions of the call after the next one. */
static enum gt_code repost_call_receives(const struct job *j, struct gt_err *err)
{
	for (int r = 0; r < j->c->pub.world; r++) {
		if (r != j->c->pub.rank)
			GT_TRY(post_receive(j, r, GLOO_CALL, (void *)(uintptr_t)call_of(j, r), GT_GLOO_CALL, err));
	}
	return GT_OK;
}

enum gt_code gt_gloo_coll(struct gloo_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err)
{
	if (gt_gloo_is_broken(c->root))
		return gt_gloo_broken(c->root, err);
	struct gt_err bad = {0};
	if (gt_coll_check(&c->pub, kind, x, &bad) != GT_OK) {
		gt_gloo_break(c->root, GLOO_SAID, c->root->rank, NULL, "rank %d: %.900s", c->root->rank, bad.msg);
		return gt_fail(err, bad.code, "%s", bad.msg);
	}
	struct job j = {.c = c, .x = x, .kind = kind, .seq = ++c->seq, .size = gt_dtype_size(x->dtype)};
	j.bytes = x->count * j.size;
	bool small = j.bytes * (is_blocked(kind) ? (size_t)c->pub.world : 1) <= GT_GLOO_SMALL;
	/* If this rank fails from here on, the message of the failure names this call. */
	GT_TRY(send_call(&j, small, err));
	for (int r = 0; r < c->pub.world; r++) {
		if (r != c->pub.rank)
			GT_TRY(wait_received(&j, r, GLOO_CALL, err));
	}
	GT_TRY(compare_calls(&j, err));
	if (x->count && small)
		complete_small(&j);
	if (x->count && !small)
		GT_TRY(move_large_data(&j, err));
	return repost_call_receives(&j, err);
}
