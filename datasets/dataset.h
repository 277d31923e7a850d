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

/* gt_field: an array with one row per sample, which the model gets unchanged as the target or as an input besides the images. */
#define GT_MAX_FIELDS 4
struct gt_field {
	const char *name;    /* name by which layers refer to this input, or "target"; static string */
	enum gt_dtype dtype; /* GT_F32: values; GT_I32: codes, tokens, lengths */
	int64_t width;       /* values per sample; 0: one value, and a batch is one-dimensional */
	void *data;          /* n * width values; NULL after gt_dataset_probe */
	const int64_t *codes; /* [ncodes], only for GT_I32: exclusive upper limits of the values; valid as long as the dataset */
	int64_t ncodes;       /* number of limits in `codes`: width (one per column), 1 (the same for all columns) or 0 (not known, or the
	                         values are lengths) */
	/* The rows are I32 sequences of different lengths. A dataset has at most one such field. Sample i has data[start[i] ... start[i + 1] -
	 * 1], at most width values. Batches are padded with `pad`. */
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
	const char *path_column, *label_column; /* column names of format "list"; NULL or "": the usual names */
	const char *label_separator; /* format "list": characters that separate the labels of a sample with any number of labels; NULL or "": a
	                                sample has one label */
	const char *const *targets; /* format "list": names of numeric columns, which are the targets instead of labels */
	int ntargets;               /* number of names in targets; 0: the targets are labels */
	const char *pattern;       /* the regular expression of format "pattern"; NULL or "": none */
	struct gt_table_spec table; /* format "csv": the notation of the files, and the types of their columns */
	bool target_labels;        /* format "csv": each numeric target is a label, 0 or 1; a sample can have several labels */
	bool normalize_target;     /* format "csv": numeric targets become (target - mean) / standard deviation */
	struct gt_text_spec text;   /* formats "text" and "csv": how texts become tokens */
	struct gt_skipped *skipped; /* formats "text" and "csv": unreadable samples are left out, and added to this list; NULL: an unreadable
	                               sample is an error */
	const struct gt_fitted *fitted; /* fitted formats (fitted.h): facts of the training split, with which the data is converted; NULL: the
	                                   data is not converted */
	int64_t shape[3];          /* C, H, W of the model's input. Synthetic data gets this shape; files of another shape are a GT_ECONFIG. A
	                              flat input of F values has C = F, and H and W 0 or 1. All 0: the shape is not checked */
	const char *const *known;  /* [nknown] class names of a checkpoint, by label: files of other classes are an error; NULL: the classes of
	                              the training split */
	int64_t nknown;
	bool all;                  /* formats "folder" and "text", if `known` is set: root contains class folders but no splits; all samples are
	                              in the requested split */
	int64_t classes;           /* number of classes; all labels must be smaller; 0: the number that the dataset's name or format implies,
	                              else the highest label + 1 (synthetic: 10) */
	int64_t samples[GT_SPLITS]; /* number of synthetic samples in each split */
	int64_t limit;             /* maximum number of samples to read of a split: the first ones; from a folder or a table, samples at equal
	                              distances; 0: all */
	uint64_t seed;             /* seed from which synthetic data is generated */
	struct gt_field wanted[GT_MAX_FIELDS]; /* synthetic data: the fields to create; their `data` is not set */
	int nwanted;
	const char *spill_dir;     /* format "csv": directory of temporary files for large arrays (base/spill.h), so that the data may be larger
	                              than memory; NULL: all arrays are in memory */
	size_t max_bytes;          /* maximum size of the decompressed data (against decompression bombs); 0: 16 GiB */
};

struct gt_sample_mark;
struct gt_index;
struct gt_spill;

