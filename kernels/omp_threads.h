/* The environment variable OMP_NUM_THREADS, which the CPU backend uses if the config sets no number of threads. */
#ifndef GT_KERNELS_OMP_THREADS_H
#define GT_KERNELS_OMP_THREADS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GT_MAX_THREADS 4096 /* maximum number of CPU threads of a rank; the key `threads` of a config has the same limit */

/* Returns the number of threads in a value of OMP_NUM_THREADS. Of a list ("4,2"), the first number is used. 0: the variable is not set
 * (NULL), or is ignored because the number is not from 1 to GT_MAX_THREADS. */
static inline int gt_omp_threads(const char *value)
{
	char *end;
	errno = 0;
	long n = value ? strtol(value, &end, 10) : 0;
	if (n < 1 || n > GT_MAX_THREADS || errno || (*end && !strchr(", \t", *end)))
		return 0;
	return (int)n;
}

#endif
