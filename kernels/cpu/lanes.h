/* Row reductions in fixed order, for softmax and the losses: instantiated by #include "cpu/lanes.inc" in a typed file. */
#ifndef GT_KERNELS_CPU_LANES_H
#define GT_KERNELS_CPU_LANES_H

#include "cpu/loops.h"
#include "ew.h"

#define LANES 16
#define GT_LANE static inline __attribute__((always_inline))

#endif
