/* The datasets that gtrain knows by name: their format, and for `gtrain fetch` their mirrors, sizes and digests. */
#ifndef GT_DATASETS_KNOWN_H
#define GT_DATASETS_KNOWN_H

#include "base/err.h"
#include <stdint.h>

/* A file to download. */
struct gt_known_file {
	const char *name;
	uint64_t size;      /* 0: not published */
	const char *sha256; /* SHA-256 digest in lower-case hexadecimal digits; only its first digits (at least 8) if the publisher gives no
	                       more */
};

/* A file to extract from a downloaded .tar.gz; other members are skipped. */
struct gt_known_member {
	const char *path; /* path of the member in the archive */
	const char *name; /* name of the extracted file in the data folder */
	uint64_t size;
	const char *sha256; /* SHA-256 digest of the extracted file; NULL: only the digest of the archive is checked */
};

struct gt_known_dataset {
	const char *name;
	const char *folders[3]; /* possible folder names of the dataset in the searched directories; NULL ends the list */
	const char *format;
	int64_t classes;
	const char *const *class_name;    /* [classes] by label */
	const char *mirrors[3];           /* base URLs, tried in this order; NULL ends the list */
	struct gt_known_file file[4];     /* the files to download; an entry with name NULL ends the list */
	struct gt_known_member member[8]; /* members to extract if file[0] is an archive, which is removed afterwards */
};

/* The table of known datasets. Its last row has the name NULL. */
extern const struct gt_known_dataset gt_known_datasets[];
/* Returns the row of the dataset with this name, or NULL if gtrain does not know the name. */
const struct gt_known_dataset *gt_known_find(const char *name);
/* Returns the name of the known dataset that a misspelled or abbreviated name means ("fmnist", "cifar-10"), or NULL. Names of other
 * datasets, such as kmnist, give NULL. */
const char *gt_known_near(const char *name);

/* ---- lib/gtrain/fetch.so -------------------------------------------------------------------------------------------------- */
#define GT_FETCH_ABI 3
#define GT_FETCH_SYMBOL "gt_fetch_plugin"

struct gt_fetch_plugin {
	uint32_t abi;
	/* Downloads the missing or damaged files of a dataset into dir, which is created if necessary. base_url replaces the mirrors of the row
	 * unless it is NULL. A partial download remains as NAME.part, and the next call continues it. progress, which may be NULL, is called
	 * with the received bytes and the total size (0: unknown). GT_EIO: the network or the disk failed. GT_ENOINPUT: the server has no such
	 * file. GT_EDATA: a digest is wrong. GT_ECANTCREAT: dir cannot be created. */
	enum gt_code (*fetch)(const struct gt_known_dataset *row, const char *dir, const char *base_url,
	                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err);
};

#endif
