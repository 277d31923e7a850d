/* Reads the source text of a config token by token. Text that libconfig would misread is an error. Other text is written in an unambiguous
 * form (source_reader.h), with one name or element per line, so that the line number of a setting of libconfig leads to its origin. */
#include "conf/source_reader.h"
#include "base/arena.h"
#include "conf/conf_string.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* States of an open bracket. In a group: a name, `=`, a value, an optional `;` or `,`. In a list or array: values separated by commas. */
enum { NAME, EQUALS, VALUE, SEP, FIRST, ELEMENT, COMMA };

static struct gt_frame *top_frame(struct gt_lexer *lx)
{
	return &lx->frame[lx->depth];
}

static enum gt_code put_text(struct gt_lexer *lx, const char *s, size_t n, struct gt_err *err)
{
	struct gt_clean *o = lx->out;
	GT_GROW(o->text, o->cap, (int64_t)(o->len + n) + 1, err);
	memcpy(o->text + o->len, s, n);
	o->len += n;
	o->text[o->len] = 0;
	return GT_OK;
}

/* Begins a line of the output, and stores the file and line of the source from which it comes. */
static enum gt_code begin_line(struct gt_lexer *lx, struct gt_err *err)
{
	struct gt_clean *o = lx->out;
	GT_GROW(o->loc, o->cap_lines, o->nlines + 1, err);
	if (o->nlines >= GT_CONF_MAX_VALUES)
		return gt_conf_fail(err, lx->at, NULL, "expected at most %d names and values in a config, got more", GT_CONF_MAX_VALUES);
	o->loc[o->nlines++] = lx->at;
	return o->nlines > 1 ? put_text(lx, "\n", 1, err) : GT_OK;
}

/* Writes the token at p for "got …" in errors: printable and short. */
static const char *describe_token(const struct gt_lexer *lx, const char *p, char buf[64])
{
	size_t n = 0;
	if (p >= lx->end)
		return "the end of the file";
	unsigned char c = (unsigned char)*p;
	if (c < 0x20 || c == 0x7F) {
		snprintf(buf, 64, "the byte 0x%02x", c);
		return buf;
	}
	if (isalnum(c) || strchr("_*+-.$@", c))
		while (n < 40 && p + n < lx->end && (isalnum((unsigned char)p[n]) || (p[n] && strchr("_*+-.$@", p[n]))))
			n++;
	else if (c >= 0x80)
		for (n = 1; n < 4 && p + n < lx->end && ((unsigned char)p[n] & 0xC0) == 0x80; n++)
			;
	else
		n = 1;
	if (c >= 0x80 && gt_string_fault(p, n))
		snprintf(buf, 64, "the byte 0x%02x", c);
	else if (c == '"')
		snprintf(buf, 64, "a string");
	else
		snprintf(buf, 64, "%s%.*s%s", n == 1 && !isalnum(c) ? "`" : "", (int)n, p, n == 1 && !isalnum(c) ? "`" : "");
	return buf;
}

static enum gt_code refuse_token(struct gt_lexer *lx, const char *p, struct gt_err *err)
{
	char got[64];
	static const char *const wants[] = {
	    [NAME] = "the name of a key", [EQUALS] = "`=` after ",         [VALUE] = "a value for ",       [SEP] = "`;`",
	    [FIRST] = "a value",          [ELEMENT] = "a value after `,`", [COMMA] = "`,` between values",
	};
	const struct gt_frame *f = top_frame(lx);
	const char *close = f->open == '{' ? " or `}`" : f->open == '(' ? " or `)`" : f->open == '[' ? " or `]`" : "";
	if (f->state == EQUALS || f->state == VALUE)
		return gt_conf_fail(err, lx->at, NULL, "expected %s%.*s, got %s%s", wants[f->state], lx->nkey, lx->key,
		                    describe_token(lx, p, got), f->state == VALUE && *p == '\'' ? "; write a string in \"quotes\"" : "");
	return gt_conf_fail(err, lx->at, NULL, "expected %s%s, got %s", wants[f->state], close, describe_token(lx, p, got));
}

