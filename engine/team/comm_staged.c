#include "team/comm_staged.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

struct staged {
	struct gt_comm pub;
	struct gt_comm *inner;
	const struct gt_backend *be;
	struct gt_dev *dev;
	char *stage; /* host memory for collectives, allocated by the inner communicator */
	size_t size;
	char *pack; /* host memory for transfers; it grows in the first step */
	size_t pack_size;
};

static struct staged *staged_of(struct gt_comm *c)
{
	return (struct staged *)c;
}

/* Provides `bytes` of staging memory. All ranks request the same size in the same call. The inner communicator keeps old memory until it
 * closes, so the size doubles each time. */
static enum gt_code reserve_stage(struct staged *s, size_t bytes, struct gt_err *err)
{
	size_t size = s->size ? s->size : (size_t)64 << 10;
	void *p;
	if (bytes <= s->size)
		return GT_OK;
	while (size < bytes)
		size *= 2;
	GT_TRY(s->inner->api->buffer(s->inner, size, &p, err));
	s->stage = p;
	s->size = size;
	return GT_OK;
}

static enum gt_code copy_to_host(struct staged *s, void *host, const void *device, size_t bytes, int stream, struct gt_err *err)
{
	return bytes && device ? s->be->copy(s->dev, host, device, bytes, GT_COPY_D2H, stream, err) : GT_OK;
}

static enum gt_code copy_to_device(struct staged *s, void *device, const void *host, size_t bytes, int stream, struct gt_err *err)
{
	return bytes && device ? s->be->copy(s->dev, device, host, bytes, GT_COPY_H2D, stream, err) : GT_OK;
}

typedef enum gt_code collective(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);

/* Runs a collective on staging memory, which holds the input and, after it, the output. */
static enum gt_code run_on_stage(struct staged *s, collective *fn, const struct gt_coll *x, size_t nin, size_t nout, struct gt_err *err)
{
	size_t bytes = x->count * gt_dtype_size(x->dtype);
	struct gt_coll y = *x;
	GT_TRY(reserve_stage(s, (nin + nout) * bytes, err));
	y.in = nin ? s->stage : NULL;
	y.out = nout ? s->stage + nin * bytes : NULL;
	GT_TRY(copy_to_host(s, s->stage, x->in, nin * bytes, x->stream, err));
	GT_TRY(fn(s->inner, &y, err));
	return copy_to_device(s, x->out, s->stage + nin * bytes, nout * bytes, x->stream, err);
}

static enum gt_code staged_all_reduce(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	struct staged *s = staged_of(c);
	size_t bytes = x->count * gt_dtype_size(x->dtype);
	struct gt_coll y = *x;
	GT_TRY(gt_coll_check(c, GT_COLL_ALL_REDUCE, x, err));
	GT_TRY(reserve_stage(s, bytes, err));
	y.in = y.out = s->stage;
	GT_TRY(copy_to_host(s, s->stage, x->in, bytes, x->stream, err));
	GT_TRY(s->inner->api->all_reduce(s->inner, &y, err));
	return copy_to_device(s, x->out, s->stage, bytes, x->stream, err);
}

static enum gt_code staged_reduce_scatter(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	GT_TRY(gt_coll_check(c, GT_COLL_REDUCE_SCATTER, x, err));
	return run_on_stage(staged_of(c), staged_of(c)->inner->api->reduce_scatter, x, (size_t)c->world, 1, err);
}

static enum gt_code staged_all_gather(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	GT_TRY(gt_coll_check(c, GT_COLL_ALL_GATHER, x, err));
	return run_on_stage(staged_of(c), staged_of(c)->inner->api->all_gather, x, 1, (size_t)c->world, err);
}

static enum gt_code staged_broadcast(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	struct staged *s = staged_of(c);
	size_t bytes = x->count * gt_dtype_size(x->dtype);
	bool root = c->rank == x->root;
	struct gt_coll y = *x;
	GT_TRY(gt_coll_check(c, GT_COLL_BROADCAST, x, err));
	GT_TRY(reserve_stage(s, bytes, err));
	y.in = y.out = s->stage;
	if (root)
		GT_TRY(copy_to_host(s, s->stage, x->in, bytes, x->stream, err));
	GT_TRY(s->inner->api->broadcast(s->inner, &y, err));
	return !root || (x->out && x->out != x->in) ? copy_to_device(s, x->out, s->stage, bytes, x->stream, err) : GT_OK;
}

