/* The table of all keys: each row has the path, type, offset in struct gt_conf, default, range and help text of one key. The
 * reader (read_keys.c), the writer of the resolved config (write_config.c), the checks of --set, the suggestions and gtrain.cfg(5) are
 * made from the table. The keys of a layer type are the attributes of its operation (ir/op.h). */
#ifndef GT_CONF_SCHEMA_H
#define GT_CONF_SCHEMA_H

#include "base/guess.h"
#include "base/problems.h"
#include "conf/conf.h"
#include "conf/ctree.h"
#include "ir/op.h"
#include "losses.h"
#include <string.h>

enum gt_row_type {
	GT_T_INT,     /* int64_t */
	GT_T_FLOAT,   /* double; the config may have an integer */
	GT_T_BOOL,    /* bool */
	GT_T_STRING,  /* const char * */
	GT_T_ENUM,    /* int: index of the word in gt_row.values */
	GT_T_CHOICE,  /* const char *: one of the words in gt_row.values */
	GT_T_AUTO,    /* int64_t; the word "auto" is stored as 0 */
	GT_T_FLOATS,  /* struct gt_floats; a single number is accepted as a list of one */
	GT_T_WEIGHTS, /* struct gt_floats as above; the word "auto" is stored as n = GT_FLOATS_AUTO */
	GT_T_INTS,    /* struct gt_ints; a single integer is accepted as a list of one */
	GT_T_STRINGS, /* struct gt_strings; a single string is accepted as a list of one */
	GT_T_PAIR,    /* double[2] */
	GT_T_DIMS,    /* int64_t[3]: the config has one number or three */
	GT_T_INT2,    /* int64_t[2]: the config has two numbers, or one number for both */
	GT_T_SIZE,    /* int64_t[2]: the config has two numbers, or one number, with which the second is 0 */
	GT_T_OTHER    /* a list or group that a special function reads; gt_row.offset is not used */
};

enum gt_row_flag {
	GT_R_REQUIRED = 1 << 0, /* the key is required if it applies */
	GT_R_ABOVE = 1 << 1,    /* the value must be greater than gt_row.min, not equal */
	GT_R_BELOW = 1 << 2     /* the value must be less than gt_row.max, not equal */
};

struct gt_row {
	const char *path; /* path of the key, relative to the group that the table describes */
	enum gt_row_type type;
	size_t offset;
	const char *def; /* default as in a config; "(text)": set by code, the manual shows the text; NULL: the key is required */
	double min, max; /* range of every number in the value; both 0: any number */
	unsigned flags;
	const char *values; /* ENUM, CHOICE: the allowed words, "a|b"; OTHER: the type, for the manual */
	const char *when;   /* path of another key, an ENUM, whose value determines whether this key applies; NULL: it always applies */
	const char *is;     /* with `when`: values "a|b" of the other key for which this key applies */
	/* key of an optimizer or schedule: instead of `is`, the rows of optimizer_rows.h or schedule_rows.h list the types that have the key,
	 * and their defaults */
	enum gt_row_types { GT_TYPES_ANY, GT_TYPES_OPTIMIZER, GT_TYPES_SCHEDULE } types;
	const char *beside; /* text about other keys, added to the error if this key does not apply; NULL: none */
	bool (*loss_uses)(const struct gt_loss_row *row); /* key of a loss: instead of `is`, returns whether a loss has the key; else NULL */
	const struct gt_row *entries; /* OTHER: the keys of an entry of a list of groups, for the manual; NULL: none */
	const char *help;
};

#define GT_INIT_WORDS "torch-default|torch|kaiming-normal|kaiming-uniform|xavier-normal|xavier-uniform" /* values of model.init */
/* The tables of keys, in schema.c and schema_entries.c. The last row of each has path NULL. */
extern const struct gt_row gt_rows[];           /* keys of the whole config, read into struct gt_conf */
extern const struct gt_row gt_rows_augment[];   /* keys of an entry of data.augment, read into struct gt_transform */
extern const struct gt_row gt_rows_column[];    /* keys of an entry of data.columns, read into struct gt_column_spec */
extern const struct gt_row gt_rows_rename[];    /* keys of an entry of model.pretrained.map, read into struct gt_conf_rename */
extern const struct gt_row gt_rows_input[];     /* keys of an entry of model.inputs, read into struct gt_model_input */
extern const struct gt_row gt_rows_group[];     /* keys of an entry of train.groups, read into struct gt_conf_group */
extern const struct gt_row gt_rows_optimizer[]; /* keys of the optimizer of an entry of train.groups */
extern const struct gt_row gt_rows_schedule[];  /* keys of the schedule of an entry of train.groups */
extern const struct gt_row gt_rows_layer[];     /* keys of every layer, read into struct gt_layer_spec */
extern const struct gt_row gt_rows_block[];     /* keys of an instance of a block in model.layers */
extern const struct gt_row gt_rows_template[];  /* keys of an entry of model.blocks */

