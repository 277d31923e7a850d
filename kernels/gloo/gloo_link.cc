/* Only this file and gloo_pairs.cc include gloo. No function throws. */
#include "gloo/gloo_link.h"
#include "gloo/gloo_pairs.hh"
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <signal.h>
#include <string>

/* An endless wait. It is not the largest duration, because wait_for() adds it to the present time, which would wrap around. */
static const std::chrono::milliseconds for_ever = std::chrono::hours(24 * 365 * 10);

/* A port. gloo's buffers cover a range of memory; the buffer of a port covers the whole address space, so that an offset is an address and
 * no message needs a new buffer. */
struct gl_port {
	std::unique_ptr<gloo::transport::UnboundBuffer> all;
	int peer;
	bool sends;
};

/* Writes a message of gloo to why, without the file and line in brackets with which it begins. */
static void copy_message(char why[GL_WHY], const char *what) noexcept
{
	const char *end = *what == '[' ? std::strstr(what, "] ") : nullptr;
	std::snprintf(why, GL_WHY, "%s", end ? end + 2 : what);
}

template <typename F> static bool catch_exceptions(char why[GL_WHY], F f) noexcept
{
	try {
		f();
		return true;
	} catch (const std::exception &e) {
		if (why)
			copy_message(why, e.what());
	} catch (...) {
		if (why)
			copy_message(why, "gloo threw an unknown exception");
	}
	return false;
}

/* ---- the face -------------------------------------------------------------------------------------------------------------------- */
extern "C" struct gl_net *gl_net_new(int rank, int world, double timeout_s, char why[GL_WHY])
{
	gl_net *n = new (std::nothrow) gl_net;
	if (!n) {
		copy_message(why, "out of memory");
		return nullptr;
	}
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* gloo's thread inherits the mask, because only the trainer's threads handle signals */
	std::chrono::milliseconds limit((long long)(timeout_s * 1e3) + 1);
	bool ok = catch_exceptions(why, [&] { gl_pairs_make(n, rank, world, limit); });
	pthread_sigmask(SIG_SETMASK, &old, nullptr);
	if (!ok) {
		gl_net_free(n);
		return nullptr;
	}
	return n;
}

extern "C" void gl_net_free(struct gl_net *n)
{
	if (n) {
		catch_exceptions(nullptr, [&] {
			n->context.reset();
			n->device.reset();
		});
		delete n;
	}
}

extern "C" bool gl_net_adopt(struct gl_net *n, int peer, int fd, char why[GL_WHY])
{
	return catch_exceptions(why, [&] { gl_pairs_adopt(n, peer, fd); });
}

extern "C" struct gl_port *gl_port_new(struct gl_net *n, int peer, bool sends)
{
	gl_port *p = new (std::nothrow) gl_port;
	if (p && !catch_exceptions(nullptr, [&] { p->all = n->context->createUnboundBuffer(nullptr, std::numeric_limits<size_t>::max()); })) {
		delete p;
		return nullptr;
	}
	if (p) {
		p->peer = peer;
		p->sends = sends;
	}
	return p;
}

extern "C" void gl_port_free(struct gl_port *p)
{
	if (p) {
		catch_exceptions(nullptr, [&] { p->all.reset(); });
		delete p;
	}
}

extern "C" bool gl_post(struct gl_port *p, uint64_t slot, void *mem, size_t bytes)
{
	return catch_exceptions(nullptr, [&] {
		if (p->sends)
			p->all->send(p->peer, slot, (size_t)(uintptr_t)mem, bytes);
		else
			p->all->recv(p->peer, slot, (size_t)(uintptr_t)mem, bytes);
	});
}

extern "C" enum gl_end gl_wait(struct gl_port *p)
{
	bool done = false;
	if (!catch_exceptions(nullptr, [&] { done = p->sends ? p->all->waitSend(nullptr, for_ever) : p->all->waitRecv(nullptr, for_ever); }))
		return GL_LOST;
	return done ? GL_DONE : GL_WOKEN;
}

extern "C" void gl_wake(struct gl_port *p)
{
	catch_exceptions(nullptr, [&] {
		if (p->sends)
			p->all->abortWaitSend();
		else
			p->all->abortWaitRecv();
	});
}

extern "C" bool gl_is_lost(struct gl_port *p)
{
	gl_wake(p); /* the wait then ends at once, but gloo checks first whether the connection is lost */
	return gl_wait(p) == GL_LOST;
}
