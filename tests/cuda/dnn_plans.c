/* What the installed cuDNN itself says of our convolutions on an H200 and an A100, without either: plans are made from a description
 * of the card (cuDNN 9.8 and newer, "Deviceless Ahead-of-time Compilation") and never run. Shows that the graphs are ones that the library
 * has precompiled engines for, with the options' limits; that a choice is rebuilt from what the cache keeps; how refusals read.
 * Run by test_dnn_plans.sh. */
#include "cuda/cudnn_conv.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

/* cudaDeviceProp of the card and its clocks, as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION writes them. */
#define CARD(name, cc, sms, shared, l2, clock, memory_clock, memory)                                                                       \
	"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"warpSize\":32,"                    \
	"\"maxSharedMemoryPerBlock\":49152,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"             \
	"\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"                    \
	"\"cudaDeviceId\":0,\"driverVer\":13000,\"deviceVer\":" #cc ",\"multiProcessorCount\":" #sms                                           \
	",\"maxSharedMemoryPerBlockOptin\":" #shared ",\"l2CacheSize\":" #l2 ",\"smClockRateKHz\":" #clock                                     \
	",\"memClockRateKHz\":" #memory_clock ",\"totalGlobalMem\":" #memory ",\"deviceName\":\"" name "\"}"

enum card { H200, A100, CARDS };
static const char *const cards[CARDS] = {
    [H200] = CARD("NVIDIA H200", 900, 132, 232448, 62914560, 1980000, 3201000, 150000000000),
    [A100] = CARD("NVIDIA A100-SXM4-40GB", 800, 108, 166912, 41943040, 1410000, 1215000, 42000000000),
};
static const char *const card_names[CARDS] = {"H200", "A100"};

static struct gt_dev dev = {.id = "cuda:0"};

static bool open_card(enum card card)
{
	struct gt_err e = {0};
	char folder[600];
	gt_dnn_close(dev.dnn);
	dev = (struct gt_dev){.id = "cuda:0"};
	snprintf(folder, sizeof folder, "%s/%s", test_tmpdir(), card_names[card]);
	setenv("XDG_CACHE_HOME", folder, 1);
	if (gt_dnn_open_profile(&dev, cards[card], &e) == GT_OK)
		return true;
	test_skip(e.msg);
	return false;
}

/* N, C, H, W, K, R, S, stride, padding, dilation, groups */
static const int64_t shapes[][11] = {
    {128, 3, 32, 32, 64, 3, 3, 1, 1, 1, 1}, /* ResNet-18 on CIFAR-10 */
    {128, 64, 32, 32, 64, 3, 3, 1, 1, 1, 1},  {128, 64, 32, 32, 128, 3, 3, 2, 1, 1, 1},
    {128, 64, 32, 32, 128, 1, 1, 2, 0, 1, 1}, {128, 512, 4, 4, 512, 3, 3, 1, 1, 1, 1},
    {1024, 3, 31, 31, 24, 2, 2, 1, 0, 1, 1}, /* airbench */
    {1024, 24, 31, 31, 64, 3, 3, 1, 1, 1, 1}, {1024, 256, 7, 7, 256, 3, 3, 1, 1, 1, 1},
    {32, 1, 28, 28, 32, 3, 3, 1, 0, 1, 1},                                       /* FashionMNIST */
    {1, 1, 28, 28, 6, 5, 5, 1, 2, 1, 1},      {2, 5, 9, 7, 7, 3, 3, 2, 1, 1, 1}, /* nothing divides anything */
    {1, 3, 11, 11, 4, 3, 3, 2, 1, 2, 1},      {1, 2, 4, 4, 3, 3, 3, 1, 2, 1, 1}, /* the corners see one pixel */
    {2, 2, 5, 5, 7, 5, 5, 1, 0, 1, 1},        {2, 4, 7, 7, 6, 3, 3, 1, 1, 1, 2}, /* groups */
    {2, 4, 7, 7, 8, 3, 3, 1, 1, 1, 4},        {16, 32, 14, 14, 32, 3, 3, 1, 1, 1, 32},
    {16, 16, 8, 8, 16, 3, 3, 2, 1, 1, 16},
};
#define SHAPES (int)(sizeof shapes / sizeof *shapes)

static struct gt_dnn_conv conv_of(const int64_t *s, enum gt_dnn_pass pass, enum gt_dtype type, int variant)
{
	int64_t p = (s[2] + 2 * s[8] - s[9] * (s[5] - 1) - 1) / s[7] + 1, q = (s[3] + 2 * s[8] - s[9] * (s[6] - 1) - 1) / s[7] + 1;
	return (struct gt_dnn_conv){.pass = pass,
	                            .type = type,
	                            .x = {s[0], s[1], s[2], s[3]},
	                            .w = {s[4], s[1] / s[10], s[5], s[6]},
	                            .y = {s[0], s[4], p, q},
	                            .stride = {s[7], s[7]},
	                            .padding = {s[8], s[8]},
	                            .dilation = {s[9], s[9]},
	                            .bias = pass == GT_DNN_FWD && variant,
	                            .relu = pass == GT_DNN_FWD && variant == 2,
	                            .add = pass == GT_DNN_DW && variant == 1};
}

