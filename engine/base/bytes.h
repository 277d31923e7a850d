/* Memory sizes as text, and little-endian integers in network messages and files. */
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

/* gt_put_u32 writes v as a little-endian u32, and gt_get_u32 reads one. */
static inline void gt_put_u32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(v >> 8 * i);
}

static inline uint32_t gt_get_u32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Returns the little-endian unsigned integer of n bytes (0 ... 8) at p. */
static inline uint64_t gt_get_le(const unsigned char *p, size_t n)
{
	uint64_t v = 0;
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

#endif
