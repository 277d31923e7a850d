/* The communicator vtable: the collectives of a group of ranks. One const row a transport: shared memory between processes of one host
 * (gt_comm_shm in cpu.so), gloo's TCP connections across hosts (gt_comm_gloo in gloo.so), later NCCL between GPUs.
 *
 * Life of a group: somebody (the launcher, or rank 0) calls create() once and hands the boot record to every rank: its descriptor by
 * inheritance (clear FD_CLOEXEC in the child), its id over the rendezvous. Every rank calls open() with it, then the same calls in the
 * same order with the same kind, count, dtype, op and root, then close(). A communicator is used by one thread at a time; abort() and
 * check() may be called from any thread.
 *
 * Completion. Where api->async is false (shm, gloo) a call has done its work when it returns and `stream` is ignored. Where it is true
 * (NCCL) the call queues its work on the device's stream: operands stay untouched until the stream has come past it, and failures that
 * come later are told by check(), which whoever waits for the device polls.
 *
 * Failure. Every call has a deadline of spec.timeout_s for each of its exchanges. A rank that dies, closes early, does not come in
 * time, or calls something else makes the call return GT_EPEER with one sentence that names the rank by its number in the group that
 * open() made ("rank 2 has not reached all_reduce #17 of gradients (world) after 30 s"). A rank that is late because it waits for another
 * one is not the one that is named. From the first failure or abort() on, every call on every rank of the group, and of all groups split
 * from it, returns GT_EPEER with that same sentence at once: a group is never repaired; a restarted run makes a new one. A call with
 * invalid arguments (GT_EINTERNAL) is an error of the program; it too breaks the group, because the other ranks are waiting for this one.
 * After a failure the contents of outputs are undefined.
 *
 * Result. The sum (or maximum) of an element x_0 … x_{n-1} over n ranks is formed in one fixed tree, whatever the size, the timing or
 * the place of memory, and every rank gets the same bits:
 *     T(x_0) = x_0;  T(x_0 … x_{n-1}) = T(x_0 … x_{h-1}) + T(x_h … x_{n-1}), h the largest power of two below n.
 * So 8 ranks give ((0+1)+(2+3))+((4+5)+(6+7)), 3 ranks (0+1)+2. Where each of n ranks has added 2^k consecutive shards by the same
 * tree, the result is T of all the shards: it does not depend on n. bf16 and f16 are added in f32 and rounded once, at the end; integers
 * wrap around. The maximum of floats is NaN if one of them is. A transport that cannot keep the tree (NCCL) says fixed_tree = false. */
#ifndef GT_KERNELS_COMM_H
#define GT_KERNELS_COMM_H

#include "base/types.h"

#define GT_COMM_ABI 1
#define GT_COMM_RANKS 64  /* the most in one group of gt_comm_shm */
#define GT_COMM_BATCH 128 /* the most transfers of one exchange() */
#define GT_PAIR_BYTES (1 << 20) /* what gt_comm_spec.pair_bytes = 0 means */

/* X(id, text) */
#define GT_REDUCTIONS(X)    \
	X(GT_REDUCE_SUM, "sum") \
	X(GT_REDUCE_MAX, "max")

enum gt_reduction {
#define GT_X(id, text) id,
	GT_REDUCTIONS(GT_X)
#undef GT_X
	GT_REDUCE_COUNT
};

#define GT_COLLECTIVES(X)                           \
	X(GT_COLL_ALL_REDUCE, "all_reduce")             \
	X(GT_COLL_REDUCE_SCATTER, "reduce_scatter")     \
	X(GT_COLL_ALL_GATHER, "all_gather")             \
	X(GT_COLL_BROADCAST, "broadcast")               \
	X(GT_COLL_GATHER, "gather")                     \
	X(GT_COLL_SCATTER, "scatter")                   \
	X(GT_COLL_BARRIER, "barrier")

enum gt_coll_kind {
#define GT_X(id, text) id,
	GT_COLLECTIVES(GT_X)
#undef GT_X
	GT_COLL_COUNT
};
const char *gt_coll_name(enum gt_coll_kind k); /* "all_reduce" */
const char *gt_reduction_name(enum gt_reduction r);

