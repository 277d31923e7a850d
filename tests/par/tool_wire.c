/* Two hosts on one machine, joined by a wire that can lose packets and be cut.
 *   tool_wire [-l PERCENT] [-c FILE] COMMAND COMMAND
 * Each command runs under sh in a network, process and mount namespace of its own, as 10.77.0.1 and 10.77.0.2. Their packets pass through
 * this program (a TUN device in each namespace), which drops PERCENT of them, and all of them while FILE exists: a kernel without netem
 * will do. When both have ended it prints "wire packets=… dropped=… status=A,B seconds=…", with the seconds that each took after the cut,
 * or after the begin without one. It exits with 0, or with 77 and a reason where the machine gives no namespaces or no TUN devices. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
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

#define PACKET 65536

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
static void be_host(int host, int socket_up, const char *command)
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
	r = (struct ifreq){.ifr_name = "wire", .ifr_flags = IFF_TUN | IFF_NO_PI};
	if (ioctl(tun, TUNSETIFF, &r))
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

int main(int argc, char **argv)
{
	const char *cut = NULL;
	long loss = 0;
	for (int o; (o = getopt(argc, argv, "l:c:")) != -1;) {
		if (o == 'l')
			loss = atol(optarg);
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
			be_host(i, up[i][1], argv[optind + i]);
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
	static char packet[PACKET];
	srandom(1);
	while (running[0] || running[1]) {
		struct pollfd p[2] = {{.fd = tun[0], .events = POLLIN}, {.fd = tun[1], .events = POLLIN}};
		poll(p, 2, 5);
		if (cut && !is_cut && !access(cut, F_OK)) {
			is_cut = true;
			since = now();
		}
		for (int i = 0; i < 2; i++) {
			for (ssize_t n; (n = read(tun[i], packet, sizeof packet)) > 0;) {
				bool drop = is_cut || random() % 100 < loss;
				packets++;
				dropped += drop;
				if (!drop && write(tun[!i], packet, (size_t)n) < 0)
					dropped++; /* its queue is full: networks do that */
			}
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
