/* Internal header of the communicator between hosts, over gloo's TCP connections. gloo_link.h wraps gloo; everything above it is plain C.
 *
 * Every two ranks of the group that open() created have one connection, which the groups split from it share: the slots of messages contain
 * the number of their group. gloo's thread moves data. A second thread, the watch, checks every WATCH_MS for notes of other ranks (struct
 * gloo_note), for lost connections, and for the deadline of a waiting thread; it works while the trainer computes. The watches of two ranks
 * send each other beats, so that even with a long deadline, a rank stops waiting for a rank that has died or cannot be reached.
 *
 * Collectives send from every rank directly to every other rank. gloo's own collectives are not used: they add in the order of a ring, and
 * assume that all ranks make the same call. First each rank sends its call to every other rank, with the data if they are small. Larger
 * data follow in parts:
 *
 *     rank r receives part r of every rank -> reduces it in the tree of comm.h -> sends the result to every rank
 *
 * This moves as few bytes as a ring, in two steps instead of 2 (n - 1).
 *
 * Failure. A rank that detects a failure sends a note to all other ranks. Every rank then collects notes for SETTLE_S and selects the same
 * note: an error that a rank reports of itself first, then a death, then a deadline; among equals, the note of the lowest rank. If a rank
 * that is reported as late itself waits for another rank, it replies with that rank; the message names a rank that has not replied in this
 * way. Two hosts whose connection is cut cannot agree, and each names the other.
 *
 * Security. Tensor traffic is neither authenticated nor encrypted. Connections are authenticated: the two ends prove to each other that
 * they know the group's random number (gloo_meet.c), and only then does gloo get the descriptor. gloo ends the process on unexpected data,
 * so it never listens itself (gloo_link.cc). An attacker who can read the rendezvous between the hosts learns the random number, and an
 * attacker who can forge TCP segments does not need it. So the network between the hosts must be trusted, as for any tensor traffic. */
#ifndef GT_KERNELS_GLOO_GLOO_H
#define GT_KERNELS_GLOO_GLOO_H

#include "comm_call.h"
#include "gloo/gloo_link.h"
#include <pthread.h>
#include <sys/socket.h>

#define GT_GLOO_SMALL ((size_t)8 << 10)   /* maximum bytes of data that are sent with the description of a call */
#define GT_GLOO_PIECE ((size_t)256 << 10) /* bytes of a piece of a large call, which is reduced while the next one is received */
#define GT_GLOO_AHEAD 4                   /* minimum of gloo_comm.ahead */
#define GT_GLOO_STAGED 32                 /* number of pieces from all ranks that wait to be reduced, unless `ahead` is at its minimum */
#define GT_GLOO_HEAD ((size_t)4 << 10)    /* bytes of the head of a message of exchange(), with the data of a small message */
#define GT_GLOO_HEADS_IN 8                /* maximum number of message heads from a peer that arrive before exchange() takes them */
#define GT_GLOO_HEADS_OUT 64              /* maximum number of message heads that a sender keeps until they are sent */
#define GT_GLOO_ALIGN 64

/* The description of one rank's collective call. Every other rank receives it and compares it with its own. */
struct gloo_call {
	struct gt_coll_call call;
	uint32_t left; /* not 0: the rank has closed the group, and there is no call */
	uint32_t pad[3];
};
_Static_assert(sizeof(struct gloo_call) == GT_GLOO_ALIGN, "data follow it");
#define GT_GLOO_CALL (sizeof(struct gloo_call) + GT_GLOO_SMALL)

/* The head of a message of exchange(). */
struct gloo_head {
	struct gt_p2p_head head;
	uint32_t left; /* not 0: the rank has closed the group, and there is no message */
	uint32_t pad[3];
};
_Static_assert(sizeof(struct gloo_head) == GT_GLOO_ALIGN, "data follow it");
#define GT_GLOO_EAGER (GT_GLOO_HEAD - sizeof(struct gloo_head))

/* A note between two ranks, independent of calls; each kind is sent at most once in the life of a group. */
enum gloo_note_kind { GLOO_HELLO, GLOO_BROKEN, GLOO_BYE, GLOO_ACK, GLOO_NOTES, GLOO_BEAT = GLOO_NOTES };
struct gloo_note {
	uint64_t check; /* checksum of the other fields, never 0, because the watch may read the note while gloo writes it */
	uint32_t kind;
	uint16_t grade, blames; /* enum gloo_grade; number of the rank that the note names */
	char text[1008];
};
/* kinds of failures in the order of their precedence: a reported error, a death, an expired deadline */
enum gloo_grade { GLOO_SAID, GLOO_DEAD, GLOO_LATE };

/* The state of a group that open() created, in one process. The groups that are split from that group share it. */
struct gloo_root {
	struct gl_net *net;
	int rank, world;
	double timeout_s; /* current deadline of exchanges in seconds (gt_comm_api.set_timeout) */
	double base_s;    /* deadline given to open(), in seconds: also the longest time without a beat from a live rank */
	size_t pair_bytes;
	uint64_t next_id;
	struct gloo_comm *groups; /* all groups; they exist until the root is closed, because messages for them may still arrive */
	void **buffer;
	int buffers;

