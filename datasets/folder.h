/* Lists the files of directories and archives (.tar, or packed: archive_cache.h) (source_list.c), and finds splits and classes by folder
 * names (folder.c). */
#ifndef GT_DATASETS_FOLDER_H
#define GT_DATASETS_FOLDER_H

#include "class_list.h"
#include "dataset.h"
#include "source.h"
#include <dirent.h>

/* The files that a format reads from directories. */
struct gt_folder_kind {
	const char *what;        /* for messages: "images (.jpg, .jpeg, .png or .webp)" */
	const char *const end[11]; /* file name extensions, in lower or upper case; NULL ends the list */
};
extern const struct gt_folder_kind gt_folder_images, gt_folder_texts, gt_folder_tables;
/* Returns whether a file name has an extension of the kind and is not hidden. */
bool gt_folder_wants(const struct gt_folder_kind *kind, const char *path);

/* Opens a directory, or an archive, as a source without files. GT_ENOINPUT: it does not exist or cannot be read. */
enum gt_code gt_folder_open(const char *root, struct gt_source **out, struct gt_err *err);
/* Adds all files of a kind in the source, at any depth, with label 0, sorted by path. Of archive members with the same path, the last is
 * listed, as with tar. GT_EDATA: the archive is damaged or truncated, or a member of the kind is a link or sparse, or its path is absolute
 * or contains "..". */
enum gt_code gt_folder_list(struct gt_source *s, const struct gt_folder_kind *kind, struct gt_err *err);

/* Opens a directory or archive of train/CLASS/…, valid/CLASS/… (or val) and test/CLASS/…, or of CLASS/…, and adds the files of a split with
 * their labels, sorted by class, then by path. *out has no files if the split does not exist. *classes: the folders of the training split,
 * or spec->known; then another folder is GT_EDATA. spec NULL: `known` and `all` are not set. The caller closes *out and frees *classes,
 * which are empty after an error. */
enum gt_code gt_folder_split(const char *root, const struct gt_folder_kind *kind, enum gt_split split, const struct gt_dataset_spec *spec,
                             struct gt_source **out, struct gt_class_list *classes, struct gt_err *err);
/* Returns whether path is a directory, or a file with the name of an archive. */
bool gt_folder_is_source(const char *path);
struct gt_paths;
/* Implements gt_format.find: adds dir if gt_folder_is_source accepts it. */
enum gt_code gt_folder_find(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err);
/* Returns whether a directory or file is not part of the data: it is hidden (its name begins with a dot), or an operating system or an
 * archive program has made it (__MACOSX, lost+found, …). */
bool gt_folder_ignored(const char *name, size_t len);

/* ---- walks over directories, inside datasets/ ------------------------------------------------------------------------------------ */
DIR *gt_folder_dir(int root, const char *path); /* opens a directory below root; "": root itself. NULL: errno says why */
/* Returns the next entry that is part of the data; NULL: no more entries, or an error (errno is not 0). */
struct dirent *gt_folder_next(DIR *d);
/* Returns whether an entry is a directory or a link to a directory; its path is relative to the open directory fd. */
bool gt_folder_is_dir(int fd, const struct dirent *e, const char *path);
enum gt_code gt_folder_fail_read(const char *root, const char *path, struct gt_err *err); /* by errno */
/* Adds all files of a kind below the directory `path` of the source's root. path has room for PATH_MAX bytes and is unchanged on return.
 * If any is not NULL, adds no file, but sets *any and returns at the first file. */
enum gt_code gt_folder_walk(struct gt_source *s, const struct gt_folder_kind *kind, char *path, bool *any, struct gt_err *err);

#endif
