/* Parses command lines with the option tables: --opt=value, --opt value, -oVALUE, -o VALUE, -qv, options after operands, `--`. Long options
 * cannot be abbreviated, because a new option with the same beginning would then break scripts. */
#include "base/guess.h"
#include "cli.h"
#include "gtrain.h"
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GLOBAL(member) offsetof(struct gt_args, member)

const struct gt_option gt_global_options[] = {
	{"json", 0, GT_OPTION_FLAG, GLOBAL(json), .help = "print JSON on standard output, one object per line"},
	{"quiet", 'q', GT_OPTION_FLAG, GLOBAL(quiet), .help = "print only results, warnings and errors"},
	{"verbose", 'v', GT_OPTION_FLAG, GLOBAL(verbose), .help = "report more details"},
	{"color", 0, GT_OPTION_CHOICE, GLOBAL(color), "WHEN", GT_COMPLETE_CHOICE, "auto|always|never",
	 .help = "use colours: auto, always or never"},
	{"no-progress", 0, GT_OPTION_FLAG, GLOBAL(no_progress), .help = "print no progress line and no periodic lines"},
	{"help", 'h', GT_OPTION_FLAG, GLOBAL(help), .help = "print this help"},
	{"version", 0, GT_OPTION_FLAG, GLOBAL(version), .help = "print the version, and how gtrain was built"},
	{0},
};

