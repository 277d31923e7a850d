/* The formats of data. X(idx): the word "idx" of data.format, and the struct gt_format_idx (format.h) in a file of this folder. "auto"
 * tries the formats in this order. */
#ifndef GT_DATASETS_FORMATS_H
#define GT_DATASETS_FORMATS_H

#include <stdbool.h>

#define GT_FORMATS(X) \
	X(idx)            \
	X(cifar10)        \
	X(cifar100)       \
	X(numpy)          \
	X(folder)         \
	X(list)           \
	X(pattern)        \
	X(csv)            \
	X(text)           \
	X(synthetic)

/* Macro for one word of data.format, preceded by "|". All words together form the list of allowed values. */
#define GT_FORMAT_VALUE(name) "|" #name
#define GT_FORMAT_VALUES GT_FORMATS(GT_FORMAT_VALUE)

/* The kind of samples of a format. */
enum gt_content {
	GT_CONTENT_UNKNOWN, /* data.format = "auto", before the data's files are found */
	GT_CONTENT_ARRAYS,  /* images of the same size, many per file */
	GT_CONTENT_FILES,   /* encoded images of any size, one per file */
	GT_CONTENT_TABLE,
	GT_CONTENT_TEXTS,
	GT_CONTENT_MADE     /* images that are generated from the seed (data.format = "synthetic") */
};
/* Returns the kind of samples of data.format = word. */
enum gt_content gt_format_content(const char *word);

/* Returns whether the data of data.format = word can have a split "valid" of its own. */
bool gt_format_has_valid(const char *word);

struct gt_folder_kind;
/* Returns the kind of files that predict accepts for a model of data.format = word. */
const struct gt_folder_kind *gt_format_input(const char *word);

#endif
