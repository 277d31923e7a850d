#include "verify_files.h"
#include "base/arena.h"
#include "image/decode.h"
#include "image/transform.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_THREADS = 32, AT_ONCE = 16 }; /* AT_ONCE: number of files that a thread takes at a time */
#define HEAD ((size_t)64 << 10)          /* bytes that usually have the header */

struct work {
	const struct gt_source *s;
	struct gt_verified *out;
	bool whole;
	atomic_llong next; /* first file that no thread has taken */
	atomic_bool ends;  /* a thread has failed */
};

struct worker {
	struct work *work;
	struct gt_image_scratch *scratch;
	struct gt_bytes_buf file;
	enum gt_code code;
	struct gt_err err;
};

/* Decodes an image. Of a JPEG an eighth of the size is computed, for which all of its data is read. */
static enum gt_code decode_image(const struct gt_bytes_buf *file, const char *name, const struct gt_image_head *head,
                                 struct gt_image_scratch *s, struct gt_err *err)
{
	struct gt_decode_part part = gt_decode_whole(head);
	struct gt_pixels pixels;
	if (head->format == GT_IMAGE_JPEG)
		part = (struct gt_decode_part){.reduce = 8, .x1 = (head->w + 7) / 8, .y1 = (head->h + 7) / 8};
	return gt_decode_pixels(file->data, file->size, name, head, &part, s, &pixels, err);
}

static enum gt_code check_file(struct worker *w, int64_t i, struct gt_image_head *head, struct gt_err *err)
{
	const struct work *k = w->work;
	char name[720];
	gt_source_name(k->s, i, name, sizeof name);
	if (!k->whole) {
		GT_TRY(gt_source_read_head(k->s, i, HEAD, &w->file, err));
		enum gt_code code = gt_decode_head(w->file.data, w->file.size, name, w->scratch, head, err);
		if (code != GT_EDATA || w->file.size < HEAD)
			return code;
	}
	GT_TRY(gt_source_read(k->s, i, &w->file, err));
	GT_TRY(gt_decode_head(w->file.data, w->file.size, name, w->scratch, head, err));
	return k->whole ? decode_image(&w->file, name, head, w->scratch, err) : GT_OK;
}

static enum gt_code check_and_record(struct worker *w, int64_t i)
{
	struct gt_verified *out = w->work->out;
	struct gt_image_head head;
	struct gt_err why = {0};
	enum gt_code code = check_file(w, i, &head, &why);
	if (code == GT_OK) {
		out->shape[i] = (struct gt_image_shape){(int32_t)head.h, (int32_t)head.w, head.c};
		return GT_OK;
	}
	if (code != GT_EDATA) {
		w->err = why;
		return code;
	}
	out->why[i] = strdup(why.msg);
	return out->why[i] ? GT_OK : gt_fail_memory(&w->err, strlen(why.msg));
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct work *k = w->work;
	while (w->code == GT_OK && !k->ends) {
		int64_t first = atomic_fetch_add(&k->next, AT_ONCE);
		if (first >= k->s->n)
			break;
		for (int64_t i = first; i < first + AT_ONCE && i < k->s->n && w->code == GT_OK; i++)
			w->code = check_and_record(w, i);
	}
	if (w->code != GT_OK)
		k->ends = true;
	return NULL;
}

/* Runs the workers, each in a thread; what threads that cannot be started would do, the first one does. */
static enum gt_code run_workers(struct worker *w, int n, struct gt_err *err)
{
	pthread_t thread[MAX_THREADS];
	bool started[MAX_THREADS] = {false};
	for (int i = 1; i < n; i++)
		started[i] = !pthread_create(&thread[i], NULL, run_worker, &w[i]);
	run_worker(&w[0]);
	for (int i = 1; i < n; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
	for (int i = 0; i < n; i++) {
		if (w[i].code == GT_OK)
			continue;
		if (err)
			*err = w[i].err;
		return w[i].code;
	}
	return GT_OK;
}

enum gt_code gt_source_verify(const struct gt_source *s, bool whole, struct gt_verified *out, struct gt_err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t most = (s->n + AT_ONCE - 1) / AT_ONCE;
	int n = (int)(cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : cores);
	n = most < n ? (int)(most > 1 ? most : 1) : n;
	struct work work = {.s = s, .out = out, .whole = whole};
	struct worker w[MAX_THREADS] = {0};
	*out = (struct gt_verified){.n = s->n, .why = calloc((size_t)s->n + 1, sizeof *out->why),
	                            .shape = calloc((size_t)s->n + 1, sizeof *out->shape)};
	enum gt_code code = out->why && out->shape ? GT_OK : gt_fail_memory(err, (size_t)s->n * sizeof *out->shape);
	for (int i = 0; i < n && code == GT_OK; i++) {
		w[i].work = &work;
		code = gt_image_scratch_open(&w[i].scratch, err);
	}
	if (code == GT_OK)
		code = run_workers(w, n, err);
	for (int i = 0; i < n; i++) {
		gt_image_scratch_close(w[i].scratch);
		free(w[i].file.data);
	}
	for (int64_t i = 0; code == GT_OK && i < s->n; i++)
		out->bad += out->why[i] != NULL;
	if (code != GT_OK)
		gt_verified_free(out);
	return code;
}

void gt_source_drop(struct gt_source *s, struct gt_verified *v)
{
	int64_t kept = 0;
	for (int64_t i = 0; i < v->n; i++) {
		if (v->why[i]) {
			free(v->why[i]);
			v->why[i] = NULL;
			continue;
		}
		s->file[kept] = s->file[i];
		v->shape[kept++] = v->shape[i];
	}
	s->n = v->n = kept;
	v->bad = 0;
}

void gt_verified_free(struct gt_verified *v)
{
	for (int64_t i = 0; v->why && i < v->n; i++)
		free(v->why[i]);
	free(v->why);
	free(v->shape);
	*v = (struct gt_verified){0};
}
