/* The communicator between GPUs: NCCL (docs.nvidia.com/deeplearning/nccl, 2.28) with one GPU per rank. Work is queued on the device's
 * streams and can be captured in a graph. For more than two ranks, NCCL adds in its own order (fixed_tree = false). The maximum of a NaN
 * and a number may be either of them.
 *
 * The library is opened with the first group. Its communicators do not block (ncclConfig_t.blocking = 0), so that every call except the
 * abort has a deadline. Queued work has a deadline too: while the host waits for a stream (gt_cuda_finish), check_queued_work() asks for
 * errors of the group and of the hosts' group, which detects a rank that died. After the deadline, check_queued_work() aborts the groups,
 * which ends their kernels. */
#include "base/clock.h"
#include "comm_call.h"
#include "cuda/nccl_lib.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct block { /* a block of memory that allocate_buffer() returned */
	struct block *next;
	void *p;
	struct group *group; /* the group with which the block is registered */
	void *handle;        /* handle of the registration; NULL: none */
};

/* The state that the first group shares with all groups that are split from it. */
struct root {
	struct gt_nccl nccl;
	struct gt_dev *dev;
	double timeout_s;
	void *token;        /* four bytes of device memory, for barriers */
	struct block *blocks;
	struct group *groups;     /* list of all groups that share this root */
	struct gt_comm *host;     /* communicator of the same ranks on host memory, whose failures end the groups; NULL: none */
	struct gt_cuda_watch watch;
	_Atomic int broken; /* 0: no failure; 1: a thread is writing why; 2: why is complete */
	char why[640];
};

struct group {
	struct gt_comm pub;
	struct root *root;
	ncclComm_t comm;
	struct group *next; /* next group in the root's list */
	bool split;
};

static struct group *group_of(struct gt_comm *c)
{
	return (struct group *)c;
}

extern const struct gt_comm_api gt_comm_nccl;

/* ---- failures -------------------------------------------------------------------------------------------------------------------- */
static enum gt_code report_failure(struct root *r, struct gt_err *err)
{
	while (atomic_load(&r->broken) == 1)
		;
	return gt_fail(err, GT_EPEER, "%s", r->why);
}

/* Aborts all groups, which ends kernels that wait for other ranks. Only the thread that uses the groups may call this function, so that no
 * other thread is inside an NCCL call with them. Whatever ncclConfig_t.blocking is, ncclCommAbort blocks until - no graph with captured
 * calls of the communicator exists (commDestroySync in NCCL's source), so these graphs are destroyed first;
 * - the device is idle, because the abort frees device memory. All aborts are in one NCCL group, which sets the abort flags of all
 *   communicators before it waits for any of them.
 * After an error that makes every CUDA call fail, neither condition can become true, so the communicators are not aborted. The process ends
 * soon. */
static void abort_groups(struct root *r)
{
	bool any = false;
	for (struct group *g = r->groups; g; g = g->next)
		any |= g->comm != NULL;
	if (!any)
		return;
	gt_cuda_drop_graphs(r->dev);
	bool grouped = !r->dev->lost && r->nccl.ncclGroupStart() == ncclSuccess;
	for (struct group *g = r->groups; g; g = g->next) {
		if (g->comm && !r->dev->lost)
			r->nccl.ncclCommAbort(g->comm);
		g->comm = NULL;
	}
	if (grouped)
		r->nccl.ncclGroupEnd();
}

/* Records that the groups are broken and why. All later calls report the first recorded failure. Any thread may call this. */
static void record_failure(struct root *r, const char *why)
{
	int whole = 0;
	if (!atomic_compare_exchange_strong(&r->broken, &whole, 1))
		return;
	snprintf(r->why, sizeof r->why, "%.*s", (int)sizeof r->why - 1, why);
	atomic_store(&r->broken, 2);
}

static enum gt_code fail_groups(struct group *g, struct gt_err *err, const char *what, const char *why)
{
	char text[sizeof g->root->why];
	snprintf(text, sizeof text, "rank %d: %s (%s): %.500s", g->pub.rank, what, g->pub.name, why);
	record_failure(g->root, text);
	abort_groups(g->root);
	return report_failure(g->root, err);
}

