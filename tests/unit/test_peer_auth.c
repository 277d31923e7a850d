/* The handshake between two processes of a run: both roles in one process over the loopback, and hand-written bytes against each role. */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/peer_auth.h"
#include "test.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAGIC "gtrain-test-1\0\0"
#define HELLO (GT_AUTH_MAGIC + GT_SHA256_SIZE)
#define PROOF (8 + 2 * GT_SHA256_SIZE)

static const unsigned char secret[32] = "the secret of a run, of 32 bytes";
static struct sockaddr_in at;
static struct gt_auth server, client;
static struct gt_peer_auth conn;

static int open_listener(void)
{
	socklen_t n = sizeof at;
	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(fd, (struct sockaddr *)&at, n) && !listen(fd, 512) && !getsockname(fd, (struct sockaddr *)&at, &n));
	return fd;
}

static int count_descriptors(void)
{
	int n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void open_both(const char *client_magic, const void *client_secret)
{
	CHECK(gt_auth_open(&server, MAGIC, secret, sizeof secret, open_listener(), 0));
	CHECK(gt_auth_open(&client, client_magic, client_secret, sizeof secret, -1, 0));
}

static void close_both(void)
{
	gt_auth_close(&conn);
	gt_auth_shut(&client);
	close(server.listener);
	gt_auth_shut(&server);
}

static void start_connection(uint32_t claim0, uint32_t claim1)
{
	gt_auth_close(&conn);
	gt_auth_connect(&client, &conn, (struct sockaddr *)&at, sizeof at, claim0, claim1);
	CHECK(conn.state == GT_AUTH_CONNECTS);
}

static struct gt_peer_auth *next_peer(struct gt_auth *a, double wait_s)
{
	CHECK(gt_auth_poll(a, wait_s) >= 0);
	return gt_auth_next(a);
}

/* Runs the acceptor until a peer has proven itself or failed; NULL: none after 2 s. */
static struct gt_peer_auth *serve(void)
{
	struct gt_peer_auth *p = NULL;
	for (double until = gt_clock() + 2; !p && gt_clock() < until;)
		p = next_peer(&server, 0.01);
	return p;
}

/* Runs both sides until the acceptor has a result and, if it is a rejection, closes the connection; then the connector. */
static enum gt_auth_state run_both(unsigned char key[2][GT_SHA256_SIZE], int fd[2])
{
	struct gt_peer_auth *p = NULL;
	enum gt_auth_state result = GT_AUTH_NONE;
	fd[0] = fd[1] = -1;
	for (double until = gt_clock() + 5; gt_clock() < until && (conn.state < GT_AUTH_PROVEN || result == GT_AUTH_NONE);) {
		next_peer(&client, 0.001);
		p = next_peer(&server, 0.001);
		if (p) {
			result = p->state;
			if (p->state == GT_AUTH_PROVEN)
				fd[0] = gt_auth_take(&server, p, key[0]);
			gt_auth_close(p);
		}
	}
	if (conn.state == GT_AUTH_DONE)
		fd[1] = gt_auth_take(&client, &conn, key[1]);
	return result;
}

/* A connection whose other end writes by hand. */
static int connect_raw(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!connect(fd, (struct sockaddr *)&at, sizeof at));
	return fd;
}

static bool read_raw(int fd, void *to, size_t n)
{
	for (size_t got = 0; got < n;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t k = poll(&p, 1, 2000) > 0 ? recv(fd, (char *)to + got, n - got, 0) : -1;
		if (k <= 0)
			return false;
		got += (size_t)k;
	}
	return true;
}

static void write_mac(const char *side, const unsigned char *hello, const unsigned char *proof, unsigned char out[GT_SHA256_SIZE])
{
	struct gt_hmac h;
	gt_hmac_start(&h, secret, sizeof secret);
	gt_sha256_add(&h.inner, side, strlen(side) + 1);
	gt_sha256_add(&h.inner, hello, HELLO);
	gt_sha256_add(&h.inner, proof, 8 + GT_SHA256_SIZE);
	gt_hmac_end(&h, out);
}

