/* Internal header of the backend `ref`. Each function prepares the f64 calls of one family of operations (opcall.h) with plain loops, which
 * are simple rather than fast. */
#ifndef GT_TESTS_REF_H
#define GT_TESTS_REF_H

#include "cpu/cpu.h"

gt_cpu_prepare gt_ref_linear, gt_ref_conv, gt_ref_pool, gt_ref_batchnorm, gt_ref_groupnorm, gt_ref_rnn;

#endif
