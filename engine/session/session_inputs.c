/* Matches the inputs of the model with the data fields that they read. */
#include "session/session_data.h"
#include "session/session_plan.h"
#include <stdio.h>
#include <string.h>

/* Writes the names of the dataset's fields: "image, values". */
static void list_fields(const struct gt_dataset *d, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "%s", d->c ? "image" : "");
	for (int i = 0; i < d->nfields && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", d->field[i].name);
}

/* Sets the number of different codes or tokens of an input to the number in the data, unless the config has a larger number; a smaller one
 * is an error. */
static enum gt_code set_codes(struct gt_session *s, const char *path, const struct gt_field *f, struct gt_model_input *in,
                              struct gt_err *err)
{
	int64_t n = in->type == GT_INPUT_CODES && f->width ? f->width : 1, *codes, most = 0;
	if (!f->ncodes || (in->type != GT_INPUT_CODES && in->type != GT_INPUT_TOKENS))
		return GT_OK;
	GT_NEW(codes, s->arena, n, err);
	for (int64_t k = 0; k < f->ncodes; k++)
		most = f->codes[k] > most ? f->codes[k] : most;
	if (in->vocabulary && in->vocabulary < most)
		return gt_conf_refuse(s->conf, path, err, "expected a vocabulary of at least %lld, the number of different integers of \"%s\" "
		                      "in the data, got %lld", (long long)most, in->name, (long long)in->vocabulary);
	for (int64_t k = 0; k < n; k++)
		codes[k] = in->vocabulary ? in->vocabulary : f->ncodes == n ? f->codes[k] : most;
	in->codes = codes;
	return GT_OK;
}

/* Finds the data field that input i reads, and completes the shape of the input. */
static enum gt_code match_input(struct gt_session *s, const struct gt_dataset *d, int i, struct gt_err *err)
{
	struct gt_model_input *in = &s->data.input[i];
	char path[64], names[256];
	snprintf(path, sizeof path, "model.inputs[%d]", i);
	if (in->type == GT_INPUT_IMAGE && d->c)
		return GT_OK;
	int k = 0;
	while (k < d->nfields && strcmp(d->field[k].name, in->name))
		k++;
	list_fields(d, names, sizeof names);
	if (in->type == GT_INPUT_IMAGE || k == d->nfields)
		return gt_conf_refuse(s->conf, path, err, "expected the name of a field that the data has (%s), got \"%s\"", names, in->name);
	const struct gt_field *f = &d->field[k];
	if (f->ragged != (in->type == GT_INPUT_TOKENS) && d->field[k].dtype == GT_I32)
		return gt_conf_refuse(s->conf, path, err, "expected type = \"%s\" for \"%s\", which %s, got another type",
		                      f->ragged ? "tokens" : f->width ? "codes" : "lengths", in->name,
		                      f->ragged ? "has sequences of tokens" : "has no sequences");
	if ((f->dtype == GT_F32) != (in->type == GT_INPUT_VALUES))
		return gt_conf_refuse(s->conf, path, err, "expected type = \"%s\" for \"%s\", whose values are %s, got another type",
		                      f->dtype == GT_F32 ? "values" : "codes", in->name, f->dtype == GT_F32 ? "real" : "integers");
	if (in->shape[0] && in->shape[0] != f->width)
		return gt_conf_refuse(s->conf, path, err, "expected shape = [%lld], as in the data, got [%lld]", (long long)f->width,
		                      (long long)in->shape[0]);
	in->shape[0] = f->width;
	in->shape[1] = in->shape[2] = 1;
	GT_TRY(set_codes(s, path, f, in, err));
	s->data.input_column[i] = 1 + k;
	return GT_OK;
}

/* Adds the number of sequences of each length in a view to count[0 ... longest]. */
static void count_lengths(const struct gt_view *v, const struct gt_field *f, int64_t *count)
{
	for (int64_t i = 0; i < v->n; i++) {
		int64_t at = v->index ? v->index[i] : i;
		count[f->start[at + 1] - f->start[at]]++;
	}
}

/* Sets the lengths to which sequences are padded: the lengths in the config, or lengths computed from the first split that was read. The
 * last length is the longest that the model reads. d: the data; NULL: not found. */