struct gt_dataset {
	int64_t n;        /* number of samples; 0: the data lacks this split */
	int64_t c, h, w;  /* shape of an image; of encoded images, the shape after the transforms, which is the shape of the model's input. c is
	                     0 without images */
	int64_t classes;
	char **class_name;    /* [nclass_names] names of the classes; NULL: the files do not name the classes */
	int64_t nclass_names;
	bool encoded;             /* the images are encoded files, which are read on demand; `images` is NULL */
	struct gt_source *source; /* the encoded files; NULL after gt_dataset_probe */
	uint64_t file_bytes;      /* memory of source in bytes */
	/* Origin of samples that are not encoded images: the files of texts, or a table whose columns were freed, which still knows the file
	 * and line of each row. Both NULL: only `where` is known. */
	struct gt_source *text_files;
	struct gt_data_table *row_lines;
	uint8_t *images;  /* n*h*w*c bytes, NHWC; NULL: the images are encoded, or come from gt_dataset_probe */
	int32_t *labels;  /* classes as targets: n labels in 0..classes-1 */
	struct gt_field target; /* numeric targets: f32 [n, width]; if the targets are classes, all members are zero */
	struct gt_field field[GT_MAX_FIELDS]; /* further inputs */
	int nfields;
	const struct gt_fitting *fitting; /* functions of a fitted format, which computes facts from the training split (fitted.h); NULL: the
	                                     format is not fitted */
	struct gt_text_counts texts; /* formats "text" and "csv": counts of texts and tokens; all 0 without texts */
	void *raw;        /* fitted formats: content of the files before `transform` converts it into fields; NULL: not a fitted format, or
	                     converted */
	struct gt_sample_mark *mark; /* [n], also after gt_dataset_probe; NULL: samples are identified by their index (sample_mark.h) */
	void *memory;     /* the allocation that contains images; it can begin with a file header */
	struct gt_index *mapped; /* an index file (data_index.h) into which fields, targets, labels and marks point; they are read-only. NULL:
	                            they are malloc'ed. In an index of many samples, marks are absent although the samples have ids */
	struct gt_spill *spill; /* large arrays in temporary files (base/spill.h): raw, fields, targets, labels and marks; NULL: in memory */
	char where[512];  /* location of the data, which a run prints in its first line */
	char left_out[200]; /* folders without files in the training folder, which are therefore not classes: "a, b and 3 more"; "": none */
};

/* Reads one split. If the data lacks the split, out->n is 0; a missing training split is an error. GT_ENOINPUT: not found; the message
 * lists the folders that were searched and `gtrain fetch NAME`. GT_EDATA: a file is damaged; the message names it. On failure *out is
 * empty. The caller frees *out with gt_dataset_free. */
enum gt_code gt_dataset_read(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);
void gt_dataset_free(struct gt_dataset *d);
/* Frees an array of d, which is from malloc, in a temporary file of d->spill or in the index file d->mapped. */
void gt_dataset_free_array(const struct gt_dataset *d, void *p);
/* Returns the memory of a dataset in bytes: images or the list of files, fields and targets. After gt_dataset_probe, ragged fields are not
 * included. Arrays in an index file are counted, although the system may drop their pages. */
uint64_t gt_dataset_bytes(const struct gt_dataset *d);

/* Writes the origin of sample i to buf, and returns buf: the path of its file, "FILE:LINE" for a row, or "FOLDER[i]" for an array. */
const char *gt_dataset_sample_name(const struct gt_dataset *d, int64_t i, char *buf, size_t size);

/* Writes the folder to which `gtrain fetch` downloads: $XDG_CACHE_HOME/gtrain/NAME, else ~/.cache/gtrain/NAME. GT_ENOINPUT: neither
 * variable is set to an absolute path. */
enum gt_code gt_dataset_cache(const char *name, char *buf, size_t size, struct gt_err *err);

/* For `gtrain check`: finds the files of a split and reads only their headers. Sets the number of samples, the shape and the classes of
 * *out, and does not decode pixels. */
enum gt_code gt_dataset_probe(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);

/* Returns the name of a class, for example "Sneaker"; NULL if gtrain does not know the dataset, or the dataset lacks the label. */
const char *gt_dataset_class(const char *dataset, int64_t label);

/* Reads an image file for `gtrain predict`, a PNG, a JPEG, or the first `cap` images of an IDX file, into *n images of c*h*w bytes in the
 * order NHWC. Converts grey images to RGB or RGB to grey if c requires it. Applies the transforms of the list. If the list is empty, an
 * image of another size is scaled with a bilinear filter, and *scaled is set. *out is allocated by malloc; the caller frees it. */
enum gt_code gt_image_read(const char *path, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, int64_t cap, uint8_t **out,
                           int64_t *n, bool *scaled, struct gt_err *err);
/* Like gt_image_read, for an encoded image in memory; name: for messages. */
enum gt_code gt_image_decode(const char *name, const uint8_t *bytes, size_t size, struct gt_transform_list list, int64_t c, int64_t h,
                             int64_t w, uint8_t **out, bool *scaled, struct gt_err *err);

#endif
