/* Reads the records of the files into columns. */
#include "base/arena.h"
#include "base/json.h"
#include "csv.h"
#include "format.h"
#include "sample_mark.h"
#include "skipped.h"
#include "table/parse_cell.h"
#include "table/table_reader.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t byte_limit(const struct gt_table_reader *r)
{
	return r->spec->max_bytes ? r->spec->max_bytes : (uint64_t)GT_DEFAULT_MAX_BYTES;
}

/* Returns whether a table of `bytes` bytes needs more memory than allowed. Arrays in files need none. */
static bool exceeds_memory(const struct gt_table_reader *r, uint64_t bytes)
{
	return bytes > byte_limit(r) && !gt_spill_works(r->table->spill);
}

static enum gt_code fail_too_large(struct gt_table_reader *r, struct gt_err *err)
{
	r->full = true;
	return gt_fail(err, GT_EDATA,
	               "%.400s: the table needs more than the %llu bytes of memory allowed after %lld rows; give columns that are "
	               "not needed the type \"ignore\"", gt_csv_path(r->csv), (unsigned long long)byte_limit(r), (long long)r->table->n);
}

/* Resizes the memory of a column of t to `cap` rows. */
static bool resize_column(const struct gt_data_table *t, struct gt_table_column *c, int64_t cap)
{
	void **p = c->store == GT_STORE_NUMBERS ? (void **)&c->number : (void **)&c->code;
	if (c->store != GT_STORE_NUMBERS && c->store != GT_STORE_WORDS)
		return true;
	void *now = gt_spill_resize(t->spill, *p, (size_t)cap * (c->store == GT_STORE_NUMBERS ? sizeof *c->number : sizeof *c->code));
	*p = now ? now : *p;
	return now;
}

static enum gt_code grow_rows(struct gt_table_reader *r, struct gt_err *err)
{
	struct gt_data_table *t = r->table;
	int64_t cap = t->cap ? t->cap + t->cap / 2 : 1024;
	uint64_t row = sizeof *t->row_id, fixed = gt_table_bytes(t);
	for (int k = 0; k < t->ncolumns; k++)
		row += t->column[k].store == GT_STORE_NUMBERS ? sizeof(double) : t->column[k].store == GT_STORE_WORDS ? sizeof(int32_t) : 0;
	if (exceeds_memory(r, fixed + (uint64_t)(cap - t->cap) * row))
		return fail_too_large(r, err);
	for (int k = 0; k < t->ncolumns; k++)
		if (!resize_column(t, &t->column[k], cap))
			return gt_fail_memory(err, (size_t)cap * sizeof(double));
	uint64_t *ids = gt_spill_resize(t->spill, t->row_id, (size_t)cap * sizeof *ids);
	if (!ids)
		return gt_fail_memory(err, (size_t)cap * sizeof *ids);
	t->row_id = ids;
	t->cap = cap;
	return GT_OK;
}

/* Records the line of a row unless the line follows directly after the line of the previous row. */
static enum gt_code record_line(struct gt_data_table *t, int64_t line, struct gt_err *err)
{
	int file = t->nfiles - 1;
	const struct gt_table_line *last = t->nlines ? &t->line[t->nlines - 1] : NULL;
	if (last && last->file == file && last->line + (t->n - last->row) == line)
		return GT_OK;
	GT_SPILL_GROW(t->spill, t->line, t->lines_cap, t->nlines + 1, err);
	t->line[t->nlines++] = (struct gt_table_line){t->n, line, file};
	return GT_OK;
}

static enum gt_code fail_cell(const struct gt_table_reader *r, int k, const char *text, const char *why, struct gt_err *err)
{
	char shown[2][GT_CELL_SHOWN];
	return gt_fail(err, GT_EDATA, "%.400s:%lld: column \"%s\": %s, got \"%s\"", gt_csv_path(r->csv), (long long)r->line,
	               gt_cell_shown(r->table->column[k].name, shown[0]), why, gt_cell_shown(text, shown[1]));
}

