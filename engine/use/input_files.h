/* Makes the list of the files that `gtrain predict` classifies, from its operands.
 *
 *     struct gt_inputs in = {.arena = a, .kind = &gt_folder_images};
 *     gt_inputs_add(&in, "shoe.png", err);         a file, a folder, "@LIST", or "-": standard input
 *     gt_inputs_add_list(&in, "LIST", err);        a file with one path on each line; "-": standard input
 *     gt_inputs_add_text(&in, "a text", err);      a text itself
 *     ... in.v[0 ... in.n - 1] ...
 *     gt_inputs_free(&in);
 *
 * From standard input, "-" reads the rows of a table, or a text on each line, or, for a model of images, a list as "@-" does. The rows are
 * copied to memory, because the file of a table is read more than once.
 *
 * An archive of images or texts (.tar, .zip, …) means its members of the kind, sorted by their paths, with names such as "x.zip: a.png".
 *
 * A folder means all files of the kind, such as images, in it and its subfolders, sorted by their paths as bytes. Hidden files and folders
 * are skipped. Symbolic links are followed; each folder is read once, so that loops of links end. */
#ifndef GT_USE_INPUT_FILES_H
#define GT_USE_INPUT_FILES_H

#include "base/arena.h"
#include "folder.h"
#include <stdbool.h>
#include <stdint.h>

struct gt_input {
	const char *path;  /* file to read */
	const char *name;  /* its name in results: path, or "-" */
	const char *text;  /* a text itself; NULL: path is a file */
	bool lines;        /* each line of standard input is a text */
	const struct gt_source *source; /* the archive of which this is a member; NULL: path is a file */
	int64_t member;    /* index in the archive */
	const char *error; /* why a folder cannot be read or has no image; NULL: path is a file to read */
	enum gt_code code; /* exit code of the error */
};

struct gt_inputs {
	struct gt_arena *arena; /* memory of the paths; not owned */
	const struct gt_folder_kind *kind; /* the kind of files that are inputs */
	struct gt_input *v;
	int64_t n, cap;
	struct gt_source **source; /* [nsources] the archives */
	int64_t nsources, source_cap;
	int copy;                  /* if copied: descriptor of the file that holds the copy of standard input */
	bool copied, stdin_read;   /* standard input was copied; standard input is used by an input or a list */
};

/* An operand or a line that is not a usable file becomes an entry with an error, or gives an error when the file is read. These functions
 * fail only because of a list: GT_ENOINPUT if it cannot be opened, is empty, or names no file that exists; GT_EDATA if it has a NUL byte or
 * a path that is too long. */
enum gt_code gt_inputs_add(struct gt_inputs *in, const char *operand, struct gt_err *err);
enum gt_code gt_inputs_add_list(struct gt_inputs *in, const char *list, struct gt_err *err);
enum gt_code gt_inputs_add_text(struct gt_inputs *in, const char *text, struct gt_err *err);
/* Returns whether each input is known to be one sample: a text, a member of an archive, or an image file. A table, the lines of standard
 * input, and an IDX or NumPy file may have any number. */
bool gt_inputs_are_single(const struct gt_inputs *in);
void gt_inputs_free(struct gt_inputs *in);

#endif
