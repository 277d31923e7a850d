#include "table/table_reader.h"
#include "base/arena.h"
#include "base/guess.h"
#include "base/json.h"
#include "table/parse_cell.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_non_ascii(const char *s)
{
	while (*s && !((unsigned char)*s & 0x80))
		s++;
	return *s;
}

/* Adds a quoted name to a list for a message; names after the 8th are omitted. */
static void append_name(char *list, size_t size, int i, const char *name)
{
	char shown[GT_CELL_SHOWN];
	size_t n = strlen(list);
	if (i < 8)
		snprintf(list + n, size - n, "%s\"%s\"", i ? ", " : "", gt_cell_shown(name, shown));
	else if (i == 8)
		snprintf(list + n, size - n, " and more");
}

#define ALL_ORDERS (1u << GT_DATE_YMD | 1u << GT_DATE_DMY | 1u << GT_DATE_MDY)
#define MAX_NAME 255 /* maximum bytes of a column name in a header; longer fields are texts */

/* Sets *out if a record may be a header: no field is a number, a date or longer than MAX_NAME, and all non-empty fields differ. */
static enum gt_code looks_like_header(const struct gt_csv_record *rec, bool *out, struct gt_err *err)
{
	double v;
	struct gt_words seen = {0};
	bool any = false, good = true;
	enum gt_code code = GT_OK;
	for (int i = 0; i < rec->n && good && code == GT_OK; i++) {
		size_t len = rec->len[i];
		const char *text = gt_cell_trim(rec->field[i], &len);
		int32_t word, before = seen.n;
		if (!len)
			continue;
		any = true;
		good = len <= MAX_NAME && gt_cell_number(text, len, &v) == GT_CELL_WORD && !gt_cell_has_commas(text, len) &&
		       !gt_date_orders(text, len);
		if (good)
			code = gt_words_add(&seen, text, len, &word, err);
		good = good && seen.n > before;
	}
	gt_words_free(&seen);
	*out = good && any;
	return code;
}

/* Returns a copy of the name of column i (from 0) in a header; for an empty name c1, c2, …, by position. NULL: out of memory. */
static char *column_name(const struct gt_csv_record *rec, int i)
{
	char buf[16];
	size_t len = rec ? rec->len[i] : 0;
	const char *text = rec ? gt_cell_trim(rec->field[i], &len) : "";
	snprintf(buf, sizeof buf, "c%d", i + 1);
	return strdup(len ? text : buf);
}

static enum gt_table_store given_store(const struct gt_table_spec *s, const char *name)
{
	switch (gt_table_given_type(s, name)) {
	case GT_COLUMN_CATEGORICAL: return GT_STORE_WORDS;
	case GT_COLUMN_DATE:
	case GT_COLUMN_TEXT: return GT_STORE_TEXT;
	case GT_COLUMN_IGNORE: return GT_STORE_SKIP;
	case GT_COLUMN_TARGET: return s->task == GT_TASK_CLASSES ? GT_STORE_WORDS : GT_STORE_NUMBERS;
	default: return GT_STORE_NUMBERS;
	}
}

/* Returns how to store a column when facts are given. */
static enum gt_table_store fitted_store(const struct gt_table_reader *r, const struct gt_table_fact *f)
{
	switch (f->type) {
	case GT_COLUMN_CONTINUOUS: return GT_STORE_NUMBERS;
	case GT_COLUMN_CATEGORICAL: return GT_STORE_WORDS;
	case GT_COLUMN_DATE:
	case GT_COLUMN_TEXT: return GT_STORE_TEXT;
	case GT_COLUMN_TARGET:
		return !r->targets ? GT_STORE_SKIP : r->facts->task == GT_TASK_CLASSES ? GT_STORE_WORDS : GT_STORE_NUMBERS;
	default: return GT_STORE_SKIP;
	}
}

static void set_reading(struct gt_table_reader *r, int k, enum gt_table_store store, enum gt_column_type type, unsigned orders)
{
	r->table->column[k].store = store;
	r->reading[k] = (struct gt_table_reading){.store = store, .target = type == GT_COLUMN_TARGET, .date = type == GT_COLUMN_DATE,
	                                          .orders = orders, .inferred = type == GT_COLUMN_AUTO};
}

