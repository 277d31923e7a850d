#include "launch/rendezvous.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/rendezvous_parts.h"
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

#define KEY 64   /* bytes of a key in a frame, padded with NUL */
#define LATE_S 2 /* seconds that other ranks wait longer than rank 0, so that they receive rank 0's message about missing ranks */

/* ---- exchange --------------------------------------------------------------------------------------------------------------- */
/* On rank 0: receives one frame from every other rank. value[i] is the frame of rank i (the byte 0, the key, the data), which the caller
 * frees with free(); len[i] is its length. */
static enum gt_code collect_values(struct gt_rendezvous *r, const char *key, unsigned char **value, size_t *len, struct gt_err *err)
{
	int world = r->world.world, left = world - 1;
	double until = gt_clock() + r->timeout;
	struct pollfd *p = calloc((size_t)world, sizeof *p);
	bool *there = calloc((size_t)world, sizeof *there);
	char who[160];
	enum gt_code code = p && there ? GT_OK : gt_rdv_fail(r, GT_EFAIL, err, "rank 0 is out of memory");
	if (code == GT_OK)
		there[0] = true;
	while (code == GT_OK && left) {
		for (int i = 0; i < world; i++)
			p[i] = (struct pollfd){.fd = there[i] ? -1 : r->conn[i].fd, .events = POLLIN};
		double rest = until - gt_clock();
		if (rest <= 0) {
			gt_rdv_list_missing(there, world, who, sizeof who);
			code = gt_rdv_fail(r, GT_EPEER, err, "%s did not exchange \"%s\" within %.3g s", who, key, r->timeout);
			break;
		}
		if (gt_poll(p, world, rest) < 0) {
			code = gt_rdv_fail(r, GT_EFAIL, err, "rank 0 cannot wait for the other ranks: %s", strerror(errno));
			break;
		}
		for (int i = 1; i < world && code == GT_OK; i++) {
			if (!p[i].revents)
				continue;
			if (!gt_rdv_recv_frame(&r->conn[i], true, 1 + KEY + GT_RENDEZVOUS_MAX, &value[i], &len[i], until) || len[i] < 1 + KEY ||
			    value[i][0]) {
				gt_fd_close(&r->conn[i].fd);
				code = gt_rdv_fail(r, GT_EPEER, err, "rank %d closed its connection before it exchanged \"%s\"", i, key);
			} else if (value[i][KEY] || strcmp((char *)value[i] + 1, key)) {
				value[i][KEY] = 0;
				code = gt_rdv_fail(r, GT_EINTERNAL, err, "rank %d exchanges \"%s\" while rank 0 exchanges \"%s\"", i,
				                   (char *)value[i] + 1, key);
			}
			there[i] = true;
			left--;
		}
	}
	free(p);
	free(there);
	return code;
}

/* Computes the answer of rank 0 from the data of all ranks. */
static enum gt_code compute_answer(struct gt_rendezvous *r, const struct gt_rendezvous_spec *s, unsigned char **value, const size_t *len,
                                   void *out, size_t *n, struct gt_err *err)
{
	struct gt_rdv_value *all = calloc((size_t)r->world.world, sizeof *all);
	struct gt_err why = {0};
	if (!all)
		return gt_rdv_fail(r, GT_EFAIL, err, "rank 0 is out of memory");
	all[0] = (struct gt_rdv_value){s->mine, s->nmine};
	for (int i = 1; i < r->world.world; i++)
		all[i] = (struct gt_rdv_value){value[i] + 1 + KEY, len[i] - 1 - KEY};
	enum gt_code code = s->answer(s->user, all, out, n, &why);
	free(all);
	return code == GT_OK ? GT_OK : gt_rdv_fail(r, code, err, "%s", why.msg);
}

