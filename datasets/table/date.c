#include "table/date.h"
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

const char *const gt_date_order_names[] = {"auto", "ymd", "dmy", "mdy"};
const char *const gt_date_part_names[] = {"year", "month", "day", "weekday", "yearday", "month_start", "month_end", "days", "time"};

static int days_in_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month - 1] + (month == 2 && leap);
}

/* Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here, so that the leap day is the last day of
 * a year. */
static int64_t days_since_1970(int year, int month, int day)
{
	int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400; /* y >= 0 */
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Reads 1 to `most` digits. Returns their number. */
static int read_digits(const char **p, int most, int *out)
{
	int n = 0;
	*out = 0;
	for (; n < most && **p >= '0' && **p <= '9'; n++)
		*out = *out * 10 + (*(*p)++ - '0');
	return n;
}

/* Reads the time at p up to the end of the text, in seconds. */
static bool read_time(const char *p, const char *end, double *out)
{
	int hour, minute, second = 0;
	double fraction = 0, offset = 0;
	if (read_digits(&p, 2, &hour) < 1 || *p++ != ':' || read_digits(&p, 2, &minute) != 2)
		return false;
	if (*p == ':') {
		p++;
		if (read_digits(&p, 2, &second) != 2)
			return false;
		if (*p == '.' || *p == ',')
			for (double place = 0.1; *++p >= '0' && *p <= '9'; place /= 10)
				fraction += place * (*p - '0');
	}
	bool space = *p == ' ';
	if (!strncasecmp(p + space, "am", 2) || !strncasecmp(p + space, "pm", 2)) {
		if (hour < 1 || hour > 12)
			return false;
		hour = hour % 12 + (tolower((unsigned char)p[space]) == 'p' ? 12 : 0);
		p += space + 2;
	} else if (*p == 'Z') {
		p++;
	} else if (*p == '+' || *p == '-') {
		int h, m = 0, sign = *p++ == '-' ? -1 : 1;
		if (read_digits(&p, 2, &h) != 2 || h > 14)
			return false;
		p += *p == ':';
		if (p < end && (read_digits(&p, 2, &m) != 2 || m > 59))
			return false;
		offset = sign * (h * 3600 + m * 60);
	}
	*out = hour * 3600 + minute * 60 + second + fraction - offset;
	return p == end && hour < 24 && minute < 60 && second < 61;
}

/* The three integers of a date in their order in the text, and the time of day in seconds. */
struct fields {
	int v[3];
	bool year_first;
	char between;
	double time;
};

/* Reads the fields of a date. The text need not end with a NUL. */
static bool read_fields(const char *text, size_t len, struct fields *f)
{
	enum { SHORTEST = 8, LONGEST = 63 };
	char copy[LONGEST + 1];
	const char *p = copy;
	int n[3];
	if (len < SHORTEST || len > LONGEST)
		return false;
	const char *end = copy + len;
	memcpy(copy, text, len);
	copy[len] = 0;
	for (int i = 0; i < 3; i++) {
		n[i] = read_digits(&p, 4, &f->v[i]);
		if (i == 0)
			f->between = *p;
		if (!n[i] || (i < 2 && *p++ != f->between))
			return false;
	}
	f->year_first = n[0] == 4;
	f->time = 0;
	if ((f->between != '-' && f->between != '/' && f->between != '.') || n[1] > 2 || n[f->year_first ? 2 : 0] > 2 ||
	    n[f->year_first ? 0 : 2] != 4)
		return false;
	return p == end || ((*p == ' ' || *p == 'T') && read_time(p + 1, end, &f->time));
}

static bool date_to_seconds(const struct fields *f, enum gt_date_order order, double *out)
{
	int year = f->v[f->year_first ? 0 : 2], month = f->v[order == GT_DATE_MDY ? 0 : 1];
	int day = f->v[f->year_first ? 2 : order == GT_DATE_MDY ? 1 : 0];
	if ((order == GT_DATE_YMD) != f->year_first || (order == GT_DATE_MDY && f->between == '.'))
		return false;
	if (!year || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
		return false;
	*out = (double)days_since_1970(year, month, day) * 86400 + f->time;
	return true;
}

unsigned gt_date_orders(const char *text, size_t len)
{
	struct fields f;
	unsigned found = 0;
	double ignored;
	if (!read_fields(text, len, &f))
		return 0;
	for (int order = GT_DATE_YMD; order < GT_DATE_ORDERS; order++)
		found |= date_to_seconds(&f, (enum gt_date_order)order, &ignored) ? 1u << order : 0;
	return found;
}

bool gt_date_parse(const char *text, size_t len, enum gt_date_order order, double *out)
{
	struct fields f;
	return read_fields(text, len, &f) && date_to_seconds(&f, order, out);
}

void gt_date_parts(double seconds, double out[GT_DATE_PARTS])
{
	int64_t days = (int64_t)floor(seconds / 86400), z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100), m = (5 * of_year + 2) / 153;
	int day = (int)(of_year - (153 * m + 2) / 5 + 1), month = (int)(m < 10 ? m + 3 : m - 9);
	int y = (int)(year + era * 400 + (month <= 2));
	out[0] = y;
	out[1] = month;
	out[2] = day;
	out[3] = (double)(((days + 3) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
	out[4] = (double)(days - days_since_1970(y, 1, 1) + 1);
	out[5] = day == 1;
	out[6] = day == days_in_month(y, month);
	out[7] = seconds / 86400;
	out[8] = seconds / 86400 - (double)days;
}
