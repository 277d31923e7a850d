/* Inside fetch.so: the three things that a fetch is made of. */
#ifndef GT_DATASETS_FETCH_PARTS_H
#define GT_DATASETS_FETCH_PARTS_H

#include "known.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_FETCH_PATH 4096

/* ---- published.c ------------------------------------------------------------------------------------------------------------ */
struct gt_published; /* MD5 and SHA-256 at once, or only those that are asked for */
enum gt_code gt_published_open(const char *md5, const char *sha256, struct gt_published **out, struct gt_err *err);
void gt_published_add(struct gt_published *d, const void *data, size_t n);
bool gt_published_close(struct gt_published *d); /* true: every digest asked for is the one expected. NULL: false */

/* Whether the first `size` bytes are all of fd and have the digests; GT_OK with *good, or why it could not be read. */
enum gt_code gt_published_file(int fd, const char *path, uint64_t size, const char *md5, const char *sha256, bool *good,
                               struct gt_err *err);

/* ---- transfer.c ------------------------------------------------------------------------------------------------------------- */
struct gt_transfer {
	const char *url, *path; /* path: of the partial file, for messages */
	const char *name;       /* for progress */
	int fd;                 /* open for writing */
	uint64_t have, size;    /* bytes already there; expected in all */
	void (*progress)(void *user, const char *file, uint64_t done, uint64_t total);
	void *user;
};

enum gt_transfer_end {
	GT_TRANSFER_DONE,
	GT_TRANSFER_AGAIN, /* err says why; what has come is kept, and asking again may help */
	GT_TRANSFER_NEVER  /* err says why; this URL (or the disk) will not do */
};

/* One HTTP(S) request that appends to the file, with a Range where have > 0. */
enum gt_transfer_end gt_transfer(const struct gt_transfer *t, struct gt_err *err);

/* ---- untar.c ---------------------------------------------------------------------------------------------------------------- */
/* Takes the members of a .tar.gz that the row names, and nothing else, to dir/<name>, each complete or not at all. */
enum gt_code gt_untar(const char *path, const char *dir, const struct gt_known_member *members, int n, struct gt_err *err);

#endif
