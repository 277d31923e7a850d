#include "report/cost_model.h"
#include "base/fileio.h"
#include "base/shell_word.h"
#include "report/step_size.h"
#include <string.h>

enum { STREAMS = 2 };

/* The messages from one rank to another in one lane, in the order in which both list them. */
struct channel {
	int to, lane;
	double *start, *bytes; /* [n] when each send begins, and its size */
	double left;           /* when the last received message has left the sender */
	int n, cap, taken;     /* taken: number of messages that the receiver has received */
	int wanted;            /* number of messages that the receiver's present call receives */
};

/* A planned rank on the clock. All times are in seconds from the begin of the first step. */
struct runner {
	const struct gt_session *s;
	const struct gt_prog *p;
	double *seconds;      /* [p->n] time of each step that is no communication */
	double *event;        /* [events] */
	double at[STREAMS];   /* when each stream has finished its steps so far */
	double busy;          /* sum of the times of kernels */
	double communicates;  /* sum of the times of communication, without waiting for other ranks */
	double link_free;     /* when the rank's link has transferred all messages so far */
	int next;             /* index of the next step of p */
	bool waits;           /* step `next` is communication that the rank has begun and that waits for other ranks */
	bool received;        /* the messages of the transfers that begin with step `next` have arrived, the last one at `arrived` */
	double arrived;
	struct channel *channel;
	int nchannels, cap;
};

struct model {
	const struct gt_world_plan *w;
	const struct gt_link *link;
	struct gt_arena *a;
	struct runner *rank; /* [w->nplanned] */
};

static bool is_transfer(const struct gt_step *t)
{
	return t->kind == GT_STEP_COMM && !t->end && (t->call->comm->kind == GT_COMM_SEND || t->call->comm->kind == GT_COMM_RECV);
}

static bool is_collective(const struct gt_step *t)
{
	return t->kind == GT_STEP_COMM && !t->end && !is_transfer(t);
}

static double bytes_of(const struct gt_call *c)
{
	return (double)c->count * (double)gt_dtype_size(c->dtype);
}

/* ---- times of kernels ---------------------------------------------------------------------------------------------------------------- */

/* Whether a step takes no measurable time, so that it needs no row in the file of times. */
static bool is_free(const struct gt_step *t)
{
	return t->kind == GT_STEP_PASS || t->kind == GT_STEP_BIND || t->kind == GT_STEP_ZERO || t->kind == GT_STEP_RECORD ||
	       t->kind == GT_STEP_WAIT || (t->kind == GT_STEP_COMM && !t->end);
}

/* Sets the times of the steps of a rank, and adds the time that was scaled to *scaled. */
static enum gt_code find_times(struct runner *r, const struct gt_times *times, struct gt_arena *a, double *scaled, struct gt_err *err)
{
	int events = 0;
	GT_NEW(r->seconds, a, r->p->n + 1, err);
	for (int i = 0; i < r->p->n; i++) {
		const struct gt_step *t = &r->p->step[i];
		const char *op = t->call ? t->call->op : gt_step_name(t->kind), *layer = t->call ? t->call->layer : "";
		bool other = false;
		if (t->kind == GT_STEP_RECORD || t->kind == GT_STEP_WAIT)
			events = t->event >= events ? t->event + 1 : events;
		char file[GT_PATH_SIZE];
		if (!gt_times_find(times, op, layer ? layer : "", gt_step_size(r->s, t), &r->seconds[i], &other) && !is_free(t))
			return gt_fail(err, GT_EDATA, "--times: the file has no time of %s%s%s, which a step of this plan executes; measure it with "
			               "`gtrain bench CFG --world %d%s --json >>%s`", op, layer && *layer ? " of " : "", layer ? layer : "",
			               r->s->at.world, times->options ? times->options : "", gt_shell_word(times->path, file, sizeof file));
		if (t->kind == GT_STEP_COMM && !t->end)
			r->seconds[i] = 0;
		r->busy += r->seconds[i];
		*scaled += other ? r->seconds[i] : 0;
	}
	GT_NEW(r->event, a, events + 1, err);
	return GT_OK;
}

/* ---- transfers ----------------------------------------------------------------------------------------------------------------------- */

