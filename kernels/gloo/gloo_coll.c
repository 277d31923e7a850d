/* The collectives between hosts. First, each rank sends a description of its call to every other rank. If the operand is small, the
 * description contains its data. A larger operand is sent after the descriptions, divided into pieces that are all in flight at once, by
 * two kinds of transfers:
 *   part   one part of the operand, to the rank that reduces this part or (in a broadcast) forwards it to the other ranks
 *   whole  a reduced part, or a block that needs no reduction, to a rank whose output contains it */
#include "comm_reduce.h"
#include "gloo/gloo.h"
#include <stdio.h>
#include <string.h>

static struct gloo_comm *comm_of(const struct gt_comm_call *j)
{
	return (struct gloo_comm *)j->c;
}

static const struct gloo_call *call_of(const struct gt_comm_call *j, int rank)
{
	const struct gloo_comm *c = comm_of(j);
	const char *mem = rank == c->pub.rank ? c->own : c->peer[rank].calls;
	return (const struct gloo_call *)(const void *)(mem + (j->sign.seq & 1) * GT_GLOO_CALL);
}

static char *data_of(const struct gt_comm_call *j, int rank)
{
	return (char *)(uintptr_t)(call_of(j, rank) + 1);
}

/* ---- failures ---------------------------------------------------------------------------------------------------------------- */
static enum gt_code report_failure(const struct gt_comm_call *j, int peer, enum gloo_end end, struct gt_err *err)
{
	struct gloo_comm *c = comm_of(j);
	struct gloo_root *r = c->root;
	char text[160], others[48] = "";
	if (end == GLOO_FAIL)
		return gt_gloo_broken(r, err);
	gt_comm_call_text(j, text, sizeof text);
	if (end == GLOO_LOST)
		return gt_gloo_break(r, GLOO_DEAD, c->member[peer], err, "rank %d has %s: it %s", c->member[peer],
		                     gt_gloo_has_left(r, c->member[peer]) ? "closed its communicator" : "died or cannot be reached", text);
	int more = 0;
	for (int i = 0; i < c->pub.world && !j->done; i++)
		more += i != c->pub.rank && i != peer && __atomic_load_n(&call_of(j, i)->call.seq, __ATOMIC_RELAXED) != j->sign.seq;
	if (more)
		snprintf(others, sizeof others, "; the same is true for %d other ranks", more);
	return gt_gloo_break(r, GLOO_LATE, c->member[peer], err, "rank %d %s after %g s%s", c->member[peer], text, r->limit_s, others);
}

static enum gt_code wait_received(const struct gt_comm_call *j, int peer, int lane, struct gt_err *err)
{
	struct gloo_comm *c = comm_of(j);
	enum gloo_end end = gt_gloo_wait(c->root, c->peer[peer].in[lane], c->member[peer], false);
	return end == GLOO_END ? GT_OK : report_failure(j, peer, end, err);
}

/* Waits until at most `left` of the messages that this rank has sent to the peer in this lane are still in flight. */
static enum gt_code wait_sent(const struct gt_comm_call *j, int peer, int lane, uint32_t left, struct gt_err *err)
{
	struct gloo_comm *c = comm_of(j);
	struct gloo_peer *p = &c->peer[peer];
	for (; p->open[lane] > left; p->open[lane]--) {
		enum gloo_end end = gt_gloo_wait(c->root, p->out[lane], c->member[peer], false);
		if (end != GLOO_END)
			return report_failure(j, peer, end, err);
	}
	return GT_OK;
}

static enum gt_code post_receive(const struct gt_comm_call *j, int peer, int lane, void *mem, size_t n, struct gt_err *err)
{
	struct gloo_comm *c = comm_of(j);
	return gl_post(c->peer[peer].in[lane], gt_gloo_slot(c, lane), mem, n) ? GT_OK : report_failure(j, peer, GLOO_LOST, err);
}

static enum gt_code post_send(const struct gt_comm_call *j, int peer, int lane, const void *mem, size_t n, struct gt_err *err)
{
	struct gloo_comm *c = comm_of(j);
	if (!gl_post(c->peer[peer].out[lane], gt_gloo_slot(c, lane), (void *)(uintptr_t)mem, n))
		return report_failure(j, peer, GLOO_LOST, err);
	c->peer[peer].open[lane]++;
	return GT_OK;
}

/* ---- comparison of the calls of all ranks ------------------------------------------------------------------------------------------- */
static enum gt_code compare_calls(const struct gt_comm_call *j, struct gt_err *err)
{
	struct gloo_comm *c = comm_of(j);
	const struct gt_coll_call *sign[GT_COMM_RANKS];
	char text[GT_COMM_CALL_TEXT];
	for (int r = 0; r < c->pub.world; r++) {
		sign[r] = &call_of(j, r)->call;
		if (!call_of(j, r)->left)
			continue;
		gt_comm_call_text(j, text, sizeof text);
		return gt_gloo_break(c->root, GLOO_SAID, c->member[r], err, "rank %d has closed its communicator: it %s", c->member[r], text);
	}
	int r = gt_comm_call_compare(j, sign, text, sizeof text);
	return r < 0 ? GT_OK : gt_gloo_break(c->root, GLOO_SAID, c->member[r], err, "%s", text);
}

