/* libFuzzer target: messages of hosts that hold the token of an elastic run (make fuzz F=members). Bit 0 of the first byte: they arrive at
 * another host than host 0. Then records follow: how (1 byte) and, for a message, what it contains:
 *
 *     how % 8  0 to 3  a message from host 1 + how / 8 % 2: kind, node, nnodes, nproc (1 byte each), code (4 bytes), 16 bytes that fill
 *                      `host` and `why` without a NUL, if the first one is not 0. how / 16: right identity, right number, exact
 *              4       a frame of how / 8 bytes
 *              5       host 0 starts an attempt; the other host ends its own
 *              6       host 0 settles the attempt; the other host begins the one that it was told
 *              7       host 0 finishes the run; the other host leaves
 *
 * No message may lead to a text without an end, to a host that takes part twice, or to more hosts than there are. */
#include "base/clock.h"
#include "base/descriptors.h"
#include "fuzz_file.h"
#include "launch/members_parts.h"
#include <fcntl.h>
#include <math.h>
#include <string.h>

enum { HOSTS = 3, RECORDS_MAX = 60 };

static const unsigned char members_token[GT_TOKEN_SIZE] = "a token for the fuzzer, 32 bytes", members_identity[GT_TOKEN_SIZE] = "digest";

static void count_line(void *user, const char *line)
{
	FUZZ_ASSERT(strlen(line) < 1800);
	++*(int *)user;
}

struct members_side {
	struct gt_launch_spec spec;
	struct gt_members m;
	struct member_conn conn[HOSTS];
	struct gt_host_record record[HOSTS];
	struct gt_rdv_conn peer[HOSTS]; /* the other ends of the connections */
	int lines;
};

