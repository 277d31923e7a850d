/* Which graphs around a convolution and a batch normalisation the installed cuDNN has engines for, on an H200 and an A100 that are only
 * described to it: precompiled engines, engines that are compiled when a plan is made, or none. gtrain does not use these graphs;
 * tests/bench/RESULTS.md ("Convolutions joined with normalisations") says why. What cuDNN answers is reported, and compared with the
 * answers of 9.19 and 9.26, but is no failure. A graph that is malformed is one, because cuDNN's answer would mean nothing. Run by
 * test_dnn_plans.sh; GTRAIN_DNN_STUB=1 says that a driver, if only the toolkit's stub, is on the loader's path.
 *
 * Patterns: cuDNN documentation, "Graph API", supported graph patterns (ConvBNfprop, ConvBNwgrad, DgradDreluBNBwdWeight). */
#include "cuda/cudnn_conv.h"
#include "cuda/dnn_card.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if CUDNN_VERSION >= 90800
static struct gt_dev dev = {.id = "cuda:0"};

/* ---- graphs ------------------------------------------------------------------------------------------------------------------------ */
enum pass { FWD, DX, DW };
enum mask { NO_MASK, OF_Y, OF_NORM }; /* relu's gradient by its stored output, or by the normalisation computed again */

struct pattern {
	const char *name;
	enum pass pass;
	bool scale, relu; /* before x is convolved: a scale and a shift for each channel; relu */
	bool sums;        /* sums of y and of its squares for each channel (genstats) */
	enum mask mask;   /* what is done to dx; with OF_NORM the gradients of the normalisation's parameters are computed too */
	/* Number of shapes in f16 for which 9.19 and 9.26 have a precompiled engine that allows GT_DNN_WORKSPACE. In bf16 there are none. */
	int known[DNN_CARDS];
};

static const struct pattern patterns[] = {
    {"conv, sums", FWD, .sums = true, .known = {54, 54}},
    {"relu, conv", FWD, .relu = true, .known = {0, 54}},
    {"scale, relu, conv", FWD, .scale = true, .relu = true, .known = {0, 54}},
    {"relu, conv, sums", FWD, .relu = true, .sums = true, .known = {0, 54}},
    {"scale, conv, sums", FWD, .scale = true, .sums = true, .known = {0, 54}},
    {"scale, relu, conv, sums", FWD, .scale = true, .relu = true, .sums = true, .known = {54, 54}},
    {"relu, dw", DW, .relu = true, .known = {0, 56}},
    {"scale, relu, dw", DW, .scale = true, .relu = true, .known = {54, 56}},
    {"dx, mask", DX, .mask = OF_Y, .known = {0, 0}},
    {"dx, mask, gradients of norm", DX, .mask = OF_NORM, .known = {56, 44}},
};
static const struct pattern plain = {"conv", FWD};
#define PATTERNS (int)(sizeof patterns / sizeof *patterns)

/* What a graph gets wrong on purpose. */
enum fault { RIGHT, SUMS_OF_INPUT, SCALE_OF_OUTPUT, Y_TOO_SMALL, MEAN_ADDED };

struct net_conv {
	int64_t c, h, k, r, stride, padding;
};

struct builder {
	struct gt_dnn_set *set;
	cudnnDataType_t type;
	int64_t uid; /* of the next tensor */
	cudnnBackendDescriptor_t op[12];
	int n;
};

