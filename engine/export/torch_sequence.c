/* Embeddings, attention, recurrent layers and the layers of vision transformers as modules of torch.nn. */
#include "export/torch_model.h"
#include <string.h>

/* Returns ", NAME" for the lengths, the second input of a layer; "": the layer has no lengths. */
static const char *lengths_argument(const struct gt_torch_layer *l, char buf[32])
{
	snprintf(buf, 32, "%s%s", l->nin > 1 ? ", " : "", l->nin > 1 ? l->x[1] : "");
	return buf;
}

static const char *padding_argument(const struct gt_attr_embedding *a, char buf[48])
{
	snprintf(buf, 48, a->padding >= 0 ? ", padding_idx=%lld" : "", (long long)a->padding);
	return buf;
}

void gt_torch_embedding(const struct gt_torch_layer *l)
{
	const struct gt_attr_embedding *a = gt_torch_node(l, GT_OP_EMBEDDING, NULL)->attr;
	char padding[48];
	gt_torch_module(l, "nn.Embedding(%lld, %lld%s)", (long long)a->num, (long long)a->dim, padding_argument(a, padding));
}

/* Adds a module for the table of each column. */
void gt_torch_embeddings(const struct gt_torch_layer *l)
{
	const struct gt_node *n = NULL;
	fprintf(l->init, "        self.add(\"%s\", nn.ModuleList([", l->spec->name);
	for (const char *comma = ""; (n = gt_torch_node(l, GT_OP_EMBEDDING, n)); comma = ", ") {
		const struct gt_attr_embedding *a = n->attr;
		fprintf(l->init, "%snn.Embedding(%lld, %lld)", comma, (long long)a->num, (long long)a->dim);
	}
	fprintf(l->init, "]))\n");
	gt_torch_line(l, "torch.cat([table(%s[:, i]) for i, table in enumerate(self[\"%s\"])], 1)", l->x[0], l->spec->name);
}

void gt_torch_embedding_bag(const struct gt_torch_layer *l)
{
	static const char *const modes[] = {[GT_BAG_MEAN] = "mean", [GT_BAG_SUM] = "sum", [GT_BAG_MAX] = "max"};
	const struct gt_attr_embedding *a = l->attr;
	char padding[48];
	gt_torch_register(l, "nn.EmbeddingBag(%lld, %lld, mode=\"%s\"%s)", (long long)a->num, (long long)a->dim, modes[a->mode],
	                  padding_argument(a, padding));
	l->helper[GT_TORCH_BAG] |= l->nin > 1;
	if (l->nin > 1)
		gt_torch_line(l, "bag(self[\"%s\"], %s, %s)", l->spec->name, l->x[0], l->x[1]);
	else
		gt_torch_line(l, "self[\"%s\"](%s)", l->spec->name, l->x[0]);
}

void gt_torch_positional(const struct gt_torch_layer *l)
{
	const struct gt_attr_positional *a = l->attr;
	long long tokens = (long long)(a->kind == GT_POSITIONAL_SAME ? 1 : l->dx[0]->dim[1]);
	if (a->kind == GT_POSITIONAL_SINUSOIDAL) {
		l->helper[GT_TORCH_SINUSOIDS] = true;
		gt_torch_line(l, "%s + sinusoids(%s)", l->x[0], l->x[0]);
		return;
	}
	gt_torch_register(l, "nn.Embedding(%lld, %lld)", (long long)a->max, (long long)l->dx[0]->dim[2]);
	gt_torch_line(l, "%s + self[\"%s\"].weight[:%lld]", l->x[0], l->spec->name, tokens);
}

void gt_torch_class_token(const struct gt_torch_layer *l)
{
	gt_torch_register(l, "nn.Embedding(1, %lld)", (long long)l->dx[0]->dim[2]);
	gt_torch_line(l, "torch.cat((self[\"%s\"].weight.expand(len(%s), 1, -1), %s), 1)", l->spec->name, l->x[0], l->x[0]);
}

/* Writes layer_scale as a depthwise 1x1 convolution, as in the graph. Inputs that are no images are multiplied by its weight instead. */
void gt_torch_layer_scale(const struct gt_torch_layer *l)
{
	long long channels = (long long)l->dx[0]->dim[l->dx[0]->rank == 4 ? 1 : l->dx[0]->rank - 1];
	if (l->dx[0]->rank == 4) {
		gt_torch_module(l, "nn.Conv2d(%lld, %lld, 1, groups=%lld, bias=False)", channels, channels, channels);
		return;
	}
	gt_torch_register(l, "nn.Conv2d(%lld, %lld, 1, groups=%lld, bias=False)", channels, channels, channels);
	gt_torch_line(l, "%s * self[\"%s\"].weight.flatten()", l->x[0], l->spec->name);
}

void gt_torch_pool_tokens(const struct gt_torch_layer *l)
{
	static const char *const modes[] = {
	    [GT_POOL_MEAN] = "mean", [GT_POOL_MAX] = "max", [GT_POOL_FIRST] = "first", [GT_POOL_LAST] = "last"};
	const struct gt_attr_pool_tokens *a = l->attr;
	char lengths[32];
	l->helper[GT_TORCH_POOL] = true;
	gt_torch_line(l, "pool_tokens(%s, \"%s\"%s)", l->x[0], modes[a->mode], lengths_argument(l, lengths));
}

void gt_torch_attention(const struct gt_torch_layer *l)
{
	const struct gt_attr_attention *a = l->attr;
	char lengths[32];
	l->helper[GT_TORCH_ATTEND] = true;
	gt_torch_register(l, "nn.MultiheadAttention(%lld, %lld%s, batch_first=True)", (long long)l->dx[0]->dim[2], (long long)a->heads,
	                  a->bias ? "" : ", bias=False");
	gt_torch_line(l, "attend(self[\"%s\"], %s%s%s)", l->spec->name, l->x[0], lengths_argument(l, lengths),
	              a->causal ? ", causal=True" : "");
}

/* Finds the properties of the layer in its nodes: a node for the steps of each layer and direction, and dropout between layers. */
void gt_torch_recurrent(const struct gt_torch_layer *l)
{
	bool lstm = !strcmp(gt_op_name(l->spec->op), "lstm"), reverse = false;
	enum gt_opcode code = lstm ? GT_OP_LSTM_STEPS : GT_OP_GRU_STEPS;
	const struct gt_node *first = gt_torch_node(l, code, NULL), *drop = gt_torch_node(l, GT_OP_DROPOUT, NULL);
	double p = drop ? ((const struct gt_attr_dropout *)drop->attr)->p : 0;
	char lengths[32], dropout[32];
	int steps = 0;
	for (const struct gt_node *n = first; n; n = gt_torch_node(l, code, n)) {
		reverse |= ((const struct gt_attr_rnn *)n->attr)->reverse;
		steps++;
	}
	l->helper[GT_TORCH_RECUR] = true;
	gt_torch_register(l, "nn.%s(%lld, %lld, num_layers=%d%s, batch_first=True, dropout=%s%s)", lstm ? "LSTM" : "GRU",
	                  (long long)l->dx[0]->dim[2], (long long)gt_node_desc(l->g, first, "y")->dim[2], steps / (1 + reverse),
	                  gt_node_operand(first, "b") >= 0 ? "" : ", bias=False", gt_torch_number(dropout, p),
	                  reverse ? ", bidirectional=True" : "");
	gt_torch_line(l, "recur(self[\"%s\"], %s%s%s)", l->spec->name, l->x[0], lengths_argument(l, lengths),
	              l->dy->rank == 2 ? ", last=True" : "");
}
