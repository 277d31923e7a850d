/* Launch and supervision, with real processes: tests/par/tool_launch does what each test scripts. After every run no process of it may
 * be left (they carry a mark in their environment), no descriptor and no child in the launcher. */
#include "base/clock.h"
#include "launch/launcher_parts.h"
#include "test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S 60 /* until a run counts as hung: far above what a loaded machine needs */

static double took[512]; /* seconds from a fault to the launcher's end */
static int ntook, nruns;

struct run {
	pid_t pid;
	int out;
	char mark[64];
	char text[1 << 17];
	size_t n;
	int status;
	int code, rank, signal, restarts, fds[2], children;
	long long step;
	double end_s, fault_s;
	const char *why;
};

static struct run r;

static void start(const char *args)
{
	char tool[512], *argv[40], *copy = strdup(args);
	int n = 0, fds[2];
	r = (struct run){.code = -1};
	snprintf(r.mark, sizeof r.mark, "GTRAIN_TEST_MARK=%d.%d", (int)getpid(), nruns++);
	snprintf(tool, sizeof tool, "%s/tests/par/tool_launch", getenv("GTRAIN_BUILD") ? getenv("GTRAIN_BUILD") : "build");
	argv[n++] = tool;
	for (char *w = strtok(copy, " "); w && n < 39; w = strtok(NULL, " "))
		argv[n++] = w;
	argv[n] = NULL;
	CHECK(!pipe2(fds, O_CLOEXEC));
	if (!(r.pid = fork())) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		putenv(r.mark);
		unsetenv("OMP_NUM_THREADS");
		execv(tool, argv);
		_exit(127);
	}
	close(fds[1]);
	r.out = fds[0];
	free(copy);
}

/* Reads until `text` was printed `times` times, or to the end if NULL. */
static bool read_until(const char *text, int times)
{
	for (double until = gt_clock() + LIMIT_S; gt_clock() < until;) {
		int seen = 0;
		for (const char *p = r.text; text && (p = strstr(p, text)); p++)
			seen++;
		if (text && seen >= times)
			return true;
		struct pollfd p = {.fd = r.out, .events = POLLIN};
		if (poll(&p, 1, 100) <= 0)
			continue;
		ssize_t n = read(r.out, r.text + r.n, sizeof r.text - 1 - r.n);
		if (n <= 0)
			return !text;
		r.n += (size_t)n;
	}
	return false;
}

/* Processes that carry the mark; kills them if asked to. */
static int marked(bool end_them)
{
	int n = 0;
	char path[300], env[65536];
	DIR *d = opendir("/proc");
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/environ", e->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = fd >= 0 ? read(fd, env, sizeof env) : -1;
		if (fd >= 0)
			close(fd);
		if (got > 0 && memmem(env, (size_t)got, r.mark, strlen(r.mark) + 1)) {
			n++;
			if (end_them)
				kill(atoi(e->d_name), SIGKILL);
		}
	}
	if (d)
		closedir(d);
	return n;
}

static void finish(void)
{
	double done;
	bool ended = read_until(NULL, 0);
	CHECK_MSG(ended, "the run hangs: %s", r.text);
	if (!ended)
		marked(true);
	waitpid(r.pid, &r.status, 0);
	done = gt_clock();
	close(r.out);
	int left = marked(true);
	CHECK_MSG(!left, "%d processes left", left);
	const char *end = strstr(r.text, "end code="), *f = strstr(r.text, "fault ");
	if (end && sscanf(end, "end code=%d rank=%d signal=%d step=%lld restarts=%d fds=%d,%d children=%d end_s=%lf", &r.code, &r.rank,
	                  &r.signal, &r.step, &r.restarts, &r.fds[0], &r.fds[1], &r.children, &r.end_s) == 9) {
		CHECK_MSG(r.fds[0] == r.fds[1], "descriptors: %d before, %d after", r.fds[0], r.fds[1]);
		CHECK_MSG(!r.children, "the launcher has a child left");
		CHECK_MSG(WIFEXITED(r.status) && WEXITSTATUS(r.status) == r.code, "code %d, status %x", r.code, (unsigned)r.status);
	}
	r.why = strstr(r.text, "\nwhy ") ? strstr(r.text, "\nwhy ") + 5 : "";
	if (f)
		r.fault_s = done - atof(f + 6);
}

