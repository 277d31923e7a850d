/* The messages between the launchers of three hosts, in one process over the loopback: a stop, a failure, and the loss of a peer whose
 * cause no host knows. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "launch/hosts.h"
#include "test.h"
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOSTS 3
#define WAIT_S 20.0 /* maximum seconds for an event that must happen */
#define QUIET_S 0.5 /* seconds in which an event must not happen */

static const unsigned char token[GT_TOKEN_SIZE] = "a token for the tests, 32 bytes";
static struct gt_launch_spec spec[HOSTS];
static struct gt_hosts *host[HOSTS];
static struct gt_host_message got[HOSTS][4]; /* the messages of each host, in the order of their arrival */
static int ngot[HOSTS];

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

static void poll_hosts(void)
{
	struct gt_host_message w;
	for (int i = 0; i < HOSTS; i++)
		if (host[i] && gt_hosts_receive(host[i], &w) && ngot[i] < 4)
			got[i][ngot[i]++] = w;
	poll(NULL, 0, 2);
}

/* Polls for s seconds, or until the hosts have these numbers of messages. Returns whether they have. */
static bool await_messages(int n0, int n1, int n2, double s)
{
	for (double until = gt_clock() + s; ngot[0] < n0 || ngot[1] < n1 || ngot[2] < n2; poll_hosts())
		if (gt_clock() >= until)
			return false;
	return true;
}

static void poll_for(double s)
{
	for (double until = gt_clock() + s; gt_clock() < until;)
		poll_hosts();
}

static int open_hosts(void)
{
	int port, ranks, held = reserve_port(&port);
	struct gt_err err = {0};
	memset(ngot, 0, sizeof ngot);
	for (int i = 0; i < HOSTS; i++) {
		spec[i] = (struct gt_launch_spec){.nproc = 2, .node = i, .node_rank = 10 * i, .nnodes = HOSTS, .addr = "127.0.0.1", .port = port};
		CHECK_OK(gt_hosts_open(&spec[i], token, &ranks, &host[i], &err), err);
		gt_fd_close(&ranks);
	}
	poll_for(QUIET_S); /* all hosts connect */
	CHECK(!ngot[0] && !ngot[1] && !ngot[2]);
	return held;
}

static void close_hosts(int held)
{
	for (int i = 0; i < HOSTS; i++) {
		gt_hosts_close(host[i]);
		host[i] = NULL;
	}
	close(held);
}

static struct gt_launch_end loss_of(int rank, const char *why)
{
	struct gt_launch_end e = {.code = GT_EPEER, .rank = rank, .step = 7};
	snprintf(e.why, sizeof e.why, "%s", why);
	return e;
}

/* A host that has received a message must not send it back: node 0 would close the connection, and the stop would become a failure. */
TEST(stop_reaches_all_hosts)
{
	int held = open_hosts();
	gt_hosts_stop(host[2], SIGTERM, false, 0);
	CHECK(await_messages(1, 1, 0, WAIT_S));
	poll_for(QUIET_S);
	CHECK_MSG(ngot[0] == 1 && ngot[1] == 1 && !ngot[2], "%d, %d and %d messages, the last one of host 1: %s", ngot[0], ngot[1], ngot[2],
	          got[1][ngot[1] - 1].why);
	for (int i = 0; i < 2; i++)
		CHECK(got[i][0].kind == GT_HOST_STOPS && got[i][0].node == 2 && got[i][0].number == 20 && got[i][0].code == SIGTERM);
	close_hosts(held);
}

TEST(failure_reaches_all_hosts)
{
	int held = open_hosts();
	struct gt_launch_end e = loss_of(2, "rank 2: no space is left"), loss = loss_of(1, "rank 1: rank 2 has gone");
	gt_hosts_send_loss(host[0], &loss);
	e.code = GT_EIO;
	gt_hosts_send_end(host[1], &e);
	CHECK(await_messages(1, 0, 1, WAIT_S));
	poll_for(QUIET_S);
	for (int i = 0; i < HOSTS; i += 2)
		CHECK(ngot[i] == 1 && got[i][0].kind == GT_HOST_FAILS && got[i][0].rank == 2 && got[i][0].code == GT_EIO &&
		      got[i][0].number == 10 && *got[i][0].host && !strcmp(got[i][0].why, "rank 2: no space is left"));
	CHECK(!ngot[1]);
	close_hosts(held);
}

/* If all hosts have only lost peers, all of them get the sentence of the first one, which gets it, too. */
TEST(all_hosts_name_the_first_loss)
{
	int held = open_hosts();
	struct gt_launch_end first = loss_of(4, "rank 4: rank 1 has not reached all_reduce"), later = loss_of(0, "rank 0: rank 4 has gone");
	gt_hosts_send_loss(host[2], &first);
	poll_for(QUIET_S);
	CHECK(!ngot[0] && !ngot[1] && !ngot[2]);
	gt_hosts_send_loss(host[0], &later);
	gt_hosts_send_loss(host[1], &later);
	CHECK(await_messages(1, 1, 1, WAIT_S));
	for (int i = 0; i < HOSTS; i++)
		CHECK_MSG(got[i][0].kind == GT_HOST_FAILS && got[i][0].node == 2 && !strcmp(got[i][0].why, first.why), "host %d: kind %u, %s", i,
		          got[i][0].kind, got[i][0].why);
	close_hosts(held);
}

/* A host that does not tell what it knows, for example behind a cut cable, does not keep the others from an agreement. */
TEST(agreement_without_a_silent_host)
{
	int held = open_hosts();
	struct gt_launch_end first = loss_of(2, "rank 2: rank 4 has not reached all_reduce"), later = loss_of(0, "rank 0: rank 2 has gone");
	gt_hosts_send_loss(host[1], &first);
	poll_for(QUIET_S);
	gt_hosts_send_loss(host[0], &later);
	poll_for(QUIET_S);
	CHECK(!ngot[0] && !ngot[1] && !ngot[2]);
	gt_hosts_settle_loss(host[1]); /* only node 0 decides */
	gt_hosts_settle_loss(host[0]);
	CHECK(await_messages(1, 1, 1, WAIT_S) && !strcmp(got[0][0].why, first.why) && !strcmp(got[1][0].why, first.why));
	close_hosts(held);
}

RUN_TESTS()
