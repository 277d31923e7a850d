/* The rendezvous with a process a rank: values, disagreements, missing and dead ranks, strangers and wrong tokens. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/peer_auth.h"
#include "launch/launcher_parts.h"
#include "launch/rendezvous.h"
#include "launch/rendezvous_parts.h"
#include "test.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAXW 8
#define MANY 1024 /* = GT_RENDEZVOUS_RANKS */

struct outcome { /* by a rank, in shared memory */
	enum gt_code code;
	char msg[1024];
	double s;
	int warnings;
};
static struct outcome *outcome;
static int warnings;
static const unsigned char token[32] = "a token for the tests, 32 bytes";
static int port;

static void warned(void *user, const char *text)
{
	(void)user;
	warnings += strstr(text, "different token") != NULL;
}

static int loopback(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(fd, (struct sockaddr *)&at, n) && !listen(fd, 4096) && !getsockname(fd, (struct sockaddr *)&at, &n));
	port = ntohs(at.sin_port);
	return fd;
}

static struct gt_rendezvous_spec spec_of(struct gt_world *w, int rank, int world, int listener, double timeout)
{
	*w = (struct gt_world){"gtrain", rank, world, rank, world, 0, 1, "127.0.0.1", port};
	return (struct gt_rendezvous_spec){.world = w, .listen_fd = rank ? -1 : listener, .token = token, .timeout_s = timeout};
}

static enum gt_code say(struct gt_rendezvous *r, const char *key, struct gt_err *err)
{
	struct gt_rdv_value all[MAXW];
	return gt_rendezvous_exchange(r, key, "1", 1, all, err);
}

/* Forks the ranks; each runs fn and tells its result. Returns after all have ended; a hang ends the test program (tests/run). */
static void ranks(int world, enum gt_code (*fn)(int rank, int world, int listener, struct gt_err *err), int listener)
{
	pid_t pid[MANY];
	if (!outcome)
		outcome = mmap(NULL, MANY * sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(outcome, 0, (size_t)world * sizeof *outcome);
	for (int r = 0; r < world; r++)
		if (!(pid[r] = fork())) {
			struct gt_err e = {0};
			double t = gt_clock();
			outcome[r].code = fn(r, world, listener, &e);
			snprintf(outcome[r].msg, sizeof outcome[r].msg, "%s", e.msg);
			outcome[r].s = gt_clock() - t;
			outcome[r].warnings = warnings;
			_exit(0);
		}
	if (listener >= 0)
		close(listener);
	for (int r = 0; r < world; r++)
		waitpid(pid[r], NULL, 0);
}

#define ALL_TELL(world, skip, want, words)                                                                                      \
	for (int r_ = 0; r_ < (world); r_++)                                                                                        \
	CHECK_MSG(r_ == (skip) || (outcome[r_].code == (want) && strstr(outcome[r_].msg, words)), "rank %d: code %d, %s", r_,       \
	          outcome[r_].code, outcome[r_].msg)

static enum gt_code swap(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	struct gt_rdv_value all[MAXW];
	static unsigned char big[GT_RENDEZVOUS_MAX];
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	for (int round = 0; round < 20; round++) {
		size_t n = round == 0 ? 0 : round == 19 ? sizeof big : (size_t)(rank + 1) * 7 + (size_t)round;
		memset(big, rank + round, n);
		GT_TRY(gt_rendezvous_exchange(r, "values", big, n, all, err));
		for (int i = 0; i < world; i++) {
			size_t want = round == 0 ? 0 : round == 19 ? sizeof big : (size_t)(i + 1) * 7 + (size_t)round;
			if (all[i].n != want)
				return gt_fail(err, GT_EFAIL, "round %d: %zu bytes of rank %d, not %zu", round, all[i].n, i, want);
			for (size_t k = 0; k < want; k++)
				if (((const unsigned char *)all[i].data)[k] != (unsigned char)(i + round))
					return gt_fail(err, GT_EFAIL, "round %d: wrong bytes of rank %d", round, i);
		}
	}
	if (gt_rendezvous_exchange(r, "too long", big, GT_RENDEZVOUS_MAX + 1, all, NULL) != GT_EINTERNAL)
		return gt_fail(err, GT_EFAIL, "took a value that is too long");
	gt_rendezvous_close(r);
	return GT_OK;
}

TEST(values)
{
	for (int world = 1; world <= MAXW; world = world == 1 ? 2 : world * 2) {
		ranks(world, swap, loopback());
		ALL_TELL(world, -1, GT_OK, "");
	}
}

/* The exchange of a start with many ranks: values of the size of gt_peer_info's. */
static enum gt_code join(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 60);
	struct gt_rendezvous *r;
	static struct gt_rdv_value all[MANY];
	unsigned char mine[256];
	memset(mine, rank, sizeof mine);
	s.mine = mine;
	s.nmine = sizeof mine;
	s.all = all;
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	for (int i = 0; i < world; i++)
		if (all[i].n != sizeof mine || *(const unsigned char *)all[i].data != (unsigned char)i)
			return gt_fail(err, GT_EFAIL, "%zu bytes of rank %d", all[i].n, i);
	gt_rendezvous_close(r);
	return GT_OK;
}

