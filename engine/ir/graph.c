/* Adds values, nodes and parameters to a graph. */
#include "ir/graph.h"
#include "opsig.h"
#include <assert.h>
#include <fnmatch.h>
#include <string.h>

/* A larger tensor is probably an error in the config, and products of such sizes could overflow. */
#define MAX_ELEMENTS ((int64_t)1 << 40)

/* Returns the array with space for one more item. The old array stays in the arena, so pointers into it may be outdated but never
 * dangle. */
static void *grow_array(struct gt_arena *a, void *items, int n, int *cap, size_t size)
{
	if (n < *cap)
		return items;
	int want = *cap ? *cap * 2 : 64;
	void *p = gt_arena_alloc(a, (size_t)want, size);
	if (p) {
		if (n)
			memcpy(p, items, (size_t)n * size);
		*cap = want;
	}
	return p;
}

static const char *join_name(struct gt_graph *g, const char *name, const char *suffix)
{
	return suffix ? gt_arena_printf(g->arena, "%s.%s", name, suffix) : name;
}

enum gt_code gt_graph_value(struct gt_graph *g, const char *name, enum gt_vkind kind, const struct gt_tdesc *d, gt_vid *out,
                            struct gt_err *err)
{
	int64_t n = 1;
	for (int i = 0; i < d->rank; i++) {
		if (d->dim[i] < 1 || __builtin_mul_overflow(n, d->dim[i], &n) || n > MAX_ELEMENTS) {
			char buf[96];
			return gt_fail(err, GT_ECONFIG, "%s: expected a tensor of 1 to 2^40 elements, got %s", name, gt_tdesc_text(d, buf, sizeof buf));
		}
	}
	struct gt_value *v = grow_array(g->arena, g->values, g->nvalues, &g->cap_values, sizeof *v);
	if (!v)
		return gt_fail_memory(err, 0);
	g->values = v;
	*out = g->nvalues++;
	v[*out] = (struct gt_value){.name = name, .kind = kind, .desc = *d, .producer = -1, .param = -1, .again = -1};
	return GT_OK;
}

enum gt_code gt_graph_node_of(struct gt_graph *g, const struct gt_op *op, const char *name, const void *attr, struct gt_node **out,
                              struct gt_err *err)
{
	struct gt_node *n = grow_array(g->arena, g->nodes, g->nnodes, &g->cap_nodes, sizeof *n);
	if (!n)
		return gt_fail_memory(err, 0);
	g->nodes = n;
	*out = &n[g->nnodes++];
	**out = (struct gt_node){.op = op, .name = name, .layer = g->layer, .backward = g->backward, .attr = (void *)attr};
	return GT_OK;
}

enum gt_code gt_graph_node(struct gt_graph *g, enum gt_opcode code, const char *name, const void *attr, struct gt_node **out,
                           struct gt_err *err)
{
	return gt_graph_node_of(g, gt_op_get(code), name, attr, out, err);
}

void gt_node_input(struct gt_node *n, gt_vid v)
{
	assert(n->nin < GT_MAX_IO);
	n->in[n->nin++] = v;
}

static void add_node_output(struct gt_graph *g, struct gt_node *n, gt_vid v)
{
	assert(n == &g->nodes[g->nnodes - 1] && n->nout < GT_MAX_IO);
	n->out[n->nout++] = v;
	if (v >= 0)
		g->values[v].producer = g->nnodes - 1;
}

enum gt_code gt_graph_output(struct gt_graph *g, struct gt_node *n, const char *suffix, const struct gt_tdesc *d, gt_vid *out,
                             struct gt_err *err)
{
	const char *name;
	GT_NEW_STR(name, join_name(g, n->name, suffix), err);
	GT_TRY(gt_graph_value(g, name, GT_V_ACT, d, out, err));
	add_node_output(g, n, *out);
	return GT_OK;
}

const struct gt_tdesc *gt_graph_desc(const struct gt_graph *g, gt_vid v)
{
	return &g->values[v].desc;
}

