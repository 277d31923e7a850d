#include "conf/conf_string.h"
#include <string.h>

const char *gt_string_fault(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + n;
	while (p < end) {
		unsigned c = *p++;
		if (c < 0x20 || c == 0x7F)
			return "a control character";
		int more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : (c & 0xF0) == 0xE0 ? 2 : c >= 0xF0 && c < 0xF5 ? 3 : -1;
		if (more < 0 || end - p < more)
			return "bytes that are not UTF-8";
		/* the second byte shows overlong forms, surrogates, and values above U+10FFFF */
		if ((c == 0xE0 && p[0] < 0xA0) || (c == 0xED && p[0] >= 0xA0) || (c == 0xF0 && p[0] < 0x90) || (c == 0xF4 && p[0] >= 0x90))
			return "bytes that are not UTF-8";
		for (; more; more--)
			if ((*p++ & 0xC0) != 0x80)
				return "bytes that are not UTF-8";
	}
	return NULL;
}

void gt_string_write(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		fputc(*s, f);
	}
	fputc('"', f);
}
