#ifndef GT_BASE_CLOCK_H
#define GT_BASE_CLOCK_H

#include <time.h>

/* Returns seconds on the monotonic clock, for durations and deadlines. The clock is never set, and its zero is arbitrary. */
static inline double gt_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the seconds since a time of gt_clock; 0 if the clock of a faulty machine runs backwards. */
static inline double gt_clock_since(double start)
{
	double s = gt_clock() - start;
	return s > 0 ? s : 0;
}

#endif
