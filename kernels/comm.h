/* The communicator interface: collectives and point-to-point transfers between the ranks of a group. Each transport provides one const
 * gt_comm_api: gt_comm_shm in cpu.so (shared memory between the processes of one host), gt_comm_gloo in gloo.so (TCP connections between
 * hosts), gt_comm_nccl in cuda.so (NCCL between GPUs).
 *
 *     struct gt_comm_boot boot;                                       one process: the launcher, or rank 0
 *     api->create(world, &boot, err);
 *
 *     struct gt_comm_spec spec = {.rank = rank, .world = world, .timeout_s = 30, .boot = &boot};       every rank
 *     struct gt_comm *c;
 *     api->open(&spec, &c, err);
 *     struct gt_coll x = {.what = "gradients", .in = g, .out = g, .count = n, .dtype = GT_F32, .op = GT_REDUCE_SUM};
 *     api->all_reduce(c, &x, err);
 *     api->close(c);
 *
 *     create() --boot--+--> rank 0: open() --> collectives, exchange(), split(), buffer() --> close()
 *                      +--> rank 1: open() --> the same calls in the same order           --> close()
 *                      +--> ...
 *
 * Lifetime. One process calls create() once and passes the boot record to every rank: the file descriptor by inheritance (clear FD_CLOEXEC
 * in the child) and the id through the rendezvous. Every rank calls open() with the record, then makes the same calls in the same order
 * with the same kind, count, dtype, op and root, and then calls close(). One thread at a time uses a communicator; any thread may call
 * abort() and check().
 *
 * Completion. If api->async is false (shm, gloo), a call has completed its work when it returns, and it ignores `stream`. If api->async is
 * true (NCCL), a call queues its work on the device's stream: the caller must not touch the operands until the stream has passed that work.
 * check() reports failures that occur after the call; a thread that waits for the device must poll check().
 *
 * Failure. Every exchange between ranks has a deadline of spec.timeout_s. If a rank dies, closes its communicator early, misses the
 * deadline or makes a different call, the call returns GT_EPEER with one sentence that names the rank by its number in the group that
 * open() created: "rank 2 has not reached all_reduce #17 of gradients (world) after 30 s". A rank that is late only because it waits for
 * another rank is not named. After the first failure or abort(), every call on every rank of the group, and of all groups split from it,
 * returns GT_EPEER with the same sentence at once. A broken group is never repaired; a restarted run creates a new one. A call with invalid
 * arguments returns GT_EINTERNAL (a bug in the program) and also breaks the group, because the other ranks are waiting for this rank. After
 * a failure the contents of outputs are undefined.
 *
 * Result. The sum (or maximum) of the elements x_0 ... x_{n-1} of n ranks is computed in a fixed tree, which does not depend on size,
 * timing or memory addresses, and every rank receives the same bits:
 *     T(x_0) = x_0;  T(x_0 ... x_{n-1}) = T(x_0 ... x_{h-1}) + T(x_h ... x_{n-1}), h the largest power of two below n.
 * For 8 ranks the sum is ((0+1)+(2+3))+((4+5)+(6+7)), for 3 ranks (0+1)+2. If each of n ranks has already summed 2^k consecutive shards
 * with the same tree, the result is T over all shards and does not depend on n. bf16 and f16 are added in f32 and rounded once, at the end.
 * Integers wrap around on overflow. The maximum of floats is NaN if one of them is NaN. A transport that cannot follow the tree (NCCL with
 * more than two ranks) sets fixed_tree = false; there the maximum of a NaN and a number may be either of them. */
#ifndef GT_KERNELS_COMM_H
#define GT_KERNELS_COMM_H

#include "base/types.h"

#define GT_COMM_ABI 1
#define GT_COMM_RANKS 64  /* maximum number of ranks in a group of gt_comm_shm or gt_comm_gloo */
#define GT_COMM_BATCH 128 /* maximum number of transfers in one exchange() */
#define GT_PAIR_BYTES (1 << 20) /* default of gt_comm_spec.pair_bytes, in bytes */

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

