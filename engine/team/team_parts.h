/* Internal header of this room; team/team.h describes the team. */
#ifndef GT_TEAM_TEAM_PARTS_H
#define GT_TEAM_TEAM_PARTS_H

#include "base/digest.h"
#include "launch/rendezvous.h"
#include "team/team.h"
#include <pthread.h>

/* ---- peer_info.c: what each rank runs and on which host. The ranks exchange it at the rendezvous -------------------------- */
struct gt_peer_info { /* all fields are bytes, because the struct is read from an unaligned position of a message */
	char version[32];             /* version of gtrain; always the first field, so that every version can report a different version */
	char config[GT_DIGEST_HEX];   /* digest of gt_team_spec.config */
	char start[64];               /* gt_team_spec.start */
	char host[192];               /* identifies the host; ranks with equal values can share memory */
	unsigned char cpus[1024 / 8]; /* processors that the rank may use, one bit each */
};

/* Fills *out for this rank. */
void gt_peer_info(const struct gt_team_spec *s, struct gt_peer_info *out);

/* Compares the gt_peer_info of all ranks, all[world]. GT_ECONFIG: a rank runs another version or config than rank 0, or starts from another
 * point; the sentence names the first such rank. GT_EPEER: a rank is of another build. Sets *one_host if all ranks can share memory. */
enum gt_code gt_peers_agree(const struct gt_rdv_value *all, int world, bool *one_host, struct gt_err *err);

/* Divides the processors of this host among its ranks, if gtrain's launcher did not start them and all may use the same processors. Changes
 * no affinity if the program that started the ranks has bound them (mpirun does), or if the host has one rank. Call it before the CPU
 * plugin is loaded, because its libraries read the number of processors then. Sets t->threads. */
void gt_team_set_affinity(struct gt_team *t, const struct gt_rdv_value *all, const struct gt_peer_info *own);
/* Gives the calling thread, and the threads that it starts, whole cores of its own, as rank `local` of n ranks on this host, if there are
 * at least as many processors as ranks. Sets t->threads. */
void gt_team_pin(struct gt_team *t, int local, int n);

/* ---- team_token.c: the token and the address of rank 0 for ranks of one host that something other than gtrain started ----- */
/* Fills token, w->addr and w->port. *listener: on rank 0 a listening socket, which the caller owns. GT_EPEER: a rank did not connect within
 * timeout_s seconds. */
enum gt_code gt_team_token(struct gt_world *w, double timeout_s, unsigned char token[32], int *listener, struct gt_err *err);

/* ---- team_threads.c ------------------------------------------------------------------------------------------------------- */
/* Loads a communicator of a plugin. GT_EUNAVAILABLE: it is not installed (*out is NULL), or it is of another build. */
enum gt_code gt_team_comm_api(const char *plugin, const char *symbol, const struct gt_comm_api **out, struct gt_err *err);
/* Starts a thread that blocks all signals, because the main thread handles them. Returns 0, or an errno value. */
int gt_team_thread(pthread_t *thread, void *(*fn)(void *), void *arg);

#endif
