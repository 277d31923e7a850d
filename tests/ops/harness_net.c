#include "harness_net.h"
#include "ir/rows.h"
#include "plan/syncbn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool table_key(const char *key, const char *value)
{
	return (!strcmp(key, "mode") && !strcmp(value, "eval")) || !strcmp(key, "skip") || !strcmp(key, "act") || !strcmp(key, "sync") ||
	       !strcmp(key, "target") || !strcmp(key, "weights") || !strcmp(key, "data");
}

static enum gt_code set_attr(const struct gt_attr_def *d, char *attr, const char *value, struct gt_err *err)
{
	char *p = attr + d->offset;
	int64_t two[2] = {0, 0};
	char *end = (char *)value;
	switch (d->type) {
	case GT_ATTR_INT:
		*(int64_t *)(void *)p = strtoll(value, &end, 10);
		break;
	case GT_ATTR_INT2:
		if (*value == '[')
			two[0] = strtoll(value + 1, &end, 10), two[1] = strtoll(end + 1, &end, 10), end += *end == ']';
		else
			two[0] = two[1] = strtoll(value, &end, 10);
		memcpy(p, two, sizeof two);
		break;
	case GT_ATTR_INTS:
		for (struct gt_ints *l = (struct gt_ints *)(void *)p; *end == '[' || *end == ','; l->n++)
			l->v[l->n] = strtoll(end + 1, &end, 10);
		end += *end == ']';
		break;
	case GT_ATTR_FLOAT:
		*(double *)(void *)p = strtod(value, &end);
		break;
	case GT_ATTR_BOOL:
		*(bool *)p = !strcmp(value, "true");
		end += strlen(value);
		break;
	case GT_ATTR_ENUM:
		*(int *)(void *)p = 0;
		for (const char *s = d->values; s; s = strchr(s, '|') ? strchr(s, '|') + 1 : NULL) {
			if (!strncmp(s, value, strlen(value)) && (s[strlen(value)] == '|' || !s[strlen(value)])) {
				end += strlen(value);
				break;
			}
			++*(int *)(void *)p;
		}
		break;
	}
	return *end ? gt_fail(err, GT_EFAIL, "%s=%s: not a value", d->key, value) : GT_OK;
}

static enum gt_code make_attr(struct net *n, const struct gt_op *op, void **out, struct gt_err *err)
{
	char *attr;
	GT_NEW(attr, n->arena, gt_op_attr_size(op) + 1, err);
	*out = attr;
	gt_op_defaults(op, attr);
	for (int i = 0; i < n->c->nkeys; i++) {
		const char *key = n->c->kv[i].key;
		const struct gt_attr_def *d = op->attrs;
		if (table_key(key, n->c->kv[i].value))
			continue;
		while (d && d->key && strcmp(d->key, key))
			d++;
		if (!d || !d->key)
			return gt_fail(err, GT_EFAIL, "%s has no key %s", n->c->type, key);
		GT_TRY(set_attr(d, attr, n->c->kv[i].value, err));
	}
	if (opcase_key(n->c, "act")) {
		if (op->code == GT_OP_LINEAR)
			((struct gt_attr_linear *)(void *)attr)->act = GT_ACT_RELU;
		else
			((struct gt_attr_conv2d *)(void *)attr)->act = GT_ACT_RELU;
	}
	return GT_OK;
}

/* A graph of one `identity` on the first input: what the operation is then added to. */
static enum gt_code open_graph(struct net *n, const struct gt_layer_spec *layer, enum gt_dtype t, struct gt_err *err)
{
	struct gt_model_spec m = {.input = {1, 1, 1}, .layers = layer, .nlayers = 1, .sync_bn = opcase_key(n->c, "sync")};
	for (int i = 1; i < n->c->in[0].rank; i++)
		m.input[i - 1] = n->c->in[0].dim[i];
	const char *mode = opcase_key(n->c, "mode");
	return gt_graph_build(n->arena, &m, n->c->in[0].dim[0], t, !mode || strcmp(mode, "eval"), &n->g, err);
}

static enum gt_code build_layer(struct net *n, enum gt_dtype t, struct gt_err *err)
{
	struct gt_layer_spec spec = {.name = "l", .op = gt_op_find_layer(n->c->type), .lr_mul = 1, .weight_decay = NAN, .init = -1};
	struct gt_layer_spec id = {.name = "frame", .op = gt_op_find_layer("identity"), .lr_mul = 1, .weight_decay = NAN, .init = -1};
	if (!spec.op)
		return gt_fail(err, GT_EFAIL, "no layer type %s", n->c->type);
	GT_TRY(make_attr(n, spec.op, &spec.attr, err));
	GT_TRY(open_graph(n, &id, t, err));
	for (int i = 0; i < n->c->nin; i++) {
		struct gt_tdesc d = gt_tdesc_make(n->c->in[i].codes ? GT_I32 : t, n->c->in[i].rank, n->c->in[i].dim, n->c->in[i].rank == 4);
		GT_TRY(gt_graph_value(n->g, gt_arena_printf(n->arena, "x%d", i), GT_V_INPUT, &d, &n->x[i], err));
	}
	GT_TRY(gt_graph_layer(n->g, &spec, n->c->nin, n->x, &n->y, err));
	n->g->spec = NULL;
	return GT_OK;
}

