/* A communicator against a serial reference: every collective, type and way of lying in memory, bit for bit. */
#include "ew.h"
#include "number.h"
#include "ranks.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- data and the serial reference ------------------------------------------------------------------------------------------- */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 31, x *= 0x7fb5d329728ea185ull, x ^= x >> 27, x *= 0x81dadef4bc2dd44dull;
	return x ^ x >> 33;
}

/* The element i that a rank brings. Floats of different sizes, so that another order of additions gives other bits. */
static double value(uint64_t seed, int rank, size_t i, enum gt_dtype t)
{
	uint64_t h = mix(seed * 1000003 + (uint64_t)rank * 7919 + i * 2654435761u + 1);
	if (t == GT_U8)
		return (double)(h & 255);
	if (t == GT_I32 || t == GT_I64)
		return (double)(int64_t)(h & 0xfffff) - 0x80000;
	return ((double)(h >> 40) / 16777216.0 - 0.5) * (double)(1 << (h & 7));
}

static double brought(uint64_t seed, int rank, size_t i, enum gt_dtype t)
{
	double x;
	number_put(t, &x, 0, value(seed, rank, i, t));
	return gt_load_number(t, &x, 0);
}

/* The tree of comm.h, from its definition. */
static double tree(uint64_t seed, int lo, int n, size_t i, enum gt_dtype t, enum gt_reduction op)
{
	if (n == 1)
		return brought(seed, lo, i, t);
	int h = 1;
	while (2 * h < n)
		h *= 2;
	double a = tree(seed, lo, h, i, t, op), b = tree(seed, lo + h, n - h, i, t, op);
	if (op == GT_REDUCE_MAX)
		return a > b ? a : b;
	return t == GT_F32 || t == GT_BF16 || t == GT_F16 ? (double)((float)a + (float)b) : a + b;
}

static void expect_reduced(void *p, size_t at, uint64_t seed, int world, size_t i, enum gt_dtype t, enum gt_reduction op)
{
	double v = tree(seed, 0, world, i, t, op);
	if (t == GT_U8)
		v = (double)((uint64_t)v & 255);
	number_put(t, p, (int64_t)at, v);
}

/* ---- one call, checked ------------------------------------------------------------------------------------------------------- */
enum place { PRIVATE, SHARED, IN_PLACE, IN_PLACE_PRIVATE, ODD, PLACES };

struct memory {
	char *shared[2], *own[2], *want;
	size_t bytes;
};

