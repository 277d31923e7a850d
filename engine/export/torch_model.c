#include "export/torch_model.h"
#include "base/json.h"
#include "base/memstream.h"
#include "base/public.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *type;
	gt_torch_fn *fn;
} rows[] = {
#define GT_X(type, name) {#type, gt_torch_##name},
    GT_TORCH_LAYERS(GT_X)
#undef GT_X
};

static gt_torch_fn *find_function(const char *type)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].type, type))
			return rows[i].fn;
	return NULL;
}

/* ---- lines ------------------------------------------------------------------------------------------------------------------------ */
static void print_register(const struct gt_torch_layer *l, const char *fmt, va_list args)
{
	fprintf(l->init, "        self.add(\"%s\", ", l->spec->name);
	vfprintf(l->init, fmt, args);
	fprintf(l->init, ")\n");
}

void gt_torch_register(const struct gt_torch_layer *l, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	print_register(l, fmt, args);
	va_end(args);
}

void gt_torch_module(const struct gt_torch_layer *l, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	print_register(l, fmt, args);
	va_end(args);
	gt_torch_line(l, "self[\"%s\"](%s)", l->spec->name, l->x[0]);
}

void gt_torch_line(const struct gt_torch_layer *l, const char *fmt, ...)
{
	va_list args;
	fprintf(l->forward, "        %s = ", l->y);
	va_start(args, fmt);
	vfprintf(l->forward, fmt, args);
	va_end(args);
	fputc('\n', l->forward);
}

const char *gt_torch_number(char buf[32], double v)
{
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, 32, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	return buf;
}

/* ---- layers ----------------------------------------------------------------------------------------------------------------------- */
const struct gt_node *gt_torch_node(const struct gt_torch_layer *l, enum gt_opcode code, const struct gt_node *after)
{
	for (int i = after ? (int)(after - l->g->nodes) + 1 : 0; i < l->g->nnodes; i++)
		if (l->g->nodes[i].layer == l->index && l->g->nodes[i].op->code == code)
			return &l->g->nodes[i];
	return NULL;
}

static const struct gt_node *find_last_node(const struct gt_graph *g, int layer)
{
	const struct gt_node *n = NULL;
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].layer == layer)
			n = &g->nodes[i];
	return n;
}

/* Writes the name of the Python variable for input i of the model: the input's own name if it is one of `plain`, none of which is a keyword
 * of Python, else "input<i>". */
static const char *input_variable(const struct gt_graph *g, int i, char buf[16])
{
	static const char *const plain[] = {"input", "image", "values", "codes", "tokens", "lengths"};
	const char *name = g->values[g->input[i]].name;
	snprintf(buf, 16, "input%d", i);
	for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
		if (!strcmp(plain[k], name))
			snprintf(buf, 16, "%s", name);
	return buf;
}

/* Sets input k of a layer to an input of the model, or to the output of an earlier layer. name NULL: the previous layer. */
static void set_input(struct gt_torch_layer *l, const struct gt_model_spec *m, const char *name, int k)
{
	int from = l->index - 1, input = name || !l->index ? 0 : l->g->ninputs;
	while (name && input < l->g->ninputs && strcmp(l->g->values[l->g->input[input]].name, name))
		input++;
	if (input < l->g->ninputs) {
		input_variable(l->g, input, l->x[k]);
		l->dx[k] = gt_graph_desc(l->g, l->g->input[input]);
		return;
	}
	while (name && strcmp(m->layers[from].name, name))
		from--;
	snprintf(l->x[k], sizeof l->x[k], "x%d", from);
	l->dx[k] = gt_graph_desc(l->g, gt_node_first_output(find_last_node(l->g, from)));
}

static void describe_layer(struct gt_torch_layer *l, const struct gt_model_spec *m)
{
	const struct gt_layer_spec *s = l->spec;
	bool composite = s->op->code == GT_OP_COUNT;
	const struct gt_node *last = find_last_node(l->g, l->index);
	l->node = composite ? NULL : gt_torch_node(l, s->op->code, NULL);
	if (!l->node) /* a composite layer, or an add or mul by channels, whose node has another operation than the layer type */
		l->node = last;
	l->attr = composite ? s->attr : l->node->attr;
	l->dy = gt_graph_desc(l->g, gt_node_first_output(last));
	l->nin = s->nin ? s->nin : 1;
	for (int k = 0; k < l->nin; k++)
		set_input(l, m, s->nin ? s->in[k] : NULL, k);
	snprintf(l->y, sizeof l->y, "x%d", l->index);
}

static enum gt_code write_layers(const struct gt_export_source *s, struct gt_torch_layer *l, struct gt_err *err)
{
	const struct gt_model_spec *m = &s->conf->model;
	for (l->index = 0; l->index < m->nlayers; l->index++) {
		l->spec = &m->layers[l->index];
		gt_torch_fn *fn = find_function(gt_op_name(l->spec->op));
		if (!fn)
			return gt_fail(err, GT_EFAIL, "%s: the layer \"%s\" (%s) has no equivalent in torch.nn", gt_ckpt_path(s->ckpt), l->spec->name,
			               gt_op_name(l->spec->op));
		describe_layer(l, m);
		fn(l);
		if (l->spec->tie)
			fprintf(l->init, "        self[\"%s\"].weight = self[\"%s\"].weight\n", l->spec->name, l->spec->tie);
	}
	fprintf(l->forward, "        return x%d\n", m->nlayers - 1);
	return GT_OK;
}