/* ---- large data -------------------------------------------------------------------------------------------------------------- */
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
static struct flow flow_of(const struct gt_comm_call *j, int r)
{
	const struct gt_coll *x = j->x;
	int rank = j->c->rank, root = x->root;
	const char *in = x->in;
	char *out = x->out;
	struct gt_span own, his;
	struct flow f = {0};
	switch (j->kind) {
	case GT_COLL_ALL_REDUCE:
		own = gt_comm_call_part(j, rank), his = gt_comm_call_part(j, r);
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
		own = gt_comm_call_part(j, rank), his = gt_comm_call_part(j, r);
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

static char *stage_at(const struct gt_comm_call *j, int r, size_t k)
{
	size_t ahead = comm_of(j)->ahead;
	return comm_of(j)->stage + ((size_t)r * ahead + k % ahead) * GT_GLOO_PIECE;
}

static void copy_own_block(const struct gt_comm_call *j)
{
	const struct gt_coll *x = j->x;
	int rank = j->c->rank;
	const char *from = NULL;
	char *to = NULL;
	if (j->c->world == 1 && x->out)
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
static void reduce_piece(const struct gt_comm_call *j, size_t k, size_t n)
{
	int rank = j->c->rank;
	size_t at = (j->kind == GT_COLL_ALL_REDUCE ? gt_comm_call_part(j, rank).at : (size_t)rank * j->bytes) + k * GT_GLOO_PIECE;
	char *to = (char *)j->x->out + (j->kind == GT_COLL_ALL_REDUCE ? at : k * GT_GLOO_PIECE);
	const void *in[GT_COMM_RANKS];
	for (int r = 0; r < j->c->world; r++)
		in[r] = r == rank ? (const char *)j->x->in + at : stage_at(j, r, k);
	gt_comm_reduce(j->x->op, j->x->dtype)((void *[]){to}, 1, in, j->c->world, n / j->size);
}

/* Posts all transfers that can be in flight at once. A result may overwrite an operand that this rank has sent, because results arrive only
 * after every rank's operand has arrived. */
static enum gt_code post_transfers(const struct gt_comm_call *j, struct gt_err *err)
{
	int rank = j->c->rank, world = j->c->world;
	for (int i = 1; i < world; i++) {
		int r = (rank + i) % world; /* the ranks begin with different peers, so that not all send to rank 0 first */
		struct flow f = flow_of(j, r);
		for (size_t k = 0; k < count_pieces(f.part_in) && (f.part_to || k < comm_of(j)->ahead); k++)
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
 * other ranks, and at last for its own sends. */
static enum gt_code move_large_data(struct gt_comm_call *j, struct gt_err *err)
{
	int rank = j->c->rank, world = j->c->world;
	j->done = true;
	GT_TRY(post_transfers(j, err));
	copy_own_block(j);
	/* Handles this rank's part piece by piece: waits for the piece of every rank, reduces it, and sends the result to the others. All ranks
	 * that send data to this rank send the same number of bytes. */
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
			size_t next = k + comm_of(j)->ahead;
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
static enum gt_code send_call(const struct gt_comm_call *j, bool small, struct gt_err *err)
{
	struct gloo_comm *c = comm_of(j);
	/* The memory of this description held the description of the call before the last one. Every rank has received that description:
	 * otherwise the last call would not have ended. */
	for (int r = 0; r < c->pub.world; r++) {
		if (r != c->pub.rank)
			GT_TRY(wait_sent(j, r, GLOO_CALL, 1, err));
	}
	struct gloo_call *d = (struct gloo_call *)(uintptr_t)call_of(j, c->pub.rank);
	*d = (struct gloo_call){.call = j->sign};
	size_t n = small ? gt_comm_call_stage_in(j, 0, j->x->count, data_of(j, c->pub.rank)) : 0;
	for (int i = 1; i < c->pub.world; i++)
		GT_TRY(post_send(j, (c->pub.rank + i) % c->pub.world, GLOO_CALL, d, sizeof *d + n, err));
	return GT_OK;
}

/* Posts receives into the memory of this call's descriptions, for the descriptions of the call after the next one. */
static enum gt_code repost_call_receives(const struct gt_comm_call *j, struct gt_err *err)
{
	for (int r = 0; r < j->c->world; r++) {
		if (r != j->c->rank)
			GT_TRY(post_receive(j, r, GLOO_CALL, (void *)(uintptr_t)call_of(j, r), GT_GLOO_CALL, err));
	}
	return GT_OK;
}

enum gt_code gt_gloo_coll(struct gt_comm *pub, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err)
{
	struct gloo_comm *c = (struct gloo_comm *)pub;
	struct gt_err bad = {0};
	char *from[GT_COMM_RANKS];
	if (gt_gloo_is_broken(c->root))
		return gt_gloo_broken(c->root, err);
	if (gt_coll_check(pub, kind, x, &bad) != GT_OK) {
		gt_gloo_break(c->root, GLOO_SAID, c->root->rank, NULL, "rank %d: %.900s", c->root->rank, bad.msg);
		return gt_fail(err, bad.code, "%s", bad.msg);
	}
	struct gt_comm_call j = gt_comm_call_make(pub, c->member, kind, ++c->seq, x);
	bool small = j.staged <= GT_GLOO_SMALL;
	/* From here on, the message of a failure of this rank names this call. */
	GT_TRY(send_call(&j, small, err));
	for (int r = 0; r < pub->world; r++) {
		if (r != pub->rank)
			GT_TRY(wait_received(&j, r, GLOO_CALL, err));
		from[r] = data_of(&j, r);
	}
	GT_TRY(compare_calls(&j, err));
	if (x->count && small)
		gt_comm_call_stage_out(&j, 0, x->count, from);
	if (x->count && !small)
		GT_TRY(move_large_data(&j, err));
	return repost_call_receives(&j, err);
}
