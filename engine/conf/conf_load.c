/* Loads a config from a file or from text in memory: source check, libconfig, --set, schema, resolved text. */
#include "conf/conf.h"
#include "base/descriptors.h"
#include "conf/schema.h"
#include "conf/source_reader.h"
#include "ir/op.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The source of a config: a text, a descriptor, or a path. */
struct source {
	const char *path; /* path of the file; if text is set: the name of the text in messages */
	const char *text; /* n bytes of text; NULL: read the file */
	size_t n;
	int fd;           /* if text is NULL: descriptor of the file; -1: `path` is opened */
	bool resolved;    /* gt_conf_load_resolved */
	const char *const *sets;
	int nsets;
};

/* Loads a config from s into c in all stages, and adds its errors to the list. */
static enum gt_code load_conf(struct gt_conf *c, const struct source *s, struct gt_problems *errors, struct gt_err *err)
{
	struct gt_reading rd = {.arena = c->arena, .conf = c, .errors = errors, .resolved = s->resolved};
	struct gt_clean clean;
	enum gt_code code =
	    s->text ? gt_source_check_text(c->arena, c->path, 1, s->text, s->n, &clean, err)
	            : gt_source_check_file(c->arena, c->path, s->fd, &clean, err);
	if (code == GT_OK)
		code = gt_ctree_parse(c->arena, &clean, &rd.root, err);
	gt_clean_free(&clean);
	if (code != GT_OK) /* a syntax error is always the only error in the list */
		return gt_conf_collect(&rd, code, err) == GT_OK ? GT_ECONFIG : code;
	rd.root->loc = (struct gt_source_loc){c->path, 1}; /* an error about a missing key of the top level names line 1 */
	rd.from_file = !s->text;
	c->tree = rd.root;
	for (int i = 0; i < s->nsets && code == GT_OK; i++)
		code = gt_conf_collect(&rd, gt_conf_set(rd.arena, rd.root, s->sets[i], err), err);
	if (code == GT_OK)
		code = gt_conf_read(&rd, err);
	if (code == GT_OK && !errors->n)
		return gt_conf_write(c, err);
	gt_problems_sort(errors, c->path);
	return errors->n && code == GT_OK ? GT_ECONFIG : code;
}

/* Loads a config. If errors is NULL, the caller needs only the first error. */
static enum gt_code open_conf(const struct source *s, struct gt_problems *errors, struct gt_conf **out, struct gt_err *err)
{
	struct gt_arena *a;
	struct gt_problems own = {0};
	struct gt_err found = {0};
	*out = NULL;
	GT_TRY(gt_arena_open(&a, err));
	own.arena = a;
	errors = errors ? errors : &own;
	struct gt_conf *c = gt_arena_alloc(a, 1, sizeof *c);
	enum gt_code code = GT_OK;
	if (!c || !(c->path = gt_arena_strdup(a, s->path)))
		code = gt_fail_memory(err, sizeof *c);
	if (code == GT_OK) {
		c->arena = a;
		code = load_conf(c, s, errors, &found);
		if (code == GT_ECONFIG && errors->n)
			gt_problems_get(errors, 0, &found);
		if (code != GT_OK && err)
			*err = found;
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
	return open_conf(&(struct source){.path = path, .fd = -1, .sets = sets, .nsets = nsets}, NULL, out, err);
}

enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err)
{
	return open_conf(&(struct source){.path = path, .fd = -1, .sets = sets, .nsets = nsets}, errors, out, err);
}

enum gt_code gt_conf_load_fd(int fd, const char *label, const char *const *sets, int nsets, struct gt_problems *errors,
                             struct gt_conf **out, struct gt_err *err)
{
	return open_conf(&(struct source){.path = label, .fd = fd, .sets = sets, .nsets = nsets}, errors, out, err);
}

