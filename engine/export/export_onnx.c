/* gt_export_onnx: writes the inputs, the graph, the output and the metadata of an ONNX model. */
#include "base/json.h"
#include "export/image_text.h"
#include "export/onnx_inputs.h"
#include "export/onnx_ops.h"
#include "export/token_text.h"
#include "gtrain_export.h"
#include "store/data_facts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- metadata --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code add_json(struct gt_onnx *m, const char *key, struct gt_json *j, struct gt_err *err)
{
	const char *text;
	enum gt_code code = gt_json_finish(j, &text, err);
	if (code == GT_OK)
		gt_onnx_metadata(m, key, text);
	gt_json_free(j);
	return code;
}

/* Adds the names of the classes in the order of the outputs, null for an unknown name; adds nothing if all names are unknown. */
static enum gt_code add_classes(struct gt_onnx *m, struct gt_err *err)
{
	const struct gt_export_source *s = m->source;
	int64_t n = gt_export_classes(s), known = 0;
	struct gt_json j = {0};
	gt_json_array(&j, NULL);
	for (int64_t i = 0; i < n; i++) {
		known += gt_export_class_name(s, i) != NULL;
		gt_json_string(&j, NULL, gt_export_class_name(s, i));
	}
	gt_json_end(&j);
	if (known)
		return add_json(m, "classes", &j, err);
	gt_json_free(&j);
	return GT_OK;
}

/* Adds the numeric targets that the model predicts: value = output * std + mean. */
static enum gt_code add_values(struct gt_onnx *m, struct gt_err *err)
{
	const struct gt_session_data *d = &m->source->session->data;
	struct gt_json j = {0};
	if (!d->nvalues)
		return GT_OK;
	gt_json_array(&j, NULL);
	for (int i = 0; i < d->nvalues; i++)
		gt_json_row(&j, NULL, GT_STR("name", d->value_name[i]), GT_NUM("mean", d->value_scale[i].mean, 9),
		            GT_NUM("std", d->value_scale[i].std, 9));
	gt_json_end(&j);
	return add_json(m, "outputs", &j, err);
}

/* Adds the normalisation of images: (pixel / 255 - mean) / std. */
static enum gt_code add_normalization(struct gt_onnx *m, bool inside, struct gt_err *err)
{
	const struct gt_conf_data *d = &m->source->conf->data;
	struct gt_json j = {0};
	if (!m->source->conf->model.input[0])
		return GT_OK;
	gt_json_object(&j, NULL);
	gt_json_numbers(&j, "mean", d->mean.n ? d->mean.v : (double[]){0}, d->mean.n ? d->mean.n : 1, 9);
	gt_json_numbers(&j, "std", d->std.n ? d->std.v : (double[]){1}, d->std.n ? d->std.n : 1, 9);
	gt_json_bool(&j, "inside", inside);
	gt_json_end(&j);
	return add_json(m, "normalization", &j, err);
}

/* Adds a text that malloc has allocated, and frees it. text: NULL adds nothing. */
static enum gt_code add_text(struct gt_onnx *m, const char *key, char *text, struct gt_err *err)
{
	const char *kept = text ? gt_arena_strdup(m->arena, text) : NULL;
	enum gt_code code = text && !kept ? gt_fail_memory(err, strlen(text)) : GT_OK;
	if (kept)
		gt_onnx_metadata(m, key, kept);
	free(text);
	return code;
}

/* Adds the preparation of images to the metadata, as JSON and as the Python module images.py. */
static enum gt_code add_preparation(struct gt_onnx *m, bool normalized, struct gt_err *err)
{
	struct gt_json j = {0};
	char *module;
	if (!gt_image_files(m->source))
		return GT_OK;
	gt_image_json(m->source, &j);
	GT_TRY(add_json(m, "preprocessing", &j, err));
	GT_TRY(gt_image_module(m->source, !normalized, &module, err));
	return add_text(m, "images.py", module, err);
}

/* Adds the words of categories, the vocabulary of texts and the names of columns, as in data.json (gtrain-checkpoint(5)). */
static enum gt_code add_facts(struct gt_onnx *m, struct gt_err *err)
{
	struct gt_data_facts facts = m->source->session->data.facts;
	const char *text;
	facts.samples = NULL;
	GT_TRY(gt_data_facts_print(&facts, m->arena, &text, err));
	if (text)
		gt_onnx_metadata(m, "data", text);
	return GT_OK;
}

/* Adds the tokenizer of texts and its vocabulary to the metadata, as the files tokens.py and vocab.txt. */
static enum gt_code add_tokens(struct gt_onnx *m, struct gt_err *err)
{
	char *module, *vocab;
	GT_TRY(gt_token_module(m->source, &module, &vocab, err));
	enum gt_code code = add_text(m, "tokens.py", module, err);
	if (code == GT_OK)
		return add_text(m, "vocab.txt", vocab, err);
	free(vocab);
	return code;
}

static enum gt_code add_metadata(struct gt_onnx *m, bool preprocess, struct gt_err *err)
{
	const struct gt_ckpt_meta *meta = gt_ckpt_meta(m->source->ckpt);
	char step[32];
	snprintf(step, sizeof step, "%lld", (long long)meta->step);
	gt_onnx_metadata(m, "run", meta->name);
	gt_onnx_metadata(m, "step", step);
	GT_TRY(add_classes(m, err));
	GT_TRY(add_values(m, err));
	GT_TRY(add_tokens(m, err));
	if (preprocess)
		GT_TRY(add_facts(m, err));
	GT_TRY(add_preparation(m, preprocess, err));
	return add_normalization(m, preprocess, err);
}

/* ---- the model -------------------------------------------------------------------------------------------------------------------- */
/* Returns the name of the output: "output", unless an input has this name. */
static const char *name_output(const struct gt_graph *g)
{
	for (int i = 0; i < g->ninputs; i++)
		if (!strcmp(g->values[g->input[i]].name, "output"))
			return "logits";
	return "output";
}

static enum gt_code build_model(struct gt_onnx *m, bool preprocess, struct gt_err *err)
{
	const struct gt_graph *g = m->source->graph;
	const char *input[GT_MAX_INPUTS], *y;
	GT_TRY(gt_onnx_inputs(m, preprocess, input, err));
	GT_TRY(gt_onnx_graph(m, input, &y, err));
	gt_onnx_output(m, y, name_output(g), gt_graph_desc(g, g->output));
	return add_metadata(m, preprocess, err);
}

static enum gt_code export_source(const struct gt_export_source *s, const struct gt_export_spec *spec, struct gt_err *err)
{
	struct gt_onnx m = {.arena = s->arena, .source = s, .layer = "input"};
	enum gt_code code = build_model(&m, spec->preprocess, err);
	if (code == GT_OK)
		code = gt_onnx_write(&m, spec->out, err);
	gt_onnx_free(&m);
	if (code != GT_OK)
		return code;
	gt_export_notes(s, spec);
	gt_image_note(s, spec);
	return GT_OK;
}

enum gt_code gt_export_onnx(const struct gt_export_spec *spec, struct gt_err *err)
{
	struct gt_export_source s = {0};
	enum gt_code code = gt_export_source_open(&s, spec->ckpt, err);
	if (code == GT_OK)
		code = export_source(&s, spec, err);
	gt_export_source_close(&s);
	return code;
}