/* Every shape, pass, type and fusion has a plan from a precompiled engine that the options allow. */
static void all_have_plans(enum card card, enum gt_dtype type, bool tf32, bool deterministic)
{
	static const int variants[] = {[GT_DNN_FWD] = 3, [GT_DNN_DX] = 1, [GT_DNN_DW] = 2};
	int plans = 0;
	size_t workspace = 0;
	if (!open_card(card))
		return;
	dev.tf32 = tf32, dev.deterministic = deterministic;
	for (int i = 0; i < SHAPES; i++)
		for (int pass = GT_DNN_FWD; pass <= GT_DNN_DW; pass++)
			for (int v = 0; v < variants[pass]; v++) {
				struct gt_dnn_conv c = conv_of(shapes[i], (enum gt_dnn_pass)pass, type, v);
				struct gt_dnn_plan p, again;
				struct gt_err e = {0};
				char key[GT_DNN_KEY];
				gt_dnn_key(&dev, &c, key);
				if (gt_dnn_plan_make(&dev, &c, &p, &e) != GT_OK) {
					test_fail(__FILE__, __LINE__, "%s: %s", key, e.msg);
					continue;
				}
				plans++;
				workspace = p.workspace > workspace ? p.workspace : workspace;
				CHECK_MSG(!strcmp(p.how, "heuristic"), "%s: %s", key, p.how);
				CHECK_OK(gt_dnn_plan_make(&dev, &c, &again, &e), e);
				CHECK_MSG(again.how && !strcmp(again.how, "cached") && again.choice.engine == p.choice.engine &&
				              again.workspace == p.workspace,
				          "%s: the cached plan is another one", key);
				gt_dnn_plan_drop(&p);
				gt_dnn_plan_drop(&again);
			}
	printf("# cuDNN %zu, %s: %s%s%s: %d plans, workspace up to %zu KiB\n", dev.dnn->version, card_names[card], gt_dtype_name(type),
	       tf32 ? " as tf32" : "", deterministic ? ", repeatable" : "", plans, workspace / 1024);
}

TEST(f32)
{
	for (int card = 0; card < CARDS; card++)
		all_have_plans((enum card)card, GT_F32, false, true);
}

TEST(tf32)
{
	for (int card = 0; card < CARDS; card++)
		all_have_plans((enum card)card, GT_F32, true, false);
}

TEST(bf16)
{
	for (int card = 0; card < CARDS; card++)
		all_have_plans((enum card)card, GT_BF16, false, true);
}

TEST(f16)
{
	for (int card = 0; card < CARDS; card++)
		all_have_plans((enum card)card, GT_F16, false, true);
}

/* An engine's numerical notes, asked without the code under test. */
static bool has_note(struct gt_dnn_plan *p, cudnnBackendNumericalNote_t which)
{
	cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
	cudnnBackendDescriptor_t engine = gt_dnn_new(&p->set, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
	gt_dnn_put_desc(&p->set, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, p->graph);
	gt_dnn_put(&p->set, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &p->choice.engine);
#if CUDNN_VERSION >= 90800
	gt_dnn_put_desc(&p->set, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, dev.dnn->prop);
#endif
	gt_dnn_finalize(&p->set, engine, "engine");
	int64_t n =
	    gt_dnn_get(&p->set, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, note);
	for (int64_t i = 0; i < n; i++)
		if (note[i] == which)
			return true;
	return false;
}

TEST(tensor_cores_only_where_tf32_is_allowed)
{
	struct gt_dnn_conv c = conv_of(shapes[1], GT_DNN_FWD, GT_F32, 2);
	struct gt_err e = {0};
	struct gt_dnn_plan p;
	if (!open_card(H200))
		return;
	for (int tf32 = 0; tf32 < 2; tf32++) {
		dev.tf32 = tf32;
		CHECK_OK(gt_dnn_plan_make(&dev, &c, &p, &e), e);
		CHECK(has_note(&p, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) == tf32);
		CHECK_MSG(p.set.status == CUDNN_STATUS_SUCCESS, "%s", p.set.why);
		gt_dnn_plan_drop(&p);
	}
}

TEST(a_wrong_choice_in_the_cache_is_passed_over)
{
	/* An engine that does not exist; one with a knob that it has not; a tensor core engine where f32 must stay f32. */
	struct gt_dnn_conv c = conv_of(shapes[1], GT_DNN_FWD, GT_F32, 0);
	struct gt_dnn_choice wrong[3] = {{.engine = 99999}, {.engine = 0, .nknobs = 1, .knob = {{2, 77}}}, {.engine = 0}};
	struct gt_err e = {0};
	struct gt_dnn_plan p;
	char key[GT_DNN_KEY];
	if (!open_card(H200))
		return;
	dev.tf32 = true;
	CHECK_OK(gt_dnn_plan_make(&dev, &c, &p, &e), e);
	wrong[2] = p.choice;
	gt_dnn_plan_drop(&p);
	dev.tf32 = false;
	for (int i = 0; i < 3; i++) {
		gt_dnn_key(&dev, &c, key);
		gt_dnn_cache_add(dev.dnn->cache, key, &wrong[i]);
		CHECK_OK(gt_dnn_plan_make(&dev, &c, &p, &e), e);
		CHECK_MSG(p.how && !strcmp(p.how, "heuristic"), "choice %d was taken: %s", i, p.how);
		gt_dnn_plan_drop(&p);
	}
}

TEST(a_refusal_says_what_cudnn_says)
{
	/* More taps than the padded image has pixels. */
	struct gt_dnn_conv c = conv_of(shapes[1], GT_DNN_FWD, GT_F32, 0);
	struct gt_err e = {0};
	struct gt_dnn_plan p;
	if (!open_card(H200))
		return;
	c.y[2] = 31;
	CHECK(gt_dnn_plan_make(&dev, &c, &p, &e) == GT_EUNAVAILABLE);
	CHECK_MSG(strstr(e.msg, "cuDNN 9.") && strstr(e.msg, "CUDNN_STATUS_"), "%s", e.msg);
	printf("# refusal: %s\n", e.msg);
}

RUN_TESTS()
