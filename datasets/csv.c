/* A record is scanned twice: the first scan finds the fields and does not change the text; then each field gets a terminating NUL and is
 * unquoted in place. So a record that ends outside of the window can be scanned again after more of the file was read.
 *
 *     text      at (next record)          end
 *      | used ... | record ... | rec ...   | free ...  cap     refill: moves [at, end) to text, then reads the file to fill the window */
#include "csv.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "format.h"
#include "gzfile.h"
#include "json_rows.h"
#include "numpy_file.h"
#include "numpy_rows.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* WINDOW: initial bytes of the buffer. PAD: bytes that find_special compares at a time, and padding after the buffer. DETECT: bytes from
 * which JSON Lines are recognised */
enum { WINDOW = 1 << 20, PAD = 16, DETECT = 64 };

struct gt_csv {
	struct gt_gzfile file; /* the open file; closed as soon as the window contains the end of the file */
	char *text;            /* [cap + PAD] the window, which is the part of the file in memory; the byte after it is NUL, which ends every
	                          scan */
	char *at, *end;
	size_t cap;
	uint64_t done;         /* number of bytes of a plain file that were read into the window */
	bool whole;            /* the window contains the end of the file */
	int64_t line;          /* line number of the next record, from 1 */
	char delimiter;
	char **field;          /* [field_cap] */
	uint32_t *len;         /* [len_cap] lengths of the fields; during a scan, the bit DOUBLED marks a field with doubled quotes */
	int64_t field_cap, len_cap;
	struct gt_numpy_rows *numpy; /* reader of NumPy arrays; NULL: the file is text */
	struct gt_json_rows *json; /* the parser of JSON Lines; NULL: the file is CSV */
	bool named;            /* JSON Lines: gt_csv_next has returned the record with the column names */
};
#define DOUBLED (1u << 31)
_Static_assert(GT_CSV_MAX_FIELD < DOUBLED, "the bytes of a field and the mark DOUBLED share 32 bits");

/* The result of scanning a record. */
enum scan { SCAN_END, SCAN_MORE, SCAN_WRONG };

static enum gt_code fail_at_line(const struct gt_csv *c, int64_t line, const char *why, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s:%lld: %s", c->file.shown, (long long)line, why);
}

/* Reads more of the file, so that the window has more bytes after c->at. Doubles the window if it is full. */
static enum gt_code refill_window(struct gt_csv *c, struct gt_err *err)
{
	size_t kept = (size_t)(c->end - c->at);
	memmove(c->text, c->at, kept);
	if (kept == c->cap) {
		size_t cap = 2 * c->cap;
		if (cap > GT_CSV_MAX_RECORD)
			return fail_at_line(c, c->line, "expected records of at most 64 MiB, got a longer record", err);
		char *grown = realloc(c->text, cap + PAD);
		if (!grown)
			return gt_fail_memory(err, cap + PAD);
		c->text = grown;
		c->cap = cap;
	}
	c->at = c->text;
	size_t want = c->cap - kept;
	if (want > c->file.size - c->done)
		want = (size_t)(c->file.size - c->done);
	GT_TRY(gt_file_pread(c->file.fd, c->file.shown, c->text + kept, want, c->done, err));
	c->done += want;
	c->end = c->text + kept + want;
	*c->end = 0;
	c->whole = c->done == c->file.size;
	return GT_OK;
}

/* Replaces the window by the n bytes at text, which are the whole file. The memory of text has PAD more bytes. */
static void take_text(struct gt_csv *c, char *text, size_t n)
{
	free(c->text);
	c->text = c->at = text;
	c->cap = n;
	c->end = text + n;
	*c->end = 0;
	c->whole = true;
}

static enum gt_code load_first_window(struct gt_csv *c, size_t window, struct gt_err *err)
{
	uint8_t *text;
	uint64_t size;
	if (!c->file.gz) {
		c->cap = window < c->file.size ? window : (size_t)c->file.size;
		if (!(c->text = malloc(c->cap + PAD)))
			return gt_fail_memory(err, c->cap + PAD);
		c->at = c->end = c->text;
		return refill_window(c, err);
	}
	GT_TRY(gt_gzfile_load(&c->file, &text, &size, err));
	char *padded = realloc(text, size + PAD);
	if (!padded) {
		free(text);
		return gt_fail_memory(err, size + PAD);
	}
	take_text(c, padded, size);
	return GT_OK;
}