/* Returns a pointer to an operand in the node, or NULL. */
static gt_vid *find_operand(struct gt_node *n, const char *name)
{
	int in = gt_opsig_find_input(n->op->code, name), out = in < 0 ? gt_opsig_find_output(n->op->code, name) : -1;
	assert(in >= 0 || out >= 0);
	return in >= 0 && in < n->nin ? &n->in[in] : out >= 0 && out < n->nout ? &n->out[out] : NULL;
}

gt_vid gt_node_operand(const struct gt_node *n, const char *name)
{
	const gt_vid *v = find_operand((struct gt_node *)n, name);
	return v ? *v : -1;
}

const struct gt_tdesc *gt_node_desc(const struct gt_graph *g, const struct gt_node *n, const char *name)
{
	gt_vid v = gt_node_operand(n, name);
	return v < 0 ? NULL : gt_graph_desc(g, v);
}

void gt_node_replace(struct gt_node *n, const char *name, gt_vid v)
{
	gt_vid *at = find_operand(n, name);
	assert(at);
	*at = v;
}

enum gt_dtype gt_graph_stat_dtype(const struct gt_graph *g)
{
	return g->compute == GT_F64 ? GT_F64 : GT_F32;
}

static int find_group(const struct gt_graph *g, const char *name)
{
	for (int i = 0; i < g->ngroups; i++)
		for (int k = 0; k < g->groups[i].nmatch; k++)
			if (!fnmatch(g->groups[i].match[k], name, 0))
				return i;
	return -1;
}

enum gt_code gt_graph_group(struct gt_graph *g, const struct gt_node *n, const char *suffix, int *out, struct gt_err *err)
{
	const char *name;
	GT_NEW_STR(name, join_name(g, n->name, suffix), err);
	*out = find_group(g, name);
	return GT_OK;
}

/* Adds the work copy of parameter `index`. */
static enum gt_code add_work_copy(struct gt_graph *g, int index, struct gt_err *err)
{
	struct gt_param *p = &g->params[index];
	struct gt_tdesc d = p->desc;
	const char *name;
	d.dtype = g->compute;
	GT_NEW_STR(name, join_name(g, p->name, gt_dtype_name(d.dtype)), err);
	GT_TRY(gt_graph_value(g, name, GT_V_WORK, &d, &p->work, err));
	g->values[p->work].param = index;
	return GT_OK;
}

/* Returns the index of the parameter "<layer>.weight", which another layer may share; -1: no such parameter. */
static int find_weight(const struct gt_graph *g, const char *layer)
{
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		size_t n = strlen(layer);
		if (p->desc.rank == 2 && (p->cls == GT_PARAM_WEIGHT || p->cls == GT_PARAM_TABLE) && !strncmp(p->name, layer, n) &&
		    !strcmp(p->name + n, ".weight"))
			return i;
	}
	return -1;
}

static enum gt_code add_alias(struct gt_graph *g, struct gt_param *p, const char *layer, struct gt_err *err)
{
	const char **alias;
	GT_NEW(alias, g->arena, p->naliases + 1, err);
	if (p->naliases)
		memcpy(alias, p->alias, (size_t)p->naliases * sizeof *alias);
	GT_NEW_STR(alias[p->naliases], join_name(g, layer, "weight"), err);
	p->alias = alias;
	p->naliases++;
	return GT_OK;
}

/* Appends the weight of the layer that spec.tie names to n's inputs. half: n reads the work copy. draws: number of random draws that
 * PyTorch makes for the weight that n would have without the tie. */
