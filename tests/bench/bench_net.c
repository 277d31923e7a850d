/* An all-reduce of gtrain's communicator between hosts, whose ranks are in network namespaces (bench_net.sh makes them):
 *     bench_net BYTES TIMES NETNS=ADDRESS...       one rank in each namespace; prints the seconds of one all-reduce, the mean of TIMES */
#include "ranks.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct work {
	size_t bytes;
	int times;
	char **host; /* NETNS=ADDRESS of each rank */
};

static const char *enter(int rank, const void *ctx)
{
	const struct work *w = ctx;
	char path[256], *end = strchr(w->host[rank], '=');
	snprintf(path, sizeof path, "/run/netns/%.*s", end ? (int)(end - w->host[rank]) : 0, w->host[rank]);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!end || fd < 0 || setns(fd, CLONE_NEWNET)) {
		perror(path);
		_exit(1);
	}
	close(fd);
	return end + 1;
}

static void body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	const struct work *w = ctx;
	size_t n = w->bytes / sizeof(float);
	void *data;
	RANK_OK(note, c->api->buffer(c, w->bytes, &data, &note->err), note->err);
	struct gt_coll x = {.what = "gradients", .in = data, .out = data, .count = n, .dtype = GT_F32};
	double start = 0;
	for (int i = -2; i < w->times; i++) {
		if (!i)
			start = ranks_now();
		RANK_OK(note, c->api->all_reduce(c, &x, &note->err), note->err);
	}
	if (rank == 0)
		printf("%.9f\n", (ranks_now() - start) / w->times);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 64;
	setenv("GTRAIN_TEST_COMM", "gloo", 1);
	struct work w = {.bytes = strtoull(argv[1], NULL, 10) / 4 * 4, .times = atoi(argv[2]), .host = argv + 3};
	struct ranks r = {.world = argc - 3, .absent = -1, .body = body, .enter = enter, .ctx = &w};
	ranks_run(&r);
	for (int i = 0; i < r.world; i++) {
		if (!r.note[i].status)
			continue;
		fprintf(stderr, "rank %d: %s\n", i, r.note[i].why);
		return 1;
	}
	ranks_free(&r);
	return 0;
}
