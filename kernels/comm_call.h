/* Code shared by the transports on host memory (shm, gloo): the signatures by which ranks detect different calls, the messages about a
 * call, the memory that each rank reads and writes in a collective, and the functions of gt_comm_api for the collectives. */
#ifndef GT_KERNELS_COMM_CALL_H
#define GT_KERNELS_COMM_CALL_H

#include "comm.h"

/* The signature of a collective call. Each rank publishes its signature and compares it with the signatures of all ranks. Fields that the
 * kind does not use are 0, and the struct has no padding, so that equal calls have equal bytes. */
#define GT_COLL_WHAT 32
struct gt_coll_call {
	uint64_t count; /* elements */
	uint32_t seq;   /* sequence number among the group's collectives */
	uint8_t kind, dtype, op, root; /* enum gt_coll_kind, enum gt_dtype, enum gt_reduction, rank of the root */
	char what[GT_COLL_WHAT]; /* gt_coll.what, truncated to 31 characters; empty: no name */
};

/* One collective call of this rank. */
struct gt_comm_call {
	struct gt_comm *c;
	const int *member; /* for each rank of the group, the rank number that messages name */
	const struct gt_coll *x;
	struct gt_coll_call sign;
	enum gt_coll_kind kind;
	size_t size, bytes; /* size: bytes of one element; bytes: bytes of `count` elements */
	size_t staged;      /* bytes that one rank passes to the other ranks; if the operand has blocks, one block for every rank */
	bool blocked;       /* the operand has one block for every rank (reduce_scatter, scatter) */
	bool done;          /* true: this rank waits for other ranks to finish the call; false: to begin the call */
};
struct gt_comm_call gt_comm_call_make(struct gt_comm *c, const int *member, enum gt_coll_kind kind, uint32_t seq, const struct gt_coll *x);
/* Writes the clause about a late rank: "has not reached all_reduce #17 of gradients (world)". */
void gt_comm_call_text(const struct gt_comm_call *k, char *buf, size_t size);
/* Compares the calls of all ranks. Returns the first rank whose call differs from rank 0's call, with a message in buf; -1: none. */
int gt_comm_call_compare(const struct gt_comm_call *k, const struct gt_coll_call *const *sign, char *buf, size_t size);

/* The part of an all_reduce or a broadcast that belongs to rank r, in bytes. Parts begin at multiples of 64 bytes, so that in aligned
 * buffers two ranks do not write to one cache line. */
struct gt_span {
	size_t at, n;
};
struct gt_span gt_comm_call_part(const struct gt_comm_call *k, int r);
/* Copies this rank's data for the other ranks into `to`: n elements of the operand (of each block, if there are blocks), from element `at`
 * on. Returns the number of bytes, which is 0 if only the root passes data. */
size_t gt_comm_call_stage_in(const struct gt_comm_call *k, size_t at, size_t n, char *to);
/* Computes the same elements of this rank's result. from[r]: the data that gt_comm_call_stage_in() of rank r has written. */
void gt_comm_call_stage_out(const struct gt_comm_call *k, size_t at, size_t n, char *const *from);

/* The data that a rank sends to all other ranks in split(). */
struct gt_split_request {
	int32_t color, key;
	uint64_t id; /* a value for the transport's own use */
};
/* Lists the members of the new group of `rank`, ordered by key. Returns their count, and sets *own to the index of `rank` in `of`. */
int gt_split_members(const struct gt_split_request *w, int rank, int world, int of[GT_COMM_RANKS], int *own);

/* The signature of one message of exchange(), which precedes its data. */
struct gt_p2p_head {
	uint64_t count; /* elements */
	uint32_t seq, dtype; /* seq: sequence number of the message from its sender to its receiver */
	char what[GT_COLL_WHAT];
};
struct gt_p2p_head gt_p2p_sign(const struct gt_p2p *x, uint32_t seq);
void gt_p2p_text(const struct gt_p2p_head *h, char *buf, size_t size); /* "activations #3 (1000 f32)" */
/* Returns whether the arrived message is the expected message; otherwise buf receives the error text. from, to: the rank numbers of sender
 * and receiver for this text. */
bool gt_p2p_compare(const struct gt_p2p_head *arrived, const struct gt_p2p_head *expected, int from, int to, const char *group, char *buf,
                    size_t size);

#define GT_COMM_CALL_TEXT 480 /* bytes for each text above */

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
