/* Collectives between CPU ranks of this host against what its memory gives: make build/tests/bench/bench_comm && build/tests/bench/bench_comm
 * [ranks]. Every rank reads and writes 2.5 times the data of an all-reduce in place: its part of each rank's, its sum, and the others'. The floor
 * is the same traffic by ranks that do not wait for each other: c = a + b over as many bytes, all ranks at once. */
#include "ranks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
	size_t bytes;
	int times;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, by_value);
	return v[n / 2];
}

/* note->took: the collective's seconds, note->at: the floor's. */
static void body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	const struct work *w = ctx;
	size_t n = w->bytes / sizeof(float), part = n * 5 / 2 / 3;
	double *t = calloc((size_t)w->times, sizeof *t);
	float *a = calloc(part, sizeof *a), *b = calloc(part, sizeof *b), *sum = calloc(part, sizeof *sum);
	void *data;
	(void)rank;
	RANK_OK(note, c->api->buffer(c, w->bytes, &data, &note->err), note->err);
	struct gt_coll x = {.what = "gradients", .in = data, .out = data, .count = n, .dtype = GT_F32};
	for (int i = -3; i < w->times; i++) {
		RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err);
		double s = ranks_now();
		RANK_OK(note, c->api->all_reduce(c, &x, &note->err), note->err);
		if (i >= 0)
			t[i] = ranks_now() - s;
	}
	note->took = median(t, w->times);
	for (int i = -3; i < w->times; i++) {
		RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err);
		double s = ranks_now();
		for (size_t k = 0; k < part; k++)
			sum[k] = a[k] + b[k];
		__asm__ volatile("" : : "r"(sum) : "memory");
		if (i >= 0)
			t[i] = ranks_now() - s;
	}
	note->at = median(t, w->times);
	free(a), free(b), free(sum), free(t);
}

int main(int argc, char **argv)
{
	static const double mb[] = {2.68, 45};
	int world = argc > 1 ? atoi(argv[1]) : 2;
	for (int i = 0; i < 2; i++) {
		struct work w = {.bytes = (size_t)(mb[i] * 1e6) / 4 * 4, .times = i ? 101 : 1001};
		struct ranks r = {.world = world, .absent = -1, .body = body, .ctx = &w};
		ranks_check(&r);
		printf("all_reduce of %5.2f MB, %d ranks: %7.1f us; floor %7.1f us; %.2f of it\n", mb[i], world, 1e6 * r.note[0].took, 1e6 * r.note[0].at,
		       r.note[0].took / r.note[0].at);
		ranks_free(&r);
	}
	return 0;
}
