/* The communicator between hosts: the members of a group, the group's memory, and the table of functions. gloo.h explains the protocol. */
#include "gloo/gloo.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

__attribute__((visibility("default"))) extern const struct gt_comm_api gt_comm_gloo;

/* ---- memory and ports of a group ---------------------------------------------------------------------------------------------------- */
static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static void free_group(struct gloo_comm *c)
{
	for (int i = 0; c->peer && i < c->pub.world; i++) {
		for (int k = 0; k < GLOO_LANES; k++) {
			gl_port_free(c->peer[i].in[k]);
			gl_port_free(c->peer[i].out[k]);
		}
	}
	if (c->mem)
		munmap(c->mem, c->mem_bytes);
	free(c->peer);
	free(c);
}

/* Reserves the memory for all messages except the operands. The operating system provides a page when the page is used first. */
static enum gt_code allocate_group_memory(struct gloo_comm *c, struct gt_err *err)
{
	size_t n = (size_t)c->pub.world, ring = round_up(c->root->pair_bytes, 4096), own = round_up(2 * GT_GLOO_CALL, 4096);
	c->pair_bytes = c->root->pair_bytes;
	size_t heads = GT_GLOO_HEADS_IN * GT_GLOO_HEAD, keep = GT_GLOO_HEADS_OUT * GT_GLOO_HEAD;
	c->ahead = GT_GLOO_STAGED / n > GT_GLOO_AHEAD ? GT_GLOO_STAGED / n : GT_GLOO_AHEAD;
	size_t stage = c->ahead * GT_GLOO_PIECE, size = round_up(GT_GLOO_HEADS_OUT * sizeof(uint64_t), 4096);
	c->mem_bytes = own + n * (own + heads + keep + ring + stage + size);
	c->mem = mmap(NULL, c->mem_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->mem == MAP_FAILED) {
		c->mem = NULL;
		return gt_fail_errno(err, GT_EFAIL, errno, "cannot allocate %zu bytes for %s", c->mem_bytes, c->pub.name);
	}
	char *at = c->own = c->mem;
	c->stage = at += own;
	at += n * stage;
	for (size_t i = 0; i < n; i++) {
		struct gloo_peer *p = &c->peer[i];
		p->calls = at;
		p->heads = at += own;
		p->keep = at += heads;
		p->ring = at += keep;
		p->size = (uint64_t *)(at += ring);
		at += size;
	}
	return GT_OK;
}

/* Creates the ports to every peer and posts the receives of messages that may arrive at any time, before a peer can send one. */
static enum gt_code connect_group(struct gloo_comm *c, struct gt_err *err)
{
	for (int i = 0; i < c->pub.world; i++) {
		struct gloo_peer *p = &c->peer[i];
		if (i == c->pub.rank)
			continue;
		for (int k = 0; k < GLOO_LANES; k++) {
			p->in[k] = gl_port_new(c->root->net, c->member[i], false);
			p->out[k] = gl_port_new(c->root->net, c->member[i], true);
			if (!p->in[k] || !p->out[k])
				return gt_fail(err, GT_EFAIL, "out of memory");
		}
		/* Posts the receives of the first two calls, which have the numbers 1 and 2. Errors are ignored, because a later wait on the
		 * lost connection reports them. */
		for (int k = 1; k <= 2; k++)
			gl_post(p->in[GLOO_CALL], gt_gloo_slot(c, GLOO_CALL), p->calls + (k & 1) * GT_GLOO_CALL, GT_GLOO_CALL);
		for (int k = 0; k < GT_GLOO_HEADS_IN; k++)
			gl_post(p->in[GLOO_HEADS], gt_gloo_slot(c, GLOO_HEADS), p->heads + (size_t)k * GT_GLOO_HEAD, GT_GLOO_HEAD);
	}
	return GT_OK;
}

static struct gloo_comm *new_group(struct gloo_root *r, int rank, int world, const char *name)
{
	struct gloo_comm *c = calloc(1, sizeof *c);
	if (c && !(c->peer = calloc((size_t)world, sizeof *c->peer))) {
		free(c);
		return NULL;
	}
	if (c) {
		c->pub = (struct gt_comm){.api = &gt_comm_gloo, .rank = rank, .world = world};
		snprintf(c->pub.name, sizeof c->pub.name, "%s", name);
		c->root = r;
	}
	return c;
}

