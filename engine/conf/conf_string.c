#include "conf/conf_string.h"
#include "base/json.h"

const char *gt_string_fault(const char *s, size_t n)
{
	for (int len; n; s += len, n -= (size_t)len) {
		if ((unsigned char)*s < 0x20 || *s == 0x7F)
			return "a control character";
		if (!(len = gt_utf8_length((const unsigned char *)s, n)))
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