/* Rank 0's side of an exchange. spec: given in the first exchange, otherwise NULL. */
static enum gt_code serve_exchange(struct gt_rendezvous *r, const struct gt_rendezvous_spec *spec, const char *key, const void *data,
                                   size_t n, size_t *bytes, struct gt_err *err)
{
	int world = r->world.world;
	bool answers = spec && spec->answer;
	unsigned char **value = calloc((size_t)world, sizeof *value), *all = NULL, *own = answers ? calloc(1, GT_RENDEZVOUS_MAX) : NULL;
	size_t *len = calloc((size_t)world, sizeof *len), at = 1, total = 1 + 4;
	enum gt_code code = value && len && (own || !answers) ? collect_values(r, key, value, len, err)
	                                                      : gt_rdv_fail(r, GT_EFAIL, err, "rank 0 is out of memory");
	if (code == GT_OK && answers) {
		n = GT_RENDEZVOUS_MAX;
		code = compute_answer(r, spec, value, len, own, &n, err);
		data = own;
	}
	total += n;
	for (int i = 1; code == GT_OK && i < world; i++)
		total += 4 + len[i] - 1 - KEY;
	if (code == GT_OK && !(all = calloc(1, total)))
		code = gt_rdv_fail(r, GT_EFAIL, err, "rank 0 is out of memory");
	for (int i = 0; code == GT_OK && i < world; i++) {
		size_t part = i ? len[i] - 1 - KEY : n;
		gt_put_u32(all + at, (uint32_t)part);
		if (part)
			memcpy(all + at + 4, i ? value[i] + 1 + KEY : data, part);
		at += 4 + part;
	}
	for (int i = 1; code == GT_OK && i < world; i++)
		if (!gt_rdv_send_frame(&r->conn[i], true, all, total, gt_clock() + r->timeout)) {
			gt_fd_close(&r->conn[i].fd);
			code = gt_rdv_fail(r, GT_EPEER, err, "rank %d closed its connection while it exchanged \"%s\"", i, key);
		}
	for (int i = 0; value && i < world; i++)
		free(value[i]);
	free(value);
	free(len);
	free(own);
	free(r->all);
	r->all = all;
	*bytes = total;
	return code;
}

static enum gt_code request_exchange(struct gt_rendezvous *r, const char *key, const void *data, size_t n, size_t *bytes,
                                     struct gt_err *err)
{
	double until = gt_clock() + r->timeout + LATE_S;
	unsigned char *frame = calloc(1, 1 + KEY + n);
	size_t cap = 1 + (size_t)r->world.world * (4 + GT_RENDEZVOUS_MAX);
	if (!frame)
		return gt_fail(err, GT_EFAIL, "out of memory");
	memcpy(frame + 1, key, strlen(key));
	if (n)
		memcpy(frame + 1 + KEY, data, n);
	struct pollfd p = {.fd = r->conn[0].fd, .events = POLLIN};
	if (!poll(&p, 1, 0)) /* if rank 0 has sent an error and closed the connection, a send would reset it and discard the error */
		gt_rdv_send_frame(&r->conn[0], false, frame, 1 + KEY + n, until);
	free(frame);
	free(r->all);
	r->all = NULL;
	if (!gt_rdv_recv_frame(&r->conn[0], false, cap, &r->all, bytes, until) || *bytes < 1) {
		if (errno == ETIMEDOUT)
			return gt_rdv_fail(r, GT_EPEER, err, "rank 0 did not exchange \"%s\" in time", key);
		return gt_rdv_fail(r, GT_EPEER, err, "rank 0 closed its connection before it exchanged \"%s\"", key);
	}
	if (!r->all[0])
		return GT_OK;
	uint32_t code = *bytes >= 5 ? gt_get_u32(r->all + 1) : 0;
	if (!code || code > GT_RDV_CODE_MAX)
		return gt_rdv_fail(r, GT_EPEER, err, "rank 0 sent a malformed message instead of \"%s\"", key);
	return gt_rdv_fail(r, (enum gt_code)code, err, "%s", (char *)r->all + 5);
}

static enum gt_code exchange_values(struct gt_rendezvous *r, const struct gt_rendezvous_spec *spec, const char *key, const void *data,
                                    size_t n, struct gt_rdv_value *all, struct gt_err *err)
{
	size_t bytes = 0, at = 1;
	if (r->err.code != GT_OK)
		return gt_fail(err, r->err.code, "%s", r->err.msg);
	if (strlen(key) >= KEY || n > GT_RENDEZVOUS_MAX)
		return gt_fail(err, GT_EINTERNAL, "the rendezvous cannot exchange %zu bytes as \"%s\"", n, key);
	r->exchanges++;
	GT_TRY(gt_rdv_is_server(r) ? serve_exchange(r, spec, key, data, n, &bytes, err) : request_exchange(r, key, data, n, &bytes, err));
	for (int i = 0; i < r->world.world; i++) {
		if (at + 4 > bytes || gt_get_u32(r->all + at) > bytes - at - 4)
			return gt_rdv_fail(r, GT_EINTERNAL, err, "rank 0 sent a malformed list of values");
		all[i] = (struct gt_rdv_value){r->all + at + 4, gt_get_u32(r->all + at)};
		at += 4 + all[i].n;
	}
	return GT_OK;
}

