#include "harness_table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum gt_code slurp(struct gt_arena *a, const char *path, char **out, size_t *n, struct gt_err *err)
{
	FILE *f = fopen(path, "rb");
	if (!f)
		return gt_fail(err, GT_ENOINPUT, "%s: cannot be opened", path);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	*out = gt_arena_alloc(a, *n + 1, 1);
	bool whole = *out && fread(*out, 1, *n, f) == *n;
	fclose(f);
	return whole ? GT_OK : gt_fail(err, GT_EIO, "%s: cannot be read", path);
}

static bool parse_inputs(struct opcase *c, char *text)
{
	for (char *save, *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
		if (c->nin == OPCASE_INPUTS)
			return false;
		int i = c->nin++;
		c->in[i].scale = 1;
		for (char *end;; s = end + 1) {
			if (c->in[i].rank == 4)
				return false;
			c->in[i].dim[c->in[i].rank++] = strtol(s, &end, 10);
			if (*end == '*')
				c->in[i].scale = strtod(end + 1, &end);
			if (*end == '%' || *end == '<')
				c->in[i].lengths = *end == '<', c->in[i].codes = strtol(end + 1, &end, 10);
			if (*end == 0)
				break;
			if (*end != 'x')
				return false;
		}
	}
	return c->nin > 0;
}

static bool parse_line(struct opcase *c, char *line)
{
	char *save, *f = strtok_r(line, " \t", &save);
	c->name = f;
	char *inputs = strtok_r(NULL, " \t", &save);
	c->type = strtok_r(NULL, " \t", &save);
	if (!c->type || !parse_inputs(c, inputs))
		return false;
	while ((f = strtok_r(NULL, " \t", &save))) {
		char *eq = strchr(f, '=');
		if (!eq || c->nkeys == OPCASE_KEYS)
			return false;
		*eq = 0;
		c->kv[c->nkeys].key = f;
		c->kv[c->nkeys++].value = eq + 1;
	}
	return true;
}

static enum gt_code read_cases(struct optable *t, const char *path, struct gt_err *err)
{
	char *text;
	size_t n;
	int lines = 1, number = 0;
	GT_TRY(slurp(t->arena, path, &text, &n, err));
	for (size_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	GT_NEW(t->cases, t->arena, lines, err);
	for (char *next, *line = text; line; line = next) {
		number++;
		if ((next = strchr(line, '\n')))
			*next++ = 0;
		if (strchr(line, '#'))
			*strchr(line, '#') = 0;
		if (!line[strspn(line, " \t")])
			continue;
		if (!parse_line(&t->cases[t->ncases++], line))
			return gt_fail(err, GT_EDATA, "%s:%d: not a case", path, number);
	}
	return GT_OK;
}

static enum gt_code read_goldens(struct optable *t, const char *path, struct gt_err *err)
{
	char *p;
	size_t n, at = 8;
	GT_TRY(slurp(t->arena, path, &p, &n, err));
	if (n < 8 || memcmp(p, "gtgold1\n", 8) != 0)
		return gt_fail(err, GT_EDATA, "%s: not a golden file", path);
	GT_NEW(t->goldens, t->arena, n / 8, err);
	while (at < n) {
		struct golden *g = &t->goldens[t->ngoldens++];
		uint16_t len;
		uint32_t count;
		if (n - at < 2)
			return gt_fail(err, GT_EDATA, "%s: truncated", path);
		memcpy(&len, p + at, 2);
		if (n - at < 6u + len)
			return gt_fail(err, GT_EDATA, "%s: truncated", path);
		memcpy(&count, p + at + 2 + len, 4);
		float *v;
		if (n - at - 6 - len < (size_t)count * 4)
			return gt_fail(err, GT_EDATA, "%s: truncated", path);
		GT_NEW(v, t->arena, count + 1, err);
		memcpy(v, p + at + 6 + len, (size_t)count * 4);
		GT_NEW_STR(g->name, gt_arena_printf(t->arena, "%.*s", (int)len, p + at + 2), err);
		g->n = count;
		g->v = v;
		at += 6u + len + (size_t)count * 4;
	}
	return GT_OK;
}

enum gt_code optable_read(const char *cases, const char *goldens, struct optable *out, struct gt_err *err)
{
	memset(out, 0, sizeof *out);
	GT_TRY(gt_arena_open(&out->arena, err));
	GT_TRY(read_cases(out, cases, err));
	return goldens ? read_goldens(out, goldens, err) : GT_OK;
}

const char *opcase_key(const struct opcase *c, const char *key)
{
	for (int i = 0; i < c->nkeys; i++)
		if (strcmp(c->kv[i].key, key) == 0)
			return c->kv[i].value;
	return NULL;
}

double opcase_number(const struct opcase *c, const char *key, double def)
{
	const char *v = opcase_key(c, key);
	return v ? strtod(v, NULL) : def;
}

const struct golden *optable_golden(const struct optable *t, const char *name)
{
	for (int i = 0; i < t->ngoldens; i++)
		if (strcmp(t->goldens[i].name, name) == 0)
			return &t->goldens[i];
	return NULL;
}
