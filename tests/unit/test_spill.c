/* Arrays in temporary files (base/spill.h): they keep their content while they grow, need little memory of the process, move to memory if
 * a file cannot grow, and leave no files. */
#include "base/spill.h"
#include "base/arena.h"
#include "test.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct gt_err e;

/* Returns the number of entries of a directory, without "." and "..". */
static int count_entries(const char *dir)
{
	int n = 0;
	DIR *d = opendir(dir);
	for (struct dirent *f; d && (f = readdir(d));)
		n += f->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static long peak_mib(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_maxrss >> 10;
}

static struct gt_spill *open_spill(void)
{
	struct gt_spill *s;
	gt_spill_open(test_tmpdir(), &s);
	CHECK(s && gt_spill_works(s));
	return s;
}

/* Returns whether v[i] is i for all i < n. */
static bool counts_up(const int64_t *v, int64_t n)
{
	bool good = v != NULL;
	for (int64_t i = 0; i < n && good; i++)
		good = v[i] == i;
	return good;
}

static enum gt_code append_numbers(struct gt_spill *s, int64_t **v, int64_t *cap, int64_t from, int64_t n)
{
	for (int64_t i = from; i < n; i++) {
		GT_SPILL_GROW(s, *v, *cap, i + 1, &e);
		(*v)[i] = i;
	}
	return GT_OK;
}

TEST(content_survives_growth)
{
	enum { N = 3000000 }; /* 24 MB: in memory first, then in a file */
	struct gt_spill *s = open_spill();
	int64_t *v = NULL, cap = 0, *other;
	CHECK_OK(append_numbers(s, &v, &cap, 0, N), e);
	CHECK(counts_up(v, N) && gt_spill_peak(s) >= N * sizeof *v);
	other = gt_spill_zeros(s, N, sizeof *other);
	for (int64_t i = 0; i < N; i++)
		CHECK(!other[i]);
	gt_spill_free(s, other);
	v = gt_spill_resize(s, v, N / 2 * sizeof *v);
	CHECK(counts_up(v, N / 2));
	v = gt_spill_resize(s, v, 100 * sizeof *v);
	CHECK(counts_up(v, 100));
	gt_spill_free(s, v);
	v = gt_spill_resize(s, NULL, 100 * sizeof *v); /* in memory */
	gt_spill_free(s, v);
	CHECK(!count_entries(test_tmpdir()));
	v = gt_spill_resize(s, NULL, N * sizeof *v); /* gt_spill_close frees it */
	CHECK(v != NULL);
	gt_spill_close(s);
}

TEST(memory_is_bounded)
{
	enum { N = 100000000 }; /* 800 MB */
	struct gt_spill *s = open_spill();
	int64_t *v = NULL, cap = 0;
	long before = peak_mib();
	CHECK_OK(append_numbers(s, &v, &cap, 0, N), e);
	CHECK(counts_up(v, N));
	long used = peak_mib() - before;
	printf("# 800 MB in a file: %ld MiB of memory\n", used);
	CHECK_MSG(used < 400, "%ld MiB", used); /* 64 MiB, and what is mapped before the thread runs on a busy machine */
	gt_spill_settle(s);
	CHECK(counts_up(v, N));
	gt_spill_free(s, v);
	gt_spill_close(s);
}

/* The limit on the size of files imitates a full disk: both fail in fallocate. */
TEST(full_disk_moves_array_to_memory)
{
	enum { N = 1000000 }; /* 8 MB */
	struct rlimit was, few;
	struct gt_spill *s = open_spill();
	int64_t *v = NULL, cap = 0, *other;
	signal(SIGXFSZ, SIG_IGN); /* as gtrain does */
	getrlimit(RLIMIT_FSIZE, &was);
	few = (struct rlimit){.rlim_cur = 4 << 20, .rlim_max = was.rlim_max};
	setrlimit(RLIMIT_FSIZE, &few);
	CHECK_OK(append_numbers(s, &v, &cap, 0, N), e);
	CHECK(counts_up(v, N) && gt_spill_peak(s) > 0 && gt_spill_peak(s) <= 4 << 20 && !gt_spill_works(s));
	other = gt_spill_zeros(s, N, sizeof *other);
	CHECK(other && !other[0] && !other[N - 1]);
	gt_spill_free(s, other);
	setrlimit(RLIMIT_FSIZE, &was);
	CHECK_OK(append_numbers(s, &v, &cap, N, 2 * N), e);
	CHECK(counts_up(v, 2 * N));
	gt_spill_free(s, v);
	gt_spill_close(s);
}

/* Returns 0 if 100 arrays can be made and a file can be opened; in_files: all arrays are in files. */
static int make_arrays(bool in_files)
{
	struct gt_spill *s = open_spill();
	char *v[100];
	int bad = 0;
	for (int i = 0; i < 100; i++) {
		bad |= !(v[i] = gt_spill_resize(s, NULL, GT_SPILL_MIN));
		if (v[i])
			v[i][GT_SPILL_MIN - 1] = 1;
	}
	int fd = open("/dev/null", O_RDONLY);
	bad |= fd < 0 || gt_spill_works(s) != in_files || gt_spill_peak(s) != (in_files ? 100 : 32) * GT_SPILL_MIN;
	close(fd);
	for (int i = 0; i < 100; i++)
		gt_spill_free(s, v[i]);
	gt_spill_close(s);
	return bad;
}

/* More arrays than descriptors: the limit of open files rises, or the other arrays are in memory. */
TEST(many_arrays)
{
	struct rlimit was, few;
	int status;
	getrlimit(RLIMIT_NOFILE, &was);
	few = (struct rlimit){.rlim_cur = 100, .rlim_max = was.rlim_max};
	setrlimit(RLIMIT_NOFILE, &few);
	CHECK(!make_arrays(true));
	setrlimit(RLIMIT_NOFILE, &was);
	pid_t child = fork();
	if (!child) {
		few = (struct rlimit){.rlim_cur = 90, .rlim_max = 90};
		setrlimit(RLIMIT_NOFILE, &few);
		_exit(make_arrays(false));
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

TEST(missing_directory_and_no_spill_use_memory)
{
	struct gt_spill *none[2] = {NULL, NULL};
	gt_spill_open("/nonexistent/directory", &none[0]);
	for (int k = 0; k < 2; k++) {
		int64_t *v = NULL, cap = 0;
		CHECK_OK(append_numbers(none[k], &v, &cap, 0, 500000), e);
		CHECK(counts_up(v, 500000) && !gt_spill_works(none[k]) && !gt_spill_peak(none[k]));
		gt_spill_free(none[k], v);
		gt_spill_settle(none[k]);
		gt_spill_close(none[k]);
	}
}

RUN_TESTS()
