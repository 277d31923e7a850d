#include "train/logfile.h"
#include "base/arena.h"
#include "base/fileio.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct gt_logfile {
	int fd;
	off_t end;           /* end of the last complete record */
	int64_t lost;        /* number of lost records */
	bool torn;           /* an incomplete record remains at the end, because truncating it failed: no more records are written */
	bool written;
	struct gt_err first; /* the first failure */
	char name[GT_PATH_SIZE];
};

enum gt_code gt_logfile_create(const char *path, const char *name, struct gt_logfile **out, struct gt_err *err)
{
	struct gt_logfile *f = calloc(1, sizeof *f);
	*out = NULL;
	if (!f)
		return gt_fail_memory(err, sizeof *f);
	snprintf(f->name, sizeof f->name, "%s", name);
	enum gt_code code = gt_file_create(path, 0666, &f->fd, err);
	if (code == GT_OK && fcntl(f->fd, F_SETFL, O_APPEND)) { /* append mode, because the user may truncate the file while it is open */
		code = gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot append", path);
		close(f->fd);
	}
	if (code) {
		free(f);
		return code;
	}
	*out = f;
	return GT_OK;
}

static void keep_first_error(struct gt_logfile *f, const struct gt_err *why)
{
	if (f->first.code == GT_OK)
		f->first = *why;
}

void gt_logfile_write(struct gt_logfile *f, const void *data, size_t n)
{
	struct gt_err why = {0};
	if (!f)
		return;
	if (!f->torn && gt_file_write(f->fd, f->name, data, n, &why) == GT_OK) {
		f->end = lseek(f->fd, 0, SEEK_CUR);
		return;
	}
	f->lost++;
	if (f->torn)
		return;
	keep_first_error(f, &why);
	f->torn = lseek(f->fd, 0, SEEK_CUR) != f->end && ftruncate(f->fd, f->end);
}

void gt_logfile_sync(struct gt_logfile *f)
{
	struct gt_err why = {0};
	if (!f || !fsync(f->fd))
		return;
	gt_fail_errno(&why, GT_EIO, errno, "%s: cannot fsync", f->name);
	keep_first_error(f, &why);
}

const char *gt_logfile_error(struct gt_logfile *f)
{
	if (!f || f->written || f->first.code == GT_OK)
		return NULL;
	f->written = true;
	return f->first.msg;
}

enum gt_code gt_logfile_close(struct gt_logfile *f, struct gt_err *err)
{
	if (!f)
		return GT_OK;
	struct gt_err why;
	enum gt_code code = gt_file_sync_close(f->fd, f->name, &why);
	if (code)
		keep_first_error(f, &why);
	code = f->first.code;
	if (code)
		gt_fail_copy(err, &f->first);
	if (f->lost)
		gt_fail_suffix(err, "%lld records of the log are lost, but the checkpoints are complete", (long long)f->lost);
	else if (code)
		gt_fail_suffix(err, "the end of the log may be lost, but the checkpoints are complete");
	free(f);
	return code;
}