/* Returns the index of the planned rank that has another place in the pipeline of r's copy. */
static int find_peer(const struct model *m, const struct runner *r, int pipe)
{
	for (int i = 0; i < m->w->nplanned; i++) {
		const struct gt_rank_position *at = &m->w->rank[i]->at;
		if (at->pipe == pipe && at->data <= r->s->at.data && r->s->at.data < at->data + m->w->equal[i])
			return i;
	}
	return 0;
}

static enum gt_code find_channel(struct model *m, int from, int to, int lane, struct channel **out, struct gt_err *err)
{
	struct runner *r = &m->rank[from];
	for (int i = 0; i < r->nchannels; i++) {
		*out = &r->channel[i];
		if ((*out)->to == to && (*out)->lane == lane)
			return GT_OK;
	}
	if (r->nchannels == r->cap) {
		struct channel *more;
		r->cap = r->cap ? 2 * r->cap : 4;
		GT_NEW(more, m->a, r->cap, err);
		if (r->nchannels)
			memcpy(more, r->channel, (size_t)r->nchannels * sizeof *more);
		r->channel = more;
	}
	*out = &r->channel[r->nchannels++];
	**out = (struct channel){.to = to, .lane = lane};
	return GT_OK;
}

static enum gt_code add_message(struct model *m, struct channel *c, double start, double bytes, struct gt_err *err)
{
	if (c->n == c->cap) {
		double *starts, *sizes;
		c->cap = c->cap ? 2 * c->cap : 16;
		GT_NEW(starts, m->a, c->cap, err);
		GT_NEW(sizes, m->a, c->cap, err);
		if (c->n) {
			memcpy(starts, c->start, (size_t)c->n * sizeof *starts);
			memcpy(sizes, c->bytes, (size_t)c->n * sizeof *sizes);
		}
		c->start = starts;
		c->bytes = sizes;
	}
	c->start[c->n] = start;
	c->bytes[c->n++] = bytes;
	return GT_OK;
}

/* Returns the end of the transfers that one call of the communicator makes, beginning with step i (exec/exec_comm.c). */
static int end_of_exchange(const struct gt_prog *p, int i)
{
	const struct gt_step *first = &p->step[i], *t = first + 1;
	while (t < p->step + p->n && is_transfer(t) && !t->apart && t->stream == first->stream &&
	       t->call->comm->group == first->call->comm->group && t->call->comm->lane == first->call->comm->lane)
		t++;
	return (int)(t - p->step);
}

/* Begins all sends of the transfers [begin, end), and forgets the messages that an earlier try has counted. */
static enum gt_code begin_transfers(struct model *m, int self, int begin, int end, struct gt_err *err)
{
	struct runner *r = &m->rank[self];
	for (int i = begin; i < end; i++) {
		const struct gt_call *c = r->p->step[i].call;
		bool sends = c->comm->kind == GT_COMM_SEND;
		struct channel *k;
		int peer = find_peer(m, r, c->comm->peer);
		GT_TRY(find_channel(m, sends ? self : peer, sends ? peer : self, c->comm->lane, &k, err));
		if (!sends)
			k->wanted = 0;
		else if (!r->waits)
			GT_TRY(add_message(m, k, r->at[r->p->step[begin].stream], bytes_of(c), err));
	}
	return GT_OK;
}

/* Sets *all to whether the messages of all receives in [begin, end) have been sent. */
static enum gt_code count_messages(struct model *m, int self, int begin, int end, bool *all, struct gt_err *err)
{
	struct runner *r = &m->rank[self];
	*all = true;
	for (int i = begin; i < end; i++) {
		const struct gt_attr_comm *c = r->p->step[i].call->comm;
		struct channel *k;
		if (c->kind == GT_COMM_SEND)
			continue;
		GT_TRY(find_channel(m, find_peer(m, r, c->peer), self, c->lane, &k, err));
		k->wanted++;
		*all &= k->n - k->taken >= k->wanted;
	}
	return GT_OK;
}

/* Receives the messages of all receives in [begin, end), if all have been sent. */
static enum gt_code receive_messages(struct model *m, int self, int begin, int end, struct gt_err *err)
{
	struct runner *r = &m->rank[self];
	double ready = r->at[r->p->step[begin].stream];
	GT_TRY(count_messages(m, self, begin, end, &r->received, err));
	r->arrived = ready;
	for (int i = begin; i < end && r->received; i++) {
		const struct gt_attr_comm *c = r->p->step[i].call->comm;
		int peer = find_peer(m, r, c->peer);
		struct channel *k;
		if (c->kind == GT_COMM_SEND)
			continue;
		GT_TRY(find_channel(m, peer, self, c->lane, &k, err));
		double bytes = k->bytes[k->taken], start = k->start[k->taken++];
		double arrived = gt_link_message(m->link, start, ready, bytes, &m->rank[peer].link_free);
		k->left = m->rank[peer].link_free;
		r->communicates += m->link->latency_s + bytes * gt_link_byte_time(m->link);
		r->arrived = arrived > r->arrived ? arrived : r->arrived;
	}
	return GT_OK;
}

