/* Estimates the cost of the nodes and divides the layers into pipeline stages of balanced cost. */
#include "plan/pipeline_partition.h"
#include "ir/op.h"
#include <math.h>
#include <string.h>

int gt_graph_layers(const struct gt_graph *g)
{
	int n = 0;
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].layer >= n)
			n = g->nodes[i].layer + 1;
	return n;
}

void gt_partition_costs(const struct gt_graph *g, double flops_per_byte, double *cost)
{
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		cost[i] = 0;
		if (gt_node_alias(g, n))
			continue;
		double bytes = 0;
		for (int k = 0; k < n->nin + n->nout; k++) {
			gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
			if (v >= 0 && g->values[v].kind != GT_V_METRICS)
				bytes += (double)gt_tdesc_bytes(&g->values[v].desc);
		}
		cost[i] = gt_node_flops(g, n) + flops_per_byte * bytes;
	}
}

/* An activation that one layer makes and a later layer reads in the forward pass. */
struct edge {
	gt_vid v;
	int from, to; /* indices of the layer that makes the activation and of the layer that reads it */
};

struct table {
	int layers;
	double *sum;   /* [j]: cost of layers 0 … j - 1 together */
	double *bytes; /* [i * (layers + 1) + j]: bytes of activations that layers i … j - 1 receive from layers before i */
};

static enum gt_code list_edges(const struct gt_graph *g, struct edge **out, int *count, struct gt_err *err)
{
	int cap = 1;
	*count = 0;
	for (int i = 0; i < g->nnodes; i++)
		cap += g->nodes[i].nin;
	GT_NEW(*out, g->arena, cap, err);
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		if (n->backward || n->layer < 0 || gt_node_alias(g, n))
			continue;
		for (int k = 0; k < n->nin; k++) {
			gt_vid v = gt_graph_source(g, n->in[k]);
			int p = v < 0 ? -1 : g->values[v].producer;
			if (p >= 0 && g->nodes[p].layer >= 0 && g->nodes[p].layer < n->layer)
				(*out)[(*count)++] = (struct edge){v, g->nodes[p].layer, n->layer};
		}
	}
	return GT_OK;
}

/* Fills in the tables of costs and of bytes. Adds up the costs of each layer, sorts the edges by the layer that reads them, and extends
 * each possible stage layer by layer: bytes(i, j + 1), the memory of the stage of layers i to j, is bytes(i, j) plus the activations that
 * layer j reads and no earlier layer of the stage reads. */
static enum gt_code fill_tables(const struct gt_graph *g, const double *cost, struct table *t, struct gt_err *err)
{
	int n = t->layers, nedges, *seen, *first;
	struct edge *edge, *by_layer;
	GT_TRY(list_edges(g, &edge, &nedges, err));
	GT_NEW(t->sum, g->arena, n + 1, err);
	GT_NEW(t->bytes, g->arena, (int64_t)(n + 1) * (n + 1), err);
	GT_NEW(seen, g->arena, g->nvalues + 1, err);
	GT_NEW(first, g->arena, n + 2, err);
	GT_NEW(by_layer, g->arena, nedges + 1, err);
	for (int i = 0; i < g->nnodes; i++) {
		int l = g->nodes[i].layer;
		t->sum[(l < 0 ? n - 1 : l) + 1] += cost[i];
	}
	for (int l = 0; l < n; l++)
		t->sum[l + 1] += t->sum[l];
	for (int e = 0; e < nedges; e++)
		first[edge[e].to + 2]++;
	for (int l = 0; l <= n; l++)
		first[l + 1] += first[l];
	for (int e = 0; e < nedges; e++)
		by_layer[first[edge[e].to + 1]++] = edge[e];
	for (int i = 0; i < n; i++)
		for (int j = i; j < n; j++) { /* extends the stage that begins at layer i by layer j */
			double *to = &t->bytes[i * (n + 1) + j + 1];
			*to = to[-1];
			for (int e = first[j]; e < first[j + 1]; e++)
				if (by_layer[e].from < i && seen[by_layer[e].v] != i + 1) {
					seen[by_layer[e].v] = i + 1;
					*to += (double)gt_tdesc_bytes(&g->values[by_layer[e].v].desc);
				}
		}
	return GT_OK;
}

/* Dynamic programming in two passes. Pass 0 finds the lowest possible cost of the most expensive stage. Pass 1 finds the division with the
 * fewest bytes in which no stage is above that cost. best[s * (n + 1) + j]: the result for layers 0 … j - 1 in s stages. */
static enum gt_code find_division(const struct gt_graph *g, const struct table *t, int stages, int *stage_of, struct gt_err *err)
{
	int n = t->layers, w = n + 1, *cut;
	double *best, limit = INFINITY;
	GT_NEW(best, g->arena, (int64_t)(stages + 1) * w, err);
	GT_NEW(cut, g->arena, (int64_t)(stages + 1) * w, err);
	for (int pass = 0; pass < 2; pass++) {
		for (int k = 0; k < (stages + 1) * w; k++)
			best[k] = INFINITY;
		best[0] = 0;
		for (int s = 1; s <= stages; s++)
			for (int j = s; j <= n; j++)
				for (int i = s - 1; i < j; i++) {
					double own = t->sum[j] - t->sum[i], before = best[(s - 1) * w + i];
					double x = pass ? before + t->bytes[i * w + j] : own > before ? own : before;
					if (own <= limit && x < best[s * w + j]) {
						best[s * w + j] = x;
						cut[s * w + j] = i;
					}
				}
		limit = best[stages * w + n] * (1 + 1e-9); /* 1e-9, because sums of the same costs in another order may differ in their last bits */
	}
	for (int s = stages, j = n; s > 0; s--) {
		int i = cut[s * w + j];
		for (; j > i; j--)
			stage_of[j - 1] = s - 1;
	}
	return GT_OK;
}

enum gt_code gt_partition_balance(const struct gt_graph *g, const double *cost, int stages, int *stage_of, struct gt_err *err)
{
	struct table t = {.layers = gt_graph_layers(g)};
	if (stages < 1 || t.layers < stages)
		return gt_fail(err, GT_ECONFIG, "expected at most as many stages as the model has layers, got %d stages and %d layers",
		               stages, t.layers);
	GT_TRY(fill_tables(g, cost, &t, err));
	return find_division(g, &t, stages, stage_of, err);
}