/* Converts the content of the file to UTF-8. */
static enum gt_code convert_to_utf8(struct gt_csv *c, enum gt_encoding encoding, struct gt_err *err)
{
	uint8_t *raw = NULL;
	uint64_t size = (uint64_t)(c->end - c->at);
	char *text;
	size_t n;
	if (!c->whole)
		GT_TRY(gt_gzfile_load(&c->file, &raw, &size, err));
	enum gt_code code = gt_encoding_convert(encoding, raw ? (char *)raw : c->at, (size_t)size, PAD, c->file.shown, &text, &n, err);
	free(raw);
	if (code == GT_OK)
		take_text(c, text, n);
	return code;
}

/* Moves c->at to the first record that is not an empty line. */
static enum gt_code skip_empty_lines(struct gt_csv *c, struct gt_err *err)
{
	for (;;) {
		while (c->at < c->end && (*c->at == '\n' || (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n'))) {
			c->line += *c->at == '\n';
			c->at++;
		}
		if (c->whole || c->at + 1 < c->end || (c->at < c->end && *c->at != '\r'))
			return GT_OK;
		GT_TRY(refill_window(c, err));
	}
}

/* ---- JSON Lines ----------------------------------------------------------------------------------------------------------------- */
/* Finds the next line that is not empty, and moves c->at behind it. Sets *line to NULL at the end of the file. */
static enum gt_code next_line(struct gt_csv *c, char **line, size_t *n, struct gt_err *err)
{
	char *lf;
	*line = NULL;
	GT_TRY(skip_empty_lines(c, err));
	while (!(lf = memchr(c->at, '\n', (size_t)(c->end - c->at))) && !c->whole)
		GT_TRY(refill_window(c, err));
	if (c->at == c->end)
		return GT_OK;
	*line = c->at;
	*n = (size_t)((lf ? lf : c->end) - c->at);
	c->at += *n + (lf != NULL);
	return GT_OK;
}

static bool has_utf8_mark(const struct gt_csv *c)
{
	return c->end - c->at >= 3 && !memcmp(c->at, "\xef\xbb\xbf", 3);
}

/* Returns to the start of the content. begin: offset of the content in the window, which is used if the window contains the whole file. */
static enum gt_code rewind_file(struct gt_csv *c, bool whole, size_t begin, struct gt_err *err)
{
	c->line = 1;
	c->at = c->text + (whole ? begin : 0);
	if (whole)
		return GT_OK;
	c->end = c->at;
	c->done = 0;
	GT_TRY(refill_window(c, err));
	c->at += has_utf8_mark(c) ? 3 : 0;
	return GT_OK;
}

/* If the file is JSON Lines, collects the keys of all lines and goes back to the start of the file. */
static enum gt_code learn_json_keys(struct gt_csv *c, struct gt_err *err)
{
	bool whole = c->whole;
	size_t begin = (size_t)(c->at - c->text), n;
	char *line;
	GT_TRY(skip_empty_lines(c, err));
	while (!c->whole && c->end - c->at < DETECT)
		GT_TRY(refill_window(c, err));
	n = (size_t)(c->end - c->at);
	if (!gt_json_rows_detect(c->at, n < DETECT ? n : DETECT))
		return GT_OK;
	GT_TRY(gt_json_rows_open(&c->json, err));
	for (;;) {
		GT_TRY(next_line(c, &line, &n, err));
		if (!line)
			return rewind_file(c, whole, begin, err);
		GT_TRY(gt_json_rows_learn(c->json, line, n, c->file.shown, c->line++, err));
	}
}

static enum gt_code next_object(struct gt_csv *c, struct gt_csv_record *out, struct gt_err *err)
{
	char *line;
	size_t n;
	if (!c->named) {
		c->named = true;
		return gt_json_rows_names(c->json, c->line, out, err);
	}
	GT_TRY(next_line(c, &line, &n, err));
	return line ? gt_json_rows_read(c->json, line, n, c->file.shown, c->line++, out, err) : GT_OK;
}

/* ---- CSV ------------------------------------------------------------------------------------------------------------------------ */
/* Opens a file with arrays of NumPy. Always takes ownership of c. */
static enum gt_code open_arrays(const char *path, struct gt_csv *c, struct gt_csv **out, struct gt_err *err)
{
	enum gt_code code = gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &c->file, err); /* sets c->file.shown, the path for messages */
	if (code == GT_OK)
		code = gt_numpy_rows_open(path, &c->numpy, err);
	if (code != GT_OK)
		gt_csv_close(c);
	else
		*out = c;
	return code;
}

enum gt_code gt_csv_open(const char *path, char delimiter, enum gt_encoding encoding, size_t window, struct gt_csv **out,
                         struct gt_err *err)
{
	struct gt_csv *c = calloc(1, sizeof *c);
	*out = NULL;
	if (!c)
		return gt_fail_memory(err, sizeof *c);
	c->delimiter = delimiter;
	c->line = 1;
	if (gt_numpy_is_file(path))
		return open_arrays(path, c, out, err);
	enum gt_code code = gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &c->file, err);
	if (code == GT_OK)
		code = load_first_window(c, !window ? WINDOW : window < 3 ? 3 : window, err);
	size_t n = code == GT_OK ? (size_t)(c->end - c->at) : 0;
	bool is_utf8 = code == GT_OK && has_utf8_mark(c); /* a UTF-8 byte order mark overrides the given encoding */
	if (code == GT_OK && !is_utf8 && (encoding != GT_UTF_8 || gt_encoding_is_utf16(c->at, n)))
		code = convert_to_utf8(c, encoding, err);
	else if (is_utf8)
		c->at += 3;
	if (code == GT_OK)
		code = learn_json_keys(c, err);
	if (code != GT_OK) {
		gt_csv_close(c);
		return code;
	}
	*out = c;
	return GT_OK;
}

