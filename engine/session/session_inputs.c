/* The inputs of the model and what the data has for them. */
#include "session/session_data.h"
#include <stdio.h>
#include <string.h>

/* Writes the names of what a dataset has: "image, values". */
static void names_of(const struct gt_dataset *d, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "%s", d->c ? "image" : "");
	for (int i = 0; i < d->nfields && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", d->field[i].name);
}

/* Sets how many different codes or tokens the input has, as the data says it. Numbers that the config gives must be at least as large. */
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

/* Finds the field of the data that input i is, and completes its shape. */
static enum gt_code match(struct gt_session *s, const struct gt_dataset *d, int i, struct gt_err *err)
{
	struct gt_model_input *in = &s->data.input[i];
	char path[64], names[256];
	snprintf(path, sizeof path, "model.inputs[%d]", i);
	if (in->type == GT_INPUT_IMAGE && d->c)
		return GT_OK;
	int k = 0;
	while (k < d->nfields && strcmp(d->field[k].name, in->name))
		k++;
	names_of(d, names, sizeof names);
	if (in->type == GT_INPUT_IMAGE || k == d->nfields)
		return gt_conf_refuse(s->conf, path, err, "expected the name of a field that the data has (%s), got \"%s\"", names, in->name);
	const struct gt_field *f = &d->field[k];
	if ((f->dtype == GT_F32) != (in->type == GT_INPUT_VALUES))
		return gt_conf_refuse(s->conf, path, err, "expected type = \"%s\" for \"%s\", whose numbers are %s, got another type",
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

enum gt_code gt_session_match_inputs(struct gt_session *s, const struct gt_dataset *d, struct gt_err *err)
{
	const struct gt_model_spec *m = &s->conf->model;
	char path[64], names[256];
	if (d && !m->ninputs && !d->c) {
		names_of(d, names, sizeof names);
		return gt_conf_refuse(s->conf, "model.input", err, "expected model.inputs, because the data has no images but %s", names);
	}
	GT_NEW(s->data.input, s->arena, m->ninputs + 1, err);
	for (int i = 0; i < m->ninputs; i++) {
		s->data.input[i] = m->inputs[i];
		snprintf(path, sizeof path, "model.inputs[%d]", i);
		if (d)
			GT_TRY(match(s, d, i, err));
		else if (!m->inputs[i].shape[0] && m->inputs[i].type != GT_INPUT_LENGTHS)
			return gt_conf_refuse(s->conf, path, err, "expected a shape, because the data was not found");
	}
	return GT_OK;
}

void gt_session_loader_inputs(const struct gt_session *s, struct gt_loader_spec *spec)
{
	const struct gt_graph *g = s->space->layout.first;
	spec->ninputs = s->conf->model.ninputs;
	for (int i = 0; i < g->ninputs; i++) {
		const struct gt_tdesc *d = gt_graph_desc(g, g->input[i]);
		spec->input_column[i] = s->data.input_column[i];
		spec->input_type[i] = d->dtype;
		if (!spec->input_column[i])
			spec->x = *d;
	}
}
