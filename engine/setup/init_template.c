#include "setup/init_template.h"
#include "base/arena.h"
#include "base/memstream.h"
#include "conf/conf_string.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 8 }; /* maximum depth of nested #if */

/* The Makefile generates this table from the files in engine/setup/templates/. */
static const struct {
	const char *name, *text;
} templates[] = {
#include "init_templates.inc"
};

struct output {
	FILE *f;
	const struct gt_init_value *values;
	char missing[64]; /* the first name for which no value or template exists; "": none */
};

static size_t name_length(const char *p)
{
	return strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static void note_missing(struct output *o, const char *name, size_t n)
{
	if (!*o->missing)
		snprintf(o->missing, sizeof o->missing, "%.*s", (int)n, name);
}

static const struct gt_init_value *find_value(struct output *o, const char *name, size_t n)
{
	static const struct gt_init_value none = {"", .text = ""};
	for (const struct gt_init_value *v = o->values; v->name; v++)
		if (strlen(v->name) == n && !memcmp(v->name, name, n))
			return v;
	note_missing(o, name, n);
	return &none;
}

static void write_value(struct output *o, const struct gt_init_value *v)
{
	if (v->text)
		fputs(v->text, o->f);
	else if (!v->strings)
		fprintf(o->f, "%" PRId64, v->number);
	for (int64_t i = 0; v->strings && i < v->number; i++) {
		fputs(i ? ", " : "", o->f);
		gt_string_write(o->f, v->strings[i]);
	}
}

static void expand_text(struct output *o, const char *p, const char *end);

/* Writes one of the two texts of ${NAME?yes|no} or ${NAME:one|many}. p: after the opening brace. Returns the end of the choice. */
static const char *expand_choice(struct output *o, const char *p, const char *end)
{
	const struct gt_init_value *v = find_value(o, p, name_length(p));
	p += name_length(p);
	bool first = *p == ':' ? v->number == 1 : v->number != 0;
	const char *start = ++p, *bar = NULL;
	for (int depth = 0; p < end && (*p != '}' || depth); p++) {
		depth += (*p == '{') - (*p == '}');
		if (*p == '|' && !depth)
			bar = p;
	}
	if (first)
		expand_text(o, start, bar ? bar : p);
	else if (bar)
		expand_text(o, bar + 1, p);
	return p < end ? p + 1 : p;
}

static void expand_text(struct output *o, const char *p, const char *end)
{
	while (p < end) {
		size_t n = *p == '$' ? name_length(p + 1) : 0;
		if (n) {
			write_value(o, find_value(o, p + 1, n));
			p += 1 + n;
		} else if (*p == '$' && p[1] == '{' && name_length(p + 2)) {
			p = expand_choice(o, p + 2, end);
		} else if (*p == '\\' && p[1] == '\n') {
			p += 2;
		} else {
			fputc(*p++, o->f);
		}
	}
}

/* Returns the text after a word at the start of a line, or NULL if the line does not begin with it. */
static const char *match_word(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) ? NULL : line + strlen(word);
}

static void write_template(struct output *o, const char *name, size_t n)
{
	struct {
		bool outer, yes; /* outer: the lines outside of the #if are written; yes: the condition of the #if is true */
	} at[MAX_DEPTH] = {{true, true}};
	const char *text = NULL, *rest;
	int depth = 0;
	for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
		if (strlen(templates[i].name) == n && !memcmp(templates[i].name, name, n))
			text = templates[i].text;
	if (!text)
		note_missing(o, name, n);
	for (const char *line = text, *end; line && *line; line = end + 1) {
		for (end = strchr(line, '\n'); end > line && end[-1] == '\\'; end = strchr(end + 1, '\n'))
			;
		bool written = at[depth].outer && at[depth].yes;
		if ((rest = match_word(line, "#if ")) && depth + 1 < MAX_DEPTH) {
			bool negated = *rest == '!';
			at[++depth].outer = written;
			at[depth].yes = written && (find_value(o, rest + negated, name_length(rest + negated))->number != 0) != negated;
		} else if (match_word(line, "#else\n")) {
			at[depth].yes = !at[depth].yes;
		} else if (match_word(line, "#end\n") && depth) {
			depth--;
		} else if (written && (rest = match_word(line, "#include "))) {
			write_template(o, rest, (size_t)(end - rest));
		} else if (written) {
			expand_text(o, line, end + 1);
		}
	}
	if (depth)
		note_missing(o, "#end", strlen("#end"));
}

enum gt_code gt_init_template(const char *name, const struct gt_init_value *values, char **text, struct gt_err *err)
{
	struct gt_memstream m;
	struct output o = {.f = gt_memstream_open(&m), .values = values};
	*text = NULL;
	if (!o.f)
		return gt_fail_memory(err, 0);
	write_template(&o, name, strlen(name));
	GT_TRY(gt_memstream_close(o.f, &m, text, NULL, err));
	if (!*o.missing)
		return GT_OK;
	free(*text);
	*text = NULL;
	return gt_fail(err, GT_EINTERNAL, "the template %s uses the value or template %s, which does not exist", name, o.missing);
}
