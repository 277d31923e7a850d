/* What the launchers of several hosts tell each other: why an attempt fails, so that every host's last line has the cause and not only that
 * a peer was lost; and that the user has stopped the run on one host, so that no other host takes the end for a fault and starts again. A star: the launcher of node 0 listens, on the first free port after the rendezvous'; the others knock at the
 * rendezvous' ports until they find it, and it passes on what each says. Nobody waits for it: without it (a firewall) a run works, and the
 * other hosts say what their ranks have seen.
 *
 * The wire: that of launch/rendezvous_wire.h with words of its own, so that neither takes the other for itself.
 *   node 0 → "gtrain-hosts-1\0\0" nonce[32];   the other → node nnodes nonce[32] mac[32];   node 0 → mac[32];   then frames,
 *   each a struct gt_host_word. The token of the run proves both sides. Strangers cost nobody anything. */
#ifndef GT_LAUNCH_HOSTS_H
#define GT_LAUNCH_HOSTS_H

#include "launch/launcher.h"

#define GT_HOSTS_MAGIC "gtrain-hosts-1\0" /* 16 bytes with its last NUL */

struct gt_host_word {
	uint32_t kind;
	int32_t node;
	int32_t rank;  /* GT_HOST_FAILS: the rank at fault, -1: none */
	int32_t code;  /* GT_HOST_FAILS: its exit code; GT_HOST_STOPS: the signal */
	int64_t step;  /* GT_HOST_FAILS: that it had reached, -1: none; GT_HOST_STOPS: 1 if ranks are to be killed, else 0 */
	char host[64]; /* its name */
	char why[1200];
};
enum { GT_HOST_BYE = 1, GT_HOST_FAILS, GT_HOST_HERE, GT_HOST_STOPS };

struct gt_hosts;

/* For one attempt. *rendezvous_fd: on node 0, a socket that listens for the ranks; else -1. GT_EPEER: node 0 cannot listen there. */
enum gt_code gt_hosts_open(const struct gt_launch_spec *s, const unsigned char *token, int *rendezvous_fd, struct gt_hosts **out, struct gt_err *err);
void gt_hosts_close(struct gt_hosts *h); /* says goodbye; NULL is fine, as for all below */

int gt_hosts_fd(const struct gt_hosts *h); /* readable: gt_hosts_hear() has something to do; -1 */
/* Does what is to be done now, and waits for nothing; call it at least every 0.1 s. True: *out is a word that was not returned before: another
 * host's attempt has failed, or its user has stopped the run. A launcher that is gone without a goodbye is such a failure. */
bool gt_hosts_hear(struct gt_hosts *h, struct gt_host_word *out);
void gt_hosts_tell(struct gt_hosts *h, const struct gt_launch_end *end);
/* The user has stopped this host by signal `sig`. kill: a second SIGINT, no rank is to end in order. Hosts that connect within late_s seconds
 * from now hear of it too; 0: the default, for hosts that are connected or about to be. */
void gt_hosts_stop(struct gt_hosts *h, int sig, bool kill, double late_s);
bool gt_hosts_pending(const struct gt_hosts *h); /* a host has yet to hear the last word, and may still come */

#endif
