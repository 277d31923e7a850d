/* The launcher: starts one process for each rank on this host and supervises them. The program executes itself again once per rank.
 *
 *     the launcher                                 a rank
 *     gt_launch_run(&spec, &end, err);             gt_rank_open(&link, err);          *link NULL: not started by a launcher
 *                                                  gt_rank_report_progress(link, step);          every step: no system call
 *                                                  gt_rank_report_error(link, code, sentence);
 *
 *     launcher --fork, exec--> rank 0 ... rank n - 1
 *         |<-- board (shared memory): progress of each rank; token, address and port for all ----|
 *         |<-- error socket: the error that a rank will exit with -------------------------------|
 *         |<-- output pipe: lines of ranks 1 ... n - 1 (of rank 0 too, with spec.capture) -------|
 *         |--- signals: SIGINT, SIGTERM, SIGHUP, SIGUSR1; SIGKILL after grace_s ---------------->|
 *         |<-- TCP --> launchers of other hosts (launch/hosts.h)
 *
 * What a rank receives. It gets the environment variables GTRAIN_RANK, GTRAIN_WORLD, GTRAIN_LOCAL_RANK, GTRAIN_LOCAL_WORLD, GTRAIN_NODE,
 * GTRAIN_NNODES and GTRAIN_RESTART (number of attempts before this one). It inherits descriptors, whose numbers are in GTRAIN_*_FD
 * (gt_rank_open removes these variables): a socket for its error report, the board, and for rank 0 a listening socket for the rendezvous,
 * so that no other process can take the port. It has its own cores, OMP_NUM_THREADS (unless the variable is set already), and its own
 * process group, so that the terminal's Ctrl-C reaches only the launcher, which forwards it. Its standard input is /dev/null. Rank 0 writes
 * to the launcher's stdout and stderr unless spec.capture is set; lines of other ranks go to spec.say with the prefix "[rank 2] ".
 *
 * Failure. The launcher names the first rank that fails, by the error that the rank reported, by its exit code or signal, or as "no
 * progress for 30 s at step 118". A rank that lost its peer (GT_EPEER) is named only if no other failure explains the loss. The launchers
 * of several hosts exchange failures (launch/hosts.h): "node 1 (gpu7): rank 9 was killed by signal 9 (Killed) at step 118". The launcher
 * then sends SIGTERM to the other ranks and, after grace_s, SIGKILL; a stopped rank gets SIGKILL at once. The launcher also kills the
 * processes that a rank has started. If the launcher itself dies, the kernel kills the ranks (PR_SET_PDEATHSIG), but not the processes that
 * they started. The shared memory and the sockets have no names in /dev/shm or in a file system, so no file is left behind.
 *
 * Signals. The launcher forwards SIGINT, SIGTERM, SIGHUP and SIGUSR1, each once: the ranks save a checkpoint and exit, and the run ends
 * with code 128+n. A second SIGINT kills all ranks at once. If the signal ends a rank before its first step, the ranks cannot agree on a
 * checkpoint, and the remaining ranks get SIGKILL after grace_s. The launchers of other hosts are informed of each signal and do the same.
 * A rank that exits with 128+n and reports it received such a signal itself, or agreed with a rank that did; this is an orderly end, too.
 * In both cases the launcher does not restart the run. SIGTSTP (Ctrl-Z) stops the launcher and its ranks, and SIGCONT continues all of
 * them. */
#ifndef GT_LAUNCH_LAUNCHER_H
#define GT_LAUNCH_LAUNCHER_H

#include "launch/world.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addrinfo;

#define GT_LAUNCH_MAX 256 /* maximum number of ranks on one host */
#define GT_TOKEN_SIZE 32  /* bytes of the token of a run */
#define GT_PHASE_SIZE 64  /* bytes of the text of gt_rank_phase, with its NUL */

/* How an attempt of a run, or the whole run, ended. */
struct gt_launch_end {
	enum gt_code code;  /* exit code of the process: an enum gt_code, or 128+n after signal n */
	int rank;           /* the first rank that failed; -1: no rank failed */
	int signal;         /* the signal that ended that rank; 0: none */
	int64_t step;       /* optimizer steps that the rank had completed; -1: it failed before its first step */
	char why[1200];     /* "rank 2 was killed by signal 9 (Killed) at step 118"; empty if no rank failed */
	double end_s;       /* seconds from the detection of the failure to the exit of the last rank */
	int restarts;       /* number of attempts before this one */
	int asked;          /* the first signal to this process that asks for the end of the run, also after the last step; 0: none */
};

/* The checkpoint from which an attempt of an elastic run starts. */
struct gt_launch_from {
	int64_t step; /* -1: no checkpoint, the run starts from the beginning */
	bool exact;   /* the directory has later checkpoints, which belong to an abandoned part of the run */
};

