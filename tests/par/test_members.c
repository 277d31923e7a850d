/* The membership of an elastic run: two hosts in one process over the loopback, without ranks. Host 0 meets hosts that fail again and
 * again, and connections that are no hosts. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/peer_auth.h"
#include "launch/host_record.h"
#include "launch/members.h"
#include "launch/rendezvous_parts.h"
#include "test.h"
#include <arpa/inet.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
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
static const char *host_token = (const char *)token;       /* of a host other than host 0 */
static const unsigned char *host_identity = identity;      /* likewise */
static int nproc = 1;                                      /* likewise */
static double end_s;                                       /* gt_launch_spec.end_s of host 0 */
static char said[2][4096]; /* the lines of each host */

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

static void say(void *user, const char *line)
{
	size_t n = strlen(user);
	snprintf((char *)user + n, sizeof said[0] - n, "%s\n", line);
}

static void open_host(int i, int port)
{
	struct gt_err err = {0};
	spec[i] = (struct gt_launch_spec){.nproc = i ? nproc : 1, .node = i, .nnodes = 2, .min_nodes = 1, .addr = "127.0.0.1", .port = port,
	                                  .token = i ? host_token : (const char *)token, .identity = i ? host_identity : identity,
	                                  .timeout_s = 60, .backoff_s = 0.02, .end_s = i ? 0 : end_s, .say = say, .user = said[i]};
	*said[i] = 0;
	CHECK_OK(gt_members_open(&spec[i], &host[i], &err), err);
}

static void close_host(int i)
{
	gt_members_close(host[i]);
	host[i] = NULL;
}

static void poll_hosts(void)
{
	struct gt_host_message got;
	for (int i = 0; i < 2; i++)
		if (host[i] && gt_members_poll(host[i], &got))
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
	close_host(0);
	open_host(0, port);
	CHECK(await_event(1, WAIT_S) && event[1].kind == GT_HOST_FAILS && event[1].code == GT_EPEER);
	CHECK_MSG(!await_ready(1, QUIET_S), "the host has joined, although its ranks still run");
	end_attempt();
	start_attempt();
	end_attempt();
	close_host(1);
	close_host(0);
	close(held);
}

/* A host whose ranks do not end after an attempt, because the kernel does not kill them, is lost after a while. It joins again later. */
TEST(host_that_does_not_end_is_lost)
{
	int port, held = reserve_port(&port);
	end_s = 0.5;
	open_host(0, port);
	open_host(1, port);
	start_attempt();
	for (double until = gt_clock() + 2 * end_s; gt_clock() < until; poll_hosts())
		CHECK(gt_members_busy(host[0]) == 1); /* the attempt still runs on host 0, too */
	gt_members_settle(host[0], false);
	for (double until = gt_clock() + WAIT_S; gt_members_busy(host[0]) && gt_clock() < until;)
		poll_hosts();
	CHECK(!gt_members_busy(host[0]) && gt_members_lost(host[0]) == 1);
	CHECK_MSG(strstr(said[0], ") is treated as lost: its ranks have not ended for 0.5 s after the attempt"), "%s", said[0]);
	CHECK(await_event(1, WAIT_S) && event[1].kind == GT_HOST_FAILS && !await_ready(1, QUIET_S));
	end_attempt();
	start_attempt();
	CHECK_MSG(strstr(start[0].changes, ") is lost, host 1 (") && strstr(start[0].changes, ") joins"), "%s", start[0].changes);
	end_s = 0;
	end_attempt();
	close_host(1);
	close_host(0);
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
	close_host(1);
	open_host(1, port);
	start_attempt();
	end_attempt();
	gt_members_leave(host[1], (enum gt_code)(128 + SIGTERM), "stopped");
	CHECK(await_event(0, WAIT_S) && event[0].kind == GT_HOST_STOPS && event[0].node == 1 && event[0].code == SIGTERM);
	close_host(1);
	close_host(0);
	close(held);
}

/* A host whose ranks may still wait for those of host 0 is told that the user has stopped the run. */
TEST(stop_reaches_host_in_attempt)
{
	int port, held = reserve_port(&port);
	open_host(0, port);
	open_host(1, port);
	start_attempt();
	gt_members_finish(host[0], (enum gt_code)(128 + SIGTERM), "stopped");
	CHECK(await_event(1, WAIT_S) && event[1].kind == GT_HOST_STOPS && event[1].code == SIGTERM);
	close_host(1);
	close_host(0);
	close(held);
}

