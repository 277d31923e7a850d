/* Preloaded into gtrain by test_resume_exact.sh: SIGKILL at the moment the metrics line of step $KILL_AT has been written, so that
 * nothing of what follows (checkpoint, evaluation, clean-up) happens. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t writev(int fd, const struct iovec *v, int n)
{
	static ssize_t (*real)(int, const struct iovec *, int);
	const char *at = getenv("KILL_AT");
	char want[64];
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "writev");
	ssize_t r = real(fd, v, n);
	snprintf(want, sizeof want, "{\"event\":\"train\",\"step\":%s,", at ? at : "-");
	if (at && n > 0 && v[0].iov_len >= strlen(want) && !memcmp(v[0].iov_base, want, strlen(want)))
		kill(getpid(), SIGKILL);
	return r;
}
