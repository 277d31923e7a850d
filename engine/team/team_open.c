/* Forms a team of ranks: they meet in the rendezvous, compare their versions, divide the cores, select the communicator, and listen for the
 * end of the run. */
#include "base/descriptors.h"
#include "exec/device.h"
#include "launch/launcher_parts.h"
#include "launch/rendezvous.h"
#include "team/team_parts.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* Maximum number of a rank's descriptors, not counting connections. The handshakes' descriptor is closed before the run opens its files. */
#define FILES 12
#define SPARE 96 /* descriptors for connections from processes that are not ranks, until they are rejected */

struct opened {
	struct gt_team pub;
	pthread_t listens;
	bool listening;
	int closing; /* eventfd that ends the thread listen_for_end */
};

/* ---- communicator ------------------------------------------------------------------------------------------------------------------- */
static enum gt_code load_comm_api(bool one_host, int world, const struct gt_comm_api **out, struct gt_err *err)
{
	enum gt_code code = one_host ? gt_team_comm_api("cpu", "gt_comm_shm", out, err) : gt_team_comm_api("gloo", "gt_comm_gloo", out, err);
	if (code == GT_EUNAVAILABLE && !one_host && !*out)
		return err ? gt_fail_prefix(err, "the ranks run on several hosts, and communication between hosts needs the gloo plugin") : code;
	GT_TRY(code);
	if ((*out)->max_world && world > (*out)->max_world)
		return gt_fail(err, GT_EUSAGE, "%d ranks: the communicator %s supports at most %d", world, (*out)->name, (*out)->max_world);
	return GT_OK;
}

