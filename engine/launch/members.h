/* Membership of an elastic run (gtrain run --nnodes MIN:MAX). The launcher of host 0 decides which hosts take part in an attempt. The
 * launcher of every other host connects to host 0, asks to join, and waits until host 0 starts an attempt with it.
 *
 *     host 0: gt_members_open(&spec, &m, err);                    another host: the same
 *             gt_members_ready(m) others wait                                   gt_members_told(m, &start) == GT_MEMBER_STARTS
 *             gt_members_start(m, &from, &start);
 *             ... the attempt; gt_members_poll(m, &message) ends it early ...   the same
 *             gt_members_busy(m) == 0: all others have ended it                 gt_members_report(m, &end);
 *             gt_members_finish(m, code, why);                                  gt_members_told(m, &start) == GT_MEMBER_FINISHES
 *
 *     host 1 --JOIN, ENDED, BEAT, LEAVE--.
 *     host 2 ----------------------------+--> host 0 (listens on the first free port from the port of the run on)
 *     host 3 <--START, DELAY, FINISH, REFUSE, BEAT--'
 *
 * Protocol: the handshake of base/peer_auth.h with the token of the run as the secret, "gtrain-members2" as the magic, and the number of
 * the host and the maximum number of hosts as the claims; then frames as in launch/rendezvous_parts.h, each a struct member_message.
 * Unauthenticated connections are rejected and do not affect the run. Both sides send BEAT every second. A host that sends nothing for
 * gt_launch_spec.timeout_s seconds (0: 30) is lost, as is a host whose connection is closed. DELAY tells a host that it has to wait after
 * failures (launch/host_record.h).
 *
 * Each attempt has its own token: the HMAC of a random number in START under the token of the run. A rank or launcher of an earlier
 * attempt, for example behind a cut cable, can therefore not take part in a later attempt. ENDED has the same number. A host that has lost
 * its connection to host 0 connects again only after its ranks have ended. */
#ifndef GT_LAUNCH_MEMBERS_H
#define GT_LAUNCH_MEMBERS_H

#include "launch/hosts.h"

#define GT_MEMBERS_MAGIC "gtrain-members2" /* magic of the handshake, 16 bytes including the last NUL */

struct gt_members;

struct gt_member_start { /* an attempt */
	int node, nnodes; /* index of this host among the hosts of the attempt, and their number */
	struct gt_launch_from from;
	unsigned char token[GT_TOKEN_SIZE]; /* token of the attempt */
	/* host 0: the hosts that were lost ("host 2 (gpu7) is lost") or have joined ("host 2 (gpu7) joins") since the last attempt began */
	char changes[400];
};

/* What host 0 has told this host last. REFUSES and FINISHES: gt_members_last() has the reason. LOST: there is no connection to host 0;
 * gt_members_poll() tries to connect again. */
enum gt_member_state { GT_MEMBER_LOST, GT_MEMBER_WAITS, GT_MEMBER_STARTS, GT_MEMBER_REFUSES, GT_MEMBER_FINISHES };

/* GT_EPEER: host 0 cannot listen on its address, or its address has no name. */
enum gt_code gt_members_open(const struct gt_launch_spec *s, struct gt_members **out, struct gt_err *err);
void gt_members_close(struct gt_members *m); /* m may be NULL, as in gt_members_fd() and gt_members_poll() */

/* Returns a descriptor that is readable when gt_members_poll() has work to do; -1 if m is NULL. */
int gt_members_fd(const struct gt_members *m);
/* Sends and receives what is possible now, without waiting; call it at least every 0.1 s. Returns true if the attempt in which this host
 * takes part must end: a host of the attempt is lost, has left the run, or host 0 has ended the run. *out is then a message of the kind
 * GT_HOST_FAILS. If the user has stopped a host of this attempt, it also returns true; the kind is then GT_HOST_STOPS, on host 0 during and
 * after the attempt, on another host during it. Each event is returned once. */
bool gt_members_poll(struct gt_members *m, struct gt_host_message *out);

/* ---- host 0 ------------------------------------------------------------------------------------------------------------------- */
int gt_members_ready(const struct gt_members *m); /* number of other hosts that wait for an attempt */
int gt_members_busy(const struct gt_members *m);  /* number of other hosts that have not yet ended the last attempt */
int gt_members_lost(const struct gt_members *m);  /* number of hosts of the last attempt that are lost or have left the run */
/* Returns whether the running attempt should end because a host has joined. It waits 2 s for further hosts. false if m is NULL. */
bool gt_members_regroup(const struct gt_members *m);
/* Starts an attempt with all hosts that wait. Fills *out for host 0, whose index is 0. GT_EFAIL: the kernel returns no random number. Call
 * gt_members_settle() when the attempt has ended on host 0. */
enum gt_code gt_members_start(struct gt_members *m, const struct gt_launch_from *from, struct gt_member_start *out, struct gt_err *err);
/* saved: the attempt has saved a checkpoint. This decides how long the hosts that have failed in this attempt wait before they take part
 * again (launch/host_record.h). */
void gt_members_settle(struct gt_members *m, bool saved);
/* Tells all other hosts that the run has ended. code: exit code of host 0. */
void gt_members_finish(struct gt_members *m, enum gt_code code, const char *why);

/* ---- other hosts -------------------------------------------------------------------------------------------------------------- */
/* GT_MEMBER_STARTS: *out describes the attempt that this host begins now; the state is GT_MEMBER_WAITS afterwards. */
enum gt_member_state gt_members_told(struct gt_members *m, struct gt_member_start *out);
/* Returns the reason of GT_MEMBER_REFUSES or GT_MEMBER_FINISHES, and its exit code in *code. */
const char *gt_members_last(const struct gt_members *m, enum gt_code *code);
/* In state GT_MEMBER_LOST: returns why a process at the address of host 0 does not let this host join ("it has a different token: …").
 * NULL: no reason is known. */
const char *gt_members_obstacle(const struct gt_members *m);
void gt_members_report(struct gt_members *m, const struct gt_launch_end *end); /* this host has ended its attempt */
void gt_members_leave(struct gt_members *m, enum gt_code code, const char *why); /* this host leaves the run */

#endif
