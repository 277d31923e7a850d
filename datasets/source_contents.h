/* The hashes of the contents of image files, by which changed samples are noticed (sample_mark.h).
 *
 *     gt_source_contents(d.source, d.mark, d.n, keep, note, sizeof note);        d.mark[i].content
 */
#ifndef GT_DATASETS_SOURCE_CONTENTS_H
#define GT_DATASETS_SOURCE_CONTENTS_H

#include "sample_mark.h"
#include "source.h"

#define GT_CONTENTS_LARGE 20000 /* number of images of a split from which data.index = "auto" keeps an index */

/* Sets `content` of n marks from the files of a source, with several threads; it stays 0 for unreadable files. keep: with an index
 * (content_index.h), so that files that have not changed are not read; it does not change the result. Archives have no index, because
 * reading from one open file is as fast. Writes to `note` why the index was not used or not written; "": there is nothing to say. */
void gt_source_contents(const struct gt_source *s, struct gt_sample_mark *mark, int64_t n, bool keep, char *note, size_t size);

#endif
