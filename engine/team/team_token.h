/* The token and the address of rank 0 for ranks of one host that something other than gtrain started (torchrun, mpirun, srun).
 *
 * Rank 0 listens on a socket in Linux' abstract namespace. The name of the socket is derived from data that only the ranks of one start
 * share: the starter's process, and what only its user can read of that process; for ranks that a script starts with torchrun's variables,
 * only the address and the port. The socket has no file and disappears with its process. The kernel reports the user of each end, and a
 * connection from another user is rejected. If another user has taken the name, which requires guessing it, the error names that process.
 * Rank 0 sends the token and a loopback port that the kernel chose:
 *   client -> rank world, u32      server -> token[32] port u32, or closes the connection if the client does not belong to the start */
#ifndef GT_TEAM_TEAM_TOKEN_H
#define GT_TEAM_TEAM_TOKEN_H

#include "launch/world.h"

/* Fills token, w->addr and w->port. *listener: on rank 0 a listening socket, which the caller owns. GT_EPEER: a rank did not connect within
 * timeout_s seconds. */
enum gt_code gt_team_token(struct gt_world *w, double timeout_s, unsigned char token[32], int *listener, struct gt_err *err);

#endif
