/* Converts the layout of oneDNN's weight gradients to the layout in which its bf16 products read weights: in each block, rows 2k and 2k
 * + 1 become one row of pairs. oneDNN's own reorder needs a second buffer, and takes longer than the product of a small batch. */
#include "cpu/loops.h"
#include <string.h>

#define MOST 2048 /* maximum number of elements of a block */

struct blocks {
	float *p;
	int64_t rows, cols;
};

/* Interleaves the rows of blocks [begin, end). */
GT_CLONES static void pair_blocks(const void *ctx, int64_t begin, int64_t end)
{
	const struct blocks *b = ctx;
	int64_t rows = b->rows, cols = b->cols, n = rows * cols;
	for (int64_t i = begin; i < end; i++) {
		float copy[MOST], *restrict to = b->p + i * n;
		memcpy(copy, to, (size_t)n * sizeof *copy);
		for (int64_t r = 0; r < rows; r += 2) {
			const float *even = copy + r * cols, *odd = even + cols;
			for (int64_t c = 0; c < cols; c++) {
				to[r * cols + 2 * c] = even[c];
				to[r * cols + 2 * c + 1] = odd[c];
			}
		}
	}
}

bool gt_cpu_can_pair(int64_t rows, int64_t cols)
{
	return rows % 2 == 0 && rows * cols <= MOST;
}

void gt_cpu_pair_rows(const struct gt_dev *dev, float *p, int64_t count, int64_t rows, int64_t cols)
{
	struct blocks b = {p, rows, cols};
	int64_t n = rows * cols;
	gt_cpu_for(dev, count / n, 65536 / n + 1, 1, pair_blocks, &b);
}
