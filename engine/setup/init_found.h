/* Inside `gtrain init`: finds the kind of data in a folder, and explains in errors why a folder contains no usable data. */
#ifndef GT_SETUP_INIT_FOUND_H
#define GT_SETUP_INIT_FOUND_H

#include "base/err.h"
#include "folder.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The files in a folder and its subfolders; symbolic links are not followed. */
struct gt_init_found {
	int64_t images, texts;
	int64_t direct;        /* number of files directly in the folder */
	int64_t foreign;       /* number of image files of the most frequent unsupported kind */
	const char *end;       /* file name extension of these files, such as ".bmp"; a string constant */
};

/* Returns the number of training files of a kind in folders of classes, or 0 with the reason in err. */
int64_t gt_init_count_files(const char *path, const struct gt_folder_kind *kind, struct gt_err *err);
/* Counts the files below a folder. Unreadable entries are skipped. */
void gt_init_find(const char *path, struct gt_init_found *out);
/* Writes how to convert the foreign files below a folder: "bmp has 3 .bmp files, which gtrain does not read; convert them, …". */
void gt_init_foreign_text(const char *path, const struct gt_init_found *f, char *buf, size_t size);

/* Returns an error about a folder or archive without usable data: its contents, and what to do. */
enum gt_code gt_init_nothing(const char *path, struct gt_err *err);

#endif
