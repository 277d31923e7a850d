#include "session/session_index.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/memstream.h"
#include "base/public.h"
#include "base/spill.h"
#include "skipped.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The version of what an index contains. Increase it when the reading, dividing, fitting or conversion of a table changes. */
#define CONTENT_VERSION 1

/* keys of the group data that do not affect the converted samples; paths and valid_seed are in the settings in another form */
static const char *const other_keys[] = {
    "name",    "root",         "train",    "test",  "batch",          "batch_per_rank", "eval_batch", "shuffle", "drop_last",
    "sampler", "valid_seed",   "mean",     "std",   "samples",        "samples_test",   "prefetch",   "index",   "gpu_transforms",
    "workers", "lengths",      "buckets",  "augment"};

/* Returns whether a line of the resolved config, "\tKEY = …", begins one of other_keys. */
static bool is_other_key(const char *line)
{
	size_t n = strcspn(line + 1, " =");
	for (size_t i = 0; i < sizeof other_keys / sizeof *other_keys; i++)
		if (strlen(other_keys[i]) == n && !strncmp(line + 1, other_keys[i], n))
			return true;
	return false;
}

/* Writes a digest of facts. */
static enum gt_code write_facts(const struct gt_fitted *learned, FILE *f)
{
	struct gt_json j = {0};
	const char *text;
	char hex[GT_DIGEST_HEX];
	gt_json_object(&j, NULL);
	enum gt_code code = learned->by->put_json(learned, &j, NULL);
	gt_json_end(&j);
	if (code == GT_OK)
		code = gt_json_finish(&j, &text, NULL);
	if (code == GT_OK) {
		gt_digest_bytes(text, strlen(text), hex);
		fprintf(f, "facts %s\n", hex);
	}
	gt_json_free(&j);
	return code;
}

/* Writes the keys that the content of the index depends on, as in the resolved config, to *text; malloc'ed. learned: the facts of the
 * training split on which another split depends as well; NULL: none. */
static enum gt_code write_settings(const struct gt_conf *c, enum gt_split split, const struct gt_fitted *learned, char **text)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	const char *line = strstr(c->text, "\ndata = {\n");
	bool keeps = true, has_data = line != NULL;
	if (!f)
		return GT_EFAIL;
	fprintf(f, "gtrain %s, content %d\nsplit %s\ntargets %d\n", GT_VERSION, CONTENT_VERSION, gt_split_names[split], c->data.targets);
	enum gt_code code = learned ? write_facts(learned, f) : GT_OK;
	if (c->data.valid > 0 && !learned)
		fprintf(f, "seed of the division %lld\n", (long long)(c->data.valid_seed < 0 ? c->seed : c->data.valid_seed));
	for (line = line ? strchr(line + 1, '\n') : NULL; line && line[1] != '}' && line[1]; line = strchr(line + 1, '\n')) {
		const char *at = line + 1;
		if (at[0] == '\t' && at[1] != '\t' && at[1] != ')') /* else the line continues the value of a key */
			keeps = !is_other_key(at);
		if (keeps)
			fprintf(f, "%.*s\n", (int)strcspn(at, "\n"), at);
	}
	enum gt_code closed = gt_memstream_close(f, &m, text, NULL, NULL);
	if (code == GT_OK && !has_data) /* without the keys, different configs would share an index */
		code = GT_EINTERNAL;
	return code == GT_OK ? closed : code;
}

bool gt_session_index_find(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, enum gt_split split,
                           struct gt_data_index *x)
{
	const struct gt_fitting *by = gt_dataset_fitting(ds);
	const struct gt_conf *c = spec->conf;
	char *settings = NULL;
	*x = (struct gt_data_index){0};
	/* "valid" is a part of the training split */
	if (spec->measure || split == GT_VALID || !by || !by->indexed || c->data.index == GT_KEEP_INDEX_NEVER)
		return false;
	bool always = c->data.index == GT_KEEP_INDEX_ALWAYS;
	bool found = write_settings(c, split, ds->fitted, &settings) == GT_OK && gt_data_index_find(ds, split, settings, x);
	free(settings);
	if (!found && always && x->nfiles)
		snprintf(x->note, sizeof x->note, "there is no index, because the data is not in regular files, or neither XDG_CACHE_HOME nor HOME "
		         "is set to an absolute path");
	return found && (always || x->place.bytes >= GT_INDEX_LARGE);
}

/* Returns whether the run of the checkpoint divided the samples as the index does. */
static bool is_same_division(const struct gt_conf *c, const struct gt_used_samples *was, const struct gt_index_content *is)
{
	if (was->changed || was->by_number || was->by_draw != !c->data.stratify || (was->listed && !is->data.mark))
		return false;
	for (int k = 0; k < 2 && was->listed; k++)
		for (int64_t i = 0; i < (is->index[0] ? is->count[k] : k ? 0 : is->data.n); i++)
			if (gt_used_part(was, &is->data.mark[is->index[0] ? is->index[k][i] : i]) != k)
				return false;
	return true;
}

