/* Verifies programs in three steps: read the communication steps of every rank, match both sides of each, then simulate the ranks to find
 * deadlocks and the bounds for pair_bytes. */
#include "plan/verify_comm.h"
#include <stdio.h>
#include <string.h>

/* One transfer or collective of one rank. */
struct event {
	const struct gt_call *call;
	int step;    /* index of the step in the rank's program */
	int micro;
	int channel; /* send or receive: index of its channel; collective: -1 */
	int coll_group; /* collective: index of its group; send or receive: -1 */
	bool sends;
	bool beside; /* the transfer and the event before it run at the same time (gt_step.apart is not set) */
	bool got;    /* in the simulation: the receive is complete */
};

/* All transfers from one rank to another within one group and lane. */
struct channel {
	int from, to, group, lane; /* from, to: world ranks of sender and receiver */
	const struct event **sent; /* all sends of the channel, in the order of the sender's program */
	int nsends, nrecvs;
	/* The fields below are the state of the simulation. */
	int done, taken; /* done: number of sends that have begun; taken: number of receives that are complete */
	size_t unread;   /* bytes that have been sent and not received yet */
};

/* A group of ranks, and the collectives that its members call. */
struct coll_group {
	int group, color, members;
	int first;                 /* world rank of the first member; every member must call the same collectives as this rank */
	const struct event **list; /* the collectives of the first member, in the order of its program */
	int n;
	/* in the simulation: arrived: number of members that wait in the current collective; round: number of completed collectives */
	int arrived, round;
};

struct sim {
	struct gt_arena *a;
	const struct gt_rank_coords *coords;
	int world;
	struct event **event; /* [rank]: events of the rank, in the order of its program */
	int *nevents;
	struct channel *channel;
	int nchannels;
	struct coll_group *coll_group;
	int ncoll_groups;
	int *at;       /* [rank]: index in event[rank] of the event that is simulated next */
	bool *posted;  /* [rank]: its current event, or current group of simultaneous transfers, has begun but is not complete */
	int *joined;   /* [rank * GT_GROUP_COUNT + group]: number of collectives that the rank has completed */
	size_t room;   /* maximum number of unread bytes in a channel; a send that would exceed this number waits */
};

struct gt_rank_coords gt_rank_coords_of(int rank, int world, int stages)
{
	int copies = world / stages;
	struct gt_rank_coords s = {{0}, {0}};
	s.rank[GT_GROUP_WORLD] = rank;
	s.color[GT_GROUP_DATA] = rank / copies;
	s.rank[GT_GROUP_DATA] = rank % copies;
	s.color[GT_GROUP_PIPE] = rank % copies;
	s.rank[GT_GROUP_PIPE] = rank / copies;
	s.copies = 1;
	return s;
}

/* ---- reading the programs ---------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const struct gt_call *c)
{
	return c->count * gt_dtype_size(c->dtype);
}

/* Returns the bytes that a message takes in its channel: the data, rounded up to 64 bytes, and a header of 64 bytes. */
static size_t room_of(const struct gt_call *c)
{
	return (bytes_of(c) + 63) / 64 * 64 + 64;
}

static bool is_transfer(const struct gt_call *c)
{
	return c->comm->kind == GT_COMM_SEND || c->comm->kind == GT_COMM_RECV;
}

/* Returns the number that a rank has in the world that its program was made for, for error messages. */
static int number_of(const struct sim *s, int rank)
{
	return s->coords[rank].rank[GT_GROUP_WORLD];
}

/* Describes an event: "rank 1, step 12: send of layer1.0.relu (f32 x 4096, micro-batch 0, pipe)". */
static const char *describe_event(const struct sim *s, const struct event *e, int rank, char buf[256])
{
	const struct gt_call *c = e->call;
	snprintf(buf, 256, "rank %d, step %d: %s of %.80s (%s x %zu, micro-batch %d, %s)", number_of(s, rank), e->step, gt_comm_name(c->comm),
	         c->layer ? c->layer : "?", gt_dtype_name(c->dtype), c->count, e->micro, gt_group_name(c->comm->group));
	return buf;
}