static void one_call(struct gt_comm *c, const struct memory *m, enum gt_coll_kind kind, enum gt_dtype t, enum gt_reduction op, size_t count,
                     int root, enum place place, uint64_t seed, struct rank_note *note)
{
	const struct gt_comm_api *api = c->api;
	int rank = c->rank, world = c->world;
	size_t size = gt_dtype_size(t), n = (size_t)world, one = count * size;
	bool many_in = kind == GT_COLL_REDUCE_SCATTER || kind == GT_COLL_SCATTER,
	     many_out = kind == GT_COLL_ALL_GATHER || kind == GT_COLL_GATHER;
	bool in_place = place == IN_PLACE || place == IN_PLACE_PRIVATE;
	/* ODD: some ranks in the segment, some not, and not at a cache line. */
	bool shared = place == SHARED || place == IN_PLACE || (place == ODD && rank % 2);
	char *const *mem = shared ? m->shared : m->own;
	char *in = mem[0] + (place == ODD ? size : 0), *out = mem[1] + (place == ODD ? 3 * size : 0);
	if (in_place)
		out = many_in ? in + (size_t)rank * one : in;
	if (in_place && many_out) {
		out = mem[1];
		in = out + (size_t)rank * one;
	}
	size_t nin = many_in ? count * n : count, nout = many_out ? count * n : count;
	if (!in_place)
		memset(out, 0xee, nout * size);
	for (size_t i = 0; i < nin; i++)
		number_put(t, in, (int64_t)i, value(seed, rank, i, t));
	struct gt_coll x = {.what = "data", .in = in, .out = out, .count = count, .dtype = t, .op = op, .root = root};
	bool gets = true;
	switch (kind) {
	case GT_COLL_ALL_REDUCE:
		RANK_OK(note, api->all_reduce(c, &x, &note->err), note->err);
		for (size_t i = 0; i < count; i++)
			expect_reduced(m->want, i, seed, world, i, t, op);
		break;
	case GT_COLL_REDUCE_SCATTER:
		RANK_OK(note, api->reduce_scatter(c, &x, &note->err), note->err);
		for (size_t i = 0; i < count; i++)
			expect_reduced(m->want, i, seed, world, (size_t)rank * count + i, t, op);
		break;
	case GT_COLL_ALL_GATHER:
	case GT_COLL_GATHER:
		RANK_OK(note, (kind == GT_COLL_GATHER ? api->gather : api->all_gather)(c, &x, &note->err), note->err);
		gets = kind == GT_COLL_ALL_GATHER || rank == root;
		for (size_t r = 0; r < n; r++)
			for (size_t i = 0; i < count; i++)
				number_put(t, m->want, (int64_t)(r * count + i), value(seed, (int)r, i, t));
		break;
	case GT_COLL_BROADCAST:
		RANK_OK(note, api->broadcast(c, &x, &note->err), note->err);
		for (size_t i = 0; i < count; i++)
			number_put(t, m->want, (int64_t)i, value(seed, root, i, t));
		break;
	case GT_COLL_SCATTER:
		RANK_OK(note, api->scatter(c, &x, &note->err), note->err);
		for (size_t i = 0; i < count; i++)
			number_put(t, m->want, (int64_t)i, value(seed, root, (size_t)rank * count + i, t));
		break;
	default:
		RANK_OK(note, api->barrier(c, 0, &note->err), note->err);
		return;
	}
	for (size_t i = 0; gets && i < nout; i++) {
		if (memcmp(out + i * size, m->want + i * size, size))
			rank_fail(note, __FILE__, __LINE__, "%s %s %s, %zu elements, place %d, rank %d of %d, root %d: element %zu is %.17g, not %.17g",
			          gt_coll_name(kind), gt_reduction_name(op), gt_dtype_name(t), count, (int)place, rank, world, root, i,
			          gt_load_number(t, out, (int64_t)i), gt_load_number(t, m->want, (int64_t)i));
	}
	/* What is not in place is not written. */
	for (size_t i = 0; !in_place && i < nin; i += nin / 64 + 1) {
		double keep[2];
		number_put(t, keep, 0, value(seed, rank, i, t));
		RANK_CHECK_MSG(note, !memcmp(in + i * size, keep, size), "%s: the input has changed at %zu", gt_coll_name(kind), i);
	}
}

static struct memory memory(struct gt_comm *c, size_t bytes, struct rank_note *note)
{
	struct memory m = {.bytes = bytes};
	for (int i = 0; i < 2; i++) {
		void *p;
		RANK_OK(note, c->api->buffer(c, bytes + 64, &p, &note->err), note->err);
		RANK_CHECK(note, (uintptr_t)p % 64 == 0 && !memcmp(p, (char *)p + 1, 63));
		m.shared[i] = p;
		m.own[i] = malloc(bytes + 64);
	}
	m.want = malloc(bytes + 64);
	RANK_CHECK(note, m.own[0] && m.own[1] && m.want);
	return m;
}

static void forget(struct memory *m)
{
	free(m->own[0]), free(m->own[1]), free(m->want);
}

