/* The split of the training samples into train and valid. */
#ifndef GT_SESSION_SESSION_SPLIT_H
#define GT_SESSION_SESSION_SPLIT_H

#include "session/session_data.h"

/* Splits "valid" off the training samples as data.valid requests; without data.valid, the data may have its own split "valid". Samples are
 * divided by their indices if they have no marks, or if the run of the checkpoint divided them so. */
enum gt_code gt_session_split_train(const struct gt_conf *c, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err);

#endif
