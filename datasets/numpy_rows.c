#include "numpy_rows.h"
#include "base/arena.h"
#include "format.h"
#include "numpy_file.h"
#include "text/text_utf8.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct column {
	const struct gt_numpy_array *array;
	uint64_t at; /* index of the column in the second dimension of its array; 0 for a one-dimensional array */
};

struct gt_numpy_rows {
	struct gt_numpy file;
	struct column *column;  /* [n] */
	int n;
	uint64_t rows, row;     /* number of rows, and index of the next row */
	bool named;             /* the record with the column names was returned, or the columns have no names */
	char *buf;              /* the fields of the current record, each ended by a NUL */
	int64_t used, cap;
	size_t *offset;         /* [n] offset of each field in buf */
	char **text;            /* [n] */
	uint32_t *len;          /* [n] */
};

/* ---- numbers -------------------------------------------------------------------------------------------------------------------- */
static bool gives_back(const char *text, double v, bool single)
{
	return single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v;
}

int gt_numpy_number_text(double v, bool single, char *buf)
{
	char e[40], digits[24];
	int precision = single ? 6 : 15, n = 0;
	do
		snprintf(e, sizeof e, "%.*e", precision - 1, fabs(v));
	while (!gives_back(e, fabs(v), single) && ++precision <= 17);
	int exponent = atoi(strchr(e, 'e') + 1);
	for (const char *p = e; *p != 'e'; p++)
		if (*p != '.')
			digits[n++] = *p;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	const char *sign = signbit(v) ? "-" : "";
	if (exponent < -4 || exponent >= 16)
		return sprintf(buf, "%s%c%s%.*se%c%02d", sign, digits[0], n > 1 ? "." : "", n - 1, digits + 1, exponent < 0 ? '-' : '+',
		               abs(exponent));
	if (exponent < 0)
		return sprintf(buf, "%s0.%.*s%.*s", sign, -exponent - 1, "000", n, digits);
	if (n <= exponent + 1)
		return sprintf(buf, "%s%.*s%.*s.0", sign, n, digits, exponent + 1 - n, "0000000000000000");
	return sprintf(buf, "%s%.*s.%.*s", sign, exponent + 1, digits, n - exponent - 1, digits + exponent + 1);
}

/* ---- fields --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code append_text(struct gt_numpy_rows *r, const char *text, size_t n, struct gt_err *err)
{
	GT_GROW(r->buf, r->cap, r->used + (int64_t)n + 1, err);
	memcpy(r->buf + r->used, text, n);
	r->used += (int64_t)n;
	return GT_OK;
}

/* Appends a text of UTF-32 characters. */
static enum gt_code append_wide(struct gt_numpy_rows *r, const uint8_t *from, size_t n, struct gt_err *err)
{
	for (size_t i = 0; i < n; i++) {
		char c[4];
		int32_t u;
		memcpy(&u, from + 4 * i, 4);
		if (!u)
			break;
		bool valid = u > 0 && u < 0x110000 && (u < 0xd800 || u >= 0xe000);
		GT_TRY(append_text(r, c, valid && u < 0x80 ? (*c = (char)u, 1) : gt_utf8_put(valid ? u : 0xfffd, c), err));
	}
	return GT_OK;
}

static enum gt_code append_element(struct gt_numpy_rows *r, const struct gt_numpy_array *a, uint64_t i, struct gt_err *err)
{
	char buf[40];
	const uint8_t *at = a->data + i * (uint64_t)a->item;
	int n = 0;
	if (a->kind == 'U')
		return append_wide(r, at, (size_t)a->item / 4, err);
	if (a->kind == 'S')
		return append_text(r, (const char *)at, strnlen((const char *)at, (size_t)a->item), err);
	if (a->kind == 'b')
		n = snprintf(buf, sizeof buf, "%s", *at ? "True" : "False");
	else if (a->kind == 'i')
		n = snprintf(buf, sizeof buf, "%lld", (long long)gt_numpy_integer(a, i));
	else if (a->kind == 'u')
		n = snprintf(buf, sizeof buf, "%llu", (unsigned long long)gt_numpy_integer(a, i));
	else if (isinf(gt_numpy_real(a, i)))
		n = snprintf(buf, sizeof buf, "%sinf", gt_numpy_real(a, i) < 0 ? "-" : "");
	else if (!isnan(gt_numpy_real(a, i)))
		n = gt_numpy_number_text(gt_numpy_real(a, i), a->item == 4, buf);
	return append_text(r, buf, (size_t)n, err);
}

/* Appends the name of column k: the name of its array, with a number if the array has several columns. */
static enum gt_code append_name(struct gt_numpy_rows *r, int k, struct gt_err *err)
{
	const struct column *c = &r->column[k];
	char number[24];
	GT_TRY(append_text(r, c->array->name, strlen(c->array->name), err));
	int n = c->array->rank == 2 && c->array->dim[1] > 1 ? snprintf(number, sizeof number, "%llu", (unsigned long long)c->at) : 0;
	return append_text(r, number, (size_t)n, err);
}

