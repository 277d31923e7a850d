/* The membership of an elastic run: two hosts in one process over the loopback, without ranks. */
#include "base/clock.h"
#include "launch/members.h"
#include "test.h"
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_S 20.0 /* maximum seconds for an event that must happen */
#define QUIET_S 1.0 /* seconds in which an event must not happen; a host tries to connect every 0.2 s */

static const unsigned char token[GT_TOKEN_SIZE] = "a token for the tests, 32 bytes";
static const unsigned char identity[GT_TOKEN_SIZE] = "the digest of a config, 32 bytes";
static struct gt_launch_spec spec[2];
static struct gt_members *host[2];
static struct gt_member_start start[2];
static struct gt_host_message event[2]; /* the last event of each host; kind 0: none */

/* Reserves a free port: the socket is bound, but does not listen, and both sides set SO_REUSEADDR. */
static int reserve_port(int *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)));
	CHECK(!bind(fd, (struct sockaddr *)&at, n) && !getsockname(fd, (struct sockaddr *)&at, &n));
	*port = ntohs(at.sin_port);
	return fd;
}

static void open_host(int i, int port)
{
	struct gt_err err = {0};
	spec[i] = (struct gt_launch_spec){.nproc = 1, .node = i, .nnodes = 2, .min_nodes = 1, .addr = "127.0.0.1", .port = port, .token = token,
	                                  .identity = identity, .timeout_s = 60};
	CHECK_OK(gt_members_open(&spec[i], &host[i], &err), err);
}

static void poll_hosts(void)
{
	struct gt_host_message got;
	for (int i = 0; i < 2; i++)
		if (gt_members_poll(host[i], &got))
			event[i] = got;
	poll(NULL, 0, 2);
}

/* Returns whether `ready` other hosts wait on host 0 within s seconds. */
static bool await_ready(int ready, double s)
{
	for (double until = gt_clock() + s; gt_members_ready(host[0]) != ready; poll_hosts())
		if (gt_clock() >= until)
			return false;
	return true;
}

static bool await_event(int i, double s)
{
	for (double until = gt_clock() + s; !event[i].kind; poll_hosts())
		if (gt_clock() >= until)
			return false;
	return true;
}

/* Starts an attempt with both hosts. */
static void start_attempt(void)
{
	struct gt_err err = {0};
	memset(event, 0, sizeof event);
	CHECK(await_ready(1, WAIT_S));
	CHECK_OK(gt_members_start(host[0], &(struct gt_launch_from){.step = 7}, &start[0], &err), err);
	double until = gt_clock() + WAIT_S;
	while (gt_members_told(host[1], &start[1]) != GT_MEMBER_STARTS && gt_clock() < until)
		poll_hosts();
	CHECK(start[1].node == 1 && start[1].nnodes == 2 && start[1].from.step == 7);
	CHECK(!memcmp(start[0].token, start[1].token, GT_TOKEN_SIZE));
	CHECK(gt_members_busy(host[0]) == 1 && !gt_members_ready(host[0]));
}

static void end_attempt(void)
{
	gt_members_report(host[1], &(struct gt_launch_end){.code = GT_EPEER, .rank = 0, .step = 7});
	CHECK(await_ready(1, WAIT_S));
	CHECK(!gt_members_busy(host[0]));
}

/* A host that loses its connection to host 0 during an attempt joins again only after its ranks have ended. */
TEST(host_joins_again_after_its_attempt)
{
	int port, held = reserve_port(&port);
	open_host(0, port);
	open_host(1, port);
	start_attempt();
	gt_members_close(host[0]);
	open_host(0, port);
	CHECK(await_event(1, WAIT_S) && event[1].kind == GT_HOST_FAILS && event[1].code == GT_EPEER);
	CHECK_MSG(!await_ready(1, QUIET_S), "the host has joined, although its ranks still run");
	end_attempt();
	start_attempt();
	end_attempt();
	gt_members_close(host[1]);
	gt_members_close(host[0]);
	close(held);
}

/* A signal to a host between two attempts ends the run; a host that has not taken part yet only leaves. */
TEST(stopped_host_ends_run)
{
	int port, held = reserve_port(&port);
	open_host(0, port);
	open_host(1, port);
	CHECK(await_ready(1, WAIT_S));
	memset(event, 0, sizeof event);
	gt_members_leave(host[1], (enum gt_code)(128 + SIGTERM), "stopped");
	CHECK(await_ready(0, WAIT_S) && !event[0].kind);
	gt_members_close(host[1]);
	open_host(1, port);
	start_attempt();
	end_attempt();
	gt_members_leave(host[1], (enum gt_code)(128 + SIGTERM), "stopped");
	CHECK(await_event(0, WAIT_S) && event[0].kind == GT_HOST_STOPS && event[0].node == 1 && event[0].code == SIGTERM);
	gt_members_close(host[1]);
	gt_members_close(host[0]);
	close(held);
}

RUN_TESTS()
