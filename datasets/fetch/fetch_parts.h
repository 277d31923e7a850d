/* The parts of a download, inside fetch.so: fetch_plugin.c verifies files by their digests, transfer.c downloads a file, untar.c unpacks an
 * archive. */
#ifndef GT_DATASETS_FETCH_PARTS_H
#define GT_DATASETS_FETCH_PARTS_H

#include "known.h"
#include <stdbool.h>
#include <stdint.h>

#define GT_FETCH_PATH 4096

/* Sets *good to whether the file fd has exactly `size` bytes (0: any size) and a SHA-256 digest that begins with sha256 (NULL: any digest).
 * Fails if the file cannot be read. */
enum gt_code gt_published_file(int fd, const char *path, uint64_t size, const char *sha256, bool *good, struct gt_err *err);

/* ---- transfer.c ------------------------------------------------------------------------------------------------------------- */
struct gt_transfer {
	const char *url, *path; /* path of the partial file, for messages */
	const char *name;       /* name of the file in progress reports */
	int fd;                 /* open for writing */
	uint64_t have, size;    /* number of bytes in the partial file, and in the complete file; size 0: not known */
	void (*progress)(void *user, const char *file, uint64_t done, uint64_t total);
	void *user;
};

enum gt_transfer_end {
	GT_TRANSFER_DONE,
	GT_TRANSFER_AGAIN, /* the transfer failed (reason in err); the received bytes are kept, and another attempt can succeed */
	GT_TRANSFER_UNREACHED, /* the transfer failed because there was no connection to the server; another attempt can succeed */
	GT_TRANSFER_NEVER  /* the transfer failed (reason in err); another attempt with this URL or disk cannot succeed */
};

/* Makes one HTTP or HTTPS request, with a Range header if have > 0, and appends the data to the file. */
enum gt_transfer_end gt_transfer(const struct gt_transfer *t, struct gt_err *err);

/* ---- untar.c ---------------------------------------------------------------------------------------------------------------- */
/* Extracts the listed members of a .tar.gz, and no others, to dir/<name>. A file appears only when it is complete. */
enum gt_code gt_untar(const char *path, const char *dir, const struct gt_known_member *members, int n, struct gt_err *err);

#endif
