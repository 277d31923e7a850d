/* Runs batches of inputs through the model. */
#include "use/predictor.h"
#include "fitted.h"
#include "session/session_data.h"
#include "store/convert.h"
#include "use/table_rows.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lists the most probable classes. */
static void find_top(const struct gt_predictor *p, const float *z, struct gt_prediction *out)
{
	for (int k = 0; k < p->top && k < p->classes && k < GT_TOP; k++) {
		int best = -1;
		for (int c = 0; c < p->classes; c++) {
			bool taken = false;
			for (int j = 0; j < k; j++)
				taken |= out->top[j].label == c;
			if (!taken && (best < 0 || z[c] > z[best]))
				best = c;
		}
		out->top[k].label = best;
		out->top[k].p = p->probability[best];
		out->top[k].name = p->class_name[best];
		out->n = k + 1;
	}
}

static bool is_finite(const struct gt_predictor *p, const float *z)
{
	for (int64_t c = 0; c < p->classes; c++)
		if (!isfinite(z[c]))
			return false;
	return true;
}

/* Fills in the predicted values or, for classes, the probabilities: the softmax of the outputs z, or the sigmoid of each output if the loss
 * has independent labels. If an output is not finite, all values are NAN, and no class is predicted. */
static void fill_prediction(const struct gt_predictor *p, const float *z, struct gt_prediction *out)
{
	const struct gt_fitted *learned = p->s->data.files->learned;
	double max = -INFINITY, sum = 0;
	bool finite = is_finite(p, z);
	out->row = learned && learned->table.ncolumns;
	if (p->s->data.nvalues) {
		for (int i = 0; i < p->s->data.nvalues && i < p->classes; i++)
			p->value[i] = finite ? (float)(z[i] * p->s->data.value_scale[i].std + p->s->data.value_scale[i].mean) : NAN;
		out->value = p->value;
		out->value_name = p->s->data.value_name;
		out->nvalues = p->s->data.nvalues;
		return;
	}
	out->several = gt_loss_row(p->s->loss.op->code)->output == GT_OUTPUT_LABELS;
	for (int64_t c = 0; c < p->classes; c++)
		max = z[c] > max ? z[c] : max;
	for (int64_t c = 0; c < p->classes; c++)
		sum += exp(z[c] - max);
	for (int64_t c = 0; c < p->classes; c++)
		p->probability[c] = !finite ? NAN : out->several ? 1 / (1 + exp(-(double)z[c])) : exp(z[c] - max) / sum;
	out->target = out->row && !out->several ? learned->table.column[gt_table_target_column(&learned->table, 0)].name : NULL;
	out->probability = p->probability;
	out->class_name = p->class_name;
	out->nclasses = p->classes;
	if (finite)
		find_top(p, z, out);
}

/* ---- batches -------------------------------------------------------------------------------------------------------------------- */

/* Returns the bytes of a sample in a field of the batch. */
static size_t row_bytes(const struct gt_field *f)
{
	return (size_t)(f->width ? f->width : 1) * gt_dtype_size(f->dtype);
}

/* Makes the batch: images, or the same fields as the training data. */
static enum gt_code make_batch(struct gt_predictor *p, struct gt_err *err)
{
	struct gt_dataset *b = &p->batch;
	const struct gt_dataset *like = &p->s->data.files->like;
	const int64_t *in = p->s->conf->model.input;
	size_t rows = (size_t)p->s->prog.predict_batch, bytes = rows * (size_t)(in[0] * in[1] * in[2]);
	*b = (struct gt_dataset){
	    .n = p->s->prog.predict_batch, .c = in[0], .h = in[1], .w = in[2], .classes = p->classes, .nfields = like->nfields};
	for (int i = 0; i < like->nfields; i++) {
		b->field[i] = like->field[i];
		b->field[i].ragged = false; /* sequences have the maximum length, as in the graph */
		if (!(b->field[i].data = calloc(rows, row_bytes(&b->field[i]))))
			return gt_fail_memory(err, rows * row_bytes(&b->field[i]));
	}
	if (bytes)
		b->memory = b->images = calloc(bytes, 1);
	b->labels = calloc(rows, sizeof *b->labels);
	return (!bytes || b->images) && b->labels ? GT_OK : gt_fail_memory(err, bytes);
}

