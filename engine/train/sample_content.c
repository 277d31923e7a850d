#include "train/sample_content.h"
#include "csv.h"
#include "fitted.h"
#include "session/session_data.h"
#include "table/table.h"
#include "source.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL_BYTES 240 /* maximum bytes of a copied cell */
#define MOST_CELLS 60  /* maximum cells of a row */

struct reading {
	const struct gt_session *s;
	enum gt_split split;
	const struct gt_dataset *d;
	const int64_t *order;      /* gt_mistakes.order */
	struct gt_arena *arena;
	struct gt_csv *csv;        /* the current table */
	const char *file;          /* its path */
	struct gt_csv_record rec;
	const char *const *column; /* names of the columns of the current table */
};

/* Copies at most `most` bytes from the beginning of a text, as valid UTF-8. */
static const char *copy_text(struct gt_arena *a, const char *text, size_t n, size_t most)
{
	char *out = gt_arena_alloc(a, (n < most ? n : most) + 4, 1);
	size_t to = 0;
	for (size_t i = 0; out && i < n && to + 4 < most;) {
		int len = gt_utf8_length((const unsigned char *)text + i, n - i);
		memcpy(out + to, len > 0 && text[i] ? text + i : "?", (size_t)(len > 0 ? len : 1));
		to += (size_t)(len > 0 ? len : 1);
		i += (size_t)(len > 0 ? len : 1);
	}
	return out;
}

/* Sets x->why to the error, so that an unreadable sample does not end the evaluation. */
static enum gt_code give_reason(const struct reading *r, struct gt_mistake *x, const struct gt_err *reason, struct gt_err *err)
{
	GT_NEW_STR(x->why, gt_arena_strdup(r->arena, reason->msg), err);
	return GT_OK;
}

static enum gt_code read_text(const struct reading *r, int64_t i, struct gt_mistake *x, struct gt_err *err)
{
	struct gt_bytes_buf buf = {0};
	struct gt_err reason;
	enum gt_code code = gt_source_read_head(r->d->text_files, i, GT_MISTAKE_TEXT + 4, &buf, &reason);
	if (code)
		code = give_reason(r, x, &reason, err);
	else if (!(x->text = copy_text(r->arena, (const char *)buf.data, buf.size, GT_MISTAKE_TEXT)))
		code = gt_fail_memory(err, GT_MISTAKE_TEXT);
	else
		x->cut = buf.size > GT_MISTAKE_TEXT;
	free(buf.data);
	return code;
}

/* ---- rows of a table --------------------------------------------------------------------------------------------------------------- */
/* Copies the names of the columns from the header or, if the file has no header, from the training data. */
static enum gt_code name_columns(struct reading *r, struct gt_err *err)
{
	const struct gt_table_facts *f = &r->s->data.files->learned->table;
	bool header = f->header || r->rec.names;
	const char **name;
	GT_NEW(name, r->arena, r->rec.n + 1, err);
	for (int i = 0; i < r->rec.n; i++) {
		const char *text = header ? r->rec.field[i] : i < f->ncolumns ? f->column[i].name : "";
		GT_NEW_STR(name[i], copy_text(r->arena, text, strlen(text), CELL_BYTES), err);
	}
	r->column = name;
	return GT_OK;
}

static enum gt_code open_table(struct reading *r, const char *path, struct gt_err *err)
{
	char delimiter = *r->s->conf->data.delimiter;
	gt_csv_close(r->csv);
	r->csv = NULL;
	r->file = path;
	if (!delimiter)
		GT_TRY(gt_csv_delimiter(path, &delimiter, err));
	GT_TRY(gt_csv_open(path, delimiter, (enum gt_encoding)r->s->conf->data.encoding, 0, &r->csv, err));
	GT_TRY(gt_csv_next(r->csv, &r->rec, err));
	return name_columns(r, err);
}

/* Reads a file up to the record at a line. The rows are requested in ascending order, so that each file is usually read once. */
static enum gt_code find_record(struct reading *r, const char *path, int64_t line, struct gt_err *err)
{
	if (!r->csv || strcmp(r->file, path) != 0 || r->rec.line > line)
		GT_TRY(open_table(r, path, err));
	while (r->rec.n && r->rec.line < line)
		GT_TRY(gt_csv_next(r->csv, &r->rec, err));
	if (r->rec.n && r->rec.line == line)
		return GT_OK;
	gt_csv_close(r->csv);
	r->csv = NULL;
	return gt_fail(err, GT_EDATA, "%s: the file changed while it was read", path);
}