static bool is_type_open(const struct gt_table_spec *s, const char *name)
{
	enum gt_column_type type = gt_table_given_type(s, name);
	return type == GT_COLUMN_AUTO || (type == GT_COLUMN_TARGET && s->task == GT_TASK_AUTO);
}

/* Checks that a name in a list of the spec is the name of a column. */
static enum gt_code check_name(const struct gt_table_reader *r, const char *key, const char *name, struct gt_err *err)
{
	char list[500] = "", shown[GT_CELL_SHOWN], like[GT_CELL_SHOWN];
	if (gt_table_find(r->table, name) >= 0)
		return GT_OK;
	struct gt_guess g = gt_guess_open(name);
	for (int k = 0; k < r->table->ncolumns; k++) {
		gt_guess_try(&g, r->table->column[k].name);
		append_name(list, sizeof list, k, r->table->column[k].name);
	}
	if (g.best)
		return gt_fail(err, GT_ECONFIG, "%s: expected a column of %.300s, got \"%s\"; did you mean \"%s\"?", key, gt_csv_path(r->csv),
		               gt_cell_shown(name, shown), gt_cell_shown(g.best, like));
	bool decoded = false; /* names were decoded from another encoding than UTF-8, which an earlier version of the file may have had */
	for (const char *p = name; *p; p++)
		decoded |= (*p & 0x80) && r->spec->encoding != GT_UTF_8;
	bool taken_for_data = !r->table->header && r->spec->header == GT_HEADER_AUTO;
	return gt_fail(err, GT_ECONFIG, "%s: expected a column of %.300s, got \"%s\"; its columns are %s%s", key, gt_csv_path(r->csv),
	               gt_cell_shown(name, shown), list,
	               decoded ? "; remove data.encoding if the file is UTF-8 now"
	               : taken_for_data ? ", because the first line has a number, a date, a long text or a text twice, so it is not a header"
	                              : "");
}

static enum gt_code check_names(const struct gt_table_reader *r, struct gt_err *err)
{
	const struct gt_table_spec *s = r->spec;
	for (int i = 0; i < s->ncolumns; i++)
		GT_TRY(check_name(r, "data.columns", s->column[i].name, err));
	for (int i = 0; i < s->ntarget; i++)
		GT_TRY(check_name(r, "data.target", s->target[i], err));
	for (int i = 0; i < s->nignore; i++)
		GT_TRY(check_name(r, "data.ignore", s->ignore[i], err));
	return GT_OK;
}

/* Returns whether data.columns names the fields of files without a header: one name per field, and not only c1, c2, …, which are gtrain's
 * names of unnamed columns and may be in any order. */
static bool names_all_fields(const struct gt_table_spec *s, int nfields)
{
	int numbered = 0;
	for (int i = 0; i < s->ncolumns; i++) {
		const char *name = s->column[i].name;
		numbered += *name == 'c' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
	}
	return s->ncolumns == nfields && numbered < nfields;
}

static enum gt_code alloc_columns(struct gt_table_reader *r, int n, struct gt_err *err)
{
	GT_CALLOC(r->table->column, n, err);
	GT_CALLOC(r->reading, n, err);
	r->table->ncolumns = n;
	for (int k = 0; k < n; k++)
		r->table->column[k].words.spill = r->table->column[k].text.spill = r->table->spill;
	return GT_OK;
}

/* Makes the columns from the first record of the first file; header: the record, or NULL. */
static enum gt_code make_columns(struct gt_table_reader *r, const struct gt_csv_record *header, struct gt_err *err)
{
	const struct gt_table_spec *s = r->spec;
	int n = r->nfields;
	GT_TRY(alloc_columns(r, n, err));
	r->table->header = header != NULL;
	bool named = !header && names_all_fields(s, n);
	for (int i = 0; i < n; i++) {
		char *name = named ? strdup(s->column[i].name) : column_name(header, i), shown[GT_CELL_SHOWN];
		if (!(r->table->column[i].name = name))
			return gt_fail_memory(err, 0);
		if (!gt_utf8_valid(name))
			return gt_fail(err, GT_EDATA, "%.400s:%lld: expected column names in UTF-8, got \"%s\"; " GT_USE_ENCODING,
			               gt_csv_path(r->csv), (long long)r->first_line, gt_cell_shown(name, shown));
		for (const char *p = name; *p; p++) /* a config cannot contain control characters */
			if ((uint8_t)*p < 0x20 || *p == 0x7f)
				return gt_fail(err, GT_EDATA, "%.400s:%lld: expected column names without control characters, got \"%s\"",
				               gt_csv_path(r->csv), (long long)r->first_line, gt_cell_shown(name, shown));
		enum gt_date_order order = gt_table_given_order(s, name);
		set_reading(r, i, given_store(s, name), gt_table_given_type(s, name), order != GT_DATE_AUTO ? 1u << order : ALL_ORDERS);
		r->reading[i].open = is_type_open(s, name);
	}
	return check_names(r, err);
}

