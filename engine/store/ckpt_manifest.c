#include "store/ckpt_manifest.h"
#include "base/fileio.h"
#include "base/json_fields.h"
#include "base/public.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SEAL ",\"xxh3\":\"" /* the manifest's last member; the 32 hexadecimal digits of the digest and TAIL follow */
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

/* ---- members ------------------------------------------------------------------------------------------------------------------------ */
#define IN(type, member) offsetof(struct type, member)
#define META(member) IN(gt_ckpt_manifest, meta.member)

static const struct gt_json_field best[] = {
    {"value", GT_FIELD_REAL, IN(gt_ckpt_meta, best)},
    {"step", GT_FIELD_WHOLE, IN(gt_ckpt_meta, best_step)},
    {"epoch", GT_FIELD_WHOLE, IN(gt_ckpt_meta, best_epoch), GT_FIELD_OPTIONAL, .none = -1},
    {"metric", GT_FIELD_TEXT, IN(gt_ckpt_meta, best_metric), GT_FIELD_OPTIONAL},
    {"mode", GT_FIELD_TEXT, IN(gt_ckpt_meta, best_mode), GT_FIELD_OPTIONAL},
    {NULL}};

static const struct gt_json_field peak[] = {
    {"acc", GT_FIELD_REAL, IN(gt_ckpt_meta, peak_acc)},
    {"epoch", GT_FIELD_WHOLE, IN(gt_ckpt_meta, peak_epoch)},
    {NULL}};

static const struct gt_json_field watch[] = {
    {"metric", GT_FIELD_TEXT, IN(gt_ckpt_watch, metric), GT_FIELD_OPTIONAL},
    {"best", GT_FIELD_REAL, IN(gt_ckpt_watch, best)},
    {"bad", GT_FIELD_WHOLE, IN(gt_ckpt_watch, bad)},
    {"cooldown", GT_FIELD_WHOLE, IN(gt_ckpt_watch, cooldown)},
    {"drops", GT_FIELD_WHOLE, IN(gt_ckpt_watch, drops)},
    {NULL}};

static const struct gt_json_field sums[] = {
    {"loss", GT_FIELD_REAL, IN(gt_metrics, loss)},
    {"weight", GT_FIELD_REAL, IN(gt_metrics, weight)},
    {"correct", GT_FIELD_WHOLE, IN(gt_metrics, correct)},
    {"top5", GT_FIELD_WHOLE, IN(gt_metrics, top5)},
    {"count", GT_FIELD_WHOLE, IN(gt_metrics, count)},
    {NULL}};

static const struct gt_json_field pending[] = {
    {"due", GT_FIELD_BOOL, IN(gt_ckpt_pending, due)},
    {"epoch", GT_FIELD_OBJECT, IN(gt_ckpt_pending, epoch), GT_FIELD_OPTIONAL, .fields = sums, .count = IN(gt_ckpt_pending, epoch.count)},
    {NULL}};

/* The members of a manifest between the first ones, format and version, and the last ones, files and xxh3. A new member must not be
 * required, because checkpoints of earlier versions lack it. */
static const struct gt_json_field members[] = {
    {"serial", GT_FIELD_WHOLE, IN(gt_ckpt_manifest, serial)},
    {"parent", GT_FIELD_WHOLE, IN(gt_ckpt_manifest, parent), GT_FIELD_ADDED, .none = -1},
    {"name", GT_FIELD_TEXT, META(name)},
    {"step", GT_FIELD_WHOLE, META(step)},
    {"epoch", GT_FIELD_WHOLE, META(epoch)},
    {"cursor", GT_FIELD_WHOLE, META(cursor)},
    {"schedule_step", GT_FIELD_WHOLE, META(schedule_step), GT_FIELD_OPTIONAL, .none = -1},
    {"epoch_steps", GT_FIELD_WHOLE, META(epoch_steps), GT_FIELD_OPTIONAL},
    {"world", GT_FIELD_WHOLE, META(world)},
    {"seed", GT_FIELD_DIGITS, META(seed)},
    {"best", GT_FIELD_OBJECT, IN(gt_ckpt_manifest, meta), .fields = best, .flag = META(has_best)},
    {"peak", GT_FIELD_OBJECT, IN(gt_ckpt_manifest, meta), GT_FIELD_OPTIONAL, .fields = peak, .count = META(peak_epoch)},
    {"early_stop", GT_FIELD_OBJECT, META(early_stop), GT_FIELD_OPTIONAL, .fields = watch, .flag = META(early_stop.set)},
    {"plateau", GT_FIELD_OBJECT, META(plateau), GT_FIELD_OPTIONAL, .fields = watch, .flag = META(plateau.set)},
    {"loss_scale", GT_FIELD_REAL, META(loss_scale)},
    {"good_steps", GT_FIELD_WHOLE, META(good_steps)},
    {"seconds", GT_FIELD_REAL, META(seconds)},
    {"epoch_sums", GT_FIELD_OBJECT, META(epoch_sums), GT_FIELD_OPTIONAL, .fields = sums, .count = META(epoch_sums.count)},
    {"pending_evaluation", GT_FIELD_OBJECT, META(pending), GT_FIELD_OPTIONAL, .fields = pending, .flag = META(pending.set)},
    {NULL}};

