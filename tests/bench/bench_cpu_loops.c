/* Times of the CPU backend's own loops, one line each: build/tests/bench/bench_cpu_loops [word] [threads].
 * Not a test: `make build/tests/bench/bench_cpu_loops`. Best of the runs of 0.1 s. */
#include "cpu_raw.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/plugin.h"

static const char *word = "";
static int threads = 1;

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bench(const char *what, struct gt_opcall *call, void **in, void **out, int64_t elements)
{
	static void *sym;
	static struct gt_dev *dev;
	struct gt_err e = {0};
	struct gt_kernel *k;
	struct gt_step_args step_args = {.seed = 1, .stride = 1, .step = 2, .lr = {1e-3}, .inv_weight = 1.0 / 32};
	if (!strstr(what, word))
		return;
	if (!sym && gt_plugin_open("cpu", "gt_backend_cpu", &sym, &e) != GT_OK)
		abort();
	const struct gt_backend *b = sym;
	if ((!dev && b->open(&(struct gt_dev_opts){.threads = threads}, &dev, &e) != GT_OK) || b->prepare(dev, call, &k, &e) != GT_OK) {
		printf("%s: %s\n", what, e.msg);
		return;
	}
	void *scratch = aligned_alloc(64, (b->scratch(k) + 64) / 64 * 64);
	struct gt_launch a = {.in = in, .out = out, .scratch = scratch, .step_args = &step_args};
	double start = seconds(), best = INFINITY;
	while (seconds() - start < 0.1) {
		double t0 = seconds();
		for (int i = 0; i < 4; i++)
			b->launch(dev, k, &a, &e);
		best = fmin(best, (seconds() - t0) / 4);
	}
	printf("%-34s %10.2f us %8.3f ns an element\n", what, best * 1e6, best * 1e9 / (double)elements);
	free(scratch);
	b->release(dev, k);
}

