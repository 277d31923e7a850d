#include "base/arena.h"
#include "base/fileio.h"
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

/* What the bytes of a file say about its encoding. */
struct byte_signs {
	bool wrong;   /* there are bytes that are not UTF-8 */
	bool wide;    /* there are characters of several bytes in UTF-8 */
	bool windows; /* Windows-1252 has a character for each of these bytes */
};

/* Examines n bytes of a file; whole: nothing follows them. Returns the number of bytes examined: the last 3 bytes may be a part of a
 * character. */
static size_t note_signs(const uint8_t *text, size_t n, bool whole, struct byte_signs *s)
{
	size_t i = 0;
	while (i < n && (whole || n - i >= 4)) {
		int k = gt_utf8_length(text + i, n - i < 4 ? n - i : 4);
		bool high = text[i] >= 0x80;
		s->wrong |= high && !k;
		s->wide |= high && k > 1;
		s->windows = s->windows && gt_encoding_has_windows(text[i]);
		i += k > 0 ? (size_t)k : 1;
	}
	return i;
}

/* Examines a plain file, block by block. */
static enum gt_code examine_file(const struct gt_gzfile *f, struct byte_signs *s, struct gt_err *err)
{
	enum { BLOCK = 1 << 20 };
	uint8_t *block = malloc(BLOCK);
	size_t kept = 0;
	enum gt_code code = block ? GT_OK : gt_fail_memory(err, BLOCK);
	for (uint64_t at = 0; at < f->size && code == GT_OK;) {
		size_t n = f->size - at < BLOCK - kept ? (size_t)(f->size - at) : BLOCK - kept;
		code = gt_file_pread(f->fd, f->shown, block + kept, n, at, err);
		if (code != GT_OK || (!at && gt_encoding_is_utf16(block, n)))
			break;
		at += n;
		size_t used = note_signs(block, kept + n, at == f->size, s);
		kept += n - used;
		memmove(block, block + used, kept);
	}
	free(block);
	return code;
}

enum gt_code gt_table_guess_encoding(const char *path, enum gt_encoding *out, struct gt_err *err)
{
	struct gt_gzfile f;
	struct byte_signs s = {.windows = true};
	uint8_t *text;
	uint64_t n;
	*out = GT_UTF_8;
	if (gt_numpy_is_file(path))
		return GT_OK;
	GT_TRY(gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &f, err));
	enum gt_code code = f.gz ? gt_gzfile_load(&f, &text, &n, err) : examine_file(&f, &s, err);
	gt_gzfile_close(&f);
	if (code == GT_OK && f.gz) {
		if (!gt_encoding_is_utf16(text, n))
			note_signs(text, n, true, &s);
		free(text);
	}
	if (code == GT_OK && s.wrong && !s.wide && s.windows)
		*out = GT_WINDOWS_1252;
	return code;
}
