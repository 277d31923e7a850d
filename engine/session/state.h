/* Between a session's tensors and checkpoints. */
#ifndef GT_SESSION_STATE_H
#define GT_SESSION_STATE_H

#include "session/session.h"
#include "store/ckpt.h"

/* Commits the session's state. meta is complete but for name and config, which come from the session. All ranks call it; rank 0 writes, into
 * dir, and holds one tensor at a time of what it does not have itself; the others need no dir and get no path. */
enum gt_code gt_state_save(struct gt_session *s, struct gt_ckpt_dir *dir, struct gt_ckpt_meta *meta, char *path, size_t size, struct gt_err *err);

/* Reads parameters and buffers, and with optim the optimizer's state, into the session. */
enum gt_code gt_state_load(struct gt_session *s, const struct gt_ckpt *c, bool optim, struct gt_err *err);

/* Weights from a safetensors file of the same names and shapes: nothing may be missing or left over, and every value must be finite. f16, bf16
 * and f64 values are converted to f32; *converted is their type, GT_F32 if there were none. */
enum gt_code gt_state_import(struct gt_session *s, const char *path, enum gt_dtype *converted, struct gt_err *err);

#endif
