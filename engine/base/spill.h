/* Large arrays in temporary files instead of memory, for a first pass over data that may be larger than memory.
 *
 *     gt_spill_open(dir, &s);                                     s NULL: no such files are possible; the arrays are in memory
 *     double *v = gt_spill_resize(s, NULL, n * sizeof *v);        like realloc
 *     … v[i] …
 *     gt_spill_free(s, v);
 *     gt_spill_close(s);
 *
 *     array of 1 MiB or more --> unlinked file in dir, mapped shared --> page cache --> disk
 *     smaller array          --> malloc
 *
 * The system writes pages of such arrays to disk when it needs memory. In addition, a thread unmaps their pages when more than
 * GT_SPILL_RESIDENT bytes of files are mapped into the process; the next access maps a page again. So the memory of the process does not
 * grow with the arrays, if they are read and written in order. Blocks of the disk are allocated before they are written, so that a full
 * disk is noticed when an array grows: then this array, and every array that is made later, is in memory. This holds for file systems that
 * write in place; on others, a write to the mapping can end the process with SIGBUS. The files have no names, so nothing remains of them
 * after a crash. */
#ifndef GT_BASE_SPILL_H
#define GT_BASE_SPILL_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_SPILL_MIN ((size_t)1 << 20)        /* bytes from which an array is in a file */
#define GT_SPILL_RESIDENT ((uint64_t)64 << 20) /* bytes of mapped files beyond which the pages of the arrays are unmapped */
#define GT_SPILL_RESERVE ((uint64_t)128 << 20) /* bytes of the disk that must stay free */

struct gt_spill; /* owned by the caller of gt_spill_open. All functions below also take NULL: then arrays are in memory */

/* Prepares files in an existing directory. Sets *out to NULL if there is no memory for this. */
void gt_spill_open(const char *dir, struct gt_spill **out);
void gt_spill_close(struct gt_spill *s); /* frees also the arrays in files that were not freed */

/* Like realloc, for an array from this function, or from malloc. Bytes beyond the old size are undefined. Returns NULL if there is no
 * memory; then p is unchanged. Thread-safe for different arrays. */
void *gt_spill_resize(struct gt_spill *s, void *p, size_t bytes);
/* Returns an array of n zeroed elements; NULL: there is no memory. */
void *gt_spill_zeros(struct gt_spill *s, size_t n, size_t size);
void gt_spill_free(struct gt_spill *s, void *p); /* frees an array from the functions above, or from malloc */
/* Returns whether larger arrays are still put into files: s is not NULL, and no disk was full. */
bool gt_spill_works(struct gt_spill *s);
uint64_t gt_spill_peak(struct gt_spill *s); /* returns the highest number of bytes that all arrays in files had at a time */
/* Leaves the pages of the arrays to the system, which unmaps them when it needs memory; for arrays that are then read in any order. */
void gt_spill_settle(struct gt_spill *s);

/* Like gt_grown (base/arena.h), for an array of s. From 256 MiB on, the capacity grows by an eighth, because pages are not copied. */
void *gt_spill_grown(struct gt_spill *s, void *p, int64_t *cap, int64_t need, size_t size);

/* Sets ptr to n elements of its type, not initialised, or returns the error "out of memory" from the calling function. */
#define GT_SPILL_NEW(s, ptr, n, err)                                                                      \
	do {                                                                                                  \
		if (!((ptr) = gt_spill_resize((s), NULL, ((size_t)(n) + !(n)) * sizeof *(ptr))))                  \
			return gt_fail_memory((err), (size_t)(n) * sizeof *(ptr));                                    \
	} while (0)

/* Makes room for `need` elements in ptr, an array of s with capacity `cap` (int64_t), or returns the error "out of memory" from the
 * calling function. */
#define GT_SPILL_GROW(s, ptr, cap, need, err)                                                             \
	do {                                                                                                  \
		if ((need) > (cap)) {                                                                             \
			void *grown_ = gt_spill_grown((s), (ptr), &(cap), (need), sizeof *(ptr));                     \
			if (!grown_)                                                                                  \
				return gt_fail_memory((err), (size_t)(need) * sizeof *(ptr));                             \
			(ptr) = grown_;                                                                               \
		}                                                                                                 \
	} while (0)

#endif
