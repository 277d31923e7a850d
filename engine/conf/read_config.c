/* Reads the whole config: all sections by their rows, then augmentations, groups and layers, and then checks for contradictions. */
#include "base/shell_word.h"
#include "conf/metric_name.h"
#include "conf/schema.h"
#include "known_weights.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Sets the defaults that depend on the type, and copies data.mean, with which random_erasing fills. given: the entry in the config. */
static void augment_defaults(struct gt_transform *t, const struct gt_cnode *given, const struct gt_floats *mean)
{
	bool erasing = t->type == GT_TF_RANDOM_ERASING;
	if (erasing || t->type == GT_TF_RANDOM_RESIZED_CROP) {
		if (!gt_conf_given(given, "scale"))
			t->scale[0] = erasing ? 0.02 : 0.08, t->scale[1] = erasing ? 0.33 : 1;
		if (!gt_conf_given(given, "ratio"))
			t->ratio[0] = erasing ? 0.3 : 3.0 / 4, t->ratio[1] = erasing ? 3.3 : 4.0 / 3;
	}
	if (!gt_conf_given(given, "p") && (erasing || t->type == GT_TF_HFLIP || t->type == GT_TF_VFLIP || t->type == GT_TF_GRAYSCALE))
		t->p = t->type == GT_TF_GRAYSCALE ? 0.1 : 0.5;
	if (!gt_conf_given(given, "interpolation") && (t->type == GT_TF_RANDOM_RESIZED_CROP || t->type == GT_TF_RESIZE))
		t->interpolation = GT_INTERP_BILINEAR;
	if (erasing)
		t->mean = *mean;
}

/* Sets the default probabilities of mixup and cutmix, which are applied to different batches. */
static void mixing_defaults(const struct gt_cnode *list, struct gt_transform *t)
{
	for (int i = 0; i < list->nkids; i++)
		if (t[i].type >= GT_TF_MIXUP && !gt_conf_given(list->kid[i], "p"))
			t[i].p = (i && t[i - 1].type >= GT_TF_MIXUP) || (i + 1 < list->nkids && t[i + 1].type >= GT_TF_MIXUP) ? 0.5 : 1;
}

static enum gt_code read_transform(struct gt_reading *rd, const struct gt_cnode *entry, const char *shown, void *element,
                                   struct gt_err *err)
{
	struct gt_transform *t = element;
	char path[96], got[64];
	GT_TRY(gt_object_read(rd, gt_rows_augment, entry, shown, t, err));
	augment_defaults(t, entry, &rd->conf->data.mean);
	if (t->type < GT_TF_MIXUP || !strncmp(shown, "data.augment", 12))
		return GT_OK;
	snprintf(path, sizeof path, "%stype", shown);
	return gt_conf_fail(err, entry->loc, path, "expected a transform of single images, got \"%s\", which only data.augment can use",
	                    gt_transform_word(t->type, got));
}

/* Reads the list of transforms with this path into t, which has room for GT_MAX_TRANSFORMS. */
static enum gt_code read_transforms(struct gt_reading *rd, const char *path, struct gt_transform *t, int *n, struct gt_err *err)
{
	void *to = t;
	GT_TRY(gt_list_read(rd, path, GT_MAX_TRANSFORMS, sizeof *t, read_transform, &to, n, err));
	if (*n)
		mixing_defaults(gt_conf_given(rd->root, path), t);
	return GT_OK;
}

/* Makes a relative path of a data file absolute. A relative path in a file is relative to the directory of the file, as with @include; in
 * --set, it is relative to the working directory. Text in memory comes from a checkpoint, whose paths are absolute. */
static enum gt_code make_path_absolute(struct gt_reading *rd, const char *key, const char **path, struct gt_err *err)
{
	const struct gt_cnode *n = gt_conf_given(rd->root, key);
	char cwd[4096];
	if (!n || !**path || **path == '/' || (!rd->from_file && !n->set))
		return GT_OK;
	const char *slash = n->set ? NULL : strrchr(n->loc.file, '/'), *file = slash ? n->loc.file : "";
	int len = slash ? (int)(slash - file) : 0;
	if (slash && *file == '/')
		GT_NEW_STR(*path, gt_arena_printf(rd->arena, "%.*s/%s", len, file, *path), err);
	else if (!getcwd(cwd, sizeof cwd))
		return gt_conf_fail(err, n->loc, key, "expected an absolute path, because gtrain cannot determine the working directory");
	else
		GT_NEW_STR(*path, gt_arena_printf(rd->arena, "%s/%.*s%s%s", cwd, len, file, slash ? "/" : "", *path), err);
	return GT_OK;
}

