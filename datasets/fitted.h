/* Formats that are fitted to the training split. The facts of such a format, for example the mean of a column or the code of a category,
 * are computed from the training split only, never from other samples. A checkpoint stores the fitted facts.
 *
 *     const struct gt_fitting *f = gt_dataset_fitting(&spec);           NULL: the format is not fitted
 *     gt_dataset_read(&spec, GT_TRAIN, &train, err);                    train.raw: what the files contain; no fields and targets yet
 *     gt_fitted_new(f, &fitted, err)                                    or take it from a checkpoint
 *     f->fit(&spec, &train, rows, nrows, fitted, err);
 *     f->transform(&spec, fitted, &train, err);                         fields and targets; raw is freed
 *     spec.fitted = fitted;
 *     gt_dataset_read(&spec, GT_TEST, &test, err);                      fields and targets
 *     gt_fitted_free(fitted);
 *
 *     train files --> raw --> split: train | valid --> fit to train --> transform both
 *                                                           |
 *     test files ---------------------------------------> transform
 */
#ifndef GT_DATASETS_FITTED_H
#define GT_DATASETS_FITTED_H

#include "dataset.h"
#include "table/table_facts.h"
#include "text/vocab.h"

/* Facts fitted to texts: the texts of format "text", or of the text columns of a table. */
struct gt_text_facts {
	struct gt_vocab *vocab; /* vocabulary of the tokenizer; NULL: the tokenizer has none */
	int64_t ids;            /* number of different token ids, including the ids of n-grams */
	char **class;           /* format "text": the names of the classes */
	int64_t nclasses;
};

/* The facts of the training split. Each format sets only its own member. */
struct gt_fitted {
	const struct gt_fitting *by; /* the format */
	struct gt_table_facts table;  /* format "csv" */
	struct gt_text_facts text;    /* facts of formats "text" and "csv"; ids is 0 if the data has no texts */
};

struct gt_json;
struct gt_json_value;

/* The functions of a fitted format. */
struct gt_fitting {
	const char *format; /* word of data.format */
	/* For a stratified split, called before fitting: writes the class index of each sample, 0 ... *groups - 1, to out[d->n]. *groups
	 * becomes 0 if the targets are not classes. */
	enum gt_code (*strata)(const struct gt_dataset_spec *spec, const struct gt_dataset *d, int32_t *out, int64_t *groups,
	                       struct gt_err *err);
	/* Computes the facts from the n samples of d with the ascending indices row[n] (row NULL: all samples of d) and stores the facts in
	 * out. d has only raw data. */
	enum gt_code (*fit)(const struct gt_dataset_spec *spec, const struct gt_dataset *d, const int64_t *row, int64_t n,
	                      struct gt_fitted *out, struct gt_err *err);
	/* Computes the content hashes in d->mark from the raw data with the fitted facts; NULL: reading the data has already set them. */
	enum gt_code (*mark)(const struct gt_fitted *l, struct gt_dataset *d, struct gt_err *err);
	/* Sets the fields, the targets and the classes of a dataset without samples. */
	enum gt_code (*describe)(const struct gt_dataset_spec *spec, const struct gt_fitted *l, struct gt_dataset *out, struct gt_err *err);
	/* Converts d->raw into fields and targets. */
	enum gt_code (*transform)(const struct gt_dataset_spec *spec, const struct gt_fitted *l, struct gt_dataset *d, struct gt_err *err);
	/* Reads a file for prediction with spec->fitted into fields; the file may lack the targets. */
	enum gt_code (*inputs)(const struct gt_dataset_spec *spec, const char *path, struct gt_dataset *out, struct gt_err *err);
	/* Converts one text of n bytes for prediction with spec->fitted; name: for messages. NULL: not supported by the format. */
	enum gt_code (*text)(const struct gt_dataset_spec *spec, const char *name, const char *text, size_t n, struct gt_dataset *out,
	                     struct gt_err *err);
	const char *json_member; /* name of a member of data.json by which the format of the facts in a checkpoint is recognised */
	bool indexed;            /* the training split may have an index file (data_index.h) */
	bool names_classes;      /* the class names in data.json belong to gt_fitted.text.class; get_json does not read them */
	/* Writes the fitted facts as members of data.json, the open object of j. */
	enum gt_code (*put_json)(const struct gt_fitted *l, struct gt_json *j, struct gt_err *err);
	/* Reads the facts from data.json, which may be hostile and has json_member. path: the file, for messages. */
	enum gt_code (*get_json)(const struct gt_json_value *v, const char *path, struct gt_fitted *out, struct gt_err *err);
	/* Checks that newly fitted facts equal the facts of the checkpoint. GT_EDATA names the first difference. where: the data, path: the
	 * checkpoint, for messages. */
	enum gt_code (*compare)(const struct gt_fitted *ckpt, const struct gt_fitted *now, const char *where, const char *path,
	                        struct gt_err *err);
	/* Returns the memory of gt_dataset.raw in bytes; if l is not NULL, plus the temporary memory of its conversion with l (without fields
	 * and targets). */
	uint64_t (*raw_bytes)(const void *raw, const struct gt_fitted *l);
	void (*drop)(void *raw);                /* frees gt_dataset.raw */
	void (*forget)(struct gt_fitted *l);   /* frees the members of gt_fitted that belong to the format */
};

/* Returns the functions of the spec's format; NULL: the format is not fitted. */
const struct gt_fitting *gt_dataset_fitting(const struct gt_dataset_spec *spec);

enum gt_code gt_fitted_new(const struct gt_fitting *by, struct gt_fitted **out, struct gt_err *err);
void gt_fitted_free(struct gt_fitted *l); /* does nothing if l is NULL */

#endif
