/* A dataset: images as bytes and labels, whole in memory, read once from files that are assumed hostile.
 * Row in gt_formats[] (find_data.c) = one file format; gt_known_datasets[] = names, digests and mirrors for `gtrain fetch`. */
#ifndef GT_DATASETS_DATASET_H
#define GT_DATASETS_DATASET_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_split { GT_SPLIT_TRAIN, GT_SPLIT_TEST };

/* Where the data is. All strings are owned by the caller and outlive the calls below. */
struct gt_dataset_spec {
	const char *name;          /* "fashion-mnist", "mnist", "cifar10", "cifar100", "synthetic", or the user's own */
	const char *root;          /* "" : search $GTRAIN_DATA/<name>, $XDG_CACHE_HOME/gtrain/<name>, /usr/share/datasets/<name> */
	const char *format;        /* "auto", "idx", "cifar10", "cifar100", "synthetic" */
	const char *const *train;  /* files named by hand, relative to root (or the working directory); NULL: the format's own names */
	int ntrain;
	const char *const *test;
	int ntest;
	int64_t shape[3];          /* C, H, W that the model expects; synthetic makes it, the others are checked against it (GT_ECONFIG).
	                              F, 0 or 1, 0 or 1: a flat input of F values; all 0: not checked */
	int64_t classes;           /* > 0: labels must be below it; 0: known for the name or format, or from the labels (synthetic: 10) */
	int64_t samples[2];        /* synthetic: train, test */
	int64_t limit;             /* > 0: use only the first `limit` samples of a split (smoke tests) */
	uint64_t seed;             /* synthetic */
	size_t max_bytes;          /* refuse to expand to more than this (gzip bombs); 0: 16 GiB */
};

struct gt_dataset {
	int64_t n, c, h, w;
	int64_t classes;
	uint8_t *images;  /* n*h*w*c bytes, NHWC */
	int32_t *labels;  /* n, each in 0..classes-1 */
	void *memory;     /* what gt_dataset_free frees for images, which may stand behind a file's header in it */
	char source[512]; /* where it was found, for the run's first line */
};

/* Reads one split. GT_ENOINPUT: not found (message lists where it looked and says `gtrain fetch NAME`); GT_EDATA: damaged,
 * message "file: what is wrong". On failure *out is empty. Caller frees with gt_dataset_free. */
enum gt_code gt_dataset_read(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);
void gt_dataset_free(struct gt_dataset *d);

/* The folder that `gtrain fetch` fills: $XDG_CACHE_HOME/gtrain/NAME, else ~/.cache/gtrain/NAME. GT_ENOINPUT: neither is set. */
enum gt_code gt_dataset_cache(const char *name, char *buf, size_t size, struct gt_err *err);

/* Only finds and checks the headers: sample count, shape, classes. For `gtrain check`; does not read the pixels of a .gz. */
enum gt_code gt_dataset_probe(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err);

/* The name of a class of a known dataset ("Sneaker"), NULL where there is none. */
const char *gt_dataset_class(const char *dataset, int64_t label);

/* One image file (PNG, JPEG, IDX: its first `cap` images) as NHWC bytes of exactly c*h*w each, for `gtrain predict`.
 * Greyscale <-> RGB is converted; another size is scaled (bilinear) — *scaled says so. *out is malloc'ed, caller frees. */
enum gt_code gt_image_read(const char *path, int64_t c, int64_t h, int64_t w, int64_t cap, uint8_t **out, int64_t *n, bool *scaled,
                           struct gt_err *err);

#endif
