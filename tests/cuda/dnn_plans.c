/* What the installed cuDNN itself says of our convolutions on an H200 and an A100, without either: plans are made from a description
 * of the card (cuDNN 9.8 and newer, "Deviceless Ahead-of-time Compilation") and never run. Shows that the graphs are ones that the library
 * has precompiled engines for, with the options' limits; that a choice is rebuilt from what the cache keeps; how refusals read; that
 * engines which are compiled at run time can be had. GTRAIN_DNN_GRAPHS names a file with a line for each graph of the configs, as
 * gt_dnn_key() writes them; GTRAIN_DNN_STUB=1 says that a driver, if only the toolkit's stub, is on the loader's path. Run by
 * test_dnn_plans.sh. */
#include "cuda/cudnn_conv.h"
#include "cuda/dnn_card.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

static struct gt_dev dev = {.id = "cuda:0"};

static bool open_card(enum dnn_card card)
{
	return dnn_card_open(&dev, card);
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
static void all_have_plans(enum dnn_card card, enum gt_dtype type, bool tf32, bool deterministic)
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
	printf("# cuDNN %zu, %s: %s%s%s: %d plans, workspace up to %zu KiB\n", dev.dnn->version, dnn_card_name[card], gt_dtype_name(type),
	       tf32 ? " as tf32" : "", deterministic ? ", repeatable" : "", plans, workspace / 1024);
}

TEST(f32)
{
	for (int card = 0; card < DNN_CARDS; card++)
		all_have_plans((enum dnn_card)card, GT_F32, false, true);
}

TEST(tf32)
{
	for (int card = 0; card < DNN_CARDS; card++)
		all_have_plans((enum dnn_card)card, GT_F32, true, false);
}

TEST(bf16)
{
	for (int card = 0; card < DNN_CARDS; card++)
		all_have_plans((enum dnn_card)card, GT_BF16, false, true);
}

TEST(f16)
{
	for (int card = 0; card < DNN_CARDS; card++)
		all_have_plans((enum dnn_card)card, GT_F16, false, true);
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
	if (!open_card(DNN_H200))
		return;
	for (int tf32 = 0; tf32 < 2; tf32++) {
		dev.tf32 = tf32;
		CHECK_OK(gt_dnn_plan_make(&dev, &c, &p, &e), e);
		CHECK(has_note(&p, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) == tf32);
		CHECK_MSG(p.set.status == CUDNN_STATUS_SUCCESS, "%s", p.set.why);
		gt_dnn_plan_drop(&p);
	}
}

TEST(tensor_cores_in_repeatable_runs)
{
	/* Of the 1x1 convolution with stride 2 the heuristic names three engines first that are on no tensor cores. */
	static const enum gt_dtype types[] = {GT_BF16, GT_F16};
	struct gt_err e = {0};
	struct gt_dnn_plan p;
	int on = 0;
	for (int card = 0; card < DNN_CARDS; card++) {
		if (!open_card((enum dnn_card)card))
			return;
		dev.deterministic = true;
		for (int i = 0; i < 10; i++)
			for (int pass = GT_DNN_FWD; pass <= GT_DNN_DW; pass++)
				for (int t = 0; t < 2; t++) {
					struct gt_dnn_conv c = conv_of(shapes[i], (enum gt_dnn_pass)pass, types[t], pass == GT_DNN_FWD ? 2 : 0);
					char key[GT_DNN_KEY];
					gt_dnn_key(&dev, &c, key);
					CHECK_OK(gt_dnn_plan_make(&dev, &c, &p, &e), e);
					CHECK_MSG(has_note(&p, CUDNN_NUMERICAL_NOTE_TENSOR_CORE), "%s on %s: engine %lld is on no tensor cores", key,
					          dnn_card_name[card], (long long)p.choice.engine);
					on += p.tensor_core;
					gt_dnn_plan_drop(&p);
				}
	}
	printf("# %d of %d 16-bit plans of repeatable runs are on tensor cores\n", on, DNN_CARDS * 10 * 3 * 2);
}