/* ---- the file --------------------------------------------------------------------------------------------------------------------- */
/* Writes the names of shared weights, and the names under which the file contains them once. */
static void write_tied(FILE *f, const struct gt_graph *g)
{
	const char *comma = "";
	fprintf(f, "TIED = {");
	for (int i = 0; i < g->nparams; i++)
		for (int k = 0; k < g->params[i].naliases; k++) {
			fprintf(f, "%s\"%s\": \"%s\"", comma, g->params[i].alias[k], g->params[i].name);
			comma = ", ";
		}
	fprintf(f, "}  # weights that the file stores under the name of another layer\n");
}

/* Writes the constants of model.py. Strings are written as JSON, because a JSON string is also a string literal of Python. */
static enum gt_code write_constants(FILE *f, const struct gt_export_source *s, struct gt_err *err)
{
	int64_t n = gt_export_classes(s), known = 0;
	struct gt_json j = {0};
	const char *text;
	gt_json_array(&j, NULL);
	for (int64_t i = 0; i < n; i++) {
		known += gt_export_class_name(s, i) != NULL;
		gt_json_string(&j, NULL, gt_export_class_name(s, i) ? gt_export_class_name(s, i) : "");
	}
	gt_json_end(&j);
	enum gt_code code = gt_json_finish(&j, &text, err);
	if (code == GT_OK)
		fprintf(f, "CLASSES = %s  # in the order of the outputs\n", known ? text : "None");
	gt_json_free(&j);
	write_tied(f, s->graph);
	return code;
}

static void write_docstring(FILE *f, const struct gt_export_source *s)
{
	const struct gt_graph *g = s->graph;
	char name[16], shape[96];
	fprintf(f, "\"\"\"A network that gtrain %s has trained. This file needs only torch.\n"
	        "\n"
	        "    from model import load\n"
	        "    model = load()\n"
	        "    output = model(", GT_VERSION);
	for (int i = 0; i < g->ninputs; i++)
		fprintf(f, "%s%s", i ? ", " : "", input_variable(g, i, name));
	fprintf(f, ")\n\nInputs (the first dimension is the batch, of any size):\n");
	for (int i = 0; i < g->ninputs; i++) {
		const struct gt_tdesc *d = gt_graph_desc(g, g->input[i]);
		gt_tdesc_text(d, shape, sizeof shape);
		const char *rest = strchr(shape, ',');
		fprintf(f, "    %s: %s [batch%s\n", input_variable(g, i, name), d->dtype == GT_I32 ? "int64" : "float32", rest ? rest : "]");
	}
	fprintf(f, "\"\"\"\n");
}

static enum gt_code write_file(FILE *f, const struct gt_export_source *s, const bool *helper, const char *init, const char *forward,
                               struct gt_err *err)
{
	char name[16];
	write_docstring(f, s);
	fprintf(f, "%s", gt_torch_head);
	GT_TRY(write_constants(f, s, err));
	for (int i = 0; i < GT_TORCH_HELPERS; i++)
		if (helper[i])
			fprintf(f, "%s", gt_torch_helper_text[i]);
	fprintf(f, "%s%s\n    def forward(self", gt_torch_class, init);
	for (int i = 0; i < s->graph->ninputs; i++)
		fprintf(f, ", %s", input_variable(s->graph, i, name));
	fprintf(f, "):\n%s%s", forward, gt_torch_load);
	return GT_OK;
}

static enum gt_code join_parts(const struct gt_export_source *s, const bool *helper, const char *init, const char *forward, char **out,
                               struct gt_err *err)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	enum gt_code code = write_file(f, s, helper, init, forward, err), closed = gt_memstream_close(f, &m, out, NULL, err);
	if (code != GT_OK) {
		free(*out);
		*out = NULL;
	}
	return code ? code : closed;
}

enum gt_code gt_torch_model(const struct gt_export_source *s, char **out, struct gt_err *err)
{
	struct gt_memstream m[2];
	bool helper[GT_TORCH_HELPERS] = {false};
	struct gt_torch_layer l = {.init = gt_memstream_open(&m[0]), .forward = gt_memstream_open(&m[1]), .helper = helper, .g = s->graph};
	char *init = NULL, *forward = NULL;
	enum gt_code code = l.init && l.forward ? write_layers(s, &l, err) : gt_fail_memory(err, 0), closed;
	if (l.init && (closed = gt_memstream_close(l.init, &m[0], &init, NULL, code ? NULL : err)) && !code)
		code = closed;
	if (l.forward && (closed = gt_memstream_close(l.forward, &m[1], &forward, NULL, code ? NULL : err)) && !code)
		code = closed;
	if (code == GT_OK)
		code = join_parts(s, helper, init, forward, out, err);
	free(init);
	free(forward);
	return code;
}
