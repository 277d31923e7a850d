/* The interface of a file format inside datasets/. formats.h lists the formats. */
#ifndef GT_DATASETS_FORMAT_H
#define GT_DATASETS_FORMAT_H

#include "dataset.h"
#include "formats.h"

#define GT_MAX_FILES 64
#define GT_DEFAULT_MAX_BYTES ((size_t)16 << 30)

struct gt_paths {
	int n;
	char *path[GT_MAX_FILES]; /* malloc'ed */
};
/* Adds DIR/name, or DIR/name.gz if only that exists. Returns false if neither exists. */
bool gt_paths_find(struct gt_paths *p, const char *dir, const char *name);
/* Adds the path DIR/name. Does not check that the file exists. */
enum gt_code gt_paths_add(struct gt_paths *p, const char *dir, const char *name, struct gt_err *err);
void gt_paths_free(struct gt_paths *p);
/* Finds the files of a split without reading them. Sets `where` to gt_dataset.where. The caller frees *paths in any case. */
enum gt_code gt_dataset_files(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_paths *paths, char *where, size_t size,
                              struct gt_err *err);

struct gt_fitting;
struct gt_format {
	const char *name;
	enum gt_content content;
	/* Searches a folder for files with the usual names of the format. Without such files, it returns GT_OK with paths->n == 0. If it finds
	 * unusable files, for example another edition of the dataset, it returns an error, which ends the search. NULL: the format has no
	 * files. */
	enum gt_code (*find)(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err);
	/* Reads the files of a split or, if headers_only is set, only their headers. The caller has replaced max_bytes 0 by its default. */
	enum gt_code (*load)(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
	                     struct gt_dataset *out, struct gt_err *err);
	bool by_name;   /* data.format must name the format, because it cannot be detected from the files */
	bool has_valid; /* the format has a split "valid"; false: this split is never requested */
	const struct gt_folder_kind *input;   /* kind of files that predict accepts; NULL: images */
	const struct gt_fitting *fitting;   /* NULL: the format is not fitted (fitted.h) */
};

#define X(name) extern const struct gt_format gt_format_##name;
GT_FORMATS(X)
#undef X
extern const struct gt_format *const gt_formats[]; /* NULL ends it */

struct gt_source;
struct gt_class_list;
/* Builds *out from a source of labelled images and its class list, and always takes ownership of source and list; on failure, the caller
 * frees *out. Checks model.input and data.classes, and applies data.limit. */
enum gt_code gt_dataset_take_source(const struct gt_dataset_spec *spec, struct gt_source *source, struct gt_class_list *classes,
                                    const char *where, struct gt_dataset *out, struct gt_err *err);

/* Creates out->mark from the files of a source. */
enum gt_code gt_dataset_mark_files(const struct gt_source *source, struct gt_dataset *out, struct gt_err *err);

/* Checks that the model's input, spec->shape, has the shape of the images in file; does nothing if shape[0] is 0. GT_ECONFIG: the shapes
 * differ. */
enum gt_code gt_dataset_check_shape(const struct gt_dataset_spec *spec, const struct gt_dataset *d, const char *file, struct gt_err *err);

/* Replaces the images of d, in the order N, C, H, W, by a copy in the order N, H, W, C. */
enum gt_code gt_dataset_interleave(struct gt_dataset *d, struct gt_err *err);

/* Computes a*b*c*d. Returns false if it overflows or a factor is negative. */
bool gt_product4(int64_t a, int64_t b, int64_t c, int64_t d, uint64_t *out);

/* An IDX header (FORMATS: http://yann.lecun.com/exdb/mnist): 00 00, type, rank, then rank big-endian u32 dimensions. */
struct gt_idx {
	int type, rank; /* type of the elements (0x08 is u8, 0x0b is i16, 0x0c is i32), and number of dimensions */
	uint32_t dim[4];
	/* header size in bytes, number of elements, element size in bytes, and total size of header and data in bytes */
	uint64_t header, count, item, bytes;
};
struct gt_gzfile;
enum gt_code gt_idx_open(const char *path, uint64_t max_bytes, struct gt_gzfile *f, struct gt_idx *h, struct gt_err *err);

#endif