static enum gt_code make_fitted_columns(struct gt_table_reader *r, bool header, struct gt_err *err)
{
	GT_TRY(alloc_columns(r, r->facts->ncolumns, err));
	r->table->header = header;
	for (int k = 0; k < r->facts->ncolumns; k++) {
		if (!(r->table->column[k].name = strdup(r->facts->column[k].name)))
			return gt_fail_memory(err, 0);
		set_reading(r, k, fitted_store(r, &r->facts->column[k]), r->facts->column[k].type, 1u << r->facts->column[k].order);
	}
	return GT_OK;
}

/* Finds the column of each field by its name. */
static enum gt_code map_names(struct gt_table_reader *r, const struct gt_csv_record *rec, struct gt_err *err)
{
	struct gt_data_table *t = r->table;
	struct gt_words names = {0};
	char list[500] = "", shown[GT_CELL_SHOWN];
	int32_t k, missing = 0;
	enum gt_code code = GT_OK;
	bool *found;
	GT_CALLOC(found, t->ncolumns, err);
	for (int i = 0; i < t->ncolumns && code == GT_OK; i++) {
		code = gt_words_add(&names, t->column[i].name, strlen(t->column[i].name), &k, err);
		if (code == GT_OK && k != i)
			code = gt_fail(err, GT_EDATA, "%.400s:%lld: expected columns with different names, got \"%s\" twice", gt_csv_path(r->csv),
			               (long long)r->first_line, gt_cell_shown(t->column[i].name, shown));
	}
	for (int i = 0; i < rec->n && code == GT_OK; i++) {
		char *name = column_name(rec, i);
		k = name ? gt_words_find(&names, name, strlen(name)) : -1;
		r->to[i] = k;
		if (!name)
			code = gt_fail_memory(err, 0);
		else if (k < 0 && !r->facts)
			code = gt_fail(err, GT_EDATA, "%.400s:%lld: expected the columns of %.300s, got also \"%s\"", gt_csv_path(r->csv),
			               (long long)r->first_line, t->path[0], gt_cell_shown(name, shown));
		else if (k >= 0 && found[k])
			code = gt_fail(err, GT_EDATA, "%.400s:%lld: expected columns with different names, got \"%s\" twice", gt_csv_path(r->csv),
			               (long long)r->first_line, gt_cell_shown(name, shown));
		else if (k >= 0)
			found[k] = true;
		free(name);
	}
	for (int i = 0; i < t->ncolumns && code == GT_OK; i++)
		if (!found[i] && (!r->facts || r->reading[i].store != GT_STORE_SKIP))
			append_name(list, sizeof list, missing++, t->column[i].name);
	if (missing)
		code = gt_fail(err, GT_EDATA, "%.400s:%lld: expected the columns of the training data; %s %s missing%s", gt_csv_path(r->csv),
		               (long long)r->first_line, list, missing > 1 ? "are" : "is",
		               r->spec->encoding == GT_UTF_8 || !has_non_ascii(list) ? "" : "; the file is read in the encoding of the training "
		               "data: if it is UTF-8, convert it with `iconv -f UTF-8 -t WINDOWS-1252`");
	gt_words_free(&names);
	free(found);
	return code;
}

