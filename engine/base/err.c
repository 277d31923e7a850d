#include "base/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Fills err, and returns the length of the message. */
static size_t fill_error(struct gt_err *err, enum gt_code code, int sys_errno, const char *fmt, va_list ap)
{
	int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	err->code = code;
	err->sys_errno = sys_errno;
	err->line = err->subject = 0;
	return n < 0 ? 0 : (size_t)n < sizeof err->msg ? (size_t)n : sizeof err->msg - 1;
}

/* Writes text after the first n bytes of the message, as far as there is room. */
static void append_text(struct gt_err *err, size_t n, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->msg + n, sizeof err->msg - n, fmt, ap);
	va_end(ap);
}

enum gt_code gt_fail(struct gt_err *err, enum gt_code code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (err)
		fill_error(err, code, 0, fmt, ap);
	va_end(ap);
	return code;
}

enum gt_code gt_fail_errno(struct gt_err *err, enum gt_code code, int sys_errno, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (err)
		append_text(err, fill_error(err, code, sys_errno, fmt, ap), ": %s", strerror(sys_errno));
	va_end(ap);
	return code;
}

enum gt_code gt_fail_prefix(struct gt_err *err, const char *fmt, ...)
{
	va_list ap;
	if (!err)
		return GT_EFAIL;
	struct gt_err said = *err;
	va_start(ap, fmt);
	append_text(err, fill_error(err, said.code, said.sys_errno, fmt, ap), ": %s", said.msg);
	va_end(ap);
	return err->code;
}

enum gt_code gt_fail_suffix(struct gt_err *err, const char *fmt, ...)
{
	char text[sizeof err->msg / 2];
	va_list ap;
	if (!err)
		return GT_EFAIL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	append_text(err, strnlen(err->msg, sizeof err->msg - strlen(text) - sizeof "; "), "; %s", text);
	return err->code;
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
