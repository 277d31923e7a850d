/* What cuBLASLt has for linear layers on this card: every epilogue (bias, relu, the relu's mask as bits, its use, the sum of the bias
 * gradient) for shapes around its limits, in four precisions, as prepare() takes it. Nothing runs; tool_table has the numbers.
 *
 * A line a precision and shape tells which the library has (name) and for which kernels of our own stand in (-name). `not ok`: there is not
 * even the plain product, so that such a layer would be refused. Run first by check.sh: the answers decide which kernels everything else
 * runs. */
#include "backend.h"
#include "base/plugin.h"
#include "test.h"
#include "ew.h"
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	enum gt_dtype type;
	bool tf32;
} precisions[] = {{"fp32", GT_F32, false}, {"tf32", GT_F32, true}, {"bf16", GT_BF16, false}, {"fp16", GT_F16, false}};

/* N, in, out: each of them 1, two of them, sizes that are multiples of nothing, of 16 bytes, those of the configs, a large batch. */
static const int64_t shapes[][3] = {{1, 64, 32},   {32, 1, 64},   {32, 64, 1},     {1, 1, 64},      {32, 1, 1},
                                    {1, 1, 1},     {2, 3, 2},     {7, 31, 29},     {32, 784, 512},  {32, 512, 512},
                                    {32, 512, 10}, {97, 512, 10}, {128, 512, 100}, {1, 4096, 4096}, {70000, 24, 40}};
#define SHAPES (int)(sizeof shapes / sizeof *shapes)

static const struct gt_backend *be;
static struct gt_dev *dev;

struct line { /* of one shape */
	char text[400];
	size_t n;
	int products;
};

/* Prepares one call; own: its description if our own kernels replace the epilogue. */
static void ask(struct line *l, const char *name, const char *own, struct gt_opcall *call, bool optional)
{
	struct gt_err e = {0};
	struct gt_kernel *k;
	enum gt_code code = be->prepare(dev, call, &k, &e);
	bool has = code == GT_OK && !(own && strstr(be->describe(k), own));
	if (code == GT_OK)
		be->release(dev, k);
	if (code != GT_OK && !(optional && code == GT_EUNAVAILABLE))
		test_fail(__FILE__, __LINE__, "%s: %s", name, e.msg);
	l->products += code == GT_OK;
	if (l->n < sizeof l->text)
		l->n += (size_t)snprintf(l->text + l->n, sizeof l->text - l->n, " %s%s", has ? "" : "-", name);
}

static void shape(struct line *l, enum gt_dtype t, const int64_t *s)
{
	int64_t n = s[0], in = s[1], out = s[2], ybits[2] = {n, gt_mask_bytes(out)}, xbits[2] = {n, gt_mask_bytes(in)};
	struct gt_tdesc x = gt_tdesc_make(t, 2, (int64_t[]){n, in}, false), y = gt_tdesc_make(t, 2, (int64_t[]){n, out}, false),
	                w = gt_tdesc_make(t, 2, (int64_t[]){out, in}, false), b = gt_tdesc_make(GT_F32, 1, &out, false),
	                dw = gt_tdesc_make(GT_F32, 2, w.dim, false), ym = gt_tdesc_make(GT_U8, 2, ybits, false),
	                xm = gt_tdesc_make(GT_U8, 2, xbits, false);
	struct gt_attr_linear plain = {.out = out, .bias = true}, relu = {.out = out, .bias = true, .act = GT_ACT_RELU};
	ask(l, "product", NULL,
	    &(struct gt_opcall){.code = GT_OP_LINEAR, .name = "l", .attr = &plain, .nin = 2, .nout = 1, .in = {&x, &w}, .out = {&y}}, false);
	ask(l, "bias", "+ bias",
	    &(struct gt_opcall){.code = GT_OP_LINEAR, .name = "l", .attr = &plain, .nin = 3, .nout = 1, .in = {&x, &w, &b}, .out = {&y}},
	    false);
	ask(l, "relu", "+ relu",
	    &(struct gt_opcall){.code = GT_OP_LINEAR, .name = "l", .attr = &relu, .nin = 2, .nout = 1, .in = {&x, &w}, .out = {&y}}, false);
	ask(l, "relu_bias", "+ relu",
	    &(struct gt_opcall){.code = GT_OP_LINEAR, .name = "l", .attr = &relu, .nin = 3, .nout = 1, .in = {&x, &w, &b}, .out = {&y}}, false);
	ask(l, "relu_aux", NULL,
	    &(struct gt_opcall){.code = GT_OP_LINEAR, .name = "l", .attr = &relu, .nin = 2, .nout = 2, .in = {&x, &w}, .out = {&y, &ym}}, true);
	ask(l, "relu_aux_bias", NULL,
	    &(struct gt_opcall){.code = GT_OP_LINEAR, .name = "l", .attr = &relu, .nin = 3, .nout = 2, .in = {&x, &w, &b}, .out = {&y, &ym}},
	    true);
	ask(l, "dx", NULL,
	    &(struct gt_opcall){.code = GT_OP_LINEAR_DX, .name = "l", .attr = &plain, .nin = 2, .nout = 1, .in = {&y, &w}, .out = {&x}}, false);
	ask(l, "drelu", NULL,
	    &(struct gt_opcall){.code = GT_OP_LINEAR_DX, .name = "l", .attr = &plain, .nin = 3, .nout = 1, .in = {&y, &w, &xm}, .out = {&x}},
	    true);
	ask(l, "dw", NULL,
	    &(struct gt_opcall){.code = GT_OP_LINEAR_DW, .name = "l", .attr = &plain, .nin = 2, .nout = 1, .in = {&y, &x}, .out = {&dw}},
	    false);
	ask(l, "bgradb", "colsum",
	    &(struct gt_opcall){.code = GT_OP_LINEAR_DW, .name = "l", .attr = &plain, .nin = 2, .nout = 2, .in = {&y, &x}, .out = {&dw, &b}},
	    false);
}

static void precision(int p)
{
	struct gt_err e = {0};
	int products = 0;
	void *plugin;
	CHECK_OK(gt_plugin_open("cuda", "gt_backend_cuda", &plugin, &e), e);
	be = plugin;
	struct line first[SHAPES];
	for (int deterministic = 0; deterministic < 2; deterministic++) {
		CHECK_OK(be->open(&(struct gt_dev_opts){.tf32 = precisions[p].tf32, .deterministic = deterministic}, &dev, &e), e);
		for (int s = 0; s < SHAPES; s++) {
			struct line l = {.n = 0};
			shape(&l, precisions[p].type, shapes[s]);
			products += l.products;
			if (!deterministic)
				first[s] = l;
			else if (!strcmp(l.text, first[s].text)) /* as without: said already */
				continue;
			printf("# %s%s [%lld, %lld] -> %lld:%s\n", precisions[p].name, deterministic ? " repeatable" : "", (long long)shapes[s][0],
			       (long long)shapes[s][1], (long long)shapes[s][2], l.text);
		}
		be->close(dev);
	}
	CHECK_MSG(products >= 2 * SHAPES * 7, "%d calls were taken", products);
}

TEST(offers_fp32)
{
	precision(0);
}

TEST(offers_tf32)
{
	precision(1);
}

TEST(offers_bf16)
{
	precision(2);
}

TEST(offers_fp16)
{
	precision(3);
}

RUN_TESTS()
