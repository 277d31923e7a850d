#include "store/convert.h"
#include "ew.h"
#include <string.h>

bool gt_converts_f32(enum gt_dtype t)
{
	return t == GT_F16 || t == GT_BF16 || t == GT_F64;
}

void gt_convert_f32(float *to, const void *from, enum gt_dtype t, int64_t n)
{
	if (t == GT_F32) {
		memcpy(to, from, (size_t)n * sizeof *to);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		if (t == GT_F64)
			to[i] = (float)((const double *)from)[i];
		else
			to[i] = t == GT_F16 ? gt_f16_to_f32(((const uint16_t *)from)[i]) : gt_bf16_to_f32(((const uint16_t *)from)[i]);
}
