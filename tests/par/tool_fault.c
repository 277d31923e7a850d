/* One fault in one rank of a real run, and what comes of it.
 *   tool_fault [-p PHASE] [-k STEP] [-d MICROSECONDS] [-r RANK] [-l SECONDS] [-m MILLISECONDS] [-t] FAULT COMMAND…
 * Starts COMMAND (gtrain run or resume, on several ranks), looks at the launcher's board until rank RANK is in PHASE (its words for
 * messages, or a part of them; "start": before the first words; "first": in its first step; "training": after its first step, and none)
 * and has done STEP steps, waits up to MICROSECONDS and does FAULT to it: kill, segv or stop (signals), slow (stopped and continued until
 * the run ends: stopped for MILLISECONDS or 10, then running for 5, so by default at a third of its speed), exit (exit_group(74) in its
 * name), or to the launcher: launcher (SIGKILL), int, int2 (SIGINT, once or twice), term, term2 (SIGTERM). -t follows the rank from one
 * system call to the next, for phases that are shorter than a look at the board. Prints one line fault=… rank=… phase="…" step=… status=…
 * seconds=… again=… left=… phase and step: where the rank really was; status: the launcher's (128+n: ended by signal n); seconds: from the
 * fault to its end; again: to the moment at which all ranks of the next attempt were there, -1 without one; left: processes that outlived
 * it, found by a mark in their environment (and then killed). Status 3: the moment never came. */
#include "base/clock.h"
#include "launch/launcher_parts.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct opts {
	const char *phase, *fault;
	int rank;
	long step, delay_us, stopped_ms;
	double limit_s;
	bool follow;
};

static void die(const char *what)
{
	fprintf(stderr, "tool_fault: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* The value of a variable in a process' environment, as it was at its start; false: not there, or not yet. */
static bool variable(int pid, const char *name, char *out, size_t size)
{
	char path[64], env[65536];
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, env, sizeof env - 1) : -1;
	if (fd >= 0)
		close(fd);
	size_t len = strlen(name);
	for (char *p = env; n > 0 && p < env + n; p += strlen(p) + 1) {
		env[n] = 0;
		if (!strncmp(p, name, len) && p[len] == '=') {
			snprintf(out, size, "%s", p + len + 1);
			return true;
		}
	}
	return false;
}

/* Processes that carry our mark, but for `but`; kills them if asked to. */
static int marked(const char *mark, pid_t but, bool end_them)
{
	int n = 0;
	char value[64];
	DIR *d = opendir("/proc");
	for (struct dirent *e; d && (e = readdir(d));) {
		int pid = atoi(e->d_name);
		if (pid <= 0 || pid == but || !variable(pid, "GTRAIN_TEST_MARK", value, sizeof value) || strcmp(value, mark))
			continue;
		n++;
		if (end_them)
			kill(pid, SIGKILL);
	}
	if (d)
		closedir(d);
	return n;
}

/* Ranks of attempt `restart` among the children of the launcher; *pid: that of rank `rank`, 0: not there yet. */
static int ranks(pid_t launcher, int restart, int rank, int *pid)
{
	char path[96], value[32];
	int n = 0, child;
	*pid = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)launcher, (int)launcher);
	FILE *f = fopen(path, "re");
	while (f && fscanf(f, "%d", &child) == 1) {
		if (!variable(child, "GTRAIN_RESTART", value, sizeof value) || atoi(value) != restart)
			continue;
		n++;
		if (variable(child, "GTRAIN_RANK", value, sizeof value) && atoi(value) == rank)
			*pid = child;
	}
	if (f)
		fclose(f);
	return n;
}

static const struct gt_board *board_of(pid_t launcher)
{
	char path[64], link[400], name[256];
	struct stat st;
	const struct gt_board *b = NULL;
	snprintf(path, sizeof path, "/proc/%d/fd", (int)launcher);
	DIR *d = opendir(path);
	for (struct dirent *e; d && !b && (e = readdir(d));) {
		snprintf(link, sizeof link, "%s/%s", path, e->d_name);
		ssize_t n = readlink(link, name, sizeof name - 1);
		if (n < 0)
			continue;
		name[n] = 0;
		if (!strstr(name, "memfd:gtrain-board"))
			continue;
		int fd = open(link, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && st.st_size > 0) {
			b = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
			b = b == MAP_FAILED ? NULL : b;
		}
		close(fd);
	}
	if (d)
		closedir(d);
	return b && b->magic == GT_BOARD_MAGIC ? b : NULL;
}

