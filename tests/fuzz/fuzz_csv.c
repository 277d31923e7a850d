/* A CSV file, or JSON Lines. Fields are text without NUL bytes; written out with quotes and read again, every record is the same. Read a
 * few bytes at a time, it gives the same records and the same error. */
#include "csv.h"
#include "fuzz_file.h"
#include <string.h>

/* Appends a field in quotes to text, which has room. */
static char *put_quoted(char *to, const char *field)
{
	*to++ = '"';
	for (; *field; *to++ = *field++)
		if (*field == '"')
			*to++ = '"';
	*to++ = '"';
	return to;
}

/* Compares a reading with a window of few bytes to one of the whole file. */
static void compare_windows(const char *path, size_t window)
{
	struct gt_csv *a, *b;
	struct gt_csv_record r, q;
	struct gt_err e = {0}, f = {0};
	enum gt_code rc, rd;
	FUZZ_ASSERT((rc = gt_csv_open(path, ',', GT_UTF_8, 0, &a, &e)) == (rd = gt_csv_open(path, ',', GT_UTF_8, window, &b, &f)));
	if (rc != GT_OK)
		return;
	do {
		rc = gt_csv_next(a, &r, &e);
		rd = gt_csv_next(b, &q, &f);
		FUZZ_ASSERT(rc == rd && (rc == GT_OK || !strcmp(e.msg, f.msg)) && r.n == q.n && r.line == q.line);
		for (int i = 0; i < r.n; i++) {
			FUZZ_ASSERT(r.len[i] == q.len[i] && !strcmp(r.field[i], q.field[i]));
			FUZZ_ASSERT(strlen(r.field[i]) == r.len[i]);
		}
	} while (rc == GT_OK && r.n);
	gt_csv_close(a);
	gt_csv_close(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file, again;
	struct gt_csv *csv, *second;
	struct gt_csv_record r, q;
	struct gt_err e = {0};
	if (!size || (size > 1 && data[0] == 0x1f && data[1] == 0x8b)) /* gzip has a target of its own */
		return 0;
	compare_windows(fuzz_put(&file, data, size), size % 7 + 1);
	enum gt_code rc = gt_csv_open(file.path, ',', GT_UTF_8, 0, &csv, &e);
	if (rc != GT_OK) { /* UTF-16 */
		FUZZ_ASSERT(rc == GT_EDATA && e.msg[0]);
		return 0;
	}
	int64_t line = -1;
	while ((rc = gt_csv_next(csv, &r, &e)) == GT_OK && r.n) {
		FUZZ_ASSERT(r.line > line);
		line = r.names ? r.line - 1 : r.line; /* the names of JSON Lines are in the line of the first object */
		size_t room = 1;
		for (int i = 0; i < r.n; i++)
			room += 2 * strlen(r.field[i]) + 3;
		char *text = malloc(room), *to = text;
		for (int i = 0; i < r.n; i++) {
			to = put_quoted(to, r.field[i]);
			*to++ = i + 1 < r.n ? ',' : '\n';
		}
		FUZZ_ASSERT(gt_csv_open(fuzz_put(&again, (const uint8_t *)text, (size_t)(to - text)), ',', GT_UTF_8, 0, &second, &e) == GT_OK);
		FUZZ_ASSERT(gt_csv_next(second, &q, &e) == GT_OK && q.n == r.n);
		for (int i = 0; i < r.n; i++)
			FUZZ_ASSERT(!strcmp(q.field[i], r.field[i]));
		gt_csv_close(second);
		free(text);
	}
	FUZZ_ASSERT(rc == GT_OK || (rc == GT_EDATA && e.msg[0]));
	gt_csv_close(csv);
	return 0;
}