static bool is_loopback(const char *addr)
{
	struct in6_addr v6;
	struct in_addr v4;
	return !strcmp(addr, "localhost") || (inet_pton(AF_INET, addr, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127) ||
	       (inet_pton(AF_INET6, addr, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6));
}

enum gt_code gt_team_check_hosts(const char *addr, struct gt_err *err)
{
	const struct gt_comm_api *api = NULL;
	return is_loopback(addr) ? GT_OK : load_comm_api(false, 0, &api, err);
}

struct channel {
	struct gt_rendezvous *r;
	struct gt_rdv_value *all;
	int world;
};

/* The exchange function for communicators whose ranks send each other addresses while they open. */
static enum gt_code exchange_comm_data(void *user, const char *key, const void *mine, size_t n, void *all, struct gt_err *err)
{
	const struct channel *c = user;
	GT_TRY(gt_rendezvous_exchange(c->r, key, mine, n, c->all, err));
	for (int i = 0; i < c->world; i++) {
		if (c->all[i].n != n)
			return gt_fail(err, GT_EPEER, "rank %d runs another build of gtrain: its value of \"%s\" has %zu bytes instead of %zu",
			               i, key, c->all[i].n, n);
		if (n)
			memcpy((char *)all + (size_t)i * n, c->all[i].data, n);
	}
	return GT_OK;
}

/* ---- rendezvous --------------------------------------------------------------------------------------------------------------------- */
/* The answer of rank 0 to all ranks, after it has received their information. */
struct answer {
	struct gt_peer_info card; /* information about rank 0, which the other ranks read from this answer */
	char id[sizeof ((struct gt_comm_boot *)0)->id];
};

struct team_setup {
	struct gt_team *t;
	struct gt_peer_info own;
	const struct gt_comm_api *api;
	struct gt_comm_boot boot;
	bool one_host;
};

/* Rank 0: checks that all ranks agree, divides the cores, and creates the group. */
static enum gt_code answer_peers(void *user, const struct gt_rdv_value *all, void *out, size_t *n, struct gt_err *err)
{
	struct team_setup *m = user;
	struct answer *a = out;
	GT_TRY(gt_peers_agree(all, m->t->world.world, &m->one_host, err));
	gt_team_set_affinity(m->t, all, &m->own);
	GT_TRY(load_comm_api(m->one_host, m->t->world.world, &m->api, err));
	GT_TRY(m->api->create(m->t->world.world, &m->boot, err));
	a->card = m->own;
	memcpy(a->id, m->boot.id, sizeof a->id);
	*n = sizeof *a;
	return GT_OK;
}

/* On the other ranks: checks with the answer of rank 0 that all ranks agree, and divides the cores. */
static enum gt_code apply_answer(struct team_setup *m, struct gt_rdv_value *all, struct gt_err *err)
{
	const struct answer *a = all[0].data;
	if (all[0].n != sizeof *a)
		return gt_fail(err, GT_EPEER, "rank 0 runs another build of gtrain: its answer has %zu bytes instead of %zu", all[0].n, sizeof *a);
	memcpy(m->boot.id, a->id, sizeof a->id);
	all[0] = (struct gt_rdv_value){&a->card, sizeof a->card};
	GT_TRY(gt_peers_agree(all, m->t->world.world, &m->one_host, err));
	gt_team_set_affinity(m->t, all, &m->own);
	return load_comm_api(m->one_host, m->t->world.world, &m->api, err);
}

static enum gt_code open_communicator(struct team_setup *m, struct gt_rendezvous *r, const struct gt_team_spec *s, struct gt_rdv_value *all,
                                      struct gt_err *err)
{
	struct gt_team *t = m->t;
	struct channel channel = {r, all, t->world.world};
	struct gt_comm_spec spec = {
	    .name = "world", .rank = t->world.rank, .world = t->world.world, .timeout_s = s->timeout_s, .boot = &m->boot};
	char addr[GT_ADDR_SIZE];
	if (t->world.rank)
		GT_TRY(apply_answer(m, all, err));
	if (!m->one_host) {
		spec.exchange = exchange_comm_data;
		spec.user = &channel;
		spec.addr = addr;
		GT_TRY(gt_rendezvous_address(r, addr, sizeof addr, err));
	}
	GT_TRY(m->api->open(&spec, &t->comm, err));
	t->exchanges = gt_rendezvous_exchanges(r);
	return GT_OK;
}

/* Reserves descriptors for the connections to all ranks and for the files of a run. */
static enum gt_code reserve_descriptors(const struct gt_world *w, bool one_host, struct gt_err *err)
{
	char who[64];
	/* file descriptors per rank: a pidfd if all ranks are on one host; else two connections of gloo, and two more during their setup */
	int each = one_host ? 1 : 4;
	int need = w->world * (w->rank ? each : each + 1) + FILES;
	snprintf(who, sizeof who, "rank %d of %d", w->rank, w->world);
	return gt_descriptors_reserve(need, need + SPARE, who, err);
}

/* Joins the rendezvous: reserves descriptors, gets the token (from the launcher, from a file, or through a socket of this host), exchanges
 * information with the other ranks, and opens the communicator. */
static enum gt_code join_rendezvous(struct gt_team *t, const struct gt_team_spec *s, struct gt_err *err)
{
	struct gt_world *w = &t->world;
	struct team_setup m = {.t = t, .boot.fd = -1};
	unsigned char token[GT_TOKEN_SIZE];
	struct gt_rendezvous *r;
	bool one_host = w->local_world == w->world;
	double timeout = one_host || s->timeout_s > GT_TEAM_JOIN_TIMEOUT ? s->timeout_s : GT_TEAM_JOIN_TIMEOUT;
	struct gt_rendezvous_spec spec = {.world = w,
	                                  .listen_fd = -1,
	                                  .token = token,
	                                  .timeout_s = timeout,
	                                  .mine = &m.own,
	                                  .nmine = sizeof m.own,
	                                  .answer = answer_peers,
	                                  .user = &m,
	                                  .warn = s->warn,
	                                  .warn_user = s->warn_user};
	gt_rank_phase(t->link, "connecting to the other ranks", 2 * timeout);
	if (!one_host)
		GT_TRY(gt_team_check_hosts(w->addr, err));
	GT_TRY(reserve_descriptors(w, one_host, err));
	if (t->link) {
		memcpy(token, gt_rank_token(t->link), sizeof token);
		spec.listen_fd = gt_rank_take_listener(t->link);
		/* all ranks load the plugin now, at the same time, so that no rank waits in the rendezvous until rank 0 has loaded it; a failure is
		 * reported later */
		if (one_host)
			load_comm_api(true, w->world, &m.api, NULL);
	} else if (s->token_file) {
		GT_TRY(gt_token_read(s->token_file, token, err));
	} else if (one_host) {
		GT_TRY(gt_team_token(w, timeout, token, &spec.listen_fd, err));
	} else {
		return gt_fail(err, GT_EUSAGE, "%s started %d ranks, %d of them on this host, and ranks on several hosts need the same token: "
		               "expected --token-file FILE or GTRAIN_TOKEN_FILE, a file of 64 hexadecimal digits that no other user can read",
		               w->how, w->world, w->local_world);
	}
	gt_peer_info(s, &m.own);
	spec.all = calloc((size_t)w->world, sizeof *spec.all);
	enum gt_code code = spec.all ? gt_rendezvous_open(&spec, &r, err) : gt_fail(err, GT_EFAIL, "out of memory");
	explicit_bzero(token, sizeof token);
	if (code == GT_OK) {
		code = open_communicator(&m, r, s, spec.all, err);
		gt_rendezvous_close(r);
	}
	gt_fd_close(&m.boot.fd); /* every rank has opened the segment by now, or has failed to */
	free(spec.all);
	return code;
}

/* ---- end of the run ----------------------------------------------------------------------------------------------------------------- */
/* Waits in a separate thread until the launcher ends the run, because the rank's main thread may be blocked in a collective by a rank
 * that never arrives. The thread sleeps until the launcher sends a message. */
static void *listen_for_end(void *ctx)
{
	struct opened *o = ctx;
	for (;;) {
		struct pollfd p[2] = {{.fd = gt_rank_end_fd(o->pub.link), .events = POLLIN}, {.fd = o->closing, .events = POLLIN}};
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[1].revents)
			return NULL;
		if (p[0].revents) {
			char why[1024];
			gt_rank_end_reason(o->pub.link, why, sizeof why);
			o->pub.comm->api->abort(o->pub.comm, why);
			return NULL;
		}
	}
}