TEST(many_ranks)
{
	struct gt_err e;
	if (gt_descriptors_reserve(MANY + 64, MANY + 64, "the test", &e) != GT_OK) {
		printf("# many_ranks: %s\n", e.msg);
		return;
	}
	for (int world = 16; world <= MANY; world *= 4) {
		double t = gt_clock();
		ranks(world, join, loopback());
		ALL_TELL(world, -1, GT_OK, "");
		printf("# %d ranks: %.2f s, %.1f MB sent by rank 0\n", world, gt_clock() - t, 1e-6 * world * world * (256 + 4));
	}
}

/* Rank 0 sees what all show, and answers in its own value's place; each shows as many bytes as its rank. */
static enum gt_code adds_up(void *user, const struct gt_rdv_value *all, void *out, size_t *n, struct gt_err *err)
{
	const int *world = user;
	unsigned char sum = 0;
	for (int i = 0; i < *world; i++)
		for (size_t k = 0; k < all[i].n; k++)
			sum = (unsigned char)(sum + ((const unsigned char *)all[i].data)[k]);
	if (*n != GT_RENDEZVOUS_MAX || all[0].n != 1)
		return gt_fail(err, GT_EINTERNAL, "room for %zu bytes, %zu of rank 0's own", *n, all[0].n);
	memcpy(out, "sum ", 4);
	((unsigned char *)out)[4] = sum;
	*n = 5;
	return GT_OK;
}

static enum gt_code shows(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	struct gt_rdv_value all[MAXW];
	unsigned char mine[MAXW];
	memset(mine, rank + 1, sizeof mine);
	s.mine = mine;
	s.nmine = rank ? (size_t)rank : 1;
	s.answer = adds_up;
	s.user = &world;
	s.all = all;
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	int sum = 1;
	for (int i = 1; i < world; i++)
		sum += i * (i + 1);
	const unsigned char *answer = all[0].data;
	if (all[0].n != 5 || memcmp(answer, "sum ", 4) || answer[4] != sum)
		return gt_fail(err, GT_EFAIL, "rank 0 answered %zu bytes, and not %d", all[0].n, sum);
	for (int i = 1; i < world; i++)
		if (all[i].n != (size_t)i || *(const unsigned char *)all[i].data != i + 1)
			return gt_fail(err, GT_EFAIL, "rank %d showed %zu bytes", i, all[i].n);
	if (gt_rendezvous_exchanges(r) != 1)
		return gt_fail(err, GT_EFAIL, "%d exchanges", gt_rendezvous_exchanges(r));
	gt_rendezvous_close(r);
	return GT_OK;
}

static enum gt_code refuses(void *user, const struct gt_rdv_value *all, void *out, size_t *n, struct gt_err *err)
{
	(void)user, (void)out, (void)n;
	return gt_fail(err, GT_ECONFIG, "rank 3 shows %zu bytes", all[3].n);
}

static enum gt_code refused(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	s.answer = refuses;
	return gt_rendezvous_open(&s, &r, err);
}

TEST(rank_0_answers)
{
	for (int world = 1; world <= MAXW; world = world == 1 ? 2 : world * 2) {
		ranks(world, shows, loopback());
		ALL_TELL(world, -1, GT_OK, "");
	}
	ranks(4, refused, loopback());
	ALL_TELL(4, -1, GT_ECONFIG, "rank 3 shows 0 bytes");
}

