/* The table of every key: path, type, place in struct gt_conf, default, range and help in one row. It drives reading (rowread.c), the
 * resolved text (conftext.c), --set's checks, the suggestions, and gtrain.cfg(5). The keys of a layer type are the attributes of
 * its operation's row (ir/op.h). */
#ifndef GT_CONF_SCHEMA_H
#define GT_CONF_SCHEMA_H

#include "base/problems.h"
#include "conf/conf.h"
#include "conf/ctree.h"
#include "ir/op.h"

enum gt_row_type {
	GT_T_INT,     /* int64_t */
	GT_T_FLOAT,   /* double; an integer is taken */
	GT_T_BOOL,    /* bool */
	GT_T_STRING,  /* const char * */
	GT_T_ENUM,    /* int: index into values */
	GT_T_CHOICE,  /* const char *: one of values */
	GT_T_AUTO,    /* int64_t: 0 is "auto" */
	GT_T_FLOATS,  /* struct gt_floats; one number is a list of one */
	GT_T_STRINGS, /* struct gt_strings; one string is a list of one */
	GT_T_PAIR,    /* double[2] */
	GT_T_DIMS,    /* int64_t[3]: one number, or three */
	GT_T_INT2,    /* int64_t[2]: one number for both, or two */
	GT_T_OTHER    /* a list or group that has its own reader; offset is not used */
};

enum gt_row_flag {
	GT_R_REQUIRED = 1 << 0, /* where it applies at all */
	GT_R_ABOVE = 1 << 1,    /* min itself is not allowed */
	GT_R_BELOW = 1 << 2     /* nor max */
};

struct gt_row {
	const char *path; /* below the object that the offset is of */
	enum gt_row_type type;
	size_t offset;
	const char *def; /* as it stands in a config; in parentheses: words for the manual, set by code; NULL: required */
	double min, max; /* of every number; both 0: any */
	unsigned flags;
	const char *values; /* ENUM, CHOICE: "a|b" */
	const char *when;   /* the ENUM row that says whether this key applies, … */
	const char *is;     /* … and the values for which it does: "a|b"; NULL: always */
	bool by_optimizer;  /* a key of train.optimizer: optimizer_rows.h says instead of `is` which types take it, and which have a default of their own */
	const char *help;
};

extern const struct gt_row gt_rows[];          /* of struct gt_conf; ends with path NULL */
extern const struct gt_row gt_rows_augment[];  /* of struct gt_conf_augment: the keys of an entry of data.augment */
extern const struct gt_row gt_rows_group[];    /* of struct gt_conf_group: the keys of an entry of train.groups, … */
/* … of struct gt_conf_optimizer and struct gt_conf_schedule: its optimizer and schedule */
extern const struct gt_row gt_rows_optimizer[];
extern const struct gt_row gt_rows_schedule[];
extern const struct gt_row gt_rows_layer[];    /* of struct gt_layer_spec: what every layer takes */
extern const struct gt_row gt_rows_block[];    /* what an entry of model.layers takes that is an instance of a block */
extern const struct gt_row gt_rows_template[]; /* the keys of an entry of model.blocks */

const struct gt_row *gt_row_find(const struct gt_row *rows, const char *path); /* NULL: none */
/* row.is, also of a key by_optimizer. buf: room for it; 128 bytes suffice. */
const char *gt_row_is(const struct gt_row *r, char *buf, size_t size);
/* row.def, with an optimizer of this type (enum gt_optimizer; -1: its word was refused). */
const char *gt_row_default_of(const struct gt_row *r, int type);
/* Whether the key applies to the values of base: its `when` row has one of the values of `is`. */
bool gt_row_applies(const struct gt_row *rows, const struct gt_row *r, const void *base);
/* The value of its `when` row, as a word. */
const char *gt_row_deciding(const struct gt_row *rows, const struct gt_row *r, const void *base, char word[48]);
/* "an integer ≥ 0": what a row takes, in words. got: what came instead, may be NULL: a far upper limit is named only to a number beyond
 * it. Returns buf; 512 bytes suffice. */
const char *gt_row_expects(const struct gt_row *r, const struct gt_cnode *got, char *buf, size_t size);
/* "0..", "(0, 1]", "": gt_schema_key.range. */
const char *gt_row_range(const struct gt_row *r, char *buf, size_t size);
/* "int", "a|b", "float[]": gt_schema_key.type */
const char *gt_row_typename(const struct gt_row *r);
/* The attribute as a row of the attribute struct. */
struct gt_row gt_row_of_attr(const struct gt_attr_def *d, char def[48]);

