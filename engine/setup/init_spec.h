/* Inside `gtrain init`: what all kinds of data share. */
#ifndef GT_TUNE_INIT_SPEC_H
#define GT_TUNE_INIT_SPEC_H

#include "gtrain_data.h"
#include <limits.h>
#include <stddef.h>

/* How the config names the data and itself. */
struct gt_init_names {
	char run[64];         /* the name of the run: the last part of the path, with the characters that are safe in a file name */
	char shown[PATH_MAX]; /* the path of the data: relative to the folder of the config if both are near each other, else absolute */
	char config[256];     /* the file of the config as a word of a shell, for comments: "pets.cfg"; "THIS.cfg" if it is not known */
};

/* Returns an error of data whose classes have one sample each: none can be kept for evaluation. what: "image" or "text". */
enum gt_code gt_init_one_each(const char *root, int64_t classes, const char *what, struct gt_err *err);
/* root: the real path of the data. */
void gt_init_names(const struct gt_init_spec *spec, const char *root, struct gt_init_names *out);

#endif
