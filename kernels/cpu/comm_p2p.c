/* Sends and receives of the shared-memory communicator. Each ordered pair of ranks that communicates has a ring in the segment. A message
 * is a header and its data. It streams through the ring, so it may be larger than the ring. */
#include "base/clock.h"
#include "cpu/comm_shm.h"
#include "cpu/cpu_pause.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define PIECE ((size_t)64 << 10) /* bytes after which the other side is notified, so that it copies while the next piece is written */
#define YIELDS 8

struct header {
	struct gt_p2p_head head;
	char pad[GT_SHM_LINE - sizeof(struct gt_p2p_head)];
};
_Static_assert(sizeof(struct header) == GT_SHM_LINE, "a header never wraps around the end of a ring");

struct transfer {
	const struct gt_p2p *x;
	size_t bytes, done; /* bytes: size of the message's data; done: number of bytes transferred so far, including padding */
	uint32_t seq;
	bool started, finished;
};

static size_t round_up_to_line(size_t n)
{
	return (n + GT_SHM_LINE - 1) & ~(size_t)(GT_SHM_LINE - 1);
}

/* Copies n bytes between memory and the ring at stream position `at`. */
static void copy_ring(char *ring, size_t cap, uint64_t at, char *mem, size_t n, bool in)
{
	size_t pos = at % cap, head = n < cap - pos ? n : cap - pos;
	if (in) {
		memcpy(ring + pos, mem, head);
		memcpy(ring, mem + head, n - head);
	} else {
		memcpy(mem, ring + pos, head);
		memcpy(mem + head, ring, n - head);
	}
}

/* Sends one piece of a message. Sets *moved if any bytes were copied. */
static enum gt_code send_step(struct shm_comm *c, struct transfer *t, bool *moved, struct gt_err *err)
{
	const struct gt_p2p *x = t->x;
	struct shm_pair *p = &c->pair[c->pub.rank * c->pub.world + x->peer];
	size_t cap = c->pair_bytes;
	if (!p->ring) {
		uint64_t off;
		struct gt_err bad = {0};
		if (gt_shm_alloc(c->root, cap, &off, &bad) != GT_OK)
			return gt_shm_reject(c, &bad, err);
		__atomic_store_n(&p->ring, off, __ATOMIC_RELEASE);
	}
	char *ring = gt_shm_at(c->root, p->ring);
	uint64_t head = p->head;
	size_t room = cap - (size_t)(head - __atomic_load_n(&p->tail, __ATOMIC_ACQUIRE));
	if (!t->started) {
		if (room < sizeof(struct header))
			return GT_OK;
		struct header h = {.head = gt_p2p_sign(x, t->seq = ++c->sent[x->peer])};
		memcpy(ring + head % cap, &h, sizeof h);
		t->started = *moved = true;
		head += sizeof h;
		room -= sizeof h;
	}
	size_t left = round_up_to_line(t->bytes) - t->done, n = left < room ? left : room;
	n = n < PIECE ? n : PIECE;
	if (n) {
		size_t data = t->done < t->bytes ? t->bytes - t->done : 0;
		copy_ring(ring, cap, head, (char *)x->send + t->done, data < n ? data : n, true);
		t->done += n;
		head += n;
		*moved = true;
	}
	t->finished = t->done == round_up_to_line(t->bytes);
	if (head == p->head)
		return GT_OK;
	__atomic_store_n(&p->head, head, __ATOMIC_RELEASE);
	gt_shm_ring(c, x->peer);
	return GT_OK;
}

static enum gt_code recv_step(struct shm_comm *c, struct transfer *t, bool *moved, struct gt_err *err)
{
	const struct gt_p2p *x = t->x;
	struct shm_pair *p = &c->pair[x->peer * c->pub.world + c->pub.rank];
	size_t cap = c->pair_bytes;
	uint64_t tail = p->tail;
	size_t there = (size_t)(__atomic_load_n(&p->head, __ATOMIC_ACQUIRE) - tail);
	if (!there)
		return GT_OK;
	char *ring = gt_shm_at(c->root, __atomic_load_n(&p->ring, __ATOMIC_ACQUIRE));
	if (!t->started) {
		struct header h;
		char text[GT_COMM_CALL_TEXT];
		memcpy(&h, ring + tail % cap, sizeof h);
		struct gt_p2p_head own = gt_p2p_sign(x, t->seq = ++c->got[x->peer]);
		if (!gt_p2p_compare(&h.head, &own, c->member[x->peer], c->member[c->pub.rank], c->pub.name, text, sizeof text))
			return gt_shm_break(c, err, "%s", text);
		t->started = true;
		tail += sizeof h;
		there -= sizeof h;
	}
	size_t left = round_up_to_line(t->bytes) - t->done, n = left < there ? left : there;
	n = n < PIECE ? n : PIECE;
	if (n) {
		size_t data = t->done < t->bytes ? t->bytes - t->done : 0;
		copy_ring(ring, cap, tail, (char *)x->recv + t->done, data < n ? data : n, false);
		t->done += n;
		tail += n;
	}
	*moved = true;
	t->finished = t->done == round_up_to_line(t->bytes);
	__atomic_store_n(&p->tail, tail, __ATOMIC_RELEASE);
	gt_shm_ring(c, x->peer);
	return GT_OK;
}

