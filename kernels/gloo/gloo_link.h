/* A C interface to gloo: TCP connections between every two ranks, and messages over them. No C++ exception leaves it.
 *
 *     sender                                     receiver
 *     gl_post(out, slot, mem, n)                 gl_post(in, slot, mem, n)
 *          '------------ gloo's thread moves n bytes ---------'
 *     gl_wait(out): GL_DONE                      gl_wait(in): GL_DONE
 *
 * A message moves data from memory of one rank to memory of another. The two ends match by slot (a number that both know) and by the order
 * in which they were posted to the slot. Posting never waits: gloo's thread moves the data when both ends are posted. A message must not be
 * longer than the memory posted for it, because gloo would end the process. Callers therefore exchange lengths first. A port counts
 * completed messages. There is one port for each peer, direction and kind of message, so that a count identifies the message.
 *
 * gloo's own time limit would close every connection of the process, so it is not used. gl_wait() returns when the message is complete, the
 * connection is lost, or another thread calls gl_wake(). */
#ifndef GT_KERNELS_GLOO_LINK_H
#define GT_KERNELS_GLOO_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GL_WHY 256 /* size in bytes of the buffer for the reason of a failure, with its NUL */

struct gl_net;
struct gl_port;

/* Starts gloo's thread, which receives no signals. The thread never connects or listens. Returns NULL if it fails, with the reason in
 * why. */
struct gl_net *gl_net_new(int rank, int world, double timeout_s, char why[GL_WHY]);
void gl_net_free(struct gl_net *n); /* n may be NULL; the caller must free the ports of n first */
/* Uses a connected TCP socket as the connection to a peer. gloo owns fd from now on, also after a failure. */
bool gl_net_adopt(struct gl_net *n, int peer, int fd, char why[GL_WHY]);

struct gl_port *gl_port_new(struct gl_net *n, int peer, bool sends); /* returns NULL if memory is exhausted */
/* p may be NULL; messages of p that are not complete never complete, and no message may arrive for p afterwards */
void gl_port_free(struct gl_port *p);

bool gl_post(struct gl_port *p, uint64_t slot, void *mem, size_t bytes); /* returns false if the connection is lost */
enum gl_end { GL_DONE, GL_WOKEN, GL_LOST };
enum gl_end
gl_wait(struct gl_port *p);      /* GL_DONE: one more message is complete. GL_WOKEN: gl_wake() was called, possibly for an earlier wait */
void gl_wake(struct gl_port *p); /* ends gl_wait() on this port; any thread may call it */
/* Returns whether the connection of a port is lost, without waiting. One thread may call it, for a port on which no thread waits and that
 * has no complete message. */
bool gl_is_lost(struct gl_port *p);

#ifdef __cplusplus
}
#endif
#endif
