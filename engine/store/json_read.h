/* Reading JSON from hostile files, strictly (RFC 8259), with cJSON behind it. cJSON alone takes control characters, bytes that are no
 * UTF-8, "\u0000" (which would cut a name short) and numbers like "01", keeps the first of two equal keys, and cannot tell a wrong text
 * from exhausted memory; so the text is checked here first, and cJSON builds the tree of a text known to be right. */
#ifndef GT_STORE_JSON_READ_H
#define GT_STORE_JSON_READ_H

#include "base/err.h"
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_JSON_READ_DEPTH 16

/* text: n bytes, white space around the value allowed. depth: levels of nesting taken, at most GT_JSON_READ_DEPTH. nodes: values
 * taken (cJSON needs about 100 bytes each). The caller frees with cJSON_Delete(). GT_EDATA names path and the byte where the text
 * is wrong, or the key that stands twice; GT_EFAIL: out of memory. */
enum gt_code gt_json_parse(const char *text, size_t n, const char *path, int depth, size_t nodes, cJSON **out, struct gt_err *err);

/* A whole number from 0 to 2^53, where doubles are exact. */
bool gt_json_whole(const cJSON *v, int64_t *out);

#endif
