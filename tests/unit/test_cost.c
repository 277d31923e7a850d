/* The cost model (report/cost_link.h, report/cost_times.h): links as text, closed forms of collectives and messages, times by size. */
#include "base/fileio.h"
#include "report/cost_link.h"
#include "report/cost_times.h"
#include "test.h"
#include <math.h>
#include <string.h>

static const double a = 1e-3, b = 1e-9; /* latency; seconds for a byte of data */
static const struct gt_link nccl = {.byte_s = 1e-9, .latency_s = 1e-3, .transport = GT_LINK_NCCL},
                            gloo = {.byte_s = 1e-9 * 1448 / 1538, .latency_s = 1e-3}; /* 1,448 bytes of data in 1,538 bytes of Ethernet */

static void check_near(double got, double expected, int line)
{
	if (fabs(got - expected) > 1e-12 + 1e-9 * fabs(expected)) /* rounding of a few operations */
		test_fail(__FILE__, line, "got %.12g s, expected %.12g s", got, expected);
}
#define NEAR(got, expected) check_near(got, expected, __LINE__)

TEST(parse_links)
{
	static const struct { const char *text; double bandwidth, latency; } good[] = {
		{"100Gbit,5us", 12.5e9, 5e-6}, {"1Gbit,1ms", 125e6, 1e-3}, {"2.5GB,0s", 2.5e9, 0}, {"800Kbit,20ns", 1e5, 20e-9},
		{"1e-3TB,1s", 1e9, 1}};
	static const char *const bad[] = {"", "100Gbit", "100Gbit,", ",5us", "100,5us", "100Gbit,5", "100Gbit,5us,", "0Gbit,5us", "-1Gbit,5us",
	                                  "1Gbit,-5us", "nanGbit,5us", "infGbit,5us", "1Gbits,5us", "1gbit,5us", "1Gbit 5us"};
	struct gt_link l;
	struct gt_err e;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		CHECK_OK(gt_link_parse(good[i].text, &l, &e), e);
		NEAR(l.byte_s, 1 / good[i].bandwidth);
		NEAR(l.latency_s, good[i].latency);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		CHECK_MSG(gt_link_parse(bad[i], &l, &e) == GT_EUSAGE, "%s was accepted", bad[i]);
}

TEST(time_collectives)
{
	double n = 8, large = 1e9, small = 1e3, call = a + 7 * 64 * b;
	NEAR(gt_link_collective(&nccl, GT_COLL_ALL_REDUCE, 8, large), 14 * a + 14. / 8 * large * b); /* the ring */
	NEAR(gt_link_collective(&nccl, GT_COLL_ALL_REDUCE, 8, small), 6 * a + 2 * small * b);        /* the tree */
	NEAR(gt_link_collective(&nccl, GT_COLL_REDUCE_SCATTER, 8, large / n), 7 * a + 7. / 8 * large * b);
	NEAR(gt_link_collective(&nccl, GT_COLL_ALL_GATHER, 8, large / n), 7 * a + 7. / 8 * large * b);
	NEAR(gt_link_collective(&gloo, GT_COLL_ALL_REDUCE, 8, large), call + 2 * a + 14. / 8 * large * b);
	NEAR(gt_link_collective(&gloo, GT_COLL_BROADCAST, 8, large), call + 2 * a + 14. / 8 * large * b);
	/* one piece: its result cannot travel while it arrives */
	NEAR(gt_link_collective(&gloo, GT_COLL_ALL_REDUCE, 8, 1e6), call + 3 * a + 14. / 8 * 1e6 * b);
	NEAR(gt_link_collective(&gloo, GT_COLL_ALL_GATHER, 8, large / n), call + 2 * a + 7. / 8 * large * b);
	NEAR(gt_link_collective(&gloo, GT_COLL_REDUCE_SCATTER, 8, large / n), call + 2 * a + 7. / 8 * large * b);
	NEAR(gt_link_collective(&gloo, GT_COLL_ALL_REDUCE, 8, small), call + 7 * small * b); /* with the description of the call */
	NEAR(gt_link_collective(&gloo, GT_COLL_REDUCE_SCATTER, 8, small), call + 7 * 8 * small * b);
	NEAR(gt_link_collective(&gloo, GT_COLL_BARRIER, 8, 0), call);
	for (int k = 0; k < GT_COLL_COUNT; k++) {
		NEAR(gt_link_collective(&gloo, (enum gt_coll_kind)k, 1, large), 0);
		NEAR(gt_link_collective(&nccl, (enum gt_coll_kind)k, 1, large), 0);
	}
}

