#include "base/err.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum gt_code gt_fail(struct gt_err *err, enum gt_code code, const char *fmt, ...)
{
	if (err) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof err->msg, fmt, ap);
		va_end(ap);
		err->code = code;
		err->line = err->subject = 0;
	}
	return code;
}

enum gt_code gt_fail_prefix(struct gt_err *err, const char *fmt, ...)
{
	char head[sizeof err->msg], tail[sizeof err->msg];
	va_list ap;
	if (!err)
		return GT_EFAIL;
	va_start(ap, fmt);
	vsnprintf(head, sizeof head, fmt, ap);
	va_end(ap);
	memcpy(tail, err->msg, sizeof tail);
	return gt_fail(err, err->code, "%s: %s", head, tail); /* a message that is too long is truncated */
}

enum gt_code gt_errno_code(int number, enum gt_code otherwise)
{
	return number == EMFILE || number == ENFILE || number == ENOMEM ? GT_EFAIL : otherwise;
}

const char *gt_code_text(enum gt_code code)
{
	switch (code) {
#define GT_X(name, value, text) \
	case name:                  \
		return text;
		GT_CODES(GT_X)
#undef GT_X
	}
	return (int)code > 128 ? "ended by a signal" : "unknown error";
}

int gt_word_distance(const char *a, const char *b)
{
	int d[3][64];
	size_t na = strlen(a), nb = strlen(b);
	if (na > 63 || nb > 63)
		return 1000;
	for (size_t j = 0; j <= nb; j++)
		d[0][j] = (int)j;
	for (size_t i = 1; i <= na; i++) {
		int *row = d[i % 3], *up = d[(i + 2) % 3], *up2 = d[(i + 1) % 3];
		row[0] = (int)i;
		for (size_t j = 1; j <= nb; j++) {
			int best = up[j - 1] + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
			best = up[j] + 1 < best ? up[j] + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < best)
				best = up2[j - 2] + 1;
			row[j] = best;
		}
	}
	return d[na % 3][nb];
}
