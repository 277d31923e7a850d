/* The variable OMP_NUM_THREADS, which the CPU backend follows where the config has no number of threads. */
#ifndef GT_KERNELS_OMP_THREADS_H
#define GT_KERNELS_OMP_THREADS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GT_MAX_THREADS 4096 /* maximum number of CPU threads of a rank; the key `threads` of a config has the same limit */

/* Returns the number of threads in a value of OMP_NUM_THREADS, which may be a list ("4,2"), of which the first number counts. 0: the
 * variable is not set (NULL), or it has no number from 1 to GT_MAX_THREADS, and is not followed. */
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