/* The gradient of a value is what it is so far, -1: nothing, plus one more part. */
static enum gt_code add_part(struct gt_graph *g, gt_vid part, gt_vid *sum, struct gt_err *err)
{
	struct gt_node *n;
	struct gt_tdesc d = g->values[part].desc;
	gt_vid before = *sum;
	*sum = part;
	if (before < 0)
		return GT_OK;
	GT_TRY(gt_graph_node(g, GT_OP_ADD, "sum", NULL, &n, err));
	gt_node_input(n, before);
	gt_node_input(n, part);
	n->ndata = 2;
	return gt_graph_output(g, n, NULL, &d, sum, err);
}

/* Every node of the layer is differentiated for all of its inputs; with data=1, not for the input of the layer. */
static enum gt_code differentiate(struct net *n, struct gt_err *err)
{
	struct gt_graph *g = n->g;
	struct gt_tdesc d = g->values[n->y].desc;
	GT_TRY(gt_graph_value(g, "dy", GT_V_INPUT, &d, &n->dy, err));
	int values = g->nvalues;
	bool data = opcase_key(n->c, "data");
	gt_vid *grad;
	GT_NEW(grad, n->arena, values, err);
	for (int v = 0; v < values; v++)
		grad[v] = -1;
	grad[n->y] = n->dy;
	g->backward = true;
	for (int i = n->forward - 1; i >= 0 && strcmp(g->nodes[i].name, "frame"); i--) { /* up to the frame's identity */
		struct gt_node node = g->nodes[i]; /* a copy: the array may move */
		bool want[GT_MAX_IO];
		gt_vid dx[GT_MAX_IO];
		for (int j = 0; j < GT_MAX_IO; j++)
			want[j] = j < node.ndata && g->values[node.in[j]].desc.dtype != GT_I32 && !(data && node.in[j] == n->x[0]), dx[j] = -1;
		if (!node.op->gradient)
			return gt_fail(err, GT_EFAIL, "%s has no gradient", gt_op_name(node.op));
		GT_TRY(node.op->gradient(g, &node, grad[node.out[0]], want, dx, err));
		for (int j = 0; j < node.ndata; j++)
			if (want[j] && dx[j] >= 0)
				GT_TRY(add_part(g, dx[j], &grad[node.in[j]], err));
	}
	for (int k = 0; k < n->c->nin; k++)
		n->dx[k] = grad[n->x[k]];
	g->backward = false;
	return GT_OK;
}

void case_weights(const struct opcase *c, double *w)
{
	char name[256];
	snprintf(name, sizeof name, "%s/weights", c->name);
	for (int64_t i = 0; i < c->in[0].dim[1]; i++)
		w[i] = (double)(float)(harness_uniform(name, i) * 0.5 + 1);
}

static enum gt_code build_loss(struct net *n, enum gt_dtype t, struct gt_err *err)
{
	struct gt_layer_spec id = {.name = "frame", .op = gt_op_find_layer("identity"), .lr_mul = 1, .weight_decay = NAN, .init = -1};
	struct gt_loss_spec loss = {.op = gt_op_find_loss(n->c->type + 5), .attr = {.ignore_index = -100}};
	if (!loss.op)
		return gt_fail(err, GT_EFAIL, "no loss %s", n->c->type + 5);
#define GT_X(name, i, key, default_text, ...)                                                                                              \
	if (!strcmp(#name, n->c->type + 5))                                                                                                    \
		loss.attr.number[i] = opcase_number(n->c, key, atof(default_text));
	GT_LOSS_KEYS(GT_X)
#undef GT_X
	loss.attr.ignore_index = (int64_t)opcase_number(n->c, "ignore_index", -100);
	loss.dense = opcase_key(n->c, "target") != NULL;
	if (opcase_key(n->c, "weights")) {
		double *w;
		loss.attr.nweights = n->c->in[0].dim[1];
		GT_NEW(w, n->arena, loss.attr.nweights, err);
		case_weights(n->c, w);
		loss.attr.weights = w;
	}
	GT_TRY(open_graph(n, &id, t, err));
	n->x[0] = n->g->output;
	GT_TRY(gt_graph_loss(n->g, &loss, err));
	n->dx[0] = n->g->nodes[n->g->nnodes - 1].out[1];
	return GT_OK;
}

enum gt_code net_build(struct net *n, const struct opcase *c, enum gt_dtype t, struct gt_err *err)
{
	memset(n, 0, sizeof *n);
	n->c = c;
	n->ninputs = c->nin;
	n->y = n->dy = -1;
	for (int i = 0; i < OPCASE_INPUTS; i++)
		n->x[i] = n->dx[i] = -1;
	GT_TRY(gt_arena_open(&n->arena, err));
	if (!strncmp(c->type, "loss:", 5)) {
		GT_TRY(build_loss(n, t, err));
		n->forward = n->g->nnodes;
		return GT_OK;
	}
	GT_TRY(build_layer(n, t, err));
	n->forward = n->g->nnodes;
	if (n->g->train)
		GT_TRY(differentiate(n, err));
	int world = (int)opcase_number(c, "sync", 0);
	if (!world)
		return GT_OK;
	GT_TRY(gt_graph_sync_bn(n->g, GT_GROUP_WORLD, world, c->in[0].dim[0] * world, err));
	for (n->forward = 0; n->forward < n->g->nnodes && !n->g->nodes[n->forward].backward; n->forward++)
		;
	return GT_OK;
}
