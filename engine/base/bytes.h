/* Sizes of memory as text for people. */
#ifndef GT_BASE_BYTES_H
#define GT_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GT_BYTES_TEXT 32
/* Writes n bytes as "2.55 MiB" into buf, with three significant digits; GT_BYTES_TEXT bytes suffice. Returns buf. */
static inline const char *gt_bytes_text(char *buf, size_t size, uint64_t n)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)n;
	int u = 0;
	for (; v >= 1023.5 && u < 6; u++) /* 1023.5 would print as 1024 */
		v /= 1024;
	snprintf(buf, size, "%.*f %s", !u ? 0 : v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit[u]);
	return buf;
}

#endif
