/* Looks up the addresses of a host's name without blocking the caller: getaddrinfo(3) can take many seconds if a name server does not
 * answer, and a launcher must not stop supervising its ranks for so long. A thread of its own, which has all signals blocked, calls it.
 *
 *     l = gt_name_lookup_start(name);
 *     while (!gt_name_lookup_done(l, &list)) ...      later: the caller frees list with freeaddrinfo()
 *     gt_name_lookup_stop(l);                         at any time */
#ifndef GT_LAUNCH_NAME_LOOKUP_H
#define GT_LAUNCH_NAME_LOOKUP_H

#include <stdbool.h>

struct addrinfo;
struct gt_name_lookup;

struct gt_name_lookup *gt_name_lookup_start(const char *name); /* NULL: no memory or thread is left */
/* Returns whether the lookup has ended. *list receives the addresses, of the type SOCK_STREAM, which the caller owns; NULL: the name has
 * none. Call it only until it has returned true. */
bool gt_name_lookup_done(struct gt_name_lookup *l, struct addrinfo **list);
void gt_name_lookup_stop(struct gt_name_lookup *l); /* frees l, or lets the thread free it; l may be NULL */

#endif
