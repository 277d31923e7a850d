/* gt_inspect and gt_export of gtrain_use.h: show the contents of a checkpoint, and write its weights to a file. */
#include "base/arena.h"
#include "base/fileio.h"
#include "base/json.h"
#include "gtrain_use.h"
#include "store/ckpt_scan.h"
#include "store/data_facts.h"
#include "store/safetensors_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* checkpoints of an earlier version lack the epoch and the metric of the best result */
static void write_best(struct gt_json *j, const struct gt_ckpt_meta *m)
{
	if (!m->has_best) {
		gt_json_null(j, "best");
		return;
	}
	gt_json_object(j, "best");
	if (m->best_metric)
		gt_json_string(j, "metric", m->best_metric);
	gt_json_add(j, GT_NUM("value", m->best, 9), GT_INT("step", m->best_step));
	if (m->best_epoch >= 0)
		gt_json_int(j, "epoch", m->best_epoch);
	gt_json_end(j);
}

/* Writes the description of a checkpoint as JSON. classes: names of the classes, indexed by label. */
static enum gt_code write_checkpoint(const struct gt_ckpt *c, bool verified, struct gt_arena *a, struct gt_json *j, struct gt_err *err)
{
	const struct gt_ckpt_meta *m = gt_ckpt_meta(c);
	struct gt_data_facts facts;
	struct gt_ckpt_tensor t;
	GT_TRY(gt_data_facts_read(c, a, &facts, err));
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("path", gt_ckpt_path(c)), GT_STR("name", m->name), GT_INT("format", gt_ckpt_format(c)), GT_INT("step", m->step),
	            GT_INT("epoch", m->epoch + (m->cursor > 0)), GT_INT("world", m->world), GT_NUM("seconds", m->seconds, 6));
	write_best(j, m);
	gt_json_bool(j, "verified", verified);
	if (facts.nclasses) {
		gt_json_array(j, "classes");
		for (int64_t i = 0; i < facts.nclasses; i++)
			gt_json_string(j, NULL, facts.class[i]);
		gt_json_end(j);
	} else {
		gt_json_null(j, "classes");
	}
	gt_json_array(j, "tensors");
	for (int file = 0; file < 2; file++) {
		for (int i = 0; gt_ckpt_tensor_at(c, file, i, &t); i++) {
			char shape[96];
			gt_tdesc_text(&t.desc, shape, sizeof shape);
			gt_json_row(j, NULL, GT_STR("file", gt_ckpt_file_name(file)), GT_STR("name", t.name),
			            GT_STR("dtype", gt_dtype_name(t.desc.dtype)), GT_STR("shape", shape), GT_UINT("bytes", gt_tdesc_bytes(&t.desc)));
		}
	}
	gt_json_end(j);
	gt_json_end(j);
	return GT_OK;
}

enum gt_code gt_inspect(const char *ckpt, bool verify, struct gt_json *j, struct gt_err *err)
{
	struct gt_ckpt *c;
	struct gt_arena *a;
	GT_TRY(gt_ckpt_open(ckpt, NULL, verify, NULL, NULL, &c, err));
	enum gt_code code = gt_arena_open(&a, err);
	if (code == GT_OK) {
		code = write_checkpoint(c, verify, a, j, err);
		gt_arena_close(a);
	}
	gt_ckpt_close(c);
	return code;
}

static enum gt_code copy_model(const struct gt_ckpt *c, const char *path, struct gt_err *err)
{
	char tmp[GT_PATH_SIZE];
	int fd;
	struct stat st;
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file", path);
	/* other users may read an export, so the umask determines its mode */
	GT_TRY(gt_file_create_temporary(tmp, path, 0666, &fd, err));
	return gt_file_commit(gt_st_copy(gt_ckpt_file(c, GT_CKPT_MODEL), fd, tmp, err), fd, tmp, path, err);
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
	/* an error ends gt_st_each; gt_export_pieces removes this error, because fn has asked for the end */
	return p->ended ? gt_fail(err, GT_EIO, "the receiver of the weights has ended the export") : GT_OK;
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
