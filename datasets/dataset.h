/* Datasets: samples with an image, further fields and a target. The images are arrays of bytes in memory, or encoded files that are read on
 * demand (source.h). The files are treated as hostile: their sizes are checked before memory is allocated for them.
 *
 *     struct gt_dataset_spec spec = {.name = "fashion-mnist", .root = "", .format = "auto", .shape = {1, 28, 28}};
 *     GT_TRY(gt_dataset_read(&spec, GT_TRAIN, &data, err));
 *     … data.images or data.source, data.field, data.labels or data.target …
 *     gt_dataset_free(&data);
 *
 * gt_formats[] in find_data.c has one row per file format. gt_known_datasets[] has names, digests and mirrors for `gtrain fetch`. */
#ifndef GT_DATASETS_DATASET_H
#define GT_DATASETS_DATASET_H

#include "base/err.h"
#include "base/types.h"
#include "image/transform.h"
#include "table/table_spec.h"
#include "text/tokenizer.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_split { GT_TRAIN, GT_VALID, GT_TEST, GT_SPLITS };
extern const char *const gt_split_names[GT_SPLITS]; /* "train", "valid", "test" */

/* Numbers of every sample that reach the model as they are: an input besides the images, or the target. */
#define GT_MAX_FIELDS 4
struct gt_field {
	const char *name;    /* the name by which layers read it; "target"; static */
	enum gt_dtype dtype; /* GT_F32: values; GT_I32: codes, tokens, lengths */
	int64_t width;       /* numbers of a sample; 0: one, and a batch has one dimension */
	void *data;          /* n * width numbers; NULL after gt_dataset_probe */
	const int64_t *codes; /* [ncodes], of I32: the integers are below these numbers, which live as long as the dataset */
	int64_t ncodes;       /* width: one for each column; 1: one for all; 0: lengths, or not known */
	/* Sequences of different lengths, I32, at most one field of a dataset: sample i has data[start[i] ... start[i + 1] - 1], which are at
	 * most width numbers. Batches are padded with `pad`. */
	bool ragged;
	int64_t *start;      /* [n + 1]; NULL after gt_dataset_probe, and if the field is not ragged */
	int32_t pad;
};

struct gt_data_table;
struct gt_fitted;
struct gt_fitting;
struct gt_skipped;

/* Which data to read. All strings are owned by the caller and must outlive the calls below. */
struct gt_dataset_spec {
	const char *name;          /* "fashion-mnist", "mnist", "cifar10", "cifar100", "synthetic", or the user's own name */
	const char *root;          /* folder of the files; "": $GTRAIN_DATA/<name>, $XDG_CACHE_HOME/gtrain/<name> and
	                              /usr/share/datasets/<name> are searched */
	const char *format;        /* format of the files: "auto", "idx", "cifar10", "cifar100", "folder", "list", "pattern", "csv"
	                              or "synthetic" */
	const char *const *train;  /* files of the training split, relative to root or the working directory; NULL: the format's usual names */
	int ntrain;                /* number of files in train */
	const char *const *test;   /* files of the test split, as in train */
	int ntest;                 /* number of files in test */
	const char *path_column, *label_column; /* names of the columns of format "list"; NULL or "": the usual ones */
	const char *label_separator; /* format "list": the characters that separate the labels of a sample, which then has any number of them;
	                                NULL or "": a sample has one label */
	const char *const *targets; /* format "list": names of the columns of numbers that are the targets, in place of labels */
	int ntargets;               /* number of names in targets; 0: the targets are labels */
	const char *pattern;       /* the regular expression of format "pattern"; NULL or "": none */
	struct gt_table_spec table; /* format "csv": how the files are written, and the types of their columns */
	bool target_labels;        /* format "csv": targets that are numbers are labels, 0 or 1, of which a sample can have several */
	bool normalize_target;     /* format "csv": targets that are numbers become (target - mean) / standard deviation */
	struct gt_text_spec text;   /* formats "text" and "csv": how texts become tokens */
	struct gt_skipped *skipped; /* formats "text" and "csv": samples that cannot be read are left out, and added to this list; NULL: such a
	                               sample is an error */
	const struct gt_fitted *fitted; /* formats that are fitted (fitted.h): the facts of the training split; NULL: a split is only read */
	int64_t shape[3];          /* C, H, W of the model's input. Synthetic data gets this shape; files of another shape are a GT_ECONFIG.
	                              A flat input of F values is F, 0 or 1, 0 or 1. If all are 0, the shape is not checked */
	const char *const *known;  /* [nknown] the names of the classes of a checkpoint, by label: the files may have no others; NULL: the
	                              classes are those of the training split */
	int64_t nknown;
	bool all;                  /* with known, formats "folder" and "text": root has no splits, but only folders of classes; all its samples
	                              are those of the split that is asked for */
	int64_t classes;           /* > 0: number of classes, above every label; 0: the number that is known for the name or the format, else
	                              the highest label + 1 (synthetic: 10) */
	int64_t samples[GT_SPLITS]; /* number of synthetic samples in each split */
	int64_t limit;             /* > 0: read only this number of samples of a split: the first ones; of a folder and a table, ones at equal
	                              distances */
	uint64_t seed;             /* seed of synthetic data */
	struct gt_field wanted[GT_MAX_FIELDS]; /* synthetic data: the fields that it gets, without data */
	int nwanted;
	size_t max_bytes;          /* maximum size of the decompressed data (against decompression bombs); 0: 16 GiB */
};

