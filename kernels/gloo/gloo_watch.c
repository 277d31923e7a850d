/* The watch thread: it reads the notes of other ranks, detects lost connections and expired deadlines, and makes all ranks of a group agree
 * on one message about a failure. */
#include "base/clock.h"
#include "gloo/gloo.h"
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WATCH_MS 10
#define SETTLE_S 0.05 /* seconds between the first note of a failure and the decision; all watches take several turns in this time */
#define BEAT_S 0.5
/* seconds of grace after a deadline, so that a process that was stopped (SIGSTOP) first reads the messages that arrived meanwhile */
#define GRACE_S 0.05
#define ALARM_S 0.2  /* maximum seconds for the answers to a GLOO_BYE message in a broken group, some of whose ranks may never answer */

/* ---- notes ------------------------------------------------------------------------------------------------------------------- */
static uint64_t compute_checksum(const struct gloo_note *n)
{
	uint64_t h = 0xcbf29ce484222325ull; /* the hash function FNV-1a over 64-bit words */
	const char *p = (const char *)&n->kind;
	for (size_t i = 0; i < sizeof *n - sizeof n->check; i += 8) {
		uint64_t w;
		memcpy(&w, p + i, 8);
		h = (h ^ w) * 0x100000001b3ull;
	}
	return h ? h : 1;
}

bool gt_gloo_note_is_whole(const struct gloo_note *n, enum gloo_note_kind k)
{
	uint64_t check = __atomic_load_n(&n->check, __ATOMIC_ACQUIRE);
	return check && n->kind == k && check == compute_checksum(n);
}

static void post_note(struct gloo_root *r, enum gloo_note_kind k, int peer)
{
	if (!r->peer[peer].lost)
		gl_post(r->peer[peer].out, (uint64_t)k, &r->own[k], sizeof r->own[k]); /* a peer whose connection is lost gets no notes */
}

void gt_gloo_note(struct gloo_root *r, enum gloo_note_kind k, int grade, int blames, const char *text)
{
	struct gloo_note *n = &r->own[k];
	memset(n, 0, sizeof *n);
	n->kind = k;
	n->grade = (uint16_t)grade;
	n->blames = (uint16_t)blames;
	snprintf(n->text, sizeof n->text, "%s", text);
	n->check = compute_checksum(n);
	/* an ACK is not sent here: it goes to one rank only, when the goodbye of that rank arrives */
	for (int i = 0; i < r->world && k != GLOO_ACK; i++) {
		if (i != r->rank)
			post_note(r, k, i);
	}
}

/* Checks each peer for a lost connection and for new notes. Answers a goodbye (GLOO_BYE) with an ACK. */
static void check_peers(struct gloo_root *r)
{
	for (int i = 0; i < r->world; i++) {
		struct gloo_peer_root *p = &r->peer[i];
		if (i == r->rank)
			continue;
		/* The connection is tested before the notes are read: data that were sent before a connection was lost arrive before the loss does.
		 * The port of the ACK is tested, because an ACK is the last note that a peer can send. */
		bool lost = p->lost || (!gt_gloo_note_is_whole(&p->note[GLOO_ACK], GLOO_ACK) && gl_is_lost(p->in[GLOO_ACK]));
		for (int k = GLOO_BROKEN; k < GLOO_NOTES; k++) {
			if (p->seen[k] || !gt_gloo_note_is_whole(&p->note[k], k))
				continue;
			p->seen[k] = true;
			if (k == GLOO_BYE)
				post_note(r, GLOO_ACK, i);
			if (k == GLOO_BROKEN && r->first_s == 0)
				r->first_s = gt_clock();
		}
		p->lost = lost;
	}
}

/* Sends and receives beats without blocking: a beat of the peer confirms that this rank's last beat has arrived. */
static void exchange_beats(struct gloo_root *r, double now)
{
	double every = r->base_s / 8 < BEAT_S ? r->base_s / 8 : BEAT_S;
	for (int i = 0; i < r->world; i++) {
		struct gloo_peer_root *p = &r->peer[i];
		if (i == r->rank || p->lost)
			continue;
		if (__atomic_load_n(&p->heard[7], __ATOMIC_ACQUIRE) == (unsigned char)(p->beats_in + 1)) {
			if (gl_wait(p->beat_in) != GL_DONE)
				continue;
			p->beats_in++;
			p->heard_s = now;
			gl_post(p->beat_in, GLOO_BEAT, p->heard, sizeof p->heard);
		}
		if (p->beats_in < p->beats_out || now - p->sent_s < every)
			continue;
		if (p->beats_out > 1 && gl_wait(p->beat_out) != GL_DONE)
			continue;
		unsigned char *b = p->beat[++p->beats_out & 1];
		b[7] = (unsigned char)p->beats_out;
		p->sent_s = now;
		gl_post(p->beat_out, GLOO_BEAT, b, sizeof p->beat[0]);
	}
}