static enum gt_code tied_param(struct gt_graph *g, struct gt_node *n, const int64_t *dim, bool half, int64_t draws, struct gt_err *err)
{
	const struct gt_layer_spec *s = g->spec;
	int index = find_weight(g, s->tie);
	if (index < 0)
		return gt_fail(err, GT_ECONFIG, "tie: expected the name of an earlier layer with a weight of two dimensions, such as an embedding "
		               "or a linear layer, got \"%s\"", s->tie);
	struct gt_param *p = &g->params[index];
	if (p->desc.dim[0] != dim[0] || p->desc.dim[1] != dim[1])
		return gt_fail(err, GT_ECONFIG, "tie: expected a layer with a weight of shape [%lld, %lld], as this layer needs, got \"%s\" with "
		               "[%lld, %lld]", (long long)dim[0], (long long)dim[1], s->tie, (long long)p->desc.dim[0], (long long)p->desc.dim[1]);
	if (s->init >= 0 || s->init_std > 0)
		return gt_fail(err, GT_ECONFIG, "%s: expected this key in the layer \"%s\", whose weight this layer shares (tie), not here",
		               s->init >= 0 ? "init" : "init_std", s->tie);
	GT_TRY(add_alias(g, p, n->name, err));
	p->tied = true;
	p->desc.any = g->values[p->value].desc.any = false;
	if (half && p->work < 0)
		GT_TRY(add_work_copy(g, index, err));
	else if (p->work >= 0)
		g->values[p->work].desc.any = false;
	g->torch_lost += draws;
	gt_node_input(n, half ? p->work : p->value);
	return GT_OK;
}

/* Rejects keys that change random initial values if all initial values of the layer's weight are equal. */
static enum gt_code check_constant(const struct gt_layer_spec *s, enum gt_init_method then, struct gt_err *err)
{
	if (s->init_std > 0)
		return gt_fail(err, GT_ECONFIG, "init_std: expected a layer with random initial weights, got constant initial weights");
	if (then == GT_INIT_DIRAC || then == GT_INIT_WHITENING)
		return gt_fail(err, GT_ECONFIG, "init: \"%s\" is for convolutions only", then == GT_INIT_DIRAC ? "dirac" : "whitening");
	return GT_OK;
}

/* Steps: fill in the settings from the layer spec; name the parameter and find its group; describe its tensor; add its value and, for
 * 16-bit weights, its work copy; append the input to the node. */
enum gt_code gt_graph_param(struct gt_graph *g, struct gt_node *n, const char *suffix, enum gt_param_class cls, int rank,
                            const int64_t *dim, struct gt_init init, int64_t fan_in, int64_t fan_out, struct gt_err *err)
{
	bool buffer = cls == GT_PARAM_BUFFER, copy = cls == GT_PARAM_WEIGHT && gt_dtype_size(g->compute) == 2;
	if (g->spec && g->spec->tie && !strcmp(suffix, "weight"))
		return tied_param(g, n, dim, copy, gt_init_torch_draws(init, gt_graph_stat_dtype(g), dim[0] * dim[1]), err);
	struct gt_param *p = grow_array(g->arena, g->params, g->nparams, &g->cap_params, sizeof *p);
	if (!p)
		return gt_fail_memory(err, 0);
	g->params = p;
	int index = g->nparams;
	p += index;
	const struct gt_layer_spec *s = g->spec;
	*p = (struct gt_param){.layer = n->name,
	                       .cls = cls,
	                       .init = init,
	                       .fan_in = fan_in,
	                       .fan_out = fan_out,
	                       .work = -1,
	                       .grad = -1,
	                       .lr_mul = s ? s->lr_mul : 1,
	                       .weight_decay = s ? s->weight_decay : __builtin_nan(""),
	                       .frozen = !buffer && s && s->frozen,
	                       .method = s && s->init >= 0 ? (enum gt_init_method)s->init : g->init,
	                       .zero_row = -1,
	                       .torch_lost = g->torch_lost,
	                       .group = -1};
	p->then = p->method;
	if (p->method >= GT_INIT_DIRAC)
		p->method = g->init;
	if ((cls == GT_PARAM_WEIGHT || cls == GT_PARAM_TABLE) && s) {
		p->init_std = s->init_std;
		p->init_eps = s->init_eps;
		p->init_samples = s->init_samples;
		if (init.kind == GT_INIT_CONST)
			GT_TRY(check_constant(s, p->then, err));
		if ((p->then == GT_INIT_DIRAC || p->then == GT_INIT_WHITENING) && rank != 4)
			return gt_fail(err, GT_ECONFIG, "init: \"%s\" is for convolutions only", p->then == GT_INIT_DIRAC ? "dirac" : "whitening");
	} else if (p->then != GT_INIT_ZEROS || cls != GT_PARAM_NORM || strcmp(suffix, "weight") != 0) {
		p->then = p->method;
	}
	GT_NEW_STR(p->name, join_name(g, n->name, suffix), err);
	if (!buffer) {
		p->group = find_group(g, p->name);
		p->frozen |= p->group >= 0 && g->groups[p->group].frozen;
	}
	p->desc = gt_tdesc_make(buffer && !rank ? GT_I64 : gt_graph_stat_dtype(g), rank, dim, false);
	p->desc.any = cls == GT_PARAM_WEIGHT;
	if (rank == 3) { /* layernorm's [C, H, W] is applied element by element to activations in NHWC */
		static const uint8_t hwc[3] = {1, 2, 0};
		memcpy(p->desc.layout.order, hwc, sizeof hwc);
	}
	GT_TRY(gt_graph_value(g, p->name, buffer ? GT_V_BUFFER : GT_V_PARAM, &p->desc, &p->value, err));
	g->values[p->value].param = index;
	if (copy)
		GT_TRY(add_work_copy(g, index, err));
	g->nparams++;
	g->torch_lost = 0;
	gt_node_input(n, copy ? p->work : p->value);
	return GT_OK;
}

