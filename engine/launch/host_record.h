/* The failures of a host in an elastic run. Host 0 keeps one record for each --node-rank, so that a host that joins and fails again and
 * again does not restart the run for ever: after each failure the host waits longer before it takes part again, and after
 * GT_HOST_FAILURES failures without progress host 0 refuses it.
 *
 *     gt_host_record_add(&r, "gpu7", "its launcher has ended", true, gt_clock());   the attempt with this host ends
 *     gt_host_record_settle(&r, saved);                                             the attempt has saved a checkpoint, or not
 *     if (gt_host_record_refuses(&r, "gpu7", now, why, sizeof why)) ...             the host asks to join
 *     ready_at = gt_host_record_ready(&r, "gpu7", backoff, now);
 *
 * Progress: an attempt in which the host took part has saved a checkpoint. The failures before it do not count any more. */
#ifndef GT_LAUNCH_HOST_RECORD_H
#define GT_LAUNCH_HOST_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#define GT_HOST_FAILURES 5        /* number of failures without progress after which a host is refused */
#define GT_HOST_FORGET_S 3600.0   /* seconds after the last failure at which all failures are forgotten */

struct gt_host_record {
	char host[64];    /* name of the host that has failed; empty: none has. Another host with the same number starts without failures */
	char why[120];    /* the last failure */
	int failures;     /* number of failures without progress */
	bool open;        /* whether the attempt that the last failure has ended has saved a checkpoint is not known yet */
	bool told;        /* the user has been told that the host is refused */
	double failed_at; /* time (gt_clock) of the last failure */
};

/* Adds a failure. in_attempt: it has ended an attempt, and gt_host_record_settle() follows. */
void gt_host_record_add(struct gt_host_record *r, const char *host, const char *why, bool in_attempt, double now);
/* Takes into account whether the attempt has saved a checkpoint. */
void gt_host_record_settle(struct gt_host_record *r, bool saved);
/* Returns the time (gt_clock) from which the host may take part, which is not before `now`; INFINITY until gt_host_record_settle(). wait_s:
 * seconds that a host waits after its first failure; each further failure doubles them. */
double gt_host_record_ready(const struct gt_host_record *r, const char *host, double wait_s, double now);
/* Returns whether the host is refused, and writes the reason to why. */
bool gt_host_record_refuses(const struct gt_host_record *r, const char *host, double now, char *why, size_t size);

#endif
