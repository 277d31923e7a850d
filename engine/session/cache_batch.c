#include "session/cache_batch.h"
#include "session/session_plan.h"

#define REUSE 200 /* least number of operations of a part for each byte of weights, which each part reads again */

int64_t gt_cache_batch(uint64_t cache, uint64_t weights, uint64_t each_sample, int threads)
{
	uint64_t least = threads > 1 ? (uint64_t)threads : 1;
	if (weights >= cache || !each_sample)
		return INT64_MAX;
	uint64_t n = (cache - weights) / each_sample / least * least;
	return (int64_t)(n > least ? n : least);
}

int64_t gt_cache_part(int64_t batch, uint64_t cache, const struct gt_cache_need *need, int threads)
{
	uint64_t least = threads > 1 ? (uint64_t)threads : 1, n = need->each_sample ? cache / 8 / need->each_sample : UINT64_MAX;
	int64_t part = 1;
	n = n > least ? n : least;
	for (int64_t i = 1; i <= batch; i++)
		if (batch % i == 0 && ((uint64_t)i <= n || (uint64_t)part < least || (double)part * need->flops < REUSE * (double)need->weights))
			part = i;
	return part;
}

/* Returns the bytes of the weights that the calls of g read. */
static uint64_t count_weights(const struct gt_graph *g)
{
	uint64_t sum = 0;
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_value *v = g->params[i].value < 0 ? NULL : &g->values[g->params[i].value];
		sum += v && v->kind != GT_V_BUFFER ? gt_dtype_size(g->compute) * (uint64_t)gt_tdesc_count(&v->desc) : 0;
	}
	return sum;
}

/* Returns the number of bytes of activations, or of weights, that a call of node n reads and writes. */
static uint64_t count_operands(const struct gt_graph *g, const struct gt_node *n, bool weights)
{
	uint64_t sum = 0;
	for (int k = 0; k < n->nin + n->nout && !gt_node_alias(g, n); k++) {
		gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		enum gt_vkind kind = v < 0 ? GT_V_METRICS : g->values[v].kind;
		bool counts = weights ? kind == GT_V_PARAM || kind == GT_V_WORK : kind == GT_V_ACT || kind == GT_V_INPUT;
		sum += counts ? gt_tdesc_bytes(gt_graph_desc(g, v)) : 0;
	}
	return sum;
}

/* Returns the largest number of bytes of activations that a call of g reads and writes. */
static uint64_t count_activations(const struct gt_graph *g)
{
	uint64_t most = 0;
	for (int i = 0; i < g->nnodes; i++) {
		uint64_t sum = count_operands(g, &g->nodes[i], false);
		most = sum > most ? sum : most;
	}
	return most;
}

/* Returns whether a batch of the session may be divided. */
static bool can_divide(const struct gt_session *s)
{
	return s->space->constant && s->device.info.cache && s->at.world == 1 && s->conf->reproducible != GT_REPRO_WORLD && !s->data.lengths.n;
}

static int count_threads(const struct gt_session *s)
{
	return s->conf->threads ? (int)s->conf->threads : s->device.info.threads;
}

enum gt_code gt_session_cache_batch(struct gt_session *s, int64_t *batch, struct gt_err *err)
{
	const struct gt_devinfo *info = &s->device.info;
	int64_t n;
	if (!can_divide(s))
		return GT_OK;
	if (!s->prog.cached) {
		struct gt_graph *g;
		GT_TRY(gt_session_graph(s, &(struct gt_plan_key){.n = *batch}, &g, err));
		s->prog.cached = gt_graph_mixes_samples(g) ? INT64_MAX
		                                           : gt_cache_batch(info->cache, count_weights(g),
		                                                            count_activations(g) / (uint64_t)*batch, count_threads(s));
	}
	if (s->prog.cached >= *batch)
		return GT_OK;
	n = (*batch + s->prog.cached - 1) / s->prog.cached; /* parts */
	*batch = (*batch + n - 1) / n;
	return GT_OK;
}

/* Sets part[i] to the number of samples that node i of g computes at once. */
static void choose_parts(const struct gt_session *s, const struct gt_graph *g, int64_t *part)
{
	struct gt_cache_need need = {0};
	for (int i = g->nnodes - 1; i >= 0; i--) {
		const struct gt_node *n = &g->nodes[i];
		uint64_t each = count_operands(g, n, false) / (uint64_t)g->batch;
		need.each_sample = each > need.each_sample ? each : need.each_sample;
		need.weights = count_operands(g, n, true);
		need.flops = gt_node_flops(g, n) / (double)g->batch;
		part[i] = gt_cache_part(g->batch, s->device.info.cache, &need, count_threads(s));
	}
}

/* Appends node i of g to the segments, if the node can be divided. like: the graph of a part of the batch. */
static void append_node(const struct gt_graph *g, int i, const struct gt_graph *like, struct gt_segments *to)
{
	struct gt_segment *last = to->n ? &to->at[to->n - 1] : NULL;
	struct gt_segment one = {.first = i, .last = i, .parts = (int)(g->batch / like->batch), .like = like};
	if (!gt_segment_fits(g, &one))
		return;
	if (last && last->last == i - 1 && last->parts == one.parts)
		last->last = i;
	else
		to->at[to->n++] = one;
}

enum gt_code gt_session_segments(struct gt_session *s, const struct gt_plan_key *w, const struct gt_graph *g, struct gt_segments *out,
                                 struct gt_err *err)
{
	int64_t *part;
	struct gt_graph **like; /* by their number of samples */
	*out = (struct gt_segments){0};
	if (w->train || w->idle || g->batch < 2 || g->batch != w->n || !can_divide(s) || count_weights(g) < s->device.info.cache ||
	    gt_graph_mixes_samples(g))
		return GT_OK;
	GT_NEW(part, s->arena, g->nnodes, err);
	GT_NEW(out->at, s->arena, g->nnodes, err);
	GT_NEW(like, s->arena, g->batch, err);
	choose_parts(s, g, part);
	for (int i = 0; i < g->nnodes; i++) {
		struct gt_plan_key key = *w;
		key.n = part[i];
		if (key.n == g->batch)
			continue;
		if (!like[key.n])
			GT_TRY(gt_session_graph(s, &key, &like[key.n], err));
		append_node(g, i, like[key.n], out);
	}
	return GT_OK;
}
