/* Only this file includes gloo. No function of gloo_link.h throws.
 *
 * gloo must never accept a connection: it authenticates nobody, and it ends the process if it receives unexpected data. Its interface
 * cannot take an existing connection either: a pair opens its own. A pair gets one of our connections in three steps:
 *   1. make_pairs() creates pairs, none of which ever accepts a connection (see below: this depends on the version of gloo).
 *   2. The pair connects to a socket of this process.
 *   3. dup3() replaces the pair's end of that connection, under the same descriptor number, by our connection for this pair.
 * gloo's interface does not show its descriptors. They are found by the addresses of their sockets. */
#include "gloo/gloo_link.h"
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <future>
#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>
#include <limits>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <new>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace tcp = gloo::transport::tcp;

struct gl_net {
	std::shared_ptr<gloo::transport::tcp::Device> device; /* owns gloo's thread */
	std::shared_ptr<gloo::transport::Context> context;
};

struct Fd {
	int n;
	explicit Fd(int fd) : n(fd) {}
	Fd(const Fd &) = delete;
	~Fd()
	{
		if (n >= 0)
			::close(n);
	}
};

struct SocketAddress {
	sockaddr_storage at = {};
	socklen_t bytes = sizeof at;
	bool operator==(const SocketAddress &o) const { return bytes == o.bytes && !std::memcmp(&at, &o.at, bytes); }
};

static bool get_local_address(int fd, SocketAddress *p)
{
	return !getsockname(fd, reinterpret_cast<sockaddr *>(&p->at), &p->bytes);
}

static bool get_peer_address(int fd, SocketAddress *p)
{
	return !getpeername(fd, reinterpret_cast<sockaddr *>(&p->at), &p->bytes);
}

/* Returns the descriptor of this process whose socket has the address `own` and is connected to `peer` or, if peer is NULL, listens. */
static int find_descriptor(const SocketAddress &own, const SocketAddress *peer)
{
	int found = -1;
	DIR *d = opendir("/proc/self/fd");
	for (dirent *e; d && found < 0 && (e = readdir(d));) {
		int fd = std::atoi(e->d_name), listens = 0;
		socklen_t n = sizeof listens;
		SocketAddress a, b;
		if (*e->d_name == '.' || !get_local_address(fd, &a) || !(a == own))
			continue;
		if (peer ? get_peer_address(fd, &b) && b == *peer : !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) && listens)
			found = fd;
	}
	if (d)
		closedir(d);
	return found;
}

