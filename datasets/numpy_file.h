/* Arrays of NumPy: .npy files (format 1.0 to 3.0 of numpy.lib.format) and .npz files, which are zip archives of .npy members. The files are
 * treated as hostile, and pickled objects are refused, because loading them would run code.
 *
 *     \x93NUMPY  major minor  header length (u16 or u32)  {'descr': '<f4', 'fortran_order': False, 'shape': (60, 4), }  data
 *
 *     GT_TRY(gt_numpy_list(path, &f, err));                           names, types and shapes
 *     GT_TRY(gt_numpy_load(path, &f.array[k], limit, err));           f.array[k].data
 *     gt_numpy_free(&f);
 */
#ifndef GT_DATASETS_NUMPY_FILE_H
#define GT_DATASETS_NUMPY_FILE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_NUMPY_RANK 8     /* maximum number of dimensions */
#define GT_NUMPY_ARRAYS 256 /* maximum number of arrays in a file */

struct gt_numpy_array {
	char *name;     /* name of the member of the .npz file without ".npy"; "": the only array of a .npy file */
	char kind;      /* 'b' bool, 'i' and 'u' integers, 'f' real numbers, 'U' and 'S' texts (UTF-32 and bytes, padded with NUL) */
	int item;       /* bytes per element; real numbers: 4 or 8; integers: 1, 2, 4 or 8 */
	int rank;       /* number of dimensions, at most GT_NUMPY_RANK; 0: the array is a single element */
	uint64_t dim[GT_NUMPY_RANK];
	uint64_t count; /* number of elements */
	uint64_t header; /* offset of the elements in the member or file, in bytes */
	uint8_t *data;  /* [count * item] in C order, little endian; NULL: not loaded */
	void *memory;   /* allocation that contains `data`; NULL: not loaded */
};

struct gt_numpy {
	int n;
	struct gt_numpy_array array[GT_NUMPY_ARRAYS];
};

/* Returns whether a file begins as a .npy file, or has a name that ends with .npz. False if it cannot be read. */
bool gt_numpy_is_file(const char *path);

/* Parses a header from the first n bytes of an array. where: the file and the array, for messages. GT_EDATA: the header is damaged, or the
 * element type or order is not supported. */
enum gt_code gt_numpy_parse(const uint8_t *b, size_t n, const char *where, struct gt_numpy_array *out, struct gt_err *err);

/* Reads the names, types and shapes of all arrays of a file. On failure *out is empty. */
enum gt_code gt_numpy_list(const char *path, struct gt_numpy *out, struct gt_err *err);
/* Reads the elements of an array from a file; the array is from gt_numpy_list. GT_EDATA: the file is truncated or too long, the array has
 * more than `most` bytes, or an .npz file expands to more than 64 MiB and 64 times its size. */
enum gt_code gt_numpy_load(const char *path, struct gt_numpy_array *a, uint64_t most, struct gt_err *err);
void gt_numpy_free(struct gt_numpy *f);

/* Returns the array with this name, or NULL. */
struct gt_numpy_array *gt_numpy_find(struct gt_numpy *f, const char *name);
/* Returns element i of an array of integers or bools. */
int64_t gt_numpy_integer(const struct gt_numpy_array *a, uint64_t i);
/* Returns element i of an array of real numbers. */
double gt_numpy_real(const struct gt_numpy_array *a, uint64_t i);
/* Writes "uint8 [60000, 28, 28]" to buf, for messages, and returns buf. */
const char *gt_numpy_text(const struct gt_numpy_array *a, char *buf, size_t size);

#endif
