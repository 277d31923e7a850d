/* The table of all keys: each row has the path, type, offset in struct gt_conf, default, range and help text of one key. Reading
 * (rowread.c), the resolved config (conftext.c), the checks of --set, suggestions and gtrain.cfg(5) follow from it. The keys of a layer
 * type are the attributes of its operation (ir/op.h). */
#ifndef GT_CONF_SCHEMA_H
#define GT_CONF_SCHEMA_H

#include "base/problems.h"
#include "conf/conf.h"
#include "conf/ctree.h"
#include "ir/op.h"

enum gt_row_type {
	GT_T_INT,     /* int64_t */
	GT_T_FLOAT,   /* double; an integer is accepted */
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
	GT_T_OTHER    /* a list or group with a reader of its own; offset is not used */
};

enum gt_row_flag {
	GT_R_REQUIRED = 1 << 0, /* if it applies */
	GT_R_ABOVE = 1 << 1,    /* min itself is not allowed */
	GT_R_BELOW = 1 << 2     /* max itself is not allowed */
};

struct gt_row {
	const char *path; /* relative to the object that contains the field */
	enum gt_row_type type;
	size_t offset;
	const char *def; /* as in a config; in parentheses: a description for the manual of a default that code sets; NULL: required */
	double min, max; /* range of every number in the value; both 0: any */
	unsigned flags;
	const char *values; /* ENUM, CHOICE: "a|b" */
	const char *when;   /* path of the ENUM row that determines whether this key applies, … */
	const char *is;     /* … and the values for which it does: "a|b"; NULL: always */
	bool by_optimizer;  /* for keys of train.optimizer: optimizer_rows.h instead of `is` lists the types that take it, and their defaults */
	const char *help;
};

extern const struct gt_row gt_rows[];          /* of struct gt_conf; the last row has path NULL */
extern const struct gt_row gt_rows_augment[];  /* of struct gt_conf_augment: the keys of an entry of data.augment */
extern const struct gt_row gt_rows_group[];    /* of struct gt_conf_group: the keys of an entry of train.groups, … */
/* … of struct gt_conf_optimizer and struct gt_conf_schedule: its optimizer and schedule */
extern const struct gt_row gt_rows_optimizer[];
extern const struct gt_row gt_rows_schedule[];
extern const struct gt_row gt_rows_layer[];    /* of struct gt_layer_spec: the keys of every layer */
extern const struct gt_row gt_rows_block[];    /* the keys of an instance of a block in model.layers */
extern const struct gt_row gt_rows_template[]; /* the keys of an entry of model.blocks */

const struct gt_row *gt_row_find(const struct gt_row *rows, const char *path); /* NULL: none */
/* Returns row.is; for a key with by_optimizer, the types that take it, written into buf (128 bytes suffice). */
const char *gt_row_is(const struct gt_row *r, char *buf, size_t size);
/* Returns the default of a row for an optimizer of this type (enum gt_optimizer; -1: unknown, because its word was an error). */
const char *gt_row_default_of(const struct gt_row *r, int type);
/* Returns whether the key applies to the object base: its row `when` has one of the values of `is`. */
bool gt_row_applies(const struct gt_row *rows, const struct gt_row *r, const void *base);
/* Returns the value of the row `when` as a word. */
const char *gt_row_deciding(const struct gt_row *rows, const struct gt_row *r, const void *base, char word[48]);
/* Writes the expected value of a row in words, such as "an integer ≥ 0"; 512 bytes suffice. got: the value in the config, or NULL; a very
 * large upper limit is written only if got exceeds it. Returns buf. */
const char *gt_row_expects(const struct gt_row *r, const struct gt_cnode *got, char *buf, size_t size);
/* Writes the range for gt_schema_key.range: "0..", "(0, 1]", "". Returns buf. */
const char *gt_row_range(const struct gt_row *r, char *buf, size_t size);
/* Returns the type for gt_schema_key.type: "int", "a|b", "float[]". */
const char *gt_row_typename(const struct gt_row *r);
/* Converts an attribute of an operation to a row of its attribute struct. def: memory for the default. */
struct gt_row gt_row_of_attr(const struct gt_attr_def *d, char def[48]);

/* Returns the index of word in "a|b|c"; -1: it is not one of them. */
int gt_values_index(const char *values, const char *word);
/* Copies word i of values into buf and returns buf; NULL: there are fewer words. */
const char *gt_values_word(const char *values, int i, char *buf, size_t size);