static enum gt_code copy_row(struct reading *r, struct gt_mistake *x, struct gt_err *err)
{
	const char **cell;
	x->ncolumns = r->rec.n < MOST_CELLS ? r->rec.n : MOST_CELLS;
	GT_NEW(cell, r->arena, x->ncolumns + 1, err);
	for (int i = 0; i < x->ncolumns; i++)
		GT_NEW_STR(cell[i], copy_text(r->arena, r->rec.field[i], r->rec.len[i], x->ncolumns > 4 ? CELL_BYTES : GT_MISTAKE_TEXT), err);
	x->column = r->column;
	x->cell = cell;
	return GT_OK;
}

static enum gt_code read_row(struct reading *r, int64_t i, struct gt_mistake *x, struct gt_err *err)
{
	int64_t line;
	struct gt_err reason;
	const char *path = gt_table_where(r->d->row_lines, i, &line);
	if (find_record(r, path, line, &reason))
		return give_reason(r, x, &reason, err);
	return copy_row(r, x, err);
}

/* ---- images and all kinds ---------------------------------------------------------------------------------------------------------- */
struct picture {
	struct gt_arena *arena;
	size_t bytes;
	uint8_t *pixels;
};

static void copy_pixels(void *user, const uint8_t *pixels)
{
	struct picture *p = user;
	p->pixels = gt_arena_alloc(p->arena, p->bytes, 1);
	if (p->pixels)
		memcpy(p->pixels, pixels, p->bytes);
}

/* Copies the pixels of a mistake's image. x->at is its index in the split, because only sequences are evaluated in another order. */
static enum gt_code read_image(const struct reading *r, struct gt_mistake *x, struct gt_err *err)
{
	const int64_t *in = r->s->conf->model.input;
	struct picture p = {r->arena, (size_t)(in[0] * in[1] * in[2]), NULL};
	struct gt_err reason;
	if (in[0] != 1 && in[0] != 3)
		return GT_OK;
	if (gt_session_each_sample(r->s, r->split, x->at, 1, copy_pixels, &p, &reason))
		return give_reason(r, x, &reason, err);
	x->pixels = p.pixels;
	x->channels = in[0];
	x->height = in[1];
	x->width = in[2];
	return GT_OK;
}

static enum gt_code add_content(struct reading *r, struct gt_mistake *x, struct gt_err *err)
{
	int64_t i = r->order[x->at];
	char name[4200];
	GT_NEW_STR(x->sample, gt_arena_strdup(r->arena, gt_dataset_sample_name(r->d, i, name, sizeof name)), err);
	if (r->d->text_files)
		return read_text(r, i, x, err);
	if (r->d->row_lines)
		return read_row(r, i, x, err);
	return r->d->c > 0 ? read_image(r, x, err) : GT_OK;
}

/* Returns a value in the unit of the targets. A rounding error around 0 becomes 0. */
static double scale_number(double v, struct gt_value_scale by)
{
	double scaled = v * by.std + by.mean;
	return fabs(scaled) < 1e-6 * by.std ? 0 : scaled;
}

/* Copies the predictions and targets of a mistake, in the unit of the targets. */
static enum gt_code scale_numbers(const struct reading *r, struct gt_mistake *x, struct gt_err *err)
{
	const double *value = x->value, *wanted = x->wanted;
	GT_NEW(x->value, r->arena, x->nvalues + 1, err);
	GT_NEW(x->wanted, r->arena, x->nvalues + 1, err);
	for (int i = 0; i < x->nvalues; i++) {
		struct gt_value_scale by = r->s->data.value_scale[i];
		x->value[i] = scale_number(value[i], by);
		x->wanted[i] = scale_number(wanted[i], by);
	}
	return GT_OK;
}

static int compare_positions(const void *a, const void *b)
{
	const struct gt_mistake *const *x = a, *const *y = b;
	return ((*x)->at > (*y)->at) - ((*x)->at < (*y)->at);
}

enum gt_code gt_sample_contents(const struct gt_session *s, enum gt_split split, const struct gt_mistakes *m, struct gt_arena *a,
                                struct gt_mistake **out, struct gt_err *err)
{
	struct reading r = {.s = s, .split = split, .d = s->data.view[split].data, .order = m->order, .arena = a};
	struct gt_mistake *list, **order;
	enum gt_code code = GT_OK;
	GT_NEW(list, a, m->n + 1, err);
	GT_NEW(order, a, m->n + 1, err);
	for (int i = 0; i < m->n; i++) {
		list[i] = m->worst[i];
		order[i] = &list[i];
	}
	qsort(order, (size_t)m->n, sizeof *order, compare_positions);
	for (int i = 0; i < m->n && !code; i++)
		code = add_content(&r, order[i], err);
	for (int i = 0; i < m->n && !code; i++)
		code = scale_numbers(&r, order[i], err);
	gt_csv_close(r.csv);
	*out = list;
	return code;
}
