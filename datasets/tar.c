#include "tar.h"
#include "base/arena.h"
#include "tar_reader.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gt_code read_archive(void *user, uint64_t offset, void *buf, size_t n, size_t *got, struct gt_err *err)
{
	const struct gt_source *s = user;
	for (*got = 0; *got < n;) {
		ssize_t r = pread(s->fd, (char *)buf + *got, n - *got, (off_t)(offset + *got));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return gt_fail(err, GT_EIO, "%s: %s", s->root, strerror(errno));
		if (r == 0)
			break;
		*got += (size_t)r;
	}
	return GT_OK;
}

static bool leaves_archive(const char *path)
{
	if (*path == '/')
		return true;
	for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
			return true;
	return false;
}

static enum gt_code add_member(struct gt_source *s, const struct gt_tar_member *m, struct gt_err *err)
{
	if (leaves_archive(m->path))
		return gt_fail(err, GT_EDATA, "%s: the path of member %.300s leads out of the archive", s->root, m->path);
	if (m->type == '1' || m->type == '2')
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a link; expected a regular file, because the archive is read in place", s->root,
		               m->path);
	if (m->sparse)
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a sparse file; expected a regular file, because the archive is read in place",
		               s->root, m->path);
	if (!gt_tar_is_file(m))
		return gt_fail(err, GT_EDATA, "%s: member %.300s is a special file of type '%c'; expected a regular file", s->root, m->path,
		               m->type >= ' ' && m->type < 127 ? m->type : '?');
	return gt_source_add(s, m->path, m->offset, m->size, err);
}

static int by_path_and_place(const void *a, const void *b, void *names)
{
	const struct gt_source_file *x = a, *y = b;
	int d = strcmp((char *)names + x->name, (char *)names + y->name);
	return d ? d : (x->offset > y->offset) - (x->offset < y->offset);
}

/* Of members of the same path, keeps the last one, which tar would leave on the disk. */
static void keep_last(struct gt_source *s)
{
	int64_t kept = 0;
	if (s->n > 1)
		qsort_r(s->file, (size_t)s->n, sizeof *s->file, by_path_and_place, s->names);
	for (int64_t i = 0; i < s->n; i++)
		if (i + 1 == s->n || strcmp(gt_source_path(s, i), gt_source_path(s, i + 1)))
			s->file[kept++] = s->file[i];
	s->n = kept;
}

enum gt_code gt_tar_list(struct gt_source *s, bool (*wanted)(const char *path), struct gt_err *err)
{
	struct gt_tar_reader *t;
	struct gt_tar_member m;
	struct stat st;
	enum gt_code code;
	if (fstat(s->fd, &st))
		return gt_fail(err, GT_EIO, "%s: %s", s->root, strerror(errno));
	if (!(t = calloc(1, sizeof *t)))
		return gt_fail_memory(err, sizeof *t);
	t->name = s->root;
	t->bytes = (uint64_t)st.st_size;
	t->read = read_archive;
	t->user = s;
	while ((code = gt_tar_next(t, &m, err)) == GT_OK && m.path)
		if (m.type != '5' && wanted(m.path) && (code = add_member(s, &m, err)) != GT_OK)
			break;
	free(t);
	if (code == GT_OK)
		keep_last(s);
	return code;
}
