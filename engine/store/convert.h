/* Converts the float dtypes f16, bf16 and f64 to f32: for weights, which gtrain keeps in f32, and for the outputs of a model. */
#ifndef GT_STORE_CONVERT_H
#define GT_STORE_CONVERT_H

#include "base/types.h"

/* Returns whether t is a float dtype other than f32: f16, bf16 or f64. */
bool gt_converts_f32(enum gt_dtype t);

/* Converts n values of a float dtype to f32. f16 and bf16 convert exactly; f64 rounds to nearest, and to infinity outside the range of
 * f32. */
void gt_convert_f32(float *to, const void *from, enum gt_dtype t, int64_t n);

#endif