static void write_proof(const unsigned char hello[HELLO], unsigned char proof[PROOF])
{
	memset(proof, 7, PROOF);
	gt_put_u32(proof, 0x01020304);
	gt_put_u32(proof + 4, 9);
	write_mac("client", hello, proof, proof + 8 + GT_SHA256_SIZE);
}

TEST(two_peers)
{
	int before = count_descriptors(), fd[2];
	unsigned char key[2][GT_SHA256_SIZE], first[GT_SHA256_SIZE] = {0};
	char byte = 0;
	open_both(MAGIC, secret);
	for (int i = 0; i < 3; i++) {
		start_connection(0xfffefdfc, (uint32_t)i);
		CHECK(run_both(key, fd) == GT_AUTH_PROVEN && fd[0] >= 0 && fd[1] >= 0);
		CHECK(!memcmp(key[0], key[1], GT_SHA256_SIZE) && memcmp(key[0], first, GT_SHA256_SIZE)); /* a new key for every connection */
		memcpy(first, key[0], sizeof first);
		CHECK(send(fd[1], "x", 1, 0) == 1 && read_raw(fd[0], &byte, 1) && byte == 'x'); /* the connection carries data */
		CHECK(next_peer(&server, 0) == NULL && next_peer(&client, 0) == NULL); /* and is no longer watched */
		close(fd[0]);
		close(fd[1]);
	}
	close_both();
	CHECK(count_descriptors() == before);
}

/* Which side works first, and whether the peers arrive in the order of their numbers, does not matter. */
TEST(order_of_arrival)
{
	struct gt_peer_auth peer[8] = {0}, *p;
	open_both(MAGIC, secret);
	for (int turn = 0; turn < 2; turn++) {
		int seen = 0, done = 0;
		for (int i = 0; i < 8; i++)
			gt_auth_connect(&client, &peer[turn ? 7 - i : i], (struct sockaddr *)&at, sizeof at, (uint32_t)(turn ? 7 - i : i), 8);
		for (double until = gt_clock() + 5; gt_clock() < until && done < 8;) {
			for (int side = 0; side < 2; side++)
				for (p = next_peer(side == turn ? &server : &client, 0.001); p; p = gt_auth_next(side == turn ? &server : &client)) {
					CHECK(p->state == (side == turn ? GT_AUTH_PROVEN : GT_AUTH_DONE) && p->claim[0] < 8 && p->claim[1] == 8);
					seen += side == turn ? 1 << p->claim[0] : 0;
					done += side != turn;
					close(gt_auth_take(side == turn ? &server : &client, p, NULL));
				}
		}
		CHECK_MSG(seen == 255 && done == 8, "mask %d, %d done", seen, done);
	}
	close_both();
}

TEST(wrong_secret_and_magic)
{
	int fd[2];
	unsigned char key[2][GT_SHA256_SIZE], other[32] = "the secret of a run, of 32 bytez";
	open_both(MAGIC, other);
	start_connection(3, 4);
	CHECK(run_both(key, fd) == GT_AUTH_OTHER_SECRET && fd[0] < 0 && fd[1] < 0 && conn.state == GT_AUTH_OTHER_SECRET);
	close_both();
	open_both("gtrain-test-2\0\0", secret);
	start_connection(3, 4);
	for (double until = gt_clock() + 2; conn.state < GT_AUTH_PROVEN && gt_clock() < until;) {
		next_peer(&client, 0.001);
		next_peer(&server, 0.001);
	}
	CHECK(conn.state == GT_AUTH_STRANGER && !memcmp(conn.hello, MAGIC, GT_AUTH_MAGIC));
	close_both();
}

/* An acceptor that rejects the claims of a peer with the right secret closes the connection, and sends no answer. */
TEST(rejected_claims)
{
	open_both(MAGIC, secret);
	start_connection(3, 4);
	struct gt_peer_auth *p = NULL;
	for (double until = gt_clock() + 2; !p && gt_clock() < until;) {
		next_peer(&client, 0.001);
		p = next_peer(&server, 0.001);
	}
	CHECK(p && p->state == GT_AUTH_PROVEN && p->claim[0] == 3 && p->claim[1] == 4);
	if (p)
		gt_auth_close(p);
	for (double until = gt_clock() + 2; conn.state < GT_AUTH_PROVEN && gt_clock() < until;)
		next_peer(&client, 0.001);
	CHECK(conn.state == GT_AUTH_OTHER_SECRET);
	close_both();
}

