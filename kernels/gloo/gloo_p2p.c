/* Point-to-point transfers between hosts. A message is a head, which contains the data of a small message. The body of a larger message
 * follows in a lane of its own and arrives directly in the receiver's memory. The receiver posts its receive after it has read the head,
 * because gloo needs the same length at both ends. A sender does not wait for data that fit into its own memory: GT_GLOO_HEADS_OUT heads
 * and pair_bytes bytes of bodies. */
#include "base/clock.h"
#include "gloo/gloo.h"
#include <stdio.h>
#include <string.h>

struct transfer {
	const struct gt_p2p *x;
	size_t bytes;
	uint32_t seq;
	enum { NEW, BODY, DONE } state;
	uint32_t body; /* index of this message's body among all bodies of the peer */
};

static enum gt_code report_failure(struct gloo_comm *c, const struct transfer *t, enum gloo_end end, struct gt_err *err)
{
	struct gloo_root *r = c->root;
	int peer = t->x->peer;
	char text[96];
	if (end == GLOO_FAIL)
		return gt_gloo_broken(r, err);
	uint32_t next = t->state != NEW ? t->seq : 1 + (t->x->sends ? c->peer[peer].sent : c->peer[peer].got);
	struct gt_p2p_head own = gt_p2p_sign(t->x, next);
	gt_p2p_text(&own, text, sizeof text);
	const char *verb = t->x->sends ? "received" : "sent", *way = t->x->sends ? "from" : "to";
	if (end == GLOO_LOST)
		return gt_gloo_break(r, GLOO_DEAD, c->member[peer], err, "rank %d has %s: it has not %s %s %s rank %d (%s)", c->member[peer],
		                     gt_gloo_has_left(r, c->member[peer]) ? "closed its communicator" : "died or cannot be reached",
		                     	verb, text, way,
		                     r->rank, c->pub.name);
	return gt_gloo_break(r, GLOO_LATE, c->member[peer], err, "rank %d has not %s %s %s rank %d (%s) after %g s", c->member[peer], verb,
	                     text, way, r->rank, c->pub.name, r->limit_s);
}

/* ---- sends -------------------------------------------------------------------------------------------------------------------------- */
/* Waits until one of this rank's messages to the peer has been sent. If it is a body, its bytes of the ring become free. */
static enum gloo_end wait_send(struct gloo_comm *c, int peer, int lane, bool restless)
{
	struct gloo_peer *p = &c->peer[peer];
	enum gloo_end end = gt_gloo_wait(c->root, p->out[lane], c->member[peer], restless);
	if (end != GLOO_END)
		return end;
	p->open[lane]--;
	if (lane == GLOO_BODY)
		p->ring_begin += p->size[p->body_first++ % GT_GLOO_HEADS_OUT];
	return end;
}

/* Returns true if n bytes fit into the ring in one piece. *skip receives the number of bytes at the end of the ring that then stay
 * unused. */
static bool has_room(const struct gloo_comm *c, struct gloo_peer *p, size_t n, size_t *skip)
{
	if (p->ring_begin == p->ring_end)
		p->ring_begin = p->ring_end = 0;
	size_t cap = c->pair_bytes, at = p->ring_end % cap;
	*skip = n > cap - at ? cap - at : 0;
	return n + *skip <= cap - (size_t)(p->ring_end - p->ring_begin);
}

/* Posts a head and its body; *moved stays false if there was no space for them. If a call has many sends, each waits only a short time for
 * space, because the peers may be sending too and this rank must receive from them. */
static enum gt_code start_send(struct gloo_comm *c, struct transfer *t, bool restless, bool *moved, struct gt_err *err)
{
	const struct gt_p2p *x = t->x;
	struct gloo_peer *p = &c->peer[x->peer];
	bool eager = t->bytes <= GT_GLOO_EAGER;
	enum gloo_end end = GLOO_END;
	size_t skip = 0;
	while (end == GLOO_END && p->open[GLOO_HEADS] >= GT_GLOO_HEADS_OUT)
		end = wait_send(c, x->peer, GLOO_HEADS, restless);
	while (end == GLOO_END && !eager && p->open[GLOO_BODY] >= GT_GLOO_HEADS_OUT)
		end = wait_send(c, x->peer, GLOO_BODY, restless);
	while (end == GLOO_END && !eager && t->bytes <= c->pair_bytes && !has_room(c, p, t->bytes, &skip))
		end = wait_send(c, x->peer, GLOO_BODY, restless);
	if (end == GLOO_TURN)
		return GT_OK;
	if (end != GLOO_END)
		return report_failure(c, t, end, err);
	t->seq = ++p->sent;
	t->state = BODY; /* in this state, error messages contain the number of the transfer */
	char *keep = p->keep + (size_t)(t->seq % GT_GLOO_HEADS_OUT) * GT_GLOO_HEAD;
	struct gloo_head *h = (struct gloo_head *)(void *)keep;
	*h = (struct gloo_head){.head = gt_p2p_sign(x, t->seq)};
	if (eager && t->bytes)
		memcpy(keep + sizeof *h, x->send, t->bytes);
	if (!gl_post(p->out[GLOO_HEADS], gt_gloo_slot(c, GLOO_HEADS), keep, sizeof *h + (eager ? t->bytes : 0)))
		return report_failure(c, t, GLOO_LOST, err);
	p->open[GLOO_HEADS]++;
	*moved = true;
	t->state = DONE;
	if (eager)
		return GT_OK;
	char *from = (char *)(uintptr_t)x->send;
	uint32_t body = p->body_first + p->open[GLOO_BODY];
	p->size[body % GT_GLOO_HEADS_OUT] = 0;
	if (t->bytes <= c->pair_bytes) {
		p->ring_end += skip;
		from = memcpy(p->ring + p->ring_end % c->pair_bytes, x->send, t->bytes);
		p->ring_end += t->bytes;
		p->size[body % GT_GLOO_HEADS_OUT] = t->bytes + skip;
	} else {
		t->state = BODY; /* the body is sent from the caller's memory, so the call has to wait for it */
		t->body = body;
	}
	if (!gl_post(p->out[GLOO_BODY], gt_gloo_slot(c, GLOO_BODY), from, t->bytes))
		return report_failure(c, t, GLOO_LOST, err);
	p->open[GLOO_BODY]++;
	return GT_OK;
}

