/* What the transports on host memory (shm, gloo) share: the signatures by which ranks detect that they make different calls, the sentences
 * about a call, the memory that each rank reads and writes in a collective, and the functions of gt_comm_api for the collectives. */
#ifndef GT_KERNELS_COMM_CALL_H
#define GT_KERNELS_COMM_CALL_H

#include "comm.h"

/* The signature of a collective call. Each rank publishes its own and compares it with the others'. Fields that the kind does not use are 0
 * and the struct has no padding, so that equal calls are equal byte for byte. */
#define GT_COLL_WHAT 32
struct gt_coll_call {
	uint64_t count; /* elements */
	uint32_t seq;   /* sequence number among the group's collectives */
	uint8_t kind, dtype, op, root; /* enum gt_coll_kind, enum gt_dtype, enum gt_reduction, rank of the root */
	char what[GT_COLL_WHAT]; /* gt_coll.what, cut to 31 characters; empty: no name */
};

/* One collective call of this rank. */
struct gt_comm_call {
	struct gt_comm *c;
	const int *member; /* for each rank of the group, its number in messages */
	const struct gt_coll *x;
	struct gt_coll_call sign;
	enum gt_coll_kind kind;
	size_t size, bytes; /* size: bytes of one element; bytes: bytes of `count` elements */
	size_t staged;      /* bytes that one rank passes to the others: those of one block for every rank if the operand has blocks */
	bool blocked;       /* the operand has one block for every rank (reduce_scatter, scatter) */
	bool done;          /* true: this rank waits for others to finish the call; false: for others to begin it */
};
struct gt_comm_call gt_comm_call_make(struct gt_comm *c, const int *member, enum gt_coll_kind kind, uint32_t seq, const struct gt_coll *x);
/* Writes what a late rank has not done: "has not reached all_reduce #17 of gradients (world)". */
void gt_comm_call_text(const struct gt_comm_call *k, char *buf, size_t size);
/* Compares the calls of all ranks. Returns the first rank whose call differs from that of rank 0, and the sentence about it; -1: none. */
int gt_comm_call_compare(const struct gt_comm_call *k, const struct gt_coll_call *const *sign, char *buf, size_t size);

/* The part of an all_reduce or a broadcast that belongs to rank r, in bytes. Parts begin at multiples of 64 bytes, so that in aligned
 * buffers two ranks do not write to one cache line. */
struct gt_span {
	size_t at, n;
};
struct gt_span gt_comm_call_part(const struct gt_comm_call *k, int r);
/* Copies what this rank passes to the others into `to`: n elements of the operand (if it has blocks: of each block), from element `at` on.
 * Returns the number of bytes, which is 0 if only the root passes data. */
size_t gt_comm_call_stage_in(const struct gt_comm_call *k, size_t at, size_t n, char *to);
/* Forms the same elements of this rank's result. from: for each rank, what its gt_comm_call_stage_in() has written. */
void gt_comm_call_stage_out(const struct gt_comm_call *k, size_t at, size_t n, char *const *from);

/* What a rank sends to all others in split(). */
struct gt_split_request {
	int32_t color, key;
	uint64_t id; /* a number of the transport */
};
/* Lists the ranks of the new group of `rank`, in the order of their keys. Returns their number, and sets *own to that of `rank`. */
int gt_split_members(const struct gt_split_request *w, int rank, int world, int of[GT_COMM_RANKS], int *own);

/* The signature of one message of exchange(), which precedes its data. */
struct gt_p2p_head {
	uint64_t count; /* elements */
	uint32_t seq, dtype; /* seq: number of the message among those of its sender to its receiver */
	char what[GT_COLL_WHAT];
};
struct gt_p2p_head gt_p2p_sign(const struct gt_p2p *x, uint32_t seq);
void gt_p2p_text(const struct gt_p2p_head *h, char *buf, size_t size); /* "activations #3 (1000 f32)" */
/* Returns whether the message that has arrived is the one that this rank expects; otherwise buf has the sentence about it. from, to: the
 * numbers of sender and receiver in messages. */
bool gt_p2p_compare(const struct gt_p2p_head *arrived, const struct gt_p2p_head *expected, int from, int to, const char *group, char *buf,
                    size_t size);

#define GT_COMM_CALL_TEXT 480 /* bytes for each of the sentences above */

/* Defines the functions of the collectives, which call `run`, and their members in a struct gt_comm_api. */
#define GT_COLLECTIVE(name, kind, run)                                                                                                     \
	static enum gt_code name(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)                                               \
	{                                                                                                                                      \
		return run(c, kind, x, err);                                                                                                       \
	}
#define GT_COLLECTIVE_FUNCTIONS(run)                                                                                                       \
	GT_COLLECTIVE(all_reduce, GT_COLL_ALL_REDUCE, run)                                                                                     \
	GT_COLLECTIVE(reduce_scatter, GT_COLL_REDUCE_SCATTER, run)                                                                             \
	GT_COLLECTIVE(all_gather, GT_COLL_ALL_GATHER, run)                                                                                     \
	GT_COLLECTIVE(broadcast, GT_COLL_BROADCAST, run)                                                                                       \
	GT_COLLECTIVE(gather, GT_COLL_GATHER, run)                                                                                             \
	GT_COLLECTIVE(scatter, GT_COLL_SCATTER, run)                                                                                           \
	static enum gt_code barrier(struct gt_comm *c, int stream, struct gt_err *err)                                                         \
	{                                                                                                                                      \
		return run(c, GT_COLL_BARRIER, &(struct gt_coll){.stream = stream, .dtype = GT_U8}, err);                                          \
	}
#define GT_COLLECTIVE_MEMBERS                                                                                                              \
	.all_reduce = all_reduce, .reduce_scatter = reduce_scatter, .all_gather = all_gather, .broadcast = broadcast, .gather = gather,        \
	.scatter = scatter, .barrier = barrier

#endif
