/* Opens a checkpoint for evaluation or prediction. */
#ifndef GT_USE_INFERENCE_H
#define GT_USE_INFERENCE_H

#include "conf/conf.h"
#include "store/ckpt.h"

/* Opens a step directory or, for a run directory, its best checkpoint (the newest if none is marked as the best), and loads its config with
 * `sets` applied. A damaged best checkpoint is an error. The caller closes both. */
enum gt_code gt_inference_open(const char *path, const char *const *sets, int nsets, struct gt_ckpt **ckpt, struct gt_conf **conf,
                               struct gt_err *err);

#endif
