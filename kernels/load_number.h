/* Reads element i of an array of any dtype and returns it as a double. */
#ifndef GT_KERNELS_LOAD_NUMBER_H
#define GT_KERNELS_LOAD_NUMBER_H

#include "base/types.h"
#include "ew.h"
#include <stdlib.h>

static inline double gt_load_number(enum gt_dtype t, const void *p, int64_t i)
{
	switch (t) {
	case GT_F32: return ((const float *)p)[i];
	case GT_F64: return ((const double *)p)[i];
	case GT_BF16: return gt_bf16_to_f32(((const uint16_t *)p)[i]);
	case GT_F16: return gt_f16_to_f32(((const uint16_t *)p)[i]);
	case GT_I32: return ((const int32_t *)p)[i];
	case GT_I64: return (double)((const int64_t *)p)[i];
	case GT_U8: return ((const uint8_t *)p)[i];
	case GT_DTYPE_COUNT: break;
	}
	abort();
}

#endif
