/* Searches the port of host 0: tries GT_RENDEZVOUS_PORTS ports of each of its addresses, and pauses after each round. */
#ifndef GT_LAUNCH_PORT_SEARCH_H
#define GT_LAUNCH_PORT_SEARCH_H

#include <stdbool.h>
#include <sys/socket.h>

struct addrinfo;

struct gt_port_search {
	struct addrinfo *at; /* the addresses of host 0; NULL: its name has no address */
	int port, next;      /* host 0's first port, and the index of the next port to try */
	double again, pause; /* time (gt_clock) before which no port is tried; duration of the last pause in seconds */
};

void gt_port_search_open(struct gt_port_search *s, const char *addr, int port);
void gt_port_search_close(struct gt_port_search *s); /* s may be zeroed */
/* Sets *to to the next address and port. Returns false during a pause. */
bool gt_port_search_next(struct gt_port_search *s, struct sockaddr_storage *to, socklen_t *bytes);

#endif
