#include "session/session_index.h"
#include "base/memstream.h"
#include "base/public.h"
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

/* Writes the keys that the content of the index depends on, as in the resolved config, to *text; malloc'ed. */
static enum gt_code write_settings(const struct gt_conf *c, char **text)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	const char *line = strstr(c->text, "\ndata = {\n");
	bool keeps = true;
	if (!f)
		return GT_EFAIL;
	fprintf(f, "gtrain %s, content %d\ntargets %d\n", GT_VERSION, CONTENT_VERSION, c->data.targets);
	if (c->data.valid > 0)
		fprintf(f, "seed of the division %lld\n", (long long)(c->data.valid_seed < 0 ? c->seed : c->data.valid_seed));
	for (line = line ? strchr(line + 1, '\n') : NULL; line && line[1] != '}' && line[1]; line = strchr(line + 1, '\n')) {
		const char *at = line + 1;
		if (at[0] == '\t' && at[1] != '\t' && at[1] != ')') /* else the line continues the value of a key */
			keeps = !is_other_key(at);
		if (keeps)
			fprintf(f, "%.*s\n", (int)strcspn(at, "\n"), at);
	}
	return gt_memstream_close(f, &m, text, NULL, NULL);
}

bool gt_session_index_find(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, const struct gt_session_files *out,
                           struct gt_data_index *x)
{
	const struct gt_fitting *by = gt_dataset_fitting(ds);
	const struct gt_conf *c = spec->conf;
	char *settings = NULL;
	*x = (struct gt_data_index){0};
	if (!out->wanted[GT_TRAIN] || spec->measure || !by->indexed || c->data.index == GT_KEEP_INDEX_NEVER)
		return false;
	bool always = c->data.index == GT_KEEP_INDEX_ALWAYS;
	bool found = write_settings(c, &settings) == GT_OK && gt_data_index_find(ds, settings, x);
	free(settings);
	if (!found && always)
		snprintf(x->note, sizeof x->note, "there is no index, because the data is not in regular files, or neither XDG_CACHE_HOME nor HOME "
		         "is set");
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
	gt_data_index_load(x, ds, gt_dataset_fitting(ds), &c);
	if (!c.learned)
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

void gt_session_index_save(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                           struct gt_data_index *x)
{
	struct gt_index_content is, c = {.learned = out->learned,
	                                 .data = out->set[GT_TRAIN],
	                                 .index = {out->index[GT_TRAIN], out->index[GT_VALID]},
	                                 .count = {out->count[GT_TRAIN], out->count[GT_VALID]}};
	bool skipped = false;
	if (ds->skipped)
		gt_skipped_each(ds->skipped, GT_TRAIN, note_skipped, &skipped);
	if (skipped)
		snprintf(x->note, sizeof x->note, "no index was written, because rows or cells of the data were left out");
	if (spec->ckpt || skipped || !gt_data_index_save(x, &c, c.data.n <= GT_SAMPLES_MAX))
		return;
	gt_data_index_load(x, ds, gt_dataset_fitting(ds), &is);
	if (!is.learned)
		return;
	/* frees c */
	gt_index_content_free(&c);
	out->learned = NULL;
	take_content(&is, out);
}
