#include "text/text_utf8.h"
#include <string.h>
#include <stdio.h>
#include <utf8proc.h>

/* Characters of the bytes 0x80 ... 0x9f in Windows-1252; 0: undefined. All other bytes are as in Latin-1.
 * https://www.unicode.org/Public/MAPPINGS/VENDORS/MICSFT/WINDOWS/CP1252.TXT */
const uint16_t gt_windows_1252[32] = {0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
                                      0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
                                      0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

/* Reports that byte i of a text is not UTF-8. */
static enum gt_code fail_not_utf8(const uint8_t *p, size_t n, size_t i, struct gt_err *err)
{
	if (n >= 2 && (!memcmp(p, "\xff\xfe", 2) || !memcmp(p, "\xfe\xff", 2)))
		return gt_fail(err, GT_EDATA, "expected UTF-8, got UTF-16; convert the text, for example with iconv");
	if (n >= 2 && !memcmp(p, "\x1f\x8b", 2))
		return gt_fail(err, GT_EDATA, "expected UTF-8, got a gzip file; decompress it");
	return gt_fail(err, GT_EDATA,
	               "byte %zu: expected UTF-8, got 0x%02x, which is no part of a valid character; convert the text, for example with iconv",
	               i, p[i]);
}

enum gt_code gt_utf8_check(const char *text, size_t n, struct gt_err *err)
{
	const uint8_t *p = (const uint8_t *)text;
	for (size_t i = 0; i < n;) {
		uint64_t four[4];
		for (; n - i >= sizeof four; i += sizeof four) {
			memcpy(four, p + i, sizeof four);
			if ((four[0] | four[1] | four[2] | four[3]) & 0x8080808080808080u)
				break;
		}
		while (i < n && p[i] < 0x80)
			i++;
		while (i < n && p[i] >= 0x80) {
			utf8proc_int32_t c;
			utf8proc_ssize_t bytes = utf8proc_iterate(p + i, (utf8proc_ssize_t)(n - i < 4 ? n - i : 4), &c);
			if (bytes <= 0)
				return fail_not_utf8(p, n, i, err);
			i += (size_t)bytes;
		}
	}
	return GT_OK;
}

size_t gt_utf8_put(int32_t c, char *to)
{
	return (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)to);
}

const char *gt_text_library(char *buf, size_t size)
{
	snprintf(buf, size, "utf8proc %s", utf8proc_version());
	return buf;
}