static enum gt_code fail_with_status(struct group *g, ncclResult_t status, const char *what, struct gt_err *err)
{
	char why[400];
	const char *more = g->root->nccl.ncclGetLastError(g->comm);
	snprintf(why, sizeof why, "%s%s%.300s", g->root->nccl.ncclGetErrorString(status), more && *more ? ": " : "", more ? more : "");
	for (char *p = why; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
	return fail_groups(g, err, what, why);
}

/* Waits until NCCL's threads have finished a non-blocking call, which returned `status`. */
static enum gt_code finish_call(struct group *g, ncclResult_t status, const char *what, struct gt_err *err)
{
	double deadline = gt_clock() + g->root->timeout_s;
	while (status == ncclInProgress) {
		if (atomic_load(&g->root->broken)) {
			abort_groups(g->root);
			return report_failure(g->root, err);
		}
		ncclResult_t asked = g->root->nccl.ncclCommGetAsyncError(g->comm, &status);
		if (asked != ncclSuccess)
			status = asked;
		if (status == ncclInProgress)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		if (status == ncclInProgress && gt_clock() > deadline) {
			char why[64];
			snprintf(why, sizeof why, "not finished after %g s", g->root->timeout_s);
			return fail_groups(g, err, what, why);
		}
	}
	return status == ncclSuccess ? GT_OK : fail_with_status(g, status, what, err);
}

/* The callback of struct gt_cuda_watch, which checks for failures while the host waits for a stream. */
static enum gt_code check_queued_work(void *user, double waited_s, struct gt_err *err)
{
	struct root *r = user;
	struct gt_err why = {0};
	if (!atomic_load(&r->broken) && r->host && r->host->api->check(r->host, &why) != GT_OK)
		record_failure(r, why.msg);
	for (struct group *g = r->groups; g && !atomic_load(&r->broken); g = g->next) {
		ncclResult_t status = ncclSuccess, asked = g->comm ? r->nccl.ncclCommGetAsyncError(g->comm, &status) : ncclSuccess;
		if (asked != ncclSuccess || (status != ncclSuccess && status != ncclInProgress))
			return fail_with_status(g, asked != ncclSuccess ? asked : status, "queued work", err);
	}
	if (!atomic_load(&r->broken) && waited_s > r->timeout_s) {
		snprintf(why.msg, sizeof why.msg,
		         "queued work is not finished after %g s: a rank of this group has ended or has not reached this work", r->timeout_s);
		record_failure(r, why.msg);
	}
	if (!atomic_load(&r->broken))
		return GT_OK;
	abort_groups(r);
	return report_failure(r, err);
}

static void add_group(struct group *g)
{
	g->next = g->root->groups;
	g->root->groups = g;
}

static void remove_group(struct group *g)
{
	struct group **at = &g->root->groups;
	while (*at && *at != g)
		at = &(*at)->next;
	if (*at)
		*at = g->next;
}

/* ---- groups ---------------------------------------------------------------------------------------------------------------------- */
static void close_group(struct gt_comm *c)
{
	struct group *g = group_of(c);
	if (!g)
		return;
	struct root *r = g->root;
	if (atomic_load(&r->broken) || r->dev->lost)
		abort_groups(r);
	/* ncclCommDestroy and ncclCommAbort can return before a thread of NCCL has ended the communicator and its registrations. So
	 * registrations are ended first, and memory that an aborted communicator has registered is not freed (the process ends soon). */
	for (struct block *b = r->blocks; b; b = b->next)
		if (g->comm && b->group == g && b->handle && r->nccl.ncclCommDeregister(g->comm, b->handle) == ncclSuccess)
			b->handle = NULL;
	if (g->comm && r->nccl.ncclCommFinalize(g->comm) == ncclInProgress)
		finish_call(g, ncclInProgress, "the end", NULL);
	if (g->comm)
		r->nccl.ncclCommDestroy(g->comm);
	remove_group(g);
	if (!g->split) {
		gt_cuda_unwatch(r->dev, &r->watch);
		for (struct block *b = r->blocks, *next; b; b = next) {
			next = b->next;
			if (!b->handle)
				r->nccl.ncclMemFree(b->p);
			free(b);
		}
		if (r->token)
			gt_cuda_free(r->dev, r->token);
		free(r);
	}
	free(g);
}

/* GTRAIN_NCCL_BLOCKING selects blocking communicators, for tests on GPUs (tests/gpu/README.md). Their calls have no deadline. */
static int is_blocking(void)
{
	return getenv("GTRAIN_NCCL_BLOCKING") != NULL;
}

static enum gt_code open_group(const struct gt_comm_spec *spec, struct gt_comm **out, struct gt_err *err)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct root *r = calloc(1, sizeof *r);
	struct group *g = calloc(1, sizeof *g);
	ncclUniqueId id;
	*out = NULL;
	if (!r || !g || !spec->dev || !spec->boot || !(spec->timeout_s > 0)) {
		bool memory = !r || !g;
		free(r);
		free(g);
		return memory ? gt_fail(err, GT_EFAIL, "out of memory") : gt_fail(err, GT_EINTERNAL, "an NCCL group needs a device, an id and a "
		                                                                  "timeout");
	}
	r->dev = spec->dev;
	r->timeout_s = spec->timeout_s;
	r->host = spec->host;
	r->watch = (struct gt_cuda_watch){.look = check_queued_work, .user = r};
	g->root = r;
	add_group(g);
	g->pub = (struct gt_comm){.api = &gt_comm_nccl, .rank = spec->rank, .world = spec->world};
	snprintf(g->pub.name, sizeof g->pub.name, "%s", spec->name ? spec->name : "world");
	config.blocking = is_blocking();
	enum gt_code code = gt_nccl_parse(spec->boot, &id, err);
	if (code == GT_OK)
		code = gt_nccl_load(&r->nccl, err);
	if (code == GT_OK)
		code = gt_cuda_use(r->dev, err);
	if (code == GT_OK)
		code = gt_cuda_alloc(r->dev, sizeof(uint32_t), &r->token, err);
	if (code == GT_OK)
		code =
		    finish_call(g, r->nccl.ncclCommInitRankConfig(&g->comm, spec->world, id, spec->rank, &config), "opening a group of GPUs", err);
	if (code != GT_OK) {
		close_group(&g->pub);
		return code;
	}
	gt_cuda_watch(r->dev, &r->watch);
	*out = &g->pub;
	return GT_OK;
}

