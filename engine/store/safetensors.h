/* Reads and writes safetensors files (huggingface/safetensors, format 0.x): u64le N (at most 100,000,000), then N bytes of JSON that begin
 * with '{' and are padded with spaces to a multiple of 8, then the data. The reader treats the file as untrusted; st_header.c makes the
 * checks of the format. gt_st_open also reads state dicts of torch.save (torch_file.h), with the same interface.
 *
 *     [ u64 N ][ {"fc1.weight":{"dtype":"F32","shape":[512,784],"data_offsets":[0,1605632]},...}   ][ data ]
 *                 '------------------------- N bytes, padded to a multiple of 8 ---------------'
 *
 *     gt_st_open(path, &f, err);
 *     const struct gt_st_tensor *t = gt_st_find(f, "fc1.weight");        t->data, t->desc
 *     gt_st_close(f);
 */
#ifndef GT_STORE_SAFETENSORS_H
#define GT_STORE_SAFETENSORS_H

#include "base/arena.h"
#include "base/types.h"

/* Produces the bytes of a tensor. *data is valid until the next call. key: gt_st_tensor.key. */
typedef enum gt_code gt_bytes_fn(void *user, int key, const void **data, struct gt_err *err);

struct gt_st_tensor {
	const char *name;
	struct gt_tdesc desc;  /* shape and dtype of the tensor, which is in plain layout */
	/* in a tensor to write: its values in host memory; in a tensor of an open file: address in the mapped file, valid until gt_st_close */
	const void *data;
	gt_bytes_fn *read;     /* in a tensor to write whose `data` is NULL: the function that returns its bytes */
	void *user;            /* first argument of read */
	int key;               /* second argument of read */
};

struct gt_st_file; /* an open file, mapped read-only */

/* Opens a safetensors file or a file of torch.save, and maps it into memory. The caller closes it with gt_st_close. */
enum gt_code gt_st_open(const char *path, struct gt_st_file **out, struct gt_err *err);
void gt_st_close(struct gt_st_file *f);
int gt_st_count(const struct gt_st_file *f); /* number of tensors */
/* Returns tensor i (0 ... gt_st_count(f) - 1) of the file in the order of names, or NULL if i is out of range. */
const struct gt_st_tensor *gt_st_at(const struct gt_st_file *f, int i);
const struct gt_st_tensor *gt_st_find(const struct gt_st_file *f, const char *name); /* returns NULL if no tensor has this name */

#endif
