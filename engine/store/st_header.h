/* The JSON header of a safetensors file, apart from files: what the fuzzer drives. Inner header of safetensors.c and checkpoints. */
#ifndef GT_STORE_ST_HEADER_H
#define GT_STORE_ST_HEADER_H

#include "base/json.h"
#include "store/safetensors.h"

#define GT_ST_HEADER_MAX 100000000u /* bytes of JSON, the format's limit */
#define GT_ST_TENSORS_MAX 400000    /* ours: bounds what a hostile header costs in memory */

struct gt_st_slot {
	const char *name;
	struct gt_tdesc desc;
	uint64_t begin, end; /* relative to the start of the data */
};

/* json: n bytes; data_bytes: how long the data behind it is. *slots: sorted by name, in the arena, names too. Every check of the
 * format is made here; GT_EDATA names path and tensor. */
enum gt_code gt_st_header_parse(const char *json, size_t n, uint64_t data_bytes, const char *path, struct gt_arena *a,
                                struct gt_st_slot **slots, int *count, struct gt_err *err);

/* The tensors of t in the order of the file (element size descending, then name) into order (n indices), and the whole header, its
 * length included and padded to 8, into a zeroed writer. GT_EINTERNAL: two tensors of one name, or one that is not plain. */
enum gt_code gt_st_header_print(const struct gt_st_tensor *t, int n, const char *const *metadata, int *order, struct gt_json *j,
                                struct gt_err *err);

#endif