const struct gt_row *gt_row_find(const struct gt_row *rows, const char *path); /* returns NULL if no row has this path */
/* Returns the row of r->when, which is not NULL. r is in rows. */
const struct gt_row *gt_row_when(const struct gt_row *rows, const struct gt_row *r);
#define GT_ROW_IS 256
/* Returns the last component of a path: "betas" of "train.optimizer.betas". */
static inline const char *gt_row_name(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : path;
}
/* Returns gt_row.is. For a key with types or loss_uses, writes the types, or the losses, that have the key into buf (GT_ROW_IS bytes) and
 * returns buf. */
const char *gt_row_is(const struct gt_row *r, char *buf, size_t size);
/* Returns the default of a key of an optimizer or a schedule. type: enum gt_optimizer or gt_schedule; -1: not known, because the config
 * names an unknown type. */
const char *gt_row_default_of(const struct gt_row *r, int type);
/* Returns whether key r applies to the struct `base`: the key named by r->when applies, and has one of the values in r->is. */
bool gt_row_applies(const struct gt_row *rows, const struct gt_row *r, const void *base);
/* Returns the value, in the struct `base`, of the key named by r->when, as a word. */
const char *gt_row_deciding(const struct gt_row *rows, const struct gt_row *r, const void *base, char word[48]);
/* Describes the values that a key accepts, such as "an integer ≥ 0", in buf; 512 bytes suffice. got: the value in the config, or NULL; a
 * very large upper limit is mentioned only if got exceeds it. Returns buf. */
const char *gt_row_expects(const struct gt_row *r, const struct gt_cnode *got, char *buf, size_t size);
/* Writes the range of a key, as in gt_schema_key.range ("0..", "(0, 1]", ""), into buf. Returns buf. */
const char *gt_row_range(const struct gt_row *r, char *buf, size_t size);
/* Writes the default of a key, as in gt_schema_key.def, into buf: "0.1", or with the types that have another default
 * "(0.0; muon: 0.95)". Returns buf, or the text of the row. */
const char *gt_row_default_words(const struct gt_row *r, char *buf, size_t size);
/* Returns the type of a key, as in gt_schema_key.type: "int", "a|b", "float[]". */
const char *gt_row_typename(const struct gt_row *r);
/* Converts the description of a layer's key to a row. def: memory for the text of the default. */
struct gt_row gt_row_of_attr(const struct gt_attr_def *d, char def[48]);

/* Returns the index of word in "a|b|c"; -1: word is not in it. */
int gt_values_index(const char *values, const char *word);
/* Copies word i of values into buf and returns buf; NULL: there are fewer words. */
const char *gt_values_word(const char *values, int i, char *buf, size_t size);

/* ---- reading, read_keys.c -------------------------------------------------------------------------------------------------- */
#define GT_CONF_MAX_ERRORS 20 /* reading stops after this number of errors */
struct gt_reading {
	struct gt_arena *arena;
	struct gt_conf *conf;
	struct gt_cnode *root;
	bool from_file;             /* the config was read from a file; false: from text in memory */
	bool resolved;              /* a gtrain wrote the text, with all keys that its version has */
	struct gt_problems *errors; /* errors of the config that have been found until now */
};
/* If code is GT_ECONFIG, adds err to the list of errors and returns GT_OK, so that reading continues, or GT_ECONFIG when the list is full.
 * Returns every other code unchanged. */
enum gt_code gt_conf_collect(struct gt_reading *rd, enum gt_code code, const struct gt_err *err);
#define GT_COLLECT(rd, err, expr) GT_TRY(gt_conf_collect((rd), (expr), (err)))
/* Writes the default of a row, if it has one, to its field in base. */
enum gt_code gt_row_default(struct gt_arena *a, const struct gt_row *r, void *base, struct gt_err *err);
/* Checks the value n of key r and writes it to its field in base. path: name of the key in messages. */
enum gt_code gt_row_read(const struct gt_row *r, const struct gt_cnode *n, const char *path, void *base, struct gt_err *err);
/* Reads a group of the config into the struct `base`: sets all defaults, then reads all keys. Collects errors on unknown keys, wrong
 * types, values out of range, keys that do not apply, and missing keys. A field whose key has an error keeps its default. shown: the
 * beginning of paths in messages ("data.augment[0]."). Rows of type GT_T_OTHER are skipped. */
enum gt_code gt_object_read(struct gt_reading *rd, const struct gt_row *rows, const struct gt_cnode *group, const char *shown, void *base,
                            struct gt_err *err);
