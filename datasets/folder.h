/* Folders and .tar archives as lists of the files in them, for the formats that read them. */
#ifndef GT_DATASETS_FOLDER_H
#define GT_DATASETS_FOLDER_H

#include "class_list.h"
#include "dataset.h"
#include "source.h"

/* Opens a folder, or a .tar archive, as a source without files. GT_ENOINPUT: it does not exist or cannot be read. */
enum gt_code gt_folder_open(const char *root, struct gt_source **out, struct gt_err *err);
/* Adds all images in it, at any depth, and sorts them by path; their labels are 0. */
enum gt_code gt_folder_list(struct gt_source *s, struct gt_err *err);
/* The files that a format reads from folders. */
struct gt_folder_kind {
	bool (*wanted)(const char *path); /* whether the name of a file shows that it is one of them */
	const char *what;                 /* for messages: "images (.jpg, .jpeg, .png or .webp)" */
};
extern const struct gt_folder_kind gt_folder_images, gt_folder_texts, gt_folder_tables;

/* Opens a folder or archive of train/CLASS/…, valid/CLASS/… (or val) and test/CLASS/…, or of CLASS/…, and adds the files of a split with
 * their labels, sorted by class, then by path. *out has no files if there is no such split. classes: the folders of the training split. The
 * caller closes *out and frees *classes, which are empty after an error. */
enum gt_code gt_folder_split(const char *root, const struct gt_folder_kind *kind, enum gt_split split, struct gt_source **out,
                             struct gt_class_list *classes, struct gt_err *err);
/* What gt_folder_split_as does differently. */
struct gt_folder_terms {
	const char *const *known; /* [nknown] the classes of a checkpoint, in the order of their labels: *classes become these, and a folder of
	                             another class is GT_EDATA. NULL: the classes are the folders of the training split */
	int64_t nknown;
	bool all;                 /* with known: there are no splits; the folders of the root are classes, of which some may be missing */
};
enum gt_code gt_folder_split_as(const char *root, const struct gt_folder_kind *kind, enum gt_split split,
                                const struct gt_folder_terms *terms, struct gt_source **out, struct gt_class_list *classes,
                                struct gt_err *err);
/* Returns whether path is a folder or a file whose name ends with ".tar". */
bool gt_folder_is_source(const char *path);

#endif