/* ---- the configs' graphs ------------------------------------------------------------------------------------------------------------- */
/* A key of gt_dnn_key(), read back: graph, type and the device's options. */
static bool parse_key(const char *s, struct gt_dnn_conv *c)
{
	static const char *const passes[] = {[GT_DNN_FWD] = "fwd", [GT_DNN_DX] = "dx", [GT_DNN_DW] = "dw"};
	long long v[14];
	char pass[8], type[8];
	int at = 0;
	if (sscanf(s, "conv2d %7s %7s x%lld,%lld,%lld,%lld w%lld,%lld,%lld,%lld s%lld,%lld p%lld,%lld d%lld,%lld%n", pass, type, &v[0], &v[1],
	           &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9], &v[10], &v[11], &v[12], &v[13], &at) != 16)
		return false;
	*c = (struct gt_dnn_conv){.x = {v[0], v[1], v[2], v[3]},
	                          .w = {v[4], v[5], v[6], v[7]},
	                          .stride = {v[8], v[9]},
	                          .padding = {v[10], v[11]},
	                          .dilation = {v[12], v[13]}};
	for (int i = GT_DNN_FWD; i <= GT_DNN_DW; i++)
		if (!strcmp(pass, passes[i]))
			c->pass = (enum gt_dnn_pass)i;
	c->type = !strcmp(type, "bf16") ? GT_BF16 : !strcmp(type, "f16") ? GT_F16 : GT_F32;
	c->y[0] = v[0], c->y[1] = v[4];
	for (int i = 0; i < 2; i++)
		c->y[2 + i] = (v[2 + i] + 2 * v[10 + i] - v[12 + i] * (v[6 + i] - 1) - 1) / v[8 + i] + 1;
	c->bias = strstr(s + at, " bias"), c->relu = strstr(s + at, " relu"), c->add = strstr(s + at, " add");
	dev.tf32 = strstr(s + at, " tf32"), dev.winograd = strstr(s + at, " winograd"), dev.deterministic = strstr(s + at, " repeatable");
	return true;
}

TEST(graphs_of_the_configs)
{
	const char *path = getenv("GTRAIN_DNN_GRAPHS");
	FILE *f = path ? fopen(path, "r") : NULL;
	int graphs = 0, plans = 0, failures = 0, allowed[DNN_CARDS] = {0}, on[DNN_CARDS] = {0};
	char line[512], key[GT_DNN_KEY];
	if (!f) {
		test_skip("no list of graphs (GTRAIN_DNN_GRAPHS)");
		return;
	}
	for (int card = 0; card < DNN_CARDS; card++) {
		rewind(f);
		graphs = 0;
		if (!open_card((enum dnn_card)card))
			break;
		while (fgets(line, sizeof line, f)) {
			struct gt_dnn_conv c;
			line[strcspn(line, "\n")] = '\0';
			if (!parse_key(line, &c)) {
				test_fail(__FILE__, __LINE__, "no key: %s", line);
				continue;
			}
			gt_dnn_key(&dev, &c, key);
			CHECK_MSG(!strcmp(key, line), "%s was read as %s", line, key);
			graphs++;
			for (int repeatable = 0; repeatable < 2; repeatable++) {
				struct gt_err e = {0};
				struct gt_dnn_plan p;
				dev.deterministic = repeatable;
				if (gt_dnn_plan_make(&dev, &c, &p, &e) != GT_OK) {
					test_fail(__FILE__, __LINE__, "%s on %s: %s", line, dnn_card_name[card], e.msg);
					failures++;
					continue;
				}
				plans++;
				allowed[card] += repeatable && (c.type != GT_F32 || dev.tf32);
				on[card] += repeatable && (c.type != GT_F32 || dev.tf32) && p.tensor_core;
				gt_dnn_plan_drop(&p);
			}
		}
	}
	fclose(f);
	CHECK(graphs > 0);
	printf("# configs: %d graphs, %d plans on %d cards, %d failures; on tensor cores, of the repeatable ones that may be: H200 %d of %d, "
	       "A100 %d of %d\n",
	       graphs, plans, DNN_CARDS, failures, on[DNN_H200], allowed[DNN_H200], on[DNN_A100], allowed[DNN_A100]);
}

/* ---- images of few channels --------------------------------------------------------------------------------------------------- */
/* Engines on tensor cores copy images with 3 channels into a workspace of 8, and need none for images that have 8 (image_padding.c). */
TEST(padded_images_need_no_copy)
{
	static const int64_t few[][11] = {
	    {1024, 3, 32, 32, 64, 3, 3, 1, 1, 1, 1}, {1024, 3, 31, 31, 24, 2, 2, 1, 0, 1, 1}, {128, 3, 224, 224, 64, 7, 7, 2, 3, 1, 1}};
	if (!open_card(DNN_H200))
		return;
	dev.deterministic = true;
	for (int i = 0; i < (int)(sizeof few / sizeof *few); i++)
		for (int pass = GT_DNN_FWD; pass <= GT_DNN_DW; pass += GT_DNN_DW - GT_DNN_FWD) {
			const int64_t *s = few[i];
			size_t copy = (size_t)(s[0] * 8 * s[2] * s[3]) * 2, workspace[2];
			for (int padded = 0; padded < 2; padded++) {
				struct gt_dnn_conv c = conv_of(s, (enum gt_dnn_pass)pass, GT_BF16, 0);
				struct gt_dnn_plan p;
				struct gt_err e = {0};
				if (padded)
					c.x[1] = c.w[1] = 8;
				CHECK_OK(gt_dnn_plan_make(&dev, &c, &p, &e), e);
				workspace[padded] = p.workspace;
				gt_dnn_plan_drop(&p);
			}
			CHECK_MSG(workspace[0] >= copy && workspace[1] < copy / 4, "a copy of %lld images has %zu bytes, the workspaces %zu and %zu",
			          (long long)s[0], copy, workspace[0], workspace[1]);
			printf("# %s of %lld images [3, %lld, %lld] in bf16: %.1f MiB of workspace, %.1f MiB if their channels are padded to 8\n",
			       pass == GT_DNN_FWD ? "convolution" : "gradient by weights", (long long)s[0], (long long)s[2], (long long)s[3],
			       (double)workspace[0] / 1048576, (double)workspace[1] / 1048576);
		}
}