enum gt_code gt_predictor_open(struct gt_predictor *p, struct gt_err *err)
{
	struct gt_session *s = p->s;
	const struct gt_graph *g = s->prog.predict->graph;
	const struct gt_tdesc *d = gt_graph_desc(g, g->output);
	if (d->rank != 2)
		return gt_fail(err, GT_ECONFIG, "predict: expected a model whose output is [batch, classes], got an output with %d dimensions",
		               d->rank);
	for (int i = 0; i < s->conf->model.ninputs && !s->data.files->learned; i++)
		if (s->conf->model.inputs[i].type != GT_INPUT_IMAGE)
			return gt_conf_refuse(s->conf, "model.inputs", err, "expected a model that reads only images, because the files have only "
			                      "images, got a model that reads \"%s\"", s->conf->model.inputs[i].name);
	p->classes = d->dim[1];
	p->logits = malloc((size_t)gt_tdesc_count(d) * sizeof *p->logits);
	p->raw = malloc(gt_tdesc_bytes(d));
	p->probability = malloc((size_t)p->classes * sizeof *p->probability);
	p->value = malloc((size_t)p->classes * sizeof *p->value);
	p->class_name = malloc((size_t)p->classes * sizeof *p->class_name);
	if (!p->logits || !p->raw || !p->probability || !p->value || !p->class_name)
		return gt_fail_memory(err, gt_tdesc_bytes(d));
	for (int64_t c = 0; c < p->classes; c++)
		p->class_name[c] = gt_session_class_name(s, c);
	GT_TRY(make_batch(p, err));
	GT_TRY(gt_resident_make(&s->device, &p->batch, false, &p->at, err));
	p->view = (struct gt_view){&p->batch, &p->at, NULL, p->batch.n};
	struct gt_loader_spec spec = {
	    .device = &s->device, .view = &p->view, .x = *gt_graph_desc(g, g->input[0]), .batch = p->batch.n, .micro = p->batch.n,
	    .ignore_index = -1};
	gt_session_loader_inputs(s, &spec);
	GT_TRY(gt_session_gather_attr(s->conf, (struct gt_transform_list){0}, &spec.attr, err));
	spec.attr.views = gt_session_tta_views(s->conf);
	return gt_loader_open(&spec, &p->loader, err);
}

void gt_predictor_close(struct gt_predictor *p)
{
	for (int i = 0; i < p->npending; i++) {
		free(p->pending[i].error);
		free(p->pending[i].text);
	}
	gt_table_rows_close(p->rows_of_files);
	gt_loader_close(p->loader);
	if (p->s)
		gt_resident_drop(&p->s->device, &p->at);
	gt_dataset_free(&p->batch);
	free(p->logits);
	free(p->raw);
	free(p->probability);
	free(p->value);
	free(p->class_name);
}

/* Copies the batch to a device with its own memory. */
static enum gt_code copy_batch_to_device(struct gt_predictor *p, struct gt_err *err)
{
	const struct gt_device *d = &p->s->device;
	const struct gt_dataset *b = &p->batch;
	if (p->at.images != b->images)
		GT_TRY(d->be->copy(d->dev, p->at.images, b->images, (size_t)(b->n * b->c * b->h * b->w), GT_COPY_H2D, 0, err));
	for (int i = 0; i < b->nfields; i++) /* column 0 of the batch is the target, field i is column 1 + i */
		if (p->at.column[1 + i] != b->field[i].data)
			GT_TRY(d->be->copy(d->dev, p->at.column[1 + i], b->field[i].data, (size_t)b->n * row_bytes(&b->field[i]), GT_COPY_H2D, 0, err));
	return GT_OK;
}

/* Computes the logits of the batch. Unused rows have old inputs or zeros, and their outputs are ignored. Sets *bad to the index of the
 * first call with an output that is not finite, or to -1; bad NULL: outputs are not checked. */
static enum gt_code run_batch(struct gt_predictor *p, int *bad, struct gt_err *err)
{
	struct gt_session *s = p->s;
	const struct gt_device *d = &s->device;
	struct gt_plan *plan = s->prog.predict;
	const struct gt_tdesc *desc = gt_graph_desc(plan->graph, plan->graph->output);
	struct gt_batch b;
	struct gt_step_args step_args = {0};
	GT_TRY(copy_batch_to_device(p, err));
	GT_TRY(gt_loader_start(p->loader, 0, 0, err));
	GT_TRY(gt_loader_next(p->loader, &b, err));
	gt_plan_bind_batch(plan, b.input, b.target);
	for (int i = 0; i < plan->ncalls; i++) {
		struct gt_launch a = {.in = plan->call[i].in, .out = plan->call[i].out, .scratch = plan->call[i].work, .step_args = &step_args};
		GT_TRY(d->be->launch(d->dev, plan->call[i].kernel, &a, err));
		if (!bad || *bad >= 0)
			continue;
		bool nonfinite;
		GT_TRY(d->be->sync(d->dev, 0, err));
		GT_TRY(gt_exec_diagnose_call(&s->exec, plan, i, &nonfinite, err));
		*bad = nonfinite ? i : -1;
	}
	GT_TRY(d->be->copy(d->dev, p->raw, gt_plan_value(plan, plan->graph->output), gt_tdesc_bytes(desc), GT_COPY_D2H, 0, err));
	GT_TRY(d->be->sync(d->dev, 0, err));
	gt_convert_f32(p->logits, p->raw, desc->dtype, gt_tdesc_count(desc));
	return GT_OK;
}