static enum gt_code other_key(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	return say(r, rank == 2 ? "program" : "config", err);
}

static enum gt_code other_world(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	w.world += rank == 1;
	return gt_rendezvous_open(&s, &r, err);
}

static enum gt_code twice(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank == 2 ? 1 : rank, world, listener, 30);
	struct gt_rendezvous *r;
	return gt_rendezvous_open(&s, &r, err);
}

TEST(disagreements)
{
	ranks(4, other_key, loopback());
	ALL_TELL(4, -1, GT_EINTERNAL, "rank 2 exchanges \"program\" while rank 0 exchanges \"config\"");
	ranks(2, other_world, loopback());
	ALL_TELL(2, -1, GT_EUSAGE, "rank 1 expects 3 ranks, but rank 0 expects 2");
	ranks(3, twice, loopback());
	ALL_TELL(3, -1, GT_EUSAGE, "two processes claim to be rank 1");
}

static enum gt_code absent(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 1);
	struct gt_rendezvous *r;
	return rank == 2 ? GT_OK : gt_rendezvous_open(&s, &r, err);
}

static enum gt_code silent(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 2);
	struct gt_rendezvous *r;
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	if (rank == 1)
		usleep(5000000);
	return say(r, "config", err);
}

static enum gt_code dies(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	if (rank == 1)
		raise(SIGKILL);
	if (rank == 0) {
		enum gt_code c = say(r, "config", err);
		return say(r, "config", NULL) == c ? c : GT_EFAIL; /* and so for ever */
	}
	return say(r, "config", err);
}

static enum gt_code zero_dies(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	if (!rank)
		raise(SIGKILL);
	return say(r, "config", err);
}

TEST(ranks_that_are_not_there)
{
	ranks(4, absent, loopback());
	ALL_TELL(2, -1, GT_EPEER, "rank 2 did not reach the rendezvous within 1 s");
	CHECK_MSG(outcome[3].code == GT_EPEER, "%s", outcome[3].msg); /* its own limit may come first */
	ranks(3, silent, loopback());
	ALL_TELL(3, 1, GT_EPEER, "rank 1 did not exchange \"config\" within 2 s");
	ranks(4, dies, loopback());
	ALL_TELL(4, 1, GT_EPEER, "rank 1 closed its connection before it exchanged \"config\"");
	CHECK_MSG(outcome[0].s < 10 && outcome[3].s < 10, "%.1f s", outcome[0].s); /* at once, far below the 30 s */
	ranks(3, zero_dies, loopback());
	ALL_TELL(3, 0, GT_EPEER, "rank 0 closed its connection before it exchanged \"config\"");
}

static struct sockaddr_in loopback_port(void)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
}

static int stranger(void)
{
	struct sockaddr_in at = loopback_port();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&at, sizeof at)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Rank 1 first does what a stranger might, then comes as itself. */
static enum gt_code strangers(int rank, int world, int listener, struct gt_err *err)
{
	unsigned char junk[4096];
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 30);
	struct gt_rendezvous *r;
	int idle[100];
	for (size_t i = 0; i < sizeof junk; i++)
		junk[i] = (unsigned char)(i * 37 + 11);
	for (int i = 0; rank && i < 100; i++) { /* garbage; part of a proof; a proof without the token; nothing at all */
		idle[i] = stranger();
		if (i % 4 != 3)
			send(idle[i], junk, i % 4 == 0 ? sizeof junk : i % 4 == 1 ? 10 : 8 + 2 * GT_SHA256_SIZE, MSG_NOSIGNAL);
	}
	if (rank) { /* a right rank and world with a wrong token */
		static struct gt_auth a;
		struct sockaddr_in at = loopback_port();
		struct gt_peer_auth p;
		gt_auth_open(&a, GT_RDV_MAGIC, (const unsigned char[32]){0}, 32, -1, 0);
		gt_auth_connect(&a, &p, (struct sockaddr *)&at, sizeof at, 1, (uint32_t)world);
		for (double until = gt_clock() + 20; p.state < GT_AUTH_PROVEN && gt_clock() < until;)
			gt_auth_poll(&a, 1), gt_auth_next(&a);
		if (p.state != GT_AUTH_OTHER_SECRET)
			return gt_fail(err, GT_EFAIL, "rank 0 answers a wrong token: state %d", p.state);
		gt_auth_close(&p);
		gt_auth_shut(&a);
	}
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	return say(r, "config", err);
}

