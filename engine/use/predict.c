/* gt_predict: predicts images, rows of tables, or texts with a checkpoint. This file reads images;
 * predict_table.c reads tables and texts. */
#include "formats.h"
#include "use/inference.h"
#include "session/session_data.h"
#include "train/run_ranks.h"
#include "train/state.h"
#include "use/predictor.h"
#include "use/table_rows.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 16            /* maximum number of threads that read files */
#define FILE_IMAGES 10000000  /* maximum number of images of one file */
#define FEW_INPUTS 1024       /* of more inputs, the last batch is a small part */

/* Reads the image of a member of an archive. */
static enum gt_code read_member(const struct gt_predictor *p, const struct gt_input *input, uint8_t **out, int64_t *n, bool *scaled,
                                struct gt_err *err)
{
	const int64_t *in = p->s->conf->model.input;
	struct gt_bytes_buf buf = {0};
	enum gt_code code = gt_source_read(input->source, input->member, &buf, err);
	*n = 1;
	if (code == GT_OK)
		code = gt_image_decode(input->path, buf.data, buf.size, p->s->data.eval_list, in[0], in[1], in[2], out, scaled, err);
	free(buf.data);
	return code;
}

/* Reads the images of one file as *n images of the model's input size: a picture, or all images of an IDX file. The caller frees *out.
 * Several threads call this function at the same time. */
static enum gt_code read_file(const struct gt_predictor *p, const struct gt_input *input, uint8_t **out, int64_t *n, bool *scaled,
                              struct gt_err *err)
{
	const int64_t *in = p->s->conf->model.input;
	const char *file = input->path;
	if (input->source)
		return read_member(p, input, out, n, scaled, err);
	GT_TRY(gt_image_read(file, p->s->data.eval_list, in[0], in[1], in[2], FILE_IMAGES + 1, out, n, scaled, err));
	if (*n <= FILE_IMAGES)
		return GT_OK;
	free(*out);
	*out = NULL;
	return gt_fail(err, GT_EDATA, "%s: expected at most %d images in a file; divide the file", file, FILE_IMAGES);
}

/* ---- files ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of threads that read files: the number in the config, or one thread for each processor that this process may use. */
static int num_threads(const struct gt_conf *c)
{
	cpu_set_t set;
	int n = c->threads > 0 ? (int)c->threads : sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
	return n < 1 ? 1 : n > THREADS ? THREADS : n;
}

/* Files that several threads read at the same time. Each thread reads the next file. */
struct reading {
	const struct gt_predictor *p;
	const struct gt_input *in;
	int n;
	atomic_int next;
	struct {
		uint8_t *images; /* malloc'ed; NULL: the file cannot be used */
		int64_t n;
		bool scaled;
		enum gt_code code;
		struct gt_err err;
	} file[2 * THREADS];
};

static void *read_files(void *arg)
{
	struct reading *r = arg;
	for (int i; (i = atomic_fetch_add(&r->next, 1)) < r->n;) {
		const struct gt_input *in = &r->in[i];
		r->file[i].code = in->error ? gt_fail(&r->file[i].err, in->code, "%s", in->error)
		                            : read_file(r->p, in, &r->file[i].images, &r->file[i].n, &r->file[i].scaled, &r->file[i].err);
	}
	return NULL;
}

/* Reads r->n files. The calling thread also reads, and reads all files if no thread can start. */
static void read_in_threads(struct reading *r, int threads)
{
	pthread_t thread[THREADS];
	int n = 0;
	atomic_store(&r->next, 0);
	while (n < threads - 1 && n < r->n - 1 && !pthread_create(&thread[n], NULL, read_files, r))
		n++;
	read_files(r);
	while (n > 0)
		pthread_join(thread[--n], NULL);
}

