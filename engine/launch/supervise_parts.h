/* Internal header of supervise.c, which watches the ranks of one attempt, and failure_cause.c, which decides why the attempt ends. */
#ifndef GT_LAUNCH_SUPERVISE_PARTS_H
#define GT_LAUNCH_SUPERVISE_PARTS_H

#include "launch/hosts.h"
#include "launch/launcher_parts.h"

/* Seconds that the launcher waits for another host's message about the end of a lost peer. */
#define GT_HOST_WAIT_S 0.7

struct watch {
	struct gt_attempt *a;
	struct gt_launch_end *end;
	double failed_at;  /* time (gt_clock) of the first failure; < 0: no failure so far */
	int lost;          /* the first rank that lost a peer, while no other failure is known; -1: none */
	double lost_at;
	bool assumed;      /* the failure in `end` is the loss of a peer: the cause on another host replaces it */
	double kill_at;    /* time at which the remaining ranks get SIGKILL; INFINITY: never */
	int orderly;       /* 128 + n: a rank has shut down cleanly after signal n; 0: no rank has */
	double orderly_at;
};

/* Returns the rank of the run that is rank `local` of this host. */
static inline int gt_watch_rank(const struct watch *w, int local)
{
	const struct gt_launch_spec *s = w->a->spec;
	return (s->nnodes > 1 ? s->node * s->nproc : 0) + local;
}

/* ---- failure_cause.c ---------------------------------------------------------------------------------------------------------- */
/* Informs the other hosts of the error that a rank has just reported: the rank may take seconds until it ends, and meanwhile their ranks
 * lose their connections to it. */
void gt_watch_announce_error(struct watch *w, int local);
/* Handles a message of another host: its attempt has failed, or its user has stopped the run. */
void gt_watch_handle_message(struct watch *w, const struct gt_host_message *word);
/* Decides by the exit status of a rank whether it has failed, has ended in order or has lost a peer. */
void gt_watch_classify_exit(struct watch *w, int local);
/* Decides why rank w->lost has lost its peer. Returns true as long as the end of the peer itself may still be detected. */
bool gt_watch_classify_loss(struct watch *w, bool all_gone);
/* Checks the progress of the ranks, and ends the attempt if a rank makes none. A rank that waits in a collective is named only if all ranks
 * wait. */
void gt_watch_check_progress(struct watch *w, double now);

#endif
