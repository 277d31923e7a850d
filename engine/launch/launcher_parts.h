/* Internal header of attempt.c, elastic.c, launcher_run.c, launcher_signals.c, supervise.c, cpu_affinity.c and rank.c; launch/launcher.h
 * describes the launcher. */
#ifndef GT_LAUNCH_LAUNCHER_PARTS_H
#define GT_LAUNCH_LAUNCHER_PARTS_H

#include "launch/launcher.h"
#include <sched.h>
#include <signal.h>
#include <sys/types.h>

/* ---- the board: a memfd that the launcher and all ranks of the host map into memory ------------------------------------------ */
#define GT_BOARD_MAGIC 0x67746264u /* "gtbd" */
#define GT_BOARD_VERSION 3

struct gt_board_slot { /* one slot for each rank of this host; only that rank writes to it */
	_Alignas(128) _Atomic uint64_t beats; /* number of progress reports */
	_Atomic int64_t step;     /* optimizer steps done; -1: none yet */
	_Atomic uint32_t waits;   /* 1: the rank waits in a collective */
	_Atomic uint32_t allow_ms; /* milliseconds that may pass before the next report; 0: the launcher's timeout */
	char phase[GT_PHASE_SIZE]; /* name of the phase, for messages; a reader may see a half-written text */
};

struct gt_board {
	uint32_t magic, version;   /* GT_BOARD_MAGIC, GT_BOARD_VERSION */
	int32_t local_world, port; /* ranks on this host; port of the rendezvous */
	unsigned char token[GT_TOKEN_SIZE];
	char addr[GT_ADDR_SIZE];   /* address of the host of rank 0 */
	_Atomic uint32_t regroup;  /* 1: gt_rank_must_regroup() returns true */
	struct gt_board_slot slot[]; /* [local_world] */
};

/* ---- error report of a rank: one SEQPACKET message --------------------------------------------------------------------------- */
struct gt_rank_error {
	int32_t code; /* exit code of the rank */
	char text[sizeof ((struct gt_err *)0)->msg];
};

/* ---- one attempt ------------------------------------------------------------------------------------------------------------ */
struct gt_child { /* state of the process of one rank in the launcher */
	pid_t pid;      /* process id; 0: the rank was not started */
	int link;       /* the launcher's end of the socket for the rank's error report */
	int out;        /* the pipe with the rank's output; -1: the rank writes to the launcher's stdout and stderr */
	bool gone;      /* the rank has ended and its status was collected */
	bool stopped;   /* the rank is stopped, for example by SIGSTOP */
	double stopped_at; /* time at which the rank was stopped, in seconds (gt_clock) */
	int status;     /* the rank's exit code or, if by_signal is set, the signal that ended it */
	bool by_signal; /* whether a signal ended the rank */
	bool has_error; /* whether `error` holds the rank's error report */
	struct gt_rank_error error;
	uint64_t beats; /* gt_board_slot.beats of the rank when the launcher last read it */
	double beat_at; /* time at which beats last changed, in seconds (gt_clock) */
	char line[4096]; /* the rank's output since its last newline */
	size_t nline;    /* bytes in line */
};

static inline bool gt_child_alive(const struct gt_child *c)
{
	return c->pid && !c->gone;
}

struct gt_hosts;
struct gt_members;
struct gt_attempt {
	const struct gt_launch_spec *spec;
	int restarts;            /* number of attempts before this one */
	struct gt_board *board;
	size_t board_bytes;
	int board_fd, listen_fd; /* the board's memfd; rank 0's listening socket */
	struct gt_hosts *hosts;  /* connection to the launchers of other hosts; NULL: there is one host */
	struct gt_members *members; /* elastic run: connection to the launchers of other hosts for the whole run; else NULL */
	struct gt_child *child;  /* [spec->nproc] */
	int started;             /* number of ranks that were started */
	int signal_fd;           /* descriptor of gt_signal_fd() */
	int stop_signal;         /* the first signal by which the user stopped the run; 0: none */
	int stop_node;           /* number of the host that received stop_signal */
	char stop_host[64];      /* name of the host that received stop_signal; empty: this host */
	bool joined;             /* it was printed that this host has joined host 0 */
	int interrupts;          /* number of SIGINTs that this launcher has received */
	unsigned passed;         /* bit 1 << signal: the signal was forwarded to the ranks */
};

