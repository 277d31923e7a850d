/* The distance of a parameter from the head of the model, in blocks, for learning rates that decay with this distance. */
#include "ir/graph.h"
#include <string.h>

static size_t first_part_len(const char *layer)
{
	return strcspn(layer, ".");
}

static bool is_same_block(const char *a, const char *b)
{
	size_t n = first_part_len(a);
	return n == first_part_len(b) && !strncmp(a, b, n);
}

/* Returns whether parameter i begins a block. A block is a sequence of parameters whose layers' names have the same first part ("layer1" of
 * "layer1.0.conv1"). A sequence that has only parameters of normalisations belongs to the block before it. */
static bool begins_block(const struct gt_graph *g, int i)
{
	const char *layer = g->params[i].layer;
	int k = i;
	if (!i)
		return true;
	if (is_same_block(g->params[i - 1].layer, layer))
		return false;
	while (k < g->nparams && is_same_block(g->params[k].layer, layer))
		if (g->params[k].cls == GT_PARAM_NORM || g->params[k].cls == GT_PARAM_BUFFER)
			k++;
		else
			return true;
	return false;
}

int gt_graph_depth(const struct gt_graph *g, int param)
{
	int depth = 0;
	for (int i = param + 1; i < g->nparams; i++)
		depth += begins_block(g, i);
	return depth;
}

const char *gt_graph_block(const struct gt_graph *g, int param, int *length)
{
	while (!begins_block(g, param))
		param--;
	*length = (int)first_part_len(g->params[param].layer);
	return g->params[param].layer;
}
