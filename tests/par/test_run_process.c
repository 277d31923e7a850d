/* A run as a child process: no signal to it is lost, however soon after its start it arrives. The child is this program, which waits. */
#include "launch/run_process.h"
#include "base/clock.h"
#include "launch/signals.h"
#include "test.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define CHILD "GTRAIN_TEST_RUN_PROCESS" /* variable in the environment of the child */
#define WAIT_S 20.0

__attribute__((constructor)) static void wait_for_signal(void)
{
	while (getenv(CHILD))
		pause();
}

static bool await_end(struct gt_run_process *p)
{
	for (double until = gt_clock() + WAIT_S; !gt_run_process_ended(p) && gt_clock() < until;)
		usleep(1000);
	return p->ended;
}

/* The process that starts the child has handlers, as a sweep has. A child that has not executed the program yet would run them, and the
 * program would not know of the signal. */
TEST(signal_before_exec_ends_child)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	char *argv[] = {"child", NULL};
	struct gt_run_process_spec spec = {.argv = argv, .log = "/dev/null"};
	struct gt_err err;
	int lost = 0;
	gt_signals_install();
	setenv(CHILD, "1", 1);
	for (int i = 0; i < 40 && !lost; i++) {
		struct gt_run_process p;
		int sig = signals[i % 4];
		CHECK_OK(gt_run_process_start(&spec, &p, &err), err);
		usleep((useconds_t)(i / 4 * 50));
		gt_run_process_signal(&p, sig);
		lost += !await_end(&p);
		CHECK_MSG(p.ended && p.signal == sig, "signal %d after %d microseconds: ended %d, by signal %d", sig, i / 4 * 50, p.ended,
		          p.signal);
		gt_run_process_signal(&p, SIGKILL);
		CHECK(await_end(&p));
	}
	unsetenv(CHILD);
	CHECK(!gt_signals_pending());
	gt_signals_restore();
}

/* A signal that is ignored stays ignored in the child, as after nohup. Its mask is empty. */
TEST(child_inherits_ignored_signals_only)
{
	char *argv[] = {"child", NULL};
	struct gt_run_process_spec spec = {.argv = argv, .log = "/dev/null"};
	struct gt_run_process p;
	struct gt_err err;
	sigset_t some, now;
	signal(SIGHUP, SIG_IGN);
	gt_signals_install();
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_BLOCK, &some, NULL);
	setenv(CHILD, "1", 1);
	CHECK_OK(gt_run_process_start(&spec, &p, &err), err);
	sigprocmask(SIG_BLOCK, NULL, &now);
	CHECK(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGTERM)); /* the mask of this process is as before */
	gt_run_process_signal(&p, SIGHUP);
	usleep(200000);
	CHECK(!gt_run_process_ended(&p));
	gt_run_process_signal(&p, SIGUSR1);
	CHECK(await_end(&p) && p.signal == SIGUSR1);
	unsetenv(CHILD);
	sigprocmask(SIG_UNBLOCK, &some, NULL);
	gt_signals_restore();
	signal(SIGHUP, SIG_DFL);
}

RUN_TESTS()