/* Makes model.pretrained.file a path. If no file has this name, the name of published weights becomes the path of the file that `gtrain
 * fetch` downloads. */
static enum gt_code pretrained_path(struct gt_reading *rd, struct gt_err *err)
{
	const char **path = &rd->conf->pretrained.file;
	const struct gt_known_weights *w = gt_known_weights_find(*path);
	char cached[PATH_MAX];
	GT_TRY(make_path_absolute(rd, "model.pretrained.file", path, err));
	if (!w || !access(*path, F_OK) || gt_known_weights_path(w, cached, sizeof cached, NULL) != GT_OK)
		return GT_OK;
	GT_NEW_STR(*path, gt_arena_strdup(rd->arena, cached), err);
	return GT_OK;
}

/* Makes the program of log.command absolute if its name is a relative path, such as "./log.sh", so that the run can be started from any
 * directory. A name without a slash, and the arguments, are for the shell. */
static enum gt_code command_path(struct gt_reading *rd, struct gt_err *err)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./+@,";
	const char **command = &rd->conf->log.command, *begin = *command + strspn(*command, " \t\n");
	size_t n = strspn(begin, plain);
	char word[PATH_MAX];
	const char *path;
	if (!memchr(begin, '/', n) || *begin == '/' || (begin[n] && !strchr(" \t\n;|&<>", begin[n])))
		return GT_OK;
	GT_NEW_STR(path, gt_arena_printf(rd->arena, "%.*s", (int)n, begin), err);
	GT_TRY(make_path_absolute(rd, "log.command", &path, err));
	if (*path != '/') /* the config is from a checkpoint, so the path is not changed */
		return GT_OK;
	GT_NEW_STR(*command, gt_arena_printf(rd->arena, "%s%s", gt_shell_word(path, word, sizeof word), begin + n), err);
	return GT_OK;
}

static enum gt_code data_paths(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_conf_data *d = &rd->conf->data;
	GT_TRY(make_path_absolute(rd, "data.root", &d->root, err));
	for (int i = 0; !*d->root && i < d->train.n; i++)
		GT_TRY(make_path_absolute(rd, "data.train", &d->train.v[i], err));
	for (int i = 0; !*d->root && i < d->test.n; i++)
		GT_TRY(make_path_absolute(rd, "data.test", &d->test.v[i], err));
	return GT_OK;
}