/* Counts the results with outputs that are not finite, and describes the first of these results. */
static enum gt_code find_nonfinite(struct gt_predictor *p, struct gt_err *err)
{
	for (int i = 0; i < p->npending; i++) {
		const struct gt_predict_pending *e = &p->pending[i];
		int call = -1;
		if (e->error || is_finite(p, p->logits + e->row * p->classes) || p->nonfinite++)
			continue;
		GT_TRY(run_batch(p, &call, err));
		const struct gt_call *c = call >= 0 ? &p->s->prog.predict->call[call] : NULL;
		snprintf(p->why, sizeof p->why, "%.1000s, sample %lld: the output of %s%s%s%s is not finite", e->file, (long long)e->index,
		         c ? c->layer : "the model", c ? " (" : "", c ? c->op : "", c ? ")" : "");
	}
	return GT_OK;
}

enum gt_code gt_predictor_flush(struct gt_predictor *p, struct gt_err *err)
{
	if (p->rows) {
		GT_TRY(run_batch(p, NULL, err));
		GT_TRY(find_nonfinite(p, err));
	}
	for (int i = 0; i < p->npending; i++) {
		struct gt_predict_pending *e = &p->pending[i];
		struct gt_prediction out = {.file = e->file, .error = e->error, .index = e->index, .scaled = e->scaled, .text = e->text};
		if (!e->error)
			fill_prediction(p, p->logits + e->row * p->classes, &out);
		if (!e->error && p->rows_of_files)
			GT_TRY(gt_table_rows_next(p->rows_of_files, &out, err));
		if (!p->ended)
			p->ended = !p->fn(p->user, &out);
		free(e->error);
		free(e->text);
		e->error = e->text = NULL;
	}
	p->npending = p->rows = 0;
	return GT_OK;
}

/* Adds an entry for the result of the next row of the batch; the caller has already written the sample to this row. Flushes if the batch or
 * the list of entries is full. */
static enum gt_code add_pending(struct gt_predictor *p, const char *file, int64_t index, bool scaled, const char *text, struct gt_err *err)
{
	char *own = text ? strdup(text) : NULL;
	if (text && !own)
		return gt_fail_memory(err, strlen(text));
	p->pending[p->npending++] = (struct gt_predict_pending){.file = file, .index = index, .scaled = scaled, .row = p->rows++, .text = own};
	return p->rows == p->batch.n || p->npending == GT_PREDICT_PENDING ? gt_predictor_flush(p, err) : GT_OK;
}

enum gt_code gt_predictor_add_image(struct gt_predictor *p, const char *file, int64_t index, bool scaled, const uint8_t *pixels,
                                    struct gt_err *err)
{
	size_t bytes = (size_t)(p->batch.c * p->batch.h * p->batch.w);
	memcpy(p->batch.images + (size_t)p->rows * bytes, pixels, bytes);
	return add_pending(p, file, index, scaled, NULL, err);
}

/* Copies row i of d to the next row of the batch. */
static void fill_row(struct gt_predictor *p, const struct gt_dataset *d, int64_t i)
{
	for (int k = 0; k < d->nfields; k++) {
		const struct gt_field *f = &d->field[k];
		size_t bytes = row_bytes(&p->batch.field[k]);
		char *to = (char *)p->batch.field[k].data + (size_t)p->rows * bytes;
		if (!f->start) {
			memcpy(to, (const char *)f->data + (size_t)i * bytes, bytes);
			continue;
		}
		int64_t n = f->start[i + 1] - f->start[i];
		memcpy(to, (const int32_t *)f->data + f->start[i], (size_t)n * sizeof(int32_t));
		for (int64_t e = n; e < f->width; e++)
			((int32_t *)(void *)to)[e] = f->pad;
	}
}

enum gt_code gt_predictor_add_row(struct gt_predictor *p, const char *file, int64_t index, const char *text, const struct gt_dataset *d,
                                  int64_t i, struct gt_err *err)
{
	fill_row(p, d, i);
	return add_pending(p, file, index, false, text, err);
}

enum gt_code gt_predictor_add_error(struct gt_predictor *p, const char *file, const char *why, struct gt_err *err)
{
	struct gt_predict_pending *e = &p->pending[p->npending];
	*e = (struct gt_predict_pending){.file = file, .error = strdup(why)};
	if (!e->error)
		return gt_fail_memory(err, strlen(why) + 1);
	p->npending++;
	return p->npending == GT_PREDICT_PENDING ? gt_predictor_flush(p, err) : GT_OK;
}
