/* Loops that are compiled for each size of vectors: GT_CLONES cannot do this, because all clones have vectors of one type, and gcc 12 keeps
 * vectors that are wider than the registers of a clone in memory (attention's loops with vectors of 64 bytes needed 50 times as long in the
 * clone for AVX2 as in that for AVX-512). A file of loops declares its functions as GT_SIZED(N(name), VECTOR), and its kernel writes:
 *
 *     #define GT_SIZED_LOOPS "cpu/attention.inc"
 *     #include "cpu/sized.inc"
 *     struct loops { gt_range_fn *forward[GT_T_COUNT], *backward[GT_T_COUNT]; };
 *     #define LOOPS(bytes) { GT_SIZED_TYPES(attention_forward, bytes), GT_SIZED_TYPES(attention_backward, bytes) }
 *     GT_SIZED_CHOOSE(loops, LOOPS)                    const struct loops *choose_loops(void) */
#ifndef GT_CPU_SIZED_H
#define GT_CPU_SIZED_H

#include "clones.h"

#define GT_SIZED(name, bytes) GT_SIZED_JOIN(name, bytes)
#define GT_SIZED_JOIN(name, bytes) name##_##bytes

/* The functions of one name and size, by type (loops.h). */
#define GT_SIZED_TYPES(name, bytes)                                                                                                        \
	{                                                                                                                                      \
		GT_SIZED(name##_f32, bytes), GT_SIZED(name##_bf16, bytes), GT_SIZED(name##_f64, bytes)                                             \
	}

/* Defines choose_`name`, which returns the functions with the largest vectors of this processor. table(bytes): the value of a struct `name`
 * for one size. */
#if defined(__x86_64__)
#define GT_SIZED_CHOOSE(name, table)                                                                                                       \
	static const struct name *choose_##name(void)                                                                                          \
	{                                                                                                                                      \
		static const struct name any = table(16), avx2 = table(32), avx512 = table(64);                                                    \
		return GT_CPU_AVX512 ? &avx512 : GT_CPU_AVX2 ? &avx2 : &any;                                                                       \
	}
#else
#define GT_SIZED_CHOOSE(name, table)                                                                                                       \
	static const struct name *choose_##name(void)                                                                                          \
	{                                                                                                                                      \
		static const struct name any = table(16);                                                                                          \
		return &any;                                                                                                                       \
	}
#endif

#endif