static cudnnBackendDescriptor_t tensor(struct builder *b, cudnnDataType_t type, bool is_virtual, const int64_t dim[4])
{
	int64_t stride[4] = {dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]}, align = 16, uid = b->uid++;
	cudnnBackendDescriptor_t d = gt_dnn_new(b->set, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
	gt_dnn_put(b->set, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	gt_dnn_put(b->set, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
	gt_dnn_put(b->set, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
	gt_dnn_put(b->set, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
	gt_dnn_put(b->set, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	if (is_virtual)
		gt_dnn_put(b->set, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	gt_dnn_finalize(b->set, d, "tensor");
	return d;
}

/* A number for each of n channels. */
static cudnnBackendDescriptor_t channels(struct builder *b, cudnnDataType_t type, int64_t n)
{
	return tensor(b, type, false, (int64_t[4]){1, n, 1, 1});
}

/* Notes a failure unless of has a channel for each number of table. cuDNN does not check it: its precompiled engines accept sums for fewer
 * channels than y has, and would write past them. */
static void check_channels(struct builder *b, cudnnBackendDescriptor_t table, cudnnBackendDescriptor_t of)
{
	int64_t n[4] = {0}, dim[4] = {0};
	gt_dnn_get(b->set, table, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, n);
	gt_dnn_get(b->set, of, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
	if (b->set->status != CUDNN_STATUS_SUCCESS || (n[1] == dim[1] && n[0] * n[2] * n[3] == 1))
		return;
	b->set->status = CUDNN_STATUS_BAD_PARAM;
	b->set->what = "the numbers for each channel are as many as the channels (checked by this test)";
}

/* A descriptor that an operation refers to by an attribute. Lists of these end with a NULL descriptor. */
struct operand {
	cudnnBackendAttributeName_t name;
	cudnnBackendDescriptor_t d;
};
static cudnnBackendDescriptor_t begin(struct builder *b, cudnnBackendDescriptorType_t type, const char *what, const struct operand *o)
{
	cudnnBackendDescriptor_t op = gt_dnn_new(b->set, type, what);
	for (; o->d; o++)
		gt_dnn_put_desc(b->set, op, o->name, o->d);
	return b->op[b->n++] = op;
}

static cudnnBackendDescriptor_t pointwise_of(struct builder *b, cudnnPointwiseMode_t mode)
{
	cudnnDataType_t math = CUDNN_DATA_FLOAT;
	cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
	cudnnBackendDescriptor_t d = gt_dnn_new(b->set, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
	gt_dnn_put(b->set, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	gt_dnn_put(b->set, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
	gt_dnn_put(b->set, d, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
	gt_dnn_finalize(b->set, d, "pointwise");
	return d;
}

/* Appends y = mode(x, other) with values in f32 that are not stored, and returns y. other: a number for each channel, or NULL. */
static cudnnBackendDescriptor_t pointwise(struct builder *b, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                          cudnnBackendDescriptor_t other, const int64_t dim[4])
{
	cudnnBackendDescriptor_t y = tensor(b, CUDNN_DATA_FLOAT, true, dim);
	if (other)
		check_channels(b, other, x);
	const struct operand o[] = {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise_of(b, mode)},
	                            {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
	                            {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y},
	                            {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, other},
	                            {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, NULL}};
	gt_dnn_finalize(b->set, begin(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise", o), "pointwise");
	return y;
}

static void convolve(struct builder *b, enum pass pass, const struct net_conv *c, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t w,
                     cudnnBackendDescriptor_t y)
{
	static const struct {
		cudnnBackendDescriptorType_t op;
		cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
	} names[] = {
	    [FWD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
	             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
	             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
	             CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
	    [DX] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
	            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
	            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
	            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
	    [DW] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
	            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
	            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
	            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
	};
	cudnnDataType_t math = CUDNN_DATA_FLOAT;
	cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	int64_t spatial = 2, padding[2] = {c->padding, c->padding}, stride[2] = {c->stride, c->stride}, dilation[2] = {1, 1};
	float alpha = 1, beta = 0;
	cudnnBackendDescriptor_t d = gt_dnn_new(b->set, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
	gt_dnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &math);
	gt_dnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	gt_dnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
	gt_dnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
	gt_dnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, padding);
	gt_dnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
	gt_dnn_put(b->set, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
	gt_dnn_finalize(b->set, d, "convolution");
	const struct operand o[] = {
	    {names[pass].x, x}, {names[pass].w, w}, {names[pass].y, y}, {names[pass].conv, d}, {names[pass].conv, NULL}};
	cudnnBackendDescriptor_t op = begin(b, names[pass].op, "convolution", o);
	gt_dnn_put(b->set, op, names[pass].alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
	gt_dnn_put(b->set, op, names[pass].beta, CUDNN_TYPE_FLOAT, 1, &beta);
	gt_dnn_finalize(b->set, op, "convolution");
}

static void sums_of(struct builder *b, cudnnBackendDescriptor_t y, int64_t n)
{
	cudnnDataType_t math = CUDNN_DATA_FLOAT;
	cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
	cudnnBackendDescriptor_t sum = channels(b, CUDNN_DATA_FLOAT, n), squares = channels(b, CUDNN_DATA_FLOAT, n);
	check_channels(b, sum, y);
	check_channels(b, squares, y);
	const struct operand o[] = {{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y},
	                            {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum},
	                            {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares},
	                            {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, NULL}};
	cudnnBackendDescriptor_t op = begin(b, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, "sums", o);
	gt_dnn_put(b->set, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
	gt_dnn_put(b->set, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
	gt_dnn_finalize(b->set, op, "sums");
}

/* Appends the relu's gradient, which writes dx, and the gradients of the normalisation whose input is x. */
static void mask(struct builder *b, const struct pattern *p, enum fault fault, cudnnBackendDescriptor_t dy, cudnnBackendDescriptor_t x,
                 const int64_t dim[4])
{
	cudnnDataType_t f32 = CUDNN_DATA_FLOAT;
	cudnnBackendDescriptor_t dx = tensor(b, b->type, false, dim), z = x, mean = NULL, rstd = NULL, gamma = NULL;
	if (p->mask == OF_NORM) {
		mean = channels(b, f32, dim[1]), rstd = channels(b, f32, dim[1]), gamma = channels(b, f32, dim[1]);
		z = pointwise(b, fault == MEAN_ADDED ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_SUB, x, mean, dim);
		z = pointwise(b, CUDNN_POINTWISE_MUL, z, rstd, dim);
		z = pointwise(b, CUDNN_POINTWISE_MUL, z, gamma, dim);
		z = pointwise(b, CUDNN_POINTWISE_ADD, z, channels(b, f32, dim[1]), dim);
	}
	const struct operand masked[] = {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise_of(b, CUDNN_POINTWISE_RELU_BWD)},
	                                 {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy},
	                                 {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, z},
	                                 {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx},
	                                 {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, NULL}};
	gt_dnn_finalize(b->set, begin(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "mask", masked), "mask");
	if (p->mask != OF_NORM)
		return;
	const struct operand o[] = {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, x},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, mean},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, rstd},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, gamma},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dx},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, channels(b, f32, dim[1])},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, channels(b, f32, dim[1])},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, channels(b, f32, dim[1])},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, channels(b, f32, dim[1])},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, channels(b, f32, dim[1])},
	                            {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, NULL}};
	cudnnBackendDescriptor_t op = begin(b, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, "gradients of a normalisation", o);
	gt_dnn_put(b->set, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &f32);
	gt_dnn_finalize(b->set, op, "gradients of a normalisation");
}

/* Builds the operation graph in s, which keeps the first failure. */
static cudnnBackendDescriptor_t graph_of(struct gt_dnn_set *s, const struct pattern *p, enum gt_dtype type, const struct net_conv *c,
                                         int64_t batch, enum fault fault)
{
	struct builder b = {.set = s, .type = type == GT_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF, .uid = 1};
	int64_t size = (c->h + 2 * c->padding - c->r) / c->stride + 1 - (fault == Y_TOO_SMALL);
	int64_t xd[4] = {batch, c->c, c->h, c->h}, wd[4] = {c->k, c->c, c->r, c->r}, yd[4] = {batch, c->k, size, size};
	cudnnBackendDescriptor_t x = tensor(&b, b.type, false, xd), w = tensor(&b, b.type, false, wd), y = tensor(&b, b.type, false, yd);
	cudnnBackendDescriptor_t in = x;
	if (p->scale) { /* no precompiled engine takes a scale or a shift in f32 */
		int64_t n = fault == SCALE_OF_OUTPUT ? c->k : c->c;
		in = pointwise(&b, CUDNN_POINTWISE_MUL, in, channels(&b, b.type, n), xd);
		in = pointwise(&b, CUDNN_POINTWISE_ADD, in, channels(&b, b.type, n), xd);
	}
	if (p->relu)
		in = pointwise(&b, CUDNN_POINTWISE_RELU_FWD, in, NULL, xd);
	if (p->pass == DX)
		in = tensor(&b, CUDNN_DATA_FLOAT, true, xd);
	convolve(&b, p->pass, c, in, w, y);
	if (p->sums)
		sums_of(&b, y, fault == SUMS_OF_INPUT ? c->c : c->k);
	if (p->mask)
		mask(&b, p, fault, in, x, xd);
	cudnnBackendDescriptor_t graph = gt_dnn_new(s, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
	gt_dnn_put(s, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, b.n, b.op);
	gt_dnn_finalize(s, graph, "operation graph");
	return graph;
}

/* ---- engines ------------------------------------------------------------------------------------------------------------------------- */
struct answer {
	int precompiled, compiled; /* number of engines with a plan; of precompiled ones, those that allow GT_DNN_WORKSPACE */
	int64_t workspace;         /* the largest one of precompiled engines in bytes */
	double seconds;            /* that the quickest plan took whose kernels were compiled */
	char why[300];             /* cuDNN's last refusal */
};

/* What the stub of a driver answers when it is handed compiled kernels: without a GPU a plan gets no further. */
#define STUB "cuLibraryLoadData returned error  (34)"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Makes a plan of each engine for the graph, in its default configuration. compile: also of engines that are compiled at run time. */
static void ask(struct gt_dnn_set *s, cudnnBackendDescriptor_t graph, bool compile, struct answer *a)
{
	int64_t engines = 0;
	int keep = s->n;
	gt_dnn_get(s, graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &engines);
	for (int64_t i = 0; i < engines; i++, gt_dnn_drop(s, keep)) {
		cudnnBackendBehaviorNote_t note[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
		cudnnBackendDescriptor_t config, plan, engine = gt_dnn_new(s, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
		bool compiled = false;
		double start = now();
		gt_dnn_put_desc(s, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
		gt_dnn_put(s, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &i);
		gt_dnn_put_desc(s, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, dev.dnn->prop);
		gt_dnn_finalize(s, engine, "engine");
		int64_t notes =
		    gt_dnn_get(s, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, note);
		for (int64_t k = 0; k < notes; k++)
			compiled |= note[k] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
		if (s->status != CUDNN_STATUS_SUCCESS || (compiled && !compile))
			continue; /* the engine is for another card */
		config = gt_dnn_new(s, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
		gt_dnn_put_desc(s, config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
		gt_dnn_finalize(s, config, "engine configuration");
		plan = gt_dnn_new(s, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan");
		gt_dnn_put_desc(s, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
		gt_dnn_put_desc(s, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, dev.dnn->prop);
		gt_dnn_finalize(s, plan, "execution plan");
		if (s->status == CUDNN_STATUS_SUCCESS && !compiled) {
			int64_t bytes = 0;
			gt_dnn_get(s, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
			a->workspace = bytes > a->workspace ? bytes : a->workspace;
			a->precompiled += bytes <= GT_DNN_WORKSPACE;
			continue;
		}
		gt_dnn_failure_text(s, a->why, sizeof a->why);
		if (compiled && (s->status == CUDNN_STATUS_SUCCESS || strstr(a->why, STUB))) {
			double t = now() - start;
			a->seconds = !a->compiled++ || t < a->seconds ? t : a->seconds;
		}
	}
}

/* false: the graph is malformed, and a->why has cuDNN's reason. */
static bool answer_to(const struct pattern *p, enum gt_dtype type, const struct net_conv *c, int64_t batch, enum fault fault, bool compile,
                      struct answer *a)
{
	struct gt_dnn_set s = {.dnn = dev.dnn};
	*a = (struct answer){0};
	cudnnBackendDescriptor_t graph = graph_of(&s, p, type, c, batch, fault);
	bool fine = s.status == CUDNN_STATUS_SUCCESS;
	if (fine)
		ask(&s, graph, compile, a);
	else
		gt_dnn_failure_text(&s, a->why, sizeof a->why);
	gt_dnn_drop(&s, 0);
	return fine;
}

/* ---- tests --------------------------------------------------------------------------------------------------------------------------- */
static const struct net_conv convs[] = {
    /* ResNet-18 on images of 32 x 32 */
    {3, 32, 64, 3, 1, 1}, {8, 32, 64, 3, 1, 1}, {64, 32, 64, 3, 1, 1}, {64, 32, 128, 3, 2, 1}, {64, 32, 128, 1, 2, 0},
    {128, 16, 128, 3, 1, 1}, {128, 16, 256, 3, 2, 1}, {128, 16, 256, 1, 2, 0}, {256, 8, 256, 3, 1, 1}, {256, 8, 512, 3, 2, 1},
    {256, 8, 512, 1, 2, 0}, {512, 4, 512, 3, 1, 1},
    /* and of 224 x 224 */
    {3, 224, 64, 7, 2, 3}, {8, 224, 64, 7, 2, 3}, {64, 56, 64, 3, 1, 1}, {64, 56, 128, 3, 2, 1}, {64, 56, 128, 1, 2, 0},
    {128, 28, 128, 3, 1, 1}, {128, 28, 256, 3, 2, 1}, {128, 28, 256, 1, 2, 0}, {256, 14, 256, 3, 1, 1}, {256, 14, 512, 3, 2, 1},
    {256, 14, 512, 1, 2, 0}, {512, 7, 512, 3, 1, 1},
    /* airbench */
    {3, 32, 24, 2, 1, 0}, {8, 32, 24, 2, 1, 0}, {24, 31, 64, 3, 1, 1}, {64, 15, 64, 3, 1, 1}, {64, 15, 256, 3, 1, 1},
    {256, 7, 256, 3, 1, 1}, {256, 3, 256, 3, 1, 1},
};
#define CONVS (int)(sizeof convs / sizeof *convs)
static const int64_t batches[] = {128, 1024};
#define SHAPES (2 * CONVS)

/* A normalisation's output is convolved, so that the graphs are those of a network if a plain convolution of every shape has engines. */
TEST(plain_convolutions_have_engines)
{
	static const enum gt_dtype types[] = {GT_F16, GT_BF16};
	for (int card = 0; card < DNN_CARDS; card++) {
		if (!dnn_card_open(&dev, (enum dnn_card)card))
			return;
		for (int k = 0; k < 2 * SHAPES; k++) {
			const struct net_conv *c = &convs[k / 4];
			struct answer a;
			CHECK_MSG(answer_to(&plain, types[k % 2], c, batches[k / 2 % 2], RIGHT, false, &a) && a.precompiled,
			          "%lld channels of %lld x %lld: %s", (long long)c->c, (long long)c->h, (long long)c->h, a.why);
		}
	}
}

/* Asks for all shapes. Returns how many have a precompiled engine; *workspace: the largest one. Prints the shapes that are refused if
 * others are not. */
static int ask_all(const struct pattern *p, enum gt_dtype type, enum dnn_card card, double *workspace)
{
	char refused[400] = "";
	size_t n = 0;
	int have = 0;
	for (int k = 0; k < SHAPES; k++) {
		const struct net_conv *c = &convs[k / 2];
		struct answer a;
		if (!answer_to(p, type, c, batches[k % 2], RIGHT, false, &a))
			test_fail(__FILE__, __LINE__, "%s: %s", p->name, a.why);
		have += a.precompiled > 0;
		*workspace = (double)a.workspace > *workspace ? (double)a.workspace : *workspace;
		if (!a.precompiled && !(k % 2) && n < sizeof refused)
			n += (size_t)snprintf(refused + n, sizeof refused - n, " %lldx%lldx%lld", (long long)c->c, (long long)c->h,
			                      (long long)c->h);
	}
	if (have && have < SHAPES)
		printf("# refused, %s, %s: %s: images of%s\n", dnn_card_name[card], gt_dtype_name(type), p->name, refused);
	return have;
}

TEST(patterns_with_precompiled_engines)
{
	static const enum gt_dtype types[] = {GT_F16, GT_BF16};
	for (int card = 0; card < DNN_CARDS; card++) {
		if (!dnn_card_open(&dev, (enum dnn_card)card))
			return;
		for (int i = 0; i < PATTERNS; i++)
			for (int t = 0; t < 2; t++) {
				double workspace = 0;
				int have = ask_all(&patterns[i], types[t], (enum dnn_card)card, &workspace);
				printf("# cuDNN %zu, %s, %s: %s: precompiled for %d of %d shapes, workspace up to %.1f MiB%s\n", dev.dnn->version,
				       dnn_card_name[card], gt_dtype_name(types[t]), patterns[i].name, have, SHAPES, workspace / 1048576,
				       have == (t ? 0 : patterns[i].known[card]) ? "" : "; CHANGED since 9.26");
			}
	}
}

/* The tests above rely on this: a graph that makes no sense is refused, by cuDNN or by check_channels(). */
TEST(malformed_graphs_are_noticed)
{
	static const struct {
		int pattern;
		enum fault fault;
	} faults[] = {{0, SUMS_OF_INPUT}, {5, SUMS_OF_INPUT}, {5, SCALE_OF_OUTPUT}, {7, SCALE_OF_OUTPUT}, {5, Y_TOO_SMALL}, {9, Y_TOO_SMALL}};
	struct net_conv c = {64, 32, 128, 3, 2, 1};
	struct answer a;
	if (!dnn_card_open(&dev, DNN_H200))
		return;
	for (int i = 0; i < (int)(sizeof faults / sizeof *faults); i++) {
		const struct pattern *p = &patterns[faults[i].pattern];
		bool fine = answer_to(p, GT_F16, &c, 128, faults[i].fault, false, &a);
		CHECK_MSG(!fine, "cuDNN accepts a wrong graph of %s, with %d engines", p->name, a.precompiled);
		printf("# fault %d in %s: %s\n", (int)faults[i].fault, p->name, fine ? "accepted" : a.why);
	}
	/* A graph that means something else is well-formed, but no precompiled engine computes it. */
	CHECK(answer_to(&patterns[9], GT_F16, &c, 128, MEAN_ADDED, false, &a));
	printf("# a mean that is added instead of subtracted: %d precompiled engines\n", a.precompiled);
}

TEST(patterns_by_runtime_compilation)
{
	static const enum gt_dtype types[] = {GT_F16, GT_BF16};
	struct net_conv c = {64, 32, 64, 3, 1, 1};
	if (!getenv("GTRAIN_DNN_STUB")) {
		test_skip("no driver and no stub of one (GTRAIN_DNN_STUB)");
		return;
	}
	if (!dnn_card_open(&dev, DNN_H200))
		return;
	for (int i = 0; i < PATTERNS; i++)
		for (int t = 0; t < 2; t++) {
			struct answer a;
			if (!answer_to(&patterns[i], types[t], &c, 128, RIGHT, true, &a))
				test_fail(__FILE__, __LINE__, "%s: %s", patterns[i].name, a.why);
			else if (a.compiled)
				printf("# compiled, H200, %s: %s: %d engines, the quickest in %.1f s\n", gt_dtype_name(types[t]), patterns[i].name,
				       a.compiled, a.seconds);
			else
				printf("# compiled, H200, %s: %s: none%s%s\n", gt_dtype_name(types[t]), patterns[i].name, a.why[0] ? "; " : "", a.why);
		}
}
#else
TEST(patterns_with_precompiled_engines)
{
	test_skip("built with headers of cuDNN before 9.8, which make no plans without a GPU");
}
#endif

RUN_TESTS()