TEST(acceptor_bytes)
{
	unsigned char hello[HELLO], again[HELLO], proof[PROOF], mac[GT_SHA256_SIZE], answer[GT_SHA256_SIZE];
	struct gt_peer_auth *p;
	open_both(MAGIC, secret);
	int fd = connect_raw();
	CHECK(next_peer(&server, 1) == NULL && read_raw(fd, hello, HELLO) && !memcmp(hello, MAGIC, GT_AUTH_MAGIC));
	write_proof(hello, proof);
	for (int i = 0; i < PROOF - 1; i++) /* one byte at a time */
		CHECK(send(fd, proof + i, 1, 0) == 1 && next_peer(&server, 1) == NULL);
	CHECK(send(fd, proof + PROOF - 1, 1, 0) == 1);
	p = serve();
	CHECK(p && p->state == GT_AUTH_PROVEN && p->claim[0] == 0x01020304 && p->claim[1] == 9);
	int own = p ? gt_auth_take(&server, p, NULL) : -1;
	write_mac("server", hello, proof, mac);
	CHECK(own >= 0 && read_raw(fd, answer, sizeof answer) && !memcmp(mac, answer, sizeof mac));
	close(own);
	close(fd);
	fd = connect_raw(); /* a recorded proof, sent again */
	CHECK(next_peer(&server, 1) == NULL && read_raw(fd, again, HELLO) && memcmp(hello, again, HELLO));
	CHECK(send(fd, proof, PROOF, 0) == PROOF);
	p = serve();
	CHECK(p && p->state == GT_AUTH_OTHER_SECRET);
	if (p)
		gt_auth_close(p);
	CHECK(!read_raw(fd, answer, 1));
	close(fd);
	for (int bit = 0; bit < 8 * PROOF; bit += 7) { /* a single wrong bit */
		fd = connect_raw();
		next_peer(&server, 1);
		CHECK(read_raw(fd, hello, HELLO));
		write_proof(hello, proof);
		proof[bit / 8] ^= (unsigned char)(1 << bit % 8);
		CHECK(send(fd, proof, PROOF, 0) == PROOF);
		p = serve();
		CHECK_MSG(p && p->state == GT_AUTH_OTHER_SECRET, "bit %d", bit);
		if (p)
			gt_auth_close(p);
		close(fd);
	}
	for (int n = 0; n < PROOF; n += 1 + n / 2) { /* the end of the connection at each step */
		fd = connect_raw();
		next_peer(&server, 1);
		CHECK(read_raw(fd, hello, HELLO));
		write_proof(hello, proof);
		CHECK(send(fd, proof, (size_t)n, 0) == n);
		close(fd);
		p = serve();
		CHECK_MSG(p && p->state == GT_AUTH_STRANGER, "%d bytes", n);
		if (p)
			gt_auth_close(p);
	}
	close_both();
}

/* Runs a connector against an acceptor that sends n bytes of its messages, `step` bytes at a time, and then closes the connection if n is
 * not all of them. Returns the connector's state. */
