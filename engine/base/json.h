/* A small JSON writer into a growing buffer: metrics.jsonl, --json, manifests and safetensors headers. RFC 8259, one line, no spaces.
 *
 *   struct gt_json j = {0};
 *   gt_json_object(&j, NULL);
 *   gt_json_string(&j, "event", "train");
 *   gt_json_double(&j, "loss", loss, 9);
 *   gt_json_end(&j);
 *   GT_TRY(gt_json_finish(&j, &line, err));     line == j.text, valid until the next call on j
 *   gt_json_reset(&j);                          keeps the memory: a line that fits the last one allocates nothing
 *   gt_json_free(&j);
 *
 * key: the member's name inside an object, NULL inside an array and at the top. Failures (memory, wrong nesting) stick and are told
 * by gt_json_finish(). Strings are taken as UTF-8; a byte that is not part of a valid sequence becomes U+FFFD, so that the output
 * is valid JSON whatever a path or a name holds. Not thread-safe. */
#ifndef GT_BASE_JSON_H
#define GT_BASE_JSON_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_JSON_DEPTH 32

struct gt_json {
	char *text; /* NUL-terminated once something was written */
	size_t len, cap;
	int depth;
	char close[GT_JSON_DEPTH]; /* '}' or ']' of each open level */
	bool comma;                /* the next value needs one before it */
	bool no_memory, misused;
};

void gt_json_object(struct gt_json *j, const char *key);
void gt_json_array(struct gt_json *j, const char *key);
void gt_json_end(struct gt_json *j); /* closes the innermost object or array */

void gt_json_string(struct gt_json *j, const char *key, const char *value); /* NULL: null */
void gt_json_int(struct gt_json *j, const char *key, int64_t value);
void gt_json_uint(struct gt_json *j, const char *key, uint64_t value);
void gt_json_bool(struct gt_json *j, const char *key, bool value);
void gt_json_null(struct gt_json *j, const char *key);
/* digits: significant ones, 1..17; 17 gives the same double back. NaN and infinities become null. */
void gt_json_double(struct gt_json *j, const char *key, double value, int digits);

/* Length of the UTF-8 sequence that starts at s, of which `left` bytes may be read; 0 if it is none (RFC 3629: no overlong forms, no
 * surrogates, at most U+10FFFF). */
int gt_utf8_length(const unsigned char *s, size_t left);
bool gt_utf8_valid(const char *s);

/* *text: the finished line, owned by j, no newline. GT_EFAIL: out of memory; GT_EINTERNAL: something is still open or was misused. */
enum gt_code gt_json_finish(struct gt_json *j, const char **text, struct gt_err *err);
void gt_json_line(struct gt_json *j); /* appends a newline to a finished text */
void gt_json_reset(struct gt_json *j);
void gt_json_free(struct gt_json *j); /* leaves a zeroed, usable writer */

#endif