static bool suits_checkpoint(const struct gt_session_spec *spec, const struct gt_session_files *out, const struct gt_index_content *is)
{
	if (!spec->ckpt)
		return true;
	return is_same_division(spec->conf, &out->was, is) && is->learned->by->compare(out->learned, is->learned, "", "", NULL) == GT_OK;
}

/* Moves the content of an index to the session. */
static void take_content(struct gt_index_content *c, struct gt_session_files *out)
{
	out->set[GT_TRAIN] = c->data;
	gt_fitted_free(out->learned);
	out->learned = c->learned;
	for (int k = 0; k < 2; k++) {
		out->index[k ? GT_VALID : GT_TRAIN] = c->index[k];
		out->count[k ? GT_VALID : GT_TRAIN] = c->count[k];
	}
}

bool gt_session_index_load(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                           struct gt_data_index *x)
{
	struct gt_index_content c;
	gt_data_index_load(x, ds, gt_dataset_fitting(ds), NULL, &c);
	if (!c.data.mapped)
		return false;
	if ((!c.data.mark && c.data.n <= GT_SAMPLES_MAX) || !suits_checkpoint(spec, out, &c)) {
		gt_index_content_free(&c);
		return false;
	}
	take_content(&c, out);
	return true;
}

static void note_skipped(void *user, int64_t i)
{
	(void)i;
	*(bool *)user = true;
}

/* Returns whether rows or cells of a split were left out, and notes it. */
static bool has_skipped(const struct gt_dataset_spec *ds, enum gt_split split, struct gt_data_index *x)
{
	bool skipped = false;
	if (ds->skipped)
		gt_skipped_each(ds->skipped, split, note_skipped, &skipped);
	if (skipped)
		snprintf(x->note, sizeof x->note, "no index was written, because rows or cells of the data were left out");
	return skipped;
}

void gt_session_index_save(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                           struct gt_data_index *x)
{
	struct gt_index_content is, c = {.learned = out->learned,
	                                 .data = out->set[GT_TRAIN],
	                                 .index = {out->index[GT_TRAIN], out->index[GT_VALID]},
	                                 .count = {out->count[GT_TRAIN], out->count[GT_VALID]}};
	if (spec->ckpt || has_skipped(ds, GT_TRAIN, x) || !gt_data_index_save(x, &c, c.data.n <= GT_SAMPLES_MAX))
		return;
	gt_data_index_load(x, ds, gt_dataset_fitting(ds), NULL, &is);
	if (!is.data.mapped)
		return;
	gt_index_content_free(&c); /* the arrays in memory, which the session had until now */
	out->learned = NULL;
	take_content(&is, out);
}

/* Reads a split from its files and replaces it by its index, if the index can be written. */
static enum gt_code read_and_save(const struct gt_dataset_spec *ds, enum gt_split split, struct gt_data_index *x, struct gt_dataset *out,
                                  struct gt_err *err)
{
	struct gt_index_content is, c = {0};
	struct gt_dataset_spec spilling = *ds;
	spilling.spill_dir = gt_index_make_spill_dir(x->place.dir) ? x->place.dir : NULL;
	GT_TRY(gt_dataset_read(&spilling, split, out, err));
	c.data = *out;
	if (!out->n || has_skipped(ds, split, x) || !gt_data_index_save(x, &c, out->n <= GT_SAMPLES_MAX))
		return GT_OK;
	gt_data_index_load(x, ds, gt_dataset_fitting(ds), ds->fitted, &is);
	if (!is.data.mapped)
		return GT_OK;
	gt_dataset_free(out);
	*out = is.data;
	return GT_OK;
}

enum gt_code gt_session_index_read(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, enum gt_split split,
                                   struct gt_dataset *out, char *note, size_t size, struct gt_err *err)
{
	struct gt_data_index x = {0};
	struct gt_index_content c = {0};
	enum gt_code code = GT_OK;
	if (!ds->fitted || !gt_session_index_find(spec, ds, split, &x)) {
		code = (spec->dry ? gt_dataset_probe : gt_dataset_read)(ds, split, out, err);
	} else {
		gt_data_index_load(&x, ds, gt_dataset_fitting(ds), ds->fitted, &c);
		if (c.data.mapped && (c.data.mark || c.data.n > GT_SAMPLES_MAX))
			*out = c.data;
		else {
			gt_index_content_free(&c);
			code = read_and_save(ds, split, &x, out, err);
			gt_spill_settle(out->spill);
		}
	}
	snprintf(note, size, "%s", x.note);
	gt_data_index_close(&x);
	return code;
}