/* Sets members whose values follow from other members to their value `none`, so that they are not written. */
static void reset_derived(struct gt_ckpt_manifest *m)
{
	struct gt_ckpt_meta *t = &m->meta;
	if (t->schedule_step == t->step)
		t->schedule_step = -1;
	if (!t->best_metric || !t->best_mode)
		t->best_metric = t->best_mode = NULL;
}

/* Computes the values of members that the manifest does not have from other members. */
static void set_derived(struct gt_ckpt_manifest *m)
{
	if (m->parent < 0)
		m->parent = m->serial - 1;
	if (m->meta.schedule_step < 0)
		m->meta.schedule_step = m->meta.step;
}

/* ---- writer ------------------------------------------------------------------------------------------------------------------------- */
/* Prints the manifest. Members that the reader requires are always printed. The last member is the digest of the text before it. */
enum gt_code gt_ckpt_manifest_print(const struct gt_ckpt_manifest *m, struct gt_json *j, struct gt_err *err)
{
	struct gt_ckpt_manifest written = *m;
	char digest[GT_DIGEST_HEX];
	const char *text;
	if (!gt_utf8_valid(m->meta.name))
		return gt_fail(err, GT_EINTERNAL, "the name of the run must be valid UTF-8");
	reset_derived(&written);
	gt_json_object(j, NULL);
	gt_json_int(j, "format", GT_CKPT_FORMAT);
	gt_json_string(j, "version", GT_VERSION);
	gt_json_put_fields(j, members, &written);
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

static bool is_hex_digest(const char *s)
{
	return s && strlen(s) == GT_DIGEST_HEX - 1 && strspn(s, "0123456789abcdef") == GT_DIGEST_HEX - 1;
}

static enum gt_code parse_files(const struct gt_json_value *list, const char *path, struct gt_ckpt_manifest *m, struct gt_err *err)
{
	if (!gt_json_is(list, GT_JSON_ARRAY))
		return gt_fail(err, GT_EDATA, "%s: the list of files is missing", path);
	for (const struct gt_json_value *c = list->child; c; c = c->next) {
		const char *name = gt_json_text(gt_json_member(c, "name")), *digest = gt_json_text(gt_json_member(c, "xxh3"));
		int i = 0;
		while (i < GT_CKPT_FILE_COUNT && !(name && !strcmp(name, files[i].name)))
			i++;
		if (i == GT_CKPT_FILE_COUNT || m->file[i].there)
			return gt_fail(err, GT_EDATA, "%s: the file \"%.100s\" is unknown or listed twice", path, name ? name : "");
		if (!gt_json_whole(gt_json_member(c, "bytes"), &m->file[i].bytes) || !is_hex_digest(digest))
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
	if (!gt_json_whole(gt_json_member(root, "format"), &m->format))
		return gt_fail(err, GT_EDATA, "%s: \"format\" is missing", path);
	if (m->format != GT_CKPT_FORMAT)
		return gt_fail(err, GT_EDATA, "%s: the checkpoint has format %lld, but this gtrain reads format %d",
		               path, (long long)m->format, GT_CKPT_FORMAT);
	const char *bad = gt_json_get_fields(root, members, m);
	if (!bad && !m->meta.best_metric != !m->meta.best_mode)
		bad = "best";
	if (bad)
		return gt_fail(err, GT_EDATA, "%s: \"%s\" is missing or malformed", path, bad);
	set_derived(m);
	if (m->parent >= m->serial)
		return gt_fail(err, GT_EDATA, "%s: \"parent\" is malformed", path);
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
		return gt_fail(err, GT_EDATA, "%s: expected the manifest of a checkpoint, got another file or a truncated manifest", path);
	gt_digest_bytes(text, n - tail - digits - seal, digest);
	if (memcmp(text + n - tail - digits, digest, digits))
		return gt_fail(err, GT_EDATA, "%s: damaged: the digest at the end of the manifest does not match the manifest's content", path);
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