/* Prepares a call: checks that the group is intact, and selects its device for the calling thread. */
static enum gt_code prepare_call(struct group *g, struct gt_err *err)
{
	if (atomic_load(&g->root->broken)) {
		abort_groups(g->root);
		return report_failure(g->root, err);
	}
	return gt_cuda_use(g->root->dev, err);
}

/* Splits a group: gathers the colors and keys of all ranks through the device, computes the new rank and size, and opens the new
 * communicator. Ranks with a negative color take part and get no group. */
static enum gt_code split_group(struct gt_comm *c, const char *name, int color, int key, struct gt_comm **out, struct gt_err *err)
{
	struct group *g = group_of(c), *n = calloc(1, sizeof *n);
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	*out = NULL;
	if (!n)
		return gt_fail(err, GT_EFAIL, "out of memory");
	config.blocking = is_blocking();
	n->root = g->root;
	n->split = true;
	n->pub.api = c->api;
	snprintf(n->pub.name, sizeof n->pub.name, "%s", name);
	/* collects the colors and keys of all ranks, which give the rank and size of the new group */
	int64_t own[2] = {color, key}, *all = NULL;
	void *dev = NULL;
	enum gt_code code = prepare_call(g, err);
	if (code == GT_OK)
		code = gt_cuda_alloc(g->root->dev, (size_t)(c->world + 1) * sizeof own, &dev, err);
	if (code == GT_OK && !(all = malloc((size_t)c->world * sizeof own)))
		code = gt_fail(err, GT_EFAIL, "out of memory");
	cudaStream_t s;
	if (code == GT_OK)
		code = gt_cuda_stream(g->root->dev, 0, &s, err);
	if (code == GT_OK) {
		char *mine = (char *)dev + (size_t)c->world * sizeof own;
		if (cudaMemcpyAsync(mine, own, sizeof own, cudaMemcpyHostToDevice, s) != cudaSuccess)
			code = fail_groups(g, err, "split", "a copy failed");
		if (code == GT_OK)
			code = finish_call(g, g->root->nccl.ncclAllGather(mine, dev, 2, ncclInt64, g->comm, s), "split", err);
		if (code == GT_OK)
			code = gt_cuda_finish(g->root->dev, s, NULL, err);
		if (code == GT_OK && cudaMemcpyAsync(all, dev, (size_t)c->world * sizeof own, cudaMemcpyDeviceToHost, s) != cudaSuccess)
			code = fail_groups(g, err, "split", "a copy failed");
		if (code == GT_OK)
			code = gt_cuda_finish(g->root->dev, s, NULL, err);
	}
	for (int i = 0; code == GT_OK && i < c->world; i++) {
		if (all[2 * i] != color)
			continue;
		n->pub.world++;
		n->pub.rank += all[2 * i + 1] < key || (all[2 * i + 1] == key && i < c->rank);
	}
	add_group(n);
	if (code == GT_OK)
		code = finish_call(g, g->root->nccl.ncclCommSplit(g->comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &n->comm, &config), "split",
		                   err);
	if (code == GT_OK && color >= 0)
		code = finish_call(n, ncclInProgress, "split", err);
	free(all);
	if (dev)
		gt_cuda_free(g->root->dev, dev);
	if (code != GT_OK || color < 0) {
		remove_group(n);
		free(n);
	} else {
		*out = &n->pub;
	}
	return code;
}

