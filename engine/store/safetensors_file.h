/* Functions on safetensors files that checkpoints need in addition to safetensors.h. Reading uses pread(2) instead of a memory map: a disk
 * error, or a file that another process has truncated, is then an error and not a SIGBUS. */
#ifndef GT_STORE_SAFETENSORS_FILE_H
#define GT_STORE_SAFETENSORS_FILE_H

#include "base/digest.h"
#include "base/json.h"
#include "store/safetensors.h"
#include "store/st_slot.h"

/* Writes n tensors to an open descriptor, sorted by element size, largest first, then by name. metadata is NULL, or a list of alternating
 * keys and values that ends with NULL. Adds all bytes to the digest d, unless it is NULL, and sets *bytes to their number. Does not fsync.
 * Errors name `path`. */
enum gt_code gt_st_write_digest(int fd, const char *path, const struct gt_st_tensor *t, int n, const char *const *metadata,
                                struct gt_digest *d, uint64_t *bytes, struct gt_err *err);

/* Opens a safetensors file without mapping it: `data` is NULL in every tensor. It rejects files of torch.save. */
enum gt_code gt_st_open_unmapped(const char *path, struct gt_st_file **out, struct gt_err *err);
/* Reads the values of t, which gt_st_at() or gt_st_find() returned for f, into out (gt_tdesc_bytes(&t->desc) bytes). */
enum gt_code gt_st_read(const struct gt_st_file *f, const struct gt_st_tensor *t, void *out, struct gt_err *err);
uint64_t gt_st_bytes(const struct gt_st_file *f); /* size of the file */
/* Calls fn with consecutive blocks of the whole file, for digests and copies. Stops at the first error and returns it. */
enum gt_code gt_st_each(const struct gt_st_file *f, enum gt_code (*fn)(void *user, const void *data, size_t n, struct gt_err *err),
                        void *user, struct gt_err *err);
/* Writes the whole file to the descriptor fd, whose file is called `path` in errors. */
enum gt_code gt_st_copy(const struct gt_st_file *f, int fd, const char *path, struct gt_err *err);

/* ---- st_header.c: the JSON header in memory, without file access, so that a fuzzer can test it ---------------------------- */
#define GT_ST_HEADER_MAX 100000000u /* maximum bytes of the JSON header, as the format defines it */

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
