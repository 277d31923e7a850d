/* Preloaded into gtrain by test_staged.sh: in processes whose number leaves the remainder 1 when it is divided by three, monotonic time
 * goes by 8 times as fast, in those that leave 2, 64 times. */
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);
	static struct timespec first;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int rc = real(id, t), r = getpid() % 3;
	if (rc || id != CLOCK_MONOTONIC || !r)
		return rc;
	if (!first.tv_sec)
		first = *t;
	long long ns = (t->tv_sec - first.tv_sec) * 1000000000LL + t->tv_nsec - first.tv_nsec;
	ns = ns * (r == 1 ? 8 : 64) + first.tv_nsec;
	t->tv_sec = first.tv_sec + ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
	return 0;
}