static bool there(const struct opts *o, const struct gt_board *b)
{
	char phase[GT_PHASE_SIZE];
	memcpy(phase, b->slot[o->rank].phase, sizeof phase);
	phase[sizeof phase - 1] = 0;
	if (!strcmp(o->phase, "start"))
		return !*phase;
	/* The first step has no words, as the time before "reading data". "initialising" can pass between two looks at the board. */
	static bool planned;
	planned |= !strcmp(phase, "reading data and planning") || !strcmp(phase, "initialising");
	if (!strcmp(o->phase, "first"))
		return planned && !*phase && b->slot[o->rank].step < 0;
	if (b->slot[o->rank].step < o->step)
		return false;
	return strcmp(o->phase, "training") ? strstr(phase, o->phase) != NULL : !*phase && b->slot[o->rank].step >= 1;
}

/* A place in the vDSO of a process where the instruction `syscall` stands; 0: none. */
static unsigned long syscall_instruction(pid_t pid)
{
	char path[64], line[400];
	unsigned long from = 0, to = 0;
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "[vdso]"))
			sscanf(line, "%lx-%lx", &from, &to);
	if (f)
		fclose(f);
	for (; from + sizeof(long) <= to; from++)
		if ((ptrace(PTRACE_PEEKTEXT, pid, (void *)from, 0) & 0xffff) == 0x050f)
			return from;
	return 0;
}

/* exit_group(74) in the name of another process: the registers of its first thread are made those of the system call, at an instruction
 * that is there already. Its text stays as it is: its other threads run on, perhaps in that very function. */
static bool make_exit(pid_t pid)
{
#ifdef __x86_64__
	struct user_regs_struct r;
	int st;
	if (ptrace(PTRACE_ATTACH, pid, 0, 0) || waitpid(pid, &st, __WALL) != pid)
		return false;
	while (WIFSTOPPED(st) && WSTOPSIG(st) != SIGSTOP) /* the SIGTRAP of an execve */
		if (ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(st) == SIGTRAP ? 0 : WSTOPSIG(st)) || waitpid(pid, &st, __WALL) != pid)
			return false;
	if (!WIFSTOPPED(st) || ptrace(PTRACE_GETREGS, pid, 0, &r) || !(r.rip = syscall_instruction(pid)))
		return false;
	r.rax = 231;
	r.rdi = 74; /* as after a failed write: what may succeed when it is tried again */
	r.orig_rax = (unsigned long long)-1; /* no restart of the call that it was in */
	return !ptrace(PTRACE_SETREGS, pid, 0, &r) && !ptrace(PTRACE_DETACH, pid, 0, 0);
#else
	(void)pid;
	return false;
#endif
}

/* Lets the process go from system call to system call until it is there; false: it ended before. */
static bool follow(const struct opts *o, const struct gt_board *b, pid_t pid)
{
	int st, sig = 0;
	if (ptrace(PTRACE_ATTACH, pid, 0, 0) || waitpid(pid, &st, __WALL) != pid || !WIFSTOPPED(st))
		return false;
	while (!there(o, b)) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, sig) || waitpid(pid, &st, __WALL) != pid || !WIFSTOPPED(st))
			return false;
		sig = WSTOPSIG(st) == SIGTRAP || WSTOPSIG(st) == SIGSTOP ? 0 : WSTOPSIG(st);
	}
	return !ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* Stops and continues the rank in turn while the launcher runs. A signal by descriptor never reaches another process of the same number. */
static void slow_rank(pid_t launcher, pid_t rank, long stopped_ms)
{
	siginfo_t si = {0};
	int fd = (int)syscall(SYS_pidfd_open, rank, 0);
	while (fd >= 0 && !waitid(P_PID, (id_t)launcher, &si, WEXITED | WNOHANG | WNOWAIT) && !si.si_pid) {
		if (syscall(SYS_pidfd_send_signal, fd, SIGSTOP, NULL, 0))
			break;
		usleep((useconds_t)(1000 * stopped_ms));
		if (syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0))
			break;
		usleep(5000);
	}
	if (fd < 0)
		die("pidfd_open");
	close(fd);
}