/* Tries to advance each transfer of the call once. Transfers of one direction to one peer keep their order. */
static enum gt_code advance_transfers(struct shm_comm *c, struct transfer *t, int n, bool *moved, int *left, struct gt_err *err)
{
	uint64_t busy[2] = {0};
	*moved = false;
	*left = 0;
	for (int i = 0; i < n; i++) {
		uint64_t bit = 1ull << t[i].x->peer;
		if (t[i].finished)
			continue;
		if (!(busy[t[i].x->sends] & bit))
			GT_TRY(t[i].x->sends ? send_step(c, &t[i], moved, err) : recv_step(c, &t[i], moved, err));
		if (!t[i].finished) {
			busy[t[i].x->sends] |= bit;
			++*left;
		}
	}
	return GT_OK;
}

/* Ends the call with a failure if a peer has ended or left, or if the deadline has passed. Call it only after a turn without progress that
 * began after the peer's end. */
static enum gt_code give_up(struct shm_comm *c, const struct transfer *t, int n, const bool *gone, bool late, struct gt_err *err)
{
	for (int i = 0; i < n; i++) {
		int peer = t[i].x->peer;
		if (t[i].finished || (!gone[peer] && !late))
			continue;
		char text[96], since[32] = "", chain[64] = "";
		int member = c->member[peer], culprit = late ? gt_shm_culprit(c->root, member) : member;
		uint32_t next = t[i].started ? t[i].seq : 1 + (t[i].x->sends ? c->sent : c->got)[peer];
		struct gt_p2p_head own = gt_p2p_sign(t[i].x, next);
		gt_p2p_text(&own, text, sizeof text);
		const char *why = "";
		if (late)
			snprintf(since, sizeof since, " after %g s", c->root->timeout_s);
		else
			why = __atomic_load_n(&c->slot[peer].left, __ATOMIC_ACQUIRE) ? " has closed its communicator; it" : " has died; it";
		if (culprit != member)
			snprintf(chain, sizeof chain, "rank %d has not answered rank %d, which", culprit, member);
		else
			snprintf(chain, sizeof chain, "rank %d", member);
		return gt_shm_break(c, err, "%s%s has not %s %s %s rank %d (%s)%s", chain, why, t[i].x->sends ? "received" : "sent",
		                    text, t[i].x->sends ? "from" : "to", c->member[c->pub.rank], c->pub.name, since);
	}
	return GT_OK;
}

static int first_unfinished(const struct transfer *t, int n)
{
	for (int i = 0; i < n; i++) {
		if (!t[i].finished)
			return t[i].x->peer;
	}
	return -1;
}

/* Runs the transfers of a call until all are finished. A turn tries each of them once. After turns without progress the rank first spins,
 * then yields, then sleeps; after each sleep it checks for peers that have ended and for the deadline. */
static enum gt_code exchange_messages(struct shm_comm *c, const struct gt_p2p *list, int n, struct gt_err *err)
{
	if (gt_shm_is_broken(c))
		return gt_shm_broken(c, err);
	struct gt_err bad = {0};
	if (gt_p2p_check(&c->pub, list, n, &bad) != GT_OK)
		return gt_shm_reject(c, &bad, err);
	struct transfer t[GT_COMM_BATCH];
	for (int i = 0; i < n; i++)
		t[i] = (struct transfer){.x = &list[i], .bytes = list[i].count * gt_dtype_size(list[i].dtype)};
	struct shm_slot *own = &c->slot[c->pub.rank];
	double deadline = 0;
	bool moved, gone[GT_COMM_RANKS] = {0}, some_gone = false;
	int left, turns = 0;
	for (;;) {
		uint32_t bell = __atomic_load_n(&own->bell, __ATOMIC_SEQ_CST);
		GT_TRY(advance_transfers(c, t, n, &moved, &left, err));
		if (!left)
			return GT_OK;
		if (gt_shm_is_broken(c))
			return gt_shm_broken(c, err);
		if (moved) {
			if (deadline > 0)
				gt_shm_say_awaits(c, -1);
			deadline = 0;
			turns = 0;
			continue;
		}
		if (some_gone)
			GT_TRY(give_up(c, t, n, gone, false, err));
		if (turns < c->root->spin) {
			turns++;
			gt_cpu_pause();
			continue;
		}
		if (turns < c->root->spin + YIELDS) {
			turns++;
			sched_yield();
			continue;
		}
		if (deadline == 0)
			deadline = gt_clock() + c->root->timeout_s;
		gt_shm_say_awaits(c, first_unfinished(t, n));
		/* The rank announces its sleep, checks once more, then sleeps: a peer that makes progress after that check sees the announcement
		 * and wakes it. */
		__atomic_store_n(&own->drowsy, 1, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		enum gt_code code = advance_transfers(c, t, n, &moved, &left, err);
		if (code == GT_OK && !moved)
			gt_shm_wait_briefly(c, bell);
		__atomic_store_n(&own->drowsy, 0, __ATOMIC_SEQ_CST);
		GT_TRY(code);
		if (!left)
			return GT_OK;
		for (int i = 0; i < n && !moved; i++) {
			int peer = t[i].x->peer;
			if (!t[i].finished && (gt_shm_dead(c->root, c->member[peer]) || __atomic_load_n(&c->slot[peer].left, __ATOMIC_ACQUIRE)))
				gone[peer] = some_gone = true;
		}
		if (moved)
			deadline = 0;
		else if (gt_clock() > deadline) {
			GT_TRY(advance_transfers(c, t, n, &moved, &left, err));
			if (!moved)
				GT_TRY(give_up(c, t, n, gone, true, err));
		}
	}
}

enum gt_code gt_shm_exchange(struct gt_comm *pub, const struct gt_p2p *list, int n, int stream, struct gt_err *err)
{
	(void)stream;
	struct shm_comm *c = (struct shm_comm *)pub;
	enum gt_code code = exchange_messages(c, list, n, err);
	gt_shm_say_awaits(c, -1);
	return code;
}
