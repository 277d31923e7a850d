/* Reads an index of data. Every value is checked before it is used. */
#include "base/arena.h"
#include "base/json_read.h"
#include "data_index_parts.h"
#include "sample_mark.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_LEVELS 6
#define DAMAGED "it contains values that are not possible"

struct reading {
	const struct gt_data_index *x;
	struct gt_index *ix;
	const struct gt_fitted *learned; /* the facts of the samples */
	struct gt_index_content *out;
	struct gt_index_sizes sizes;
};

/* Returns a section of `count` elements of `each` bytes; NULL: the index lacks it, or it has another size. */
static void *find_array(const struct reading *r, uint32_t tag, int64_t count, size_t each)
{
	uint64_t bytes, expected;
	const void *p = gt_index_section(r->ix, tag, &bytes);
	return !__builtin_mul_overflow((uint64_t)count, each, &expected) && bytes == expected ? (void *)(uintptr_t)p : NULL;
}

static bool has_text(const struct reading *r, uint32_t tag, const char *text)
{
	const void *p = find_array(r, tag, (int64_t)strlen(text), 1);
	return p && !memcmp(p, text, strlen(text));
}

/* ---- checks of arrays: in blocks whose pages are dropped ------------------------------------------------------------------------ */
static bool are_finite(const float *v, int64_t n)
{
	bool good = true;
	for (int64_t i = 0; i < n; i++)
		good &= fabsf(v[i]) <= 3.4e38f;
	return good;
}

/* Returns whether all values are in 0 ... limit - 1. */
static bool are_below(const int32_t *v, int64_t n, int64_t limit)
{
	uint32_t high = 0;
	for (int64_t i = 0; i < n; i++)
		high = (uint32_t)v[i] > high ? (uint32_t)v[i] : high;
	return n < 1 || high < limit;
}

/* Returns whether the codes of each column of n rows are below the limit of the column. */
static bool are_codes(const int32_t *v, int64_t n, const struct gt_field *f)
{
	bool good = true;
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < f->width; k++)
			good &= (uint32_t)v[i * f->width + k] < f->codes[k];
	return good;
}

static bool check_floats(const struct reading *r, const float *v, int64_t n)
{
	const int64_t block = GT_INDEX_BLOCK / sizeof *v;
	bool good = v != NULL;
	for (int64_t at = 0; at < n && good; at += block) {
		int64_t m = n - at < block ? n - at : block;
		good = are_finite(v + at, m);
		gt_index_drop(r->ix, v + at, (uint64_t)m * sizeof *v);
	}
	return good;
}

static bool check_below(const struct reading *r, const int32_t *v, int64_t n, int64_t limit)
{
	const int64_t block = GT_INDEX_BLOCK / sizeof *v;
	bool good = v != NULL;
	for (int64_t at = 0; at < n && good; at += block) {
		int64_t m = n - at < block ? n - at : block;
		good = are_below(v + at, m, limit);
		gt_index_drop(r->ix, v + at, (uint64_t)m * sizeof *v);
	}
	return good;
}

static bool check_codes(const struct reading *r, const struct gt_field *f)
{
	const int32_t *v = f->data;
	const int64_t n = r->sizes.n, block = 1 + (int64_t)(GT_INDEX_BLOCK / sizeof *v) / f->width;
	bool good = v != NULL && f->ncodes == f->width;
	for (int64_t at = 0; at < n && good; at += block) {
		int64_t m = n - at < block ? n - at : block;
		good = are_codes(v + at * f->width, m, f);
		gt_index_drop(r->ix, v + at * f->width, (uint64_t)(m * f->width) * sizeof *v);
	}
	return good;
}

/* Checks the starts of a ragged field, and that each of the lengths that follow is that of its row. */
static bool check_starts(const struct reading *r, const struct gt_field *f, const int32_t *length)
{
	const int64_t n = r->sizes.n, block = GT_INDEX_BLOCK / sizeof *f->start;
	bool good = f->start && length && f->start[0] == 0;
	for (int64_t at = 0; at < n && good; at += block) {
		int64_t m = n - at < block ? n - at : block;
		for (int64_t i = at; i < at + m && good; i++) {
			int64_t row = f->start[i + 1] - f->start[i];
			good = f->start[i] >= 0 && f->start[i + 1] >= f->start[i] && row <= f->width && length[i] >= 0 && length[i] <= row;
		}
		gt_index_drop(r->ix, f->start + at, (uint64_t)m * sizeof *f->start);
		gt_index_drop(r->ix, length + at, (uint64_t)m * sizeof *length);
	}
	return good;
}

