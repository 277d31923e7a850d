/* Strings of a config: UTF-8 text without control characters. */
#ifndef GT_CONF_CONF_STRING_H
#define GT_CONF_CONF_STRING_H

#include <stddef.h>
#include <stdio.h>

/* Returns the fault of a string of n bytes: "a control character" or "bytes that are not UTF-8"; NULL: the string is valid. */
const char *gt_string_fault(const char *s, size_t n);

/* Writes a valid string in the syntax of a config: between quotes, with backslashes before quotes and backslashes. */
void gt_string_write(FILE *f, const char *s);

#endif