static enum gt_code set_lengths(struct gt_session *s, const struct gt_dataset *d, struct gt_err *err)
{
	const struct gt_floats *given = &s->conf->data.lengths;
	struct gt_lengths *l = &s->data.lengths;
	int64_t longest = s->data.input[s->data.sequences].shape[0], *count;
	const struct gt_field *f = d ? &d->field[s->data.input_column[s->data.sequences] - 1] : NULL;
	int first = 0;
	for (l->n = 0; l->n < given->n; l->n++)
		l->at[l->n] = (int64_t)given->v[l->n];
	if (l->n && l->at[l->n - 1] != longest)
		return gt_conf_refuse(s->conf, "data.lengths", err, "expected the last length to be %lld, the longest sequence that the model "
		                      "reads, got %lld", (long long)longest, (long long)l->at[l->n - 1]);
	if (l->n)
		return GT_OK;
	if (!f || !f->start) {
		*l = (struct gt_lengths){1, {longest}};
		return GT_OK;
	}
	while (s->data.view[first].data != d)
		first++;
	GT_NEW(count, s->arena, longest + 1, err);
	count_lengths(&s->data.view[first], f, count);
	return gt_lengths_choose(count, longest, GT_AUTO_LENGTHS, l, err);
}

/* Fails for an input without a shape: without the data, only the config can set the shape. */
static enum gt_code refuse_no_shape(const struct gt_session *s, const char *path, struct gt_err *err)
{
	gt_conf_refuse(s->conf, path, err, "expected a shape, because the data was not found%s%s", s->data.note ? ": " : "",
	               s->data.note ? s->data.note : "");
	if (err && s->data.note)
		err->code = GT_ENOINPUT;
	return s->data.note ? GT_ENOINPUT : GT_ECONFIG;
}

enum gt_code gt_session_match_inputs(struct gt_session *s, const struct gt_dataset *d, struct gt_err *err)
{
	const struct gt_model_spec *m = &s->conf->model;
	char path[64], names[256];
	if (d && !m->ninputs && !d->c) {
		list_fields(d, names, sizeof names);
		return gt_conf_refuse(s->conf, "model.input", err, "expected model.inputs, because the data has no images; it has %s", names);
	}
	GT_NEW(s->data.input, s->arena, m->ninputs + 1, err);
	for (int i = 0; i < m->ninputs; i++) {
		s->data.input[i] = m->inputs[i];
		snprintf(path, sizeof path, "model.inputs[%d]", i);
		if (d)
			GT_TRY(match_input(s, d, i, err));
		else if (!m->inputs[i].shape[0] && m->inputs[i].type != GT_INPUT_LENGTHS)
			return refuse_no_shape(s, path, err);
		if (s->data.input[i].type == GT_INPUT_TOKENS) {
			s->data.sequences = i;
			GT_TRY(set_lengths(s, d, err));
		}
	}
	return GT_OK;
}

/* Tells the loader the shapes of the model's inputs, in a session without plans: images and values are f32. */
static void describe_inputs(const struct gt_session *s, struct gt_loader_spec *spec)
{
	const int64_t *in = s->conf->model.input;
	spec->x = gt_tdesc_make(GT_F32, 4, (int64_t[]){spec->micro, in[0], in[1], in[2]}, true);
	for (int i = 0; i < spec->ninputs; i++) {
		spec->input_column[i] = s->data.input_column[i];
		spec->input_type[i] = s->data.input[i].type == GT_INPUT_VALUES ? GT_F32 : GT_I32;
	}
}

void gt_session_loader_inputs(const struct gt_session *s, struct gt_loader_spec *spec)
{
	const struct gt_graph *g = gt_session_graph_of_samples(s);
	spec->ninputs = s->conf->model.ninputs;
	spec->lengths = s->data.lengths;
	if (!g) {
		describe_inputs(s, spec);
		return;
	}
	for (int i = 0; i < g->ninputs; i++) {
		const struct gt_tdesc *d = gt_graph_desc(g, g->input[i]);
		spec->input_column[i] = s->data.input_column[i];
		spec->input_type[i] = d->dtype;
		if (!spec->input_column[i])
			spec->x = *d;
	}
}