/* Checks that the two parts are ascending, and that together they have every sample once. */
static bool check_parts(const struct reading *r)
{
	const int64_t *part[2] = {r->out->index[0], r->out->index[1]}, *count = r->sizes.part;
	int64_t at[2] = {0, 0};
	if (!part[0] || !part[1] || count[0] + count[1] != r->sizes.n)
		return false;
	for (int64_t i = 0; i < r->sizes.n; i++) {
		int k = at[0] < count[0] && part[0][at[0]] == i ? 0 : 1;
		if (at[k] >= count[k] || part[k][at[k]] != i)
			return false;
		if (++at[k] % (1 << 19) == 0)
			gt_index_drop(r->ix, part[k] + at[k] - (1 << 19), (1 << 19) * sizeof *part[k]);
	}
	for (int k = 0; k < 2; k++)
		gt_index_drop(r->ix, part[k], (uint64_t)count[k] * sizeof *part[k]);
	return true;
}

/* ---- the content ---------------------------------------------------------------------------------------------------------------- */
static enum gt_code read_facts(struct reading *r, const struct gt_fitting *by, struct gt_arena *a, struct gt_err *err)
{
	const struct gt_json_value *v;
	uint64_t bytes;
	const char *text = gt_index_section(r->ix, GT_IX_FACTS, &bytes);
	if (r->learned)
		return GT_OK;
	if (!text)
		return gt_fail(err, GT_EDATA, DAMAGED);
	GT_TRY(gt_json_parse(text, bytes, "its facts", JSON_LEVELS, bytes, a, &v, err));
	GT_TRY(gt_fitted_new(by, &r->out->learned, err));
	r->learned = r->out->learned;
	GT_TRY(by->get_json(v, "its facts", r->out->learned, err));
	return gt_table_report_get(gt_json_member(v, "report"), &r->out->learned->table, err);
}

static enum gt_code read_lines(const struct reading *r, struct gt_err *err)
{
	const int64_t *v = find_array(r, GT_IX_LINES, r->sizes.lines, 3 * sizeof *v);
	struct gt_data_table *t;
	if (!v || r->sizes.lines > r->sizes.n)
		return gt_fail(err, GT_EDATA, DAMAGED);
	GT_CALLOC(t, 1, err);
	r->out->data.row_lines = t;
	t->n = r->sizes.n;
	GT_CALLOC(t->path, r->x->nfiles, err);
	for (; t->nfiles < r->x->nfiles; t->nfiles++)
		GT_NEW_STR(t->path[t->nfiles], strdup(r->x->paths.path[t->nfiles]), err);
	GT_CALLOC(t->line, r->sizes.lines, err);
	for (; t->nlines < r->sizes.lines; t->nlines++, v += 3) {
		bool rises = t->nlines ? v[0] > t->line[t->nlines - 1].row : v[0] == 0;
		if (!rises || v[0] >= t->n || v[1] < 1 || v[2] < 0 || v[2] >= t->nfiles)
			return gt_fail(err, GT_EDATA, DAMAGED);
		t->line[t->nlines] = (struct gt_table_line){v[0], v[1], (int)v[2]};
	}
	t->lines_cap = t->nlines;
	return GT_OK;
}

static bool read_field(const struct reading *r, int i)
{
	struct gt_dataset *d = &r->out->data;
	struct gt_field *f = &d->field[i];
	const int64_t n = r->sizes.n, width = f->width ? f->width : 1;
	if (f->ragged) {
		f->start = find_array(r, GT_IX_START + (uint32_t)i, n + 1, sizeof *f->start);
		const int32_t *length = i + 1 < d->nfields ? find_array(r, GT_IX_FIELD + (uint32_t)i + 1, n, sizeof *length) : NULL;
		if (!check_starts(r, f, length) || !(f->data = find_array(r, GT_IX_FIELD + (uint32_t)i, f->start[n], sizeof(int32_t))))
			return false;
		return f->ncodes == 1 && check_below(r, f->data, f->start[n], f->codes[0]);
	}
	f->data = find_array(r, GT_IX_FIELD + (uint32_t)i, n, (size_t)width * gt_dtype_size(f->dtype));
	if (f->dtype == GT_F32)
		return check_floats(r, f->data, n * width);
	return f->ncodes ? check_codes(r, f) : f->data != NULL; /* without limits: lengths, which check_starts has examined */
}