/* The operands of a collective. The caller may fill them before step 0 and reuse them. With n = world, a buffer of n blocks holds the
 * blocks in rank order. Sizes are in elements:
 *                     reads in                writes out              in place if
 *   all_reduce        count                   count                   in == out
 *   reduce_scatter    n * count               count: block `rank`     out == in + rank * count
 *   all_gather        count                   n * count               in == out + rank * count
 *   broadcast         count, on the root      count, not on the root  in == out
 *   gather            count                   n * count, on the root  in == out + rank * count, on the root
 *   scatter           n * count, on the root  count                   out == in + rank * count, on the root
 * On each rank, in and out are either in place as above or do not overlap. On a rank that neither reads nor writes a buffer, it may be
 * NULL. On the root, broadcast copies in to out if out is not NULL and differs from in. */
struct gt_coll {
	const char *what; /* name of the data for messages: "gradients"; at most 31 characters are kept; NULL: no name */
	const void *in;
	void *out;
	size_t count;         /* number of elements, as in the table above struct gt_coll */
	enum gt_dtype dtype;
	enum gt_reduction op; /* reduction of all_reduce and reduce_scatter; other collectives ignore it. For a mean, the caller scales a sum */
	int root;             /* rank of the root of broadcast, gather and scatter: 0 ... world - 1; other collectives ignore it */
	int stream;           /* device stream on which the work is queued if api->async is true; otherwise ignored */
};

/* One transfer of exchange(). */
struct gt_p2p {
	const char *what; /* name of the data for messages; NULL: no name */
	bool sends;       /* true: send to peer; false: receive from peer */
	int peer;         /* rank of the other end; may be the calling rank if the send and its receive are in the same call */
	const void *send; /* source memory of a send; NULL only if count is 0 */
	void *recv;       /* destination memory of a receive; NULL only if count is 0 */
	size_t count;     /* elements */
	enum gt_dtype dtype;
};

struct gt_comm_api;

/* The first member of every transport's communicator struct. Callers only read it. */
struct gt_comm {
	const struct gt_comm_api *api;
	int rank, world; /* number of the calling rank in this group, from 0; number of ranks in this group */
	char name[32];   /* name of the group in messages: "world", "stage 1" */
};

/* The boot record: create() fills it and open() reads it. The process that called create() closes fd (if >= 0) after every rank has opened
 * the group or has failed to open it. */
struct gt_comm_boot {
	/* file descriptor of shm's shared segment, with close-on-exec set; -1: no segment, or the descriptor was not inherited */
	int fd;
	/* A string without a newline. For shm, it lets a process of the same user on the same host open the segment without inheriting fd. For
	 * gloo, it is a random number that peers present to each other on each connection. Pass it through the rendezvous, never in a command
	 * line. */
	char id[264];
};

struct gt_comm_spec {
	const char *name;   /* name of the group in messages; NULL: "world" */
	int rank, world;    /* number of the calling rank, from 0; number of ranks in the group */
	double timeout_s;   /* deadline of each exchange between ranks, including open(), in seconds; > 0 */
	/* Number of bytes that a sender may send before its receiver reads them, for each ordered pair of ranks that exchanges data; 0 means
	 * GT_PAIR_BYTES. All ranks must set the same value. */
	size_t pair_bytes;
	const struct gt_comm_boot *boot; /* filled by create(); not owned */
	struct gt_dev *dev; /* device whose memory and streams the operands use; NULL: host memory */
	/* For groups on device memory: a communicator of the same ranks on host memory, or NULL. A wait for queued work ends when the check()
	 * of the host communicator reports a failure. */
	struct gt_comm *host;
	/* For transports between hosts (gloo); NULL for the others. exchange() takes n bytes of every rank and fills all[world * n] with the
	 * bytes of all ranks, over a channel on which all ranks have proven that they belong to the run (gt_rendezvous_exchange). open() calls
	 * it from the thread that called open(), the same number of times on every rank, and not after open() has returned. */
	enum gt_code (*exchange)(void *user, const char *key, const void *mine, size_t n, void *all, struct gt_err *err);
	void *user;         /* first argument of exchange */
	const char *addr;   /* gloo: address this rank listens on, an IP address or host name that all other ranks can reach; NULL: 127.0.0.1 */
};

struct gt_comm_api {
	uint32_t abi;     /* GT_COMM_ABI */
	const char *name; /* name of the transport: "shm" */
	bool async;       /* true: calls queue their work on a device stream (see Completion at the top of this file) */
	bool host_memory; /* true: operands are host memory. Any host memory works; memory from buffer() is faster */
	bool fixed_tree;  /* true: sums are computed in one fixed tree (see Result at the top of this file) */
	int max_world;    /* maximum number of ranks in a group; 0: no limit */

