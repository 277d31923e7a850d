#include "csv.h"
#include "base/arena.h"
#include "format.h"
#include "gzfile.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct gt_csv {
	char shown[400];
	char delimiter;
	char *text, *at, *end; /* the content of the file; fields are ended and unquoted in place */
	int64_t line;          /* of *at, from 1 */
	char **field;          /* [cap] */
	int64_t cap;
};

enum gt_code gt_csv_open(const char *path, char delimiter, struct gt_csv **out, struct gt_err *err)
{
	struct gt_gzfile f;
	uint8_t *text = NULL;
	uint64_t size = 0;
	*out = NULL;
	GT_TRY(gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &f, err));
	enum gt_code code = gt_gzfile_load(&f, &text, &size, err);
	gt_gzfile_close(&f);
	struct gt_csv *c = code == GT_OK ? calloc(1, sizeof *c) : NULL;
	/* one byte more, in which the last field can be ended */
	uint8_t *grown = c ? realloc(text, size + 1) : NULL;
	if (code == GT_OK && !grown)
		code = gt_fail_memory(err, size + 1);
	if (code != GT_OK) {
		free(c);
		free(text);
		return code;
	}
	memcpy(c->shown, f.shown, sizeof c->shown);
	c->delimiter = delimiter;
	c->text = c->at = (char *)grown;
	c->end = c->text + size;
	c->line = 1;
	if (size >= 3 && !memcmp(c->text, "\xef\xbb\xbf", 3))
		c->at += 3;
	*out = c;
	return GT_OK;
}

void gt_csv_close(struct gt_csv *c)
{
	if (!c)
		return;
	free(c->text);
	free(c->field);
	free(c);
}

static enum gt_code wrong(const struct gt_csv *c, int64_t line, const char *why, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%s:%lld: %s", c->shown, (long long)line, why);
}

static enum gt_code add_field(struct gt_csv *c, struct gt_csv_record *r, char *field, struct gt_err *err)
{
	if (r->n == GT_CSV_MAX_FIELDS)
		return wrong(c, r->line, "expected at most 65536 fields in a record, got more", err);
	GT_GROW(c->field, c->cap, r->n + 1, err);
	c->field[r->n++] = field;
	return GT_OK;
}

/* Reads a field in quotes; c->at is after the opening quote. Writes the unquoted text over the quoted one, and its end to *end. */
static enum gt_code quoted(struct gt_csv *c, char **end, struct gt_err *err)
{
	char *to = c->at, *begin = c->at;
	int64_t line = c->line;
	for (;;) {
		if (c->at == c->end)
			return wrong(c, line, "a quoted field that begins here does not end", err);
		if (*c->at == '"') {
			if (c->at + 1 < c->end && c->at[1] == '"') {
				c->at++;
			} else {
				c->at++;
				break;
			}
		}
		if (!*c->at)
			return wrong(c, c->line, "expected text, got a NUL byte", err);
		if (c->at - begin > GT_CSV_MAX_FIELD)
			return wrong(c, line, "expected fields of at most 1 MiB, got a longer one; a closing quote may be missing", err);
		c->line += *c->at == '\n';
		*to++ = *c->at++;
	}
	*end = to;
	if (c->at < c->end && *c->at != c->delimiter && *c->at != '\n' && *c->at != '\r')
		return wrong(c, c->line, "expected a delimiter or the end of the line after a closing quote", err);
	return GT_OK;
}

static enum gt_code plain(struct gt_csv *c, char **end, struct gt_err *err)
{
	char *begin = c->at;
	for (; c->at < c->end && *c->at != c->delimiter && *c->at != '\n'; c->at++) {
		if (!*c->at)
			return wrong(c, c->line, "expected text, got a NUL byte", err);
		if (c->at - begin > GT_CSV_MAX_FIELD)
			return wrong(c, c->line, "expected fields of at most 1 MiB, got a longer one", err);
	}
	*end = c->at > begin && c->at[-1] == '\r' && (c->at == c->end || *c->at == '\n') ? c->at - 1 : c->at;
	return GT_OK;
}

enum gt_code gt_csv_next(struct gt_csv *c, struct gt_csv_record *out, struct gt_err *err)
{
	*out = (struct gt_csv_record){0};
	while (c->at < c->end && (*c->at == '\n' || (*c->at == '\r' && c->at + 1 < c->end && c->at[1] == '\n'))) {
		c->line += *c->at == '\n';
		c->at++;
	}
	out->line = c->line;
	for (bool more = c->at < c->end; more;) {
		char *end = c->at, *field = c->at;
		bool is_quoted = c->at < c->end && *c->at == '"';
		if (is_quoted) {
			field = ++c->at;
			GT_TRY(quoted(c, &end, err));
		} else {
			GT_TRY(plain(c, &end, err));
		}
		if (c->at < c->end && *c->at == '\r')
			c->at++;
		more = c->at < c->end && *c->at == c->delimiter;
		if (c->at < c->end && *c->at == '\n')
			c->line++;
		else if (c->at < c->end && !more)
			return wrong(c, c->line, "expected the end of the line after a carriage return", err);
		if (c->at < c->end)
			c->at++;
		*end = 0;
		GT_TRY(add_field(c, out, field, err));
	}
	out->field = c->field;
	return GT_OK;
}