static enum gt_code start_end_listener(struct opened *o, struct gt_err *err)
{
	if ((o->closing = eventfd(0, EFD_CLOEXEC)) < 0)
		return gt_fail_errno(err, GT_EFAIL, errno, "cannot start the thread that watches for the end of the run");
	int rc = gt_team_thread(&o->listens, listen_for_end, o);
	if (rc)
		return gt_fail_errno(err, GT_EFAIL, rc, "cannot start the thread that watches for the end of the run");
	o->listening = true;
	return GT_OK;
}

/* ---- open and close ----------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_team_world(const struct gt_rank_link *link, struct gt_world *out, struct gt_err *err)
{
	if (link) {
		*out = *gt_rank_world(link);
		return GT_OK;
	}
	GT_TRY(gt_world_from_environment(NULL, NULL, out, err));
	if (out->world == 1)
		*out = (struct gt_world){.how = "single", .world = 1, .local_world = 1, .nnodes = 1};
	return GT_OK;
}

enum gt_code gt_team_open(const struct gt_team_spec *spec, struct gt_team **out, struct gt_err *err)
{
	struct opened *o = calloc(1, sizeof *o);
	*out = NULL;
	if (!o)
		return gt_fail(err, GT_EFAIL, "out of memory");
	o->pub = (struct gt_team){.world = *spec->world, .link = spec->link};
	o->closing = -1;
	enum gt_code code = o->pub.world.world > 1 ? join_rendezvous(&o->pub, spec, err) : GT_OK;
	if (code == GT_OK && o->pub.comm && o->pub.link)
		code = start_end_listener(o, err);
	if (code != GT_OK) {
		gt_team_close(&o->pub);
		return code;
	}
	gt_rank_phase(o->pub.link, "", 0);
	*out = &o->pub;
	return GT_OK;
}

void gt_team_close(struct gt_team *t)
{
	struct opened *o = (struct opened *)t;
	if (!o)
		return;
	if (o->listening) {
		uint64_t one = 1;
		while (write(o->closing, &one, sizeof one) < 0 && errno == EINTR)
			;
		pthread_join(o->listens, NULL);
	}
	gt_fd_close(&o->closing);
	if (t->comm)
		t->comm->api->close(t->comm);
	free(o);
}