static enum gt_code wrong_token(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 1);
	struct gt_rendezvous *r;
	s.token = rank ? (const unsigned char *)"another token, also of 32 bytes." : token;
	return gt_rendezvous_open(&s, &r, err);
}

TEST(strangers_do_no_harm)
{
	ranks(2, strangers, loopback());
	ALL_TELL(2, -1, GT_OK, "");
	ranks(2, wrong_token, loopback());
	CHECK_MSG(outcome[0].code == GT_EPEER && strstr(outcome[0].msg, "rank 1 did not reach the rendezvous"), "%s", outcome[0].msg);
	CHECK_MSG(outcome[1].code == GT_EPEER && strstr(outcome[1].msg, "different token"), "%s", outcome[1].msg);
}

/* On several hosts rank 0 may be behind any of some ports: what another program on a later one does says less than the wrong token. */
static enum gt_code wrong_token_then_silence(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 3);
	struct gt_rendezvous *r;
	w.how = "torchrun";
	s.token = rank ? (const unsigned char *)"another token, also of 32 bytes." : token;
	s.warn = warned;
	if (rank) { /* garbage as long as a proof must not use up the only warning of rank 0 */
		static const char junk[8 + 2 * GT_SHA256_SIZE] = "0123456789";
		int fd = stranger();
		send(fd, junk, sizeof junk, MSG_NOSIGNAL);
		usleep(200000);
		close(fd);
	}
	return gt_rendezvous_open(&s, &r, err);
}

TEST(strongest_reason)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1;
	for (bool next = false; !next;) {
		if (fd >= 0)
			close(fd);
		fd = loopback();
		at.sin_port = htons((uint16_t)(port + 1));
		next = port < 65535 && !bind(silent, (struct sockaddr *)&at, sizeof at) && !listen(silent, 16);
	}
	ranks(2, wrong_token_then_silence, fd);
	close(silent);
	CHECK_MSG(outcome[0].code == GT_EPEER && strstr(outcome[0].msg, "rank 1 did not reach the rendezvous") &&
	              strstr(outcome[0].msg, "that claims to be rank 1 has a different token"),
	          "%s", outcome[0].msg);
	CHECK_MSG(outcome[1].code == GT_EPEER && strstr(outcome[1].msg, "rank 0 on this port has a different token"), "%s", outcome[1].msg);
	CHECK_MSG(outcome[0].warnings == 1 && outcome[1].warnings == 1, "%d and %d warnings, expected one each", outcome[0].warnings,
	          outcome[1].warnings);
}

/* Rank 0 ends between the proof of rank 1 and its own answer. Rank 1 must not take this for another token. */
static enum gt_code rank_0_ends(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, listener, 0.5);
	struct gt_rendezvous *r;
	struct gt_auth a;
	struct gt_peer_auth *p = NULL;
	s.warn = warned;
	if (rank) {
		close(listener);
		return gt_rendezvous_open(&s, &r, err);
	}
	bool good = gt_auth_open(&a, GT_RDV_MAGIC, token, GT_SHA256_SIZE, listener, world);
	for (double until = gt_clock() + 20; good && !p && gt_clock() < until;) {
		gt_auth_poll(&a, 1);
		p = gt_auth_next(&a);
	}
	return p && p->state == GT_AUTH_PROVEN ? GT_OK : gt_fail(err, GT_EFAIL, "no proof arrived");
}

TEST(rank_0_ends_during_the_handshake)
{
	ranks(2, rank_0_ends, loopback());
	CHECK_MSG(outcome[0].code == GT_OK, "%s", outcome[0].msg);
	CHECK_MSG(outcome[1].code == GT_EPEER && strstr(outcome[1].msg, "no process listens on this port"), "%s", outcome[1].msg);
	CHECK_MSG(!outcome[1].warnings, "rank 1 warns of another token");
}

