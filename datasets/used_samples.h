/* The samples that a run used, as a checkpoint has them: how changed data is recognised, and how no sample that was trained on is ever
 * measured.
 *
 *     struct gt_used_samples u = {0};
 *     gt_used_add(&u.list[GT_TRAIN], &mark, 1, err); ...             or from a checkpoint (engine/store/data_facts.h)
 *     GT_TRY(gt_used_index(&u, err));
 *     gt_used_measures(&u, GT_TEST, &mark)                           may this sample be measured?
 *     gt_used_compare(lists, nlists, marks, n, &changes, err);       what was added, is missing, or has changed
 *     gt_used_free(&u);
 */
#ifndef GT_DATASETS_USED_SAMPLES_H
#define GT_DATASETS_USED_SAMPLES_H

#include "base/err.h"
#include "dataset.h"
#include "sample_mark.h"

struct gt_sample_list {
	struct gt_sample_mark *mark; /* after gt_used_index sorted by id, then by content */
	int64_t n, cap;
};

struct gt_used_samples {
	bool by_number;  /* the samples were divided by their numbers, as versions before this file did */
	bool changed;    /* the run was resumed with other samples, data.valid or seed: its split is that of the lists, and what it has learned
	                    from the data is of earlier samples */
	bool listed;     /* the lists are complete; false: there were too many samples for a checkpoint, and the lists are empty */
	struct gt_sample_list list[GT_SPLITS]; /* the samples of each split that the run read */
	struct gt_sample_list past;            /* samples that were trained on, and that the data lacked when the run was last resumed */
	uint64_t *trained, *held;              /* the contents of list[GT_TRAIN] and past, and of list[GT_VALID], sorted */
	int64_t ntrained, nheld;
};

enum gt_code gt_used_add(struct gt_sample_list *l, const struct gt_sample_mark *mark, int64_t n, struct gt_err *err);
/* Sorts the lists, after which the functions below may be called. */
enum gt_code gt_used_index(struct gt_used_samples *u, struct gt_err *err);
void gt_used_free(struct gt_used_samples *u); /* leaves no samples */

/* Returns the first sample of a list with this id; NULL: there is none. */
const struct gt_sample_mark *gt_used_find(const struct gt_sample_list *l, uint64_t id);
/* Returns whether a sample of this content was trained on; false for content 0, which is not known. */
bool gt_used_trained(const struct gt_used_samples *u, uint64_t content);

/* Returns whether a sample of the split valid or test may be measured: the run has measured it, or has not trained on its content. */
bool gt_used_measures(const struct gt_used_samples *u, enum gt_split split, const struct gt_sample_mark *m);

/* Returns in which split data.valid has put a sample: 1: valid; 0: train; -1: the run does not know the sample. */
int gt_used_part(const struct gt_used_samples *u, const struct gt_sample_mark *m);

struct gt_data_changes {
	int64_t samples;                 /* of the lists */
	int64_t added, missing, changed; /* changed: the same id with another content or label */
};
/* Adds the differences between the samples of lists and n others to *out. */
enum gt_code gt_used_compare(const struct gt_sample_list *const *list, int nlists, const struct gt_sample_mark *mark, int64_t n,
                             struct gt_data_changes *out, struct gt_err *err);

#endif
