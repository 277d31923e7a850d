/* An all-reduce between CPU ranks of this host: make build/tests/bench/bench_comm && build/tests/bench/bench_comm
 * [ranks]. Beside it the same traffic by plain loops without a word between the ranks: each adds up its part of everybody's data, and
 * copies the other parts from where they were added up. */
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

__attribute__((optimize("O3"), target_clones("avx512f", "avx2", "default"))) static void add(float *restrict to, const float *restrict from,
                                                                                             size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

/* The traffic of rank `rank`; all[r]: the data of rank r. */
static void traffic(float *const *all, int world, int rank, size_t n)
{
	size_t part = n / (size_t)world;
	for (int r = 0; r < world; r++)
		if (r != rank)
			add(all[rank] + (size_t)rank * part, all[r] + (size_t)rank * part, part);
	for (int r = 0; r < world; r++)
		if (r != rank)
			memcpy(all[rank] + (size_t)r * part, all[r] + (size_t)r * part, part * sizeof(float));
}

/* note->took: the collective's seconds, note->at: the loops'. */
static void body(struct gt_comm *c, int rank, struct rank_note *note, const void *ctx)
{
	const struct work *w = ctx;
	size_t n = w->bytes / sizeof(float);
	double *t = calloc((size_t)w->times, sizeof *t);
	float *all[RANKS_MAX];
	void *data, *common;
	RANK_OK(note, c->api->buffer(c, w->bytes, &data, &note->err), note->err);
	RANK_OK(note, c->api->common(c, (size_t)c->world * w->bytes, &common, &note->err), note->err);
	for (int r = 0; r < c->world; r++)
		all[r] = (float *)common + (size_t)r * n;
	struct gt_coll x = {.what = "gradients", .in = data, .out = data, .count = n, .dtype = GT_F32};
	for (int pass = 0; pass < 2; pass++) {
		for (int i = -3; i < w->times; i++) {
			RANK_OK(note, c->api->barrier(c, 0, &note->err), note->err);
			double s = ranks_now();
			if (pass)
				traffic(all, c->world, rank, n);
			else
				RANK_OK(note, c->api->all_reduce(c, &x, &note->err), note->err);
			if (i >= 0)
				t[i] = ranks_now() - s;
		}
		*(pass ? &note->at : &note->took) = median(t, w->times);
	}
	free(t);
}

int main(int argc, char **argv)
{
	static const double mb[] = {2.68, 45};
	int world = argc > 1 ? atoi(argv[1]) : 2;
	for (int i = 0; i < 2; i++) {
		struct work w = {.bytes = (size_t)(mb[i] * 1e6) / 4 * 4, .times = i ? 101 : 1001};
		struct ranks r = {.world = world, .absent = -1, .body = body, .ctx = &w};
		ranks_check(&r);
		printf("all_reduce of %5.2f MB, %d ranks: %7.1f us; plain loops %7.1f us; %.2f of that\n", mb[i], world, 1e6 * r.note[0].took,
		       1e6 * r.note[0].at, r.note[0].took / r.note[0].at);
		ranks_free(&r);
	}
	return 0;
}
