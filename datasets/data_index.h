/* The index of a split: the converted samples and, of the training split, the fitted facts and the division by data.valid, in an index file
 * (index_file.h) in the user's cache. With it, a table is not read, divided and converted again, and its columns need no memory of the
 * process: they are mapped from the file.
 *
 *     if (gt_data_index_find(&spec, split, settings, &x)) {
 *         gt_data_index_load(&x, &spec, by, NULL, &c);       c.data.mapped != NULL: the index was used
 *         … otherwise read, divide, fit and convert …
 *         gt_data_index_save(&x, &c, marks);
 *     }
 *     gt_data_index_close(&x);
 *
 *     data files --> raw --> split --> facts --> fields, labels, marks --> index file
 *                                                          |                   |
 *                                                          +---- samples <-----+ mapped, on the next occasion
 *
 * The samples have the same bits in both ways. Only formats with gt_fitting.indexed have an index. */
#ifndef GT_DATASETS_DATA_INDEX_H
#define GT_DATASETS_DATA_INDEX_H

#include "fitted.h"
#include "format.h"
#include "index_place.h"

#define GT_INDEX_LARGE ((uint64_t)256 << 20) /* bytes of data files from which data.index = "auto" keeps an index */

struct gt_data_index {
	struct gt_index_place place;
	struct gt_paths paths; /* the data files, and data.vocab if it is set */
	int nfiles;            /* number of data files in paths */
	char where[512];       /* gt_dataset.where */
	uint64_t inode;        /* of the index file when gt_data_index_load looked for it; 0: there was none */
	char note[700];        /* reason why an index was not used or not written; "": none */
};

/* What an index contains. */
struct gt_index_content {
	struct gt_fitted *learned;      /* NULL: the facts are not in this index, because they are those of another split */
	struct gt_dataset data;         /* data.mapped: the mapping into which its arrays and `index` point */
	int64_t *index[2], count[2];    /* samples of "train" and "valid"; NULL: the split was not divided */
};

/* Finds the place of the index. settings: everything but the files that the content depends on. Returns false if the data cannot have an
 * index. The caller calls gt_data_index_close in any case. */
bool gt_data_index_find(const struct gt_dataset_spec *spec, enum gt_split split, const char *settings, struct gt_data_index *x);
void gt_data_index_close(struct gt_data_index *x);

/* Fills *out from the index, if there is one for the current state of the files, and if it is undamaged. Otherwise out->data.mapped is
 * NULL; if an index existed, x->note says why it was not used. learned: the facts of the samples, which must outlive *out; NULL: they are
 * in the index. The caller frees *out with gt_index_content_free, or takes its members. */
void gt_data_index_load(struct gt_data_index *x, const struct gt_dataset_spec *spec, const struct gt_fitting *by,
                        const struct gt_fitted *learned, struct gt_index_content *out);
void gt_index_content_free(struct gt_index_content *c);

/* Writes an index, unless another process has written one since gt_data_index_load. marks: with the marks of the samples. Returns whether
 * there is a new index. If not, x->note says why, unless another process is just writing an index. */
bool gt_data_index_save(struct gt_data_index *x, const struct gt_index_content *c, bool marks);

#endif
