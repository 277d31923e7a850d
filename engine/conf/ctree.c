/* Parses a config with libconfig; no other file uses libconfig. lexer.c has checked the text, so that duplicate names are the only
 * remaining error of libconfig. The lexer could build the tree itself, which would save about 100 lines here and the dependency. But
 * libconfig defines the language of gtrain's configs. This pass ensures that libconfig's own parser reads every config that gtrain accepts,
 * so that other programs with libconfig can read and write configs. */
#include "conf/ctree.h"
#include <inttypes.h>
#include <libconfig.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gt_clean_free(struct gt_clean *c)
{
	free(c->text);
	free(c->loc);
	memset(c, 0, sizeof *c);
}

enum gt_code gt_conf_fail(struct gt_err *err, struct gt_source_loc at, const char *path, const char *fmt, ...)
{
	char msg[sizeof((struct gt_err *)0)->msg], line[16] = "";
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);
	if (at.line > 0)
		snprintf(line, sizeof line, ":%d", at.line);
	if (!path || !path[0]) {
		gt_fail(err, GT_ECONFIG, "%s%s: %s", at.file, line, msg);
	} else {
		gt_fail(err, GT_ECONFIG, "%s%s: %s: %s", at.file, line, path, msg);
		if (err)
			err->subject = snprintf(NULL, 0, "%s%s: %s:", at.file, line, path);
	}
	if (err)
		err->line = at.line;
	return GT_ECONFIG;
}

const char *gt_utf8_truncate(const char *s, char *buf, size_t size)
{
	size_t n = strlen(s);
	if (n < size) {
		memcpy(buf, s, n + 1);
		return buf;
	}
	n = size - sizeof "…";
	while (n && ((unsigned char)s[n] & 0xC0) == 0x80)
		n--;
	memcpy(buf, s, n);
	memcpy(buf + n, "…", sizeof "…");
	return buf;
}

const char *gt_cnode_text(const struct gt_cnode *n, char *buf, size_t size)
{
	char word[48];
	switch (n->type) {
	case GT_C_GROUP:
		snprintf(buf, size, "a group { }");
		break;
	case GT_C_LIST:
		snprintf(buf, size, "a list ( ) of %d", n->nkids);
		break;
	case GT_C_ARRAY:
		snprintf(buf, size, "an array [ ] of %d", n->nkids);
		break;
	case GT_C_INT:
		snprintf(buf, size, "%" PRId64, n->i);
		break;
	case GT_C_FLOAT:
		snprintf(buf, size, n->f == floor(n->f) && fabs(n->f) < 1e15 ? "%.1f" : "%.15g", n->f);
		break;
	case GT_C_BOOL:
		snprintf(buf, size, "%s", n->b ? "true" : "false");
		break;
	case GT_C_STRING:
		snprintf(buf, size, "\"%s\"", gt_utf8_truncate(n->s, word, sizeof word));
		break;
	}
	return buf;
}

enum gt_code gt_conf_expect(struct gt_err *err, const struct gt_cnode *n, const char *path, const char *what)
{
	char got[64];
	return gt_conf_fail(err, n->loc, path, "expected %s, got %s", what, gt_cnode_text(n, got, sizeof got));
}

enum gt_code gt_cnode_new(struct gt_arena *a, enum gt_ctype type, const char *name, struct gt_source_loc loc, struct gt_cnode **out,
                          struct gt_err *err)
{
	struct gt_cnode *n;
	GT_NEW(n, a, 1, err);
	n->type = type;
	n->loc = loc;
	if (name)
		GT_NEW_STR(n->name, gt_arena_strdup(a, name), err);
	*out = n;
	return GT_OK;
}

enum gt_code gt_cnode_add(struct gt_arena *a, struct gt_cnode *parent, struct gt_cnode *kid, struct gt_err *err)
{
	GT_TRY(gt_arena_grow(a, &parent->kid, parent->nkids, &parent->cap, sizeof *parent->kid, err));
	parent->kid[parent->nkids++] = kid;
	return GT_OK;
}

struct gt_cnode *gt_cnode_find(const struct gt_cnode *group, const char *name)
{
	if (group->type != GT_C_GROUP)
		return NULL;
	for (int i = 0; i < group->nkids; i++)
		if (!strcmp(group->kid[i]->name, name))
			return group->kid[i];
	return NULL;
}

