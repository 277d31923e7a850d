/* The graph of an ONNX model in memory. onnx_file.c writes it. The field numbers are from onnx.proto. */
#include "export/onnx_model.h"
#include <stdlib.h>
#include <string.h>

enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_TYPE, NODE_ATTRIBUTE };
enum { ATTR_NAME = 1, ATTR_FLOAT, ATTR_INT, ATTR_STRING, ATTR_INTS = 8, ATTR_TYPE = 20 };
enum { ATTR_TYPE_FLOAT = 1, ATTR_TYPE_INT, ATTR_TYPE_STRING, ATTR_TYPE_INTS = 7 };
enum { VALUE_NAME = 1, VALUE_TYPE };
enum { TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM };
enum { GRAPH_NODE = 1, GRAPH_INPUT = 11, GRAPH_OUTPUT, MODEL_METADATA = 14 };

static void keep_failure(struct gt_onnx *m, enum gt_code code, const struct gt_err *err)
{
	if (m->code != GT_OK || code == GT_OK)
		return;
	m->code = code;
	m->err = *err;
}

static void *keep_memory(struct gt_onnx *m, void *p)
{
	struct gt_err err = {0};
	if (!p)
		keep_failure(m, gt_fail_memory(&err, 0), &err);
	return p;
}

/* Returns a unique name of a value. It contains a slash, unlike names of layers, and an operator, unlike names of parameters. */
static const char *make_name(struct gt_onnx *m, const char *what)
{
	const char *name = keep_memory(m, gt_arena_printf(m->arena, "%s/%s_%d", m->layer, what, m->serial++));
	return name ? name : "";
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------------------ */
static void add_attribute(struct gt_pb *node, const struct gt_onnx_attr *a)
{
	struct gt_pb m = {0};
	int type = a->kind == 'i' ? ATTR_TYPE_INT : a->kind == 'f' ? ATTR_TYPE_FLOAT : a->kind == 's' ? ATTR_TYPE_STRING : ATTR_TYPE_INTS;
	gt_pb_string(&m, ATTR_NAME, a->name);
	if (a->kind == 'i')
		gt_pb_int(&m, ATTR_INT, a->integer);
	else if (a->kind == 'f')
		gt_pb_float(&m, ATTR_FLOAT, (float)a->number);
	else if (a->kind == 's')
		gt_pb_string(&m, ATTR_STRING, a->word);
	for (int i = 0; i < a->n; i++)
		gt_pb_int(&m, ATTR_INTS, a->integers[i]);
	gt_pb_int(&m, ATTR_TYPE, type);
	gt_pb_message(node, NODE_ATTRIBUTE, &m);
}

const char *gt_onnx_node(struct gt_onnx *m, const char *type, const char *const *in, const struct gt_onnx_attr *attr)
{
	struct gt_pb node = {0};
	const char *y = make_name(m, type);
	while (*in)
		gt_pb_string(&node, NODE_INPUT, *in++);
	gt_pb_string(&node, NODE_OUTPUT, y);
	gt_pb_string(&node, NODE_NAME, y);
	gt_pb_string(&node, NODE_TYPE, type);
	for (; attr->name; attr++)
		add_attribute(&node, attr);
	gt_pb_message(&m->nodes, GRAPH_NODE, &node);
	return y;
}

const char *gt_onnx_reshape(struct gt_onnx *m, const char *x, int rank, const int64_t *dim)
{
	int64_t shape[GT_MAX_RANK] = {-1};
	for (int i = 1; i < rank; i++)
		shape[i] = dim[i];
	return GT_ONNX(m, "Reshape", GT_IN(x, gt_onnx_ints(m, rank, shape)));
}

const char *gt_onnx_cast(struct gt_onnx *m, const char *x, enum gt_onnx_type type)
{
	return GT_ONNX(m, "Cast", GT_IN(x), GT_ONNX_INT("to", type));
}

/* ---- constants and parameters ----------------------------------------------------------------------------------------------------- */
static const char *add_tensor(struct gt_onnx *m, const struct gt_onnx_tensor *t)
{
	struct gt_err err = {0};
	enum gt_code code = gt_arena_grow(m->arena, &m->tensor, m->ntensors, &m->cap, sizeof *m->tensor, &err);
	keep_failure(m, code, &err);
	if (code == GT_OK)
		m->tensor[m->ntensors++] = *t;
	return t->name;
}

static const char *add_constant(struct gt_onnx *m, enum gt_onnx_type type, int rank, const int64_t *dim, const void *v)
{
	struct gt_onnx_tensor t = {.name = make_name(m, "Constant"), .type = type, .rank = rank, .data = v, .param = -1};
	t.bytes = type == GT_ONNX_INT64 ? 8 : 4;
	for (int i = 0; i < rank; i++) {
		t.dim[i] = dim[i];
		t.bytes *= (uint64_t)dim[i];
	}
	return add_tensor(m, &t);
}

static void *copy_values(struct gt_onnx *m, const void *v, size_t bytes)
{
	void *copy = keep_memory(m, gt_arena_alloc(m->arena, bytes + 1, 1));
	if (copy)
		memcpy(copy, v, bytes);
	return copy;
}

const char *gt_onnx_own_floats(struct gt_onnx *m, int rank, const int64_t *dim, const float *v)
{
	return v ? add_constant(m, GT_ONNX_FLOAT, rank, dim, v) : "";
}

const char *gt_onnx_floats(struct gt_onnx *m, int rank, const int64_t *dim, const float *v)
{
	size_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= (size_t)dim[i];
	return gt_onnx_own_floats(m, rank, dim, copy_values(m, v, n * sizeof *v));
}

const char *gt_onnx_float(struct gt_onnx *m, double v)
{
	float f = (float)v;
	return gt_onnx_floats(m, 0, NULL, &f);
}

static const char *add_ints(struct gt_onnx *m, int rank, int n, const int64_t *v)
{
	const int64_t *copy = copy_values(m, v, (size_t)n * sizeof *v), dim = n;
	return copy ? add_constant(m, GT_ONNX_INT64, rank, &dim, copy) : "";
}

const char *gt_onnx_ints(struct gt_onnx *m, int n, const int64_t *v)
{
	return add_ints(m, 1, n, v);
}

const char *gt_onnx_int(struct gt_onnx *m, int64_t v)
{
	return add_ints(m, 0, 1, &v);
}

const char *gt_onnx_param(struct gt_onnx *m, int param)
{
	struct gt_tdesc d = gt_export_param_desc(m->source, param);
	if (m->param[param])
		return m->param[param];
	struct gt_onnx_tensor t = {
	    .name = m->source->graph->params[param].name, .type = GT_ONNX_FLOAT, .rank = d.rank, .bytes = gt_tdesc_bytes(&d), .param = param};
	memcpy(t.dim, d.dim, sizeof t.dim);
	return m->param[param] = add_tensor(m, &t);
}

float *gt_onnx_room(struct gt_onnx *m, int64_t n)
{
	return keep_memory(m, gt_arena_alloc(m->arena, (size_t)n, sizeof(float)));
}

const char **gt_onnx_names(struct gt_onnx *m, int64_t n)
{
	return keep_memory(m, gt_arena_alloc(m->arena, (size_t)n + 1, sizeof(char *)));
}

float *gt_onnx_param_values(struct gt_onnx *m, int param)
{
	struct gt_tdesc d = gt_export_param_desc(m->source, param);
	struct gt_err err = {0};
	float *v = gt_onnx_room(m, gt_tdesc_count(&d));
	enum gt_code code = v ? gt_export_param_read(m->source, param, v, &err) : GT_EFAIL;
	keep_failure(m, code, &err);
	return code == GT_OK ? v : NULL;
}

/* ---- inputs, outputs, metadata ---------------------------------------------------------------------------------------------------- */
static void add_value(struct gt_pb *to, int field, const char *name, enum gt_onnx_type type, const struct gt_tdesc *d)
{
	struct gt_pb shape = {0}, tensor = {0}, any = {0}, value = {0};
	for (int i = 0; i < d->rank; i++) {
		struct gt_pb dim = {0};
		if (i)
			gt_pb_int(&dim, DIM_VALUE, d->dim[i]);
		else
			gt_pb_string(&dim, DIM_PARAM, "batch");
		gt_pb_message(&shape, SHAPE_DIM, &dim);
	}
	gt_pb_int(&tensor, TENSOR_ELEMENT, type);
	gt_pb_message(&tensor, TENSOR_SHAPE, &shape);
	gt_pb_message(&any, TYPE_TENSOR, &tensor);
	gt_pb_string(&value, VALUE_NAME, name);
	gt_pb_message(&value, VALUE_TYPE, &any);
	gt_pb_message(to, field, &value);
}

void gt_onnx_input(struct gt_onnx *m, const char *name, enum gt_onnx_type type, const struct gt_tdesc *d)
{
	add_value(&m->inputs, GRAPH_INPUT, name, type, d);
}

void gt_onnx_output(struct gt_onnx *m, const char *x, const char *name, const struct gt_tdesc *d)
{
	struct gt_pb node = {0};
	gt_pb_string(&node, NODE_INPUT, x);
	gt_pb_string(&node, NODE_OUTPUT, name);
	gt_pb_string(&node, NODE_NAME, name);
	gt_pb_string(&node, NODE_TYPE, "Identity");
	gt_pb_message(&m->nodes, GRAPH_NODE, &node);
	add_value(&m->outputs, GRAPH_OUTPUT, name, GT_ONNX_FLOAT, d);
}

void gt_onnx_metadata(struct gt_onnx *m, const char *key, const char *value)
{
	struct gt_pb entry = {0};
	gt_pb_string(&entry, 1, key);
	gt_pb_string(&entry, 2, value);
	gt_pb_message(&m->meta, MODEL_METADATA, &entry);
}

void gt_onnx_free(struct gt_onnx *m)
{
	gt_pb_free(&m->nodes);
	gt_pb_free(&m->inputs);
	gt_pb_free(&m->outputs);
	gt_pb_free(&m->meta);
}
