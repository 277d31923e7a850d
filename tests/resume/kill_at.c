/* Preloaded into gtrain by the tests of resuming: at the moment the metrics line of step $KILL_AT has been written the process gets the
 * signal $KILL_SIGNAL, SIGKILL unless given, so that nothing of what follows (checkpoint, evaluation, clean-up) happens. 0: its clock goes
 * forward by two hours instead. $KILL_ONCE: a file that the first kill makes; where it is there, nothing happens. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static time_t forward_s; /* seconds by which the clock is ahead */

int clock_gettime(clockid_t id, struct timespec *t)
{
	static int (*real)(clockid_t, struct timespec *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int rc = real(id, t);
	if (!rc && id == CLOCK_MONOTONIC)
		t->tv_sec += __atomic_load_n(&forward_s, __ATOMIC_RELAXED);
	return rc;
}

ssize_t write(int fd, const void *data, size_t n)
{
	static ssize_t (*real)(int, const void *, size_t);
	const char *at = getenv("KILL_AT"), *with = getenv("KILL_SIGNAL"), *once = getenv("KILL_ONCE");
	char want[64];
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	ssize_t r = real(fd, data, n);
	snprintf(want, sizeof want, "{\"event\":\"train\",\"step\":%s,", at ? at : "-");
	if (!at || fd <= 2 || n < strlen(want) || memcmp(data, want, strlen(want)))
		return r;
	if (once && open(once, O_CREAT | O_EXCL, 0600) < 0)
		return r;
	int sig = with ? atoi(with) : SIGKILL;
	if (sig)
		kill(getpid(), sig);
	else
		__atomic_store_n(&forward_s, 7200, __ATOMIC_RELAXED);
	return r;
}
