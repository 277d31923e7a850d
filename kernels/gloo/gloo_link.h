/* gloo behind a C face: TCP connections between every two ranks, and messages over them. Nothing throws out of it.
 *
 * A message goes from a place of memory of one rank into one of another, matched by the slot (a number both know) and in the order in which
 * a slot's ends were posted. Posting never waits: gloo's thread moves the data once both ends are posted, and the message must not be
 * longer than what was posted for it (gloo ends the process otherwise: callers tell lengths before they send). A port counts what has been
 * done: one port a peer, a direction and a kind of message, so that a count says which one.
 *
 * gloo's own time limit closes every connection of the process, so it is not used: gl_wait() lasts until the message is done, the
 * connection is lost, or another thread calls gl_wake(). */
#ifndef GT_KERNELS_GLOO_LINK_H
#define GT_KERNELS_GLOO_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GL_WHY 256

struct gl_net;
struct gl_port;

/* Starts gloo's thread, which gets no signals. Nothing is connected, and nobody listens. NULL: why says so. */
struct gl_net *gl_net_new(int rank, int world, double timeout_s, char why[GL_WHY]);
void gl_net_free(struct gl_net *n); /* NULL is fine; after its ports */
/* A connected TCP socket is the one to that peer from now on; it is gloo's, also after a failure. */
bool gl_net_adopt(struct gl_net *n, int peer, int fd, char why[GL_WHY]);

struct gl_port *gl_port_new(struct gl_net *n, int peer, bool sends); /* NULL: no memory */
void gl_port_free(struct gl_port *p); /* NULL is fine. Its messages that are not done will never be: nothing may arrive for it any more */

bool gl_post(struct gl_port *p, uint64_t slot, void *mem, size_t bytes); /* false: the connection is lost */
enum gl_end { GL_DONE, GL_WOKEN, GL_LOST };
enum gl_end
gl_wait(struct gl_port *p);      /* GL_DONE: one more message is done. GL_WOKEN may be a waking that came too late for an earlier wait */
void gl_wake(struct gl_port *p); /* from any thread */
/* From one thread, of a port that nobody waits on and of which no message is done: whether its connection is lost. Does not wait. */
bool gl_is_lost(struct gl_port *p);

#ifdef __cplusplus
}
#endif
#endif
