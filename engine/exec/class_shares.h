/* Divides a number of samples among classes. */
#ifndef GT_EXEC_CLASS_SHARES_H
#define GT_EXEC_CLASS_SHARES_H

#include <stdbool.h>
#include <stdint.h>

struct gt_class_share {
	int64_t n;     /* number of samples of the class */
	int64_t take;  /* result: number of samples to take */
	int64_t rest;  /* internal: fraction of a sample that rounding down has cut off, in units of 1 / (number of all samples) */
	int64_t class; /* index of the class */
};

/* Sets s[classes].take so that `count` of the n samples are taken, from every class in proportion to its samples: rounded down; the samples
 * that are then missing are taken from the classes with the largest remainders, if equal from the lowest class index (scikit-learn's
 * StratifiedShuffleSplit does the same, but draws among equal remainders). at_least_one: a class whose part is from a half to one sample
 * gives one. The sum of s[].n must be n. */
void gt_class_shares(struct gt_class_share *s, int64_t classes, int64_t n, int64_t count, bool at_least_one);

#endif
