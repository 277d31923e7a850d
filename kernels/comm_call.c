#include "comm_call.h"
#include "comm_reduce.h"
#include <stdio.h>
#include <string.h>

#define GRAIN 64 /* bytes; see gt_comm_call_part */

static bool is_rooted(enum gt_coll_kind k)
{
	return k == GT_COLL_BROADCAST || k == GT_COLL_GATHER || k == GT_COLL_SCATTER;
}

_Static_assert(sizeof(struct gt_coll_call) == 16 + GT_COLL_WHAT, "calls are compared as bytes, so the struct must have no padding");

static struct gt_coll_call sign_call(enum gt_coll_kind kind, uint32_t seq, const struct gt_coll *x)
{
	struct gt_coll_call c = {.count = x->count, .seq = seq, .kind = (uint8_t)kind, .dtype = (uint8_t)x->dtype};
	c.op = gt_coll_reduces(kind) ? (uint8_t)x->op : 0;
	c.root = is_rooted(kind) ? (uint8_t)x->root : 0;
	if (x->what)
		strncpy(c.what, x->what, sizeof c.what - 1);
	return c;
}

static void describe_call(const struct gt_coll_call *c, char *buf, size_t size)
{
	char op[16] = "", root[24] = "";
	if (gt_coll_reduces((enum gt_coll_kind)c->kind))
		snprintf(op, sizeof op, ", %s", gt_reduction_name((enum gt_reduction)c->op));
	if (is_rooted((enum gt_coll_kind)c->kind))
		snprintf(root, sizeof root, ", root %d", c->root);
	snprintf(buf, size, "%s #%u%s%.*s (%llu %s%s%s)", gt_coll_name((enum gt_coll_kind)c->kind), c->seq, *c->what ? " of " : "",
	         GT_COLL_WHAT - 1, c->what, (unsigned long long)c->count, gt_dtype_name((enum gt_dtype)c->dtype), op, root);
}

struct gt_comm_call gt_comm_call_make(struct gt_comm *c, const int *member, enum gt_coll_kind kind, uint32_t seq, const struct gt_coll *x)
{
	struct gt_comm_call k = {.c = c, .member = member, .x = x, .sign = sign_call(kind, seq, x), .kind = kind};
	k.size = gt_dtype_size(x->dtype);
	k.blocked = kind == GT_COLL_REDUCE_SCATTER || kind == GT_COLL_SCATTER;
	k.bytes = x->count * k.size;
	k.staged = k.bytes * (k.blocked ? (size_t)c->world : 1);
	return k;
}

void gt_comm_call_text(const struct gt_comm_call *k, char *buf, size_t size)
{
	snprintf(buf, size, "has not %s %s #%u%s%s (%s)", k->done ? "finished" : "reached", gt_coll_name(k->kind), k->sign.seq,
	         *k->sign.what ? " of " : "", k->sign.what, k->c->name);
}

int gt_comm_call_compare(const struct gt_comm_call *k, const struct gt_coll_call *const *sign, char *buf, size_t size)
{
	for (int r = 1; r < k->c->world; r++) {
		char a[160], b[160];
		if (!memcmp(sign[0], sign[r], sizeof *sign[0]))
			continue;
		describe_call(sign[0], a, sizeof a);
		describe_call(sign[r], b, sizeof b);
		snprintf(buf, size, "rank %d calls %s, but rank %d calls %s (group %s)", k->member[r], b, k->member[0], a, k->c->name);
		return r;
	}
	return -1;
}

/* ---- operands ----------------------------------------------------------------------------------------------------------------------- */
struct gt_span gt_comm_call_part(const struct gt_comm_call *k, int r)
{
	size_t grain = GRAIN / k->size, units = (k->x->count + grain - 1) / grain, world = (size_t)k->c->world;
	size_t begin = units * (size_t)r / world * grain, end = units * ((size_t)r + 1) / world * grain;
	begin = begin < k->x->count ? begin : k->x->count;
	end = end < k->x->count ? end : k->x->count;
	return (struct gt_span){begin * k->size, (end - begin) * k->size};
}

