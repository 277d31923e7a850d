/* The training split of a format that is fitted to it (fitted.h), and its facts: from an index of the data, or from its files. */
#ifndef GT_SESSION_SESSION_LEARN_H
#define GT_SESSION_SESSION_LEARN_H

#include "session/session_data.h"

/* Takes the training split, its division and its facts from an index, or reads it from its files and writes the index. If an index is
 * possible, the arrays of the first pass are in temporary files beside it (base/spill.h). Sets ds->fitted to the facts, with which the
 * other splits are read. */
enum gt_code gt_session_learn_data(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err);

#endif
