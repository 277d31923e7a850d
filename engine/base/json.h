/* A JSON writer into a growing buffer, for metrics.jsonl, --json, manifests and safetensors headers. It writes one line without spaces
 * (RFC 8259).
 *
 *   struct gt_json j = {0};
 *   gt_json_object(&j, NULL);
 *   gt_json_string(&j, "event", "train");
 *   gt_json_double(&j, "loss", loss, 9);
 *   gt_json_end(&j);
 *   GT_TRY(gt_json_finish(&j, &line, err));     line is j.text, valid until the next call with j
 *   gt_json_reset(&j);                          keeps the memory: a line that is not longer allocates nothing
 *   gt_json_free(&j);
 *
 * key: the name of a member of an object; NULL in an array and at the top level. Failures (out of memory, wrong nesting) are kept and
 * returned by gt_json_finish(). Strings must be UTF-8; a byte that is not part of a valid sequence becomes U+FFFD, so that the output is
 * always valid JSON. Not thread-safe. */
#ifndef GT_BASE_JSON_H
#define GT_BASE_JSON_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_JSON_DEPTH 32

struct gt_json {
	char *text; /* NUL-terminated after the first write */
	size_t len;
	int64_t cap;
	int depth;
	char close[GT_JSON_DEPTH]; /* the bracket, '}' or ']', that closes each open object or array */
	bool comma;                /* whether a comma must precede the next value */
	bool exact;                /* write every number with 17 digits, so that readers get the same doubles */
	bool no_memory, misused;
};

void gt_json_object(struct gt_json *j, const char *key);
void gt_json_array(struct gt_json *j, const char *key);
void gt_json_end(struct gt_json *j); /* closes the innermost object or array */

void gt_json_string(struct gt_json *j, const char *key, const char *value); /* writes null if value is NULL */
void gt_json_int(struct gt_json *j, const char *key, int64_t value);
void gt_json_uint(struct gt_json *j, const char *key, uint64_t value);
void gt_json_bool(struct gt_json *j, const char *key, bool value);
void gt_json_null(struct gt_json *j, const char *key);
/* Writes a number with `digits` significant digits, 1..17; with 17, reading the text gives the same double. NaN and infinities become
 * null. */
void gt_json_double(struct gt_json *j, const char *key, double value, int digits);

/* Several members in one call: gt_json_add writes the members to the open object, gt_json_row writes an object with these members.
 *
 *   gt_json_row(j, NULL, GT_STR("name", l->name), GT_INT("params", l->params), GT_NUM("flops", l->flops, 15)); */
#define GT_STR(name, value) {.kind = 's', .key = (name), .text = (value)}
#define GT_INT(name, value) {.kind = 'i', .key = (name), .whole = (value)}
#define GT_UINT(name, value) {.kind = 'u', .key = (name), .bytes = (value)}
#define GT_BOOL(name, value) {.kind = 'b', .key = (name), .is = (value)}
#define GT_NUM(name, value, n) {.kind = 'n', .key = (name), .number = (value), .digits = (n)}
#define gt_json_add(j, ...) gt_json_write((j), (const struct gt_json_item[]){__VA_ARGS__, {0}})
#define gt_json_row(j, key, ...) (gt_json_object((j), (key)), gt_json_add((j), __VA_ARGS__), gt_json_end(j))
struct gt_json_item {
	const char *key;
	char kind; /* type of the value: a letter that GT_STR, GT_INT, … set */
	int digits;
	union {
		const char *text;
		int64_t whole;
		uint64_t bytes;
		double number;
		bool is;
	};
};
void gt_json_write(struct gt_json *j, const struct gt_json_item *item); /* an item without a kind ends the list */
/* Writes an array of n numbers. */
void gt_json_numbers(struct gt_json *j, const char *key, const double *v, int n, int digits);

/* Returns the length of the UTF-8 sequence at s, of which `left` bytes may be read; 0: not a valid sequence (RFC 3629: no overlong forms,
 * no surrogates, at most U+10FFFF). */
int gt_utf8_length(const unsigned char *s, size_t left);
bool gt_utf8_valid(const char *s);

/* Sets *text to the finished line without a newline, owned by j. Returns GT_EFAIL if memory ran out, and GT_EINTERNAL if an object or
 * array is not closed or the calls were not in a valid order. */
enum gt_code gt_json_finish(struct gt_json *j, const char **text, struct gt_err *err);
void gt_json_line(struct gt_json *j); /* appends a newline to a finished text */
void gt_json_reset(struct gt_json *j);
void gt_json_free(struct gt_json *j); /* leaves a zeroed writer, which can be used again */

#endif
