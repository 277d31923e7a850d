#include "base/bytes.h"
#include <stdio.h>

const char *gt_bytes_text(char *buf, size_t size, uint64_t n)
{
	static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)n;
	int u = 0;
	for (; v >= 1023.5 && u < 6; u++) /* 1023.5 would print as 1024 */
		v /= 1024;
	snprintf(buf, size, "%.*f %s", !u ? 0 : v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit[u]);
	return buf;
}
