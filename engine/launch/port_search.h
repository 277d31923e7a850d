/* Searches host 0: tries GT_RENDEZVOUS_PORTS ports of each of its addresses, IPv4 and IPv6, and pauses after each round. The name is looked
 * up again between two rounds, because host 0 may have got another address.
 *
 *     gt_port_search_open(&s, addr, port, 0);
 *     gt_port_search_advance(&s, &auth, &peer, claim0, claim1);      again and again, until `peer` is authenticated (base/peer_auth.h)
 *     gt_port_search_close(&s); */
#ifndef GT_LAUNCH_PORT_SEARCH_H
#define GT_LAUNCH_PORT_SEARCH_H

#include "base/peer_auth.h"
#include "launch/world.h"
#include <stdbool.h>

struct addrinfo;
struct gt_name_lookup;

struct gt_port_search {
	char name[GT_ADDR_SIZE]; /* name or address of host 0 */
	struct addrinfo *at; /* the addresses of host 0; NULL: none are known */
	int port;            /* host 0's first port */
	int first;           /* index of the port that a round tries first: the one that host 0 takes if no other process has it */
	int next_port;       /* number of ports that this round has tried */
	int next_address;    /* index in `at` of the address to try next */
	double again, pause; /* time (gt_clock) before which no port is tried; duration of the last pause in seconds */
	struct gt_name_lookup *lookup;  /* the lookup that runs; NULL: none does */
	double lookup_at, lookup_pause; /* time (gt_clock) before which the name is not looked up again; seconds between the last two lookups */
};

/* Asks no name server, because one that does not answer must not stop a launcher with ranks: the search looks a name up in a thread. */
void gt_port_search_open(struct gt_port_search *s, const char *addr, int port, int first);
bool gt_port_search_wait(struct gt_port_search *s); /* looks the name up, which can take seconds; returns whether it has an address */
void gt_port_search_close(struct gt_port_search *s); /* s may be zeroed */
/* Continues the search without blocking: closes a connection that is not established in time, and starts the next one if p is in state
 * GT_AUTH_NONE. The claims are those of gt_auth_connect(). */
void gt_port_search_advance(struct gt_port_search *s, struct gt_auth *a, struct gt_peer_auth *p, uint32_t claim0, uint32_t claim1);

#endif