int main(int argc, char **argv)
{
	static const enum gt_opcode unary[] = {GT_OP_RELU, GT_OP_SIGMOID, GT_OP_TANH, GT_OP_GELU, GT_OP_SILU};
	static const enum gt_opcode binary[] = {GT_OP_RELU_DX, GT_OP_GELU_DX, GT_OP_ADD};
	struct gt_attr_gelu gelu = {0};
	word = argc > 1 ? argv[1] : "";
	threads = argc > 2 ? atoi(argv[2]) : 1;
	for (int t = 0; t < 2; t++) {
		enum gt_dtype type = raw_types[t];
		const char *tn = gt_dtype_name(type);
		char what[64];
		const int64_t n = 32 * 512;
		struct gt_tdesc d[4];
		void *x = raw_alloc(type, n), *g = raw_alloc(type, n), *y = raw_alloc(type, n);
		raw_random(type, x, n, 1, -4, 4);
		raw_random(type, g, n, 2, -1, 1);
		for (int i = 0; i < 4; i++)
			d[i] = gt_tdesc_make(type, 2, (int64_t[]){32, 512}, true);
		for (size_t k = 0; k < sizeof unary / sizeof unary[0]; k++) {
			struct gt_opcall c = {.code = unary[k], .attr = &gelu, .nin = 1, .nout = 1, .in = {&d[0]}, .out = {&d[1]}};
			snprintf(what, sizeof what, "%s %s 32x512", gt_opcode_name(c.code), tn);
			bench(what, &c, (void *[]){x}, (void *[]){y}, n);
		}
		for (size_t k = 0; k < sizeof binary / sizeof binary[0]; k++) {
			struct gt_opcall c = {.code = binary[k], .attr = &gelu, .nin = 2, .nout = 1, .in = {&d[0], &d[2]}, .out = {&d[1]}};
			snprintf(what, sizeof what, "%s %s 32x512", gt_opcode_name(c.code), tn);
			bench(what, &c, (void *[]){g, x}, (void *[]){y}, n);
		}
		struct gt_attr_dropout drop = {.p = 0.5, .layer = 1, .train = true};
		struct gt_opcall dc = {.code = GT_OP_DROPOUT, .attr = &drop, .nin = 1, .nout = 1, .in = {&d[0]}, .out = {&d[1]}};
		snprintf(what, sizeof what, "dropout %s 32x512", tn);
		bench(what, &dc, (void *[]){x}, (void *[]){y}, n);
		static const int64_t rows[][2] = {{32, 10}, {128, 10}, {1024, 10}, {128, 1000}};
		for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
			int64_t m = rows[r][0], c = rows[r][1];
			struct gt_attr_loss loss = {.ignore_index = -100};
			struct gt_tdesc l = gt_tdesc_make(type, 2, rows[r], true), dl = l, ti = gt_tdesc_make(GT_I32, 1, &m, false),
			                me = gt_tdesc_make(GT_U8, 1, (int64_t[]){40}, false);
			struct gt_metrics metrics = {0};
			void *lx = raw_alloc(type, m * c), *ldx = raw_alloc(type, m * c);
			int32_t *target = calloc((size_t)m, 4);
			raw_random(type, lx, m * c, 3, -5, 5);
			struct gt_opcall lc = {.code = GT_OP_CROSS_ENTROPY, .attr = &loss, .nin = 2, .nout = 2, .in = {&l, &ti}, .out = {&me, &dl}};
			snprintf(what, sizeof what, "cross_entropy %s %dx%d", tn, (int)m, (int)c);
			bench(what, &lc, (void *[]){lx, target}, (void *[]){&metrics, ldx}, m * c);
			struct gt_opcall sc = {.code = GT_OP_LOG_SOFTMAX, .nin = 1, .nout = 1, .in = {&l}, .out = {&dl}};
			snprintf(what, sizeof what, "log_softmax %s %dx%d", tn, (int)m, (int)c);
			bench(what, &sc, (void *[]){lx}, (void *[]){ldx}, m * c);
			free(lx), free(ldx), free(target);
		}
		struct gt_attr_norm norm = {.eps = 1e-5, .affine = true};
		int64_t w = 512, h = 32;
		struct gt_tdesc p = gt_tdesc_make(GT_F32, 1, &w, false), q = p, u = p, v = p, s = gt_tdesc_make(GT_F32, 1, &h, false), s2 = s;
		float *gamma = raw_alloc(GT_F32, w), *beta = raw_alloc(GT_F32, w), *mean = raw_alloc(GT_F32, h), *rstd = raw_alloc(GT_F32, h);
		raw_random(GT_F32, gamma, w, 4, 0, 1), raw_random(GT_F32, beta, w, 5, 0, 1);
		struct gt_opcall nc = {.code = GT_OP_LAYERNORM, .attr = &norm, .nin = 3, .nout = 3, .in = {&d[0], &p, &q}, .out = {&d[1], &s, &s2}};
		snprintf(what, sizeof what, "layernorm %s 32x512", tn);
		bench(what, &nc, (void *[]){x, gamma, beta}, (void *[]){y, mean, rstd}, n);
		struct gt_opcall nd = {
		    .code = GT_OP_LAYERNORM_DX, .attr = &norm, .nin = 5, .nout = 3, .in = {&d[0], &d[2], &p, &s, &s2}, .out = {&d[1], &u, &v}};
		snprintf(what, sizeof what, "layernorm.dx %s 32x512", tn);
		bench(what, &nd, (void *[]){g, x, gamma, mean, rstd}, (void *[]){y, beta, gamma}, n);
		struct gt_tdesc im = gt_tdesc_make(type, 4, (int64_t[]){32, 64, 8, 8}, true),
		                fl = gt_tdesc_make(type, 2, (int64_t[]){32, 4096}, true);
		void *big = raw_alloc(type, 32 * 4096), *big2 = raw_alloc(type, 32 * 4096);
		struct gt_opcall fc = {.code = GT_OP_FLATTEN, .nin = 1, .nout = 1, .in = {&im}, .out = {&fl}};
		snprintf(what, sizeof what, "flatten %s 32x64x8x8", tn);
		bench(what, &fc, (void *[]){big}, (void *[]){big2}, 32 * 4096);
		free(x), free(g), free(y), free(gamma), free(beta), free(mean), free(rstd), free(big), free(big2);
	}
	return 0;
}
