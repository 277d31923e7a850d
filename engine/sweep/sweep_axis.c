#include "sweep/sweep_axis.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MAX 1e15 /* largest integer of a range, far below 2^53, up to which doubles represent all integers */
#define DECADE 10.0    /* a range is log-uniform if high is at least this factor times low */

/* Returns the length of the text before the next comma that is outside of brackets and quotation marks. */
static size_t find_comma(const char *s)
{
	int depth = 0;
	bool quoted = false;
	size_t i = 0;
	for (; s[i] && (depth || quoted || s[i] != ','); i++) {
		if (quoted && s[i] == '\\' && s[i + 1])
			i++;
		else if (s[i] == '"')
			quoted = !quoted;
		else if (!quoted && strchr("[({", s[i]))
			depth++;
		else if (!quoted && depth && strchr("])}", s[i]))
			depth--;
	}
	return i;
}

static enum gt_code copy_trimmed(const char *s, size_t n, struct gt_arena *a, const char **out, struct gt_err *err)
{
	for (; n && isspace((unsigned char)*s); s++, n--)
		;
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	GT_NEW_STR(*out, gt_arena_printf(a, "%.*s", (int)n, s), err);
	return GT_OK;
}

static bool parse_number(const char *s, double *v, bool *whole)
{
	char *end;
	if (!*s || s[strspn(s, "0123456789.eE+-")])
		return false;
	*v = strtod(s, &end);
	*whole = !s[strspn(s, "0123456789+-")];
	return !*end && end != s;
}

/* Returns whether a text begins like a range, with a number and two dots. Sets x->low and x->high; x->high is NAN if the text after the
 * dots is not a number. */
static bool is_range(const char *text, struct gt_sweep_axis *x)
{
	char low[64];
	const char *dots = strstr(text, "..");
	bool whole[2] = {false, false};
	if (!dots || dots - text >= (int)sizeof low)
		return false;
	snprintf(low, sizeof low, "%.*s", (int)(dots - text), text);
	if (!parse_number(low, &x->low, &whole[0]))
		return false;
	if (dots[2] == '.' || !parse_number(dots + 2, &x->high, &whole[1]))
		x->high = NAN;
	x->whole = whole[0] && whole[1];
	return true;
}

static enum gt_code check_range(struct gt_sweep_axis *x, struct gt_err *err)
{
	if (isnan(x->high))
		return gt_fail(err, GT_EUSAGE, "--set %.200s=%.200s: expected a number after the two dots of a range LOW..HIGH", x->key, x->text);
	if (!isfinite(x->low) || !isfinite(x->high) || (x->whole && fmax(fabs(x->low), fabs(x->high)) > WHOLE_MAX))
		return gt_fail(err, GT_EUSAGE, "--set %.200s=%.200s: expected a range with bounds that a 64-bit float can represent", x->key,
		               x->text);
	if (!(x->low < x->high))
		return gt_fail(err, GT_EUSAGE, "--set %.200s=%.200s: expected a range LOW..HIGH with LOW < HIGH", x->key, x->text);
	x->log_scale = x->low > 0 && x->high / x->low >= DECADE;
	return GT_OK;
}

static enum gt_code add_value(struct gt_sweep_axis *x, int *cap, const char *text, size_t n, struct gt_arena *a, struct gt_err *err)
{
	const char *value;
	struct gt_sweep_axis range = {0};
	GT_TRY(copy_trimmed(text, n, a, &value, err));
	if (!*value)
		return gt_fail(err, GT_EUSAGE, "--set %.200s=%.200s: expected a value before and after each comma", x->key, x->text);
	if (is_range(value, &range))
		return gt_fail(err, GT_EUSAGE, "--set %.200s=%.200s: expected values or one range, got a range in a list", x->key, x->text);
	for (int i = 0; i < x->nvalues; i++)
		if (!strcmp(x->value[i], value))
			return gt_fail(err, GT_EUSAGE, "--set %.200s=%.200s: the list has the value %.60s twice", x->key, x->text, value);
	GT_TRY(gt_arena_grow(a, &x->value, x->nvalues, cap, sizeof *x->value, err));
	x->value[x->nvalues++] = value;
	return GT_OK;
}

