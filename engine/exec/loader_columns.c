#include "exec/loader_parts.h"
#include <stdlib.h>
#include <string.h>

int gt_columns_of(const struct gt_dataset *d, struct gt_column out[GT_MAX_COLUMNS])
{
	int n = 0;
	out[n++] = d->target.width ? (struct gt_column){.dtype = d->target.dtype, .width = d->target.width, .host = d->target.data}
	                           : (struct gt_column){.dtype = GT_I32, .host = d->labels};
	for (int i = 0; i < d->nfields; i++)
		out[n++] = (struct gt_column){d->field[i].dtype, d->field[i].width, d->field[i].data, d->field[i].start, d->field[i].pad};
	return n;
}

static int64_t count_views(const struct gt_loader *l)
{
	return l->spec.attr.views > 1 ? l->spec.attr.views : 1;
}

static struct gt_tdesc rows_desc(enum gt_dtype t, int64_t n, int64_t width)
{
	return gt_tdesc_make(t, width ? 2 : 1, (int64_t[]){n, width}, false);
}

/* Returns the index of the model's input that reads column c; -1: no input. */
static int input_of(const struct gt_loader_spec *s, int c)
{
	for (int i = 0; i < s->ninputs; i++)
		if (s->input_column[i] == c)
			return i;
	return -1;
}

enum gt_code gt_loader_open_columns(struct gt_loader *l, struct gt_err *err)
{
	const struct gt_loader_spec *s = &l->spec;
	struct gt_column of[GT_MAX_COLUMNS];
	l->ncolumns = gt_columns_of(s->view->data, of);
	for (int c = 0; c < l->ncolumns; c++) {
		struct gt_loader_column *col = &l->column[c];
		int input = c ? input_of(s, c) : -1;
		col->of = of[c];
		if (!c && s->mixing.classes && !of[c].width)
			col->of = (struct gt_column){.dtype = GT_F32, .width = s->mixing.classes};
		col->to = input >= 0 ? s->input_type[input] : col->of.dtype;
		col->operand = c && input < 0 ? -1 : !c && !col->of.width && s->view->data->c ? 0 : 1 + c;
		if (col->operand < 0)
			continue;
		if (of[c].start) {
			l->sequences = &col->of;
			if (s->fetch.sample || s->lengths.n < 1 || s->lengths.at[s->lengths.n - 1] < of[c].width)
				return gt_fail(err, GT_EINTERNAL, "loader: the sequences have up to %lld tokens, but the plan only has lengths up to %lld",
				               (long long)of[c].width, (long long)s->lengths.at[s->lengths.n > 0 ? s->lengths.n - 1 : 0]);
		}
		struct gt_tdesc d =
		    rows_desc(col->to, l->most * (c ? count_views(l) : 1), of[c].start ? s->lengths.at[s->lengths.n - 1] : col->of.width);
		if (!(col->out = calloc((size_t)l->nbuf, sizeof *col->out)))
			return gt_fail_memory(err, (size_t)l->nbuf * sizeof *col->out);
		for (int i = 0; i < l->nbuf; i++)
			GT_TRY(l->be->alloc(l->dev, gt_tdesc_bytes(&d), &col->out[i], err));
	}
	return GT_OK;
}