/* ---- every combination ------------------------------------------------------------------------------------------------------- */
static void every_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)rank;
	/* One, odd, about the limit of what goes with the first phase (8 KiB), about a stage's half (128 KiB): for some type each. */
	static const size_t sizes[] = {0, 1, 7, 513, 2048, 2049, 4099, 33001};
	size_t most = *(const size_t *)ctx;
	struct memory m = memory(c, most * 8 * (size_t)c->world, note);
	for (int kind = 0; kind < GT_COLL_BARRIER; kind++) {
		for (int t = 0; t < GT_DTYPE_COUNT; t++) {
			for (size_t s = 0; s < sizeof sizes / sizeof sizes[0] && sizes[s] <= most; s++) {
				if (sizes[s] > 5000 && t != GT_F32 && t != GT_BF16)
					continue; /* enough of the same */
				for (int place = 0; place < PLACES; place++) {
					int root = (int)(mix((uint64_t)note->flag) % (uint64_t)c->world);
					enum gt_reduction op = note->flag % 3 == 2 ? GT_REDUCE_MAX : GT_REDUCE_SUM;
					one_call(c, &m, kind, t, op, sizes[s], root, place, (uint64_t)++note->flag, note);
				}
			}
		}
	}
	forget(&m);
}

static void every(int world, size_t most)
{
	struct ranks r = {.world = world, .absent = -1, .body = every_body, .ctx = &most, .by_path = world == 3};
	ranks_check(&r);
	printf("# communicator, %d ranks: %d checked calls\n", world, r.note[0].flag);
	ranks_free(&r);
}

TEST(comm_every_call_1)
{
	every(1, 33001);
}
TEST(comm_every_call_2)
{
	every(2, 33001);
}
TEST(comm_every_call_3)
{
	every(3, 33001);
}
TEST(comm_every_call_4)
{
	every(4, 33001);
}
TEST(comm_every_call_8)
{
	every(8, 4099);
}
TEST(comm_every_call_13)
{
	every(13, 513);
}

static void large_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)rank, (void)ctx;
	const size_t count = 1234577; /* 4.9 MB of f32 */
	struct memory m = memory(c, count * 4 * (size_t)c->world, note);
	for (int kind = 0; kind < GT_COLL_BARRIER; kind++) {
		one_call(c, &m, kind, GT_F32, GT_REDUCE_SUM, count, c->world - 1, PRIVATE, 1, note);
		one_call(c, &m, kind, GT_F32, GT_REDUCE_SUM, count, 0, IN_PLACE, 2, note);
	}
	forget(&m);
}

TEST(comm_megabytes)
{
	for (int world = 2; world <= 3; world++) {
		struct ranks r = {.world = world, .absent = -1, .body = large_body};
		ranks_check(&r);
		ranks_free(&r);
	}
}

/* Thousands of small and large calls in an order that only a common seed knows. */
static void random_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	int calls = *(const int *)ctx;
	struct memory m = memory(c, 20000 * 4 * (size_t)c->world, note);
	for (int i = 0; i < calls; i++) {
		uint64_t h = mix((uint64_t)i + 77);
		size_t count = h % 50 == 0 ? 20000 : h % 10 == 0 ? 3000 : (h >> 8) % 70;
		if (mix(h + (uint64_t)rank) % 300 == 0)
			usleep(500); /* ranks drift apart */
		one_call(c, &m, (enum gt_coll_kind)(h >> 20) % GT_COLL_COUNT, (h >> 30) % 2 ? GT_F32 : GT_BF16, (h >> 31) % 2, count,
		         (int)((h >> 40) % (uint64_t)c->world), (enum place)((h >> 50) % PLACES), h, note);
	}
	forget(&m);
}

TEST(comm_random_sequence)
{
	for (int world = 2; world <= 8; world *= 2) {
		int calls = world == 8 ? 1500 : 5000;
		struct ranks r = {.world = world, .absent = -1, .body = random_body, .ctx = &calls};
		ranks_check(&r);
		ranks_free(&r);
	}
}