enum gt_code gt_conf_keep_stream(const char *path, int *fd, struct gt_err *err)
{
	bool is_stdin = !strcmp(path, "-");
	char buf[1 << 14];
	size_t total = 0;
	ssize_t n = 1;
	int from = is_stdin ? 0 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	enum gt_code code = GT_OK;
	*fd = from < 0 ? -1 : memfd_create("gtrain-config", 0); /* ranks inherit it */
	if (*fd < 0)
		code = gt_fail_errno(err, GT_ENOINPUT, errno, "%s: cannot read this config", path);
	while (code == GT_OK && n && total <= GT_CONF_MAX_BYTES) { /* source_reader.c rejects a longer text, so it need not be read */
		n = read(from, buf, sizeof buf);
		if (n < 0 && errno != EINTR)
			code = gt_fail_errno(err, GT_ENOINPUT, errno, "%s: cannot read this config", path);
		else if (n > 0 && write(*fd, buf, (size_t)n) != n)
			code = gt_fail_errno(err, GT_EIO, errno, "%s: cannot copy this config to memory", path);
		total += n > 0 ? (size_t)n : 0;
	}
	if (from > 0)
		close(from);
	if (code != GT_OK)
		gt_fd_close(fd);
	return code;
}

enum gt_code gt_conf_load_text(const char *label, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                               struct gt_err *err)
{
	return open_conf(&(struct source){label, text, n, -1, false, sets, nsets}, NULL, out, err);
}

enum gt_code gt_conf_load_resolved(const char *label, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                                   struct gt_err *err)
{
	return open_conf(&(struct source){label, text, n, -1, true, sets, nsets}, NULL, out, err);
}

void gt_conf_free(struct gt_conf *c)
{
	if (c)
		gt_arena_close(c->arena);
}

enum gt_code gt_conf_refuse(const struct gt_conf *c, const char *path, struct gt_err *err, const char *fmt, ...)
{
	char text[sizeof err->msg];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return gt_conf_fail(err, gt_conf_location(c->tree, path), path, "%s", text);
}

enum gt_code gt_conf_at_layer(const struct gt_conf *c, int i, struct gt_err *err)
{
	const struct gt_layer_spec *l = &c->model.layers[i];
	char path[2 * 200];
	struct gt_err said = *err;
	snprintf(path, sizeof path, "model.layers[%d] (%s)", i, l->name);
	gt_conf_fail(err, (struct gt_source_loc){l->file, l->line}, path, "%s", said.msg);
	return err->code = said.code;
}

enum gt_code gt_conf_at_key(const struct gt_conf *c, struct gt_err *err)
{
	struct gt_err said = *err;
	char key[64];
	size_t n = strcspn(said.msg, ": ");
	if (said.msg[n] != ':' || n >= sizeof key)
		return said.code;
	snprintf(key, sizeof key, "%.*s", (int)n, said.msg);
	if (!gt_row_find(gt_rows, key))
		return said.code;
	gt_conf_refuse(c, key, err, "%s", said.msg + n + 1 + strspn(said.msg + n + 1, " "));
	return err->code = said.code;
}

enum gt_code gt_conf_loss(const struct gt_conf *c, struct gt_loss_spec *out, struct gt_err *err)
{
	memset(out, 0, sizeof *out);
	out->op = gt_op_find_loss(c->train.loss);
	if (!out->op)
		return gt_conf_refuse(c, "train.loss", err, "this build has no loss \"%s\"", c->train.loss);
	const struct gt_loss_row *row = gt_loss_row(out->op->code);
	memcpy(out->attr.number, c->train.loss_number[row - gt_loss_rows], sizeof out->attr.number);
	out->attr.ignore_index = c->train.ignore_index;
	out->dense = c->data.targets != GT_TARGETS_CLASS;
	const struct gt_floats *w = row->weight == GT_WEIGHT_BY_CLASS ? &c->train.class_weights : &c->train.pos_weight;
	if (row->weight == GT_WEIGHT_NONE || w->n == GT_FLOATS_AUTO)
		return GT_OK;
	out->attr.weights = w->v;
	out->attr.nweights = w->n;
	return GT_OK;
}
