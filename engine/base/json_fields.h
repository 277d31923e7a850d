/* Tables of the members of JSON objects. The writer and the reader of a file use the same table, so that they cannot differ.
 *
 *     static const struct gt_json_field fields[] = {
 *         {"step", GT_FIELD_WHOLE, offsetof(struct state, step)},
 *         {"note", GT_FIELD_TEXT, offsetof(struct state, note), GT_FIELD_OPTIONAL},
 *         {NULL}};
 *     gt_json_put_fields(&j, fields, &state);
 *     const char *bad = gt_json_get_fields(object, fields, &state);
 */
#ifndef GT_BASE_JSON_FIELDS_H
#define GT_BASE_JSON_FIELDS_H

#include "base/json.h"
#include "base/json_read.h"

enum gt_field_type {
	GT_FIELD_WHOLE,    /* int64_t, 0 to 2^53 */
	GT_FIELD_FINITE,   /* double, not infinite and not NaN */
	GT_FIELD_REAL,     /* double. JSON has no infinity and no NaN: they are the strings "inf", "-inf" and "nan" */
	GT_FIELD_BOOL,     /* bool */
	GT_FIELD_TEXT,     /* const char *; after reading, it belongs to the parsed text */
	GT_FIELD_WORD,     /* an enum: the index of one of `words`, from 1 */
	GT_FIELD_DIGITS,   /* uint64_t, as a string of decimal digits, because JSON numbers are doubles */
	GT_FIELD_OBJECT    /* the members `fields`, whose offsets begin at the offset of this field */
};

/* Whether a member may be absent. A file of an earlier version lacks members that were added later, so such members are never required. */
enum gt_field_rule {
	GT_FIELD_REQUIRED, /* always written; a reader rejects an object without it */
	GT_FIELD_ADDED,    /* always written; absent in files of earlier versions, where its value is `none` */
	GT_FIELD_OPTIONAL  /* written unless its value is `none`; if it is absent, its value is `none` */
};

struct gt_json_field {
	const char *name;          /* NULL ends a table */
	enum gt_field_type type;
	size_t offset;             /* byte offset of the member's value in the struct */
	enum gt_field_rule rule;
	int64_t none;              /* WHOLE: value that means an absent member; for other types it is false or NULL */
	const char *const *words;  /* WORD: [nwords] */
	int nwords;
	const struct gt_json_field *fields; /* OBJECT */
	/* OBJECT: flag and count determine whether the object exists. If not, an optional member is absent, and a required member is null. */
	size_t flag;               /* offset of a bool that is true if the object exists, which the reader sets; 0: there is none */
	size_t count;              /* without flag: offset of an int64_t that is 0 if the object does not exist; 0: the object always exists */
};

/* Appends the members to an open object, in the order of the table. from: the struct. */
void gt_json_put_fields(struct gt_json *j, const struct gt_json_field *fields, const void *from);

/* Reads the members of an object into the struct `to`, which must be zeroed. Ignores members that the table lacks. Returns NULL, or the
 * name of the first member of the table that is missing or malformed; if it is inside an object of the table, the name of that object. If o
 * is NULL or not an object, all members are absent. */
const char *gt_json_get_fields(const struct gt_json_value *o, const struct gt_json_field *fields, void *to);

#endif