	pthread_t watch;
	bool watched;
	pthread_mutex_t lock; /* protects all fields below */
	pthread_cond_t turn;  /* signalled after each turn of the watch thread */
	bool stop;
	struct gl_port *waiting; /* the port on which the calling thread waits */
	int waiting_peer;
	double since, deadline, not_before;
	double limit_s;  /* the deadline that the last wait exceeded, in seconds */
	bool restless;   /* true: the waiting thread is woken at every turn of the watch thread */
	double first_s;  /* time of the first reported failure; 0: none */
	bool reported;   /* true: this rank has reported a failure */
	uint32_t broken; /* atomic; not 0: the ranks have agreed on the failure */
	char why[1008];
	struct gloo_peer_root {
		struct gl_port *in[GLOO_NOTES], *out;
		struct gloo_note note[GLOO_NOTES];
		bool seen[GLOO_NOTES], lost;
		/* A beat is a message of 8 bytes by which a rank shows that it lives; its last byte is its number. A rank sends one when the peer's
		 * last beat has arrived and BEAT_S seconds, or base_s / 8 if that is shorter, have passed. */
		struct gl_port *beat_in, *beat_out;
		unsigned char heard[8], beat[2][8];
		uint32_t beats_in, beats_out;
		double heard_s, sent_s;
	} * peer;
	struct gloo_note own[GLOO_NOTES];
};

enum {             /* the kinds of messages between two ranks of a group */
	   GLOO_CALL,  /* descriptions of collective calls */
	   GLOO_PART,  /* parts of the data, to be reduced or forwarded */
	   GLOO_WHOLE, /* results */
	   GLOO_HEADS, /* heads of messages of exchange() */
	   GLOO_BODY,
	   GLOO_LANES
};

struct gloo_peer {
	struct gl_port *in[GLOO_LANES], *out[GLOO_LANES];
	uint32_t open[GLOO_LANES];  /* number of sends that are posted and not yet waited for */
	/* memory for two received descriptions of calls; for GT_GLOO_HEADS_IN received heads; for GT_GLOO_HEADS_OUT sent heads */
	char *calls, *heads, *keep;
	char *ring;                 /* memory of pair_bytes bytes, with the bodies of messages that are being sent */
	uint64_t ring_end, ring_begin;
	/* bytes of the ring that each message body occupies until its send is complete, used cyclically; 0: none; [GT_GLOO_HEADS_OUT] */
	uint64_t *size;
	uint32_t sent, got; /* counts of messages of exchange() sent to the peer and received from it */
	uint32_t body_first;
};

struct gloo_comm {
	struct gt_comm pub;
	struct gloo_root *root;
	struct gloo_comm *next;
	uint64_t id;
	uint32_t seq;
	bool is_first;             /* true: open() created this group, which owns the root */
	int member[GT_COMM_RANKS]; /* for each rank of this group, its rank in the group that open() created */
	struct gloo_peer *peer;
	char *own;         /* memory for two descriptions of this rank's calls */
	size_t ahead;      /* maximum number of received pieces of large data from a peer that are not yet reduced. The message that a piece has
	                      room waits behind the data in this rank's socket, so few pieces would not keep the link busy. */
	char *stage;       /* [rank][ahead] pieces */
	size_t pair_bytes; /* bytes of each peer's ring */
	char *mem;
	size_t mem_bytes;
};

static inline uint64_t gt_gloo_slot(const struct gloo_comm *c, int lane)
{
	return c->id * 16 + (uint64_t)lane;
}

/* gloo_meet.c */
struct gloo_place { /* the address on which a rank listens */
	uint32_t bytes, pad;
	struct sockaddr_storage to;
};
/* returns the listening socket, or -1 with the reason in why */
int gt_gloo_listen(const char *addr, struct gloo_place *at, char why[GL_WHY]);
/* Connects to every other rank within timeout_s seconds and stores the sockets in fd[world]. After a failure it returns false, all
 * connections are closed, and why names the missing rank. */
bool gt_gloo_meet(int listener, int rank, int world, const char *id, const struct gloo_place *at, double timeout_s, int *fd,
                  char why[GL_WHY]);

/* gloo_watch.c */
enum gt_code gt_gloo_watch_start(struct gloo_root *r, struct gt_err *err);
/* First sends GLOO_BYE and waits until all ranks have received it, but at most timeout_s seconds. */
void gt_gloo_watch_stop(struct gloo_root *r);
/* Sends a note to all ranks. The caller holds r->lock. */
void gt_gloo_note(struct gloo_root *r, enum gloo_note_kind k, int grade, int blames, const char *text);
bool gt_gloo_note_is_whole(const struct gloo_note *n, enum gloo_note_kind k);
bool gt_gloo_is_broken(const struct gloo_root *r);
enum gt_code gt_gloo_broken(struct gloo_root *r, struct gt_err *err); /* returns GT_EPEER with the sentence of the failure */
/* Reports a failure that rank `blames` caused, and waits until all ranks have agreed on one failure; err receives it. Returns GT_EPEER. */
enum gt_code gt_gloo_break(struct gloo_root *r, enum gloo_grade grade, int blames, struct gt_err *err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void gt_gloo_say_broken(struct gloo_root *r, const char *text); /* breaks the group at once, without waiting for agreement */

/* Waits until one more message of the port is complete. If restless is true, it returns GLOO_TURN after at most WATCH_MS. */
enum gloo_end { GLOO_END, GLOO_LOST, GLOO_TIME, GLOO_FAIL, GLOO_TURN };
enum gloo_end gt_gloo_wait(struct gloo_root *r, struct gl_port *p, int member, bool restless);
bool gt_gloo_has_left(struct gloo_root *r, int member); /* Returns whether the member has left the group (sent GLOO_BYE). */

/* gloo_coll.c */
enum gt_code gt_gloo_coll(struct gt_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err);
/* gloo_p2p.c */
enum gt_code gt_gloo_exchange(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err);

#endif