static void run(const char *fmt, ...)
{
	char args[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(args, sizeof args, fmt, ap);
	va_end(ap);
	start(args);
	finish();
}

#define EXPECT(want_code, want_rank, words)                                                                                       \
	CHECK_MSG(r.code == (want_code) && r.rank == (want_rank) && strstr(r.why, words), "expected code %d, rank %d, \"%s\"; got %s", \
	          (want_code), (want_rank), words, r.text)

static const int worlds[] = {1, 2, 4, 8};
#define EACH_WORLD(n) for (int wi_ = 0, n = 1; wi_ < 4 && (n = worlds[wi_], true); wi_++)

TEST(all_end_well)
{
	EACH_WORLD(n)
	{
		run("-n %d -t 20", n);
		EXPECT(0, -1, "");
		int ready = 0;
		for (const char *p = r.text; (p = strstr(p, "ready ")); p++)
			ready++;
		CHECK_MSG(ready == n, "%d of %d ranks", ready, n);
	}
}

/* What goes wrong in one rank while the others run: code, and the sentence. */
static const struct {
	const char *what;
	int code, signal;
	const char *why;
} faults[] = {
	{"exit=7", 7, 0, "ended with exit code 7 (unknown error) at step 3"},
	{"exit=78", 78, 0, "ended with exit code 78 (configuration error) at step 3"},
	{"segv", 139, SIGSEGV, "was killed by signal 11 (Segmentation fault) at step 3"},
	{"kill", 137, SIGKILL, "was killed by signal 9 (Killed) at step 3"},
	{"words=images.gz-is-cut", 65, 0, ": images.gz-is-cut\n"},
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

TEST(one_fails)
{
	EACH_WORLD(n)
		for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
			for (int rank = 0; rank < n; rank += n > 1 ? n - 1 : 1) {
				run("-n %d -t 20 -s 100000 %d:%s", n, rank, faults[i].what);
				EXPECT(faults[i].code, rank, faults[i].why);
				CHECK_MSG(r.signal == faults[i].signal && r.step == 3, "%s", r.text);
				took[ntook++] = r.fault_s;
			}
	qsort(took, (size_t)ntook, sizeof *took, by_value);
	printf("# rank dies: %d injections, from the fault to the launcher's end: median %.3f s, max %.3f s\n", ntook, took[ntook / 2],
	       took[ntook - 1]);
	CHECK_MSG(took[ntook / 2] < 2, "median %.3f s", took[ntook / 2]); /* the goal; the maximum is the machine's load too */
}

TEST(peers_notice_first)
{
	run("-n 4 -s 100000 *:sync 0:lost 3:lost 1:late");
	EXPECT(137, 1, "rank 1 was killed by signal 9");
	run("-n 4 -s 100000 2:lost"); /* nobody else is to blame */
	EXPECT(75, 2, "rank 2: rank 1 has gone");
	run("-n 4 -s 100000 *:sync 1:stop 2:phase=0.1 2:lost");
	EXPECT(75, 1, "rank 1 is stopped (a SIGSTOP, or a debugger), and other ranks lost their connection to it, at step 3");
}

/* Timeout 1 s, against steps of 2 ms: a rank that only waits for the processor is not taken for one that hangs. */
TEST(no_progress)
{
	double worst = 0;
	for (int n = 1; n <= 4; n *= 2) {
		run("-n %d -t 1 -s 100000 %d:stop", n, n - 1);
		EXPECT(75, n - 1, "is stopped (a SIGSTOP, or a debugger) and made no progress for 1");
		worst = r.fault_s > worst ? r.fault_s : worst;
		run("-n %d -t 1 -s 100000 %d:hang", n, n - 1);
		EXPECT(75, n - 1, "made no progress for 1");
		CHECK(strstr(r.why, "at step 3 (evaluating)"));
		worst = r.fault_s > worst ? r.fault_s : worst;
	}
	printf("# rank stopped or hanging, timeout 1 s: at most %.3f s from the fault to the launcher's end\n", worst);
	run("-n 4 -t 1 -s 100000 0:wait 1:wait 2:hang 3:wait"); /* who waits is not to blame */
	EXPECT(75, 2, "rank 2 made no progress");
	run("-n 2 -t 1 -s 100000 0:wait 1:wait"); /* unless all do */
	CHECK_MSG(r.code == 75 && strstr(r.why, "made no progress"), "%s", r.text);
	run("-n 2 -t 0.5 1:phase=1.2"); /* it said that this takes longer */
	EXPECT(0, -1, "");
	run("-n 2 -t 1 -s 100000 1:phase=0 1:stop"); /* which is no excuse for one that is stopped */
	EXPECT(75, 1, "is stopped (a SIGSTOP, or a debugger) and made no progress for 1");
	CHECK(strstr(r.why, "at step 3 (saving a checkpoint)"));
}

TEST(deaf_to_sigterm)
{
	run("-n 4 -g 0.3 -s 100000 0:noterm 2:noterm *:sync 3:exit=5");
	EXPECT(5, 3, "ended with exit code 5");
	CHECK_MSG(r.end_s >= 0.3 && r.end_s < 5, "%.3f s", r.end_s); /* no sooner than the grace */
	run("-n 2 -g 0.3 -s 100000 0:noterm *:sync 1:kill");
	EXPECT(137, 1, "rank 1 was killed");
}

TEST(ranks_leave_children)
{
	run("-n 3 *:child"); /* finish() looks for them */
	EXPECT(0, -1, "");
	run("-n 3 *:child=1");
	EXPECT(0, -1, "");
	run("-n 3 -s 100000 *:child *:child=1 *:sync 1:kill");
	EXPECT(137, 1, "rank 1 was killed");
}

TEST(launcher_killed)
{
	for (int i = 0; i < 3; i++) {
		start(i == 0 ? "-n 4 -s 100000" : i == 1 ? "-n 4 -s 100000 *:noterm" : "-n 4 -s 100000 1:stop 0:noterm");
		CHECK(read_until(i == 0 ? "ready" : i == 1 ? "deaf" : "fault", i == 2 ? 1 : 4));
		double at = gt_clock();
		kill(r.pid, SIGKILL);
		CHECK(waitpid(r.pid, &r.status, 0) == r.pid && WIFSIGNALED(r.status));
		while (marked(false) && gt_clock() < at + 10)
			usleep(2000);
		CHECK_MSG(!marked(true), "ranks outlive their launcher");
		printf("# launcher killed: ranks gone after %.3f s\n", gt_clock() - at);
		close(r.out);
	}
}

TEST(user_stops)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGUSR1};
	for (int i = 0; i < 3; i++) { /* passed on: the ranks end in order */
		start("-n 4 -r 3 -s 100000 *:orderly");
		CHECK(read_until("tidy", 4));
		kill(r.pid, sigs[i]);
		finish();
		EXPECT(128 + sigs[i], -1, "ended by signal");
	}
	start("-n 4 -s 100000"); /* without a handler they end by the signal itself */
	CHECK(read_until("ready", 4));
	kill(r.pid, SIGTERM);
	finish();
	EXPECT(143, -1, "ended by signal 15");
	start("-n 4 -s 100000 *:noterm"); /* twice: at once */
	CHECK(read_until("deaf", 4));
	kill(r.pid, SIGINT);
	usleep(300000);
	CHECK_MSG(marked(false) == 5, "one Ctrl-C must not kill a rank: %d left", marked(false));
	double at = gt_clock();
	kill(r.pid, SIGINT);
	finish();
	EXPECT(130, -1, "ended by signal 2");
	printf("# second Ctrl-C: gone after %.3f s\n", gt_clock() - at);
	start("-n 2 -s 100000 *:noterm"); /* a second SIGTERM waits like the first: a checkpoint may be on its way */
	CHECK(read_until("deaf", 2));
	kill(r.pid, SIGTERM);
	usleep(100000);
	kill(r.pid, SIGTERM);
	usleep(300000);
	CHECK(marked(false) == 3);
	kill(r.pid, SIGINT);
	usleep(100000);
	kill(r.pid, SIGINT);
	finish();
	EXPECT(143, -1, "ended by signal 15");
}

