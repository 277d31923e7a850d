/* cuDNN's descriptors, heuristic and engines on the host. As the library: attributes have one type and a range of counts, a descriptor is
 * finalized once with all that it needs, from finalized ones, and is read only then. Harsher: a descriptor that is used after it was
 * destroyed ends the process.
 *
 * Engines (global index; note; what it does):
 *   1 plain, tiles 0..2: the middle one is the fastest   2 takes too much workspace    3 tensor cores: rounds f32 to tf32
 *   4 offered, but has no plan      5 adds in no fixed order      6 Winograd      7 converts down      8 reduced sums      9 FFT
 *   10 like 1, fails when it runs   90 compiled first: the only one for graphs that nothing precompiled fits, among them attention
 * Environment: CUDASIM_DNN_IDLE    convolutions compute nothing, and fresh memory is not filled: for plans of large ones
 *              CUDASIM_DNN_ONLY   engines that the heuristic offers, in this order: "4,3"
 *              CUDASIM_DNN_LOG    a file that gets a line a query ("heuristic MODE"), plan ("plan ENGINE TILE") and run ("run ENGINE TILE")
 *              CUDASIM_DNN_VERSION what cudnnGetVersion returns */
#include "cudasim_dnn.h"
#include "cuda_runtime.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

struct cudasim_dnn {
	cudaStream_t stream;
};

struct plan_desc : dnn_desc {
	std::shared_ptr<dnn_program> program;
	const dnn_desc *graph;
};

static std::mutex live_lock; /* as the library, for several threads, each with descriptors of its own */
static std::set<const void *> live;
static thread_local std::string last;

static cudnnStatus_t fail(cudnnStatus_t status, const std::string &why)
{
	last = why;
	return status;
}

static void log_line(const char *text)
{
	const char *path = getenv("CUDASIM_DNN_LOG");
	FILE *f = path ? fopen(path, "a") : nullptr;
	if (!f)
		return;
	fprintf(f, "%s\n", text);
	fclose(f);
}

