/* Strings of a config: UTF-8 text without control characters. */
#ifndef GT_CONF_CONF_STRING_H
#define GT_CONF_CONF_STRING_H

#include <stddef.h>
#include <stdio.h>

/* Returns what a config string must not have, if these n bytes have it: "a control character" or "bytes that are not UTF-8"; else NULL. */
const char *gt_string_fault(const char *s, size_t n);

/* Writes a string without such a fault as a config has it: between quotes, with backslashes before quotes and backslashes. */
void gt_string_write(FILE *f, const char *s);

#endif
