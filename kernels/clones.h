/* GT_CLONES before a function compiles it for several instruction sets; the dynamic loader selects one of them when the program starts.
 * These macros are true if this processor supports: GT_CPU_AVX512: AVX-512 (F, BW, DQ, VL); GT_CPU_BF16: also avx512_bf16, products of
 * bf16; GT_CPU_AVX2: AVX2 and FMA.
 *
 * With GT_NO_CLONES, compiled and hand-written code uses only the instruction set of the compiler's -march. `make check-isa` uses it to
 * test and compare instruction sets. */
#ifndef GT_KERNELS_CLONES_H
#define GT_KERNELS_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(GT_NO_CLONES)
#define GT_CPU_AVX512                                                                                                                      \
	(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&                      \
	 __builtin_cpu_supports("avx512vl"))
#define GT_CPU_BF16 (GT_CPU_AVX512 && __builtin_cpu_supports("avx512bf16"))
#define GT_CPU_AVX2 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#ifdef __AVX512VL__
#define GT_CPU_AVX512 1
#else
#define GT_CPU_AVX512 0
#endif
#ifdef __AVX512BF16__
#define GT_CPU_BF16 GT_CPU_AVX512
#else
#define GT_CPU_BF16 0
#endif
#ifdef __AVX2__
#define GT_CPU_AVX2 1
#else
#define GT_CPU_AVX2 0
#endif
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(GT_NO_CLONES)
#define GT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GT_CLONES
#endif

#endif
