/* Reads samples as they are in the data: images in original size, texts, cells of tables. */
#include "base/arena.h"
#include "fitted.h"
#include "image/decode.h"
#include "report/show_parts.h"
#include "skipped.h"
#include "source.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 512 /* maximum side of an image in memory, in pixels; a larger image is reduced */

/* ---- images ---------------------------------------------------------------------------------------------------------------------- */
/* Decodes a whole file into out->image, and reduces an image that is larger than LARGEST. */
static enum gt_code decode_image(struct gt_show_job *j, const struct gt_bytes_buf *file, struct gt_image_scratch *scratch,
                                 struct gt_shown_sample *out, struct gt_err *err)
{
	struct gt_image_head head;
	struct gt_transform reduce = {.type = GT_TF_RESIZE, .interpolation = GT_INTERP_BILINEAR};
	uint8_t *pixels;
	GT_TRY(gt_decode_head(file->data, file->size, out->name, scratch, &head, err));
	int64_t side = head.h > head.w ? head.h : head.w, h = head.h, w = head.w;
	if (side > LARGEST) {
		h = h * LARGEST / side > 0 ? h * LARGEST / side : 1;
		w = w * LARGEST / side > 0 ? w * LARGEST / side : 1;
	}
	reduce.size[0] = h;
	reduce.size[1] = w;
	GT_NEW(pixels, j->a, h * w * head.c, err);
	out->image = (struct gt_shown_image){head.c, h, w, pixels, head.h, head.w};
	return gt_image_make(&(struct gt_image_job){.name = out->name, .raw = file->data, .size = file->size, .list = {&reduce, side > LARGEST},
	                                            .c = head.c, .h = h, .w = w, .scratch = scratch, .out = pixels}, err);
}

static enum gt_code read_image(struct gt_show_job *j, struct gt_shown_sample *out, struct gt_err *err)
{
	struct gt_image_scratch *scratch = NULL;
	struct gt_bytes_buf file = {0};
	struct gt_err why = {0};
	enum gt_code code = gt_source_read(j->data->source, out->index, &file, &why);
	if (code == GT_OK)
		code = gt_image_scratch_open(&scratch, &why);
	if (code == GT_OK)
		code = decode_image(j, &file, scratch, out, &why);
	gt_image_scratch_close(scratch);
	free(file.data);
	if (code == GT_EDATA && j->s->data.skipped) { /* the loader skips unreadable samples and has already reported this one */
		out->image = (struct gt_shown_image){0};
		return GT_OK;
	}
	if (code != GT_OK && err)
		*err = why;
	return code;
}

static enum gt_code copy_image(struct gt_show_job *j, struct gt_shown_sample *out, struct gt_err *err)
{
	const struct gt_dataset *d = j->data;
	int64_t h = d->h ? d->h : 1, w = d->w ? d->w : 1, bytes = d->c * h * w;
	uint8_t *pixels;
	GT_NEW(pixels, j->a, bytes, err);
	memcpy(pixels, d->images + out->index * bytes, (size_t)bytes);
	out->image = (struct gt_shown_image){d->c, h, w, pixels, h, w};
	return GT_OK;
}

/* ---- texts ----------------------------------------------------------------------------------------------------------------------- */
static enum gt_code read_text(struct gt_show_job *j, struct gt_shown_sample *out, struct gt_err *err)
{
	struct gt_bytes_buf file = {0};
	enum gt_code code = gt_source_read(j->data->text_files, out->index, &file, err);
	if (code == GT_OK && !(out->text = gt_arena_printf(j->a, "%.*s", (int)file.size, (const char *)file.data)))
		code = gt_fail_memory(err, file.size);
	free(file.data);
	return code;
}

/* ---- tables ---------------------------------------------------------------------------------------------------------------------- */
/* Reads the cell of a column as text, or as a number if the column is numeric. */
static enum gt_code read_cell(struct gt_show_job *j, const struct gt_data_table *t, int k, int64_t row, struct gt_shown_value *to,
                              struct gt_err *err)
{
	const struct gt_table_column *c = &t->column[k];
	size_t n = 0;
	*to = (struct gt_shown_value){.value = NAN};
	GT_NEW_STR(to->name, gt_arena_strdup(j->a, c->name), err);
	if (c->store == GT_STORE_NUMBERS) {
		to->value = c->number[row];
		to->missing = isnan(to->value);
		return GT_OK;
	}
	const char *text = gt_table_text(t, k, row, &n);
	to->missing = !n;
	GT_NEW_STR(to->text, gt_arena_printf(j->a, "%.*s", (int)n, text), err);
	return GT_OK;
}

