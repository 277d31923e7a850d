/* Datasets: images as bytes and labels, read once into memory. The files are treated as hostile: their sizes are checked before memory is
 * allocated for them.
 *
 *     struct gt_dataset_spec spec = {.name = "fashion-mnist", .root = "", .format = "auto", .shape = {1, 28, 28}};
 *     GT_TRY(gt_dataset_read(&spec, GT_SPLIT_TRAIN, &data, err));
 *     … data.images, data.labels …
 *     gt_dataset_free(&data);
 *
 * gt_formats[] in find_data.c has one row per file format. gt_known_datasets[] has names, digests and mirrors for `gtrain fetch`. */
#ifndef GT_DATASETS_DATASET_H
#define GT_DATASETS_DATASET_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_split { GT_SPLIT_TRAIN, GT_SPLIT_TEST };

/* Which data to read. All strings are owned by the caller and must outlive the calls below. */
struct gt_dataset_spec {
	const char *name;          /* "fashion-mnist", "mnist", "cifar10", "cifar100", "synthetic", or the user's own name */
	const char *root;          /* folder of the files; "": $GTRAIN_DATA/<name>, $XDG_CACHE_HOME/gtrain/<name> and
	                              /usr/share/datasets/<name> are searched */
	const char *format;        /* format of the files: "auto", "idx", "cifar10", "cifar100" or "synthetic" */
	const char *const *train;  /* files of the training split, relative to root or the working directory; NULL: the format's usual names */
	int ntrain;                /* number of files in train */
	const char *const *test;   /* files of the test split, as in train */
	int ntest;                 /* number of files in test */
	int64_t shape[3];          /* C, H, W of the model's input. Synthetic data gets this shape; files of another shape are a GT_ECONFIG.
	                              A flat input of F values is F, 0 or 1, 0 or 1. If all are 0, the shape is not checked */
	int64_t classes;           /* > 0: number of classes, above every label; 0: the number that is known for the name or the format, else
	                              the highest label + 1 (synthetic: 10) */
	int64_t samples[2];        /* number of synthetic samples in the training and in the test split */
	int64_t limit;             /* > 0: read only this number of samples of a split, from the first on */
	uint64_t seed;             /* seed of synthetic data */
	size_t max_bytes;          /* maximum size of the decompressed data (against decompression bombs); 0: 16 GiB */
};

struct gt_dataset {
	int64_t n, c, h, w;
	int64_t classes;
	uint8_t *images;  /* n*h*w*c bytes, NHWC */
	int32_t *labels;  /* n labels in 0..classes-1 */
	void *memory;     /* the allocation that contains images, which can begin with the header of a file */
	char source[512]; /* where the data was found, for the first line of a run */
};

/* Reads one split. GT_ENOINPUT: not found; the message lists the folders that were searched and `gtrain fetch NAME`. GT_EDATA: a file is
 * damaged; the message names it. On failure *out is empty. The caller frees *out with gt_dataset_free. */
enum gt_code gt_dataset_read(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);
void gt_dataset_free(struct gt_dataset *d);

/* Writes the folder to which `gtrain fetch` downloads: $XDG_CACHE_HOME/gtrain/NAME, else ~/.cache/gtrain/NAME. GT_ENOINPUT: neither
 * variable is set. */
enum gt_code gt_dataset_cache(const char *name, char *buf, size_t size, struct gt_err *err);

/* For `gtrain check`: finds the files of a split and reads only their headers. Fills number of samples, shape and classes of *out, and
 * decompresses no pixels. */
enum gt_code gt_dataset_probe(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);

/* Returns the name of a class, for example "Sneaker"; NULL if gtrain does not know the dataset or it has no such label. */
const char *gt_dataset_class(const char *dataset, int64_t label);

/* Reads an image file for `gtrain predict`: PNG, JPEG, or the first `cap` images of an IDX file, as *n images of c*h*w bytes in the order
 * NHWC. Converts grey images to RGB or RGB to grey if c requires it. Sets *scaled if an image had another size and was scaled with a
 * bilinear filter. *out is allocated by malloc; the caller frees it. */
enum gt_code gt_image_read(const char *path, int64_t c, int64_t h, int64_t w, int64_t cap, uint8_t **out, int64_t *n, bool *scaled,
                           struct gt_err *err);

#endif
