/* How ranks become a team: they meet, agree, share out the cores, choose what joins them, and listen for the end. */
#include "base/digest.h"
#include "gtrain.h"
#include "run/device.h"
#include "run/launcher_parts.h"
#include "run/rendezvous.h"
#include "run/team.h"
#include "run/team_token.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

struct opened {
	struct gt_team pub;
	pthread_t listens;
	bool listening;
	int closing; /* an eventfd: the listener is to go */
};

/* What a rank shows of where it is. */
struct card {
	char host[192]; /* equal: memory can be shared */
	uint64_t cpus[sizeof(cpu_set_t) / sizeof(uint64_t)];
};

/* ---- where a rank is ---------------------------------------------------------------------------------------------------------- */
static void own_card(struct card *c)
{
	char boot[64] = "?", space[64] = "?";
	cpu_set_t set;
	memset(c, 0, sizeof *c);
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && fscanf(f, "%63s", boot) != 1)
		strcpy(boot, "?");
	if (f)
		fclose(f);
	ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1); /* shared memory is found through /proc/PID/fd */
	space[n > 0 ? n : 0] = 0;
	snprintf(c->host, sizeof c->host, "%s %s %d", boot, space, (int)geteuid());
	CPU_ZERO(&set);
	if (!sched_getaffinity(0, sizeof set, &set))
		memcpy(c->cpus, &set, sizeof c->cpus);
}

/* Ranks that something else started, and all let loose on the same processors, share them out as the launcher would. Where the starter
 * has bound them (mpirun does), or there is one rank on the host, everybody keeps what it has. */
static void share_cores(struct gt_team *t, const struct card *own, const struct card *all)
{
	struct gt_core_place place[CPU_SETSIZE];
	cpu_set_t set;
	int cores, local = 0, here = 0;
	for (int i = 0; i < t->world.world; i++) {
		if (strcmp(all[i].host, own->host))
			continue;
		if (memcmp(all[i].cpus, own->cpus, sizeof own->cpus))
			return;
		local += i < t->world.rank;
		here++;
	}
	if (here < 2)
		return;
	int n = gt_core_places(place);
	if (gt_core_share(place, n, local, here, &set, &cores))
		sched_setaffinity(0, sizeof set, &set);
	else
		cores = 1;
	t->threads = getenv("OMP_NUM_THREADS") ? 0 : cores > 0 ? cores : 1;
}

/* ---- the communicator --------------------------------------------------------------------------------------------------------- */
static enum gt_code transport(bool one_host, int world, const struct gt_comm_api **out, struct gt_err *err)
{
	void *p;
	enum gt_code code = one_host ? gt_device_plugin("cpu", "gt_comm_shm", &p, err) : gt_device_plugin("gloo", "gt_comm_gloo", &p, err);
	if (code == GT_EUNAVAILABLE && !one_host)
		return err ? gt_fail_prefix(err, "the ranks are on several hosts, which only the gloo plugin can join") : code;
	GT_TRY(code);
	*out = p;
	if ((*out)->abi != GT_COMM_ABI)
		return gt_fail(err, GT_EUNAVAILABLE, "the communicator %s has interface version %u, this gtrain needs %u: install both from one build",
		               (*out)->name, (*out)->abi, GT_COMM_ABI);
	if ((*out)->max_world && world > (*out)->max_world)
		return gt_fail(err, GT_EUSAGE, "%d ranks: the communicator %s joins at most %d", world, (*out)->name, (*out)->max_world);
	return GT_OK;
}

/* Rank 0 makes the group and tells the others its id, or why there is none. */
static enum gt_code found(struct gt_rendezvous *r, const struct gt_comm_api *api, int rank, int world, struct gt_comm_boot *boot,
                          struct gt_rdv_value *all, struct gt_err *err)
{
	char text[1 + sizeof err->msg] = "";
	struct gt_err why = {0};
	*boot = (struct gt_comm_boot){.fd = -1};
	if (!rank && api->create(world, boot, &why) == GT_OK)
		snprintf(text, sizeof text, "+%s", boot->id);
	else if (!rank)
		snprintf(text, sizeof text, "-%s", why.msg);
	GT_TRY(gt_rendezvous_exchange(r, "communicator", text, strlen(text), all, err));
	if (!rank && why.code)
		return gt_fail(err, why.code, "%s", why.msg);
	const char *told = all[0].data;
	size_t n = all[0].n;
	if (n < 1 || *told != '+' || n - 1 >= sizeof boot->id)
		return gt_fail(err, GT_EPEER, "rank 0 has no communicator: %.*s", n > 1 ? (int)n - 1 : 0, told + 1);
	if (rank)
		memcpy(boot->id, told + 1, n - 1);
	return GT_OK;
}

struct channel {
	struct gt_rendezvous *r;
	struct gt_rdv_value *all;
	int world;
};

/* For transports whose ranks tell each other addresses while they open. */
static enum gt_code exchange(void *user, const char *key, const void *mine, size_t n, void *all, struct gt_err *err)
{
	const struct channel *c = user;
	GT_TRY(gt_rendezvous_exchange(c->r, key, mine, n, c->all, err));
	for (int i = 0; i < c->world; i++) {
		if (c->all[i].n != n)
			return gt_fail(err, GT_EPEER, "rank %d is of another build: \"%s\" has %zu bytes instead of %zu", i, key, c->all[i].n, n);
		if (n)
			memcpy((char *)all + (size_t)i * n, c->all[i].data, n);
	}
	return GT_OK;
}

