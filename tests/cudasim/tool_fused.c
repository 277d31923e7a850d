/* Which calls of attention cuDNN computes (cuda_attention.c), and how many plans they have, on the host's cuDNN (cudasim_dnn.cc). Numbers
 * are in tool_attention.c. Run by test_cudasim.sh from build/cudasim. */
#include "base/plugin.h"
#include "opcall.h"
#include "pair.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct gt_backend *be;
static char log_path[600];

static void setup(void)
{
	struct gt_err e = {0};
	void *p;
	snprintf(log_path, sizeof log_path, "%s/log", test_tmpdir());
	setenv("XDG_CACHE_HOME", test_tmpdir(), 1);
	setenv("CUDASIM_DNN_LOG", log_path, 1);
	unsetenv("CUDASIM_DNN_ONLY"), unsetenv("CUDASIM_DNN_VERSION");
	if (!be) {
		CHECK_OK(gt_plugin_open("cuda", "gt_backend_cuda", &p, &e), e);
		be = p;
	}
}

struct job {
	struct gt_attr_attention attr;
	struct gt_tdesc qkv, y, lse, lengths;
	struct gt_opcall call;
};

static void job_make(struct job *j, enum gt_opcode code, enum gt_dtype t, int64_t d)
{
	int64_t qkv[3] = {2, 24, 6 * d}, y[3] = {2, 24, 2 * d}, lse[3] = {2, 2, 24}, samples = 2;
	*j = (struct job){.attr = {.heads = 2, .causal = true}};
	j->qkv = gt_tdesc_make(t, 3, qkv, true), j->y = gt_tdesc_make(t, 3, y, true);
	j->lse = gt_tdesc_make(GT_F32, 3, lse, false), j->lengths = gt_tdesc_make(GT_I32, 1, &samples, false);
	if (code == GT_OP_ATTENTION)
		j->call = (struct gt_opcall){.code = code,
		                             .name = "attention",
		                             .attr = &j->attr,
		                             .nin = 2,
		                             .nout = 2,
		                             .in = {&j->qkv, &j->lengths},
		                             .out = {&j->y, &j->lse}};
	else
		j->call = (struct gt_opcall){.code = code,
		                             .name = "attention",
		                             .attr = &j->attr,
		                             .nin = 5,
		                             .nout = 1,
		                             .in = {&j->y, &j->qkv, &j->y, &j->lengths, &j->lse},
		                             .out = {&j->qkv}};
}

/* Checks what `count` equal calls of each pass choose on one device. */
static void expect(struct gt_dev_opts opts, enum gt_dtype t, int64_t d, int count, const char *want)
{
	static const enum gt_opcode codes[] = {GT_OP_ATTENTION, GT_OP_ATTENTION_DX};
	struct gt_kernel *k[2][4] = {{NULL}};
	struct gt_err e = {0};
	struct gt_dev *dev;
	struct job j;
	CHECK_OK(be->open(&opts, &dev, &e), e);
	for (int c = 0; c < 2; c++)
		for (int i = 0; i < count; i++) {
			job_make(&j, codes[c], t, d);
			if (be->prepare(dev, &j.call, &k[c][i], &e) != GT_OK)
				CHECK_MSG(strstr(e.msg, want), "%s, not %s", e.msg, want);
			else
				CHECK_MSG(!strcmp(be->describe(k[c][i]), want), "%s, not %s", be->describe(k[c][i]), want);
		}
	for (int c = 0; c < 2; c++)
		for (int i = 0; i < count; i++)
			be->release(dev, k[c][i]);
	be->close(dev);
}

static int logged(const char *prefix)
{
	char line[128];
	FILE *f = fopen(log_path, "r");
	int n = 0;
	while (f && fgets(line, sizeof line, f))
		n += !strncmp(line, prefix, strlen(prefix));
	if (f)
		fclose(f);
	return n;
}

TEST(calls_that_cudnn_computes)
{
	struct gt_dev_opts on = {.cudnn_attention = true}, repeatable = {.cudnn_attention = true, .deterministic = true};
	setup();
	expect((struct gt_dev_opts){0}, GT_BF16, 64, 1, "tiles");
	expect(on, GT_BF16, 64, 1, "cudnn:90 (heuristic)");
	expect(on, GT_BF16, 64, 1, "cudnn:90 (cached)");
	expect(on, GT_F16, 8, 1, "cudnn:90 (heuristic)");
	expect(repeatable, GT_BF16, 64, 1, "cudnn:90 (heuristic)");
	expect(on, GT_F32, 64, 1, "tiles");
	expect(on, GT_BF16, 12, 1, "tiles (cuDNN needs heads of 8, 16, 24, ... features)");
	setenv("CUDASIM_DNN_ONLY", "1", 1);
	expect(on, GT_BF16, 32, 1, "tiles (cuDNN has no kernel for the shape)");
	unsetenv("CUDASIM_DNN_ONLY");
	setenv("CUDASIM_DNN_VERSION", "91501", 1);
	expect(on, GT_BF16, 64, 1, "tiles (cuDNN 9.16 or newer is needed)");
}

TEST(equal_calls_share_a_plan)
{
	struct gt_dev_opts on = {.cudnn_attention = true};
	setup();
	expect(on, GT_BF16, 128, 1, "cudnn:90 (heuristic)");
	unlink(log_path);
	expect(on, GT_BF16, 128, 1, "cudnn:90 (cached)");
	int one = logged("plan 90");
	unlink(log_path);
	expect(on, GT_BF16, 128, 4, "cudnn:90 (cached)");
	CHECK_MSG(one > 0 && logged("plan 90") == one, "1 call makes %d plans, 4 calls make %d", one, logged("plan 90"));
}

TEST(without_cudnn_the_option_is_refused)
{
	setup();
	setenv("CUDASIM_DNN_VERSION", "80905", 1);
	expect((struct gt_dev_opts){.cudnn_attention = true}, GT_BF16, 64, 1, "is cuDNN 8.9; this build needs 9.x");
}

RUN_TESTS()