/* Checks that a value of type `kind` may begin at p, and begins an output line for an element. */
static enum gt_code begin_value(struct gt_lexer *lx, enum gt_ctype kind, const char *p, struct gt_err *err)
{
	struct gt_frame *f = top_frame(lx);
	if (f->state != VALUE && f->state != FIRST && f->state != ELEMENT)
		return refuse_token(lx, p, err);
	if (f->state == VALUE) { /* no new line: the value of a key is written on the line of its name */
		f->state = SEP;
		return GT_OK;
	}
	if (f->open == '[') {
		if (kind <= GT_C_ARRAY)
			return gt_conf_fail(err, lx->at, NULL, "expected numbers, strings or booleans in an array [ ]; write a list ( ) for other "
			                    "values");
		if (f->count && kind != f->kind)
			return gt_conf_fail(err, lx->at, NULL, "expected values of one type in an array [ ]%s",
			                    kind + f->kind == GT_C_INT + GT_C_FLOAT ? ", got integers and floats; write 1.0 instead of 1"
			                                                            : "; write a list ( ) for values of several types");
		f->kind = kind;
	}
	if (f->count >= GT_CONF_MAX_ELEMENTS)
		return gt_conf_fail(err, lx->at, NULL, "expected at most %d elements, got more", GT_CONF_MAX_ELEMENTS);
	if (f->count++) /* the comma is written before the next element, so that no comma precedes a closing bracket */
		GT_TRY(put_text(lx, ",", 1, err));
	f->state = COMMA;
	return begin_line(lx, err);
}

static enum gt_code open_bracket(struct gt_lexer *lx, struct gt_err *err)
{
	char c = *lx->p;
	GT_TRY(begin_value(lx, c == '{' ? GT_C_GROUP : c == '(' ? GT_C_LIST : GT_C_ARRAY, lx->p, err));
	if (lx->depth == GT_CONF_MAX_DEPTH)
		return gt_conf_fail(err, lx->at, NULL, "expected brackets that are nested at most %d deep, got more", GT_CONF_MAX_DEPTH);
	lx->frame[++lx->depth] = (struct gt_frame){.open = c, .state = c == '{' ? NAME : FIRST, .loc = lx->at};
	lx->p++;
	return put_text(lx, &c, 1, err);
}

static enum gt_code close_bracket(struct gt_lexer *lx, int base, struct gt_err *err)
{
	char c = *lx->p, open = c == '}' ? '{' : c == ')' ? '(' : '[';
	const struct gt_frame *f = top_frame(lx);
	if (lx->depth == base)
		return gt_conf_fail(err, lx->at, NULL, "unexpected `%c`: no bracket is open", c);
	if (f->open != open)
		return gt_conf_fail(err, lx->at, NULL, "`%c` cannot close the `%c` of line %d", c, f->open, f->loc.line);
	if (f->state == EQUALS || f->state == VALUE)
		return refuse_token(lx, lx->p, err);
	lx->depth--;
	lx->p++;
	return put_text(lx, &c, 1, err);
}

