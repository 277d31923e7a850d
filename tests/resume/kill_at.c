/* Preloaded into gtrain by the tests of resuming: at the moment the metrics line of step $KILL_AT has been written the process gets the
 * signal $KILL_SIGNAL, SIGKILL unless given, so that nothing of what follows (checkpoint, evaluation, clean-up) happens. 0: it waits 1.2 s
 * instead. $KILL_ONCE: a file that the first kill makes; where it is there, nothing happens. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
		usleep(1200000);
	return r;
}
