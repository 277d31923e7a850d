/* safetensors files (huggingface/safetensors, format 0.x): u64le N (at most 100,000,000), N bytes of JSON that begin with '{' and are
 * padded with spaces to 8, then the data. Reading assumes a hostile file: see FORMATS.md's list of checks. */
#ifndef GT_STORE_SAFETENSORS_H
#define GT_STORE_SAFETENSORS_H

#include "base/arena.h"
#include "base/types.h"

/* Makes the bytes of a tensor, valid until the next call. */
typedef enum gt_code gt_bytes_fn(void *user, int key, const void **data, struct gt_err *err);

struct gt_st_tensor {
	const char *name;
	struct gt_tdesc desc;  /* plain */
	const void *data;      /* writing: host bytes; reading: into the mapped file, valid until close */
	gt_bytes_fn *read;     /* writing, where data is NULL: called when the bytes' turn comes */
	void *user;
	int key;
};

struct gt_st_file; /* an open file, mapped read-only */

/* Writes to an open descriptor, sorted by element size descending, then name. metadata: key, value, key, value, …, NULL; may be
 * NULL. Does not fsync. Errors name `path`. */
enum gt_code gt_st_write(int fd, const char *path, const struct gt_st_tensor *t, int n, const char *const *metadata, struct gt_err *err);

enum gt_code gt_st_open(const char *path, struct gt_st_file **out, struct gt_err *err);
void gt_st_close(struct gt_st_file *f);
int gt_st_count(const struct gt_st_file *f);
const struct gt_st_tensor *gt_st_at(const struct gt_st_file *f, int i); /* sorted by name */
const struct gt_st_tensor *gt_st_find(const struct gt_st_file *f, const char *name);

#endif