/* Sets *all to whether the messages of all sends in [begin, end) have been received, and *left to when the last one has left this rank. */
static enum gt_code count_sent(struct model *m, int self, int begin, int end, bool *all, double *left, struct gt_err *err)
{
	const struct runner *r = &m->rank[self];
	*all = true;
	*left = 0;
	for (int i = begin; i < end; i++) {
		const struct gt_attr_comm *c = r->p->step[i].call->comm;
		struct channel *k;
		if (c->kind != GT_COMM_SEND)
			continue;
		GT_TRY(find_channel(m, self, find_peer(m, r, c->peer), c->lane, &k, err));
		*all &= k->taken == k->n;
		*left = k->left > *left ? k->left : *left;
	}
	return GT_OK;
}

/* Runs the transfers of the communicator's call that begins with step r->next. All sends begin at once. The call ends when all messages
 * have arrived here and those of this rank have left it; until other ranks have sent and received them, r->next stays unchanged. */
static enum gt_code run_exchange(struct model *m, int self, struct gt_err *err)
{
	struct runner *r = &m->rank[self];
	int begin = r->next, end = end_of_exchange(r->p, begin);
	bool sent;
	double left;
	GT_TRY(begin_transfers(m, self, begin, end, err));
	r->waits = true;
	if (!r->received)
		GT_TRY(receive_messages(m, self, begin, end, err));
	GT_TRY(count_sent(m, self, begin, end, &sent, &left, err));
	if (!r->received || !sent)
		return GT_OK;
	r->at[r->p->step[begin].stream] = left > r->arrived ? left : r->arrived;
	r->waits = r->received = false;
	r->next = end;
	return GT_OK;
}

/* ---- collectives --------------------------------------------------------------------------------------------------------------------- */

static bool is_in_group(const struct model *m, const struct runner *r, int group, int i)
{
	const struct gt_rank_position *a = &r->s->at, *b = &m->w->rank[i]->at;
	if (group == GT_GROUP_DATA)
		return a->pipe == b->pipe;
	return group == GT_GROUP_PIPE ? b->data <= a->data && a->data < b->data + m->w->equal[i] : true;
}

/* If all ranks of the group have reached the collective that rank `self` waits for, runs it on all of them. */
static bool run_collective(struct model *m, int self)
{
	struct runner *r = &m->rank[self];
	const struct gt_attr_comm *c = r->p->step[r->next].call->comm;
	double start = 0;
	r->waits = true;
	for (int i = 0; i < m->w->nplanned; i++) {
		const struct runner *o = &m->rank[i];
		const struct gt_step *t = o->next < o->p->n ? &o->p->step[o->next] : NULL;
		if (!is_in_group(m, r, c->group, i))
			continue;
		if (!o->waits || !t || !is_collective(t) || t->call->comm->group != c->group)
			return false;
		start = o->at[t->stream] > start ? o->at[t->stream] : start;
	}
	int size = c->group == GT_GROUP_DATA ? r->s->at.ndata : c->group == GT_GROUP_PIPE ? r->s->at.npipe : r->s->at.world;
	double seconds = gt_link_collective(m->link, (enum gt_coll_kind)c->kind, size, bytes_of(r->p->step[r->next].call));
	for (int i = 0; i < m->w->nplanned; i++) {
		struct runner *o = &m->rank[i];
		if (!is_in_group(m, r, c->group, i))
			continue;
		o->at[o->p->step[o->next++].stream] = start + seconds;
		o->communicates += seconds;
		o->waits = false;
	}
	return true;
}

/* ---- the clock ----------------------------------------------------------------------------------------------------------------------- */

/* Runs a rank until it has to wait for another rank, or until the end of its program. Sets *moved if it has run a step, or has sent or
 * received the messages of a step that waits. */