/* Returns the world rank of the member `rank` of the group with this color; -1: the group has no such member. */
static int world_rank(const struct sim *s, int group, int color, int rank)
{
	for (int r = 0; r < s->world; r++)
		if (s->coords[r].color[group] == color && s->coords[r].rank[group] == rank)
			return r;
	return -1;
}

/* Returns the index of the channel from one rank to another in the group and lane of k. Makes the channel if it does not exist yet. */
static int channel_of(struct sim *s, int from, int to, const struct gt_attr_comm *k)
{
	for (int i = 0; i < s->nchannels; i++)
		if (s->channel[i].from == from && s->channel[i].to == to && s->channel[i].group == k->group && s->channel[i].lane == k->lane)
			return i;
	s->channel[s->nchannels] = (struct channel){.from = from, .to = to, .group = k->group, .lane = k->lane};
	return s->nchannels++;
}

/* Returns the index of the group to which `rank` belongs. Makes the group if it does not exist yet. */
static int coll_group_of(struct sim *s, int rank, int group)
{
	int color = s->coords[rank].color[group], members = 0;
	for (int i = 0; i < s->ncoll_groups; i++)
		if (s->coll_group[i].group == group && s->coll_group[i].color == color)
			return i;
	for (int r = 0; r < s->world; r++)
		members += s->coords[r].color[group] == color;
	s->coll_group[s->ncoll_groups] = (struct coll_group){.group = group, .color = color, .members = members, .first = -1};
	return s->ncoll_groups++;
}

/* Makes the event of one communication step of a rank, and adds it to the rank's list. */
static enum gt_code read_step(struct sim *s, int rank, const struct gt_prog *p, int step, struct gt_err *err)
{
	const struct gt_call *c = p->step[step].call;
	struct event *e = &s->event[rank][s->nevents[rank]];
	char text[256];
	*e = (struct event){.call = c, .step = step, .micro = p->step[step].micro, .channel = -1, .coll_group = -1};
	if (!c || !c->comm)
		return gt_fail(err, GT_EINTERNAL, "rank %d, step %d: a communication step has no description of its communication", rank, step);
	const struct gt_attr_comm *k = c->comm;
	if ((unsigned)k->group >= GT_GROUP_COUNT || s->coords[rank].color[k->group] < 0)
		return gt_fail(err, GT_EINTERNAL, "%s: the rank is not a member of this group", describe_event(s, e, rank, text));
	if (!is_transfer(c)) {
		struct coll_group *m = &s->coll_group[e->coll_group = coll_group_of(s, rank, k->group)];
		if (m->first < 0)
			m->first = rank;
		m->n += m->first == rank;
		s->nevents[rank]++;
		return GT_OK;
	}
	int peer = world_rank(s, k->group, s->coords[rank].color[k->group], k->peer);
	if (peer < 0)
		return gt_fail(err, GT_EINTERNAL, "%s: the group has no rank %d", describe_event(s, e, rank, text), k->peer);
	e->sends = k->kind == GT_COMM_SEND;
	if (s->nevents[rank] && !p->step[step].apart) {
		const struct event *last = e - 1;
		e->beside = last->channel >= 0 && last->step == step - 1 && last->call->comm->group == k->group &&
		            last->call->comm->lane == k->lane;
	}
	if (peer == rank) { /* sender and receiver are both this rank: the transfer is a copy */
		if (!p->step[step].end)
			return gt_fail(err, GT_EINTERNAL, "%s: a transfer within one rank must have its send and its receive in the same step",
			               describe_event(s, e, rank, text));
		return GT_OK;
	}
	struct channel *x = &s->channel[e->channel = e->sends ? channel_of(s, rank, peer, k) : channel_of(s, peer, rank, k)];
	if (e->sends)
		x->nsends++;
	else
		x->nrecvs++;
	s->nevents[rank]++;
	return GT_OK;
}

