#include "launch/port_search.h"
#include "base/clock.h"
#include "launch/name_lookup.h"
#include "launch/rendezvous.h"
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#define RETRY_S 0.02     /* seconds between two rounds over the ports; the pause doubles after each round */
#define RETRY_MAX_S 0.2  /* maximum seconds between two rounds; it is less than LATE_S of hosts.c */
#define LOOKUP_S 1.0     /* seconds between two lookups of the name; the pause doubles after each lookup */
#define LOOKUP_MAX_S 8.0
#define CONNECT_S 1.0    /* seconds after which a port that does not answer is given up for the next one */

static bool look_up(struct gt_port_search *s, int flags)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
	if (getaddrinfo(s->name, NULL, &hints, &s->at))
		s->at = NULL;
	return s->at;
}

void gt_port_search_open(struct gt_port_search *s, const char *addr, int port, int first)
{
	*s = (struct gt_port_search){.port = port, .first = first, .lookup_pause = LOOKUP_S};
	snprintf(s->name, sizeof s->name, "%s", addr);
	if (look_up(s, AI_NUMERICHOST))
		s->lookup_at = gt_clock() + LOOKUP_S;
}

bool gt_port_search_wait(struct gt_port_search *s)
{
	s->lookup_at = gt_clock() + LOOKUP_S;
	return s->at || look_up(s, 0);
}

void gt_port_search_close(struct gt_port_search *s)
{
	gt_name_lookup_stop(s->lookup);
	s->lookup = NULL;
	if (s->at)
		freeaddrinfo(s->at);
	s->at = NULL;
}

static bool equal_addresses(const struct addrinfo *a, const struct addrinfo *b)
{
	for (; a && b; a = a->ai_next, b = b->ai_next)
		if (a->ai_addrlen != b->ai_addrlen || memcmp(a->ai_addr, b->ai_addr, a->ai_addrlen))
			return false;
	return !a && !b;
}

/* Looks the name up again, from time to time. An answer without addresses does not replace the known addresses; other addresses begin a new
 * round. */
static void renew_addresses(struct gt_port_search *s)
{
	struct addrinfo *list = NULL;
	if (!s->lookup && gt_clock() >= s->lookup_at)
		s->lookup = gt_name_lookup_start(s->name);
	if (!s->lookup || !gt_name_lookup_done(s->lookup, &list))
		return;
	gt_name_lookup_stop(s->lookup);
	s->lookup = NULL;
	s->lookup_pause = s->lookup_pause * 2 < LOOKUP_MAX_S ? s->lookup_pause * 2 : LOOKUP_MAX_S;
	s->lookup_at = gt_clock() + s->lookup_pause;
	if (!list || equal_addresses(list, s->at)) {
		if (list)
			freeaddrinfo(list);
		return;
	}
	if (s->at)
		freeaddrinfo(s->at);
	s->at = list;
	s->next_port = s->next_address = 0;
}

static void begin_pause(struct gt_port_search *s)
{
	s->next_port = s->next_address = 0;
	s->pause = s->pause > 0 ? s->pause * 2 : RETRY_S;
	s->pause = s->pause < RETRY_MAX_S ? s->pause : RETRY_MAX_S;
	s->again = gt_clock() + s->pause;
}

static int port_at(const struct gt_port_search *s, int i)
{
	return s->port + (s->first + i) % GT_RENDEZVOUS_PORTS;
}

/* Sets *to to the next address and port: all addresses with the first port, then all with the second. An address that does not answer thus
 * delays the others as little as possible. Returns false during a pause. */
static bool choose_target(struct gt_port_search *s, struct sockaddr_storage *to, socklen_t *bytes)
{
	if (gt_clock() < s->again)
		return false;
	renew_addresses(s);
	const struct addrinfo *a = s->at;
	for (int k = s->next_address; a && k; k--)
		a = a->ai_next;
	if (!a) {
		s->next_port++;
		s->next_address = 0;
		a = s->at;
	}
	while (s->next_port < GT_RENDEZVOUS_PORTS && port_at(s, s->next_port) > 65535)
		s->next_port++;
	if (!a || s->next_port == GT_RENDEZVOUS_PORTS) {
		begin_pause(s);
		return false;
	}
	s->next_address++;
	memcpy(to, a->ai_addr, a->ai_addrlen);
	*bytes = a->ai_addrlen;
	gt_auth_set_port(to, port_at(s, s->next_port));
	return true;
}

void gt_port_search_advance(struct gt_port_search *s, struct gt_auth *a, struct gt_peer_auth *p, uint32_t claim0, uint32_t claim1)
{
	struct sockaddr_storage to;
	socklen_t bytes;
	double now = gt_clock();
	/* a port may be open without a process that accepts: that of the rendezvous, until the ranks start again */
	bool silent = p->state == GT_AUTH_CONNECTS || p->state == GT_AUTH_NEEDS_HELLO;
	if (p->state != GT_AUTH_NONE && now > p->until - (silent ? GT_AUTH_PENDING_S - CONNECT_S : 0))
		gt_auth_close(p);
	while (p->state == GT_AUTH_NONE && choose_target(s, &to, &bytes)) {
		gt_auth_connect(a, p, (struct sockaddr *)&to, bytes, claim0, claim1);
		if (p->state == GT_AUTH_UNREACHABLE)
			gt_auth_close(p);
	}
}