/* Connects host i as gt_members_accept and gt_members_join do after the handshake. */
static void connect_member(struct members_side *s, int i)
{
	int fd[2];
	FUZZ_ASSERT(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	s->conn[i] = (struct member_conn){.c = {.fd = fd[0], .key = {1, (unsigned char)i}}, .heard = gt_clock(), .ready = s->spec.node != 0};
	s->peer[i] = (struct gt_rdv_conn){.fd = fd[1], .key = {1, (unsigned char)i}};
	gt_members_watch(&s->m, fd[0], i);
}

static void open_side(struct members_side *s, bool host0)
{
	*s = (struct members_side){.spec = {.nproc = 2, .node = host0 ? 0 : 1, .nnodes = HOSTS, .min_nodes = 1, .token = members_token,
	                                    .identity = members_identity, .timeout_s = 60, .backoff_s = 0.02, .say = count_line}};
	s->spec.user = &s->lines;
	s->m = (struct gt_members){.spec = &s->spec, .epoll = epoll_create1(EPOLL_CLOEXEC), .listener = -1, .conn = s->conn, .host = "gpu0",
	                           .record = s->record, .auth = {.epoll = -1}, .beat_at = INFINITY, .state = GT_MEMBER_WAITS};
	/* Another host would look for host 0 after a loss of its connection; while its ranks may still run, it does not. */
	s->m.search.again = INFINITY;
	for (int i = 0; i < HOSTS; i++) {
		s->conn[i].c.fd = s->peer[i].fd = -1;
		if (host0 ? i > 0 : i == 0)
			connect_member(s, i);
	}
}

static void close_side(struct members_side *s)
{
	for (int i = 0; i < HOSTS; i++) {
		gt_fd_close(&s->conn[i].c.fd);
		gt_fd_close(&s->peer[i].fd);
	}
	gt_fd_close(&s->m.epoll);
}

static void check_side(struct members_side *s)
{
	struct gt_host_message out;
	struct gt_members *m = &s->m;
	if (gt_members_poll(m, &out)) {
		FUZZ_ASSERT(out.kind == GT_HOST_FAILS || out.kind == GT_HOST_STOPS);
		FUZZ_ASSERT(memchr(out.host, 0, sizeof out.host) && memchr(out.why, 0, sizeof out.why) && out.code > 0);
		FUZZ_ASSERT(out.kind != GT_HOST_STOPS || out.code < 128);
	}
	for (int i = 0; i < gt_members_count(m); i++) {
		const struct member_conn *p = &s->conn[i];
		FUZZ_ASSERT(memchr(p->host, 0, sizeof p->host) && memchr(s->record[i].why, 0, sizeof s->record[i].why));
		FUZZ_ASSERT(s->spec.node || (!(p->ready && p->busy) && (p->c.fd >= 0 || (!p->ready && !p->busy))));
		FUZZ_ASSERT(s->record[i].failures >= 0 && s->record[i].failures <= RECORDS_MAX);
	}
	FUZZ_ASSERT(gt_members_ready(m) + gt_members_busy(m) < HOSTS && memchr(m->changes, 0, sizeof m->changes));
	gt_members_regroup(m);
}

/* Sends what follows in the input as a message. Returns its number of bytes in the input. */
static size_t send_one(struct members_side *s, int how, const uint8_t *data, size_t size)
{
	bool host0 = s->spec.node == 0;
	struct gt_rdv_conn *peer = &s->peer[host0 ? 1 + how / 8 % 2 : 0];
	struct member_message w = {.step = how};
	uint8_t field[24] = {0};
	size_t n = size < sizeof field ? size : sizeof field;
	memcpy(field, data, n);
	w.kind = field[0];
	w.node = (int8_t)field[1];
	w.nnodes = (int8_t)field[2];
	w.nproc = (int8_t)field[3];
	memcpy(&w.code, field + 4, sizeof w.code);
	w.exact = how / 64 % 2;
	if (how / 16 % 2)
		memcpy(w.data, members_identity, sizeof w.data);
	else if (how / 32 % 2)
		memcpy(w.data, s->m.number, sizeof w.data);
	for (size_t i = 0; field[8] && i < sizeof w.host; i++)
		w.host[i] = (char)(field[8 + i % 16] | 1);
	for (size_t i = 0; field[8] && i < sizeof w.why; i++)
		w.why[i] = (char)(field[8 + i % 16] | 1);
	bool whole = how % 8 != 4, refused = w.kind == MEMBER_JOIN && (w.nproc != s->spec.nproc || how / 16 % 2 == 0);
	gt_rdv_send_frame(peer, !host0, &w, whole ? sizeof w : (size_t)how / 8, gt_clock());
	if (host0 && (!whole || refused)) /* host 0 waits until a host that it refuses has closed the connection */
		shutdown(peer->fd, SHUT_WR);
	return n;
}

static void act(struct members_side *s, int how)
{
	struct gt_member_start start;
	struct gt_launch_from from = {.step = how / 8 - 1, .exact = how > 100};
	struct gt_launch_end end = {.code = (enum gt_code)(how / 8), .rank = -1, .why = "why"};
	struct gt_err e = {0};
	enum gt_code code;
	bool host0 = s->spec.node == 0;
	if (how % 8 == 5 && host0) {
		FUZZ_ASSERT(gt_members_start(&s->m, &from, &start, &e) == GT_OK && start.nnodes >= 1 && start.nnodes <= HOSTS);
	} else if (how % 8 == 5) {
		gt_members_report(&s->m, &end);
	} else if (how % 8 == 6 && host0) {
		gt_members_settle(&s->m, how / 8 % 2);
	} else if (how % 8 == 6) {
		gt_members_told(&s->m, &start);
	} else if (host0) {
		gt_members_finish(&s->m, (enum gt_code)(how / 8), "rank 1 has failed");
	} else {
		FUZZ_ASSERT(strlen(gt_members_last(&s->m, &code)) < sizeof s->m.last.why);
		gt_members_leave(&s->m, (enum gt_code)(how / 8), "this host leaves");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct members_side side;
	if (!size)
		return 0;
	open_side(&side, !(data[0] & 1));
	size_t at = 1;
	for (int records = 0; at < size && records < RECORDS_MAX; records++) {
		int how = data[at++];
		if (how % 8 > 4)
			act(&side, how);
		else
			at += send_one(&side, how, data + at, how % 8 == 4 ? 0 : size - at);
		check_side(&side);
	}
	for (int i = 0; i < HOSTS; i++)
		if (side.peer[i].fd >= 0)
			shutdown(side.peer[i].fd, SHUT_WR);
	check_side(&side);
	check_side(&side);
	close_side(&side);
	return 0;
}
