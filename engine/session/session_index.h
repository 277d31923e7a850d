/* The index of a session's training data (data_index.h): which settings its content depends on, and when a session may use it. */
#ifndef GT_SESSION_SESSION_INDEX_H
#define GT_SESSION_SESSION_INDEX_H

#include "data_index.h"
#include "index_file.h"
#include "session/session_data.h"

/* Returns whether the training data of the session may have an index. The caller closes *x in any case. */
bool gt_session_index_find(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, const struct gt_session_files *out,
                           struct gt_data_index *x);

/* Sets out->set[GT_TRAIN], out->learned and the division of the samples from the index. Returns false, and changes nothing, if there is no
 * usable index or if the session must read the data: if the facts or the samples of its checkpoint differ from those of the index. */
bool gt_session_index_load(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                           struct gt_data_index *x);

/* Writes the index of the data that was read and, if this succeeds, replaces the arrays in memory by those of the index. */
void gt_session_index_save(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                           struct gt_data_index *x);

#endif