/* Checks that a text is UTF-8. With the facts of training data, its encoding is known to fit them, so this file has to be converted. */
static enum gt_code require_utf8(const struct gt_table_reader *r, int k, const char *text, struct gt_err *err)
{
	if (gt_utf8_valid(text))
		return GT_OK;
	return fail_cell(r, k, text, r->facts ? "expected UTF-8; " GT_CONVERT_FILE : "expected UTF-8; " GT_USE_ENCODING, err);
}

/* Handles a column without a given type that has too many distinct words: they are identifiers, texts, or numbers in a column
 * whose first cell is not a number, for example n/a. The files are read again. */
static enum gt_code turn_to_texts(struct gt_table_reader *r, int k, struct gt_err *err)
{
	if (r->reading[k].open)
		GT_TRY(gt_table_settle_column(r, k, err));
	if (r->reading[k].store == GT_STORE_WORDS)
		r->reading[k].store = GT_STORE_TEXT;
	r->table->column[k].store = GT_STORE_SKIP;
	r->again = true;
	return GT_OK;
}

static enum gt_code add_word(struct gt_table_reader *r, int k, const char *text, size_t len, int32_t *code, struct gt_err *err)
{
	struct gt_table_column *c = &r->table->column[k];
	if (r->facts) { /* words that the facts lack share one code */
		const struct gt_table_fact *f = &r->facts->column[k];
		if (gt_table_lookup(f, &r->spec->notation, text, len) < 0) {
			GT_TRY(require_utf8(r, k, text, err));
			if (f->type == GT_COLUMN_TARGET)
				return fail_cell(r, k, text, "expected a class of the training data", err);
			*code = GT_CODE_OTHER;
			return GT_OK;
		}
	}
	if ((*code = gt_words_find(&c->words, text, len)) >= 0)
		return GT_OK;
	GT_TRY(require_utf8(r, k, text, err));
	if (c->words.n == GT_TABLE_MAX_WORDS && r->reading[k].inferred) {
		*code = GT_CODE_MISSING;
		return turn_to_texts(r, k, err);
	}
	r->full |= c->words.n == GT_TABLE_MAX_WORDS;
	if (r->full)
		return fail_cell(r, k, text, "expected at most 1048576 different values in a column of words; give it the type \"text\" or "
		                 "\"ignore\"", err);
	GT_TRY(gt_words_add(&c->words, text, len, code, err));
	r->word_bytes += len + 1;
	return exceeds_memory(r, r->word_bytes) ? fail_too_large(r, err) : GT_OK;
}

/* Handles a word, or a code such as 007, in a column without a given type. If this is the column's first value, the column becomes words
 * now; else the files are read again. */
static enum gt_code turn_to_words(struct gt_table_reader *r, int k, struct gt_err *err)
{
	struct gt_table_column *c = &r->table->column[k];
	struct gt_table_reading *how = &r->reading[k];
	how->store = GT_STORE_WORDS;
	gt_spill_free(r->table->spill, c->number);
	c->number = NULL;
	if (how->numbers + how->like + how->words) {
		how->open = false;
		c->store = GT_STORE_SKIP;
		r->again = true;
		return GT_OK;
	}
	c->store = GT_STORE_WORDS;
	GT_SPILL_NEW(r->table->spill, c->code, r->table->cap, err);
	for (int64_t i = 0; i < r->table->n; i++)
		c->code[i] = GT_CODE_MISSING;
	return GT_OK;
}

/* Reads a number. *is_word: the column becomes a column of words. */
static enum gt_code put_number(struct gt_table_reader *r, int k, const char *text, size_t len, double *to, bool *is_word,
                               struct gt_err *err)
{
	struct gt_table_reading *how = &r->reading[k];
	const struct gt_notation *notation = &r->spec->notation;
	enum gt_number_kind cell = gt_cell_parse(notation, text, len, to);
	*is_word = cell == GT_CELL_CODE && how->open;
	if (cell == GT_CELL_NUMBER || cell == GT_CELL_CODE) {
		how->numbers += how->open && !*is_word;
		return GT_OK;
	}
	*to = NAN;
	if (!how->open)
		return gt_table_odd_cell(r, k, text, gt_table_no_number(notation, text, len, cell), err);
	if (cell == GT_CELL_RANGE || gt_cell_almost(notation, text, len))
		how->like++;
	else if (how->numbers + how->like + how->words)
		how->words++;
	else
		*is_word = true;
	return GT_OK;
}

