/* Checkpoints whose every byte is a function of the step, so that a reader can tell whether it got the right one, whole. */
#ifndef GT_TESTS_CKPT_FIXTURE_H
#define GT_TESTS_CKPT_FIXTURE_H

#include "store/ckpt.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define FIX_W 33
#define FIX_CONFIG "schema = 1;\nname = \"fixture\";\n"

struct fixture {
	float w[FIX_W], b[3], m[FIX_W];
	int64_t seen;
	struct gt_ckpt_tensor model[3], optim[1];
	struct gt_ckpt_meta meta;
};

static inline void fix_make(struct fixture *f, int64_t step)
{
	static const int64_t dw[2] = {11, 3}, db[1] = {3};
	memset(f, 0, sizeof *f);
	for (int i = 0; i < FIX_W; i++) {
		f->w[i] = (float)step + (float)i / 64;
		f->m[i] = (float)step * 2 - (float)i;
	}
	for (int i = 0; i < 3; i++)
		f->b[i] = (float)(step * 3 + i);
	f->seen = step * 1000003;
	f->model[0] = (struct gt_ckpt_tensor){.name = "fc.weight", .desc = gt_tdesc_make(GT_F32, 2, dw, false), .data = f->w};
	f->model[1] = (struct gt_ckpt_tensor){.name = "fc.bias", .desc = gt_tdesc_make(GT_F32, 1, db, false), .data = f->b};
	f->model[2] =
	    (struct gt_ckpt_tensor){.name = "bn.num_batches_tracked", .desc = gt_tdesc_make(GT_I64, 0, NULL, false), .data = &f->seen};
	f->optim[0] = (struct gt_ckpt_tensor){.name = "momentum.fc.weight", .desc = gt_tdesc_make(GT_F32, 2, dw, false), .data = f->m};
	f->meta = (struct gt_ckpt_meta){.step = step,
	                                .epoch = step / 10,
	                                .cursor = step * 32,
	                                .world = 1,
	                                .seed = UINT64_MAX - (uint64_t)step,
	                                .has_best = step > 0,
	                                .best = 1.0 / (double)(step + 1),
	                                .best_step = step - step % 3,
	                                .best_epoch = (step - step % 3) / 10 + 1,
	                                .best_metric = "test/loss",
	                                .best_mode = "min",
	                                .peak_acc = (double)step / 1024,
	                                .peak_epoch = step / 10 + 1,
	                                .loss_scale = 65536,
	                                .good_steps = step,
	                                .seconds = (double)step / 7,
	                                .name = "fixture",
	                                .config = FIX_CONFIG};
}

/* Every third step is the best so far. */
static inline enum gt_code fix_save(struct gt_ckpt_dir *d, int64_t step, struct gt_err *err)
{
	struct fixture f;
	char path[512];
	fix_make(&f, step);
	return gt_ckpt_save(d, &f.meta, f.model, 3, f.optim, 1, path, sizeof path, err);
}

/* NULL if c is the checkpoint of its step, to the last bit; else what differs. */
static inline const char *fix_differs(const struct gt_ckpt *c)
{
	struct fixture f;
	const struct gt_ckpt_meta *m = gt_ckpt_meta(c);
	struct gt_err e;
	struct gt_ckpt_tensor t;
	float buf[FIX_W];
	fix_make(&f, m->step);
	if (m->epoch != f.meta.epoch || m->cursor != f.meta.cursor || m->world != 1 || m->seed != f.meta.seed ||
	    m->has_best != f.meta.has_best || m->loss_scale != 65536 || m->good_steps != m->step || m->seconds != f.meta.seconds ||
	    strcmp(m->name, "fixture") ||
	    (m->has_best && (m->best != f.meta.best || m->best_step != f.meta.best_step || m->best_epoch != f.meta.best_epoch ||
	                     !m->best_metric || strcmp(m->best_metric, f.meta.best_metric) || strcmp(m->best_mode, f.meta.best_mode))) ||
	    m->peak_epoch != f.meta.peak_epoch || m->peak_acc != f.meta.peak_acc)
		return "meta";
	if (strcmp(m->config, FIX_CONFIG))
		return "config";
	if (gt_ckpt_tensor_at(c, 0, 3, &t) || gt_ckpt_tensor_at(c, 1, 1, &t))
		return "the number of tensors";
	for (int i = 0; i < 3; i++)
		if (gt_ckpt_read(c, 0, f.model[i].name, &f.model[i].desc, buf, &e) ||
		    memcmp(buf, f.model[i].data, gt_tdesc_bytes(&f.model[i].desc)))
			return f.model[i].name;
	if (gt_ckpt_read(c, 1, f.optim[0].name, &f.optim[0].desc, buf, &e) || memcmp(buf, f.m, sizeof f.m))
		return f.optim[0].name;
	return NULL;
}

/* The oracle: the newest checkpoint that verifies is of step lo..hi and whole. *step: which. False: why (size bytes) says so. */
static inline bool fix_oracle(const char *dir, int64_t lo, int64_t hi, int64_t *step, char *why, size_t size)
{
	struct gt_ckpt *c;
	struct gt_err e;
	*step = -1;
	if (gt_ckpt_open(dir, "latest", true, NULL, NULL, &c, &e)) {
		snprintf(why, size, "%s", e.msg);
		return lo < 0; /* nothing was committed yet */
	}
	const char *d = fix_differs(c);
	*step = gt_ckpt_meta(c)->step;
	gt_ckpt_close(c);
	if (d)
		snprintf(why, size, "step %lld differs in %s", (long long)*step, d);
	else if (*step < lo || *step > hi)
		snprintf(why, size, "step %lld was found, expected %lld..%lld", (long long)*step, (long long)lo, (long long)hi);
	return !d && *step >= lo && *step <= hi;
}

/* The number of temporary directories in dir: of unfinished, removed and displaced checkpoints. */
static inline int fix_count_leftovers(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += strstr(e->d_name, ".tmp-") || strstr(e->d_name, ".old-") || strstr(e->d_name, ".prev-");
	if (d)
		closedir(d);
	return n;
}

#endif
