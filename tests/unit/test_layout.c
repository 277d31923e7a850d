/* Packing to a layout and back (gt_tdesc_pack, gt_tdesc_unpack) against the offset of each element, gt_tdesc_offset. */
#include "base/types.h"
#include "test.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Packs 1, 2, … and compares each element, the padding, and the unpacked values. */
static void compare(struct gt_tdesc d)
{
	size_t n = (size_t)gt_tdesc_count(&d), padded = (size_t)gt_tdesc_padded(&d), zeros = 0, wrong = 0;
	uint16_t *half = calloc(n + 2 * padded, sizeof *half), *got = half + n;
	float *plain = calloc(2 * n + padded, sizeof *plain), *back = plain + n, *packed = back + n;
	int64_t idx[GT_MAX_RANK] = {0};
	d.dtype = GT_F32;
	for (size_t i = 0; i < n; i++)
		half[i] = (uint16_t)(plain[i] = (float)(i % 65535 + 1));
	for (size_t i = 0; i < padded; i++)
		packed[i] = -1, got[i] = 77;
	gt_tdesc_pack(&d, plain, packed);
	gt_tdesc_unpack(&d, packed, back);
	d.dtype = GT_BF16;
	gt_tdesc_pack(&d, half, got);
	for (size_t i = 0; i < n; i++) {
		size_t at = (size_t)gt_tdesc_offset(&d, idx);
		wrong += packed[at] != plain[i] || got[at] != half[i];
		for (int k = d.rank - 1; k >= 0 && ++idx[k] == d.dim[k]; k--)
			idx[k] = 0;
	}
	for (size_t i = 0; i < padded; i++)
		zeros += packed[i] == 0 && got[i] == 0;
	CHECK_MSG(!wrong, "%zu of %zu elements are at a wrong offset", wrong, n);
	CHECK(zeros == padded - n);
	CHECK(!memcmp(plain, back, n * sizeof *plain));
	free(half);
	free(plain);
}

TEST(packs_as_offsets)
{
	compare((struct gt_tdesc){.rank = 2, .dim = {3, 5}, .layout = {.order = {0, 1}}});
	compare((struct gt_tdesc){.rank = 2, .dim = {3, 5}, .layout = {.order = {1, 0}}});
	compare((struct gt_tdesc){.rank = 4, .dim = {4, 3, 5, 2}, .layout = {.order = {0, 2, 3, 1}}});
	compare((struct gt_tdesc){
	    .rank = 4, .dim = {33, 7, 3, 3}, .layout = {.order = {0, 1, 2, 3}, .nblk = 2, .blk_dim = {1, 0}, .blk = {4, 16}}});
	compare((struct gt_tdesc){
	    .rank = 2, .dim = {20, 35}, .layout = {.order = {1, 0}, .nblk = 3, .blk_dim = {1, 0, 1}, .blk = {8, 16, 2}}});
}

/* More indices than the table of offsets has. */
TEST(packs_long_dimensions)
{
	compare((struct gt_tdesc){.rank = 2, .dim = {5000, 3}, .layout = {.order = {1, 0}}});
	compare((struct gt_tdesc){.rank = 2, .dim = {3, 5000}, .layout = {.order = {0, 1}, .nblk = 1, .blk_dim = {1}, .blk = {16}}});
}

RUN_TESTS()