static struct gt_source_loc loc_of_line(const struct gt_clean *c, unsigned line)
{
	if (line >= 1 && line <= (unsigned)c->nlines)
		return c->loc[line - 1];
	return c->nlines ? c->loc[c->nlines - 1] : (struct gt_source_loc){"config", 1};
}

static enum gt_code convert_setting(struct gt_arena *a, const struct gt_clean *c, const config_setting_t *s, struct gt_cnode **out,
                                    struct gt_err *err)
{
	static const enum gt_ctype types[] = {
	    [CONFIG_TYPE_GROUP] = GT_C_GROUP, [CONFIG_TYPE_INT] = GT_C_INT,       [CONFIG_TYPE_INT64] = GT_C_INT,
	    [CONFIG_TYPE_FLOAT] = GT_C_FLOAT, [CONFIG_TYPE_STRING] = GT_C_STRING, [CONFIG_TYPE_BOOL] = GT_C_BOOL,
	    [CONFIG_TYPE_ARRAY] = GT_C_ARRAY, [CONFIG_TYPE_LIST] = GT_C_LIST};
	int type = config_setting_type(s);
	struct gt_cnode *n = NULL;
	/* A member of a group always has a name, and a string a text. NULL means that strdup has failed in libconfig. */
	const char *name = config_setting_name(s), *text = type == CONFIG_TYPE_STRING ? config_setting_get_string(s) : NULL;
	const config_setting_t *parent = config_setting_parent(s);
	if ((!name && parent && config_setting_is_group(parent)) || (!text && type == CONFIG_TYPE_STRING))
		return gt_fail_memory(err, 0);
	GT_TRY(gt_cnode_new(a, types[type], name, loc_of_line(c, config_setting_is_root(s) ? 1 : s->line), &n, err));
	switch (type) {
	case CONFIG_TYPE_INT:
		n->i = config_setting_get_int(s);
		break;
	case CONFIG_TYPE_INT64:
		n->i = config_setting_get_int64(s);
		break;
	case CONFIG_TYPE_FLOAT:
		n->f = config_setting_get_float(s);
		break;
	case CONFIG_TYPE_BOOL:
		n->b = config_setting_get_bool(s);
		break;
	case CONFIG_TYPE_STRING:
		GT_NEW_STR(n->s, gt_arena_strdup(a, text), err);
		break;
	default:
		for (int i = 0, len = config_setting_length(s); i < len; i++) {
			struct gt_cnode *kid;
			GT_TRY(convert_setting(a, c, config_setting_get_elem(s, (unsigned)i), &kid, err));
			GT_TRY(gt_cnode_add(a, n, kid, err));
		}
	}
	*out = n;
	return GT_OK;
}

enum gt_code gt_ctree_parse(struct gt_arena *a, const struct gt_clean *c, struct gt_cnode **out, struct gt_err *err)
{
	config_t cfg;
	enum gt_code code;
	/* libconfig does not check its allocations: a failed allocation ends the process by SIGSEGV. Therefore the memory that libconfig will
	 * need (about 100 bytes for each setting of at least 4 bytes of text) is first allocated and freed here, to detect a memory limit. This
	 * does not help if another thread allocates the memory in between. */
	size_t need = (1 << 20) + 64 * c->len;
	void *room = malloc(need);
	if (!room)
		return gt_fail_memory(err, need);
	free(room);
	config_init(&cfg);
	if (config_read_string(&cfg, c->text ? c->text : "") == CONFIG_TRUE) {
		code = convert_setting(a, c, config_root_setting(&cfg), out, err);
	} else {
		/* The lexer has checked the grammar, so the error is a name that appears twice in its group. */
		const char *why = config_error_text(&cfg), *line = c->text ? c->text : "";
		for (int i = 1; i < config_error_line(&cfg) && strchr(line, '\n'); i++)
			line = strchr(line, '\n') + 1;
		bool twice = why && strstr(why, "duplicate");
		code = gt_conf_fail(err, loc_of_line(c, (unsigned)config_error_line(&cfg)), NULL, "\"%.*s\": %s", (int)strcspn(line, "=\n"), line,
		                    twice ? "expected each key of a group once, got this key twice; remove one of the "
		                            "two" : why ? why : "not readable");
	}
	config_destroy(&cfg);
	return code;
}

const char *gt_ctree_library(char *buf, size_t size)
{
	snprintf(buf, size, "libconfig %d.%d.%d", LIBCONFIG_VER_MAJOR, LIBCONFIG_VER_MINOR, LIBCONFIG_VER_REVISION);
	return buf;
}
