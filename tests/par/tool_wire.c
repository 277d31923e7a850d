/* Two hosts on one machine, joined by a wire that can lose packets and be cut.
 *   tool_wire [-l PERCENT] [-c FILE] [-b MBIT] [-d MICROSECONDS] COMMAND COMMAND
 * Each command runs under sh in a network, process and mount namespace of its own, as 10.77.0.1 and 10.77.0.2. Their packets pass through
 * this program (a TUN device in each namespace), which drops PERCENT of them, and all of them while FILE exists: a kernel without netem
 * will do. -b limits each direction to MBIT megabits per second (0: no limit), in which the packets occupy what they would as frames of
 * Ethernet of 1,500 bytes, and -d delays each packet. With one of them,
 * packets have up to 64 KiB, as those of a card that segments them, so that one core suffices for some Gbit/s. When both have ended it
 * prints "wire packets=… dropped=… status=A,B seconds=…", with the seconds that each took after the cut, or after the begin without one.
 * It exits with 0, or with 77 and a reason where the machine gives no namespaces or no TUN devices. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PACKET (65536 + (int)sizeof(struct virtio_net_hdr))
#define QUEUE 1024      /* maximum number of packets on the way in one direction */
#define BACKLOG 0.0005  /* seconds of packets that the sending card holds; the kernel holds the others */

/* One direction of the wire. */
struct way {
	struct { double due; ssize_t n; char byte[PACKET]; } *packet; /* [QUEUE] */
	unsigned first, end; /* packets first … end - 1, modulo QUEUE, are on the way */
	double busy;         /* when the packets so far have left the card */
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void give_up(const char *what)
{
	fprintf(stderr, "tool_wire: %s: %s\n", what, strerror(errno));
	_exit(77);
}

static int give_fd(int socket, int fd)
{
	char byte = 0;
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof u.buf};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	return sendmsg(socket, &m, 0) == 1 ? 0 : -1;
}

static int take_fd(int socket)
{
	char byte;
	int fd = -1;
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof u.buf};
	if (recvmsg(socket, &m, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

static void address(int s, struct ifreq *r, const char *text, unsigned long request, const char *what)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	inet_pton(AF_INET, text, &a.sin_addr);
	memcpy(&r->ifr_addr, &a, sizeof a);
	if (ioctl(s, request, r))
		give_up(what);
}

/* In the child: a host of its own, whose network card the parent holds. */
static void be_host(int host, int socket_up, bool segments, const char *command)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS))
		give_up("unshare");
	int s = socket(AF_INET, SOCK_DGRAM, 0), tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (tun < 0)
		give_up("/dev/net/tun");
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	if (ioctl(s, SIOCSIFFLAGS, &r))
		give_up("lo");
	r = (struct ifreq){.ifr_name = "wire", .ifr_flags = (short)(IFF_TUN | IFF_NO_PI | (segments ? IFF_VNET_HDR : 0))};
	if (ioctl(tun, TUNSETIFF, &r) || (segments && ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4)))
		give_up("TUNSETIFF");
	address(s, &r, host ? "10.77.0.2" : "10.77.0.1", SIOCSIFADDR, "its address");
	address(s, &r, "255.255.255.0", SIOCSIFNETMASK, "its network");
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(s, SIOCSIFFLAGS, &r))
		give_up("the interface");
	if (give_fd(socket_up, tun))
		give_up("the TUN device");
	close(tun);
	close(s);
	pid_t pid = fork(); /* process 1 of the namespace: all end with it */
	if (pid == 0) {
		char byte;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("proc", "/proc", "proc", 0, NULL))
			give_up("/proc");
		if (read(socket_up, &byte, 1) != 1) /* until the other host is there */
			_exit(77);
		close(socket_up);
		/* process 1 gets no signals that it does not handle; the command shall be like any other */
		pid_t work = fork();
		if (work == 0) {
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
			_exit(127);
		}
		int status = 0, end = 0;
		for (pid_t p; (p = wait(&end)) > 0 || errno == EINTR;)
			status = p == work ? end : status;
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	int status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Returns the bytes that a packet of n bytes occupies on Ethernet: its data in frames of 1,448 bytes, and 90 bytes of each frame for
 * headers, checksum, preamble and gap. */
static double wire_bytes(ssize_t n)
{
	ssize_t data = n - (ssize_t)sizeof(struct virtio_net_hdr) - 52; /* without the headers of IP and TCP */
	data = data > 0 ? data : 0;
	ssize_t frames = data ? (data + 1447) / 1448 : 1;
	return (double)(data + 90 * frames);
}