/* Returns true if the waiting thread has reached its deadline. A deadline later than the one given to open() applies only while the peer's
 * beats arrive; without them, open()'s deadline applies. */
static bool is_due(struct gloo_root *r, double now)
{
	double heard = r->peer[r->waiting_peer].heard_s;
	bool silent = r->timeout_s > r->base_s && now - (heard > r->since ? heard : r->since) > r->base_s;
	r->limit_s = silent ? r->base_s : r->timeout_s;
	return now >= r->not_before && (silent || now >= r->deadline);
}

/* ---- failure ----------------------------------------------------------------------------------------------------------------- */
bool gt_gloo_is_broken(const struct gloo_root *r)
{
	return __atomic_load_n(&r->broken, __ATOMIC_ACQUIRE);
}

static const struct gloo_note *get_failure_note(const struct gloo_root *r, int rank)
{
	if (rank == r->rank)
		return r->reported ? &r->own[GLOO_BROKEN] : NULL;
	return rank < r->world && r->peer[rank].seen[GLOO_BROKEN] ? &r->peer[rank].note[GLOO_BROKEN] : NULL;
}

/* Returns true if all failures known to this rank are expired deadlines. */
static bool has_only_timeouts(const struct gloo_root *r)
{
	for (int i = 0; i < r->world; i++) {
		if (get_failure_note(r, i) && get_failure_note(r, i)->grade != GLOO_LATE)
			return false;
	}
	return true;
}

/* Selects the one message on which all ranks agree, by the order that gloo.h describes, and marks the group as broken. */
static void select_failure(struct gloo_root *r)
{
	const struct gloo_note *best = NULL;
	bool best_silent = false;
	for (int i = 0; i < r->world; i++) {
		const struct gloo_note *n = get_failure_note(r, i);
		bool silent = n && !get_failure_note(r, n->blames);
		if (n && (!best || n->grade < best->grade || (n->grade == best->grade && silent && !best_silent))) {
			best = n;
			best_silent = silent;
		}
	}
	if (!best || r->broken)
		return;
	snprintf(r->why, sizeof r->why, "%.*s", (int)sizeof best->text - 1, best->text);
	__atomic_store_n(&r->broken, 1, __ATOMIC_RELEASE);
}

enum gt_code gt_gloo_broken(struct gloo_root *r, struct gt_err *err)
{
	return gt_fail(err, GT_EPEER, "%s", r->why);
}

enum gt_code gt_gloo_break(struct gloo_root *r, enum gloo_grade grade, int blames, struct gt_err *err, const char *fmt, ...)
{
	char text[sizeof r->own[0].text];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&r->lock);
	check_peers(r);
	/* If a rank already knows of another failure, it regards that as the cause of its own failure, which it does not report. There are two
	 * exceptions: an error of the rank itself (GLOO_SAID), and an expired deadline if all known failures are expired deadlines, because a
	 * late rank may only be waiting for another rank. */
	if (!r->broken && !r->reported && (r->first_s == 0 || grade == GLOO_SAID || (grade == GLOO_LATE && has_only_timeouts(r)))) {
		r->reported = true;
		gt_gloo_note(r, GLOO_BROKEN, grade, blames, text);
		r->first_s = r->first_s > 0 ? r->first_s : gt_clock();
	}
	while (!r->broken && r->watched)
		pthread_cond_wait(&r->turn, &r->lock);
	if (!r->broken)
		select_failure(r);
	pthread_mutex_unlock(&r->lock);
	return gt_gloo_broken(r, err);
}

void gt_gloo_say_broken(struct gloo_root *r, const char *text)
{
	pthread_mutex_lock(&r->lock);
	if (!r->broken && !r->reported) {
		r->reported = true;
		gt_gloo_note(r, GLOO_BROKEN, GLOO_SAID, r->rank, text);
		r->first_s = r->first_s > 0 ? r->first_s : gt_clock();
		select_failure(r);
	}
	pthread_mutex_unlock(&r->lock);
}

/* ---- waits -------------------------------------------------------------------------------------------------------------------------- */
/* Waits for a message until its end, a failure, the loss of the peer, or the deadline. The watch thread wakes the calling thread to check
 * these. */
