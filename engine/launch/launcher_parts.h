/* What launcher.c, supervise.c, cpu_affinity.c and rank.c share; see launch/launcher.h for the whole. */
#ifndef GT_LAUNCH_LAUNCHER_PARTS_H
#define GT_LAUNCH_LAUNCHER_PARTS_H

#include "launch/hosts.h"
#include "launch/launcher.h"
#include <sched.h>
#include <signal.h>
#include <sys/types.h>

/* ---- the board: a memfd that the launcher and all ranks of the host map ----------------------------------------------------- */
#define GT_BOARD_MAGIC 0x67746264u /* "gtbd" */
#define GT_BOARD_VERSION 2

struct gt_board_slot { /* one a rank of this host, written by it alone */
	_Alignas(128) _Atomic uint64_t beats;
	_Atomic int64_t step; /* -1: none yet */
	_Atomic uint32_t waits;
	_Atomic uint32_t allow_ms;
	char phase[GT_PHASE_SIZE]; /* for messages; may be read half written */
};

struct gt_board {
	uint32_t magic, version;
	int32_t local_world, port;
	unsigned char token[GT_TOKEN_SIZE];
	char addr[GT_ADDR_SIZE];
	struct gt_board_slot slot[];
};

/* ---- last words: one SEQPACKET message -------------------------------------------------------------------------------------- */
struct gt_last_words {
	int32_t code;
	char text[sizeof ((struct gt_err *)0)->msg];
};

/* ---- one attempt ------------------------------------------------------------------------------------------------------------ */
struct gt_child {
	pid_t pid;
	int link;       /* our end of its socket */
	int out;        /* what it writes; -1: it has our own stdout and stderr */
	bool gone;      /* reaped */
	bool stopped;
	double stopped_at;
	int status;     /* its exit code, or the signal that ended it (by_signal) */
	bool by_signal;
	bool has_words;
	struct gt_last_words words;
	uint64_t beats; /* as last seen */
	double beat_at;
	char line[4096];
	size_t nline;
};

static inline bool gt_child_alive(const struct gt_child *c)
{
	return c->pid && !c->gone;
}

struct gt_attempt {
	const struct gt_launch_spec *spec;
	int restarts;
	struct gt_board *board;
	size_t board_bytes;
	int board_fd, listen_fd;
	struct gt_hosts *hosts; /* NULL: there is one */
	struct gt_child *child; /* spec->nproc */
	int started;
	int signal_fd;
	int stop_signal; /* the user's first; 0: none */
	int stop_node;   /* the node that got it, */
	char stop_host[64]; /* and its name; empty: this one */
	int interrupts;  /* SIGINTs */
	unsigned passed; /* 1 << signal: the ranks were told */
};

/* launcher.c: everything open, every rank started; undone by close, also after a failure. mask: of the ranks. */
enum gt_code gt_attempt_open(struct gt_attempt *a, char *const *argv, const sigset_t *mask, struct gt_err *err);
void gt_attempt_close(struct gt_attempt *a);
/* supervise.c: until no rank is left. */
void gt_attempt_watch(struct gt_attempt *a, struct gt_launch_end *end);
/* launcher_signals.c. Blocks the signals that concern a run and gives a descriptor that receives them, -1 on failure; *before: the mask to put
 * back. */
int gt_signal_fd(sigset_t *before);
/* What has come since: passed on to the ranks, and to the other hosts' launchers. */
void gt_attempt_signals(struct gt_attempt *a);
/* The run is to end by signal `sig`, of this host's user or another's: the ranks are told, once; now: they are killed. Ranks agree among
 * themselves, also with those of other hosts, to save a checkpoint and to end. */
void gt_attempt_stop(struct gt_attempt *a, int sig, bool now);
/* A signal for all ranks that run; group: and for what they have started. Only a rank itself may have a handler: a group gets what needs none. */
void gt_attempt_tell(struct gt_attempt *a, int sig, bool group);
/* Waits at most `seconds`; false: a signal asks to stop. */
bool gt_attempt_pause(struct gt_attempt *a, double seconds);
/* The user has stopped this host between two attempts: tells the hosts that begin theirs within `seconds`. */
void gt_attempt_part(struct gt_attempt *a, double seconds);
/* Ends what the ranks of an attempt started and left, also outside of their process groups: this process' children by now. */
void gt_sweep(void);

/* ---- cpu_affinity.c ---------------------------------------------------------------------------------------------------------------- */
struct gt_core_place {
	int cpu;           /* logical processor, as sched_setaffinity counts */
	int package, core; /* two processors with both equal share one core */
};
/* The processors that this process may use; returns how many, 0 if the kernel does not tell. */
int gt_core_places(struct gt_core_place out[CPU_SETSIZE]);
/* Rank `local` of n: whole cores, neighbours; single processors where there are fewer cores than ranks; false (and set untouched) where
 * there are fewer processors than ranks. *cores: how many threads are of use. Sorts p. */
bool gt_core_share(struct gt_core_place *p, int np, int local, int n, cpu_set_t *set, int *cores);

#endif
