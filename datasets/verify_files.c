#include "verify_files.h"
#include "base/arena.h"
#include "image/decode.h"
#include "image/transform.h"
#include "threads.h"
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 16 };           /* number of files that a thread takes at a time */
#define HEAD ((size_t)64 << 10)          /* bytes to read first, which usually contain the header */

struct work {
	const struct gt_source *s;
	struct gt_verified *out;
	bool whole;
	struct worker *worker;
};

struct worker {
	struct gt_image_scratch *scratch;
	struct gt_bytes_buf file;
	enum gt_code code;
	struct gt_err err;
};

/* Decodes an image. A JPEG is decoded at 1/8 scale, which still reads all of its data. */
static enum gt_code decode_image(const struct gt_bytes_buf *file, const char *name, const struct gt_image_head *head,
                                 struct gt_image_scratch *s, struct gt_err *err)
{
	struct gt_decode_part part = gt_decode_whole(head);
	struct gt_pixels pixels;
	if (head->format == GT_IMAGE_JPEG)
		part = (struct gt_decode_part){.reduce = 8, .x1 = (head->w + 7) / 8, .y1 = (head->h + 7) / 8};
	return gt_decode_pixels(file->data, file->size, name, head, &part, s, &pixels, err);
}

static enum gt_code check_file(const struct work *k, struct worker *w, int64_t i, struct gt_image_head *head, struct gt_err *err)
{
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

static bool check_and_record(void *user, int thread, int64_t i)
{
	const struct work *k = user;
	struct worker *w = &k->worker[thread];
	struct gt_image_head head;
	struct gt_err why = {0};
	w->code = check_file(k, w, i, &head, &why);
	if (w->code == GT_OK) {
		k->out->shape[i] = (struct gt_image_shape){(int32_t)head.h, (int32_t)head.w, head.c};
	} else if (w->code != GT_EDATA) {
		w->err = why;
	} else {
		k->out->why[i] = strdup(why.msg);
		w->code = k->out->why[i] ? GT_OK : gt_fail_memory(&w->err, strlen(why.msg));
	}
	return w->code == GT_OK;
}

enum gt_code gt_source_verify(const struct gt_source *s, bool whole, struct gt_verified *out, struct gt_err *err)
{
	int n = gt_threads_for(s->n, AT_ONCE, GT_THREADS_MAX);
	struct worker w[GT_THREADS_MAX] = {0};
	struct work work = {.s = s, .out = out, .whole = whole, .worker = w};
	*out = (struct gt_verified){.n = s->n, .why = calloc((size_t)s->n + 1, sizeof *out->why),
	                            .shape = calloc((size_t)s->n + 1, sizeof *out->shape)};
	enum gt_code code = out->why && out->shape ? GT_OK : gt_fail_memory(err, (size_t)s->n * sizeof *out->shape);
	for (int i = 0; i < n && code == GT_OK; i++)
		code = gt_image_scratch_open(&w[i].scratch, err);
	if (code == GT_OK)
		gt_threads_run(n, s->n, AT_ONCE, check_and_record, &work);
	for (int i = 0; i < n; i++) {
		if (code == GT_OK && w[i].code != GT_OK)
			code = gt_fail_copy(err, &w[i].err);
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
