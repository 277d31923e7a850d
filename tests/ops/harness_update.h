/* An optimizer's case of the op table ("update:sgd lr=0.1 momentum=0.9"): the attributes of its update operation. */
#ifndef GT_TESTS_HARNESS_UPDATE_H
#define GT_TESTS_HARNESS_UPDATE_H

#include "harness_table.h"
#include "optimizer.h"

/* The row of "update:WORD", where WORD is a value of train.optimizer.type. NULL: there is no such optimizer. */
const struct gt_optimizer_row *update_optimizer(const struct opcase *c);

/* Sets the attributes that are keys of an optimizer, from the case or by their defaults; the segments are the caller's. */
void update_keys(const struct opcase *c, const struct gt_optimizer_row *row, struct gt_attr_update *attr);

#endif
