/* Published weights that gtrain knows by name, for `gtrain fetch NAME`, `gtrain init --pretrained NAME` and model.pretrained.file = NAME.
 * They are kept in the user's cache, in the directory weights. */
#ifndef GT_DATASETS_KNOWN_WEIGHTS_H
#define GT_DATASETS_KNOWN_WEIGHTS_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_known_weights {
	const char *name;   /* torchvision's name of the network */
	const char *mirror; /* base URL */
	const char *file;   /* name of the file at the mirror and in the cache */
	const char *digest; /* first hexadecimal digits of the file's SHA-256, which the publisher puts into the file name */
	const char *config; /* name of the config of this network, which comes with gtrain */
	const char *map;    /* entries of model.pretrained.map for this file; "": the file and the config use the same names */
	const char *lr;     /* learning rate of adamw that `gtrain init` writes for fine-tuning */
	int64_t side;       /* height and width of the images that the network requires, in pixels; 0: any size */
	double mean, std;   /* mean and standard deviation with which each channel is normalised; std 0: ImageNet's values */
};

/* The table of published weights. Its last row has the name NULL. */
extern const struct gt_known_weights gt_known_weights[];
/* Returns the row with this name, or NULL. */
const struct gt_known_weights *gt_known_weights_find(const char *name);
/* Writes the path of the file in the user's cache, whether it exists or not. GT_ENOINPUT: there is no cache. */
enum gt_code gt_known_weights_path(const struct gt_known_weights *w, char *buf, size_t size, struct gt_err *err);
/* Returns the row whose file in the cache has this path, or NULL. */
const struct gt_known_weights *gt_known_weights_at(const char *path);

#endif