/* Waits until a packet arrives or is due, at most 5 ms. */
static void wait_packet(const int *tun, const struct way *way, double now_s)
{
	struct pollfd p[2];
	double next = now_s + 0.005;
	for (int i = 0; i < 2; i++) {
		const struct way *w = &way[i];
		bool full = w->end - w->first == QUEUE || w->busy > now_s + BACKLOG;
		p[i] = (struct pollfd){.fd = full ? -1 : tun[i], .events = POLLIN};
		if (full && w->busy - BACKLOG < next)
			next = w->busy - BACKLOG;
		if (w->first != w->end && w->packet[w->first % QUEUE].due < next)
			next = w->packet[w->first % QUEUE].due;
	}
	struct timespec t = {.tv_nsec = next > now_s ? (long)(1e9 * (next - now_s)) : 0};
	ppoll(p, 2, &t, NULL);
}

int main(int argc, char **argv)
{
	const char *cut = NULL;
	long loss = 0;
	double byte_s = 0, delay = 0;
	for (int o; (o = getopt(argc, argv, "l:c:b:d:")) != -1;) {
		if (o == 'l')
			loss = atol(optarg);
		else if (o == 'b')
			byte_s = atof(optarg) > 0 ? 8e-6 / atof(optarg) : 0;
		else if (o == 'd')
			delay = 1e-6 * atof(optarg);
		else if (o == 'c')
			cut = optarg;
		else
			return 64;
	}
	if (argc - optind != 2)
		return 64;
	int up[2][2], tun[2], status[2] = {0};
	pid_t pid[2];
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, up[i]))
			give_up("socketpair");
		pid[i] = fork();
		if (pid[i] == 0) {
			close(up[i][0]);
			be_host(i, up[i][1], byte_s > 0 || delay > 0, argv[optind + i]);
		}
		close(up[i][1]);
		tun[i] = take_fd(up[i][0]);
		if (tun[i] < 0)
			return 77; /* the child has said why; its brother ends with this process */
		fcntl(tun[i], F_SETFL, O_NONBLOCK);
	}
	for (int i = 0; i < 2; i++) {
		if (write(up[i][0], "", 1) != 1)
			give_up("a host");
	}
	double since = now(), ended[2] = {0};
	bool is_cut = false, running[2] = {true, true};
	long packets = 0, dropped = 0;
	struct way way[2] = {{0}}; /* from host 0, from host 1 */
	for (int i = 0; i < 2; i++)
		if (!(way[i].packet = calloc(QUEUE, sizeof *way[i].packet)))
			give_up("memory");
	srandom(1);
	prctl(PR_SET_TIMERSLACK, 1UL);
	if ((byte_s > 0 || delay > 0) && sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
		fprintf(stderr, "tool_wire: the times of packets depend on the load of the machine: %s\n", strerror(errno));
	while (running[0] || running[1]) {
		wait_packet(tun, way, now());
		if (cut && !is_cut && !access(cut, F_OK)) {
			is_cut = true;
			since = now();
		}
		for (int i = 0; i < 2; i++) {
			struct way *w = &way[i];
			for (ssize_t n; w->end - w->first < QUEUE && w->busy <= now() + BACKLOG &&
			                (n = read(tun[i], w->packet[w->end % QUEUE].byte, PACKET)) > 0;) {
				bool drop = is_cut || random() % 100 < loss;
				packets++;
				dropped += drop;
				if (drop)
					continue;
				double start = now();
				w->busy = (w->busy > start ? w->busy : start) + wire_bytes(n) * byte_s;
				w->packet[w->end % QUEUE].n = n;
				w->packet[w->end++ % QUEUE].due = w->busy + delay;
			}
			for (; w->first != w->end && w->packet[w->first % QUEUE].due <= now(); w->first++)
				if (write(tun[!i], w->packet[w->first % QUEUE].byte, (size_t)w->packet[w->first % QUEUE].n) < 0)
					dropped++; /* its queue is full: networks do that */
			if (running[i] && waitpid(pid[i], &status[i], WNOHANG) == pid[i]) {
				running[i] = false;
				ended[i] = now() - since;
			}
		}
	}
	for (int i = 0; i < 2; i++)
		status[i] = WIFEXITED(status[i]) ? WEXITSTATUS(status[i]) : 128 + WTERMSIG(status[i]);
	printf("wire packets=%ld dropped=%ld status=%d,%d seconds=%.2f,%.2f\n", packets, dropped, status[0], status[1], ended[0], ended[1]);
	return 0;
}