static enum gt_code read_word(struct gt_lexer *lx, struct gt_err *err)
{
	struct gt_frame *f = top_frame(lx);
	const char *p = lx->p;
	size_t n = 0;
	while (p + n < lx->end && (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '-' || p[n] == '*'))
		n++;
	bool yes = n == 4 && !strncasecmp(p, "true", 4), no = n == 5 && !strncasecmp(p, "false", 5);
	if (f->state == VALUE || f->state == FIRST || f->state == ELEMENT) {
		if (!yes && !no)
			return gt_conf_fail(err, lx->at, NULL, "expected a value, got %.*s; write a string in \"quotes\"", (int)(n > 40 ? 40 : n), p);
		GT_TRY(begin_value(lx, GT_C_BOOL, p, err));
		lx->p += n;
		return put_text(lx, yes ? "true" : "false", yes ? 4 : 5, err);
	}
	if ((f->state != NAME && f->state != SEP) || yes || no)
		return refuse_token(lx, p, err);
	if (f->count++ >= GT_CONF_MAX_MEMBERS)
		return gt_conf_fail(err, lx->at, NULL, "expected at most %d keys in one group, got more", GT_CONF_MAX_MEMBERS);
	if (f->state == SEP) /* a name after a value without a separator is an error here, although libconfig accepts `a = 1 b = 2` */
		GT_TRY(put_text(lx, ";", 1, err));
	f->state = EQUALS;
	lx->key = p;
	lx->nkey = n > 40 ? 40 : (int)n;
	GT_TRY(begin_line(lx, err));
	lx->p += n;
	return put_text(lx, p, n, err);
}

static bool skip_digits(const char **p, int (*is)(int))
{
	const char *from = *p;
	while (is((unsigned char)**p))
		++*p;
	return *p > from;
}

/* Reads a number, and writes it so that libconfig reads it without loss: integers with the suffix L, floats with 17 digits. */
static enum gt_code read_number(struct gt_lexer *lx, struct gt_err *err)
{
	char buf[512], out[64];
	const char *from = lx->p, *p = buf;
	size_t n = 0;
	while (from + n < lx->end && (isalnum((unsigned char)from[n]) || strchr("+-._", from[n])) && from[n])
		n++;
	if (n >= sizeof buf)
		return gt_conf_fail(err, lx->at, NULL, "expected a number of less than 512 characters, got %zu", n);
	memcpy(buf, from, n);
	buf[n] = 0;
	bool hex = buf[0] == '0' && (buf[1] == 'x' || buf[1] == 'X'), sign = buf[0] == '+' || buf[0] == '-', real = false, ok;
	p += hex ? 2 : sign;
	const char *first = p;
	if (hex) {
		ok = skip_digits(&p, isxdigit);
	} else {
		ok = skip_digits(&p, isdigit);
		if (ok && p - first > 1 && *first == '0' && p[strspn(p, "Ll")] == 0)
			return gt_conf_fail(err, lx->at, NULL, "expected an integer without leading zeros, got %s", buf);
		if (*p == '.') {
			real = true;
			p++;
			ok = skip_digits(&p, isdigit) || ok;
		}
		if (ok && (*p == 'e' || *p == 'E')) {
			real = true;
			p++;
			p += *p == '+' || *p == '-';
			ok = skip_digits(&p, isdigit);
		}
	}
	const char *last = p;
	if (!real && *p == 'L')
		p += p[1] == 'L' ? 2 : 1;
	if (!ok || *p) {
		char cut[48];
		return gt_conf_fail(err, lx->at, NULL, "expected a number, got %s", gt_utf8_truncate(buf, cut, sizeof cut));
	}
	errno = 0;
	if (real) {
		double v = strtod(buf, NULL);
		bool zero = strspn(first, "0.") >= strcspn(first, "eE");
		if (!isfinite(v) || (v == 0 && !zero))
			return gt_conf_fail(err, lx->at, NULL, "expected a number that a 64-bit float can represent, got %s, which is %s",
			                    buf, v ? "too large" : "too small");
		snprintf(out, sizeof out - 2, "%.17g", v);
		if (!strpbrk(out, ".e"))
			strcat(out, ".0");
	} else {
		buf[last - buf] = 0;
		int64_t v = strtoll(buf, NULL, hex ? 16 : 10);
		if (errno == ERANGE)
			return gt_conf_fail(err, lx->at, NULL, "expected an integer from -9223372036854775808 to 9223372036854775807, got %s", buf);
		snprintf(out, sizeof out, "%" PRId64 "L", v);
	}
	GT_TRY(begin_value(lx, real ? GT_C_FLOAT : GT_C_INT, from, err));
	lx->p += n;
	return put_text(lx, out, strlen(out), err);
}