/* Adds the images of file i. Sets *bad if this file cannot be used but others can. */
static enum gt_code add_file(struct gt_predictor *p, const struct reading *r, int i, bool *bad, struct gt_err *err)
{
	size_t bytes = (size_t)(p->batch.c * p->batch.h * p->batch.w);
	enum gt_code code = r->file[i].code;
	*bad = code != GT_OK && (r->in[i].error || code != GT_ECONFIG); /* GT_ECONFIG: no file can be used, because the model takes no images */
	if (code != GT_OK && err)
		*err = r->file[i].err;
	for (int64_t k = 0; k < r->file[i].n && code == GT_OK && !p->ended; k++)
		code = gt_predictor_add_image(p, r->in[i].path, k, r->file[i].scaled, r->file[i].images + (size_t)k * bytes, err);
	return code;
}

/* Adds the images of the files that were read, and frees the images. only: there is only one file. */
static enum gt_code add_files(struct gt_predictor *p, const struct reading *r, bool only, int64_t *failed, struct gt_err *err)
{
	enum gt_code code = GT_OK;
	for (int i = 0; i < r->n; i++) {
		bool bad = false;
		struct gt_err why = {0};
		if (code == GT_OK && !p->ended) {
			code = add_file(p, r, i, &bad, &why);
			if (code != GT_OK && bad && !only) {
				(*failed)++;
				code = gt_predictor_add_error(p, r->in[i].path, why.msg, &why);
			}
			if (code != GT_OK && err)
				*err = why;
		}
		free(r->file[i].images);
	}
	return code;
}

static enum gt_code predict_images(struct gt_predictor *p, const struct gt_inputs *in, int64_t *failed, struct gt_err *err)
{
	int threads = num_threads(p->s->conf);
	for (int64_t i = 0; i < in->n && !p->ended;) {
		struct reading r = {.p = p, .in = in->v + i, .n = in->n - i < 2 * threads ? (int)(in->n - i) : 2 * threads};
		read_in_threads(&r, threads);
		GT_TRY(add_files(p, &r, in->n == 1, failed, err));
		i += r.n;
	}
	return GT_OK;
}

static enum gt_code predict_all(struct gt_predictor *p, const struct gt_inputs *in, struct gt_err *err)
{
	int64_t failed = 0, all = 0;
	bool tables = p->s->data.files->learned != NULL;
	GT_TRY(gt_state_load(p->s, p->ckpt, false, err));
	GT_TRY(gt_session_fold_norms(p->s, err));
	GT_TRY(gt_predictor_open(p, err));
	GT_TRY(tables ? gt_predict_tables(p, in, &failed, &all, err) : predict_images(p, in, &failed, err));
	GT_TRY(gt_predictor_flush(p, err));
	if (p->nonfinite && !p->ended)
		return gt_fail(err, GT_EDIVERGED, "%lld of the predictions are not finite; the first of these predictions is for %s",
		               (long long)p->nonfinite, p->why);
	return failed && !p->ended ? gt_fail(err, GT_EDATA, "%lld of %lld %s could not be %s", (long long)failed,
	                                     (long long)(tables ? all : in->n), all > in->n ? "texts" : "files",
	                                     tables ? "predicted" : "classified")
	                           : GT_OK;
}

static enum gt_code find_inputs(const struct gt_predict_spec *spec, struct gt_inputs *in, struct gt_err *err)
{
	for (int i = 0; i < spec->ninputs; i++)
		GT_TRY(gt_inputs_add(in, spec->inputs[i], err));
	for (int i = 0; i < spec->nlists; i++)
		GT_TRY(gt_inputs_add_list(in, spec->lists[i], err));
	for (int i = 0; i < spec->ntexts; i++)
		GT_TRY(gt_inputs_add_text(in, spec->texts[i], err));
	return GT_OK;
}

