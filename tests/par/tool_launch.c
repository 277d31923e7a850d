/* A program that launches itself once per rank; test_launch.c scripts what the ranks do.
 *   tool_launch [-n RANKS] [-t TIMEOUT] [-g GRACE] [-r RESTARTS] [-s STEPS] [-a STEP] [-H] [-E] [RANK|*:WHAT[=VALUE][@ATTEMPT]]...
 * Every rank says "ready" and makes a step each 2 ms; at step 3 (-a) it does what it was told to. With -H, the launcher has signal handlers
 * when it starts the ranks, as in `gtrain run --smoke`; with -E, it also gets SIGTERM before it starts them. The launcher closes with
 * "end code=… rank=… signal=… step=… restarts=… fds=BEFORE,AFTER children=… end_s=…" and "why …". */
#include "launch/launcher.h"
#include "launch/signals.h"
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	got = sig;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(double s)
{
	struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
	while (nanosleep(&t, &t) && errno == EINTR && !got)
		;
}

static int open_fds(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void fault(void)
{
	printf("fault %.6f\n", now());
	fflush(stdout);
}

static int do_it(struct gt_rank_link *l, const char *what, const char *value)
{
	int k = value ? atoi(value) : 0;
	struct rlimit none = {0};
	setrlimit(RLIMIT_CORE, &none);
	if (!strcmp(what, "exit")) {
		fault();
		return k;
	} else if (!strcmp(what, "segv") || !strcmp(what, "kill") || !strcmp(what, "stop")) {
		fault();
		signal(SIGSEGV, SIG_DFL);
		raise(*what == 'k' ? SIGKILL : what[1] == 'e' ? SIGSEGV : SIGSTOP);
	} else if (!strcmp(what, "words")) {
		fault();
		gt_rank_report_error(l, GT_EDATA, value);
		gt_rank_report_error(l, GT_EIO, "and something after it");
		return GT_EDATA;
	} else if (!strcmp(what, "hang")) {
		fault();
		gt_rank_phase(l, "evaluating", 0);
		for (;;)
			nap(1);
	} else if (!strcmp(what, "wait")) { /* in a collective, for one that does not come */
		gt_rank_set_waiting(l, true);
		for (;;)
			nap(1);
	} else if (!strcmp(what, "lost")) { /* peers see a death before the launcher does */
		gt_rank_report_error(l, GT_EPEER, "rank 1 has gone");
		return GT_EPEER;
	} else if (!strcmp(what, "late")) { /* and the death is seen after that */
		nap(0.05);
		fault();
		raise(SIGKILL);
	} else if (!strcmp(what, "noterm")) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGINT, SIG_IGN);
		printf("deaf\n");
		fflush(stdout);
	} else if (!strcmp(what, "orderly")) {
		signal(SIGINT, on_signal);
		signal(SIGTERM, on_signal);
		signal(SIGUSR1, on_signal);
		printf("tidy\n");
		fflush(stdout);
	} else if (!strcmp(what, "sync")) { /* a barrier in memory of the launcher's */
		_Atomic int *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(getenv("TOOL_LAUNCH_FD")), 0);
		if (count == MAP_FAILED)
			return GT_EFAIL;
		for (++*count; *count < gt_rank_world(l)->world;)
			nap(0.001);
		munmap((void *)count, 4096);
	} else if (!strcmp(what, "phase")) {
		gt_rank_phase(l, "saving a checkpoint", 60);
		nap(atof(value));
	} else if (!strcmp(what, "child")) { /* leaves a process behind */
		pid_t pid = fork();
		if (!pid) {
			signal(SIGTERM, SIG_IGN);
			if (k)
				setsid(); /* out of the rank's process group */
			for (;;)
				pause();
		}
		printf("child %d\n", (int)pid);
		fflush(stdout);
	} else if (!strcmp(what, "lines")) {
		fprintf(stderr, "one\ntwo");
		fflush(stderr);
		nap(0.02);
		fprintf(stderr, " halves\n");
		for (int i = 0; i < k; i++)
			printf("line %d\n", i);
		printf("no newline");
		fflush(stdout);
	} else if (!strcmp(what, "where")) {
		const struct gt_world *w = gt_rank_world(l);
		cpu_set_t set;
		CPU_ZERO(&set);
		sched_getaffinity(0, sizeof set, &set);
		int listener = gt_rank_take_listener(l);
		printf("where rank=%d/%d local=%d/%d node=%d/%d how=%s addr=%s port=%d listen=%d omp=%s link=%s group=%d cpus=", w->rank,
		       w->world, w->local_rank, w->local_world, w->node, w->nnodes, w->how, w->addr, w->port > 0, listener >= 0,
		       getenv("OMP_NUM_THREADS"), getenv("GTRAIN_LINK_FD") ? "left" : "gone", getpgrp() == getpid());
		for (int c = 0; c < CPU_SETSIZE; c++)
			if (CPU_ISSET(c, &set))
				printf("%d,", c);
		printf("\n");
		fflush(stdout);
	} else {
		fprintf(stderr, "tool_launch: no behaviour %s\n", what);
		return GT_EUSAGE;
	}
	return -1;
}