/* The operands of a collective; may be made before step 0 and used again. Memory of n = world blocks is in the order of the ranks.
 *                     reads in                writes out              in place
 *   all_reduce        count                   count                   in == out
 *   reduce_scatter    n * count               count: block `rank`     out == in + rank * count
 *   all_gather        count                   n * count               in == out + rank * count
 *   broadcast         count, on the root      count, not on the root  in == out
 *   gather            count                   n * count, on the root  in == out + rank * count, on the root
 *   scatter           n * count, on the root  count                   out == in + rank * count, on the root
 * In and out are the same on a rank as above, or do not overlap. What is not read or written on a rank may be NULL there. broadcast on the
 * root copies in to out where they differ and out is given. */
struct gt_coll {
	const char *what; /* for messages: "gradients", at most 31 characters are kept; NULL: none */
	const void *in;
	void *out;
	size_t count;
	enum gt_dtype dtype;
	enum gt_reduction op; /* of all_reduce and reduce_scatter. A mean is a sum that the caller scales */
	int root;
	int stream;
};

/* One transfer of exchange(). */
struct gt_p2p {
	const char *what;
	bool sends;       /* to peer; otherwise receives from it */
	int peer;         /* may be the rank itself, where both ends stand in one call */
	const void *send; /* NULL: only with count 0 */
	void *recv;
	size_t count;
	enum gt_dtype dtype;
};

struct gt_comm_api;

/* The head of every transport's communicator. Read only. */
struct gt_comm {
	const struct gt_comm_api *api;
	int rank, world;
	char name[32]; /* "world", "stage 1" */
};

/* What create() makes and open() takes. The creator closes fd (if >= 0) when every rank has opened it or has failed to. */
struct gt_comm_boot {
	int fd;        /* shm: the segment, close-on-exec; -1: none, or not inherited */
	char id[264];  /* text without a newline: shm: where a process of the same user and host finds the segment without inheriting it; gloo: a
	                * random number, which peers show each other on each connection. Hand it over the rendezvous, not in a command line */
};

struct gt_comm_spec {
	const char *name;   /* for messages; NULL: "world" */
	int rank, world;
	double timeout_s;   /* of each exchange between ranks, opening included; > 0 */
	size_t pair_bytes;  /* what a send may run ahead of its recv, for each pair that is used; 0: GT_PAIR_BYTES. Equal on all ranks */
	const struct gt_comm_boot *boot;
	struct gt_dev *dev; /* whose memory and streams; NULL: host memory */
	struct gt_comm *host; /* for groups of devices: the same ranks joined on their hosts, whose check() ends a wait for queued work; NULL: none */
	/* For transports across hosts (gloo), NULL for the others. exchange: every rank gives n bytes and gets everybody's, all[world * n], over a
	 * channel on which all have proven that they belong to the run (gt_rendezvous_exchange). open() calls it on its own thread, equally often
	 * on every rank, and not after it. addr: where this rank listens, a number or a name of this host that all others reach; NULL: 127.0.0.1. */
	enum gt_code (*exchange)(void *user, const char *key, const void *mine, size_t n, void *all, struct gt_err *err);
	void *user;
	const char *addr;
};

struct gt_comm_api {
	uint32_t abi; /* GT_COMM_ABI */
	const char *name;
	bool async;       /* see Completion */
	bool host_memory; /* operands are host memory (any: what buffer() gave is merely faster) */
	bool fixed_tree;  /* see Result */
	int max_world;    /* 0: no bound */

	/* A new group. Its memory lives as long as a process holds it: nothing stays behind, whoever dies. */
	enum gt_code (*create)(int world, struct gt_comm_boot *out, struct gt_err *err);
	/* Returns when all ranks are there. Takes its own hold of the boot's descriptor. */
	enum gt_code (*open)(const struct gt_comm_spec *spec, struct gt_comm **out, struct gt_err *err);
	/* Local, waits for nobody (gloo: until what it has sent has arrived, at most timeout_s); NULL is fine. Communicators split from it are
	 * closed before it. A rank that closes while another still calls breaks the group for that one. */
	void (*close)(struct gt_comm *c);
	/* Called by all ranks. A group for each color (>= 0; negative: *out = NULL), its ranks in the order of key, then of rank. Breaks
	 * together with the group it comes from. */
	enum gt_code (*split)(struct gt_comm *c, const char *name, int color, int key, struct gt_comm **out, struct gt_err *err);
	/* Called by all ranks; bytes may differ. Zeroed memory of this rank, 64-byte aligned at least, that the transport reaches without a copy
	 * (shm: every rank of the host reads and writes it). It lives until the group that open() made is closed. For use before step 0:
	 * collectives on other memory work too, through a copy. GT_EFAIL: no memory; breaks nothing. */
	enum gt_code (*buffer)(struct gt_comm *c, size_t bytes, void **out, struct gt_err *err);

