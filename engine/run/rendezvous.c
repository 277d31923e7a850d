#include "run/rendezvous.h"
#include "run/launcher_parts.h"
#include "run/rendezvous_wire.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEY 64       /* bytes of a key in a frame, NUL-padded */
#define STRANGERS 64 /* connections that have not proved anything yet; one more drops the oldest */
#define STRANGER_S 5 /* seconds one has for its proof */
#define LATE_S 2     /* the others wait so much longer than rank 0, whose sentence knows who is missing */

struct gt_rendezvous {
	struct gt_world world;
	double timeout;
	struct gt_rdv_conn *conn; /* rank 0: one a rank, its own unused; others: one */
	unsigned char *all;       /* what struct gt_rdv_value points into */
	struct gt_err err;        /* code GT_OK: none yet */
};

static bool serves(const struct gt_rendezvous *r)
{
	return r->world.rank == 0;
}

/* A frame is more than one write; without this, the second one waits until the other side's delayed acknowledgement of the first: 40 ms an
 * exchange, which made up half a second of a start. */
static void at_once(int fd)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Closing a socket with unread bytes resets the connection, and the peer loses the sentence that was on its way: read what comes until the
 * others have heard it and closed, or a second has passed. */
static void linger_on(int *fd, double until)
{
	char sink[4096];
	while (*fd >= 0 && gt_rdv_recv(*fd, sink, 1, until))
		while (recv(*fd, sink, sizeof sink, MSG_DONTWAIT) > 0)
			;
	shut(fd);
}

static void linger(struct gt_rendezvous *r)
{
	double until = gt_clock() + 1;
	for (int i = 1; i < r->world.world; i++)
		if (r->conn[i].fd >= 0)
			shutdown(r->conn[i].fd, SHUT_WR);
	for (int i = 1; i < r->world.world; i++)
		linger_on(&r->conn[i].fd, until);
}

/* Remembers the failure, and rank 0 tells the others: a frame of 1, the code, the sentence. */
static enum gt_code fail(struct gt_rendezvous *r, enum gt_code code, struct gt_err *err, const char *msg)
{
	unsigned char frame[5 + sizeof r->err.msg];
	size_t n = strlen(msg);
	r->err.code = code;
	snprintf(r->err.msg, sizeof r->err.msg, "%s", msg);
	n = n < sizeof r->err.msg ? n : sizeof r->err.msg - 1;
	frame[0] = 1;
	gt_rdv_put(frame + 1, (uint32_t)code);
	memcpy(frame + 5, msg, n);
	for (int i = 1; serves(r) && i < r->world.world; i++)
		if (r->conn[i].fd >= 0)
			gt_rdv_send_frame(&r->conn[i], true, frame, 5 + n, gt_clock() + 1);
	if (serves(r))
		linger(r);
	else
		shut(&r->conn[0].fd);
	return gt_fail(err, code, "%s", r->err.msg);
}

/* "rank 3", "ranks 1, 2, 5": those with no mark. */
static void missing(const bool *there, int world, char *out, size_t size)
{
	int n = 0, told = 0;
	size_t at = 0;
	for (int i = 0; i < world; i++)
		n += !there[i];
	at += (size_t)snprintf(out, size, n == 1 ? "rank " : "ranks ");
	for (int i = 0; i < world && told < 8; i++)
		if (!there[i])
			at += (size_t)snprintf(out + at, size - at, "%s%d", told++ ? ", " : "", i);
	if (n > told)
		snprintf(out + at, size - at, " and %d more", n - told);
}

/* ---- rank 0: everybody comes ------------------------------------------------------------------------------------------------ */
struct stranger {
	int fd;
	double until;
	unsigned char hello[GT_RDV_HELLO], proof[GT_RDV_PROOF];
	size_t got;
};

