/* Turns connections of ours into gloo's pairs. The only part of this folder that depends on how a version of gloo connects pairs.
 *
 *   gl_net n;
 *   gl_pairs_make(&n, rank, world, limit);  // gloo's thread, a context and world - 1 pairs without a connection
 *   gl_pairs_adopt(&n, peer, fd);           // for each peer: the pair uses fd from now on
 *
 * Both functions throw std::exception. gloo never accepts a connection from anybody: it authenticates nobody, and it ends the process when
 * it cannot interpret what arrives. */
#ifndef GT_KERNELS_GLOO_PAIRS_H
#define GT_KERNELS_GLOO_PAIRS_H

#include <chrono>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <memory>

struct gl_net {
	std::shared_ptr<gloo::transport::tcp::Device> device; /* owns gloo's thread */
	std::shared_ptr<gloo::transport::Context> context;
};

/* limit is the time that gloo may take to connect one of its own sockets to another one of this process. */
void gl_pairs_make(gl_net *n, int rank, int world, std::chrono::milliseconds limit);
/* fd is a connected TCP socket. It is closed when the pair is closed, and when this function throws. */
void gl_pairs_adopt(gl_net *n, int peer, int fd);

#endif
