/* Reads the data of a session: its splits, and the facts that are fitted to the training split (vocabulary, statistics, categories). */
#include "session/session_split.h"
#include "fitted.h"
#include "folder.h"
#include "formats.h"
#include "numpy_file.h"
#include "session/session_contents.h"
#include "session/session_index.h"
#include "skipped.h"
#include "source.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	const struct gt_session_spec *session;
	const struct gt_dataset_spec *spec;
	enum gt_split split;
	struct gt_dataset *out;
	enum gt_code code;
	char note[sizeof((struct gt_session_files *)0)->index_note];
	struct gt_err err;
};

static void *read_split(void *arg)
{
	struct job *j = arg;
	j->code = gt_session_index_read(j->session, j->spec, j->split, j->out, j->note, sizeof j->note, &j->err);
	return NULL;
}

struct gt_dataset_spec gt_session_dataset_spec(const struct gt_conf *c)
{
	const struct gt_conf_data *d = &c->data;
	struct gt_dataset_spec spec = {.name = d->name,
	                               .root = d->root,
	                               .format = d->format,
	                               .path_column = d->path_column,
	                               .label_column = d->label_column,
	                               .label_separator = d->label_separator,
	                               .targets = d->target_columns.v,
	                               .ntargets = d->target_columns.n,
	                               .pattern = d->pattern,
	                               .train = d->train.n ? d->train.v : NULL,
	                               .ntrain = d->train.n,
	                               .test = d->test.n ? d->test.v : NULL,
	                               .ntest = d->test.n,
	                               .shape = {c->model.input[0], c->model.input[1], c->model.input[2]},
	                               .classes = d->classes,
	                               .samples = {[GT_TRAIN] = d->samples, [GT_TEST] = d->samples_test},
	                               .limit = d->limit,
	                               .seed = (uint64_t)c->seed,
	                               .target_labels = d->targets == GT_TARGETS_LABELS,
	                               .normalize_target = d->normalize_target};
	spec.text = d->text;
	spec.table = (struct gt_table_spec){.delimiter = *d->delimiter,
	                                    .encoding = (enum gt_encoding)d->encoding,
	                                    .notation = {*d->decimal, *d->thousands},
	                                    .header = (enum gt_table_header)d->header,
	                                    .na = d->na.v,
	                                    .nna = d->na.n,
	                                    .column = d->columns,
	                                    .ncolumns = d->ncolumns,
	                                    .target = d->target.v,
	                                    .ntarget = d->target.n,
	                                    .ignore = d->ignore.v,
	                                    .nignore = d->ignore.n,
	                                    .task = d->targets == GT_TARGETS_CLASS ? GT_TASK_CLASSES : GT_TASK_NUMBERS};
	for (int i = 0; i < c->model.ninputs; i++) {
		const struct gt_model_input *in = &c->model.inputs[i];
		if (in->type != GT_INPUT_IMAGE)
			spec.wanted[spec.nwanted++] = (struct gt_field){
			    .name = in->name, .dtype = in->type == GT_INPUT_VALUES ? GT_F32 : GT_I32, .width = in->shape[0],
			    .ragged = in->type == GT_INPUT_TOKENS,
			    .codes = in->type == GT_INPUT_CODES || in->type == GT_INPUT_TOKENS ? &in->vocabulary : NULL,
			    .ncodes = in->type == GT_INPUT_CODES || in->type == GT_INPUT_TOKENS};
	}
	return spec;
}

