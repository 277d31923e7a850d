/* Sizes of memory for people. */
#ifndef GT_BASE_BYTES_H
#define GT_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>

#define GT_BYTES_TEXT 32
/* "2.55 MiB": three significant digits and a unit, into buf (GT_BYTES_TEXT bytes suffice). Returns buf. */
const char *gt_bytes_text(char *buf, size_t size, uint64_t n);

#endif
