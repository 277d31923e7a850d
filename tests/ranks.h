/* Tests with several ranks: forks a process a rank, each of which opens a communicator and runs a body. Its transport: what the variable
 * GTRAIN_TEST_COMM says, shm (without it) or gloo. */
#ifndef GT_TESTS_RANKS_H
#define GT_TESTS_RANKS_H

#include "comm.h"
#include "test.h"
#include <sys/types.h>

#define RANKS_MAX 64

/* What a rank leaves, in memory shared with the test. */
struct rank_note {
	char why[640];     /* the first failed RANK_CHECK */
	struct gt_err err; /* of the failure that a body expected */
	double at, took;   /* CLOCK_MONOTONIC seconds, and a duration: as the body likes */
	int flag;          /* as the body likes */
	int pid;
	int status; /* waitpid's */
};

struct ranks {
	int world;
	double timeout_s; /* of the group; 0: 60 */
	size_t pair_bytes;
	bool by_path;    /* the descriptor is not inherited */
	bool open_fails; /* the body gets c == NULL, note->err has the reason */
	int absent;      /* a rank that is not started; -1: none */
	void (*body)(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx);
	void (*meanwhile)(struct rank_note *note, const void *ctx); /* in the test's process, while they run */
	const void *ctx;
	struct rank_note *note;                                                    /* [world], filled */
	const struct gt_comm_boot *boot;                                           /* NULL: a new one */
	const struct gt_comm_boot *boot_of_1;                                      /* rank 1's, if it is another one */
	const char *addr;                                                          /* gt_comm_spec's */
	/* in the rank's process before open(), for a rank that changes its surroundings; returns gt_comm_spec's addr; NULL: no such function */
	const char *(*enter)(int rank, const void *ctx);
	void (*meddle)(int rank, int world, const char *key, void *all, size_t n); /* at the end of each exchange of open() */
};

const struct gt_comm_api *ranks_api(void);
bool ranks_over(const char *transport); /* "shm" */
void ranks_run(struct ranks *r);        /* returns when all have ended; the caller looks at note[].status, or: */
void ranks_check(struct ranks *r);      /* ranks_run, and every rank must have ended with 0 */
void ranks_free(struct ranks *r);
double ranks_now(void);

/* In a body: ends the rank at the first failure. */
void rank_fail(struct rank_note *note, const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 4, 5), noreturn));
#define RANK_CHECK(note, cond) ((cond) ? (void)0 : rank_fail(note, __FILE__, __LINE__, "%s", #cond))
#define RANK_CHECK_MSG(note, cond, ...) ((cond) ? (void)0 : rank_fail(note, __FILE__, __LINE__, __VA_ARGS__))
#define RANK_OK(note, expr, e) ((expr) == GT_OK ? (void)0 : rank_fail(note, __FILE__, __LINE__, "%s: %s", #expr, (e).msg))

#endif
