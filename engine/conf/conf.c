/* From a file, or text in memory, to a checked config: guard, libconfig, --set, schema, resolved text. */
#include "conf/conf.h"
#include "conf/guard.h"
#include "conf/schema.h"
#include "ir/op.h"
#include <string.h>

/* text NULL: read path. */
static enum gt_code load(struct gt_conf *c, const char *text, size_t n, const char *const *sets, int nsets, struct gt_err *err)
{
	struct gt_reading rd = {.arena = c->arena, .conf = c};
	struct gt_clean clean;
	enum gt_code code = text ? gt_guard_text(c->arena, c->path, 1, text, n, &clean, err) : gt_guard_file(c->arena, c->path, &clean, err);
	if (code == GT_OK)
		code = gt_ctree_parse(c->arena, &clean, &rd.root, err);
	gt_clean_free(&clean);
	GT_TRY(code);
	rd.root->place = (struct gt_place){c->path, 1}; /* where what is missing altogether would stand */
	for (int i = 0; i < nsets; i++)
		GT_TRY(gt_conf_set(c->arena, rd.root, sets[i], err));
	GT_TRY(gt_conf_read(&rd, err));
	return gt_conf_write(c, err);
}

static enum gt_code open_conf(const char *path, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                              struct gt_err *err)
{
	struct gt_arena *a;
	*out = NULL;
	GT_TRY(gt_arena_open(&a, err));
	struct gt_conf *c = gt_arena_alloc(a, 1, sizeof *c);
	enum gt_code code = GT_OK;
	if (!c || !(c->path = gt_arena_strdup(a, path)))
		code = gt_fail_memory(err, sizeof *c);
	if (code == GT_OK) {
		c->arena = a;
		code = load(c, text, n, sets, nsets, err);
	}
	if (code != GT_OK) {
		gt_arena_close(a);
		return code;
	}
	*out = c;
	return GT_OK;
}

enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err)
{
	return open_conf(path, NULL, 0, sets, nsets, out, err);
}

enum gt_code gt_conf_load_text(const char *label, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                               struct gt_err *err)
{
	return open_conf(label, text, n, sets, nsets, out, err);
}

void gt_conf_free(struct gt_conf *c)
{
	if (c)
		gt_arena_close(c->arena);
}

enum gt_code gt_conf_loss(const struct gt_conf *c, struct gt_loss_spec *out, struct gt_err *err)
{
	memset(out, 0, sizeof *out);
	out->op = gt_op_find_loss(c->train.loss);
	if (!out->op)
		return gt_fail(err, GT_ECONFIG, "%s: train.loss: this build has no loss \"%s\"", c->path, c->train.loss);
	out->attr.label_smoothing = c->train.label_smoothing;
	out->attr.ignore_index = c->train.ignore_index;
	return GT_OK;
}
