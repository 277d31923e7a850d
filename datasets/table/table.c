#include "table/table.h"
#include "base/arena.h"
#include "table/parse_cell.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void gt_table_drop_columns(struct gt_data_table *t)
{
	for (int k = 0; k < t->ncolumns; k++) {
		free(t->column[k].name);
		gt_spill_free(t->spill, t->column[k].number);
		gt_spill_free(t->spill, t->column[k].code);
		gt_words_free(&t->column[k].words);
		gt_texts_free(&t->column[k].text);
	}
	free(t->column);
	gt_spill_free(t->spill, t->row_id);
	t->column = NULL;
	t->row_id = NULL;
	t->ncolumns = 0;
}

void gt_table_free(struct gt_data_table *t)
{
	if (!t)
		return;
	gt_table_drop_columns(t);
	for (int i = 0; i < t->nfiles; i++)
		free(t->path[i]);
	free(t->path);
	gt_spill_free(t->spill, t->line);
	*t = (struct gt_data_table){0};
}

uint64_t gt_table_bytes(const struct gt_data_table *t)
{
	uint64_t bytes = (uint64_t)t->lines_cap * sizeof *t->line + (uint64_t)t->ncolumns * sizeof *t->column +
	                 (t->row_id ? (uint64_t)t->cap * sizeof *t->row_id : 0);
	for (int k = 0; k < t->ncolumns; k++) {
		const struct gt_table_column *c = &t->column[k];
		bytes += (uint64_t)t->cap * ((c->number ? sizeof *c->number : 0) + (c->code ? sizeof *c->code : 0)) + gt_words_bytes(&c->words) +
		         gt_texts_bytes(&c->text);
	}
	return bytes;
}

int gt_table_find(const struct gt_data_table *t, const char *name)
{
	for (int k = 0; k < t->ncolumns; k++)
		if (!strcmp(t->column[k].name, name))
			return k;
	return -1;
}

const char *gt_table_text(const struct gt_data_table *t, int k, int64_t row, size_t *len)
{
	const struct gt_table_column *c = &t->column[k];
	*len = 0;
	if (c->store == GT_STORE_TEXT)
		return gt_texts_get(&c->text, row, len);
	if (c->store != GT_STORE_WORDS || c->code[row] < 0)
		return "";
	*len = gt_words_len(&c->words, c->code[row]);
	return gt_words_text(&c->words, c->code[row]);
}

/* Returns the last entry whose first row is at or before `row`; NULL: no such entry. */
static const struct gt_table_line *find_line(const struct gt_data_table *t, int64_t row)
{
	int64_t lo = 0, hi = t->nlines;
	while (hi - lo > 1) {
		int64_t mid = (lo + hi) / 2;
		if (t->line[mid].row <= row)
			lo = mid;
		else
			hi = mid;
	}
	return t->nlines ? &t->line[lo] : NULL;
}

const char *gt_table_where(const struct gt_data_table *t, int64_t row, int64_t *line)
{
	const struct gt_table_line *l = find_line(t, row);
	*line = l ? l->line + (row - l->row) : 0;
	return l ? t->path[l->file] : "";
}

/* ---- fewer rows ------------------------------------------------------------------------------------------------------------------ */
static int64_t kept_row_index(const struct gt_data_table *t, int64_t limit, int64_t i)
{
	return (int64_t)((__int128)i * t->n / limit);
}

static enum gt_code keep_lines(struct gt_data_table *t, int64_t limit, struct gt_err *err)
{
	struct gt_table_line *line;
	GT_SPILL_NEW(t->spill, line, limit, err);
	for (int64_t i = 0; i < limit; i++) {
		int64_t row = kept_row_index(t, limit, i);
		const struct gt_table_line *l = find_line(t, row);
		line[i] = (struct gt_table_line){i, l->line + (row - l->row), l->file};
	}
	gt_spill_free(t->spill, t->line);
	t->line = line;
	t->nlines = t->lines_cap = limit;
	return GT_OK;
}

