#include "base/shell_word.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *gt_shell_word(const char *s, char *buf, size_t size)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	bool quote = !*s || s[strspn(s, safe)];
	size_t n = 0;
	if (quote)
		buf[n++] = '\'';
	for (; *s && n + 6 < size; s++)
		n += (size_t)snprintf(buf + n, size - n, *s == '\'' && quote ? "'\\''" : "%c", *s);
	if (quote)
		buf[n++] = '\'';
	buf[n] = 0;
	return buf;
}