/* ---- a host that fails again and again ------------------------------------------------------------------------------------------- */
TEST(record_of_failures)
{
	struct gt_host_record r = {0};
	char why[300];
	CHECK(gt_host_record_ready(&r, "a", 4, 100) == 100 && !gt_host_record_refuses(&r, "a", 100, why, sizeof why));
	for (int k = 1; k <= GT_HOST_FAILURES; k++) {
		double at = 1000 * k;
		gt_host_record_add(&r, "a", "its launcher has ended", true, at);
		CHECK(isinf(gt_host_record_ready(&r, "a", 4, at)) && !gt_host_record_refuses(&r, "a", at, why, sizeof why));
		gt_host_record_settle(&r, false);
		CHECK_MSG(gt_host_record_ready(&r, "a", 4, at) == at + 4 * pow(2, k - 1), "failure %d: %g s", k,
		          gt_host_record_ready(&r, "a", 4, at) - at);
		CHECK(gt_host_record_ready(&r, "a", 4, at + 500) == at + 500);
		CHECK(gt_host_record_refuses(&r, "a", at, why, sizeof why) == (k == GT_HOST_FAILURES));
		CHECK(gt_host_record_ready(&r, "another", 4, at) == at && !gt_host_record_refuses(&r, "another", at, why, sizeof why));
	}
	CHECK_MSG(!strcmp(why, "it has failed 5 times in a row in attempts that saved no checkpoint (the last time: its launcher has ended); "
	                  "repair it, and start it again in 60 min"), "%s", why);
	double last = 1000 * GT_HOST_FAILURES;
	CHECK(!gt_host_record_refuses(&r, "a", last + GT_HOST_FORGET_S, why, sizeof why));
	gt_host_record_add(&r, "a", "again", true, last + 10);
	gt_host_record_settle(&r, true); /* the attempt has saved a checkpoint */
	CHECK(gt_host_record_ready(&r, "a", 4, last + 10) == last + 10);
	gt_host_record_add(&r, "a", "again", false, last + 20);
	CHECK(r.failures == 1);
	gt_host_record_add(&r, "b", "again", false, last + 30);
	CHECK(r.failures == 1 && !strcmp(r.host, "b"));
}

static double attempt_at; /* time (gt_clock) at which the last attempt with host 1 had begun, just before host 1 was closed */

/* Host 1 takes part in an attempt, and its launcher ends. */
static void fail_once(int port, bool saved)
{
	open_host(1, port);
	start_attempt();
	attempt_at = gt_clock();
	close_host(1);
	CHECK(await_event(0, WAIT_S) && event[0].kind == GT_HOST_FAILS && event[0].node == 1);
	gt_members_settle(host[0], saved);
}

TEST(flapping_host_is_refused)
{
	int port, held = reserve_port(&port);
	enum gt_code code = GT_OK;
	open_host(0, port);
	for (int k = 0; k < GT_HOST_FAILURES - 1; k++)
		fail_once(port, false);
	fail_once(port, true); /* progress: the failures before do not count */
	CHECK(!strstr(said[0], "refused"));
	for (int k = 1; k <= GT_HOST_FAILURES; k++) {
		double before = attempt_at, wait = k == 1 ? 0 : 4 * 0.02 * (1 << (k - 2));
		fail_once(port, false);
		CHECK_MSG(attempt_at - before >= wait, "attempt %d begins after %g s instead of %g s", k, attempt_at - before, wait);
	}
	for (int again = 0; again < 2; again++) {
		open_host(1, port);
		double until = gt_clock() + WAIT_S;
		while (gt_members_told(host[1], &start[1]) != GT_MEMBER_REFUSES && gt_clock() < until)
			poll_hosts();
		const char *why = gt_members_last(host[1], &code);
		CHECK_MSG(code == GT_EPEER && strstr(why, "it has failed 5 times in a row"), "%d %s", code, why);
		close_host(1);
	}
	CHECK(!gt_members_ready(host[0]));
	const char *line = strstr(said[0], " is refused: it has failed 5 times");
	CHECK_MSG(line && !strstr(line + 1, " is refused"), "%s", said[0]);
	CHECK_MSG(strstr(said[0], "takes part in 0.") && strstr(said[0], "because it has failed 1 time in a row"), "%s", said[0]);
	close_host(0);
	close(held);
}

/* A host that joins and vanishes before an attempt begins fails, too. */
TEST(vanishing_host_is_refused)
{
	int port, held = reserve_port(&port);
	memset(event, 0, sizeof event);
	open_host(0, port);
	for (int k = 0; k < GT_HOST_FAILURES; k++) {
		open_host(1, port);
		CHECK(await_ready(1, WAIT_S));
		close_host(1);
		CHECK(await_ready(0, WAIT_S));
	}
	open_host(1, port);
	for (double until = gt_clock() + WAIT_S; gt_members_told(host[1], &start[1]) != GT_MEMBER_REFUSES && gt_clock() < until;)
		poll_hosts();
	CHECK(gt_members_told(host[1], &start[1]) == GT_MEMBER_REFUSES && !event[0].kind);
	close_host(1);
	close_host(0);
	close(held);
}

/* ---- connections that are no hosts ----------------------------------------------------------------------------------------------- */
static int connect_to(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(fd >= 0);
	connect(fd, (struct sockaddr *)&at, sizeof at);
	return fd;
}

