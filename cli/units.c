#include "cli.h"
#include "base/bytes.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *gt_units_count(char *buf, int64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof digits, "%" PRIu64, n < 0 ? 0 - (uint64_t)n : (uint64_t)n), at = 0;
	if (n < 0)
		buf[at++] = '-';
	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = '\0';
	return buf;
}

/* Writes v in [0, 1024) with at most four significant digits, without an exponent. */
static int format_scaled(char *buf, double v)
{
	return snprintf(buf, GT_UNITS, "%.*f", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v);
}

const char *gt_units_bytes(char *buf, uint64_t n)
{
	return gt_bytes_text(buf, GT_UNITS, n);
}

const char *gt_units_si(char *buf, double v, const char *unit)
{
	static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E", "Z"};
	int p = 0;
	if (!isfinite(v) || v < 0) {
		snprintf(buf, GT_UNITS, "-");
		return buf;
	}
	if (v >= 999.5e21) {
		snprintf(buf, GT_UNITS, "%.3g%s%s", v, *unit ? " " : "", unit);
		return buf;
	}
	double w = v;
	for (; w >= 999.5 && p < 7; p++)
		w /= 1000;
	int len = p || w != floor(w) ? format_scaled(buf, w) : snprintf(buf, GT_UNITS, "%.0f", w);
	snprintf(buf + len, (size_t)(GT_UNITS - len), *prefix[p] || *unit ? " %s%s" : "%s%s", prefix[p], unit);
	return buf;
}

const char *gt_units_seconds(char *buf, double s)
{
	if (!isfinite(s) || s < 0 || s > 1e12) {
		snprintf(buf, GT_UNITS, "-");
	} else if (s < 1e-3) {
		snprintf(buf, GT_UNITS, "%.0f us", s * 1e6);
	} else if (s < 0.9995) {
		snprintf(buf, GT_UNITS, "%.*f ms", s < 9.995e-3 ? 2 : s < 99.95e-3 ? 1 : 0, s * 1e3);
	} else if (s < 59.95) {
		snprintf(buf, GT_UNITS, "%.1f s", s);
	} else {
		int64_t t = (int64_t)(s + 0.5);
		if (t < 3600)
			snprintf(buf, GT_UNITS, "%d min %02d s", (int)(t / 60), (int)(t % 60));
		else if (t < 2 * 86400)
			snprintf(buf, GT_UNITS, "%d h %02d min", (int)(t / 3600), (int)(t % 3600 / 60));
		else
			snprintf(buf, GT_UNITS, "%" PRId64 " d %02d h", t / 86400, (int)(t % 86400 / 3600));
	}
	return buf;
}

const char *gt_units_clock(char *buf, double s)
{
	if (!isfinite(s) || s < 0 || s > 1e12) {
		snprintf(buf, GT_UNITS, "-:--");
		return buf;
	}
	int64_t t = (int64_t)(s + 0.5);
	if (t < 3600)
		snprintf(buf, GT_UNITS, "%d:%02d", (int)(t / 60), (int)(t % 60));
	else if (t < 2 * 86400)
		snprintf(buf, GT_UNITS, "%d:%02d:%02d", (int)(t / 3600), (int)(t % 3600 / 60), (int)(t % 60));
	else
		snprintf(buf, GT_UNITS, "%" PRId64 " d %02d h", t / 86400, (int)(t % 86400 / 3600));
	return buf;
}

const char *gt_units_number(char *buf, double v)
{
	snprintf(buf, GT_UNITS, "%.4g", isnan(v) ? NAN : v); /* without the sign of a NaN */
	return buf;
}

const char *gt_units_loss(char *buf, double v)
{
	if (isnan(v)) /* printf would print the sign of a NaN */
		snprintf(buf, GT_UNITS, "nan");
	else
		snprintf(buf, GT_UNITS, fabs(v) >= 1e5 ? "%.4g" : fabs(v) < 0.1 && v != 0 ? "%#.4g" : "%.4f", v);
	return buf;
}

const char *gt_units_scores(char *buf, const struct gt_scores *s, const char *between)
{
	char text[GT_UNITS];
	int n = 0;
	*buf = 0;
	for (int i = 0; i < GT_SCORE_COUNT; i++) {
		const struct gt_score_row *row = &gt_score_rows[i];
		double value = gt_score_get(s, (enum gt_score)i), v = fabs(value);
		bool unit = row->kinds == GT_KIND_NUMBERS && row->falls; /* an error has the unit of the target */
		if (row->of_steps || isnan(value))
			continue;
		const char *format = unit && v >= 1000 && v < 1e9 ? "%.0f" : unit ? "%#.4g" : v >= 1e5 ? "%.4g" : "%.4f";
		snprintf(text, sizeof text, format, value);
		n += snprintf(buf + n, GT_UNITS_SCORES - (size_t)n, "%s%s %s", n ? between : "", row->label, text);
	}
	return buf;
}