enum gloo_end gt_gloo_wait(struct gloo_root *r, struct gl_port *p, int member, bool restless)
{
	bool late = false, lost = false;
	enum gloo_end end = GLOO_END;
	pthread_mutex_lock(&r->lock);
	r->waiting = p;
	r->waiting_peer = member;
	r->since = gt_clock();
	r->deadline = r->since + r->timeout_s;
	r->not_before = 0;
	r->restless = restless;
	for (bool again = true; again;) {
		pthread_mutex_unlock(&r->lock);
		enum gl_end how = gl_wait(p);
		pthread_mutex_lock(&r->lock);
		again = false;
		if (how == GL_DONE)
			break;
		check_peers(r);
		if (!r->broken && r->first_s > 0 && !r->reported && has_only_timeouts(r))
			end = GLOO_TIME;
		else if (r->broken || r->first_s > 0)
			end = GLOO_FAIL;
		else if (how == GL_LOST || lost)
			end = GLOO_LOST;
		else if (r->peer[member].lost)
			/* waits once more without interruption, because data that arrived before the connection was lost still count */
			lost = again = true;
		else if (restless)
			end = GLOO_TURN;
		else if (!is_due(r, gt_clock()))
			again = true;
		else if (!late) {
			r->not_before = gt_clock() + GRACE_S;
			late = again = true;
		} else
			end = GLOO_TIME;
	}
	r->waiting = NULL;
	while (end == GLOO_FAIL && !r->broken)
		pthread_cond_wait(&r->turn, &r->lock);
	pthread_mutex_unlock(&r->lock);
	return end;
}

bool gt_gloo_has_left(struct gloo_root *r, int member)
{
	pthread_mutex_lock(&r->lock);
	check_peers(r);
	bool left = r->peer[member].seen[GLOO_BYE];
	pthread_mutex_unlock(&r->lock);
	return left;
}

/* ---- the thread -------------------------------------------------------------------------------------------------------------- */
static void *watch_main(void *arg)
{
	struct gloo_root *r = arg;
	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		double now = gt_clock();
		check_peers(r);
		exchange_beats(r, now);
		if (r->first_s > 0 && now - r->first_s >= SETTLE_S)
			select_failure(r);
		if (r->waiting && (r->broken || r->first_s > 0 || r->restless || is_due(r, now) || r->peer[r->waiting_peer].lost))
			gl_wake(r->waiting);
		pthread_cond_broadcast(&r->turn);
		pthread_mutex_unlock(&r->lock);
		nanosleep(&(struct timespec){.tv_nsec = WATCH_MS * 1000000L}, NULL);
		pthread_mutex_lock(&r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

enum gt_code gt_gloo_watch_start(struct gloo_root *r, struct gt_err *err)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	gt_gloo_note(r, GLOO_ACK, 0, 0, "");
	int rc = pthread_create(&r->watch, NULL, watch_main, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return gt_fail_errno(err, GT_EFAIL, rc, "cannot start the thread that watches the connections between ranks");
	r->watched = true;
	return GT_OK;
}

/* gloo sends a message only after its receiver has posted a buffer, separately for each kind of message. So a goodbye could overtake data;
 * this function waits until all data are sent. */
static void flush_sends(struct gloo_root *r, double deadline)
{
	for (struct gloo_comm *c = r->groups; c; c = c->next) {
		for (int i = 0; i < c->pub.world * GLOO_LANES; i++) {
			int peer = i / GLOO_LANES, lane = i % GLOO_LANES;
			enum gloo_end end = GLOO_END;
			while (c->peer[peer].open[lane] && (end == GLOO_END || end == GLOO_TURN) && gt_clock() < deadline) {
				end = gt_gloo_wait(r, c->peer[peer].out[lane], c->member[peer], true);
				c->peer[peer].open[lane] -= end == GLOO_END;
				if (end == GLOO_TURN && gt_gloo_has_left(r, c->member[peer]))
					break; /* the peer has sent GLOO_BYE and receives no more data, so the rest need not be sent */
			}
		}
	}
}

/* Returns true if every peer has answered this rank's goodbye (GLOO_BYE). Then all data that this rank sent have arrived. If the connection
 * were closed at once, data that the peer has not read yet could be lost. */
static bool have_all_acked(const struct gloo_root *r)
{
	for (int i = 0; i < r->world; i++) {
		if (i != r->rank && !r->peer[i].seen[GLOO_ACK] && !r->peer[i].lost)
			return false;
	}
	return true;
}

void gt_gloo_watch_stop(struct gloo_root *r)
{
	if (!r->watched)
		return;
	bool broken = gt_gloo_is_broken(r);
	double deadline = gt_clock() + (broken ? ALARM_S : r->timeout_s);
	if (!broken)
		flush_sends(r, deadline);
	pthread_mutex_lock(&r->lock);
	gt_gloo_note(r, GLOO_BYE, 0, 0, "");
	while (!have_all_acked(r) && gt_clock() < (r->broken ? r->first_s + 2 * ALARM_S : deadline))
		pthread_cond_wait(&r->turn, &r->lock);
	r->stop = true;
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->watch, NULL);
	r->watched = false;
}
