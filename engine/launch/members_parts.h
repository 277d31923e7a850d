/* Internal header of membership.c (both sides), members_lead.c (host 0) and members_join.c (the other hosts); launch/members.h describes
 * the membership. */
#ifndef GT_LAUNCH_MEMBERS_PARTS_H
#define GT_LAUNCH_MEMBERS_PARTS_H

#include "base/peer_auth.h"
#include "launch/host_record.h"
#include "launch/members.h"
#include "launch/port_search.h"
#include "launch/rendezvous_parts.h"

#define GT_MEMBER_FRAME_S 0.2 /* seconds for the rest of a message that has begun to arrive */

enum { MEMBER_JOIN = 1, MEMBER_REFUSE, MEMBER_START, MEMBER_ENDED, MEMBER_BEAT, MEMBER_LEAVE, MEMBER_FINISH, MEMBER_DELAY };

struct member_message {
	int64_t step;  /* START: gt_launch_from.step; ENDED: optimizer steps that the host's failed rank had completed */
	uint32_t kind; /* MEMBER_JOIN ... */
	int32_t node;  /* JOIN: --node-rank; START: index in the attempt */
	int32_t nnodes; /* START: hosts of the attempt */
	int32_t nproc; /* JOIN: ranks of the host */
	int32_t code;  /* REFUSE, ENDED, LEAVE, FINISH: exit code */
	int32_t exact; /* START: gt_launch_from.exact */
	unsigned char data[GT_TOKEN_SIZE]; /* JOIN: gt_launch_spec.identity; START, ENDED: random number of the attempt */
	char host[64];  /* name of the sending host */
	char why[1200]; /* REFUSE, ENDED, LEAVE, FINISH, DELAY: the reason */
};

/* The connection to another launcher. A host is in one of four states: it is not there (c.fd is -1), has not sent JOIN yet, waits for an
 * attempt (ready), or takes part in one (busy). */
struct member_conn {
	struct gt_rdv_conn c;
	bool ready, busy;
	bool took_part; /* the host takes or took part in the last attempt */
	int index;      /* its index in that attempt */
	double heard;   /* time (gt_clock) of its last message */
	double joined;  /* time at which it became ready, or from which it may take part; INFINITY: this is not known yet */
	char host[64];
};

struct gt_members {
	const struct gt_launch_spec *spec;
	int epoll, listener;
	char host[64];           /* name of this host */
	struct gt_auth auth;
	struct member_conn *conn; /* host 0: [spec->nnodes], its own entry unused; others: one entry, for host 0 */
	double beat_at, polled;   /* time of the next BEAT; time of the last gt_members_poll() */
	int lost;                 /* host 0: hosts of the last attempt that are lost */
	bool warned;              /* host 0: the user has been warned of a host with another token */
	bool runs_on, saved;      /* host 0: gt_members_settle() has not been called for the last attempt yet; else its argument */
	double settled_at;        /* host 0: time (gt_clock) of the last gt_members_settle() */
	struct gt_host_record *record; /* host 0: [spec->nnodes], the failures of each host */
	char changes[400];
	unsigned char number[GT_TOKEN_SIZE]; /* random number of the last attempt */
	bool runs;                /* an attempt runs: losses are returned by gt_members_poll() */
	bool in_attempt;          /* other hosts: the ranks of this host may still run, so it must not send JOIN */
	bool has_event;
	struct gt_host_message event;
	/* other hosts: */
	struct gt_peer_auth host0;
	struct gt_port_search search;
	enum gt_member_state state;
	struct gt_member_start start;
	struct member_message last;
	int rejections;           /* number of connections to a process with another token */
	const char *obstacle;     /* why a process at host 0's address does not let this host join; NULL: no reason is known */
};

static inline bool gt_members_is_host0(const struct gt_members *m)
{
	return m->spec->node == 0;
}

/* Returns the number of entries of m->conn. */
static inline int gt_members_count(const struct gt_members *m)
{
	return gt_members_is_host0(m) ? m->spec->nnodes : 1;
}

/* ---- membership.c ------------------------------------------------------------------------------------------------------------- */
/* Ends a connection. code: GT_EPEER, the host is lost; otherwise the code with which it has left the run. After a loss within an attempt,
 * the attempt must end, too; after a stop by the user (128 + n), the ranks of all hosts end by themselves. */
void gt_member_drop(struct gt_members *m, struct member_conn *p, enum gt_code code, const char *why);
/* Sends a message, or ends the connection if this is impossible. */
void gt_member_send(struct gt_members *m, struct member_conn *p, struct member_message w);
/* Sets the event that gt_members_poll() returns. */
void gt_members_set_event(struct gt_members *m, struct gt_host_message event, const char *host, const char *why);
/* Stores the random number of an attempt, and computes the token of the attempt. */
void gt_members_set_number(struct gt_members *m, const unsigned char number[GT_TOKEN_SIZE], unsigned char token[GT_TOKEN_SIZE]);
/* Adds the connection with this index in m->conn to the descriptors that gt_members_poll() reads. */
void gt_members_watch(struct gt_members *m, int fd, int number);

/* Passes one line to gt_launch_spec.say. */
void gt_members_say(const struct gt_members *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- members_lead.c ------------------------------------------------------------------------------------------------------------- */
/* Takes into account on host 0 that a host is lost or has left the run; gt_member_drop() calls it. */
void gt_members_note_loss(struct gt_members *m, const struct member_conn *p, enum gt_code code, const char *why);
/* Between two attempts, host 0 treats hosts as lost that have not ended the last attempt for too long. */
void gt_members_drop_late(struct gt_members *m, double now);
/* Refuses a host that has proved that it holds the token, and closes its connection. */
void gt_members_refuse(struct gt_members *m, struct gt_rdv_conn *c, enum gt_code code, const char *why);
void gt_members_note_stranger(struct gt_members *m, const struct gt_peer_auth *a); /* warns of a connection with another token */
void gt_members_accept(struct gt_members *m, struct gt_peer_auth *a); /* takes an authenticated connection on host 0 */
void gt_members_lead(struct gt_members *m, struct member_conn *p, const struct member_message *w); /* handles a message on host 0 */

/* ---- members_join.c ----------------------------------------------------------------------------------------------------------- */
void gt_members_search(struct gt_members *m); /* on another host: looks for host 0 while there is no connection to it */
/* Notes why a process at host 0's address does not let this host join. */
void gt_members_note_obstacle(struct gt_members *m, const struct gt_peer_auth *a);
void gt_members_join(struct gt_members *m, struct gt_peer_auth *a); /* takes the connection to host 0, and asks to join */
void gt_members_follow(struct gt_members *m, struct member_conn *p, const struct member_message *w); /* handles a message of host 0 */

#endif
