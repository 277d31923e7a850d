#include "launch/port_search.h"
#include "base/clock.h"
#include "launch/rendezvous.h"
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#define RETRY_S 0.02    /* seconds between two rounds over the ports; the pause doubles after each round */
#define RETRY_MAX_S 0.2 /* maximum seconds between two rounds; it is less than LATE_S of hosts.c */

void gt_port_search_open(struct gt_port_search *s, const char *addr, int port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	*s = (struct gt_port_search){.port = port};
	if (getaddrinfo(addr, NULL, &hints, &s->at))
		s->at = NULL;
}

void gt_port_search_close(struct gt_port_search *s)
{
	if (s->at)
		freeaddrinfo(s->at);
	s->at = NULL;
}

bool gt_port_search_next(struct gt_port_search *s, struct sockaddr_storage *to, socklen_t *bytes)
{
	const struct addrinfo *a = s->at;
	if (gt_clock() < s->again)
		return false;
	for (int k = s->next / GT_RENDEZVOUS_PORTS; a && k; k--)
		a = a->ai_next;
	int port = s->port + s->next++ % GT_RENDEZVOUS_PORTS;
	if (!a) { /* all ports of all addresses failed: the next round begins after a pause */
		s->next = 0;
		s->pause = s->pause > 0 ? s->pause * 2 : RETRY_S;
		s->pause = s->pause < RETRY_MAX_S ? s->pause : RETRY_MAX_S;
		s->again = gt_clock() + s->pause;
		return false;
	}
	if (port > 65535)
		return gt_port_search_next(s, to, bytes);
	memcpy(to, a->ai_addr, a->ai_addrlen);
	*bytes = a->ai_addrlen;
	if (a->ai_family == AF_INET)
		((struct sockaddr_in *)to)->sin_port = htons((uint16_t)port);
	else
		((struct sockaddr_in6 *)to)->sin6_port = htons((uint16_t)port);
	return true;
}
