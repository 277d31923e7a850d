/* Weights of other float types than the one they are kept in. */
#ifndef GT_STORE_CONVERT_H
#define GT_STORE_CONVERT_H

#include "base/types.h"

/* Is t f16, bf16 or f64, whose values gt_convert_f32 takes? */
bool gt_converts_f32(enum gt_dtype t);

/* n values as f32: f16 and bf16 exactly; f64 to the nearest, beyond f32's range infinity. */
void gt_convert_f32(float *to, const void *from, enum gt_dtype t, int64_t n);

#endif