static void do_fault(const struct opts *o, pid_t launcher, pid_t rank)
{
	if (!strcmp(o->fault, "exit")) {
		if (!make_exit(rank))
			die("ptrace");
	} else if (!strcmp(o->fault, "int2") || !strcmp(o->fault, "term2")) {
		kill(launcher, *o->fault == 'i' ? SIGINT : SIGTERM);
		usleep(3000);
		kill(launcher, *o->fault == 'i' ? SIGINT : SIGTERM);
	} else {
		static const struct {
			const char *word;
			int sig;
			bool launcher;
		} faults[] = {{"kill", SIGKILL, false},    {"segv", SIGSEGV, false}, {"stop", SIGSTOP, false},
		              {"launcher", SIGKILL, true}, {"int", SIGINT, true},    {"term", SIGTERM, true}};
		for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
			if (!strcmp(faults[i].word, o->fault)) {
				kill(faults[i].launcher ? launcher : rank, faults[i].sig);
				return;
			}
		errno = EINVAL;
		die(o->fault);
	}
}

int main(int argc, char **argv)
{
	struct opts o = {.phase = "training", .limit_s = 120, .step = -1, .stopped_ms = 10};
	char mark[64];
	int st = 0, victim = 0, pid, n = 0;
	for (int c; (c = getopt(argc, argv, "+p:k:d:r:l:m:t")) != -1;)
		switch (c) {
		case 'p':
			o.phase = optarg;
			break;
		case 'k':
			o.step = atol(optarg);
			break;
		case 'd':
			o.delay_us = atol(optarg);
			break;
		case 'r':
			o.rank = atoi(optarg);
			break;
		case 'l':
			o.limit_s = atof(optarg);
			break;
		case 'm':
			o.stopped_ms = atol(optarg);
			break;
		case 't':
			o.follow = true;
			break;
		default:
			exit(2);
		}
	if (argc - optind < 2)
		exit(2);
	o.fault = argv[optind++];
	snprintf(mark, sizeof mark, "%d.%ld", (int)getpid(), (long)time(NULL));
	setenv("GTRAIN_TEST_MARK", mark, 1);
	pid_t launcher = fork();
	if (launcher < 0)
		die("fork");
	if (!launcher) {
		signal(SIGINT, SIG_DFL); /* a shell ignores it for what it runs in the background */
		execv(argv[optind], argv + optind);
		_exit(127);
	}
	unsetenv("GTRAIN_TEST_MARK");
	double until = gt_clock() + o.limit_s;
	const struct gt_board *b = NULL;
	while (gt_clock() < until) {
		if (waitpid(launcher, &st, WNOHANG) == launcher) {
			printf("fault=none status=%d the run was over before\n", WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st));
			return 3;
		}
		if (!b)
			b = board_of(launcher);
		if (b && !victim)
			ranks(launcher, 0, o.rank, &victim);
		if (b && victim && (there(&o, b) || (o.follow && follow(&o, b, victim))))
			break;
		if (!b || !victim || b->slot[o.rank].step < o.step - 20) /* then it may be near: no sleep */
			usleep(200);
		else
			sched_yield();
	}
	if (!b || !victim) {
		marked(mark, 0, true);
		fprintf(stderr, "tool_fault: no board, or no rank %d\n", o.rank);
		return 2;
	}
	for (double go = gt_clock() + o.delay_us * 1e-6; gt_clock() < go;)
		;
	double at = gt_clock(), again = -1, seconds = -1;
	if (strcmp(o.fault, "slow"))
		do_fault(&o, launcher, victim);
	char phase[GT_PHASE_SIZE];
	memcpy(phase, b->slot[o.rank].phase, sizeof phase);
	phase[sizeof phase - 1] = 0;
	long step = (long)b->slot[o.rank].step;
	int world = b->local_world;
	if (!strcmp(o.fault, "slow"))
		slow_rank(launcher, victim, o.stopped_ms);
	while (gt_clock() < until) {
		if (waitpid(launcher, &st, WNOHANG) == launcher) {
			seconds = gt_clock() - at;
			break;
		}
		if (again < 0 && ranks(launcher, 1, o.rank, &pid) == world)
			again = gt_clock() - at;
		usleep(1000);
	}
	if (!strcmp(o.fault, "launcher")) { /* the kernel tells the ranks */
		while ((n = marked(mark, 0, false)) && gt_clock() < at + 10)
			usleep(1000);
		seconds = gt_clock() - at;
	}
	n = marked(mark, 0, true);
	printf("fault=%s rank=%d phase=\"%s\" step=%ld status=%d seconds=%.3f again=%.3f left=%d\n", o.fault, o.rank, phase, step,
	       seconds < 0 ? -1 : WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st), seconds, again, n);
	return 0;
}