static enum gt_code read_programs(struct sim *s, const struct gt_prog *const *prog, struct gt_err *err)
{
	int64_t transfers = 0;
	int groups = 0;
	GT_NEW(s->event, s->a, s->world, err);
	GT_NEW(s->nevents, s->a, s->world, err);
	GT_NEW(s->at, s->a, s->world, err);
	GT_NEW(s->posted, s->a, s->world, err);
	GT_NEW(s->joined, s->a, (int64_t)s->world * GT_GROUP_COUNT, err);
	for (int r = 0; r < s->world; r++) {
		int n = 0;
		for (int i = 0; i < prog[r]->n; i++)
			n += prog[r]->step[i].kind == GT_STEP_COMM;
		GT_NEW(s->event[r], s->a, n + 1, err);
		transfers += n;
		groups += GT_GROUP_COUNT;
	}
	GT_NEW(s->channel, s->a, transfers + 1, err);
	GT_NEW(s->coll_group, s->a, groups + 1, err);
	for (int r = 0; r < s->world; r++)
		for (int i = 0; i < prog[r]->n; i++)
			if (prog[r]->step[i].kind == GT_STEP_COMM)
				GT_TRY(read_step(s, r, prog[r], i, err));
	for (int i = 0; i < s->nchannels; i++)
		GT_NEW(s->channel[i].sent, s->a, s->channel[i].nsends + 1, err);
	for (int i = 0; i < s->ncoll_groups; i++) {
		GT_NEW(s->coll_group[i].list, s->a, s->coll_group[i].n + 1, err);
		s->coll_group[i].n = 0;
	}
	for (int r = 0; r < s->world; r++)
		for (int i = 0; i < s->nevents[r]; i++) {
			struct event *e = &s->event[r][i];
			if (e->channel >= 0 && e->sends)
				s->channel[e->channel].sent[s->channel[e->channel].done++] = e;
			else if (e->coll_group >= 0 && s->coll_group[e->coll_group].first == r)
				s->coll_group[e->coll_group].list[s->coll_group[e->coll_group].n++] = e;
		}
	return GT_OK;
}

/* ---- matching ---------------------------------------------------------------------------------------------------------------- */

static bool same_operands(const struct gt_call *a, const struct gt_call *b)
{
	return a->count == b->count && a->dtype == b->dtype;
}

/* Compares the k-th recv of a channel with its k-th send, and the k-th collective of a rank with the k-th collective of its group. Then
 * looks for sends that no rank receives and collectives that a member does not call. */
static enum gt_code match_calls(struct sim *s, struct gt_comm_report *out, struct gt_err *err)
{
	char one[256], two[256];
	for (int i = 0; i < s->nchannels; i++)
		s->channel[i].taken = 0;
	for (int r = 0; r < s->world; r++)
		for (int i = 0; i < s->nevents[r]; i++) {
			const struct event *e = &s->event[r][i];
			if (e->channel >= 0) {
				struct channel *x = &s->channel[e->channel];
				if (e->sends) {
					out->transfers += s->coords[r].copies;
					out->bytes += (double)bytes_of(e->call) * s->coords[r].copies;
					continue;
				}
				if (x->taken >= x->nsends)
					return gt_fail(err, GT_EINTERNAL, "%s: rank %d has no matching send", describe_event(s, e, r, one),
					               number_of(s, x->from));
				const struct event *send = x->sent[x->taken++];
				if (!same_operands(e->call, send->call) || e->micro != send->micro || strcmp(e->call->layer, send->call->layer) != 0)
					return gt_fail(err, GT_EINTERNAL, "%s does not match %s",
					               describe_event(s, e, r, one), describe_event(s, send, x->from, two));
				continue;
			}
			struct coll_group *m = &s->coll_group[e->coll_group];
			int k = s->joined[r * GT_GROUP_COUNT + m->group]++;
			if (k >= m->n)
				return gt_fail(err, GT_EINTERNAL, "%s: rank %d has no matching collective", describe_event(s, e, r, one),
				               number_of(s, m->first));
			const struct gt_attr_comm *a = e->call->comm, *b = m->list[k]->call->comm;
			bool rooted = a->kind == GT_COLL_BROADCAST || a->kind == GT_COLL_GATHER || a->kind == GT_COLL_SCATTER;
			if (!same_operands(e->call, m->list[k]->call) || a->kind != b->kind || a->op != b->op || (rooted && a->peer != b->peer))
				return gt_fail(err, GT_EINTERNAL, "%s does not match %s%s",
				               describe_event(s, e, r, one), describe_event(s, m->list[k], m->first, two),
				               a->op != b->op ? ": the reductions differ" : rooted && a->peer != b->peer ? ": the roots differ" : "");
		}
	for (int i = 0; i < s->nchannels; i++)
		if (s->channel[i].nrecvs < s->channel[i].nsends)
			return gt_fail(err, GT_EINTERNAL, "%s: rank %d has no matching receive",
			               describe_event(s, s->channel[i].sent[s->channel[i].nrecvs], s->channel[i].from, one),
			               number_of(s, s->channel[i].to));
	for (int r = 0; r < s->world; r++)
		for (int i = 0; i < s->ncoll_groups; i++) {
			const struct coll_group *m = &s->coll_group[i];
			int k = s->joined[r * GT_GROUP_COUNT + m->group];
			if (s->coords[r].color[m->group] == m->color && k < m->n)
				return gt_fail(err, GT_EINTERNAL, "%s: rank %d has no matching collective", describe_event(s, m->list[k], m->first, one),
				               number_of(s, r));
		}
	for (int i = 0; i < s->ncoll_groups; i++) {
		const struct coll_group *m = &s->coll_group[i];
		int64_t groups = m->group == GT_GROUP_PIPE ? s->coords[m->first].copies : 1; /* every copy of the model has a pipeline group */
		out->collectives += m->n * groups;
	}
	return GT_OK;
}

