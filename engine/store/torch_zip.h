/* The members of a zip archive in memory that are stored without compression, as torch.save writes them. The archive may be hostile.
 *
 *     [ local header | name | data ]... [ directory: an entry a member ][ zip64 end, locator ][ end of directory ]
 *
 * Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.6 to 4.3.16 and 4.5.3. */
#ifndef GT_STORE_TORCH_ZIP_H
#define GT_STORE_TORCH_ZIP_H

#include "base/arena.h"

struct gt_zip_member {
	const char *name;     /* not terminated */
	size_t len;           /* bytes of the name */
	uint64_t begin, size; /* the data of the member: bytes [begin, begin + size) of the archive */
};

struct gt_zip {
	struct gt_zip_member *member; /* [n], sorted by name; the names are unique */
	int n;
};

/* Reads the directory. The members are in the arena, their names in the file. GT_EDATA: the archive is damaged, a member is compressed
 * or encrypted, or there are too many members. */
enum gt_code gt_zip_read(const unsigned char *file, uint64_t bytes, const char *path, struct gt_arena *a, struct gt_zip *out,
                         struct gt_err *err);

const struct gt_zip_member *gt_zip_find(const struct gt_zip *z, const char *name); /* NULL: no such member */

#endif