enum gt_code gt_numpy_rows_next(struct gt_numpy_rows *r, struct gt_csv_record *out, struct gt_err *err)
{
	bool names = !r->named;
	*out = (struct gt_csv_record){0};
	if (!names && r->row == r->rows)
		return GT_OK;
	r->used = 0;
	for (int k = 0; k < r->n; k++) {
		const struct column *c = &r->column[k];
		uint64_t width = c->array->rank == 2 ? c->array->dim[1] : 1;
		r->offset[k] = (size_t)r->used;
		GT_TRY(names ? append_name(r, k, err) : append_element(r, c->array, r->row * width + c->at, err));
		r->len[k] = (uint32_t)((size_t)r->used - r->offset[k]);
		r->buf[r->used++] = 0; /* append_text has reserved a byte for the NUL */
	}
	for (int k = 0; k < r->n; k++)
		r->text[k] = r->buf + r->offset[k];
	r->named = true;
	r->row += !names;
	*out = (struct gt_csv_record){.n = r->n, .field = r->text, .len = r->len, .line = (int64_t)r->row, .names = names};
	return GT_OK;
}

/* ---- files ---------------------------------------------------------------------------------------------------------------------- */
static enum gt_code count_columns(const char *path, struct gt_numpy_rows *r, struct gt_err *err)
{
	char text[200];
	uint64_t n = 0;
	for (int i = 0; i < r->file.n; i++) {
		const struct gt_numpy_array *a = &r->file.array[i];
		const char *name = *a->name ? a->name : "the array";
		if (a->rank < 1 || a->rank > 2 || !a->count)
			return gt_fail(err, GT_EDATA, "%.400s: %.100s: expected rows of one or two dimensions for a table, got %s; images are uint8 "
			               "arrays named x, with labels named y", path, name, gt_numpy_text(a, text, sizeof text));
		if (a->dim[0] != r->file.array[0].dim[0])
			return gt_fail(err, GT_EDATA, "%.400s: expected arrays of the same length for a table, got %llu rows of %.100s and %llu of "
			               "%.100s", path, (unsigned long long)r->file.array[0].dim[0], r->file.array[0].name,
			               (unsigned long long)a->dim[0], name);
		n += a->rank == 2 ? a->dim[1] : 1;
		if (n > GT_CSV_MAX_FIELDS)
			return gt_fail(err, GT_EDATA, "%.400s: expected at most %d columns, got more", path, GT_CSV_MAX_FIELDS);
	}
	r->n = (int)n;
	r->rows = r->file.array[0].dim[0];
	return GT_OK;
}

static enum gt_code make_columns(struct gt_numpy_rows *r, struct gt_err *err)
{
	GT_CALLOC(r->column, r->n, err);
	GT_CALLOC(r->offset, r->n, err);
	GT_CALLOC(r->text, r->n, err);
	GT_CALLOC(r->len, r->n, err);
	for (int i = 0, k = 0; i < r->file.n; i++) {
		const struct gt_numpy_array *a = &r->file.array[i];
		for (uint64_t j = 0; j < (a->rank == 2 ? a->dim[1] : 1); j++)
			r->column[k++] = (struct column){a, j};
	}
	return GT_OK;
}

static enum gt_code load_arrays(const char *path, struct gt_numpy_rows *r, struct gt_err *err)
{
	uint64_t left = GT_DEFAULT_MAX_BYTES;
	for (int i = 0; i < r->file.n; i++) {
		struct gt_numpy_array *a = &r->file.array[i];
		GT_TRY(gt_numpy_load(path, a, left, err));
		left -= a->header + a->count * (uint64_t)a->item;
	}
	return GT_OK;
}

enum gt_code gt_numpy_rows_open(const char *path, struct gt_numpy_rows **out, struct gt_err *err)
{
	struct gt_numpy_rows *r;
	GT_CALLOC(r, 1, err);
	enum gt_code code = gt_numpy_list(path, &r->file, err);
	if (code == GT_OK)
		code = count_columns(path, r, err);
	if (code == GT_OK)
		code = make_columns(r, err);
	if (code == GT_OK)
		code = load_arrays(path, r, err);
	if (code != GT_OK) {
		gt_numpy_rows_close(r);
		return code;
	}
	r->named = !*r->file.array[0].name;
	*out = r;
	return GT_OK;
}

void gt_numpy_rows_close(struct gt_numpy_rows *r)
{
	if (!r)
		return;
	gt_numpy_free(&r->file);
	free(r->column);
	free(r->offset);
	free(r->text);
	free(r->len);
	free(r->buf);
	free(r);
}