/* ---- the order of additions -------------------------------------------------------------------------------------------------- */
static void order_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)ctx;
	/* 2^24 + 1 is not a float. In the tree (2^24 + 1) + (1 + 1) = 2^24 + 2; from left to right it would be 2^24. */
	float x = rank == 0 ? 0x1p24f : 1.0f, nan = rank == 2 ? NAN : (float)rank;
	uint8_t u = 200;
	struct gt_coll call = {.what = "x", .in = &x, .out = &x, .count = 1, .dtype = GT_F32};
	RANK_OK(note, c->api->all_reduce(c, &call, &note->err), note->err);
	RANK_CHECK_MSG(note, x == 0x1p24f + 2, "%.9g", x);
	call.in = call.out = &nan;
	call.op = GT_REDUCE_MAX;
	RANK_OK(note, c->api->all_reduce(c, &call, &note->err), note->err);
	RANK_CHECK(note, nan != nan);
	call = (struct gt_coll){.what = "u", .in = &u, .out = &u, .count = 1, .dtype = GT_U8};
	RANK_OK(note, c->api->all_reduce(c, &call, &note->err), note->err);
	RANK_CHECK(note, u == (uint8_t)800);
}

TEST(comm_sum_is_a_tree)
{
	struct ranks r = {.world = 4, .absent = -1, .body = order_body};
	ranks_check(&r);
	ranks_free(&r);
}

/* Eight shards on 1, 2, 4, 8 ranks: each rank adds its shards by the same tree, then the ranks add theirs. Equal bits. */
static void shard_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)ctx;
	float part[8][97];
	int n = 8 / c->world;
	for (int s = 0; s < n; s++)
		for (size_t i = 0; i < 97; i++)
			part[s][i] = (float)value(5, rank * n + s, i, GT_F32);
	for (int step = 1; step < n; step *= 2)
		for (int s = 0; s < n; s += 2 * step)
			for (size_t i = 0; i < 97; i++)
				part[s][i] += part[s + step][i];
	struct gt_coll call = {.what = "shards", .in = part[0], .out = part[0], .count = 97, .dtype = GT_F32};
	RANK_OK(note, c->api->all_reduce(c, &call, &note->err), note->err);
	for (size_t i = 0; i < 97; i++)
		RANK_CHECK(note, part[0][i] == (float)tree(5, 0, 8, i, GT_F32, GT_REDUCE_SUM));
}

TEST(comm_shards_do_not_see_the_world)
{
	for (int world = 1; world <= 8; world *= 2) {
		struct ranks r = {.world = world, .absent = -1, .body = shard_body};
		ranks_check(&r);
		ranks_free(&r);
	}
}

/* ---- sends and receives ------------------------------------------------------------------------------------------------------ */
static void fill(float *p, size_t n, int from, int to, int k)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (float)(mix((uint64_t)(from * 64 + to) * 4096 + (uint64_t)k + i * 65537) & 0xffff);
}

static void swap_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)ctx;
	/* 300,000 floats: larger than a ring of 64 KiB, both ways at once. 16,000: nearly as large, after some that end in its middle. */
	static const size_t sizes[] = {0, 1, 31, 33, 5000, 300000, 3, 2000, 16000, 9000, 16384};
	enum { N = sizeof sizes / sizeof sizes[0] };
	int world = c->world, right = (rank + 1) % world, left = (rank + world - 1) % world;
	float *mem = malloc(4 * 300000 * sizeof *mem), *want = mem + 900000;
	RANK_CHECK(note, mem);
	for (int k = 0; k < 5 * N; k++) {
		size_t n = sizes[k % N];
		fill(mem, n, rank, right, k);
		struct gt_p2p x[] = {{.what = "right", .sends = true, .peer = right, .send = mem, .count = n, .dtype = GT_F32},
		                     {.what = "left", .sends = true, .peer = left, .send = mem, .count = n, .dtype = GT_F32},
		                     {.what = "right", .peer = left, .recv = mem + 300000, .count = n, .dtype = GT_F32},
		                     {.what = "left", .peer = right, .recv = mem + 600000, .count = n, .dtype = GT_F32}};
		RANK_OK(note, c->api->exchange(c, x, 4, 0, &note->err), note->err);
		fill(want, n, left, rank, k);
		RANK_CHECK_MSG(note, !memcmp(want, mem + 300000, n * sizeof *mem), "message %d from the left", k);
		fill(want, n, right, (right + 1) % world, k);
		RANK_CHECK_MSG(note, !memcmp(want, mem + 600000, n * sizeof *mem), "message %d from the right", k);
		if (k % 4 == 0)
			RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err); /* collectives in between do not mix with them */
	}
	free(mem);
}