void gt_csv_close(struct gt_csv *c)
{
	if (!c)
		return;
	gt_gzfile_close(&c->file);
	free(c->text);
	free(c->field);
	free(c->len);
	gt_json_rows_close(c->json);
	gt_numpy_rows_close(c->numpy);
	free(c);
}

const char *gt_csv_path(const struct gt_csv *c)
{
	return c->file.shown;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

enum gt_code gt_csv_delimiter(const char *path, char *out, struct gt_err *err)
{
	static const char candidates[] = ",;\t|";
	struct gt_gzfile f;
	char *head = malloc(1 << 16);
	size_t n = 0, count[sizeof candidates] = {0}, best = 0;
	*out = ',';
	if (!head)
		return gt_fail_memory(err, 1 << 16);
	enum gt_code code = gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &f, err);
	if (code == GT_OK) {
		code = gt_gzfile_head(&f, head, 1 << 16, &n, err);
		gt_gzfile_close(&f);
	}
	if (code == GT_OK && gt_encoding_is_utf16(head, n)) { /* reduce UTF-16 to one byte per unit, because the delimiters are ASCII */
		size_t to = 0;
		for (size_t i = 2, low = *head == '\xff' ? 0 : 1; i + 1 < n; i += 2)
			head[to++] = head[i + 1 - low] ? 'x' : head[i + low];
		n = to;
	}
	bool inside = false, any = false;
	size_t decimal = 0; /* number of commas that are between two digits */
	for (size_t i = 0; i < n; i++) {
		const char *at = head[i] ? strchr(candidates, head[i]) : NULL;
		if (head[i] == '"')
			inside = !inside;
		else if (head[i] == '\n' && any && !inside)
			break;
		else if (at && !inside)
			count[at - candidates]++;
		decimal += at == candidates && !inside && i && is_digit(head[i - 1]) && i + 1 < n && is_digit(head[i + 1]);
		any |= head[i] != '\n' && head[i] != '\r';
	}
	if (decimal == count[0] && count[1] + count[2] + count[3]) /* in "0,5;1,5", every comma is a decimal comma, so another character is the
	                                                              delimiter */
		count[0] = 0;
	for (size_t i = 1; candidates[i]; i++)
		if (count[i] > count[best])
			best = i;
	*out = candidates[best];
	free(head);
	return code;
}