static enum gt_code keep_char(struct gt_lexer *lx, char c, struct gt_err *err)
{
	GT_GROW(lx->str, lx->cap_str, (int64_t)lx->nstr + 1, err);
	lx->str[lx->nstr++] = c;
	return GT_OK;
}

/* Decodes the string at lx->p and appends it to lx->str. */
static enum gt_code read_string(struct gt_lexer *lx, struct gt_err *err)
{
	const char *p = lx->p + 1;
	size_t from = lx->nstr;
	for (;; p++) {
		if (p >= lx->end || *p == '\n' || *p == '\r')
			return gt_conf_fail(err, lx->at, NULL,
			                    "expected a closing \" for the string that begins here before the end of the line");
		if (*p == '"')
			break;
		if (*p != '\\') {
			GT_TRY(keep_char(lx, *p, err));
			continue;
		}
		p++;
		if (p < lx->end && (*p == '\\' || *p == '"')) {
			GT_TRY(keep_char(lx, *p, err));
		} else if (lx->end - p > 2 && (*p == 'x' || *p == 'X') && isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2])) {
			char hex[3] = {p[1], p[2], 0};
			GT_TRY(keep_char(lx, (char)strtol(hex, NULL, 16), err));
			p += 2;
		} else if (p < lx->end && *p && strchr("nrtfabv", *p)) {
			return gt_conf_fail(err, lx->at, NULL, "expected a string without control characters, got a string with \\%c", *p);
		} else {
			return gt_conf_fail(err, lx->at, NULL, "this string contains an unknown escape sequence; write \\\\ for a backslash");
		}
	}
	const char *fault = lx->nstr > from ? gt_string_fault(lx->str + from, lx->nstr - from) : NULL;
	if (fault)
		return gt_conf_fail(err, lx->at, NULL, "expected a string of UTF-8 text without control characters, got a string with %s", fault);
	lx->p = p + 1;
	return GT_OK;
}

static enum gt_code skip_blank(struct gt_lexer *lx, struct gt_err *err);

/* Reads a string, or several adjacent strings, which are concatenated. */
static enum gt_code read_strings(struct gt_lexer *lx, struct gt_err *err)
{
	GT_TRY(begin_value(lx, GT_C_STRING, lx->p, err));
	lx->nstr = 0;
	while (lx->p < lx->end && *lx->p == '"') {
		GT_TRY(read_string(lx, err));
		GT_TRY(skip_blank(lx, err));
	}
	GT_TRY(put_text(lx, "\"", 1, err));
	for (size_t i = 0; i < lx->nstr; i++) {
		if (lx->str[i] == '"' || lx->str[i] == '\\')
			GT_TRY(put_text(lx, "\\", 1, err));
		GT_TRY(put_text(lx, lx->str + i, 1, err));
	}
	return put_text(lx, "\"", 1, err);
}

/* Skips blanks and comments. */
static enum gt_code skip_blank(struct gt_lexer *lx, struct gt_err *err)
{
	struct gt_source_loc from;
	while (lx->p < lx->end) {
		const char *p = lx->p;
		bool two = lx->end - p >= 2;
		if (*p == '\n') {
			lx->at.line += lx->at.line > 0;
			lx->bol = ++lx->p;
		} else if (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\f') {
			lx->p++;
		} else if (*p == '#' || (two && p[0] == '/' && p[1] == '/')) {
			const char *nl = memchr(p, '\n', (size_t)(lx->end - p));
			lx->p = nl ? nl : lx->end;
		} else if (two && p[0] == '/' && p[1] == '*') {
			from = lx->at;
			for (p += 2; lx->end - p >= 2 && !(p[0] == '*' && p[1] == '/'); p++) {
				if (*p == '\n') {
					lx->at.line += lx->at.line > 0;
					lx->bol = p + 1;
				}
			}
			if (lx->end - p < 2)
				return gt_conf_fail(err, from, NULL, "expected */ before the end of the file, because a comment begins here");
			lx->p = p + 2;
		} else {
			break;
		}
	}
	return GT_OK;
}

