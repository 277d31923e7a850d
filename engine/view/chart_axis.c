#include "gtrain_chart.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Largest absolute value on an axis, so that differences and logarithms are finite. */
#define MOST 1e300
#define LEAST 1e-300

/* Returns the smallest distance of the form 1, 2 or 5 times a power of ten that divides `span` into at most `most` parts. */
static double round_distance(double span, int most)
{
	double unit = pow(10, floor(log10(span / most)));
	static const double factor[] = {1, 2, 5, 10};
	for (int i = 0; i < 4; i++)
		if (span / (unit * factor[i]) <= most)
			return unit * factor[i];
	return unit * 10;
}

/* Sets the ticks to the multiples of a distance. Returns the number of multiples; at most GT_AXIS_TICKS ticks are set. */
static int set_multiples(struct gt_axis *a, double distance)
{
	double first = ceil(a->low / distance - 1e-9);
	int n = 0;
	for (; n <= GT_AXIS_TICKS && (first + n) * distance <= a->high + 1e-9 * distance; n++)
		if (n < GT_AXIS_TICKS)
			a->tick[n] = (first + n) * distance;
	a->n = n < GT_AXIS_TICKS ? n : GT_AXIS_TICKS;
	return n;
}

/* Sets at most `most` ticks; only if this gives fewer than two ticks, chooses a smaller distance. */
static void set_linear_ticks(struct gt_axis *a, int most)
{
	double distance = round_distance(a->high - a->low, most), largest = fmax(fabs(a->low), fabs(a->high));
	if (set_multiples(a, distance) > most)
		set_multiples(a, distance = round_distance(a->high - a->low, most - 1));
	for (int parts = most; a->n < 2 && parts < GT_AXIS_TICKS; parts++)
		set_multiples(a, distance = round_distance(a->high - a->low, parts));
	int decimals = (int)-floor(log10(distance) + 1e-9), digits = (int)ceil(log10(largest / distance) + 1);
	a->decimals = decimals > 6 || largest < 1e-4 || largest >= 1e7 ? -1 : decimals > 0 ? decimals : 0;
	a->digits = digits < 6 ? 6 : digits > 15 ? 15 : digits;
}

/* Adds ticks at all factors times 10^d, if d is a multiple of `every`. */
static void set_decades(struct gt_axis *a, const double *factor, int nfactors, int every, int most)
{
	a->n = 0;
	for (int d = (int)floor(log10(a->low)); d <= (int)ceil(log10(a->high)); d++)
		for (int i = 0; i < nfactors && !(d % every); i++) {
			double v = factor[i] * pow(10, d);
			if (v >= a->low * (1 - 1e-9) && v <= a->high * (1 + 1e-9) && a->n < most)
				a->tick[a->n++] = v;
		}
}

static void set_log_ticks(struct gt_axis *a, int most)
{
	static const double three[] = {1, 2, 5}, nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	double decades = log10(a->high) - log10(a->low);
	int every = 1;
	while (decades / every + 1 > most)
		every++;
	bool fine = decades * 9 + 2 <= most;
	set_decades(a, fine ? nine : three, fine ? 9 : decades * 3 + 2 <= most ? 3 : 1, every, most);
	if (a->n < 2) /* less than a decade: ticks as on a linear axis */
		set_linear_ticks(a, most);
	a->decimals = -1;
	a->digits = a->digits ? a->digits : 6;
}

void gt_axis_set(struct gt_axis *a, double low, double high, bool log, int most)
{
	most = most < 2 ? 2 : most > GT_AXIS_TICKS ? GT_AXIS_TICKS : most;
	low = fmax(low, log ? LEAST : -MOST);
	high = fmin(fmax(high, low), MOST);
	*a = (struct gt_axis){.low = low, .high = high, .log = log};
	if (!(high - low > 1e-12 * fmax(fabs(low), fabs(high)))) { /* all values are equal: their line is in the middle of the axis */
		a->low = log ? low / 10 : low > 0 ? 0 : low < 0 ? 2 * low : -1;
		a->high = log ? low * 10 : low > 0 ? 2 * low : low < 0 ? 0 : 1;
	}
	if (log)
		set_log_ticks(a, most);
	else
		set_linear_ticks(a, most);
}

