/* Stores a double in element i of an array of any type; load_number.h loads it. */
#ifndef GT_TESTS_NUMBER_H
#define GT_TESTS_NUMBER_H

#include "base/types.h"
#include "load_number.h"
#include <stdlib.h>

static inline void number_put(enum gt_dtype t, void *p, int64_t i, double v)
{
	switch (t) {
	case GT_F32: ((float *)p)[i] = (float)v; return;
	case GT_F64: ((double *)p)[i] = v; return;
	case GT_BF16: ((uint16_t *)p)[i] = gt_bf16_from_f32((float)v); return;
	case GT_F16: ((uint16_t *)p)[i] = gt_f16_from_f32((float)v); return;
	case GT_I32: ((int32_t *)p)[i] = (int32_t)v; return;
	case GT_I64: ((int64_t *)p)[i] = (int64_t)v; return;
	case GT_U8: ((uint8_t *)p)[i] = (uint8_t)v; return;
	case GT_DTYPE_COUNT: break;
	}
	abort();
}

#endif