/* A signal that ends one rank before its first step ends the others, which would wait for it in the rendezvous. */
TEST(user_stops_before_the_first_step)
{
	start("-n 2 -g 0.5 -s 100000 -a 0 1:noterm *:hang");
	CHECK(read_until("deaf", 1) && read_until("fault", 2));
	double at = gt_clock();
	kill(r.pid, SIGTERM);
	finish();
	EXPECT(143, -1, "ended by signal 15");
	double took_s = gt_clock() - at;
	CHECK_MSG(took_s >= 0.5 && took_s < 5, "%.3f s", took_s); /* no sooner than the grace; the maximum allows for the machine's load */
}

/* A rank that has not executed the program yet has the signal handlers of its launcher, which must not discard the signal. The moments are
 * those at which some of the ranks are in this state. */
TEST(user_stops_before_exec)
{
	for (int i = 0; i < 20; i++) {
		start("-n 16 -g 50 -s 100000 -H -a 0 *:hang");
		usleep((useconds_t)(1500 + 1000 * i));
		double at = gt_clock();
		kill(r.pid, SIGTERM);
		finish();
		if (WIFSIGNALED(r.status)) /* the launcher itself had no handler yet */
			continue;
		EXPECT(143, -1, "ended by signal 15");
		CHECK_MSG(gt_clock() - at < 40, "%.3f s: a rank did not get the signal", gt_clock() - at); /* less than the grace */
	}
}