/* ---- engines that are compiled when a plan is made -------------------------------------------------------------------------- */
#if CUDNN_VERSION >= 90800
/* What the stub of a driver answers, CUDA_ERROR_STUB_LIBRARY, when it is handed the compiled kernels: cuDNN can go no further without a
 * GPU. */
#define STUB "cuLibraryLoadData returned error  (34)"

/* Compiles an engine for the graph. false: none of those whose kernels are compiled at run time got as far as the driver, and told has what
 * the last one said, or nothing where there is none. */
static bool compile(const struct gt_dnn_conv *c, struct gt_dnn_plan *p, char *told, size_t size)
{
	cudnnBackendBehaviorNote_t note[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
	struct gt_dnn_set *s = &p->set;
	int64_t engines = 0;
	int keep;
	told[0] = '\0';
	*p = (struct gt_dnn_plan){.set.dnn = dev.dnn};
	gt_dnn_graph(p, c);
	gt_dnn_get(s, p->graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &engines);
	keep = s->n;
	for (int64_t i = 0; i < engines; i++, gt_dnn_drop(s, keep)) {
		cudnnBackendDescriptor_t config, engine = gt_dnn_new(s, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
		gt_dnn_put_desc(s, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, p->graph);
		gt_dnn_put(s, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &i);
		gt_dnn_put_desc(s, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, dev.dnn->prop);
		gt_dnn_finalize(s, engine, "engine");
		int64_t notes =
		    gt_dnn_get(s, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, note);
		bool compiled = false;
		for (int64_t k = 0; k < notes; k++)
			compiled |= note[k] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
		if (compiled) {
			config = gt_dnn_new(s, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
			gt_dnn_put_desc(s, config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
			gt_dnn_finalize(s, config, "engine configuration");
			p->plan = gt_dnn_new(s, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan");
			gt_dnn_put_desc(s, p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
			gt_dnn_put_desc(s, p->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, dev.dnn->prop);
			gt_dnn_finalize(s, p->plan, "execution plan");
			gt_dnn_failure_text(s, told, size);
			if (s->status == CUDNN_STATUS_SUCCESS || strstr(told, STUB))
				return true;
		}
	}
	return false;
}

TEST(compiled_engines)
{
	static const enum gt_dtype types[] = {GT_F32, GT_F16};
	int graphs = 0, compiled = 0;
	if (!getenv("GTRAIN_DNN_STUB")) {
		test_skip("no driver and no stub of one (GTRAIN_DNN_STUB)");
		return;
	}
	if (!open_card(DNN_H200))
		return;
	dev.tf32 = true;
	for (int pass = GT_DNN_FWD; pass <= GT_DNN_DW; pass++)
		for (int t = 0; t < 2; t++) {
			struct gt_dnn_conv c = conv_of(shapes[1], (enum gt_dnn_pass)pass, types[t], pass == GT_DNN_FWD ? 2 : 0);
			struct gt_dnn_plan p;
			char key[GT_DNN_KEY], told[400];
			gt_dnn_key(&dev, &c, key);
			graphs++;
			if (compile(&c, &p, told, sizeof told))
				compiled++;
			else
				printf("# no compiled engine takes %s: %s\n", key, told);
			gt_dnn_plan_drop(&p);
		}
	CHECK_MSG(compiled >= 3, "engines were compiled for %d of %d graphs", compiled, graphs);
	printf("# engines compiled at run time: %d of %d graphs got as far as the driver\n", compiled, graphs);
}
#endif

TEST(a_wrong_choice_in_the_cache_is_passed_over)
{
	/* An engine that does not exist; one with a knob that it has not; a tensor core engine where f32 must stay f32. */
	struct gt_dnn_conv c = conv_of(shapes[1], GT_DNN_FWD, GT_F32, 0);
	struct gt_dnn_choice wrong[3] = {{.engine = 99999}, {.engine = 0, .nknobs = 1, .knob = {{2, 77}}}, {.engine = 0}};
	struct gt_err e = {0};
	struct gt_dnn_plan p;
	char key[GT_DNN_KEY];
	if (!open_card(DNN_H200))
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
	if (!open_card(DNN_H200))
		return;
	c.y[2] = 31;
	CHECK(gt_dnn_plan_make(&dev, &c, &p, &e) == GT_EUNAVAILABLE);
	CHECK_MSG(strstr(e.msg, "cuDNN 9.") && strstr(e.msg, "CUDNN_STATUS_"), "%s", e.msg);
	printf("# refusal: %s\n", e.msg);
}

RUN_TESTS()