/* ---- create and open ---------------------------------------------------------------------------------------------------------------- */
static enum gt_code create_boot_record(int world, struct gt_comm_boot *out, struct gt_err *err)
{
	*out = (struct gt_comm_boot){.fd = -1};
	if (world < 1 || world > GT_COMM_RANKS)
		return gt_fail(err, GT_EUNAVAILABLE, "communication with gloo: expected 1 to %d ranks, got %d", GT_COMM_RANKS, world);
	unsigned char token[16];
	if (getrandom(token, sizeof token, 0) != sizeof token)
		return gt_fail_errno(err, GT_EFAIL, errno, "getrandom");
	int n = snprintf(out->id, sizeof out->id, "gloo %d ", world);
	for (size_t i = 0; i < sizeof token; i++)
		n += snprintf(out->id + n, sizeof out->id - (size_t)n, "%02x", token[i]);
	return GT_OK;
}

/* The data that ranks exchange over the rendezvous before they connect. */
struct peer_info {
	uint32_t abi, world;
	uint64_t pair_bytes;
	char id[160];
	struct gloo_place at;
};

static enum gt_code compare_peer_info(const struct gloo_comm *c, const struct peer_info *all, struct gt_err *err)
{
	const struct peer_info *first = all;
	for (int i = 1; i < c->pub.world; i++) {
		const struct peer_info *k = &all[i];
		if (k->abi != first->abi || k->world != first->world)
			return gt_fail(err, GT_EPEER, "rank %d expects %u ranks and version %u of the communicator, but rank 0 expects %u and version "
			               "%u",
			               i,
			               k->world, k->abi, first->world, first->abi);
		if (strncmp(k->id, first->id, sizeof k->id) != 0)
			return gt_fail(err, GT_EPEER, "rank %d has a different boot record of the group %s than rank 0", i, c->pub.name);
		if (k->pair_bytes != first->pair_bytes)
			return gt_fail(err, GT_EPEER, "rank %d opens the group %s with send buffers of %llu bytes, but rank 0 uses %llu",
			               i, c->pub.name,
			               (unsigned long long)k->pair_bytes, (unsigned long long)first->pair_bytes);
	}
	return GT_OK;
}

/* Opens one connection to every other rank. Afterwards every rank knows whether all ranks have succeeded. */
static enum gt_code connect_all(struct gloo_comm *c, const struct gt_comm_spec *spec, int listener, const struct peer_info *all,
                                struct gt_err *err)
{
	struct gloo_root *r = c->root;
	struct gloo_place at[GT_COMM_RANKS];
	int fd[GT_COMM_RANKS];
	char why[GL_WHY] = "", (*whys)[GL_WHY] = calloc((size_t)r->world, GL_WHY);
	if (!whys)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int i = 0; i < r->world; i++)
		at[i] = all[i].at;
	if (gt_gloo_meet(listener, r->rank, r->world, spec->boot->id, at, r->timeout_s, fd, why))
		for (int i = 0; i < r->world; i++) {
			char text[GL_WHY] = "";
			if (i != r->rank && !gl_net_adopt(r->net, i, fd[i], text))
				snprintf(why, sizeof why, "rank %d has no connection to rank %d (gloo: %.180s)", r->rank, i, text);
		}
	enum gt_code code = spec->exchange(spec->user, "gloo connected", why, GL_WHY, whys, err);
	for (int i = 0; i < r->world && code == GT_OK; i++) {
		if (*whys[i])
			code = gt_fail(err, GT_EPEER, "%.*s", GL_WHY - 1, whys[i]);
	}
	free(whys);
	return code;
}

/* Checks the other end of each connection, which sends the group's random number and its rank, so that no other process that connected
 * first can take the rank's connection. */
