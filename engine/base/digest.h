/* XXH3 with 128 bits (xxhash.com, libxxhash), as 32 lowercase hexadecimal digits, most significant first: what `xxhsum -H2` prints.
 * It finds damage, by chance or by a swap of files; it is no proof against somebody who forges a checkpoint. */
#ifndef GT_BASE_DIGEST_H
#define GT_BASE_DIGEST_H

#include "base/err.h"
#include <stddef.h>

#define GT_DIGEST_HEX 33 /* with the NUL */

void gt_digest_bytes(const void *data, size_t n, char hex[GT_DIGEST_HEX]);

/* In pieces. The caller closes; gt_digest_start() begins anew. */
struct gt_digest;
enum gt_code gt_digest_open(struct gt_digest **out, struct gt_err *err);
void gt_digest_close(struct gt_digest *d); /* NULL is fine */
void gt_digest_start(struct gt_digest *d);
void gt_digest_add(struct gt_digest *d, const void *data, size_t n);
void gt_digest_get(const struct gt_digest *d, char hex[GT_DIGEST_HEX]);

#endif
