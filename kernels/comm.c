/* Functions that all communicators of comm.h share: names, and the checks of operands. */
#include "comm.h"
#include <stdio.h>
#include <string.h>

const char *gt_coll_name(enum gt_coll_kind k)
{
	static const char *const name[] = {
#define GT_X(id, text) text,
		GT_COLLECTIVES(GT_X)
#undef GT_X
	};
	return (unsigned)k < GT_COLL_COUNT ? name[k] : "?";
}

const char *gt_reduction_name(enum gt_reduction r)
{
	static const char *const name[] = {
#define GT_X(id, text) text,
		GT_REDUCTIONS(GT_X)
#undef GT_X
	};
	return (unsigned)r < GT_REDUCE_COUNT ? name[r] : "?";
}

static bool ranges_overlap(const void *a, size_t na, const void *b, size_t nb)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
	return na && nb && x < y + nb && y < x + na;
}

enum gt_code gt_coll_check(const struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err)
{
	const char *name = gt_coll_name(kind), *what = x->what ? x->what : "unnamed data";
	if ((unsigned)x->dtype >= GT_DTYPE_COUNT)
		return gt_fail(err, GT_EINTERNAL, "%s of %s: %d is not a valid data type", name, what, (int)x->dtype);
	bool root = x->root == c->rank, many_in = false, many_out = false, reads = true, writes = true, reduces = false, rooted = true;
	switch (kind) {
	case GT_COLL_ALL_REDUCE: reduces = true, rooted = false; break;
	case GT_COLL_REDUCE_SCATTER: reduces = many_in = true, rooted = false; break;
	case GT_COLL_ALL_GATHER: many_out = true, rooted = false; break;
	case GT_COLL_BROADCAST: reads = root, writes = !root || (x->out && x->out != x->in); break;
	case GT_COLL_GATHER: many_out = true, writes = root; break;
	case GT_COLL_SCATTER: many_in = true, reads = root; break;
	default: return GT_OK;
	}
	size_t size = gt_dtype_size(x->dtype), one, all;
	if (__builtin_mul_overflow(x->count, size, &one) || __builtin_mul_overflow(one, (size_t)c->world, &all))
		return gt_fail(err, GT_EINTERNAL, "%s of %s: %zu elements per rank are too many", name, what, x->count);
	if (rooted && (x->root < 0 || x->root >= c->world))
		return gt_fail(err, GT_EINTERNAL, "%s of %s: the root is rank %d, but the group has only %d ranks", name, what, x->root, c->world);
	if (reduces && (unsigned)x->op >= GT_REDUCE_COUNT)
		return gt_fail(err, GT_EINTERNAL, "%s of %s: %d is not a valid reduction", name, what, (int)x->op);
	if (one && ((reads && !x->in) || (writes && !x->out)))
		return gt_fail(err, GT_EINTERNAL, "%s of %s: rank %d passes no %s", name, what, c->rank, reads && !x->in ? "input" : "output");
	if (!reads || !writes)
		return GT_OK;
	const char *own_in = (const char *)x->in + (many_in ? one * (size_t)c->rank : 0);
	const char *own_out = (const char *)x->out + (many_out ? one * (size_t)c->rank : 0);
	if (own_in != own_out && ranges_overlap(x->in, many_in ? all : one, x->out, many_out ? all : one))
		return gt_fail(err, GT_EINTERNAL, "%s of %s: input and output overlap, but are not the same buffer", name, what);
	return GT_OK;
}

enum gt_code gt_p2p_check(const struct gt_comm *c, const struct gt_p2p *list, int n, struct gt_err *err)
{
	if (n < 0 || n > GT_COMM_BATCH)
		return gt_fail(err, GT_EINTERNAL, "exchange: %d transfers in one call, but at most %d are allowed", n, GT_COMM_BATCH);
	for (int i = 0; i < n; i++) {
		const struct gt_p2p *x = &list[i];
		size_t bytes;
		if (x->peer < 0 || x->peer >= c->world)
			return gt_fail(err, GT_EINTERNAL, "exchange: transfer %d: the peer is rank %d, but the group has only %d ranks",
			               i, x->peer, c->world);
		if ((unsigned)x->dtype >= GT_DTYPE_COUNT || __builtin_mul_overflow(x->count, gt_dtype_size(x->dtype), &bytes))
			return gt_fail(err, GT_EINTERNAL, "exchange: transfer %d: the data type or the number of elements is invalid", i);
		if (x->count && !(x->sends ? x->send : x->recv))
			return gt_fail(err, GT_EINTERNAL, "exchange: transfer %d: the buffer is NULL", i);
	}
	return GT_OK;
}

bool gt_coll_reduces(enum gt_coll_kind k)
{
	return k == GT_COLL_ALL_REDUCE || k == GT_COLL_REDUCE_SCATTER;
}