/* Connects to host 0 as host 1, and proves that it holds the token, or another token. Returns whether host 0 has accepted it. */
static bool prove(int port, const char *secret, struct gt_rdv_conn *c)
{
	struct gt_auth a;
	struct gt_peer_auth p = {0}, *done;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	*c = (struct gt_rdv_conn){.fd = -1};
	CHECK(gt_auth_open(&a, GT_MEMBERS_MAGIC, secret, GT_TOKEN_SIZE, -1, 0));
	gt_auth_connect(&a, &p, (struct sockaddr *)&at, sizeof at, 1, 2);
	for (double until = gt_clock() + WAIT_S; p.state != GT_AUTH_NONE && gt_clock() < until; poll_hosts()) {
		gt_auth_poll(&a, 0);
		if ((done = gt_auth_next(&a)) && done->state == GT_AUTH_DONE)
			c->fd = gt_auth_take(&a, done, c->key);
		else if (done)
			gt_auth_close(done);
	}
	gt_auth_close(&p);
	gt_auth_shut(&a);
	return c->fd >= 0;
}

TEST(strangers_change_nothing)
{
	enum { SILENT = 1000 };
	static int fd[SILENT];
	static const char junk[] = "GET / HTTP/1.0\r\n\r\n\0\377\377\377\377 and more bytes than a proof has, all of them wrong ..........";
	struct gt_err err = {0};
	struct gt_rdv_conn c;
	struct pollfd p;
	unsigned char *data;
	size_t n;
	int port, held = reserve_port(&port), many = SILENT;
	if (gt_descriptors_reserve(SILENT + 200, SILENT + 200, "the test", &err) != GT_OK)
		many = 200;
	open_host(0, port);
	memset(event, 0, sizeof event);
	for (int i = 0; i < many; i++) { /* half-open connections, and some that send garbage */
		fd[i] = connect_to(port);
		if (i % 10 == 9) {
			poll_hosts();
			send(fd[i], junk, sizeof junk, MSG_NOSIGNAL | MSG_DONTWAIT);
		}
	}
	CHECK(!prove(port, "another token for the tests, 32.", &c));
	CHECK_MSG(strstr(said[0], "a process at 127.0.0.1 that claims to be host 1 has a different token and was rejected"), "%s", said[0]);
	CHECK(!prove(port, "another token for the tests, 32.", &c));
	CHECK(!strstr(strchr(said[0], '\n') + 1, "different token")); /* the warning is given once */
	/* a host of another version, whose messages have another length */
	CHECK(prove(port, (const char *)token, &c) && gt_rdv_send_frame(&c, false, "short", 5, gt_clock() + 1));
	for (double until = gt_clock() + WAIT_S; p = (struct pollfd){.fd = c.fd, .events = POLLIN}, !poll(&p, 1, 0) && gt_clock() < until;)
		poll_hosts();
	CHECK(gt_rdv_recv_frame(&c, false, 4096, &data, &n, gt_clock() + 1) &&
	      memmem(data, n, "another version of gtrain than host 0", strlen("another version of gtrain than host 0")));
	free(data);
	close(c.fd);
	/* a frame that is longer than any message, and one with a wrong mac */
	CHECK(prove(port, (const char *)token, &c) && send(c.fd, "\377\377\377\377", 4, MSG_NOSIGNAL) == 4);
	for (int k = 0; k < 300; k++)
		poll_hosts();
	close(c.fd);
	CHECK(prove(port, (const char *)token, &c));
	c.key[0] ^= 1;
	CHECK(gt_rdv_send_frame(&c, false, said[0], 1400, gt_clock() + 1));
	for (int k = 0; k < 50; k++)
		poll_hosts();
	close(c.fd);
	CHECK(!event[0].kind && !gt_members_ready(host[0]));
	open_host(1, port);
	start_attempt();
	end_attempt();
	close_host(1);
	close_host(0);
	for (int i = 0; i < many; i++)
		close(fd[i]);
	close(held);
}

/* Opens host 1, and waits until it is refused. */
static const char *await_refusal(int port, enum gt_code *code)
{
	open_host(1, port);
	for (double until = gt_clock() + WAIT_S; gt_members_told(host[1], &start[1]) != GT_MEMBER_REFUSES && gt_clock() < until;)
		poll_hosts();
	return gt_members_last(host[1], code);
}

TEST(wrong_hosts_are_told)
{
	int port, held = reserve_port(&port);
	enum gt_code code = GT_OK;
	open_host(0, port);
	host_identity = (const unsigned char *)"the digest of another one, 32 b.";
	CHECK(strstr(await_refusal(port, &code), "its config or its version of gtrain differs") && code == GT_EUSAGE);
	close_host(1);
	host_identity = identity;
	nproc = 3;
	CHECK(strstr(await_refusal(port, &code), "it has 3 ranks, but host 0 has 1") && code == GT_EUSAGE);
	close_host(1);
	nproc = 1;
	host_token = "another token for the tests, 32.";
	open_host(1, port);
	for (double until = gt_clock() + WAIT_S; !gt_members_obstacle(host[1]) && gt_clock() < until;)
		poll_hosts();
	const char *obstacle = gt_members_obstacle(host[1]);
	CHECK_MSG(obstacle && strstr(obstacle, "it has a different token"), "%s", obstacle ? obstacle : "none");
	close_host(1);
	host_token = (const char *)token;
	open_host(1, port);
	CHECK(await_ready(1, WAIT_S) && !gt_members_obstacle(host[1]));
	close_host(1);
	close_host(0);
	close(held);
}

RUN_TESTS()