/* Finds the column of each field by its position: all columns or, if targets are not needed, all except the targets. */
static enum gt_code map_positions(struct gt_table_reader *r, struct gt_err *err)
{
	int n = r->table->ncolumns, ntargets = r->facts ? r->facts->ntargets : 0;
	bool without = r->facts && !r->targets && r->nfields == n - ntargets;
	char also[80] = "";
	if (r->facts && !r->targets)
		snprintf(also, sizeof also, ", or %d without the target%s", n - ntargets, ntargets > 1 ? "s" : "");
	if (r->nfields != n && !without)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: expected %d fields, as in the training data%s, got %d", gt_csv_path(r->csv),
		               (long long)r->first_line, n, also, r->nfields);
	for (int k = 0, i = 0; k < n; k++)
		if (!without || r->facts->column[k].type != GT_COLUMN_TARGET)
			r->to[i++] = k;
	return GT_OK;
}

/* Evidence that the first record of a file is a header, although the table must not have headers. */
struct header_signs {
	int words;  /* count of words that the training data does not have in their columns */
	bool number; /* one of these words is in a column of numbers */
	bool value; /* a field is a valid value of its column */
	bool names; /* the fields are the names of their columns */
};

/* Updates the evidence with the field of column k, whose text has len bytes. */
static void note_header_signs(const struct gt_table_reader *r, int k, const char *text, size_t len, struct header_signs *h)
{
	const struct gt_table_fact *f = r->facts ? &r->facts->column[k] : NULL;
	const struct gt_table_reading *how = &r->reading[k];
	bool words = f && (f->type == GT_COLUMN_CATEGORICAL || (f->type == GT_COLUMN_TARGET && r->facts->task == GT_TASK_CLASSES));
	bool numbers = f ? f->type == GT_COLUMN_CONTINUOUS || f->type == GT_COLUMN_DATE || (f->type == GT_COLUMN_TARGET && !words)
	                 : how->store == GT_STORE_NUMBERS && (how->numbers || !how->open);
	h->names = h->names && !strcmp(r->table->column[k].name, text);
	if (!len || gt_table_is_na(r->spec, text))
		return;
	if (words && gt_table_lookup(f, &r->spec->notation, text, len) >= 0)
		h->value = true;
	else if (words || numbers) /* the caller has checked that no field is a number */
		h->words++;
	h->number |= numbers;
}

/* Rejects a header in a file that must not have a header. Otherwise the header would be read as a row of unknown words. */
static enum gt_code reject_header(const struct gt_table_reader *r, const struct gt_csv_record *rec, struct gt_err *err)
{
	struct header_signs h = {.names = true};
	char list[500] = "";
	bool header;
	GT_TRY(looks_like_header(rec, &header, err));
	if (!header)
		return GT_OK;
	for (int i = 0; i < rec->n; i++) {
		size_t len = rec->len[i];
		const char *text = gt_cell_trim(rec->field[i], &len);
		append_name(list, sizeof list, i, text);
		if (r->to[i] >= 0)
			note_header_signs(r, r->to[i], text, len, &h);
	}
	/* A single unknown word is weak evidence: a table may have only one column of words. */
	if (!h.names && (h.value || (!h.number && h.words < 2)))
		return GT_OK;
	return gt_fail(err, GT_EDATA, "%.400s:%lld: expected a row, because the %s no header, got a line like a header: %s; remove the line%s",
	               gt_csv_path(r->csv), (long long)r->first_line, r->facts ? "training data has" : "files before have", list,
	               h.number || h.names ? "" : ", or, if it is a row, put another row before it");
}

enum gt_code gt_table_map_columns(struct gt_table_reader *r, const struct gt_csv_record *rec, bool *is_header, struct gt_err *err)
{
	struct gt_data_table *t = r->table;
	bool first = !t->column;
	r->nfields = rec->n;
	r->first_line = rec->line;
	int *to = realloc(r->to, (size_t)rec->n * sizeof *to);
	if (!to)
		return gt_fail_memory(err, (size_t)rec->n * sizeof *to);
	r->to = to;
	*is_header = r->facts ? r->facts->header : first ? r->spec->header == GT_HEADER_YES : t->header;
	if (rec->names)
		*is_header = true;
	else if (first && !r->facts && r->spec->header == GT_HEADER_AUTO)
		GT_TRY(looks_like_header(rec, is_header, err));
	if (first)
		GT_TRY(r->facts ? make_fitted_columns(r, *is_header, err) : make_columns(r, *is_header ? rec : NULL, err));
	if (*is_header)
		return map_names(r, rec, err);
	GT_TRY(map_positions(r, err));
	return r->facts || !first ? reject_header(r, rec, err) : GT_OK;
}