static enum gt_code run_rank(struct model *m, int self, bool *moved, struct gt_err *err)
{
	struct runner *r = &m->rank[self];
	while (r->next < r->p->n) {
		const struct gt_step *t = &r->p->step[r->next];
		int before = r->next;
		if (is_transfer(t)) {
			bool began = r->waits, received = r->received;
			GT_TRY(run_exchange(m, self, err));
			*moved |= r->waits != began || r->received != received;
			if (r->next == before)
				return GT_OK;
		} else if (is_collective(t)) {
			if (!run_collective(m, self))
				return GT_OK;
		} else {
			if (t->kind == GT_STEP_RECORD)
				r->event[t->event] = r->at[t->stream];
			else if (t->kind == GT_STEP_WAIT && r->event[t->event] > r->at[t->stream])
				r->at[t->stream] = r->event[t->event];
			r->at[t->stream] += r->seconds[r->next++];
		}
		*moved = true;
	}
	return GT_OK;
}

/* Runs one optimizer step on all ranks. Sets *end to the time at which the last rank has finished it. */
static enum gt_code run_step(struct model *m, double *end, struct gt_err *err)
{
	*end = 0;
	for (int i = 0; i < m->w->nplanned; i++)
		m->rank[i].next = 0;
	for (bool moved = true; moved;) {
		moved = false;
		for (int i = 0; i < m->w->nplanned; i++)
			GT_TRY(run_rank(m, i, &moved, err));
	}
	for (int i = 0; i < m->w->nplanned; i++) {
		const struct runner *r = &m->rank[i];
		if (r->next < r->p->n)
			return gt_fail(err, GT_EINTERNAL, "the cost model waits forever for step %d of rank %d", r->next, r->s->at.rank);
		*end = r->at[0] > *end ? r->at[0] : *end;
	}
	return GT_OK;
}

/* Sets *seconds to the time of the second step, and *most to the largest communication time of a rank in a step. */
static enum gt_code time_step(struct model *m, const struct gt_link *link, double *seconds, double *most, struct gt_err *err)
{
	double first, second;
	m->link = link;
	for (int i = 0; i < m->w->nplanned; i++) {
		struct runner *r = &m->rank[i];
		r->at[0] = r->at[1] = r->link_free = r->communicates = 0;
		for (int k = 0; k < r->nchannels; k++)
			r->channel[k] = (struct channel){.to = r->channel[k].to, .lane = r->channel[k].lane, .start = r->channel[k].start,
			                                 .bytes = r->channel[k].bytes, .cap = r->channel[k].cap};
	}
	GT_TRY(run_step(m, &first, err));
	GT_TRY(run_step(m, &second, err));
	*seconds = second - first;
	*most = 0;
	for (int i = 0; i < m->w->nplanned; i++)
		*most = m->rank[i].communicates / 2 > *most ? m->rank[i].communicates / 2 : *most;
	return GT_OK;
}

enum gt_code gt_cost_predict(const struct gt_world_plan *w, const struct gt_times *times, const struct gt_link *link, struct gt_arena *a,
                             struct gt_cost *out, struct gt_err *err)
{
	struct model m = {.w = w, .a = a};
	struct gt_link none = {.transport = GT_LINK_NCCL};
	double without, unused, scaled = 0, planned = 0;
	*out = (struct gt_cost){0};
	GT_NEW(m.rank, a, w->nplanned, err);
	for (int i = 0; i < w->nplanned; i++) {
		m.rank[i].s = w->rank[i];
		m.rank[i].p = &w->rank[i]->prog.full;
		GT_TRY(find_times(&m.rank[i], times, a, &scaled, err));
		planned += m.rank[i].busy;
		out->compute_s += m.rank[i].busy * w->equal[i] / w->world;
	}
	GT_TRY(time_step(&m, &none, &without, &unused, err));
	GT_TRY(time_step(&m, link, &out->step_s, &out->communication_s, err));
	out->idle_s = without - out->compute_s > 1e-6 * without ? without - out->compute_s : 0; /* the rest is rounding */
	if (out->compute_s > without) /* kernels of the communication stream are hidden behind other kernels */
		out->compute_s = without;
	out->exposed_s = out->step_s - out->compute_s - out->idle_s;
	out->efficiency = out->step_s > 0 ? out->compute_s / out->step_s : 0;
	out->scaled = planned > 0 ? scaled / planned : 0;
	return GT_OK;
}
