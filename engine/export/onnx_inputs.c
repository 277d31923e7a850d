#include "export/onnx_inputs.h"
#include "fitted.h"
#include "session/session_data.h"

static const char *declare_input(struct gt_onnx *m, const struct gt_value *v)
{
	gt_onnx_input(m, v->name, v->desc.dtype == GT_I32 ? GT_ONNX_INT64 : GT_ONNX_FLOAT, &v->desc);
	return v->name;
}

/* ---- images ----------------------------------------------------------------------------------------------------------------------- */
/* Declares an input of u8 pixels, and adds x = pixel * scale + shift, as the kernel computes it that loads batches. */
static enum gt_code declare_pixels(struct gt_onnx *m, const struct gt_value *v, const char **name, struct gt_err *err)
{
	struct gt_attr_gather a;
	int64_t dim[3] = {v->desc.dim[1], 1, 1};
	int rank = v->desc.rank - 1;
	GT_TRY(gt_session_gather_attr(m->source->conf, (struct gt_transform_list){0}, &a, err));
	gt_onnx_input(m, v->name, GT_ONNX_UINT8, &v->desc);
	const char *x = GT_ONNX(m, "Mul", GT_IN(gt_onnx_cast(m, v->name, GT_ONNX_FLOAT), gt_onnx_floats(m, rank, dim, a.scale)));
	*name = GT_ONNX(m, "Add", GT_IN(x, gt_onnx_floats(m, rank, dim, a.shift)));
	return GT_OK;
}

/* ---- tables ----------------------------------------------------------------------------------------------------------------------- */
/* Statistics of the numeric columns (table_facts.h). In a row of the input, the flags of missing values follow the columns. */
struct statistics {
	float *mean, *std, *median; /* [n] */
	int64_t n;
	int64_t *flag; /* [nflags] indices of the columns that also have a flag for a missing value */
	int nflags;
};

static void add_statistics(struct statistics *s, double mean, double std, double median)
{
	s->mean[s->n] = (float)mean;
	s->std[s->n] = std > 0 ? (float)std : 1;
	s->median[s->n++] = (float)median;
}

static void add_column(struct statistics *s, const struct gt_table_fact *f)
{
	if (f->type != GT_COLUMN_CONTINUOUS && f->type != GT_COLUMN_DATE)
		return;
	if (f->na)
		s->flag[s->nflags++] = s->n;
	if (f->type == GT_COLUMN_CONTINUOUS)
		add_statistics(s, f->mean, f->std, f->median);
	for (int p = 0; f->type == GT_COLUMN_DATE && p < GT_DATE_PARTS; p++)
		add_statistics(s, f->part[p].mean, f->part[p].std, f->part[p].median);
}

static enum gt_code read_statistics(struct gt_onnx *m, const struct gt_table_facts *t, struct statistics *s, struct gt_err *err)
{
	GT_NEW(s->mean, m->arena, t->nvalues, err);
	GT_NEW(s->std, m->arena, t->nvalues, err);
	GT_NEW(s->median, m->arena, t->nvalues, err);
	GT_NEW(s->flag, m->arena, t->nvalues, err);
	for (int i = 0; i < t->ncolumns; i++)
		add_column(s, &t->column[i]);
	return GT_OK;
}

/* Declares an input of numeric columns x, in which NaN is a missing value. Adds ((x is NaN ? median : x) - mean) / std, and a flag, 1 for a
 * missing value and else 0, for each column that can have missing values. */
static enum gt_code declare_columns(struct gt_onnx *m, const struct gt_value *v, const char **name, struct gt_err *err)
{
	struct statistics s = {0};
	struct gt_tdesc d = v->desc;
	GT_TRY(read_statistics(m, &m->source->session->data.files->learned->table, &s, err));
	d.dim[1] = s.n;
	gt_onnx_input(m, v->name, GT_ONNX_FLOAT, &d);
	const char *missing = GT_ONNX(m, "IsNaN", GT_IN(v->name));
	const char *x = GT_ONNX(m, "Where", GT_IN(missing, gt_onnx_floats(m, 1, &s.n, s.median), v->name));
	x = GT_ONNX(m, "Sub", GT_IN(x, gt_onnx_floats(m, 1, &s.n, s.mean)));
	*name = GT_ONNX(m, "Div", GT_IN(x, gt_onnx_floats(m, 1, &s.n, s.std)));
	if (!s.nflags)
		return GT_OK;
	const char *flags = gt_onnx_cast(m, missing, GT_ONNX_FLOAT);
	flags = GT_ONNX(m, "Gather", GT_IN(flags, gt_onnx_ints(m, s.nflags, s.flag)), GT_ONNX_INT("axis", 1));
	*name = GT_ONNX(m, "Concat", GT_IN(*name, flags), GT_ONNX_INT("axis", 1));
	return GT_OK;
}

/* ---- all inputs ------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_onnx_inputs(struct gt_onnx *m, bool preprocess, const char **name, struct gt_err *err)
{
	const struct gt_export_source *s = m->source;
	const struct gt_fitted *learned = s->session->data.files->learned;
	for (int i = 0; i < s->graph->ninputs; i++) {
		const struct gt_value *v = &s->graph->values[s->graph->input[i]];
		int type = s->conf->model.ninputs ? s->conf->model.inputs[i].type : GT_INPUT_IMAGE;
		m->layer = v->name;
		if (preprocess && type == GT_INPUT_IMAGE)
			GT_TRY(declare_pixels(m, v, &name[i], err));
		else if (preprocess && type == GT_INPUT_VALUES && learned && learned->table.ncolumns)
			GT_TRY(declare_columns(m, v, &name[i], err));
		else
			name[i] = declare_input(m, v);
	}
	return GT_OK;
}
