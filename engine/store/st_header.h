/* Parses and prints the JSON header of a safetensors file in memory, without file access, so that a fuzzer can test it. Internal header of
 * st_file.c and the checkpoint files. */
#ifndef GT_STORE_ST_HEADER_H
#define GT_STORE_ST_HEADER_H

#include "base/json.h"
#include "store/safetensors.h"

#define GT_ST_HEADER_MAX 100000000u /* maximum bytes of JSON, by the format */
#define GT_ST_TENSORS_MAX 400000    /* maximum number of tensors, by gtrain: bounds the memory that an untrusted header can take */

struct gt_st_slot { /* one tensor of a header */
	const char *name;
	struct gt_tdesc desc;
	uint64_t begin, end; /* its bytes [begin, end), counted from the end of the header */
};

/* Parses a header of n bytes of JSON and makes every check of the format. data_bytes: length of the data after the header. *slots receives
 * an array of *count tensors, sorted by name; the array and the names are in the arena. GT_EDATA: the header is wrong; the sentence names
 * path and tensor. */
enum gt_code gt_st_header_parse(const char *json, size_t n, uint64_t data_bytes, const char *path, struct gt_arena *a,
                                struct gt_st_slot **slots, int *count, struct gt_err *err);

/* Prints the header of n tensors. order[n] receives the indices of the tensors in the order of the file: by element size, largest first,
 * then by name. j, which must be zeroed, receives the whole header: its length, and the JSON padded to a multiple of 8 bytes. GT_EINTERNAL:
 * two tensors have the same name, or one is not in plain layout. */
enum gt_code gt_st_header_print(const struct gt_st_tensor *t, int n, const char *const *metadata, int *order, struct gt_json *j,
                                struct gt_err *err);

#endif
