/* Marks identify samples when the data is read again, even if the index of a sample has changed.
 *
 *     gt_dataset_read(&spec, GT_TRAIN, &d, err);     d.mark[i].id: what identifies sample i
 *     gt_source_contents(d.source, d.mark, d.n, …);  d.mark[i].content, for images; for texts and rows it is already set
 *
 * What the hashes cover:
 *     image or text in a file   id: its path in the split (class folder and name, or the path in the list)
 *                               content: of an image, the size and the last 4 KiB of its file; of a text, the whole text
 *     row of a table            id: the texts of all columns, whatever their types; equal rows have the same id
 *                               content: the values of the columns that the model uses
 * In `content` of a row, a number is hashed by value, so that 1 and 1.0 are equal. Arrays (IDX, CIFAR, synthetic data) have no marks:
 * their samples are identified by index. */
#ifndef GT_DATASETS_SAMPLE_MARK_H
#define GT_DATASETS_SAMPLE_MARK_H

#include <stddef.h>
#include <stdint.h>

struct gt_sample_mark {
	uint64_t id;      /* hash that identifies the sample in its dataset, 48 bits */
	uint64_t content; /* hash of the sample's content, 48 bits; 0: not known */
	uint32_t label;   /* 24-bit hash of the sample's labels or targets in a list file; 0: there is no list file */
	int32_t stratum;  /* class of the sample, for a stratified split; 0 if the targets are not classes */
};

/* Returns the hash of n bytes, 48 bits and not 0. */
uint64_t gt_mark_hash(const void *data, size_t n, uint64_t seed);
/* Returns the hash of a path. Equivalent paths such as "./a//b" and "a/b" have the same hash. */
uint64_t gt_mark_path(const char *path);

#endif
