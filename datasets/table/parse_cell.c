#include "table/parse_cell.h"
#include "base/json.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* 10^0 ... 10^22 are exact as doubles. */
static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Computes the double nearest to digits * 10^exponent. Returns false if the result may be wrong: the caller then uses strtod, which takes
 * ten times as long.
 *
 * A product or quotient of two exact numbers is rounded correctly (W. D. Clinger, How to read floating point numbers accurately, PLDI
 * 1990). With 64 bits, the second rounding to 53 bits is correct unless the first result is next to the midpoint between two doubles. */
static bool scale_digits(uint64_t digits, int exponent, double *out)
{
	if (exponent < -22 || exponent > 22)
		return false;
	if (digits < (uint64_t)1 << 53) {
		*out = exponent < 0 ? (double)digits / power[-exponent] : (double)digits * power[exponent];
		return true;
	}
#if LDBL_MANT_DIG == 64 && defined(__x86_64__)
	long double v = exponent < 0 ? (long double)digits / power[-exponent] : (long double)digits * power[exponent];
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits); /* the first 8 bytes of v are the significand */
	unsigned rest = bits & 0x7ff;
	*out = (double)v;
	return rest < 0x3ff || rest > 0x401;
#else
	return false;
#endif
}

/* Appends the decimal digits at p to *digits, which may overflow. Returns a pointer to the first non-digit; the text ends with a NUL. */
static inline const char *read_digits(const char *p, uint64_t *digits)
{
	for (unsigned d; (d = (unsigned)(uint8_t)*p - '0') < 10; p++)
		*digits = *digits * 10 + d;
	return p;
}

enum gt_number_kind gt_cell_number(const char *text, size_t len, double *out)
{
	const char *p = text, *end = text + len;
	bool negative = *p == '-';
	p += *p == '-' || *p == '+';
	const char *first = p;
	uint64_t digits = 0;
	int exponent = 0;
	p = read_digits(p, &digits);
	int64_t n = p - first; /* number of digits */
	bool code = n > 1 && *first == '0';
	if (*p == '.') {
		const char *fraction = p + 1;
		p = read_digits(fraction, &digits);
		exponent = -(int)(p - fraction);
		n -= exponent;
		code = false;
	}
	if (!n)
		return GT_CELL_WORD;
	if (*p == 'e' || *p == 'E') {
		int e = 0;
		bool down = p[1] == '-';
		p += p[1] == '-' || p[1] == '+' ? 2 : 1;
		const char *from = p;
		for (; *p >= '0' && *p <= '9'; p++)
			e = e < 100000 ? e * 10 + (*p - '0') : e;
		if (p == from)
			return GT_CELL_WORD;
		exponent += down ? -e : e;
		code = false;
	}
	if (p < end)
		return GT_CELL_WORD;
	bool plain = n <= 19; /* up to 19 digits fit into 64 bits without overflow */
	if (!plain || !scale_digits(digits, exponent, out))
		*out = strtod(text, NULL);
	else if (negative)
		*out = -*out;
	return !(fabs(*out) <= (double)FLT_MAX) ? GT_CELL_RANGE : code ? GT_CELL_CODE : GT_CELL_NUMBER;
}

bool gt_cell_has_commas(const char *text, size_t len)
{
	uint64_t ignored = 0;
	const char *p = text + (*text == '-' || *text == '+'), *end = text + len, *from = p;
	p = read_digits(p, &ignored);
	bool three = p - from >= 1 && p - from <= 3; /* each group of digits so far has a length that thousands separators allow */
	char between = *p;
	int64_t groups = 0;
	if (p == from || (between != ',' && between != '.'))
		return false;
	for (; *p == between; groups++) {
		from = ++p;
		p = read_digits(p, &ignored);
		if (p == from || (groups && p - from != 3))
			return false;
		three &= p - from == 3;
	}
	if (groups > 1 && !three)
		return false;
	if (*p == (between == ',' ? '.' : ',')) { /* after groups of three digits: the decimal point, which is the other character */
		if (!three)
			return false;
		from = ++p;
		p = read_digits(p, &ignored);
		return p == end && p > from;
	}
	return between == ',' && p == end;
}

