/* A CSV file. Fields are text without NUL bytes; written out with quotes and read again, every record is the same. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file, again;
	struct gt_csv *csv, *second;
	struct gt_csv_record r, q;
	struct gt_err e = {0};
	if (!size || (size > 1 && data[0] == 0x1f && data[1] == 0x8b)) /* gzip has a target of its own */
		return 0;
	FUZZ_ASSERT(gt_csv_open(fuzz_put(&file, data, size), ',', &csv, &e) == GT_OK);
	enum gt_code rc;
	int64_t line = 0;
	while ((rc = gt_csv_next(csv, &r, &e)) == GT_OK && r.n) {
		FUZZ_ASSERT(r.line > line);
		line = r.line;
		size_t room = 1;
		for (int i = 0; i < r.n; i++)
			room += 2 * strlen(r.field[i]) + 3;
		char *text = malloc(room), *to = text;
		for (int i = 0; i < r.n; i++) {
			to = put_quoted(to, r.field[i]);
			*to++ = i + 1 < r.n ? ',' : '\n';
		}
		FUZZ_ASSERT(gt_csv_open(fuzz_put(&again, (const uint8_t *)text, (size_t)(to - text)), ',', &second, &e) == GT_OK);
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