static enum gt_code allocate_buffer(struct gt_comm *c, size_t bytes, void **out, struct gt_err *err)
{
	struct group *g = group_of(c);
	struct block *b = calloc(1, sizeof *b);
	*out = NULL;
	if (!b)
		return gt_fail(err, GT_EFAIL, "out of memory");
	enum gt_code code = prepare_call(g, err);
	bytes = bytes ? bytes : 1;
	if (code == GT_OK && g->root->nccl.ncclMemAlloc(&b->p, bytes) != ncclSuccess)
		code = gt_fail(err, GT_EFAIL, "%s: out of memory: %zu bytes", g->root->dev->id, bytes);
	if (code != GT_OK) {
		free(b);
		return code;
	}
	b->group = g;
	b->next = g->root->blocks;
	g->root->blocks = b;
	cudaStream_t s;
	GT_TRY(gt_cuda_stream(g->root->dev, 0, &s, err));
	if (cudaMemsetAsync(b->p, 0, bytes, s) != cudaSuccess)
		return gt_fail(err, GT_EFAIL, "%s: cannot clear %zu bytes", g->root->dev->id, bytes);
	GT_TRY(gt_cuda_finish(g->root->dev, s, NULL, err));
	GT_TRY(finish_call(g, g->root->nccl.ncclCommRegister(g->comm, b->p, bytes, &b->handle), "registering a buffer", err));
	*out = b->p;
	return GT_OK;
}

/* ---- collectives ----------------------------------------------------------------------------------------------------------------- */
static ncclDataType_t type_of(enum gt_dtype t)
{
	switch (t) {
	case GT_F32: return ncclFloat32;
	case GT_F64: return ncclFloat64;
	case GT_F16: return ncclFloat16;
	case GT_BF16: return ncclBfloat16;
	case GT_I32: return ncclInt32;
	case GT_I64: return ncclInt64;
	default: return ncclUint8;
	}
}

static ncclRedOp_t op_of(enum gt_reduction r)
{
	return r == GT_REDUCE_MAX ? ncclMax : ncclSum;
}

static enum gt_code begin_collective(struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, cudaStream_t *s,
                                     struct gt_err *err)
{
	enum gt_code code = gt_coll_check(c, kind, x, err);
	if (code != GT_OK)
		return fail_groups(group_of(c), err, gt_coll_name(kind), err ? err->msg : "the operands are invalid");
	GT_TRY(prepare_call(group_of(c), err));
	return gt_cuda_stream(group_of(c)->root->dev, x->stream, s, err);
}

/* Moves blocks between the root and every rank, the root included, in one group of sends and receives. */
static enum gt_code move_blocks(struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err)
{
	struct group *g = group_of(c);
	const struct gt_nccl *l = &g->root->nccl;
	bool gathers = kind == GT_COLL_GATHER, root = c->rank == x->root;
	size_t bytes = x->count * gt_dtype_size(x->dtype);
	ncclResult_t status = ncclSuccess;
	cudaStream_t s;
	GT_TRY(begin_collective(c, kind, x, &s, err));
	const char *many_in = x->in;
	char *many_out = x->out;
	GT_TRY(finish_call(g, l->ncclGroupStart(), gt_coll_name(kind), err));
	for (int i = 0; root && i < c->world && (status == ncclSuccess || status == ncclInProgress); i++) {
		if (i == c->rank)
			continue;
		status = gathers ? l->ncclRecv(many_out + (size_t)i * bytes, bytes, ncclUint8, i, g->comm, s)
		                 : l->ncclSend(many_in + (size_t)i * bytes, bytes, ncclUint8, i, g->comm, s);
	}
	if (!root)
		status = gathers ? l->ncclSend(x->in, bytes, ncclUint8, x->root, g->comm, s)
		                 : l->ncclRecv(x->out, bytes, ncclUint8, x->root, g->comm, s);
	ncclResult_t ended = l->ncclGroupEnd();
	GT_TRY(finish_call(g, status == ncclSuccess || status == ncclInProgress ? ended : status, gt_coll_name(kind), err));
	const char *from = gathers ? many_in : many_in ? many_in + (size_t)c->rank * bytes : NULL;
	char *to = gathers ? many_out ? many_out + (size_t)c->rank * bytes : NULL : many_out;
	if (root && from != to && bytes && cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s) != cudaSuccess)
		return fail_groups(g, err, gt_coll_name(kind), "a copy failed");
	return GT_OK;
}

