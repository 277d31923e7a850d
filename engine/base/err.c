#include "base/err.h"
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
	return gt_fail(err, err->code, "%s: %s", head, tail); /* gt_fail truncates a message that is too long */
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
