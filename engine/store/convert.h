/* Converts weights of other float dtypes to f32, the dtype in which they are kept. */
#ifndef GT_STORE_CONVERT_H
#define GT_STORE_CONVERT_H

#include "base/types.h"

/* Returns whether gt_convert_f32 accepts values of dtype t: it accepts f16, bf16 and f64. */
bool gt_converts_f32(enum gt_dtype t);

/* Converts n values to f32. f16 and bf16 convert exactly; f64 rounds to nearest, and to infinity outside the range of f32. */
void gt_convert_f32(float *to, const void *from, enum gt_dtype t, int64_t n);

#endif