static enum gt_auth_state connect_to_raw(int listener, int n, int step, int wrong)
{
	unsigned char hello[HELLO] = MAGIC, proof[PROOF], answer[GT_SHA256_SIZE];
	start_connection(1, 2);
	int fd = accept(listener, NULL, NULL), all = HELLO + GT_SHA256_SIZE;
	for (int i = 0, k; i < n; i += k) {
		k = step < n - i ? step : n - i;
		if (i < HELLO && k > HELLO - i)
			k = HELLO - i;
		if (i == wrong)
			hello[i] ^= 1;
		CHECK(send(fd, i < HELLO ? hello + i : answer + i - HELLO, (size_t)k, 0) == k);
		for (double until = gt_clock() + 2; conn.state == GT_AUTH_CONNECTS && gt_clock() < until;)
			next_peer(&client, 0.01);
		next_peer(&client, 0.01);
		if (i < HELLO && i + k == HELLO && wrong < 0) {
			for (double until = gt_clock() + 2; conn.state == GT_AUTH_NEEDS_HELLO && gt_clock() < until;)
				next_peer(&client, 0.01);
			CHECK(read_raw(fd, proof, PROOF) && gt_get_u32(proof) == 1 && gt_get_u32(proof + 4) == 2);
			write_mac("client", hello, proof, answer);
			CHECK(!memcmp(answer, proof + 8 + GT_SHA256_SIZE, sizeof answer));
			write_mac("server", hello, proof, answer);
			answer[0] ^= wrong == -2;
		}
	}
	if (n < all)
		close(fd);
	for (double until = gt_clock() + 2; conn.state < GT_AUTH_PROVEN && gt_clock() < until;)
		next_peer(&client, 0.01);
	if (n >= all)
		close(fd);
	return conn.state;
}

TEST(connector_bytes)
{
	int listener = open_listener(), all = HELLO + GT_SHA256_SIZE;
	CHECK(gt_auth_open(&client, MAGIC, secret, sizeof secret, -1, 0));
	for (int step = 1; step <= HELLO; step = step * 3 + 1)
		CHECK_MSG(connect_to_raw(listener, all, step, -1) == GT_AUTH_DONE, "%d bytes at a time: state %d", step, conn.state);
	CHECK(connect_to_raw(listener, all, HELLO, -2) == GT_AUTH_OTHER_SECRET);
	CHECK(connect_to_raw(listener, HELLO, HELLO, 0) == GT_AUTH_STRANGER);
	for (int n = 0; n < all; n += 7) {
		enum gt_auth_state want = n < HELLO ? GT_AUTH_STRANGER : GT_AUTH_OTHER_SECRET;
		CHECK_MSG(connect_to_raw(listener, n, HELLO, -1) == want, "closed after %d bytes: state %d", n, conn.state);
	}
	close(listener); /* and nobody listens */
	gt_auth_close(&conn);
	gt_auth_connect(&client, &conn, (struct sockaddr *)&at, sizeof at, 1, 2);
	for (double until = gt_clock() + 2; conn.state < GT_AUTH_PROVEN && gt_clock() < until;)
		next_peer(&client, 0.01);
	CHECK(conn.state == GT_AUTH_UNREACHABLE && conn.error == ECONNREFUSED && conn.fd >= 0);
	gt_auth_close(&conn);
	gt_auth_shut(&client);
}

/* A further connection closes the oldest one; a peer of the run is served among strangers. */
TEST(more_strangers_than_entries)
{
	int before = count_descriptors(), idle[3 * GT_AUTH_PENDING], fd[2];
	unsigned char key[2][GT_SHA256_SIZE], hello[HELLO];
	open_both(MAGIC, secret);
	for (int i = 0; i < 3 * GT_AUTH_PENDING; i++) {
		idle[i] = connect_raw();
		next_peer(&server, 1);
		CHECK(send(idle[i], "some bytes", (size_t)i % 11, 0) == i % 11);
	}
	while (next_peer(&server, 0.01) || server.events)
		;
	CHECK(count_descriptors() == before + 3 + 4 * GT_AUTH_PENDING); /* the acceptor holds no more than its table */
	CHECK(read_raw(idle[0], hello, HELLO) && !read_raw(idle[0], hello, 1)); /* the oldest are closed, the newest are not */
	CHECK(read_raw(idle[3 * GT_AUTH_PENDING - 1], hello, HELLO) && send(idle[3 * GT_AUTH_PENDING - 1], "", 1, 0) == 1);
	start_connection(1, 2);
	CHECK(run_both(key, fd) == GT_AUTH_PROVEN && fd[1] >= 0);
	close(fd[0]);
	close(fd[1]);
	for (int i = 0; i < 3 * GT_AUTH_PENDING; i++)
		close(idle[i]);
	close_both();
	CHECK(count_descriptors() == before);
}

