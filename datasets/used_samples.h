/* The samples that a run used, as stored in a checkpoint. They serve to detect changed data, and to never evaluate on a training sample.
 *
 *     struct gt_used_samples u = {0};
 *     gt_used_add(&u.list[GT_TRAIN], &mark, 1, err); ...             or from a checkpoint (engine/store/data_facts.h)
 *     GT_TRY(gt_used_index(&u, err));
 *     gt_used_measures(&u, GT_TEST, &mark)                           may this sample be measured?
 *     gt_used_compare(lists, nlists, marks, n, &changes, err);       counts added, missing and changed samples
 *     gt_used_free(&u);
 */
#ifndef GT_DATASETS_USED_SAMPLES_H
#define GT_DATASETS_USED_SAMPLES_H

#include "base/err.h"
#include "dataset.h"
#include "sample_mark.h"

struct gt_sample_list {
	struct gt_sample_mark *mark; /* sorted by id, then by content, after gt_used_index */
	int64_t n, cap;
};

struct gt_used_samples {
	bool by_number;  /* the samples were split by index, as in early versions */
	bool changed;    /* the run was resumed with other samples, data.valid or seed: the lists determine the split, and the facts were fitted
	                    to earlier samples */
	bool listed;     /* the lists are complete; false: there were too many samples for a checkpoint, and the lists are empty */
	struct gt_sample_list list[GT_SPLITS]; /* the samples of each split that the run read */
	struct gt_sample_list past;            /* trained samples that were missing from the data when the run was last resumed */
	uint64_t *trained, *held;              /* sorted contents of list[GT_TRAIN] and past, and of list[GT_VALID] */
	int64_t ntrained, nheld;
};

enum gt_code gt_used_add(struct gt_sample_list *l, const struct gt_sample_mark *mark, int64_t n, struct gt_err *err);
/* Sorts the lists, after which the functions below may be called. */
enum gt_code gt_used_index(struct gt_used_samples *u, struct gt_err *err);
void gt_used_free(struct gt_used_samples *u); /* frees all samples */

/* Returns the first sample of a list with this id; NULL: no sample has the id. */
const struct gt_sample_mark *gt_used_find(const struct gt_sample_list *l, uint64_t id);
/* Returns whether a sample with this content was trained on; false for content 0 (unknown). */
bool gt_used_trained(const struct gt_used_samples *u, uint64_t content);

/* Returns whether a sample of the split valid or test may be evaluated: the run has used it in this split, or has not trained on its
 * content. */
bool gt_used_measures(const struct gt_used_samples *u, enum gt_split split, const struct gt_sample_mark *m);

/* Returns the split that data.valid chose for a sample: 1: valid; 0: train; -1: the sample is new to the run. */
int gt_used_part(const struct gt_used_samples *u, const struct gt_sample_mark *m);

struct gt_data_changes {
	int64_t samples;                 /* of the lists */
	int64_t added, missing, changed; /* changed: same id, but other content or label */
};
/* Adds the differences between the samples of lists and n samples of the data to *out. */
enum gt_code gt_used_compare(const struct gt_sample_list *const *list, int nlists, const struct gt_sample_mark *mark, int64_t n,
                             struct gt_data_changes *out, struct gt_err *err);

#endif
