/* Assigns offsets to blocks of memory with known lifetimes, so that the memory of all blocks together is small.
 *
 *	struct gt_block b[] = {{.bytes = 4096, .first = 0, .last = 3}, {.bytes = 512, .first = 2, .last = 2}, …};
 *	GT_TRY(gt_blocks_assign(arena, b, n, &size, err));     b[i].offset; size.bytes is the memory of all blocks
 *
 *	 bytes
 *	   ^   .----.                     .----.        A block is a rectangle: its lifetime is fixed, its offset is chosen. Blocks whose
 *	   |   | C  |  .------------------|--. |        lifetimes overlap must not overlap in memory. The height of all blocks together is
 *	   |   |    |  |        B         |  | |        minimised. It cannot be less than the bytes that are live at the same time.
 *	   |   '----'  '------------------|--' |
 *	   |   .--------------------------|--. |
 *	   |   |              A           |  | |
 *	   '---+--------------------------+--+-+--> index of the node
 *
 * To find the least height is NP-hard. Placing one block after the other in a good order comes close to it (Pisarchyk & Lee, "Efficient
 * memory management for deep neural net inference", 2020). Which order is best depends on the network, so several orders are tried, and the
 * result is the same on every machine. */
#ifndef GT_PLAN_OFFSETS_H
#define GT_PLAN_OFFSETS_H

#include "base/arena.h"

#define GT_ALIGN 256 /* alignment of blocks in bytes, which every device needs for vector loads and DMA */

struct gt_block {
	size_t bytes, offset;
	int first, last; /* lifetime of the block: from node `first` to node `last`, inclusive */
};

struct gt_blocks_size {
	size_t bytes; /* memory that all blocks together take, in bytes; a multiple of GT_ALIGN */
	size_t live;  /* the lower bound: the largest number of bytes of blocks that are live at the same node, without alignment */
};

/* Assigns block[i].offset, a multiple of GT_ALIGN, to n blocks, and sets *size. The tables that it needs are allocated in arena a. */
enum gt_code gt_blocks_assign(struct gt_arena *a, struct gt_block *block, int n, struct gt_blocks_size *size, struct gt_err *err);

#endif