static int listen_on(const struct gt_world *w, struct gt_err *err)
{
	int fd = -1, error = 0;
	for (int k = 0; k < GT_RENDEZVOUS_PORTS && w->port + k <= 65535; k++) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list, *a;
		char port[12];
		snprintf(port, sizeof port, "%d", w->port + k);
		int rc = getaddrinfo(w->addr, port, &hints, &list);
		if (rc) {
			gt_fail(err, GT_EPEER, "cannot listen on %s: %s", w->addr, gai_strerror(rc));
			return -1;
		}
		for (a = list; a && fd < 0; a = a->ai_next) {
			int on = 1;
			fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* past connections' TIME_WAIT is no reason to fail */
			if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 128)) {
				error = errno;
				shut(&fd);
			}
		}
		freeaddrinfo(list);
		if (fd >= 0)
			return fd;
	}
	gt_fail(err, GT_EPEER, "cannot listen on %s port %d, nor on one of the next: %s", w->addr, w->port, strerror(error));
	return -1;
}

static void greet(int listener, struct stranger *s)
{
	int oldest = 0, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	at_once(fd);
	for (int i = 0; i < STRANGERS; i++)
		if (s[i].fd < 0 || (s[oldest].fd >= 0 && s[i].until < s[oldest].until))
			oldest = i;
	s += oldest;
	shut(&s->fd);
	*s = (struct stranger){.fd = fd, .until = gt_clock() + STRANGER_S};
	memcpy(s->hello, GT_RDV_MAGIC, 16);
	if (getrandom(s->hello + 16, GT_SHA256_SIZE, 0) != GT_SHA256_SIZE || !gt_rdv_send(fd, s->hello, sizeof s->hello, gt_clock()))
		shut(&s->fd);
}

