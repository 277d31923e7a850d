/* gt_inspect and gt_export of gtrain_use.h: shows the contents of a checkpoint, and writes its weights to a file. */
#include "base/arena.h"
#include "base/fileio.h"
#include "gtrain_use.h"
#include "store/ckpt_scan.h"
#include "store/data_facts.h"
#include "store/st_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gt_code describe_checkpoint(const struct gt_ckpt *c, struct gt_inspect *r, struct gt_err *err)
{
	const struct gt_ckpt_meta *m = gt_ckpt_meta(c);
	struct gt_ckpt_tensor t;
	if ((size_t)snprintf(r->path, sizeof r->path, "%s", gt_ckpt_path(c)) >= sizeof r->path)
		return gt_fail(err, GT_EFAIL, "%s: the path is too long", gt_ckpt_path(c));
	r->format = gt_ckpt_format(c);
	r->step = m->step;
	r->epoch = m->epoch + (m->cursor > 0);
	r->world = m->world;
	r->seconds = m->seconds;
	r->has_best = m->has_best;
	r->best = m->best;
	r->best_step = m->best_step;
	r->best_epoch = m->best_epoch;
	if (m->has_best && m->best_metric)
		GT_NEW_STR(r->best_metric, gt_arena_strdup(r->arena, m->best_metric), err);
	GT_NEW_STR(r->name, gt_arena_strdup(r->arena, m->name), err);
	struct gt_data_facts facts;
	GT_TRY(gt_data_facts_read(c, r->arena, &facts, err));
	r->class_name = facts.class;
	r->nclasses = facts.nclasses;
	int n = 0;
	for (int file = 0; file < 2; file++)
		for (int i = 0; gt_ckpt_tensor_at(c, file, i, &t); i++)
			n++;
	GT_NEW(r->tensors, r->arena, n, err);
	for (int file = 0; file < 2; file++) {
		for (int i = 0; gt_ckpt_tensor_at(c, file, i, &t); i++) {
			struct gt_inspect_tensor *row = &r->tensors[r->ntensors++];
			row->file = gt_ckpt_file_name(file);
			GT_NEW_STR(row->name, gt_arena_strdup(r->arena, t.name), err);
			row->dtype = gt_dtype_name(t.desc.dtype);
			gt_tdesc_text(&t.desc, row->shape, sizeof row->shape);
			row->bytes = gt_tdesc_bytes(&t.desc);
		}
	}
	return GT_OK;
}

enum gt_code gt_inspect(const char *ckpt, bool verify, struct gt_inspect **out, struct gt_err *err)
{
	struct gt_ckpt *c;
	struct gt_arena *a;
	*out = NULL;
	GT_TRY(gt_ckpt_open(ckpt, NULL, verify, NULL, NULL, &c, err));
	enum gt_code code = gt_arena_open(&a, err);
	if (!code) {
		struct gt_inspect *r = gt_arena_alloc(a, 1, sizeof *r);
		if (r) {
			r->arena = a;
			r->verified = verify;
			code = describe_checkpoint(c, r, err);
		} else {
			code = gt_fail_memory(err, sizeof *r);
		}
		if (code)
			gt_arena_close(a);
		else
			*out = r;
	}
	gt_ckpt_close(c);
	return code;
}

void gt_inspect_free(struct gt_inspect *r)
{
	if (r)
		gt_arena_close(r->arena);
}

struct copy {
	int fd;
	const char *path;
};

static enum gt_code copy_piece(void *user, const void *data, size_t n, struct gt_err *err)
{
	const struct copy *c = user;
	return gt_file_write(c->fd, c->path, data, n, err);
}

static enum gt_code copy_model(const struct gt_ckpt *c, const char *path, struct gt_err *err)
{
	char tmp[GT_PATH_SIZE];
	struct copy to = {.path = tmp};
	struct stat st;
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file", path);
	/* an export is meant for other users too, so the umask decides its mode */
	GT_TRY(gt_file_create_temporary(tmp, path, 0666, &to.fd, err));
	enum gt_code code = gt_st_each(gt_ckpt_file(c, GT_CKPT_MODEL), copy_piece, &to, err);
	if (code)
		close(to.fd);
	else
		code = gt_file_sync_close(to.fd, tmp, err);
	if (!code)
		code = gt_file_rename(tmp, path, err);
	if (code)
		unlink(tmp);
	return code;
}

struct pieces {
	bool (*fn)(void *user, const void *data, size_t n);
	void *user;
	bool ended; /* fn has returned false */
};

static enum gt_code pass_piece(void *user, const void *data, size_t n, struct gt_err *err)
{
	struct pieces *p = user;
	p->ended = !p->fn(p->user, data, n);
	return p->ended ? gt_fail(err, GT_EIO, "the copy was ended") : GT_OK; /* stops gt_st_each; nobody sees the error */
}

enum gt_code gt_export_pieces(const char *ckpt, bool (*fn)(void *user, const void *data, size_t n), void *user, struct gt_err *err)
{
	struct gt_ckpt *c;
	struct pieces p = {fn, user, false};
	GT_TRY(gt_ckpt_open(ckpt, NULL, true, NULL, NULL, &c, err));
	enum gt_code code = gt_st_each(gt_ckpt_file(c, GT_CKPT_MODEL), pass_piece, &p, err);
	gt_ckpt_close(c);
	return p.ended ? GT_OK : code;
}

enum gt_code gt_export(const char *ckpt, const char *path, struct gt_err *err)
{
	struct gt_ckpt *c;
	GT_TRY(gt_ckpt_open(ckpt, NULL, true, NULL, NULL, &c, err));
	enum gt_code code = copy_model(c, path, err);
	gt_ckpt_close(c);
	return code;
}
