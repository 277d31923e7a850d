/* Row reductions in a fixed order, for softmax and the losses. A typed file instantiates them with #include "cpu/lanes.inc". There are two
 * cases:
 * - Up to BLOCK_COLS columns (the number of classes of common datasets): BLOCK_ROWS rows are processed together, one row in each vector
 *   lane. There is no tail and no horizontal sum; the result of a row does not depend on the other rows.
 * - More columns: one row after the other, in pieces of PIECE elements with LANES partial sums, which are added in one fixed tree. */
#ifndef GT_KERNELS_CPU_LANES_H
#define GT_KERNELS_CPU_LANES_H

#include "cpu/loops.h"
#include "ew.h"

#define LANES 16
#define PIECE 512
#define ROW 4096 /* exponentials of a row of at most this many elements are kept on the stack; those of longer rows are computed twice */
#define BLOCK_ROWS 16
#define BLOCK_COLS 64
#define GT_LANE static inline __attribute__((always_inline))

#endif
