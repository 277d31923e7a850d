/* What checkpoints need of a safetensors file beyond safetensors.h. Reading here goes by pread(2), never through a map: a bad disk or a
 * file cut short by somebody else is then an error, not a SIGBUS. */
#ifndef GT_STORE_ST_FILE_H
#define GT_STORE_ST_FILE_H

#include "base/digest.h"
#include "store/safetensors.h"

/* gt_st_write(), the digest of all bytes added to d, their number in *bytes. */
enum gt_code gt_st_write_digest(int fd, const char *path, const struct gt_st_tensor *t, int n, const char *const *metadata,
                                struct gt_digest *d, uint64_t *bytes, struct gt_err *err);

/* Without a map: data is NULL in every tensor. */
enum gt_code gt_st_open_unmapped(const char *path, struct gt_st_file **out, struct gt_err *err);
/* t: of gt_st_at() or gt_st_find() on f. out: its desc's bytes. */
enum gt_code gt_st_read(const struct gt_st_file *f, const struct gt_st_tensor *t, void *out, struct gt_err *err);
uint64_t gt_st_bytes(const struct gt_st_file *f);
/* Every byte of the file, in order: for digests and copies. */
enum gt_code gt_st_each(const struct gt_st_file *f, enum gt_code (*fn)(void *user, const void *data, size_t n, struct gt_err *err),
                        void *user, struct gt_err *err);

#endif
