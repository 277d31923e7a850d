/* The communicator across hosts, over gloo's TCP connections: its insides. gloo_link.h is gloo; above it, everything is plain C.
 *
 * Between every two ranks of the group that open() made there is one connection, which groups split from it share: the number of a group
 * is in the slots of its messages. gloo's thread moves data. A second thread, the watch, looks every WATCH_MS for notes of other ranks
 * (struct gloo_note), for lost connections, and at the deadline of whoever waits; it works while the trainer computes. The watches of two
 * ranks send each other beats: who waits with patience waits for a rank that lives and can be reached.
 *
 * Collectives go from every rank to every other one directly. gloo's own are not used: they add in the order of a ring, and they take it
 * for granted that all ranks call the same. First each rank tells every other what it calls, and small data go with that; larger ones
 * follow in parts: rank r gets the r-th part of everybody, reduces it in the tree of comm.h, and hands it round. That moves as few bytes
 * as a ring, in two steps instead of 2 (n - 1).
 *
 * A failure. Who sees one tells all others in a note; everybody listens for SETTLE_S to what others saw, and takes the same: a rank's own
 * word before a death, a death before a deadline, then the lowest rank's. A rank that is said to be late, and waits itself, says for
 * whom: who says nothing is the one that is named. Hosts that a cut cable has parted cannot agree, and each names
 * the other.
 *
 * Security. Tensor traffic is neither authenticated nor encrypted; connections are: the two ends of each prove to each other that they know the
 * group's random number (gloo_meet.c), and only then does gloo get the descriptor. gloo ends the process where a stranger talks to it, so it
 * never listens to anybody (gloo_pairs.cc). Who can read the rendezvous between the hosts learns the random number, and who can forge TCP segments
 * needs none: the network between the hosts must be trusted, as for any tensor traffic. */
#ifndef GT_KERNELS_GLOO_GLOO_H
#define GT_KERNELS_GLOO_GLOO_H

#include "comm.h"
#include "gloo/gloo_link.h"
#include <pthread.h>
#include <sys/socket.h>

#define GT_GLOO_SMALL ((size_t)8 << 10)   /* data that go with a call's description */
#define GT_GLOO_PIECE ((size_t)256 << 10) /* of a large call: reduced while the next one is under way */
#define GT_GLOO_AHEAD 4                   /* pieces of a peer that wait to be reduced */
#define GT_GLOO_HEAD ((size_t)4 << 10)    /* a message's head with the data of a small one */
#define GT_GLOO_HEADS_IN 8                /* heads that arrive before their recv */
#define GT_GLOO_HEADS_OUT 64              /* and those that their sender keeps */
#define GT_GLOO_ALIGN 64

/* What a rank calls; every other gets it, and compares. */
struct gloo_call {
	struct gt_coll_call call;
	uint32_t left; /* no call: this rank has closed the group */
	uint32_t pad[3];
};
_Static_assert(sizeof(struct gloo_call) == GT_GLOO_ALIGN, "data follow it");
#define GT_GLOO_CALL (sizeof(struct gloo_call) + GT_GLOO_SMALL)

struct gloo_head {
	uint64_t count;
	uint32_t seq, dtype;
	char what[GT_COLL_WHAT];
	uint32_t left;
	uint32_t pad[3];
};
_Static_assert(sizeof(struct gloo_head) == GT_GLOO_ALIGN, "data follow it");
#define GT_GLOO_EAGER (GT_GLOO_HEAD - sizeof(struct gloo_head))

/* A word between two ranks, aside from calls; one of a kind in a group's life. */
enum gloo_note_kind { GLOO_HELLO, GLOO_BROKEN, GLOO_BYE, GLOO_ACK, GLOO_NOTES, GLOO_BEAT = GLOO_NOTES };
struct gloo_note {
	uint64_t check; /* over what follows, never 0: the watch reads it from memory that gloo may just be writing */
	uint32_t kind;
	uint16_t grade, blames; /* the rank that it names */
	char text[1008];
};
enum gloo_grade { GLOO_SAID, GLOO_DEAD, GLOO_LATE }; /* which failure explains the others */

/* Of a process and a group with all that are split from it. */
struct gloo_root {
	struct gl_net *net;
	int rank, world;
	double timeout_s; /* now: see patience() */
	double base_s;    /* at first: nobody is silent for longer */
	size_t pair_bytes;
	uint64_t next_id;
	struct gloo_comm *groups; /* all of them live until this is closed: something may arrive for them */
	void **buffer;
	int buffers;

