/* Internal header of the shared-memory communicator.
 *
 * One memfd for each group holds all shared data. Every rank maps it once, at its own address, with reserved address space to grow, so
 * shared data refers to memory by offset:
 *
 *     offset 0   struct shm_head               the failure, and the members
 *                the slots (struct shm_slot), pairs and stages of the first group
 *                groups split from it, buffers and rings, in the order of their allocation
 *
 * fallocate() reserves memory when it is requested, so that a lack of memory is an error then and not a SIGBUS later.
 *
 * Collectives run in phases. A rank publishes phase k by storing k in its slot, and then waits until every rank has published k. Data that
 * it writes before phase k for others to read (the description of its call, one half of its stage) has two copies, which are used
 * alternately: the copy of phase k is overwritten before phase k + 2, when every rank has published k + 1 and so has read that copy.
 *
 *     rank 0   write desc[0], publish 1 | wait for 1 | read all, write desc[1], publish 2 | wait for 2 | ...
 *     rank 1   write desc[0], publish 1 | wait for 1 | read all, write desc[1], publish 2 | wait for 2 | ... */
#ifndef GT_KERNELS_CPU_COMM_SHM_H
#define GT_KERNELS_CPU_COMM_SHM_H

#include "comm_call.h"
#include "comm_reduce.h"

#define GT_SHM_LINE 128                  /* alignment of shared data in bytes: two cache lines, because processors fetch them in pairs */
#define GT_SHM_HALF ((size_t)128 << 10)  /* bytes of one half of the stage (the staging memory) of a rank */
#define GT_SHM_SMALL ((size_t)8 << 10)   /* maximum bytes of data for which the data is sent with the first phase, without a second phase */
#define GT_SHM_ALIGN __attribute__((aligned(GT_SHM_LINE)))

/* The description of one rank's current collective call. Every rank compares its own description with those of all other ranks. */
struct shm_desc {
	uint64_t in, out; /* offsets of the operands in the segment; 0: the operand is not in the segment */
	struct gt_coll_call call;
};

struct shm_slot {
	uint32_t phase GT_SHM_ALIGN; /* last phase that this rank has published; futex */
	uint32_t sleepers;           /* number of ranks that sleep until `phase` changes */
	uint32_t left;               /* not 0: the rank has closed the group */
	uint32_t bell GT_SHM_ALIGN;  /* futex, changed when a message ring of this rank has new data or new space */
	uint32_t drowsy;             /* not 0: this rank sleeps on bell, or is about to sleep */
	struct shm_desc desc[2] GT_SHM_ALIGN;
};

/* A stream of messages from one rank to another: a header, then the data, both padded to GT_SHM_LINE. */
struct shm_pair {
	uint64_t head GT_SHM_ALIGN; /* number of bytes that the sender has written */
	uint64_t ring;              /* offset of the message ring in the segment; 0: the ring is not allocated yet */
	uint64_t tail GT_SHM_ALIGN; /* number of bytes that the receiver has read */
};

struct shm_member {
	uint32_t state GT_SHM_ALIGN; /* SHM_ABSENT … */
	int32_t pid;
	uint32_t awaits;   /* 1 + number of the member for which this member waits; 0: for no member */
	uint64_t cpus[16]; /* processors on which this member may run, as a cpu_set_t */
};
enum { SHM_ABSENT, SHM_COMING, SHM_THERE };

enum { SHM_WHOLE, SHM_BREAKING, SHM_BROKEN };
struct shm_head {
	uint64_t magic;
	uint32_t abi, world;
	uint64_t token;              /* random number that identifies this group, so that the boot record of an earlier group cannot open it */
	uint64_t end GT_SHM_ALIGN;   /* offset of the end of the memory in use */
	uint32_t broken GT_SHM_ALIGN;
	char why[1024];              /* sentence of the failure; valid once broken is SHM_BROKEN */
	struct shm_member member[GT_COMM_RANKS];
};