/* Appends to out->changed. */
static void append_change(struct gt_session_files *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append_change(struct gt_session_files *out, const char *format, ...)
{
	size_t n = strlen(out->changed);
	va_list args;
	va_start(args, format);
	vsnprintf(out->changed + n, sizeof out->changed - n, format, args);
	va_end(args);
}

/* Changes ds so that its split "test" has all samples of the file or folder spec->measure. files: the run's images were encoded files. */
static enum gt_code measure_all_samples(const struct gt_session_spec *spec, bool files, struct gt_arena *a, struct gt_dataset_spec *ds,
                                        struct gt_err *err)
{
	const char *path = spec->measure, **test;
	bool learns = gt_dataset_fitting(ds), rows = gt_format_content(ds->format) == GT_CONTENT_TABLE;
	bool list = gt_folder_wants(&gt_folder_tables, path);
	ds->limit = 0;
	ds->all = true;
	ds->train = NULL;
	ds->ntrain = 0;
	ds->test = NULL;
	ds->root = path;
	if (!rows && (learns || (files && !list))) {
		if (!learns && strcmp(ds->format, "pattern"))
			ds->format = "folder";
		return GT_OK;
	}
	GT_NEW(test, a, 2, err);
	test[0] = path;
	ds->test = test;
	ds->ntest = 1;
	ds->root = "";
	if (files)
		ds->format = "list";
	if (files || learns)
		return GT_OK;
	if (gt_numpy_is_file(path)) {
		ds->format = "numpy";
		return GT_OK;
	}
	const char *at = strstr(path, "images-idx3");
	if (!at)
		return gt_fail(err, GT_EUSAGE, "%.600s: expected an IDX file of images, with \"images-idx3\" in its name, and its label file in "
		               "the same directory, because the run was trained on arrays; for other files, write -s data.test=[…]", path);
	GT_NEW_STR(test[1], gt_arena_printf(a, "%.*slabels-idx1%s", (int)(at - path), path, at + strlen("images-idx3")), err);
	ds->ntest = 2;
	ds->format = "idx";
	return GT_OK;
}

/* ---- the samples of a checkpoint ------------------------------------------------------------------------------------------------ */
/* Reads the samples that the checkpoint lists and, if folders or a list name the classes, the names of the classes in the checkpoint. */
static enum gt_code read_known(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                               struct gt_err *err)
{
	struct gt_data_facts facts;
	if (!spec->ckpt)
		return GT_OK;
	GT_TRY(gt_arena_open(&out->memory, err));
	GT_TRY(gt_data_facts_samples(spec->ckpt, &out->was, err));
	GT_TRY(gt_data_facts_read(spec->ckpt, out->memory, &facts, err));
	if (facts.nclasses && (facts.files || gt_format_content(ds->format) == GT_CONTENT_TEXTS)) {
		ds->known = facts.class;
		ds->nknown = facts.nclasses;
	}
	return spec->measure ? measure_all_samples(spec, facts.files, out->memory, ds, err) : GT_OK;
}

/* Returns the number of samples that the run uses of all splits. */
static int64_t count_used(const struct gt_session_files *f)
{
	int64_t n = 0;
	for (int i = 0; i < GT_SPLITS; i++)
		n += f->index[i] && i != GT_TRAIN && !(i == GT_VALID && f->index[GT_TRAIN]) ? f->count[i] : f->set[i].n;
	return n;
}

/* Computes the content hash of each encoded image (d->mark[i]) if the hashes are stored, or compared with those of a checkpoint. */
static void hash_contents(const struct gt_session_spec *spec, struct gt_session_files *out)
{
	bool stored = spec->train && !spec->samples_only && count_used(out) <= GT_SAMPLES_MAX;
	for (int i = 0; i < GT_SPLITS; i++)
		gt_session_hash_images(spec->conf, stored || out->was.listed, &out->set[i], out->index_note, sizeof out->index_note);
}

/* Removes the samples on which the checkpoint's run was trained from a split that is evaluated. */
static enum gt_code leave_out_trained(struct gt_session_files *out, enum gt_split split, struct gt_err *err)
{
	const struct gt_dataset *d = &out->set[split];
	int64_t kept = 0, *index = malloc(((size_t)d->n + 1) * sizeof *index);
	if (!index)
		return gt_fail_memory(err, (size_t)d->n * sizeof *index);
	for (int64_t i = 0; i < d->n; i++)
		if (gt_used_measures(&out->was, split, &d->mark[i]))
			index[kept++] = i;
	out->left_out[split] = d->n - kept;
	if (kept == d->n) {
		free(index);
		return GT_OK;
	}
	out->index[split] = index;
	out->count[split] = kept;
	return kept ? GT_OK
	            : gt_fail(err, GT_EDATA, "%.400s: the run has trained on every sample of the split \"%s\", so no sample is left to test",
	                      d->where, gt_split_names[split]);
}

/* Returns whether the samples of the run's split "valid" were taken from its training data, not from a separate split. */
static bool is_valid_part_of_train(const struct gt_conf *c, const struct gt_session_files *out)
{
	const struct gt_sample_list *valid = &out->was.list[GT_VALID];
	const struct gt_dataset *d = &out->set[GT_TRAIN];
	for (int64_t i = 0; i < d->n && valid->n && !out->set[GT_VALID].n && !(c->data.valid > 0); i++)
		if (gt_used_find(valid, d->mark[i].id))
			return true;
	return c->data.valid > 0;
}

/* Compares the samples of a split with the samples that the checkpoint's run used for this split. */
static enum gt_code compare_split(const struct gt_session_spec *spec, struct gt_session_files *out, enum gt_split split, struct gt_err *err)
{
	const struct gt_dataset *d = &out->set[split];
	const struct gt_sample_list *lists[] = {&out->was.list[split], &out->was.list[GT_VALID]};
	struct gt_data_changes *c = &out->changes;
	if (!out->was.listed || !d->n || !d->mark || spec->dry)
		return GT_OK;
	for (int64_t i = 0; spec->measure && i < d->n; i++)
		out->trained += gt_used_trained(&out->was, d->mark[i].content);
	if (spec->measure)
		return GT_OK;
	if (split == GT_TRAIN || lists[0]->n)
		GT_TRY(gt_used_compare(lists, 1 + (split == GT_TRAIN && is_valid_part_of_train(spec->conf, out)), d->mark, d->n, c, err));
	out->differs = c->added || c->missing || c->changed;
	return split == GT_TRAIN ? GT_OK : leave_out_trained(out, split, err);
}

/* Sets out->changed. */
static void describe_changes(struct gt_session_files *out)
{
	const struct gt_data_changes *c = &out->changes;
	if (out->differs)
		append_change(out,
		              "the data has changed since the run read it: of the run's %lld samples, %lld %s missing and %lld %s changed; %lld %s "
		              "new",
		              (long long)c->samples, (long long)c->missing, c->missing == 1 ? "is" : "are", (long long)c->changed,
		              c->changed == 1 ? "has" : "have", (long long)c->added, c->added == 1 ? "is" : "are");
	if (out->stayed && !out->was.changed)
		append_change(out, "%s%lld sample%s in the run's earlier split (train or valid), although data.valid and seed now select the other",
		              *out->changed ? "; " : "", (long long)out->stayed, out->stayed == 1 ? " stays" : "s stay");
	for (int i = 0; i < GT_SPLITS; i++)
		if (out->left_out[i])
			append_change(out, "%s%lld sample%s of the split \"%s\" %s left out, because the run has trained on %s",
			              *out->changed ? "; " : "", (long long)out->left_out[i], out->left_out[i] == 1 ? "" : "s", gt_split_names[i],
			              out->left_out[i] == 1 ? "is" : "are", out->left_out[i] == 1 ? "it" : "them");
}

static enum gt_code list_part(const struct gt_dataset *d, const int64_t *index, int64_t n, struct gt_sample_list *out, struct gt_err *err)
{
	for (int64_t i = 0; i < n; i++)
		GT_TRY(gt_used_add(out, &d->mark[index ? index[i] : i], 1, err));
	return GT_OK;
}

/* Lists the samples that this run uses, for its checkpoints. */
static enum gt_code list_used(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	struct gt_used_samples *u = &out->used;
	const struct gt_dataset *train = &out->set[GT_TRAIN];
	const struct gt_sample_list *const before[] = {&out->was.list[GT_TRAIN], &out->was.past};
	if (!spec->train || spec->dry || !train->n || !(train->mark || train->mapped))
		return GT_OK;
	u->listed = true;
	u->by_number = out->was.by_number && spec->ckpt;
	u->by_draw = spec->ckpt ? out->was.by_draw : !spec->conf->data.stratify;
	u->changed = out->was.changed || out->differs || out->stayed;
	if (count_used(out) > GT_SAMPLES_MAX) /* more than data.json lists */
		return GT_OK;
	if (out->index[GT_TRAIN])
		GT_TRY(list_part(train, out->index[GT_VALID], out->count[GT_VALID], &u->list[GT_VALID], err));
	for (int i = 0; i < GT_SPLITS; i++) {
		const struct gt_dataset *d = &out->set[i];
		if (d->n && d->mark)
			GT_TRY(list_part(d, out->index[i], out->index[i] ? out->count[i] : d->n, &u->list[i], err));
	}
	if (!u->list[GT_TEST].n)
		GT_TRY(gt_used_add(&u->list[GT_TEST], out->was.list[GT_TEST].mark, out->was.list[GT_TEST].n, err));
	GT_TRY(gt_used_index(u, err));
	for (int k = 0; k < 2; k++)
		for (int64_t i = 0; i < before[k]->n; i++)
			if (!gt_used_trained(u, before[k]->mark[i].content))
				GT_TRY(gt_used_add(&u->past, &before[k]->mark[i], 1, err));
	return gt_used_index(u, err);
}

static bool is_split_wanted(const struct gt_session_spec *spec, enum gt_split split)
{
	return split == GT_TRAIN ? spec->train || spec->eval[GT_TRAIN] || spec->eval[GT_VALID] : spec->eval[split];
}

/* ---- formats that learn from the training split -------------------------------------------------------------------------------- */
/* Fits facts, such as a vocabulary or statistics, to the training samples. */
static enum gt_code learn_rows(const struct gt_dataset_spec *ds, const struct gt_session_files *files, struct gt_fitted **now,
                               struct gt_err *err)
{
	const struct gt_fitting *by = gt_dataset_fitting(ds);
	const struct gt_dataset *d = &files->set[GT_TRAIN];
	const int64_t *row = files->index[GT_TRAIN];
	if (!d->raw)
		return gt_fail(err, GT_EINTERNAL, "the data format must be fitted to the training split, which was not read");
	GT_TRY(gt_fitted_new(by, now, err));
	return by->fit(ds, d, row, row ? files->count[GT_TRAIN] : d->n, *now, err);
}

/* Checks that the facts learned from the training samples equal the facts in the checkpoint. If not, a resumed run ends; an evaluation
 * continues with the checkpoint's facts and writes a note to out->changed. */
static enum gt_code compare_learned(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                                    struct gt_err *err)
{
	struct gt_fitted *now = NULL;
	struct gt_err why = {0};
	enum gt_code code = learn_rows(ds, out, &now, &why);
	if (code == GT_OK)
		code = now->by->compare(out->learned, now, out->set[GT_TRAIN].where, gt_ckpt_path(spec->ckpt), &why);
	gt_fitted_free(now);
	if (code == GT_OK)
		return GT_OK;
	if ((code == GT_EDATA || code == GT_ENOINPUT) && !spec->train) { /* GT_ENOINPUT: data.vocab is missing; the checkpoint has a copy */
		append_change(out, "%.700s; %s", why.msg,
		              out->was.listed ? "a key of the group data has a different value than in the run"
		                       : "the training data, data.valid, data.limit or seed has changed, so the splits train and valid may have "
		                         "other samples than in the run");
		return GT_OK;
	}
	if (code != GT_EDATA)
		return gt_fail(err, code, "%s", why.msg);
	return gt_fail(err, code, "%s; %s", why.msg,
	               out->was.listed ? "the data has not changed since the run; remove the data key that now has a different value"
	                               : "a resumed run needs the same training data, with the same data.valid, data.limit and seed");
}

/* Fits out->learned to the training samples. If it already has the facts of a checkpoint, only compares them with the samples. */
static enum gt_code learn_or_load(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                                  struct gt_err *err)
{
	if (!spec->ckpt)
		return learn_rows(ds, out, &out->learned, err);
	/* if samples have changed, facts are not compared: the run continues with the facts of the checkpoint */
	return !out->differs && !out->was.changed && (spec->train || out->set[GT_TRAIN].raw) ? compare_learned(spec, ds, out, err) : GT_OK;
}

/* Rejects keys for texts if the table has no texts. */
static enum gt_code check_texts(const struct gt_conf *c, const struct gt_fitted *l, struct gt_err *err)
{
	if (!c->data.text_key || !l->table.ncolumns || l->table.ntexts)
		return GT_OK;
	return gt_conf_refuse(c, c->data.text_key, err, "expected a column of texts for this key, but the table has no texts; give a column "
	                      "the type \"text\" in data.columns, or remove this key");
}

/* Reads the training split from its files, divides it, fits facts to it or compares them, and converts it. */
static enum gt_code scan_and_learn(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err)
{
	struct gt_dataset *d = &out->set[GT_TRAIN];
	if (out->wanted[GT_TRAIN]) {
		GT_TRY(gt_dataset_read(ds, GT_TRAIN, d, err));
		if (spec->ckpt && d->fitting->mark)
			GT_TRY(d->fitting->mark(out->learned, d, err));
		GT_TRY(gt_session_split_train(spec->conf, ds, out, err));
		GT_TRY(compare_split(spec, out, GT_TRAIN, err));
	}
	GT_TRY(learn_or_load(spec, ds, out, err));
	if (d->raw && !spec->ckpt && d->fitting->mark)
		GT_TRY(d->fitting->mark(out->learned, d, err));
	out->reading = d->raw ? d->fitting->raw_bytes(d->raw, out->learned) : 0;
	if (!d->raw)
		return GT_OK;
	GT_TRY(out->learned->by->transform(ds, out->learned, d, err));
	/* adds the bytes of the converted split, of one column during its conversion, and of the indices of samples */
	out->reading += gt_dataset_bytes(d) + (uint64_t)d->n * (sizeof(double) + (out->index[GT_TRAIN] ? sizeof(int64_t) : 0));
	return GT_OK;
}

/* Takes the training split and its facts from an index, or reads it from its files and writes the index. Sets ds->fitted to the facts, with
 * which the other splits are read. */
static enum gt_code read_and_learn(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err)
{
	struct gt_data_index index = {0};
	if (spec->ckpt)
		GT_TRY(gt_data_facts_learned(spec->ckpt, gt_dataset_fitting(ds), &out->learned, err));
	bool has_index = out->wanted[GT_TRAIN] && gt_session_index_find(spec, ds, GT_TRAIN, &index);
	bool used = has_index && gt_session_index_load(spec, ds, out, &index);
	enum gt_code code = used ? compare_split(spec, out, GT_TRAIN, err) : scan_and_learn(spec, ds, out, err);
	if (code == GT_OK)
		code = check_texts(spec->conf, out->learned, err);
	if (code == GT_OK && has_index && !used)
		gt_session_index_save(spec, ds, out, &index);
	snprintf(out->index_note, sizeof out->index_note, "%s", index.note);
	gt_data_index_close(&index);
	GT_TRY(code);
	ds->fitted = out->learned;
	return out->learned->by->describe(ds, out->learned, &out->like, err);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */
/* Reads all splits that are wanted and not yet read, each split in its own thread. */
static void read_all(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out, struct job *job)
{
	pthread_t thread[GT_SPLITS];
	bool threaded[GT_SPLITS] = {false};
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!out->wanted[i] || (i == GT_TRAIN && out->learned))
			continue;
		job[i] = (struct job){.session = spec, .spec = ds, .split = (enum gt_split)i, .out = &out->set[i]};
		threaded[i] = i != GT_TRAIN && !pthread_create(&thread[i], NULL, read_split, &job[i]);
	}
	for (int i = 0; i < GT_SPLITS; i++) {
		if (threaded[i])
			pthread_join(thread[i], NULL);
		else if (job[i].spec)
			read_split(&job[i]);
	}
}