static enum gt_code add_text(struct gt_table_reader *r, int k, const char *text, size_t len, struct gt_err *err)
{
	GT_TRY(require_utf8(r, k, text, err));
	r->word_bytes += len + sizeof(int64_t);
	return exceeds_memory(r, r->word_bytes) ? fail_too_large(r, err) : gt_texts_add(&r->table->column[k].text, text, len, err);
}

/* Checks a cell of a date column. *missing: the cell is not a date, and counts as missing. */
static enum gt_code put_date(struct gt_table_reader *r, int k, const char *text, size_t len, bool *missing, struct gt_err *err)
{
	struct gt_table_reading *how = &r->reading[k];
	unsigned orders = gt_date_orders(text, len) & how->orders;
	for (int o = 1; o < GT_DATE_ORDERS; o++)
		how->dates[o] += orders >> o & 1;
	*missing = !orders;
	if (orders)
		return GT_OK;
	const char *why = how->orders == 1u << GT_DATE_YMD   ? "expected a date such as 2023-05-18"
	                  : how->orders == 1u << GT_DATE_DMY ? "expected a date such as 18.05.2023 or 18/05/2023"
	                  : how->orders == 1u << GT_DATE_MDY ? "expected a date such as 05/18/2023"
	                                                     : "expected a date such as 2023-05-18, 18.05.2023 or 05/18/2023";
	return gt_table_odd_cell(r, k, text, why, err);
}

static enum gt_code put_cell(struct gt_table_reader *r, int k, char *field, size_t len, struct gt_err *err)
{
	struct gt_table_column *c = &r->table->column[k];
	int64_t row = r->table->n;
	char shown[GT_CELL_SHOWN];
	if (c->store == GT_STORE_SKIP)
		return GT_OK;
	const char *text = gt_cell_trim(field, &len);
	bool missing = r->na_first[(uint8_t)*text] && gt_table_is_na(r->spec, text), is_word;
	if (missing && r->reading[k].target && r->spec->skipped)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: column \"%s\": " GT_NO_TARGET, gt_csv_path(r->csv), (long long)r->line,
		               gt_cell_shown(c->name, shown));
	if (c->store == GT_STORE_TEXT) {
		if (r->reading[k].date && !missing)
			GT_TRY(put_date(r, k, text, len, &missing, err));
		return add_text(r, k, missing ? "" : text, missing ? 0 : len, err);
	}
	if (c->store == GT_STORE_NUMBERS) {
		if (missing) {
			c->number[row] = NAN;
			return GT_OK;
		}
		GT_TRY(put_number(r, k, text, len, &c->number[row], &is_word, err));
		if (!is_word)
			return GT_OK;
		GT_TRY(turn_to_words(r, k, err));
		if (c->store == GT_STORE_SKIP)
			return GT_OK;
	}
	c->code[row] = GT_CODE_MISSING;
	return missing ? GT_OK : add_word(r, k, text, len, &c->code[row], err);
}