/* In attempt.c. Opens the board and the sockets of an attempt, and starts every rank. Call gt_attempt_close afterwards, also after a
 * failure. mask: the signal mask of the ranks. */
enum gt_code gt_attempt_open(struct gt_attempt *a, char *const *argv, const sigset_t *mask, struct gt_err *err);
void gt_attempt_close(struct gt_attempt *a);
/* In launcher_run.c. Runs one attempt: opens it, supervises it and closes it. Returns the error of gt_attempt_open. */
enum gt_code gt_attempt_run(struct gt_attempt *a, char *const *argv, const sigset_t *mask, bool kill_leftovers, struct gt_launch_end *end,
                            struct gt_err *err);
/* In launcher_run.c. Returns the seconds before restart number `restarts` + 1. */
double gt_attempt_backoff(const struct gt_launch_spec *s, int restarts);
/* In elastic.c. Runs the attempts of an elastic run (a->spec->min_nodes) until it has ended on this host. */
enum gt_code gt_elastic_run(struct gt_attempt *a, const sigset_t *mask, bool kill_leftovers, struct gt_launch_end *end, struct gt_err *err);
/* In supervise.c. Supervises the ranks until all have ended. */
void gt_attempt_supervise(struct gt_attempt *a, struct gt_launch_end *end);
/* In launcher_signals.c. Blocks the signals that concern a run and returns a descriptor that receives them, -1 on failure. *before: the
 * mask to restore afterwards. */
int gt_signal_fd(sigset_t *before);
/* In fork_program.c. fork() for a process that will execute a program. The new process has a process group of its own and the signal mask
 * `mask`, and the kernel kills it if this process dies; if that has happened already, it exits with orphan_code. A signal that arrives
 * before the exec has its default effect, because the handlers of this process are removed. Ignored signals stay ignored. */
pid_t gt_fork_program(const sigset_t *mask, int orphan_code);
/* Forwards the signals that have arrived to the ranks and to the launchers of other hosts. */
void gt_attempt_signals(struct gt_attempt *a);
/* Ends the run because the user has sent signal `sig` on this or on another host: forwards it to the ranks, once, or kills them if `now` is
 * set. After the signal, the ranks of all hosts agree among themselves to save a checkpoint and to exit. */
void gt_attempt_stop(struct gt_attempt *a, int sig, bool now);
/* Sends a signal to all running ranks and, if `group` is set, to the processes that they have started. Set `group` only for signals that
 * need no handler, because processes that a rank has started may have none. */
void gt_attempt_signal_ranks(struct gt_attempt *a, int sig, bool group);
/* Waits for at most `seconds`. Returns false if a signal requests the end of the run. */
bool gt_attempt_pause(struct gt_attempt *a, double seconds);
/* Informs the other hosts that the user has stopped this host between two attempts, including hosts that begin their attempt within
 * `seconds`. */
void gt_attempt_announce_stop(struct gt_attempt *a, double seconds);
/* Kills the processes that the ranks of an attempt started and left behind, in and outside of the ranks' process groups. These processes
 * are now children of this process. */
void gt_attempt_kill_leftovers(void);

/* ---- cpu_affinity.c ---------------------------------------------------------------------------------------------------------------- */
struct gt_cpu_info {
	int cpu;           /* logical processor, numbered as by sched_setaffinity */
	int package, core; /* numbers of the processor's package and of its core in the package; processors with equal numbers share a core */
};
/* Lists the processors that this process may use. Returns their number; 0 if the kernel does not report them. */
int gt_cpu_list(struct gt_cpu_info out[CPU_SETSIZE]);
/* Sorts the np processors in p and chooses the processors of rank `local` of n ranks: whole neighbouring cores, or single processors if
 * there are fewer cores than ranks. Sets *cores to the number of threads that are useful on them. Returns false, and leaves *set unchanged,
 * if there are fewer processors than ranks. */
bool gt_cpu_share(struct gt_cpu_info *p, int np, int local, int n, cpu_set_t *set, int *cores);

#endif
