/* Commits a checkpoint: writes its files and its manifest into a temporary directory, makes them durable, then renames the directory. */
#include "base/fileio.h"
#include "store/ckpt_scan.h"
#include "store/safetensors_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct save {
	struct gt_ckpt_dir *dir;
	const struct gt_ckpt_meta *meta;
	const struct gt_ckpt_tensor *tensors[2];
	int count[2];
	struct gt_ckpt_manifest manifest;
	struct gt_digest *digest;
	char tmp[GT_PATH_SIZE], to[GT_PATH_SIZE];
	bool sync_failed; /* an fsync has failed: the files in the temporary directory may not be on the disk */
};

static enum gt_code finish_file(struct save *s, int fd, const char *path, enum gt_code code, struct gt_err *err)
{
	if (code) {
		close(fd);
		return code;
	}
	code = gt_file_sync_close(fd, path, err);
	s->sync_failed |= code != GT_OK;
	return code;
}

static enum gt_code write_tensors(struct save *s, int file, struct gt_err *err)
{
	static const char *const metadata[] = {"format", "pt", NULL};
	char path[GT_PATH_SIZE];
	uint64_t bytes;
	int fd, n = s->count[file];
	if (!n && file == GT_CKPT_OPTIMIZER)
		return GT_OK;
	struct gt_st_tensor *t = calloc((size_t)n + 1, sizeof *t);
	if (!t)
		return gt_fail_memory(err, (size_t)n * sizeof *t);
	for (int i = 0; i < n; i++) {
		const struct gt_ckpt_tensor *x = &s->tensors[file][i];
		t[i] = (struct gt_st_tensor){.name = x->name, .desc = x->desc, .data = x->data, .read = x->read, .user = x->user, .key = x->key};
	}
	enum gt_code code = gt_path_join(path, s->tmp, gt_ckpt_file_name(file), err);
	if (!code)
		code = gt_file_create(path, 0666, &fd, err);
	if (!code) {
		gt_digest_start(s->digest);
		code = gt_st_write_digest(fd, path, t, n, metadata, s->digest, &bytes, err);
		code = finish_file(s, fd, path, code, err);
	}
	free(t);
	if (code)
		return code;
	s->manifest.file[file].there = true;
	s->manifest.file[file].bytes = (int64_t)bytes;
	gt_digest_get(s->digest, s->manifest.file[file].digest);
	return GT_OK;
}

static enum gt_code write_text(struct save *s, const char *name, const char *text, size_t n, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	int fd;
	GT_TRY(gt_path_join(path, s->tmp, name, err));
	GT_TRY(gt_file_create(path, 0666, &fd, err));
	return finish_file(s, fd, path, gt_file_write(fd, path, text, n, err), err);
}

/* Writes a text file of the checkpoint and adds it to the manifest. text: NULL: the checkpoint has no such file. */
static enum gt_code write_listed_text(struct save *s, int file, const char *text, struct gt_err *err)
{
	if (!text)
		return GT_OK;
	size_t n = strlen(text);
	GT_TRY(write_text(s, gt_ckpt_file_name(file), text, n, err));
	s->manifest.file[file].there = true;
	s->manifest.file[file].bytes = (int64_t)n;
	gt_digest_bytes(text, n, s->manifest.file[file].digest);
	return GT_OK;
}

static enum gt_code write_manifest(struct save *s, struct gt_err *err)
{
	struct gt_json j = {0};
	enum gt_code code = gt_ckpt_manifest_print(&s->manifest, &j, err);
	if (!code)
		code = write_text(s, GT_CKPT_MANIFEST, j.text, j.len, err);
	gt_json_free(&j);
	return code;
}

static enum gt_code write_all(struct save *s, struct gt_err *err)
{
	char name[GT_CKPT_NAME], nonce[GT_NONCE_SIZE];
	gt_ckpt_name_print(name, s->meta->step);
	gt_nonce(nonce);
	strcat(strcat(name, ".tmp-"), nonce);
	GT_TRY(gt_path_join(s->tmp, s->dir->path, name, err));
	s->manifest = (struct gt_ckpt_manifest){.meta = *s->meta, .serial = s->dir->serial + 1, .parent = s->dir->parent};
	if (mkdir(s->tmp, 0777))
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot create directory", s->tmp);
	GT_TRY(write_tensors(s, GT_CKPT_MODEL, err));
	GT_TRY(write_tensors(s, GT_CKPT_OPTIMIZER, err));
	GT_TRY(write_listed_text(s, GT_CKPT_CONFIG, s->meta->config, err));
	GT_TRY(write_listed_text(s, GT_CKPT_DATA, s->meta->data, err));
	GT_TRY(write_manifest(s, err));
	enum gt_code code = gt_dir_sync(s->tmp, err);
	s->sync_failed |= code != GT_OK;
	return code;
}

/* Renames the temporary directory to the checkpoint's final name. An older checkpoint of the same step may have this name and is displaced.
 * Sets s->tmp to the path of a directory that the caller must remove, or to "". */