static enum gt_code verify_connections(struct gloo_comm *c, const char *id, struct gt_err *err)
{
	struct gloo_root *r = c->root;
	char text[256];
	for (int i = 0; i < r->world; i++) {
		struct gloo_peer_root *p = &r->peer[i];
		if (i == r->rank)
			continue;
		p->out = gl_port_new(r->net, i, true);
		p->beat_in = gl_port_new(r->net, i, false);
		p->beat_out = gl_port_new(r->net, i, true);
		if (!p->out || !p->beat_in || !p->beat_out)
			return gt_fail(err, GT_EFAIL, "out of memory");
		gl_post(p->beat_in, GLOO_BEAT, p->heard, sizeof p->heard);
		for (int k = 0; k < GLOO_NOTES; k++) {
			if (!(p->in[k] = gl_port_new(r->net, i, false)))
				return gt_fail(err, GT_EFAIL, "out of memory");
			gl_post(p->in[k], (uint64_t)k, &p->note[k], sizeof p->note[k]);
		}
	}
	GT_TRY(gt_gloo_watch_start(r, err));
	snprintf(text, sizeof text, "%.159s %d", id, r->rank);
	pthread_mutex_lock(&r->lock);
	gt_gloo_note(r, GLOO_HELLO, 0, 0, text);
	pthread_mutex_unlock(&r->lock);
	for (int i = 0; i < r->world; i++) {
		if (i == r->rank)
			continue;
		enum gloo_end end = gt_gloo_wait(r, r->peer[i].in[GLOO_HELLO], i, false);
		if (end == GLOO_FAIL)
			return gt_gloo_broken(r, err);
		if (end == GLOO_TIME)
			return gt_gloo_break(r, GLOO_LATE, i, err, "rank %d has not opened the group %s after %g s", i, c->pub.name, r->timeout_s);
		if (end == GLOO_LOST)
			return gt_gloo_break(r, GLOO_DEAD, i, err, "rank %d died before all ranks had opened the group %s", i, c->pub.name);
		snprintf(text, sizeof text, "%.159s %d", id, i);
		const struct gloo_note *n = &r->peer[i].note[GLOO_HELLO];
		if (!gt_gloo_note_is_whole(n, GLOO_HELLO) || strncmp(n->text, text, sizeof n->text) != 0)
			return gt_gloo_break(r, GLOO_SAID, i, err, "the connection between rank %d and rank %d belongs to a process that is not part "
			                     "of this run",
			                     r->rank, i);
	}
	return GT_OK;
}

static enum gt_code open_root(struct gloo_comm *c, const struct gt_comm_spec *spec, struct gt_err *err)
{
	struct gloo_root *r = c->root;
	const char *addr = spec->addr && *spec->addr ? spec->addr : "127.0.0.1";
	char why[GL_WHY] = "";
	struct peer_info mine = {.abi = GT_COMM_ABI, .world = (uint32_t)r->world, .pair_bytes = r->pair_bytes},
	                 *all = calloc((size_t)r->world, sizeof *all);
	enum gt_code code = all ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory");
	int listener = -1;
	memcpy(mine.id, spec->boot->id, sizeof mine.id);
	if (code == GT_OK && (listener = gt_gloo_listen(addr, &mine.at, why)) < 0)
		code = gt_fail(err, GT_EPEER, "rank %d cannot listen on %s: %s", r->rank, addr, why);
	if (code == GT_OK && !(r->net = gl_net_new(r->rank, r->world, r->timeout_s, why)))
		code = gt_fail(err, GT_EPEER, "rank %d cannot set up its connections (gloo: %s)", r->rank, why);
	if (code == GT_OK)
		code = spec->exchange(spec->user, "gloo", &mine, sizeof mine, all, err);
	if (code == GT_OK)
		code = compare_peer_info(c, all, err);
	if (code == GT_OK)
		code = connect_all(c, spec, listener, all, err);
	if (listener >= 0)
		close(listener);
	free(all);
	return code == GT_OK ? verify_connections(c, spec->boot->id, err) : code;
}

