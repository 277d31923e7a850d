/* Inside `gtrain init`: functions that the generators of all kinds of configs use. */
#ifndef GT_SETUP_INIT_SPEC_H
#define GT_SETUP_INIT_SPEC_H

#include "gtrain_data.h"
#include <limits.h>
#include <stddef.h>

/* Names of the run, the data and the config file. */
struct gt_init_names {
	char run[64];         /* the name of the run: the last part of the path, with the characters that are safe in a file name */
	char shown[PATH_MAX]; /* the path of the data: relative to the config's folder if data and config are near each other, else absolute */
	char config[256];     /* the file of the config as a word of a shell, for comments: "pets.cfg"; "THIS.cfg" if it is not known */
};

enum {
	GT_INIT_LISTED = 10, /* maximum number of unreadable samples that are reported one by one */
	GT_INIT_LEAST = 10   /* minimum number of images or texts from which some are reserved for evaluation */
};

void gt_init_warn(const struct gt_init_spec *spec, const char *text);
/* Prints the number of unreadable samples after the first GT_INIT_LISTED, which were listed. bad: number of unreadable samples. what:
 * "image" or "text". */
void gt_init_warn_of_more(const struct gt_init_spec *spec, int64_t bad, const char *what);
void gt_init_sort(int64_t *v, int64_t n); /* ascending */

/* Returns the error for n images or texts, fewer than GT_INIT_LEAST, of which none can be reserved for evaluation. */
enum gt_code gt_init_too_few(const char *root, int64_t n, const char *what, struct gt_err *err);
/* Returns the error for data whose classes have one sample each: no sample can be reserved for evaluation. what: "image" or "text". */
enum gt_code gt_init_one_each(const char *root, int64_t classes, const char *what, struct gt_err *err);
/* Sets *out to the names for the data at `root`, which is its real path. */
void gt_init_names(const struct gt_init_spec *spec, const char *root, struct gt_init_names *out);

#endif
