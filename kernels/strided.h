/* Copies of a tensor with dimensions in another order, or with one dimension removed or added: permute, select and select.dx.
 *
 * Such a copy writes the output in the order of its memory. With indices i[0] ... i[3] of the output's dimensions, the slowest one in
 * memory first, it reads the input at the element first + i[0] * step[0] + ... + i[3] * step[3]. */
#ifndef GT_KERNELS_STRIDED_H
#define GT_KERNELS_STRIDED_H

#include "opcall.h"

struct gt_strided {
	int64_t dim[4], step[4]; /* sizes of the output; distances in the input, in elements. Missing dimensions have size 1 */
	int64_t first;           /* offset in the input, in elements */
	int guard;               /* dimension of the output, 0 ... 3, in which only elements at `index` are copied (others: 0); -1: none */
	int64_t index;
};

/* Sets *out for a call of permute, select or select.dx. Returns the reason why the shapes do not fit, or NULL. */
const char *gt_strided_make(const struct gt_opcall *call, struct gt_strided *out);

#endif