static enum gt_code rename_to_final(struct save *s, struct gt_err *err)
{
	struct stat st;
	char prev[GT_PATH_SIZE], name[GT_CKPT_NAME], nonce[GT_NONCE_SIZE];
	if (lstat(s->to, &st)) {
		if (errno != ENOENT)
			return gt_fail_errno(err, GT_EIO, errno, "%s: cannot stat", s->to);
		if (rename(s->tmp, s->to))
			return gt_fail_errno(err, GT_EIO, errno, "%s: cannot rename to %s", s->tmp, s->to);
		s->tmp[0] = 0;
		return GT_OK;
	}
	if (!renameat2(AT_FDCWD, s->tmp, AT_FDCWD, s->to, RENAME_EXCHANGE))
		return GT_OK;
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot exchange it with %s", s->tmp, s->to);
	gt_ckpt_name_print(name, s->meta->step);
	gt_nonce(nonce);
	strcat(strcat(name, ".prev-"), nonce);
	GT_TRY(gt_path_join(prev, s->dir->path, name, err));
	if (rename(s->to, prev))
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot rename to %s", s->to, prev);
	/* The first rename must be durable before the second one. Otherwise, the disk may have only the second rename after a power cut, and
	 * the older checkpoint, which may belong to a history, would be lost. */
	enum gt_code code = gt_dir_sync(s->dir->path, err);
	if (!code && rename(s->tmp, s->to))
		code = gt_fail_errno(err, GT_EIO, errno, "%s: cannot rename to %s", s->tmp, s->to);
	/* if restoring the name of the older checkpoint fails too, readers use it under its temporary name, and the next run renames it */
	if (code && rename(prev, s->to))
		gt_fail_suffix(err, "the older checkpoint of this step is now %s", name);
	if (code)
		return code;
	strcpy(s->tmp, prev);
	return GT_OK;
}

/* Does the work that follows the rename of a commit: moves histories, installs the files next-*, and sets the symlinks. If a kill
 * interrupts it, the next run that opens the directory does this work. */
static enum gt_code publish_links(struct save *s, struct gt_err *err)
{
	struct gt_ckpt_dir *d = s->dir;
	bool changed = false;
	if (d->back) {
		GT_TRY(gt_ckpt_history_move(d->path, d->serial, d->parent, d->step, err));
		GT_TRY(gt_ckpt_next_commit(d->path, d->serial, err));
		d->back = false;
	}
	d->parent = d->serial;
	d->step = s->meta->step;
	GT_TRY(gt_ckpt_link_set(d->path, "best", s->meta->has_best ? s->meta->best_step : -1, &changed, err));
	GT_TRY(gt_ckpt_link_set(d->path, "latest", s->meta->step, &changed, err));
	return gt_dir_sync(d->path, err);
}

static enum gt_code save_checkpoint(struct save *s, struct gt_err *err)
{
	char name[GT_CKPT_NAME];
	if (s->dir->back)
		GT_TRY(gt_ckpt_history_clear(s->dir, err));
	gt_ckpt_name_print(name, s->meta->step);
	GT_TRY(gt_path_join(s->to, s->dir->path, name, err));
	enum gt_code code = write_all(s, err);
	if (code && s->sync_failed) {
		/* After a failed fsync the kernel may have dropped the pages and marked them clean, so that a second fsync of the same file would
		 * succeed although data is lost (PostgreSQL's "fsyncgate"). All files are therefore written again, once. */
		gt_tree_remove(s->tmp, NULL);
		code = write_all(s, err);
	}
	if (!code)
		code = rename_to_final(s, err);
	if (code) {
		if (s->tmp[0])
			gt_tree_remove(s->tmp, NULL);
		return code;
	}
	s->dir->serial++;
	GT_TRY(gt_dir_sync(s->dir->path, err));
	/* the checkpoint is committed by the rename in rename_to_final() */
	GT_TRY(publish_links(s, err));
	return s->tmp[0] ? gt_tree_remove(s->tmp, err) : GT_OK;
}

static bool is_in_range(int64_t v)
{
	return v >= 0 && v <= (int64_t)1 << 53; /* JSON numbers are doubles, which represent integers only in this range exactly */
}

enum gt_code gt_ckpt_save(struct gt_ckpt_dir *d, const struct gt_ckpt_meta *m, const struct gt_ckpt_tensor *model, int nmodel,
                          const struct gt_ckpt_tensor *optim, int noptim, char *path, size_t size, struct gt_err *err)
{
	if (!is_in_range(m->step) || !is_in_range(m->epoch) || !is_in_range(m->cursor) || !is_in_range(m->schedule_step) ||
	    !is_in_range(m->epoch_steps) || !is_in_range(m->world) || !is_in_range(m->good_steps) ||
	    (m->has_best && (!is_in_range(m->best_step) || m->best_epoch > (int64_t)1 << 53)) || !is_in_range(m->peak_epoch) || !m->name ||
	    !m->config || strlen(m->config) > GT_CKPT_TEXT_MAX)
		return gt_fail(err, GT_EINTERNAL, "a value of the training state is out of range for a checkpoint");
	struct save *s = calloc(1, sizeof *s);
	if (!s)
		return gt_fail_memory(err, sizeof *s);
	s->dir = d;
	s->meta = m;
	s->tensors[GT_CKPT_MODEL] = model;
	s->count[GT_CKPT_MODEL] = nmodel;
	s->tensors[GT_CKPT_OPTIMIZER] = optim;
	s->count[GT_CKPT_OPTIMIZER] = noptim;
	enum gt_code code = gt_digest_open(&s->digest, err);
	if (!code)
		code = save_checkpoint(s, err);
	/* the directory was writable when the run began, so the error is one of the device */
	code = gt_code_replace(code, GT_ECANTCREAT, GT_EIO, err);
	if (!code && (size_t)snprintf(path, size, "%s", s->to) >= size)
		code = gt_fail(err, GT_EINTERNAL, "%s: expected a path of less than %zu bytes", s->to, size);
	gt_digest_close(s->digest);
	free(s);
	return code;
}