bool gt_graph_learns(const struct gt_graph *g, gt_vid v)
{
	int i = v >= 0 ? g->values[v].param : -1;
	return i >= 0 && g->params[i].cls != GT_PARAM_BUFFER && !g->params[i].frozen;
}

bool gt_graph_borrows(const struct gt_graph *g, const struct gt_node *n, gt_vid v)
{
	int i = v >= 0 ? g->values[v].param : -1;
	return i >= 0 && g->params[i].tied && strcmp(g->params[i].layer, n->name) != 0;
}

bool gt_graph_grad_adds(const struct gt_graph *g, int i, gt_vid v)
{
	if (g->values[v].kind != GT_V_GRAD || !g->params[g->values[v].param].tied)
		return false;
	while (--i >= 0)
		for (int k = 0; k < g->nodes[i].nout; k++)
			if (g->nodes[i].out[k] == v)
				return true;
	return false;
}

enum gt_code gt_graph_grad(struct gt_graph *g, struct gt_node *n, gt_vid param, struct gt_err *err)
{
	gt_vid v = -1;
	if (gt_graph_learns(g, param)) {
		int index = g->values[param].param;
		struct gt_param *p = &g->params[index];
		if (p->grad < 0) {
			const char *name;
			GT_NEW_STR(name, join_name(g, p->name, "grad"), err);
			GT_TRY(gt_graph_value(g, name, GT_V_GRAD, &p->desc, &p->grad, err));
			g->values[p->grad].param = index;
		}
		v = p->grad;
	}
	add_node_output(g, n, v);
	return GT_OK;
}

bool gt_node_alias(const struct gt_graph *g, const struct gt_node *n)
{
	return n->op->flags & GT_OPF_ALIAS && n->op->alias(g, n);
}

gt_vid gt_graph_source(const struct gt_graph *g, gt_vid v)
{
	for (int i = v < 0 ? -1 : g->values[v].producer; i >= 0 && gt_node_alias(g, &g->nodes[i]); i = g->values[v].producer)
		v = gt_node_first_input(&g->nodes[i]);
	return v;
}

double gt_node_flops(const struct gt_graph *g, const struct gt_node *n)
{
	if (gt_node_alias(g, n))
		return 0;
	if (n->op->flops)
		return n->op->flops(g, n);
	return n->nout && gt_node_first_output(n) >= 0 ? (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_output(n))) : 0;
}

int64_t gt_graph_num_params(const struct gt_graph *g)
{
	int64_t sum = 0;
	for (int i = 0; i < g->nparams; i++)
		if (gt_graph_learns(g, g->params[i].value))
			sum += gt_tdesc_count(&g->params[i].desc);
	return sum;
}

bool gt_graph_mixes_samples(const struct gt_graph *g)
{
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].op->mixes_samples && g->nodes[i].op->mixes_samples(g->nodes[i].attr))
			return true;
	return false;
}
