/* The format "text": files of one text each, in a folder or a .tar archive of train/CLASS/x.txt as in folder.c. The fields are the tokens
 * of a text and the token count; the target is the class.
 *
 * text_data.c fits vocabularies and converts texts; this file creates datasets from them. */
#include "base/arena.h"
#include "base/fileio.h"
#include "folder.h"
#include "format.h"
#include "sample_mark.h"
#include "skipped.h"
#include "text/tokenizer.h"
#include "text_data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* gt_dataset.raw */
struct raw {
	struct gt_texts texts;
	struct gt_source *files;      /* text i is the content of file i */
	const char *path;             /* if files is NULL: the path of the only file */
	struct gt_class_list classes; /* classes of the training split */
};

static void free_raw(void *p)
{
	struct raw *raw = p;
	gt_texts_free(&raw->texts);
	gt_source_close(raw->files);
	gt_class_list_free(&raw->classes);
	free(raw);
}

static uint64_t count_raw_bytes(const void *p, const struct gt_fitted *l)
{
	(void)l;
	const struct raw *raw = p;
	return gt_texts_bytes(&raw->texts) + (raw->files ? gt_source_bytes(raw->files) : 0);
}

static const char *source_name(const void *user, int64_t i, char *buf, size_t size)
{
	const struct raw *raw = user;
	return raw->files ? gt_source_name(raw->files, i, buf, size) : raw->path;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------------- */
/* Reads file i, and checks that it is a text with tokens. */
static enum gt_code read_text(const struct gt_dataset_spec *spec, const struct raw *raw, int64_t i, struct gt_bytes_buf *buf,
                              struct gt_text_scratch *scratch, struct gt_err *err)
{
	char where[4096];
	bool some;
	GT_TRY(gt_source_read(raw->files, i, buf, err));
	const char *text = (const char *)buf->data;
	GT_TRY(gt_text_check(text, buf->size, source_name(raw, i, where, sizeof where), err));
	GT_TRY(gt_text_has_tokens((enum gt_tokenizer_kind)spec->text.tokenizer, text, buf->size, scratch, &some, err));
	return some ? GT_OK : gt_fail(err, GT_EDATA, "%.600s: expected a text with at least one token, got none", where);
}

/* Reads all texts. With spec->skipped, unreadable files are removed from the list. */
static enum gt_code read_texts(const struct gt_dataset_spec *spec, enum gt_split split, struct raw *raw, struct gt_err *err)
{
	struct gt_bytes_buf buf = {0};
	struct gt_text_scratch scratch = {0};
	enum gt_code code = GT_OK;
	int64_t kept = 0;
	for (int64_t i = 0; i < raw->files->n && code == GT_OK; i++) {
		struct gt_err why = {0};
		code = read_text(spec, raw, i, &buf, &scratch, &why);
		if (code == GT_EDATA && spec->skipped) {
			code = gt_skipped_add(spec->skipped, (int)split, i, "sample", NULL, why.msg, err);
			continue;
		}
		if (code != GT_OK)
			gt_fail_copy(err, &why);
		if (code == GT_EDATA)
			gt_fail_suffix(err, "to skip such files, write data.on_error = \"skip\"");
		if (code == GT_OK)
			code = gt_texts_add(&raw->texts, (const char *)buf.data, buf.size, err);
		if (code == GT_OK && (uint64_t)raw->texts.size > spec->max_bytes)
			code = gt_fail(err, GT_EDATA, "%.400s: the texts are longer than the %zu bytes allowed", raw->files->root, spec->max_bytes);
		raw->files->file[kept++] = raw->files->file[i];
	}
	raw->files->n = kept;
	free(buf.data);
	gt_text_scratch_close(&scratch);
	return code;
}

static enum gt_code alloc_raw(struct gt_dataset *out, struct raw **raw, struct gt_err *err)
{
	GT_CALLOC(*raw, 1, err);
	out->raw = *raw;
	out->fitting = gt_format_text.fitting;
	return GT_OK;
}

static enum gt_code find_strata(const struct gt_dataset_spec *spec, const struct gt_dataset *d, int32_t *out, int64_t *groups,
                                struct gt_err *err)
{
	const struct raw *raw = d->raw;
	(void)spec;
	(void)err;
	for (int64_t i = 0; i < d->n; i++)
		out[i] = raw->files->file[i].label;
	*groups = raw->classes.n;
	return GT_OK;
}

static enum gt_code copy_names(char *const *from, int64_t n, char ***to, int64_t *nto, struct gt_err *err)
{
	GT_CALLOC(*to, n, err);
	for (*nto = 0; *nto < n; ++*nto)
		if (!((*to)[*nto] = strdup(from[*nto])))
			return gt_fail_memory(err, strlen(from[*nto]));
	return GT_OK;
}

static enum gt_code fit_facts(const struct gt_dataset_spec *spec, const struct gt_dataset *d, const int64_t *row, int64_t n,
                                struct gt_fitted *out, struct gt_err *err)
{
	const struct raw *raw = d->raw;
	GT_TRY(copy_names(raw->classes.v, raw->classes.n, &out->text.class, &out->text.nclasses, err));
	return gt_texts_fit(&raw->texts, &spec->text, row, n, &out->text, err);
}

static void free_facts(struct gt_fitted *l)
{
	gt_vocab_close(l->text.vocab);
	for (int64_t i = 0; i < l->text.nclasses; i++)
		free(l->text.class[i]);
	free(l->text.class);
}

/* ---- datasets -------------------------------------------------------------------------------------------------------------------- */
static enum gt_code describe_fields(const struct gt_dataset_spec *spec, const struct gt_fitted *l, struct gt_dataset *out,
                                    struct gt_err *err)
{
	if (spec->classes > 0 && l->text.nclasses > spec->classes)
		return gt_fail(err, GT_ECONFIG, "data.classes: expected at least %lld, one for each class of the training split, got %lld",
		               (long long)l->text.nclasses, (long long)spec->classes);
	GT_TRY(gt_texts_describe(&spec->text, &l->text, &out->field[0], &out->field[1], err));
	out->nfields = 2;
	out->classes = spec->classes > 0 ? spec->classes : l->text.nclasses;
	return copy_names(l->text.class, l->text.nclasses, &out->class_name, &out->nclass_names, err);
}

/* Converts the texts. targets: also sets the labels from the classes of the files. */
static enum gt_code convert_texts(const struct gt_dataset_spec *spec, const struct gt_fitted *l, bool targets, struct gt_dataset *d,
                                  struct gt_err *err)
{
	struct raw *raw = d->raw;
	for (int64_t i = 0; targets && (i < raw->classes.n || i < l->text.nclasses); i++)
		if (i >= raw->classes.n || i >= l->text.nclasses || strcmp(raw->classes.v[i], l->text.class[i]))
			return gt_fail(err, GT_EDATA, "%.300s: expected class %lld to be \"%.100s\", as in the training data, got \"%.100s\"",
			               raw->files->root, (long long)i, i < l->text.nclasses ? l->text.class[i] : "",
			               i < raw->classes.n ? raw->classes.v[i] : "");
	GT_TRY(describe_fields(spec, l, d, err));
	if (targets && !(d->labels = malloc((size_t)(d->n + 1) * sizeof *d->labels)))
		return gt_fail_memory(err, (size_t)d->n * sizeof *d->labels);
	for (int64_t i = 0; i < d->n && targets; i++)
		d->labels[i] = raw->files->file[i].label;
	GT_TRY(gt_texts_fields(&raw->texts, &spec->text, l->text.vocab, source_name, raw, &d->field[0], &d->field[1], &d->texts, err));
	d->text_files = raw->files;
	raw->files = NULL;
	free_raw(raw);
	d->raw = NULL;
	return GT_OK;
}

static enum gt_code transform_facts(const struct gt_dataset_spec *spec, const struct gt_fitted *l, struct gt_dataset *d, struct gt_err *err)
{
	return convert_texts(spec, l, true, d, err);
}

static enum gt_code convert_one_text(const struct gt_dataset_spec *spec, const char *name, const char *text, size_t n,
                                     struct gt_dataset *out, struct gt_err *err)
{
	struct raw *raw;
	GT_TRY(alloc_raw(out, &raw, err));
	raw->path = name;
	GT_TRY(gt_text_check(text, n, name, err));
	GT_TRY(gt_texts_add(&raw->texts, text, n, err));
	out->n = 1;
	return convert_texts(spec, spec->fitted, false, out, err);
}

static enum gt_code read_inputs(const struct gt_dataset_spec *spec, const char *path, struct gt_dataset *out, struct gt_err *err)
{
	char *text;
	size_t n;
	if (gt_folder_wants(&gt_folder_tables, path))
		return gt_fail(err, GT_EDATA, "%.400s: expected a text file, because the model was trained on one file per text, got the name of a "
		               "table; write each text to a separate file (.txt), or train with data.format = \"csv\"", path);
	GT_TRY(gt_file_read(path, GT_SOURCE_MAX_FILE, &text, &n, err));
	enum gt_code code = convert_one_text(spec, path, text, n, out, err);
	free(text);
	return code;
}

/* If spec->fitted is NULL, out->raw gets the unconverted texts. */
static enum gt_code load_split(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	struct raw *raw;
	(void)headers_only; /* the vocabulary and the lengths depend on the whole texts */
	GT_TRY(alloc_raw(out, &raw, err));
	GT_TRY(gt_folder_split(paths->path[0], &gt_folder_texts, split, spec, &raw->files, &raw->classes, err));
	memcpy(out->left_out, raw->files->left_out, sizeof out->left_out);
	gt_source_thin_out(raw->files, spec->limit);
	int64_t found = raw->files->n;
	GT_TRY(read_texts(spec, split, raw, err));
	out->n = raw->files->n;
	GT_TRY(gt_dataset_mark_files(raw->files, out, err));
	for (int64_t i = 0; i < out->n; i++) {
		size_t n;
		const char *text = gt_texts_get(&raw->texts, i, &n);
		out->mark[i].content = gt_mark_hash(text, n, 0);
	}
	if (found && !out->n)
		return gt_fail(err, GT_EDATA, "%.400s: expected texts that can be read, got none", raw->files->root);
	return spec->fitted && out->n ? convert_texts(spec, spec->fitted, true, out, err) : GT_OK;
}

/* Writes the facts as members of data.json. */
static enum gt_code put_json(const struct gt_fitted *l, struct gt_json *j, struct gt_err *err)
{
	return l->text.ids ? gt_text_json_put(j, "text", &l->text, err) : GT_OK;
}

static enum gt_code get_json(const struct gt_json_value *v, const char *path, struct gt_fitted *out, struct gt_err *err)
{
	return gt_text_json_get(gt_json_member(v, "text"), path, &out->text, err);
}

static enum gt_code compare_facts(const struct gt_fitted *ckpt, const struct gt_fitted *now, const char *where, const char *path,
                                  struct gt_err *err)
{
	return gt_text_json_compare(&ckpt->text, &now->text, where, path, err);
}

static const struct gt_fitting fitting = {.format = "text",
                                            .strata = find_strata,
                                            .fit = fit_facts,
                                            .describe = describe_fields,
                                            .transform = transform_facts,
                                            .inputs = read_inputs,
                                            .text = convert_one_text,
                                            .json_member = "text",
                                            .names_classes = true,
                                            .put_json = put_json,
                                            .get_json = get_json,
                                            .compare = compare_facts,
                                            .raw_bytes = count_raw_bytes,
                                            .drop = free_raw,
                                            .forget = free_facts};
const struct gt_format gt_format_text = {.name = "text",
                                         .content = GT_CONTENT_TEXTS,
                                         .by_name = true,
                                         .find = gt_folder_find,
                                         .load = load_split,
                                         .has_valid = true,
                                         .input = &gt_folder_texts,
                                         .fitting = &fitting};