/* A stranger that sends a byte now and then does not get more time. */
TEST(slow_stranger)
{
	unsigned char hello[HELLO];
	open_both(MAGIC, secret);
	int fd = connect_raw();
	next_peer(&server, 1);
	double start = gt_clock();
	CHECK(read_raw(fd, hello, HELLO));
	server.pending[0].until = start + 0.3; /* instead of GT_AUTH_PENDING_S */
	for (int i = 0; server.pending[0].state != GT_AUTH_NONE && gt_clock() < start + 5; i++) {
		send(fd, "x", (size_t)(i < PROOF - 1), MSG_NOSIGNAL);
		next_peer(&server, 0.01);
	}
	CHECK_MSG(gt_clock() - start < 2, "closed after %.1f s", gt_clock() - start);
	close(fd);
	close_both();
}

/* Without a free descriptor the acceptor closes its oldest pending connection, and reports the error if there is none. */
TEST(no_descriptor_left)
{
	struct rlimit was, low;
	unsigned char hello[HELLO];
	open_both(MAGIC, secret);
	int one = connect_raw();
	next_peer(&server, 1);
	CHECK(read_raw(one, hello, HELLO));
	int two = connect_raw();
	getrlimit(RLIMIT_NOFILE, &was);
	low = (struct rlimit){.rlim_cur = 3, .rlim_max = was.rlim_max};
	CHECK(!setrlimit(RLIMIT_NOFILE, &low));
	next_peer(&server, 1);
	CHECK(!server.error && server.pending[0].state == GT_AUTH_NONE);
	next_peer(&server, 1);
	CHECK(server.error == EMFILE);
	setrlimit(RLIMIT_NOFILE, &was);
	next_peer(&server, 1);
	CHECK(read_raw(two, hello, HELLO) && !read_raw(one, hello, 1));
	close(one);
	close(two);
	close_both();
}

/* Random bytes against both roles, in pieces of random sizes. No one is authenticated, and no descriptor is lost. */
TEST(random_bytes)
{
	int before = count_descriptors();
	unsigned short seed[3] = {26, 3, 1};
	unsigned char junk[256];
	open_both(MAGIC, secret);
	int listener = server.listener;
	for (int round = 0; round < 400; round++) {
		int fd = connect_raw();
		next_peer(&server, 1);
		for (int pieces = (int)(nrand48(seed) % 4); pieces >= 0; pieces--) {
			size_t n = (size_t)(nrand48(seed) % (long)sizeof junk);
			for (size_t i = 0; i < n; i++)
				junk[i] = (unsigned char)nrand48(seed);
			send(fd, junk, n, MSG_NOSIGNAL);
			for (struct gt_peer_auth *p = next_peer(&server, 0.001); p; p = gt_auth_next(&server)) {
				CHECK(p->state == GT_AUTH_OTHER_SECRET || p->state == GT_AUTH_STRANGER);
				gt_auth_close(p);
			}
		}
		close(fd);
	}
	for (struct gt_peer_auth *p; (p = serve());)
		gt_auth_close(p);
	gt_auth_shut(&server);
	for (int round = 0; round < 400; round++) {
		start_connection((uint32_t)round, 2);
		int fd = accept(listener, NULL, NULL);
		struct pollfd ready = {.fd = listener, .events = POLLIN};
		for (; fd < 0 && poll(&ready, 1, 2000) > 0; fd = accept(listener, NULL, NULL))
			;
		size_t n = (size_t)(nrand48(seed) % (long)sizeof junk);
		for (size_t i = 0; i < n; i++)
			junk[i] = (unsigned char)nrand48(seed);
		if (round % 2)
			memcpy(junk, MAGIC, GT_AUTH_MAGIC);
		send(fd, junk, n, MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		for (double until = gt_clock() + 2; conn.state < GT_AUTH_PROVEN && gt_clock() < until;)
			next_peer(&client, 0.01);
		CHECK_MSG(conn.state == GT_AUTH_STRANGER || conn.state == GT_AUTH_OTHER_SECRET, "state %d", conn.state);
		close(fd);
	}
	gt_auth_close(&conn);
	gt_auth_shut(&client);
	close(listener);
	CHECK(count_descriptors() == before);
}

RUN_TESTS()