double gt_cli_duration_parse(const char *s)
{
	static const struct { char unit; double seconds; } unit[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
	double total = 0;
	int next = 0; /* index of the first unit that may follow: units must decrease, 1h30m */
	if (!*s)
		return -1;
	while (*s) {
		char *end;
		if (*s < '0' || *s > '9') /* strtod would also accept signs, spaces, inf and nan */
			return -1;
		double v = strtod(s, &end);
		if (memchr(s, 'x', (size_t)(end - s)) || memchr(s, 'X', (size_t)(end - s)))
			return -1;
		if (!*end) /* A number without a unit is in seconds, but only as the whole duration: 1h30 is an error. */
			return next == 0 && v <= 1e9 ? v : -1;
		while (next < 4 && unit[next].unit != *end)
			next++;
		if (next == 4)
			return -1;
		total += v * unit[next++].seconds;
		s = end + 1;
	}
	return total <= 1e9 ? total : -1;
}

struct find_key {
	const char *word;
	char path[128];
	int found;
};

static void match_key(void *user, const struct gt_schema_key *key)
{
	struct find_key *f = user;
	const char *last = strrchr(key->path, '.');
	last = last ? last + 1 : key->path;
	if (strchr(key->path, '['))
		return;
	for (int i = 0;; i++) {
		char c = f->word[i] == '-' ? '_' : f->word[i];
		if (c != last[i])
			return;
		if (!c)
			break;
	}
	if (!f->found++)
		snprintf(f->path, sizeof f->path, "%s", key->path);
}

static bool takes_sets(const struct gt_command *c)
{
	for (const struct gt_option *o = c ? c->options : NULL; o && o->name; o++)
		if (o->complete == GT_COMPLETE_KEY)
			return true;
	return false;
}

/* Fails because the command has no such option. Suggests a similar option, or --set with the config key of this name. */
static enum gt_code fail_unknown_option(const struct gt_command *c, const char *name, struct gt_err *err)
{
	const char *candidate[64];
	int n = 0;
	for (const struct gt_option *o = c ? c->options : NULL; o && o->name && n < 64; o++)
		candidate[n++] = o->name;
	for (const struct gt_option *o = gt_global_options; o->name && n < 64; o++)
		candidate[n++] = o->name;
	struct find_key f = {.word = name};
	if (takes_sets(c))
		gt_schema_each(match_key, &f);
	if (f.found == 1)
		return gt_fail(err, GT_EUSAGE, "unknown option '--%.60s'; did you mean '--set %s=...'?", name, f.path);
	const char *near = gt_guess_nearest(name, candidate, n);
	if (near)
		return gt_fail(err, GT_EUSAGE, "unknown option '--%.60s'; did you mean '--%s'?", name, near);
	return gt_fail(err, GT_EUSAGE, "unknown option '--%.60s'", name);
}

const struct gt_option *gt_option_find(const struct gt_command *c, const char *name, size_t len, char letter)
{
	const struct gt_option *const table[] = {c ? c->options : NULL, gt_global_options};
	for (int i = 0; i < 2; i++)
		for (const struct gt_option *o = table[i]; o && o->name; o++)
			if (letter ? o->letter == letter : strlen(o->name) == len && memcmp(o->name, name, len) == 0)
				return o;
	return NULL;
}

/* Returns the member that stores the value of an option. */
static void *option_member(struct gt_cli *cli, const struct gt_option *o)
{
	for (const struct gt_option *g = gt_global_options; g->name; g++)
		if (g == o)
			return (char *)&cli->args + o->offset;
	return (char *)cli->options + o->offset;
}

bool gt_option_is_choice(const char *choices, const char *value)
{
	size_t len = strlen(value);
	for (const char *p = choices; p && *p;) {
		size_t k = strcspn(p, "|");
		if (k == len && memcmp(p, value, len) == 0)
			return true;
		p += k + (p[k] == '|');
	}
	return false;
}

static enum gt_code append_word(struct gt_cli *cli, struct gt_strlist *l, const char *s, struct gt_err *err)
{
	if ((l->n & (l->n - 1)) == 0) { /* The capacity is the next power of two, so the array is full if its length is a power of two. */
		const char **v;
		GT_NEW(v, cli->arena, l->n ? 2 * l->n : 1, err);
		if (l->n)
			memcpy(v, l->v, (size_t)l->n * sizeof *v);
		l->v = v;
	}
	l->v[l->n++] = s;
	return GT_OK;
}

static enum gt_code read_int(const struct gt_option *o, const char *shown, const char *value, int64_t *out, struct gt_err *err)
{
	char *end;
	errno = 0;
	long long v = strtoll(value, &end, 10);
	if ((*value < '0' || *value > '9') || *end || errno || v < o->min || v > o->max)
		return gt_fail(err, GT_EUSAGE, "%s: expected an integer from %" PRId64 " to %" PRId64 "%s, got '%.60s'", shown, o->min, o->max,
		               o->kind == GT_OPTION_NPROC ? ", or auto" : o->kind == GT_OPTION_RANGE ? ", or two of them as MIN:MAX" : "", value);
	*out = v;
	return GT_OK;
}

/* Reads N or MIN:MAX. */
static enum gt_code read_range(const struct gt_option *o, const char *shown, const char *value, struct gt_option_range *out,
                               struct gt_err *err)
{
	char least[24] = "";
	const char *colon = strchr(value, ':');
	*out = (struct gt_option_range){0};
	if (!colon)
		return read_int(o, shown, value, &out->most, err);
	snprintf(least, sizeof least, "%.*s", (int)(colon - value), value);
	GT_TRY(read_int(o, shown, least, &out->least, err));
	GT_TRY(read_int(o, shown, colon + 1, &out->most, err));
	if (out->least > out->most)
		return gt_fail(err, GT_EUSAGE, "%s: expected a minimum that is not above the maximum, got '%.60s'", shown, value);
	return GT_OK;
}

static enum gt_code store_value(struct gt_cli *cli, const struct gt_option *o, const char *shown, const char *value, struct gt_err *err)
{
	void *at = option_member(cli, o);
	if (o->kind != GT_OPTION_FLAG && !*value)
		return gt_fail(err, GT_EUSAGE, "%s: expected %s, got nothing", shown, o->arg);
	switch (o->kind) {
	case GT_OPTION_FLAG:
		*(bool *)at = true;
		return GT_OK;
	case GT_OPTION_STRING:
		*(const char **)at = value;
		return GT_OK;
	case GT_OPTION_CHOICE:
		if (!gt_option_is_choice(o->choices, value))
			return gt_fail(err, GT_EUSAGE, "%s: expected %s, got '%.60s'", shown, o->choices, value);
		*(const char **)at = value;
		return GT_OK;
	case GT_OPTION_LIST:
		return append_word(cli, at, value, err);
	case GT_OPTION_NPROC:
		if (strcmp(value, "auto") == 0) {
			*(int64_t *)at = GT_NPROC_AUTO;
			return GT_OK;
		}
		return read_int(o, shown, value, at, err);
	case GT_OPTION_INT:
		return read_int(o, shown, value, at, err);
	case GT_OPTION_RANGE:
		return read_range(o, shown, value, at, err);
	case GT_OPTION_NUMBER: {
		char *end;
		double v = strtod(value, &end);
		bool plain = strspn(value, "0123456789.eE+-") == strlen(value); /* strtod would also accept spaces, hexadecimal digits, inf and
		                                                                   nan */
		if (!plain || *end || !(v > 0) || v > DBL_MAX)
			return gt_fail(err, GT_EUSAGE, "%s: expected a number > 0, got '%.60s'", shown, value);
		*(double *)at = v;
		return GT_OK;
	}
	case GT_OPTION_DURATION: {
		double v = gt_cli_duration_parse(value);
		if (!(v > 0))
			return gt_fail(err, GT_EUSAGE, "%s: expected a duration such as 90s, 15m or 1h30m, got '%.60s'", shown, value);
		*(double *)at = v;
		return GT_OK;
	}
	}
	return gt_fail(err, GT_EINTERNAL, "the table of options has no type for the option %s", shown);
}

static enum gt_code parse_long(struct gt_cli *cli, const struct gt_command *c, char **words, int n, int *pos, struct gt_err *err)
{
	const char *name = words[*pos] + 2, *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const struct gt_option *o = gt_option_find(c, name, len, 0);
	char shown[64];
	snprintf(shown, sizeof shown, "--%.*s", (int)(len < 60 ? len : 60), name);
	if (!o)
		return fail_unknown_option(c, shown + 2, err);
	if (o->kind == GT_OPTION_FLAG) {
		if (eq)
			return gt_fail(err, GT_EUSAGE, "option %s takes no value", shown);
		return store_value(cli, o, shown, "", err);
	}
	if (eq)
		return store_value(cli, o, shown, eq + 1, err);
	if (*pos + 1 >= n)
		return gt_fail(err, GT_EUSAGE, "%s: expected %s after it", shown, o->arg);
	return store_value(cli, o, shown, words[++*pos], err);
}

static enum gt_code parse_short(struct gt_cli *cli, const struct gt_command *c, char **words, int n, int *pos, struct gt_err *err)
{
	for (const char *p = words[*pos] + 1; *p; p++) {
		const struct gt_option *o = gt_option_find(c, NULL, 0, *p);
		char shown[4] = {'-', *p, '\0'};
		if (!o) {
			/* -epochs instead of --epochs: report the whole word. */
			if (p == words[*pos] + 1 && p[1])
				return gt_fail(err, GT_EUSAGE, "unknown option '-%.60s'; long options begin with two dashes", p);
			return gt_fail(err, GT_EUSAGE, "unknown option '%s'", shown);
		}
		if (o->kind == GT_OPTION_FLAG) {
			GT_TRY(store_value(cli, o, shown, "", err));
			continue;
		}
		if (p[1])
			return store_value(cli, o, shown, p + 1, err);
		if (*pos + 1 >= n)
			return gt_fail(err, GT_EUSAGE, "%s: expected %s after it", shown, o->arg);
		return store_value(cli, o, shown, words[++*pos], err);
	}
	return GT_OK;
}

enum gt_code gt_options_parse(struct gt_cli *cli, const struct gt_command *c, char **words, int n, int *pos, struct gt_err *err)
{
	struct gt_args *a = &cli->args;
	bool only_operands = false;
	if (c && c->args_size && !(cli->options = gt_arena_alloc(cli->arena, 1, c->args_size)))
		return gt_fail_memory(err, c->args_size);
	for (; *pos < n && (!a->help || !c); ++*pos) { /* after -h, further options are parsed only if there is no command */
		const char *w = words[*pos];
		if (!only_operands && strcmp(w, "--") == 0) {
			only_operands = true;
			if (!c) { /* `gtrain -- run`: the first word after `--` is the command */
				++*pos;
				return GT_OK;
			}
		} else if (!only_operands && w[0] == '-' && w[1] == '-') {
			GT_TRY(parse_long(cli, c, words, n, pos, err));
		} else if (!only_operands && w[0] == '-' && w[1]) {
			GT_TRY(parse_short(cli, c, words, n, pos, err));
		} else if (!c) {
			return GT_OK;
		} else {
			if (c->max_operands >= 0 && a->operands.n == c->max_operands)
				return gt_fail(err, GT_EUSAGE, "unexpected operand '%.60s'; usage: gtrain %s %s", w, c->name, c->operands);
			GT_TRY(append_word(cli, &a->operands, w, err));
		}
	}
	if (!c || a->help || a->version)
		return GT_OK;
	if (a->operands.n < c->min_operands)
		return gt_fail(err, GT_EUSAGE, "too few operands; usage: gtrain %s %s", c->name, c->operands);
	for (const struct gt_option *o = c->options; o && o->name; o++) /* a required option is a string; a NULL member means that it is
	                                                                   missing */
		if (o->required && !*(const char **)option_member(cli, o))
			return gt_fail(err, GT_EUSAGE, "expected --%s %s", o->name, o->arg);
	return GT_OK;
}
