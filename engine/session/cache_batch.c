#include "session/cache_batch.h"
#include "session/session_plan.h"

int64_t gt_cache_batch(uint64_t cache, uint64_t weights, uint64_t each_sample, int threads)
{
	uint64_t least = threads > 1 ? (uint64_t)threads : 1;
	if (weights >= cache || !each_sample)
		return INT64_MAX;
	uint64_t n = (cache - weights) / each_sample / least * least;
	return (int64_t)(n > least ? n : least);
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

/* Returns the largest number of bytes of activations that a call of g reads and writes. */
static uint64_t count_activations(const struct gt_graph *g)
{
	uint64_t most = 0;
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		uint64_t sum = 0;
		for (int k = 0; k < n->nin + n->nout; k++) {
			gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
			bool counts = v >= 0 && (g->values[v].kind == GT_V_ACT || g->values[v].kind == GT_V_INPUT);
			sum += counts ? gt_tdesc_bytes(gt_graph_desc(g, v)) : 0;
		}
		most = sum > most && !gt_node_alias(g, n) ? sum : most;
	}
	return most;
}

enum gt_code gt_session_cache_batch(struct gt_session *s, int64_t *batch, struct gt_err *err)
{
	const struct gt_devinfo *info = &s->device.info;
	int64_t n;
	if (!s->space->constant || !info->cache || s->at.world > 1 || s->conf->reproducible == GT_REPRO_WORLD || s->data.lengths.n)
		return GT_OK;
	if (!s->prog.cached) {
		struct gt_graph *g;
		int threads = s->conf->threads ? (int)s->conf->threads : info->threads;
		GT_TRY(gt_session_graph(s, &(struct gt_plan_key){.n = *batch}, &g, err));
		s->prog.cached = gt_graph_mixes_samples(g) ? INT64_MAX
		                                           : gt_cache_batch(info->cache, count_weights(g),
		                                                            count_activations(g) / (uint64_t)*batch, threads);
	}
	if (s->prog.cached >= *batch)
		return GT_OK;
	n = (*batch + s->prog.cached - 1) / s->prog.cached; /* parts */
	*batch = (*batch + n - 1) / n;
	return GT_OK;
}
