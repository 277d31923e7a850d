/* GT_CLONES before a function compiles it for several instruction sets; the loader of the program selects one at the start. With
 * GT_NO_CLONES, code is compiled only for the compiler's -march, to compare instruction sets. */
#ifndef GT_KERNELS_CLONES_H
#define GT_KERNELS_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(GT_NO_CLONES)
#define GT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GT_CLONES
#endif

#endif