/* ---- suggestions ---------------------------------------------------------------------------------------------------------- */
struct gt_guess {
	const char *word;
	const char *best; /* the most similar candidate until now; NULL: none is similar enough */
	int distance;
};
struct gt_guess gt_guess_open(const char *word);
void gt_guess_try(struct gt_guess *g, const char *candidate); /* the string is not copied */

/* ---- reading, rowread.c -------------------------------------------------------------------------------------------------- */
#define GT_CONF_MAX_ERRORS 20 /* reading stops after this number of errors */
struct gt_reading {
	struct gt_arena *arena;
	struct gt_conf *conf;
	struct gt_cnode *root;
	bool from_file;             /* false: from text in memory */
	struct gt_problems *errors; /* errors of the config that were found until now */
};
/* Adds an error of the config (code GT_ECONFIG) to the list and returns GT_OK, so that reading continues; returns GT_ECONFIG when the list
 * is full. Returns every other code unchanged. */
enum gt_code gt_conf_collect(struct gt_reading *rd, enum gt_code code, const struct gt_err *err);
#define GT_COLLECT(rd, err, expr) GT_TRY(gt_conf_collect((rd), (expr), (err)))
/* Writes the default of a row, if it has one, to its field in base. */
enum gt_code gt_row_default(struct gt_arena *a, const struct gt_row *r, void *base, struct gt_err *err);
/* Checks a value and writes it to its field in base. path: for messages. */
enum gt_code gt_row_read(struct gt_arena *a, const struct gt_row *r, const struct gt_cnode *n, const char *path, void *base,
                         struct gt_err *err);
/* Reads a group by its rows: writes all defaults, then all keys. Collects unknown keys, wrong types, values out of range, keys that do not
 * apply, and missing keys; after an error a field keeps its default. shown: the beginning of paths in messages ("data.augment[0]."). Rows
 * of type GT_T_OTHER are skipped. */
enum gt_code gt_object_read(struct gt_reading *rd, const struct gt_row *rows, const struct gt_cnode *group, const char *shown, void *base,
                            struct gt_err *err);
/* Returns the node of a path ("train.optimizer.lr"); NULL: the config does not have it. */
const struct gt_cnode *gt_conf_given(const struct gt_cnode *group, const char *path);
/* Returns the file and line of a path ("train.groups[2].match"), or of the nearest group above it that the config has. */
struct gt_source_loc gt_conf_location(const struct gt_cnode *group, const char *path);
/* Fills err with "unknown key" and a suggestion for the key n, whose path is shown + path. words: further keys to suggest, or NULL. */
enum gt_code gt_conf_unknown(const struct gt_cnode *n, const char *shown, const char *path, const struct gt_row *rows,
                             const char *const *words, struct gt_err *err);
/* Returns whether path, or a group above it, had an error, or is missing beside an unknown key that may have been meant for it. Further
 * errors about path would only follow from that one. */
bool gt_conf_refused(const struct gt_cnode *group, const char *path);
/* confread.c: reads and checks the whole config. Returns GT_OK even if errors were collected. */
enum gt_code gt_conf_read(struct gt_reading *rd, struct gt_err *err);

enum gt_code gt_conf_groups(struct gt_reading *rd,
                            struct gt_err *err); /* groups.c: train.groups, and defaults that depend on the type of an optimizer */
/* Sets those defaults of an optimizer that depend on its type, for keys that `given`, its group in the config or NULL, does not have. */
enum gt_code gt_conf_optimizer_defaults(struct gt_reading *rd, const struct gt_cnode *given, struct gt_conf_optimizer *o,
                                        struct gt_err *err);
/* Checks that the keys of an optimizer and its schedule do not contradict each other. shown: the beginning of paths in messages. */
enum gt_code gt_conf_check_optimizer(struct gt_reading *rd, const char *shown, const struct gt_cnode *root, const char *opt,
                                     const char *sched, const struct gt_conf_optimizer *o, const struct gt_conf_schedule *s,
                                     struct gt_err *err);
enum gt_code gt_conf_layers(struct gt_reading *rd, struct gt_err *err);     /* blocks.c: model.layers, model.blocks */
enum gt_code gt_conf_validate(struct gt_reading *rd, struct gt_err *err); /* validate.c */
enum gt_code gt_conf_set(struct gt_arena *a, struct gt_cnode *root, const char *arg, struct gt_err *err); /* set.c */
enum gt_code gt_conf_write(struct gt_conf *c, struct gt_err *err);                                        /* conftext.c: writes c->text */

#endif