static bool read_targets(const struct reading *r)
{
	struct gt_dataset *d = &r->out->data;
	int64_t width = d->target.width;
	if (!width) {
		d->labels = find_array(r, GT_IX_LABELS, r->sizes.n, sizeof *d->labels);
		return check_below(r, d->labels, r->sizes.n, d->classes);
	}
	d->target.data = find_array(r, GT_IX_TARGET, r->sizes.n, (size_t)width * sizeof(float));
	return check_floats(r, d->target.data, r->sizes.n * width);
}

static enum gt_code read_content(struct reading *r, const struct gt_dataset_spec *spec, const struct gt_fitting *by, struct gt_arena *a,
                                 struct gt_err *err)
{
	struct gt_dataset *d = &r->out->data;
	const struct gt_index_sizes *s = find_array(r, GT_IX_SIZES, 1, sizeof *s);
	if (!s || s->n < 1 || s->n > INT64_C(1) << 40 || s->part[0] < 0 || s->part[1] < 0 || s->part[0] > s->n || s->part[1] > s->n ||
	    s->lines < 1)
		return gt_fail(err, GT_EDATA, DAMAGED);
	r->sizes = *s;
	GT_TRY(read_facts(r, by, a, err));
	GT_TRY(by->describe(spec, r->learned, d, err));
	d->fitting = by;
	d->n = s->n;
	d->texts = s->texts;
	GT_TRY(read_lines(r, err));
	bool good = read_targets(r);
	for (int i = 0; i < d->nfields && good; i++)
		good = read_field(r, i);
	d->mark = find_array(r, GT_IX_MARKS, s->n, sizeof *d->mark);
	for (int k = 0; k < 2 && s->divided; k++) {
		r->out->index[k] = find_array(r, GT_IX_PART + (uint32_t)k, s->part[k], sizeof *r->out->index[k]);
		r->out->count[k] = s->part[k];
	}
	return good && (!s->divided || check_parts(r)) ? GT_OK : gt_fail(err, GT_EDATA, DAMAGED);
}

void gt_data_index_load(struct gt_data_index *x, const struct gt_dataset_spec *spec, const struct gt_fitting *by,
                        const struct gt_fitted *learned, struct gt_index_content *out)
{
	struct reading r = {.x = x, .learned = learned, .out = out};
	struct gt_arena *a = NULL;
	struct gt_err e = {0};
	char why[200], changed[300] = "";
	uint64_t bytes;
	*out = (struct gt_index_content){0};
	x->inode = gt_index_inode(&x->place);
	gt_index_open(x->place.path, &r.ix, why, sizeof why);
	if (!r.ix && *why)
		snprintf(x->note, sizeof x->note, "the data was read again, because its index could not be used: %s", why);
	if (!r.ix)
		return;
	out->data.mapped = r.ix; /* owned by the dataset from here on */
	const char *was = gt_index_section(r.ix, GT_IX_STATE, &bytes);
	char *copy = was && bytes < 1 << 20 ? strndup(was, bytes) : NULL;
	enum gt_code code = copy ? GT_OK : gt_fail(&e, GT_EDATA, DAMAGED);
	if (code == GT_OK && strcmp(copy, x->place.state) != 0) {
		gt_index_changed_file(copy, x->place.state, changed, sizeof changed);
		code = gt_fail(&e, GT_EDATA, "%.300s has changed since", changed);
	}
	free(copy);
	if (code == GT_OK && !has_text(&r, GT_IX_SETTINGS, x->place.settings))
		code = gt_fail(&e, GT_EDATA, "it was made for another config");
	if (code == GT_OK)
		code = gt_arena_open(&a, &e);
	if (code == GT_OK)
		code = read_content(&r, spec, by, a, &e);
	gt_arena_close(a);
	if (code != GT_OK) {
		snprintf(x->note, sizeof x->note, "the data was read again, because its index could not be used: %.500s", e.msg);
		gt_index_content_free(out);
		return;
	}
	snprintf(out->data.where, sizeof out->data.where, "%.*s", (int)sizeof out->data.where - 1, x->where);
	gt_index_note_use(&x->place);
}