TEST(comm_exchange_around_a_ring)
{
	static const int worlds[] = {1, 2, 3, 8};
	for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
		/* On one and two ranks left and right are the same peer: the order of the list decides. */
		struct ranks r = {.world = worlds[i], .absent = -1, .body = swap_body, .pair_bytes = 64 << 10};
		ranks_check(&r);
		ranks_free(&r);
	}
}

/* A pipeline of three stages, whose messages follow in order; and sends that run ahead: a send within pair_bytes does not wait. */
static void pipe_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)ctx;
	enum { N = 2000, M = 16 };
	float x[N], want[N];
	for (int k = 0; k < 3000; k++) {
		size_t n = (size_t)(k * 7919 % N);
		if (rank > 0)
			RANK_OK(note, gt_comm_recv(c, rank - 1, x, n, GT_F32, "act", 0, &note->err), note->err);
		else
			fill(x, n, 1, 2, k);
		if (rank < c->world - 1)
			RANK_OK(note, gt_comm_send(c, rank + 1, x, n, GT_F32, "act", 0, &note->err), note->err);
		fill(want, n, 1, 2, k);
		RANK_CHECK_MSG(note, !memcmp(want, x, n * sizeof *x), "message %d", k);
	}
	for (int k = 0; k < M && rank == 0; k++)
		RANK_OK(note, gt_comm_send(c, 1, x, N, GT_F32, "ahead", 0, &note->err), note->err);
	RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err); /* rank 1 receives only after rank 0 has sent all */
	for (int k = 0; k < M && rank == 1; k++)
		RANK_OK(note, gt_comm_recv(c, 0, x, N, GT_F32, "ahead", 0, &note->err), note->err);
	struct gt_p2p self[] = {{.peer = rank, .recv = want, .count = N, .dtype = GT_F32},
	                        {.sends = true, .peer = rank, .send = x, .count = N, .dtype = GT_F32}};
	RANK_OK(note, c->api->exchange(c, self, 2, 0, &note->err), note->err);
	RANK_CHECK(note, !memcmp(want, x, sizeof x));
}

TEST(comm_pipeline)
{
	struct ranks r = {.world = 3, .absent = -1, .body = pipe_body};
	ranks_check(&r);
	ranks_free(&r);
}

/* ---- split ------------------------------------------------------------------------------------------------------------------- */
static void split_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)ctx;
	const struct gt_comm_api *api = c->api;
	struct gt_comm *row, *col, *some;
	int y = rank / 3, x = rank % 3;
	RANK_OK(note, api->split(c, "row", y, x, &row, &note->err), note->err);
	RANK_OK(note, api->split(c, "column", x, -y, &col, &note->err), note->err); /* reversed */
	RANK_OK(note, api->split(c, "some", rank == 4 ? -1 : 7, 0, &some, &note->err), note->err);
	RANK_CHECK(note, row->world == 3 && row->rank == x && col->world == 2 && col->rank == 1 - y && !strcmp(row->name, "row"));
	RANK_CHECK(note, rank == 4 ? !some : some->world == 5 && some->rank == rank - (rank > 4));
	for (int k = 0; k < 500; k++) {
		int64_t v = 1 << rank, w = rank, all[3] = {0};
		struct gt_coll call = {.what = "v", .in = &v, .out = &v, .count = 1, .dtype = GT_I64};
		RANK_OK(note, api->all_reduce(row, &call, &note->err), note->err);
		RANK_CHECK(note, v == 7 << 3 * y);
		RANK_OK(note, api->all_reduce(col, &call, &note->err), note->err); /* of the rows' sums: all */
		RANK_CHECK(note, v == 63);
		call = (struct gt_coll){.in = &w, .out = all, .count = 1, .dtype = GT_I64};
		RANK_OK(note, api->all_gather(col, &call, &note->err), note->err);
		RANK_CHECK(note, all[0] == x + 3 && all[1] == x);
		if (some)
			RANK_OK(note, api->barrier(some, 0, &note->err), note->err);
	}
	struct memory m = memory(row, 200000, note);
	one_call(row, &m, GT_COLL_ALL_REDUCE, GT_F32, GT_REDUCE_SUM, 16001, 0, IN_PLACE, 3, note);
	one_call(col, &m, GT_COLL_ALL_GATHER, GT_F32, GT_REDUCE_SUM, 16001, 0, IN_PLACE, 4, note);
	forget(&m);
	api->close(some), api->close(col), api->close(row);
}

