/* Row reductions in fixed order, for softmax and the losses: instantiated by #include "cpu/lanes.inc" in a typed file. Two shapes:
 * - up to BLOCK_COLS columns (classes of the usual data sets): BLOCK_ROWS rows side by side, one in each vector lane. No tail, no
 *   horizontal sum; a row's result does not depend on its neighbours;
 * - more: one row after the other in pieces of PIECE elements, LANES partial sums, added in one fixed tree. */
#ifndef GT_KERNELS_CPU_LANES_H
#define GT_KERNELS_CPU_LANES_H

#include "cpu/loops.h"
#include "ew.h"

#define LANES 16
#define PIECE 512
#define BLOCK_ROWS 16
#define BLOCK_COLS 64
#define GT_LANE static inline __attribute__((always_inline))

#endif
