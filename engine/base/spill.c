#include "base/spill.h"
#include "base/arena.h"
#include "base/descriptors.h"
#include "base/fileio.h"
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define WAIT_NS 10000000L /* between two looks at the mapped memory: at 2 GB/s, 20 MB are mapped meanwhile */
#define FREE_FDS 64 /* descriptors that stay free for the rest of the program; checked for every 32nd array */
#define COARSE ((uint64_t)256 << 20) /* bytes from which arrays grow by an eighth */

/* An array in a file. */
struct spilled {
	struct spilled *next;
	int fd;
	void *p;
	size_t bytes; /* of the mapping and of the file */
};

struct gt_spill {
	char dir[GT_PATH_SIZE];
	pthread_mutex_t lock; /* of all members below */
	pthread_cond_t wake;
	pthread_t thread;     /* unmaps pages */
	bool threaded, closing;
	bool full;            /* a file could not be made or extended */
	int statm;            /* /proc/self/statm; -1: not available */
	int64_t mapped;       /* pages of files that were mapped into the process when the first array was made */
	struct spilled *first;
	int64_t made;         /* arrays that were made so far */
	uint64_t bytes, peak; /* of all arrays, now and at most */
};

/* ---- memory of the process ------------------------------------------------------------------------------------------------------ */
/* Returns the number of pages of files and shared memory in the memory of the process; -1: not known. */
static int64_t count_mapped(const struct gt_spill *s)
{
	char text[128];
	long long total, resident, mapped;
	ssize_t n = s->statm < 0 ? -1 : pread(s->statm, text, sizeof text - 1, 0);
	if (n <= 0)
		return -1;
	text[n] = 0;
	return sscanf(text, "%lld %lld %lld", &total, &resident, &mapped) == 3 ? mapped : -1;
}

static bool exceeds_limit(const struct gt_spill *s)
{
	int64_t now = count_mapped(s);
	return now < 0 || s->mapped < 0 || (now - s->mapped) * sysconf(_SC_PAGESIZE) > (int64_t)GT_SPILL_RESIDENT;
}