/* ---- simulation --------------------------------------------------------------------------------------------------- */

static void restart_sim(struct sim *s, size_t room)
{
	for (int i = 0; i < s->nchannels; i++)
		s->channel[i].done = s->channel[i].taken = 0, s->channel[i].unread = 0;
	for (int i = 0; i < s->ncoll_groups; i++)
		s->coll_group[i].arrived = s->coll_group[i].round = 0;
	memset(s->at, 0, (size_t)s->world * sizeof *s->at);
	memset(s->posted, 0, (size_t)s->world * sizeof *s->posted);
	memset(s->joined, 0, (size_t)s->world * GT_GROUP_COUNT * sizeof *s->joined);
	for (int r = 0; r < s->world; r++)
		for (int i = 0; i < s->nevents[r]; i++)
			s->event[r][i].got = false;
	s->room = room;
}

/* Returns the index of the first event after those of rank r that run at the same time as event i. */
static int run_end(const struct sim *s, int r, int i)
{
	for (i++; i < s->nevents[r] && s->event[r][i].beside; i++)
		;
	return i;
}

/* Simulates the current group of transfers of rank r: all sends begin, and everything that has arrived is received. Returns whether
 * anything changed. */
static bool advance_transfers(struct sim *s, int r)
{
	int end = run_end(s, r, s->at[r]);
	bool moved = !s->posted[r], done = true;
	for (int i = s->at[r]; i < end; i++) {
		struct event *e = &s->event[r][i];
		struct channel *x = &s->channel[e->channel];
		if (e->sends && !s->posted[r]) {
			x->unread += room_of(e->call);
			x->done++;
		}
		if (!e->sends && !e->got && x->taken < x->done) {
			x->unread -= room_of(e->call);
			x->taken++;
			e->got = moved = true;
		}
	}
	s->posted[r] = true;
	for (int i = s->at[r]; i < end && done; i++)
		done = s->event[r][i].sends ? s->channel[s->event[r][i].channel].unread <= s->room : s->event[r][i].got;
	if (done) {
		s->posted[r] = false;
		s->at[r] = end;
	}
	return moved || done;
}

/* Simulates the next event of rank r: begins or completes the event. Returns false if the rank waits and nothing has changed. */
static bool advance_rank(struct sim *s, int r)
{
	if (s->at[r] >= s->nevents[r])
		return false;
	const struct event *e = &s->event[r][s->at[r]];
	if (e->channel >= 0)
		return advance_transfers(s, r);
	struct coll_group *m = &s->coll_group[e->coll_group];
	int *round = &s->joined[r * GT_GROUP_COUNT + m->group];
	bool news = !s->posted[r];
	if (news) {
		s->posted[r] = true;
		if (++m->arrived == m->members) {
			m->arrived = 0;
			m->round++;
		}
	}
	if (m->round <= *round)
		return news; /* true, because the rank's arrival at the collective may let other ranks continue */
	++*round;
	s->posted[r] = false;
	s->at[r]++;
	return true;
}

