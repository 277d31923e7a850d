/* Finds the unreadable images of a source, with the reasons, in several threads.
 *
 *     gt_source_verify(s, true, &v, err);               v.bad of s->n files cannot be decoded; v.why[i] says why, NULL: file i is right
 *     gt_source_drop(s, &v);                            removes these files from s
 *     gt_verified_free(&v);
 */
#ifndef GT_DATASETS_VERIFY_FILES_H
#define GT_DATASETS_VERIFY_FILES_H

#include "source.h"

struct gt_verified {
	int64_t n, bad;  /* number of files, and of unreadable files */
	char **why;      /* [n] the reason, which names the file; NULL: the file can be decoded */
	struct gt_image_shape {
		int32_t h, w, c;
	} *shape;        /* [n] size of each readable image: upright, in pixels, with 1 or 3 channels */
};

/* Reads the header of every image or, if `whole`, decodes every image. The result does not depend on the number of threads. On failure *out
 * is empty; a file that cannot be read is no failure. */
enum gt_code gt_source_verify(const struct gt_source *s, bool whole, struct gt_verified *out, struct gt_err *err);
/* Removes the unreadable files from the source, and their entries from v. */
void gt_source_drop(struct gt_source *s, struct gt_verified *v);
void gt_verified_free(struct gt_verified *v);

#endif