struct gt_launch_spec {
	int nproc;              /* ranks on this host */
	int node, nnodes;       /* number of this host, from 0, and of all hosts, each with nproc ranks; nnodes 0 means 1 */
	int node_rank;          /* number by which sentences name this host: --node-rank, also if `node` changes in an elastic run */
	int min_nodes;          /* elastic run (launch/members.h): minimum number of hosts, and nnodes is the maximum; 0: the number is fixed */
	const char *addr;       /* address of the host of rank 0; NULL with one host */
	int port;               /* port of the rendezvous on that host */
	/* on host 0: the addresses of the name addr, which its attempts keep (gt_rdv_listen); gt_launch_run sets it. NULL: nothing is kept */
	struct addrinfo **addresses;
	const void *token;      /* GT_TOKEN_SIZE bytes, the same on every host; NULL: a random token, for one host */
	char *const *argv;      /* arguments of the ranks, NULL-terminated */
	double timeout_s;       /* seconds without progress after which a rank is regarded as lost; 0: never */
	double grace_s;         /* seconds between SIGTERM and SIGKILL; 0 means 1.5, so that a run ends within 2 s */
	double end_s;           /* elastic run: seconds in which other hosts must end an attempt after host 0; 0: 30, timeout_s if longer */
	int max_restarts;       /* restarts after failures that may be transient (gt_launch_is_transient) */
	double backoff_s;       /* seconds before the first restart, doubled for each further restart, at most 60; 0: 1 */
	bool pin;               /* bind each rank to its own cores */
	bool capture;           /* pass the output of rank 0 to say too, with the prefix "[rank 0] " */
	/* Called before a restart; returns the arguments of the next attempt ("resume" instead of "run"), or NULL to end the run. NULL: restart
	 * with the same arguments. */
	char *const *(*again)(void *user, const struct gt_launch_end *last);
	/* Elastic run: on host 0, returns the checkpoint from which the next attempt starts. */
	struct gt_launch_from (*find_from)(void *user);
	/* Elastic run: returns the arguments of an attempt that starts from a checkpoint. NULL: this host cannot take part, and err has the
	 * reason. */
	char *const *(*args_from)(void *user, const struct gt_launch_from *from, struct gt_err *err);
	const unsigned char *identity; /* elastic run: digest (GT_TOKEN_SIZE bytes) of what must be equal on all hosts: config, version */
	/* Called with one line, without its newline, that a rank has printed or that announces a restart. The launcher waits until the call
	 * returns. */
	void (*say)(void *user, const char *line);
	void *user;             /* first argument of again, find_from, args_from and say */
};

/* Runs all attempts until every rank has ended. Returns end->code and, after a failure, fills err with end->why. Call it on the main thread
 * before other threads exist, because the kernel ties PR_SET_PDEATHSIG to the thread that forks. */
enum gt_code gt_launch_run(const struct gt_launch_spec *spec, struct gt_launch_end *end, struct gt_err *err);

/* Returns whether a failure with this exit code may be transient, so that a restart of the same run may succeed: true after a signal, a
 * lost peer, an I/O error or exhausted memory; false after a wrong config, bad data or a diverged loss. */
bool gt_launch_is_transient(enum gt_code code);

/* ---- a rank --------------------------------------------------------------------------------------------------------------- */
struct gt_rank_link;

/* Connects this process to the launcher that started it. Sets *out to NULL if no launcher of gtrain started this process; then use
 * gt_world_from_environment(). GT_EPEER: the launcher has ended. The caller closes the link when the process ends. */
enum gt_code gt_rank_open(struct gt_rank_link **out, struct gt_err *err);
void gt_rank_close(struct gt_rank_link *l); /* l may be NULL, as in every function below */

const struct gt_world *gt_rank_world(const struct gt_rank_link *l);
/* Returns the socket on which rank 0 listens for the rendezvous; the caller owns and closes it. Returns -1 if this is another rank, or if
 * the socket was already taken. */
int gt_rank_take_listener(struct gt_rank_link *l);
const unsigned char *gt_rank_token(const struct gt_rank_link *l); /* returns the run's token, GT_TOKEN_SIZE bytes */
/* Returns a descriptor that becomes readable (POLLIN or POLLHUP of poll) when the launcher ends the run or dies: waiting for other ranks is
 * then pointless. A SIGTERM alone does not mean this, because the user may send SIGTERM to end all ranks in order. The link owns the
 * descriptor. Returns -1 if l is NULL. */
int gt_rank_end_fd(const struct gt_rank_link *l);
/* Call it after the descriptor of gt_rank_end_fd has become readable: writes the launcher's reason for the end of the run to out (size
 * bytes), or "the run is ending" if the launcher sent no reason. One thread at a time may call it. */
void gt_rank_end_reason(const struct gt_rank_link *l, char *out, size_t size);

/* Exit code of a rank that has saved a checkpoint because the hosts of its run change (128 + SIGUSR2, which no rank catches). */
#define GT_RANK_REGROUP 140
/* Returns whether the ranks should agree to save a checkpoint and to exit with GT_RANK_REGROUP. Only ranks of host 0 get true. */
bool gt_rank_must_regroup(const struct gt_rank_link *l);
/* Reports to the launcher that `step` optimizer steps are done. */
void gt_rank_report_progress(struct gt_rank_link *l, int64_t step);
/* Reports progress within a step to the launcher. Any thread of the rank may call it. */
void gt_rank_beat(struct gt_rank_link *l);
/* Reports progress to the launcher and names the phase that follows, for messages ("saving a checkpoint"). allow_s: seconds that may pass
 * before the next report; 0: the launcher's timeout. */
void gt_rank_phase(struct gt_rank_link *l, const char *words, double allow_s);
/* A rank may take this multiple of parallel.timeout before its first step and, on a GPU, for its first step: the driver loads or compiles
 * each kernel at its first use, and GPUs connect to each other. */
#define GT_PATIENCE 4
/* Reports to the launcher whether this rank waits in a collective. The launcher does not name a waiting rank as the cause of a hang unless
 * all ranks wait. */
void gt_rank_set_waiting(struct gt_rank_link *l, bool waits);
/* Reports the error with which this rank will exit, for the launcher's message. Later reports are ignored. */
void gt_rank_report_error(struct gt_rank_link *l, enum gt_code code, const char *sentence);
/* Returns whether the launcher has died; the rank must then exit. Normally PR_SET_PDEATHSIG kills the rank when the launcher dies; this
 * function covers the case that this setting was reset. It costs one poll(2). */
bool gt_rank_orphaned(const struct gt_rank_link *l);

#endif
