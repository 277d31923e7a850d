#include "table/encoding.h"
#include "base/arena.h"
#include "text/text_utf8.h"
#include <stdlib.h>
#include <string.h>

bool gt_encoding_has_windows(uint8_t byte)
{
	return byte < 0x80 || byte >= 0xa0 || gt_windows_1252[byte - 0x80];
}

bool gt_encoding_is_utf16(const void *text, size_t n)
{
	return n >= 2 && (!memcmp(text, "\xff\xfe", 2) || !memcmp(text, "\xfe\xff", 2));
}

/* Appends a character at p, which has room for 4 bytes. */
static char *put_utf8(char *p, uint32_t c)
{
	if (c >= 0x80)
		return p + gt_utf8_put((int32_t)c, p);
	*p = (char)c;
	return p + 1;
}

static enum gt_code from_bytes(enum gt_encoding from, const uint8_t *s, size_t n, const char *path, char **at, struct gt_err *err)
{
	int64_t line = 1;
	for (size_t i = 0; i < n; i++) {
		bool special = from == GT_WINDOWS_1252 && s[i] >= 0x80 && s[i] < 0xa0;
		uint32_t c = special ? gt_windows_1252[s[i] - 0x80] : s[i];
		if (special && !c)
			return gt_fail(err, GT_EDATA, "%.400s:%lld: expected Windows-1252, got the invalid byte 0x%02x", path, (long long)line, s[i]);
		line += c == '\n';
		*at = put_utf8(*at, c);
	}
	return GT_OK;
}

static enum gt_code from_utf16(const uint8_t *s, size_t n, const char *path, char **at, struct gt_err *err)
{
	bool big = *s == 0xfe;
	int64_t line = 1;
	uint32_t high = 0; /* first half of a surrogate pair; 0: none is pending */
	size_t i = 2;
	if (n % 2)
		return gt_fail(err, GT_EDATA, "%.400s: expected UTF-16, got an odd number of bytes", path);
	for (; i < n; i += 2) {
		uint32_t c = big ? (uint32_t)s[i] << 8 | s[i + 1] : (uint32_t)s[i + 1] << 8 | s[i];
		bool low = c >= 0xdc00 && c < 0xe000;
		if (low != (high != 0))
			break;
		if (c >= 0xd800 && c < 0xdc00) {
			high = c;
			continue;
		}
		*at = put_utf8(*at, low ? 0x10000 + ((high - 0xd800) << 10) + (c - 0xdc00) : c);
		high = 0;
		line += c == '\n';
	}
	return i < n || high ? gt_fail(err, GT_EDATA, "%.400s:%lld: expected UTF-16, got half a surrogate pair", path, (long long)line) : GT_OK;
}

enum gt_code gt_encoding_convert(enum gt_encoding from, const void *text, size_t n, size_t pad, const char *path, char **out, size_t *len,
                                 struct gt_err *err)
{
	bool utf16 = gt_encoding_is_utf16(text, n);
	size_t most = utf16 ? n / 2 * 3 : from == GT_LATIN_1 ? 2 * n : 3 * n; /* a surrogate pair (4 bytes) becomes 4 bytes */
	*out = malloc(most + pad + 1);
	if (!*out)
		return gt_fail_memory(err, most + pad + 1);
	char *at = *out;
	enum gt_code code = utf16 ? from_utf16(text, n, path, &at, err) : from_bytes(from, text, n, path, &at, err);
	if (code != GT_OK) {
		free(*out);
		*out = NULL;
		return code;
	}
	*len = (size_t)(at - *out);
	char *fit = realloc(*out, *len + pad + 1);
	*out = fit ? fit : *out;
	return GT_OK;
}