void gt_loader_close_columns(struct gt_loader *l)
{
	for (int i = 0; i < l->nsizes; i++)
		for (int k = 0; k <= l->ncolumns; k++)
			if (l->gather[i].kernel[k])
				l->be->release(l->dev, l->gather[i].kernel[k]);
	for (int c = 0; c < l->ncolumns; c++) {
		for (int i = 0; l->column[c].out && i < l->nbuf; i++)
			gt_loader_device_free(l, l->column[c].out[i]);
		free(l->column[c].out);
	}
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------------------ */
/* Prepares the kernel that gathers images, and labels if the target is a label. index: the operand `index`. all: number of samples in the
 * operands. */
static enum gt_code prepare_images(struct gt_loader *l, int64_t n, int64_t all, struct gt_tdesc *index, struct gt_kernel **out,
                                   struct gt_err *err)
{
	const struct gt_dataset *d = l->spec.view->data;
	const int64_t *shape = l->fetch ? l->spec.shape : (int64_t[]){d->c, d->h, d->w};
	struct gt_tdesc images = gt_tdesc_make(GT_U8, 4, (int64_t[]){all, shape[0], shape[1], shape[2]}, true);
	const struct gt_recipe_split *split = &l->spec.split;
	struct gt_attr_recipes recipes = {.gather = l->spec.attr, .ops = split->ops, .resize = split->resize, .contrasts = split->contrasts};
	struct gt_tdesc labels = rows_desc(GT_I32, all, 0), target = rows_desc(GT_I32, n, 0);
	/* The kernel always writes rank 4; for an input of rank 2, [N, C], this is [N, C, 1, 1], which has the same bytes. */
	struct gt_tdesc x = gt_tdesc_make(l->spec.x.dtype, 4, (int64_t[]){n * count_views(l), shape[0], shape[1], shape[2]}, true);
	if (l->spec.x.rank == 4) /* the operand x may have padded channels, which shape[] does not count */
		x.layout = l->spec.x.layout;
	bool with_labels = l->column[0].operand == 0;
	struct gt_opcall oc = {.code = GT_OP_GATHER, .name = "data", .attr = &l->spec.attr, .nin = 3, .nout = 2,
	                       .in = {&images, with_labels ? &labels : NULL, index}, .out = {&x, with_labels ? &target : NULL}};
	if (l->fetch && split->on) {
		images = gt_tdesc_make(GT_U8, 2, (int64_t[]){all, split->row}, false);
		oc.code = GT_OP_GATHER_RECIPES;
		oc.attr = &recipes;
	}
	return l->be->prepare(l->dev, &oc, out, err);
}

static enum gt_code prepare_column(struct gt_loader *l, int c, int64_t n, int64_t all, struct gt_tdesc *index,
                                   struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_loader_column *col = &l->column[c];
	struct gt_attr_views attr = {c ? (int)count_views(l) : 1};
	struct gt_tdesc rows = rows_desc(col->of.dtype, all, col->of.width), y = rows_desc(col->to, n * attr.views, col->of.width);
	struct gt_opcall oc = {.code = GT_OP_GATHER_ROWS, .name = "data", .attr = &attr, .nin = 2, .nout = 1,
	                       .in = {&rows, index}, .out = {&y}};
	return l->be->prepare(l->dev, &oc, out, err);
}

/* Prepares the kernel that gathers sequences and pads them to `length`. */
static enum gt_code prepare_sequences(struct gt_loader *l, int c, int64_t n, int64_t length, struct gt_tdesc *index, struct gt_kernel **out,
                                      struct gt_err *err)
{
	const struct gt_column *of = &l->column[c].of;
	struct gt_attr_ragged attr = {(int)count_views(l), of->pad};
	int64_t all = l->spec.view->data->n;
	struct gt_tdesc rows = rows_desc(GT_I32, of->start[all], 0), start = gt_tdesc_make(GT_I64, 1, (int64_t[]){all + 1}, false);
	struct gt_tdesc y = rows_desc(GT_I32, n * attr.views, length);
	struct gt_opcall oc = {.code = GT_OP_GATHER_RAGGED, .name = "data", .attr = &attr, .nin = 3, .nout = 1,
	                       .in = {&rows, &start, index}, .out = {&y}};
	return l->be->prepare(l->dev, &oc, out, err);
}

static enum gt_code prepare_size(struct gt_loader *l, int64_t n, int64_t length, struct gt_err *err)
{
	bool whole = l->fetch && !l->ring; /* the kernels read one fetched batch, whose rows are in order already */
	int64_t order[2] = {2, l->row}, all = whole ? l->most : l->ring ? l->ring->parts * l->most : l->spec.view->data->n;
	struct gt_tdesc index = whole ? gt_tdesc_make(GT_I64, 1, &n, false) : gt_tdesc_make(GT_I64, 2, order, false);
	for (int i = 0; i < l->nsizes; i++)
		if (l->gather[i].n == n && l->gather[i].length == length)
			return GT_OK;
	if (l->nsizes == GT_LOADER_SIZES)
		return gt_fail(err, GT_EINTERNAL, "loader: more than %d different batch sizes", GT_LOADER_SIZES);
	struct gt_loader_size *g = &l->gather[l->nsizes++];
	g->n = n;
	g->length = length;
	if (l->spec.view->data->c)
		GT_TRY(prepare_images(l, n, all, &index, &g->kernel[0], err));
	for (int c = 0; c < l->ncolumns; c++) {
		struct gt_kernel **k = &g->kernel[l->column[c].operand > 0 ? l->column[c].operand : 0];
		if (l->column[c].operand > 0)
			GT_TRY(l->column[c].of.start ? prepare_sequences(l, c, n, length, &index, k, err)
			                             : prepare_column(l, c, n, all, &index, k, err));
	}
	return GT_OK;
}

enum gt_code gt_loader_prepare_size(struct gt_loader *l, int64_t n, struct gt_err *err)
{
	const struct gt_lengths *to = &l->spec.lengths;
	if (n == 0)
		return GT_OK;
	if (!l->sequences)
		return prepare_size(l, n, 0, err);
	for (int i = 0; i < to->n; i++)
		GT_TRY(prepare_size(l, n, to->at[i], err));
	return GT_OK;
}

enum gt_code gt_loader_gather(struct gt_loader *l, int64_t n, int64_t length, const struct gt_step_args *step_args,
                              const struct gt_fetched *from, void *x, int buffer, int stream, struct gt_err *err)
{
	const struct gt_loader_size *g = NULL;
	const struct gt_loader_fetch *f = l->fetch;
	void *rows[GT_MAX_COLUMNS], *index = from ? f->iota : l->orders_dev;
	void *images = from ? (void *)(uintptr_t)from->rows : l->ring ? l->ring->images : l->spec.view->at->images;
	for (int i = 0; i < l->nsizes; i++)
		if (l->gather[i].n == n && l->gather[i].length == length)
			g = &l->gather[i];
	if (!g)
		return gt_fail(err, GT_EINTERNAL, "loader: no kernel was prepared for a batch of %lld samples", (long long)n);
	for (int c = 0; c < l->ncolumns; c++) {
		rows[c] = l->ring ? l->ring->column[c] : l->spec.view->at->column[c];
		if (from && f->column[c])
			rows[c] = f->column[c] + (size_t)from->first * gt_column_bytes(&l->column[c].of);
	}
	if (g->kernel[0]) {
		bool labels = l->column[0].operand == 0;
		void *in[3] = {images, labels ? rows[0] : NULL, index}, *out[2] = {x, labels ? l->column[0].out[buffer] : NULL};
		struct gt_launch a = {.in = in, .out = out, .step_args = step_args, .stream = stream};
		GT_TRY(l->be->launch(l->dev, g->kernel[0], &a, err));
	}
	for (int c = 0; c < l->ncolumns; c++) {
		if (l->column[c].operand <= 0)
			continue;
		void *in[3] = {rows[c], l->column[c].of.start ? l->spec.view->at->start[c] : index, index};
		struct gt_launch a = {.in = in, .out = &l->column[c].out[buffer], .step_args = step_args, .stream = stream};
		GT_TRY(l->be->launch(l->dev, g->kernel[l->column[c].operand], &a, err));
	}
	return GT_OK;
}

/* ---- the dataset on the device -------------------------------------------------------------------------------------------------- */
static enum gt_code copy_to_device(const struct gt_device *device, const void *host, size_t bytes, void **out, struct gt_err *err)
{
	if (device->be->host_memory || !host) {
		*out = (void *)(uintptr_t)host;
		return GT_OK;
	}
	GT_TRY(device->be->alloc(device->dev, bytes, out, err));
	return device->be->copy(device->dev, *out, host, bytes, GT_COPY_H2D, 0, err);
}

enum gt_code gt_resident_make(const struct gt_device *device, const struct gt_dataset *d, bool fetched, struct gt_resident *out,
                              struct gt_err *err)
{
	struct gt_column column[GT_MAX_COLUMNS];
	*out = (struct gt_resident){0};
	if (fetched)
		return GT_OK;
	GT_TRY(copy_to_device(device, d->images, (size_t)(d->n * d->c * d->h * d->w), &out->images, err));
	for (int n = gt_columns_of(d, column), c = 0; c < n; c++) {
		const int64_t *start = column[c].start;
		size_t bytes = start ? (size_t)start[d->n] * sizeof(int32_t) : (size_t)d->n * gt_column_bytes(&column[c]);
		GT_TRY(copy_to_device(device, column[c].host, bytes, &out->column[c], err));
		GT_TRY(copy_to_device(device, start, (size_t)(d->n + 1) * sizeof *start, &out->start[c], err));
	}
	return GT_OK;
}

void gt_resident_drop(const struct gt_device *device, struct gt_resident *r)
{
	for (int c = -1; c < GT_MAX_COLUMNS && !device->be->host_memory; c++) {
		void *p = c < 0 ? r->images : r->column[c];
		if (p)
			device->be->free(device->dev, p);
		if (c >= 0 && r->start[c])
			device->be->free(device->dev, r->start[c]);
	}
	*r = (struct gt_resident){0};
}
