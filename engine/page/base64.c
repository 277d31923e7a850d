#include "page/page.h"

void gt_base64_put(FILE *f, const uint8_t *data, size_t n)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		unsigned v = (unsigned)data[i] << 16 | (i + 1 < n ? (unsigned)data[i + 1] << 8 : 0) | (i + 2 < n ? data[i + 2] : 0);
		fputc(digit[v >> 18], f);
		fputc(digit[v >> 12 & 63], f);
		fputc(i + 1 < n ? digit[v >> 6 & 63] : '=', f);
		fputc(i + 2 < n ? digit[v & 63] : '=', f);
	}
}
