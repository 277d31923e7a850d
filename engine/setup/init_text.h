/* Inside `gtrain init`: configs for folders of texts, and functions that configs for tables of texts share. */
#ifndef GT_SETUP_INIT_TEXT_H
#define GT_SETUP_INIT_TEXT_H

#include "base/err.h"
#include "setup/init_spec.h"
#include <stdbool.h>
#include <stdint.h>

/* Returns whether a folder or .tar archive has texts and no images. path: absolute. */
bool gt_init_is_text(const char *path);
/* Examines the texts of a folder or archive and writes a config that trains on them to *text, which the caller frees. */
enum gt_code gt_init_text(const char *path, const struct gt_init_spec *spec, const struct gt_init_names *names, char **text,
                          struct gt_err *err);

/* Sizes of texts in bytes: the median and the 98th percentile. */
struct gt_text_sizes {
	int64_t median, most;
};

/* Sorts the array bytes[n] of text sizes, n > 0, and returns their median and 98th percentile. */
struct gt_text_sizes gt_text_sizes_of(int64_t *bytes, int64_t n);

/* Settings of a classifier that uses words and word pairs: data.max_tokens, data.hash_buckets and train.epochs. n: training texts. */
int64_t gt_init_max_tokens(const struct gt_text_sizes *sizes);
int64_t gt_init_hash_buckets(int64_t n);
int64_t gt_init_text_epochs(int64_t n);

#endif
