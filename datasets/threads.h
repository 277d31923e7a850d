/* Processes the elements of an array in several threads.
 *
 *     int threads = gt_threads_for(n, 16, 32);
 *     gt_threads_run(threads, n, 16, check_file, &work);            check_file(&work, 0 ... threads - 1, 0 ... n - 1)
 */
#ifndef GT_DATASETS_THREADS_H
#define GT_DATASETS_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#define GT_THREADS_MAX 32
/* Returns the number of threads for n elements if a thread takes `chunk` elements at a time: at most `most`, and at most one per core. */
int gt_threads_for(int64_t n, int64_t chunk, int most);
/* Calls fn for every element, also if not all threads can be started. Stops early if a call returns false. */
void gt_threads_run(int threads, int64_t n, int64_t chunk, bool (*fn)(void *user, int thread, int64_t i), void *user);

#endif
