/* UTF-8 in texts of a dataset: checks whole texts, and decodes checked text to code points. Unicode's properties come from libutf8proc,
 * which is included in this folder only. The library determines the version of Unicode: 15 in Debian 12. */
#ifndef GT_TEXT_UTF8_H
#define GT_TEXT_UTF8_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

/* Returns GT_EDATA if the n bytes at text are not UTF-8: an invalid first byte, a truncated or overlong character, a surrogate, or a
 * character above U+10FFFF. NUL bytes and noncharacters are valid. The error names the byte offset from 0, or says UTF-16 or gzip if the
 * text begins like such a file. The caller puts the file name before the message. */
enum gt_code gt_utf8_check(const char *text, size_t n, struct gt_err *err);

extern const uint16_t gt_windows_1252[32]; /* characters of the bytes 0x80 ... 0x9f in Windows-1252; 0: undefined */

/* Returns the code point at p, which must be the first byte of a character in valid UTF-8, and sets *bytes to its length, 1 to 4. */
static inline int32_t gt_utf8_get(const char *p, int *bytes)
{
	const uint8_t *u = (const uint8_t *)p;
	if (u[0] < 0x80) {
		*bytes = 1;
		return u[0];
	}
	if (u[0] < 0xe0) {
		*bytes = 2;
		return (u[0] & 0x1f) << 6 | (u[1] & 0x3f);
	}
	if (u[0] < 0xf0) {
		*bytes = 3;
		return (u[0] & 0xf) << 12 | (u[1] & 0x3f) << 6 | (u[2] & 0x3f);
	}
	*bytes = 4;
	return (u[0] & 7) << 18 | (u[1] & 0x3f) << 12 | (u[2] & 0x3f) << 6 | (u[3] & 0x3f);
}

size_t gt_utf8_put(int32_t c, char *to); /* writes c as UTF-8 and returns its length in bytes */

/* Returns whether c is in one of the eight ideograph blocks that BERT's tokenizers surround with spaces: CJK Unified Ideographs, their
 * extensions A to E, and two blocks of compatibility ideographs. */
static inline int gt_is_ideograph(int32_t c)
{
	return c >= 0x3400 && ((c >= 0x4e00 && c <= 0x9fff) || c <= 0x4dbf || (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x2a6df) ||
	                       (c >= 0x2a700 && c <= 0x2ceaf) || (c >= 0x2f800 && c <= 0x2fa1f));
}

/* Returns "utf8proc" and its version, for `gtrain --version`. */
const char *gt_text_library(char *buf, size_t size);

#endif