/* Reads model.inputs. The shape of images is also stored as model.input. */
static enum gt_code read_inputs(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_cnode *list = gt_conf_given(rd->root, "model.inputs"), *one = gt_conf_given(rd->root, "model.input");
	struct gt_model_spec *m = &rd->conf->model;
	struct gt_model_input *in;
	char shown[64], got[64];
	bool none = !list || ((list->type == GT_C_ARRAY || list->type == GT_C_LIST) && !list->nkids);
	if (none && !one && !gt_conf_refused(rd->root, "model.input"))
		return gt_conf_fail(err, gt_conf_location(rd->root, "model.input"), "model.input",
		                    "expected [channels, height, width] or [features], each ≥ 1, or model.inputs, got nothing");
	if (none)
		return GT_OK;
	if (one)
		return gt_conf_fail(err, list->loc, "model.inputs", "cannot be combined with model.input; write the images as { name = \"image\"; "
		                    "shape = [channels, height, width]; }");
	if (list->type != GT_C_LIST || list->nkids > GT_MAX_INPUTS)
		return gt_conf_fail(err, list->loc, "model.inputs", "expected a list ( ) of at most %d groups, got %s", GT_MAX_INPUTS,
		                    gt_cnode_text(list, got, sizeof got));
	GT_NEW(in, rd->arena, list->nkids + 1, err);
	for (int i = 0; i < list->nkids; i++) {
		const struct gt_cnode *e = list->kid[i];
		snprintf(shown, sizeof shown, "model.inputs[%d]", i);
		if (e->type != GT_C_GROUP)
			return gt_conf_expect(err, e, shown, "a group { }");
		strcat(shown, ".");
		GT_TRY(gt_object_read(rd, gt_rows_input, e, shown, &in[i], err));
		if (!in[i].name) /* gt_object_read has reported it */
			return GT_OK;
		int type = gt_values_index(GT_INPUT_WORDS, in[i].name);
		strcat(shown, "type");
		if (!gt_conf_given(e, "type") && type < 0)
			return gt_conf_fail(err, e->loc, shown, "expected one of " GT_INPUT_WORDS ", because the name \"%.64s\" is not a type, got "
			                    "nothing", in[i].name);
		if (!gt_conf_given(e, "type"))
			in[i].type = type;
		if (in[i].type == GT_INPUT_IMAGE && !gt_conf_given(e, "shape"))
			return gt_conf_fail(err, e->loc, shown, "expected shape = [channels, height, width] for an image, got nothing");
		if (in[i].type != GT_INPUT_IMAGE && in[i].shape[1] * in[i].shape[2] > 1)
			return gt_conf_fail(err, e->loc, shown, "expected a single size in shape for the input %.64s, got three sizes", in[i].name);
		if (in[i].vocabulary && in[i].type != GT_INPUT_CODES && in[i].type != GT_INPUT_TOKENS)
			return gt_conf_fail(err, e->loc, shown, "expected \"codes\" or \"tokens\", because the key vocabulary is set, got %s",
			                    gt_values_word(GT_INPUT_WORDS, in[i].type, got, sizeof got));
		if (in[i].type == GT_INPUT_IMAGE && m->input[0])
			return gt_conf_fail(err, e->loc, shown, "expected at most one input of type image, got another image");
		if (in[i].type == GT_INPUT_IMAGE)
			memcpy(m->input, in[i].shape, sizeof m->input);
	}
	m->inputs = in;
	m->ninputs = list->nkids;
	return GT_OK;
}

enum gt_code gt_conf_read(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_conf *c = rd->conf;
	const struct gt_cnode *schema = gt_conf_given(rd->root, "schema");
	/* The version is checked first, because a file of another version would cause errors about unknown keys. */
	if (schema && (schema->type != GT_C_INT || schema->i != 1))
		return gt_conf_expect(err, schema, "schema", "1, the version that this gtrain reads");
	GT_TRY(gt_object_read(rd, gt_rows, rd->root, "", c, err));
	/* Sets the defaults that depend on other keys. */
	const struct gt_cnode *opt = gt_conf_given(rd->root, "train.optimizer"), *sched = gt_conf_given(rd->root, "train.schedule");
	GT_TRY(gt_conf_type_defaults(rd, gt_rows_optimizer, c->train.optimizer.type, opt, &c->train.optimizer, err));
	GT_TRY(gt_conf_schedule_defaults(rd, sched, &c->train.optimizer, &c->train.schedule, err));
	if (!gt_conf_given(rd->root, "checkpoint.best.mode"))
		c->checkpoint.best_mode = gt_metric_falls(c->checkpoint.best_metric);
	GT_COLLECT(rd, err, data_paths(rd, err));
	GT_COLLECT(rd, err, pretrained_path(rd, err));
	GT_COLLECT(rd, err, command_path(rd, err));
	GT_COLLECT(rd, err, make_path_absolute(rd, "data.vocab", &c->data.text.vocab, err));
	GT_COLLECT(rd, err, read_transforms(rd, "data.augment", c->data.augment, &c->data.naugment, err));
	GT_COLLECT(rd, err, read_transforms(rd, "eval.transforms", c->eval.transforms, &c->eval.ntransforms, err));
	GT_COLLECT(rd, err, gt_conf_table(rd, err));
	GT_COLLECT(rd, err, gt_conf_pretrained_map(rd, err));
	GT_COLLECT(rd, err, gt_conf_groups(rd, err));
	GT_COLLECT(rd, err, read_inputs(rd, err));
	GT_COLLECT(rd, err, gt_conf_layers(rd, err));
	return gt_conf_validate(rd, err);
}
