/* Speed of the CPU backend's heavy operations:
 *     make build/tests/bench/bench_cpu && build/tests/bench/bench_cpu [linear|conv|depthwise|norm] [threads]
 * Prints the best of many runs and the rate: what the code can do; other processes only ever add to it. `dnnl` beside a linear
 * layer: the same through oneDNN. */
#include "backend.h"
#include "base/plugin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct gt_backend *be;
static struct gt_dev *dev;
static bool cpu_time; /* one thread: its own time, so that a busy machine does not show */

static double now(void)
{
	struct timespec t;
	clock_gettime(cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const struct gt_err *e)
{
	fprintf(stderr, "bench_cpu: %s\n", e->msg);
	exit(1);
}

struct bench {
	struct gt_opcall call;
	struct gt_kernel *k;
	void *in[GT_MAX_IO], *out[GT_MAX_IO], *scratch;
	double flops, bytes;
};

static void *buffer(const struct gt_tdesc *d)
{
	struct gt_err e;
	void *p;
	if (be->alloc(dev, gt_tdesc_bytes(d), &p, &e) != GT_OK)
		die(&e);
	for (size_t i = 0; i < gt_tdesc_bytes(d) / gt_dtype_size(d->dtype); i++) {
		float f = (float)(i * 2654435761u % 1000) / 1000 - 0.5f;
		if (d->dtype == GT_F32)
			((float *)p)[i] = f;
		else if (d->dtype == GT_BF16) {
			uint32_t u;
			memcpy(&u, &f, 4);
			((uint16_t *)p)[i] = (uint16_t)(u >> 16);
		}
	}
	return p;
}

static void prepare(struct bench *b)
{
	struct gt_err e;
	if (be->prepare(dev, &b->call, &b->k, &e) != GT_OK)
		die(&e);
	for (int i = 0; i < b->call.nin; i++)
		b->in[i] = b->call.in[i] ? buffer(b->call.in[i]) : NULL;
	for (int i = 0; i < b->call.nout; i++)
		b->out[i] = b->call.out[i] ? buffer(b->call.out[i]) : NULL;
	if (be->alloc(dev, be->scratch(b->k) + 1, &b->scratch, &e) != GT_OK)
		die(&e);
}

static void launch(struct bench *b)
{
	struct gt_err e;
	struct gt_step_args step_args = {0};
	struct gt_launch a = {.in = b->in, .out = b->out, .scratch = b->scratch, .step_args = &step_args};
	if (be->launch(dev, b->k, &a, &e) != GT_OK)
		die(&e);
}

static double best(struct bench *b, int nb)
{
	double least = 1e9, start = now();
	for (int n = 0; n < 2000 && (n < 7 || now() - start < 0.7); n++) {
		double t0 = now(), t;
		for (int j = 0; j < nb; j++)
			launch(b + j);
		t = now() - t0;
		least = t < least ? t : least;
	}
	return least;
}

static double report(const char *what, struct bench *b)
{
	double t = best(b, 1);
	printf("%-44s %9.1f us", what, 1e6 * t);
	if (b->flops > 0)
		printf("  %7.1f GFLOP/s", 1e-9 * b->flops / t);
	if (b->bytes > 0)
		printf("  %6.1f GB/s", 1e-9 * b->bytes / t);
	printf("  %s\n", be->describe(b->k));
	return t;
}

static void drop(struct bench *b)
{
	be->release(dev, b->k);
	for (int i = 0; i < GT_MAX_IO; i++) {
		be->free(dev, b->in[i]);
		be->free(dev, b->out[i]);
	}
	be->free(dev, b->scratch);
}

#define DIMS(...) (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}

/* The three products of one layer into b[0..2]; dnnl: with the layout that oneDNN would choose. */
static void linear(struct bench *b, struct gt_tdesc *d, int64_t n, int64_t in, int64_t out, enum gt_dtype t, bool dnnl, bool relu)
{
	static struct gt_attr_linear attr[64];
	static int used;
	struct gt_attr_linear *a = &attr[used++ % 64];
	*a = (struct gt_attr_linear){.out = out, .bias = true, .act = relu ? GT_ACT_RELU : GT_ACT_NONE};
	struct gt_tdesc *x = d, *w = d + 1, *bias = d + 2, *y = d + 3, *dw = d + 4;
	*x = gt_tdesc_make(t, DIMS(n, in), true), *w = gt_tdesc_make(t, DIMS(out, in), false), *bias = gt_tdesc_make(GT_F32, DIMS(out), false);
	*y = gt_tdesc_make(t, DIMS(n, out), true);
	w->any = true;
	if (dnnl) {
		struct gt_tdesc bx = gt_tdesc_make(t, DIMS(4096, in), true), by = gt_tdesc_make(t, DIMS(4096, out), true);
		struct bench c = {.call = {.code = GT_OP_LINEAR, .attr = a, .in = {&bx, w, bias}, .nin = 3, .out = {&by}, .nout = 1}};
		prepare(&c);
		drop(&c);
	}
	b[0] = (struct bench){.call = {.code = GT_OP_LINEAR, .attr = a, .in = {x, w, bias}, .nin = 3, .out = {y}, .nout = 1}};
	prepare(&b[0]);
	b[1] = (struct bench){.call = {.code = GT_OP_LINEAR_DX, .attr = a, .in = {y, w}, .nin = 2, .out = {x}, .nout = 1}};
	prepare(&b[1]);
	*dw = *w;
	dw->dtype = GT_F32;
	b[2] = (struct bench){.call = {.code = GT_OP_LINEAR_DW, .attr = a, .in = {y, x}, .nin = 2, .out = {dw, bias}, .nout = 2}};
	prepare(&b[2]);
	for (int i = 0; i < 3; i++)
		b[i].flops = 2.0 * (double)(n * in * out);
}

static void bench_linear(void)
{
	static const int64_t batch[] = {32, 64, 128, 256, 512};
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < sizeof batch / sizeof *batch; i++)
			for (int dnnl = 0; dnnl < 2 - t; dnnl++) {
				struct bench b[9];
				struct gt_tdesc d[15];
				char text[64];
				double flops = 0, s;
				linear(b, d, batch[i], 784, 512, t ? GT_BF16 : GT_F32, dnnl, true);
				linear(b + 3, d + 5, batch[i], 512, 512, t ? GT_BF16 : GT_F32, dnnl, true);
				linear(b + 6, d + 10, batch[i], 512, 10, t ? GT_BF16 : GT_F32, dnnl, false);
				for (int j = 0; j < 9; j++) {
					static const char *const part[] = {"fwd", "dx", "dw"};
					snprintf(text, sizeof text, "linear %s n%d %dx%d %s%s", t ? "bf16" : "f32", (int)batch[i], j < 3 ? 784 : 512,
					         j < 6 ? 512 : 10, part[j % 3], dnnl ? " dnnl" : "");
					report(text, &b[j]);
				}
				/* One training step's products, in order: no dx for the first layer. */
				struct bench step[] = {b[0], b[3], b[6], b[8], b[7], b[5], b[4], b[2]};
				for (int j = 0; j < 8; j++)
					flops += step[j].flops;
				s = best(step, 8);
				printf("MLP 784-512-512-10 %s n%d%s: %.1f us a step, %.1f GFLOP/s\n", t ? "bf16" : "f32", (int)batch[i],
				       dnnl ? " dnnl" : "", 1e6 * s, 1e-9 * flops / s);
				for (int j = 0; j < 9; j++)
					drop(&b[j]);
			}
}