/* Enlarges the field arrays for field n, whose length is len. */
static __attribute__((noinline)) enum gt_code make_room(struct gt_csv *c, int n, size_t len, struct gt_err *err)
{
	if (len > GT_CSV_MAX_FIELD)
		return fail_at_line(c, c->line, "expected fields of at most 1 MiB, got a longer field; a closing quote may be missing", err);
	if (n == GT_CSV_MAX_FIELDS)
		return fail_at_line(c, c->line, "expected at most 65536 fields in a record, got more", err);
	GT_GROW(c->field, c->field_cap, n + 1, err);
	GT_GROW(c->len, c->len_cap, n + 1, err);
	return GT_OK;
}

/* Appends a field whose bytes begin at `begin`. */
static inline enum gt_code add_field(struct gt_csv *c, int *n, char *begin, size_t len, uint32_t mark, struct gt_err *err)
{
	if (len > GT_CSV_MAX_FIELD || *n >= c->len_cap || *n == GT_CSV_MAX_FIELDS)
		GT_TRY(make_room(c, *n, len, err));
	c->field[*n] = begin;
	c->len[(*n)++] = (uint32_t)len | mark;
	return GT_OK;
}

/* Handles a NUL byte at p: the NUL after the window ends the scan; a NUL in the file is an error. The field begins at `begin`. */
static enum scan classify_nul(struct gt_csv *c, const char *p, const char *begin, int64_t line, struct gt_err *err)
{
	if (p < c->end)
		return fail_at_line(c, line, "expected text, got a NUL byte", err), SCAN_WRONG;
	if (p - begin > 2 * GT_CSV_MAX_FIELD)
		return fail_at_line(c, line, "expected fields of at most 1 MiB, got a longer field; a closing quote may be missing", err),
		                    SCAN_WRONG;
	return c->whole ? SCAN_END : SCAN_MORE;
}

/* Returns the first byte at or after p that can end a field. The NUL after the window always stops the search. */
static inline char *find_special(const struct gt_csv *c, char *p)
{
#ifdef __SSE2__
	const __m128i delimiter = _mm_set1_epi8(c->delimiter), lf = _mm_set1_epi8('\n'), cr = _mm_set1_epi8('\r'), quote = _mm_set1_epi8('"');
	for (;; p += PAD) { /* reads at most PAD - 1 bytes beyond the NUL, which are the padding of the window */
		__m128i v = _mm_loadu_si128((const __m128i *)p);
		__m128i line = _mm_or_si128(_mm_cmpeq_epi8(v, lf), _mm_cmpeq_epi8(v, cr));
		__m128i field = _mm_or_si128(_mm_cmpeq_epi8(v, delimiter), _mm_cmpeq_epi8(v, quote));
		__m128i any = _mm_or_si128(_mm_or_si128(line, field), _mm_cmpeq_epi8(v, _mm_setzero_si128()));
		unsigned mask = (unsigned)_mm_movemask_epi8(any);
		if (mask)
			return p + __builtin_ctz(mask);
	}
#else
	while (*p && *p != c->delimiter && *p != '\n' && *p != '\r' && *p != '"')
		p++;
	return p;
#endif
}

