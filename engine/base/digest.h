/* 128-bit XXH3 digests (xxhash.com, libxxhash) as 32 lowercase hexadecimal digits, most significant first, as `xxhsum -H2` prints them.
 * A digest detects damage and swapped files. It does not protect against forged checkpoints. */
#ifndef GT_BASE_DIGEST_H
#define GT_BASE_DIGEST_H

#include "base/err.h"
#include <stddef.h>

#define GT_DIGEST_HEX 33 /* size of a digest as text, with the NUL */

void gt_digest_bytes(const void *data, size_t n, char hex[GT_DIGEST_HEX]);

/* Computes digests of data that comes in pieces. After gt_digest_open, call for each digest gt_digest_start, gt_digest_add for each
 * piece, and gt_digest_get. At the end call gt_digest_close. */
struct gt_digest;
enum gt_code gt_digest_open(struct gt_digest **out, struct gt_err *err);
void gt_digest_close(struct gt_digest *d); /* does nothing if d is NULL */
void gt_digest_start(struct gt_digest *d);
void gt_digest_add(struct gt_digest *d, const void *data, size_t n);
void gt_digest_get(const struct gt_digest *d, char hex[GT_DIGEST_HEX]);

/* Returns "xxHash" and its version, for `gtrain --version`. */
const char *gt_digest_library(char *buf, size_t size);

#endif
