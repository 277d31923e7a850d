#include "export/export_source.h"
#include "session/session_data.h"
#include "store/data_facts.h"
#include "train/run_ranks.h"
#include <stdio.h>
#include <string.h>

static enum gt_code open_config(struct gt_export_source *s, struct gt_err *err)
{
	char cfg[4400];
	snprintf(cfg, sizeof cfg, "%s/config.cfg", gt_ckpt_path(s->ckpt));
	const char *text = gt_ckpt_meta(s->ckpt)->config;
	GT_TRY(gt_conf_load_resolved(cfg, text, strlen(text), NULL, 0, &s->conf, err)); /* without @include */
	gt_ranks_use_one(s->conf);
	s->precision = s->conf->precision;
	s->conf->precision = GT_PREC_FP32;
	return GT_OK;
}

/* Loads the names of the classes and the transforms of images, which are the same as in a prediction. */
static enum gt_code load_facts(struct gt_export_source *s, struct gt_err *err)
{
	struct gt_data_facts facts;
	GT_TRY(gt_data_facts_read(s->ckpt, s->arena, &facts, err));
	facts.learned = s->session->data.facts.learned;
	s->session->data.facts = facts;
	return gt_session_set_eval_list(s->session, facts.files, err);
}

static enum gt_code build_graph(struct gt_export_source *s, struct gt_err *err)
{
	struct gt_model_spec model = s->conf->model;
	model.inputs = s->session->data.input;
	return gt_graph_build(s->arena, &model, GT_EXPORT_BATCH, GT_F32, false, &s->graph, err);
}

enum gt_code gt_export_source_open(struct gt_export_source *s, const char *ckpt, struct gt_err *err)
{
	GT_TRY(gt_ckpt_open(ckpt, NULL, true, NULL, NULL, &s->ckpt, err));
	GT_TRY(open_config(s, err));
	struct gt_session_spec spec = {
	    .conf = s->conf, .ckpt = s->ckpt, .predict = GT_EXPORT_BATCH, .dry = true, .paper = true, .device = "cpu"};
	GT_TRY(gt_session_open(&spec, &s->session, err));
	s->arena = s->session->arena;
	GT_TRY(load_facts(s, err));
	return build_graph(s, err);
}

void gt_export_source_close(struct gt_export_source *s)
{
	gt_session_close(s->session);
	gt_conf_free(s->conf);
	if (s->ckpt)
		gt_ckpt_close(s->ckpt);
	*s = (struct gt_export_source){0};
}

struct gt_tdesc gt_export_param_desc(const struct gt_export_source *s, int param)
{
	const struct gt_tdesc *d = &s->graph->params[param].desc;
	return gt_tdesc_make(d->dtype, d->rank, d->dim, false);
}

enum gt_code gt_export_param_read(const struct gt_export_source *s, int param, void *out, struct gt_err *err)
{
	const char *name = s->graph->params[param].name;
	struct gt_tdesc d = gt_export_param_desc(s, param);
	GT_TRY(gt_ckpt_read(s->ckpt, 0, name, &d, out, err));
	if (gt_first_nonfinite(out, d.dtype, gt_tdesc_count(&d)) < 0)
		return GT_OK;
	return gt_fail(err, GT_EDATA, "%s: %s is not finite; choose an older checkpoint", gt_ckpt_path(s->ckpt), name);
}

const char *gt_export_class_name(const struct gt_export_source *s, int64_t i)
{
	return gt_session_class_name(s->session, i);
}

int64_t gt_export_classes(const struct gt_export_source *s)
{
	const struct gt_tdesc *d = gt_graph_desc(s->graph, s->graph->output);
	return s->session->data.nvalues || d->rank != 2 ? 0 : d->dim[1];
}

void gt_export_notes(const struct gt_export_source *s, const struct gt_export_spec *spec)
{
	const struct gt_conf *c = s->conf;
	char text[256];
	if (!spec->note)
		return;
	if (s->precision == GT_PREC_BF16 || s->precision == GT_PREC_FP16) {
		snprintf(text, sizeof text, "the run has computed in %s; the exported weights are its f32 weights, and the model computes in f32",
		         gt_precision_names[s->precision]);
		spec->note(spec->user, text);
	}
	if (c->eval.tta != GT_TTA_NONE)
		spec->note(spec->user, "eval.tta is not part of the exported model: an evaluation of the run averages several views of each image, "
		                       "the model sees one");
}
