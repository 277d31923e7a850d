/* Waits for other ranks. A wait ends when all ranks have reached the awaited phase, when a rank has died or closed the group, at the
 * deadline, or when the group is broken.
 *
 * A rank first spins (for ranks that finish within microseconds of each other), then yields its core a few times (the other rank may need
 * this core), then sleeps on a futex in slices and checks after each slice whether the other ranks are alive. The length of the spin
 * adapts: after a sleep, the next spin is shorter, so that ranks that share cores do not waste time. */
#include "base/clock.h"
#include "cpu/comm_shm.h"
#include "cpu/cpu_pause.h"
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 20 /* milliseconds of a sleep, after which a rank checks for deaths and failures */
#define YIELDS 8
#define SPIN_MIN 16

static void futex_wait(uint32_t *word, uint32_t seen)
{
	struct timespec t = {.tv_nsec = SLICE_MS * 1000000L};
	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- failure ----------------------------------------------------------------------------------------------------------------- */
bool gt_shm_is_broken(const struct shm_comm *c)
{
	return __atomic_load_n(&c->root->head->broken, __ATOMIC_ACQUIRE) != SHM_WHOLE;
}

enum gt_code gt_shm_broken(const struct shm_comm *c, struct gt_err *err)
{
	struct shm_head *h = c->root->head;
	/* The rank that broke the group is writing its message, unless it was killed meanwhile. */
	for (int i = 0; i < 100 && __atomic_load_n(&h->broken, __ATOMIC_ACQUIRE) != SHM_BROKEN; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	if (__atomic_load_n(&h->broken, __ATOMIC_ACQUIRE) != SHM_BROKEN)
		return gt_fail(err, GT_EPEER, "a rank died while it reported a failure");
	return gt_fail(err, GT_EPEER, "%.*s", (int)sizeof h->why - 1, h->why);
}

enum gt_code gt_shm_break(struct shm_comm *c, struct gt_err *err, const char *fmt, ...)
{
	struct shm_head *h = c->root->head;
	uint32_t whole = SHM_WHOLE;
	if (__atomic_compare_exchange_n(&h->broken, &whole, SHM_BREAKING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(h->why, sizeof h->why, fmt, ap);
		va_end(ap);
		__atomic_store_n(&h->broken, SHM_BROKEN, __ATOMIC_SEQ_CST);
		/* Ranks of this group wake up at once; ranks that sleep in another group wake up within one slice. */
		for (int r = 0; c->slot && r < c->pub.world; r++) {
			futex_wake(&c->slot[r].phase);
			futex_wake(&c->slot[r].bell);
		}
	}
	return gt_shm_broken(c, err);
}

enum gt_code gt_shm_reject(struct shm_comm *c, const struct gt_err *bad, struct gt_err *err)
{
	gt_shm_break(c, NULL, "rank %d: %.900s", c->member[c->pub.rank], bad->msg);
	return gt_fail(err, bad->code, "%s", bad->msg);
}

bool gt_shm_dead(const struct shm_root *r, int member)
{
	if (member == r->rank || r->pidfd[member] == -1)
		return false;
	if (r->pidfd[member] == -2)
		return true;
	struct pollfd p = {.fd = r->pidfd[member], .events = POLLIN};
	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

void gt_shm_say_awaits(struct shm_comm *c, int rank)
{
	uint32_t member = rank < 0 ? 0 : 1 + (uint32_t)c->member[rank];
	__atomic_store_n(&c->root->head->member[c->root->rank].awaits, member, __ATOMIC_RELEASE);
}

int gt_shm_culprit(const struct shm_root *r, int member)
{
	int at = member;
	for (int i = 0; i < r->world; i++) {
		uint32_t next = __atomic_load_n(&r->head->member[at].awaits, __ATOMIC_ACQUIRE);
		if (next == 0 || next > (uint32_t)r->world)
			return at;
		at = (int)next - 1;
	}
	return member;
}

/* ---- phases ------------------------------------------------------------------------------------------------------------------ */
static bool has_reached(const struct shm_slot *s, uint32_t phase)
{
	return (int32_t)(__atomic_load_n(&s->phase, __ATOMIC_ACQUIRE) - phase) >= 0;
}

void gt_shm_publish(struct shm_comm *c)
{
	struct shm_slot *s = &c->slot[c->pub.rank];
	/* A sleeper first increments `sleepers` and then checks the phase again. With sequentially consistent stores, this rank sees the
	 * sleeper or the sleeper sees the new phase. */
	__atomic_store_n(&s->phase, ++c->phase, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST))
		futex_wake(&s->phase);
}

/* Breaks the group if the process of an awaited rank has ended or the rank has closed the group. */
static enum gt_code look_for_dead(struct shm_comm *c, gt_shm_doing *doing, const void *ctx, struct gt_err *err)
{
	char text[160];
	for (int r = 0; r < c->pub.world; r++) {
		if (has_reached(&c->slot[r], c->phase))
			continue;
		/* Both flags are read before the phase is checked again, because the rank may have reached the phase and then ended. */
		bool dead = gt_shm_dead(c->root, c->member[r]), left = __atomic_load_n(&c->slot[r].left, __ATOMIC_ACQUIRE);
		if ((!dead && !left) || has_reached(&c->slot[r], c->phase))
			continue;
		doing(c, ctx, text, sizeof text);
		return gt_shm_break(c, err, "rank %d %s: it %s", c->member[r], left ? "has closed its communicator" : "has died", text);
	}
	return GT_OK;
}

/* Called after rank r has missed the deadline: breaks the group, and returns an error that names the rank at fault. This is r, unless r
 * waits for another late rank. */
static enum gt_code tell_late(struct shm_comm *c, int r, gt_shm_doing *doing, const void *ctx, struct gt_err *err)
{
	char text[160], others[48] = "";
	int missing = 0, late = -1;
	for (int i = 0; i < c->pub.world; i++) {
		if (has_reached(&c->slot[i], c->phase))
			continue;
		missing++;
		if (late < 0 && gt_shm_culprit(c->root, c->member[i]) == c->member[i])
			late = i;
	}
	doing(c, ctx, text, sizeof text);
	if (late < 0 && missing) /* the rank that causes the wait is not in this group, or has already reached the phase */
		return gt_shm_break(c, err, "rank %d has not answered rank %d, which in turn %s after %g s", gt_shm_culprit(c->root, c->member[r]),
		                    c->member[r], text, c->root->timeout_s);
	if (missing > 1)
		snprintf(others, sizeof others, "; the same is true for %d other ranks", missing - 1);
	return gt_shm_break(c, err, "rank %d %s after %g s%s", c->member[late < 0 ? r : late], text, c->root->timeout_s, others);
}

static enum gt_code wait_asleep(struct shm_comm *c, int r, double *deadline, gt_shm_doing *doing, const void *ctx, struct gt_err *err)
{
	struct shm_slot *s = &c->slot[r];
	if (*deadline == 0)
		*deadline = gt_clock() + c->root->timeout_s;
	for (;;) {
		__atomic_fetch_add(&s->sleepers, 1, __ATOMIC_SEQ_CST);
		uint32_t seen = __atomic_load_n(&s->phase, __ATOMIC_SEQ_CST);
		if ((int32_t)(seen - c->phase) < 0)
			futex_wait(&s->phase, seen);
		__atomic_fetch_sub(&s->sleepers, 1, __ATOMIC_SEQ_CST);
		if (has_reached(s, c->phase))
			return GT_OK;
		if (gt_shm_is_broken(c))
			return gt_shm_broken(c, err);
		GT_TRY(look_for_dead(c, doing, ctx, err));
		if (gt_clock() < *deadline)
			continue;
		return tell_late(c, r, doing, ctx, err);
	}
}

enum gt_code gt_shm_wait_all(struct shm_comm *c, gt_shm_doing *doing, const void *ctx, struct gt_err *err)
{
	double deadline = 0;
	int turns = 0, yields = 0;
	for (int r = 0; r < c->pub.world; r++) {
		const struct shm_slot *s = &c->slot[r];
		while (!has_reached(s, c->phase) && turns < c->spin) {
			gt_cpu_pause();
			turns++;
		}
		while (!has_reached(s, c->phase) && yields < YIELDS) {
			sched_yield();
			yields++;
		}
		if (has_reached(s, c->phase))
			continue;
		c->spin = c->spin / 2 > SPIN_MIN ? c->spin / 2 : SPIN_MIN;
		gt_shm_say_awaits(c, r);
		enum gt_code code = wait_asleep(c, r, &deadline, doing, ctx, err);
		gt_shm_say_awaits(c, -1);
		GT_TRY(code);
	}
	if (deadline == 0 && turns > 0) /* the rank did not have to sleep, so its next spin may be longer */
		c->spin = c->spin * 2 < c->root->spin ? c->spin * 2 : c->root->spin;
	return GT_OK; /* a call that all ranks have reached is complete even if the group broke afterwards; the next call reports that */
}

/* ---- wake-ups ----------------------------------------------------------------------------------------------------------------------- */
void gt_shm_ring(struct shm_comm *c, int rank)
{
	struct shm_slot *s = &c->slot[rank];
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->drowsy, __ATOMIC_SEQ_CST)) {
		__atomic_fetch_add(&s->bell, 1, __ATOMIC_SEQ_CST);
		futex_wake(&s->bell);
	}
}

void gt_shm_wait_briefly(struct shm_comm *c, uint32_t bell)
{
	futex_wait(&c->slot[c->pub.rank].bell, bell);
}