/* Waits for the end of a send. Bodies to one peer are sent in order. */
static enum gt_code finish_send(struct gloo_comm *c, struct transfer *t, struct gt_err *err)
{
	struct gloo_peer *p = &c->peer[t->x->peer];
	while ((int32_t)(t->body - p->body_first) >= 0) {
		enum gloo_end end = wait_send(c, t->x->peer, GLOO_BODY, false);
		if (end != GLOO_END)
			return report_failure(c, t, end, err);
	}
	t->state = DONE;
	return GT_OK;
}

/* ---- receives ----------------------------------------------------------------------------------------------------------------------- */
static enum gt_code compare_head(struct gloo_comm *c, const struct transfer *t, const struct gloo_head *h, struct gt_err *err)
{
	int from = c->member[t->x->peer];
	char text[GT_COMM_CALL_TEXT];
	struct gt_p2p_head own = gt_p2p_sign(t->x, t->seq);
	if (!h->left && gt_p2p_compare(&h->head, &own, from, c->root->rank, c->pub.name, text, sizeof text))
		return GT_OK;
	if (!h->left)
		return gt_gloo_break(c->root, GLOO_SAID, from, err, "%s", text);
	gt_p2p_text(&own, text, sizeof text);
	return gt_gloo_break(c->root, GLOO_SAID, from, err, "rank %d has closed its communicator: it has not sent %s to rank %d (%s)", from,
	                     text, c->root->rank, c->pub.name);
}

/* Handles a head that has arrived: compares it with the receive, copies small data, or posts the receive of the body. */
static enum gt_code process_head(struct gloo_comm *c, struct transfer *t, struct gt_err *err)
{
	const struct gt_p2p *x = t->x;
	struct gloo_peer *p = &c->peer[x->peer];
	char *at = p->heads + (size_t)(p->got++ % GT_GLOO_HEADS_IN) * GT_GLOO_HEAD;
	t->seq = p->got;
	t->state = BODY;
	GT_TRY(compare_head(c, t, (struct gloo_head *)(void *)at, err));
	if (t->bytes > GT_GLOO_EAGER) {
		if (!gl_post(p->in[GLOO_BODY], gt_gloo_slot(c, GLOO_BODY), x->recv, t->bytes))
			return report_failure(c, t, GLOO_LOST, err);
	} else {
		if (t->bytes)
			memcpy(x->recv, at + sizeof(struct gloo_head), t->bytes);
		t->state = DONE;
	}
	/* a failure here means that the peer is gone; the next wait for it reports that */
	gl_post(p->in[GLOO_HEADS], gt_gloo_slot(c, GLOO_HEADS), at, GT_GLOO_HEAD);
	return GT_OK;
}

/* Returns true if a message head has arrived from the peer, even if gloo has not reported it yet. */
static bool has_head_arrived(const struct gloo_peer *p)
{
	const char *at = p->heads + (size_t)(p->got % GT_GLOO_HEADS_IN) * GT_GLOO_HEAD;
	const struct gloo_head *h = (const struct gloo_head *)(const void *)at;
	return __atomic_load_n(&h->head.seq, __ATOMIC_ACQUIRE) == p->got + 1 || __atomic_load_n(&h->left, __ATOMIC_RELAXED);
}

static enum gt_code start_receive(struct gloo_comm *c, struct transfer *t, bool wait, bool restless, bool *moved, struct gt_err *err)
{
	struct gloo_peer *p = &c->peer[t->x->peer];
	if (!wait && !has_head_arrived(p))
		return GT_OK;
	enum gloo_end end = gt_gloo_wait(c->root, p->in[GLOO_HEADS], c->member[t->x->peer], restless);
	if (end == GLOO_TURN)
		return GT_OK;
	if (end != GLOO_END)
		return report_failure(c, t, end, err);
	*moved = true;
	return process_head(c, t, err);
}

