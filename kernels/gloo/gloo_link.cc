/* The only file that sees gloo. Every function catches everything. */
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
#include <gloo/transport/device.h>
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

#if __has_include(<gloo/transport/tcp/listener.h>)
#error "this gloo makes connections in another way (gloo/transport/tcp/listener.h): `make GLOO=` builds without it"
#endif

namespace tcp = gloo::transport::tcp;

/* wait_for() adds it to the present time: the largest duration would wrap around. */
static const std::chrono::milliseconds for_ever = std::chrono::hours(24 * 365 * 10);

struct gl_net {
	std::shared_ptr<tcp::Device> device;
	std::shared_ptr<gloo::transport::Context> context;
};

/* gloo ties a port to memory; this one to all of it: an offset is an address, and no call makes a new one. */
struct gl_port {
	std::unique_ptr<gloo::transport::UnboundBuffer> all;
	int peer;
	bool sends;
};

/* gloo's sentences begin with a file and a line in brackets. */
static void say(char why[GL_WHY], const char *what) noexcept
{
	const char *end = *what == '[' ? std::strstr(what, "] ") : nullptr;
	std::snprintf(why, GL_WHY, "%s", end ? end + 2 : what);
}

template <typename F> static bool guarded(char why[GL_WHY], F f) noexcept
{
	try {
		f();
		return true;
	} catch (const std::exception &e) {
		if (why)
			say(why, e.what());
	} catch (...) {
		if (why)
			say(why, "gloo threw something unknown");
	}
	return false;
}

/* ---- a pair without a listener --------------------------------------------------------------------------------------------------- */
/* gloo's constructor of a pair listens, and takes for its peer whoever comes first; what it does not understand ends the process. So it is
 * kept from listening to anybody, and comes by a connection of ours in its own ways:
 *   1. Pairs are made on gloo's thread, which therefore looks at no socket meanwhile. In place of the one that listens there is a descriptor
 *      that never has anything to say before gloo's thread goes on.
 *   2. The pair connects to a socket of this very process.
 *   3. What it then has a number for becomes, under that number, the connection that it is to have.
 * Numbers are found by their addresses; gloo's interface shows none. */
struct Place {
	sockaddr_storage at = {};
	socklen_t bytes = sizeof at;
	bool operator==(const Place &o) const { return bytes == o.bytes && !std::memcmp(&at, &o.at, bytes); }
};

static bool here(int fd, Place *p)
{
	return !getsockname(fd, reinterpret_cast<sockaddr *>(&p->at), &p->bytes);
}

static bool there(int fd, Place *p)
{
	return !getpeername(fd, reinterpret_cast<sockaddr *>(&p->at), &p->bytes);
}

/* The descriptor of this process that is bound to `own`, and to `peer`, or listens where that is NULL. */
static int find(const Place &own, const Place *peer)
{
	int found = -1;
	DIR *d = opendir("/proc/self/fd");
	for (dirent *e; d && found < 0 && (e = readdir(d));) {
		int fd = std::atoi(e->d_name), listens = 0;
		socklen_t n = sizeof listens;
		Place a, b;
		if (*e->d_name == '.' || !here(fd, &a) || !(a == own))
			continue;
		if (peer ? there(fd, &b) && b == *peer : !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) && listens)
			found = fd;
	}
	if (d)
		closedir(d);
	return found;
}

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

static void must(bool so, const char *what)
{
	if (!so)
		throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

static tcp::Handler *handler_of(gloo::transport::Pair *p)
{
	return dynamic_cast<tcp::Handler *>(p);
}

/* Under number fd gloo's thread finds `with` from now on. */
static void swap(tcp::Device *d, gloo::transport::Pair *p, int fd, int with)
{
	d->unregisterDescriptor(fd, handler_of(p));
	must(dup3(with, fd, O_CLOEXEC) == fd, "dup3");
	d->registerDescriptor(fd, EPOLLIN, handler_of(p));
}

/* gloo's thread calls it once; see 1. */
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
		Place own;
		std::vector<char> bytes = pair->address().bytes(); /* begins with the socket's */
		own.bytes = sizeof(sockaddr_in);
		std::memcpy(&own.at, bytes.data(), own.bytes);
		int fd = find(own, nullptr);
		must(mute.n >= 0 && fd >= 0 && handler_of(pair.get()), "where gloo listens");
		swap(device, pair.get(), fd, mute.n);
	}
};