/* Simulates every rank except rank `held` until no rank can continue. */
static void run_ranks(struct sim *s, int held)
{
	for (bool moved = true; moved;) {
		moved = false;
		for (int r = 0; r < s->world; r++)
			while (r != held && advance_rank(s, r))
				moved = true;
	}
}

/* Returns a rank that has not reached the end of its program; -1: all ranks have. */
static int find_waiting_rank(const struct sim *s)
{
	for (int r = 0; r < s->world; r++)
		if (s->at[r] < s->nevents[r])
			return r;
	return -1;
}

/* Fails because of a deadlock: the error names the event for which rank r waits, and the event at which the other rank waits. */
static enum gt_code refuse_deadlock(const struct sim *s, int r, struct gt_err *err)
{
	char one[256], two[256] = "the end of its program";
	const struct event *e = &s->event[r][s->at[r]];
	for (int i = s->at[r], end = run_end(s, r, i); i < end && e->channel >= 0; i++)
		if (!s->event[r][i].sends && !s->event[r][i].got) {
			e = &s->event[r][i];
			break;
		}
	int other = e->channel >= 0 ? s->channel[e->channel].from : -1;
	const struct coll_group *m = e->channel >= 0 ? NULL : &s->coll_group[e->coll_group];
	for (int k = 0; m && k < s->world && other < 0; k++)
		if (s->coords[k].color[m->group] == m->color &&
		    s->joined[k * GT_GROUP_COUNT + m->group] <= s->joined[r * GT_GROUP_COUNT + m->group] &&
		    !(s->posted[k] && s->event[k][s->at[k]].coll_group == e->coll_group))
			other = k;
	if (other >= 0 && s->at[other] < s->nevents[other])
		describe_event(s, &s->event[other][s->at[other]], other, two);
	return gt_fail(err, GT_EINTERNAL, "deadlock: %s waits for rank %d, which is at %s", describe_event(s, e, r, one), number_of(s, other),
	               two);
}

/* Returns the smallest sim.room with which all ranks reach the end of their programs. The search begins at 0. At each deadlock, it
 * increases sim.room until one of the waiting sends can continue. */
static size_t least_room(struct sim *s)
{
	restart_sim(s, 0);
	for (;;) {
		size_t more = SIZE_MAX;
		run_ranks(s, -1);
		if (find_waiting_rank(s) < 0)
			return s->room;
		for (int r = 0; r < s->world; r++)
			for (int i = s->at[r], end = i < s->nevents[r] ? run_end(s, r, i) : i; i < end; i++) {
				const struct event *e = &s->event[r][i];
				if (e->channel >= 0 && e->sends && s->channel[e->channel].unread > s->room && s->channel[e->channel].unread < more)
					more = s->channel[e->channel].unread;
			}
		s->room = more;
	}
}

/* Returns the maximum number of unread bytes in any channel to rank `held`. It simulates the worst case: before each step of `held`, all
 * other ranks run as far as they can. */
static size_t most_unread(struct sim *s, int held)
{
	size_t most = 0;
	restart_sim(s, SIZE_MAX);
	do {
		run_ranks(s, held);
		for (int i = 0; i < s->nchannels; i++)
			if (s->channel[i].to == held && s->channel[i].unread > most)
				most = s->channel[i].unread;
	} while (advance_rank(s, held));
	return most;
}

enum gt_code gt_verify_comm(struct gt_arena *a, const struct gt_prog *const *prog, const struct gt_rank_coords *coords, int world,
                            struct gt_comm_report *out, struct gt_err *err)
{
	struct sim s = {.a = a, .coords = coords, .world = world};
	*out = (struct gt_comm_report){0};
	GT_TRY(read_programs(&s, prog, err));
	restart_sim(&s, SIZE_MAX);
	GT_TRY(match_calls(&s, out, err));
	restart_sim(&s, SIZE_MAX);
	run_ranks(&s, -1);
	if (find_waiting_rank(&s) >= 0)
		return refuse_deadlock(&s, find_waiting_rank(&s), err);
	if (!out->transfers)
		return GT_OK;
	out->need = least_room(&s);
	for (int r = 0; r < world; r++) {
		size_t n = most_unread(&s, r);
		out->ahead = n > out->ahead ? n : out->ahead;
	}
	return GT_OK;
}