/* Adds the cell of a column of texts to out->text. */
static enum gt_code add_text(struct gt_show_job *j, const struct gt_data_table *t, int k, struct gt_shown_sample *out, struct gt_err *err)
{
	size_t n = 0;
	const char *text = gt_table_text(t, k, out->index, &n);
	GT_NEW_STR(out->text, gt_arena_printf(j->a, "%s%s%.*s", out->text ? out->text : "", out->text ? "\n" : "", (int)n, text), err);
	return GT_OK;
}

/* Fills in the cells of a row, except the cells of targets. */
static enum gt_code read_cells(struct gt_show_job *j, struct gt_shown_sample *out, struct gt_err *err)
{
	const struct gt_data_table *t = j->raw.raw;
	const struct gt_table_facts *f = &j->s->data.files->learned->table;
	GT_NEW(out->value, j->a, t->ncolumns + 1, err);
	for (int k = 0; k < t->ncolumns; k++) {
		enum gt_column_type type = k < f->ncolumns ? f->column[k].type : GT_COLUMN_IGNORE;
		if (type == GT_COLUMN_TEXT && t->column[k].store != GT_STORE_NUMBERS)
			GT_TRY(add_text(j, t, k, out, err));
		else if (t->column[k].store != GT_STORE_SKIP && type != GT_COLUMN_TARGET)
			GT_TRY(read_cell(j, t, k, out->index, &out->value[out->nvalues++], err));
	}
	return GT_OK;
}

/* Copies those inputs of a sample that the data contains as arrays (no files, no table) without a transform. */
static enum gt_code copy_fields(struct gt_show_job *j, struct gt_shown_sample *out, struct gt_err *err)
{
	struct gt_batch b = {.n = 1};
	const struct gt_session_data *d = &j->s->data;
	for (int k = 0; k < j->s->conf->model.ninputs; k++) {
		const struct gt_field *f = d->input_column[k] ? &j->data->field[d->input_column[k] - 1] : NULL;
		int64_t width = f && f->width ? f->width : 1, at = f && f->start ? f->start[out->index] : out->index * width;
		b.input[k] = f ? (char *)f->data + (size_t)at * gt_dtype_size(f->dtype) : NULL;
		if (f && f->start)
			b.length = f->start[out->index + 1] - at;
	}
	return gt_show_inputs(j, &b, 0, out, err);
}

/* Reads the table once more, because the session has converted it to the inputs of the network. */
static enum gt_code read_table(struct gt_show_job *j, struct gt_err *err)
{
	struct gt_dataset_spec spec = gt_session_dataset_spec(j->s->conf);
	enum gt_split split = (enum gt_split)(j->data - j->s->data.set);
	if (j->s->conf->data.on_error == GT_ON_ERROR_SKIP)
		GT_TRY(gt_skipped_open(&j->raw_skipped, err));
	spec.skipped = j->raw_skipped;
	GT_TRY(gt_dataset_read(&spec, split, &j->raw, err));
	if (j->raw.n == j->data->n)
		return GT_OK;
	return gt_fail(err, GT_EDATA, "%.400s: expected %lld rows, as in the first reading of the table, got %lld", j->data->where,
	               (long long)j->data->n, (long long)j->raw.n);
}

/* ---- samples --------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_show_plain_open(struct gt_show_job *j, struct gt_err *err)
{
	return j->data->row_lines ? read_table(j, err) : GT_OK;
}

void gt_show_plain_close(struct gt_show_job *j)
{
	gt_dataset_free(&j->raw);
	gt_skipped_close(j->raw_skipped);
}

enum gt_code gt_show_plain(struct gt_show_job *j, struct gt_shown_sample *out, struct gt_err *err)
{
	const struct gt_dataset *d = j->data;
	GT_TRY(gt_show_targets(j, NULL, out->index, out, err));
	if (d->source)
		return read_image(j, out, err);
	if (d->c)
		GT_TRY(copy_image(j, out, err));
	if (d->text_files)
		return read_text(j, out, err);
	return j->raw.raw ? read_cells(j, out, err) : copy_fields(j, out, err);
}