size_t gt_comm_call_stage_in(const struct gt_comm_call *k, size_t at, size_t n, char *to)
{
	bool from_root = k->kind == GT_COLL_BROADCAST || k->kind == GT_COLL_SCATTER;
	size_t m = n * k->size, blocks = k->blocked ? (size_t)k->c->world : 1;
	if (!n || (from_root && k->c->rank != k->x->root))
		return 0;
	for (size_t r = 0; r < blocks; r++)
		memcpy(to + r * m, (const char *)k->x->in + at * k->size + r * k->bytes, m);
	return blocks * m;
}

void gt_comm_call_stage_out(const struct gt_comm_call *k, size_t at, size_t n, char *const *from)
{
	int rank = k->c->rank, world = k->c->world, root = k->x->root;
	size_t m = n * k->size;
	char *to = (char *)k->x->out + at * k->size;
	const void *in[GT_COMM_RANKS];
	switch (k->kind) {
	case GT_COLL_ALL_REDUCE:
	case GT_COLL_REDUCE_SCATTER:
		for (int r = 0; r < world; r++)
			in[r] = from[r] + (k->blocked ? (size_t)rank * m : 0);
		gt_comm_reduce(k->x->op, k->x->dtype)((void *[]){to}, 1, in, world, n);
		return;
	case GT_COLL_GATHER:
		if (rank != root)
			return;
		__attribute__((fallthrough));
	case GT_COLL_ALL_GATHER:
		for (int r = 0; r < world; r++)
			memcpy(to + (size_t)r * k->bytes, from[r], m);
		return;
	case GT_COLL_BROADCAST:
		if (rank != root || (k->x->out && k->x->out != k->x->in))
			memcpy(to, from[root], m);
		return;
	case GT_COLL_SCATTER:
		memcpy(to, from[root] + (size_t)rank * m, m);
		return;
	default:
		return;
	}
}

/* ---- split ------------------------------------------------------------------------------------------------------------------------- */
int gt_split_members(const struct gt_split_request *w, int rank, int world, int of[GT_COMM_RANKS], int *own)
{
	int n = 0;
	for (int r = 0; r < world; r++) {
		if (w[r].color != w[rank].color)
			continue;
		int at = n++;
		for (; at > 0 && w[of[at - 1]].key > w[r].key; at--)
			of[at] = of[at - 1];
		of[at] = r;
	}
	for (int i = 0; i < n; i++)
		*own = of[i] == rank ? i : *own;
	return n;
}

/* ---- messages of exchange() --------------------------------------------------------------------------------------------------------- */
struct gt_p2p_head gt_p2p_sign(const struct gt_p2p *x, uint32_t seq)
{
	struct gt_p2p_head h = {.count = x->count, .seq = seq, .dtype = x->dtype};
	if (x->what)
		strncpy(h.what, x->what, sizeof h.what - 1);
	return h;
}

void gt_p2p_text(const struct gt_p2p_head *h, char *buf, size_t size)
{
	snprintf(buf, size, "%.*s%s#%u (%zu %s)", GT_COLL_WHAT - 1, h->what, *h->what ? " " : "", h->seq, (size_t)h->count,
	         gt_dtype_name((enum gt_dtype)h->dtype));
}

bool gt_p2p_compare(const struct gt_p2p_head *arrived, const struct gt_p2p_head *expected, int from, int to, const char *group, char *buf,
                    size_t size)
{
	char a[96], b[96];
	if (!memcmp(arrived, expected, sizeof *arrived))
		return true;
	gt_p2p_text(arrived, a, sizeof a);
	gt_p2p_text(expected, b, sizeof b);
	snprintf(buf, size, "rank %d sends %s, but rank %d expects to receive %s (group %s)", from, a, to, b, group);
	return false;
}