struct conv_shape {
	int n, c, hw, o, k, s, p, groups; /* groups 0: 1 */
};

static void bench_conv(const struct conv_shape *shape, size_t count)
{
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < count; i++) {
			int64_t n = shape[i].n, c = shape[i].c, hw = shape[i].hw, o = shape[i].o, k = shape[i].k, s = shape[i].s, p = shape[i].p,
			        oh = (hw + 2 * p - k) / s + 1, groups = shape[i].groups ? shape[i].groups : 1;
			struct gt_attr_conv2d a = {
			    .out = o, .kernel = {k, k}, .stride = {s, s}, .padding = {p, p}, .dilation = {1, 1}, .groups = groups};
			enum gt_dtype dt = t ? GT_BF16 : GT_F32;
			struct gt_tdesc x = gt_tdesc_make(dt, DIMS(n, c, hw, hw), true), w = gt_tdesc_make(dt, DIMS(o, c / groups, k, k), false),
			                y = gt_tdesc_make(dt, DIMS(n, o, oh, oh), true), dw;
			struct bench b[3];
			char text[80];
			w.any = true;
			b[0] = (struct bench){.call = {.code = GT_OP_CONV2D, .attr = &a, .in = {&x, &w}, .nin = 2, .out = {&y}, .nout = 1}};
			prepare(&b[0]);
			dw = w;
			dw.dtype = GT_F32;
			b[1] = (struct bench){.call = {.code = GT_OP_CONV2D_DX, .attr = &a, .in = {&y, &w}, .nin = 2, .out = {&x}, .nout = 1}};
			b[2] = (struct bench){.call = {.code = GT_OP_CONV2D_DW, .attr = &a, .in = {&y, &x}, .nin = 2, .out = {&dw}, .nout = 1}};
			prepare(&b[1]);
			prepare(&b[2]);
			for (int j = 0; j < 3; j++) {
				static const char *const part[] = {"fwd", "dx", "dw"};
				b[j].flops = 2.0 * (double)(n * o * oh * oh * c / groups * k * k);
				snprintf(text, sizeof text, "conv%s %s n%d %d->%d %dx%d k%d s%d %s", groups > 1 ? " depthwise" : "", t ? "bf16" : "f32",
				         (int)n, (int)c, (int)o, (int)hw, (int)hw, (int)k, (int)s, part[j]);
				report(text, &b[j]);
				drop(&b[j]);
			}
		}
}

