/* What ranks of one host that something else started (torchrun, mpirun, srun) know each other by, and where rank 0 listens.
 *
 * Rank 0 listens on a socket in Linux' abstract namespace: its name is derived from what only the ranks of one start have in common (the
 * starter's process, and what only its user can read of it; for ranks that a script gives torchrun's variables, the address and port alone), it
 * has no file, and it is gone with its process. The kernel tells each end the other's user; another user's end is refused. Where another user
 * has taken the name, which takes guessing it, the error names that process. Over it go the token and a loopback port of the kernel's choice.
 *   client → rank world, u32      server → token[32] port u32, or the connection's end for who does not belong */
#ifndef GT_TEAM_TEAM_TOKEN_H
#define GT_TEAM_TEAM_TOKEN_H

#include "launch/world.h"

/* Fills token and world's addr and port; rank 0 also gets a listening socket, which is the caller's. GT_EPEER: a rank did not come within
 * timeout_s. */
enum gt_code gt_team_token(struct gt_world *w, double timeout_s, unsigned char token[32], int *listener, struct gt_err *err);

#endif