static void check_or_throw(bool so, const char *what)
{
	if (!so)
		throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

static tcp::Handler *handler_of(gloo::transport::Pair *p)
{
	return dynamic_cast<tcp::Handler *>(p);
}

/* Replaces the descriptor fd by `with`: gloo's thread uses that connection under the number fd from now on. */
static void replace_descriptor(tcp::Device *d, gloo::transport::Pair *p, int fd, int with)
{
	d->unregisterDescriptor(fd, handler_of(p));
	check_or_throw(dup3(with, fd, O_CLOEXEC) == fd, "dup3");
	d->registerDescriptor(fd, EPOLLIN, handler_of(p));
}

/* ---- 1: pairs that accept no connection ------------------------------------------------------------------------------------------- */
/* limit: timeout of the context. The only connection that gloo itself makes is one within this process: see adopt_connection(). */
static void make_context(gl_net *n, const char *address, int rank, int world, std::chrono::milliseconds limit)
{
	tcp::attr attr;
	/* an address of this host only. It is greater than the address in adopt_connection(), because the side with the greater address
	 * connects */
	attr.hostname = address;
	n->device = std::dynamic_pointer_cast<tcp::Device>(tcp::CreateDevice(attr));
	n->context = n->device->createContext(rank, world);
	n->context->setTimeout(limit);
}

#if __has_include(<gloo/transport/tcp/listener.h>)
/* gloo since May 2023: the device has one listening socket for all pairs, and a pair is created without a socket. The device listens at the
 * broadcast address of the loopback interface: Linux lets a TCP socket be bound to a broadcast address, but connect() to one fails with
 * ENETUNREACH, and a SYN that is sent to one is dropped. So nobody can ever connect to it. */
static void make_pairs(gl_net *n, int rank, int world, std::chrono::milliseconds limit)
{
	make_context(n, "127.255.255.255", rank, world, limit);
	for (int i = 0; i < world; i++) {
		if (i != rank)
			n->context->createPair(i);
	}
}
#else
/* gloo before May 2023: the constructor of a pair listens, and the pair takes the first connection that arrives. So pairs are created on
 * gloo's thread, which therefore polls no socket meanwhile. An eventfd that never becomes readable replaces the listening socket before
 * gloo's thread continues. */
/* Creates the pairs in handleEvents(), which gloo's thread calls once. */
struct Maker : tcp::Handler {
	tcp::Device *device;
	gloo::transport::Context *context;
	Fd event{eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)};
	std::promise<void> made;

	Maker(tcp::Device *d, gloo::transport::Context *c) : device(d), context(c) {}

	void handleEvents(int) override
	{
		try {
			device->unregisterDescriptor(event.n, this);
			for (int i = 0; i < context->size; i++) {
				if (i != context->rank)
					make(i);
			}
			made.set_value();
		} catch (...) {
			made.set_exception(std::current_exception());
		}
	}

	void make(int peer)
	{
		Fd mute(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		auto &pair = context->createPair(peer);
		SocketAddress own;
		std::vector<char> bytes = pair->address().bytes(); /* the address of a pair begins with the address of its socket */
		own.bytes = sizeof(sockaddr_in);
		std::memcpy(&own.at, bytes.data(), own.bytes);
		int fd = find_descriptor(own, nullptr);
		check_or_throw(mute.n >= 0 && fd >= 0 && handler_of(pair.get()), "cannot find the socket on which gloo listens");
		replace_descriptor(device, pair.get(), fd, mute.n);
	}
};

static void create_pairs(gl_net *n)
{
	Maker maker(n->device.get(), n->context.get());
	auto made = maker.made.get_future();
	check_or_throw(maker.event.n >= 0, "eventfd");
	n->device->registerDescriptor(maker.event.n, EPOLLIN, &maker);
	made.get();
	/* get() returns a little before gloo's thread leaves handleEvents(). unregisterDescriptor() waits until it has left. */
	Fd last(eventfd(0, EFD_CLOEXEC));
	n->device->registerDescriptor(last.n, EPOLLIN, &maker);
	n->device->unregisterDescriptor(last.n, &maker);
}

static void make_pairs(gl_net *n, int rank, int world, std::chrono::milliseconds limit)
{
	make_context(n, "127.0.0.2", rank, world, limit);
	create_pairs(n);
}
#endif

/* ---- 2 and 3 --------------------------------------------------------------------------------------------------------------------- */
/* connection is a connected TCP socket, which is closed when the pair is closed, and when this function throws. */
static void adopt_connection(gl_net *n, int peer, int connection)
{
	Fd own(connection);
	gloo::transport::Pair *pair = n->context->getPair(peer).get();
	Fd door(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	SocketAddress at;
	sockaddr_in lo = {};
	int on = 1, fd = -1;
	lo.sin_family = AF_INET;
	lo.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* see make_context() */
	check_or_throw(door.n >= 0 && !bind(door.n, reinterpret_cast<sockaddr *>(&lo), sizeof lo) && !listen(door.n, 16) &&
	                   get_local_address(door.n, &at),
	               "cannot listen on the loopback interface for gloo");
	std::vector<char> bytes = pair->address().bytes();
	std::memcpy(bytes.data(), &at.at, sizeof lo);
	pair->connect(bytes);
	/* These sockets stay open until the pair has its new connection: gloo would close the pair if its present connection ended. */
	std::vector<std::unique_ptr<Fd>> ends;
	while (fd < 0) { /* connections from other processes may arrive as well; they are not used */
		ends.push_back(std::make_unique<Fd>(accept4(door.n, nullptr, nullptr, SOCK_CLOEXEC)));
		SocketAddress from;
		check_or_throw(ends.back()->n >= 0, "cannot accept gloo's own connection");
		if (get_peer_address(ends.back()->n, &from))
			fd = find_descriptor(from, &at);
	}
	check_or_throw(!fcntl(connection, F_SETFL, O_NONBLOCK) && !setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on),
	               "cannot set the options of a connection");
	replace_descriptor(n->device.get(), pair, fd, connection);
}

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

/* ---- gloo_link.h -------------------------------------------------------------------------------------------------------------------- */
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
	bool ok = catch_exceptions(why, [&] { make_pairs(n, rank, world, limit); });
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
	return catch_exceptions(why, [&] { adopt_connection(n, peer, fd); });
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
	auto wait = [&] { done = p->sends ? p->all->waitSend(nullptr, for_ever) : p->all->waitRecv(nullptr, for_ever); };
	/* If a message arrives and the connection then ends before the waiting thread runs, gloo throws. The second call returns the message:
	 * a call looks for complete messages before it waits. Without a message it throws again. */
	if (!catch_exceptions(nullptr, wait) && !catch_exceptions(nullptr, wait))
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
	gl_wake(p); /* makes the following wait return at once; in that wait gloo checks whether the connection is lost */
	return gl_wait(p) == GL_LOST;
}
