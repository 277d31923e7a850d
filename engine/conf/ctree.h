/* The parsed config as a tree in an arena. ctree.c builds it with libconfig, and is the only file that uses a type of libconfig. Each node
 * has its file and line. --set changes the tree; then read_keys.c reads the values by the rows of the schema. */
#ifndef GT_CONF_CTREE_H
#define GT_CONF_CTREE_H

#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

enum gt_ctype { GT_C_GROUP, GT_C_LIST, GT_C_ARRAY, GT_C_INT, GT_C_FLOAT, GT_C_BOOL, GT_C_STRING };

struct gt_source_loc {
	const char *file; /* name of the file as the user wrote it; "--set a.b=c" for a node from --set */
	int line;         /* line number, from 1; 0: unknown */
};

struct gt_cnode {
	enum gt_ctype type;
	const char *name; /* name of the key; NULL for an element of a list or array */
	struct gt_source_loc loc;
	bool set;        /* the node comes from --set */
	bool bad;        /* the value has an error, so keys that depend on it are not checked */
	bool unknown;    /* the group has no key with this name */
	const char *raw; /* text of an unquoted value from --set, so that name=2024 can become a string; else NULL */
	int64_t i;
	double f;
	bool b;
	const char *s;
	struct gt_cnode **kid;
	int nkids, cap;
};

/* The output of source_reader.c for a file: text with one name or value per line, which libconfig cannot misread, and the origin of each
 * line. */
struct gt_clean {
	char *text; /* malloc'ed, NUL-terminated */
	size_t len;
	int64_t cap;
	struct gt_source_loc *loc; /* malloc'ed; loc[i] is the origin of line i + 1 of text */
	int nlines;
	int64_t cap_lines;
};
void gt_clean_free(struct gt_clean *c);

enum gt_code gt_ctree_parse(struct gt_arena *a, const struct gt_clean *c, struct gt_cnode **out, struct gt_err *err);

enum gt_code gt_cnode_new(struct gt_arena *a, enum gt_ctype type, const char *name, struct gt_source_loc loc, struct gt_cnode **out,
                          struct gt_err *err);
enum gt_code gt_cnode_add(struct gt_arena *a, struct gt_cnode *parent, struct gt_cnode *kid, struct gt_err *err);
struct gt_cnode *gt_cnode_find(const struct gt_cnode *group, const char *name); /* NULL: `group` lacks the key or is not a group */
/* Returns the text of the string n; NULL if n is not a string. */
static inline const char *gt_cnode_string(const struct gt_cnode *n)
{
	return n->type == GT_C_STRING ? n->s : NULL;
}
/* Returns the text of a string, or of any unquoted value of --set; else NULL. */
static inline const char *gt_cnode_word(const struct gt_cnode *n)
{
	return n->raw ? n->raw : gt_cnode_string(n);
}
/* Writes the value n as text into buf, for "got …" in errors: "ten" (with quotes), 3, a group { }, …; 64 bytes suffice. Returns buf. */
const char *gt_cnode_text(const struct gt_cnode *n, char *buf, size_t size);
/* Copies s into buf and truncates it if necessary, never inside of a UTF-8 character. Returns buf. */
const char *gt_utf8_truncate(const char *s, char *buf, size_t size);

/* Fills err with "file:line: path: …" and returns GT_ECONFIG. path may be NULL. */
enum gt_code gt_conf_fail(struct gt_err *err, struct gt_source_loc at, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Fills err with "expected …, got …", where n is the node in the config, and returns GT_ECONFIG. */
enum gt_code gt_conf_expect(struct gt_err *err, const struct gt_cnode *n, const char *path, const char *what);

/* Returns "libconfig" and its version, for `gtrain --version`. */
const char *gt_ctree_library(char *buf, size_t size);

#endif