TEST(user_stops_before_launch)
{
	run("-n 2 -s 100000 -E");
	EXPECT(143, -1, "ended by signal 15");
}

TEST(terminal_stop)
{
	start("-n 2 -t 1 -s 2000");
	CHECK(read_until("ready", 2));
	kill(r.pid, SIGTSTP);
	CHECK(waitpid(r.pid, &r.status, WUNTRACED) == r.pid && WIFSTOPPED(r.status));
	usleep(1500000); /* longer than the timeout */
	kill(r.pid, SIGCONT);
	finish();
	EXPECT(0, -1, "");
}

TEST(restarts)
{
	run("-n 2 -r 3 1:kill@0");
	EXPECT(0, -1, "");
	CHECK_MSG(r.restarts == 1 && strstr(r.text, "rank 1 was killed by signal 9 (Killed) at step 3; restart 1 of 3 in 0.05 s"), "%s",
	          r.text);
	run("-n 4 -r 2 -t 1 2:stop@0 3:exit=75@1");
	EXPECT(0, -1, "");
	CHECK(r.restarts == 2);
	run("-n 2 -r 2 0:segv");
	EXPECT(139, 0, "signal 11");
	CHECK(r.restarts == 2);
	run("-n 2 -r 2 0:exit=78"); /* would fail again */
	EXPECT(78, 0, "configuration error");
	CHECK(r.restarts == 0);
	start("-n 2 -r 5 -b 30 0:kill"); /* Ctrl-C while it waits to restart */
	CHECK(read_until("restart 1 of 5 in 30 s", 1));
	kill(r.pid, SIGINT);
	finish();
	EXPECT(130, 0, "signal 9");
}