static enum gt_code at_include(struct gt_lexer *lx, struct gt_err *err)
{
	const char *p = lx->p;
	int state = top_frame(lx)->state;
	if (lx->end - p < 8 || memcmp(p, "@include", 8))
		return refuse_token(lx, p, err);
	if (!lx->include)
		return gt_conf_fail(err, lx->at, NULL, "expected no @include, because this text is not read from a file");
	for (const char *q = lx->bol; q < p; q++)
		if (*q != ' ' && *q != '\t')
			return gt_conf_fail(err, lx->at, NULL, "expected only @include \"file\" on this line");
	if (state == EQUALS || state == VALUE)
		return gt_conf_fail(err, lx->at, NULL, "expected a value, got @include; write @include before a key or between the values of a "
		                    "list");
	for (p += 8; p < lx->end && (*p == ' ' || *p == '\t'); p++)
		;
	if (p >= lx->end || *p != '"')
		return gt_conf_fail(err, lx->at, NULL, "expected @include \"file\"");
	lx->p = p;
	char *name;
	lx->nstr = 0;
	GT_TRY(read_string(lx, err));
	GT_NEW(name, lx->arena, lx->nstr + 1, err);
	memcpy(name, lx->str ? lx->str : "", lx->nstr);
	for (p = lx->p; p < lx->end && (*p == ' ' || *p == '\t' || *p == '\r'); p++)
		;
	if (p < lx->end && *p != '\n' && *p != '#' && *p != '/')
		return gt_conf_fail(err, lx->at, NULL, "expected only @include \"file\" on this line, without `;`");
	if (!name[0])
		return gt_conf_fail(err, lx->at, NULL, "expected @include \"file\"");
	return lx->include(lx, name, err);
}

enum gt_code gt_lex(struct gt_lexer *lx, struct gt_err *err)
{
	int base = lx->depth;
	for (;;) {
		GT_TRY(skip_blank(lx, err));
		if (lx->p >= lx->end)
			break;
		struct gt_frame *f = top_frame(lx);
		char c = *lx->p;
		if (c == '{' || c == '(' || c == '[') {
			GT_TRY(open_bracket(lx, err));
		} else if (c == '}' || c == ')' || c == ']') {
			GT_TRY(close_bracket(lx, base, err));
		} else if ((c == '=' || c == ':') && f->state == EQUALS) {
			f->state = VALUE;
			lx->p++;
			GT_TRY(put_text(lx, "=", 1, err));
		} else if ((c == ';' || c == ',') && f->state == SEP) {
			f->state = NAME;
			lx->p++;
			GT_TRY(put_text(lx, ";", 1, err));
		} else if (c == ',' && f->state == COMMA) {
			f->state = ELEMENT;
			lx->p++;
		} else if (c == '"') {
			GT_TRY(read_strings(lx, err));
		} else if (isalpha((unsigned char)c) || c == '*') {
			GT_TRY(read_word(lx, err));
		} else if (isdigit((unsigned char)c) || c == '+' || c == '-' || c == '.') {
			if (f->state != VALUE && f->state != FIRST && f->state != ELEMENT)
				return refuse_token(lx, lx->p, err);
			GT_TRY(read_number(lx, err));
		} else if (c == '@') {
			GT_TRY(at_include(lx, err));
		} else {
			return refuse_token(lx, lx->p, err);
		}
	}
	if (lx->depth > base)
		return gt_conf_fail(err, top_frame(lx)->loc, NULL, "the bracket `%c` is not closed; expected a `%c`", top_frame(lx)->open,
		                    top_frame(lx)->open == '{'   ? '}'
		                    : top_frame(lx)->open == '(' ? ')'
		                                             : ']');
	if (top_frame(lx)->state == EQUALS || top_frame(lx)->state == VALUE)
		return refuse_token(lx, lx->p, err);
	return GT_OK;
}