	/* Creates a new group of `world` ranks. Its memory is freed with the last process that uses it; nothing remains on the host, even if
	 * processes are killed. */
	enum gt_code (*create)(int world, struct gt_comm_boot *out, struct gt_err *err);
	/* Joins the group; returns when all ranks have joined. Duplicates the boot record's descriptor. */
	enum gt_code (*open)(const struct gt_comm_spec *spec, struct gt_comm **out, struct gt_err *err);
	/* Frees the communicator locally, without waiting for other ranks (gloo waits until its sent data has arrived, at most timeout_s). c
	 * may be NULL. Close the communicators that were split from c before c itself. If a rank closes c while another rank still makes calls,
	 * the group breaks for the other rank. */
	void (*close)(struct gt_comm *c);
	/* Splits c into one group for each color; all ranks call it. A rank with a negative color gets *out = NULL. Ranks of a group are
	 * ordered by key, then by rank. The new group breaks together with c. */
	enum gt_code (*split)(struct gt_comm *c, const char *name, int color, int key, struct gt_comm **out, struct gt_err *err);
	/* Allocates memory of this rank that the transport accesses without a copy (shm: every rank of the host can read and write it), zeroed
	 * and aligned to at least 64 bytes. All ranks call it; bytes may differ between ranks. The group that open() created owns the memory
	 * and frees it when it is closed. Call it before step 0. Collectives on other memory also work, through a copy. Returns GT_EFAIL if
	 * memory is exhausted; the group stays intact. */
	enum gt_code (*buffer)(struct gt_comm *c, size_t bytes, void **out, struct gt_err *err);

	enum gt_code (*all_reduce)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*reduce_scatter)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*all_gather)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*broadcast)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*gather)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	enum gt_code (*scatter)(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);
	/* Waits for all ranks and, on the stream, for all work queued before it. */
	enum gt_code (*barrier)(struct gt_comm *c, int stream, struct gt_err *err);

	/* Runs n sends and receives concurrently (NCCL: one group call) and completes when all of them have completed. The transfers from one
	 * rank to another match in the order in which each side lists them. A send waits for its receive only when pair_bytes are unread.
	 * Opposing transfers larger than that must therefore be in one call; otherwise two ranks may wait for each other until the deadline.
	 * Transfers have no order relative to the collectives. */
	enum gt_code (*exchange)(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err);

	/* Breaks the group: every rank that waits in a call or makes one returns GT_EPEER with "rank R gave up: WHY". */
	void (*abort)(struct gt_comm *c, const char *why);
	/* Reports the state of the group without waiting: GT_OK, or GT_EPEER with the sentence of the failure that broke it (if api->async is
	 * true, also a failure of queued work). */
	enum gt_code (*check)(struct gt_comm *c, struct gt_err *err);
	/* Sets the deadline (in seconds) of this rank's later exchanges, in c and in all groups of the same open() call. Returns the previous
	 * deadline. Use this function when all ranks know that one rank will be slow. */
	double (*set_timeout)(struct gt_comm *c, double timeout_s);
	/* Optional (NULL: sends need no buffer). Sets gt_comm_spec.pair_bytes for groups that are split later; all ranks must set the same
	 * value. */
	void (*set_send_buffer)(struct gt_comm *c, size_t pair_bytes);
	/* Optional (NULL: the ranks share no memory). Like buffer(), but all ranks of c get the same memory. All ranks call it. */
	enum gt_code (*common)(struct gt_comm *c, size_t bytes, void **out, struct gt_err *err);
};

/* Sends or receives `count` elements in one exchange() call. */
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

bool gt_coll_reduces(enum gt_coll_kind k);

/* Transports validate operands with these functions: gt_coll_check compares a collective with the table above struct gt_coll, gt_p2p_check
 * compares transfers with the limits of struct gt_p2p. Both return GT_EINTERNAL with a sentence for an invalid operand. */
enum gt_code gt_coll_check(const struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err);
enum gt_code gt_p2p_check(const struct gt_comm *c, const struct gt_p2p *list, int n, struct gt_err *err);

#endif