/* No inherited socket: rank 0 binds; the first port is taken by something silent, as torchrun's store takes MASTER_PORT. */
static enum gt_code joined(int rank, int world, int listener, struct gt_err *err)
{
	struct gt_world w;
	struct gt_rendezvous_spec s = spec_of(&w, rank, world, -1, 30);
	struct gt_rendezvous *r;
	(void)listener;
	w.how = "torchrun";
	GT_TRY(gt_rendezvous_open(&s, &r, err));
	return say(r, "config", err);
}

/* A peer that sends for ever must not keep a launcher from closing its connection: after the deadline, the rest is not read. */
TEST(endless_data_is_not_read)
{
	static char data[1 << 18];
	int fd[2], size = 1 << 20;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	CHECK(!setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
	ssize_t sent = send(fd[1], data, sizeof data, MSG_DONTWAIT);
	CHECK(sent > 1 << 17);
	int other = dup(fd[0]);
	gt_rdv_drain_close(&fd[0], gt_clock());
	CHECK(fd[0] < 0 && recv(other, data, sizeof data, MSG_DONTWAIT) > 1 << 16);
	close(other);
	close(fd[1]);
}

/* Rank 0 has proven that it holds the token, but may send any frame. */
TEST(malformed_answers_fail)
{
	static const struct { const char *bytes; size_t n; enum gt_code code; } frames[] = {
		{"", 0, GT_EPEER}, {"\1", 1, GT_EPEER}, {"\1\0\0\0\0why", 8, GT_EPEER}, {"\1\0\0\0\1why", 8, GT_EPEER},
		{"\1\100\0\0\0why", 8, GT_EUSAGE}, {"\0", 1, GT_EINTERNAL}, {"\0\377\377\377\377\0\0\0\0", 9, GT_EINTERNAL},
		{"\0\1\0\0\0a", 6, GT_EINTERNAL}, {"\0\1\0\0\0a\1\0\0\0b", 11, GT_OK}};
	for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
		struct gt_rdv_conn conn, server = {0};
		struct gt_rendezvous r = {.world = {.rank = 1, .world = 2}, .timeout = 5, .conn = &conn};
		struct gt_rdv_value all[2];
		struct gt_err e = {0};
		int fd[2];
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
		conn = (struct gt_rdv_conn){.fd = fd[0]};
		server.fd = fd[1];
		CHECK(gt_rdv_send_frame(&server, true, frames[i].bytes, frames[i].n, gt_clock() + 1));
		enum gt_code code = gt_rendezvous_exchange(&r, "key", "x", 1, all, &e);
		CHECK_MSG(code == frames[i].code, "frame %zu: code %d, %s", i, code, e.msg);
		CHECK(code == GT_OK || *e.msg);
		free(r.all);
		gt_fd_close(&conn.fd);
		close(fd[1]);
	}
}

TEST(port_is_taken)
{
	int held = loopback();
	ranks(3, joined, -1);
	close(held);
	ALL_TELL(3, -1, GT_OK, "");
}

TEST(token_file)
{
	char path[200];
	unsigned char t[32] = {0};
	struct gt_err e;
	snprintf(path, sizeof path, "%s/token", test_tmpdir());
	FILE *f = fopen(path, "w");
	for (int i = 0; i < 32; i++)
		fprintf(f, "%02X", 255 - i);
	fprintf(f, "\n");
	fclose(f);
	chmod(path, 0600);
	CHECK_OK(gt_token_read(path, t, &e), e);
	CHECK(t[0] == 255 && t[31] == 224);
	chmod(path, 0640);
	CHECK(gt_token_read(path, t, &e) == GT_EUSAGE && strstr(e.msg, "no other user can read"));
	chmod(path, 0600);
	CHECK(!truncate(path, 63));
	CHECK(gt_token_read(path, t, &e) == GT_EUSAGE && strstr(e.msg, "64 hexadecimal digits"));
	CHECK(gt_token_read("/nonexistent/token", t, &e) == GT_ENOINPUT);
	struct gt_world w;
	struct gt_rendezvous *r;
	struct gt_rendezvous_spec s = spec_of(&w, 1, 2, -1, 1);
	s.token = NULL;
	CHECK(gt_rendezvous_open(&s, &r, &e) == GT_EUSAGE && strstr(e.msg, "need a shared token"));
}

RUN_TESTS()