/* Its bytes; when the proof is whole and right, it is a rank. */
static enum gt_code hear(struct gt_rendezvous *r, const unsigned char *token, struct stranger *s, struct gt_err *err)
{
	unsigned char mac[GT_SHA256_SIZE];
	char msg[200];
	ssize_t n = recv(s->fd, s->proof + s->got, sizeof s->proof - s->got, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return GT_OK;
	if (n <= 0) {
		shut(&s->fd);
		return GT_OK;
	}
	s->got += (size_t)n;
	if (s->got < sizeof s->proof)
		return GT_OK;
	gt_rdv_mac(token, "client", s->hello, s->proof, mac);
	uint32_t rank = gt_rdv_get(s->proof), world = gt_rdv_get(s->proof + 4);
	if (!gt_mac_equal(mac, s->proof + 8 + GT_SHA256_SIZE)) {
		shut(&s->fd);
		return GT_OK;
	}
	struct gt_rdv_conn c = {.fd = s->fd}, *mine = rank < (uint32_t)r->world.world ? &r->conn[rank] : NULL;
	s->fd = -1;
	gt_rdv_mac(token, "session", s->hello, s->proof, c.key);
	gt_rdv_mac(token, "server", s->hello, s->proof, mac);
	if (!gt_rdv_send(c.fd, mac, sizeof mac, gt_clock() + 1)) {
		shut(&c.fd);
		return GT_OK;
	}
	if (mine && mine->fd < 0 && rank && world == (uint32_t)r->world.world) {
		*mine = c;
		return GT_OK;
	}
	if (world != (uint32_t)r->world.world)
		snprintf(msg, sizeof msg, "rank %u counts %u ranks, rank 0 counts %d", rank, world, r->world.world);
	else
		snprintf(msg, sizeof msg, "two processes are rank %u", rank);
	struct gt_rdv_conn was = r->conn[0]; /* so that the one that is too many hears it too */
	r->conn[0] = c;
	unsigned char frame[5 + sizeof msg] = {1};
	gt_rdv_put(frame + 1, GT_EUSAGE);
	memcpy(frame + 5, msg, strlen(msg));
	gt_rdv_send_frame(&r->conn[0], true, frame, 5 + strlen(msg), gt_clock() + 1);
	shutdown(c.fd, SHUT_WR);
	linger_on(&r->conn[0].fd, gt_clock() + 1);
	r->conn[0] = was;
	return fail(r, GT_EUSAGE, err, msg);
}

static enum gt_code gather_ranks(struct gt_rendezvous *r, const unsigned char *token, int listener, struct gt_err *err)
{
	struct stranger *s = calloc(STRANGERS, sizeof *s);
	double until = gt_clock() + r->timeout;
	enum gt_code code = s ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory");
	int here = 1;
	for (int i = 0; s && i < STRANGERS; i++)
		s[i].fd = -1;
	while (code == GT_OK && here < r->world.world) {
		struct pollfd p[1 + STRANGERS] = {{.fd = listener, .events = POLLIN}};
		for (int i = 0; i < STRANGERS; i++) {
			if (s[i].fd >= 0 && gt_clock() > s[i].until)
				shut(&s[i].fd);
			p[1 + i] = (struct pollfd){.fd = s[i].fd, .events = POLLIN};
		}
		double left = until - gt_clock();
		if (left <= 0) {
			char who[160], msg[300];
			bool *there = calloc((size_t)r->world.world, sizeof *there);
			for (int i = 0; there && i < r->world.world; i++)
				there[i] = !i || r->conn[i].fd >= 0;
			if (there)
				missing(there, r->world.world, who, sizeof who);
			snprintf(msg, sizeof msg, "%s did not come to the rendezvous within %.3g s", there ? who : "a rank", r->timeout);
			free(there);
			code = fail(r, GT_EPEER, err, msg);
			break;
		}
		poll(p, 1 + STRANGERS, left < 0.5 ? (int)(left * 1e3) + 1 : 500);
		for (int i = 0; i < STRANGERS && code == GT_OK; i++)
			if (p[1 + i].revents)
				code = hear(r, token, &s[i], err);
		if (p[0].revents)
			greet(listener, s);
		here = 1;
		for (int i = 1; i < r->world.world; i++)
			here += r->conn[i].fd >= 0;
	}
	for (int i = 0; s && i < STRANGERS; i++)
		shut(&s[i].fd);
	free(s);
	return code;
}

/* ---- the others: to rank 0 --------------------------------------------------------------------------------------------------- */
/* One attempt; why: what was wrong with it. */
static bool knock(struct gt_rendezvous *r, const unsigned char *token, const struct addrinfo *a, double patience, const char **why)
{
	unsigned char hello[GT_RDV_HELLO], proof[GT_RDV_PROOF], mac[GT_SHA256_SIZE], want[GT_SHA256_SIZE];
	double until = gt_clock() + patience;
	struct gt_rdv_conn c = {.fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
	struct pollfd p = {.fd = c.fd, .events = POLLOUT};
	int error = 0;
	socklen_t n = sizeof error;
	at_once(c.fd);
	if (connect(c.fd, a->ai_addr, a->ai_addrlen) &&
	    (errno != EINPROGRESS || poll(&p, 1, (int)(patience * 1e3)) <= 0 || getsockopt(c.fd, SOL_SOCKET, SO_ERROR, &error, &n) || error)) {
		shut(&c.fd);
		return false;
	}
	if (!gt_rdv_recv(c.fd, hello, sizeof hello, until) || memcmp(hello, GT_RDV_MAGIC, 16)) {
		*why = "what listens there is not gtrain's rendezvous";
		shut(&c.fd);
		return false;
	}
	gt_rdv_put(proof, (uint32_t)r->world.rank);
	gt_rdv_put(proof + 4, (uint32_t)r->world.world);
	bool good = getrandom(proof + 8, GT_SHA256_SIZE, 0) == GT_SHA256_SIZE;
	gt_rdv_mac(token, "client", hello, proof, proof + 8 + GT_SHA256_SIZE);
	gt_rdv_mac(token, "server", hello, proof, want);
	gt_rdv_mac(token, "session", hello, proof, c.key);
	if (!good || !gt_rdv_send(c.fd, proof, sizeof proof, until) || !gt_rdv_recv(c.fd, mac, sizeof mac, until) || !gt_mac_equal(mac, want)) {
		*why = "rank 0 there has another token";
		shut(&c.fd);
		return false;
	}
	r->conn[0] = c;
	return true;
}

static enum gt_code reach(struct gt_rendezvous *r, const unsigned char *token, struct gt_err *err)
{
	const struct gt_world *w = &r->world;
	int ports = !strcmp(w->how, "gtrain") && w->nnodes == 1 ? 1 : GT_RENDEZVOUS_PORTS; /* the launcher's port is the right one */
	double until = gt_clock() + r->timeout;
	const char *why = "nothing listens there";
	while (gt_clock() < until) {
		for (int k = 0; k < ports && w->port + k <= 65535 && gt_clock() < until; k++) {
			struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
			char port[12];
			snprintf(port, sizeof port, "%d", w->port + k);
			int rc = getaddrinfo(w->addr, port, &hints, &list);
			if (rc)
				why = gai_strerror(rc);
			double left = until - gt_clock(), patience = ports == 1 || left < 1 ? left : 1;
			for (struct addrinfo *a = list; a && r->conn[0].fd < 0 && patience > 0; a = a->ai_next)
				knock(r, token, a, patience, &why);
			if (list)
				freeaddrinfo(list);
			if (r->conn[0].fd >= 0)
				return GT_OK;
		}
		poll(NULL, 0, 20);
	}
	return gt_fail(err, GT_EPEER, "rank %d did not reach rank 0 at %s port %d within %.3g s: %s", w->rank, w->addr, w->port, r->timeout, why);
}

/* ---- exchange --------------------------------------------------------------------------------------------------------------- */
/* Rank 0: value[i] malloc'ed frames of the others, each 0, key, data. */
static enum gt_code collect(struct gt_rendezvous *r, const char *key, unsigned char **value, size_t *len, struct gt_err *err)
{
	int world = r->world.world, left = world - 1;
	double until = gt_clock() + r->timeout;
	struct pollfd *p = calloc((size_t)world, sizeof *p);
	bool *there = calloc((size_t)world, sizeof *there);
	char msg[400], who[160];
	enum gt_code code = p && there ? GT_OK : fail(r, GT_EFAIL, err, "rank 0 is out of memory");
	if (code == GT_OK)
		there[0] = true;
	while (code == GT_OK && left) {
		for (int i = 0; i < world; i++)
			p[i] = (struct pollfd){.fd = there[i] ? -1 : r->conn[i].fd, .events = POLLIN};
		double rest = until - gt_clock();
		if (rest <= 0) {
			missing(there, world, who, sizeof who);
			snprintf(msg, sizeof msg, "%s did not exchange \"%s\" within %.3g s", who, key, r->timeout);
			code = fail(r, GT_EPEER, err, msg);
			break;
		}
		poll(p, (nfds_t)world, (int)(rest * 1e3) + 1);
		for (int i = 1; i < world && code == GT_OK; i++) {
			if (!p[i].revents)
				continue;
			if (!gt_rdv_recv_frame(&r->conn[i], true, 1 + KEY + GT_RENDEZVOUS_MAX, &value[i], &len[i], until) || len[i] < 1 + KEY ||
			    value[i][0]) {
				snprintf(msg, sizeof msg, "rank %d has gone before it exchanged \"%s\"", i, key);
				shut(&r->conn[i].fd);
				code = fail(r, GT_EPEER, err, msg);
			} else if (value[i][KEY] || strcmp((char *)value[i] + 1, key)) {
				value[i][KEY] = 0;
				snprintf(msg, sizeof msg, "rank %d exchanges \"%s\" where rank 0 exchanges \"%s\"", i, (char *)value[i] + 1, key);
				code = fail(r, GT_EINTERNAL, err, msg);
			}
			there[i] = true;
			left--;
		}
	}
	free(p);
	free(there);
	return code;
}

static enum gt_code serve(struct gt_rendezvous *r, const char *key, const void *data, size_t n, size_t *bytes, struct gt_err *err)
{
	int world = r->world.world;
	unsigned char **value = calloc((size_t)world, sizeof *value), *all = NULL;
	size_t *len = calloc((size_t)world, sizeof *len), at = 1, total = 1 + 4 + n;
	enum gt_code code = value && len ? collect(r, key, value, len, err) : fail(r, GT_EFAIL, err, "rank 0 is out of memory");
	for (int i = 1; code == GT_OK && i < world; i++)
		total += 4 + len[i] - 1 - KEY;
	if (code == GT_OK && !(all = calloc(1, total)))
		code = fail(r, GT_EFAIL, err, "rank 0 is out of memory");
	for (int i = 0; code == GT_OK && i < world; i++) {
		size_t part = i ? len[i] - 1 - KEY : n;
		gt_rdv_put(all + at, (uint32_t)part);
		if (part)
			memcpy(all + at + 4, i ? value[i] + 1 + KEY : data, part);
		at += 4 + part;
	}
	for (int i = 1; code == GT_OK && i < world; i++)
		if (!gt_rdv_send_frame(&r->conn[i], true, all, total, gt_clock() + r->timeout)) {
			char msg[200];
			snprintf(msg, sizeof msg, "rank %d has gone while it exchanged \"%s\"", i, key);
			shut(&r->conn[i].fd);
			code = fail(r, GT_EPEER, err, msg);
		}
	for (int i = 0; value && i < world; i++)
		free(value[i]);
	free(value);
	free(len);
	free(r->all);
	r->all = all;
	*bytes = total;
	return code;
}

static enum gt_code ask(struct gt_rendezvous *r, const char *key, const void *data, size_t n, size_t *bytes, struct gt_err *err)
{
	double until = gt_clock() + r->timeout + LATE_S;
	unsigned char *frame = calloc(1, 1 + KEY + n);
	char msg[200];
	size_t cap = 1 + (size_t)r->world.world * (4 + GT_RENDEZVOUS_MAX);
	if (!frame)
		return gt_fail(err, GT_EFAIL, "out of memory");
	memcpy(frame + 1, key, strlen(key));
	if (n)
		memcpy(frame + 1 + KEY, data, n);
	struct pollfd p = {.fd = r->conn[0].fd, .events = POLLIN};
	if (!poll(&p, 1, 0)) /* else rank 0 has left a sentence, which a reset would take away */
		gt_rdv_send_frame(&r->conn[0], false, frame, 1 + KEY + n, until);
	free(frame);
	free(r->all);
	r->all = NULL;
	if (!gt_rdv_recv_frame(&r->conn[0], false, cap, &r->all, bytes, until) || *bytes < 1) {
		bool late = errno == ETIMEDOUT;
		snprintf(msg, sizeof msg, late ? "rank 0 did not exchange \"%s\" in time" : "rank 0 has gone before it exchanged \"%s\"", key);
		return fail(r, GT_EPEER, err, msg);
	}
	if (r->all[0] && *bytes >= 5)
		return fail(r, (enum gt_code)gt_rdv_get(r->all + 1), err, (char *)r->all + 5);
	return GT_OK;
}

enum gt_code gt_rendezvous_exchange(struct gt_rendezvous *r, const char *key, const void *data, size_t n, struct gt_rdv_value *all,
                                    struct gt_err *err)
{
	size_t bytes = 0, at = 1;
	if (r->err.code != GT_OK)
		return gt_fail(err, r->err.code, "%s", r->err.msg);
	if (strlen(key) >= KEY || n > GT_RENDEZVOUS_MAX)
		return gt_fail(err, GT_EINTERNAL, "the rendezvous cannot exchange %zu bytes as \"%s\"", n, key);
	GT_TRY(serves(r) ? serve(r, key, data, n, &bytes, err) : ask(r, key, data, n, &bytes, err));
	for (int i = 0; i < r->world.world; i++) {
		if (at + 4 > bytes || gt_rdv_get(r->all + at) > bytes - at - 4)
			return fail(r, GT_EINTERNAL, err, "rank 0 sent a broken list of values");
		all[i] = (struct gt_rdv_value){r->all + at + 4, gt_rdv_get(r->all + at)};
		at += 4 + all[i].n;
	}
	return GT_OK;
}

enum gt_code gt_rendezvous_agree(struct gt_rendezvous *r, const char *what, const char *text, struct gt_err *err)
{
	struct gt_rdv_value *all = calloc((size_t)r->world.world, sizeof *all);
	if (!all)
		return gt_fail(err, GT_EFAIL, "out of memory");
	enum gt_code code = gt_rendezvous_exchange(r, what, text, strlen(text), all, err);
	for (int i = 1; code == GT_OK && i < r->world.world; i++)
		if (all[i].n != all[0].n || memcmp(all[i].data, all[0].data, all[0].n))
			code = gt_fail(err, GT_ECONFIG, "rank %d runs another %s: %.*s instead of %.*s", i, what, all[i].n > 64 ? 64 : (int)all[i].n,
			               (const char *)all[i].data, all[0].n > 64 ? 64 : (int)all[0].n, (const char *)all[0].data);
	free(all);
	return code;
}

enum gt_code gt_rendezvous_address(const struct gt_rendezvous *r, char *out, size_t size, struct gt_err *err)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof at;
	int fd = r->conn[serves(r) ? 1 : 0].fd; /* world > 1 */
	if (getsockname(fd, (struct sockaddr *)&at, &n))
		return gt_fail(err, GT_EPEER, "the rendezvous has lost its connection: %s", strerror(errno));
	int rc = getnameinfo((struct sockaddr *)&at, n, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
	return rc ? gt_fail(err, GT_EFAIL, "this host's address: %s", gai_strerror(rc)) : GT_OK;
}

/* ---- open and close --------------------------------------------------------------------------------------------------------- */
static enum gt_code join(struct gt_rendezvous *r, const struct gt_rendezvous_spec *spec, struct gt_err *err)
{
	int n = serves(r) ? r->world.world : 1, listener = spec->listen_fd;
	r->conn = calloc((size_t)n, sizeof *r->conn);
	if (!r->conn)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int i = 0; i < n; i++)
		r->conn[i].fd = -1;
	if (r->world.world == 1)
		return GT_OK;
	if (!spec->token)
		return gt_fail(err, GT_EUSAGE, "%d ranks need a token to know each other by", r->world.world);
	if (!serves(r)) {
		GT_TRY(reach(r, spec->token, err));
	} else {
		if (listener < 0 && (listener = listen_on(&r->world, err)) < 0)
			return GT_EPEER;
		enum gt_code code = gather_ranks(r, spec->token, listener, err);
		if (spec->listen_fd < 0)
			close(listener);
		GT_TRY(code);
	}
	struct gt_rdv_value *all = calloc((size_t)r->world.world, sizeof *all); /* nobody goes on before all are there */
	if (!all)
		return gt_fail(err, GT_EFAIL, "out of memory");
	enum gt_code code = gt_rendezvous_exchange(r, "rendezvous", NULL, 0, all, err);
	free(all);
	return code;
}

enum gt_code gt_rendezvous_open(const struct gt_rendezvous_spec *spec, struct gt_rendezvous **out, struct gt_err *err)
{
	struct gt_rendezvous *r = calloc(1, sizeof *r);
	enum gt_code code;
	*out = NULL;
	if (!r || spec->world->world > GT_RENDEZVOUS_RANKS) {
		code = r ? gt_fail(err, GT_EUSAGE, "%d ranks: the rendezvous takes %d", spec->world->world, GT_RENDEZVOUS_RANKS)
		         : gt_fail(err, GT_EFAIL, "out of memory");
		free(r);
		r = NULL;
	} else {
		r->world = *spec->world;
		r->timeout = spec->timeout_s;
		code = join(r, spec, err);
	}
	if (spec->listen_fd >= 0)
		close(spec->listen_fd);
	if (code != GT_OK)
		gt_rendezvous_close(r);
	else
		*out = r;
	return code;
}

void gt_rendezvous_close(struct gt_rendezvous *r)
{
	if (!r)
		return;
	for (int i = 0; r->conn && i < (serves(r) ? r->world.world : 1); i++)
		shut(&r->conn[i].fd);
	free(r->conn);
	free(r->all);
	explicit_bzero(r, sizeof *r);
	free(r);
}