static void free_root(struct gloo_root *r)
{
	gt_gloo_watch_stop(r);
	/* Connections are closed before the memory of their messages is freed, so that no message arrives in freed memory. gloo's own objects
	 * live as long as a port refers to them. */
	while (r->groups) {
		struct gloo_comm *c = r->groups;
		r->groups = c->next;
		free_group(c);
	}
	for (int i = 0; r->peer && i < r->world; i++) {
		gl_port_free(r->peer[i].out);
		gl_port_free(r->peer[i].beat_in);
		gl_port_free(r->peer[i].beat_out);
		for (int k = 0; k < GLOO_NOTES; k++)
			gl_port_free(r->peer[i].in[k]);
	}
	gl_net_free(r->net);
	for (int i = 0; i < r->buffers; i++)
		free(r->buffer[i]);
	free(r->buffer);
	free(r->peer);
	pthread_cond_destroy(&r->turn);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static void close_comm(struct gt_comm *pub)
{
	struct gloo_comm *c = (struct gloo_comm *)pub;
	if (!c)
		return;
	if (c->is_first) {
		free_root(c->root);
		return;
	}
	/* Tells every other rank that this rank leaves: a rank that continues finds the flag `left` where it expects this rank's next call and
	 * next message. */
	struct gloo_root *r = c->root;
	struct gloo_call *call = (struct gloo_call *)(void *)(c->own + ((c->seq + 1) & 1) * GT_GLOO_CALL);
	if (gt_gloo_is_broken(r))
		return;
	for (int i = 0; i < pub->world; i++) {
		if (i == pub->rank)
			continue;
		while (c->peer[i].open[GLOO_CALL] > 1 && gt_gloo_wait(r, c->peer[i].out[GLOO_CALL], c->member[i], false) == GLOO_END)
			c->peer[i].open[GLOO_CALL]--;
	}
	*call = (struct gloo_call){.left = 1};
	static const struct gloo_head gone = {.left = 1};
	for (int i = 0; i < pub->world; i++) {
		if (i == pub->rank)
			continue;
		gl_post(c->peer[i].out[GLOO_CALL], gt_gloo_slot(c, GLOO_CALL), call, sizeof *call);
		gl_post(c->peer[i].out[GLOO_HEADS], gt_gloo_slot(c, GLOO_HEADS), (void *)(uintptr_t)&gone, sizeof gone);
	}
}

/* Opens the first group: checks the boot record, creates the root, connects to all ranks, and starts the watch. */
static enum gt_code open_comm(const struct gt_comm_spec *spec, struct gt_comm **out, struct gt_err *err)
{
	*out = NULL;
	if (spec->world < 1 || spec->world > GT_COMM_RANKS || spec->rank < 0 || spec->rank >= spec->world || !spec->boot ||
	    !(spec->timeout_s > 0) || (spec->world > 1 && !spec->exchange))
		return gt_fail(err, GT_EINTERNAL, "cannot open a communicator with these arguments: rank %d of %d, timeout %g s",
		               spec->rank, spec->world,
		               spec->timeout_s);
	if (strncmp(spec->boot->id, "gloo ", 5) != 0)
		return gt_fail(err, GT_EPEER, "expected the boot record of a gloo group, got \"%.100s\"", spec->boot->id);
	if (atoi(spec->boot->id + 5) != spec->world)
		return gt_fail(err, GT_EPEER, "the group was created for %d ranks, but this rank expects %d",
		               atoi(spec->boot->id + 5), spec->world);
	/* gloo writes to sockets with writev(2), which raises SIGPIPE when the peer has died. The peer's death must not end this process. */
	struct sigaction old;
	if (!sigaction(SIGPIPE, NULL, &old) && old.sa_handler == SIG_DFL)
		signal(SIGPIPE, SIG_IGN);
	struct gloo_root *r = calloc(1, sizeof *r);
	struct gloo_comm *c = r ? new_group(r, spec->rank, spec->world, spec->name ? spec->name : "world") : NULL;
	if (r)
		r->peer = calloc((size_t)spec->world, sizeof *r->peer);
	if (!c || !r->peer) {
		if (c)
			free_group(c);
		free(r ? r->peer : NULL);
		free(r);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	r->rank = spec->rank;
	r->world = spec->world;
	r->timeout_s = r->base_s = r->limit_s = spec->timeout_s;
	r->pair_bytes = spec->pair_bytes ? spec->pair_bytes : (size_t)1 << 20;
	r->next_id = 1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->turn, NULL);
	r->groups = c;
	c->is_first = true;
	c->id = r->next_id++;
	for (int i = 0; i < spec->world; i++)
		c->member[i] = i;
	enum gt_code code = allocate_group_memory(c, err);
	if (code == GT_OK && r->world > 1)
		code = open_root(c, spec, err);
	if (code == GT_OK)
		code = connect_group(c, err);
	if (code != GT_OK) {
		free_root(r);
		return code;
	}
	*out = &c->pub;
	return GT_OK;
}

/* ---- split and buffer --------------------------------------------------------------------------------------------------------------- */
static enum gt_code split_comm(struct gt_comm *pub, const char *name, int color, int key, struct gt_comm **out, struct gt_err *err)
{
	struct gloo_comm *c = (struct gloo_comm *)pub, *s = NULL;
	struct gloo_root *r = c->root;
	/* id is the lowest group number that this rank has not used */
	struct gt_split_request mine = {color < 0 ? -1 : color, key, r->next_id}, request[GT_COMM_RANKS];
	*out = NULL;
	struct gt_coll x = {.what = "split", .in = &mine, .out = request, .count = sizeof mine, .dtype = GT_U8};
	GT_TRY(gt_gloo_coll(&c->pub, GT_COLL_ALL_GATHER, &x, err));
	/* The groups of one split share a number but no member. So two ranks are never together in two groups with the same number. */
	uint64_t id = 0;
	for (int i = 0; i < pub->world; i++)
		id = request[i].id > id ? request[i].id : id;
	r->next_id = id + 1;
	enum gt_code code = GT_OK;
	if (color >= 0) {
		int of[GT_COMM_RANKS], rank = 0, n = gt_split_members(request, pub->rank, pub->world, of, &rank);
		struct gt_err bad = {0};
		s = new_group(r, rank, n, name ? name : "split");
		code = s ? GT_OK : gt_fail(&bad, GT_EFAIL, "out of memory");
		if (s) {
			s->id = id;
			for (int i = 0; i < n; i++)
				s->member[i] = c->member[of[i]];
			s->next = r->groups;
			r->groups = s;
			code = allocate_group_memory(s, &bad);
		}
		if (code == GT_OK)
			code = connect_group(s, &bad);
		if (code != GT_OK) { /* the other members wait for this rank, so the failure breaks the whole group */
			gt_gloo_break(r, GLOO_SAID, r->rank, NULL, "rank %d: split of %s: %.900s", r->rank, pub->name, bad.msg);
			return gt_fail(err, code, "%s", bad.msg);
		}
	}
	GT_TRY(gt_gloo_coll(&c->pub, GT_COLL_BARRIER, &(struct gt_coll){.what = "split", .dtype = GT_U8}, err));
	*out = s ? &s->pub : NULL;
	return GT_OK;
}

static enum gt_code allocate_buffer(struct gt_comm *pub, size_t bytes, void **out, struct gt_err *err)
{
	struct gloo_root *r = ((struct gloo_comm *)pub)->root;
	*out = NULL;
	if (gt_gloo_is_broken(r))
		return gt_gloo_broken(r, err);
	void **list = realloc(r->buffer, (size_t)(r->buffers + 1) * sizeof *list);
	if (list)
		r->buffer = list;
	void *p = list ? aligned_alloc(4096, round_up(bytes ? bytes : 1, 4096)) : NULL;
	if (!p)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", bytes);
	memset(p, 0, round_up(bytes ? bytes : 1, 4096));
	r->buffer[r->buffers++] = *out = p;
	return GT_OK;
}

/* ---- table of functions ------------------------------------------------------------------------------------------------------------- */
GT_COLLECTIVE_FUNCTIONS(gt_gloo_coll)

static void abort_comm(struct gt_comm *c, const char *why)
{
	struct gloo_root *r = ((struct gloo_comm *)c)->root;
	char text[1000];
	snprintf(text, sizeof text, "rank %d gave up: %.900s", r->rank, why ? why : "no reason given");
	gt_gloo_say_broken(r, text);
}

static enum gt_code check_comm(struct gt_comm *c, struct gt_err *err)
{
	struct gloo_root *r = ((struct gloo_comm *)c)->root;
	return gt_gloo_is_broken(r) ? gt_gloo_broken(r, err) : GT_OK;
}

static void set_send_buffer(struct gt_comm *c, size_t pair_bytes)
{
	((struct gloo_comm *)c)->root->pair_bytes = pair_bytes;
}

static double set_timeout(struct gt_comm *c, double timeout_s)
{
	double *now = &((struct gloo_comm *)c)->root->timeout_s, was = *now;
	*now = timeout_s;
	return was;
}

const struct gt_comm_api gt_comm_gloo = {
    .abi = GT_COMM_ABI,
    .name = "gloo",
    .host_memory = true,
    .fixed_tree = true,
    .max_world = GT_COMM_RANKS,
    .create = create_boot_record,
    .open = open_comm,
    .close = close_comm,
    .split = split_comm,
    .buffer = allocate_buffer,
    GT_COLLECTIVE_MEMBERS,
    .exchange = gt_gloo_exchange,
    .abort = abort_comm,
    .check = check_comm,
    .set_timeout = set_timeout,
    .set_send_buffer = set_send_buffer,
};
