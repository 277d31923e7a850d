/* Formats that learn from the training split. What such a format gives a model, for example the mean of a column or the code of a
 * category, follows from the samples of the training split, and from no other sample. A checkpoint keeps what was learned.
 *
 *     const struct gt_learning *f = gt_dataset_learning(&spec);         NULL: the format learns nothing
 *     gt_dataset_read(&spec, GT_TRAIN, &train, err);                    train.raw: what the files contain; no fields and targets yet
 *     gt_learned_new(f, &learned, err)                                  or take it from a checkpoint
 *     f->learn(&spec, &train, rows, nrows, learned, err);
 *     f->apply(&spec, learned, &train, err);                            fields and targets; raw is freed
 *     spec.learned = learned;
 *     gt_dataset_read(&spec, GT_TEST, &test, err);                      fields and targets
 *     gt_learned_free(learned);
 *
 *     train files --> raw --> split: train | valid --> learn from train --> apply to both
 *                                                           |
 *     test files ---------------------------------------> apply
 */
#ifndef GT_DATASETS_LEARNED_H
#define GT_DATASETS_LEARNED_H

#include "dataset.h"
#include "table/table_facts.h"
#include "text/vocab.h"

/* What was learned from texts: those of format "text", or of columns of a table. */
struct gt_text_facts {
	struct gt_vocab *vocab; /* NULL: the tokenizer has none */
	int64_t ids;            /* number of different tokens, those of n-grams included */
	char **class;           /* format "text": the names of the classes */
	int64_t nclasses;
};

/* What was learned. A format fills its own part. */
struct gt_learned {
	const struct gt_learning *by; /* the format */
	struct gt_table_facts table;  /* format "csv" */
	struct gt_text_facts text;    /* formats "text" and "csv"; ids is 0 without texts */
};

struct gt_json;
struct gt_json_value;

/* The functions of a format that learns. */
struct gt_learning {
	const char *format; /* word of data.format */
	/* For a stratified split, before anything is learned: writes the number of each sample's class to out[d->n], 0 ... *groups - 1. *groups
	 * becomes 0 if the targets are no classes. */
	enum gt_code (*strata)(const struct gt_dataset_spec *spec, const struct gt_dataset *d, int32_t *out, int64_t *groups,
	                       struct gt_err *err);
	/* Learns from the samples row[n], ascending, of d, which is raw; row NULL: all of them. */
	enum gt_code (*learn)(const struct gt_dataset_spec *spec, const struct gt_dataset *d, const int64_t *row, int64_t n,
	                      struct gt_learned *out, struct gt_err *err);
	/* Sets the contents in d->mark, which is raw, by what was learned; NULL: they are set. */
	enum gt_code (*mark)(const struct gt_learned *l, struct gt_dataset *d, struct gt_err *err);
	/* Sets the fields, the targets and the classes of a dataset without samples. */
	enum gt_code (*describe)(const struct gt_dataset_spec *spec, const struct gt_learned *l, struct gt_dataset *out, struct gt_err *err);
	/* Makes fields and targets of what d has raw. */
	enum gt_code (*apply)(const struct gt_dataset_spec *spec, const struct gt_learned *l, struct gt_dataset *d, struct gt_err *err);
	/* Reads a file for prediction with spec->learned: fields without targets, which the file need not have. */
	enum gt_code (*inputs)(const struct gt_dataset_spec *spec, const char *path, struct gt_dataset *out, struct gt_err *err);
	/* Converts one text of n bytes for prediction with spec->learned; name: for messages. NULL: the format has no such samples. */
	enum gt_code (*text)(const struct gt_dataset_spec *spec, const char *name, const char *text, size_t n, struct gt_dataset *out,
	                     struct gt_err *err);
	const char *json_member; /* member of data.json in a checkpoint that has what was learned; there can be others */
	bool names_classes;      /* gt_learned.text.class has the classes of data.json, which get_json does not set */
	/* Writes what was learned as members of data.json, the open object of j. */
	enum gt_code (*put_json)(const struct gt_learned *l, struct gt_json *j, struct gt_err *err);
	/* Reads it from data.json, which may be hostile; it has json_member. path: the file, for messages. */
	enum gt_code (*get_json)(const struct gt_json_value *v, const char *path, struct gt_learned *out, struct gt_err *err);
	/* Checks that the training data now teaches what the checkpoint has. GT_EDATA names the first difference. where: the data, path: the
	 * checkpoint, for messages. */
	enum gt_code (*compare)(const struct gt_learned *ckpt, const struct gt_learned *now, const char *where, const char *path,
	                        struct gt_err *err);
	/* Returns the bytes of memory of gt_dataset.raw, and of what its conversion with l takes besides fields and
	 * targets; l NULL: without that. */
	uint64_t (*raw_bytes)(const void *raw, const struct gt_learned *l);
	void (*drop)(void *raw);                /* frees gt_dataset.raw */
	void (*forget)(struct gt_learned *l);   /* frees the format's part */
};

/* Returns the functions of the spec's format; NULL: it learns nothing. */
const struct gt_learning *gt_dataset_learning(const struct gt_dataset_spec *spec);

enum gt_code gt_learned_new(const struct gt_learning *by, struct gt_learned **out, struct gt_err *err);
void gt_learned_free(struct gt_learned *l); /* does nothing if l is NULL */

#endif