bool gt_cell_is_infinite(const char *text, size_t len)
{
	size_t sign = *text == '-' || *text == '+';
	return (len - sign == 3 && !strcasecmp(text + sign, "inf")) || (len - sign == 8 && !strcasecmp(text + sign, "infinity"));
}

/* Returns the length in bytes of a thousands separator at p; 0: no separator. */
static size_t separator_length(char thousands, const char *p)
{
	if (!thousands)
		return 0;
	if (*p == thousands)
		return 1;
	if (thousands == '\'')
		return strncmp(p, "\xe2\x80\x99", 3) ? 0 : 3; /* U+2019 */
	if (thousands == ' ' && !strncmp(p, "\xc2\xa0", 2)) /* U+00A0 */
		return 2;
	if (thousands == ' ') /* U+202F, U+2009 */
		return !strncmp(p, "\xe2\x80\xaf", 3) || !strncmp(p, "\xe2\x80\x89", 3) ? 3 : 0;
	return 0;
}

/* Rewrites a number so that gt_cell_number can read it. Returns its length in bytes; 0: the text is not a number in this notation. */
static size_t write_plain_number(const struct gt_notation *f, const char *text, size_t len, char *to, size_t size)
{
	const char *p = text, *end = text + len;
	char decimal = f->decimal ? f->decimal : '.';
	size_t n = 0, step;
	int digits = 0; /* number of digits since the last separator */
	bool grouped = false;
	if (len >= size)
		return 0;
	if (*p == '-' || *p == '+')
		to[n++] = *p++;
	for (;; p++) {
		if (*p >= '0' && *p <= '9') {
			digits++;
			to[n++] = *p;
		} else if ((step = separator_length(f->thousands, p)) > 0) {
			if (grouped ? digits != 3 : digits < 1 || digits > 3)
				return 0;
			grouped = true;
			digits = 0;
			p += step - 1;
		} else {
			break;
		}
	}
	if (grouped && digits != 3)
		return 0;
	if (*p == decimal) {
		to[n++] = '.';
		p++;
	} else if (*p && *p != 'e' && *p != 'E') {
		return 0;
	}
	for (; p < end; p++) {
		if (!strchr("0123456789eE+-", *p)) /* checks only which characters occur; gt_cell_number checks their order */
			return 0;
		to[n++] = *p;
	}
	to[n] = 0;
	return n;
}

enum gt_number_kind gt_cell_parse(const struct gt_notation *f, const char *text, size_t len, double *out)
{
	char buf[128];
	if (f->decimal != ',' && !f->thousands)
		return gt_cell_number(text, len, out);
	size_t n = write_plain_number(f, text, len, buf, sizeof buf);
	return n ? gt_cell_number(buf, n, out) : GT_CELL_WORD;
}

bool gt_cell_almost(const struct gt_notation *f, const char *text, size_t len)
{
	double v;
	bool plain = f->decimal != ',' && !f->thousands;
	return gt_cell_is_infinite(text, len) || gt_cell_has_commas(text, len) || (!plain && gt_cell_number(text, len, &v) != GT_CELL_WORD);
}

const char *gt_cell_shown(const char *text, char buf[GT_CELL_SHOWN])
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text), n = 0;
	while (left) {
		int k = gt_utf8_length(s, left < 4 ? left : 4);
		if (n + (size_t)(k ? k : 1) > 40) {
			strcpy(buf + n, "...");
			return buf;
		}
		if (!k || *s < 0x20 || *s == 0x7f) {
			buf[n++] = '?';
			k = 1;
		} else {
			memcpy(buf + n, s, (size_t)k);
			n += (size_t)k;
		}
		s += k;
		left -= (size_t)k;
	}
	buf[n] = 0;
	return buf;
}