TEST(comm_split_into_a_grid)
{
	struct ranks r = {.world = 6, .absent = -1, .body = split_body};
	ranks_check(&r);
	ranks_free(&r);
}

/* ---- cost -------------------------------------------------------------------------------------------------------------------- */
static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void idle_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)ctx;
	RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err);
	double cpu = cpu_seconds();
	char x;
	if (rank == 0)
		usleep(1000000);
	if (rank == 1) {
		RANK_OK(note, gt_comm_recv(c, 2, &x, 1, GT_U8, "x", 0, &note->err), note->err);
	} else if (rank == 2) {
		usleep(500000);
		RANK_OK(note, gt_comm_send(c, 1, &x, 1, GT_U8, "x", 0, &note->err), note->err);
	}
	RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err);
	note->took = cpu_seconds() - cpu;
}

/* Ranks that wait for a second sleep. 5%: 50 slices of a few µs are a tenth of that. */
TEST(comm_waiting_costs_nothing)
{
	struct ranks r = {.world = 8, .absent = -1, .body = idle_body};
	ranks_check(&r);
	for (int i = 0; i < 8; i++)
		CHECK_MSG(r.note[i].took < 0.05, "rank %d used %.3f s of processor time in a second of waiting", i, r.note[i].took);
	ranks_free(&r);
}

static void speed_body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	(void)rank, (void)ctx;
	const size_t n = 669706; /* the gradients of the 784-512-512-10 MLP */
	struct memory m = memory(c, n * 4, note);
	memset(m.own[0], 0, n * 4), memset(m.shared[0], 0, n * 4), memset(m.own[1], 1, n * 4);
	struct gt_coll x = {.what = "gradients", .in = m.shared[0], .out = m.shared[0], .count = n, .dtype = GT_F32};
	double best = 1e9, copy = 1e9, small = 1e9;
	for (int k = 0; k < 60; k++) {
		RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err);
		double t = ranks_now();
		RANK_OK(note, c->api->all_reduce(c, &x, &note->err), note->err);
		t = ranks_now() - t;
		best = t < best ? t : best;
		t = ranks_now();
		memcpy(m.own[0], m.own[1], n * 4);
		t = ranks_now() - t;
		copy = t < copy ? t : copy;
		x.count = 1;
		t = ranks_now();
		for (int i = 0; i < 100; i++)
			RANK_OK(note, c->api->all_reduce(c, &x, &note->err), note->err);
		t = (ranks_now() - t) / 100;
		small = t < small ? t : small;
		x.count = n;
	}
	if (rank == 0) {
		note->at = best;
		note->took = copy;
		memcpy(note->why, &small, sizeof small);
	}
	for (size_t i = 0; i < n; i++)
		RANK_CHECK(note, ((float *)x.out)[i] == 0);
	forget(&m);
}

TEST(comm_speed)
{
	struct ranks r = {.world = 2, .absent = -1, .body = speed_body};
	ranks_check(&r);
	double small;
	memcpy(&small, r.note[0].why, sizeof small);
	printf("# all-reduce of 2.68 MB, 2 ranks, best of 60: %.1f us, %.2f of a memcpy of the same bytes; of 4 bytes: %.2f us\n",
	       r.note[0].at * 1e6, r.note[0].at / r.note[0].took, small * 1e6);
	ranks_free(&r);
}

RUN_TESTS()
