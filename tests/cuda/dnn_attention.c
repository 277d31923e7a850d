/* Which graphs of attention (cudnn_attention.c) the installed cuDNN has engines for, on an H200, an A100 and a B200 that are only
 * described: head sizes, lengths of sequences, masks, types, passes. All engines are compiled when a plan is made. GTRAIN_DNN_STUB=1 says
 * that the toolkit's stub of a driver is on the loader's path; then the heuristic asks every engine whether it supports the graph, and a
 * plan is made up to the point at which the driver is handed the compiled kernel. Nothing runs. Run by test_dnn_plans.sh. */
#include "cuda/cudnn_attention.h"
#include "base/clock.h"
#include "cuda/dnn_card.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

#define STUB "cuLibraryLoadData returned error  (34)" /* the answer of a driver's stub */
#define MAX_OFFERS 32

static struct gt_dev dev = {.id = "cuda:0"};
enum { FORWARD, GRADIENT, ORDERED, PASSES };
static const char *const pass_names[PASSES] = {"forward", "gradient", "gradient in a fixed order"};

static struct gt_dnn_attention shape_of(int pass, enum gt_dtype type, int64_t d, int64_t tokens, int masks)
{
	return (struct gt_dnn_attention){.type = type,
	                                 .samples = 4,
	                                 .heads = 3,
	                                 .tokens = tokens,
	                                 .d = d,
	                                 .causal = masks & 1,
	                                 .lengths = masks & 2,
	                                 .gradient = pass != FORWARD,
	                                 .ordered = pass == ORDERED};
}

static bool open_card(enum dnn_card card)
{
	if (getenv("GTRAIN_DNN_STUB"))
		return dnn_card_open(&dev, card);
	test_skip("no driver and no stub of one (GTRAIN_DNN_STUB)");
	return false;
}

/* The number of configurations of engines that the heuristic offers for the graph, all of which support it. */
static int count_offers(const struct gt_dnn_attention *a, struct gt_dnn_call *call)
{
	struct gt_dnn_plan p = {.set.dnn = dev.dnn};
	struct gt_dnn_set h = {.dnn = dev.dnn};
	cudnnBackendDescriptor_t config[MAX_OFFERS], heur;
	cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
	char text[400];
	gt_dnn_attention_call(&dev, a, call);
	call->build(&p, call->shape);
	CHECK_MSG(p.set.status == CUDNN_STATUS_SUCCESS, "%s: %s", call->key, gt_dnn_failure_text(&p.set, text, sizeof text));
	heur = gt_dnn_new(&h, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic");
	gt_dnn_put_desc(&h, heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p.graph);
	gt_dnn_put(&h, heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
#if CUDNN_VERSION >= 90800
	gt_dnn_put_desc(&h, heur, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, dev.dnn->prop);
#endif
	gt_dnn_finalize(&h, heur, "heuristic");
	for (int i = 0; i < MAX_OFFERS; i++)
		config[i] = gt_dnn_new(&h, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
	int n = (int)gt_dnn_get(&h, heur, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_OFFERS, config);
	gt_dnn_drop(&h, 0);
	gt_dnn_plan_drop(&p);
	return n;
}

/* Every combination that cuda_attention.c gives to cuDNN has an engine. */
TEST(supported_shapes)
{
	static const int64_t tokens[] = {1, 2, 17, 64, 100, 197, 256, 512, 1000, 2048};
	static const enum gt_dtype types[] = {GT_BF16, GT_F16};
	for (int card = 0; card < DNN_ALL_CARDS; card++) {
		int asked = 0, supported[PASSES] = {0};
		if (!open_card((enum dnn_card)card))
			return;
		for (int i = 0; i < 16 + 10; i++)
			for (int masks = 0; masks < 4; masks++)
				for (int pass = 0; pass < PASSES; pass++) {
					struct gt_dnn_attention a =
					    shape_of(pass, types[(i + masks) % 2], i < 16 ? 8 * (i + 1) : 64, i < 16 ? 256 : tokens[i - 16], masks);
					struct gt_dnn_call call;
					int n = count_offers(&a, &call);
					CHECK_MSG(n > 0, "%s on %s: no engine", call.key, dnn_card_name[card]);
					asked += pass == 0;
					supported[pass] += n > 0;
				}
		printf("# attention, cuDNN %zu, %s: of %d shapes (heads of 8, 16, ... 128 features; 1 to 2048 tokens; causal, lengths, both, none) "
		       "there are engines for %d forward, %d gradient, %d in a fixed order\n",
		       dev.dnn->version, dnn_card_name[card], asked, supported[FORWARD], supported[GRADIENT], supported[ORDERED]);
	}
}

TEST(shapes_that_cudnn_refuses)
{
	static const int64_t sizes[] = {4, 12, 100, 136, 256};
	for (int card = 0; card < DNN_ALL_CARDS; card++) {
		if (!open_card((enum dnn_card)card))
			return;
		printf("# attention on %s, engines for", dnn_card_name[card]);
		for (int i = 0; i < 5; i++) {
			int n[PASSES];
			struct gt_dnn_call call;
			for (int pass = 0; pass < PASSES; pass++) {
				struct gt_dnn_attention a = shape_of(pass, GT_BF16, sizes[i], 256, 0);
				n[pass] = count_offers(&a, &call);
				CHECK_MSG(sizes[i] % 8 == 0 || !n[pass], "%s on %s has an engine", call.key, dnn_card_name[card]);
			}
			printf(" heads of %d: %d %d %d%s", (int)sizes[i], n[FORWARD], n[GRADIENT], n[ORDERED], i < 4 ? "," : "\n");
		}
	}
}

/* The engine that would be chosen is compiled, up to the driver. */
TEST(compiled_plans)
{
	for (int card = 0; card < DNN_ALL_CARDS; card++) {
		int plans = 0;
		if (!open_card((enum dnn_card)card))
			return;
		for (int pass = 0; pass < PASSES; pass++) {
			double start = gt_clock();
			for (int masks = 0; masks < 4; masks += 3) {
				struct gt_dnn_attention a = shape_of(pass, GT_BF16, 64, 256, masks);
				struct gt_dnn_shared *shared = NULL;
				struct gt_err e = {0};
				dev.deterministic = pass == ORDERED;
				if (gt_dnn_attention_open(&dev, &a, &shared, &e) == GT_OK)
					gt_dnn_attention_close(&dev, shared);
				CHECK_MSG(!e.code || strstr(e.msg, STUB), "%s on %s: %s", pass_names[pass], dnn_card_name[card], e.msg);
				plans += !e.code || strstr(e.msg, STUB);
			}
			printf("# attention on %s, %s: two plans, with all their candidates, were compiled in %.1f s\n", dnn_card_name[card],
			       pass_names[pass], gt_clock() - start);
		}
		CHECK(plans == 2 * PASSES);
	}
}

RUN_TESTS()