/* Unmaps the pages of the arrays whenever there are too many. Their content stays in the page cache of the system. */
static void *unmap_pages(void *arg)
{
	struct gt_spill *s = arg;
	pthread_mutex_lock(&s->lock);
	while (!s->closing) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += WAIT_NS;
		until.tv_sec += until.tv_nsec / 1000000000L;
		until.tv_nsec %= 1000000000L;
		pthread_cond_timedwait(&s->wake, &s->lock, &until);
		if (!exceeds_limit(s))
			continue;
		for (struct spilled *a = s->first; a; a = a->next)
			madvise(a->p, a->bytes, MADV_DONTNEED);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Starts the thread. Without it, arrays still work, and the system unmaps pages when it needs memory. */
static void start_thread(struct gt_spill *s)
{
	sigset_t every, before;
	s->mapped = count_mapped(s);
	sigfillset(&every); /* other threads handle signals */
	pthread_sigmask(SIG_SETMASK, &every, &before);
	s->threaded = !pthread_create(&s->thread, NULL, unmap_pages, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void gt_spill_open(const char *dir, struct gt_spill **out)
{
	pthread_condattr_t attr;
	struct gt_spill *s = *out = calloc(1, sizeof *s);
	if (!s)
		return;
	snprintf(s->dir, sizeof s->dir, "%s", dir);
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	s->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

/* ---- files ------------------------------------------------------------------------------------------------------------------------ */
/* Opens a file without a name; -1: not possible. */
static int open_unnamed(const struct gt_spill *s)
{
	char path[GT_PATH_SIZE], temporary[GT_PATH_SIZE];
	int fd = open(s->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (gt_path_join(path, s->dir, "spill.index", NULL) != GT_OK || gt_file_create_temporary(temporary, path, 0600, &fd, NULL) != GT_OK)
		return -1;
	close(fd);
	fd = open(temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW); /* again, because gt_file_create opens for writing only */
	unlink(temporary);
	return fd;
}

/* Allocates blocks of the disk, so that a write to the mapping cannot fail, if the file system writes in place. */
static bool extend_file(int fd, size_t from, size_t to)
{
	struct statvfs fs;
	if (fstatvfs(fd, &fs) || (uint64_t)fs.f_bavail * fs.f_frsize < to - from + GT_SPILL_RESERVE)
		return false;
	for (int tries = 0; tries < GT_EINTR_MAX; tries++)
		if (!fallocate(fd, 0, (off_t)from, (off_t)(to - from)))
			return true;
		else if (errno != EINTR)
			break;
	return false;
}

static size_t round_up(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (bytes + page - 1) / page * page;
}

static struct spilled *find_array(const struct gt_spill *s, const void *p)
{
	struct spilled *a = s->first;
	while (a && a->p != p)
		a = a->next;
	return p ? a : NULL;
}

static void count_bytes(struct gt_spill *s, uint64_t more)
{
	s->bytes += more; /* modulo 2^64, if an array becomes smaller */
	s->peak = s->bytes > s->peak ? s->bytes : s->peak;
}

/* Makes an array in a file; NULL: not possible. */
static struct spilled *add_array(struct gt_spill *s, size_t bytes)
{
	struct spilled *a = malloc(sizeof *a);
	if (!a)
		return NULL;
	bool has_fds = s->made++ % 32 || gt_descriptors_reserve(FREE_FDS, FREE_FDS, "", NULL) == GT_OK;
	*a = (struct spilled){.next = s->first, .fd = has_fds ? open_unnamed(s) : -1, .bytes = bytes};
	bool good = a->fd >= 0 && extend_file(a->fd, 0, bytes);
	a->p = good ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0) : MAP_FAILED;
	if (a->p == MAP_FAILED) {
		if (a->fd >= 0)
			close(a->fd);
		free(a);
		s->full = true;
		return NULL;
	}
	s->first = a;
	count_bytes(s, bytes);
	if (!s->threaded && !s->closing)
		start_thread(s);
	return a;
}

static void remove_array(struct gt_spill *s, struct spilled *a)
{
	struct spilled **at = &s->first;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	s->bytes -= a->bytes;
	munmap(a->p, a->bytes);
	close(a->fd);
	free(a);
}

/* Changes the size of an array in a file. Returns false if this is not possible; then the array is unchanged. */
static bool resize_file(struct gt_spill *s, struct spilled *a, size_t bytes)
{
	if (bytes > a->bytes && !extend_file(a->fd, a->bytes, bytes))
		return false;
	void *p = mremap(a->p, a->bytes, bytes, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		return false;
	if (bytes < a->bytes && ftruncate(a->fd, (off_t)bytes))
		errno = 0; /* the file keeps its blocks until it is closed */
	count_bytes(s, bytes - a->bytes);
	a->p = p;
	a->bytes = bytes;
	return true;
}

/* Moves an array from a file to memory; NULL: there is no memory. */
static void *move_to_memory(struct gt_spill *s, struct spilled *a, size_t bytes)
{
	void *p = malloc(bytes);
	if (!p)
		return NULL;
	memcpy(p, a->p, bytes < a->bytes ? bytes : a->bytes);
	remove_array(s, a);
	return p;
}

static void *resize_locked(struct gt_spill *s, void *p, size_t bytes)
{
	size_t whole = round_up(bytes);
	struct spilled *a = find_array(s, p);
	if (a) {
		if (resize_file(s, a, whole))
			return a->p;
		s->full = true;
		return move_to_memory(s, a, bytes);
	}
	if (bytes < GT_SPILL_MIN || s->full || !(a = add_array(s, whole)))
		return realloc(p, bytes);
	if (p) {
		size_t was = malloc_usable_size(p);
		memcpy(a->p, p, was < bytes ? was : bytes);
		free(p);
	}
	return a->p;
}

/* ---- spill.h ---------------------------------------------------------------------------------------------------------------------- */
void *gt_spill_resize(struct gt_spill *s, void *p, size_t bytes)
{
	bytes += !bytes;
	if (!s || bytes > PTRDIFF_MAX)
		return bytes > PTRDIFF_MAX ? NULL : realloc(p, bytes);
	pthread_mutex_lock(&s->lock);
	void *now = resize_locked(s, p, bytes);
	pthread_mutex_unlock(&s->lock);
	return now;
}

void *gt_spill_zeros(struct gt_spill *s, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	if (!s || bytes < GT_SPILL_MIN || !gt_spill_works(s))
		return calloc(n + !n, size);
	pthread_mutex_lock(&s->lock);
	struct spilled *a = add_array(s, round_up(bytes));
	void *p = a ? a->p : NULL;
	pthread_mutex_unlock(&s->lock);
	return p ? p : calloc(n, size);
}

void gt_spill_free(struct gt_spill *s, void *p)
{
	struct spilled *a = NULL;
	if (s) {
		pthread_mutex_lock(&s->lock);
		if ((a = find_array(s, p)))
			remove_array(s, a);
		pthread_mutex_unlock(&s->lock);
	}
	if (!a)
		free(p);
}

bool gt_spill_works(struct gt_spill *s)
{
	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	bool works = !s->full;
	pthread_mutex_unlock(&s->lock);
	return works;
}

uint64_t gt_spill_peak(struct gt_spill *s)
{
	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	uint64_t bytes = s->peak;
	pthread_mutex_unlock(&s->lock);
	return bytes;
}

void gt_spill_settle(struct gt_spill *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	if (s->threaded)
		pthread_join(s->thread, NULL);
	s->threaded = false;
}

void *gt_spill_grown(struct gt_spill *s, void *p, int64_t *cap, int64_t need, size_t size)
{
	if (!s)
		return gt_grown(p, cap, need, size);
	int64_t want = *cap < 32 ? 64 : (uint64_t)*cap > COARSE / size ? *cap + *cap / 8 : 2 * *cap;
	want = want < need ? need : want;
	if (want < 0 || (uint64_t)want > PTRDIFF_MAX / size)
		return NULL;
	void *now = gt_spill_resize(s, p, (size_t)want * size);
	*cap = now ? want : *cap;
	return now;
}

void gt_spill_close(struct gt_spill *s)
{
	if (!s)
		return;
	gt_spill_settle(s);
	while (s->first)
		remove_array(s, s->first);
	if (s->statm >= 0)
		close(s->statm);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
