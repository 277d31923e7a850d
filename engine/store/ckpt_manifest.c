#include "store/ckpt_manifest.h"
#include "base/fileio.h"
#include "base/public.h"
#include "base/json_read.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEAL ",\"xxh3\":\"" /* the digest's 32 digits and TAIL follow */
#define TAIL "\"}\n"

static const struct {
	const char *name;
	bool must;
} files[GT_CKPT_FILE_COUNT] = {
#define GT_X(id, text, required) [id] = {text, required},
	GT_CKPT_FILES(GT_X)
#undef GT_X
};

const char *gt_ckpt_file_name(int file)
{
	return files[file].name;
}

/* ---- writer ------------------------------------------------------------------------------------------------------------------------- */

/* Writes a number. JSON has neither infinity nor NaN, so these are written as strings; a run's best loss may be infinite. */
static void put_double(struct gt_json *j, const char *key, double v)
{
	if (isfinite(v))
		gt_json_double(j, key, v, 17);
	else
		gt_json_string(j, key, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static void put_sums(struct gt_json *j, const struct gt_metrics *m)
{
	gt_json_object(j, "epoch_sums");
	put_double(j, "loss", m->loss);
	put_double(j, "weight", m->weight);
	gt_json_int(j, "correct", m->correct);
	gt_json_int(j, "top5", m->top5);
	gt_json_int(j, "count", m->count);
	gt_json_end(j);
}

static void put_watch(struct gt_json *j, const char *key, const struct gt_ckpt_watch *w)
{
	if (!w->set)
		return;
	gt_json_object(j, key);
	if (w->metric)
		gt_json_string(j, "metric", w->metric);
	put_double(j, "best", w->best);
	gt_json_int(j, "bad", w->bad);
	gt_json_int(j, "cooldown", w->cooldown);
	gt_json_int(j, "drops", w->drops);
	gt_json_end(j);
}

/* Prints the manifest. Members that the reader requires are always printed; the digest of the text follows as its last member. */
enum gt_code gt_ckpt_manifest_print(const struct gt_ckpt_manifest *m, struct gt_json *j, struct gt_err *err)
{
	const struct gt_ckpt_meta *t = &m->meta;
	char seed[24], digest[GT_DIGEST_HEX];
	const char *text;
	if (!gt_utf8_valid(t->name))
		return gt_fail(err, GT_EINTERNAL, "the name of the run must be valid UTF-8");
	snprintf(seed, sizeof seed, "%" PRIu64, t->seed);
	gt_json_object(j, NULL);
	gt_json_int(j, "format", GT_CKPT_FORMAT);
	gt_json_string(j, "version", GT_VERSION);
	gt_json_int(j, "serial", m->serial);
	gt_json_int(j, "parent", m->parent);
	gt_json_string(j, "name", t->name);
	gt_json_int(j, "step", t->step);
	gt_json_int(j, "epoch", t->epoch);
	gt_json_int(j, "cursor", t->cursor);
	if (t->schedule_step != t->step)
		gt_json_int(j, "schedule_step", t->schedule_step);
	if (t->epoch_steps > 0)
		gt_json_int(j, "epoch_steps", t->epoch_steps);
	gt_json_int(j, "world", t->world);
	gt_json_string(j, "seed", seed);
	if (t->has_best) {
		gt_json_object(j, "best");
		put_double(j, "value", t->best);
		gt_json_int(j, "step", t->best_step);
		if (t->best_epoch >= 0)
			gt_json_int(j, "epoch", t->best_epoch);
		if (t->best_metric && t->best_mode) {
			gt_json_string(j, "metric", t->best_metric);
			gt_json_string(j, "mode", t->best_mode);
		}
		gt_json_end(j);
	} else {
		gt_json_null(j, "best");
	}
	if (t->peak_epoch > 0) {
		gt_json_object(j, "peak");
		put_double(j, "acc", t->peak_acc);
		gt_json_int(j, "epoch", t->peak_epoch);
		gt_json_end(j);
	}
	put_watch(j, "early_stop", &t->early_stop);
	put_watch(j, "plateau", &t->plateau);
	put_double(j, "loss_scale", t->loss_scale);
	gt_json_int(j, "good_steps", t->good_steps);
	put_double(j, "seconds", t->seconds);
	if (t->epoch_sums.count)
		put_sums(j, &t->epoch_sums);
	gt_json_array(j, "files");
	for (int i = 0; i < GT_CKPT_FILE_COUNT; i++) {
		if (!m->file[i].there)
			continue;
		gt_json_object(j, NULL);
		gt_json_string(j, "name", files[i].name);
		gt_json_int(j, "bytes", m->file[i].bytes);
		gt_json_string(j, "xxh3", m->file[i].digest);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_digest_bytes(j->text ? j->text : "", j->len, digest);
	gt_json_string(j, "xxh3", digest);
	gt_json_end(j);
	GT_TRY(gt_json_finish(j, &text, err));
	if (j->len + 1 > GT_CKPT_MANIFEST_MAX)
		return gt_fail(err, GT_EINTERNAL, "the run's name is too long for a manifest");
	gt_json_line(j);
	return j->no_memory ? gt_fail_memory(err, 0) : GT_OK;
}

/* ---- reader ------------------------------------------------------------------------------------------------------------------------- */

static bool get_int(const struct gt_json_value *o, const char *key, int64_t *out)
{
	return gt_json_whole(gt_json_member(o, key), out);
}

static const char *get_text(const struct gt_json_value *o, const char *key)
{
	return gt_json_text(gt_json_member(o, key));
}

static bool get_double(const struct gt_json_value *o, const char *key, double *out)
{
	const struct gt_json_value *v = gt_json_member(o, key);
	if (gt_json_is(v, GT_JSON_NUMBER)) {
		*out = v->number;
		return isfinite(*out);
	}
	const char *s = gt_json_text(v);
	if (!s)
		return false;
	*out = !strcmp(s, "inf") ? INFINITY : !strcmp(s, "-inf") ? -INFINITY : NAN;
	return !isnan(*out) || !strcmp(s, "nan");
}

static bool get_seed(const struct gt_json_value *o, uint64_t *out)
{
	const char *s = get_text(o, "seed");
	char *end, again[24];
	if (!s)
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	snprintf(again, sizeof again, "%" PRIu64, *out);
	return !errno && !strcmp(s, again); /* the text has no sign, no spaces and no leading zeros if printing the number gives it again */
}

/* Reads the sums of an epoch. They are absent if the epoch used no sample, and in checkpoints of earlier versions. */
static bool get_sums(const struct gt_json_value *o, struct gt_metrics *m)
{
	return !o || (get_double(o, "loss", &m->loss) && get_double(o, "weight", &m->weight) && get_int(o, "correct", &m->correct) &&
	              get_int(o, "top5", &m->top5) && get_int(o, "count", &m->count));
}

/* Reads the object of the best checkpoint. Its epoch, metric and mode are absent in checkpoints of earlier versions. */
static bool get_best(const struct gt_json_value *best, struct gt_ckpt_meta *t)
{
	t->best_epoch = -1;
	t->best_metric = get_text(best, "metric");
	t->best_mode = get_text(best, "mode");
	return get_double(best, "value", &t->best) && get_int(best, "step", &t->best_step) &&
	       (!gt_json_member(best, "epoch") || get_int(best, "epoch", &t->best_epoch)) && !t->best_metric == !t->best_mode;
}

/* Reads the best accuracy. It is absent if no evaluation had an accuracy, and in checkpoints of earlier versions. */
static bool get_peak(const struct gt_json_value *o, struct gt_ckpt_meta *t)
{
	return !o || (get_double(o, "acc", &t->peak_acc) && get_int(o, "epoch", &t->peak_epoch));
}

/* Reads a watched metric, which is absent if nothing was measured, and in checkpoints of earlier versions; these may lack its name, too. */
static bool get_watch(const struct gt_json_value *o, struct gt_ckpt_watch *w)
{
	w->set = o != NULL;
	w->metric = get_text(o, "metric");
	return !o || (get_double(o, "best", &w->best) && get_int(o, "bad", &w->bad) && get_int(o, "cooldown", &w->cooldown) &&
	              get_int(o, "drops", &w->drops));
}

/* Reads the position in the schedules and the steps of an epoch, which are absent in checkpoints of earlier versions. */
static bool get_schedule(const struct gt_json_value *root, struct gt_ckpt_meta *t)
{
	t->schedule_step = t->step;
	return (!gt_json_member(root, "schedule_step") || get_int(root, "schedule_step", &t->schedule_step)) &&
	       (!gt_json_member(root, "epoch_steps") || get_int(root, "epoch_steps", &t->epoch_steps));
}

static bool is_hex_digest(const char *s)
{
	return s && strlen(s) == GT_DIGEST_HEX - 1 && strspn(s, "0123456789abcdef") == GT_DIGEST_HEX - 1;
}

static enum gt_code parse_files(const struct gt_json_value *list, const char *path, struct gt_ckpt_manifest *m, struct gt_err *err)
{
	if (!gt_json_is(list, GT_JSON_ARRAY))
		return gt_fail(err, GT_EDATA, "%s: the list of files is missing", path);
	for (const struct gt_json_value *c = list->child; c; c = c->next) {
		const char *name = get_text(c, "name"), *digest = get_text(c, "xxh3");
		int i = 0;
		while (i < GT_CKPT_FILE_COUNT && !(name && !strcmp(name, files[i].name)))
			i++;
		if (i == GT_CKPT_FILE_COUNT || m->file[i].there)
			return gt_fail(err, GT_EDATA, "%s: the file \"%.100s\" is unknown or listed twice", path, name ? name : "");
		if (!get_int(c, "bytes", &m->file[i].bytes) || !is_hex_digest(digest))
			return gt_fail(err, GT_EDATA, "%s: the length or the digest of the file %s is missing or malformed", path, name);
		strcpy(m->file[i].digest, digest);
		m->file[i].there = true;
	}
	for (int i = 0; i < GT_CKPT_FILE_COUNT; i++)
		if (files[i].must && !m->file[i].there)
			return gt_fail(err, GT_EDATA, "%s: the file %s is missing in the list of files", path, files[i].name);
	return GT_OK;
}

static enum gt_code parse_root(const struct gt_json_value *root, const char *path, struct gt_ckpt_manifest *m, struct gt_err *err)
{
	struct gt_ckpt_meta *t = &m->meta;
	const char *name = get_text(root, "name"), *bad = NULL;
	const struct gt_json_value *best = gt_json_member(root, "best");
	if (!get_int(root, "format", &m->format))
		return gt_fail(err, GT_EDATA, "%s: \"format\" is missing", path);
	if (m->format != GT_CKPT_FORMAT)
		return gt_fail(err, GT_EDATA, "%s: the checkpoint has format %lld, but this gtrain reads format %d",
		               path, (long long)m->format, GT_CKPT_FORMAT);
	bad = !get_int(root, "serial", &m->serial)              ? "serial"
	      : !name                                           ? "name"
	      : !get_int(root, "step", &t->step)                ? "step"
	      : !get_int(root, "epoch", &t->epoch)              ? "epoch"
	      : !get_int(root, "cursor", &t->cursor)            ? "cursor"
	      : !get_schedule(root, t)                          ? "schedule_step or epoch_steps"
	      : !get_int(root, "world", &t->world)              ? "world"
	      : !get_seed(root, &t->seed)                       ? "seed"
	      : !get_double(root, "loss_scale", &t->loss_scale) ? "loss_scale"
	      : !get_int(root, "good_steps", &t->good_steps)    ? "good_steps"
	      : !get_double(root, "seconds", &t->seconds)       ? "seconds"
	      : !get_sums(gt_json_member(root, "epoch_sums"), &t->epoch_sums)                  ? "epoch_sums"
	      : !get_watch(gt_json_member(root, "early_stop"), &t->early_stop) ? "early_stop"
	      : !get_watch(gt_json_member(root, "plateau"), &t->plateau) ? "plateau"
	      : !get_peak(gt_json_member(root, "peak"), t)                                     ? "peak"
	      : !gt_json_is(best, GT_JSON_NULL) && !get_best(best, t)                                                        ? "best" : NULL;
	if (bad)
		return gt_fail(err, GT_EDATA, "%s: \"%s\" is missing or malformed", path, bad);
	if (!gt_json_member(root, "parent"))
		m->parent = m->serial - 1;
	else if (!get_int(root, "parent", &m->parent) || m->parent >= m->serial)
		return gt_fail(err, GT_EDATA, "%s: \"parent\" is malformed", path);
	t->has_best = !gt_json_is(best, GT_JSON_NULL);
	t->name = name;
	return parse_files(gt_json_member(root, "files"), path, m, err);
}

enum gt_code gt_ckpt_manifest_parse(const char *text, size_t n, const char *path, struct gt_arena *a, struct gt_ckpt_manifest *out,
                                    struct gt_err *err)
{
	const size_t seal = strlen(SEAL), digits = GT_DIGEST_HEX - 1, tail = strlen(TAIL);
	char digest[GT_DIGEST_HEX];
	const struct gt_json_value *root;
	*out = (struct gt_ckpt_manifest){0};
	if (n < seal + digits + tail || memcmp(text + n - tail, TAIL, tail) || memcmp(text + n - tail - digits - seal, SEAL, seal))
		return gt_fail(err, GT_EDATA, "%s: expected the manifest of a checkpoint, got another file or one that is cut short", path);
	gt_digest_bytes(text, n - tail - digits - seal, digest);
	if (memcmp(text + n - tail - digits, digest, digits))
		return gt_fail(err, GT_EDATA, "%s: damaged: the digest in the manifest does not match its content", path);
	GT_TRY(gt_json_parse(text, n, path, 4, 200, a, &root, err));
	return parse_root(root, path, out, err);
}

enum gt_code gt_ckpt_manifest_read(const char *dir, struct gt_arena *a, struct gt_ckpt_manifest *out, struct gt_err *err)
{
	char path[GT_PATH_SIZE], *text;
	size_t n;
	GT_TRY(gt_path_join(path, dir, GT_CKPT_MANIFEST, err));
	GT_TRY(gt_file_read(path, GT_CKPT_MANIFEST_MAX, &text, &n, err));
	enum gt_code code = gt_ckpt_manifest_parse(text, n, path, a, out, err);
	free(text);
	return code;
}
