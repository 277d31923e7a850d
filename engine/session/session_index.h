/* The indices of a session's data (data_index.h): which settings its content depends on, and when a session may use it. */
#ifndef GT_SESSION_SESSION_INDEX_H
#define GT_SESSION_SESSION_INDEX_H

#include "data_index.h"
#include "index_file.h"
#include "session/session_data.h"

/* Returns whether a split of the session may have an index. ds->fitted: the facts of the samples; NULL for the training split. The caller
 * closes *x in any case. */
bool gt_session_index_find(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, enum gt_split split,
                           struct gt_data_index *x);

/* Sets out->set[GT_TRAIN], out->learned and the division of the samples from the index. Returns false, and changes nothing, if there is no
 * usable index or if the session must read the data: if the facts or the samples of its checkpoint differ from those of the index. */
bool gt_session_index_load(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                           struct gt_data_index *x);

/* Writes the index of the data that was read and, if this succeeds, replaces the arrays in memory by those of the index. */
void gt_session_index_save(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                           struct gt_data_index *x);

/* Reads a split from its files or, if ds->fitted has the facts of its samples, from its index. A dry session only probes it, unless it may
 * have an index. Writes gt_session_files.index_note to `note`, which has `size` bytes. */
enum gt_code gt_session_index_read(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, enum gt_split split,
                                   struct gt_dataset *out, char *note, size_t size, struct gt_err *err);

#endif
