/* One process a rank on this host: the program executes itself again once per rank, and the first process watches the others.
 *
 *   the launcher                                     a rank
 *   gt_launch_run(&spec, &end, err);                 gt_rank_open(&link, err);      *link NULL: not started by a launcher
 *     starts, watches, ends, restarts                gt_rank_beat(link, step);      every step: two stores, no system call
 *                                                    gt_rank_report_error(link, code, sentence);
 *
 * A rank gets: the variables GTRAIN_RANK, GTRAIN_WORLD, GTRAIN_LOCAL_RANK, GTRAIN_LOCAL_WORLD, GTRAIN_NODE, GTRAIN_NNODES and
 * GTRAIN_RESTART (attempts before this one); inherited descriptors (their numbers in GTRAIN_*_FD, which gt_rank_open() removes): a
 * socket for last words, the board (shared memory with progress, token and address), and for rank 0 a listening socket for the
 * rendezvous, so that no port can be taken; cores of its own, OMP_NUM_THREADS (unless it is set); a process
 * group of its own, so that the terminal's Ctrl-C reaches the launcher alone, which passes it on; /dev/null as standard input.
 * Rank 0 has the launcher's stdout and stderr, unless spec.capture is set; what others write comes to spec.say as lines that begin with "[rank 2] ".
 *
 * The end. The first rank that fails is named: by its own last words, its exit code or signal, or "no progress for 30 s at step 118". A
 * rank that lost its peer (GT_EPEER) is named only if no other death explains it. The launchers of several hosts tell each other
 * (launch/hosts.h): "node 1 (gpu7): rank 9 was killed by signal 9 (Killed) at step 118". Then the others get SIGTERM, after grace_s SIGKILL; a
 * stopped one SIGKILL at once. Whatever a rank started ends with it. If the launcher itself dies, the kernel kills the ranks
 * (PR_SET_PDEATHSIG), but not what they started. Nothing has a name in /dev/shm or a file system.
 *
 * SIGINT, SIGTERM, SIGHUP and SIGUSR1 are passed on, each once: the ranks end in order, and the run as 128+n. A second SIGINT kills all
 * ranks at once. The launchers of other hosts hear of both, and do the same. A rank that exits with 128+n and says so in its last words got such
 * a signal itself, or agreed with a rank that did: that is an end in order too. Neither is a fault, and nothing starts again. SIGTSTP (Ctrl-Z) stops the ranks with the launcher, and they go on with it. */
#ifndef GT_LAUNCH_LAUNCHER_H
#define GT_LAUNCH_LAUNCHER_H

#include "launch/world.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_LAUNCH_MAX 256 /* ranks on one host */
#define GT_TOKEN_SIZE 32
#define GT_PHASE_SIZE 64

/* How an attempt, or the run, ended. */
struct gt_launch_end {
	enum gt_code code;  /* the process' exit code: a gt_code, or 128+n after signal n */
	int rank;           /* the first that failed; -1: none did */
	int signal;         /* that ended it; 0: none */
	int64_t step;       /* it had reached; -1: before its first */
	char why[1200];     /* "rank 2 was killed by signal 9 (Killed) at step 118"; empty if none failed */
	double end_s;       /* from when the failure was seen to when the last rank was gone */
	int restarts;       /* before this attempt */
};

struct gt_launch_spec {
	int nproc;              /* ranks on this host */
	int node, nnodes;       /* with nproc ranks each; nnodes 0 is 1 */
	const char *addr;       /* of rank 0's host and its port, where nnodes > 1 */
	int port;
	const void *token;      /* GT_TOKEN_SIZE bytes that every host has; NULL: random, for one host */
	char *const *argv;      /* of the ranks, NULL-terminated */
	double timeout_s;       /* without progress, until a rank counts as lost; 0: never */
	double grace_s;         /* between SIGTERM and SIGKILL; 0: 1.5, which keeps an end under 2 s */
	int max_restarts;       /* after failures that may pass (gt_launch_may_pass) */
	double backoff_s;       /* before the first restart; doubled each time, at most 60; 0: 1 */
	bool pin;               /* cores are shared out among the ranks */
	bool capture;           /* what rank 0 writes comes to say too, as "[rank 0] …" */
	/* Before a restart: the arguments of the next attempt ("resume" instead of "run"), or NULL for no restart. NULL: the same again. */
	char *const *(*again)(void *user, const struct gt_launch_end *last);
	/* A line without its newline: a rank's, or the launcher's own word on a restart. The launcher waits for its return. */
	void (*say)(void *user, const char *line);
	void *user;
};

/* Runs until every rank has ended; returns end->code, and fills err with end->why where that is a failure. Call it on the main thread
 * before there are others: the kernel ties PR_SET_PDEATHSIG to the thread that forks. */
enum gt_code gt_launch_run(const struct gt_launch_spec *spec, struct gt_launch_end *end, struct gt_err *err);

/* Whether the same run may succeed when it is started again: after a signal, a lost peer, I/O, exhausted memory; not after a wrong
 * config, bad data or a diverged loss. */
bool gt_launch_may_pass(enum gt_code code);

/* ---- a rank --------------------------------------------------------------------------------------------------------------- */
struct gt_rank_link;

/* *out NULL: this process was started by something else, see gt_world_join(). GT_EPEER: the launcher is gone. The link is of the
 * process, which closes it at its end. */
enum gt_code gt_rank_open(struct gt_rank_link **out, struct gt_err *err);
void gt_rank_close(struct gt_rank_link *l); /* NULL is fine, as for every function below */

const struct gt_world *gt_rank_world(const struct gt_rank_link *l);
int gt_rank_restart(const struct gt_rank_link *l);             /* attempts before this one */
int gt_rank_take_listener(struct gt_rank_link *l);             /* now the caller's; -1: none, or taken */
const unsigned char *gt_rank_token(const struct gt_rank_link *l); /* GT_TOKEN_SIZE bytes */
/* Readable (poll's POLLIN or POLLHUP) once the launcher ends the run, or is gone: who waits for other ranks waits in vain from then on. A
 * SIGTERM alone does not say that: the user's own comes as one too, and then all ranks end in order. Stays the link's; -1: no link. */
int gt_rank_end_fd(const struct gt_rank_link *l);
/* Why it does, once that is readable: the launcher's sentence, or "the run is being ended". For one thread. */
void gt_rank_end_why(const struct gt_rank_link *l, char *out, size_t size);

/* Progress: step (optimizer steps done) was reached. */
void gt_rank_beat(struct gt_rank_link *l, int64_t step);
/* Progress too: what follows, in words for messages ("saving a checkpoint"), and the seconds it may take before the next beat; 0: the
 * launcher's timeout. */
void gt_rank_phase(struct gt_rank_link *l, const char *words, double allow_s);
/* In a collective: a rank that waits for others is not the one to blame. */
void gt_rank_waits(struct gt_rank_link *l, bool waits);
/* The error that this rank will exit with; the first one counts. */
void gt_rank_report_error(struct gt_rank_link *l, enum gt_code code, const char *sentence);
/* The launcher is gone: end. PR_SET_PDEATHSIG sees to it; this is for the case that something reset it. One poll(2). */
bool gt_rank_orphaned(const struct gt_rank_link *l);

#endif
