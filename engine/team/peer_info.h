/* What a rank shows the others when they meet: what it runs, and where it is. */
#ifndef GT_TEAM_PEER_INFO_H
#define GT_TEAM_PEER_INFO_H

#include "base/digest.h"
#include "launch/rendezvous.h"
#include "team/team.h"

struct gt_peer_info { /* of bytes, for it is read where it lies in a message */
	char version[32];             /* of gtrain; first for ever, so that another one is told by it */
	char config[GT_DIGEST_HEX];   /* digest of gt_team_spec.config */
	char start[64];               /* gt_team_spec.start */
	char host[192];               /* equal: memory can be shared */
	unsigned char cpus[1024 / 8]; /* that the rank may use, a bit each */
};

void gt_peer_info(const struct gt_team_spec *s, struct gt_peer_info *out);

/* all[world]: cards. GT_ECONFIG: names the first rank that runs something else than rank 0. *one_host: all of them can share memory. */
enum gt_code gt_peers_agree(const struct gt_rdv_value *all, int world, bool *one_host, struct gt_err *err);

/* Ranks that something else than the launcher started, and all let loose on the same processors, share them out as it would. Where the
 * starter has bound them (mpirun does), or there is one rank on the host, everybody keeps what it has. Before the CPU's plugin is loaded, whose
 * libraries ask how many processors there are. Sets t->threads. */
void gt_team_set_affinity(struct gt_team *t, const struct gt_rdv_value *all, const struct gt_peer_info *own);

#endif