static dnn_desc *alive(const void *d)
{
	std::lock_guard<std::mutex> hold(live_lock);
	if (!live.count(d)) {
		fprintf(stderr, "cudasim: a cuDNN descriptor is used that was destroyed or never made\n");
		abort();
	}
	return (dnn_desc *)d;
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------------ */
enum { OPTIONAL, NEEDED, GIVEN /* by the library: it can only be read */ };
#define REF CUDNN_TYPE_BACKEND_DESCRIPTOR
#define KIND(k) CUDNN_BACKEND_##k##_DESCRIPTOR
static const struct rule {
	int kind, name, type;
	int64_t least, most;
	int need;
	int refers; /* descriptor type of a reference, -1: an operation */
} rules[] = {
#define CONV_OP(k, p, x, w, y)                                                                                                             \
	{k, CUDNN_ATTR_OPERATION_CONVOLUTION_##p##_##x, REF, 1, 1, NEEDED, KIND(TENSOR)},                                                      \
	    {k, CUDNN_ATTR_OPERATION_CONVOLUTION_##p##_##w, REF, 1, 1, NEEDED, KIND(TENSOR)},                                                  \
	    {k, CUDNN_ATTR_OPERATION_CONVOLUTION_##p##_##y, REF, 1, 1, NEEDED, KIND(TENSOR)},                                                  \
	    {k, CUDNN_ATTR_OPERATION_CONVOLUTION_##p##_CONV_DESC, REF, 1, 1, NEEDED, KIND(CONVOLUTION)},                                       \
	    {k, CUDNN_ATTR_OPERATION_CONVOLUTION_##p##_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, NEEDED, 0},                                              \
	{                                                                                                                                      \
		k, CUDNN_ATTR_OPERATION_CONVOLUTION_##p##_BETA, CUDNN_TYPE_FLOAT, 1, 1, NEEDED, 0                                                  \
	}
    CONV_OP(KIND(OPERATION_CONVOLUTION_FORWARD), FORWARD, X, W, Y),
    CONV_OP(KIND(OPERATION_CONVOLUTION_BACKWARD_DATA), BWD_DATA, DX, W, DY),
    CONV_OP(KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER), BWD_FILTER, X, DW, DY),
    {KIND(POINTWISE), CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1, NEEDED, 0},
    {KIND(POINTWISE), CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1, NEEDED, 0},
    {KIND(POINTWISE), CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, 1, OPTIONAL, 0},
    {KIND(OPERATION_POINTWISE), CUDNN_ATTR_OPERATION_POINTWISE_TDESC, REF, 1, 1, OPTIONAL, KIND(TENSOR)},
    {KIND(MATMUL), CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, NEEDED, 0},
    {KIND(OPERATION_MATMUL), CUDNN_ATTR_OPERATION_MATMUL_ADESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(OPERATION_MATMUL), CUDNN_ATTR_OPERATION_MATMUL_BDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(OPERATION_MATMUL), CUDNN_ATTR_OPERATION_MATMUL_CDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(OPERATION_MATMUL), CUDNN_ATTR_OPERATION_MATMUL_DESC, REF, 1, 1, NEEDED, KIND(MATMUL)},
    {KIND(OPERATION_MATMUL), CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, REF, 1, 1, OPTIONAL, KIND(TENSOR)},
    {KIND(OPERATION_MATMUL), CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, REF, 1, 1, OPTIONAL, KIND(TENSOR)},
    {KIND(OPERATION_MATMUL), CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, REF, 1, 1, OPTIONAL, KIND(TENSOR)},
    {KIND(REDUCTION), CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1, NEEDED, 0},
    {KIND(REDUCTION), CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, NEEDED, 0},
    {KIND(OPERATION_REDUCTION), CUDNN_ATTR_OPERATION_REDUCTION_XDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(OPERATION_REDUCTION), CUDNN_ATTR_OPERATION_REDUCTION_YDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(OPERATION_REDUCTION), CUDNN_ATTR_OPERATION_REDUCTION_DESC, REF, 1, 1, NEEDED, KIND(REDUCTION)},
    {KIND(OPERATION_RESHAPE), CUDNN_ATTR_OPERATION_RESHAPE_XDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(OPERATION_RESHAPE), CUDNN_ATTR_OPERATION_RESHAPE_YDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(TENSOR), CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, OPTIONAL, 0},
    {KIND(POINTWISE), CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, 1, OPTIONAL, 0},
    {KIND(OPERATION_POINTWISE), CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, REF, 1, 1, NEEDED, KIND(POINTWISE)},
    {KIND(OPERATION_POINTWISE), CUDNN_ATTR_OPERATION_POINTWISE_XDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(OPERATION_POINTWISE), CUDNN_ATTR_OPERATION_POINTWISE_BDESC, REF, 1, 1, OPTIONAL, KIND(TENSOR)},
    {KIND(OPERATION_POINTWISE), CUDNN_ATTR_OPERATION_POINTWISE_YDESC, REF, 1, 1, NEEDED, KIND(TENSOR)},
    {KIND(CONVOLUTION), CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, NEEDED, 0},
    {KIND(CONVOLUTION), CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, NEEDED, 0},
    {KIND(CONVOLUTION), CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1, NEEDED, 0},
    {KIND(CONVOLUTION), CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 2, NEEDED, 0},
    {KIND(CONVOLUTION), CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 2, NEEDED, 0},
    {KIND(CONVOLUTION), CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 2, NEEDED, 0},
    {KIND(CONVOLUTION), CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 2, NEEDED, 0},
    {KIND(TENSOR), CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, NEEDED, 0},
    {KIND(TENSOR), CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4, NEEDED, 0},
    {KIND(TENSOR), CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4, NEEDED, 0},
    {KIND(TENSOR), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1, NEEDED, 0},
    {KIND(TENSOR), CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1, NEEDED, 0},
    {KIND(TENSOR), CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, OPTIONAL, 0},
    {KIND(OPERATIONGRAPH), CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, NEEDED, 0},
    {KIND(OPERATIONGRAPH), CUDNN_ATTR_OPERATIONGRAPH_OPS, REF, 1, 50, NEEDED, -1},
    {KIND(ENGINEHEUR), CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, REF, 1, 1, NEEDED, KIND(OPERATIONGRAPH)},
    {KIND(ENGINEHEUR), CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1, NEEDED, 0},
    {KIND(ENGINEHEUR), CUDNN_ATTR_ENGINEHEUR_RESULTS, REF, 0, 1000, GIVEN, KIND(ENGINECFG)},
    {KIND(ENGINE), CUDNN_ATTR_ENGINE_OPERATION_GRAPH, REF, 1, 1, NEEDED, KIND(OPERATIONGRAPH)},
    {KIND(ENGINE), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, 1, NEEDED, 0},
    {KIND(ENGINE), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 0, 10, GIVEN, 0},
    {KIND(ENGINE), CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, 0, 5, GIVEN, 0},
    {KIND(ENGINECFG), CUDNN_ATTR_ENGINECFG_ENGINE, REF, 1, 1, NEEDED, KIND(ENGINE)},
    {KIND(ENGINECFG), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, REF, 1, 44, OPTIONAL, KIND(KNOB_CHOICE)},
    {KIND(KNOB_CHOICE), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, 1, NEEDED, 0},
    {KIND(KNOB_CHOICE), CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, 1, NEEDED, 0},
    {KIND(EXECUTION_PLAN), CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, 1, NEEDED, 0},
    {KIND(EXECUTION_PLAN), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, REF, 1, 1, NEEDED, KIND(ENGINECFG)},
    {KIND(EXECUTION_PLAN), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, 1, GIVEN, 0},
    {KIND(VARIANT_PACK), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1, 100, NEEDED, 0},
    {KIND(VARIANT_PACK), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, 100, NEEDED, 0},
    {KIND(VARIANT_PACK), CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, 1, OPTIONAL, 0},
};

static bool is_op(int kind)
{
	return kind == KIND(OPERATION_POINTWISE) || kind == KIND(OPERATION_MATMUL) || kind == KIND(OPERATION_REDUCTION) ||
	       kind == KIND(OPERATION_RESHAPE) || kind == KIND(OPERATION_CONVOLUTION_FORWARD) ||
	       kind == KIND(OPERATION_CONVOLUTION_BACKWARD_DATA) || kind == KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER);
}

static const rule *rule_of(int kind, int name)
{
	for (const rule &r : rules)
		if (r.kind == kind && r.name == name)
			return &r;
	return nullptr;
}

static size_t size_of(int type)
{
	return type == CUDNN_TYPE_BOOLEAN                                                                            ? 1
	       : type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR || type == REF || type == CUDNN_TYPE_HANDLE ? 8
	                                                                                                             : 4;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind, cudnnBackendDescriptor_t *out)
{
	bool known = false;
	for (const rule &r : rules)
		known |= r.kind == kind;
	if (!known)
		return fail(CUDNN_STATUS_NOT_SUPPORTED, "descriptor type");
	dnn_desc *d = kind == KIND(EXECUTION_PLAN) ? new plan_desc() : new dnn_desc();
	d->kind = kind;
	d->final = false;
	std::lock_guard<std::mutex> hold(live_lock);
	live.insert(d);
	*out = d;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t p)
{
	dnn_desc *d = alive(p);
	std::lock_guard<std::mutex> hold(live_lock);
	live.erase(d);
	if (d->kind == KIND(EXECUTION_PLAN))
		delete (plan_desc *)d;
	else
		delete d;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t p, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t n, const void *values)
{
	dnn_desc *d = alive(p);
	const rule *r = rule_of(d->kind, name);
	if (d->final)
		return fail(CUDNN_STATUS_BAD_PARAM, "descriptor is finalized");
	if (!r || r->need == GIVEN)
		return fail(CUDNN_STATUS_NOT_SUPPORTED, "attribute " + std::to_string(name) + " of descriptor " + std::to_string(d->kind));
	if (r->type != type)
		return fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute " + std::to_string(name) + " is not of type " + std::to_string(type));
	if (n < r->least || n > r->most)
		return fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "attribute " + std::to_string(name) + ": count " + std::to_string(n));
	if (!values)
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "values");
	for (int64_t i = 0; type == REF && i < n; i++) {
		dnn_desc *to = alive(((void *const *)values)[i]);
		if (!to->final)
			return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "attribute " + std::to_string(name));
		if (r->refers >= 0 ? to->kind != r->refers : !is_op(to->kind))
			return fail(CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(name) + " refers to descriptor " + std::to_string(to->kind));
	}
	const unsigned char *b = (const unsigned char *)values;
	d->a[name] = {type, n, std::vector<unsigned char>(b, b + (size_t)n * size_of(type))};
	return CUDNN_STATUS_SUCCESS;
}

template <class T> static void give(dnn_desc *d, int name, int type, const std::vector<T> &v)
{
	const unsigned char *b = (const unsigned char *)v.data();
	d->a[name] = {type, (int64_t)v.size(), std::vector<unsigned char>(b, b + v.size() * sizeof(T))};
}

/* ---- engines --------------------------------------------------------------------------------------------------------------------- */
static const struct engine {
	int64_t id;
	std::vector<int> notes;
	dnn_rounding rounding;
	double us; /* apparent time of a run */
} engines[] = {
    {1, {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, DNN_EXACT, 0},
    {2, {}, DNN_EXACT, 1},
    {3, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, DNN_TF32, 5},
    {4, {}, DNN_EXACT, 1},
    {5, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, DNN_NOISE, 6},
    {6, {CUDNN_NUMERICAL_NOTE_WINOGRAD}, DNN_WINOGRAD, 7},
    {7, {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, DNN_BF16, 1},
    {8, {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, DNN_BF16, 1},
    {9, {CUDNN_NUMERICAL_NOTE_FFT}, DNN_BF16, 1},
    {10, {}, DNN_EXACT, 1},
    {90, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, DNN_TF32, 50},
};
static const double tile_us[] = {30, 10, 20};

static const engine *engine_of(int64_t id)
{
	for (const engine &e : engines)
		if (e.id == id)
			return &e;
	return nullptr;
}

static std::vector<const dnn_desc *> ops_of(const dnn_desc *graph)
{
	const dnn_value &v = graph->a.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
	const dnn_desc *const *p = v.as<const dnn_desc *>();
	for (int64_t i = 0; i < v.n; i++)
		alive(p[i]);
	return std::vector<const dnn_desc *>(p, p + v.n);
}

static std::vector<int64_t> offered(int mode)
{
	const char *only = getenv("CUDASIM_DNN_ONLY");
	std::vector<int64_t> v;
	if (!only)
		return mode == CUDNN_HEUR_MODE_A ? std::vector<int64_t>{2, 4, 8, 7, 9, 5, 3, 6, 10, 1, 1, 1, 90} : std::vector<int64_t>{1};
	while (*only) {
		char *end;
		v.push_back(strtoll(only, &end, 10));
		only = *end ? end + 1 : end;
	}
	return v;
}

static dnn_desc *made(int kind)
{
	cudnnBackendDescriptor_t d;
	cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)kind, &d);
	return (dnn_desc *)d;
}

/* The heuristic's configurations as lists of engine and tile; engine 1 comes with its tiles 2, 0, 1. */
static void give_results(dnn_desc *h)
{
	int mode = h->get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE), ones = 0;
	std::vector<int64_t> flat;
	for (int64_t id : offered(mode)) {
		flat.push_back(id);
		flat.push_back(id == 1 ? (ones++ + 2) % 3 : -1);
	}
	log_line(mode == CUDNN_HEUR_MODE_A ? "heuristic A" : "heuristic fallback");
	give(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, REF, flat);
}

static cudnnStatus_t finalize_plan(plan_desc *d)
{
	const dnn_desc *config = alive(d->ref(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)), *e = alive(config->ref(CUDNN_ATTR_ENGINECFG_ENGINE));
	const dnn_desc *graph = alive(e->ref(CUDNN_ATTR_ENGINE_OPERATION_GRAPH));
	const engine *eng = engine_of(e->get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
	auto p = std::make_shared<dnn_program>();
	std::string why;
	char line[64];
	if (d->get<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != graph->get<cudnnHandle_t>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE))
		return fail(CUDNN_STATUS_BAD_PARAM, "another handle than the graph's");
	dnn_walk(ops_of(graph), &p->ops, &why);
	if (eng->id == 4 || (eng->id != 90 && !dnn_precompiled(p->ops)) || (eng->id == 90 && !dnn_compiles(p->ops)))
		return fail(CUDNN_STATUS_NOT_SUPPORTED, "ptr->isSupported()");
	const dnn_op &op = p->ops[0];
	if (eng->id == 6 && (op.w.dim[2] != 3 || op.w.dim[3] != 3 || op.stride[0] != 1 || op.stride[1] != 1))
		return fail(CUDNN_STATUS_NOT_SUPPORTED, "Winograd is for 3x3");
	p->engine = eng->id;
	p->tile = 0;
	if (config->has(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)) {
		const dnn_value &k = config->a.at(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
		for (int64_t i = 0; i < k.n; i++) {
			const dnn_desc *knob = alive(k.as<const dnn_desc *>()[i]);
			if (knob->get<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) == CUDNN_KNOB_TYPE_TILE_SIZE)
				p->tile = knob->get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
		}
	}
	p->rounding = op.x.type == CUDNN_DATA_FLOAT || eng->rounding == DNN_NOISE ? eng->rounding : DNN_EXACT;
	p->us = eng->id == 1 ? tile_us[p->tile] : eng->us;
	p->workspace = eng->id == 2 ? ((int64_t)256 << 20) + 1 : 1000 + 100 * p->tile;
	give(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, std::vector<int64_t>{p->workspace});
	d->program = p;
	d->graph = graph;
	snprintf(line, sizeof line, "plan %d %d", (int)p->engine, (int)p->tile);
	log_line(line);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_config(dnn_desc *d)
{
	int64_t id = alive(d->ref(CUDNN_ATTR_ENGINECFG_ENGINE))->get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
	if (!d->has(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES))
		return CUDNN_STATUS_SUCCESS;
	const dnn_value &k = d->a.at(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
	for (int64_t i = 0; i < k.n; i++) {
		const dnn_desc *knob = alive(k.as<const dnn_desc *>()[i]);
		int type = knob->get<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
		int64_t v = knob->get<int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE), most = type == CUDNN_KNOB_TYPE_TILE_SIZE ? 2 : 4;
		if (id != 1 || (type != CUDNN_KNOB_TYPE_TILE_SIZE && type != CUDNN_KNOB_TYPE_STAGES) || v < 0 || v > most)
			return fail(CUDNN_STATUS_NOT_SUPPORTED, "!isValidSetting(name, c)");
	}
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_tensor(const dnn_desc *d)
{
	const int64_t *dim = d->a.at(CUDNN_ATTR_TENSOR_DIMENSIONS).as<int64_t>(), *stride = d->a.at(CUDNN_ATTR_TENSOR_STRIDES).as<int64_t>();
	int64_t align = d->get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
	int type = d->get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
	if (align <= 0 || align & (align - 1))
		return fail(CUDNN_STATUS_BAD_PARAM, "alignment is no power of two");
	if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16 && type != CUDNN_DATA_INT32 &&
	    type != CUDNN_DATA_BOOLEAN)
		return fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "data type");
	for (int i = 0; i < 4; i++)
		if (dim[i] <= 0 || stride[i] <= 0)
			return fail(CUDNN_STATUS_BAD_PARAM, "dimension or stride");
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_engine(dnn_desc *d)
{
	const engine *e = engine_of(d->get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
	std::vector<int> behavior;
	if (!e)
		return fail(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND, "global index");
	if (e->id == 90)
		behavior.push_back(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
	behavior.push_back(CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API);
	give(d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, e->notes);
	give(d, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, behavior);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finalize_graph(const dnn_desc *d)
{
	std::vector<dnn_op> ops;
	std::string why;
	cudnnStatus_t status = dnn_walk(ops_of(d), &ops, &why);
	return status == CUDNN_STATUS_SUCCESS ? status : fail(status, why);
}

static cudnnStatus_t finalize_pack(const dnn_desc *d)
{
	const dnn_value &ids = d->a.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS), &at = d->a.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
	std::set<int64_t> seen(ids.as<int64_t>(), ids.as<int64_t>() + ids.n);
	if (ids.n != at.n)
		return fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "as many pointers as ids");
	return (int64_t)seen.size() == ids.n ? CUDNN_STATUS_SUCCESS : fail(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, "unique ids");
}

static cudnnStatus_t finalize_op(const dnn_desc *d)
{
	dnn_op op;
	std::string why;
	cudnnStatus_t status = dnn_op_of(d, &op, &why);
	return status == CUDNN_STATUS_SUCCESS ? status : fail(status, why);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t p)
{
	dnn_desc *d = alive(p);
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	if (d->final)
		return fail(CUDNN_STATUS_BAD_PARAM, "descriptor is finalized");
	for (const rule &r : rules)
		if (r.kind == d->kind && r.need == NEEDED && !d->has(r.name))
			return fail(CUDNN_STATUS_BAD_PARAM, "attribute " + std::to_string(r.name) + " is missing");
	if (d->kind == KIND(TENSOR))
		status = finalize_tensor(d);
	else if (is_op(d->kind))
		status = finalize_op(d);
	else if (d->kind == KIND(OPERATIONGRAPH))
		status = finalize_graph(d);
	else if (d->kind == KIND(ENGINE))
		status = finalize_engine(d);
	else if (d->kind == KIND(ENGINECFG))
		status = finalize_config(d);
	else if (d->kind == KIND(EXECUTION_PLAN))
		status = finalize_plan((plan_desc *)d);
	else if (d->kind == KIND(VARIANT_PACK))
		status = finalize_pack(d);
	else if (d->kind == KIND(ENGINEHEUR))
		give_results(d);
	d->final = status == CUDNN_STATUS_SUCCESS;
	return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------------- */
static dnn_desc *target(void *p, int kind)
{
	dnn_desc *d = alive(p);
	if (d->kind != kind || d->final)
		return nullptr;
	d->final = true;
	return d;
}

/* Descriptors that the library makes for the reader live as long as the process: there are few. */
static cudnnStatus_t read_results(const dnn_desc *h, int64_t cap, int64_t *n, void **out)
{
	const dnn_value &v = h->a.at(CUDNN_ATTR_ENGINEHEUR_RESULTS);
	*n = v.n / 2;
	for (int64_t i = 0; i < *n && i < cap; i++) {
		dnn_desc *c = target(out[i], KIND(ENGINECFG)), *e = made(KIND(ENGINE));
		int64_t id = v.as<int64_t>()[2 * i], tile = v.as<int64_t>()[2 * i + 1];
		if (!c)
			return fail(CUDNN_STATUS_BAD_PARAM, "results need fresh configurations");
		give(e, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, REF, std::vector<const dnn_desc *>{h->ref(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)});
		give(e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, std::vector<int64_t>{id});
		e->final = finalize_engine(e) == CUDNN_STATUS_SUCCESS;
		give(c, CUDNN_ATTR_ENGINECFG_ENGINE, REF, std::vector<const dnn_desc *>{e});
		std::vector<const dnn_desc *> knobs;
		const int64_t values[2][2] = {{CUDNN_KNOB_TYPE_TILE_SIZE, tile}, {CUDNN_KNOB_TYPE_STAGES, 4}};
		for (int k = 0; k < 2 && tile >= 0; k++) {
			dnn_desc *knob = made(KIND(KNOB_CHOICE));
			give(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, std::vector<int>{(int)values[k][0]});
			give(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, std::vector<int64_t>{values[k][1]});
			knob->final = true;
			knobs.push_back(knob);
		}
		if (!knobs.empty())
			give(c, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, REF, knobs);
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t p, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t cap, int64_t *n, void *values)
{
	dnn_desc *d = alive(p);
	const rule *r = rule_of(d->kind, name);
	if (!d->final)
		return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "descriptor");
	if (!r)
		return fail(CUDNN_STATUS_NOT_SUPPORTED, "attribute " + std::to_string(name));
	if (r->type != type)
		return fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "attribute " + std::to_string(name) + " is not of type " + std::to_string(type));
	if (d->kind == KIND(ENGINEHEUR) && name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
		return read_results(d, cap, n, (void **)values);
	*n = d->has(name) ? d->a[name].n : 0;
	int64_t copy = *n < cap ? *n : cap;
	if (type != REF) {
		if (copy)
			memcpy(values, d->a[name].bytes.data(), (size_t)copy * size_of(type));
		return CUDNN_STATUS_SUCCESS;
	}
	for (int64_t i = 0; i < copy; i++) {
		const dnn_desc *from = alive(d->a[name].as<const dnn_desc *>()[i]);
		dnn_desc *to = target(((void **)values)[i], from->kind);
		if (!to)
			return fail(CUDNN_STATUS_BAD_PARAM, "a fresh descriptor of the right type is wanted");
		to->a = from->a;
	}
	return CUDNN_STATUS_SUCCESS;
}

/* ---- running --------------------------------------------------------------------------------------------------------------------- */
static bool one_value(const dnn_tensor &t, const void *p)
{
	int64_t n = dnn_extent(t), size = t.type == CUDNN_DATA_FLOAT ? 4 : 2;
	return n > size && !memcmp(p, (const char *)p + size, (size_t)(n - size));
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
	plan_desc *d = (plan_desc *)alive(plan);
	dnn_desc *v = alive(pack);
	std::map<int64_t, void *> memory;
	std::map<int64_t, float> number;
	char line[64];
	if (!d->final || !v->final || d->kind != KIND(EXECUTION_PLAN) || v->kind != KIND(VARIANT_PACK))
		return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "plan or pack");
	alive(d->graph);
	std::shared_ptr<dnn_program> p = d->program;
	const dnn_value &ids = v->a[CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS], &at = v->a[CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS];
	for (int64_t i = 0; i < ids.n; i++)
		memory[ids.as<int64_t>()[i]] = at.as<void *>()[i];
	size_t used = 0;
	std::set<int64_t> seen;
	for (const dnn_op &op : p->ops)
		for (const dnn_tensor *t : dnn_tensors(op)) {
			if (t->is_virtual)
				continue;
			auto m = memory.find(t->uid);
			if (m == memory.end() || !m->second)
				return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "no pointer for tensor " + std::to_string(t->uid));
			if (!t->by_value && (uintptr_t)m->second % (uintptr_t)t->align)
				return fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "tensor " + std::to_string(t->uid));
			if (t->by_value) {
				number[t->uid] = *(const float *)m->second; /* read now: a replayed graph repeats the value */
				memory[t->uid] = &number[t->uid];
				seen.insert(t->uid);
				continue;
			}
			if (!cudasim_on_device(m->second, (size_t)dnn_extent(*t)))
				return fail(CUDNN_STATUS_EXECUTION_FAILED, "tensor " + std::to_string(t->uid) + " is not device memory");
			seen.insert(t->uid);
		}
	used = seen.size();
	if (used != memory.size())
		return fail(CUDNN_STATUS_BAD_PARAM, "pointers for tensors that the graph has not");
	void *workspace = v->has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) ? v->get<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) : nullptr;
	if (p->workspace && (!workspace || !cudasim_on_device(workspace, (size_t)p->workspace)))
		return fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "workspace");
	if (p->engine == 10)
		return fail(CUDNN_STATUS_EXECUTION_FAILED, "engine 10 never runs");
	snprintf(line, sizeof line, "run %d %d", (int)p->engine, (int)p->tile);
	log_line(line);
	cudaError_t e = cudasim_enqueue(h->stream, [=] {
		for (const dnn_op &op : p->ops) /* before it runs: is an operand one value throughout, as fresh memory is? */
			if (op.kind < KIND(OPERATION_POINTWISE) && !op.x.is_virtual && op.has_w && !op.w.is_virtual &&
			    (one_value(op.x, memory.at(op.x.uid)) || one_value(op.w, memory.at(op.w.uid))))
				log_line("trivial operand");
		if (workspace)
			memset(workspace, 0xff, (size_t)p->workspace);
		std::map<int64_t, void *> all = memory;
		for (auto &v : number)
			all[v.first] = (void *)&v.second;
		if (!getenv("CUDASIM_DNN_IDLE"))
			dnn_run(*p, all);
		cudasim_spend(p->us);
	});
	return e == cudaSuccess ? CUDNN_STATUS_SUCCESS : fail(CUDNN_STATUS_EXECUTION_FAILED, "stream");
}

/* ---- the library ----------------------------------------------------------------------------------------------------------------- */
cudnnStatus_t cudnnCreate(cudnnHandle_t *h)
{
	*h = new cudasim_dnn();
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
	delete h;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
	h->stream = s;
	return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
	const char *v = getenv("CUDASIM_DNN_VERSION");
	return v ? (size_t)atol(v) : CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t s)
{
	return s == CUDNN_STATUS_SUCCESS            ? "CUDNN_STATUS_SUCCESS"
	       : s / 1000 == 2                      ? "CUDNN_STATUS_BAD_PARAM"
	       : s / 1000 == 3                      ? "CUDNN_STATUS_NOT_SUPPORTED"
	       : s == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
	                                            : "CUDNN_STATUS_NOT_INITIALIZED";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
	snprintf(message, size, "%s", last.c_str());
	last.clear();
}
