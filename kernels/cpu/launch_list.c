/* Runs a list of launches in one team of threads. Small kernels take a few microseconds. If OpenMP started and ended a team for each of
 * them, this would take a tenth of a small network's step. Here the threads of one parallel region process the list together: every thread
 * does its part of a kernel with parts, the first thread runs small kernels alone, and a barrier precedes a kernel that reads the results
 * of earlier kernels.
 *
 * A thread that waits spins for some microseconds, as long as a kernel takes, and then sleeps (futex), because on a shared machine the
 * thread for which it waits may not be running. If that happens often, one thread processes the list alone (team_choice.h). */
#include "cpu/cpu.h"
#include "base/clock.h"
#include "cpu/cpu_pause.h"
#include "cpu/team_choice.h"
#include <linux/futex.h>
#include <omp.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS 1000 /* number of turns of a spin, about 15 us */

struct meeting {
	_Alignas(64) _Atomic uint32_t round;
	bool go[2]; /* result of even and odd rounds of the barrier, written by the last thread to arrive; no thread is two rounds late */
	_Alignas(64) atomic_int arrived;
	atomic_int asleep;
	bool failed; /* true: a kernel has failed; only the first thread sets this */
};

/* A barrier: returns when all threads have called it. Returns false if a kernel of the first thread had failed by then. */
static bool wait_barrier(struct meeting *m, int threads)
{
	uint32_t round = atomic_load_explicit(&m->round, memory_order_relaxed);
	if (atomic_fetch_add(&m->arrived, 1) + 1 == threads) {
		m->go[round & 1] = !m->failed;
		atomic_store_explicit(&m->arrived, 0, memory_order_relaxed);
		atomic_store(&m->round, round + 1);
		if (atomic_load(&m->asleep))
			syscall(SYS_futex, &m->round, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
		return m->go[round & 1];
	}
	for (int i = 0; i < SPINS; i++) {
		if (atomic_load_explicit(&m->round, memory_order_acquire) != round)
			return m->go[round & 1];
		gt_cpu_pause();
	}
	atomic_fetch_add(&m->asleep, 1);
	while (atomic_load(&m->round) == round)
		syscall(SYS_futex, &m->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
	atomic_fetch_sub(&m->asleep, 1);
	return m->go[round & 1];
}

static bool can_join_region(const struct gt_kernel *k)
{
	return k->part || k->small;
}

/* Executes the list with one thread; only oneDNN's kernels still use all threads for which they were made. */
static enum gt_code launch_alone(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err)
{
	for (int i = 0; i < n; i++)
		GT_TRY(k[i]->launch(dev, k[i], &args[i], err));
	return GT_OK;
}

/* Executes a list of kernels that all have `part` or `small`, with all threads. */
static enum gt_code launch_in_team(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err)
{
	struct meeting m = {.round = 0};
	enum gt_code code = GT_OK; /* only the first thread writes code */
#pragma omp parallel num_threads(gt_cpu_threads(dev))
	{
		int me = omp_get_thread_num(), threads = omp_get_num_threads();
		for (int i = 0; i < n; i++) {
			if (k[i]->part) {
				k[i]->part(dev, k[i], &args[i], me, threads);
			} else if (me == 0 && code == GT_OK) {
				code = k[i]->launch(dev, k[i], &args[i], err);
				m.failed = code != GT_OK;
			}
			/* between two small kernels the first thread needs no barrier; the end of the region is a barrier */
			if (i + 1 < n && (k[i]->part || k[i + 1]->part) && !wait_barrier(&m, threads))
				break;
		}
	}
	return code;
}

/* Executes the list with all threads: one parallel region for each sequence of kernels with `part` or `small`. */
static enum gt_code launch_in_regions(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args,
                                      struct gt_err *err)
{
	for (int i = 0; i < n;) {
		int end = i;
		while (end < n && can_join_region(k[end]))
			end++;
		if (end - i > 1) {
			GT_TRY(launch_in_team(dev, end - i, k + i, args + i, err));
			i = end;
		} else {
			GT_TRY(k[i]->launch(dev, k[i], &args[i], err));
			i++;
		}
	}
	return GT_OK;
}

enum gt_code gt_cpu_launch_list(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err)
{
	struct gt_team_choice *c = &k[0]->choice;
	if (gt_cpu_threads(dev) == 1)
		return launch_alone(dev, n, k, args, err);
	double begin = gt_clock();
	gt_cpu_set_alone(dev, c->one);
	enum gt_code code = (c->one ? launch_alone : launch_in_regions)(dev, n, k, args, err);
	gt_cpu_set_alone(dev, false);
	gt_team_choice_record(c, gt_clock() - begin);
	return code;
}
