#include "base/arena.h"
#include "base/json.h"
#include "csv.h"
#include "format.h"
#include "gzfile.h"
#include "numpy_file.h"
#include "table/table_reader.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 20000 }; /* maximum number of rows to examine */

/* Candidates. If several give the same count of number columns, the first is chosen. */
static const struct gt_notation notations[] = {{0, 0},     {',', 0},   {'.', ','},  {',', '.'}, {',', ' '},
                                               {'.', ' '}, {'.', '\''}, {',', '\''}};
enum { PLAIN, COMMA, COMMA_THOUSANDS, NOTATIONS = sizeof notations / sizeof *notations };

/* Counts for one column. */
struct tally {
	int64_t present, numbers[NOTATIONS];
};

static void count_numbers(const struct gt_table_spec *spec, const struct gt_csv_record *rec, struct tally *t)
{
	for (int i = 0; i < rec->n; i++) {
		double v;
		size_t len = rec->len[i];
		const char *text = gt_cell_trim(rec->field[i], &len);
		if (gt_table_is_na(spec, text))
			continue;
		t[i].present++;
		for (int k = 0; k < NOTATIONS; k++) {
			enum gt_number_kind cell = gt_cell_parse(&notations[k], text, len, &v);
			t[i].numbers[k] += cell == GT_CELL_NUMBER || cell == GT_CELL_RANGE;
		}
	}
}

/* Returns the number of columns whose values all are numbers in a notation. */
static int count_number_columns(const struct tally *t, int n, int notation)
{
	int found = 0;
	for (int i = 0; i < n; i++)
		found += t[i].numbers[notation] && gt_table_few_odd(t[i].numbers[notation], t[i].present - t[i].numbers[notation]);
	return found;
}

enum gt_code gt_table_guess_notation(const char *path, const struct gt_table_spec *spec, struct gt_notation *out, bool *ambiguous,
                                     struct gt_err *err)
{
	struct gt_csv *csv;
	struct gt_csv_record rec;
	struct tally *t = NULL;
	char delimiter = spec->delimiter;
	int n = 0, score[NOTATIONS], best = PLAIN;
	*out = notations[PLAIN];
	*ambiguous = false;
	if (!delimiter)
		GT_TRY(gt_csv_delimiter(path, &delimiter, err));
	GT_TRY(gt_csv_open(path, delimiter, spec->encoding, 0, &csv, err));
	enum gt_code code = gt_csv_next(csv, &rec, err);
	if (code == GT_OK && rec.n && !(t = calloc((size_t)(n = rec.n), sizeof *t)))
		code = gt_fail_memory(err, (size_t)n * sizeof *t);
	for (int64_t i = 0; i < ROWS && code == GT_OK && rec.n; i++) { /* the first record may be a header */
		if (i && rec.n == n)
			count_numbers(spec, &rec, t);
		code = gt_csv_next(csv, &rec, err);
	}
	gt_csv_close(csv);
	for (int k = 0; k < NOTATIONS && code == GT_OK; k++) {
		score[k] = count_number_columns(t, n, k);
		if (score[k] > score[best])
			best = k;
	}
	free(t);
	if (code != GT_OK)
		return code;
	*ambiguous = (best == COMMA || best == COMMA_THOUSANDS) && score[COMMA] == score[COMMA_THOUSANDS];
	if (*ambiguous)
		best = delimiter == ',' ? COMMA_THOUSANDS : COMMA;
	*out = notations[best];
	return GT_OK;
}

enum gt_code gt_table_guess_encoding(const char *path, enum gt_encoding *out, struct gt_err *err)
{
	struct gt_gzfile f;
	uint8_t *text;
	uint64_t n;
	bool wrong = false, wide = false, windows_too = true;
	*out = GT_UTF_8;
	if (gt_numpy_is_file(path))
		return GT_OK;
	GT_TRY(gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &f, err));
	enum gt_code code = gt_gzfile_load(&f, &text, &n, err);
	gt_gzfile_close(&f);
	if (code != GT_OK)
		return code;
	for (uint64_t i = 0, step = 1; i < n && !gt_encoding_is_utf16(text, n); i += step) {
		int k = gt_utf8_length(text + i, n - i < 4 ? (size_t)(n - i) : 4);
		bool high = text[i] >= 0x80;
		wrong |= high && !k;
		wide |= high && k > 1;
		windows_too = windows_too && gt_encoding_has_windows(text[i]);
		step = k > 0 ? (uint64_t)k : 1;
	}
	free(text);
	if (wrong && !wide && windows_too)
		*out = GT_WINDOWS_1252;
	return GT_OK;
}
