/* The data sets that gtrain knows by name: their format, and for `gtrain fetch` where they are and what they must be. */
#ifndef GT_DATASETS_KNOWN_H
#define GT_DATASETS_KNOWN_H

#include "base/err.h"
#include <stdint.h>

/* A file to download. Digests are lower-case hexadecimal; NULL: not checked (one of the two must be there). */
struct gt_known_file {
	const char *name;
	uint64_t size;
	const char *md5;    /* as the publisher gives it */
	const char *sha256; /* as others who pin the same file give it; agrees in several places */
};

/* A file inside a downloaded .tar.gz; everything else in the archive is skipped. */
struct gt_known_member {
	const char *path; /* in the archive */
	const char *name; /* in the data folder */
	uint64_t size;
	const char *sha256; /* NULL: the archive's digest vouches for it */
};

struct gt_known_dataset {
	const char *name;
	const char *folders[3]; /* names that its folder may have under $GTRAIN_DATA and so on; NULL at the end */
	const char *format;
	int64_t classes;
	const char *mirrors[3];           /* base URLs, tried in this order; NULL at the end */
	struct gt_known_file file[4];     /* name NULL at the end */
	struct gt_known_member member[8]; /* of file[0], if it is an archive: it is removed once they are out */
};

/* The table, closed by a row with name NULL, and the row of a name (NULL: none). */
extern const struct gt_known_dataset gt_known_datasets[];
const struct gt_known_dataset *gt_known_find(const char *name);

/* ---- lib/gtrain/fetch.so -------------------------------------------------------------------------------------------------- */
#define GT_FETCH_ABI 1
#define GT_FETCH_SYMBOL "gt_fetch_plugin"

struct gt_fetch_plugin {
	uint32_t abi;
	/* Brings what is missing or wrong of a data set into dir (made if need be). base_url NULL: the mirrors of the row. A partial
	 * download stays as NAME.part and is resumed by the next call. progress (may be NULL): total 0 if unknown.
	 * GT_EIO: the network or the disk; GT_ENOINPUT: the server has no such file; GT_EDATA: a wrong digest; GT_ECANTCREAT: dir. */
	enum gt_code (*fetch)(const struct gt_known_dataset *row, const char *dir, const char *base_url,
	                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err);
};

#endif