/* Rejects options that the model cannot use. */
static enum gt_code check_options(const struct gt_predict_spec *spec, const struct gt_folder_kind *kind, struct gt_err *err)
{
	if (spec->ntexts && kind != &gt_folder_texts)
		return gt_fail(err, GT_EUSAGE, "--text: expected a model of texts (data.format = \"text\"), got %.400s, which is a model of %s",
		               spec->ckpt, kind == &gt_folder_tables ? "tables; write the text into a row of a table" : "images");
	if ((spec->append || spec->nkeep) && kind != &gt_folder_tables)
		return gt_fail(err, GT_EUSAGE, "%s: expected a model of tables (data.format = \"csv\"), got %.400s, which is a model of %s",
		               spec->append ? "--append" : "--keep", spec->ckpt, kind == &gt_folder_texts ? "texts" : "images");
	return GT_OK;
}

/* Prepares results with the columns of the input. */
static enum gt_code open_rows(struct gt_predictor *p, const struct gt_predict_spec *spec, struct gt_err *err)
{
	const struct gt_conf_data *d = &p->s->conf->data;
	struct gt_table_rows_spec rows = {.keep = spec->nkeep ? spec->keep : NULL, .nkeep = spec->nkeep, .delimiter = *d->delimiter,
	                                  .encoding = (enum gt_encoding)d->encoding, .facts = &p->s->data.files->learned->table};
	return spec->append || spec->nkeep ? gt_table_rows_open(&rows, &p->rows_of_files, err) : GT_OK;
}

/* Returns the number of samples of a batch: without a remainder if each input is one sample, so that one picture does not cost as much as
 * 64. */
static int64_t choose_batch(const struct gt_inputs *in)
{
	int64_t n = in->n > 0 ? in->n : 1, batches = (n + GT_PREDICT_BATCH - 1) / GT_PREDICT_BATCH;
	return n <= FEW_INPUTS && gt_inputs_are_single(in) ? (n + batches - 1) / batches : GT_PREDICT_BATCH;
}

static enum gt_code predict_with_checkpoint(struct gt_predictor *p, const struct gt_predict_spec *spec, struct gt_inputs *in,
                                            struct gt_err *err)
{
	struct gt_ckpt *ckpt;
	struct gt_conf *c;
	GT_TRY(gt_inference_open(spec->ckpt, NULL, 0, &ckpt, &c, err));
	p->ckpt = ckpt;
	gt_ranks_use_one(c);
	struct gt_session_spec session = {.conf = c, .device = spec->device, .ckpt = ckpt, .inference = true};
	in->kind = gt_format_input(c->data.format);
	enum gt_code code = check_options(spec, in->kind, err);
	if (code == GT_OK)
		code = find_inputs(spec, in, err);
	session.predict = choose_batch(in);
	if (code == GT_OK)
		code = gt_session_open(&session, &p->s, err);
	if (code == GT_OK && spec->top && p->s->data.nvalues)
		code = gt_fail(err, GT_EUSAGE, "--top %d: expected a model that predicts classes, got %.400s, which predicts values (\"%.100s\"); "
		               "remove --top", spec->top, spec->ckpt, p->s->data.value_name[0]);
	if (code == GT_OK && p->s->data.files->learned)
		code = open_rows(p, spec, err);
	if (code == GT_OK)
		code = predict_all(p, in, err);
	gt_predictor_close(p);
	gt_session_close(p->s);
	gt_ckpt_close(ckpt);
	gt_conf_free(c);
	return code;
}

enum gt_code gt_predict(const struct gt_predict_spec *spec, bool (*fn)(void *user, const struct gt_prediction *p), void *user,
                        struct gt_err *err)
{
	struct gt_inputs in = {0};
	struct gt_predictor *p = calloc(1, sizeof *p);
	if (!p)
		return gt_fail_memory(err, sizeof *p);
	p->top = spec->top ? spec->top : 1;
	p->fn = fn;
	p->warn = spec->warn;
	p->user = user;
	enum gt_code code = gt_arena_open(&in.arena, err);
	if (code == GT_OK)
		code = predict_with_checkpoint(p, spec, &in, err);
	gt_inputs_free(&in);
	gt_arena_close(in.arena);
	free(p);
	return code;
}
