/* The shared-memory communicator's insides.
 *
 * One memfd a group holds everything and every rank maps all of it once, at an address of its own, with room to grow: a place is an offset.
 *   struct shm_head                the failure, and who is there
 *   struct shm_slot[world] …       of the first group: gt_shm_group_bytes()
 *   groups split from it, buffers and rings, in the order in which they were asked for
 * fallocate() makes the memory real where it is asked for, so a machine without memory is an error there and no SIGBUS later.
 *
 * Collectives run in phases. A rank publishes phase k by storing k into its slot, and waits until every rank has. What it writes before
 * phase k for others to read (a description of its call, a half of its stage) lies twice, and is used in turn: it is written again before
 * phase k + 2, after everybody has published k + 1 and so has read what belongs to k. */
#ifndef GT_KERNELS_CPU_COMM_SHM_H
#define GT_KERNELS_CPU_COMM_SHM_H

#include "comm.h"
#include "cpu/comm_reduce.h"

#define GT_SHM_LINE 128                  /* two cache lines: processors fetch pairs */
#define GT_SHM_HALF ((size_t)128 << 10)  /* bytes of a half of the stage of a rank */
#define GT_SHM_SMALL ((size_t)8 << 10)   /* up to here data travel with the first phase, and no second one is needed */
#define GT_SHM_ALIGN __attribute__((aligned(GT_SHM_LINE)))

/* What a rank calls; all ranks compare all. */
struct shm_desc {
	uint64_t in, out; /* offsets of the operands in the segment; 0: elsewhere */
	struct gt_coll_call call;
};

struct shm_slot {
	uint32_t phase GT_SHM_ALIGN; /* futex */
	uint32_t sleepers;           /* on it */
	uint32_t left;               /* closed */
	uint32_t bell GT_SHM_ALIGN;  /* futex: a ring of this rank has moved */
	uint32_t drowsy;             /* this rank sleeps on its bell, or is about to */
	struct shm_desc desc[2] GT_SHM_ALIGN;
};

/* A stream of messages from one rank to another: a header, then the data, both padded to GT_SHM_LINE. */
struct shm_pair {
	uint64_t head GT_SHM_ALIGN; /* bytes written, by the sender */
	uint64_t ring;              /* offset; 0: not used yet */
	uint64_t tail GT_SHM_ALIGN; /* bytes read, by the receiver */
};

struct shm_member {
	uint32_t state GT_SHM_ALIGN; /* SHM_ABSENT … */
	int32_t pid;
	uint32_t awaits;   /* 1 + the member for which this one sleeps; 0: none */
	uint64_t cpus[16]; /* that it may run on: cpu_set_t */
};
enum { SHM_ABSENT, SHM_COMING, SHM_THERE };

enum { SHM_WHOLE, SHM_BREAKING, SHM_BROKEN };
struct shm_head {
	uint64_t magic;
	uint32_t abi, world;
	uint64_t token;              /* of this group: a stale boot record opens nothing */
	uint64_t end GT_SHM_ALIGN;   /* of what is in use */
	uint32_t broken GT_SHM_ALIGN;
	char why[1024];              /* valid once SHM_BROKEN */
	struct shm_member member[GT_COMM_RANKS];
};

/* Of a process and a group with all that are split from it. */
struct shm_root {
	struct shm_head *head; /* = the mapping's base */
	size_t reserve;        /* bytes of address space */
	int fd, rank, world;
	double timeout_s;
	size_t pair_bytes;
	int spin;              /* the most turns of a waiting loop before it yields */
	int pidfd[GT_COMM_RANKS]; /* -1: none; -2: gone before it could be opened */
};

struct shm_comm {
	struct gt_comm pub;
	struct shm_root *root;
	struct shm_slot *slot;
	struct shm_pair *pair;  /* [from * world + to] */
	char *stage;            /* [rank][half] */
	size_t pair_bytes;      /* of a ring, once it is used */
	uint32_t phase, seq;
	int spin;               /* adapted */
	bool owns_root;
	int member[GT_COMM_RANKS]; /* ranks in the group that open() made: those that messages name */
	uint32_t sent[GT_COMM_RANKS], got[GT_COMM_RANKS];
};

static inline char *gt_shm_at(const struct shm_root *r, uint64_t off)
{
	return (char *)r->head + off;
}

/* The offset of memory in the segment; 0: it lies elsewhere. (Offset 0 is the head, which no caller has.) */
static inline uint64_t gt_shm_offset(const struct shm_root *r, const void *p, size_t bytes)
{
	uintptr_t base = (uintptr_t)r->head, x = (uintptr_t)p;
	return x >= base && bytes <= r->reserve && x - base <= r->reserve - bytes ? x - base : 0;
}

/* comm_shm.c */
enum gt_code gt_shm_alloc(struct shm_root *r, size_t bytes, uint64_t *off, struct gt_err *err); /* zeroed, fixed until the end */

/* comm_wait.c. `doing`: "has not reached all_reduce #17 of gradients (world)". */
typedef void gt_shm_doing(const struct shm_comm *c, const void *ctx, char *buf, size_t size);
bool gt_shm_is_broken(const struct shm_comm *c);
enum gt_code gt_shm_broken(const struct shm_comm *c, struct gt_err *err);   /* GT_EPEER with the group's sentence; only once it is broken */
/* Breaks the group with this sentence, unless it is broken: then err gets the older one. Returns GT_EPEER. */
enum gt_code gt_shm_break(struct shm_comm *c, struct gt_err *err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool gt_shm_dead(const struct shm_root *r, int member);                     /* its process has ended */
void gt_shm_publish(struct shm_comm *c);                                    /* the next phase */
enum gt_code gt_shm_wait_all(struct shm_comm *c, gt_shm_doing *doing, const void *ctx, struct gt_err *err); /* for this rank's phase */
/* What others read at their deadline: for whom this rank sleeps; -1: nobody. */
void gt_shm_say_awaits(struct shm_comm *c, int rank);
/* The member that keeps this one waiting: follows from the member what each waits for. In a ring of waiting members: the member itself. */
int gt_shm_culprit(const struct shm_root *r, int member);
void gt_shm_ring(struct shm_comm *c, int rank);                             /* after a pair of that rank has moved */
void gt_shm_doze(struct shm_comm *c, uint32_t bell);                        /* until the bell differs from `bell`, or a short time */
static inline void gt_shm_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* comm_coll.c */
enum gt_code gt_shm_coll(struct shm_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err);
/* comm_p2p.c */
enum gt_code gt_shm_exchange(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err);

#endif