static enum gt_code finish_receive(struct gloo_comm *c, struct transfer *t, struct gt_err *err)
{
	enum gloo_end end = gt_gloo_wait(c->root, c->peer[t->x->peer].in[GLOO_BODY], c->member[t->x->peer], false);
	if (end != GLOO_END)
		return report_failure(c, t, end, err);
	t->state = DONE;
	return GT_OK;
}

/* ---- entry point -------------------------------------------------------------------------------------------------------------------- */
/* Transfers from this rank to itself: its k-th send is copied to its k-th receive. */
static enum gt_code copy_to_self(struct gloo_comm *c, struct transfer *t, int n, struct gt_err *err)
{
	for (int i = 0, k = 0; i < n; i++) {
		if (t[i].x->peer != c->pub.rank || !t[i].x->sends)
			continue;
		while (k < n && (t[k].x->peer != c->pub.rank || t[k].x->sends))
			k++;
		t[i].seq = ++c->peer[c->pub.rank].sent;
		if (k == n)
			return gt_gloo_break(c->root, GLOO_SAID, c->root->rank, err,
			                     "rank %d sends to itself without receiving in the same call (%s)", c->root->rank, c->pub.name);
		struct gloo_head h = {.head = gt_p2p_sign(t[i].x, t[i].seq)};
		t[k].seq = ++c->peer[c->pub.rank].got;
		GT_TRY(compare_head(c, &t[k], &h, err));
		if (t[i].bytes)
			memmove(t[k].x->recv, t[i].x->send, t[i].bytes);
		t[i].state = t[k].state = DONE;
		k++;
	}
	for (int i = 0; i < n; i++) {
		if (t[i].x->peer == c->pub.rank && t[i].state != DONE)
			return gt_gloo_break(c->root, GLOO_SAID, c->root->rank, err,
			                     "rank %d receives from itself without sending in the same call (%s)", c->root->rank, c->pub.name);
	}
	return GT_OK;
}

/* Starts all transfers that can start. Transfers of one direction between two ranks keep their order. Each turn tries all transfers, and
 * waits only for the first receive. If no transfer starts for timeout_s seconds, the call fails. */
static enum gt_code start_transfers(struct gloo_comm *c, struct transfer *t, int n, struct gt_err *err)
{
	double last = gt_clock();
	for (int left = n; left;) {
		uint64_t busy[2] = {0};
		bool moved = false, waited = false;
		int news = 0;
		left = 0;
		for (int i = 0; i < n; i++)
			news += t[i].state == NEW;
		for (int i = 0; i < n; i++) {
			uint64_t bit = 1ull << t[i].x->peer;
			if (t[i].state != NEW)
				continue;
			if (!(busy[t[i].x->sends] & bit)) {
				bool wait = !t[i].x->sends && !waited && !moved;
				waited = waited || wait;
				GT_TRY(t[i].x->sends ? start_send(c, &t[i], news > 1, &moved, err) : start_receive(c, &t[i], wait, news > 1, &moved, err));
			}
			if (t[i].state == NEW) {
				busy[t[i].x->sends] |= bit;
				left++;
			}
		}
		if (moved)
			last = gt_clock();
		for (int i = 0; i < n && !moved && left && gt_clock() - last > c->root->timeout_s; i++) {
			if (t[i].state == NEW)
				return report_failure(c, &t[i], GLOO_TIME, err);
		}
	}
	return GT_OK;
}

enum gt_code gt_gloo_exchange(struct gt_comm *pub, const struct gt_p2p *list, int n, int stream, struct gt_err *err)
{
	(void)stream;
	struct gloo_comm *c = (struct gloo_comm *)pub;
	if (gt_gloo_is_broken(c->root))
		return gt_gloo_broken(c->root, err);
	struct gt_err bad = {0};
	if (gt_p2p_check(pub, list, n, &bad) != GT_OK) {
		gt_gloo_break(c->root, GLOO_SAID, c->root->rank, NULL, "rank %d: %.900s", c->root->rank, bad.msg);
		return gt_fail(err, bad.code, "%s", bad.msg);
	}
	struct transfer t[GT_COMM_BATCH];
	for (int i = 0; i < n; i++)
		t[i] = (struct transfer){.x = &list[i], .bytes = list[i].count * gt_dtype_size(list[i].dtype)};
	GT_TRY(copy_to_self(c, t, n, err));
	GT_TRY(start_transfers(c, t, n, err));
	for (int i = 0; i < n; i++) {
		if (t[i].state == BODY && !t[i].x->sends)
			GT_TRY(finish_receive(c, &t[i], err));
	}
	for (int i = 0; i < n; i++) {
		if (t[i].state == BODY && t[i].x->sends)
			GT_TRY(finish_send(c, &t[i], err));
	}
	return GT_OK;
}