static enum gt_code put_record(struct gt_table_reader *r, const struct gt_csv_record *rec, struct gt_err *err)
{
	struct gt_data_table *t = r->table;
	if (rec->n != r->nfields)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: expected %d fields, as in line %lld, got %d", gt_csv_path(r->csv), (long long)rec->line,
		               r->nfields, (long long)r->first_line, rec->n);
	if (t->n == t->cap)
		GT_TRY(grow_rows(r, err));
	GT_TRY(record_line(t, rec->line, err));
	r->line = rec->line;
	uint64_t sum = 0; /* sum of the field hashes, each seeded by its column name, so that the order of columns does not matter */
	for (int i = 0; i < rec->n; i++) {
		size_t len = rec->len[i];
		const char *text = gt_cell_trim(rec->field[i], &len);
		sum += len && r->to[i] >= 0 ? gt_mark_hash(text, len, r->seed[i]) : 0;
	}
	t->row_id[t->n] = gt_mark_hash(&sum, sizeof sum, 0);
	for (int i = 0; i < rec->n; i++)
		if (r->to[i] >= 0)
			GT_TRY(put_cell(r, r->to[i], rec->field[i], rec->len[i], err));
	t->n++;
	return GT_OK;
}

/* Reads a row; an unreadable row is left out. The words of such a row stay in the word sets of the columns, but are not counted. */
static enum gt_code put_or_skip(struct gt_table_reader *r, const struct gt_csv_record *rec, struct gt_err *err)
{
	struct gt_err why = {0};
	enum gt_code code = put_record(r, rec, &why);
	r->records++;
	if (code == GT_EDATA && !r->full) {
		for (int k = 0; k < r->table->ncolumns; k++)
			gt_texts_cut(&r->table->column[k].text, r->table->n);
		if (!*r->skipped)
			snprintf(r->skipped, sizeof r->skipped, "%.599s", why.msg);
		return gt_table_skip(r, "row", rec->line, why.msg, err);
	}
	if (code != GT_OK && err)
		*err = why;
	return code;
}

static enum gt_code set_field_seeds(struct gt_table_reader *r, struct gt_err *err)
{
	uint64_t *seed = realloc(r->seed, ((size_t)r->nfields + 1) * sizeof *seed);
	if (!seed)
		return gt_fail_memory(err, ((size_t)r->nfields + 1) * sizeof *seed);
	r->seed = seed;
	for (int i = 0; i < r->nfields; i++) {
		const char *name = r->to[i] >= 0 ? r->table->column[r->to[i]].name : "";
		seed[i] = gt_mark_hash(name, strlen(name), 0);
	}
	return GT_OK;
}

static enum gt_code read_file(struct gt_table_reader *r, const char *path, struct gt_err *err)
{
	struct gt_data_table *t = r->table;
	char delimiter = r->spec->delimiter;
	struct gt_csv_record rec;
	if (!delimiter)
		GT_TRY(gt_csv_delimiter(path, &delimiter, err));
	GT_TRY(gt_csv_open(path, delimiter, r->spec->encoding, 0, &r->csv, err));
	t->path[t->nfiles] = strdup(gt_csv_path(r->csv));
	enum gt_code code = t->path[t->nfiles++] ? gt_csv_next(r->csv, &rec, err) : gt_fail_memory(err, strlen(path));
	bool is_header = false, leaves_out = r->spec->skipped && (!r->facts || r->targets);
	if (code == GT_OK && !rec.n)
		code = gt_fail(err, GT_EDATA, "%.400s: expected records, got none", gt_csv_path(r->csv));
	if (code == GT_OK)
		code = gt_table_map_columns(r, &rec, &is_header, err);
	if (code == GT_OK)
		code = set_field_seeds(r, err);
	if (code == GT_OK && is_header)
		code = gt_csv_next(r->csv, &rec, err);
	while (code == GT_OK && rec.n) {
		code = leaves_out ? put_or_skip(r, &rec, err) : put_record(r, &rec, err);
		if (code == GT_OK)
			code = gt_csv_next(r->csv, &rec, err);
	}
	gt_csv_close(r->csv);
	r->csv = NULL;
	return code;
}