	enum gt_code (*all_reduce)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*reduce_scatter)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*all_gather)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*broadcast)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*gather)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*scatter)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*barrier)(struct gt_comm *c, int stream, struct gt_err *err); /* all ranks, and on the stream all work before it */

	/* Sends and receives that go on side by side (NCCL: one group call), done when all are done. Transfers between two ranks in one direction
	 * match in their order. A send waits for its recv only once pair_bytes lie unread: opposing transfers larger than that must stand in
	 * one call, or two ranks may wait for each other until the deadline. Not part of the order of the collectives. */
	enum gt_code (*exchange)(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err);

	/* Breaks the group: every rank that waits or calls returns GT_EPEER with "rank R gave up: WHY". */
	void (*abort)(struct gt_comm *c, const char *why);
	/* Does not wait. GT_OK, or GT_EPEER with the sentence of the failure that broke the group (async: also of queued work). */
	enum gt_code (*check)(struct gt_comm *c, struct gt_err *err);
	/* The deadline of this rank's exchanges from now on, in c and all groups that have a root with it; returns what it was. For when the others
	 * know that one of them does something that takes its time. */
	double (*patience)(struct gt_comm *c, double timeout_s);
	/* Optional (NULL: sends need no room). gt_comm_spec.pair_bytes of the groups that are split from here on; the same on all ranks. */
	void (*room)(struct gt_comm *c, size_t pair_bytes);
	/* Optional (NULL: the ranks have no memory in common). Called by all ranks: as buffer(), but one and the same memory for all of c. */
	enum gt_code (*common)(struct gt_comm *c, size_t bytes, void **out, struct gt_err *err);
};

/* One blocking send or recv. */
static inline enum gt_code gt_comm_send(struct gt_comm *c, int peer, const void *p, size_t count, enum gt_dtype t, const char *what,
                                        int stream, struct gt_err *err)
{
	struct gt_p2p x = {.what = what, .sends = true, .peer = peer, .send = p, .count = count, .dtype = t};
	return c->api->exchange(c, &x, 1, stream, err);
}

static inline enum gt_code gt_comm_recv(struct gt_comm *c, int peer, void *p, size_t count, enum gt_dtype t, const char *what, int stream,
                                        struct gt_err *err)
{
	struct gt_p2p x = {.what = what, .peer = peer, .recv = p, .count = count, .dtype = t};
	return c->api->exchange(c, &x, 1, stream, err);
}

/* For transports: GT_EINTERNAL with a sentence where the operands are not as the table of struct gt_coll wants them. */
enum gt_code gt_coll_check(const struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err);
enum gt_code gt_p2p_check(const struct gt_comm *c, const struct gt_p2p *list, int n, struct gt_err *err);

/* What a rank calls, as it tells the others, so that all can compare. Made of a call with gt_coll_told(), zero where the kind has no use for a
 * field; equal calls are equal bytes. */
#define GT_COLL_WHAT 32
struct gt_coll_call {
	uint64_t count;
	uint32_t seq; /* of the group's collectives */
	uint8_t kind, dtype, op, root;
	char what[GT_COLL_WHAT];
};
struct gt_coll_call gt_coll_told(enum gt_coll_kind kind, uint32_t seq, const struct gt_coll *x);
void gt_coll_text(const struct gt_coll_call *c, char *buf, size_t size); /* "all_reduce #17 of gradients (1000 f32, sum)" */
bool gt_coll_reduces(enum gt_coll_kind k);
bool gt_coll_rooted(enum gt_coll_kind k);

#endif
