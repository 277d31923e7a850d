/* Conversions of rows of consecutive elements between f32 and bf16, on the calling thread. x and y do not overlap. */
#ifndef GT_CPU_BF16_ROWS_H
#define GT_CPU_BF16_ROWS_H

#include <stdint.h>

void gt_bf16_widen_row(float *y, const uint16_t *x, int64_t n);
/* Rounds to nearest even, with the bits of gt_bf16_from_f32 on every processor. */
void gt_bf16_narrow_row(uint16_t *y, const float *x, int64_t n);

#endif