/* Records a missing split of a dry session: `gtrain check` works without the data. */
static bool note_missing_split(const struct gt_session_spec *spec, enum gt_split split, struct gt_err *why, struct gt_session_files *out)
{
	if (!spec->dry || why->code != GT_ENOINPUT)
		return false;
	out->missing[split] = true;
	if (!*out->note) /* keeps the first reason: splits are read in the order of their importance */
		snprintf(out->note, sizeof out->note, "%s", why->msg);
	return true;
}

static enum gt_code read_splits(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	struct gt_dataset_spec ds = gt_session_dataset_spec(spec->conf);
	ds.skipped = out->skipped;
	GT_TRY(read_known(spec, &ds, out, err));
	struct job job[GT_SPLITS] = {0};
	struct gt_err why = {0};
	if (gt_dataset_fitting(&ds)) {
		enum gt_code code = read_and_learn(spec, &ds, out, &why);
		if (code != GT_OK)
			gt_conf_at_key(spec->conf, &why);
		if (code != GT_OK && note_missing_split(spec, GT_TRAIN, &why, out)) {
			out->missing[GT_TEST] = out->missing[GT_VALID] = true;
			return GT_OK;
		}
		if (code != GT_OK && err)
			*err = why;
		GT_TRY(code);
	}
	read_all(spec, &ds, out, job);
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!*out->index_note)
			snprintf(out->index_note, sizeof out->index_note, "%s", job[i].note);
		if (job[i].code == GT_OK)
			continue;
		gt_conf_at_key(spec->conf, &job[i].err);
		if (note_missing_split(spec, (enum gt_split)i, &job[i].err, out))
			continue;
		if (err)
			*err = job[i].err;
		return job[i].code;
	}
	hash_contents(spec, out);
	if (!out->learned && !out->missing[GT_TRAIN] && out->wanted[GT_TRAIN])
		GT_TRY(gt_session_split_train(spec->conf, &ds, out, err));
	for (int i = out->learned ? GT_VALID : GT_TRAIN; i < GT_SPLITS; i++)
		GT_TRY(compare_split(spec, out, (enum gt_split)i, err));
	describe_changes(out);
	return list_used(spec, out, err);
}