/* Index of word in "a|b|c", -1: none. */
int gt_values_index(const char *values, const char *word);
/* The i-th word of values into buf; NULL: past the end. */
const char *gt_values_word(const char *values, int i, char *buf, size_t size);

/* ---- suggestions ---------------------------------------------------------------------------------------------------------- */
struct gt_guess {
	const char *word;
	const char *best; /* NULL: nothing near enough */
	int distance;
};
struct gt_guess gt_guess_open(const char *word);
void gt_guess_try(struct gt_guess *g, const char *candidate); /* kept, not copied */

/* ---- reading, rowread.c -------------------------------------------------------------------------------------------------- */
#define GT_CONF_MAX_ERRORS 20 /* reading ends at so many */
struct gt_reading {
	struct gt_arena *arena;
	struct gt_conf *conf;
	struct gt_cnode *root;
	bool from_file;             /* false: from text in memory */
	struct gt_problems *errors; /* of the config, found so far */
};
/* Keeps an error of the config (code GT_ECONFIG) in the list and returns GT_OK, so that reading goes on; GT_ECONFIG once the list is full.
 * Every other code is returned as it is. */
enum gt_code gt_conf_collect(struct gt_reading *rd, enum gt_code code, const struct gt_err *err);
#define GT_COLLECT(rd, err, expr) GT_TRY(gt_conf_collect((rd), (expr), (err)))
/* Writes the default of a row to base + offset; nothing where it has none. */
enum gt_code gt_row_default(struct gt_arena *a, const struct gt_row *r, void *base, struct gt_err *err);
/* Checks and reads one value; path is for messages. */
enum gt_code gt_row_read(struct gt_arena *a, const struct gt_row *r, const struct gt_cnode *n, const char *path, void *base,
                         struct gt_err *err);
/* Reads a group by its rows: every default, then every key. Unknown keys, wrong types, values out of range, keys that do not apply and
 * missing keys are collected; a refused value leaves the default. shown stands before the paths in messages ("data.augment[0]."). Rows of
 * GT_T_OTHER are left alone. */
enum gt_code gt_object_read(struct gt_reading *rd, const struct gt_row *rows, const struct gt_cnode *group, const char *shown, void *base,
                            struct gt_err *err);
/* The node of a path ("train.optimizer.lr"), NULL where the config does not give it. */
const struct gt_cnode *gt_conf_given(const struct gt_cnode *group, const char *path);
/* Where a path stands, or the nearest group above it that does. */
struct gt_source_loc gt_conf_location(const struct gt_cnode *group, const char *path);
/* "unknown key" with a suggestion: n is a key whose path, below shown, is path. words: more keys that it may have meant, may be NULL. */
enum gt_code gt_conf_unknown(const struct gt_cnode *n, const char *shown, const char *path, const struct gt_row *rows,
                             const char *const *words, struct gt_err *err);
/* Whether path, or a group above it, was refused, or is missing beside an unknown key, which may be what it was meant to be: what else is
 * wrong with it follows from that. */
bool gt_conf_refused(const struct gt_cnode *group, const char *path);
/* confread.c. Everything: gt_rows, data.augment, the layers, the contradictions. GT_OK where errors were collected too. */
enum gt_code gt_conf_read(struct gt_reading *rd, struct gt_err *err);

enum gt_code gt_conf_groups(struct gt_reading *rd, struct gt_err *err); /* groups.c: train.groups, and what hangs on an optimizer's type */
/* Sets the defaults of an optimizer that depend on its type, of keys that `given` (its group in the config, or NULL) does not have. */
enum gt_code gt_conf_optimizer_defaults(struct gt_reading *rd, const struct gt_cnode *given, struct gt_conf_optimizer *o,
                                        struct gt_err *err);
/* Contradictions within one optimizer and schedule; shown stands before the paths. */
enum gt_code gt_conf_check_optimizer(struct gt_reading *rd, const char *shown, const struct gt_cnode *root, const char *opt,
                                     const char *sched, const struct gt_conf_optimizer *o, const struct gt_conf_schedule *s,
                                     struct gt_err *err);
enum gt_code gt_conf_layers(struct gt_reading *rd, struct gt_err *err);     /* blocks.c: model.layers, model.blocks */
enum gt_code gt_conf_validate(struct gt_reading *rd, struct gt_err *err); /* validate.c */
enum gt_code gt_conf_set(struct gt_arena *a, struct gt_cnode *root, const char *arg, struct gt_err *err); /* set.c */
enum gt_code gt_conf_write(struct gt_conf *c, struct gt_err *err);                                        /* conftext.c: makes c->text */

#endif
