/* Builds the forward graph from layer specs: resolves names, checks the number of inputs, infers shapes, and adds the loss. */
#include "ir/rows.h"
#include <string.h>

/* A hash table from layer names to indices, with open addressing, at most half full. */
struct names {
	const struct gt_layer_spec *layers;
	const struct gt_model_input *inputs; /* [ninputs] */
	int ninputs;
	int *slot; /* index of the layer + 1; 0: the entry is free */
	uint32_t mask;
};

static uint32_t hash_name(const char *s)
{
	uint32_t h = 2166136261u; /* the hash function FNV-1a */
	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static int *find_slot(const struct names *t, const char *name)
{
	uint32_t i = hash_name(name) & t->mask;
	while (t->slot[i] && strcmp(t->layers[t->slot[i] - 1].name, name))
		i = (i + 1) & t->mask;
	return &t->slot[i];
}

/* Prepends the layer and its source location to an error. */
static enum gt_code prefix_layer_error(const struct gt_layer_spec *s, int i, enum gt_code code, struct gt_err *err)
{
	if (code == GT_OK || code != GT_ECONFIG)
		return code;
	if (s->file)
		return gt_fail_prefix(err, "%s:%d: model.layers[%d] (%s)", s->file, s->line, i, s->name), code;
	return gt_fail_prefix(err, "model.layers[%d] (%s)", i, s->name), code;
}

enum gt_code gt_graph_apply(struct gt_graph *g, const struct gt_op *op, const char *name, const void *attr, int nin, const gt_vid *in,
                            gt_vid *out, struct gt_err *err)
{
	struct gt_node *n;
	unsigned char *copy = NULL;
	size_t size = gt_op_attr_size(op);
	if (size) {
		GT_NEW(copy, g->arena, size, err);
		if (attr)
			memcpy(copy, attr, size);
		else
			gt_op_defaults(op, copy);
	}
	GT_TRY(gt_graph_node_of(g, op, name, copy, &n, err));
	for (int i = 0; i < nin; i++)
		gt_node_input(n, in[i]);
	n->ndata = nin;
	GT_TRY(op->infer(g, n, err));
	*out = gt_node_first_output(n);
	return GT_OK;
}

static enum gt_code check_arity(const struct gt_op *op, int nin, struct gt_err *err)
{
	if (nin >= op->min_in && nin <= op->max_in)
		return GT_OK;
	if (op->min_in == op->max_in)
		return gt_fail(err, GT_ECONFIG, "key \"in\": a layer of type \"%s\" takes %d input%s, got %d", gt_op_name(op), op->min_in,
		               op->min_in > 1 ? "s" : "", nin);
	return gt_fail(err, GT_ECONFIG, "key \"in\": a layer of type \"%s\" takes %d to %d inputs, got %d", gt_op_name(op), op->min_in,
	               op->max_in, nin);
}

/* Returns the index of an input of the model; -1: no input has this name. */
static int find_input(const struct names *t, const char *name)
{
	for (int i = 0; i < t->ninputs; i++)
		if (!strcmp(t->inputs[i].name, name))
			return i;
	return -1;
}

/* Checks that the layer accepts an input with this description. */
static enum gt_code check_input(const struct gt_graph *g, const struct gt_op *op, gt_vid v, struct gt_err *err)
{
	const struct gt_tdesc *d = gt_graph_desc(g, v);
	char buf[96];
	if (d->dtype == GT_I32 && !(op->flags & GT_OPF_CODES))
		return gt_fail(err, GT_ECONFIG,
		               "in: expected real values, got the integers of \"%s\": put a layer of type \"embedding\" before this layer",
		               g->values[v].name);
	if (d->dtype != GT_I32 && d->rank == 3 && !(op->flags & (GT_OPF_TOKENS | GT_OPF_CODES)) && !op->per_token)
		return gt_fail(err, GT_ECONFIG,
		               "in: expected an input of [batch, features] or [batch, channels, height, width], got %s, which is [batch, tokens, "
		               "features]",
		               gt_tdesc_text(d, buf, sizeof buf));
	return GT_OK;
}

enum gt_code gt_graph_layer(struct gt_graph *g, const struct gt_layer_spec *s, int nin, const gt_vid *in, gt_vid *out, struct gt_err *err)
{
	GT_TRY(check_arity(s->op, nin, err));
	if (s->tie && !(s->op->flags & GT_OPF_TIES))
		return gt_fail(err, GT_ECONFIG, "tie: only layers of type \"linear\" and \"embedding\" can share a layer's weight, got \"%s\"",
		               gt_op_name(s->op));
	for (int i = 0; i < nin; i++)
		GT_TRY(check_input(g, s->op, in[i], err));
	g->spec = s;
	if (s->op->expand)
		return s->op->expand(g, s, in, nin, out, err);
	struct gt_tdesc x = *gt_graph_desc(g, *in);
	if (x.rank != 3 || !s->op->per_token || !s->op->per_token(s->attr))
		return gt_graph_apply(g, s->op, s->name, s->attr, nin, in, out, err);
	gt_vid v;
	GT_TRY(gt_graph_view(g, s->name, *in, 2, (int64_t[]){x.dim[0] * x.dim[1], x.dim[2]}, &v, err));
	GT_TRY(gt_graph_apply(g, s->op, s->name, s->attr, 1, &v, out, err));
	return gt_graph_view(g, s->name, *out, 3, (int64_t[]){x.dim[0], x.dim[1], gt_graph_desc(g, *out)->dim[1]}, out, err);
}

/* Adds layer i: checks its name, resolves and counts its inputs, and adds its nodes. y: the output of each layer so far; used: whether a
 * later layer reads it. */
static enum gt_code build_layer(struct gt_graph *g, const struct names *t, int i, gt_vid *y, bool *used, struct gt_err *err)
{
	const struct gt_layer_spec *s = &t->layers[i];
	gt_vid in[GT_MAX_LAYER_IN];
	int nin = s->nin, input;
	const char *name;
	if (find_input(t, s->name) >= 0)
		return gt_fail(err, GT_ECONFIG, "name: expected another name, got \"%s\", which is reserved for the model's input", s->name);
	int *slot = find_slot(t, s->name);
	if (*slot)
		return gt_fail(err, GT_ECONFIG, "name: expected a name that no other layer has, got \"%s\", which is the name of model.layers[%d]",
		               s->name, *slot - 1);
	for (int k = 0; k < nin; k++) {
		if ((input = find_input(t, s->in[k])) >= 0) {
			in[k] = g->input[input];
			continue;
		}
		int j = *find_slot(t, s->in[k]) - 1;
		if (j < 0)
			return gt_fail(err, GT_ECONFIG, "in: expected the name of an earlier layer or \"%s\", got \"%s\"", t->inputs[0].name, s->in[k]);
		in[k] = y[j];
		used[j] = true;
	}
	if (!nin) {
		in[nin++] = i ? y[i - 1] : g->input[0];
		if (i)
			used[i - 1] = true;
	}
	*slot = i + 1;
	GT_NEW_STR(name, gt_arena_strdup(g->arena, s->name), err);
	g->layer = i;
	struct gt_layer_spec copy = *s;
	copy.name = name;
	enum gt_code code = gt_graph_layer(g, &copy, nin, in, &y[i], err);
	g->spec = NULL;
	return code;
}

static bool is_read(const struct gt_graph *g, gt_vid v)
{
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			if (g->nodes[i].in[k] == v)
				return true;
	return false;
}

static enum gt_code build_layers(struct gt_graph *g, const struct gt_model_spec *m, const struct gt_model_input *inputs, int ninputs,
                                 struct gt_err *err)
{
	struct names t = {.layers = m->layers, .inputs = inputs, .ninputs = ninputs, .mask = 15};
	gt_vid *y;
	bool *used;
	while (t.mask + 1 < 2 * (uint32_t)m->nlayers)
		t.mask = 2 * t.mask + 1;
	GT_NEW(t.slot, g->arena, t.mask + 1, err);
	GT_NEW(y, g->arena, m->nlayers, err);
	GT_NEW(used, g->arena, m->nlayers, err);
	for (int i = 0; i < m->nlayers; i++)
		GT_TRY(prefix_layer_error(&m->layers[i], i, build_layer(g, &t, i, y, used, err), err));
	for (int i = 0; i + 1 < m->nlayers; i++) {
		if (!used[i]) {
			gt_fail(err, GT_ECONFIG, "expected a later layer that reads the output of this layer (in = [\"%s\"]), got none",
			        m->layers[i].name);
			return prefix_layer_error(&m->layers[i], i, GT_ECONFIG, err);
		}
	}
	for (int i = 0; i < ninputs; i++)
		if (!is_read(g, g->input[i]))
			return gt_fail(err, GT_ECONFIG, "model.inputs[%d]: expected a layer that reads \"%s\" (in = [\"%s\"]), got none", i,
			               inputs[i].name, inputs[i].name);
	g->output = y[m->nlayers - 1];
	return GT_OK;
}

static enum gt_code add_input(struct gt_graph *g, const struct gt_model_input *in, int64_t batch, struct gt_err *err)
{
	const int64_t *s = in->shape;
	bool numbers = in->type == GT_INPUT_IMAGE || in->type == GT_INPUT_VALUES, image = in->type == GT_INPUT_IMAGE && s[1] * s[2] > 1;
	int rank = image ? 4 : s[0] ? 2 : 1;
	struct gt_tdesc d = gt_tdesc_make(numbers ? g->compute : GT_I32, rank, (int64_t[]){batch, s[0], s[1], s[2]}, numbers);
	int64_t ncodes = in->type == GT_INPUT_CODES && s[0] ? s[0] : 1, *codes;
	const char *name;
	GT_NEW_STR(name, gt_arena_strdup(g->arena, in->name), err);
	GT_NEW(codes, g->arena, ncodes, err);
	gt_vid *v = &g->input[g->ninputs++];
	GT_TRY(gt_graph_value(g, name, GT_V_INPUT, &d, v, err));
	if (in->type != GT_INPUT_CODES && in->type != GT_INPUT_TOKENS)
		return GT_OK;
	for (int64_t i = 0; i < ncodes; i++)
		codes[i] = in->codes ? in->codes[i] : in->vocabulary;
	g->values[*v].codes = codes;
	return GT_OK;
}

enum gt_code gt_graph_build(struct gt_arena *a, const struct gt_model_spec *m, int64_t batch, enum gt_dtype compute, bool train,
                            struct gt_graph **out, struct gt_err *err)
{
	struct gt_graph *g;
	*out = NULL;
	if (m->nlayers < 1)
		return gt_fail(err, GT_ECONFIG, "model.layers: expected at least one layer, got none");
	GT_NEW(g, a, 1, err);
	g->arena = a;
	g->train = train;
	g->batch = batch;
	g->compute = compute;
	g->init = m->init;
	g->groups = m->groups;
	g->ngroups = m->ngroups;
	g->views = 1;
	g->sync_bn = m->sync_bn;
	g->target = g->output = g->metrics = -1;
	struct gt_model_input one = {"input", GT_INPUT_IMAGE, {m->input[0], m->input[1], m->input[2]}};
	const struct gt_model_input *inputs = m->ninputs ? m->inputs : &one;
	int ninputs = m->ninputs ? m->ninputs : 1;
	for (int i = 0; i < ninputs; i++)
		GT_TRY(add_input(g, &inputs[i], batch, err));
	GT_TRY(build_layers(g, m, inputs, ninputs, err));
	g->spec = NULL; /* only valid while the graph is built: the caller may then free the layer specs */
	g->groups = NULL;
	g->ngroups = 0;
	g->layer = -1;
	*out = g;
	return GT_OK;
}

enum gt_code gt_graph_views(struct gt_graph *g, int views, struct gt_err *err)
{
	struct gt_tdesc d = *gt_graph_desc(g, g->output);
	struct gt_attr_views *attr;
	struct gt_node *n;
	if (d.rank != 2)
		return gt_fail(err, GT_ECONFIG, "eval.tta: expected a model whose output is [batch, classes], got an output of rank %d", d.rank);
	GT_NEW(attr, g->arena, 1, err);
	attr->views = views;
	g->layer = -1;
	GT_TRY(gt_graph_node(g, GT_OP_VIEWS_MEAN, "views", attr, &n, err));
	gt_node_input(n, g->output);
	n->ndata = 1;
	d.dim[0] /= views;
	g->views = views;
	return gt_graph_output(g, n, NULL, &d, &g->output, err);
}

/* Prepends the config key to an error of the loss, unless the error begins with a key. */
static void prefix_loss_key(struct gt_err *err)
{
	if (err && strncmp(err->msg, "train.", 6) != 0)
		gt_fail_prefix(err, "train.loss");
}

enum gt_code gt_graph_loss(struct gt_graph *g, const struct gt_loss_spec *loss, struct gt_err *err)
{
	const struct gt_tdesc *output = gt_graph_desc(g, g->output);
	struct gt_tdesc d;
	g->layer = -1;
	if (gt_loss_target(loss, g->batch / g->views, output->rank > 1 ? output->dim[1] : 1, &d, err) != GT_OK)
		return prefix_loss_key(err), GT_ECONFIG;
	GT_TRY(gt_graph_value(g, "target", GT_V_TARGET, &d, &g->target, err));
	const gt_vid in[2] = {g->output, g->target};
	enum gt_code code = gt_graph_apply(g, loss->op, "loss", &loss->attr, 2, in, &g->metrics, err);
	if (code == GT_ECONFIG)
		prefix_loss_key(err);
	if (code != GT_OK || !g->train || g->compute != GT_F16)
		return code;
	/* The loss node multiplies f16 gradients by the loss scale, so that they do not underflow. The planner binds this operand to the loss
	 * scale in struct gt_scaler. */
	gt_vid scale;
	d = gt_tdesc_make(GT_F64, 0, NULL, false);
	GT_TRY(gt_graph_value(g, "loss.scale", GT_V_SCALE, &d, &scale, err));
	gt_node_input(&g->nodes[g->values[g->metrics].producer], scale);
	return GT_OK;
}