static enum gt_code parse_list(struct gt_sweep_axis *x, struct gt_arena *a, struct gt_err *err)
{
	int cap = 0;
	for (const char *p = x->text;; p++) {
		size_t n = find_comma(p);
		GT_TRY(add_value(x, &cap, p, n, a, err));
		p += n;
		if (!*p)
			return GT_OK;
	}
}

static bool has_key(const char *set, const char *key)
{
	size_t n = strlen(key);
	return !strncmp(set, key, n) && set[n] == '=';
}

static enum gt_code check_repeated(const struct gt_sweep_axes *x, const char *const *sets, int nsets, struct gt_err *err)
{
	for (int i = 0; i < x->n; i++) {
		int times = 0;
		for (int k = 0; k < nsets; k++)
			times += has_key(sets[k], x->axis[i].key);
		if (times > 1)
			return gt_fail(err, GT_EUSAGE, "--set %.200s=%.200s: the key is set twice", x->axis[i].key, x->axis[i].text);
	}
	return GT_OK;
}

static enum gt_code parse_setting(const char *set, struct gt_arena *a, struct gt_sweep_axes *out, struct gt_err *err)
{
	const char *eq = strchr(set, '=');
	struct gt_sweep_axis *x = &out->axis[out->n];
	size_t n = eq ? find_comma(eq + 1) : 0;
	bool list = eq && eq[1 + n] == ',', range = eq && !list && is_range(eq + 1, x);
	if (!range && !list) { /* the setting has one value, or is invalid, which gt_conf_load reports */
		out->fixed[out->nfixed++] = set;
		return GT_OK;
	}
	GT_NEW_STR(x->key, gt_arena_printf(a, "%.*s", (int)(eq - set), set), err);
	x->text = eq + 1;
	out->n++;
	out->ranges |= range;
	return range ? check_range(x, err) : parse_list(x, a, err);
}

enum gt_code gt_sweep_axes_parse(const char *const *sets, int nsets, struct gt_arena *a, struct gt_sweep_axes *out, struct gt_err *err)
{
	*out = (struct gt_sweep_axes){0};
	GT_NEW(out->axis, a, nsets + 1, err);
	GT_NEW(out->fixed, a, nsets + 1, err);
	for (int i = 0; i < nsets; i++)
		GT_TRY(parse_setting(sets[i], a, out, err));
	if (!out->n)
		return gt_fail(err, GT_EUSAGE, "expected a setting with several values, as in -s data.batch=32,64 or -s "
		               "train.optimizer.lr=1e-4..1e-2");
	return check_repeated(out, sets, nsets, err);
}

static double scale_number(const struct gt_sweep_axis *x, double u, double end)
{
	return x->log_scale ? exp(log(x->low) + u * (log(end) - log(x->low))) : x->low + u * (end - x->low);
}

/* Prints a value of a range with six significant digits, so that it fits into a table, or with 17 digits if the range is too narrow for
 * six. */
static const char *print_real(const struct gt_sweep_axis *x, double v, struct gt_arena *a)
{
	char text[40];
	bool narrow = x->high - x->low < 1e-3 * fmax(fabs(x->low), fabs(x->high));
	snprintf(text, sizeof text, "%.*g", narrow ? 17 : 6, v);
	double rounded = strtod(text, NULL);
	if (rounded < x->low || rounded > x->high)
		snprintf(text, sizeof text, "%.17g", fmin(fmax(v, x->low), x->high));
	return gt_arena_strdup(a, text);
}

const char *gt_sweep_axis_value(const struct gt_sweep_axis *x, double u, struct gt_arena *a)
{
	if (x->nvalues)
		return x->value[(int)(u * x->nvalues)];
	if (!x->whole)
		return print_real(x, scale_number(x, u, x->high), a);
	double v = floor(scale_number(x, u, x->high + 1));
	return gt_arena_printf(a, "%" PRId64, (int64_t)fmin(fmax(v, x->low), x->high));
}