static void make_pairs(gl_net *n)
{
	Maker maker(n->device.get(), n->context.get());
	auto made = maker.made.get_future();
	must(maker.event.n >= 0, "eventfd");
	n->device->registerDescriptor(maker.event.n, EPOLLIN, &maker);
	made.get();
	/* That comes a little before gloo's thread has left the handler: what is taken from the thread is gone from it. */
	Fd last(eventfd(0, EFD_CLOEXEC));
	n->device->registerDescriptor(last.n, EPOLLIN, &maker);
	n->device->unregisterDescriptor(last.n, &maker);
}

/* See 2 and 3. */
static void adopt(gl_net *n, int peer, int connection)
{
	gloo::transport::Pair *pair = n->context->getPair(peer).get();
	Fd door(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	Place at;
	sockaddr_in lo = {};
	int on = 1, fd = -1;
	lo.sin_family = AF_INET;
	lo.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* below the pair's own: the greater address connects */
	must(door.n >= 0 && !bind(door.n, reinterpret_cast<sockaddr *>(&lo), sizeof lo) && !listen(door.n, 16) && here(door.n, &at), "a door for gloo");
	std::vector<char> bytes = pair->address().bytes();
	std::memcpy(bytes.data(), &at.at, sizeof lo);
	pair->connect(bytes);
	std::vector<std::unique_ptr<Fd>> ends; /* kept: gloo takes the end of what is still its connection for the end of the pair */
	while (fd < 0) { /* others may come as well: those whose other end is not in this process */
		ends.push_back(std::make_unique<Fd>(accept4(door.n, nullptr, nullptr, SOCK_CLOEXEC)));
		Place from;
		must(ends.back()->n >= 0, "gloo's own connection");
		if (there(ends.back()->n, &from))
			fd = find(from, &at);
	}
	must(!fcntl(connection, F_SETFL, O_NONBLOCK) && !setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "a connection's options");
	swap(n->device.get(), pair, fd, connection);
}

/* ---- the face -------------------------------------------------------------------------------------------------------------------- */
extern "C" struct gl_net *gl_net_new(int rank, int world, double timeout_s, char why[GL_WHY])
{
	gl_net *n = new (std::nothrow) gl_net;
	if (!n) {
		say(why, "out of memory");
		return nullptr;
	}
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* gloo's thread inherits it: signals are the trainer's */
	bool ok = guarded(why, [&] {
		tcp::attr attr;
		attr.hostname = "127.0.0.2"; /* of this host alone, and above the door's in adopt() */
		n->device = std::dynamic_pointer_cast<tcp::Device>(tcp::CreateDevice(attr));
		n->context = n->device->createContext(rank, world);
		n->context->setTimeout(std::chrono::milliseconds((long long)(timeout_s * 1e3) + 1)); /* of connecting only */
		make_pairs(n);
	});
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
		guarded(nullptr, [&] {
			n->context.reset();
			n->device.reset();
		});
		delete n;
	}
}

extern "C" bool gl_net_adopt(struct gl_net *n, int peer, int fd, char why[GL_WHY])
{
	Fd own(fd);
	return guarded(why, [&] { adopt(n, peer, own.n); });
}

extern "C" struct gl_port *gl_port_new(struct gl_net *n, int peer, bool sends)
{
	gl_port *p = new (std::nothrow) gl_port;
	if (p && !guarded(nullptr, [&] { p->all = n->context->createUnboundBuffer(nullptr, std::numeric_limits<size_t>::max()); })) {
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
		guarded(nullptr, [&] { p->all.reset(); });
		delete p;
	}
}

extern "C" bool gl_post(struct gl_port *p, uint64_t slot, void *mem, size_t bytes)
{
	return guarded(nullptr, [&] {
		if (p->sends)
			p->all->send(p->peer, slot, (size_t)(uintptr_t)mem, bytes);
		else
			p->all->recv(p->peer, slot, (size_t)(uintptr_t)mem, bytes);
	});
}

extern "C" enum gl_end gl_wait(struct gl_port *p)
{
	bool done = false;
	if (!guarded(nullptr, [&] { done = p->sends ? p->all->waitSend(nullptr, for_ever) : p->all->waitRecv(nullptr, for_ever); }))
		return GL_LOST;
	return done ? GL_DONE : GL_WOKEN;
}

extern "C" void gl_wake(struct gl_port *p)
{
	guarded(nullptr, [&] {
		if (p->sends)
			p->all->abortWaitSend();
		else
			p->all->abortWaitRecv();
	});
}

extern "C" bool gl_is_lost(struct gl_port *p)
{
	gl_wake(p); /* so that the wait is over before it begins; gloo looks for a lost connection first */
	return gl_wait(p) == GL_LOST;
}