void gt_session_explain_moved(const struct gt_conf *c, struct gt_err *err)
{
	const char *vocab = c->data.text.vocab;
	if (!err)
		return;
	struct gt_err why = *err;
	gt_fail(err, why.code, "%s; if the data has moved, add -s %s", why.msg,
	        vocab && *vocab && access(vocab, F_OK) ? "data.vocab=FILE"
	        : *c->data.root || !c->data.train.n    ? "data.root=DIR"
	                                               : "'data.train=[\"FILE\"]', and data.test likewise if the config has it");
}

enum gt_code gt_session_read_data(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	*out = (struct gt_session_files){0};
	for (int i = 0; i < GT_SPLITS; i++)
		out->wanted[i] = is_split_wanted(spec, (enum gt_split)i);
	if (spec->conf->data.on_error == GT_ON_ERROR_SKIP)
		GT_TRY(gt_skipped_open(&out->skipped, err));
	enum gt_code code = read_splits(spec, out, err);
	if (code == GT_ENOINPUT && spec->ckpt)
		gt_session_explain_moved(spec->conf, err);
	bool again = code == GT_OK && spec->or_valid && !out->wanted[GT_VALID] && !out->set[GT_TEST].n;
	if (code != GT_OK || again)
		gt_session_free_data(out);
	if (!again)
		return code;
	struct gt_session_spec valid = *spec;
	valid.eval[GT_VALID] = true;
	return gt_session_read_data(&valid, out, err);
}