enum gt_code gt_table_thin_out(struct gt_data_table *t, int64_t limit, struct gt_err *err)
{
	if (limit <= 0 || limit >= t->n)
		return GT_OK;
	GT_TRY(keep_lines(t, limit, err));
	for (int k = 0; k < t->ncolumns; k++) {
		struct gt_table_column *c = &t->column[k];
		for (int64_t i = 0; i < limit && c->store != GT_STORE_SKIP; i++) {
			int64_t row = kept_row_index(t, limit, i);
			if (c->store == GT_STORE_NUMBERS)
				c->number[i] = c->number[row];
			else if (c->store == GT_STORE_WORDS)
				c->code[i] = c->code[row];
			else
				gt_texts_move(&c->text, i, row);
		}
		gt_texts_cut(&c->text, limit);
	}
	for (int64_t i = 0; i < limit; i++)
		t->row_id[i] = t->row_id[kept_row_index(t, limit, i)];
	t->n = limit;
	return GT_OK;
}

/* Parses each word of a column once, into numbers. NaN: the word is not a number; HUGE_VAL: the number is out of range. */
static enum gt_code parse_words(const struct gt_data_table *t, const struct gt_words *w, double **out, struct gt_err *err)
{
	double *v;
	GT_CALLOC(v, w->n, err);
	for (int32_t i = 0; i < w->n; i++)
		switch (gt_cell_parse(&t->notation, gt_words_text(w, i), gt_words_len(w, i), &v[i])) {
		case GT_CELL_NUMBER:
		case GT_CELL_CODE: break;
		case GT_CELL_RANGE: v[i] = HUGE_VAL; break;
		case GT_CELL_WORD: v[i] = NAN; break;
		}
	*out = v;
	return GT_OK;
}

enum gt_code gt_table_fail(const struct gt_data_table *t, int k, int64_t row, const char *why, struct gt_err *err)
{
	char shown[GT_CELL_SHOWN];
	int64_t line;
	const char *path = gt_table_where(t, row < 0 ? 0 : row, &line);
	gt_cell_shown(t->column[k].name, shown);
	return row < 0 ? gt_fail(err, GT_EDATA, "%.400s: column \"%s\": %s", path, shown, why)
	               : gt_fail(err, GT_EDATA, "%.400s:%lld: column \"%s\": %s", path, (long long)line, shown, why);
}

static enum gt_code fail_not_number(const struct gt_data_table *t, int k, int64_t row, const char *word, bool range, struct gt_err *err)
{
	char shown[2][GT_CELL_SHOWN];
	int64_t line;
	const char *path = gt_table_where(t, row, &line);
	return gt_fail(err, GT_EDATA, "%.400s:%lld: expected a number%s in the column \"%s\", got \"%s\"", path, (long long)line,
	               range ? " of a magnitude of at most 3.4e38" : "", gt_cell_shown(t->column[k].name, shown[0]),
	               gt_cell_shown(word, shown[1]));
}

enum gt_code gt_table_numbers(const struct gt_data_table *t, int k, const int64_t *row, int64_t n, double *out, struct gt_err *err)
{
	const struct gt_table_column *c = &t->column[k];
	double *parsed = NULL;
	enum gt_code code = GT_OK;
	if (c->store == GT_STORE_SKIP)
		return gt_fail(err, GT_EINTERNAL, "the column \"%.40s\" is not in memory", c->name);
	if (c->store == GT_STORE_WORDS)
		GT_TRY(parse_words(t, &c->words, &parsed, err));
	for (int64_t i = 0; i < n && code == GT_OK; i++) {
		int64_t r = row ? row[i] : i;
		if (!parsed) {
			out[i] = c->number[r];
		} else if (c->code[r] < 0) {
			out[i] = NAN;
		} else {
			out[i] = parsed[c->code[r]];
			if (!isfinite(out[i]))
				code = fail_not_number(t, k, r, gt_words_text(&c->words, c->code[r]), !isnan(out[i]), err);
		}
	}
	free(parsed);
	return code;
}
