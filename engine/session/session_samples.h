/* The samples of a session beside those of a checkpoint: what has changed since its run, and which samples may be evaluated; and the list
 * of the samples that this run uses, for its own checkpoints. */
#ifndef GT_SESSION_SESSION_SAMPLES_H
#define GT_SESSION_SESSION_SAMPLES_H

#include "session/session_data.h"

/* Appends to out->changed. */
void gt_session_note_change(struct gt_session_files *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Computes the content hash of each encoded image (gt_dataset.mark) if the hashes are stored, or compared with those of a checkpoint. */
void gt_session_hash_contents(const struct gt_session_spec *spec, struct gt_session_files *out);

/* Compares the samples of a split with the samples that the checkpoint's run used for this split. Removes the samples on which the run was
 * trained from a split that is evaluated. */
enum gt_code gt_session_compare_split(const struct gt_session_spec *spec, struct gt_session_files *out, enum gt_split split,
                                      struct gt_err *err);

/* After all splits were compared: sets out->changed. */
void gt_session_describe_changes(struct gt_session_files *out);

/* Lists the samples that this run uses in out->used, for its checkpoints. */
enum gt_code gt_session_list_used(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err);

#endif