static int be_rank(struct gt_rank_link *l, long steps, long at_step, char **script)
{
	const struct gt_world *w = gt_rank_world(l);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (long step = 0; step < steps; step++) {
		for (char **s = script; step == at_step && *s; s++) {
			char *what = strdup(*s), *colon = strchr(what, ':'), *at = strchr(what, '@'), *value;
			if (!colon || (*what != '*' && atoi(what) != w->rank) || (at && atoi(at + 1) != atoi(getenv("GTRAIN_RESTART")))) {
				free(what);
				continue;
			}
			if (at)
				*at = 0;
			if ((value = strchr(colon, '=')))
				*value++ = 0;
			int rc = do_it(l, colon + 1, value);
			free(what);
			if (rc >= 0)
				return rc;
		}
		nap(0.002);
		if (got)
			return 128 + got;
		gt_rank_report_progress(l, step + 1);
	}
	return 0;
}

static void say(void *user, const char *line)
{
	(void)user;
	printf("%s\n", line);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct gt_launch_spec spec = {.nproc = 1, .argv = argv, .grace_s = 0.5, .backoff_s = 0.05, .pin = true, .say = say};
	struct gt_rank_link *link;
	struct gt_launch_end end;
	struct gt_err err = {0};
	long steps = 10, at_step = 3;
	bool handles = false, early = false;
	for (int o; (o = getopt(argc, argv, "n:t:g:r:s:b:a:HE")) != -1;)
		switch (o) {
		case 'n':
			spec.nproc = atoi(optarg);
			break;
		case 't':
			spec.timeout_s = atof(optarg);
			break;
		case 'g':
			spec.grace_s = atof(optarg);
			break;
		case 'r':
			spec.max_restarts = atoi(optarg);
			break;
		case 'b':
			spec.backoff_s = atof(optarg);
			break;
		case 's':
			steps = atol(optarg);
			break;
		case 'a':
			at_step = atol(optarg);
			break;
		case 'E':
			early = true;
			break;
		case 'H':
			handles = true;
			break;
		default:
			return GT_EUSAGE;
		}
	if (gt_rank_open(&link, &err) != GT_OK) {
		fprintf(stderr, "%s\n", err.msg);
		return (int)err.code;
	}
	if (link) {
		int rc = be_rank(link, steps, at_step, argv + optind);
		gt_rank_close(link);
		return rc;
	}
	if (handles || early)
		gt_signals_install();
	if (early)
		raise(SIGTERM);
	char shared[16];
	int memory = memfd_create("tool_launch", 0); /* inherited */
	snprintf(shared, sizeof shared, "%d", memory);
	if (memory < 0 || ftruncate(memory, 4096) || setenv("TOOL_LAUNCH_FD", shared, 1))
		return GT_EFAIL;
	int before = open_fds();
	enum gt_code code = gt_launch_run(&spec, &end, &err);
	int children = waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD;
	printf("end code=%d rank=%d signal=%d step=%lld restarts=%d fds=%d,%d children=%d end_s=%.3f\n", (int)code, end.rank, end.signal,
	       (long long)end.step, end.restarts, before, open_fds(), children, end.end_s);
	printf("why %s\n", err.msg);
	return (int)code;
}
