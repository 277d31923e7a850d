/* Small models for the tests of engine/ir, written as one would in a config. */
#ifndef GT_TESTS_IR_NET_H
#define GT_TESTS_IR_NET_H

#include "ir/graph.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NET_MAX 128
struct net {
	struct gt_arena *a;
	struct gt_model_spec m;
	struct gt_layer_spec layer[NET_MAX];
	struct gt_graph *g;
	struct gt_err e;
};

static inline void net_open(struct net *t, int64_t c, int64_t h, int64_t w)
{
	memset(t, 0, sizeof *t);
	gt_arena_open(&t->a, NULL);
	t->m = (struct gt_model_spec){.input = {c, h, w}, .layers = t->layer};
}

static inline void net_close(struct net *t)
{
	gt_arena_close(t->a);
}

/* Adds a layer. keys: "out=64 kernel=3,5 bias=0", enumerations by index; in: "a b", or NULL for the layer before. */
static inline struct gt_layer_spec *net_add(struct net *t, const char *name, const char *type, const char *keys, const char *in)
{
	const struct gt_op *op = gt_op_find_layer(type);
	struct gt_layer_spec *s = &t->layer[t->m.nlayers++];
	if (!op || t->m.nlayers > NET_MAX) {
		printf("no layer type %s, or too many layers\n", type);
		abort();
	}
	*s = (struct gt_layer_spec){
	    .name = name, .op = op, .lr_mul = 1, .weight_decay = NAN, .init = -1, .file = "net.cfg", .line = t->m.nlayers};
	if (gt_op_attr_size(op)) {
		s->attr = gt_arena_alloc(t->a, 1, gt_op_attr_size(op));
		gt_op_defaults(op, s->attr);
	}
	char buf[256] = "", *save = NULL;
	if (keys)
		snprintf(buf, sizeof buf, "%s", keys);
	for (char *k = strtok_r(buf, " ", &save); k; k = strtok_r(NULL, " ", &save)) {
		char *v = strchr(k, '='), *second;
		const struct gt_attr_def *d = op->attrs;
		*v++ = 0;
		while (d && d->key && strcmp(d->key, k))
			d++;
		if (!d || !d->key) {
			printf("%s has no key %s\n", type, k);
			abort();
		}
		char *p = (char *)s->attr + d->offset;
		double x = strtod(v, &second), y = *second ? strtod(second + 1, NULL) : x;
		if (d->type == GT_ATTR_FLOAT)
			*(double *)(void *)p = x;
		else if (d->type == GT_ATTR_INTS)
			for (struct gt_ints *l = (struct gt_ints *)(void *)p; v; v = (v = strchr(v, ',')) ? v + 1 : NULL)
				l->v[l->n++] = strtoll(v, NULL, 10);
		else if (d->type == GT_ATTR_BOOL)
			*(bool *)p = x != 0;
		else if (d->type == GT_ATTR_ENUM)
			*(int *)(void *)p = (int)x;
		else
			*(int64_t *)(void *)p = (int64_t)x;
		if (d->type == GT_ATTR_INT2)
			((int64_t *)(void *)p)[1] = (int64_t)y;
	}
	char *names = in ? gt_arena_strdup(t->a, in) : NULL;
	for (char *k = names ? strtok_r(names, " ", &save) : NULL; k; k = strtok_r(NULL, " ", &save))
		s->in[s->nin++] = k;
	return s;
}

static inline enum gt_code net_build(struct net *t, int64_t batch, enum gt_dtype compute, bool train)
{
	memset(&t->e, 0, sizeof t->e);
	return gt_graph_build(t->a, &t->m, batch, compute, train, &t->g, &t->e);
}

/* A training graph with its loss and its backward nodes, verified. */
static inline enum gt_code net_train(struct net *t, int64_t batch, enum gt_dtype compute)
{
	struct gt_loss_spec loss = {.op = gt_op_find_loss("cross_entropy"), .attr = {.ignore_index = -100}};
	GT_TRY(net_build(t, batch, compute, true));
	GT_TRY(gt_graph_loss(t->g, &loss, &t->e));
	GT_TRY(gt_graph_differentiate(t->g, &t->e));
	return gt_graph_verify(t->g, &t->e);
}

/* "linear.dw (fc1): loss.dx flatten -> fc1.weight.grad fc1.bias.grad", one line a node; "-" for what is absent. */
static inline const char *net_text(const struct net *t, char *buf, size_t size)
{
	size_t n = 0;
	buf[0] = 0;
	for (int i = 0; i < t->g->nnodes; i++) {
		const struct gt_node *d = &t->g->nodes[i];
		n += (size_t)snprintf(buf + n, size - n, "%s (%s):", gt_op_name(d->op), d->name);
		for (int k = 0; k < d->nin; k++)
			n += (size_t)snprintf(buf + n, size - n, " %s", d->in[k] < 0 ? "-" : t->g->values[d->in[k]].name);
		n += (size_t)snprintf(buf + n, size - n, " ->");
		for (int k = 0; k < d->nout; k++)
			n += (size_t)snprintf(buf + n, size - n, " %s", d->out[k] < 0 ? "-" : t->g->values[d->out[k]].name);
		n += (size_t)snprintf(buf + n, size - n, "\n");
	}
	return buf;
}

#endif