TEST(output)
{
	run("-n 3 1:lines=2000 2:lines=3");
	EXPECT(0, -1, "");
	CHECK(strstr(r.text, "[rank 1] one\n") && strstr(r.text, "[rank 1] two halves\n") && strstr(r.text, "[rank 1] no newline\n"));
	CHECK(strstr(r.text, "[rank 1] line 0\n") && strstr(r.text, "[rank 1] line 1999\n") && strstr(r.text, "[rank 2] line 2\n"));
	int lines = 0;
	for (const char *p = r.text; (p = strstr(p, "[rank 1] line ")); p++)
		lines++;
	CHECK_MSG(lines == 2000, "%d lines", lines);
	run("-n 2 0:lines=3");
	CHECK(strstr(r.text, "\nline 2\n") && !strstr(r.text, "[rank 0]"));
	run("-n 2 1:lines=100 1:kill"); /* what it wrote before its death is not lost */
	CHECK(strstr(r.text, "[rank 1] line 99\n"));
}

TEST(what_a_rank_gets)
{
	int ncpu;
	struct gt_cpu_info place[CPU_SETSIZE];
	ncpu = gt_cpu_list(place);
	run("-n 2 0:where 1:where");
	CHECK(strstr(r.text, "where rank=0/2 local=0/2 node=0/1 how=gtrain addr=127.0.0.1 port=1 listen=1"));
	CHECK(strstr(r.text, "[rank 1] where rank=1/2 local=1/2 node=0/1 how=gtrain addr=127.0.0.1 port=1 listen=0"));
	CHECK(strstr(r.text, "link=gone group=1"));
	if (ncpu == 2) {
		CHECK_MSG(strstr(r.text, "omp=1 link=gone group=1 cpus=0,\n") && strstr(r.text, "omp=1 link=gone group=1 cpus=1,\n"), "%s", r.text);
	}
	run("-n 0");
	CHECK_MSG(r.code == GT_EUSAGE && strstr(r.why, "0 ranks on this host: expected 1 to 256"), "%s", r.text);
}

/* Two packages of four cores with two threads each, numbered as Linux does it: siblings are 8 apart. */
TEST(cores)
{
	struct gt_cpu_info p[16];
	for (int n = 1; n <= 20; n++) {
		int owner[16], threads = 0;
		bool given = true;
		memset(owner, -1, sizeof owner);
		for (int local = 0; local < n; local++) {
			cpu_set_t set;
			int cores = 0;
			for (int c = 0; c < 16; c++)
				p[c] = (struct gt_cpu_info){c, c % 8 / 4, c % 4};
			given = gt_cpu_share(p, 16, local, n, &set, &cores);
			for (int c = 0; given && c < 16; c++)
				if (CPU_ISSET(c, &set)) {
					CHECK_MSG(owner[c] < 0, "%d ranks: processor %d for ranks %d and %d", n, c, owner[c], local);
					owner[c] = local;
				}
			threads += given ? cores : 0;
			CHECK(!given || cores > 0);
		}
		CHECK_MSG(given == (n <= 16), "%d ranks on 16 processors", n);
		for (int c = 0; given && c < 16; c++)
			CHECK_MSG(owner[c] >= 0, "%d ranks: processor %d idle", n, c);
		for (int c = 0; n <= 8 && c < 8; c++)
			CHECK_MSG(owner[c] == owner[c + 8], "%d ranks: two of them on core %d", n, c);
		CHECK_MSG(!given || threads == (n <= 8 ? 8 : 16), "%d ranks: %d threads", n, threads);
		if (n == 2)
			for (int c = 0; c < 16; c++)
				CHECK_MSG(owner[c] == c % 8 / 4, "two ranks: processor %d not by package", c);
	}
}

RUN_TESTS()