TEST(time_messages)
{
	double busy = 0, large = 1e6, t = large * b;
	NEAR(gt_link_message(&nccl, 1, 0, large, &busy), 1 + t + a);
	NEAR(busy, 1 + t);
	NEAR(gt_link_message(&nccl, 1, 0, large, &busy), 1 + 2 * t + a); /* behind the first one */
	NEAR(gt_link_message(&nccl, 1, 5, large, &busy), 5);             /* it has arrived before the receiver asks for it */
	busy = 0;
	NEAR(gt_link_message(&gloo, 1, 0, 100, &busy), 1 + 100 * b + a);
	NEAR(gt_link_message(&gloo, 1, 0, large, &busy), 1 + (a + 64 * b) + a + t + a); /* head, announcement, data */
	busy = 0;
	NEAR(gt_link_message(&gloo, 1, 5, large, &busy), 5 + a + t + a); /* the receiver announces when it asks for the message */
}

TEST(find_times)
{
	struct gt_time_row row[] = {{"linear", "fc2", 8, 1, 7}, {"linear", "fc1", 32, 1, 5}, {"linear", "fc1", 8, 3, 1},
	                            {"linear", "fc1", 8, 1, 5}, {"check", "step", 0, 1, 9},  {"linear", "fc1", 16, 1, 3}};
	struct gt_times t = {.row = row, .n = 6};
	double s = 0;
	bool scaled;
	gt_times_sort(&t);
	CHECK(t.n == 5);
	static const struct { const char *op, *layer; int64_t size; double seconds; bool scaled; } want[] = {
		{"linear", "fc1", 8, 2, false},  /* the mean of four calls */
		{"linear", "fc1", 16, 3, false}, {"linear", "fc1", 12, 2.5, true},  {"linear", "fc1", 64, 9, true},
		{"linear", "fc1", 4, 1.5, true}, {"linear", "fc2", 16, 14, true}, /* one size: in proportion */
		{"linear", "fc2", 4, 3.5, true}, {"check", "step", 0, 9, false}};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		CHECK(gt_times_find(&t, want[i].op, want[i].layer, want[i].size, &s, &scaled));
		NEAR(s, want[i].seconds);
		CHECK_MSG(scaled == want[i].scaled, "%s of %s for %d", want[i].op, want[i].layer, (int)want[i].size);
	}
	CHECK(!gt_times_find(&t, "linear", "fc3", 8, &s, &scaled) && !gt_times_find(&t, "conv", "fc1", 8, &s, &scaled));
}

static enum gt_code read_times(const char *text, struct gt_times *t, struct gt_err *e)
{
	static struct gt_arena *arena;
	char path[600];
	gt_arena_close(arena);
	CHECK_OK(gt_arena_open(&arena, e), *e);
	snprintf(path, sizeof path, "%s/times.json", test_tmpdir());
	CHECK_OK(gt_file_replace(path, 0600, text, strlen(text), e), *e);
	return gt_times_read(arena, path, t, e);
}

/* A file of times is written by hand or by another program, too. The mean of two rows with infinitely many calls would be no number. */
TEST(reject_impossible_times)
{
	static const char good[] = "{\"kernels\": [{\"op\": \"a\", \"layer\": \"b\", \"size\": 4, \"calls\": 2, \"ms\": 3}]}\n";
	static const char *const bad[] = {
		"", "\n", "{", "{}", "[]", "{\"kernels\": []}", "{\"kernels\": [{}]}", "{\"kernels\": {\"a\": 1}}",
		"{\"kernels\": [{\"op\": \"a\", \"size\": 4, \"calls\": 1e999, \"ms\": 3}]}",
		"{\"kernels\": [{\"op\": \"a\", \"size\": 4, \"calls\": 0, \"ms\": 3}]}",
		"{\"kernels\": [{\"op\": \"a\", \"size\": 4, \"calls\": -2, \"ms\": -3}]}",
		"{\"kernels\": [{\"op\": \"a\", \"size\": 4, \"calls\": 1e-300, \"ms\": 1e300}]}",
		"{\"kernels\": [{\"op\": \"a\", \"size\": -4, \"calls\": 1, \"ms\": 3}]}",
		"{\"kernels\": [{\"op\": \"a\", \"size\": 1e17, \"calls\": 1, \"ms\": 3}]}"};
	struct gt_times t;
	struct gt_err e;
	char text[1000];
	CHECK_OK(read_times(good, &t, &e), e);
	CHECK(t.n == 1 && t.row[0].seconds == 1.5e-3);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK_MSG(read_times(bad[i], &t, &e) == GT_EDATA, "%s was accepted", bad[i]);
		snprintf(text, sizeof text, "%s%s", good, bad[i]);
		CHECK_MSG(i < 2 || read_times(text, &t, &e) == GT_EDATA, "%s was accepted", text);
	}
}

RUN_TESTS()