struct gt_sample_mark;

struct gt_dataset {
	int64_t n;        /* number of samples; 0: the data has no such split */
	int64_t c, h, w;  /* shape of an image; of encoded images, the shape that transforms give them: that of the model's input. c is 0 if
	                     samples have no image */
	int64_t classes;
	char **class_name;    /* names of the classes 0 ... nclass_names - 1; NULL: the files do not name them */
	int64_t nclass_names;
	bool encoded;             /* the images are encoded files, which are read on demand, and not `images` */
	struct gt_source *source; /* these files; NULL after gt_dataset_probe */
	uint64_t file_bytes;      /* bytes of memory that source takes */
	/* Where samples that are not encoded come from: the files of texts; the files and lines of the rows of a table, without its columns;
	 * both NULL: `where` is all that is known. */
	struct gt_source *text_files;
	struct gt_data_table *row_lines;
	uint8_t *images;  /* n*h*w*c bytes, NHWC; NULL: they are encoded, or only probed */
	int32_t *labels;  /* the targets, if they are classes: n labels in 0..classes-1 */
	struct gt_field target; /* the targets, if they are numbers: f32 [n, width]; all zero if they are classes */
	struct gt_field field[GT_MAX_FIELDS]; /* further inputs */
	int nfields;
	const struct gt_fitting *fitting; /* the format is fitted (fitted.h); NULL: it is not */
	struct gt_text_counts texts; /* formats "text" and "csv": what the texts have; all 0 without texts */
	void *raw;        /* what its files contain, before fields are made of it; else NULL */
	struct gt_sample_mark *mark; /* [n], also after gt_dataset_probe; NULL: the samples are identified by their numbers (sample_mark.h) */
	void *memory;     /* the allocation that contains images, which can begin with the header of a file */
	char where[512];  /* where the data was found, for the first line of a run */
	char left_out[200]; /* folders of the training split that have no files and are no classes: "a, b and 3 more"; "": none */
};

/* Reads one split. Without an error, out->n is 0 if the data has no split of this name, which only the training split must not be.
 * GT_ENOINPUT: not found; the message lists the folders that were searched and `gtrain fetch NAME`. GT_EDATA: a file is
 * damaged; the message names it. On failure *out is empty. The caller frees *out with gt_dataset_free. */
enum gt_code gt_dataset_read(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);
void gt_dataset_free(struct gt_dataset *d);
/* Returns the bytes of memory that a dataset takes: images or the list of files, fields and targets; also for one that gt_dataset_probe
 * filled. */
uint64_t gt_dataset_bytes(const struct gt_dataset *d);

/* Writes where sample i comes from to buf, and returns buf: the path of its file, "FILE:LINE" of a row, or "FOLDER[i]" of an array. */
const char *gt_dataset_sample_name(const struct gt_dataset *d, int64_t i, char *buf, size_t size);

/* Writes the folder to which `gtrain fetch` downloads: $XDG_CACHE_HOME/gtrain/NAME, else ~/.cache/gtrain/NAME. GT_ENOINPUT: neither
 * variable is set. */
enum gt_code gt_dataset_cache(const char *name, char *buf, size_t size, struct gt_err *err);

/* For `gtrain check`: finds the files of a split and reads only their headers. Fills number of samples, shape and classes of *out, and
 * decompresses no pixels. */
enum gt_code gt_dataset_probe(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);

/* Returns the name of a class, for example "Sneaker"; NULL if gtrain does not know the dataset or it has no such label. */
const char *gt_dataset_class(const char *dataset, int64_t label);

/* Reads an image file for `gtrain predict`: PNG, JPEG, or the first `cap` images of an IDX file, as *n images of c*h*w bytes in the order
 * NHWC. Converts grey images to RGB or RGB to grey if c requires it. Applies the transforms of the list; with an empty list, an image of
 * another size is scaled with a bilinear filter, which sets *scaled. *out is allocated by malloc; the caller frees it. */
enum gt_code gt_image_read(const char *path, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, int64_t cap, uint8_t **out,
                           int64_t *n, bool *scaled, struct gt_err *err);

#endif
