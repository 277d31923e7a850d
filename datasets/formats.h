/* The formats of data. X(idx): the word "idx" of data.format, and its row gt_format_idx (format.h) in a file of this folder. Where
 * data.format is "auto", the formats are tried in this order. */
#ifndef GT_DATASETS_FORMATS_H
#define GT_DATASETS_FORMATS_H

#define GT_FORMATS(X) \
	X(idx)            \
	X(cifar10)        \
	X(cifar100)       \
	X(folder)         \
	X(list)           \
	X(pattern)        \
	X(csv)            \
	X(text)           \
	X(synthetic)

/* The words as values of a key, each after a "|". */
#define GT_FORMAT_VALUE(name) "|" #name
#define GT_FORMAT_VALUES GT_FORMATS(GT_FORMAT_VALUE)

/* What the samples of a format are. */
enum gt_content {
	GT_CONTENT_UNKNOWN, /* "auto" before the files are found */
	GT_CONTENT_ARRAYS,  /* images of one size, many in a file */
	GT_CONTENT_FILES,   /* encoded images of any size, each in a file */
	GT_CONTENT_TABLE,
	GT_CONTENT_TEXTS,
	GT_CONTENT_MADE     /* images made from the seed */
};
/* Returns what the samples of data.format = word are. */
enum gt_content gt_format_content(const char *word);

struct gt_folder_kind;
/* Returns the files that a model of data.format = word takes for prediction. */
const struct gt_folder_kind *gt_format_input(const char *word);

#endif