void gt_session_free_data(struct gt_session_files *f)
{
	for (int i = 0; i < GT_SPLITS; i++)
		if (!gt_index_owns(f->set[GT_TRAIN].mapped, f->index[i])) /* both parts are parts of the training split */
			free(f->index[i]);
	for (int i = 0; i < GT_SPLITS; i++)
		gt_dataset_free(&f->set[i]);
	gt_dataset_free(&f->like);
	gt_fitted_free(f->learned);
	gt_used_free(&f->was);
	gt_used_free(&f->used);
	gt_arena_close(f->memory);
	gt_skipped_close(f->skipped);
	*f = (struct gt_session_files){0};
}

enum gt_code gt_session_read_inputs(const struct gt_session *s, const char *path, struct gt_dataset *out, struct gt_err *err)
{
	struct gt_dataset_spec ds = gt_session_dataset_spec(s->conf);
	*out = (struct gt_dataset){0};
	ds.fitted = s->data.files->learned;
	ds.limit = 0;
	ds.skipped = s->data.files->skipped;
	enum gt_code code = ds.fitted->by->inputs(&ds, path, out, err);
	if (code != GT_OK)
		gt_dataset_free(out);
	return code;
}

enum gt_code gt_session_read_text(const struct gt_session *s, const char *name, const char *text, size_t n, struct gt_dataset *out,
                                  struct gt_err *err)
{
	struct gt_dataset_spec ds = gt_session_dataset_spec(s->conf);
	*out = (struct gt_dataset){0};
	ds.fitted = s->data.files->learned;
	enum gt_code code = ds.fitted->by->text(&ds, name, text, n, out, err);
	if (code != GT_OK)
		gt_dataset_free(out);
	return code;
}
