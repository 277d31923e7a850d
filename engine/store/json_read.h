/* Reading JSON from hostile files, strictly (RFC 8259): no control characters, no bytes that are not UTF-8, no "\u0000" (which would cut a
 * name short), no numbers like "01", no key twice in an object. */
#ifndef GT_STORE_JSON_READ_H
#define GT_STORE_JSON_READ_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_JSON_READ_DEPTH 16

enum gt_json_type { GT_JSON_NULL, GT_JSON_FALSE, GT_JSON_TRUE, GT_JSON_NUMBER, GT_JSON_STRING, GT_JSON_ARRAY, GT_JSON_OBJECT };

struct gt_json_value {
	enum gt_json_type type;
	const char *key;             /* of a member of an object; else NULL */
	const char *text;            /* of a string: UTF-8; else NULL */
	double number;               /* of a number: the nearest double, infinite beyond all */
	struct gt_json_value *child; /* the first element of an array, member of an object; NULL: it has none */
	struct gt_json_value *next;  /* the next element or member */
};

/* text: n bytes, white space around the value allowed. depth: levels of nesting allowed, at most GT_JSON_READ_DEPTH. nodes: values
 * allowed. *out is owned by the arena. GT_EDATA names path and the byte where the text is wrong, or the key that is there twice;
 * GT_EFAIL: out of memory. */
enum gt_code gt_json_parse(const char *text, size_t n, const char *path, int depth, size_t nodes, struct gt_arena *a,
                           const struct gt_json_value **out, struct gt_err *err);

/* The member of an object; NULL: there is none, or v is no object or NULL. */
const struct gt_json_value *gt_json_member(const struct gt_json_value *v, const char *key);
bool gt_json_is(const struct gt_json_value *v, enum gt_json_type type); /* false for NULL */
const char *gt_json_text(const struct gt_json_value *v);                /* NULL unless v is a string */
/* A whole number from 0 to 2^53, where doubles are exact; false: v is none, or NULL. */
bool gt_json_whole(const struct gt_json_value *v, int64_t *out);

#endif
