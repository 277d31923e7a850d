#include "source_contents.h"
#include "base/fileio.h"
#include "content_index.h"
#include "file_system.h"
#include "threads.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct hashing {
	const struct gt_source *s;
	struct gt_sample_mark *mark;
	struct gt_content_index *index; /* NULL: all files are read */
	struct gt_content_entry *found; /* [n]: states and contents of the files that were read; NULL without an index */
	bool lookup;                    /* the index has entries */
	int64_t settled;                /* a file may be recorded if its last change was before this time, in seconds */
	dev_t device;                   /* of the folder */
	bool has_states;                /* gt_fs_keeps_states of this device */
};

/* Returns whether the state of an open file may be recorded. */
static bool may_record(const struct hashing *h, int fd, const struct stat *st)
{
	return st->st_ctim.tv_sec < h->settled && st->st_ctim.tv_nsec && (st->st_dev == h->device ? h->has_states : gt_fs_keeps_states(fd));
}

/* Returns the content of file i from the index, without opening the file; 0: not known. */
static uint64_t find_content(const struct hashing *h, int64_t i)
{
	struct statx x;
	/* The flag makes a network file system ask the server, as opening the file would. */
	if (statx(h->s->fd, gt_source_path(h->s, i), AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x) || !S_ISREG(x.stx_mode))
		return 0;
	struct stat st = {.st_ino = x.stx_ino, .st_size = (off_t)x.stx_size};
	st.st_mtim = (struct timespec){x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec};
	st.st_ctim = (struct timespec){x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec};
	return gt_content_index_find(h->index, gt_content_state(&st));
}

/* Reads the size and the last bytes of file i, and returns their hash; 0: the file cannot be read. */
static uint64_t read_content(const struct hashing *h, int64_t i)
{
	enum { TAIL = 4096 };
	uint8_t tail[TAIL];
	uint64_t offset, size, content = 0;
	struct stat st; /* before the content is read: a change in between gives another state */
	int fd;
	if (gt_source_locate(h->s, i, &fd, &offset, &size, &st, NULL) != GT_OK)
		return 0;
	size_t n = size < TAIL ? (size_t)size : TAIL;
	if (n && gt_file_pread(fd, "", tail, n, offset + size - n, NULL) == GT_OK)
		content = gt_mark_hash(tail, n, size);
	if (h->found && content && may_record(h, fd, &st))
		h->found[i] = (struct gt_content_entry){gt_content_state(&st), content};
	if (!h->s->archive)
		close(fd);
	return content;
}

static bool hash_content(void *user, int thread, int64_t i)
{
	const struct hashing *h = user;
	(void)thread;
	uint64_t known = h->lookup ? find_content(h, i) : 0;
	h->mark[i].content = known ? known : read_content(h, i);
	return true;
}

void gt_source_contents(const struct gt_source *s, struct gt_sample_mark *mark, int64_t n, bool keep, char *note, size_t size)
{
	enum { CHUNK = 512, MAX_THREADS = 16 };
	struct hashing h = {.s = s, .mark = mark, .settled = (int64_t)time(NULL) - GT_CONTENT_SETTLED_S};
	*note = 0;
	if (keep && !s->archive)
		gt_content_index_open(s->root, &h.index, note, size);
	struct stat root;
	if (h.index && !fstat(s->fd, &root)) {
				h.found = calloc((size_t)n + 1, sizeof *h.found); /* without memory for new entries, the index stays as it is */
		h.device = root.st_dev;
		h.has_states = gt_fs_keeps_states(s->fd);
		h.lookup = h.has_states && gt_content_index_count(h.index) > 0;
	}
	gt_threads_run(gt_threads_for(n, CHUNK, MAX_THREADS), n, CHUNK, hash_content, &h);
	if (h.found)
		gt_content_index_save(h.index, h.found, n, note, size);
	free(h.found);
	gt_content_index_close(h.index);
}
