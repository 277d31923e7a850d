/* Speed of the CPU backend's operations in the shapes of a table (tests/bench/ops.txt; tests/ops/cases.txt has the format):
 *     make build/tests/bench/bench_cpu
 *     build/tests/bench/bench_cpu [-t THREADS] [WORD]     every kernel of the cases whose name contains WORD
 *     build/tests/bench/bench_cpu -s                      serves bench_ops.py: a line "CASE f32|bf16 SECONDS" on standard input
 *                                                         is answered by a line "FORWARD BACKWARD", in microseconds
 * Prints the best of many runs and the rates: what the code can do; other processes only ever add to it. */
#include "ops/harness_case.h"
#include "ops/harness_update.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct harness h;
static clockid_t clock_id; /* with one thread its own processor time, so that other processes do not show */

static double now(void)
{
	struct timespec t;
	clock_gettime(clock_id, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const struct gt_err *e)
{
	fprintf(stderr, "bench_cpu: %s\n", e->msg);
	exit(1);
}

/* A case that is ready to run: a layer or a loss in h, or an optimizer's update. */
struct bench {
	const struct opcase *c;
	enum gt_dtype type;
	struct net net;
	struct gt_kernel *update; /* NULL: not an optimizer */
	void *in[GT_MAX_IO], *scratch;
	int nin;
};

static void fill_floats(float *p, int64_t n, const char *name)
{
	uint64_t hash = harness_hash(name);
	for (int64_t i = 0; i < n; i++)
		p[i] = (float)harness_number(hash, i);
}

/* One tensor and its gradient, in bf16 with the copy of the weights that a step computes with. States are not negative. */
static void make_update(struct bench *b)
{
	const struct gt_optimizer_row *row = update_optimizer(b->c);
	struct gt_err err = {0};
	struct gt_tdesc w = gt_tdesc_make(GT_F32, b->c->in[0].rank, b->c->in[0].dim, false);
	int64_t n = gt_tdesc_count(&w);
	struct gt_tdesc flat = gt_tdesc_make(GT_F32, 1, &n, false), work = gt_tdesc_make(GT_BF16, 1, &n, false);
	const struct gt_tdesc *desc = &w;
	struct gt_seg seg = {.end = n, .lr_mul = 1, .weight_decay = opcase_number(b->c, "weight_decay", 0)};
	struct gt_attr_muon attr = {.update = {.seg = &seg, .nseg = 1}, .desc = &desc, .ns_steps = 5, .ns = {3.4445, -4.7750, 2.0315}};
	if (!row) {
		fprintf(stderr, "bench_cpu: %s: there is no optimizer %s\n", b->c->name, b->c->type);
		exit(1);
	}
	update_keys(b->c, row, &attr.update);
	attr.update.nesterov |= row->update == GT_OP_MUON;
	const struct gt_update_row *update = gt_update_row(row->update);
	struct gt_opcall call = {.code = row->update, .name = b->c->name, .attr = update->matrix ? (void *)&attr : (void *)&attr.update};
	call.in[call.nin++] = &flat, call.in[call.nin++] = &flat;
	for (int i = 0; i < update->nslots; i++)
		call.in[call.nin++] = gt_update_has(update, &attr.update, i) ? &flat : NULL;
	if (b->type == GT_BF16) {
		call.nin++; /* scalars */
		call.in[call.nin++] = &work;
		attr.update.work_dtype = GT_BF16;
	}
	if (h.be->prepare(h.dev, &call, &b->update, &err) != GT_OK ||
	    h.be->alloc(h.dev, h.be->scratch(b->update) + 1, &b->scratch, &err) != GT_OK)
		die(&err);
	b->nin = call.nin;
	for (int i = 0; i < call.nin; i++)
		if (call.in[i]) {
			if (h.be->alloc(h.dev, gt_tdesc_bytes(call.in[i]), &b->in[i], &err) != GT_OK)
				die(&err);
			if (call.in[i] == &work)
				continue;
			fill_floats(b->in[i], n, i ? "g" : "p");
			for (int64_t j = 0; i > 1 && j < n; j++)
				((float *)b->in[i])[j] *= ((float *)b->in[i])[j];
		}
	h.step_args.step = 2;
	h.step_args.lr[0] = opcase_number(b->c, "lr", 1e-3);
}

static void make(struct bench *b)
{
	struct gt_err err = {0};
	if (!strncmp(b->c->type, "update:", 7))
		make_update(b);
	else if (net_build(&b->net, b->c, b->type, &err) != GT_OK || case_run(&h, &b->net, 0, NULL, &err) != GT_OK)
		die(&err);
}

static void drop(struct bench *b)
{
	harness_drop(&h);
	gt_arena_close(b->net.arena);
	if (!b->update)
		return;
	h.be->release(h.dev, b->update);
	for (int i = 0; i < b->nin; i++)
		h.be->free(h.dev, b->in[i]);
	h.be->free(h.dev, b->scratch);
}

static void run(struct bench *b, int first, int last)
{
	struct gt_err err = {0};
	struct gt_launch a = {.in = b->in, .scratch = b->scratch, .step_args = &h.step_args};
	void *none[GT_MAX_IO] = {0};
	a.out = none;
	if ((b->update ? h.be->launch(h.dev, b->update, &a, &err) : harness_run(&h, first, last, &err)) != GT_OK)
		die(&err);
}

/* The quickest of the runs of nodes [0, mid), then [mid, last), within `seconds`: at[0] and at[1] are the times of its halves. */
static void time_best(struct bench *b, int first, int mid, int last, double seconds, double *at)
{
	double start = now();
	at[0] = at[1] = 1e9;
	for (int n = 0; n < 3 || now() - start < seconds; n++) {
		double t0 = now();
		run(b, first, mid);
		double t1 = now();
		if (last > mid)
			run(b, mid, last);
		double t2 = now();
		if (t2 - t0 < at[0] + at[1])
			at[0] = t1 - t0, at[1] = last > mid ? t2 - t1 : 0;
	}
}

static void print_rates(const char *name, const char *op, enum gt_dtype type, double t, double flops, double bytes, const char *how)
{
	printf("%-22s %-4s %-18s %10.1f us", name, gt_dtype_name(type), op, 1e6 * t);
	if (flops > 0)
		printf("  %7.1f GFLOP/s", 1e-9 * flops / t);
	printf("  %6.1f GB/s  %s\n", 1e-9 * bytes / t, how);
}

static double bytes_of(const struct gt_graph *g, const struct gt_node *n)
{
	double all = 0;
	for (int i = 0; i < n->nin; i++)
		all += n->in[i] < 0 ? 0 : (double)gt_tdesc_bytes(&g->values[n->in[i]].desc);
	for (int i = 0; i < n->nout; i++)
		all += n->out[i] < 0 ? 0 : (double)gt_tdesc_bytes(&g->values[n->out[i]].desc);
	return all;
}

static void print_case(const struct opcase *c, enum gt_dtype type)
{
	struct bench b = {.c = c, .type = type};
	const struct gt_graph *g;
	double at[2], bytes = 0;
	make(&b);
	if (b.update) {
		time_best(&b, 0, 0, 0, 0.3, at);
		for (int i = 0; i < b.nin; i++)
			bytes += !b.in[i] ? 0 : type == GT_BF16 && i == b.nin - 1 ? 2 : 4.0 * (i == 1 ? 1 : 2);
		for (int i = 0; i < c->in[0].rank; i++)
			bytes *= (double)c->in[0].dim[i];
		print_rates(c->name, c->type + 7, type, at[0], 0, bytes, h.be->describe(b.update));
	}
	for (int i = 0; !b.update && i < (g = b.net.g)->nnodes; i++)
		if (h.kernel[i]) {
			const struct gt_node *n = &g->nodes[i];
			time_best(&b, i, i + 1, 0, 0.3, at);
			print_rates(c->name, gt_opcode_name(n->op->code), type, at[0], gt_node_flops(g, n), bytes_of(g, n),
			            h.be->describe(h.kernel[i]));
		}
	drop(&b);
}

static void serve(const struct optable *t)
{
	struct bench b = {0};
	char name[128], type[8];
	double seconds, at[2];
	while (scanf("%127s %7s %lf", name, type, &seconds) == 3) {
		enum gt_dtype want = strcmp(type, "bf16") ? GT_F32 : GT_BF16;
		if (!b.c || strcmp(b.c->name, name) || b.type != want) {
			if (b.c)
				drop(&b);
			b = (struct bench){.type = want};
			for (int i = 0; i < t->ncases; i++)
				if (!strcmp(t->cases[i].name, name))
					b.c = &t->cases[i];
			if (!b.c) {
				fprintf(stderr, "bench_cpu: the table has no case %s\n", name);
				exit(1);
			}
			make(&b);
		}
		time_best(&b, 0, b.net.forward, b.update ? 0 : b.net.g->nnodes, seconds, at);
		printf("%.3f %.3f\n", 1e6 * at[0], 1e6 * at[1]);
		fflush(stdout);
	}
	if (b.c)
		drop(&b);
}

int main(int argc, char **argv)
{
	struct gt_err err = {0};
	struct gt_dev_opts opts = {.winograd = true, .threads = 1};
	struct optable t;
	char path[512];
	bool server = argc > 1 && !strcmp(argv[1], "-s");
	if (argc > 2 && !strcmp(argv[1], "-t"))
		opts.threads = atoi(argv[2]), argc -= 2, argv += 2;
	clock_id = opts.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	snprintf(path, sizeof path, "%s/tests/bench/ops.txt", test_source());
	if (optable_read(path, NULL, &t, &err) != GT_OK || harness_open_with(&h, "cpu", &opts, &err) != GT_OK)
		die(&err);
	if (server)
		serve(&t);
	for (int i = 0; !server && i < t.ncases; i++)
		if (argc < 2 || strstr(t.cases[i].name, argv[1])) {
			print_case(&t.cases[i], GT_F32);
			if (strncmp(t.cases[i].type, "update:", 7) || !strcmp(t.cases[i].type, "update:muon"))
				print_case(&t.cases[i], GT_BF16);
		}
	harness_close(&h);
	gt_arena_close(t.arena);
	return 0;
}
