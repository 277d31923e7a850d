/* Selects the engine of a graph: asks cuDNN's heuristic, removes engines that the options do not allow, times the rest, and keeps the
 * fastest in the cache for the next start. Notes: cuDNN documentation, "cudnnBackendNumericalNote_t", "cudnnBackendBehaviorNote_t". */
#include "cuda/cudnn_plan.h"
#include <stdio.h>
#include <string.h>

#define CONFIGS 96   /* maximum number of configurations of the heuristic that are examined; it offers about 40 */

/* ---- permission --------------------------------------------------------------------------------------------------------------------- */
static const char *const verdict_text[GT_DNN_VERDICTS] = {
    [GT_DNN_NO_TF32] = "round to tf32",
    [GT_DNN_NO_ORDER] = "do not add in a fixed order",
    [GT_DNN_NO_PRECISION] = "compute in lower precision or by FFT or Winograd",
    [GT_DNN_NO_COMPILED] = "are compiled first",
    [GT_DNN_NO_WORKSPACE] = "take more than 256 MiB of workspace",
    [GT_DNN_NO_PLAN] = "refuse it",
};

/* Returns whether the settings of the device (tf32, reproducible) allow an engine, by the notes that cuDNN gives for the engine. */
static enum gt_dnn_verdict judge_engine(const struct gt_dev *dev, const struct gt_dnn_call *c, struct gt_dnn_plan *p,
                                        cudnnBackendDescriptor_t engine, bool compiled)
{
	cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
	cudnnBackendBehaviorNote_t behavior[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT];
	struct gt_dnn_set *s = &p->set;
	bool f32 = c->type == GT_F32;
	int64_t n = gt_dnn_get(s, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, note);
	p->tensor_core = false;
	for (int64_t i = 0; i < n; i++)
		switch (note[i]) {
		case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: /* tensor cores have no f32 product: they round f32 operands to tf32 */
			if (f32 && !dev->tf32)
				return GT_DNN_NO_TF32;
			p->tensor_core = true;
			break;
		case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
			if (dev->deterministic)
				return GT_DNN_NO_ORDER;
			break;
		case CUDNN_NUMERICAL_NOTE_WINOGRAD:
		case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
			if (!f32 || !dev->winograd)
				return GT_DNN_NO_PRECISION;
			break;
		case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
		case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
		case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
		case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
		case CUDNN_NUMERICAL_NOTE_FFT:
			return GT_DNN_NO_PRECISION;
		default: /* the note STRICT_NAN_PROP, and notes of newer versions, do not matter */
			break;
		}
	n = gt_dnn_get(s, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, behavior);
	for (int64_t i = 0; i < n; i++)
		if (behavior[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION && !compiled)
			return GT_DNN_NO_COMPILED;
	return GT_DNN_FINE;
}

/* ---- plan of a choice --------------------------------------------------------------------------------------------------------------- */
__attribute__((unused)) /* the function is not used with cuDNN headers before 9.8 */
static void
put_prop(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name)
{
	if (s->dnn->prop)
		gt_dnn_put_desc(s, d, name, s->dnn->prop);
}

enum gt_dnn_verdict gt_dnn_realize(struct gt_dev *dev, struct gt_dnn_plan *p, const struct gt_dnn_call *c,
                                   const struct gt_dnn_choice *choice, bool compiled)
{
	struct gt_dnn_set *s = &p->set;
	cudnnBackendDescriptor_t knob[GT_DNN_KNOBS];
	int64_t bytes = -1;
	cudnnBackendDescriptor_t engine = gt_dnn_new(s, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
	gt_dnn_put_desc(s, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, p->graph);
	gt_dnn_put(s, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &choice->engine);
#if CUDNN_VERSION >= 90800
	put_prop(s, engine, CUDNN_ATTR_ENGINE_DEVICEPROP);
#endif
	gt_dnn_finalize(s, engine, "engine");
	enum gt_dnn_verdict v = judge_engine(dev, c, p, engine, compiled);
	if (v != GT_DNN_FINE)
		return v;
	for (int i = 0; i < choice->nknobs; i++) {
		cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)choice->knob[i][0];
		knob[i] = gt_dnn_new(s, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob");
		gt_dnn_put(s, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
		gt_dnn_put(s, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &choice->knob[i][1]);
		gt_dnn_finalize(s, knob[i], "knob");
	}
	cudnnBackendDescriptor_t config = gt_dnn_new(s, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
	gt_dnn_put_desc(s, config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
	if (choice->nknobs)
		gt_dnn_put(s, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, choice->nknobs, knob);
	gt_dnn_finalize(s, config, "engine configuration");
	p->plan = gt_dnn_new(s, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan");
	gt_dnn_put_desc(s, p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	if (s->dnn->handle)
		gt_dnn_put(s, p->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->dnn->handle);
#if CUDNN_VERSION >= 90800
	put_prop(s, p->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
#endif
	gt_dnn_finalize(s, p->plan, "execution plan");
	gt_dnn_get(s, p->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
	if (s->status != CUDNN_STATUS_SUCCESS)
		return GT_DNN_NO_PLAN;
	if (bytes < 0 || bytes > GT_DNN_WORKSPACE)
		return GT_DNN_NO_WORKSPACE;
	p->workspace = ((size_t)bytes + 255) / 256 * 256;
	p->choice = *choice;
	return GT_DNN_FINE;
}

/* ---- candidates of the heuristic ---------------------------------------------------------------------------------------------------- */
struct offer {
	struct gt_dnn_choice choice[GT_DNN_CANDIDATES];
	/* n: number of candidates; tensor_core: number of candidates on tensor cores; all: number of engines that the heuristic offered;
	 * refused: number of engines for each verdict */
	int n, tensor_core, all, refused[GT_DNN_VERDICTS];
	char last[300]; /* cuDNN's message about the last engine that it refused */
};

/* Reads engine and knobs of an engine configuration into *out. Returns false if it has more knobs than struct gt_dnn_choice holds. */
static bool read_choice(struct gt_dnn_set *s, cudnnBackendDescriptor_t config, struct gt_dnn_choice *out)
{
	cudnnBackendDescriptor_t knob[GT_DNN_KNOBS], engine = gt_dnn_new(s, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
	cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)0;
	int64_t n = 0;
	*out = (struct gt_dnn_choice){.engine = -1};
	gt_dnn_get(s, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
	gt_dnn_get(s, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &out->engine);
	for (int i = 0; i < GT_DNN_KNOBS; i++)
		knob[i] = gt_dnn_new(s, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob");
	if (s->status != CUDNN_STATUS_SUCCESS ||
	    s->dnn->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, GT_DNN_KNOBS, &n,
	                                     knob) != CUDNN_STATUS_SUCCESS ||
	    n > GT_DNN_KNOBS || out->engine < 0)
		return false;
	for (int64_t i = 0; i < n; i++) {
		gt_dnn_get(s, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
		gt_dnn_get(s, knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &out->knob[i][1]);
		out->knob[i][0] = type;
	}
	out->nknobs = (int)n;
	return s->status == CUDNN_STATUS_SUCCESS;
}

static bool may_time(const struct gt_dev *dev, const struct gt_dnn_call *c)
{
	/* Timing may select different engines in different processes, and then the last bits of the results may differ. */
	return c->timed && dev->autotune && !dev->deterministic;
}

static bool has_enough(const struct gt_dev *dev, const struct gt_dnn_call *c, const struct offer *o)
{
	bool tensor_cores = c->type != GT_F32 || dev->tf32;
	return o->n == GT_DNN_CANDIDATES || (!may_time(dev, c) && (tensor_cores ? o->tensor_core : o->n) == c->first);
}

/* Adds engines that the options allow to the offer o, in the heuristic's order, until there are enough. p contains the graph and is
 * restored. */
static void collect_engines(struct gt_dev *dev, struct gt_dnn_plan *p, const struct gt_dnn_call *c, cudnnBackendHeurMode_t mode,
                            bool compiled, struct offer *o)
{
	struct gt_dnn_set h = {.dnn = dev->dnn};
	cudnnBackendDescriptor_t config[CONFIGS], heur = gt_dnn_new(&h, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic");
	int keep = p->set.n, base;
	gt_dnn_put_desc(&h, heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p->graph);
	gt_dnn_put(&h, heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
#if CUDNN_VERSION >= 90800
	put_prop(&h, heur, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
#endif
	gt_dnn_finalize(&h, heur, "heuristic");
	for (int i = 0; i < CONFIGS; i++)
		config[i] = gt_dnn_new(&h, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
	base = h.n;
	int64_t n = gt_dnn_get(&h, heur, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, config);
	if (h.status != CUDNN_STATUS_SUCCESS)
		gt_dnn_failure_text(&h, o->last, sizeof o->last);
	for (int64_t i = 0; i < n && !has_enough(dev, c, o); i++) {
		struct gt_dnn_choice choice;
		bool known = read_choice(&h, config[i], &choice);
		enum gt_dnn_verdict v = known ? gt_dnn_realize(dev, p, c, &choice, compiled) : GT_DNN_NO_PLAN;
		choice.workspace = p->workspace;
		choice.tensor_core = p->tensor_core;
		if (v == GT_DNN_NO_PLAN)
			gt_dnn_failure_text(known ? &p->set : &h, o->last, sizeof o->last);
		gt_dnn_drop(&p->set, keep);
		gt_dnn_drop(&h, base);
		o->all++;
		o->refused[v]++;
		if (v == GT_DNN_FINE) {
			o->choice[o->n++] = choice;
			o->tensor_core += choice.tensor_core;
		}
	}
	gt_dnn_drop(&h, 0);
}

static enum gt_code refuse_engines(const struct gt_dnn *dnn, const struct offer *o, struct gt_err *err)
{
	char text[400] = "";
	size_t n = 0;
	for (int v = GT_DNN_FINE + 1; v < GT_DNN_VERDICTS; v++)
		if (o->refused[v] && n < sizeof text)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%d %s", n ? ", " : ": ", o->refused[v], verdict_text[v]);
	return gt_fail(err, GT_EUNAVAILABLE, "cuDNN %zu.%zu.%zu offers %d engines, but none can be used%s%s%s", dnn->version / 10000,
	               dnn->version / 100 % 100, dnn->version % 100, o->all, text, o->last[0] ? "; " : "", o->last);
}

/* ---- selection ---------------------------------------------------------------------------------------------------------------------- */
/* Moves engines on tensor cores to the front, without other changes of the heuristic's order, and keeps the first `first` engines. */
static void prefer_tensor_cores(struct offer *o, int first)
{
	struct gt_dnn_choice sorted[GT_DNN_CANDIDATES];
	int n = 0;
	for (int others = 0; others < 2; others++)
		for (int i = 0; i < o->n; i++)
			if (o->choice[i].tensor_core == !others)
				sorted[n++] = o->choice[i];
	memcpy(o->choice, sorted, (size_t)n * sizeof *sorted);
	o->n = n < first ? n : first;
}

static enum gt_code choose_engine(struct gt_dev *dev, struct gt_dnn_plan *p, const struct gt_dnn_call *c, struct gt_err *err)
{
	struct offer o = {0};
	int keep = p->set.n;
	for (int compiled = 0; compiled < 2 && !o.n; compiled++) {
		o.all = 0;
		memset(o.refused, 0, sizeof o.refused);
		collect_engines(dev, p, c, CUDNN_HEUR_MODE_A, compiled, &o);
		if (!o.n)
			collect_engines(dev, p, c, CUDNN_HEUR_MODE_FALLBACK, compiled, &o);
	}
	if (!o.n)
		return refuse_engines(dev->dnn, &o, err);
	if (!may_time(dev, c))
		prefer_tensor_cores(&o, c->first);
	GT_TRY(gt_dnn_try(dev, c, o.choice, &o.n, may_time(dev, c), err));
	for (int i = 0; i < o.n; i++) {
		if (gt_dnn_realize(dev, p, c, &o.choice[i], true) == GT_DNN_FINE) {
			p->how = o.choice[i].us > 0 ? "timed" : "heuristic";
			gt_dnn_cache_add(dev->dnn->cache, c->key, &o.choice[i]);
			return GT_OK;
		}
		gt_dnn_failure_text(&p->set, o.last, sizeof o.last);
		gt_dnn_drop(&p->set, keep);
	}
	return gt_fail(err, GT_EUNAVAILABLE, "%s", o.last);
}

/* Makes the plan of the choice in the cache, if the library still has its engine and the plan runs. */
static enum gt_code plan_from_cache(struct gt_dev *dev, struct gt_dnn_plan *p, const struct gt_dnn_call *c, struct gt_err *err)
{
	struct gt_dnn_choice choice;
	int keep = p->set.n, n = 1;
	if (!gt_dnn_cache_find(dev->dnn->cache, c->key, &choice) || gt_dnn_realize(dev, p, c, &choice, true) != GT_DNN_FINE) {
		gt_dnn_drop(&p->set, keep);
		return GT_OK;
	}
	choice.workspace = p->workspace;
	enum gt_code code = choice.ran ? GT_OK : gt_dnn_try(dev, c, &choice, &n, false, err);
	if (code != GT_OK) {
		gt_dnn_drop(&p->set, keep);
	} else {
		p->how = "cached";
		if (choice.ran)
			gt_dnn_cache_ran(dev->dnn->cache, c->key);
	}
	return code == GT_EUNAVAILABLE ? GT_OK : code;
}

enum gt_code gt_dnn_plan_find(struct gt_dev *dev, const struct gt_dnn_call *c, struct gt_dnn_plan *out, struct gt_err *err)
{
	char text[400];
	memset(out, 0, sizeof *out);
	GT_TRY(gt_dnn_open(dev, err));
	out->set.dnn = dev->dnn;
	c->build(out, c->shape);
	enum gt_code code = GT_OK;
	if (out->set.status != CUDNN_STATUS_SUCCESS)
		code = gt_fail(err, GT_EUNAVAILABLE, "%s", gt_dnn_failure_text(&out->set, text, sizeof text));
	if (code == GT_OK)
		code = plan_from_cache(dev, out, c, err);
	if (code == GT_OK && !out->how)
		code = choose_engine(dev, out, c, err);
	if (code != GT_OK)
		gt_dnn_plan_drop(out);
	return code;
}