static enum gt_code run_collective(struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err)
{
	struct group *g = group_of(c);
	const struct gt_nccl *l = &g->root->nccl;
	ncclResult_t status;
	ncclDataType_t type = type_of(x->dtype);
	cudaStream_t s;
	if (kind == GT_COLL_GATHER || kind == GT_COLL_SCATTER)
		return move_blocks(c, kind, x, err);
	GT_TRY(begin_collective(c, kind, x, &s, err));
	switch (kind) {
	case GT_COLL_ALL_REDUCE: status = l->ncclAllReduce(x->in, x->out, x->count, type, op_of(x->op), g->comm, s); break;
	case GT_COLL_REDUCE_SCATTER: status = l->ncclReduceScatter(x->in, x->out, x->count, type, op_of(x->op), g->comm, s); break;
	case GT_COLL_ALL_GATHER: status = l->ncclAllGather(x->in, x->out, x->count, type, g->comm, s); break;
	case GT_COLL_BROADCAST: {
		bool root = c->rank == x->root;
		void *out = root && !x->out ? (void *)(uintptr_t)x->in : x->out;
		status = l->ncclBroadcast(root ? x->in : out, out, x->count, type, x->root, g->comm, s);
		break;
	}
	default: status = l->ncclAllReduce(g->root->token, g->root->token, 1, ncclInt32, ncclMax, g->comm, s); /* GT_COLL_BARRIER */
	}
	return finish_call(g, status, gt_coll_name(kind), err);
}
GT_COLLECTIVE_FUNCTIONS(run_collective)

static enum gt_code exchange_messages(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err)
{
	struct group *g = group_of(c);
	const struct gt_nccl *l = &g->root->nccl;
	ncclResult_t status = ncclSuccess;
	cudaStream_t s;
	enum gt_code code = gt_p2p_check(c, list, n, err);
	if (code != GT_OK)
		return fail_groups(g, err, "exchange", err ? err->msg : "the operands are invalid");
	GT_TRY(prepare_call(g, err));
	GT_TRY(gt_cuda_stream(g->root->dev, stream, &s, err));
	GT_TRY(finish_call(g, l->ncclGroupStart(), "exchange", err));
	for (int i = 0; i < n && (status == ncclSuccess || status == ncclInProgress); i++) {
		const struct gt_p2p *t = &list[i];
		status = t->sends ? l->ncclSend(t->send, t->count, type_of(t->dtype), t->peer, g->comm, s)
		                  : l->ncclRecv(t->recv, t->count, type_of(t->dtype), t->peer, g->comm, s);
	}
	ncclResult_t ended = l->ncclGroupEnd();
	return finish_call(g, status == ncclSuccess || status == ncclInProgress ? ended : status, "exchange", err);
}

/* ---- abort, check and deadlines ----------------------------------------------------------------------------------------------------- */
/* Implements gt_comm_api.abort. Any thread may call it; the thread that uses the groups aborts them in its next call. */
static void request_abort(struct gt_comm *c, const char *why)
{
	char text[640];
	snprintf(text, sizeof text, "rank %d gave up: %.500s", c->rank, why);
	record_failure(group_of(c)->root, text);
}

static enum gt_code check_group(struct gt_comm *c, struct gt_err *err)
{
	struct group *g = group_of(c);
	ncclResult_t status = ncclSuccess;
	if (atomic_load(&g->root->broken))
		return report_failure(g->root, err);
	ncclResult_t asked = g->root->nccl.ncclCommGetAsyncError(g->comm, &status);
	if (asked == ncclSuccess && (status == ncclSuccess || status == ncclInProgress))
		return GT_OK;
	return fail_with_status(g, asked != ncclSuccess ? asked : status, "queued work", err);
}

static double set_timeout(struct gt_comm *c, double timeout_s)
{
	double was = group_of(c)->root->timeout_s;
	group_of(c)->root->timeout_s = timeout_s;
	return was;
}

__attribute__((visibility("default"))) const struct gt_comm_api gt_comm_nccl = {
    .abi = GT_COMM_ABI,
    .name = "nccl",
    .async = true,
    .create = gt_nccl_create,
    .open = open_group,
    .close = close_group,
    .split = split_group,
    .buffer = allocate_buffer,
    GT_COLLECTIVE_MEMBERS,
    .exchange = exchange_messages,
    .abort = request_abort,
    .check = check_group,
    .set_timeout = set_timeout,
};
