/* Messages between the launchers of several hosts. They exchange the cause of a failed attempt, so that the last line on every host names
 * the cause and not only a lost peer. They also report that the user has stopped the run on one host, so that no other host regards the end
 * as a failure and restarts.
 *
 *     launcher of node 1 --.
 *     launcher of node 2 ---+--> launcher of node 0 (listens), which forwards each message to all others
 *     launcher of node 3 --'
 *
 * The launcher of node 0 listens on the first free port after the rendezvous' port. The other launchers try the ports of the rendezvous
 * until they reach node 0. No launcher waits for this connection: if a firewall blocks it, a run works, and the other hosts report what
 * their own ranks have observed.
 *
 * Protocol: the handshake of base/peer_auth.h with the token as the secret, "gtrain-hosts-3" as the magic, and node and nnodes as the
 * claims; then frames as in launch/rendezvous_parts.h, each a struct gt_host_message.
 * The token of the run authenticates both sides. Unauthenticated connections are rejected and do not affect the run. */
#ifndef GT_LAUNCH_HOSTS_H
#define GT_LAUNCH_HOSTS_H

#include "launch/launcher.h"

#define GT_HOSTS_MAGIC "gtrain-hosts-3\0" /* magic of the handshake, 16 bytes including the last NUL */

struct gt_host_message { /* one message */
	uint32_t kind; /* GT_HOST_BYE ... */
	int32_t node;  /* number of the sending host in the attempt, from 0 */
	int32_t number; /* number of the sending host in sentences: its --node-rank */
	int32_t rank;  /* GT_HOST_FAILS, GT_HOST_LOSES: the rank that failed; -1: none */
	int32_t code;  /* GT_HOST_FAILS, GT_HOST_LOSES: the exit code of that rank; GT_HOST_STOPS: the signal that the user sent */
	int64_t step;  /* GT_HOST_FAILS, GT_HOST_LOSES: optimizer steps that the rank had completed, -1: none; GT_HOST_STOPS: 1 to kill the
	                  ranks, else 0 */
	char host[64]; /* name of the sending host */
	char why[1200]; /* GT_HOST_FAILS, GT_HOST_LOSES: the sentence that describes the failure */
};
/* The kinds of messages. BYE: the sending launcher ends in order. FAILS: the sender's attempt has failed. HERE: the sender has completed
 * the handshake of this connection. STOPS: the user has stopped the run on the sender's host. LOSES: a rank of the sender has lost a peer,
 * and the sender knows no cause. If no host knows a cause, node 0 sends the first such message to all hosts, as FAILS, so that all of them
 * end with the same sentence. */
enum { GT_HOST_BYE = 1, GT_HOST_FAILS, GT_HOST_HERE, GT_HOST_STOPS, GT_HOST_LOSES };

struct gt_hosts;

/* Opens the connections between launchers for one attempt. On node 0, *rendezvous_fd becomes a socket that listens for the ranks, which the
 * caller owns; on other nodes it becomes -1. GT_EPEER: node 0 cannot listen on the address. */
enum gt_code gt_hosts_open(const struct gt_launch_spec *s, const unsigned char *token, int *rendezvous_fd, struct gt_hosts **out,
                           struct gt_err *err);
void gt_hosts_close(struct gt_hosts *h); /* sends GT_HOST_BYE; h may be NULL, as in all functions below */

/* Returns a descriptor that is readable when gt_hosts_receive() has work to do; -1 if h is NULL. */
int gt_hosts_fd(const struct gt_hosts *h);
/* Returns whether this is another node than node 0 and is connected to node 0. h may be NULL. */
bool gt_hosts_joined(const struct gt_hosts *h);
/* Sends and receives what is possible now, without waiting; call it at least every 0.1 s. Returns true if *out is a message that was not
 * returned before: an attempt of another host has failed, or its user has stopped the run. A launcher that disappears without GT_HOST_BYE
 * is reported as a failure. */
bool gt_hosts_receive(struct gt_hosts *h, struct gt_host_message *out);
/* Sends the result of this host's attempt to the other hosts. */
void gt_hosts_send_end(struct gt_hosts *h, const struct gt_launch_end *end);
/* Informs node 0 that a rank of this host has lost a peer. The message about the cause, which gt_hosts_receive() then returns, can be about
 * this host itself. */
void gt_hosts_send_loss(struct gt_hosts *h, const struct gt_launch_end *end);
/* On node 0: no host has sent a cause in time, so all hosts get the first loss of a peer as the cause. Other nodes ignore the call. */
void gt_hosts_settle_loss(struct gt_hosts *h);
/* Informs the other hosts that the user has stopped this host by signal `sig`. With `kill`, for a second SIGINT, the other hosts kill their
 * ranks at once. Hosts that connect within the next late_s seconds (0: 0.5) are informed, too. */
void gt_hosts_stop(struct gt_hosts *h, int sig, bool kill, double late_s);
bool gt_hosts_pending(const struct gt_hosts *h); /* returns whether a host that has not received the last message may still connect */

#endif