static enum gt_code connect_ranks(struct gt_team *t, struct gt_rendezvous *r, const struct gt_team_spec *s, struct gt_rdv_value *all,
                                  struct gt_err *err)
{
	const struct gt_world *w = &t->world;
	const struct gt_comm_api *api = NULL;
	struct gt_comm_boot boot;
	struct card own, *card = calloc((size_t)w->world, sizeof *card);
	struct channel channel = {r, all, w->world};
	char addr[GT_ADDR_SIZE];
	bool one_host = true;
	if (!card)
		return gt_fail(err, GT_EFAIL, "out of memory");
	own_card(&own);
	enum gt_code code = exchange(&channel, "host", &own, sizeof own, card, err);
	for (int i = 0; i < w->world; i++)
		one_host &= !strcmp(card[i].host, own.host);
	if (code == GT_OK && !t->link) /* before the CPU's plugin, whose libraries ask how many processors there are */
		share_cores(t, &own, card);
	free(card);
	GT_TRY(code);
	GT_TRY(transport(one_host, w->world, &api, err));
	GT_TRY(found(r, api, w->rank, w->world, &boot, all, err));
	struct gt_comm_spec spec = {.name = "world", .rank = w->rank, .world = w->world, .timeout_s = s->timeout_s, .boot = &boot};
	if (!one_host) {
		spec.exchange = exchange;
		spec.user = &channel;
		spec.addr = addr;
		code = gt_rendezvous_address(r, addr, sizeof addr, err);
	}
	if (code == GT_OK)
		code = api->open(&spec, &t->comm, err);
	if (boot.fd >= 0)
		close(boot.fd); /* whoever was to open it has, or has failed to */
	return code;
}

/* ---- the rendezvous ----------------------------------------------------------------------------------------------------------- */
static enum gt_code meet(struct gt_team *t, const struct gt_team_spec *s, struct gt_err *err)
{
	struct gt_world *w = &t->world;
	unsigned char token[GT_TOKEN_SIZE];
	char digest[GT_DIGEST_HEX];
	struct gt_rendezvous *r;
	bool one_host = w->local_world == w->world;
	double patience = one_host || s->timeout_s > GT_TEAM_PATIENCE ? s->timeout_s : GT_TEAM_PATIENCE;
	struct gt_rendezvous_spec spec = {.world = w, .listen_fd = -1, .token = token, .timeout_s = patience};
	gt_rank_phase(t->link, "meeting the other ranks", 2 * patience);
	if (t->link) {
		memcpy(token, gt_rank_token(t->link), sizeof token);
		spec.listen_fd = gt_rank_take_listener(t->link);
	} else if (s->token_file) {
		GT_TRY(gt_token_read(s->token_file, token, err));
	} else if (one_host) {
		GT_TRY(gt_team_token(w, patience, token, &spec.listen_fd, err));
	} else {
		return gt_fail(err, GT_EUSAGE, "%s started %d ranks, %d of them on this host: ranks of several hosts know each other by a token: --token-file FILE, or "
		               "GTRAIN_TOKEN_FILE, with 64 hexadecimal digits that no other user can read", w->how, w->world, w->local_world);
	}
	enum gt_code code = gt_rendezvous_open(&spec, &r, err);
	explicit_bzero(token, sizeof token);
	GT_TRY(code);
	struct gt_rdv_value *all = calloc((size_t)w->world, sizeof *all);
	gt_digest_bytes(s->config, strlen(s->config), digest);
	code = all ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory");
	if (code == GT_OK)
		code = gt_rendezvous_agree(r, "gtrain", GT_VERSION, err);
	if (code == GT_OK)
		code = gt_rendezvous_agree(r, "config", digest, err);
	if (code == GT_OK)
		code = gt_rendezvous_agree(r, "start", s->start, err);
	if (code == GT_OK)
		code = connect_ranks(t, r, s, all, err);
	free(all);
	gt_rendezvous_close(r);
	return code;
}

/* ---- the end ------------------------------------------------------------------------------------------------------------------ */
/* A thread, because the rank's own may wait in a collective for one that will not come; it sleeps until there is something to hear. */
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
			o->pub.comm->api->abort(o->pub.comm, "the run is being ended");
			return NULL;
		}
	}
}

static enum gt_code listen_up(struct opened *o, struct gt_err *err)
{
	sigset_t every, before;
	if ((o->closing = eventfd(0, EFD_CLOEXEC)) < 0)
		return gt_fail(err, GT_EFAIL, "cannot listen for the end of the run: %s", strerror(errno));
	sigfillset(&every); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &every, &before);
	int rc = pthread_create(&o->listens, NULL, listen_for_end, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return gt_fail(err, GT_EFAIL, "cannot listen for the end of the run: %s", strerror(rc));
	o->listening = true;
	return GT_OK;
}

/* ---- open and close ----------------------------------------------------------------------------------------------------------- */
enum gt_code gt_team_world(const struct gt_rank_link *link, struct gt_world *out, struct gt_err *err)
{
	if (link) {
		*out = *gt_rank_world(link);
		return GT_OK;
	}
	GT_TRY(gt_world_join(NULL, NULL, out, err));
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
	enum gt_code code = o->pub.world.world > 1 ? meet(&o->pub, spec, err) : GT_OK;
	if (code == GT_OK && o->pub.comm && o->pub.link)
		code = listen_up(o, err);
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
	if (o->closing >= 0)
		close(o->closing);
	if (t->comm)
		t->comm->api->close(t->comm);
	free(o);
}
