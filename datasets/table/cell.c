#include "table/cell.h"
#include "base/json.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* 10^0 ... 10^22 are doubles, without rounding. */
static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Computes the double nearest to digits * 10^exponent. Returns false if it cannot tell: the caller asks strtod, which takes ten times as
 * long.
 *
 * A product or quotient of two numbers without rounding errors is rounded correctly (W. D. Clinger, How to read floating point numbers
 * accurately, PLDI 1990). With 64 bits, the second rounding to 53 bits is the right one unless the first result is next to the middle
 * between two doubles. */
static bool scale(uint64_t digits, int exponent, double *out)
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
	memcpy(&bits, &v, sizeof bits); /* the first 8 bytes are the significand */
	unsigned rest = bits & 0x7ff;
	*out = (double)v;
	return rest < 0x3ff || rest > 0x401;
#else
	return false;
#endif
}

/* Appends the decimal digits at p to *digits, which may overflow. Returns the first byte that is none; the text ends with a NUL. */
static inline const char *read_digits(const char *p, uint64_t *digits)
{
	for (unsigned d; (d = (unsigned)(uint8_t)*p - '0') < 10; p++)
		*digits = *digits * 10 + d;
	return p;
}

enum gt_cell gt_cell_number(const char *text, size_t len, double *out)
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
	bool plain = n <= 19; /* the digits have not overflowed */
	if (!plain || !scale(digits, exponent, out))
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
	bool three = p - from >= 1 && p - from <= 3; /* all groups so far can be groups of three digits */
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
	if (*p == (between == ',' ? '.' : ',')) { /* after groups of three digits, the other character begins the fraction */
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