enum gt_code gt_rendezvous_exchange(struct gt_rendezvous *r, const char *key, const void *data, size_t n, struct gt_rdv_value *all,
                                    struct gt_err *err)
{
	return exchange_values(r, NULL, key, data, n, all, err);
}

int gt_rendezvous_exchanges(const struct gt_rendezvous *r)
{
	return r->exchanges;
}

enum gt_code gt_rendezvous_address(const struct gt_rendezvous *r, char *out, size_t size, struct gt_err *err)
{
	struct sockaddr_storage at;
	socklen_t n = sizeof at;
	int fd = r->conn[gt_rdv_is_server(r) ? 1 : 0].fd; /* this rank has a connection, because world > 1 */
	if (getsockname(fd, (struct sockaddr *)&at, &n))
		return gt_fail(err, GT_EPEER, "the rendezvous has lost its connection: %s", strerror(errno));
	int rc = getnameinfo((struct sockaddr *)&at, n, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST);
	return rc ? gt_fail(err, GT_EFAIL, "cannot find this host's address: %s", gai_strerror(rc)) : GT_OK;
}

/* ---- open and close --------------------------------------------------------------------------------------------------------- */
static enum gt_code connect_ranks(struct gt_rendezvous *r, const struct gt_rendezvous_spec *spec, struct gt_err *err)
{
	int n = gt_rdv_is_server(r) ? r->world.world : 1, listener = spec->listen_fd;
	r->conn = calloc((size_t)n, sizeof *r->conn);
	if (!r->conn)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int i = 0; i < n; i++)
		r->conn[i].fd = -1;
	if (r->world.world > 1 && !spec->token)
		return gt_fail(err, GT_EUSAGE, "%d ranks need a shared token to authenticate each other", r->world.world);
	if (!gt_rdv_is_server(r)) {
		GT_TRY(gt_rdv_connect(r, spec->token, err));
	} else if (r->world.world > 1) {
		if (listener < 0 && (listener = gt_rdv_listen(r->world.addr, r->world.port, NULL, err)) < 0)
			return GT_EPEER;
		enum gt_code code = gt_rdv_accept_all(r, spec->token, listener, err);
		if (spec->listen_fd < 0)
			close(listener);
		GT_TRY(code);
	}
	/* Values are exchanged even if the caller does not need them (spec->all is NULL), so that no rank continues before all have arrived. */
	struct gt_rdv_value *all = spec->all ? spec->all : calloc((size_t)r->world.world, sizeof *all);
	if (!all)
		return gt_fail(err, GT_EFAIL, "out of memory");
	enum gt_code code = exchange_values(r, spec, "rendezvous", spec->mine, spec->nmine, all, err);
	if (all != spec->all)
		free(all);
	return code;
}

enum gt_code gt_rendezvous_open(const struct gt_rendezvous_spec *spec, struct gt_rendezvous **out, struct gt_err *err)
{
	struct gt_rendezvous *r = calloc(1, sizeof *r);
	enum gt_code code;
	*out = NULL;
	if (!r || spec->world->world > GT_RENDEZVOUS_RANKS) {
		code = r ? gt_fail(err, GT_EUSAGE, "%d ranks: the rendezvous supports at most %d", spec->world->world, GT_RENDEZVOUS_RANKS)
		         : gt_fail(err, GT_EFAIL, "out of memory");
		free(r);
		r = NULL;
	} else {
		r->world = *spec->world;
		r->timeout = spec->timeout_s;
		r->warn = spec->warn;
		r->warn_user = spec->warn_user;
		code = connect_ranks(r, spec, err);
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
	for (int i = 0; r->conn && i < (gt_rdv_is_server(r) ? r->world.world : 1); i++)
		gt_fd_close(&r->conn[i].fd);
	free(r->conn);
	free(r->all);
	explicit_bzero(r, sizeof *r);
	free(r);
}