/* Scans a quoted field. *at points to the byte after the opening quote, and is moved to the byte after the closing quote. */
static enum scan scan_quoted(struct gt_csv *c, char **at, int64_t *line, int *n, struct gt_err *err)
{
	char *begin = *at, *p = begin;
	int64_t first = *line;
	size_t doubled = 0;
	for (;; p++) {
		p = find_special(c, p);
		if (*p == '\n') {
			++*line;
		} else if (!*p) {
			enum scan s = classify_nul(c, p, begin, p < c->end ? *line : first, err);
			if (s == SCAN_END)
				return fail_at_line(c, first, "a quoted field that begins here has no closing quote", err), SCAN_WRONG;
			return s;
		} else if (*p == '"') {
			if (p[1] == '"') {
				doubled++;
				p++;
			} else if (p + 1 == c->end && !c->whole) {
				return SCAN_MORE;
			} else {
				break;
			}
		}
	}
	*at = p + 1;
	size_t len = (size_t)(p - begin);
	if (len - doubled > GT_CSV_MAX_FIELD) /* The scan counted both quotes of a doubled quote, so the limit is checked again without them. */
		return fail_at_line(c, first, "expected fields of at most 1 MiB, got a longer field; a closing quote may be missing", err),
		       SCAN_WRONG;
	return add_field(c, n, begin, len - doubled, doubled ? DOUBLED : 0, err) == GT_OK ? SCAN_END : SCAN_WRONG;
}

/* Scans the fields of the record at *at, and moves *at to the next record. */
static enum scan scan_record(struct gt_csv *c, char **at, int64_t *line, int *n, struct gt_err *err)
{
	for (char *p = *at;; p++) {
		bool quoted = *p == '"';
		if (quoted) {
			p++;
			enum scan s = scan_quoted(c, &p, line, n, err);
			if (s != SCAN_END)
				return s;
			if (*p && *p != c->delimiter && *p != '\n' && *p != '\r')
				return fail_at_line(c, *line, "expected a delimiter or the end of the line after a closing quote", err), SCAN_WRONG;
		} else {
			char *begin = p;
			p = find_special(c, p);
			if (*p == '"' && *p != c->delimiter) {
				fail_at_line(c, *line, "expected quotes only around a whole field; put the field in quotes and double its quotes", err);
				return SCAN_WRONG;
			}
			if (!*p) {
				enum scan s = classify_nul(c, p, begin, *line, err);
				if (s != SCAN_END)
					return s;
			}
			if (add_field(c, n, begin, (size_t)(p - begin), 0, err) != GT_OK)
				return SCAN_WRONG;
		}
		if (*p == c->delimiter)
			continue;
		if (!*p) { /* NUL: end of the file, or end of the window directly after a closing quote */
			enum scan s = classify_nul(c, p, p, *line, err);
			*at = p;
			return s;
		}
		if (*p == '\r') {
			if (p + 1 == c->end && !c->whole)
				return SCAN_MORE;
			if (p + 1 < c->end && p[1] != '\n')
				return fail_at_line(c, *line, "expected the end of the line after a carriage return", err), SCAN_WRONG;
			p++;
		}
		if (p < c->end)
			p++;
		++*line;
		*at = p;
		return SCAN_END;
	}
}

/* Removes the first of each pair of quotes. len: bytes of the result. */
static void unescape_quotes(char *field, size_t len)
{
	const char *from = field;
	for (size_t i = 0; i < len; i++) {
		from += *from == '"';
		field[i] = *from++;
	}
}

enum gt_code gt_csv_next(struct gt_csv *c, struct gt_csv_record *out, struct gt_err *err)
{
	struct gt_err why; /* receives the reason of a failure even if `err` is NULL */
	*out = (struct gt_csv_record){0};
	if (c->numpy)
		return gt_numpy_rows_next(c->numpy, out, err);
	if (c->json)
		return next_object(c, out, err);
	GT_TRY(skip_empty_lines(c, err));
	for (;;) {
		char *at = c->at;
		int64_t line = c->line;
		int n = 0;
		if (at == c->end)
			return GT_OK;
		enum scan s = scan_record(c, &at, &line, &n, &why);
		if (s == SCAN_WRONG)
			return gt_fail_copy(err, &why);
		if (s == SCAN_MORE) {
			GT_TRY(refill_window(c, err));
			continue;
		}
		for (int i = 0; i < n; i++) {
			if (c->len[i] & DOUBLED)
				unescape_quotes(c->field[i], c->len[i] &= ~DOUBLED);
			c->field[i][c->len[i]] = 0;
		}
		*out = (struct gt_csv_record){.n = n, .field = c->field, .len = c->len, .line = c->line};
		c->at = at;
		c->line = line;
		return GT_OK;
	}
}
