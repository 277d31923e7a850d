/* A strict JSON parser for untrusted files (RFC 8259). It rejects control characters, bytes that are not UTF-8, "\u0000" (which would end a
 * name early), numbers like "01", and an object with the same key twice.
 *
 *     const struct gt_json_value *v;
 *     GT_TRY(gt_json_parse(text, n, path, 4, 1000, arena, &v, err));
 *     gt_json_whole(gt_json_member(v, "step"), &step);
 */
#ifndef GT_BASE_JSON_READ_H
#define GT_BASE_JSON_READ_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_JSON_READ_DEPTH 16 /* maximum levels of nesting */

enum gt_json_type { GT_JSON_NULL, GT_JSON_FALSE, GT_JSON_TRUE, GT_JSON_NUMBER, GT_JSON_STRING, GT_JSON_ARRAY, GT_JSON_OBJECT };

struct gt_json_value {
	enum gt_json_type type;
	const char *key;             /* the key if this value is a member of an object; else NULL */
	const char *text;            /* the text in UTF-8 if this value is a string; else NULL */
	double number;               /* the nearest double if this value is a number; infinite outside the range of doubles */
	struct gt_json_value *child; /* the first element of an array or member of an object; NULL: it is empty */
	struct gt_json_value *next;  /* the next element or member of the same array or object; NULL: it is the last */
};

/* Parses n bytes of text, which may have white space around the value. depth: maximum levels of nesting, at most GT_JSON_READ_DEPTH. nodes:
 * maximum number of values. The arena owns *out. GT_EDATA: the text is wrong; the sentence names path and the byte at which it is wrong, or
 * the key that occurs twice. GT_EFAIL: out of memory. */
enum gt_code gt_json_parse(const char *text, size_t n, const char *path, int depth, size_t nodes, struct gt_arena *a,
                           const struct gt_json_value **out, struct gt_err *err);

/* Returns the member of object v with this key; NULL: v lacks the key, is not an object, or is NULL. */
const struct gt_json_value *gt_json_member(const struct gt_json_value *v, const char *key);
bool gt_json_is(const struct gt_json_value *v, enum gt_json_type type); /* returns false if v is NULL */
const char *gt_json_text(const struct gt_json_value *v);                /* returns NULL unless v is a string */
/* Each returns a member of object v, or a default (in parentheses) if v lacks it: a number (NAN), a whole number (-1), a text (""), a
 * boolean (false), the first element of an array or member of an object (NULL). */
double gt_json_num(const struct gt_json_value *v, const char *key);
int64_t gt_json_count(const struct gt_json_value *v, const char *key);
const char *gt_json_str(const struct gt_json_value *v, const char *key);
bool gt_json_true(const struct gt_json_value *v, const char *key);
const struct gt_json_value *gt_json_first(const struct gt_json_value *v, const char *key);
/* Stores v in *out if it is a whole number from 0 to 2^53, the range in which doubles are exact. Otherwise, or if v is NULL, returns
 * false. */
bool gt_json_whole(const struct gt_json_value *v, int64_t *out);

#endif