/* Reads the list of groups at a path, of at most max entries (0: any number): calls fn for each entry, with an array element of `size`
 * bytes, and sets *n to the number of entries. *out: the array; NULL: it is allocated. shown: the beginning of paths in messages
 * ("data.augment[0]."). Collects errors. Without the list, *out and *n are unchanged. */
typedef enum gt_code gt_entry_fn(struct gt_reading *rd, const struct gt_cnode *entry, const char *shown, void *element,
                                 struct gt_err *err);
enum gt_code gt_list_read(struct gt_reading *rd, const char *path, int max, size_t size, gt_entry_fn *fn, void **out, int *n,
                          struct gt_err *err);
/* Returns the node of a path ("train.optimizer.lr"); NULL: the config does not have it. */
const struct gt_cnode *gt_conf_given(const struct gt_cnode *group, const char *path);
/* Returns the file and line of a path ("train.groups[2].match") or, if the config lacks it, of the nearest enclosing group. */
struct gt_source_loc gt_conf_location(const struct gt_cnode *group, const char *path);
/* Adds an error about a key, with its line, to the list of errors, unless it is a consequence of another error. */
#define GT_REFUSE_KEY(rd, path, ...) \
	do { \
		if (!gt_conf_refused((rd)->root, (path))) \
			GT_COLLECT((rd), err, gt_conf_fail(err, gt_conf_location((rd)->root, (path)), (path), __VA_ARGS__)); \
	} while (0)
/* Fills err with "unknown key" and a suggestion for the key n. Its full path is `shown` followed by `path`. words: further keys that may be
 * suggested, or NULL. */
enum gt_code gt_conf_unknown(const struct gt_cnode *n, const char *shown, const char *path, const struct gt_row *rows,
                             const char *const *words, struct gt_err *err);
/* Returns whether an error about path would be a consequence of an earlier error: path or an enclosing group had an error, or path is
 * missing but its group has an unknown key that may be a misspelling of it. */
bool gt_conf_refused(const struct gt_cnode *group, const char *path);
/* read_config.c: reads and checks the whole config. Returns GT_OK even if errors were collected. */
enum gt_code gt_conf_read(struct gt_reading *rd, struct gt_err *err);

/* table_keys.c: reads data.columns, and determines the kind of the targets. */
enum gt_code gt_conf_table(struct gt_reading *rd, struct gt_err *err);
/* pretrained_map.c: reads model.pretrained.map. */
enum gt_code gt_conf_pretrained_map(struct gt_reading *rd, struct gt_err *err);
/* groups.c: reads train.groups, and sets the defaults that depend on the type of an optimizer. */
enum gt_code gt_conf_groups(struct gt_reading *rd, struct gt_err *err);
/* Sets the defaults of the keys r that depend on the type. given: the group in the config, whose keys keep their values, or NULL. */
enum gt_code gt_conf_type_defaults(struct gt_reading *rd, const struct gt_row *r, int type, const struct gt_cnode *given, void *base,
                                   struct gt_err *err);
/* Does the same for a schedule, and for cycle_momentum, whose default depends on the optimizer and the version of a resolved config. */
enum gt_code gt_conf_schedule_defaults(struct gt_reading *rd, const struct gt_cnode *given, const struct gt_conf_optimizer *o,
                                       struct gt_conf_schedule *s, struct gt_err *err);
/* Checks that the keys of an optimizer and its schedule do not contradict each other. shown: the beginning of paths in messages. */
enum gt_code gt_conf_check_optimizer(struct gt_reading *rd, const char *shown, const struct gt_cnode *root, const char *opt,
                                     const char *sched, const struct gt_conf_optimizer *o, const struct gt_conf_schedule *s,
                                     struct gt_err *err);
enum gt_code gt_conf_layers(struct gt_reading *rd, struct gt_err *err);     /* blocks.c: reads model.layers and model.blocks */
enum gt_code gt_conf_validate(struct gt_reading *rd, struct gt_err *err); /* validate.c: finds keys that contradict each other */
enum gt_code gt_conf_set(struct gt_arena *a, struct gt_cnode *root, const char *arg, struct gt_err *err); /* override.c: apply one --set */
enum gt_code gt_conf_write(struct gt_conf *c, struct gt_err *err);                                        /* write_config.c: c->text */

/* Functions that gtrain.h declares; this room does not include gtrain.h. */
struct gt_schema_key;
struct gt_schema_word;
void gt_schema_each(void (*fn)(void *user, const struct gt_schema_key *key), void *user);
void gt_schema_words(void (*fn)(void *user, const struct gt_schema_word *word), void *user);
const char *gt_schema_about(const struct gt_schema_key *key, char *buf, size_t size);
const char *gt_schema_word_text(const struct gt_schema_key *key, const char *word, char *buf, size_t size);

#endif
