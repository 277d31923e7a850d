/* Copies the state of a session to and from checkpoints: parameters, buffers and optimizer states. */
#ifndef GT_TRAIN_STATE_H
#define GT_TRAIN_STATE_H

#include "session/session.h"
#include "store/ckpt.h"
#include "store/safetensors.h"

/* Commits the session's state as a checkpoint in dir and writes its path to path (size bytes). The caller fills meta except name and
 * config, which come from the session. All ranks call it. Rank 0 writes the checkpoint; it receives tensors of other ranks one at a time,
 * so that it needs memory for only one of them. The other ranks pass dir = NULL and get no path. */
enum gt_code gt_state_save(struct gt_session *s, struct gt_ckpt_dir *dir, struct gt_ckpt_meta *meta, char *path, size_t size,
                           struct gt_err *err);

/* Checks that each parameter of the session has the same optimizer as in the checkpoint, or an optimizer with the same state (adam, adamw).
 * A parameter that is frozen from now on needs no optimizer. GT_ECONFIG: the optimizers differ; err names both. */
enum gt_code gt_state_check_optimizers(const struct gt_session *s, const struct gt_ckpt *from, struct gt_err *err);

/* Loads parameters and buffers from a checkpoint into the session and, with optim, the optimizer states. GT_ECONFIG: with optim, see
 * gt_state_check_optimizers. GT_EDATA: the data of the session
 * has other classes than the checkpoint; from then on, the class names of the checkpoint are used. */
enum gt_code gt_state_load(struct gt_session *s, const struct gt_ckpt *c, bool optim, struct gt_err *err);

/* Compares a checkpoint's size with the free space for dir, which need not exist yet. GT_EIO: no checkpoint fits. text: a warning if one
 * fits, but not all that the run will keep; else "". A resumed run gets no warning, because most of its checkpoints are already on disk. */
enum gt_code gt_state_check_space(const struct gt_session *s, const char *dir, bool resumes, char *text, size_t size, struct gt_err *err);

/* Loads weights from a safetensors file. It must contain exactly the session's tensors, by name and shape, and every value must be finite.
 * A tied weight (gt_param.tied) has the name of one of its layers, or occurs under several of these names with equal values. f16, bf16 and
 * f64 values are converted to f32; *converted is their dtype, or GT_F32 if no value was converted. */
enum gt_code gt_state_import(struct gt_session *s, const char *path, enum gt_dtype *converted, struct gt_err *err);
/* Copies one tensor t of such a file into parameter or buffer i. *converted changes only if values of this tensor are converted. The caller
 * calls gt_session_cast_weights at the end. */
enum gt_code gt_state_import_tensor(struct gt_session *s, const char *path, int i, const struct gt_st_tensor *t, enum gt_dtype *converted,
                                    struct gt_err *err);
/* Checks that two tensors of the file `path` are equal, because the model has one weight for both. GT_EDATA: they differ. */
enum gt_code gt_state_same_tensors(const char *path, const struct gt_st_tensor *a, const struct gt_st_tensor *b, struct gt_err *err);

#endif