double gt_axis_share(const struct gt_axis *a, double v)
{
	return a->log ? (log(v) - log(a->low)) / (log(a->high) - log(a->low)) : (v - a->low) / (a->high - a->low);
}

/* Writes 1000000 as 1M and 25000 as 25k. Returns false for other values. */
static bool format_thousands(double v, int digits, char *buf)
{
	static const struct { double unit; const char *word; } unit[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
	for (int i = 0; i < 3 && fabs(v) >= 1e4; i++)
		if (fabs(v) >= unit[i].unit && fabs(v) < unit[i].unit * 1000) {
			snprintf(buf, GT_AXIS_LABEL, "%.*g%s", digits, v / unit[i].unit, unit[i].word);
			return true;
		}
	return false;
}

const char *gt_axis_label(const struct gt_axis *a, double v, char buf[GT_AXIS_LABEL])
{
	if (!a->log && fabs(v) < 1e-9 * (a->high - a->low))
		v = 0;
	if (a->decimals > 0)
		snprintf(buf, GT_AXIS_LABEL, "%.*f", a->decimals, v);
	else if (!format_thousands(v, a->digits, buf))
		snprintf(buf, GT_AXIS_LABEL, "%.*g", a->digits, v);
	return buf;
}

/* ---- the range of the values of a panel ---------------------------------------------------------------------------------------- */
struct range {
	double low, high;
};

static void extend_range(struct range *r, double v, bool log)
{
	if (!isfinite(v) || (log && !(v > 0)))
		return;
	r->low = v < r->low || isnan(r->low) ? v : r->low;
	r->high = v > r->high || isnan(r->high) ? v : r->high;
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Extends the range by the values of a faint line, without the smallest and the largest 2 %. If memory runs out, the range is unchanged. */
static void extend_inner(struct range *r, const struct gt_chart_line *l, bool log)
{
	double *v = malloc((size_t)l->n * sizeof *v + 1);
	int n = 0;
	for (int i = 0; v && i < l->n; i++)
		if (isfinite(l->y[i]))
			v[n++] = l->y[i];
	if (n) {
		qsort(v, (size_t)n, sizeof *v, compare_numbers);
		extend_range(r, v[n / 50], log);
		extend_range(r, v[n - 1 - n / 50], log);
	}
	free(v);
}

static struct range find_range(const struct gt_chart_panel *p)
{
	struct range r = {NAN, NAN};
	for (int i = 0; i < p->nlines; i++) {
		const struct gt_chart_line *l = &p->line[i];
		if (l->faint)
			extend_inner(&r, l, p->log_y);
		else
			for (int k = 0; k < l->n; k++)
				extend_range(&r, l->y[k], p->log_y);
	}
	return isnan(r.low) ? (struct range){p->log_y ? 0.1 : 0, 1} : r;
}

void gt_chart_axes(const struct gt_chart *c, const struct gt_chart_panel *p, int most_x, int most_y, struct gt_axis *x, struct gt_axis *y)
{
	struct range across = {NAN, NAN}, up = {p->low, p->high};
	for (int i = 0; i < c->npanels; i++)
		for (int k = 0; k < c->panel[i].nlines; k++) {
			const struct gt_chart_line *l = &c->panel[i].line[k];
			extend_range(&across, l->n ? l->x[0] : NAN, c->log_x);
			extend_range(&across, l->n ? l->x[l->n - 1] : NAN, c->log_x);
		}
	if (isnan(across.low))
		across = (struct range){c->log_x ? 0.1 : 0, 1};
	if (!c->log_x && across.low > 0 && across.low < 0.2 * across.high) /* the axis then begins at 0, near the first values */
		across.low = 0;
	gt_axis_set(x, across.low, across.high, c->log_x, most_x);
	if (isnan(up.low) || isnan(up.high))
		up = find_range(p);
	double margin = p->log_y ? fmin(pow(up.high / up.low, 0.03), 10) : (up.high - up.low) * 0.03;
	if (p->log_y)
		gt_axis_set(y, up.low / margin, up.high * margin, true, most_y);
	else
		gt_axis_set(y, up.low - margin, up.high + margin, false, most_y);
}