/* The state of a group that open() created, in one process. The groups that are split from that group share it. */
struct shm_root {
	struct shm_head *head; /* address at which this process has mapped the segment */
	size_t reserve;        /* bytes of address space reserved for the segment */
	int fd, rank, world;
	double timeout_s;
	size_t pair_bytes;
	int spin;              /* maximum number of turns of a waiting loop before it yields */
	int pidfd[GT_COMM_RANKS]; /* process descriptor of each member; -1: none; -2: the process ended before it could be opened */
};

struct shm_comm {
	struct gt_comm pub;
	struct shm_root *root;
	struct shm_slot *slot;
	struct shm_pair *pair;  /* message stream from each rank to each other rank: [from * world + to] */
	char *stage;            /* memory through which ranks pass data: [rank][half] */
	size_t pair_bytes;      /* size of each message ring in bytes */
	uint32_t phase, seq;
	int spin;               /* number of turns of a waiting loop before it yields; adapts to recent waits */
	bool owns_root;
	int member[GT_COMM_RANKS]; /* for each rank, its rank in the group that open() created, which messages name */
	uint32_t sent[GT_COMM_RANKS], got[GT_COMM_RANKS];
};

static inline char *gt_shm_at(const struct shm_root *r, uint64_t off)
{
	return (char *)r->head + off;
}

/* Returns the offset of memory in the segment, or 0 if it is outside. (No operand has offset 0, where the head is.) */
static inline uint64_t gt_shm_offset(const struct shm_root *r, const void *p, size_t bytes)
{
	uintptr_t base = (uintptr_t)r->head, x = (uintptr_t)p;
	return x >= base && bytes <= r->reserve && x - base <= r->reserve - bytes ? x - base : 0;
}

/* comm_shm.c */
/* Allocates zeroed memory in the segment and sets *off to its offset. The memory exists until the group is closed. */
enum gt_code gt_shm_alloc(struct shm_root *r, size_t bytes, uint64_t *off, struct gt_err *err);

/* The functions of comm_wait.c follow. A gt_shm_doing is a callback that writes the clause about a late rank for messages: "has not reached
 * all_reduce #17 of gradients (world)". */
typedef void gt_shm_doing(const struct shm_comm *c, const void *ctx, char *buf, size_t size);
bool gt_shm_is_broken(const struct shm_comm *c);
/* Returns GT_EPEER with the sentence of the failure. Call it only if the group is broken. */
enum gt_code gt_shm_broken(const struct shm_comm *c, struct gt_err *err);
/* Breaks the group and records the formatted sentence as the reason. If the group is already broken, err gets the earlier sentence. Returns
 * GT_EPEER. */
enum gt_code gt_shm_break(struct shm_comm *c, struct gt_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Breaks the group because this rank's call is invalid, and returns the code of `bad`, with its message in err. */
enum gt_code gt_shm_reject(struct shm_comm *c, const struct gt_err *bad, struct gt_err *err);
bool gt_shm_dead(const struct shm_root *r, int member);                     /* whether the member's process has ended */
void gt_shm_publish(struct shm_comm *c);                                    /* publishes that this rank has reached the next phase */
/* Waits until all ranks have published the phase that this rank published last. */
enum gt_code gt_shm_wait_all(struct shm_comm *c, gt_shm_doing *doing, const void *ctx, struct gt_err *err);
/* Publishes the number of the rank for which this rank waits (-1: none). Other ranks read it when their deadline passes. */
void gt_shm_say_awaits(struct shm_comm *c, int rank);
/* Finds the member that causes `member` to wait, by following the chain of waiting members. If the chain is a cycle, it returns `member`
 * itself. */
int gt_shm_culprit(const struct shm_root *r, int member);
void gt_shm_ring(struct shm_comm *c, int rank);                             /* wakes a rank after one of its message rings has changed */
/* Sleeps until this rank's bell differs from `bell`, but only for a short time. */
void gt_shm_wait_briefly(struct shm_comm *c, uint32_t bell);

/* comm_coll.c */
enum gt_code gt_shm_coll(struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err);
/* comm_p2p.c */
enum gt_code gt_shm_exchange(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err);

#endif