static enum gt_code staged_gather(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	GT_TRY(gt_coll_check(c, GT_COLL_GATHER, x, err));
	return run_on_stage(staged_of(c), staged_of(c)->inner->api->gather, x, 1, c->rank == x->root ? (size_t)c->world : 0, err);
}

static enum gt_code staged_scatter(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	GT_TRY(gt_coll_check(c, GT_COLL_SCATTER, x, err));
	return run_on_stage(staged_of(c), staged_of(c)->inner->api->scatter, x, c->rank == x->root ? (size_t)c->world : 0, 1, err);
}

static enum gt_code staged_barrier(struct gt_comm *c, int stream, struct gt_err *err)
{
	struct staged *s = staged_of(c);
	GT_TRY(s->be->sync(s->dev, stream, err));
	return s->inner->api->barrier(s->inner, 0, err);
}

/* Runs transfers. Ranks send and receive different amounts, so this staging memory belongs to the rank, not to the communicator. */
static enum gt_code staged_exchange(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err)
{
	struct staged *s = staged_of(c);
	struct gt_p2p host[GT_COMM_BATCH] = {0};
	size_t total = 0, at = 0;
	GT_TRY(gt_p2p_check(c, list, n, err));
	for (int i = 0; i < n; i++)
		total += list[i].count * gt_dtype_size(list[i].dtype);
	if (total > s->pack_size) {
		free(s->pack);
		s->pack_size = 0;
		if (!(s->pack = malloc(total)))
			return gt_fail_memory(err, total);
		s->pack_size = total;
	}
	char *memory = s->pack;
	enum gt_code code = GT_OK;
	for (int i = 0; i < n && code == GT_OK; i++) {
		size_t bytes = list[i].count * gt_dtype_size(list[i].dtype);
		host[i] = list[i];
		host[i].send = host[i].recv = memory + at;
		if (list[i].sends)
			code = copy_to_host(s, memory + at, list[i].send, bytes, stream, err);
		at += bytes;
	}
	if (code == GT_OK)
		code = s->inner->api->exchange(s->inner, host, n, 0, err);
	at = 0;
	for (int i = 0; i < n && code == GT_OK; i++) {
		size_t bytes = list[i].count * gt_dtype_size(list[i].dtype);
		if (!list[i].sends)
			code = copy_to_device(s, list[i].recv, memory + at, bytes, stream, err);
		at += bytes;
	}
	return code;
}

static void staged_close(struct gt_comm *c)
{
	free(staged_of(c)->pack);
	free(c);
}

static void staged_abort(struct gt_comm *c, const char *why)
{
	staged_of(c)->inner->api->abort(staged_of(c)->inner, why);
}

static enum gt_code staged_check(struct gt_comm *c, struct gt_err *err)
{
	return staged_of(c)->inner->api->check(staged_of(c)->inner, err);
}

static double staged_set_timeout(struct gt_comm *c, double timeout_s)
{
	return staged_of(c)->inner->api->set_timeout(staged_of(c)->inner, timeout_s);
}

enum gt_code gt_comm_staged_open(struct gt_comm *inner, const struct gt_backend *be, struct gt_dev *dev, struct gt_comm **out,
                                 struct gt_err *err)
{
	static const struct gt_comm_api api = {.abi = GT_COMM_ABI,
	                                       .name = "host-staged",
	                                       .fixed_tree = true,
	                                       .close = staged_close,
	                                       .all_reduce = staged_all_reduce,
	                                       .reduce_scatter = staged_reduce_scatter,
	                                       .all_gather = staged_all_gather,
	                                       .broadcast = staged_broadcast,
	                                       .gather = staged_gather,
	                                       .scatter = staged_scatter,
	                                       .barrier = staged_barrier,
	                                       .exchange = staged_exchange,
	                                       .abort = staged_abort,
	                                       .check = staged_check,
	                                       .set_timeout = staged_set_timeout};
	struct staged *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!inner->api->fixed_tree || !inner->api->host_memory) {
		free(s);
		return gt_fail(err, GT_EINTERNAL, "host staging: expected a communicator that reduces host memory in a fixed order, got %s",
		               inner->api->name);
	}
	if (!s)
		return gt_fail_memory(err, sizeof *s);
	*s = (struct staged){.pub = *inner, .inner = inner, .be = be, .dev = dev};
	s->pub.api = &api;
	*out = &s->pub;
	return GT_OK;
}