/* Removes the rows before another pass over the files, and keeps the columns. */
static void drop_rows(struct gt_table_reader *r)
{
	struct gt_data_table *t = r->table;
	for (int k = 0; k < t->ncolumns; k++) {
		struct gt_table_column *c = &t->column[k];
		gt_spill_free(t->spill, c->number);
		gt_spill_free(t->spill, c->code);
		gt_words_free(&c->words);
		gt_texts_free(&c->text);
		c->number = NULL;
		c->code = NULL;
		c->store = r->reading[k].store;
		c->orders = 0;
		memset(r->reading[k].dates, 0, sizeof r->reading[k].dates);
		gt_table_odd_free(&r->reading[k]);
	}
	for (int i = 0; i < t->nfiles; i++)
		free(t->path[i]);
	t->nfiles = 0;
	t->n = t->cap = t->nlines = 0;
	r->again = false;
	r->word_bytes = 0;
	r->records = 0;
	if (r->spec->skipped)
		gt_skipped_drop(r->spec->skipped, r->spec->set);
}

/* Frees unused memory of the columns. */
static void shrink_columns(struct gt_data_table *t)
{
	int64_t cap = t->n ? t->n : 1;
	uint64_t *ids = gt_spill_resize(t->spill, t->row_id, (size_t)cap * sizeof *ids);
	t->row_id = ids ? ids : t->row_id;
	for (int k = 0; k < t->ncolumns; k++)
		resize_column(t, &t->column[k], cap);
	t->cap = cap;
}

static enum gt_code read_files(struct gt_table_reader *r, const char *const *path, int nfiles, struct gt_err *err)
{
	for (int i = 0; i < nfiles; i++)
		GT_TRY(read_file(r, path[i], err));
	for (int k = 0; k < r->table->ncolumns; k++)
		if (r->reading[k].open || r->reading[k].date)
			GT_TRY(gt_table_settle_column(r, k, err));
	if (!r->table->n && *r->skipped)
		return gt_fail(err, GT_EDATA, "%.300s: expected usable rows, got none in %lld rows; the first error: %s", r->table->path[0],
		               (long long)r->records, r->skipped);
	if (!r->table->n)
		return gt_fail(err, GT_EDATA, "%.400s: expected rows after the header, got none", r->table->path[0]);
	return r->again ? GT_OK : gt_table_odd_error(r, err);
}

static enum gt_code read_table(struct gt_table_reader *r, const char *const *path, int nfiles, struct gt_err *err)
{
	struct gt_data_table *t = r->table;
	*t = (struct gt_data_table){.notation = r->spec->notation, .spill = r->spec->spill};
	for (int c = 0; c < 256; c++)
		r->na_first[c] = gt_table_na_begins(r->spec, (char)c);
	if (nfiles < 1)
		return gt_fail(err, GT_ECONFIG, "data.files: expected at least one file, got none");
	GT_CALLOC(t->path, nfiles, err);
	enum gt_code code = read_files(r, path, nfiles, err);
	for (int pass = 2; code == GT_OK && r->again; pass++) { /* pass 1 may turn numbers to words, pass 2 words to texts */
		if (pass > 3) {
			code = gt_fail(err, GT_EDATA, "%.400s: the file changed while it was read", t->path[0]);
			break;
		}
		drop_rows(r);
		code = read_files(r, path, nfiles, err);
	}
	free(r->to);
	free(r->seed);
	for (int k = 0; k < t->ncolumns && r->reading; k++)
		gt_table_odd_free(&r->reading[k]);
	free(r->reading);
	if (code == GT_OK)
		shrink_columns(t);
	else
		gt_table_free(t);
	return code;
}

enum gt_code gt_table_read(const char *const *path, int nfiles, const struct gt_table_spec *spec, struct gt_data_table *out,
                           struct gt_err *err)
{
	struct gt_table_reader r = {.spec = spec, .table = out};
	*out = (struct gt_data_table){0};
	GT_TRY(gt_table_spec_check(spec, err));
	return read_table(&r, path, nfiles, err);
}

enum gt_code gt_table_read_as(const char *const *path, int nfiles, const struct gt_table_spec *spec, const struct gt_table_facts *facts,
                              bool targets, struct gt_data_table *out, struct gt_err *err)
{
	struct gt_table_reader r = {.spec = spec, .facts = facts, .targets = targets, .table = out};
	return read_table(&r, path, nfiles, err);
}