static const struct conv_shape convs[] = {{128, 3, 32, 64, 3, 1, 1},   {128, 64, 32, 64, 3, 1, 1},   {128, 64, 32, 128, 3, 2, 1},
                                          {128, 64, 32, 128, 1, 2, 0}, {128, 128, 16, 128, 3, 1, 1}, {128, 256, 8, 256, 3, 1, 1},
                                          {128, 512, 4, 512, 3, 1, 1}, {32, 1, 28, 6, 5, 1, 2},      {32, 6, 14, 16, 5, 1, 0},
                                          {32, 1, 28, 32, 3, 1, 0},    {32, 32, 26, 64, 3, 1, 0}};
/* The depthwise convolutions of MobileNetV2. */
static const struct conv_shape depthwise[] = {
    {16, 32, 112, 32, 3, 1, 1, 32},   {16, 96, 112, 96, 3, 2, 1, 96},   {16, 144, 56, 144, 3, 1, 1, 144},
    {16, 144, 56, 144, 3, 2, 1, 144}, {16, 192, 28, 192, 3, 1, 1, 192}, {16, 192, 28, 192, 3, 2, 1, 192},
    {16, 384, 14, 384, 3, 1, 1, 384}, {16, 576, 14, 576, 3, 2, 1, 576}, {16, 960, 7, 960, 3, 1, 1, 960}};

static void bench_norm(void)
{
	static const int shape[][3] = {{128, 64, 32}, {128, 512, 4}, {128, 6, 28}, {32, 512, 1}};
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
			enum gt_dtype dt = t ? GT_BF16 : GT_F32;
			int64_t n = shape[i][0], c = shape[i][1], h = shape[i][2];
			struct gt_attr_norm a = {.eps = 1e-5, .momentum = 0.1, .affine = true, .track = true, .train = true};
			struct gt_attr_pool2d pa = {.kernel = {2, 2}, .stride = {2, 2}, .count_include_pad = true};
			struct gt_tdesc x = gt_tdesc_make(dt, DIMS(n, c, h, h), true), p = gt_tdesc_make(GT_F32, DIMS(c), false),
			                nbt = gt_tdesc_make(GT_I64, 0, NULL, false);
			struct gt_tdesc y = gt_tdesc_make(dt, DIMS(n, c, h / 2, h / 2), true),
			                idx = gt_tdesc_make(GT_I32, DIMS(n, c, h / 2, h / 2), true);
			struct bench b[] = {
				{.call = {.code = GT_OP_BATCHNORM, .attr = &a, .in = {&x, &p, &p, &p, &p, &nbt}, .nin = 6, .out = {&x, &p, &p}, .nout = 3}},
				{.call = {.code = GT_OP_BATCHNORM_DX, .attr = &a, .in = {&x, &x, &p, &p, &p}, .nin = 5, .out = {&x, &p, &p}, .nout = 3}},
				{.call = {.code = GT_OP_MAXPOOL2D, .attr = &pa, .in = {&x}, .nin = 1, .out = {&y, &idx}, .nout = 2}},
				{.call = {.code = GT_OP_MAXPOOL2D_DX, .attr = &pa, .in = {&y, &idx}, .nin = 2, .out = {&x}, .nout = 1}},
				{.call = {.code = GT_OP_AVGPOOL2D, .attr = &pa, .in = {&x}, .nin = 1, .out = {&y}, .nout = 1}},
				{.call = {.code = GT_OP_AVGPOOL2D_DX, .attr = &pa, .in = {&y}, .nin = 1, .out = {&x}, .nout = 1}},
			};
			for (int j = 0; j < (h < 2 ? 2 : 6); j++) {
				char text[80];
				double all = 0;
				prepare(&b[j]);
				for (int q = 0; q < b[j].call.nin; q++)
					all += (double)gt_tdesc_bytes(b[j].call.in[q]);
				for (int q = 0; q < b[j].call.nout; q++)
					all += (double)gt_tdesc_bytes(b[j].call.out[q]);
				b[j].bytes = all;
				snprintf(text, sizeof text, "%s %s n%d c%d %dx%d", gt_opcode_name(b[j].call.code), t ? "bf16" : "f32", (int)n, (int)c,
				         (int)h, (int)h);
				report(text, &b[j]);
				drop(&b[j]);
			}
		}
}

int main(int argc, char **argv)
{
	void *sym;
	struct gt_err e = {0};
	struct gt_dev_opts opts = {.winograd = true, .threads = argc > 2 ? atoi(argv[2]) : 0};
	const char *only = argc > 1 ? argv[1] : "";
	cpu_time = opts.threads == 1;
	if (gt_plugin_open("cpu", "gt_backend_cpu", &sym, &e) != GT_OK)
		die(&e);
	be = sym;
	if (be->open(&opts, &dev, &e) != GT_OK)
		die(&e);
	if (!*only || !strcmp(only, "linear"))
		bench_linear();
	if (!*only || !strcmp(only, "conv"))
		bench_conv(convs, sizeof convs / sizeof *convs);
	if (!*only || !strcmp(only, "depthwise"))
		bench_conv(depthwise, sizeof depthwise / sizeof *depthwise);
	if (!*only || !strcmp(only, "norm"))
		bench_norm();
	be->close(dev);
	return 0;
}