	pthread_t watch;
	bool watched;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t turn;  /* the watch has made a turn */
	bool stop;
	struct gl_port *waiting; /* by the thread that calls */
	int waiting_peer;
	double since, deadline, not_before;
	double limit_s;  /* that the last wait came to the end of */
	bool restless;   /* it wants to be woken at every turn */
	double first_s;  /* when the first failure was told; 0: none */
	bool told;       /* by this rank too */
	uint32_t broken; /* atomic: decided */
	char why[1008];
	struct gloo_peer_root {
		struct gl_port *in[GLOO_NOTES], *out;
		struct gloo_note note[GLOO_NOTES];
		bool seen[GLOO_NOTES], lost;
		/* A beat goes out when the peer's last one has come and BEAT_S have passed. The last byte is its number. */
		struct gl_port *beat_in, *beat_out;
		unsigned char heard[8], beat[2][8];
		uint32_t beats_in, beats_out;
		double heard_s, sent_s;
	} * peer;
	struct gloo_note own[GLOO_NOTES];
};

enum {             /* the messages of a group, between two ranks */
	   GLOO_CALL,  /* descriptions */
	   GLOO_PART,  /* what is to be reduced, or handed on */
	   GLOO_WHOLE, /* results */
	   GLOO_HEADS, /* of exchange() */
	   GLOO_BODY,
	   GLOO_LANES
};

struct gloo_peer {
	struct gl_port *in[GLOO_LANES], *out[GLOO_LANES];
	uint32_t open[GLOO_LANES];  /* sends posted and not yet waited for */
	char *calls, *heads, *keep; /* two descriptions; GT_GLOO_HEADS_IN heads; GT_GLOO_HEADS_OUT of its own */
	char *ring;                 /* pair_bytes: bodies on their way */
	uint64_t ring_end, ring_begin;
	uint64_t *size;     /* of the bodies not yet waited for, [GT_GLOO_HEADS_OUT] in turn: bytes of the ring, 0: none */
	uint32_t sent, got; /* messages */
	uint32_t body_first;
};

struct gloo_comm {
	struct gt_comm pub;
	struct gloo_root *root;
	struct gloo_comm *next;
	uint64_t id;
	uint32_t seq;
	bool is_first;             /* owns the root */
	int member[GT_COMM_RANKS]; /* ranks in the group that open() made */
	struct gloo_peer *peer;
	char *own;         /* two descriptions */
	char *stage;       /* [rank][GT_GLOO_AHEAD] pieces */
	size_t pair_bytes; /* of each peer's ring */
	char *mem;
	size_t mem_bytes;
};

static inline uint64_t gt_gloo_slot(const struct gloo_comm *c, int lane)
{
	return c->id * 16 + (uint64_t)lane;
}

/* gloo_meet.c */
struct gloo_place { /* where a rank listens */
	uint32_t bytes, pad;
	struct sockaddr_storage to;
};
int gt_gloo_listen(const char *addr, struct gloo_place *at, char why[GL_WHY]); /* -1: why says so */
/* A connection to each other rank, fd[world], within timeout_s; false: none at all, and why says which rank is missing. */
bool gt_gloo_meet(int listener, int rank, int world, const char *id, const struct gloo_place *at, double timeout_s, int *fd, char why[GL_WHY]);

/* gloo_watch.c */
enum gt_code gt_gloo_watch_start(struct gloo_root *r, struct gt_err *err);
void gt_gloo_watch_stop(struct gloo_root *r); /* says goodbye first, and waits until all have heard it; at most timeout_s */
void gt_gloo_note(struct gloo_root *r, enum gloo_note_kind k, int grade, int blames, const char *text); /* to all; needs the lock */
bool gt_gloo_note_is_whole(const struct gloo_note *n, enum gloo_note_kind k);
bool gt_gloo_is_broken(const struct gloo_root *r);
enum gt_code gt_gloo_broken(struct gloo_root *r, struct gt_err *err); /* GT_EPEER with the group's sentence */
/* Tells of a failure, by the rank `blames`, and waits until all have agreed; err gets what was agreed. Returns GT_EPEER. */
enum gt_code gt_gloo_break(struct gloo_root *r, enum gloo_grade grade, int blames, struct gt_err *err, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void gt_gloo_say_broken(struct gloo_root *r, const char *text); /* waits for nothing: the own word counts at once */

/* Waits until one more message of the port is done. restless: GLOO_TURN comes back after WATCH_MS at most. */
enum gloo_end { GLOO_END, GLOO_LOST, GLOO_TIME, GLOO_FAIL, GLOO_TURN };
enum gloo_end gt_gloo_wait(struct gloo_root *r, struct gl_port *p, int member, bool restless);
bool gt_gloo_has_left(struct gloo_root *r, int member); /* it said goodbye */

/* gloo_coll.c */
enum gt_code gt_gloo_coll(struct gloo_comm *c, enum gt_coll_kind kind, const struct gt_coll *x, struct gt_err *err);
/* gloo_p2p.c */
enum gt_code gt_gloo_exchange(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err);

#endif
